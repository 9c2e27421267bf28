//! Positions of trictrac as words, and as a board of text.
//!
//! A position is written as words `key=value` with blanks between, in any order; docs/reference/games.md lists them.

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::shown;

use super::board::CORNER;
use super::{FIELDS, HIS_CORNER, HOLD, LEAVE, POWER, Plays, Stage, Trictrac};
use crate::error::{Error, invalid};
use crate::notation::{PLAYERS, Words, mark, read_number};
use crate::tables::{ROLLS, Side, from_other_side, read_sides, rows_of_text, sides_text};

const KEYS: [&str; 12] =
    ["x", "o", "turn", "roll", "left", "first", "stage", "points", "holes", "runs", "rolls", "plies"];
const EXPECTED: &str = "x=FIELDS o=FIELDS turn=x or turn=o, then roll=, left=, first=, stage=, points=, holes=, runs=, \
                        rolls= and plies= where they are needed";

/// The name of an action; nothing where no action has this number.
pub(super) fn name_of(game: &Trictrac, action: Action) -> Option<String> {
    let name = match action {
        POWER => "power",
        HOLD => "hold",
        LEAVE => "leave",
        0..POWER => {
            let (which, place) = Trictrac::parts(action);
            let to = place + game.die(which);
            let to = if to < FIELDS as u32 { field_name(to) } else { "off".to_owned() };
            return Some(format!("{}/{to}", field_name(place)));
        }
        _ => return None,
    };
    Some(name.to_owned())
}

fn field_name(place: u32) -> String {
    (place + 1).to_string()
}

/// The field that the first step left, and the die that is left.
fn in_mid_turn(game: &Trictrac) -> Option<(u32, u8)> {
    let (which, place) = Trictrac::parts(Action::from(game.first?));
    Some((place + 1, game.dice[1 - which]))
}

pub(super) fn to_text(game: &Trictrac) -> String {
    let mut text = sides_text(game.sides, game.mover, false, field_name);
    if let Some([high, low]) = game.dice() {
        text += &format!(" roll={high}-{low}");
        if let Some((field, left)) = in_mid_turn(game) {
            text += &format!(" left={left} first={field}");
        }
        if game.stage == Stage::Choice {
            text += " stage=choice";
        }
    }
    let score = game.score;
    let pairs =
        [("points", score.points), ("holes", score.holes), ("runs", score.runs.map(u8::from)), ("rolls", game.rolls)];
    for (key, [x, o]) in pairs {
        text += &format!(" {key}={x},{o}");
    }
    let plies = game.max_plies - game.plies_left;
    if plies > 0 { format!("{text} plies={plies}") } else { text }
}

pub(super) fn read(start: &Trictrac, text: &str) -> Result<Trictrac, Error> {
    let words = Words::read(text, &KEYS, EXPECTED)?;
    let mut game = Trictrac::start(start.goal, start.max_plies);
    let place =
        |name: &str| read_number("", name, 1, FIELDS as u16).map(|field| u32::from(field) - 1).map_err(|_| None);
    (game.sides, game.mover) = read_sides(&words, "field:number, as in 1:13 or off:2", "field", place)?;
    game.plies_left = game.max_plies - words.number("plies", 0, game.max_plies)?;
    game.score.points = pair(&words, "points", 10, [0; 2])?;
    if let Some(points) = words.get("points").filter(|_| game.score.points.iter().any(|points| points % 2 == 1)) {
        return Err(Error::value("points", "even numbers", shown(points)));
    }
    game.score.holes = pair(&words, "holes", game.goal, [0; 2])?;
    game.score.runs = pair(&words, "runs", 1, [1; 2])?.map(|run| run == 1);
    game.rolls = pair(&words, "rolls", 3, [0; 2])?;
    if game.score.holes == [game.goal; 2] {
        return Err(invalid!("both players have {} holes", game.goal));
    }
    read_roll(&mut game, &words)?;
    Ok(game)
}

/// Two numbers, of x and of o.
fn pair(words: &Words<'_>, key: &str, most: u8, usual: [u8; 2]) -> Result<[u8; 2], Error> {
    let Some(text) = words.get(key) else {
        return Ok(usual);
    };
    let form = || format!("two numbers, of x and of o, as in {key}=0,0");
    let (x, o) = text.split_once(',').ok_or_else(|| Error::value(key, form(), shown(text)))?;
    let read = |word| read_number(key, word, 0, u16::from(most)).map(|number| number as u8);
    Ok([read(x)?, read(o)?])
}

/// The dice, and what of them has been played.
fn read_roll(game: &mut Trictrac, words: &Words<'_>) -> Result<(), Error> {
    let Some(roll) = words.get("roll") else {
        words.refuse(&["left", "first", "stage"], "needs a roll that is being played")?;
        if game.is_opening() && game.mover != Player::Zero {
            return Err(invalid!("x begins the game, got turn=o at the start"));
        }
        return check_end(game, PLAYERS.as_slice());
    };
    if game.winner().is_some() {
        return Err(invalid!("roll is {}, but the game is over", shown(roll)));
    }
    let known =
        ROLLS.into_iter().find(|[high, low]| roll == format!("{high}-{low}") || roll == format!("{low}-{high}"));
    game.dice = known.ok_or_else(|| Error::value("roll", "two dice as in 3-1", shown(roll)))?;
    check_end(game, &[game.mover.opponent()])?;
    game.stage = Stage::Play;
    if words.get("left").is_some() || words.get("first").is_some() {
        read_first(game, words.needed("left")?, words.needed("first")?)?;
    }
    let before = game.before();
    let rolled = game.rolled(before);
    let plays = rolled.plays();
    let [mine, his] = game.points(&rolled, &plays, game.rolls[game.mover.index()] == 3);
    game.owed = his;
    game.allow(&plays);
    if let Some(action) = game.first {
        if let Some(stage) = words.get("stage") {
            return Err(invalid!("stage is {}, but a step was played", shown(stage)));
        }
        return go_on(game, &plays, action);
    }
    check_end(game, &[game.mover])?;
    match words.get("stage") {
        Some("choice") => read_choice(game, mine),
        Some(other) => Err(Error::value("stage", "choice", shown(other))),
        None if plays.dice == 0 => {
            let (mover, other) = (mark(game.mover), mark(game.mover.opponent()));
            Err(invalid!("{mover} can play none of {roll}: leave the roll out and say turn={other}"))
        }
        None => Ok(()),
    }
}

