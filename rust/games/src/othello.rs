//! Othello on 8x8 cells, or 6x6 or 4x4; x (player 0, Black) begins.
//!
//! Cells and actions are `row * size + column`, row 0 = top; one more action, `size * size`, is "pass".
//!
//! A disc set is one `u64`, bit = cell. Rows of discs are followed by shifting sets, all at once, one cell a step
//! ("dumb7fill" of chess programs). A disc in the first or last column is enclosed in no direction but up and down.
//! Leaving those out for the other directions also ends every row that would wrap around the board's edge.
//!
//! Invariant: the disc sets are disjoint and on the board; `moves` and `over` are up to date.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::{PLAYERS, board_or_line, cell_name, counted, read_board, rows, stones, write_board};
use crate::planes::{D4, cells_then, d4_cell, d4_planes, put_bits};
use crate::svg::{self, CELL, Svg};

/// The columns but the first and the last, on boards of 4, 6 and 8.
const INNER_COLUMNS: [u64; 3] = [inner_columns(4), inner_columns(6), inner_columns(8)];

const fn inner_columns(size: u32) -> u64 {
    let row = ((1 << size) - 1) & !1 & !(1 << (size - 1));
    let (mut cells, mut above) = (0, 0);
    while above < size {
        cells |= row << (above * size);
        above += 1;
    }
    cells
}

const fn all_cells(size: u32) -> u64 {
    u64::MAX >> (64 - size * size)
}

/// The four cells in the middle.
const fn centre(size: u32) -> u64 {
    let corner = (size / 2 - 1) * (size + 1);
    0b11 << corner | 0b11 << (corner + size)
}

/// The discs of `enclosed` in an unbroken row beside a cell of `from`, each one `shift` from the one before.
#[inline(always)]
fn run(from: u64, enclosed: u64, size: u32, shift: impl Fn(u64) -> u64) -> u64 {
    let mut discs = shift(from) & enclosed;
    // A line of `size` cells has room for size - 2 discs between two others.
    for _ in 3..size {
        discs |= shift(discs) & enclosed;
    }
    discs
}

/// The steps from a cell to its right, lower left, lower and lower right neighbour, and the discs of `other` that can
/// be enclosed there.
#[inline(always)]
fn lines(other: u64, size: u32) -> [(u32, u64); 4] {
    let inner = other & INNER_COLUMNS[size as usize / 2 - 2];
    [(1, inner), (size - 1, inner), (size, other), (size + 1, inner)]
}

/// Cells where a disc of `own` encloses discs of `other`.
#[inline(always)]
fn moves_of(own: u64, other: u64, size: u32) -> u64 {
    let mut ends = 0;
    for (step, enclosed) in lines(other, size) {
        ends |= run(own, enclosed, size, |cells| cells << step) << step;
        ends |= run(own, enclosed, size, |cells| cells >> step) >> step;
    }
    ends & !(own | other) & all_cells(size)
}

/// Discs of `other` that the disc `new` encloses together with `own`.
#[inline(always)]
fn enclosed_by(new: u64, own: u64, other: u64, size: u32) -> u64 {
    let mut all = 0;
    for (step, enclosed) in lines(other, size) {
        let higher = run(new, enclosed, size, |cells| cells << step);
        let lower = run(new, enclosed, size, |cells| cells >> step);
        // A row that ends at an empty cell or at the edge encloses nothing.
        if higher << step & own != 0 {
            all |= higher;
        }
        if lower >> step & own != 0 {
            all |= lower;
        }
    }
    all
}

/// A position of Othello. Small and `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn};
/// use azpy_games::Othello;
///
/// let mut game = Othello::new(4)?;
/// game.try_play(1).unwrap();
/// assert_eq!(game.render(), "  a b c d\n1 . x . .\n2 . x x .\n3 . x o .\n4 . . . .");
/// assert_eq!(game.turn(), Turn::Player(Player::One));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Othello {
    /// One bit a cell, by player.
    discs: [u64; 2],
    /// Cells where `mover` may put a disc; if there are none, it passes or the game is over.
    moves: u64,
    size: u8,
    mover: Player,
    over: bool,
}

