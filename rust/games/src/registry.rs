//! The games by their names, with the values of their parameters: `connect_four(width=5)`.

use std::str::FromStr;

use azpy_core::game::{Value, Values};
use azpy_core::text::shown;

use crate::error::{Error, invalid};
use crate::start::Start;
use crate::wall_game::{Variant, WallGame, WallRules};
use crate::*;

/// A game by its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Lower case letters, digits and underscores.
    pub name: &'static str,
    /// Parameters and their defaults.
    pub params: &'static [(&'static str, &'static str)],
    /// Its start, or why there is none.
    pub make: fn(&Params<'_>) -> Result<Start, Error>,
}

impl Entry {
    const fn new(
        name: &'static str,
        params: &'static [(&'static str, &'static str)],
        make: fn(&Params<'_>) -> Result<Start, Error>,
    ) -> Self {
        Self { name, params, make }
    }

    /// Its start with the defaults of all parameters.
    ///
    /// # Errors
    /// If the game refuses them.
    pub fn usual(&self) -> Result<Start, Error> {
        (self.make)(&Params(&self.defaults()))
    }

    /// The rules in a sentence, for people, where `{k}` stands for the value of the parameter `k`. Other programs' games
    /// have none here.
    #[must_use]
    pub fn rules(&self) -> &'static str {
        match self.name {
            "backgammon" => "Move checkers by the dice, hit single ones, and be the first to bear off all fifteen.",
            "blokus" => "Place pieces that touch your own only at corners; the player who covers the most cells wins.",
            "breakthrough" => "Step forward, capture diagonally, and be the first to reach the far side.",
            "chess" => "Move a piece each turn; the player who checkmates the other king wins.",
            "chinese_checkers" => "Step, or hop over pieces in chains; be the first to fill the point opposite yours.",
            "connect_four" => "Drop a disc into a column; {k} in a row win.",
            "connect_four_for_three" => "Three players drop discs into columns; the first with {k} in a row wins.",
            "dice_nim" => "Roll a die, then take at most that many counters; the player who takes the last one wins.",
            "game2048" => "Slide all tiles; equal ones merge. Make a tile of {target}.",
            "go" => "Surround area with stones, and capture stones without liberties; the larger area wins.",
            "gomoku" => "Place a stone each turn; {k} in a row win.",
            "hex" => "Place a stone each turn; the player who connects both sides of their color wins.",
            "kuhn_poker" => "Bet on one of three cards, which only you see; the higher card wins.",
            "leduc_poker" => "Bet on your own card, then on a shared one; a pair, or else the higher card, wins.",
            "liars_dice" => "Bid ever more of both dice, of which you see your own, or doubt the bid.",
            "maedn" => "Move by the die, send others home, and be the first to bring four pieces into the goal.",
            "othello" => "Place a disc so that it encloses others, which then are yours; the most discs win.",
            "peg_solitaire" => "Jump over a peg to remove it; leave only one.",
            "pig" => "Roll as often as you dare; a 1 loses the points of the turn. The first to bank {target} wins.",
            "tic_tac_toe" => "Place a mark each turn; three in a row win.",
            "trictrac" => "Score points by the positions of your checkers; the first to {holes} holes wins.",
            "wall_game" => "Each turn, step or build walls, twice; the first cat to catch the other mouse wins.",
            _ => "",
        }
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

    /// A parameter as a `T`, which the error calls `expected`. A number that is infinite, or NaN, is refused.
    ///
    /// # Errors
    /// If it is none.
    pub fn read<T: FromStr>(&self, name: &str, expected: &str) -> Result<T, Error> {
        let text = self.text(name);
        let endless = text.parse::<f64>().is_ok_and(|number| !number.is_finite());
        let value = text.parse().ok().filter(|_| !endless);
        value.ok_or_else(|| Error::value(name, expected, plainly(text)))
    }

    /// As [`Params::read`]; nothing where the parameter is this word.
    ///
    /// # Errors
    /// If it is neither.
    pub fn read_unless<T: FromStr>(&self, name: &str, word: &str, expected: &str) -> Result<Option<T>, Error> {
        if self.text(name) == word { Ok(None) } else { self.read(name, expected).map(Some) }
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is none.
    pub fn number(&self, name: &str) -> Result<usize, Error> {
        self.read(name, "a whole number >= 0")
    }

    /// A parameter that is on or off.
    ///
    /// # Errors
    /// If it is neither 0 nor 1.
    pub fn switch(&self, name: &str) -> Result<bool, Error> {
        match self.text(name) {
            "0" => Ok(false),
            "1" => Ok(true),
            text => Err(Error::value(name, "0 or 1", plainly(text))),
        }
    }
}

const WHOLE: &str = "auto or a whole number >= 0";

/// The games that ship with azpy.
pub const BUILT_IN: &[Entry] = &[
    Entry::new("backgammon", &[("gammons", "1"), ("max_plies", "3000")], |p| {
        Backgammon::with_max_plies(p.switch("gammons")?, p.number("max_plies")?).map(Start::new)
    }),
    Entry::new("blokus", &[("players", "2"), ("size", "auto")], |p| {
        let (players, size) = (p.number("players")?, p.read_unless("size", "auto", WHOLE)?);
        match players {
            2 => Blokus::<Value>::new(players, size.unwrap_or(14)).map(Start::new),
            _ => Blokus::<Values>::new(players, size.unwrap_or(20)).map(Start::new),
        }
    }),
    Entry::new("breakthrough", &[("width", "8"), ("height", "8")], |p| {
        Breakthrough::new(p.number("width")?, p.number("height")?).map(Start::new)
    }),
    Entry::new("chess", &[("encoding", "az119"), ("chess960", "off"), ("max_plies", "512")], |p| {
        let chess960 = p.read_unless("chess960", "off", "off or the number of a start, 0 to 959")?;
        Chess::new(p.text("encoding").parse()?, chess960, p.number("max_plies")?).map(Start::new)
    }),
    Entry::new("chinese_checkers", &[("players", "2"), ("max_turns", "100")], |p| {
        let (players, max_turns) = (p.number("players")?, p.number("max_turns")?);
        match players {
            2 => ChineseCheckers::<Value>::new(players, max_turns).map(Start::new),
            _ => ChineseCheckers::<Values>::new(players, max_turns).map(Start::new),
        }
    }),
    Entry::new("connect_four", &[("width", "7"), ("height", "6"), ("k", "4")], |p| {
        ConnectFour::new(p.number("width")?, p.number("height")?, p.number("k")?).map(Start::new)
    }),
    Entry::new("connect_four_for_three", &[("width", "7"), ("height", "6"), ("k", "4")], |p| {
        ConnectFourForThree::new(p.number("width")?, p.number("height")?, p.number("k")?).map(Start::new)
    }),
    Entry::new("dice_nim", &[("heap", "12")], |p| DiceNim::new(p.number("heap")?).map(Start::new)),
    Entry::new("game2048", &[("size", "4"), ("target", "2048")], |p| {
        Game2048::new(p.number("size")?, p.number("target")?).map(Start::new)
    }),
    Entry::new("go", &[("size", "9"), ("komi", "7.5"), ("superko", "1")], |p| {
        let (size, superko, komi) = (p.number("size")?, p.switch("superko")?, komi(p)?);
        // Positions of small boards are smaller. Any other size is the larger one's to refuse.
        match size {
            5..=11 => Go9::new(size, komi, superko).map(Start::new),
            _ => Go19::new(size, komi, superko).map(Start::new),
        }
    }),
    Entry::new("gomoku", &[("size", "15"), ("k", "5")], |p| {
        Gomoku::new(p.number("size")?, p.number("k")?).map(Start::new)
    }),
    Entry::new("hex", &[("size", "11"), ("swap", "0")], |p| {
        Hex::new(p.number("size")?, p.switch("swap")?).map(Start::new)
    }),
    Entry::new("kuhn_poker", &[], |_| Ok(Start::new(KuhnPoker::new()))),
    Entry::new("leduc_poker", &[], |_| Ok(Start::new(LeducPoker::new()))),
    Entry::new("liars_dice", &[("sides", "6")], |p| LiarsDice::new(p.number("sides")?).map(Start::new)),
    Entry::new("maedn", &[("players", "2"), ("opposite", "1"), ("max_plies", "3000")], |p| {
        let (players, opposite, plies) = (p.number("players")?, p.switch("opposite")?, p.number("max_plies")?);
        match players {
            2 => Maedn::<Value>::new(players, opposite, plies).map(Start::new),
            _ => Maedn::<Values>::new(players, opposite, plies).map(Start::new),
        }
    }),
    Entry::new("othello", &[("size", "8")], |p| Othello::new(p.number("size")?).map(Start::new)),
    Entry::new("peg_solitaire", &[("board", "english")], |p| {
        Ok(Start::new(PegSolitaire::new(p.text("board").parse()?)))
    }),
    Entry::new("pig", &[("target", "20")], |p| Pig::new(p.number("target")?).map(Start::new)),
    Entry::new("tic_tac_toe", &[], |_| Ok(Start::new(TicTacToe::new()))),
    Entry::new("trictrac", &[("holes", "12"), ("max_plies", "3000")], |p| {
        Trictrac::new(p.number("holes")?, p.number("max_plies")?).map(Start::new)
    }),
    Entry::new(
        "wall_game",
        &[
            ("variant", "standard"),
            ("width", "auto"),
            ("height", "auto"),
            ("immediate", "0"),
            ("one_move_rule", "0"),
            ("classic_policy", "0"),
            ("seed", "random"),
        ],
        |p| wall_game(p).map(Start::new),
    ),
];

/// The komi of Go.
fn komi(params: &Params<'_>) -> Result<f32, Error> {
    let given: f64 = params.read("komi", "a number")?;
    // What no f32 can hold is no half of a whole number, and must not become one.
    let komi = Some(given as f32).filter(|&komi| f64::from(komi) == given);
    komi.ok_or_else(|| Error::value("komi", "a half or whole number", plainly(params.text("komi"))))
}

/// The start of the Wall Game.
fn wall_game(params: &Params<'_>) -> Result<WallGame, Error> {
    let rules = WallRules {
        variant: params.text("variant").parse()?,
        immediate: params.switch("immediate")?,
        one_move_rule: params.switch("one_move_rule")?,
        classic_policy: params.switch("classic_policy")?,
    };
    let usual = if rules.variant == Variant::Freestyle { [12, 10] } else { [8, 8] };
    let side = |name: &str| params.read_unless(name, "auto", "auto or a whole number >= 0");
    let (width, height) = (side("width")?.unwrap_or(usual[0]), side("height")?.unwrap_or(usual[1]));
    let start = WallGame::new(width, height, rules)?;
    match params.read_unless("seed", "random", "random or a whole number >= 0")? {
        None => Ok(start),
        Some(seed) => WallGame::with_seed(rules, seed),
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
fn plainly(text: &str) -> String {
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
///
/// # Errors
/// What cannot be read, or what the game refuses.
pub fn make(games: &[Entry], spec: &str, mut given: Vec<(String, String)>) -> Result<(String, Start), Error> {
    let (name, inside) = match spec.split_once('(') {
        None => (spec.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| invalid!("game {} lacks its closing parenthesis", shown(spec)))?)
        }
    };
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let expected = || Error::form(format!("expected parameter=value in game {}", shown(spec)), shown(part));
        let (key, value) = part.split_once('=').ok_or_else(expected)?;
        given.push((key.trim().to_owned(), value.to_owned()));
    }
    let Some(entry) = games.iter().find(|entry| entry.name == name) else {
        let known = games.iter().map(|entry| entry.name).collect();
        return Err(Error::UnknownGame { name: name.to_owned(), known });
    };
    let mut values = entry.defaults();
    for (place, (key, value)) in given.iter().enumerate() {
        if given[..place].iter().any(|(earlier, _)| earlier == key) {
            return Err(Error::GivenTwice(key.clone()));
        }
        let Some(known) = values.iter_mut().find(|(name, _)| *name == key.as_str()) else {
            let known = entry.params.iter().map(|&(name, _)| name).collect();
            return Err(Error::UnknownParameter { game: entry.name, name: key.clone(), known });
        };
        known.1 = plain_number(value.trim());
    }
    let start = (entry.make)(&Params(&values))?;
    // What `auto` stands for is called auto, so that equal games have equal names.
    for (place, &(_, default)) in entry.params.iter().enumerate() {
        if default == "auto" && values[place].1 != default {
            let mut other = values.clone();
            other[place].1 = default.to_owned();
            if (entry.make)(&Params(&other)).is_ok_and(|usual| usual.is_same(&start)) {
                values = other;
            }
        }
    }
    let plain = entry.params.iter().zip(&values).all(|((_, default), (_, value))| default == value);
    let listed: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let spec = if plain { name.to_string() } else { format!("{name}({})", listed.join(",")) };
    Ok((spec, start))
}