/// The choice after a hole.
fn read_choice(game: &mut Trictrac, mine: u8) -> Result<(), Error> {
    let (me, mover, score) = (game.mover.index(), mark(game.mover), game.score);
    if mine <= score.points[me] || score.holes[me] == 0 {
        return Err(invalid!("stage=choice follows a hole of {mover}, but this roll is worth {mine} points"));
    }
    if score.points[1 - me] > 0 || score.runs != [true; 2] {
        let after = "the other player has no points, and both runs are unbroken";
        return Err(invalid!("stage=choice follows a hole: {after}"));
    }
    game.stage = Stage::Choice;
    Ok(())
}

/// The first step.
fn read_first(game: &mut Trictrac, left: &str, first: &str) -> Result<(), Error> {
    let [high, low] = game.dice;
    let die = read_number("left", left, 1, 6)? as u8;
    let which = match die {
        _ if high == low && die == high => 0,
        _ if die == low => 0,
        _ if die == high => 1,
        _ => return Err(Error::value("left", format!("a die of the roll {high}-{low}"), left)),
    };
    let place = u32::from(read_number("first", first, 1, FIELDS as u16)?) - 1;
    let to = place + game.die(which);
    let own = game.own();
    if to < FIELDS as u32 && own.taken() >> to & 1 == 0 {
        return Err(invalid!("first is {first}, but {} does not have a checker on {}", mark(game.mover), to + 1));
    }
    if to >= FIELDS as u32 && own.off() == 0 {
        return Err(invalid!("first is {first}, but {} has not borne off a checker", mark(game.mover)));
    }
    if from_other_side(game.other().taken()) >> place & 1 == 1 {
        return Err(invalid!("first is {first}, where {} stands", mark(game.mover.opponent())));
    }
    game.first = Some((which * FIELDS) as u8 + place as u8);
    Ok(())
}

/// A position after the first step.
fn go_on(game: &mut Trictrac, plays: &Plays, action: u8) -> Result<(), Error> {
    let (which, place) = Trictrac::parts(Action::from(action));
    let before = game.before();
    let mut earlier = *game;
    earlier.sides[game.mover.index()] = before;
    earlier.first = None;
    check_end(&earlier, &[game.mover])?;
    if plays.dice < 2 || plays.first[which] >> place & 1 == 0 {
        return Err(invalid!("first is {}, but no play of this roll begins there", place + 1));
    }
    game.power = false;
    game.legal = game.rolled(before).seconds(which, place, game.keep_full);
    Ok(())
}

/// Refuses what no turn can end with.
fn check_end(game: &Trictrac, players: &[Player]) -> Result<(), Error> {
    for &player in players {
        let (side, name) = (game.sides[player.index()], mark(player));
        if side == Side::NONE {
            return Err(invalid!("{name} has all checkers off; they go back to the talon then"));
        }
        if side.taken() & HIS_CORNER != 0 {
            return Err(invalid!("{name} has checkers on 13, the other player's corner"));
        }
        if side.taken() & !side.many() & CORNER != 0 {
            return Err(invalid!("{name} has one checker on 12; the corner is held with two"));
        }
    }
    Ok(())
}

/// The board as x sees it: x runs from 1 at the lower left to 12, up, and back to 24.
pub(super) fn render(game: &Trictrac) -> String {
    let (upper, lower): (Vec<_>, Vec<_>) = ((13..=24).rev().collect(), (1..=12).collect());
    let mut lines = rows_of_text(game.sides, &upper, &lower);
    lines.extend(PLAYERS.map(|player| format!("{}: {}", mark(player), score_text(game, player))));
    lines.push(state_text(game));
    lines.join("\n")
}

/// The score of a player in words.
pub(super) fn score_text(game: &Trictrac, player: Player) -> String {
    let (points, holes, run) = game.score(player);
    let broken = if run { "" } else { ", run broken" };
    let (rolls, off) = (game.rolls[player.index()], game.sides[player.index()].off());
    format!("{holes} of {} holes, {points} points{broken}; rolls {rolls}; off {off}", game.goal)
}

/// What is next, in words.
fn state_text(game: &Trictrac) -> String {
    let ply = format!("ply {} of {}", game.max_plies - game.plies_left, game.max_plies);
    let mover = mark(game.mover);
    let [high, low] = game.dice;
    let what = match game.turn() {
        Turn::Terminal => "the game is over".to_owned(),
        Turn::Chance if game.is_opening() => format!("{mover} to begin"),
        Turn::Chance => format!("{mover} to roll"),
        Turn::Player(_) if game.stage == Stage::Choice => format!("{mover} to hold or leave, {high}-{low}"),
        Turn::Player(_) => match in_mid_turn(game) {
            None => format!("{mover} to play {high}-{low}"),
            Some((field, left)) => format!("{mover} to play {high}-{low}, left {left}, first from {field}"),
        },
    };
    format!("{what}; {ply}")
}
