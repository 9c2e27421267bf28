//! Breakthrough on W x H cells, 8x8 by default; x (player 0) begins at the bottom and moves up, o moves down.
//!
//! The player to move always can: the foremost pieces have none of their own before them.
//!
//! Cells are `row * width + column`, row 0 = top. The action is `3 * from + direction`, where the piece on cell `from`
//! goes on to the column to its left (0), its own (1) or the one to its right (2), left and right as drawn.
//!
//! Invariant: the piece sets are disjoint and on the board; `over` says that the opponent of `mover` has won.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, captured_men, outcome_text};

use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::{PLAYERS, board_or_line, cell_name, mark, marked, read_board, rows, stones, write_board};
use crate::planes::mirror_planes;
use crate::svg::{self, Svg};

/// From this height on each player has two rows of pieces. (OpenSpiel's rule; the usual board has eight.)
const TALL: usize = 6;

/// A position of Breakthrough. Small and `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_core::text::Notation;
/// use azpy_games::Breakthrough;
///
/// let start = Breakthrough::new(3, 4)?;
/// assert_eq!(start.to_text().unwrap(), "ooo/.../.../xxx x");
/// let game = start.parse("a1b2 c4c3 b2c3 b4c3 b1c2 c3b2 c2b3 b2a1")?;
/// assert_eq!(game.render(), "4 o . .\n3 . x .\n2 . . .\n1 o . x\n  a b c");
/// assert_eq!(game.outcome(), Value(-1.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Breakthrough {
    /// One bit a cell, by player.
    pieces: [u64; 2],
    width: u8,
    height: u8,
    mover: Player,
    over: bool,
}

impl Default for Breakthrough {
    /// The usual game: 8 x 8.
    fn default() -> Self {
        Self::start(8, 8)
    }
}

impl Breakthrough {
    /// The start on a board of `width` columns and `height` rows.
    ///
    /// # Errors
    /// If there are less than two columns or three rows, or more than 64 cells.
    pub fn new(width: usize, height: usize) -> Result<Self, Error> {
        if width < 2 || height < 3 {
            return Err(invalid!("a board needs at least 2 columns and 3 rows, got {width} x {height}"));
        }
        match width.checked_mul(height) {
            Some(cells) if cells <= 64 => Ok(Self::start(width as u8, height as u8)),
            _ => Err(invalid!("a board of {width} x {height} is too large: there may be at most 64 cells")),
        }
    }

    fn start(width: u8, height: u8) -> Self {
        let mut start = Self { pieces: [0; 2], width, height, mover: Player::Zero, over: false };
        let cells = start.width() * start.height();
        let home = u64::MAX >> (64 - start.num_pieces());
        start.pieces = [home << (cells - start.num_pieces()), home];
        start
    }