impl Default for Othello {
    /// The usual game: 8 x 8.
    fn default() -> Self {
        Self::start(8)
    }
}

impl Othello {
    /// The start on a board of `size` rows and columns.
    ///
    /// # Errors
    /// If the size is not 4, 6 or 8.
    pub fn new(size: usize) -> Result<Self, Error> {
        match size {
            4 | 6 | 8 => Ok(Self::start(size as u8)),
            _ => Err(Error::value("the size", "4, 6 or 8", size)),
        }
    }

    fn start(size: u8) -> Self {
        let centre = centre(u32::from(size));
        // Player 0 has the upper right cell of the centre and the lower left one.
        let upper_left = 1_u64 << centre.trailing_zeros();
        let lower_right = 1_u64 << (63 - centre.leading_zeros());
        let one = upper_left | lower_right;
        Self::position(size, [centre & !one, one], Player::Zero)
    }

    fn position(size: u8, discs: [u64; 2], mover: Player) -> Self {
        let mut position = Self { discs, moves: 0, size, mover, over: false };
        position.look();
        position
    }

    /// Rows of the board, and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// By player: one bit a disc, `row * size + column`.
    #[must_use]
    pub fn discs(&self) -> [u64; 2] {
        self.discs
    }

    #[inline]
    fn width(&self) -> u32 {
        u32::from(self.size)
    }

    #[inline]
    fn num_cells(&self) -> usize {
        self.size() * self.size()
    }

    /// The discs of `mover` and of its opponent.
    #[inline]
    fn sides(&self) -> [u64; 2] {
        [self.discs[self.mover.index()], self.discs[self.mover.opponent().index()]]
    }

    fn disc(&self, cell: usize) -> Option<Player> {
        PLAYERS.into_iter().find(|player| self.discs[player.index()] >> cell & 1 == 1)
    }

    /// The cells of `taken` that hang together with those of `from`, by sides or corners.
    fn joined_to(&self, from: u64, taken: u64) -> u64 {
        let (size, mut joined) = (self.width(), from);
        let first_column = (0..size).map(|row| 1_u64 << (row * size)).sum::<u64>();
        loop {
            let beside = (joined & !first_column) >> 1 | (joined & !(first_column << (size - 1))) << 1;
            let row = joined | beside;
            let more = (row | row << size | row >> size) & taken;
            if more == joined {
                return joined;
            }
            joined = more;
        }
    }

    /// Brings `moves` and `over` up to date.
    #[inline]
    fn look(&mut self) {
        let [own, other] = self.sides();
        self.moves = moves_of(own, other, self.width());
        self.over = self.moves == 0 && moves_of(other, own, self.width()) == 0;
    }
}

