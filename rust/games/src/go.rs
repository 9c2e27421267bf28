//! Go on 5x5 to 19x19 cells (crossings of lines); player 0 is Black and begins.
//!
//! Cells and actions are `row * size + column`, row 0 = top; one more action, `size * size`, is "pass".
//! The planes are those of AlphaGo Zero (Silver et al. 2017).
//!
//! A position holds its last eight boards, and shares all older ones with the positions it comes from, eight boards a
//! piece: cloning copies a fixed number of bytes and counts one reference. `WORDS` is how many words of 64 bits hold
//! the cells, so that small boards are small: [`Go9`] is for boards up to 11x11, [`Go19`] for all.
//!
//! Invariants: the stone sets are disjoint and on the board; every chain has a liberty; board number b, with 0 the
//! start, is in place b % 8 of `recent`, and boards are in `past` up to the last whole eight.

mod chains;
mod notation;
mod sgf;

use std::sync::{Arc, OnceLock};

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};

use crate::cells::{Cells, Counted};
use crate::error::{Error, invalid};
use crate::grid;
use crate::key::{Tag, digest, mix};
use crate::notation::{PLAYERS, in_range};
use crate::planes::{D4, cells_then, d4_cell, d4_planes, put_bits};
use chains::{Chains, Geometry, MAX_SIZE, MIN_SIZE};

/// Boards that the observation shows.
const HISTORY: usize = 8;
const MAX_KOMI: f32 = 1000.0;
/// No cell.
const NOWHERE: u16 = u16::MAX;
/// The letters of columns: there is no I, which looks like a J (Go Text Protocol).
const LETTERS: &[u8; MAX_SIZE] = b"ABCDEFGHJKLMNOPQRST";

/// A number for each player's stone on each cell; a board's hash is the exclusive or over its stones (Zobrist 1970).
static STONES: [[u128; MAX_SIZE * MAX_SIZE]; 2] = {
    let mut stones = [[0; MAX_SIZE * MAX_SIZE]; 2];
    let mut index = 0;
    while index < 2 * MAX_SIZE * MAX_SIZE {
        let (high, low) = (mix(2 * index as u64), mix(2 * index as u64 + 1));
        stones[index % 2][index / 2] = (high as u128) << 64 | low as u128;
        index += 1;
    }
    stones
};

/// Go on at most 11x11 cells.
pub type Go9 = Go<2>;
/// Go on at most 19x19 cells.
pub type Go19 = Go<6>;

/// The stones of one board.
#[derive(Clone, Copy, Debug)]
struct Board<const WORDS: usize> {
    /// By player.
    stones: [Cells<WORDS>; 2],
    hash: u128,
}

impl<const WORDS: usize> Board<WORDS> {
    const EMPTY: Self = Self { stones: [Cells::NONE; 2], hash: 0 };
}

/// Eight boards that came one after the other, those before them, and the actions that led to each. That of the start
/// is never looked at.
#[derive(Debug)]
struct Past {
    hashes: [u128; HISTORY],
    actions: [u16; HISTORY],
    before: Option<Arc<Past>>,
    /// [`Past::boards`], computed on first use.
    boards: OnceLock<u128>,
}

impl Past {
    /// A sum over these boards and those before them, each once. `pass` is the action that makes no new board.
    fn boards(&self, pass: u16) -> u128 {
        *self.boards.get_or_init(|| {
            let before = self.before.as_deref().map_or(0, |before| before.boards(pass));
            before.wrapping_add(sum_of_boards(self.hashes.into_iter().zip(self.actions), pass))
        })
    }
}

/// A sum over boards, given with the actions that led to them.
fn sum_of_boards(boards: impl Iterator<Item = (u128, u16)>, pass: u16) -> u128 {
    let mixed = |hash: u128| u128::from(mix((hash >> 64) as u64)) << 64 | u128::from(mix(hash as u64));
    let new = boards.filter(|&(_, action)| action != pass);
    new.fold(0, |sum, (hash, _)| sum.wrapping_add(mixed(hash)))
}

/// A start with stones, or with White to move.
#[derive(Debug)]
struct Setup<const WORDS: usize> {
    stones: [Cells<WORDS>; 2],
    mover: Player,
}

