//! Connect Four for two or three on a board of any size that fits 64 bits: W x H x K, 7x6x4 by default; x (player 0)
//! begins, and all move in turn. An action is a column.
//!
//! A stone set is one `u64`, column by column from the left, each column bottom to top with one spare bit above:
//!
//! ```text
//!  6 13 20 27 34 41 48   spare, always 0
//!  5 12 19 26 33 40 47   top row of a 7x6 board
//!  .  .  .  .  .  .  .
//!  0  7 14 21 28 35 42   bottom row
//! ```
//!
//! Neighbours in a line are a fixed distance apart (1, H, H + 1, H + 2), so a row of stones is found by shifting a set
//! onto itself; the spare bits stop lines that would run from the top of one column into the bottom of the next.
//!
//! Invariant: spare bits are 0, columns are filled from the bottom without gaps, and `status` is up to date.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value, Values};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::error::{Error, invalid};
use crate::key::{Tag, digest, spread};
use crate::notation::{FULL_BOARD, board_or_line, in_rows, mark, marked, read_board_of, write_board};
use crate::planes::mirror_planes;
use crate::svg::{self, CELL, Svg, centre};

/// What a picture has below the lowest row, for the numbers of the columns.
const RIM: f32 = 12.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    Playing,
    /// The last to move has made a line.
    Won,
    Drawn,
}

/// Connect Four for two.
pub type ConnectFour = Connect<2>;
/// Connect Four for three.
pub type ConnectFourForThree = Connect<3>;

/// What the number of players decides.
pub trait Seats {
    /// What such a game pays.
    type Payoff: Payoff;
}

impl Seats for ConnectFour {
    type Payoff = Value;
}

impl Seats for ConnectFourForThree {
    type Payoff = Values;
}

/// A position of Connect Four for `N` players. Small and `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Value};
/// use azpy_games::{ConnectFour, ConnectFourForThree};
///
/// let mut game = ConnectFour::new(4, 3, 3)?;
/// for column in [0, 3, 1, 3] {
///     game.try_play(column).unwrap();
/// }
/// assert_eq!(game.turn(), Turn::Player(Player::Zero));
/// game.try_play(2).unwrap();
/// assert_eq!(game.render(), ". . . .\n. . . o\nx x x o\n1 2 3 4");
/// assert_eq!(game.outcome(), Value(1.0));
///
/// let mut game = ConnectFourForThree::new(4, 3, 3)?;
/// for column in [0, 3, 1, 1, 3, 0, 1, 3] {
///     game.try_play(column).unwrap();
/// }
/// assert_eq!(game.render(), ". x . o\ny x . o\nx y . o\n1 2 3 4");
/// assert_eq!(game.outcome().numbers(), [-0.5, 1.0, -0.5]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connect<const N: usize> {
    /// One bit a cell, by player; the module's drawing says which.
    stones: [u64; N],
    width: u8,
    height: u8,
    /// Stones in a row that win.
    k: u8,
    /// Empty cells.
    left: u8,
    mover: Player,
    status: Status,
}

impl<const N: usize> Default for Connect<N> {
    /// The usual game: 7 columns, 6 rows, four in a row.
    fn default() -> Self {
        Self::empty(7, 6, 4)
    }
}

impl<const N: usize> Connect<N> {
    /// The empty board of `width` columns and `height` rows, where `k` in a row win.
    ///
    /// # Errors
    /// Says what is wrong with a board that has no cells or does not fit 64 bits, or with a `k` that nobody could
    /// reach or that the first stone would.
    pub fn new(width: usize, height: usize, k: usize) -> Result<Self, Error> {
        let size = format!("{width} x {height}");
        if width == 0 || height == 0 {
            return Err(Error::form("a board needs at least one column and one row", size));
        }
        // A column takes one spare bit; saturating, so that absurd sizes are refused and do not wrap around.
        let bits = width.saturating_mul(height.saturating_add(1));
        if bits > 64 {
            let expected = format!("a board of {size} is too large: width * (height + 1) may be at most 64");
            return Err(Error::form(expected, bits));
        }
        let longest = width.max(height);
        if !(2..=longest).contains(&k) {
            let expected = format!("from 2 to the longer side of the board ({longest} for {size})");
            return Err(Error::value("k", expected, k));
        }
        Ok(Self::empty(width as u8, height as u8, k as u8))
    }