impl Game for Othello {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.num_cells() + 1,
            obs_shape: [2, self.size(), self.size()],
            // After a pass the opponent has a move: there are at most as many passes as discs to put.
            max_plies: 2 * (self.num_cells() - 4),
            num_symmetries: D4,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.over { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let mut rest = self.moves;
        while rest != 0 {
            out.push(rest.trailing_zeros());
            rest &= rest - 1;
        }
        if out.is_empty() {
            out.push(self.num_cells() as Action);
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        debug_assert!(!self.over && (action as usize) < self.num_actions());
        if (action as usize) < self.num_cells() {
            debug_assert!(self.moves >> action & 1 == 1);
            let ([own, other], new) = (self.sides(), 1 << action);
            let turned = enclosed_by(new, own, other, self.width());
            self.discs[self.mover.index()] |= new | turned;
            self.discs[self.mover.opponent().index()] &= !turned;
        } else {
            debug_assert!(self.moves == 0);
        }
        self.mover = self.mover.opponent();
        self.look();
    }

    #[inline]
    fn outcome(&self) -> Value {
        let [zero, one] = self.discs.map(u64::count_ones);
        Value(f32::from(zero.cmp(&one) as i8))
    }

    fn encode(&self, row: &mut [f32]) {
        for (plane, discs) in row.chunks_exact_mut(self.num_cells()).zip(self.sides()) {
            put_bits(plane, &[discs]);
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
        let [zero, one] = self.discs;
        digest(Tag::Othello, &[u64::from(self.size) | (self.mover as u64) << 8, zero, one])
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
        let size = self.size();
        let mut board = format!("  {}", svg::letters(size).join(" "));
        for (number, discs) in (1..).zip(rows(size, size, |cell| self.disc(cell))) {
            board += &format!("\n{number} {discs}");
        }
        board
    }
}

impl Notation for Othello {
    /// Column letter and row number as printed beside the board, or "pass".
    fn action_name(&self, action: Action) -> String {
        let (size, cell) = (self.size(), action as usize);
        if cell == self.num_cells() { "pass".to_owned() } else { cell_name(cell % size, cell / size + 1) }
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(self.num_cells(), |cell| self.action_name(cell as Action), |cell| self.disc(cell))
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["Black", "White"])
    }

    /// With the discs of either player.
    fn result_text(&self) -> String {
        let [zero, one] = self.discs.map(u64::count_ones);
        outcome_text(self, &format!("{}-{}", zero.max(one), zero.min(one)))
    }

    fn counts(&self) -> Vec<String> {
        self.discs.map(|discs| counted(discs.count_ones(), "disc")).into()
    }

    fn to_svg(&self) -> String {
        let size = self.size();
        let mut picture = Svg::board(size, size, self);
        for cell in 0..self.num_cells() {
            let (x, y) = (svg::centre(cell % size), svg::centre(cell / size));
            picture.cell(cell % size, cell / size, "fill=\"#3f8f5f\" stroke=\"#2c6b46\"");
            match self.disc(cell) {
                Some(Player::Zero) => picture.circle(x, y, 0.4 * CELL, "fill=\"#111111\""),
                Some(_) => picture.circle(x, y, 0.4 * CELL, "fill=\"#ffffff\" stroke=\"#9ca3af\""),
                None => {}
            }
        }
        picture.name_cells(size, size, false);
        picture.done()
    }

    /// A cell; a pass has none.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (size, cell) = (self.size(), action as usize);
        let on_board = cell < self.num_cells();
        on_board.then(|| svg::square(self.action_name(action), cell % size, cell / size)).into_iter().collect()
    }

    /// A board as in `..../.ox./.xo./.... x`, or a line of play. Every disc must hang together with the centre, where
    /// games begin; whether a line of play leads there is not found out.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let board = read_board(text, self.size(), self.size())?;
            let discs: [u64; 2] = PLAYERS.map(|player| board.stones(player).map(|cell| 1_u64 << cell).sum());
            let (taken, centre) = (discs[0] | discs[1], centre(self.width()));
            if centre & !taken != 0 {
                return Err(invalid!("a cell in the centre is empty, but every game starts with discs on those four"));
            }
            let [zero, one] = Self::start(self.size).discs;
            if taken == centre && ((discs != [zero, one] && discs != [one, zero]) || board.mover == Player::One) {
                let start = "two of each player in a diagonal, x to move";
                return Err(invalid!("a board with four discs must be the start: {start}"));
            }
            let apart = taken & !self.joined_to(centre, taken);
            if apart != 0 {
                let disc = self.action_name(apart.trailing_zeros());
                return Err(invalid!("the disc on {disc} is not connected to the centre"));
            }
            Ok(Self::position(self.size, discs, board.mover))
        })
    }

    fn to_text(&self) -> Option<String> {
        Some(write_board(self.size(), self.size(), self.mover, |cell| self.disc(cell)))
    }
}
