//! Sets of cells of a board, one bit each: for boards of more than 64 cells.

use std::array;

const BYTES: u64 = 0x0101_0101_0101_0101;

/// By byte: how many bits are set in it and below it.
#[inline]
fn sums_of_bytes(bits: u64) -> u64 {
    let pairs = bits - ((bits >> 1) & (0x55 * BYTES));
    let fours = (pairs & (0x33 * BYTES)) + ((pairs >> 2) & (0x33 * BYTES));
    ((fours + (fours >> 4)) & (0x0f * BYTES)).wrapping_mul(BYTES)
}

/// The place of set bit number `left`, from 0; `sums` are of `bits` (Vigna 2008, without the processor's own counting,
/// which not every x86-64 has).
#[inline]
fn nth_bit(bits: u64, sums: u64, mut left: u64) -> usize {
    // The top bit of a byte says that all up to this byte are too few; no sum is above 64.
    let few = ((((left * BYTES) | (0x80 * BYTES)) - sums) >> 7) & BYTES;
    let place = 8 * (few.wrapping_mul(BYTES) >> 56);
    left -= ((sums << 8) >> place) & 0xff;
    let mut byte = bits >> place;
    for _ in 0..left {
        byte &= byte - 1;
    }
    place as usize + byte.trailing_zeros() as usize
}

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

    /// Cell number `index` of the set, from 0, ascending. There must be one.
    #[inline]
    pub(crate) fn nth(&self, index: usize) -> usize {
        let mut left = index as u64;
        for (word, &bits) in self.0.iter().enumerate() {
            let sums = sums_of_bytes(bits);
            if left < sums >> 56 {
                return 64 * word + nth_bit(bits, sums, left);
            }
            left -= sums >> 56;
        }
        unreachable!("the set has no cell number {index}")
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
