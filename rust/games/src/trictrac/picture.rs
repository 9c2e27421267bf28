//! A trictrac board as SVG, as player 0 sees it: the own talon is at the lower left, and checkers leave at the left.

use azpy_core::game::Player;
use azpy_core::picture::Touch;

use super::{FIELDS, Trictrac};
use crate::notation::PLAYERS;
use crate::tables::picture::BoardPicture;

const BOARD: BoardPicture =
    BoardPicture { from_left: true, gap: 24.0, fills: ["#6b5a44", "#eee4cf", "#c9a877", "#9c7f57"] };

pub(super) fn to_svg(game: &Trictrac) -> String {
    let mut svg = BOARD.drawn(game);
    for player in PLAYERS {
        BOARD.draw_side(&mut svg, game.sides[player.index()], player);
    }
    if let Some([high, low]) = game.dice() {
        let played = game.first.map(|action| usize::from(action) / FIELDS);
        BOARD.draw_dice(&mut svg, game.mover, &[(high, played != Some(0)), (low, played != Some(1))]);
    }
    svg.done()
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    BOARD.touch_of(player, place, |place| format!("field {}", place + 1))
}
