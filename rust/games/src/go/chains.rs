//! Chains of stones and their liberties, kept up to date as stones come and go.
//!
//! A chain is named by one of its stones, and its stones are linked in a ring. Of its liberties only three sums are
//! kept, over its edges: the pairs of one of its stones and an empty cell beside it. That is enough to know when there
//! is none left, and when all edges lead to one cell: then, and only then, the edges times the sum of the squared cell
//! numbers are the square of their sum (Cauchy and Schwarz).
//!
//! A cell without a stone is named by itself, and so is the cell off the board that stands for every missing neighbour.
//! The sums that are stored for them mean nothing. So the sums of all four neighbours of a stone are changed alike, and
//! no branch asks what stands there: it would be guessed wrong.

use crate::cells::Cells;

pub(super) const MIN_SIZE: usize = 5;
pub(super) const MAX_SIZE: usize = 19;
const MAX_CELLS: usize = MAX_SIZE * MAX_SIZE;
const MAX_WORDS: usize = MAX_CELLS.div_ceil(64);

/// The content of a cell, in the highest bits of its chain's name: nothing, a stone (1 or 2 by player), or off board.
const KIND: u32 = 14;
const NO_CELL: u16 = 3;
/// All four sides of a cell, each with bit 0 of its pair of bits.
const ALL_SIDES: usize = 0x55;

/// The sides on which this kind stands. `kinds` has a pair of bits for each side.
#[inline]
fn sides_of(kinds: u32, kind: u32) -> u32 {
    let differs = kinds ^ (kind * ALL_SIDES as u32);
    !(differs | differs >> 1) & ALL_SIDES as u32
}

/// Takes a side out, and says its number.
#[inline]
fn next_side(sides: &mut u32) -> usize {
    let side = sides.trailing_zeros() as usize / 2 % 4;
    *sides &= *sides - 1;
    side
}

/// What follows from the size of a board alone.
pub(super) struct Geometry {
    size: usize,
    left: [u64; MAX_WORDS],
    right: [u64; MAX_WORDS],
    cells: [u64; MAX_WORDS],
    /// By cell: those beside it. [`off_board`] stands for those that are missing.
    near: [[u16; 4]; MAX_CELLS],
    /// By sides that are empty, as [`sides_of`] has them.
    air: [Air; ALL_SIDES + 1],
}

/// What the sums over the edges of a lone stone are made of: their number, and what comes on top of that many edges to
/// the stone's own cell, by itself and times the number of the cell.
#[derive(Clone, Copy)]
struct Air {
    count: u64,
    fixed: u64,
    slope: u64,
}

impl Air {
    /// A neighbour with the number c + d has the sums 1, c + d and c^2 + 2 c d + d^2.
    const fn of(size: usize, sides: usize) -> Self {
        let steps = [-(size as i64), -1, 1, size as i64];
        let mut air = Self { count: 0, fixed: 0, slope: 0 };
        let mut side = 0;
        while side < 4 {
            if sides >> (2 * side) & 1 == 1 {
                let step = steps[side];
                air.count += 1;
                air.fixed = air.fixed.wrapping_add(((step << 16) + ((step * step) << 32)) as u64);
                air.slope = air.slope.wrapping_add(((2 * step) << 32) as u64);
            }
            side += 1;
        }
        air
    }
}

/// A cell off the board: the last one of the fewest words that hold the board.
const fn off_board(size: usize) -> usize {
    if size * size < 128 { 127 } else { 64 * MAX_WORDS - 1 }
}

static GEOMETRIES: [Geometry; MAX_SIZE + 1] = {
    let mut geometries = [const { Geometry::new(0) }; MAX_SIZE + 1];
    let mut size = MIN_SIZE;
    while size <= MAX_SIZE {
        geometries[size] = Geometry::new(size);
        size += 1;
    }
    geometries
};

impl Geometry {
    const fn new(size: usize) -> Self {
        let mut geometry = Self {
            size,
            left: [0; MAX_WORDS],
            right: [0; MAX_WORDS],
            cells: [0; MAX_WORDS],
            near: [[off_board(size) as u16; 4]; MAX_CELLS],
            air: [Air { count: 0, fixed: 0, slope: 0 }; ALL_SIDES + 1],
        };
        let mut sides = 0;
        while sides <= ALL_SIDES {
            geometry.air[sides] = Air::of(size, sides);
            sides += 1;
        }
        let mut cell = 0;
        while cell < size * size {
            let (row, column) = (cell / size, cell % size);
            if column == 0 {
                geometry.left[cell / 64] |= 1 << (cell % 64);
            }
            if column == size - 1 {
                geometry.right[cell / 64] |= 1 << (cell % 64);
            }
            let sides = [
                (row > 0, cell.wrapping_sub(size)),
                (column > 0, cell.wrapping_sub(1)),
                (column < size - 1, cell + 1),
                (row < size - 1, cell + size),
            ];
            let mut side = 0;
            while side < 4 {
                if sides[side].0 {
                    geometry.near[cell][side] = sides[side].1 as u16;
                }
                side += 1;
            }
            geometry.cells[cell / 64] |= 1 << (cell % 64);
            cell += 1;
        }
        geometry
    }

