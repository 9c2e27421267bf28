//! Positions of backgammon as other programs name them: GNU Backgammon's ids, and XGID.
//!
//! ```text
//! 4HPwATDgc/ABMA                position id: the board. x is to roll.
//! 4HPwATDgc/ABMA:MIHlAAAAAAAE   position id and match id: the board, the player to move, the dice
//! XGID=-b----E-C---eE---c-e----B-:0:0:1:31:0:0:0:7:10
//! ```
//!
//! An id may stand in what the programs show and copy around it: eXtreme Gammon puts the XGID on a line above the board,
//! and GNU Backgammon has `Position ID: 4HPwATDgc/ABMA` and `Match ID   : MIHlAAAAAAAE`, on one line or on two.
//!
//! The player that both programs call X, player 1 of GNU Backgammon, is x here. Neither form knows how many plies were
//! played: there are none so far. Neither knows the opening roll: any roll may follow where no dice are there.
//!
//! The cube, the score, the length of the match and its rules have no place in azpy's single games. They are read over.
//! A double or a resignation that waits for an answer is refused: no action of azpy answers it.
//!
//! Sources: GNU Backgammon's manual (A technical description of the position id, of the match id); the description of
//! XGID in eXtreme Gammon's help.

use azpy_core::game::Player;
use azpy_core::text::shown;

use super::Backgammon;
use super::notation::placed;
use super::side::{BAR, PLACES};
use crate::error::{Error, invalid};
use crate::tables::{CHECKERS, ROLLS, Side};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const POSITION: usize = 14; // letters, of 10 bytes
const MATCH: usize = 12; // letters, of 9 bytes
const XGID: &str = "XGID=";
const POINTS: usize = 26; // letters of XGID's board: the bar of the upper player, 24 points, the bar of the lower one

/// The position of an id; nothing for a text of another kind.
pub(super) fn read(start: &Backgammon, text: &str) -> Option<Result<Backgammon, Error>> {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        let xgid = text.split_whitespace().find_map(|word| word.strip_prefix(XGID));
        let gnu = || Some(read_gnu(start, labelled(text, "position id")?, labelled(text, "match id")));
        return xgid.map(|fields| read_xgid(start, fields)).or_else(gnu);
    }
    if let Some(fields) = text.strip_prefix(XGID) {
        return Some(read_xgid(start, fields));
    }
    match text.split_once(':') {
        _ if text.contains('=') => None,
        Some((_, rest)) if rest.contains(':') => Some(read_xgid(start, text)),
        Some((position, of_match)) => Some(read_gnu(start, position, Some(of_match))),
        None => (text.len() == POSITION && bits(text).is_some()).then(|| read_gnu(start, text, None)),
    }
}

/// The word behind a label and a colon, in any case.
fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = text.split_at(text.to_ascii_lowercase().find(label)? + label.len());
    rest.trim_start().strip_prefix(':')?.split_whitespace().next()
}

/// A board, a player to move, and the dice, where they are rolled.
fn position(start: &Backgammon, sides: [Side; 2], mover: Player, dice: [u32; 2]) -> Result<Backgammon, Error> {
    let mut game = placed(start, sides, mover, 0)?;
    if let Some(winner) = game.winner() {
        // The other programs leave the turn where it was. Here the loser would be next, and no dice are left.
        game.mover = winner.opponent();
        return Ok(game);
    }
    let [low, high] = [dice[0].min(dice[1]), dice[0].max(dice[1])];
    if high > 0 {
        let outcome = ROLLS.iter().position(|roll| roll.map(u32::from) == [high, low]);
        // Where no checker can move, the turn passes at once.
        let wrong = || Error::value("the dice", "from 1 to 6", format!("{} and {}", dice[0], dice[1]));
        game.roll(outcome.ok_or_else(wrong)?);
    }
    Ok(game)
}

/// The bits of a text in base64, the first one lowest; nothing for another text, or for bits that fill no byte.
fn bits(text: &str) -> Option<u128> {
    let (mut found, mut at, mut held, mut count) = (0, 0, 0_u32, 0);
    for letter in text.bytes() {
        held = held << 6 | BASE64.iter().position(|known| *known == letter)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            found |= u128::from(held >> count) << at;
            held &= (1 << count) - 1;
            at += 8;
        }
    }
    (held == 0).then_some(found)
}

