//! The games by name.

use std::sync::OnceLock;

use azpy_core::game::Payoff;
use azpy_core::text::{Notation, shown};
use azpy_games::any::{self, AnyGame};
use azpy_games::registry::{self, split};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::RustError;
use crate::position::{AnyState, Either};

/// A game by its name.
pub type Entry = registry::Entry<Start>;
pub use azpy_games::registry::Params;

/// The start of some game.
pub type Start = any::Start<Hold>;

/// The start of a game, whatever its type.
pub fn start<G: Notation>(game: G) -> Start {
    Start::new(game)
}

/// What Python does with a start: it holds it.
pub struct Hold;

impl any::GameVisitor for Hold {
    type Output = AnyState;

    fn games() -> &'static [Entry] {
        ALL.get().copied().unwrap_or(GAMES)
    }

    fn visit<P: Payoff>(self, start: AnyGame<P>) -> AnyState {
        let start: Box<dyn std::any::Any> = Box::new(start);
        match start.downcast() {
            Ok(zero) => Either::Zero(*zero),
            Err(start) => Either::Several(*start.downcast().expect("there are two payoffs")),
        }
    }
}

const GAMES: &[Entry] = &azpy_games::built_in!(start);

/// The names of the games that ship with azpy.
pub(crate) fn built_in() -> Vec<&'static str> {
    GAMES.iter().map(|entry| entry.name).collect()
}

/// These, and games of one's own, which came with the module.
static ALL: OnceLock<&'static [Entry]> = OnceLock::new();

fn all_games() -> impl Iterator<Item = &'static Entry> {
    <Hold as any::GameVisitor>::games().iter()
}

/// Adds games of one's own; done once, when the module is made.
pub(crate) fn add(own: &'static [Entry]) -> PyResult<()> {
    for (index, entry) in own.iter().enumerate() {
        check(entry, GAMES.iter().chain(&own[..index])).map_err(PyImportError::new_err)?;
    }
    let all = GAMES
        .iter()
        .chain(own)
        .map(|&Entry { name, params, make }| Entry { name, params, make })
        .collect::<Vec<_>>()
        .leak();
    ALL.set(all).map_err(|_| PyImportError::new_err("the module was made before"))
}

fn check<'a>(entry: &Entry, mut others: impl Iterator<Item = &'a Entry>) -> Result<(), String> {
    let name = entry.name;
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if others.any(|other| other.name == name) {
        return Err(format!("there is a game {name:?} already: the game in this module needs another name"));
    }
    for (index, &(param, _)) in entry.params.iter().enumerate() {
        if !plain(param) || entry.params[..index].iter().any(|&(other, _)| other == param) {
            return Err(format!(
                "{param:?} cannot be a parameter of {name:?}: names are like size, k or board_2, each once"
            ));
        }
    }
    if !plain(name) {
        return Err(format!("{name:?} cannot be the name of a game: names are like hex or connect_four"));
    }
    entry
        .usual()
        .map(drop)
        .map_err(|error| format!("{name:?} cannot be made with the defaults of its parameters: {error}"))
}

/// A parameter's value in Python: a number where it is one, else its text.
#[derive(IntoPyObject)]
pub(crate) enum Param {
    Whole(usize),
    Number(f64),
    Text(String),
}

impl Param {
    fn of(text: &str) -> Self {
        match (text.parse(), text.parse()) {
            (Ok(number), _) => Self::Whole(number),
            (_, Ok(number)) => Self::Number(number),
            _ => Self::Text(text.to_owned()),
        }
    }
}

/// All parameters of the game that a specification in its one spelling means; of a game that has no entry none.
pub(crate) fn params(spec: &str) -> Vec<(&'static str, Param)> {
    let (name, given) = split(spec);
    let given: Vec<_> = given.collect();
    let Some(entry) = all_games().find(|entry| entry.name == name) else { return Vec::new() };
    let value = |&(name, default): &(&'static str, &str)| {
        let value = given.iter().find(|&&(known, _)| known == name).map_or(default, |&(_, value)| value);
        (name, Param::of(value))
    };
    entry.params.iter().map(value).collect()
}

/// Return the built-in games: a dict from name to its parameters with their defaults.
///
///     >>> import azpy
///     >>> azpy.list_games()["connect_four"]
///     {'width': 7, 'height': 6, 'k': 4}
#[pyfunction]
pub(crate) fn list_games(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let games = PyDict::new(py);
    for entry in all_games() {
        let params = PyDict::new(py);
        for (name, default) in entry.params {
            params.set_item(name, Param::of(default))?;
        }
        games.set_item(entry.name, params)?;
    }
    Ok(games)
}

/// The start of the game that a specification such as "connect_four(width=5)" means.
pub(crate) fn make(spec: &str, given: Vec<(String, String)>) -> PyResult<AnyState> {
    let name = split(spec).0.trim();
    if name.contains(':') && all_games().all(|game| game.name != name) {
        let spec = shown(spec);
        let text = format!("game {spec} is not written in Rust: give the state that azpy.make_game({spec}) makes");
        return Err(PyValueError::new_err(text));
    }
    Start::open_with(spec, given, Hold).map_err(RustError::raised)
}
