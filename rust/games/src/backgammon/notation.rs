//! Positions of backgammon as words, and as a board of text.
//!
//! A position is written as words `key=value` with blanks between, in any order; docs/reference/games.md lists them.
//!
//! `ids.rs` reads the ids of other programs.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::text::shown;

use super::Backgammon;
use super::side::BAR;
use crate::error::{Error, invalid};
use crate::notation::{Words, mark};
use crate::tables::{ROLLS, Side, check_apart, each, read_sides, rows_of_text, sides_text};

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
fn place(name: &str) -> Result<u32, Error> {
    match name.parse::<u32>() {
        _ if name == "bar" => Ok(BAR),
        Ok(point @ 1..=24) => Ok(point - 1),
        _ => Err(invalid!("{} is not a place: expected 1 to 24 or bar", shown(name))),
    }
}

/// The dice of a roll: all of them are left at first.
fn all_dice(game: &Backgammon) -> [u8; 2] {
    if game.is_double() { [4, 0] } else { [1, 1] }
}

fn closed_text(game: &Backgammon, between: &str) -> String {
    each(game.closed).map(name).collect::<Vec<_>>().join(between)
}

pub(super) fn to_text(game: &Backgammon) -> String {
    let mut text = sides_text(game.sides, game.mover, true, name);
    if game.opening {
        text += " roll=opening";
    } else if let Some([high, low]) = game.dice() {
        text += &format!(" roll={high}-{low}");
        if game.left != all_dice(game) {
            text += &format!(" left={}", left_text(game));
        }
    }
    if game.closed != 0 {
        text += &format!(" closed={}", closed_text(game, ","));
    }
    let plies = game.max_plies - game.plies_left;
    if plies > 0 { format!("{text} plies={plies}") } else { text }
}

fn left_text(game: &Backgammon) -> String {
    let times = |which: usize| vec![game.dice[which].to_string(); usize::from(game.left[which])];
    [times(0), times(1)].concat().join("-")
}

pub(super) fn read(start: &Backgammon, text: &str) -> Result<Backgammon, Error> {
    let words = Words::read(text, &KEYS, EXPECTED)?;
    let form = "place:number, as in 24:2, bar:1 or off:3";
    let (sides, mover) = read_sides(&words, form, "point", |name| place(name).map_err(Some))?;
    let plies = words.get("plies").unwrap_or("0");
    let plies = plies.parse().map_err(|_| Error::value("plies", "a whole number", shown(plies)))?;
    let mut game = placed(start, sides, mover, plies)?;
    read_roll(&mut game, &words)?;
    Ok(game)
}

/// A position before a roll; refused where the checkers of both cannot stand so.
pub(super) fn placed(start: &Backgammon, sides: [Side; 2], mover: Player, plies: u16) -> Result<Backgammon, Error> {
    check_apart(sides, "point")?;
    if sides == [Side::NONE; 2] {
        return Err(invalid!("both players have all checkers off"));
    }
    let plies_left = (start.max_plies.checked_sub(plies))
        .ok_or_else(|| Error::value("plies", format!("at most {} in this game", start.max_plies), plies))?;
    Ok(Backgammon { sides, mover, plies_left, opening: false, dice: [0; 2], left: [0; 2], closed: 0, ..*start })
}

/// The dice, and what is left to play.
fn read_roll(game: &mut Backgammon, words: &Words<'_>) -> Result<(), Error> {
    let (roll, mover) = (words.get("roll"), mark(game.mover));
    if roll.is_none() || roll == Some("opening") {
        words.refuse(&["left", "closed"], "needs a roll that is being played")?;
        game.opening = roll.is_some();
    }
    let starts = (game.sides, game.mover, game.plies_left) == ([Side::START; 2], Player::Zero, game.max_plies);
    if game.opening && !starts {
        return Err(invalid!("roll=opening is only for the start of a game, where x is to move"));
    }
    if game.winner() == Some(game.mover) {
        let expected = format!("{mover} has all checkers off, so the other player is to move");
        return Err(Error::form(expected, mover));
    }
    let Some(roll) = roll.filter(|_| !game.opening) else {
        return Ok(());
    };
    if game.winner().is_some() {
        return Err(invalid!("roll is {}, but the game is over", shown(roll)));
    }
    let mut dice = read_dice(roll, "roll")?;
    dice.sort_unstable_by(|a, b| b.cmp(a));
    game.dice = ROLLS
        .into_iter()
        .find(|known| *known == dice[..])
        .ok_or_else(|| Error::value("roll", "two dice as in 3-1, or opening", shown(roll)))?;
    game.left = match words.get("left") {
        None => all_dice(game),
        Some(text) => read_left(game, text)?,
    };
    if let Some(text) = words.get("closed") {
        if game.left == all_dice(game) {
            return Err(invalid!("closed is {}, but no checker has moved: all dice are left", shown(text)));
        }
        for name in text.split(',') {
            game.closed |= 1 << place(name)?;
        }
        if let Some(place) = each(game.closed & !game.own().taken()).next() {
            return Err(invalid!("closed has {}, where {mover} does not have a checker", name(place)));
        }
    }
    if !game.can_go() {
        let (left, other) = (left_text(game), mark(game.mover.opponent()));
        return Err(invalid!("{mover} can play none of {left}: leave the roll out and say turn={other}"));
    }
    Ok(())
}

fn read_left(game: &Backgammon, text: &str) -> Result<[u8; 2], Error> {
    let mut left = [0; 2];
    for die in read_dice(text, "left")? {
        let which = if die == game.dice[0] { 0 } else { 1 };
        if die != game.dice[which] || left[which] == all_dice(game)[which] {
            let [high, low] = game.dice;
            return Err(Error::value("left", format!("dice of the roll {high}-{low}"), shown(text)));
        }
        left[which] += 1;
    }
    Ok(left)
}

fn read_dice(text: &str, what: &str) -> Result<Vec<u8>, Error> {
    let die = |word: &str| word.parse::<u8>().ok().filter(|die| (1..=6).contains(die));
    let dice: Option<Vec<_>> = text.split('-').map(die).collect();
    dice.ok_or_else(|| Error::value(what, "dice from 1 to 6 with - between", shown(text)))
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
            let closed = if game.closed == 0 { String::new() } else { format!(", closed {}", closed_text(game, " ")) };
            format!("{mover} to play {high}-{low}, left {}{closed}", left_text(game))
        }
    };
    format!("{what}; {ply}")
}
