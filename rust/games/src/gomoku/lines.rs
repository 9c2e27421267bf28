//! A player's stones by line: each row, column and diagonal is a word, so that k in a row are found without a walk.
//!
//! Diagonals come two to a word, as a long one and a short one have as many cells together as the board has rows. The
//! bit between them belongs to no cell.

use crate::cells::Cells;

use super::{MAX_SIZE, WORDS};

/// Rows, columns, diagonals down to the right, diagonals down to the left.
const KINDS: usize = 4;

/// The lines of a cell. By kind: the number of the line, and the cell's bit there.
#[derive(Clone, Copy)]
struct CellLines {
    line: [u8; KINDS],
    bit: [u8; KINDS],
}

impl CellLines {
    const fn of(size: usize, cell: usize) -> Self {
        let (row, column) = (cell / size, cell % size);
        // Leaving the board on one side, a diagonal comes back on the other, as another one.
        let (down_right, down_left) = (column + size - row, column + row);
        Self {
            line: [row as u8, column as u8, (down_right % size) as u8, (down_left % size) as u8],
            bit: [
                column as u8,
                row as u8,
                (row + (down_right < size) as usize) as u8,
                (row + (down_left >= size) as usize) as u8,
            ],
        }
    }
}

/// By size and cell.
static CELL_LINES: [[CellLines; MAX_SIZE * MAX_SIZE]; MAX_SIZE + 1] = {
    let mut all = [[CellLines { line: [0; KINDS], bit: [0; KINDS] }; MAX_SIZE * MAX_SIZE]; MAX_SIZE + 1];
    let mut size = 1;
    while size <= MAX_SIZE {
        let mut cell = 0;
        while cell < size * size {
            all[size][cell] = CellLines::of(size, cell);
            cell += 1;
        }
        size += 1;
    }
    all
};

/// By kind and number: the stones on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lines([[u32; MAX_SIZE]; KINDS]);

impl Lines {
    pub(super) const NONE: Self = Self([[0; MAX_SIZE]; KINDS]);

    pub(super) fn of(size: usize, stones: Cells<WORDS>) -> Self {
        let mut lines = Self::NONE;
        stones.for_each(|cell| {
            lines.add(size, cell, 1);
        });
        lines
    }

    /// Puts a stone on a cell. Returns whether there are `k` in a row on one of the cell's lines.
    #[inline]
    pub(super) fn add(&mut self, size: usize, cell: usize, k: usize) -> bool {
        let place = &CELL_LINES[size][cell];
        let mut through = [0; KINDS];
        for (kind, lines) in self.0.iter_mut().enumerate() {
            let line = &mut lines[usize::from(place.line[kind])];
            *line |= 1 << place.bit[kind];
            through[kind] = *line;
        }
        has_row(through, k)
    }

    /// Whether there are `k` in a row anywhere.
    pub(super) fn has_row(&self, k: usize) -> bool {
        (0..MAX_SIZE).any(|number| has_row(self.0.map(|lines| lines[number]), k))
    }
}

/// Whether one of these lines has `k` stones in a row.
#[inline]
fn has_row(mut lines: [u32; KINDS], k: usize) -> bool {
    // A bit says that so many stones in a row begin there.
    let mut stones = 1;
    while stones < k {
        let more = stones.min(k - stones);
        for line in &mut lines {
            *line &= *line >> more;
        }
        stones += more;
    }
    lines != [0; KINDS]
}
