//! Chains of stones and their liberties, kept up to date as stones come and go.
//!
//! A chain is named by one of its stones, and its stones are linked in a ring. Of its liberties only three sums are
//! kept, over its edges: the pairs of one of its stones and an empty cell beside it. That is enough to know when there
//! is none left, and when all edges lead to one cell: then, and only then, the edges times the sum of the squared cell
//! numbers are the square of their sum (Cauchy and Schwarz).
//!
//! What is stored for a cell without a stone means nothing.

use crate::cells::Cells;

pub(super) const MIN_SIZE: usize = 5;
pub(super) const MAX_SIZE: usize = 19;
const MAX_CELLS: usize = MAX_SIZE * MAX_SIZE;
const MAX_WORDS: usize = MAX_CELLS.div_ceil(64);

/// What follows from the size of a board alone.
pub(super) struct Table {
    size: usize,
    left: [u64; MAX_WORDS],
    right: [u64; MAX_WORDS],
    near: [[u16; 4]; MAX_CELLS],
    degree: [u8; MAX_CELLS],
}

static TABLES: [Table; MAX_SIZE + 1] = {
    let mut tables = [const { Table::new(0) }; MAX_SIZE + 1];
    let mut size = MIN_SIZE;
    while size <= MAX_SIZE {
        tables[size] = Table::new(size);
        size += 1;
    }
    tables
};

impl Table {
    const fn new(size: usize) -> Self {
        let mut table = Self {
            size,
            left: [0; MAX_WORDS],
            right: [0; MAX_WORDS],
            near: [[0; 4]; MAX_CELLS],
            degree: [0; MAX_CELLS],
        };
        let mut cell = 0;
        while cell < size * size {
            let (row, column) = (cell / size, cell % size);
            if column == 0 {
                table.left[cell / 64] |= 1 << (cell % 64);
            }
            if column == size - 1 {
                table.right[cell / 64] |= 1 << (cell % 64);
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
                    table.near[cell][table.degree[cell] as usize] = sides[side].1 as u16;
                    table.degree[cell] += 1;
                }
                side += 1;
            }
            cell += 1;
        }
        table
    }

    #[inline]
    pub(super) fn of(size: usize) -> &'static Self {
        &TABLES[size]
    }

    /// The cells beside `cell`.
    #[inline]
    pub(super) fn near(&self, cell: usize) -> impl Iterator<Item = usize> {
        self.near[cell][..usize::from(self.degree[cell])].iter().map(|&near| usize::from(near))
    }

    /// The cells beside one of `cells`, and maybe some below the board.
    #[inline]
    pub(super) fn around<const WORDS: usize>(&self, cells: Cells<WORDS>) -> Cells<WORDS> {
        let column = |words: &[u64; MAX_WORDS]| Cells::<WORDS>(std::array::from_fn(|word| words[word]));
        // Cells of the outer columns would wrap around into another row.
        let beside = cells.without(column(&self.left)).minus(1).or(cells.without(column(&self.right)).plus(1));
        cells.minus(self.size).or(cells.plus(self.size)).or(beside)
    }
}

/// The edges of a chain, see above. The sum of cell numbers wraps around, but not where it is looked at: with four
/// edges at most.
#[derive(Clone, Copy, Debug)]
struct Edges {
    count: u16,
    sum: u16,
    squares: u32,
}

impl Edges {
    const NONE: Self = Self { count: 0, sum: 0, squares: 0 };

    #[inline]
    fn add(&mut self, cell: usize) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(cell as u16);
        self.squares += (cell * cell) as u32;
    }

    #[inline]
    fn remove(&mut self, cell: usize) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(cell as u16);
        self.squares -= (cell * cell) as u32;
    }

    #[inline]
    fn add_all(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares += other.squares;
    }

    /// Whether all lead to one cell. No more than four can.
    #[inline]
    fn meet(self) -> bool {
        let sum = u32::from(self.sum);
        self.count <= 4 && u32::from(self.count) * self.squares == sum * sum
    }
}

