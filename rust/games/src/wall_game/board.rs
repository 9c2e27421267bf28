//! The board of the Wall Game: which edges between cells are closed, how far it is from cell to cell, and which walls
//! would cut two cells apart.
//!
//! A cell is `column * rows + row`, row 0 = top. A slot is an edge between two neighbours, where a wall may stand:
//! `cell` for the right edge of a cell, `cells + cell` for its bottom edge. Those of the last column and row are the
//! rim, which is closed and is no wall. Directions are 0 right, 1 down, 2 left, 3 up.
//!
//! Invariant: every edge that is not between two cells of the board is closed.

use std::array;

use crate::cells::{Cells, nth_bit};
use crate::planes::put_bits;

/// Columns at most, and rows.
pub(super) const MAX_SIDE: usize = 20;
const MAX_CELLS: usize = MAX_SIDE * MAX_SIDE;
const WORDS: usize = (MAX_CELLS + MAX_SIDE).div_ceil(64);
/// The distance of a cell to which no path leads.
pub(super) const FAR: u16 = u16::MAX;

/// The direction back.
#[inline]
pub(super) fn opposite(direction: usize) -> usize {
    direction ^ 2
}

/// A set of edges of one kind: those beside cells, or those below. Number 0 is the left or the top edge of cell 0, and a
/// step to the right or down adds as much as it does to the cell's number: a cell's right edge is its right neighbour's
/// left one.
type Edges = Cells<WORDS>;

/// A word of the set in which every edge's number is higher by `by`, from 1 to 63.
#[inline]
fn raised(edges: &Edges, word: usize, by: usize) -> u64 {
    let below = if word == 0 { 0 } else { edges.0[word - 1] };
    edges.0[word] << by | below >> (64 - by)
}

/// A word of the set in which every edge's number is lower by `by`, from 1 to 63.
#[inline]
fn lowered(edges: &Edges, word: usize, by: usize) -> u64 {
    let above = edges.0.get(word + 1).map_or(0, |&above| above);
    edges.0[word] >> by | above << (64 - by)
}

/// By number of rows: the edges that are the left and the upper rim of a board with at most so many cells as there can
/// be. What joins the lower rim of a column is the upper one of the next.
static RIMS: [[Edges; 2]; MAX_SIDE + 1] = {
    let mut rims = [[Edges::NONE; 2]; MAX_SIDE + 1];
    let mut rows = 1;
    while rows <= MAX_SIDE {
        let mut edge = 0;
        while edge < MAX_CELLS {
            if edge < rows {
                rims[rows][0].0[edge / 64] |= 1 << (edge % 64);
            }
            if edge % rows == 0 {
                rims[rows][1].0[edge / 64] |= 1 << (edge % 64);
            }
            edge += 1;
        }
        rows += 1;
    }
    rims
};

/// A set of slots where a wall may be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// Those beside cells and those below.
    edges: [Edges; 2],
    /// What a step to the right and down adds to a cell's number.
    strides: [usize; 2],
    cells: usize,
}

impl Slots {
    pub(super) fn is_empty(&self) -> bool {
        self.edges.iter().all(Edges::is_empty)
    }

    /// The words of both kinds, each with the number of the slot that its lowest bit stands for. Open edges have a cell
    /// on either side: none has a number below a stride, so no slot's number is below 0.
    #[inline]
    fn words(&self) -> impl Iterator<Item = (isize, u64)> {
        self.edges.iter().enumerate().flat_map(|(kind, edges)| {
            let first = (kind * self.cells) as isize - self.strides[kind] as isize;
            let used = &edges.0[..self.cells.div_ceil(64)];
            used.iter().enumerate().map(move |(index, &word)| (first + 64 * index as isize, word))
        })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.words().map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Slot number `index` of the set, from 0, ascending, if there are so many.
    #[inline]
    pub(super) fn nth(&self, mut index: usize) -> Option<usize> {
        for (first, word) in self.words() {
            let count = word.count_ones() as usize;
            if index < count {
                return Some((first + nth_bit(word, index as u64) as isize) as usize);
            }
            index -= count;
        }
        None
    }

    /// Calls `visit` with each slot, ascending.
    #[inline]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (first, mut word) in self.words() {
            while word != 0 {
                visit((first + word.trailing_zeros() as isize) as usize);
                word &= word - 1;
            }
        }
    }
}