/// A position of Go, with all that came before it.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_core::text::Notation;
/// use azpy_games::Go9;
///
/// let mut game = Go9::new(5, 0.5, true)?;
/// for name in ["B1", "A1", "pass", "A3", "A2"] {
///     game = game.parse(name)?;
/// }
/// assert_eq!(game.render(), "  A B C D E\n5 . . . . .\n4 . . . . .\n3 o . . . .\n2 x . . . .\n1 . x . . .");
/// assert_eq!(game.score(), 2.0 + 1.0 - 1.0 - 0.5); // A1 is Black's: no white stone can be reached from there
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Go<const WORDS: usize> {
    recent: [Board<WORDS>; HISTORY],
    /// The action that led to the board in that place of `recent`.
    actions: [u16; HISTORY],
    chains: Chains<WORDS>,
    /// By player: where stones of theirs have been taken. A stone anywhere else stands where none of that colour has
    /// stood, so the board is a new one.
    taken: [Cells<WORDS>; 2],
    /// A bit for the hash of each of these boards. Most new boards find theirs unset.
    filter: [[u64; 8]; WORDS],
    past: Option<Arc<Past>>,
    setup: Option<Arc<Setup<WORDS>>>,
    /// Twice komi.
    half_points: i16,
    plies: u16,
    /// The cell that simple ko bars, if any.
    ko: u16,
    size: u8,
    passes: u8,
    superko: bool,
    /// Whether a stone that takes nothing makes a new board, wherever it is put: nothing has been taken, or the last
    /// stone that took some or one after it came to where none of its colour had stood. No board before that stone has
    /// it, and those since have only grown.
    growing: bool,
    mover: Player,
}

impl<const WORDS: usize> Clone for Go<WORDS> {
    fn clone(&self) -> Self {
        Self { past: self.past.clone(), setup: self.setup.clone(), ..*self }
    }

    // A position is 2 kilobytes or more, which a derived `clone_from` copies twice.
    fn clone_from(&mut self, other: &Self) {
        let Self { recent, chains, filter, past, setup, .. } = self;
        let Self { actions, taken, half_points, plies, ko, size, passes, superko, growing, mover, .. } = *other;
        (*recent, *chains, *filter) = (other.recent, other.chains, other.filter);
        past.clone_from(&other.past);
        setup.clone_from(&other.setup);
        (self.actions, self.taken, self.half_points, self.plies, self.ko) = (actions, taken, half_points, plies, ko);
        (self.size, self.passes, self.superko, self.growing, self.mover) = (size, passes, superko, growing, mover);
    }
}

impl<const WORDS: usize> Go<WORDS> {
    /// The largest board that fits.
    const MAX: usize = if WORDS * 64 >= MAX_SIZE * MAX_SIZE { MAX_SIZE } else { (WORDS * 64).isqrt() };

    /// The empty board of `size` rows and columns, where White gets `komi` points; with positional superko, or with
    /// simple ko.
    ///
    /// # Errors
    /// If the size is not from 5 to 19 (11 for [`Go9`]), or komi is no half or whole number from -1000 to 1000.
    pub fn new(size: usize, komi: f32, superko: bool) -> Result<Self, Error> {
        let fits = in_range("the size", size, MIN_SIZE..=Self::MAX)?;
        if !(-MAX_KOMI..=MAX_KOMI).contains(&komi) || (2.0 * komi).fract() != 0.0 {
            let expected = format!("a half or whole number from -{MAX_KOMI} to {MAX_KOMI}");
            return Err(Error::value("komi", expected, komi));
        }
        let mut start = Self {
            recent: [Board::EMPTY; HISTORY],
            actions: [0; HISTORY],
            chains: Chains::none(size),
            taken: [Cells::NONE; 2],
            filter: [[0; 8]; WORDS],
            past: None,
            setup: None,
            half_points: (2.0 * komi) as i16,
            plies: 0,
            ko: NOWHERE,
            size: fits,
            passes: 0,
            superko,
            growing: true,
            mover: Player::Zero,
        };
        start.remember(0);
        Ok(start)
    }

