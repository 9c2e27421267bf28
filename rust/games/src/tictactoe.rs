//! Tic-tac-toe: three in a row on a 3x3 board; x (player 0) begins.
//!
//! Cells and actions are `row * 3 + column`, row 0 = top.
//!
//! Invariant: the two stone sets are disjoint, and player 0 has as many stones as player 1 or one more.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::key::{Tag, spread};
use crate::notation::{FULL_BOARD, PLAYERS, board_or_line, cell_name, in_rows, read_board, rows, stones, write_board};
use crate::planes::{D4, d4_cell, d4_planes};
use crate::svg::{self, CELL, Svg, centre};

const SIZE: usize = 3;
const CELLS: usize = SIZE * SIZE;
const FULL: u16 = (1 << CELLS) - 1;

/// The rows, columns and diagonals, one bit a cell.
const LINES: [u16; 8] = [
    0b000_000_111,
    0b000_111_000,
    0b111_000_000,
    0b001_001_001,
    0b010_010_010,
    0b100_100_100,
    0b100_010_001,
    0b001_010_100,
];

/// A position of tic-tac-toe.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_games::TicTacToe;
///
/// let mut game = TicTacToe::new();
/// for action in [4, 0, 2, 1, 6] {
///     game.try_play(action).unwrap();
/// }
/// assert_eq!(game.render(), "o o x\n. x .\nx . .");
/// assert_eq!(game.outcome(), Value(1.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TicTacToe {
    /// One bit a cell, by player.
    stones: [u16; 2],
}

impl TicTacToe {
    /// The empty board, x to move.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn occupied(&self) -> u16 {
        self.stones[0] | self.stones[1]
    }

    /// Whose turn it is by the number of stones, whether or not the game is over.
    fn mover(&self) -> Player {
        if self.occupied().count_ones().is_multiple_of(2) { Player::Zero } else { Player::One }
    }

    fn stone(&self, cell: usize) -> Option<Player> {
        PLAYERS.into_iter().find(|player| self.stones[player.index()] >> cell & 1 == 1)
    }

    fn has_line(&self, player: Player) -> bool {
        let stones = self.stones[player.index()];
        LINES.iter().any(|line| stones & line == *line)
    }
}

impl Game for TicTacToe {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: CELLS, obs_shape: [2, SIZE, SIZE], max_plies: CELLS, num_symmetries: D4 }
    }

    fn turn(&self) -> Turn {
        let mover = self.mover();
        // Only the last to move can have made a line.
        if self.has_line(mover.opponent()) || self.occupied() == FULL { Turn::Terminal } else { Turn::Player(mover) }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let occupied = self.occupied();
        out.extend((0..CELLS as Action).filter(|cell| occupied >> cell & 1 == 0));
    }

    fn play(&mut self, action: Action) {
        debug_assert!((action as usize) < CELLS && self.occupied() >> action & 1 == 0);
        self.stones[self.mover().index()] |= 1 << action;
    }

    fn outcome(&self) -> Value {
        Value::won_by(PLAYERS.into_iter().find(|&player| self.has_line(player)), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        let mover = self.mover();
        for (plane, player) in row.chunks_exact_mut(CELLS).zip([mover, mover.opponent()]) {
            let stones = self.stones[player.index()];
            for (cell, value) in plane.iter_mut().enumerate() {
                *value = f32::from(stones >> cell & 1);
            }
        }
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 2])
    }

    fn key(&self) -> u128 {
        // The turn follows from the number of stones.
        let low = u64::from(self.stones[0]) | u64::from(self.stones[1]) << 16;
        spread(Tag::TicTacToe, 0, low)
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        d4_cell(symmetry, SIZE, action as usize) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(symmetry, SIZE, row, out);
    }

    fn render(&self) -> String {
        rows(SIZE, SIZE, |cell| self.stone(cell)).collect::<Vec<_>>().join("\n")
    }
}

impl Notation for TicTacToe {
    /// Column letter and row number as on a chess board: `a1` is the bottom left cell.
    fn action_name(&self, action: Action) -> String {
        cell_name(action as usize % SIZE, SIZE - action as usize / SIZE)
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(CELLS, |cell| self.action_name(cell as Action), |cell| self.stone(cell))
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["x", "o"])
    }

    fn result_text(&self) -> String {
        outcome_text(self, if self.outcome().0 == 0.0 { FULL_BOARD } else { "by 3 in a row" })
    }

    fn to_svg(&self) -> String {
        let mut picture = Svg::board(SIZE, SIZE, self);
        picture.name_cells(SIZE, SIZE, true);
        let line = format!("stroke=\"{}\" stroke-width=\"2\"", svg::INK);
        let edges = [centre(0) - CELL / 2.0, centre(2) + CELL / 2.0];
        for at in [centre(0) + CELL / 2.0, centre(1) + CELL / 2.0] {
            picture.line((at, edges[0]), (at, edges[1]), &line);
            picture.line((edges[0], at), (edges[1], at), &line);
        }
        for (cell, in_row) in in_rows(SIZE, SIZE, 3, |cell| self.stone(cell)).into_iter().enumerate() {
            let (x, y) = (centre(cell % SIZE), centre(cell / SIZE));
            if in_row {
                picture.circle(x, y, 0.45 * CELL, "fill=\"#fde68a\"");
            }
            let look =
                |player| format!("stroke=\"{}\" stroke-width=\"5\" stroke-linecap=\"round\"", svg::color(player));
            let arm = 0.25 * CELL;
            match self.stone(cell) {
                Some(player @ Player::Zero) => {
                    picture.line((x - arm, y - arm), (x + arm, y + arm), &look(player));
                    picture.line((x - arm, y + arm), (x + arm, y - arm), &look(player));
                }
                Some(player) => {
                    picture.circle(x, y, 0.28 * CELL, &format!("fill=\"none\" {}", look(player)));
                }
                None => {}
            }
        }
        picture.done()
    }

    fn touches(&self, action: Action) -> Vec<Touch> {
        let cell = action as usize;
        vec![svg::square(self.action_name(action), cell % SIZE, cell / SIZE)]
    }

    /// A board as in `..x/.o./... x`, or a line of play.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let board = read_board(text, SIZE, SIZE)?;
            board.check_turns()?;
            let state = Self { stones: PLAYERS.map(|player| board.stones(player).map(|cell| 1_u16 << cell).sum()) };
            // Two lines of one player share a cell: five stones have no room for others.
            board.check_winner(PLAYERS.map(|player| state.has_line(player)), |_| true)?;
            Ok(state)
        })
    }

    fn to_text(&self) -> Option<String> {
        Some(write_board(SIZE, SIZE, self.mover(), |cell| self.stone(cell)))
    }
}
