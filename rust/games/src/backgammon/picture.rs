//! A backgammon board as SVG, as player 0 sees it: the own home is at the lower right.

use azpy_core::game::Player;
use azpy_core::picture::Touch;

use super::side::BAR;
use super::{Backgammon, notation};
use crate::notation::PLAYERS;
use crate::tables::picture::{BoardPicture, ROWS, draw_stack, middle_of};

/// The halves have the bar between them.
const BOARD: BoardPicture =
    BoardPicture { from_left: false, gap: 48.0, fills: ["#8a6a4a", "#f2e6d0", "#d9b88f", "#b98d62"] };

pub(super) fn to_svg(game: &Backgammon) -> String {
    let mut svg = BOARD.drawn(game);
    for player in PLAYERS {
        let side = game.sides[player.index()];
        BOARD.draw_side(&mut svg, side, player);
        // What is hit waits where it will enter: player 0 in the upper half.
        let y = |row| middle_of(player == Player::Zero, ROWS - 1 - row);
        draw_stack(&mut svg, player, BOARD.left_of_gap() + BOARD.gap / 2.0, side.count(BAR), y);
    }
    if let Some([high, low]) = game.dice() {
        // A double is four dice.
        let dice = match game.left {
            [left, _] if high == low => (0..4).map(|number| (high, number < left)).collect(),
            [first, second] => vec![(high, first > 0), (low, second > 0)],
        };
        BOARD.draw_dice(&mut svg, game.mover, &dice);
    }
    svg.done()
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    match place {
        Some(BAR) => BOARD.touch("bar".to_owned(), BOARD.left_of_gap(), BOARD.gap, player == Player::Zero),
        _ => BOARD.touch_of(player, place, |place| format!("point {}", notation::name(place))),
    }
}
