//! Sets of cells of a board, one bit each: for boards of more than 64 cells.

use std::array;

/// A set of cells below `64 * WORDS`: cell `i` is bit `i % 64` of word `i / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cells<const WORDS: usize>(pub(crate) [u64; WORDS]);

impl<const WORDS: usize> Cells<WORDS> {
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// The cells below `count`.
    pub(crate) fn below(count: usize) -> Self {
        debug_assert!(count <= 64 * WORDS);
        Self(array::from_fn(|word| match count.saturating_sub(64 * word) {
            0 => 0,
            rest => u64::MAX >> (64 - rest.min(64)),
        }))
    }

    pub(crate) const fn with(mut self, cell: usize) -> Self {
        self.0[cell / 64] |= 1 << (cell % 64);
        self
    }

    #[inline]
    pub(crate) fn meets(self, other: Self) -> bool {
        !self.and(other).is_empty()
    }

    #[inline]
    pub(crate) fn has(&self, cell: usize) -> bool {
        self.0[cell / 64] >> (cell % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, cell: usize) {
        self.0[cell / 64] |= 1 << (cell % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, cell: usize) {
        self.0[cell / 64] &= !(1 << (cell % 64));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(array::from_fn(|word| self.0[word] & other.0[word]))
    }

    #[inline]
    pub(crate) fn without(self, other: Self) -> Self {
        Self(array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Every cell's number higher by `by`, from 1 to 63; numbers that no word holds are lost.
    #[inline]
    pub(crate) fn plus(self, by: usize) -> Self {
        let carry = |word: usize| if word == 0 { 0 } else { self.0[word - 1] >> (64 - by) };
        Self(array::from_fn(|word| self.0[word] << by | carry(word)))
    }

    /// Every cell's number lower by `by`, from 1 to 63; those below 0 are lost.
    #[inline]
    pub(crate) fn minus(self, by: usize) -> Self {
        let carry = |word: usize| if word + 1 == WORDS { 0 } else { self.0[word + 1] << (64 - by) };
        Self(array::from_fn(|word| self.0[word] >> by | carry(word)))
    }

    /// Calls `visit` with each cell, ascending.
    #[inline]
    pub(crate) fn for_each(self, mut visit: impl FnMut(usize)) {
        for (index, mut word) in self.0.into_iter().enumerate() {
            while word != 0 {
                visit(64 * index + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }
}