    #[inline]
    pub(super) fn of(size: usize) -> &'static Self {
        &GEOMETRIES[size]
    }

    /// The cells beside `cell`; at the rim some are off the board, where no stone is.
    #[inline]
    pub(super) fn near(&self, cell: usize) -> [usize; 4] {
        let [a, b, c, d] = self.near[cell];
        [usize::from(a), usize::from(b), usize::from(c), usize::from(d)]
    }

    /// The cells of the board.
    #[inline]
    pub(super) fn cells<const WORDS: usize>(&self) -> Cells<WORDS> {
        let mut cells = Cells::NONE;
        cells.0.copy_from_slice(&self.cells[..WORDS]);
        cells
    }

    /// The cells beside one of `cells`, and maybe some below the board.
    #[inline]
    pub(super) fn around<const WORDS: usize>(&self, cells: Cells<WORDS>) -> Cells<WORDS> {
        // Cells of the outer columns would wrap around into another row.
        let (mut before, mut behind) = (cells, cells);
        for word in 0..WORDS {
            before.0[word] &= !self.left[word];
            behind.0[word] &= !self.right[word];
        }
        let beside = before.minus(1).or(behind.plus(1));
        cells.minus(self.size).or(cells.plus(self.size)).or(beside)
    }
}

/// The sums of one edge: their number, the cell's number and its square, in one word. Sums of words are taken modulo
/// 2^64. The lowest 16 bits, the number of edges, are always right, for there are fewer than 2^16. The others are read
/// where there are four edges at most, and four cannot overflow.
#[inline]
fn weight(cell: usize) -> u64 {
    let cell = cell as u64;
    1 | cell << 16 | (cell * cell) << 32
}

/// How many edges have these sums.
#[inline]
fn count(edges: u64) -> u64 {
    edges & 0xffff
}

/// Whether all edges with these sums lead to one cell. No more than four can.
#[inline]
fn meet(edges: u64) -> bool {
    let (sum, squares) = (edges >> 16 & 0xffff, edges >> 32);
    count(edges) <= 4 && count(edges) * squares == sum * sum
}

/// The chains on a board of at most `64 * WORDS` cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chains<const WORDS: usize> {
    /// By cell: the stone that its chain is named by, and above that the kind of what stands there.
    head: [[u16; 64]; WORDS],
    /// By stone: the next one of its chain.
    next: [[u16; 64]; WORDS],
    /// By the stone that a chain is named by: the sums over its edges.
    edges: [[u64; 64]; WORDS],
    /// The stones whose chains have one liberty.
    atari: Cells<WORDS>,
}

impl<const WORDS: usize> Chains<WORDS> {
    /// No stones on a board of this size.
    pub(super) fn none(size: usize) -> Self {
        let mut head = [[0; 64]; WORDS];
        for (cell, head) in head.as_flattened_mut().iter_mut().enumerate() {
            *head = cell as u16;
        }
        let next = head;
        head.as_flattened_mut()[off_board(size)] |= NO_CELL << KIND;
        Self { head, next, edges: [[0; 64]; WORDS], atari: Cells::NONE }
    }

    #[inline]
    fn head(&self, cell: usize) -> usize {
        usize::from(self.head[cell / 64][cell % 64] & ((1 << KIND) - 1))
    }

    #[inline]
    fn next(&self, stone: usize) -> usize {
        usize::from(self.next[stone / 64][stone % 64])
    }

    #[inline]
    fn edges(&self, stone: usize) -> u64 {
        let head = self.head(stone);
        self.edges[head / 64][head % 64]
    }

    #[inline]
    fn edges_of(&mut self, head: usize) -> &mut u64 {
        &mut self.edges[head / 64][head % 64]
    }

    /// Whether the chain of `stone` has no liberty.
    #[inline]
    pub(super) fn is_dead(&self, stone: usize) -> bool {
        count(self.edges(stone)) == 0
    }

