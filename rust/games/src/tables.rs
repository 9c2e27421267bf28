//! What games of the backgammon family share: a side's checkers, the rolls of two dice, and their pictures.
//!
//! Places are bits. The game decides which place is which.

use azpy_core::game::{Action, Player};
use azpy_core::text::shown;

use crate::error::{Error, invalid};
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

/// The outcome of a roll as people write it: 3-1.
pub(crate) fn roll_name(outcome: Action) -> Option<String> {
    ROLLS.get(outcome as usize).map(|[high, low]| format!("{high}-{low}"))
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

    /// The checkers on each place, and as the last number those that are off.
    pub(crate) fn counts<const N: usize>(self) -> [u32; N] {
        std::array::from_fn(|place| if place + 1 < N { self.count(place as u32) } else { self.off() })
    }

    /// Writes four features a place, those of `place_of` the same place: 1 for at least 1, 2 and 3 checkers, and those
    /// beyond 3 as a part of `rest`.
    pub(crate) fn encode(self, rest: u16, place_of: impl Fn(u32) -> u32, features: &mut [f32]) {
        for place in each(self.taken()) {
            let (count, at) = (self.count(place), 4 * place_of(place) as usize);
            features[at..at + count.min(3) as usize].fill(1.0);
            features[at + 3] = count.saturating_sub(3) as f32 / f32::from(rest);
        }
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

/// The words of a key: both sides, and the other facts, each with its number of bits.
#[inline]
pub(crate) fn key_words<const N: usize>(sides: [Side; 2], facts: [(u64, u32); N]) -> [u64; 5] {
    let [[a, b], [c, d]] = sides.map(|side| {
        let [ones, twos, fours, eights] = side.0.map(u64::from);
        [ones | twos << 32, fours | eights << 32]
    });
    [a, b, c, d, facts.into_iter().fold(0, |word, (value, bits)| word << bits | value)]
}

/// Checkers in words: `x=24:2,13:5 o=24:2,off:13 turn=x`, as [`read_sides`] reads them. A place is called `name`, and
/// `highest_first` says in which order places come.
pub(crate) fn sides_text(sides: [Side; 2], mover: Player, highest_first: bool, name: fn(u32) -> String) -> String {
    let [x, o] = sides.map(|side| {
        let mut places: Vec<u32> = each(side.taken()).collect();
        if highest_first {
            places.reverse();
        }
        let parts = places.into_iter().map(|place| format!("{}:{}", name(place), side.count(place)));
        let off = (side.off() > 0).then(|| format!("off:{}", side.off()));
        parts.chain(off).collect::<Vec<_>>().join(",")
    });
    format!("x={x} o={o} turn={}", mark(mover))
}

/// Reads the words `x=`, `o=` and `turn=`. `read_place` reads the name of a place; where it gives no error of its own,
/// the text is not of the `form`. `point` is what the game calls a place on the board.
pub(crate) fn read_sides(
    words: &Words<'_>,
    form: &str,
    point: &str,
    read_place: impl Fn(&str) -> Result<u32, Option<Error>>,
) -> Result<([Side; 2], Player), Error> {
    let mut sides = [Side::NONE; 2];
    for (side, whose) in sides.iter_mut().zip(["x", "o"]) {
        let mut off = 0;
        for part in words.needed(whose)?.split(',').filter(|part| !part.is_empty()) {
            let wrong = || invalid!("{whose} has {}: expected {form}", shown(part));
            let (name, number) = part.split_once(':').ok_or_else(wrong)?;
            let number = u32::from(read_number("", number, 1, CHECKERS as u16).map_err(|_| wrong())?);
            if side.on_board() + off + number > CHECKERS {
                return Err(invalid!("{whose} has more than {CHECKERS} checkers"));
            }
            if name == "off" {
                off += number;
                continue;
            }
            let place = read_place(name).map_err(|error| error.unwrap_or_else(wrong))?;
            (0..number).for_each(|_| side.add(place));
        }
        let number = side.on_board() + off;
        if number != CHECKERS {
            return Err(invalid!("{whose} has {number} checkers, including those off; expected {CHECKERS}"));
        }
    }
    check_apart(sides, point)?;
    let turn = words.needed("turn")?;
    let mover = PLAYERS.into_iter().find(|&player| turn == mark(player).to_string());
    Ok((sides, mover.ok_or_else(|| Error::value("turn", "x or o", shown(turn)))?))
}

/// Refuses checkers of both players on one place.
pub(crate) fn check_apart([x, o]: [Side; 2], point: &str) -> Result<(), Error> {
    match each(x.taken() & from_other_side(o.taken())).next() {
        Some(place) => Err(invalid!("x's {point} {} has checkers of both players", place + 1)),
        None => Ok(()),
    }
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
