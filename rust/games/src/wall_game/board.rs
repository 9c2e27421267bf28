//! The board of the Wall Game: which edges between cells are closed, how far it is from cell to cell, and which walls
//! would cut two cells apart.
//!
//! A cell is `column * rows + row`, row 0 = top. A slot is an edge between two neighbours, where a wall may stand:
//! `cell` for the right edge of a cell, `cells + cell` for its bottom edge. Those of the last column and row are the
//! rim, which is closed and is no wall. Directions are 0 right, 1 down, 2 left, 3 up.
//!
//! Invariant: every edge that is not between two cells of the board is closed.

use std::array;

/// Columns at most, and rows.
pub(super) const MAX_SIDE: usize = 20;
pub(super) const MAX_CELLS: usize = MAX_SIDE * MAX_SIDE;
const WORDS: usize = (MAX_CELLS + MAX_SIDE).div_ceil(64);
/// The distance of a cell to which no path leads.
pub(super) const FAR: u16 = u16::MAX;

/// The direction back.
#[inline]
pub(super) fn opposite(direction: usize) -> usize {
    direction ^ 2
}

/// A set of edges of one kind: those beside cells, or those below. Edge `i` is bit `i % 64` of word `i / 64`. Number 0
/// is the left or the top edge of cell 0, and a step to the right or down adds as much as it does to the cell's number:
/// a cell's right edge is its right neighbour's left one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Edges([u64; WORDS]);

impl Edges {
    #[inline]
    fn bit(&self, edge: usize) -> u8 {
        (self.0[edge / 64] >> (edge % 64) & 1) as u8
    }

    #[inline]
    fn insert(&mut self, edge: usize) {
        self.0[edge / 64] |= 1 << (edge % 64);
    }

    fn remove(&mut self, edge: usize) {
        self.0[edge / 64] &= !(1 << (edge % 64));
    }
}

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
        self.edges.iter().all(|edges| edges.0 == [0; WORDS])
    }

    /// Calls `visit` with each slot, ascending.
    #[inline]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (kind, edges) in self.edges.iter().enumerate() {
            let offset = kind * self.cells;
            for (index, mut word) in edges.0.into_iter().enumerate() {
                while word != 0 {
                    // Open edges have a cell on either side: none has a number below a stride.
                    visit(offset + 64 * index + word.trailing_zeros() as usize - self.strides[kind]);
                    word &= word - 1;
                }
            }
        }
    }
}

