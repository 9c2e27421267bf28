//! The games by name.

use std::str::FromStr;
use std::sync::OnceLock;

use azpy_core::game::{Payoff, Value, Values};
use azpy_core::text::shown;
use azpy_games::chess::Encoding;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, Chess, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go,
    Go9, Go19, Gomoku, Hex, Maedn, Othello, PegSolitaire, Pig, TicTacToe, Trictrac, Variant, WallGame, WallRules,
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
pub struct Entry {
    /// Lower case letters, digits and underscores.
    pub name: &'static str,
    /// Parameters and their defaults.
    pub params: &'static [(&'static str, &'static str)],
    /// Its start, or why there is none.
    pub make: fn(&Params<'_>) -> Result<Start, String>,
}

/// The start of some game.
pub struct Start(Box<dyn AnyState>);

/// The start of a game, whatever its type.
pub fn hosted<G: Hosted>(game: G) -> Start {
    Start(Box::new(Typed(game)))
}

/// What was asked for, by name; every name that an entry lists is there.
pub struct Params<'a>(&'a [(&'a str, String)]);

impl Params<'_> {
    /// A parameter as it was written.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A parameter as a `T`; a number is none that is infinite, or no number.
    ///
    /// # Errors
    /// A sentence with what was `expected`.
    pub fn read<T: FromStr>(&self, name: &str, expected: &str) -> Result<T, String> {
        let text = self.text(name);
        let endless = text.parse::<f64>().is_ok_and(|number| !number.is_finite());
        let value = text.parse().ok().filter(|_| !endless);
        value.ok_or_else(|| format!("{name} must be {expected}, got {}", plainly(text)))
    }

    /// A word that says itself what it may be.
    ///
    /// # Errors
    /// What it says.
    pub fn word<T: FromStr<Err = String>>(&self, name: &str) -> Result<T, String> {
        self.text(name).parse()
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is none.
    pub fn number(&self, name: &str) -> Result<usize, String> {
        self.read(name, "a whole number >= 0")
    }

    /// A parameter that is on or off.
    ///
    /// # Errors
    /// If it is neither 0 nor 1.
    pub fn switch(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            "0" => Ok(false),
            "1" => Ok(true),
            text => Err(format!("{name} must be 0 or 1, got {}", plainly(text))),
        }
    }
}

const GAMES: &[Entry] = &[
    Entry {
        name: "backgammon",
        params: &[("gammons", "1"), ("max_plies", "3000")],
        make: |p| Backgammon::with_max_plies(p.switch("gammons")?, p.number("max_plies")?).map(hosted),
    },
    Entry {
        name: "blokus",
        params: &[("players", "2"), ("size", "auto")],
        make: |p| {
            let players = p.number("players")?;
            let usual = if players == 2 { 14 } else { 20 };
            let size = match p.text("size") {
                "auto" => usual,
                _ => p.read("size", "auto or a whole number >= 0")?,
            };
            match players {
                2 => Blokus::<Value>::new(players, size).map(hosted),
                _ => Blokus::<Values>::new(players, size).map(hosted),
            }
        },
    },
    Entry {
        name: "breakthrough",
        params: &[("width", "8"), ("height", "8")],
        make: |p| Breakthrough::new(p.number("width")?, p.number("height")?).map(hosted),
    },
    Entry {
        name: "chess",
        params: &[("encoding", "az119"), ("chess960", "off"), ("max_plies", "512")],
        make: |p| {
            let chess960 = match p.text("chess960") {
                "off" => None,
                _ => Some(p.read("chess960", "off or the number of a start, 0 to 959")?),
            };
            Chess::new(p.word::<Encoding>("encoding")?, chess960, p.number("max_plies")?).map(hosted)
        },
    },
    Entry {
        name: "chinese_checkers",
        params: &[("players", "2"), ("max_turns", "100")],
        make: |p| {
            let (players, max_turns) = (p.number("players")?, p.number("max_turns")?);
            match players {
                2 => ChineseCheckers::<Value>::new(players, max_turns).map(hosted),
                _ => ChineseCheckers::<Values>::new(players, max_turns).map(hosted),
            }
        },
    },
    Entry {
        name: "connect_four",
        params: &[("width", "7"), ("height", "6"), ("k", "4")],
        make: |p| ConnectFour::new(p.number("width")?, p.number("height")?, p.number("k")?).map(hosted),
    },
    Entry {
        name: "connect_four_for_three",
        params: &[("width", "7"), ("height", "6"), ("k", "4")],
        make: |p| ConnectFourForThree::new(p.number("width")?, p.number("height")?, p.number("k")?).map(hosted),
    },
    Entry { name: "dice_nim", params: &[("heap", "12")], make: |p| DiceNim::new(p.number("heap")?).map(hosted) },
    Entry {
        name: "game2048",
        params: &[("size", "4"), ("target", "2048")],
        make: |p| Game2048::new(p.number("size")?, p.number("target")?).map(hosted),
    },
    Entry {
        name: "go",
        params: &[("size", "9"), ("komi", "7.5"), ("superko", "1")],
        make: |p| {
            let (size, superko) = (p.number("size")?, p.switch("superko")?);
            let given: f64 = p.read("komi", "a number")?;
            // What no f32 can hold is no half of a whole number, and must not become one.
            let komi = Some(given as f32).filter(|&komi| f64::from(komi) == given);
            let komi =
                komi.ok_or_else(|| format!("komi must be a half or whole number, got {}", plainly(p.text("komi"))))?;
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
    Entry {
        name: "maedn",
        params: &[("players", "2"), ("opposite", "1"), ("max_plies", "3000")],
        make: |p| {
            let (players, opposite, plies) = (p.number("players")?, p.switch("opposite")?, p.number("max_plies")?);
            match players {
                2 => Maedn::<Value>::new(players, opposite, plies).map(hosted),
                _ => Maedn::<Values>::new(players, opposite, plies).map(hosted),
            }
        },
    },
    Entry { name: "othello", params: &[("size", "8")], make: |p| Othello::new(p.number("size")?).map(hosted) },
    Entry {
        name: "peg_solitaire",
        params: &[("board", "english")],
        make: |p| Ok(hosted(PegSolitaire::new(p.word("board")?))),
    },
    Entry { name: "pig", params: &[("target", "20")], make: |p| Pig::new(p.number("target")?).map(hosted) },
    Entry { name: "tic_tac_toe", params: &[], make: |_| Ok(hosted(TicTacToe::new())) },
    Entry {
        name: "trictrac",
        params: &[("holes", "12"), ("max_plies", "3000")],
        make: |p| Trictrac::new(p.number("holes")?, p.number("max_plies")?).map(hosted),
    },
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
    let made = (entry.make)(&Params(&defaults(entry)));
    made.map(drop).map_err(|error| format!("{name:?} cannot be made with the defaults of its parameters: {error}"))
}

fn defaults(entry: &Entry) -> Vec<(&'static str, String)> {
    entry.params.iter().map(|&(name, default)| (name, default.to_string())).collect()
}

/// Numbers in one spelling, so that equal games have equal names: 07 is 7, 7.50 is 7.5, and -0 is 0.
fn plain_number(text: &str) -> String {
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(number), _) => number.to_string(),
        // Larger ones would be spelled out in hundreds of digits; no game has a use for them.
        (_, Ok(number)) if number.abs() < 1e15 => (number + 0.0).to_string(),
        _ => text.to_string(),
    }
}

/// A value as an error repeats it: a number as it is, anything else in quotes.
fn plainly(text: &str) -> String {
    let number = text.parse::<f64>().is_ok_and(f64::is_finite) && text.len() < 40;
    if number { text.to_string() } else { shown(text) }
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
    let (name, listed) = spec.split_once('(').unwrap_or((spec, ""));
    let given: Vec<_> = listed.trim_end_matches(')').split(',').filter_map(|pair| pair.split_once('=')).collect();
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
    let (name, listed) = spec.split_once('(').unwrap_or((spec, ""));
    let pairs = listed.trim_end_matches(')').split(',').filter_map(|pair| pair.split_once('='));
    let others = pairs.filter(|(key, _)| *key != "komi").map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given = others.chain([("komi".to_owned(), komi.to_string())]).collect();
    make(name, given).map_or_else(|_| spec.to_owned(), |(spec, _)| spec)
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
pub(crate) fn make(spec: &str, mut given: Vec<(String, String)>) -> Result<(String, Box<dyn AnyState>), String> {
    let (name, inside) = match spec.split_once('(') {
        None => (spec.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| format!("game {} lacks its closing parenthesis", shown(spec)))?)
        }
    };
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) =
            pair.ok_or_else(|| format!("expected parameter=value in game {}, got {}", shown(spec), shown(part)))?;
        given.push((key.to_string(), value.to_string()));
    }
    let Some(entry) = all_games().find(|entry| entry.name == name) else {
        if name.contains(':') {
            let spec = shown(spec);
            return Err(format!(
                "game {spec} is not written in Rust: give the state that azpy.make_game({spec}) makes"
            ));
        }
        let names: Vec<_> = all_games().map(|entry| entry.name).collect();
        return Err(format!("unknown game {}; there are: {}", shown(name), names.join(", ")));
    };
    let mut values = defaults(entry);
    for (place, (key, value)) in given.iter().enumerate() {
        if given[..place].iter().any(|(earlier, _)| earlier == key) {
            return Err(format!("parameter {} is given twice", shown(key)));
        }
        let Some(known) = values.iter_mut().find(|(name, _)| *name == key.as_str()) else {
            let names: Vec<_> = entry.params.iter().map(|&(name, _)| name).collect();
            let known = if names.is_empty() { "it has none".into() } else { format!("it has: {}", names.join(", ")) };
            return Err(format!("{name} has no parameter {}; {known}", shown(key)));
        };
        known.1 = plain_number(value.trim());
    }
    let Start(inner) = (entry.make)(&Params(&values))?;
    // What `auto` stands for is called auto, so that equal games have equal names.
    for (place, &(_, default)) in entry.params.iter().enumerate() {
        if default == "auto" && values[place].1 != default {
            let mut other = values.clone();
            other[place].1 = default.to_owned();
            if (entry.make)(&Params(&other)).is_ok_and(|Start(same)| same.key() == inner.key()) {
                values = other;
            }
        }
    }
    let plain = entry.params.iter().zip(&values).all(|((_, default), (_, value))| default == value);
    let listed: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let spec = if plain { name.to_string() } else { format!("{name}({})", listed.join(",")) };
    Ok((spec, inner))
}