    /// Columns of the board.
    #[must_use]
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Rows of the board.
    #[must_use]
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }

    /// Pieces of each player at the start.
    fn num_pieces(&self) -> usize {
        self.width() * if self.height() >= TALL { 2 } else { 1 }
    }

    #[inline]
    fn num_cells(&self) -> usize {
        self.width() * self.height()
    }

    fn piece(&self, cell: usize) -> Option<Player> {
        PLAYERS.into_iter().find(|player| self.pieces[player.index()] >> cell & 1 == 1)
    }

    /// One bit a cell of the top row.
    #[inline]
    fn top_row(&self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    /// The row on which a piece of `player` wins.
    #[inline]
    fn goal(&self, player: Player) -> u64 {
        match player {
            Player::Zero => self.top_row(),
            _ => self.top_row() << (self.num_cells() - self.width()),
        }
    }

    /// The column on the left.
    #[inline]
    fn left_column(&self) -> u64 {
        let mut column = 1_u64;
        for _ in 1..self.height() {
            column = column << self.width | 1;
        }
        column
    }

    /// By direction: the pieces of the player to move that can go there.
    #[inline]
    fn movable(&self) -> [u64; 3] {
        let (own, other) = (self.pieces[self.mover.index()], self.pieces[self.mover.opponent().index()]);
        let (width, left) = (u32::from(self.width), self.left_column());
        let right = left << (width - 1);
        // Both go on below the board. That does not matter: a piece on its last row has won.
        let (empty, free) = (!(own | other), !own);
        // Where pieces come from that go to one of these cells.
        let [from_left, from_below, from_right] = match self.mover {
            Player::Zero => [free << (width + 1), empty << width, free << (width - 1)],
            _ => [free >> (width - 1), empty >> width, free >> (width + 1)],
        };
        [own & !left & from_left, own & from_below, own & !right & from_right]
    }

    /// Where the piece on `from` goes to.
    #[inline]
    fn target(&self, from: usize, direction: usize) -> usize {
        match self.mover {
            Player::Zero => from - self.width() + direction - 1,
            _ => from + self.width() + direction - 1,
        }
    }

    /// As `target`, of any action.
    fn target_on_board(&self, from: usize, direction: usize) -> Option<usize> {
        let (row, column) = ((from / self.width()) as isize, (from % self.width() + direction) as isize - 1);
        let row = if self.mover == Player::Zero { row - 1 } else { row + 1 };
        let on_board = (0..self.height() as isize).contains(&row) && (0..self.width() as isize).contains(&column);
        on_board.then(|| row as usize * self.width() + column as usize)
    }

    fn cell_name(&self, cell: usize) -> String {
        cell_name(cell % self.width(), self.height() - cell / self.width())
    }

    #[inline]
    fn has_won(&self, player: Player) -> bool {
        self.pieces[player.index()] & self.goal(player) != 0 || self.pieces[player.opponent().index()] == 0
    }
}

impl Game for Breakthrough {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 3 * self.num_cells(),
            obs_shape: [3, self.height(), self.width()],
            // Every ply takes a piece one row on.
            max_plies: 2 * self.num_pieces() * (self.height() - 1),
            num_symmetries: 2,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.over { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let movable = self.movable();
        let mut rest = movable[0] | movable[1] | movable[2];
        while rest != 0 {
            let from = rest.trailing_zeros();
            for (direction, pieces) in movable.into_iter().enumerate() {
                if pieces >> from & 1 == 1 {
                    out.push(3 * from + direction as Action);
                }
            }
            rest &= rest - 1;
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let (from, direction) = (action as usize / 3, action as usize % 3);
        debug_assert!(!self.over && (action as usize) < self.num_actions());
        debug_assert!(self.movable()[direction] >> from & 1 == 1);
        let (own, other, target) = (self.mover.index(), self.mover.opponent().index(), self.target(from, direction));
        self.pieces[own] = self.pieces[own] & !(1 << from) | 1 << target;
        self.pieces[other] &= !(1 << target);
        self.over = self.has_won(self.mover);
        self.mover = self.mover.opponent();
    }

    #[inline]
    fn outcome(&self) -> Value {
        Value::won_by(Some(self.mover.opponent()), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        let cells = self.num_cells();
        for (plane, player) in row.chunks_exact_mut(cells).zip([self.mover, self.mover.opponent()]) {
            for (cell, value) in plane.iter_mut().enumerate() {
                *value = (self.pieces[player.index()] >> cell & 1) as f32;
            }
        }
        row[2 * cells..].fill(f32::from(self.mover as u8));
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 3])
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        let cells = self.num_cells();
        Some((0..self.num_actions()).map(|action| Some((action % 3 * cells + action / 3) as u32)).collect())
    }

    #[inline]
    fn key(&self) -> u128 {
        // Whether it is over follows from the pieces.
        let rest = u64::from(self.width) | u64::from(self.height) << 8 | (self.mover as u64) << 16;
        let [zero, one] = self.pieces;
        digest(Tag::Breakthrough, &[rest, zero, one])
    }