/// A way from a cell to another one over whatever walls: along the first one's column, then along the other one's row.
/// Each part has the first of the numbers that it crosses, and how many there are.
#[derive(Clone, Copy)]
struct Bend {
    column: usize,
    rows: [usize; 2],
    row: usize,
    columns: [usize; 2],
}

impl Bend {
    fn new([from, to]: [usize; 2], rows: usize) -> Self {
        let ((column, start), (goal, row)) = ((from / rows, from % rows), (to / rows, to % rows));
        Self {
            column,
            rows: [start.min(row) + 1, start.abs_diff(row)],
            row,
            columns: [column.min(goal) + 1, column.abs_diff(goal)],
        }
    }

    /// Whether it crosses the edge on the left of this cell, or the one above.
    #[inline]
    fn crosses(&self, kind: usize, column: usize, row: usize) -> bool {
        // What lies before the first one wraps around to a large number.
        if kind == 0 {
            (row == self.row) & (column.wrapping_sub(self.columns[0]) < self.columns[1])
        } else {
            (column == self.column) & (row.wrapping_sub(self.rows[0]) < self.rows[1])
        }
    }
}

/// The corners of cells, in sets that walls and the rim join. Corner `column * (rows + 1) + row` is the top left one of a
/// cell, or lies on the right or the lower rim. Of each two corners of a set it is known whether the walls that join them
/// cross each of two bends an odd number of times. (The rim crosses none.)
struct Corners {
    /// A corner of the set nearer to the one that names it, which is its own; above that, a bit for each bend: whether it
    /// is crossed an odd number of times on the way there.
    parents: [u16; (MAX_SIDE + 1) * (MAX_SIDE + 1)],
    bends: [Bend; 2],
    rows: usize,
    /// 2^16 / rows, rounded up: numbers of edges are divided by multiplying with it.
    inverse: usize,
}

/// Questions about so many edges are answered sooner once every corner knows its set's name (November 2026).
const MANY: u32 = 16;

/// Above the number of a corner: the bits of the bends.
const ODD: u16 = 0b11 << 14;

impl Corners {
    /// Those of the rim are one set.
    fn new(columns: usize, rows: usize, bends: [Bend; 2]) -> Self {
        let mut parents = const {
            let mut each = [0; (MAX_SIDE + 1) * (MAX_SIDE + 1)];
            let mut corner = 0;
            while corner < each.len() {
                each[corner] = corner as u16;
                corner += 1;
            }
            each
        };
        let height = rows + 1;
        parents[..height].fill(0);
        parents[columns * height..][..height].fill(0);
        for column in 1..columns {
            parents[column * height] = 0;
            parents[column * height + rows] = 0;
        }
        Self { parents, bends, rows, inverse: (1 << 16) / rows + 1 }
    }

    /// The corner that names a corner's set, and above that what the way there crosses.
    #[inline]
    fn set_of(&mut self, mut corner: usize) -> u16 {
        let mut crossed = 0;
        loop {
            let parent = self.parents[corner];
            let next = usize::from(parent & !ODD);
            if next == corner {
                return parent ^ crossed;
            }
            let shorter = self.parents[next] ^ (parent & ODD);
            self.parents[corner] = shorter;
            crossed ^= shorter & ODD;
            corner = usize::from(shorter & !ODD);
        }
    }

    /// The sets of the two corners that an edge lies between, and what is crossed on the way from the name of the one over
    /// the edge to the name of the other one.
    #[inline]
    fn ends(&mut self, kind: usize, edge: usize) -> [u16; 3] {
        // The inverse is too large by at most 1, and the result by less than 448 / 2^16: not as much as 1 / rows.
        let column = (edge * self.inverse) >> 16;
        let (corner, row) = (edge + column, edge - column * self.rows);
        let crossed = u16::from(self.bends[0].crosses(kind, column, row)) << 14
            | u16::from(self.bends[1].crosses(kind, column, row)) << 15;
        let (one, other) = (self.set_of(corner), self.set_of(corner + [1, self.rows + 1][kind]));
        [one & !ODD, other & !ODD, (one ^ other) & ODD ^ crossed]
    }

