//! The random starts of freestyle.

use super::{FREESTYLE, PLAYERS, Status, WallGame};
use crate::key::mix;

/// Red's pieces stand in the first columns, and their walls on the left half of the board; Blue's are mirror images.
const PAWN_COLUMNS: usize = 4;
/// Walls of the left half, at least and at most.
const WALLS: [usize; 2] = [4, 10];

/// SplitMix64, the numbers of one start.
struct Draws(u64);

impl Draws {
    /// Even enough: the modulo's bias is below 2^-56 for what is drawn here.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (mix(self.0) % bound as u64) as usize
    }
}

impl WallGame {
    /// Puts up the start of a seed: Red's cat somewhere above Red's mouse in the first four columns, and 4 to 10 walls on
    /// the left half of the board, each as likely to be upright as not, each legal with its mirror image after those
    /// before. (An upright wall in the middle is its own image.)
    pub(super) fn draw_start(&mut self, seed: u64) {
        let [columns, rows] = FREESTYLE;
        let mut draws = Draws(mix(seed));
        let (upper, lower) = loop {
            let [one, other] = [(); 2].map(|()| (draws.below(PAWN_COLUMNS), draws.below(rows)));
            if one.1 != other.1 {
                break if one.1 < other.1 { (one, other) } else { (other, one) };
            }
        };
        for player in PLAYERS {
            let mirrored = |(column, row)| {
                let cell = column * rows + row;
                if player == PLAYERS[0] { cell } else { self.board.image_of_cell(1, cell) }
            };
            let pawns = [mirrored(upper), mirrored(lower)].map(|cell| cell as u16);
            self.pawns[player.index()] = pawns;
        }
        let [least, most] = WALLS;
        let mut left = least + draws.below(most - least + 1);
        while left > 0 {
            let (kind, column, row) = (draws.below(2), draws.below(columns / 2), draws.below(rows));
            let slot = kind * self.board.cells() + column * rows + row;
            let image = self.board.image_of_slot(1, slot);
            if self.is_buildable(slot) {
                self.board.build(slot);
                if image == slot || self.is_buildable(image) {
                    self.board.build(image);
                    left -= 1;
                } else {
                    self.board.tear_down(slot);
                }
            }
        }
        self.status = Status::Playing;
    }

    fn is_buildable(&self, slot: usize) -> bool {
        let mut found = false;
        self.walls().for_each(|other| found |= other == slot);
        found
    }
}