    #[inline]
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        if symmetry == 0 {
            return action;
        }
        let (from, direction) = (action as usize / 3, action as usize % 3);
        let (row, column) = (from / self.width(), from % self.width());
        (3 * (row * self.width() + self.width() - 1 - column) + 2 - direction) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        mirror_planes(symmetry, self.width(), row, out);
    }

    fn render(&self) -> String {
        let (height, places) = (self.height(), self.height().to_string().len());
        let mut board = String::new();
        for (row, pieces) in rows(self.width(), height, |cell| self.piece(cell)).enumerate() {
            board += &format!("{:>places$} {pieces}\n", height - row);
        }
        board + &format!("{:places$} {}", "", svg::letters(self.width()).join(" "))
    }
}

impl Notation for Breakthrough {
    /// Where the piece stands and where it goes, column letter and row number as printed: a2b3.
    fn action_name(&self, action: Action) -> String {
        let (from, direction) = (action as usize / 3, action as usize % 3);
        // Name impossible actions too.
        let target = self.target_on_board(from, direction);
        self.cell_name(from) + &target.map_or("-".to_owned(), |cell| self.cell_name(cell))
    }

    /// The line below the board has the letters of the columns.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        marked(glyph).filter(|_| line < self.height())
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(self.num_cells(), |cell| self.cell_name(cell), |cell| self.piece(cell))
    }

    fn captured(&self, actions: &[Action]) -> Vec<String> {
        captured_men(self, actions)
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["red", "blue"])
    }

    fn result_text(&self) -> String {
        let all_taken = self.pieces[self.mover.index()] == 0;
        outcome_text(self, if all_taken { "by taking the last piece" } else { "by reaching the last row" })
    }

    fn to_svg(&self) -> String {
        let mut picture = Svg::board(self.width(), self.height(), self);
        for cell in 0..self.num_cells() {
            let (row, column) = (cell / self.width(), cell % self.width());
            // As on a chess board, the lower left corner is dark.
            let fill = if (self.height() - 1 - row + column).is_multiple_of(2) { svg::LINE } else { svg::EMPTY };
            picture.cell(column, row, &format!("fill=\"{fill}\""));
            if let Some(player) = self.piece(cell) {
                picture.circle(
                    svg::centre(column),
                    svg::centre(row),
                    0.36 * svg::CELL,
                    &format!("fill=\"{}\"", svg::color(player)),
                );
            }
        }
        picture.name_cells(self.width(), self.height(), true);
        picture.done()
    }

    /// Where the piece stands, and where it goes.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (from, direction) = (action as usize / 3, action as usize % 3);
        let Some(to) = self.target_on_board(from, direction) else { return Vec::new() };
        let square = |cell: usize| svg::square(self.cell_name(cell), cell % self.width(), cell / self.width());
        vec![square(from), square(to)]
    }

    /// A board as `to_text` writes it, or the names of the actions that lead there.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let board = read_board(text, self.width(), self.height())?;
            let mut position = Self { pieces: [0; 2], mover: board.mover, over: false, ..*self };
            for (player, count) in PLAYERS.into_iter().zip(board.counts()) {
                if count > self.num_pieces() {
                    return Err(invalid!("{} has at most {} pieces, got {count}", mark(player), self.num_pieces()));
                }
                board.stones(player).for_each(|cell| position.pieces[player.index()] |= 1 << cell);
            }
            let won = PLAYERS.map(|player| position.has_won(player));
            let home = |player: Player| position.pieces[player.index()] & position.goal(player);
            board.check_winner(won, |winner| home(winner).count_ones() <= 1)?;
            position.over = won != [false; 2];
            Ok(position)
        })
    }

    /// The rows from the top and who is to move: `ooo/.../.../xxx x`.
    fn to_text(&self) -> Option<String> {
        Some(write_board(self.width(), self.height(), self.mover, |cell| self.piece(cell)))
    }
}