/// What the search for bridges knows of a cell.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// When it was first met, from 1; 0: not yet.
    order: u16,
    /// The earliest cell that an edge leads to from here or from below, other than the edge by which it was met.
    low: u16,
    /// The directions still to be looked at.
    todo: u8,
    /// The direction to the cell from which it was met.
    back: u8,
    /// A bit for each pair of which one cell is here or below.
    ends: u8,
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
        let closed = [Edges([u64::MAX; WORDS]); 2];
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
        self.closed[kind].bit(edge) == 1
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

    /// [`Board::open`] of every cell.
    pub(super) fn all_open(&self) -> [u8; MAX_CELLS] {
        let mut open = [0; MAX_CELLS];
        open[..self.cells()].iter_mut().enumerate().for_each(|(cell, open)| *open = self.open(cell));
        open
    }

    /// Directions in which no edge of the cell is closed, one bit each.
    #[inline]
    pub(super) fn open(&self, cell: usize) -> u8 {
        let ([beside, below], [right, down]) = (&self.closed, self.strides());
        let closed =
            beside.bit(cell + right) | below.bit(cell + down) << 1 | beside.bit(cell) << 2 | below.bit(cell) << 3;
        !closed & 0b1111
    }

    /// The cell one step away, over an edge that is open.
    #[inline]
    pub(super) fn neighbour(&self, cell: usize, direction: usize) -> usize {
        let stride = self.strides()[direction % 2];
        if direction < 2 { cell + stride } else { cell - stride }
    }

    /// Writes the lengths of the shortest paths from a cell to all of them, or [`FAR`]. `open` is that of this board.
    pub(super) fn distances(&self, open: &[u8; MAX_CELLS], from: usize, out: &mut [u16]) {
        let (mut queue, mut head, mut tail) = ([0_u16; MAX_CELLS], 0, 1);
        out.fill(FAR);
        out[from] = 0;
        queue[0] = from as u16;
        while head < tail {
            let cell = usize::from(queue[head]);
            head += 1;
            let (mut todo, further) = (open[cell], out[cell] + 1);
            while todo != 0 {
                let next = self.neighbour(cell, todo.trailing_zeros() as usize);
                todo &= todo - 1;
                if out[next] == FAR {
                    out[next] = further;
                    queue[tail] = next as u16;
                    tail += 1;
                }
            }
        }
    }

    /// The length of the shortest path between two cells, or [`FAR`].
    pub(super) fn distance(&self, from: usize, to: usize) -> u16 {
        let mut distances = [0; MAX_CELLS];
        self.distances(&self.all_open(), from, &mut distances[..self.cells()]);
        distances[to]
    }

    /// The slots where a wall may be built: those open, but for the bridges whose two ends would each keep one cell of
    /// a pair. The cells of a pair must be connected.
    ///
    /// One depth-first search of each part of the board that has a pair in it finds all bridges (Tarjan 1974, "A note
    /// on finding the bridges of a graph"): the edge to a cell is one where no other edge leads out of what was met
    /// from that cell on. It parts a pair of which that has one cell.
    pub(super) fn buildable(&self, pairs: [[usize; 2]; 2]) -> Slots {
        let mut visits = [Visit::default(); MAX_CELLS];
        for (number, pair) in pairs.into_iter().enumerate() {
            // A pair in one cell cannot be parted: its bit goes out again.
            pair.into_iter().for_each(|cell| visits[cell].ends ^= 1 << number);
        }
        let mut closed = self.closed;
        let mut met = 0;
        for [root, _] in pairs {
            if visits[root].order > 0 {
                continue;
            }
            let mut cell = root;
            met += 1;
            visits[root] = Visit { order: met, low: met, todo: self.open(root), ..visits[root] };
            loop {
                let visit = visits[cell];
                if visit.todo != 0 {
                    let direction = visit.todo.trailing_zeros() as usize;
                    visits[cell].todo &= visit.todo - 1;
                    let next = self.neighbour(cell, direction);
                    let known = visits[next];
                    if known.order > 0 {
                        visits[cell].low = visit.low.min(known.order);
                        continue;
                    }
                    let back = opposite(direction);
                    let todo = self.open(next) & !(1 << back);
                    met += 1;
                    visits[next] = Visit { order: met, low: met, todo, back: back as u8, ends: known.ends };
                    cell = next;
                } else if cell == root {
                    break;
                } else {
                    let back = usize::from(visit.back);
                    let parent = self.neighbour(cell, back);
                    if visit.low == visit.order && visit.ends != 0 {
                        let stride = if back < 2 { self.strides()[back] } else { 0 };
                        closed[back % 2].insert(cell + stride);
                    }
                    let above = &mut visits[parent];
                    above.low = above.low.min(visit.low);
                    above.ends ^= visit.ends;
                    cell = parent;
                }
            }
        }
        let edges = closed.map(|edges| Edges(array::from_fn(|word| !edges.0[word])));
        Slots { edges, strides: self.strides(), cells: self.cells() }
    }

    /// Where a slot goes; a symmetry maps the rim to the rim.
    pub(super) fn image_of_slot(&self, symmetry: usize, slot: usize) -> usize {
        let ([columns, rows], cells) = ([self.columns(), self.rows()], self.cells());
        let (mut kind, cell) = (slot / cells, slot % cells);
        let (mut column, mut row) = (cell / rows, cell % rows);
        // The mirror image of a cell's right edge is the left edge of the image: the right one of the cell before. The
        // rim, which is no slot, stays where it is.
        let (beside, below) = (usize::from(kind == 0), usize::from(kind == 1));
        if symmetry & 1 != 0 {
            column = (2 * columns - 1 - beside - column) % columns;
        }
        if symmetry & 2 != 0 {
            row = (2 * rows - 1 - below - row) % rows;
        }
        if symmetry & 4 != 0 {
            (column, row, kind) = (row, column, 1 - kind);
        }
        kind * cells + column * rows + row
    }

    /// Where a cell goes.
    pub(super) fn image_of_cell(&self, symmetry: usize, cell: usize) -> usize {
        let (mut column, mut row) = (cell / self.rows(), cell % self.rows());
        if symmetry & 1 != 0 {
            column = self.columns() - 1 - column;
        }
        if symmetry & 2 != 0 {
            row = self.rows() - 1 - row;
        }
        if symmetry & 4 != 0 {
            (column, row) = (row, column);
        }
        column * self.rows() + row
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
