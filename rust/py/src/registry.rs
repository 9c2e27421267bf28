//! The games by name.

use azpy_games::{ConnectFour, DiceNim, Hex, Othello, Pig, TicTacToe};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hosted::{AnyState, Hosted, Typed};
use crate::state::State;

impl Hosted for ConnectFour {}
impl Hosted for DiceNim {}
impl Hosted for Hex {}
impl Hosted for Othello {}
impl Hosted for Pig {}
impl Hosted for TicTacToe {}

type Make = fn(&[usize]) -> Result<Box<dyn AnyState>, String>;

struct Entry {
    name: &'static str,
    /// Parameters and their defaults, in the order of `make`'s argument.
    params: &'static [(&'static str, usize)],
    make: Make,
}

fn hosted<G: Hosted>(game: G) -> Box<dyn AnyState> {
    Box::new(Typed(game))
}

/// A parameter that is on or off.
fn switch(name: &str, value: usize) -> Result<bool, String> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(format!("{name} must be 0 or 1, got {value}")),
    }
}

const GAMES: [Entry; 6] = [
    Entry {
        name: "connect_four",
        params: &[("width", 7), ("height", 6), ("k", 4)],
        make: |p| ConnectFour::new(p[0], p[1], p[2]).map(hosted),
    },
    Entry { name: "dice_nim", params: &[("heap", 12)], make: |p| DiceNim::new(p[0]).map(hosted) },
    Entry {
        name: "hex",
        params: &[("size", 11), ("swap", 0)],
        make: |p| Hex::new(p[0], switch("swap", p[1])?).map(hosted),
    },
    Entry { name: "othello", params: &[("size", 8)], make: |p| Othello::new(p[0]).map(hosted) },
    Entry { name: "pig", params: &[("target", 20)], make: |p| Pig::new(p[0]).map(hosted) },
    Entry { name: "tic_tac_toe", params: &[], make: |_| Ok(hosted(TicTacToe::new())) },
];

/// The games there are: name -> parameters with their defaults.
///
///     >>> import azpy
///     >>> azpy.list_games()["connect_four"]
///     {'width': 7, 'height': 6, 'k': 4}
#[pyfunction]
pub(crate) fn list_games(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let games = PyDict::new(py);
    for entry in &GAMES {
        let params = PyDict::new(py);
        entry.params.iter().try_for_each(|(name, default)| params.set_item(name, default))?;
        games.set_item(entry.name, params)?;
    }
    Ok(games)
}

/// The start of a game. Parameters are given as keywords or in the name, as in "connect_four(width=5, height=4)".
///
/// Raises ValueError for a game or parameter that does not exist, or a board that the game refuses.
///
///     >>> import azpy
///     >>> azpy.make_game("connect_four", width=5).num_actions
///     5
#[pyfunction]
#[pyo3(signature = (name, **params))]
pub(crate) fn make_game(name: &str, params: Option<&Bound<'_, PyDict>>) -> PyResult<State> {
    let mut given = Vec::new();
    if let Some(params) = params {
        for (key, value) in params {
            let key: String = key.extract()?;
            let number = value.extract::<usize>();
            let number = number.map_err(|_| {
                PyValueError::new_err(format!("game parameter {key} must be a whole number >= 0, got {value}"))
            })?;
            given.push((key, number));
        }
    }
    make(name, given).map_err(PyValueError::new_err)
}

/// The start of the game that a specification such as "connect_four(width=5)" means.
pub(crate) fn make(spec: &str, mut given: Vec<(String, usize)>) -> Result<State, String> {
    let (name, inside) = match spec.split_once('(') {
        None => (spec.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| format!("game {spec:?} lacks its closing parenthesis"))?)
        }
    };
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once('=').and_then(|(key, value)| Some((key.trim(), value.trim().parse().ok()?)));
        let (key, value) = pair.ok_or_else(|| format!("expected parameter=number in game {spec:?}, got {part:?}"))?;
        given.push((key.to_string(), value));
    }
    let Some(entry) = GAMES.iter().find(|entry| entry.name == name) else {
        let names: Vec<_> = GAMES.iter().map(|entry| entry.name).collect();
        return Err(format!("unknown game {name:?}; there are: {}", names.join(", ")));
    };
    let mut values: Vec<usize> = entry.params.iter().map(|&(_, default)| default).collect();
    for (key, value) in given {
        let Some(index) = entry.params.iter().position(|&(name, _)| name == key) else {
            let names: Vec<_> = entry.params.iter().map(|&(name, _)| name).collect();
            let known = if names.is_empty() { "it has none".into() } else { format!("it has: {}", names.join(", ")) };
            return Err(format!("{name} has no parameter {key:?}; {known}"));
        };
        values[index] = value;
    }
    let plain = entry.params.iter().zip(&values).all(|((_, default), value)| default == value);
    let listed: Vec<_> = entry.params.iter().zip(&values).map(|((name, _), value)| format!("{name}={value}")).collect();
    let spec = if plain { name.to_string() } else { format!("{name}({})", listed.join(",")) };
    Ok(State { spec, inner: (entry.make)(&values)? })
}
