//! One player's checkers, and where a die can take them: sets of places as bits.

/// The points and the bar.
pub(super) const PLACES: usize = 25;
pub(super) const BAR: u32 = 24;
pub(super) const POINTS: u32 = (1 << 24) - 1;
pub(super) const CHECKERS: u32 = 15;
const HOME: u32 = (1 << 6) - 1;

/// A player's checkers on the board and the bar: the number on place p is made of bit p of the four words, the lowest
/// first. Adding and counting then need no memory but these, and which places are taken is three ORs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Side(pub(super) [u32; 4]);

impl Side {
    pub(super) const NONE: Self = Self([0; 4]);
    /// Two on 24, five on 13, three on 8, five on 6.
    pub(super) const START: Self = Self([1 << 12 | 1 << 7 | 1 << 5, 1 << 23 | 1 << 7, 1 << 12 | 1 << 5, 0]);

    #[inline]
    pub(super) fn taken(self) -> u32 {
        self.0[0] | self.many()
    }

    /// Places with two checkers or more: no enemy enters those that are points.
    #[inline]
    pub(super) fn many(self) -> u32 {
        self.0[1] | self.0[2] | self.0[3]
    }

    #[inline]
    pub(super) fn count(self, place: u32) -> u32 {
        self.0.iter().rev().fold(0, |count, word| 2 * count + (word >> place & 1))
    }

    #[inline]
    pub(super) fn on_board(self) -> u32 {
        self.0.iter().rev().fold(0, |count, word| 2 * count + word.count_ones())
    }

    #[inline]
    pub(super) fn off(self) -> u32 {
        CHECKERS - self.on_board()
    }

    #[inline]
    pub(super) fn add(&mut self, place: u32) {
        let mut carry = 1 << place;
        for word in &mut self.0 {
            *word ^= carry;
            carry &= !*word;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        debug_assert!(self.taken() >> place & 1 == 1);
        let mut borrow = 1 << place;
        for word in &mut self.0 {
            *word ^= borrow;
            borrow &= *word;
        }
    }

    /// Moves a checker, off the board where the die takes it there.
    #[inline]
    pub(super) fn advance(&mut self, place: u32, die: u32) {
        self.remove(place);
        if place >= die {
            self.add(place - die);
        }
    }
}

/// Places of one player as the other one numbers them.
#[inline]
pub(super) fn from_other_side(points: u32) -> u32 {
    (points & POINTS).reverse_bits() >> 8
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

/// `place` and those below it.
#[inline]
pub(super) fn up_to(place: u32) -> u32 {
    (2 << place) - 1
}

/// The places of a set, ascending.
#[inline]
pub(super) fn each(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(place)
    })
}
