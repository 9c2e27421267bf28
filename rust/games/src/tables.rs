//! What games of the backgammon family share: a side's checkers, the rolls of two dice, and their pictures.
//!
//! Places are bits. Which place is which is the game's matter.

use azpy_core::game::{Action, Player};
use azpy_core::text::shown;

use crate::notation::{PLAYERS, Words, mark, read_number};

pub(crate) mod picture;

pub(crate) const POINTS: u32 = (1 << 24) - 1;
pub(crate) const CHECKERS: u32 = 15;

/// The rolls by outcome, the higher die first.
#[rustfmt::skip]
pub(crate) const ROLLS: [[u8; 2]; 21] = [
    [2, 1], [3, 1], [4, 1], [5, 1], [6, 1], [3, 2], [4, 2], [5, 2], [6, 2], [4, 3], [5, 3], [6, 3], [5, 4], [6, 4],
    [6, 5], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6],
];
const UNEQUAL: usize = 15;

/// Writes the outcomes of a roll. The `opening` roll is no double.
pub(crate) fn write_outcomes(opening: bool, out: &mut Vec<(Action, f32)>) {
    out.clear();
    if opening {
        out.extend((0..UNEQUAL as Action).map(|outcome| (outcome, 1.0 / UNEQUAL as f32)));
    } else {
        let chance = |outcome| if outcome < UNEQUAL { 2.0 / 36.0 } else { 1.0 / 36.0 };
        out.extend((0..ROLLS.len()).map(|outcome| (outcome as Action, chance(outcome))));
    }
}

/// A player's checkers on the board: the number on place p is made of bit p of the four words, the lowest first. Adding
/// and counting then need no memory but these, and which places are taken is three ORs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Side(pub(crate) [u32; 4]);

impl Side {
    pub(crate) const NONE: Self = Self([0; 4]);

    #[inline]
    pub(crate) fn taken(self) -> u32 {
        self.0[0] | self.many()
    }

    /// Places with two checkers or more.
    #[inline]
    pub(crate) fn many(self) -> u32 {
        self.0[1] | self.0[2] | self.0[3]
    }

    #[inline]
    pub(crate) fn count(self, place: u32) -> u32 {
        self.0.iter().rev().fold(0, |count, word| 2 * count + (word >> place & 1))
    }

    #[inline]
    pub(crate) fn on_board(self) -> u32 {
        self.0.iter().rev().fold(0, |count, word| 2 * count + word.count_ones())
    }

    #[inline]
    pub(crate) fn off(self) -> u32 {
        CHECKERS - self.on_board()
    }

    #[inline]
    pub(crate) fn add(&mut self, place: u32) {
        let mut carry = 1 << place;
        for word in &mut self.0 {
            *word ^= carry;
            carry &= !*word;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, place: u32) {
        debug_assert!(self.taken() >> place & 1 == 1);
        let mut borrow = 1 << place;
        for word in &mut self.0 {
            *word ^= borrow;
            borrow &= *word;
        }
    }
}

/// Places of one player as the other one numbers them.
#[inline]
pub(crate) fn from_other_side(points: u32) -> u32 {
    (points & POINTS).reverse_bits() >> 8
}

/// `place` and those below it.
#[inline]
pub(crate) fn up_to(place: u32) -> u32 {
    (2 << place) - 1
}

/// The places of a set, ascending.
#[inline]
pub(crate) fn each(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(place)
    })
}

/// A side's checkers in words: `place:number` with commas between, and those that are `off`.
pub(crate) fn side_text(side: Side, places: impl Iterator<Item = u32>, name: impl Fn(u32) -> String) -> String {
    let parts = places.map(|place| format!("{}:{}", name(place), side.count(place)));
    let off = (side.off() > 0).then(|| format!("off:{}", side.off()));
    parts.chain(off).collect::<Vec<_>>().join(",")
}

/// Reads what [`side_text`] writes. `place` reads the name of a place; where it gives no error of its own, the text is
/// not of the `form`.
///
/// # Errors
/// Says what `whose` side has.
pub(crate) fn read_side(
    text: &str,
    whose: &str,
    form: &str,
    place: impl Fn(&str) -> Result<u32, Option<String>>,
) -> Result<Side, String> {
    let (mut side, mut off) = (Side::NONE, 0);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let wrong = || format!("{whose} has {}: expected {form}", shown(part));
        let (name, number) = part.split_once(':').ok_or_else(wrong)?;
        let number = u32::from(read_number("", number, 1, CHECKERS as u16).map_err(|_| wrong())?);
        if side.on_board() + off + number > CHECKERS {
            return Err(format!("{whose} has more than {CHECKERS} checkers"));
        }
        if name == "off" {
            off += number;
            continue;
        }
        let place = place(name).map_err(|error| error.unwrap_or_else(wrong))?;
        (0..number).for_each(|_| side.add(place));
    }
    match side.on_board() + off {
        CHECKERS => Ok(side),
        number => Err(format!("{whose} has {number} checkers, those off included; expected {CHECKERS}")),
    }
}

/// Whose turn it is, by the word `turn=`.
pub(crate) fn read_turn(words: &Words<'_>) -> Result<Player, String> {
    let turn = words.needed("turn")?;
    let mover = PLAYERS.into_iter().find(|&player| turn == mark(player).to_string());
    mover.ok_or_else(|| format!("turn must be x or o, got {}", shown(turn)))
}

/// The board in lines of text: the places `upper` and `lower`, twelve each from the left, as x numbers them from 1. Five
/// rows a half; of more checkers the number stands in the fifth.
pub(crate) fn rows_of_text([x, o]: [Side; 2], upper: &[u32], lower: &[u32]) -> Vec<String> {
    const ROWS: u32 = 5;
    let cell = |point: u32, row: u32| {
        let (mine, theirs) = (x.count(point - 1), o.count(24 - point));
        let (glyph, count) = if mine > 0 { ("x", mine) } else { ("o", theirs) };
        match (count, row) {
            (0, 0) => ".".to_owned(),
            (count, 4) if count > ROWS => count.to_string(),
            (count, row) if row < count => glyph.to_owned(),
            _ => String::new(),
        }
    };
    let line = |points: &[u32], text: &dyn Fn(u32) -> String| {
        let half = |points: &[u32]| points.iter().map(|&point| format!("{:>3}", text(point))).collect::<String>();
        format!("{} |{}", half(&points[..6]), half(&points[6..])).trim_end().to_owned()
    };
    let mut lines = vec![line(upper, &|point| point.to_string())];
    lines.extend((0..ROWS).map(|row| line(upper, &|point| cell(point, row))));
    lines.push(line(upper, &|_| String::new()));
    lines.extend((0..ROWS).rev().map(|row| line(lower, &|point| cell(point, row))));
    lines.push(line(lower, &|point| point.to_string()));
    lines
}
