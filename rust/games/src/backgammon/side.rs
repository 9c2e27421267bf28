//! One player's checkers, and where a die can take them: sets of places as bits.

use crate::tables::Side;

/// The points and the bar.
pub(super) const PLACES: usize = 25;
pub(super) const BAR: u32 = 24;
const HOME: u32 = (1 << 6) - 1;

impl Side {
    /// Two on 24, five on 13, three on 8, five on 6.
    pub(super) const START: Self = Self([1 << 12 | 1 << 7 | 1 << 5, 1 << 23 | 1 << 7, 1 << 12 | 1 << 5, 0]);

    /// Moves a checker, off the board where the die takes it there.
    #[inline]
    pub(super) fn advance(&mut self, place: u32, die: u32) {
        self.remove(place);
        if place >= die {
            self.add(place - die);
        }
    }
}

/// Places from which a checker can go by `die`: `taken` are those of the player, `open` the points with at most one
/// enemy.
#[inline]
pub(super) fn sources(taken: u32, open: u32, die: u32) -> u32 {
    let onward = taken & open << die;
    if taken >> BAR & 1 == 1 {
        return onward & 1 << BAR;
    }
    if taken & !HOME != 0 || taken == 0 {
        return onward;
    }
    // All home: from the die's own point, or from the highest taken one if that is nearer.
    let highest = 31 - taken.leading_zeros();
    onward | taken & 1 << highest.min(die - 1)
}

/// The places taken after a move; `many` are those that stay taken without one checker.
#[inline]
pub(super) fn taken_after(taken: u32, many: u32, place: u32, die: u32) -> u32 {
    let from = 1 << place;
    taken & !(from & !many) | from >> die
}