    fn empty(width: u8, height: u8, k: u8) -> Self {
        Self { stones: [0; N], width, height, k, left: width * height, mover: Player::Zero, status: Status::Playing }
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

    /// Stones in a row that win.
    #[must_use]
    pub fn k(&self) -> usize {
        usize::from(self.k)
    }

    /// Who has the stone in `column` (0 = left), `row` (0 = top), if any has.
    #[must_use]
    pub fn stone(&self, column: usize, row: usize) -> Option<Player> {
        debug_assert!(column < self.width() && row < self.height());
        let bit = self.bit(column, row);
        Player::ALL.into_iter().zip(self.stones).find(|(_, stones)| stones & bit != 0).map(|(player, _)| player)
    }

    /// Who moves after `player`.
    #[inline]
    fn next(player: Player) -> Player {
        // Of two players the other one, without a look at a table.
        if N == 2 { player.opponent() } else { Player::ALL[(player.index() + 1) % N] }
    }

    /// Who has made a line: the last to move, or nobody.
    #[inline]
    fn winner(&self) -> Option<Player> {
        let last = if N == 2 { self.mover.opponent() } else { Player::ALL[(self.mover.index() + N - 1) % N] };
        (self.status == Status::Won).then_some(last)
    }

    fn bit(&self, column: usize, row: usize) -> u64 {
        1 << (column * usize::from(self.stride()) + self.height() - 1 - row)
    }

    /// Bits from a cell to its right neighbour.
    #[inline]
    fn stride(&self) -> u8 {
        self.height + 1
    }

    #[inline]
    fn occupied(&self) -> u64 {
        self.stones.iter().fold(0, |all, stones| all | stones)
    }

    /// Whether `stones` hold `k` in a row in any direction.
    #[inline(always)]
    fn has_line(&self, stones: u64) -> bool {
        if self.k == 4 && self.width >= 4 && self.height >= 4 {
            // The usual case by itself, so that the compiler unrolls it.
            let stride = u32::from(self.stride());
            return [1, stride - 1, stride, stride + 1].into_iter().any(|step| has_run(stones, step, 4));
        }
        self.has_any_line(stones)
    }

    #[inline(never)]
    fn has_any_line(&self, stones: u64) -> bool {
        let (k, stride) = (u32::from(self.k), u32::from(self.stride()));
        // A direction in which `k` cells do not fit is left out: its shifts could exceed 63 bits.
        let (across, upright) = (self.k <= self.width, self.k <= self.height);
        (upright && has_run(stones, 1, k))
            || (across && has_run(stones, stride, k))
            || (across && upright && (has_run(stones, stride - 1, k) || has_run(stones, stride + 1, k)))
    }

    /// Whether taking a stone of `winner` off the top of a column leaves it without a line.
    fn can_end_with(&self, winner: Player) -> bool {
        let (occupied, stones) = (self.occupied(), self.stones[winner.index()]);
        (0..self.width()).any(|column| {
            let top = (0..self.height()).find(|&row| occupied & self.bit(column, row) != 0);
            let stone = top.map_or(0, |row| self.bit(column, row));
            stones & stone != 0 && !self.has_line(stones & !stone)
        })
    }
}

/// Whether `k` bits of `stones` lie `step` apart in a row. Each pass keeps the starts of runs up to twice as long.
#[inline(always)]
fn has_run(stones: u64, step: u32, k: u32) -> bool {
    let (mut starts, mut length) = (stones, 1);
    while length < k {
        let more = length.min(k - length);
        starts &= starts >> (more * step);
        length += more;
    }
    starts != 0
}

impl<const N: usize> Game for Connect<N>
where
    Self: Seats,
{
    type Payoff = <Self as Seats>::Payoff;

    fn num_players(&self) -> usize {
        N
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.width(),
            obs_shape: [N, self.height(), self.width()],
            max_plies: self.width() * self.height(),
            // The mirror of a single column is itself.
            num_symmetries: if self.width == 1 { 1 } else { 2 },
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        match self.status {
            Status::Playing => Turn::Player(self.mover),
            Status::Won | Status::Drawn => Turn::Terminal,
        }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let stride = self.stride();
        // The top row, its first column at bit 0.
        let top = self.occupied() >> (self.height - 1);
        let is_open = |column: &u8| top >> (column * stride) & 1 == 0;
        out.extend((0..self.width).filter(is_open).map(Action::from));
    }

    #[inline(always)] // once a ply of a simulation
    fn play(&mut self, action: Action) {
        let occupied = self.occupied();
        let bottom = 1_u64 << (action * u32::from(self.stride()));
        // The carry of the addition runs through the column's stones and stops in its lowest empty cell.
        let stone = (occupied + bottom) & !occupied;
        debug_assert!(self.status == Status::Playing && (action as usize) < self.width());
        debug_assert!(occupied >> (action * u32::from(self.stride()) + u32::from(self.height) - 1) & 1 == 0);
        let stones = &mut self.stones[self.mover.index()];
        *stones |= stone;
        let stones = *stones;
        self.left -= 1;
        self.mover = Self::next(self.mover);
        if self.has_line(stones) {
            self.status = Status::Won;
        } else if self.left == 0 {
            self.status = Status::Drawn;
        }
    }

    #[inline]
    fn outcome(&self) -> Self::Payoff {
        Self::Payoff::won_by(self.winner(), N)
    }

    fn encode(&self, row: &mut [f32]) {
        let (width, height) = (self.width(), self.height());
        row.fill(0.0);
        let mut player = self.mover;
        for plane in row.chunks_exact_mut(width * height) {
            let mut stones = self.stones[player.index()];
            player = Self::next(player);
            for column in 0..width {
                // Only the stones are visited: boards are mostly empty.
                let mut rest = stones & ((1 << height) - 1);
                while rest != 0 {
                    let above_bottom = rest.trailing_zeros() as usize;
                    plane[(height - 1 - above_bottom) * width + column] = 1.0;
                    rest &= rest - 1;
                }
                stones = stones.checked_shr(u32::from(self.stride())).unwrap_or(0);
            }
        }
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; N])
    }

    #[inline]
    fn key(&self) -> u128 {
        // A column as bits from its bottom: one a stone (whose it is), then a 1 that marks the height. Exact in W * (H + 1)
        // bits; the turn follows from the number of stones.
        let stride = u32::from(self.stride());
        let bottoms = (0..u32::from(self.width)).fold(0_u64, |bits, column| bits | 1 << (column * stride));
        let low = (self.occupied() + bottoms) | self.stones[0];
        let high = u64::from(self.width) | u64::from(self.height) << 8 | u64::from(self.k) << 16;
        // Of three players the stones of the second one say whose the others are.
        if N == 2 {
            spread(Tag::ConnectFour, high, low)
        } else {
            digest(Tag::ConnectFourForThree, &[high, low, self.stones[1]])
        }
    }

    #[inline]
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        if symmetry == 0 { action } else { Action::from(self.width) - 1 - action }
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        mirror_planes(symmetry, self.width(), row, out);
    }

    fn render(&self) -> String {
        // Wide boards need two places a column.
        let places = if self.width > 9 { 2 } else { 1 };
        let line = |cells: Vec<String>| {
            cells.into_iter().map(|cell| format!("{cell:>places$}")).collect::<Vec<_>>().join(" ") + "\n"
        };
        let mut board = String::new();
        for row in 0..self.height() {
            board +=
                &line((0..self.width()).map(|column| self.stone(column, row).map_or('.', mark).to_string()).collect());
        }
        board += &line((1..=self.width()).map(|number| number.to_string()).collect());
        board.trim_end().to_owned()
    }
}

