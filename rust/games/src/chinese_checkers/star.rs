//! The star: its cells in rows, their neighbours, its rotations by sixths, and their places in the picture.

use std::sync::LazyLock;

use azpy_core::text::shown;

use crate::cells;
use crate::error::{Error, invalid};
use crate::notation;

pub(super) const CELLS: usize = 121;
/// Rows and columns of the planes.
pub(super) const SIDE: usize = 17;
pub(super) const POINTS: usize = 6;
/// Cells of a point, and pieces of a player.
pub(super) const PIECES: usize = 10;

/// By row: how many cells it has, and the column of the first one in the planes.
#[rustfmt::skip]
pub(super) const ROWS: [(usize, usize); SIDE] = [
    (1, 4), (2, 4), (3, 4), (4, 4), (13, 0), (12, 1), (11, 2), (10, 3), (9, 4), (10, 4), (11, 4), (12, 4), (13, 4),
    (4, 9), (3, 10), (2, 11), (1, 12),
];
/// Rows and columns of a step, clockwise from the upper right.
const STEPS: [(isize, isize); POINTS] = [(-1, 0), (0, 1), (1, 1), (1, 0), (0, -1), (-1, -1)];

pub(super) type Cells = cells::Cells<2>;

/// The geometry of the star.
pub(super) struct Star {
    /// Row and column in the planes, by cell.
    pub(super) places: Vec<(usize, usize)>,
    /// The next cell, by cell and direction.
    pub(super) next: Vec<[Option<usize>; POINTS]>,
    /// By sixths of a turn: where a cell comes to, clockwise.
    pub(super) turned: Vec<Vec<usize>>,
    /// The mirror image of a cell, left for right.
    pub(super) mirrored: Vec<usize>,
    /// By point: its ten cells.
    pub(super) points: Vec<Cells>,
}

pub(super) static STAR: LazyLock<Star> = LazyLock::new(|| {
    let row_of = |(row, &(count, first)): (usize, &(usize, usize))| (first..first + count).map(move |x| (row, x));
    let places: Vec<_> = ROWS.iter().enumerate().flat_map(row_of).collect();
    // Negative numbers wrap to numbers of no cell.
    let at = |row: isize, x: isize| places.iter().position(|&place| place == (row as usize, x as usize));
    let middle = (SIDE / 2) as isize;
    let signed: Vec<_> = places.iter().map(|&(row, x)| (row as isize, x as isize)).collect();
    let next = signed.iter().map(|&(row, x)| STEPS.map(|(down, right)| at(row + down, x + right))).collect();
    let sixth: Vec<_> = signed.iter().filter_map(|&(row, x)| at(x, x - row + middle)).collect();
    let mut turned = vec![(0..CELLS).collect::<Vec<_>>()];
    for point in 1..POINTS {
        let cells = turned[point - 1].iter().map(|&cell: &usize| sixth[cell]).collect();
        turned.push(cells);
    }
    let mirrored = signed.iter().filter_map(|&(row, x)| at(row, row + middle - x)).collect();
    let point = |number: usize| turned[number][..PIECES].iter().fold(Cells::NONE, |cells, &cell| cells.with(cell));
    let points = (0..POINTS).map(point).collect();
    Star { places, next, turned, mirrored, points }
});

/// A cell's letter, counted from the left end of its row, and the number of the row from the top.
pub(super) fn cell_name(cell: usize) -> String {
    let (row, x) = STAR.places[cell];
    notation::cell_name(x - ROWS[row].1, row + 1)
}

pub(super) fn read_cell(word: &str) -> Result<usize, Error> {
    (0..CELLS)
        .find(|&cell| cell_name(cell) == word)
        .ok_or_else(|| invalid!("{} is not a cell of the star", shown(word)))
}

/// Pixels between two cells of a row, and between two rows.
pub(super) const STEP: f32 = 34.0;
pub(super) const DOWN: f32 = 29.44;
pub(super) const RADIUS: f32 = 14.0;

/// From the middles of the outermost cells to the edge of the board.
pub(super) const RIM: f32 = 26.0;

/// The middle of a row and column of the planes in the picture, which has the first point, player 0's, below.
pub(super) fn at(row: usize, x: usize) -> (f32, f32) {
    (RIM + STEP * (10.0 + row as f32 / 2.0 - x as f32), RIM + DOWN * (16.0 - row as f32))
}

/// The middle of a cell of the picture.
pub(super) fn middle(cell: usize) -> (f32, f32) {
    let (row, x) = STAR.places[cell];
    at(row, x)
}