fn read_gnu(start: &Backgammon, board: &str, of_match: Option<&str>) -> Result<Backgammon, Error> {
    let decoded = |text: &str, letters: usize, what: &str| {
        let found = Some(text).filter(|text| text.len() == letters).and_then(bits); // 22 letters and more fill no u128
        found.ok_or_else(|| Error::value(what, format!("{letters} letters of base64"), shown(text)))
    };
    let board = decoded(board, POSITION, "the position id")?;
    let of_match = of_match.map(|text| decoded(text, MATCH, "the match id")).transpose()?;
    let part = |from: u32, bits: u32| of_match.map(|word| (word >> from) as u32 & ((1 << bits) - 1));
    // Bits 0 to 5 are the cube, bit 7 the Crawford rule; bits 21 and later are the match and its score.
    let mover = if part(6, 1) == Some(0) { Player::One } else { Player::Zero };
    let dice = [15, 18].map(|from| part(from, 3).unwrap_or(0));
    let pending = match (part(8, 3), part(12, 1), part(13, 2)) {
        (Some(3..), ..) => "a player resigned, which azpy's backgammon does not have",
        (_, Some(1), _) => "a double is offered, but azpy plays without the cube",
        (.., Some(1..)) => "a resignation is offered, which azpy's backgammon does not have",
        _ => "",
    };
    if !pending.is_empty() {
        return Err(invalid!("the match id says that {pending}"));
    }
    // Each checker is a 1, and each place ends in a 0: the opponent's 25 places, then those of the player to move.
    let (mut both, mut whose, mut place) = ([Side::NONE; 2], 0, 0);
    for at in 0..80 {
        if board >> at & 1 == 0 {
            place += 1;
            if place == PLACES {
                (whose, place) = (whose + 1, 0);
            }
        } else if whose < 2 && both[whose].on_board() < CHECKERS {
            both[whose].add(place as u32);
        } else {
            return Err(invalid!("the position id has more than {CHECKERS} checkers of a player"));
        }
    }
    let [other, own] = both;
    position(start, if mover == Player::Zero { [own, other] } else { [other, own] }, mover, dice)
}

fn read_xgid(start: &Backgammon, text: &str) -> Result<Backgammon, Error> {
    let fields: Vec<_> = text.split(':').collect();
    let [board, _, _, turn, dice, ..] = fields[..] else {
        let form = "BOARD:CUBE:OWNER:TURN:DICE and what follows";
        let got = format!(
            "{}; a position id of GNU Backgammon has {POSITION} letters, and perhaps : and {MATCH} letters of the match id",
            shown(text)
        );
        return Err(Error::value("an XGID", form, got));
    };
    let wrong = |index: usize, letter: char| {
        let (letter, number) = (shown(&letter.to_string()), index + 1);
        invalid!("the board of an XGID has {letter} at letter {number}: expected -, A to O or a to o")
    };
    let mut sides = [Side::NONE; 2];
    for (index, letter) in board.chars().enumerate() {
        // Capitals are the lower player, who runs from letter 24 down to 1; the other player runs the other way.
        let (side, count, place) = match letter {
            '-' => continue,
            'A'..='O' => (0, letter as u32 - 'A' as u32 + 1, index.checked_sub(1)),
            'a'..='o' => (1, letter as u32 - 'a' as u32 + 1, (PLACES - 1).checked_sub(index)),
            _ => return Err(wrong(index, letter)),
        };
        let place = place.filter(|place| *place <= BAR as usize).ok_or_else(|| wrong(index, letter))? as u32;
        if sides[side].on_board() + count > CHECKERS {
            return Err(invalid!("the XGID has more than {CHECKERS} checkers of a player"));
        }
        (0..count).for_each(|_| sides[side].add(place));
    }
    if board.chars().count() != POINTS {
        return Err(Error::value("the board of an XGID", format!("{POINTS} letters"), shown(board)));
    }
    let mover = match turn {
        "1" => Player::Zero,
        "-1" => Player::One,
        _ => return Err(Error::value("the turn of an XGID", "1 or -1", shown(turn))),
    };
    let dice = match dice.as_bytes() {
        [first @ b'0'..=b'9', second @ b'0'..=b'9'] => [first, second].map(|die| u32::from(die - b'0')),
        b"D" | b"B" | b"R" => {
            return Err(invalid!(
                "the dice of the XGID are {dice}, an offered double, but azpy plays without the cube"
            ));
        }
        _ => return Err(Error::value("the dice of an XGID", "00 or two digits from 1 to 6", shown(dice))),
    };
    position(start, sides, mover, dice)
}
