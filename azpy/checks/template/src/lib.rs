//! Three pawns a side (Martin Gardner, Scientific American, March 1962), on boards of any size that fits.
//!
//! Each player has a row of pawns. A pawn steps ahead onto a free cell, or takes the one diagonally ahead. A player
//! who gets a pawn across wins, and so does a player who leaves the other without a move.
//!
//! The board is kept as the player to move sees it, and turned round with every ply: cell `width * row + column`, row 0 is
//! the far one. Actions are seen in the same way: `3 * cell` + 0, 1 or 2, ahead to the left, ahead, ahead to the right.
//! The observation is `[2, height, width]`: the pawns of the player to move, those of the opponent.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::picture::{Touch, board_svg, board_touch};
use azpy_core::text::Notation;

azpy_own::export_game!(azpy_with_hexapawn: "hexapawn" => Hexapawn, &[("width", "3"), ("height", "3")], |p| {
    Hexapawn::new(p.number("width")?, p.number("height")?)
});

/// A position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hexapawn {
    width: u32,
    height: u32,
    /// A bit for each cell with a pawn of the player to move.
    mine: u64,
    theirs: u64,
    mover: Player,
}

impl Hexapawn {
    /// The start on a board of `width` x `height` cells.
    ///
    /// # Errors
    /// If a side is too short, or the board has more than 56 cells.
    pub fn new(width: usize, height: usize) -> Result<Self, String> {
        if !(1..=7).contains(&width) || !(3..=8).contains(&height) {
            return Err(format!("the width must be from 1 to 7 and the height from 3 to 8, got {width} x {height}"));
        }
        let theirs = (1 << width) - 1;
        let (width, height) = (width as u32, height as u32);
        Ok(Self { width, height, mine: theirs << (width * (height - 1)), theirs, mover: Player::Zero })
    }

    fn cells(&self) -> u32 {
        self.width * self.height
    }

    /// The cell on the board turned round.
    fn turned(&self, cell: u32) -> u32 {
        self.cells() - 1 - cell
    }

    fn target(&self, action: Action) -> u32 {
        action / 3 + action % 3 - self.width - 1
    }

    fn is_legal(&self, action: Action) -> bool {
        let (cell, way) = (action / 3, action % 3);
        let column = (cell % self.width + way).wrapping_sub(1);
        if self.mine >> cell & 1 == 0 || cell < self.width || column >= self.width {
            return false;
        }
        let target = 1 << self.target(action);
        self.mine & target == 0 && (self.theirs & target != 0) == (way != 1)
    }

    fn crossed(&self) -> bool {
        self.theirs >> (self.cells() - self.width) != 0
    }

    /// The cell as player 0 sees the board.
    fn shown(&self, cell: u32) -> u32 {
        if self.mover == Player::Zero { cell } else { self.turned(cell) }
    }

    /// The cell as people call it, a1 at the lower left of player 0.
    fn name(&self, cell: u32) -> String {
        let cell = self.shown(cell);
        format!("{}{}", char::from(b'a' + (cell % self.width) as u8), self.height - cell / self.width)
    }
}

