//! Positions of backgammon as words, and as a board of text.
//!
//! A position is written as words `key=value` with blanks between, in any order:
//!
//! ```text
//! x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5 turn=x roll=3-1 left=1 closed=24 plies=2
//! ```
//!
//! | word | what |
//! |---|---|
//! | `x=`, `o=` | a player's checkers as place:number, numbered from the own side; `bar` and `off` are places too |
//! | `turn=` | `x` or `o` |
//! | `roll=` | the dice that are being played; `opening` before the first roll; not there before any other |
//! | `left=` | which of them are left, a double as often as it is: `5-5-5`; not there if all are |
//! | `closed=` | places that may not go again this turn; not there if there are none |
//! | `plies=` | plies of the game so far; not there if there are none |
//!
//! `ids.rs` reads the ids of other programs.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::text::{play_line, shown};

use super::Backgammon;
use super::side::BAR;
use crate::notation::{Words, mark};
use crate::tables::{self, ROLLS, Side, each, from_other_side, read_side, read_turn, rows_of_text};

const KEYS: [&str; 7] = ["x", "o", "turn", "roll", "left", "closed", "plies"];
const EXPECTED: &str =
    "x=PLACES o=PLACES turn=x or turn=o, then roll=, left=, closed= and plies= where they are needed";

/// A place as it is written.
pub(super) fn name(place: u32) -> String {
    match place {
        BAR => "bar".to_owned(),
        _ => (place + 1).to_string(),
    }
}

/// The place of a name.
fn place(name: &str) -> Result<u32, String> {
    match name.parse::<u32>() {
        _ if name == "bar" => Ok(BAR),
        Ok(point @ 1..=24) => Ok(point - 1),
        _ => Err(format!("{} is no place: expected 1 to 24 or bar", shown(name))),
    }
}

fn side_text(side: Side) -> String {
    tables::side_text(side, (0..=BAR).rev().filter(|place| side.taken() >> place & 1 == 1), name)
}

pub(super) fn to_text(game: &Backgammon) -> String {
    let [x, o] = game.sides.map(side_text);
    let mut text = format!("x={x} o={o} turn={}", mark(game.mover));
    if game.opening {
        text += " roll=opening";
    } else if let Some([high, low]) = game.dice() {
        text += &format!(" roll={high}-{low}");
        if game.left != if game.is_double() { [4, 0] } else { [1, 1] } {
            text += &format!(" left={}", left_text(game));
        }
    }
    if game.closed != 0 {
        let places: Vec<_> = each(game.closed).map(name).collect();
        text += &format!(" closed={}", places.join(","));
    }
    let plies = game.max_plies - game.plies_left;
    if plies > 0 { format!("{text} plies={plies}") } else { text }
}

fn left_text(game: &Backgammon) -> String {
    let times = |which: usize| vec![game.dice[which].to_string(); usize::from(game.left[which])];
    [times(0), times(1)].concat().join("-")
}

pub(super) fn parse(start: &Backgammon, text: &str) -> Result<Backgammon, String> {
    if !text.contains('=') {
        return Ok(play_line(start, text)?);
    }
    let words = Words::read(text, &KEYS, EXPECTED)?;
    let sides = [parse_side(words.needed("x")?, "x")?, parse_side(words.needed("o")?, "o")?];
    let mover = read_turn(&words)?;
    let plies = match words.get("plies") {
        None => 0,
        Some(text) => text.parse::<u16>().map_err(|_| format!("plies must be a whole number, got {}", shown(text)))?,
    };
    let mut game = placed(start, sides, mover, plies)?;
    parse_turn(&mut game, &words)?;
    Ok(game)
}

/// A position before a roll; refused where the checkers of both cannot stand so.
pub(super) fn placed(start: &Backgammon, sides: [Side; 2], mover: Player, plies: u16) -> Result<Backgammon, String> {
    let [x, o] = sides;
    if let Some(place) = each(x.taken() & from_other_side(o.taken())).next() {
        return Err(format!("x's point {} has checkers of both players", place + 1));
    }
    if sides == [Side::NONE; 2] {
        return Err("both players have all checkers off".to_owned());
    }
    let plies_left = (start.max_plies.checked_sub(plies))
        .ok_or_else(|| format!("plies must be at most {} in this game, got {plies}", start.max_plies))?;
    Ok(Backgammon { sides, mover, plies_left, opening: false, dice: [0; 2], left: [0; 2], closed: 0, ..*start })
}

