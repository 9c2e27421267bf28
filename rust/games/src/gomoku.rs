//! Gomoku: k in a row on a square board, 15x15 and 5 in a row by default; x (player 0, Black) begins.
//!
//! Cells and actions are `row * size + column`, row 0 = top.
//!
//! Invariant: the stone sets are disjoint and on the board, `empty` has the other cells, and `lines` has the same
//! stones; player 0 has as many stones as player 1, or one more.

mod lines;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::cells::{Cells, Counted};
use crate::error::Error;
use crate::grid;
use crate::key::{Tag, digest};
use crate::notation::{
    FULL_BOARD, PLAYERS, board_or_line, cell_name, in_range, in_rows, marked, read_board, stones, write_board,
};
use crate::planes::{D4, cells_then, d4_cell, d4_planes};
use lines::Lines;

const MIN_SIZE: usize = 3;
const MAX_SIZE: usize = 19;
const WORDS: usize = (MAX_SIZE * MAX_SIZE).div_ceil(64);
const LETTERS: &[u8; MAX_SIZE] = b"abcdefghijklmnopqrs";

/// A position of Gomoku. `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_core::text::Notation;
/// use azpy_games::Gomoku;
///
/// let mut game = Gomoku::new(4, 3)?;
/// for name in ["b2", "a1", "c3", "d1", "a4", "b1", "d4"] {
///     game = game.parse(name)?;
/// }
/// assert_eq!(game.render(), "  a b c d\n4 x . . x\n3 . . x .\n2 . x . .\n1 o o . o");
/// assert_eq!(game.outcome(), Value(1.0));
/// assert_eq!(game.to_text().unwrap(), "x..x/..x./.x../oo.o o");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gomoku {
    /// By player.
    stones: [Cells<WORDS>; 2],
    empty: Counted<WORDS>,
    /// By player.
    lines: [Lines; 2],
    plies: u16,
    size: u8,
    k: u8,
    mover: Player,
    /// The last to move, the opponent of `mover`, has k in a row.
    won: bool,
}

impl Default for Gomoku {
    /// The usual game: 15 x 15, five in a row.
    fn default() -> Self {
        Self::empty(15, 5)
    }
}

impl Gomoku {
    /// The empty board of `size` rows and columns, where `k` in a row win.
    ///
    /// # Errors
    /// If the size is not from 3 to 19, or k not from 2 to the size.
    pub fn new(size: usize, k: usize) -> Result<Self, Error> {
        let fits = in_range("the size", size, MIN_SIZE..=MAX_SIZE)?;
        if !(2..=size).contains(&k) {
            return Err(Error::value("k", format!("from 2 to the size of the board ({size})"), k));
        }
        Ok(Self::empty(fits, k as u8))
    }

    fn empty(size: u8, k: u8) -> Self {
        Self {
            stones: [Cells::NONE; 2],
            empty: Counted::of(Cells::below(usize::from(size) * usize::from(size))),
            lines: [Lines::NONE; 2],
            plies: 0,
            size,
            k,
            mover: Player::Zero,
            won: false,
        }
    }

    /// Rows of the board, and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// How many in a row win.
    #[must_use]
    pub fn k(&self) -> usize {
        usize::from(self.k)
    }

    /// The owner of the stone on `cell` (row * size + column), if there is one.
    #[must_use]
    pub fn stone(&self, cell: usize) -> Option<Player> {
        debug_assert!(cell < self.num_cells());
        PLAYERS.into_iter().find(|player| self.stones[player.index()].has(cell))
    }

    #[inline]
    fn num_cells(&self) -> usize {
        self.size() * self.size()
    }

    #[inline]
    fn put(&mut self, player: Player, cell: usize) {
        let own = player.index();
        self.stones[own].insert(cell);
        self.empty.remove(cell);
        self.won = self.lines[own].add(self.size(), cell, self.k());
        self.plies += 1;
    }