impl Game for Hexapawn {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 3 * self.cells() as usize,
            obs_shape: [2, self.height as usize, self.width as usize],
            // Every ply brings a pawn a row further.
            max_plies: 2 * (self.width * (self.height - 1)) as usize,
            num_symmetries: 2,
        }
    }

    fn turn(&self) -> Turn {
        if self.crossed() || !(0..3 * self.cells()).any(|action| self.is_legal(action)) {
            return Turn::Terminal;
        }
        Turn::Player(self.mover)
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend((0..3 * self.cells()).filter(|&action| self.is_legal(action)));
    }

    fn play(&mut self, action: Action) {
        debug_assert!(self.is_legal(action));
        let target = 1 << self.target(action);
        let turned = |pawns: u64| pawns.reverse_bits() >> (64 - self.cells());
        let moved = self.mine & !(1 << (action / 3)) | target;
        (self.mine, self.theirs) = (turned(self.theirs & !target), turned(moved));
        self.mover = self.mover.opponent();
    }

    fn outcome(&self) -> Value {
        // Who would be to move has lost.
        match self.mover {
            Player::Zero => Value(-1.0),
            _ => Value(1.0),
        }
    }

    fn encode(&self, row: &mut [f32]) {
        let (mine, theirs) = row.split_at_mut(self.cells() as usize);
        for (plane, pawns) in [(mine, self.mine), (theirs, self.theirs)] {
            for (cell, value) in plane.iter_mut().enumerate() {
                *value = (pawns >> cell & 1) as f32;
            }
        }
    }

    fn key(&self) -> u128 {
        // At most 56 cells: 113 bits, and above them the size of the board.
        let cells = self.cells();
        let size = self.width << 4 | self.height;
        u128::from(size) << 120
            | (self.mover.index() as u128) << (2 * cells)
            | u128::from(self.mine) << cells
            | u128::from(self.theirs)
    }

    /// Symmetry 1 exchanges left and right.
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        if symmetry == 0 {
            return action;
        }
        let (cell, way) = (action / 3, action % 3);
        let column = cell % self.width;
        3 * (cell - column + self.width - 1 - column) + 2 - way
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        out.copy_from_slice(row);
        if symmetry == 1 {
            out.chunks_mut(self.width as usize).for_each(<[f32]>::reverse);
        }
    }

    fn render(&self) -> String {
        let glyphs = if self.mover == Player::Zero { ["x", "o"] } else { ["o", "x"] };
        let glyph = |cell: u32| {
            let cell = self.shown(cell);
            match (self.mine >> cell & 1, self.theirs >> cell & 1) {
                (1, _) => glyphs[0],
                (_, 1) => glyphs[1],
                _ => ".",
            }
        };
        let line =
            |row: u32| (0..self.width).map(|column| glyph(self.width * row + column)).collect::<Vec<_>>().join(" ");
        let mut text: String = (0..self.height).map(|row| format!("{} {}\n", self.height - row, line(row))).collect();
        text += " ";
        for column in 0..self.width {
            text += &format!(" {}", char::from(b'a' + column as u8));
        }
        text
    }
}

impl Notation for Hexapawn {
    fn action_name(&self, action: Action) -> String {
        if !self.is_legal(action) {
            return action.to_string();
        }
        let sign = if action % 3 == 1 { '-' } else { 'x' };
        format!("{}{sign}{}", self.name(action / 3), self.name(self.target(action)))
    }

    fn to_svg(&self) -> String {
        board_svg(&self.render(), self.height as usize, self.width as usize)
    }

    fn touches(&self, action: Action) -> Vec<Touch> {
        if !self.is_legal(action) {
            return Vec::new();
        }
        let touch = |cell| board_touch(self.height as usize, self.width as usize, self.shown(cell) as usize);
        vec![touch(action / 3), touch(self.target(action))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the player to move wins, by plain recursion.
    fn wins(state: &Hexapawn) -> bool {
        let mut legal = Vec::new();
        if state.turn() != Turn::Terminal {
            state.legal_actions(&mut legal);
        }
        legal.into_iter().any(|action| {
            let mut next = *state;
            next.try_play(action).unwrap();
            !wins(&next)
        })
    }

    #[test]
    fn the_second_player_wins_on_three_by_three_as_gardner_says() {
        assert!(!wins(&Hexapawn::new(3, 3).unwrap()));
    }

    #[test]
    fn a_line_of_play_is_read_and_drawn() {
        let start = Hexapawn::new(3, 3).unwrap();
        let state = start.parse("a1-a2 b3xa2 b1xa2").unwrap();
        assert_eq!(state.render(), "3 o . o\n2 x . .\n1 . . x\n  a b c");
        assert_eq!(state.turn(), Turn::Player(Player::One));
        let names: Vec<_> = {
            let mut legal = Vec::new();
            state.legal_actions(&mut legal);
            legal.into_iter().map(|action| state.action_name(action)).collect()
        };
        assert_eq!(names, ["c3-c2"]);
    }

    #[test]
    fn who_crosses_wins() {
        let state = Hexapawn::new(1, 3).unwrap().parse("a1-a2").unwrap();
        // Nobody can pass the other on a board of one column: player 1 has no move.
        assert_eq!((state.turn(), state.outcome()), (Turn::Terminal, Value(1.0)));
        let state = Hexapawn::new(2, 3).unwrap().parse("a1-a2 b3xa2 b1-b2 a2-a1").unwrap();
        assert_eq!((state.turn(), state.outcome()), (Turn::Terminal, Value(-1.0)));
    }

    #[test]
    fn boards_that_make_no_sense_are_refused() {
        for (width, height) in [(0, 3), (3, 2), (8, 3), (3, 9), (usize::MAX, 3)] {
            assert!(Hexapawn::new(width, height).is_err());
        }
        assert!(Hexapawn::new(7, 8).is_ok());
    }
}