    /// Notes that an edge is closed.
    #[inline]
    fn join(&mut self, kind: usize, edge: usize) {
        let [one, other, crossed] = self.ends(kind, edge);
        if one != other {
            self.parents[usize::from(one.max(other))] = one.min(other) | crossed;
        }
    }

    /// Makes every corner's parent the one that names its set.
    fn flatten(&mut self, columns: usize) {
        // Parents come before their children.
        for corner in 0..(columns + 1) * (self.rows + 1) {
            let parent = self.parents[corner];
            self.parents[corner] = self.parents[usize::from(parent & !ODD)] ^ (parent & ODD);
        }
    }

    /// Whether a wall on an open edge would close a ring that crosses one of the bends an odd number of times.
    #[inline]
    fn parts(&mut self, kind: usize, edge: usize) -> bool {
        let [one, other, crossed] = self.ends(kind, edge);
        (one == other) & (crossed != 0)
    }
}

/// Columns, rows and closed edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Board {
    /// Those beside cells and those below.
    closed: [Edges; 2],
    columns: u8,
    rows: u8,
}

impl Board {
    /// A board without walls.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        debug_assert!(columns <= MAX_SIDE && rows <= MAX_SIDE);
        let closed = [Cells([u64::MAX; WORDS]); 2];
        let mut board = Self { closed, columns: columns as u8, rows: rows as u8 };
        for slot in 0..2 * board.cells() {
            if board.is_slot(slot) {
                board.tear_down(slot);
            }
        }
        board
    }

    #[inline]
    pub(super) fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    #[inline]
    pub(super) fn rows(&self) -> usize {
        usize::from(self.rows)
    }

    #[inline]
    pub(super) fn cells(&self) -> usize {
        self.columns() * self.rows()
    }

    #[inline]
    fn strides(&self) -> [usize; 2] {
        [self.rows(), 1]
    }

    /// The kind and number of a slot's edge.
    #[inline]
    fn edge_of(&self, slot: usize) -> (usize, usize) {
        let kind = usize::from(slot >= self.cells());
        (kind, slot - kind * self.cells() + self.strides()[kind])
    }

    /// Whether a wall can stand there at all: the edge is between two cells.
    pub(super) fn is_slot(&self, slot: usize) -> bool {
        let (cells, rows) = (self.cells(), self.rows());
        if slot < cells { slot + rows < cells } else { slot < 2 * cells && (slot - cells) % rows + 1 < rows }
    }

    /// Whether the edge is closed, by a wall or as a part of the rim.
    #[inline]
    pub(super) fn is_closed(&self, slot: usize) -> bool {
        let (kind, edge) = self.edge_of(slot);
        self.closed[kind].has(edge)
    }

    #[inline]
    pub(super) fn build(&mut self, slot: usize) {
        let (kind, edge) = self.edge_of(slot);
        self.closed[kind].insert(edge);
    }

    /// Takes a wall away again.
    pub(super) fn tear_down(&mut self, slot: usize) {
        let (kind, edge) = self.edge_of(slot);
        self.closed[kind].remove(edge);
    }

    /// The slots with a wall, ascending.
    pub(super) fn walls(&self) -> impl Iterator<Item = usize> {
        (0..2 * self.cells()).filter(|&slot| self.is_slot(slot) && self.is_closed(slot))
    }

    /// Directions in which no edge of the cell is closed, one bit each.
    #[inline]
    pub(super) fn open(&self, cell: usize) -> u8 {
        let ([beside, below], [right, down]) = (&self.closed, self.strides());
        let closed = [beside.has(cell + right), below.has(cell + down), beside.has(cell), below.has(cell)];
        let [right, down, left, up] = closed.map(u8::from);
        !(right | down << 1 | left << 2 | up << 3) & 0b1111
    }

    /// The cell one step away, over an edge that is open.
    #[inline]
    pub(super) fn neighbour(&self, cell: usize, direction: usize) -> usize {
        let stride = self.strides()[direction % 2];
        if direction < 2 { cell + stride } else { cell - stride }
    }

    /// The cells to which a shortest path from a cell has 0 steps, 1 step and so on, as long as there are some. `N` words
    /// hold the board.
    fn layers<const N: usize>(&self, from: usize) -> impl Iterator<Item = Cells<N>> {
        let (rows, [beside, below]) = (self.rows(), self.closed);
        let [beside, below] = [beside, below].map(|edges| Cells::<N>(array::from_fn(|word| edges.0[word])));
        let (mut new, mut left) = (Cells::NONE.with(from), Cells([u64::MAX; N]));
        std::iter::from_fn(move || {
            let layer = new;
            left = left.without(layer);
            // What leaves the words leaves the board, whose rim is closed.
            let [right, down] = [layer.plus(rows).without(beside), layer.plus(1).without(below)];
            let back = layer.without(beside).minus(rows).or(layer.without(below).minus(1));
            new = right.or(down).or(back).and(left);
            (!layer.is_empty()).then_some(layer)
        })
    }

    /// Writes the length of the shortest path from a cell to each cell, divided by the number of cells; 1 where no path
    /// leads.
    pub(super) fn put_distances(&self, from: usize, plane: &mut [f32]) {
        fn put<const N: usize>(board: &Board, from: usize, plane: &mut [f32]) {
            plane.fill(1.0);
            for (distance, layer) in (0_u16..).zip(board.layers::<N>(from)) {
                let value = f32::from(distance) / board.cells() as f32;
                layer.for_each(|cell| plane[cell] = value);
            }
        }
        match self.cells().div_ceil(64) {
            1 => put::<1>(self, from, plane),
            2 => put::<2>(self, from, plane),
            _ => put::<WORDS>(self, from, plane),
        }
    }

    /// Writes 1 for the cells whose right edge, or whose bottom edge, is closed, and 0 for the others.
    pub(super) fn put_closed(&self, [right, below]: [&mut [f32]; 2]) {
        for ((edges, stride), plane) in self.closed.iter().zip(self.strides()).zip([right, below]) {
            put_bits(plane, &array::from_fn::<_, WORDS, _>(|word| lowered(edges, word, stride)));
        }
    }

    /// The length of the shortest path between two cells, or [`FAR`].
    pub(super) fn distance(&self, from: usize, to: usize) -> u16 {
        self.layers::<WORDS>(from).position(|layer| layer.has(to)).map_or(FAR, |steps| steps as u16)
    }

    /// The slots where a wall may be built: those open, but for those where a wall would part a pair. The cells of a pair
    /// must be connected.
    ///
    /// A wall closes a ring where walls and rim already join the corners at its two ends. The ring parts two cells just
    /// where a line between them, whichever it is, crosses it an odd number of times (Jordan's curve theorem; the rim
    /// counts as one point). Rings that are closed already part no pair, so which way a ring takes makes no difference.
    pub(super) fn buildable(&self, pairs: [[usize; 2]; 2]) -> Slots {
        let (touched, mut closed) = (self.touched(), self.closed);
        let (mut count, words) = (0, self.cells().div_ceil(64));
        for edges in &touched {
            for word in &edges.0[..words] {
                count += word.count_ones();
            }
        }
        if count > 0 {
            let [one, other] = pairs;
            let mut corners = self.joined_corners([Bend::new(one, self.rows()), Bend::new(other, self.rows())]);
            if count > MANY {
                corners.flatten(self.columns());
            }
            for kind in 0..2 {
                for index in 0..words {
                    let mut left = touched[kind].0[index];
                    while left != 0 {
                        let place = left.trailing_zeros();
                        left &= left - 1;
                        let parts = corners.parts(kind, 64 * index + place as usize);
                        closed[kind].0[index] |= u64::from(parts) << place;
                    }
                }
            }
        }
        let edges = closed.map(|edges| Cells(array::from_fn(|word| !edges.0[word])));
        Slots { edges, strides: self.strides(), cells: self.cells() }
    }

    /// The open edges with a wall or the rim at either corner, and maybe some others.
    fn touched(&self) -> [Edges; 2] {
        let ([beside, below], rows) = (&self.closed, self.rows());
        let mut touched = [Edges::NONE; 2];
        for word in 0..self.cells().div_ceil(64) {
            // An upright edge goes from its cell's top left corner down: four edges meet there, and at the other end.
            let top = raised(beside, word, 1) | raised(below, word, rows) | below.0[word];
            let bottom = lowered(beside, word, 1) | raised(below, word, rows - 1) | lowered(below, word, 1);
            touched[0].0[word] = top & bottom & !beside.0[word];
            // A lying one goes from there to the right.
            let left = raised(beside, word, 1) | beside.0[word] | raised(below, word, rows);
            let right = lowered(beside, word, rows - 1) | lowered(beside, word, rows) | lowered(below, word, rows);
            touched[1].0[word] = left & right & !below.0[word];
        }
        touched
    }

    /// What the walls join.
    fn joined_corners(&self, bends: [Bend; 2]) -> Corners {
        let (rows, cells) = (self.rows(), self.cells());
        let mut corners = Corners::new(self.columns(), rows, bends);
        for (kind, edges) in self.closed.iter().enumerate() {
            for index in 0..cells.div_ceil(64) {
                let mut word = edges.0[index] & !RIMS[rows][kind].0[index];
                if 64 * (index + 1) > cells {
                    // Above the board all bits are set.
                    word &= (1 << (cells % 64)) - 1;
                }
                while word != 0 {
                    corners.join(kind, 64 * index + word.trailing_zeros() as usize);
                    word &= word - 1;
                }
            }
        }
        corners
    }

    /// Where a slot goes; a symmetry maps the rim to the rim.
    pub(super) fn image_of_slot(&self, symmetry: usize, slot: usize) -> usize {
        let (kind, cell) = (slot / self.cells(), slot % self.cells());
        let image = self.image(symmetry, cell, [usize::from(kind == 0), usize::from(kind == 1)]);
        (kind ^ (symmetry >> 2 & 1)) * self.cells() + image
    }

    /// Where a cell goes.
    pub(super) fn image_of_cell(&self, symmetry: usize, cell: usize) -> usize {
        self.image(symmetry, cell, [0, 0])
    }

    /// Where a cell goes, or the cell of a slot: `beside` and `below` say whether the slot is its right or its lower edge.
    fn image(&self, symmetry: usize, cell: usize, [beside, below]: [usize; 2]) -> usize {
        let [columns, rows] = [self.columns(), self.rows()];
        let (mut column, mut row) = (cell / rows, cell % rows);
        // The mirror image of a cell's right edge is the left edge of the image: the right one of the cell before. The
        // rim, which is no slot, stays where it is.
        if symmetry & 1 != 0 {
            column = (2 * columns - 1 - beside - column) % columns;
        }
        if symmetry & 2 != 0 {
            row = (2 * rows - 1 - below - row) % rows;
        }
        if symmetry & 4 != 0 {
            (column, row) = (row, column);
        }
        column * rows + row
    }

    /// All that tells boards of one size apart.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let last = |kind: usize| (self.cells() + self.strides()[kind] - 1) / 64;
        let used = move |kind: usize| self.closed[kind].0.into_iter().take(last(kind) + 1);
        used(0).chain(used(1))
    }
}

/// Where a direction goes. Bit 0 of a symmetry mirrors the columns, bit 1 the rows, bit 2 then swaps columns and rows.
pub(super) fn image_of_direction(symmetry: usize, mut direction: usize) -> usize {
    let mirrored = symmetry >> (direction % 2) & 1;
    if mirrored == 1 {
        direction = opposite(direction);
    }
    if symmetry & 4 != 0 { direction ^ 1 } else { direction }
}
