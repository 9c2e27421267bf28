//! Sets of cells of a board, one bit each: for boards of more than 64 cells.

const BYTES: u64 = 0x0101_0101_0101_0101;

/// By byte: how many bits are set in it and below it.
#[inline]
fn sums_of_bytes(bits: u64) -> u64 {
    let pairs = bits - ((bits >> 1) & (0x55 * BYTES));
    let fours = (pairs & (0x33 * BYTES)) + ((pairs >> 2) & (0x33 * BYTES));
    ((fours + (fours >> 4)) & (0x0f * BYTES)).wrapping_mul(BYTES)
}

/// By byte: the places of its set bits, ascending. No loop finds them, whose end would be guessed wrong.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < places.len() {
        let (mut place, mut found) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                places[byte][found] = place;
                found += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    places
};

/// The place of set bit number `left`, from 0. There must be one (Vigna 2008, without the processor's own counting,
/// which not every x86-64 has).
#[inline]
pub(crate) fn nth_bit(bits: u64, left: u64) -> usize {
    let sums = sums_of_bytes(bits);
    // The top bit of a byte says that all up to this byte are too few; no sum is above 64.
    let few = ((((left * BYTES) | (0x80 * BYTES)) - sums) >> 7) & BYTES;
    let place = 8 * (few.wrapping_mul(BYTES) >> 56);
    let left = left - (((sums << 8) >> place) & 0xff);
    place as usize + usize::from(PLACES[(bits >> place) as usize & 0xff][left as usize & 7])
}

/// A set of cells below `64 * WORDS`: cell `i` is bit `i % 64` of word `i / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cells<const WORDS: usize>(pub(crate) [u64; WORDS]);

impl<const WORDS: usize> Cells<WORDS> {
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// The cells below `count`.
    pub(crate) fn below(count: usize) -> Self {
        debug_assert!(count <= 64 * WORDS);
        let mut cells = Self::NONE;
        for (word, bits) in cells.0.iter_mut().enumerate() {
            *bits = match count.saturating_sub(64 * word) {
                0 => 0,
                rest => u64::MAX >> (64 - rest.min(64)),
            };
        }
        cells
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
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// A set made of these two word by word. A loop: `array::from_fn` leaves calls where the whole program is not optimised.
    #[inline]
    fn zip(mut self, other: Self, word: impl Fn(u64, u64) -> u64) -> Self {
        for index in 0..WORDS {
            self.0[index] = word(self.0[index], other.0[index]);
        }
        self
    }

    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        self.zip(other, |own, other| own | other)
    }

    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        self.zip(other, |own, other| own & other)
    }

    #[inline]
    pub(crate) fn without(self, other: Self) -> Self {
        self.zip(other, |own, other| own & !other)
    }

    #[inline]
    pub(crate) fn xor(self, other: Self) -> Self {
        self.zip(other, |own, other| own ^ other)
    }

    /// Every cell's number higher by `by`, from 1 to 63; numbers that no word holds are lost.
    #[inline]
    pub(crate) fn plus(mut self, by: usize) -> Self {
        let mut carry = 0;
        for word in &mut self.0 {
            let lost = *word >> (64 - by);
            *word = *word << by | carry;
            carry = lost;
        }
        self
    }

    /// Every cell's number lower by `by`, from 1 to 63; those below 0 are lost.
    #[inline]
    pub(crate) fn minus(mut self, by: usize) -> Self {
        let mut carry = 0;
        for word in self.0.iter_mut().rev() {
            let lost = *word << (64 - by);
            *word = *word >> by | carry;
            carry = lost;
        }
        self
    }

    /// Calls `visit` with each cell, ascending.
    #[inline]
    pub(crate) fn for_each(self, mut visit: impl FnMut(usize)) {
        for index in 0..WORDS {
            let mut word = self.0[index];
            while word != 0 {
                visit(64 * index + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }
}

/// A set with the number of its cells in each word, from which one is drawn without a count of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counted<const WORDS: usize> {
    cells: Cells<WORDS>,
    counts: [u8; WORDS],
}

impl<const WORDS: usize> Counted<WORDS> {
    #[inline]
    pub(crate) fn of(cells: Cells<WORDS>) -> Self {
        let mut counts = [0; WORDS];
        for (count, word) in counts.iter_mut().zip(&cells.0) {
            *count = word.count_ones() as u8;
        }
        Self { cells, counts }
    }

    #[inline]
    pub(crate) fn cells(&self) -> Cells<WORDS> {
        self.cells
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let mut len = 0;
        for count in &self.counts {
            len += usize::from(*count);
        }
        len
    }

    /// Removes a cell that is in the set.
    #[inline]
    pub(crate) fn remove(&mut self, cell: usize) {
        debug_assert!(self.cells.has(cell));
        self.cells.remove(cell);
        self.counts[cell / 64] -= 1;
    }

    /// Cell number `index` of the set, from 0, ascending. There must be one.
    #[inline]
    pub(crate) fn nth(&self, index: usize) -> usize {
        debug_assert!(index < self.len());
        // Avoid a branch, which the CPU would mispredict.
        let (mut word, mut before, mut met) = (0, 0, 0);
        for count in &self.counts[..WORDS - 1] {
            met += usize::from(*count);
            let further = index >= met;
            word += usize::from(further);
            before = if further { met } else { before };
        }
        64 * word + nth_bit(self.cells.0[word], (index - before) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_cell_is_the_nth_that_is_visited() {
        let mut bits = 1_u64;
        for round in 0..2_000 {
            let mut cells = Cells([0_u64; 3].map(|_| {
                bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(round);
                // Full, empty, dense and sparse words.
                match bits >> 61 {
                    0 => 0,
                    1 => u64::MAX,
                    2 => bits & bits << 7 & bits << 23,
                    3 => bits | bits << 11,
                    _ => bits ^ bits >> 32,
                }
            }));
            let mut counted = Counted::of(cells);
            for step in 0..3 {
                let mut listed = Vec::new();
                cells.for_each(|cell| listed.push(cell));
                assert_eq!((counted.len(), counted.cells()), (listed.len(), cells));
                for (index, &cell) in listed.iter().enumerate() {
                    assert_eq!(counted.nth(index), cell, "{cells:?}");
                }
                if let Some(&cell) = listed.get(step * listed.len() / 3) {
                    cells.remove(cell);
                    counted.remove(cell);
                    assert_eq!(counted, Counted::of(cells));
                }
            }
        }
    }
}