    /// Whether the player has k in a row, and whether one stone can have made all of those.
    fn rows_of(&self, player: Player) -> (bool, bool) {
        let own = self.stones[player.index()];
        let wins = |stones| Lines::of(self.size(), stones).has_row(self.k());
        let mut with_one_stone = false;
        own.for_each(|cell| with_one_stone |= !wins(own.without(Cells::NONE.with(cell))));
        (wins(own), with_one_stone)
    }
}

impl Game for Gomoku {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.num_cells(),
            obs_shape: [2, self.size(), self.size()],
            max_plies: self.num_cells(),
            num_symmetries: D4,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        let over = self.won || usize::from(self.plies) == self.num_cells();
        if over { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.reserve(self.num_cells());
        self.empty.cells().for_each(|cell| out.push(cell as Action));
    }

    #[inline]
    fn pick_action(&self, _: &mut Vec<Action>, draw: impl FnOnce(usize) -> usize) -> Option<Action> {
        Some(self.empty.nth(draw(self.num_cells() - usize::from(self.plies))) as Action)
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let cell = action as usize;
        debug_assert!(!self.won && cell < self.num_cells() && self.stone(cell).is_none());
        self.put(self.mover, cell);
        self.mover = self.mover.opponent();
    }

    #[inline]
    fn outcome(&self) -> Value {
        Value::won_by(self.won.then(|| self.mover.opponent()), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        for (plane, player) in row.chunks_exact_mut(self.num_cells()).zip([self.mover, self.mover.opponent()]) {
            self.stones[player.index()].for_each(|cell| plane[cell] = 1.0);
        }
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 2])
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        Some(cells_then(self.num_cells(), self.num_actions()))
    }

    #[inline]
    fn key(&self) -> u128 {
        // Whose turn it is, and whether it is over, follows from the stones.
        let mut words = [u64::from(self.size) | u64::from(self.k) << 8; 1 + 2 * WORDS];
        words[1..].copy_from_slice(self.stones.map(|stones| stones.0).as_flattened());
        digest(Tag::Gomoku, &words)
    }

    #[inline]
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        d4_cell(symmetry, self.size(), action as usize) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(symmetry, self.size(), row, out);
    }

    fn render(&self) -> String {
        grid::render(self.size(), LETTERS, |cell| self.stone(cell))
    }
}

impl Notation for Gomoku {
    /// Column letter and row number as printed beside the board, row 1 at the bottom.
    fn action_name(&self, action: Action) -> String {
        let (size, cell) = (self.size(), action as usize);
        cell_name(cell % size, size - cell / size)
    }

    /// The first line has the letters of the columns.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        marked(glyph).filter(|_| line > 0)
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(self.num_cells(), |cell| self.action_name(cell as Action), |cell| self.stone(cell))
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["Black", "White"])
    }

    fn result_text(&self) -> String {
        outcome_text(self, &if self.won { format!("by {} in a row", self.k()) } else { FULL_BOARD.to_owned() })
    }

    fn to_svg(&self) -> String {
        let size = self.size();
        let rows = in_rows(size, size, self.k(), |cell| self.stone(cell));
        grid::to_svg(size, LETTERS, self, |cell| self.stone(cell), |cell| rows[cell])
    }

    fn touches(&self, action: Action) -> Vec<Touch> {
        vec![grid::touch(self.size(), action as usize, self.action_name(action))]
    }

    /// A board as `to_text` writes it, or the names of the actions that lead there.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let board = read_board(text, self.size(), self.size())?;
            board.check_turns()?;
            let mut position = Self::empty(self.size, self.k);
            for player in PLAYERS {
                board.stones(player).for_each(|cell| position.put(player, cell));
            }
            position.mover = board.mover;
            let rows = PLAYERS.map(|player| position.rows_of(player));
            board.check_winner(rows.map(|(won, _)| won), |winner| rows[winner.index()].1)?;
            position.won = rows[position.mover.opponent().index()].0;
            Ok(position)
        })
    }

    /// The rows from the top and who is to move: `.../.x./... o`.
    fn to_text(&self) -> Option<String> {
        Some(write_board(self.size(), self.size(), self.mover, |cell| self.stone(cell)))
    }
}