/// The chains on a board of at most `64 * WORDS` cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chains<const WORDS: usize> {
    /// By stone: the one that its chain is named by.
    head: [[u16; 64]; WORDS],
    /// By stone: the next one of its chain.
    next: [[u16; 64]; WORDS],
    /// By the stone that a chain is named by.
    edges: [[Edges; 64]; WORDS],
    /// The stones whose chains have one liberty.
    atari: Cells<WORDS>,
}

impl<const WORDS: usize> Chains<WORDS> {
    pub(super) const NONE: Self =
        Self { head: [[0; 64]; WORDS], next: [[0; 64]; WORDS], edges: [[Edges::NONE; 64]; WORDS], atari: Cells::NONE };

    #[inline]
    fn head(&self, stone: usize) -> usize {
        usize::from(self.head[stone / 64][stone % 64])
    }

    #[inline]
    fn next(&self, stone: usize) -> usize {
        usize::from(self.next[stone / 64][stone % 64])
    }

    #[inline]
    fn edges(&mut self, stone: usize) -> &mut Edges {
        let head = self.head(stone);
        &mut self.edges[head / 64][head % 64]
    }

    #[inline]
    fn edges_of(&self, stone: usize) -> Edges {
        let head = self.head(stone);
        self.edges[head / 64][head % 64]
    }

    /// Whether the chain of `stone` has no liberty.
    #[inline]
    pub(super) fn is_dead(&self, stone: usize) -> bool {
        self.edges_of(stone).count == 0
    }

    /// The stones whose chains have one liberty. Of chains without a liberty it says nothing.
    #[inline]
    pub(super) fn in_atari(&self) -> Cells<WORDS> {
        self.atari
    }

    /// Notes whether the chain of `stone` has one liberty, after its edges changed.
    #[inline]
    fn note(&mut self, stone: usize) {
        let atari = self.edges_of(stone).meet();
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
        self.next(stone) == stone && self.edges_of(stone).count == 1
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

    /// A stone has come to `cell`. `own` are the stones of its colour, with or without itself, `other` those of the
    /// other one, chains without liberties included.
    #[inline]
    pub(super) fn add(&mut self, table: &Table, cell: usize, own: Cells<WORDS>, other: Cells<WORDS>) {
        self.head[cell / 64][cell % 64] = cell as u16;
        self.next[cell / 64][cell % 64] = cell as u16;
        let mut edges = Edges::NONE;
        for near in table.near(cell) {
            if own.has(near) || other.has(near) {
                self.edges(near).remove(cell);
            } else {
                edges.add(near);
            }
        }
        *self.edges(cell) = edges;
        for near in table.near(cell) {
            if other.has(near) {
                self.note(near);
            } else if own.has(near) && self.head(near) != self.head(cell) {
                // All stones of one chain are marked, or none.
                if self.atari.has(near) {
                    self.mark(near, false);
                }
                self.join(near, cell);
            }
        }
        self.note(cell);
    }

    /// Makes the chain of `from` a part of that of `into`, another one.
    fn join(&mut self, into: usize, from: usize) {
        let (head, edges) = (self.head(into), self.edges_of(from));
        self.edges(into).add_all(edges);
        let mut at = from;
        loop {
            self.head[at / 64][at % 64] = head as u16;
            at = self.next(at);
            if at == from {
                break;
            }
        }
        // Two rings whose links are exchanged at one place are one ring.
        let (next_into, next_from) = (self.next(into), self.next(from));
        self.next[into / 64][into % 64] = next_from as u16;
        self.next[from / 64][from % 64] = next_into as u16;
    }

    /// The chain of `stone` has left the board; `others` are the stones of the other colour.
    #[inline]
    pub(super) fn remove(&mut self, table: &Table, stone: usize, others: Cells<WORDS>) {
        let (mut at, mut gone) = (stone, Cells::NONE);
        loop {
            gone.insert(at);
            for near in table.near(at) {
                if others.has(near) {
                    self.edges(near).add(at);
                }
            }
            at = self.next(at);
            if at == stone {
                break;
            }
        }
        self.atari = self.atari.without(gone);
        // Whoever was beside the chain has more liberties now. One that had none, or one, may have one.
        table.around(gone).and(others).for_each(|near| self.note(near));
    }
}