    /// A start of this size, komi and ko rule with stones on the cells of either player, and with `mover` to move.
    ///
    /// # Errors
    /// If a cell is off the board or has two stones, or a chain has no liberty.
    pub fn with_stones(&self, cells: [&[usize]; 2], mover: Player) -> Result<Self, Error> {
        let (geometry, mut start) = (self.geometry(), Self::new(self.size(), self.komi(), self.superko)?);
        let mut board = Board::EMPTY;
        for (own, cells) in cells.into_iter().enumerate() {
            for &cell in cells {
                if cell >= self.num_cells() {
                    return Err(invalid!("cell {cell} is not on the board, expected 0 to {}", self.num_cells() - 1));
                }
                if board.stones[0].has(cell) || board.stones[1].has(cell) {
                    return Err(invalid!("{} has two stones", self.cell_name(cell)));
                }
                board.stones[own].insert(cell);
                board.hash ^= STONES[own][cell];
                start.chains.add(geometry, cell, own);
            }
        }
        let mut dead = None;
        for stones in board.stones {
            stones.for_each(|cell| dead = dead.or(start.chains.is_dead(cell).then_some(cell)));
        }
        if let Some(cell) = dead {
            return Err(invalid!("the stone on {} does not have a liberty", self.cell_name(cell)));
        }
        (start.recent[0], start.mover) = (board, mover);
        if board.stones != Board::EMPTY.stones || mover == Player::One {
            start.setup = Some(Arc::new(Setup { stones: board.stones, mover }));
        }
        start.filter = [[0; 8]; WORDS];
        start.remember(board.hash);
        Ok(start)
    }

    /// Rows of the board, and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// Points that White gets.
    #[must_use]
    pub fn komi(&self) -> f32 {
        f32::from(self.half_points) / 2.0
    }

    /// Whether no board may come back, rather than only the last but one.
    #[must_use]
    pub fn superko(&self) -> bool {
        self.superko
    }

    /// The owner of the stone on `cell` (row * size + column), if there is one.
    #[must_use]
    pub fn stone(&self, cell: usize) -> Option<Player> {
        debug_assert!(cell < self.num_cells());
        let stones = self.board().stones;
        PLAYERS.into_iter().find(|player| stones[player.index()].has(cell))
    }

    /// Black's area minus White's area and komi, with the present stones.
    #[must_use]
    pub fn score(&self) -> f32 {
        f32::from(self.double_score()) / 2.0
    }

    /// The actions that led here from the start.
    #[must_use]
    pub fn actions(&self) -> Vec<Action> {
        let plies = usize::from(self.plies);
        let whole = plies - plies % HISTORY;
        let mut actions: Vec<Action> = (whole..=plies).map(|ply| self.actions[ply % HISTORY].into()).collect();
        let mut past = self.past.as_deref();
        while let Some(eight) = past {
            actions = eight.actions.into_iter().map(Action::from).chain(actions).collect();
            past = eight.before.as_deref();
        }
        // None led to the start.
        actions.remove(0);
        actions
    }

    fn double_score(&self) -> i16 {
        let [black, white] = self.board().stones;
        let empty = self.geometry().cells().without(black.or(white));
        // Cells that both players reach belong to neither. They are counted for both, so they cancel out.
        let count = |stones: Cells<WORDS>| (stones.len() + self.reached(stones, empty).len()) as i16;
        2 * (count(black) - count(white)) - self.half_points
    }

    /// The empty cells to which a way over empty cells leads from `stones`.
    fn reached(&self, stones: Cells<WORDS>, empty: Cells<WORDS>) -> Cells<WORDS> {
        let mut reached = Cells::NONE;
        let mut new = self.geometry().around(stones).and(empty);
        while !new.is_empty() {
            reached = reached.or(new);
            new = self.geometry().around(new).and(empty).without(reached);
        }
        reached
    }

    #[inline]
    fn num_cells(&self) -> usize {
        self.size() * self.size()
    }

