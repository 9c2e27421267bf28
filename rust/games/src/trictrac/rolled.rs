//! A position with its roll, and what a roll allows: what `plays.rs` and `exits.rs` share.

use super::board::{FIELDS, JANS, Levels};
use crate::tables::Side;

/// A position before the first step of a turn, seen by the player to move.
pub(super) struct Rolled {
    pub(super) own: Side,
    /// The own checkers by field, and the fields with at least 4.
    pub(super) levels: Levels,
    pub(super) four: u32,
    /// Fields without a checker of the other side.
    pub(super) open: u32,
    /// The higher die first.
    pub(super) dice: [u32; 2],
    /// Where no own checker may stand at the end of the turn.
    pub(super) forbidden: u32,
    /// The jan that lacks at most two checkers, and how many; no fields if there is none. No two jans do.
    pub(super) jan: u32,
    pub(super) lacking: u32,
}

/// What a roll allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Plays {
    /// How many dice are played.
    pub(super) dice: u8,
    /// From where a legal play begins by the higher die, and by the lower one.
    pub(super) first: [u32; 2],
    pub(super) power: bool,
    /// A play after the second filter takes the last checker off.
    pub(super) exit: bool,
    /// A play after the second filter ends with a full jan.
    pub(super) full: bool,
    /// From where the one checker comes that a jan lacks, in such a play, without leaving a gap.
    pub(super) sources: u32,
}

impl Plays {
    /// Only plays that end with a full jan are legal.
    #[inline]
    pub(super) fn keep_full(&self) -> bool {
        self.full && !self.exit
    }
}

impl Rolled {
    #[inline]
    pub(super) fn new(own: Side, other: u32, dice: [u8; 2], forbidden: u32) -> Self {
        let levels = Levels::of(own);
        let mut found = (0, 0);
        for jan in JANS {
            if let Some(lacking) = levels.lacking(jan) {
                found = (jan, lacking);
            }
        }
        Self {
            own,
            levels,
            four: own.0[2] | own.0[3],
            open: FIELDS & !other,
            dice: dice.map(u32::from),
            forbidden,
            jan: found.0,
            lacking: found.1,
        }
    }

    #[inline]
    pub(super) fn is_double(&self) -> bool {
        self.dice[0] == self.dice[1]
    }

    /// The fields of the one checker that the jan lacks, and the fields that `steps` before it.
    #[inline]
    pub(super) fn lacked(&self) -> u32 {
        if self.lacking == 1 { self.jan & !self.levels.two } else { 0 }
    }
}