impl<const N: usize> Notation for Connect<N>
where
    Self: Seats,
{
    /// The column's number as printed below the board, from 1.
    fn action_name(&self, action: Action) -> String {
        (action + 1).to_string()
    }

    fn owner(&self, _: usize, glyph: char) -> Option<Player> {
        marked(glyph)
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(svg::NAMES[..N].to_vec())
    }

    fn result_text(&self) -> String {
        let how = if self.status == Status::Won { format!("by {} in a row", self.k()) } else { FULL_BOARD.to_owned() };
        outcome_text(self, &how)
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn to_svg(&self) -> String {
        let (width, height) = (self.width(), self.height());
        let high = CELL * height as f32;
        let mut picture = Svg::on_ground(CELL * width as f32, high + RIM, self);
        let rows = in_rows(width, height, self.k(), |cell| self.stone(cell % width, cell / width));
        for column in 0..width {
            picture.name(centre(column), high + RIM / 2.0 - 1.0, &(column + 1).to_string());
        }
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            let look = match self.stone(column, row) {
                Some(player) => svg::stone(player, rows[row * width + column]),
                None => format!("fill=\"#ffffff\" stroke=\"{}\"", svg::LINE),
            };
            picture.circle(centre(column), centre(row), 0.41 * CELL, &look);
        }
        picture.done()
    }

    /// The whole column.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (column, height) = (action as usize, CELL * self.height() as f32);
        let name = format!("column {}", self.action_name(action));
        vec![Touch::new(name, [CELL * column as f32, 0.0, CELL, height])]
    }

    /// A board as in `......./......./......./......./...o.../...x... x`, or a line of play. That no order of play can
    /// have filled the columns so is not found out; stones without one below, and lines that no last stone made, are.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let (width, height) = (self.width(), self.height());
            let board = read_board_of(N, text, width, height)?;
            let mut state = Self::empty(self.width, self.height, self.k);
            state.mover = board.mover;
            for (cell, stone) in board.cells.iter().enumerate() {
                let (Some(player), row, column) = (stone, cell / width, cell % width) else { continue };
                if row + 1 < height && board.cells[cell + width].is_none() {
                    let (row, column) = (row + 1, column + 1);
                    return Err(invalid!(
                        "there is nothing below the stone in column {column}, row {row} from the top"
                    ));
                }
                state.stones[player.index()] |= state.bit(column, row);
                state.left -= 1;
            }
            board.check_turns()?;
            let won = state.stones.map(|stones| state.has_line(stones));
            board.check_winner(won, |winner| state.can_end_with(winner))?;
            if won.contains(&true) {
                state.status = Status::Won;
            } else if state.left == 0 {
                state.status = Status::Drawn;
            }
            Ok(state)
        })
    }

    fn to_text(&self) -> Option<String> {
        let stone = |cell| self.stone(cell % self.width(), cell / self.width());
        Some(write_board(self.width(), self.height(), self.mover, stone))
    }
}
