//! The games by name.

use std::str::FromStr;

use azpy_games::{ConnectFour, DiceNim, Hex, Othello, Pig, TicTacToe, Variant, WallGame, WallRules};
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
impl Hosted for WallGame {}

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

const GAMES: [Entry; 7] = [
    Entry {
        name: "connect_four",
        params: &[("width", "7"), ("height", "6"), ("k", "4")],
        make: |p| ConnectFour::new(p.number("width")?, p.number("height")?, p.number("k")?).map(hosted),
    },
    Entry { name: "dice_nim", params: &[("heap", "12")], make: |p| DiceNim::new(p.number("heap")?).map(hosted) },
    Entry {
        name: "hex",
        params: &[("size", "11"), ("swap", "0")],
        make: |p| Hex::new(p.number("size")?, p.switch("swap")?).map(hosted),
    },
    Entry { name: "othello", params: &[("size", "8")], make: |p| Othello::new(p.number("size")?).map(hosted) },
    Entry { name: "pig", params: &[("target", "20")], make: |p| Pig::new(p.number("target")?).map(hosted) },
    Entry { name: "tic_tac_toe", params: &[], make: |_| Ok(hosted(TicTacToe::new())) },
    Entry {
        name: "wall_game",
        params: &[
            ("variant", "standard"),
            ("width", "auto"),
            ("height", "auto"),
            ("immediate", "0"),
            ("one_move_rule", "0"),
            ("classic_policy", "0"),
            ("seed", "random"),
        ],
        make: |p| wall_game(p).map(hosted),
    },
];

fn wall_game(params: &Params<'_>) -> Result<WallGame, String> {
    let rules = WallRules {
        variant: params.text("variant").parse()?,
        immediate: params.switch("immediate")?,
        one_move_rule: params.switch("one_move_rule")?,
        classic_policy: params.switch("classic_policy")?,
    };
    let usual = if rules.variant == Variant::Freestyle { [12, 10] } else { [8, 8] };
    let side = |name: &str, usual| match params.text(name) {
        "auto" => Ok(usual),
        _ => params.read(name, "auto or a whole number >= 0"),
    };
    let start = WallGame::new(side("width", usual[0])?, side("height", usual[1])?, rules)?;
    match params.text("seed") {
        "random" => Ok(start),
        _ => WallGame::with_seed(rules, params.read("seed", "random or a whole number >= 0")?),
    }
}

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
