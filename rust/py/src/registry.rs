//! The games by name.

use std::str::FromStr;

use azpy_games::{Breakthrough, ConnectFour, DiceNim, Go, Go9, Go19, Gomoku, Hex, Othello, Pig, TicTacToe};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hosted::{AnyState, Hosted, Typed};
use crate::state::State;

impl Hosted for Breakthrough {}
impl Hosted for ConnectFour {}
impl Hosted for DiceNim {}
impl<const WORDS: usize> Hosted for Go<WORDS> {}
impl Hosted for Gomoku {}
impl Hosted for Hex {}
impl Hosted for Othello {}
impl Hosted for Pig {}
impl Hosted for TicTacToe {}

type Make = fn(&Params<'_>) -> Result<Box<dyn AnyState>, String>;

struct Entry {
    name: &'static str,
    /// Parameters and their defaults.
    params: &'static [(&'static str, &'static str)],
    make: Make,
}

fn hosted<G: Hosted>(game: G) -> Box<dyn AnyState> {
    Box::new(Typed(game))
}

/// What was asked for, by name; every name that an entry lists is there.
struct Params<'a>(&'a [(&'a str, String)]);

impl Params<'_> {
    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn read<T: FromStr>(&self, name: &str, expected: &str) -> Result<T, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("{name} must be {expected}, got {text}"))
    }

    fn number(&self, name: &str) -> Result<usize, String> {
        self.read(name, "a whole number >= 0")
    }

    /// A parameter that is on or off.
    fn switch(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            "0" => Ok(false),
            "1" => Ok(true),
            text => Err(format!("{name} must be 0 or 1, got {text}")),
        }
    }
}

const GAMES: [Entry; 9] = [
    Entry {
        name: "breakthrough",
        params: &[("width", "8"), ("height", "8")],
        make: |p| Breakthrough::new(p.number("width")?, p.number("height")?).map(hosted),
    },
    Entry {
        name: "connect_four",
        params: &[("width", "7"), ("height", "6"), ("k", "4")],
        make: |p| ConnectFour::new(p.number("width")?, p.number("height")?, p.number("k")?).map(hosted),
    },
    Entry { name: "dice_nim", params: &[("heap", "12")], make: |p| DiceNim::new(p.number("heap")?).map(hosted) },
    Entry {
        name: "go",
        params: &[("size", "9"), ("komi", "7.5"), ("superko", "1")],
        make: |p| {
            let (size, komi, superko) = (p.number("size")?, p.read("komi", "a number")?, p.switch("superko")?);
            // Positions of small boards are smaller. Any other size is the larger one's to refuse.
            if (5..=11).contains(&size) {
                Go9::new(size, komi, superko).map(hosted)
            } else {
                Go19::new(size, komi, superko).map(hosted)
            }
        },
    },
    Entry {
        name: "gomoku",
        params: &[("size", "15"), ("k", "5")],
        make: |p| Gomoku::new(p.number("size")?, p.number("k")?).map(hosted),
    },
    Entry {
        name: "hex",
        params: &[("size", "11"), ("swap", "0")],
        make: |p| Hex::new(p.number("size")?, p.switch("swap")?).map(hosted),
    },
    Entry { name: "othello", params: &[("size", "8")], make: |p| Othello::new(p.number("size")?).map(hosted) },
    Entry { name: "pig", params: &[("target", "20")], make: |p| Pig::new(p.number("target")?).map(hosted) },
    Entry { name: "tic_tac_toe", params: &[], make: |_| Ok(hosted(TicTacToe::new())) },
];

/// Numbers in one spelling, so that equal games have equal names: 07 is 7, and 7.50 is 7.5.
fn plain_number(text: String) -> String {
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(number), _) => number.to_string(),
        (_, Ok(number)) if number.is_finite() => number.to_string(),
        _ => text,
    }
}

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
        for (name, default) in entry.params {
            match (default.parse::<usize>(), default.parse::<f64>()) {
                (Ok(number), _) => params.set_item(name, number)?,
                (_, Ok(number)) => params.set_item(name, number)?,
                _ => params.set_item(name, default)?,
            }
        }
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
            // True is 1: a switch may be given as what it is.
            let text = match value.extract::<bool>() {
                Ok(switch) => u8::from(switch).to_string(),
                Err(_) => value.str()?.to_string(),
            };
            given.push((key, text));
        }
    }
    make(name, given).map_err(PyValueError::new_err)
}

/// The start of the game that a specification such as "connect_four(width=5)" means.
pub(crate) fn make(spec: &str, mut given: Vec<(String, String)>) -> Result<State, String> {
    let (name, inside) = match spec.split_once('(') {
        None => (spec.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| format!("game {spec:?} lacks its closing parenthesis"))?)
        }
    };
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) = pair.ok_or_else(|| format!("expected parameter=value in game {spec:?}, got {part:?}"))?;
        given.push((key.to_string(), value.to_string()));
    }
    let Some(entry) = GAMES.iter().find(|entry| entry.name == name) else {
        let names: Vec<_> = GAMES.iter().map(|entry| entry.name).collect();
        return Err(format!("unknown game {name:?}; there are: {}", names.join(", ")));
    };
    let mut values: Vec<(&str, String)> =
        entry.params.iter().map(|&(name, default)| (name, default.to_string())).collect();
    for (key, value) in given {
        let Some(known) = values.iter_mut().find(|(name, _)| *name == key) else {
            let names: Vec<_> = entry.params.iter().map(|&(name, _)| name).collect();
            let known = if names.is_empty() { "it has none".into() } else { format!("it has: {}", names.join(", ")) };
            return Err(format!("{name} has no parameter {key:?}; {known}"));
        };
        known.1 = plain_number(value);
    }
    let inner = (entry.make)(&Params(&values))?;
    let plain = entry.params.iter().zip(&values).all(|((_, default), (_, value))| default == value);
    let listed: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let spec = if plain { name.to_string() } else { format!("{name}({})", listed.join(",")) };
    Ok(State { spec, inner })
}
