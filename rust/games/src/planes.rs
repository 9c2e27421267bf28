//! Symmetries of boards and of the planes drawn on them.
//!
//! One map of cells serves actions and planes, so the two cannot disagree: what stood on `cell` stands on
//! `d4_cell(symmetry, size, cell)` afterwards.

/// The rotations and reflections of a square; number 0 is the identity.
pub(crate) const D4: usize = 8;

/// Where `cell` (row * size + column) goes under one of the [`D4`] symmetries. Bit 0 of the number mirrors the columns,
/// bit 1 mirrors the rows, bit 2 then swaps rows and columns.
#[inline]
pub(crate) fn d4_cell(symmetry: usize, size: usize, cell: usize) -> usize {
    debug_assert!(symmetry < D4 && cell < size * size);
    let (mut row, mut column) = (cell / size, cell % size);
    if symmetry & 1 != 0 {
        column = size - 1 - column;
    }
    if symmetry & 2 != 0 {
        row = size - 1 - row;
    }
    if symmetry & 4 != 0 {
        (row, column) = (column, row);
    }
    row * size + column
}

/// The eight bits of each byte as numbers.
static BITS: [[f32; 8]; 256] = {
    let mut bits = [[0.0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut place = 0;
        while place < 8 {
            bits[byte][place] = (byte >> place & 1) as f32;
            place += 1;
        }
        byte += 1;
    }
    bits
};

/// Writes bit `i % 64` of word `i / 64` to cell `i` of a plane, for all its cells: 0 or 1.
#[inline]
pub(crate) fn put_bits(plane: &mut [f32], words: &[u64]) {
    let (whole, rest) = plane.as_chunks_mut::<64>();
    for (cells, word) in whole.iter_mut().zip(words) {
        for (eight, byte) in cells.as_chunks_mut::<8>().0.iter_mut().zip(word.to_le_bytes()) {
            *eight = BITS[usize::from(byte)];
        }
    }
    let mut word = words.get(whole.len()).copied().unwrap_or_default();
    let (eights, rest) = rest.as_chunks_mut::<8>();
    for eight in eights {
        *eight = BITS[word as usize & 0xff];
        word >>= 8;
    }
    // One cell on boards of 9x9, 11x11 and 19x19. To copy it from the table would be a call.
    rest.iter_mut().enumerate().for_each(|(place, cell)| *cell = f32::from((word >> place) as u8 & 1));
}

/// Applies a [`D4`] symmetry to square planes `[C, size, size]`.
pub(crate) fn d4_planes(symmetry: usize, size: usize, planes: &[f32], out: &mut [f32]) {
    let cells = size * size;
    for (plane, out) in planes.chunks_exact(cells).zip(out.chunks_exact_mut(cells)) {
        for (cell, &value) in plane.iter().enumerate() {
            out[d4_cell(symmetry, size, cell)] = value;
        }
    }
}

/// Mirrors the columns of planes `[C, H, width]` under symmetry 1; under the identity, number 0, they stay.
pub(crate) fn mirror_planes(symmetry: usize, width: usize, planes: &[f32], out: &mut [f32]) {
    if symmetry == 0 {
        return out.copy_from_slice(planes);
    }
    for (row, out) in planes.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        for (&value, out) in row.iter().zip(out.iter_mut().rev()) {
            *out = value;
        }
    }
}

/// [`policy_planes`](azpy_core::game::Game::policy_planes) of a game whose actions are the cells of one plane after the
/// other, `placed` in all, and then those without a cell.
pub(crate) fn cells_then(placed: usize, actions: usize) -> Vec<Option<u32>> {
    (0..actions).map(|action| (action < placed).then_some(action as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_words_are_the_cells_of_planes_of_every_size() {
        let words = [0x9e37_79b9_7f4a_7c15, u64::MAX, 0, 0xbf58_476d_1ce4_e5b9_u64.rotate_left(9)];
        for first in 0..3 {
            for cells in 1..=64 * (words.len() - first) {
                let mut plane = vec![f32::NAN; cells];
                put_bits(&mut plane, &words[first..]);
                let bit = |cell: usize| (words[first + cell / 64] >> (cell % 64) & 1) as f32;
                assert_eq!(plane, (0..cells).map(bit).collect::<Vec<_>>(), "{cells} cells from word {first}");
            }
        }
    }
}