/// The dice, and what is left to play.
fn parse_turn(game: &mut Backgammon, words: &Words<'_>) -> Result<(), String> {
    let roll = words.get("roll");
    if roll.is_none() || roll == Some("opening") {
        if let Some(word) = ["left", "closed"].into_iter().find(|word| words.get(word).is_some()) {
            return Err(format!("{word}= needs a roll that is being played"));
        }
        game.opening = roll.is_some();
    }
    let starts = (game.sides, game.mover, game.plies_left) == ([Side::START; 2], Player::Zero, game.max_plies);
    if game.opening && !starts {
        return Err("roll=opening is for the start of a game alone, where x is to move".to_owned());
    }
    if game.winner() == Some(game.mover) {
        return Err(format!(
            "{0} has all checkers off, so that the other player is to move, got {0}",
            mark(game.mover)
        ));
    }
    if game.winner().is_some() {
        return match roll {
            None => Ok(()),
            Some(roll) => Err(format!("roll is {}, but the game is over", shown(roll))),
        };
    }
    let Some(roll) = roll.filter(|_| !game.opening) else {
        return Ok(());
    };
    let mut dice = parse_dice(roll, "roll")?;
    dice.sort_unstable_by(|a, b| b.cmp(a));
    game.dice = ROLLS
        .into_iter()
        .find(|known| *known == dice[..])
        .ok_or_else(|| format!("roll must be two dice as in 3-1, or opening, got {}", shown(roll)))?;
    let all = if game.is_double() { [4, 0] } else { [1, 1] };
    game.left = match words.get("left") {
        None => all,
        Some(text) => parse_left(game, text, all)?,
    };
    if let Some(text) = words.get("closed") {
        if game.left == all {
            return Err(format!("closed is {}, but no checker has moved: all dice are left", shown(text)));
        }
        for name in text.split(',') {
            game.closed |= 1 << place(name)?;
        }
        if let Some(place) = each(game.closed & !game.own().taken()).next() {
            return Err(format!("closed has {}, where {} has no checker", name(place), mark(game.mover)));
        }
    }
    if !game.can_go() {
        let (mover, other) = (mark(game.mover), mark(game.mover.opponent()));
        return Err(format!("{mover} can play none of {}: leave the roll out and say turn={other}", left_text(game)));
    }
    Ok(())
}

fn parse_left(game: &Backgammon, text: &str, all: [u8; 2]) -> Result<[u8; 2], String> {
    let mut left = [0; 2];
    for die in parse_dice(text, "left")? {
        let which = if die == game.dice[0] { 0 } else { 1 };
        if die != game.dice[which] || left[which] == all[which] {
            let [high, low] = game.dice;
            return Err(format!("left must be dice of the roll {high}-{low}, got {}", shown(text)));
        }
        left[which] += 1;
    }
    Ok(left)
}

fn parse_dice(text: &str, what: &str) -> Result<Vec<u8>, String> {
    let die = |word: &str| word.parse::<u8>().ok().filter(|die| (1..=6).contains(die));
    let dice: Option<Vec<_>> = text.split('-').map(die).collect();
    dice.ok_or_else(|| format!("{what} must be dice from 1 to 6 with - between, got {}", shown(text)))
}

fn parse_side(text: &str, whose: &str) -> Result<Side, String> {
    read_side(text, whose, "place:number, as in 24:2, bar:1 or off:3", |name| place(name).map_err(Some))
}

/// The board as x sees it: x runs from 24 to 1 and o the other way.
pub(super) fn render(game: &Backgammon) -> String {
    let (upper, lower): (Vec<_>, Vec<_>) = ((13..=24).collect(), (1..=12).rev().collect());
    let mut lines = rows_of_text(game.sides, &upper, &lower);
    let [x, o] = game.sides;
    let of_both = |number: fn(Side) -> u32| format!("x {}, o {}", number(x), number(o));
    lines.push(format!("bar: {}; off: {}", of_both(|side| side.count(BAR)), of_both(Side::off)));
    lines.push(state_text(game));
    lines.join("\n")
}

/// Who does what next.
fn state_text(game: &Backgammon) -> String {
    let ply = format!("ply {} of {}", game.max_plies - game.plies_left, game.max_plies);
    let mover = mark(game.mover);
    let [high, low] = game.dice;
    let what = match game.turn() {
        Turn::Terminal => "the game is over".to_owned(),
        Turn::Chance if game.opening => format!("{mover} to begin"),
        Turn::Chance => format!("{mover} to roll"),
        Turn::Player(_) => {
            let closed = if game.closed == 0 {
                String::new()
            } else {
                let places: Vec<_> = each(game.closed).map(name).collect();
                format!(", closed {}", places.join(" "))
            };
            format!("{mover} to play {high}-{low}, left {}{closed}", left_text(game))
        }
    };
    format!("{what}; {ply}")
}
