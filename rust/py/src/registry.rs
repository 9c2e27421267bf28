//! The games by name.

use std::sync::OnceLock;

use azpy_core::game::Payoff;
use azpy_core::text::shown;
use azpy_games::registry::{self, split, with_params};
use azpy_games::{
    Backgammon, Blokus, Breakthrough, Chess, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go,
    Gomoku, Hex, Maedn, Othello, PegSolitaire, Pig, TicTacToe, Trictrac, WallGame,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::doors::{AnyState, Typed};
use crate::hosted::Hosted;

impl Hosted for Backgammon {}
impl Hosted for Chess {}
impl<P: Payoff> Hosted for Blokus<P> {}
impl Hosted for Breakthrough {}
impl<P: Payoff> Hosted for ChineseCheckers<P> {}
impl Hosted for ConnectFour {}
impl Hosted for ConnectFourForThree {}
impl Hosted for DiceNim {}
impl Hosted for Game2048 {}
impl<const WORDS: usize> Hosted for Go<WORDS> {}
impl Hosted for Gomoku {}
impl Hosted for Hex {}
impl<P: Payoff> Hosted for Maedn<P> {}
impl Hosted for Othello {}
impl Hosted for PegSolitaire {}
impl Hosted for Pig {}
impl Hosted for TicTacToe {}
impl Hosted for Trictrac {}
impl Hosted for WallGame {}

/// A game by its name.
pub type Entry = registry::Entry<Start>;
pub use azpy_games::registry::Params;

/// The start of some game.
pub struct Start(Box<dyn AnyState>);

/// The start of a game, whatever its type.
pub fn hosted<G: Hosted>(game: G) -> Start {
    Start(Box::new(Typed(game)))
}

const GAMES: &[Entry] = &azpy_games::built_in!(hosted);

/// The names of the games that ship with azpy.
pub(crate) fn built_in() -> Vec<&'static str> {
    GAMES.iter().map(|entry| entry.name).collect()
}

/// Games of one's own, which came with the module.
static OWN: OnceLock<&'static [Entry]> = OnceLock::new();

fn all_games() -> impl Iterator<Item = &'static Entry> {
    GAMES.iter().chain(OWN.get().copied().unwrap_or_default())
}

/// Adds games of one's own; done once, when the module is made.
pub(crate) fn add(own: &'static [Entry]) -> Result<(), String> {
    for (index, entry) in own.iter().enumerate() {
        check(entry, GAMES.iter().chain(&own[..index]))?;
    }
    OWN.set(own).map_err(|_| "the module was made before".into())
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

/// What a position is called that was read by the rules of `spec`: a text of Go may have a komi of its own.
pub(crate) fn spec_of(spec: &str, state: &dyn AnyState) -> String {
    let Some(komi) = state.komi() else { return spec.to_owned() };
    let made = make(split(spec).0, with_params(spec, &[("komi", komi.to_string())]));
    made.map_or_else(|_| spec.to_owned(), |(spec, _)| spec)
}

/// The games there are: name -> parameters with their defaults.
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

/// The start of the game that a specification such as "connect_four(width=5)" means, after the specification in its one
/// spelling.
pub(crate) fn make(spec: &str, given: Vec<(String, String)>) -> Result<(String, Box<dyn AnyState>), String> {
    let games: Vec<_> = all_games().collect();
    let name = split(spec).0.trim();
    if name.contains(':') && games.iter().all(|game| game.name != name) {
        let spec = shown(spec);
        return Err(format!("game {spec} is not written in Rust: give the state that azpy.make_game({spec}) makes"));
    }
    let made = registry::make(&games, spec, given, |Start(one), Start(other)| one.key() == other.key());
    made.map(|(spec, Start(inner))| (spec, inner))
}
