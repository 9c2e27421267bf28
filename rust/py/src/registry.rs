//! The games by name.

use std::sync::OnceLock;

use azpy_core::text::shown;
use azpy_games::any::AnyGame;
use azpy_games::registry::{BUILT_IN, Entry, split};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::RustError;
use crate::position::AnyState;

/// The names of the games that ship with azpy.
pub(crate) fn built_in() -> Vec<&'static str> {
    BUILT_IN.iter().map(|entry| entry.name).collect()
}

/// These, and games of one's own, which came with the module.
static ALL: OnceLock<&'static [Entry]> = OnceLock::new();

fn all_games() -> &'static [Entry] {
    ALL.get().copied().unwrap_or(BUILT_IN)
}

/// Adds games of one's own; done once, when the module is made.
pub(crate) fn add(own: &'static [Entry]) -> PyResult<()> {
    for (index, entry) in own.iter().enumerate() {
        check(entry, BUILT_IN.iter().chain(&own[..index])).map_err(PyImportError::new_err)?;
    }
    ALL.set([BUILT_IN, own].concat().leak()).map_err(|_| PyImportError::new_err("the module was made before"))
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

/// The rules in a sentence, and all parameters, of the game that a specification in its one spelling means; nothing of
/// a game that has no entry.
pub(crate) fn described(spec: &str) -> (String, Vec<(&'static str, Param)>) {
    let (name, given) = split(spec);
    let given: Vec<_> = given.collect();
    let Some(entry) = all_games().iter().find(|entry| entry.name == name) else { return Default::default() };
    let (mut rules, mut params) = (entry.rules().to_owned(), Vec::new());
    for &(name, default) in entry.params {
        let value = given.iter().find(|&&(known, _)| known == name).map_or(default, |&(_, value)| value);
        rules = rules.replace(&format!("{{{name}}}"), value);
        params.push((name, Param::of(value)));
    }
    (rules, params)
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
    if name.contains(':') && all_games().iter().all(|game| game.name != name) {
        let spec = shown(spec);
        let text = format!("game {spec} is not written in Rust: give the state that azpy.make_game({spec}) makes");
        return Err(PyValueError::new_err(text));
    }
    AnyGame::open(all_games(), spec, given).map_err(RustError::raised)
}
