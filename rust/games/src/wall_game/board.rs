//! The board of the Wall Game: which edges between cells are closed, how far it is from cell to cell, and which walls
//! would cut two cells apart.
//!
//! A cell is `column * rows + row`, row 0 = top. A slot is an edge between two neighbours, where a wall may stand:
//! `cell` for the right edge of a cell, `cells + cell` for its bottom edge. Those of the last column and row are the
//! rim, which is closed and is no wall. Directions are 0 right, 1 down, 2 left, 3 up.
//!
//! Invariant: every edge that is not between two cells of the board is closed.

use std::array;

use crate::cells::nth_bit;

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

    /// A word of the set in which every edge's number is higher by `by`, from 1 to 63.
    #[inline]
    fn raised(&self, word: usize, by: usize) -> u64 {
        let below = if word == 0 { 0 } else { self.0[word - 1] };
        self.0[word] << by | below >> (64 - by)
    }

    /// A word of the set in which every edge's number is lower by `by`, from 1 to 63.
    #[inline]
    fn lowered(&self, word: usize, by: usize) -> u64 {
        let above = self.0.get(word + 1).map_or(0, |&above| above);
        self.0[word] >> by | above << (64 - by)
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

/// A cell on the way from one to another.
#[derive(Clone, Copy, Default)]
struct Step {
    column: u8,
    row: u8,
    /// The direction in which it was entered.
    entered: u8,
    /// The directions still to be tried.
    todo: u8,
}

/// The corners of cells, in sets that walls and the rim join. Corner `column * (rows + 1) + row` is the top left one of a
/// cell, or lies on the right or the lower rim.
struct Corners {
    parents: [u16; (MAX_SIDE + 1) * (MAX_SIDE + 1)],
    rows: usize,
    /// 2^16 / rows, rounded up: numbers of edges are divided by multiplying with it.
    inverse: usize,
}

impl Corners {
    /// Those of the rim are one set.
    fn new(columns: usize, rows: usize) -> Self {
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
        Self { parents, rows, inverse: (1 << 16) / rows + 1 }
    }

    fn set_of(&mut self, mut corner: usize) -> usize {
        loop {
            let parent = usize::from(self.parents[corner]);
            if parent == corner {
                return corner;
            }
            self.parents[corner] = self.parents[parent];
            corner = parent;
        }
    }

    /// The sets of the two corners that an edge lies between.
    #[inline]
    fn ends(&mut self, kind: usize, edge: usize) -> [usize; 2] {
        // The inverse is too large by at most 1, and the result by less than 448 / 2^16: not as much as 1 / rows.
        let first = edge + ((edge * self.inverse) >> 16);
        [self.set_of(first), self.set_of(first + [1, self.rows + 1][kind])]
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
    fn cell_at(&self, column: u8, row: u8) -> usize {
        usize::from(column) * self.rows() + usize::from(row)
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

    /// The slots where a wall may be built: those open, but for those where a wall would part a pair. The cells of a pair
    /// must be connected.
    ///
    /// A wall beside some path between a pair leaves that path as it is. One across it parts the pair just where walls
    /// and rim already join the corners at its two ends: it closes a ring. (The bridges of a planar graph are the loops
    /// of its dual: Whitney 1932, "Non-separable and planar graphs".)
    pub(super) fn buildable(&self, pairs: [[usize; 2]; 2]) -> Slots {
        let (rings, mut closed) = (self.rings(), self.closed);
        if rings.iter().any(|edges| edges.0 != [0; WORDS]) {
            for [from, to] in pairs {
                self.cross(from, to, |kind, edge| {
                    if rings[kind].bit(edge) == 1 {
                        closed[kind].insert(edge);
                    }
                });
            }
        }
        let edges = closed.map(|edges| Edges(array::from_fn(|word| !edges.0[word])));
        Slots { edges, strides: self.strides(), cells: self.cells() }
    }

    /// The open edges whose corners are joined.
    fn rings(&self) -> [Edges; 2] {
        let mut rings = self.touched();
        let any = rings.iter().any(|edges| edges.0 != [0; WORDS]);
        if any {
            let mut corners = self.joined_corners();
            for (kind, edges) in rings.iter_mut().enumerate() {
                for (index, word) in edges.0.iter_mut().enumerate() {
                    let mut left = *word;
                    while left != 0 {
                        let lowest = left & left.wrapping_neg();
                        let [one, other] = corners.ends(kind, 64 * index + left.trailing_zeros() as usize);
                        left ^= lowest;
                        if one != other {
                            *word ^= lowest;
                        }
                    }
                }
            }
        }
        rings
    }

    /// The open edges with a wall or the rim at either corner, and maybe some others.
    fn touched(&self) -> [Edges; 2] {
        let ([beside, below], rows) = (&self.closed, self.rows());
        let mut touched = [Edges([0; WORDS]); 2];
        for word in 0..self.cells().div_ceil(64) {
            // An upright edge goes from its cell's top left corner down: four edges meet there, and at the other end.
            let top = beside.raised(word, 1) | below.raised(word, rows) | below.0[word];
            let bottom = beside.lowered(word, 1) | below.raised(word, rows - 1) | below.lowered(word, 1);
            touched[0].0[word] = top & bottom & !beside.0[word];
            // A lying one goes from there to the right.
            let left = beside.raised(word, 1) | beside.0[word] | below.raised(word, rows);
            let right = beside.lowered(word, rows - 1) | beside.lowered(word, rows) | below.lowered(word, rows);
            touched[1].0[word] = left & right & !below.0[word];
        }
        touched
    }

    /// What the walls join.
    fn joined_corners(&self) -> Corners {
        let mut corners = Corners::new(self.columns(), self.rows());
        let cells = self.cells();
        for (kind, edges) in self.closed.iter().enumerate() {
            for (index, &word) in edges.0[..cells.div_ceil(64)].iter().enumerate() {
                let mut word = word;
                while word != 0 {
                    let edge = 64 * index + word.trailing_zeros() as usize;
                    word &= word - 1;
                    // Rim among them joins what is joined.
                    if edge < cells {
                        let [one, other] = corners.ends(kind, edge);
                        corners.parents[one.max(other)] = one.min(other) as u16;
                    }
                }
            }
        }
        corners
    }

    /// Calls `visit` with the kind and number of each edge that a path between two cells crosses: the first path that a
    /// depth-first search finds which tries the directions towards the end first.
    fn cross(&self, from: usize, to: usize, mut visit: impl FnMut(usize, usize)) {
        let rows = self.rows();
        let place = |cell: usize| ((cell / rows) as u8, (cell % rows) as u8);
        let ((column, row), goal) = (place(from), place(to));
        let mut steps = [Step::default(); MAX_CELLS];
        let mut met = [0_u64; WORDS];
        let mut last = 0;
        steps[0] = Step { column, row, entered: 0, todo: self.open(from) };
        met[from / 64] |= 1 << (from % 64);
        loop {
            let Step { column, row, todo, .. } = steps[last];
            if (column, row) == goal {
                break;
            }
            if todo == 0 {
                if last == 0 {
                    return;
                }
                last -= 1;
                continue;
            }
            let closer = u8::from(column < goal.0)
                | u8::from(row < goal.1) << 1
                | u8::from(column > goal.0) << 2
                | u8::from(row > goal.1) << 3;
            let tried = if todo & closer != 0 { todo & closer } else { todo };
            let direction = tried.trailing_zeros() as usize;
            steps[last].todo &= !(1 << direction);
            let (column, row) = match direction {
                0 => (column + 1, row),
                1 => (column, row + 1),
                2 => (column - 1, row),
                _ => (column, row - 1),
            };
            let next = self.cell_at(column, row);
            if met[next / 64] >> (next % 64) & 1 == 0 {
                met[next / 64] |= 1 << (next % 64);
                last += 1;
                let todo = self.open(next) & !(1 << opposite(direction));
                steps[last] = Step { column, row, entered: direction as u8, todo };
            }
        }
        for step in &steps[1..=last] {
            let kind = usize::from(step.entered % 2);
            let cell = self.cell_at(step.column, step.row);
            // Going right or down it is the cell's own left or top edge; going back it is that of the cell before.
            visit(kind, if step.entered < 2 { cell } else { cell + self.strides()[kind] });
        }
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
