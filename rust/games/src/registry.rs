//! The games by their names, with the values of their parameters: `connect_four(width=5)`.
//!
//! Each game is a type of its own, so a program says what takes the start of any of them: see [`built_in!`].

use std::str::FromStr;

use azpy_core::text::shown;

use crate::wall_game::{Variant, WallGame, WallRules};

#[doc(hidden)]
pub use azpy_core::game::{Value, Values};

/// A game by its name. `S` is what a program makes of a start.
#[derive(Clone, Copy, Debug)]
pub struct Entry<S> {
    /// Lower case letters, digits and underscores.
    pub name: &'static str,
    /// Parameters and their defaults.
    pub params: &'static [(&'static str, &'static str)],
    /// Its start, or why there is none.
    pub make: fn(&Params<'_>) -> Result<S, String>,
}

impl<S> Entry<S> {
    /// Its start with the defaults of all parameters.
    ///
    /// # Errors
    /// A sentence, if the game refuses them.
    pub fn usual(&self) -> Result<S, String> {
        (self.make)(&Params(&self.defaults()))
    }

    fn defaults(&self) -> Vec<(&'static str, String)> {
        self.params.iter().map(|&(name, default)| (name, default.to_string())).collect()
    }
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

/// The entries of all games that ship with azpy, `[Entry<S>; N]`: `built_in!(start)`, where `start` is the path of a
/// generic function that makes an `S` of the start of any game.
#[macro_export]
macro_rules! built_in {
    ($start:path) => {{
        use $crate::chess::Encoding;
        use $crate::registry::{Entry, Value, Values, plainly, wall_game};
        use $crate::*;
        [
            Entry {
                name: "backgammon",
                params: &[("gammons", "1"), ("max_plies", "3000")],
                make: |p| Backgammon::with_max_plies(p.switch("gammons")?, p.number("max_plies")?).map($start),
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
                        2 => Blokus::<Value>::new(players, size).map($start),
                        _ => Blokus::<Values>::new(players, size).map($start),
                    }
                },
            },
            Entry {
                name: "breakthrough",
                params: &[("width", "8"), ("height", "8")],
                make: |p| Breakthrough::new(p.number("width")?, p.number("height")?).map($start),
            },
            Entry {
                name: "chess",
                params: &[("encoding", "az119"), ("chess960", "off"), ("max_plies", "512")],
                make: |p| {
                    let chess960 = match p.text("chess960") {
                        "off" => None,
                        _ => Some(p.read("chess960", "off or the number of a start, 0 to 959")?),
                    };
                    Chess::new(p.word::<Encoding>("encoding")?, chess960, p.number("max_plies")?).map($start)
                },
            },
            Entry {
                name: "chinese_checkers",
                params: &[("players", "2"), ("max_turns", "100")],
                make: |p| {
                    let (players, max_turns) = (p.number("players")?, p.number("max_turns")?);
                    match players {
                        2 => ChineseCheckers::<Value>::new(players, max_turns).map($start),
                        _ => ChineseCheckers::<Values>::new(players, max_turns).map($start),
                    }
                },
            },
            Entry {
                name: "connect_four",
                params: &[("width", "7"), ("height", "6"), ("k", "4")],
                make: |p| ConnectFour::new(p.number("width")?, p.number("height")?, p.number("k")?).map($start),
            },
            Entry {
                name: "connect_four_for_three",
                params: &[("width", "7"), ("height", "6"), ("k", "4")],
                make: |p| ConnectFourForThree::new(p.number("width")?, p.number("height")?, p.number("k")?).map($start),
            },
            Entry {
                name: "dice_nim",
                params: &[("heap", "12")],
                make: |p| DiceNim::new(p.number("heap")?).map($start),
            },
            Entry {
                name: "game2048",
                params: &[("size", "4"), ("target", "2048")],
                make: |p| Game2048::new(p.number("size")?, p.number("target")?).map($start),
            },
            Entry {
                name: "go",
                params: &[("size", "9"), ("komi", "7.5"), ("superko", "1")],
                make: |p| {
                    let (size, superko) = (p.number("size")?, p.switch("superko")?);
                    let given: f64 = p.read("komi", "a number")?;
                    // What no f32 can hold is no half of a whole number, and must not become one.
                    let komi = Some(given as f32).filter(|&komi| f64::from(komi) == given);
                    let komi = komi.ok_or_else(|| {
                        format!("komi must be a half or whole number, got {}", plainly(p.text("komi")))
                    })?;
                    // Positions of small boards are smaller. Any other size is the larger one's to refuse.
                    if (5..=11).contains(&size) {
                        Go9::new(size, komi, superko).map($start)
                    } else {
                        Go19::new(size, komi, superko).map($start)
                    }
                },
            },
            Entry {
                name: "gomoku",
                params: &[("size", "15"), ("k", "5")],
                make: |p| Gomoku::new(p.number("size")?, p.number("k")?).map($start),
            },
            Entry {
                name: "hex",
                params: &[("size", "11"), ("swap", "0")],
                make: |p| Hex::new(p.number("size")?, p.switch("swap")?).map($start),
            },
            Entry {
                name: "maedn",
                params: &[("players", "2"), ("opposite", "1"), ("max_plies", "3000")],
                make: |p| {
                    let (players, opposite, plies) =
                        (p.number("players")?, p.switch("opposite")?, p.number("max_plies")?);
                    match players {
                        2 => Maedn::<Value>::new(players, opposite, plies).map($start),
                        _ => Maedn::<Values>::new(players, opposite, plies).map($start),
                    }
                },
            },
            Entry { name: "othello", params: &[("size", "8")], make: |p| Othello::new(p.number("size")?).map($start) },
            Entry {
                name: "peg_solitaire",
                params: &[("board", "english")],
                make: |p| Ok($start(PegSolitaire::new(p.word("board")?))),
            },
            Entry { name: "pig", params: &[("target", "20")], make: |p| Pig::new(p.number("target")?).map($start) },
            Entry { name: "tic_tac_toe", params: &[], make: |_| Ok($start(TicTacToe::new())) },
            Entry {
                name: "trictrac",
                params: &[("holes", "12"), ("max_plies", "3000")],
                make: |p| Trictrac::new(p.number("holes")?, p.number("max_plies")?).map($start),
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
                make: |p| wall_game(p).map($start),
            },
        ]
    }};
}

