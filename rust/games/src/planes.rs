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
    for (cells, word) in plane.chunks_mut(64).zip(words) {
        let (bytes, (whole, rest)) = (word.to_le_bytes(), cells.as_chunks_mut::<8>());
        let last = whole.len();
        whole.iter_mut().zip(bytes).for_each(|(cells, byte)| *cells = BITS[usize::from(byte)]);
        if !rest.is_empty() {
            // One cell on boards of 9x9, 11x11 and 19x19. To copy it from the table would be a call.
            let byte = bytes[last];
            rest.iter_mut().enumerate().for_each(|(place, cell)| *cell = f32::from(byte >> place & 1));
        }
    }
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
