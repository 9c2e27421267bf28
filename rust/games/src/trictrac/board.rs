//! Fields as sets of bits, bit f - 1 for field f, and how many checkers of a side stand on them.
//!
//! Each side is numbered from its own talon, so checkers run from bit 0 up.

use crate::tables::{POINTS, Side};

/// All fields.
pub(super) const FIELDS: u32 = POINTS;
pub(super) const TALON: u32 = 1;
/// The own corner and the other player's, fields 12 and 13.
pub(super) const CORNER: u32 = 1 << 11;
pub(super) const HIS_CORNER: u32 = 1 << 12;
/// The last six fields: checkers leave once all are there.
pub(super) const HOME: u32 = RETURN;
const SMALL: u32 = 0x3f;
const BIG: u32 = SMALL << 6;
const RETURN: u32 = SMALL << 18;
/// The jans that can be full.
pub(super) const JANS: [u32; 3] = [SMALL, BIG, RETURN];
/// Where a player must not stay while the other one can still fill the small jan, and the big one.
pub(super) const HIS_JANS: [u32; 2] = [RETURN, SMALL << 12];

/// Fields with at least 1, 2 and 3 checkers.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    pub(super) one: u32,
    pub(super) two: u32,
    pub(super) three: u32,
}

impl Levels {
    #[inline]
    pub(super) fn of(side: Side) -> Self {
        let (two, four) = (side.many(), side.0[2] | side.0[3]);
        Self { one: side.taken(), two, three: side.0[0] & side.0[1] | four }
    }

    /// What the levels are after a step between two fields. `four` are the fields that had at least 4 checkers.
    #[inline]
    pub(super) fn after(self, four: u32, from: u32, to: u32) -> Self {
        let one = self.one & !(from & !self.two);
        let two = self.two & !(from & !self.three);
        let three = self.three & !(from & !four);
        Self { one: one | to, two: two | to & one, three: three | to & two }
    }

    /// Whether each field of a jan has two checkers.
    #[inline]
    pub(super) fn fills(self, jan: u32) -> bool {
        jan & !self.two == 0
    }

    /// How many checkers a jan lacks, if these are at most two.
    #[inline]
    pub(super) fn lacking(self, jan: u32) -> Option<u32> {
        let (empty, blots) = (jan & !self.one, jan & self.one & !self.two);
        match (empty, blots) {
            (0, 0) => Some(0),
            (0, blots) if is_single(blots) => Some(1),
            (0, blots) if is_single(blots & (blots - 1)) => Some(2),
            (empty, 0) if is_single(empty) => Some(2),
            _ => None,
        }
    }
}

/// Whether a set of fields has exactly one.
#[inline]
pub(super) fn is_single(set: u32) -> bool {
    set != 0 && set & (set - 1) == 0
}

impl Side {
    /// All checkers on the talon.
    pub(super) const ALL_AT_TALON: Self = Self([TALON; 4]);

    /// Moves a checker forward, off the board where the die takes it there.
    #[inline]
    pub(super) fn step(&mut self, place: u32, die: u32) {
        self.remove(place);
        if place + die < 24 {
            self.add(place + die);
        }
    }

    /// Whether the small jan can still be filled, and the big one: no checker goes back, so each field and those behind
    /// it have two checkers for each field of the jan up to there.
    pub(super) fn can_fill(self) -> [bool; 2] {
        let (mut sum, mut can) = (0, [true; 2]);
        for place in 0..12 {
            sum += self.count(place);
            can[place as usize / 6] &= sum >= 2 * (place % 6 + 1);
        }
        can
    }
}