pub(crate) use built_in;

/// The start of the Wall Game.
///
/// # Errors
/// For rules or a size that the game refuses.
#[doc(hidden)]
pub fn wall_game(params: &Params<'_>) -> Result<WallGame, String> {
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
#[doc(hidden)]
pub fn plainly(text: &str) -> String {
    let number = text.parse::<f64>().is_ok_and(f64::is_finite) && text.len() < 40;
    if number { text.to_string() } else { shown(text) }
}

/// A specification without its parameters, and those that it has.
pub fn split(spec: &str) -> (&str, impl Iterator<Item = (&str, &str)>) {
    let (name, listed) = spec.split_once('(').unwrap_or((spec, ""));
    (name, listed.trim_end_matches(')').split(',').filter_map(|pair| pair.split_once('=')))
}

/// The parameters of a specification in its one spelling, with other values of some.
#[must_use]
pub fn with_params(spec: &str, params: &[(&str, String)]) -> Vec<(String, String)> {
    let kept = split(spec).1.filter(|(name, _)| params.iter().all(|(other, _)| other != name));
    let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
    kept.chain(params.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// The start of the game that a specification such as "connect_four(width=5)" means, after the specification in its one
/// spelling.
///
/// # Arguments
/// - `games`: those that there are.
/// - `given`: parameters besides those in the specification.
/// - `same`: whether two starts are the same position.
///
/// # Errors
/// A sentence about what cannot be read, or what the game refuses.
pub fn make<S>(
    games: &[&Entry<S>],
    spec: &str,
    mut given: Vec<(String, String)>,
    same: fn(&S, &S) -> bool,
) -> Result<(String, S), String> {
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
    let Some(entry) = games.iter().find(|entry| entry.name == name) else {
        let names: Vec<_> = games.iter().map(|entry| entry.name).collect();
        return Err(format!("unknown game {}; there are: {}", shown(name), names.join(", ")));
    };
    let mut values = entry.defaults();
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
    let start = (entry.make)(&Params(&values))?;
    // What `auto` stands for is called auto, so that equal games have equal names.
    for (place, &(_, default)) in entry.params.iter().enumerate() {
        if default == "auto" && values[place].1 != default {
            let mut other = values.clone();
            other[place].1 = default.to_owned();
            if (entry.make)(&Params(&other)).is_ok_and(|usual| same(&usual, &start)) {
                values = other;
            }
        }
    }
    let plain = entry.params.iter().zip(&values).all(|((_, default), (_, value))| default == value);
    let listed: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let spec = if plain { name.to_string() } else { format!("{name}({})", listed.join(",")) };
    Ok((spec, start))
}