    #[inline]
    fn geometry(&self) -> &'static Geometry {
        Geometry::of(self.size())
    }

    #[inline]
    fn board(&self) -> &Board<WORDS> {
        &self.recent[usize::from(self.plies) % HISTORY]
    }

    fn cell_name(&self, cell: usize) -> String {
        let size = self.size();
        format!("{}{}", char::from(LETTERS[cell % size]), size - cell / size)
    }

    /// The word and the bit of `filter` for a hash.
    #[inline]
    fn filter_bit(hash: u128) -> (usize, u64) {
        let bit = hash as usize % (512 * WORDS);
        (bit / 64, 1 << (bit % 64))
    }

    /// Records a board.
    #[inline]
    fn remember(&mut self, hash: u128) {
        if self.superko {
            let (word, bit) = Self::filter_bit(hash);
            self.filter[word / 8][word % 8] |= bit;
        }
    }

    /// A sum over the boards that there have been, each once. 0 with simple ko.
    fn boards(&self) -> u128 {
        if !self.superko {
            return 0;
        }
        let (pass, since) = (self.num_cells() as u16, usize::from(self.plies) % HISTORY);
        let before = self.past.as_deref().map_or(0, |past| past.boards(pass));
        let recent = self.recent[..=since].iter().map(|board| board.hash).zip(self.actions);
        before.wrapping_add(sum_of_boards(recent, pass))
    }

    /// Whether there has been a board with this hash, not that of the empty board.
    fn has_been(&self, hash: u128) -> bool {
        let (word, bit) = Self::filter_bit(hash);
        if self.filter[word / 8][word % 8] & bit == 0 {
            return false;
        }
        // Places of `recent` that no board has come to yet have the hash of the empty board.
        if self.recent.iter().any(|board| board.hash == hash) {
            return true;
        }
        let mut past = self.past.as_deref();
        while let Some(eight) = past {
            if eight.hashes.contains(&hash) {
                return true;
            }
            past = eight.before.as_deref();
        }
        false
    }

    /// The empty cells on which a stone of the player to move has a liberty, or takes a chain.
    #[inline]
    fn breathing(&self) -> Cells<WORDS> {
        let (geometry, stones) = (self.geometry(), self.board().stones);
        let (own, other) = (stones[self.mover.index()], stones[self.mover.opponent().index()]);
        let empty = geometry.cells().without(own.or(other));
        // All chains beside an empty cell have a liberty there. Another one is what an own chain needs, so these help:
        // own stones not in atari, and those of the opponent that are.
        let help = own.xor(self.chains.in_atari());
        empty.and(geometry.around(help.or(empty)))
    }

    /// The cells where the player to move may put a stone.
    #[inline]
    fn legal_cells(&self) -> Cells<WORDS> {
        let mut legal = self.breathing();
        if self.ko != NOWHERE {
            legal.remove(usize::from(self.ko));
        }
        if self.superko {
            let again = legal.and(self.taken[self.mover.index()]);
            if again.is_empty() {
                return legal;
            }
            let doubtful = if self.growing { again.and(self.taking()) } else { again };
            doubtful.for_each(|cell| {
                if self.has_been(self.hash_after(cell)) {
                    legal.remove(cell);
                }
            });
        }
        legal
    }

    /// The cells beside stones of the opponent whose chains have one liberty: each stone that takes some comes to one.
    #[inline]
    fn taking(&self) -> Cells<WORDS> {
        let threatened = self.board().stones[self.mover.opponent().index()].and(self.chains.in_atari());
        self.geometry().around(threatened)
    }

    /// The hash of the board after a legal stone of the player to move on `cell`.
    #[inline]
    fn hash_after(&self, cell: usize) -> u128 {
        let (own, other) = (self.mover.index(), self.mover.opponent().index());
        let mut hash = self.board().hash ^ STONES[own][cell];
        let threatened = self.board().stones[other].and(self.chains.in_atari());
        let mut gone = Cells::<WORDS>::NONE;
        for near in self.geometry().near(cell) {
            if threatened.has(near) && !gone.has(near) {
                self.chains.for_each(near, |stone| {
                    gone.insert(stone);
                    hash ^= STONES[other][stone];
                });
            }
        }
        hash
    }

    /// Why the player to move may not put a stone on `cell`; `None` if the player may.
    fn objection(&self, cell: usize) -> Option<&'static str> {
        if self.stone(cell).is_some() {
            return Some("the point has a stone already");
        }
        if !self.breathing().has(cell) {
            return Some("the stone would have no liberty");
        }
        if usize::from(self.ko) == cell {
            return Some("it retakes a ko at once");
        }
        let repeats = self.superko && self.taken[self.mover.index()].has(cell) && self.has_been(self.hash_after(cell));
        repeats.then_some("it brings back an earlier board")
    }

    /// Puts a stone of the player to move, and removes captured chains.
    #[inline]
    fn put(&mut self, board: &mut Board<WORDS>, cell: usize) {
        let (own, other, geometry) = (self.mover.index(), self.mover.opponent().index(), self.geometry());
        board.stones[own].insert(cell);
        board.hash ^= STONES[own][cell];
        let first = !self.taken[own].has(cell);
        if !self.chains.add(geometry, cell, own) {
            self.growing |= first;
            return;
        }
        let mut gone = Cells::<WORDS>::NONE;
        for near in geometry.near(cell) {
            if board.stones[other].has(near) && self.chains.is_dead(near) {
                self.chains.for_each(near, |stone| {
                    board.stones[other].remove(stone);
                    board.hash ^= STONES[other][stone];
                    gone.insert(stone);
                });
                self.chains.remove(geometry, near, board.stones[own]);
            }
        }
        self.growing = first;
        self.taken[other] = self.taken[other].or(gone);
        if !self.superko && gone.len() == 1 && self.chains.is_lone_in_atari(cell) {
            gone.for_each(|cell| self.ko = cell as u16);
        }
    }
}