    /// The stones whose chains have one liberty. Of chains without a liberty it says nothing.
    #[inline]
    pub(super) fn in_atari(&self) -> Cells<WORDS> {
        self.atari
    }

    /// Notes whether the chain of `stone`, whose edges have these sums now, has one liberty.
    #[inline]
    fn note(&mut self, stone: usize, edges: u64) {
        let atari = meet(edges);
        if atari != self.atari.has(stone) {
            self.mark(stone, atari);
        }
    }

    fn mark(&mut self, stone: usize, atari: bool) {
        let mut chain = Cells::NONE;
        self.for_each(stone, |stone| chain.insert(stone));
        self.atari = if atari { self.atari.or(chain) } else { self.atari.without(chain) };
    }

    /// Whether `stone` is a chain of its own with one liberty.
    #[inline]
    pub(super) fn is_lone_in_atari(&self, stone: usize) -> bool {
        self.next(stone) == stone && count(self.edges(stone)) == 1
    }

    /// Calls `visit` with each stone of the chain of `stone`.
    #[inline]
    pub(super) fn for_each(&self, stone: usize, mut visit: impl FnMut(usize)) {
        let mut at = stone;
        loop {
            visit(at);
            at = self.next(at);
            if at == stone {
                return;
            }
        }
    }

    /// A stone of a player, 0 or 1, has come to `cell`. Returns whether a chain of the opponent beside it has no liberty.
    #[inline]
    pub(super) fn add(&mut self, geometry: &Geometry, cell: usize, player: usize) -> bool {
        let (near, weight, own) = (geometry.near(cell), weight(cell), 1 + player as u32);
        let (mut kinds, mut heads) = (0, [0; 4]);
        for side in 0..4 {
            let head = self.head[near[side] / 64][near[side] % 64];
            kinds |= u32::from(head >> KIND) << (2 * side);
            heads[side] = usize::from(head & ((1 << KIND) - 1));
            let sums = self.edges_of(heads[side]);
            *sums = sums.wrapping_sub(weight);
        }
        let Air { count: number, fixed, slope } = geometry.air[sides_of(kinds, 0) as usize];
        let edges = number.wrapping_mul(weight).wrapping_add(fixed).wrapping_add(slope.wrapping_mul(cell as u64));
        self.head[cell / 64][cell % 64] = cell as u16 | (own as u16) << KIND;
        self.next[cell / 64][cell % 64] = cell as u16;
        *self.edges_of(cell) = edges;
        let mut friends = sides_of(kinds, own);
        while friends != 0 {
            let near = near[next_side(&mut friends)];
            if self.head(near) != self.head(cell) {
                // All stones of one chain are marked, or none.
                if self.atari.has(near) {
                    self.mark(near, false);
                }
                self.join(near, cell);
            }
        }
        self.note(cell, self.edges(cell));
        let (mut foes, mut dead) = (sides_of(kinds, 3 - own), false);
        while foes != 0 {
            let side = next_side(&mut foes);
            let edges = *self.edges_of(heads[side]);
            dead |= count(edges) == 0;
            self.note(near[side], edges);
        }
        dead
    }

    /// Makes the chain of `from` a part of that of `into`, another one.
    fn join(&mut self, into: usize, from: usize) {
        let (name, edges) = (self.head[into / 64][into % 64], self.edges(from));
        let sums = self.edges_of(self.head(into));
        *sums = sums.wrapping_add(edges);
        let mut at = from;
        loop {
            self.head[at / 64][at % 64] = name;
            at = self.next(at);
            if at == from {
                break;
            }
        }
        // Two rings whose links are exchanged at one place are one ring.
        let (next_into, next_from) = (self.next[into / 64][into % 64], self.next[from / 64][from % 64]);
        self.next[into / 64][into % 64] = next_from;
        self.next[from / 64][from % 64] = next_into;
    }

    /// The chain of `stone` has left the board; `others` are the stones of the other colour.
    #[inline]
    pub(super) fn remove(&mut self, geometry: &Geometry, stone: usize, others: Cells<WORDS>) {
        let (mut at, mut gone) = (stone, Cells::NONE);
        loop {
            gone.insert(at);
            self.head[at / 64][at % 64] = at as u16;
            for near in geometry.near(at) {
                let sums = self.edges_of(self.head(near));
                *sums = sums.wrapping_add(weight(at));
            }
            at = self.next(at);
            if at == stone {
                break;
            }
        }
        self.atari = self.atari.without(gone);
        // The neighbours of the chain have more liberties now. A chain that had none or one may have exactly one.
        geometry.around(gone).and(others).for_each(|near| self.note(near, self.edges(near)));
    }
}