impl<const WORDS: usize> Game for Go<WORDS> {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.num_cells() + 1,
            obs_shape: [2 * HISTORY + 1, self.size(), self.size()],
            max_plies: 2 * self.num_cells(),
            num_symmetries: D4,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        let over = self.passes == 2 || usize::from(self.plies) == self.max_plies();
        if over { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.reserve(self.num_actions());
        self.legal_cells().for_each(|cell| out.push(cell as Action));
        out.push(self.num_cells() as Action);
    }

    #[inline]
    fn pick_action(&self, _: &mut Vec<Action>, draw: impl FnOnce(usize) -> usize) -> Option<Action> {
        let legal = Counted::of(self.legal_cells());
        let count = legal.len();
        let drawn = draw(count + 1);
        Some(if drawn == count { self.num_cells() } else { legal.nth(drawn) } as Action)
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let cell = action as usize;
        debug_assert!(self.turn() != Turn::Terminal && cell < self.num_actions());
        let mut board = *self.board();
        self.ko = NOWHERE;
        if cell == self.num_cells() {
            self.passes += 1;
        } else {
            debug_assert!(self.stone(cell).is_none());
            self.passes = 0;
            self.put(&mut board, cell);
            self.remember(board.hash);
        }
        self.plies += 1;
        let place = usize::from(self.plies) % HISTORY;
        if place == 0 {
            let hashes = self.recent.each_ref().map(|board| board.hash);
            self.past = Some(Arc::new(Past {
                hashes,
                actions: self.actions,
                before: self.past.take(),
                boards: OnceLock::new(),
            }));
        }
        self.recent[place] = board;
        self.actions[place] = action as u16;
        self.mover = self.mover.opponent();
    }

    #[inline]
    fn outcome(&self) -> Value {
        Value(f32::from(self.double_score().signum()))
    }

    fn encode(&self, row: &mut [f32]) {
        let (cells, plies) = (self.num_cells(), usize::from(self.plies));
        let (boards, turn) = row.split_at_mut(2 * HISTORY * cells);
        for (ago, planes) in boards.chunks_exact_mut(2 * cells).enumerate() {
            let there_was = plies.checked_sub(ago);
            let stones = there_was.map_or([Cells::NONE; 2], |ply| self.recent[ply % HISTORY].stones);
            let (own, other) = planes.split_at_mut(cells);
            put_bits(own, &stones[self.mover.index()].0);
            put_bits(other, &stones[self.mover.opponent().index()].0);
        }
        turn.fill(f32::from(u8::from(self.mover == Player::Zero)));
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 2 * HISTORY + 1])
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        Some(cells_then(self.num_cells(), self.num_actions()))
    }

    #[inline]
    fn key(&self) -> u128 {
        let rest = u64::from(self.size)
            | u64::from(self.passes) << 8
            | u64::from(self.superko) << 16
            | (self.mover as u64) << 17
            | u64::from(self.half_points as u16) << 32
            | u64::from(self.plies) << 48;
        let mut words = [0; 3 + 2 * HISTORY];
        words[0] = rest;
        // The last boards in their order, older ones as a set: planes show no more of them, and superko asks no more.
        // What simple ko bars follows from the last two.
        let boards = self.boards();
        (words[1], words[2]) = ((boards >> 64) as u64, boards as u64);
        let plies = usize::from(self.plies);
        for (ago, pair) in words[3..].chunks_exact_mut(2).enumerate().take(plies + 1) {
            let hash = self.recent[(plies - ago) % HISTORY].hash;
            (pair[0], pair[1]) = ((hash >> 64) as u64, hash as u64);
        }
        digest(Tag::Go, &words)
    }

    #[inline]
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let cell = action as usize;
        if cell == self.num_cells() { action } else { d4_cell(symmetry, self.size(), cell) as Action }
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(symmetry, self.size(), row, out);
    }

    fn render(&self) -> String {
        grid::render(self.size(), LETTERS, |cell| self.stone(cell))
    }
}
