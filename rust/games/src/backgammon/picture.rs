//! A backgammon board as SVG, as player 0 sees it: the own home is at the lower right.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::picture::Touch;

use super::side::BAR;
use super::{Backgammon, notation};
use crate::notation::PLAYERS;
use crate::svg::{Svg, color};
use crate::tables::picture::{BoardPicture, HEIGHT, MARGIN, ROWS, STEP, draw_stack, middle_of};

/// The halves have the bar between them.
const BOARD: BoardPicture =
    BoardPicture { from_left: false, gap: 48.0, fills: ["#8a6a4a", "#4a3826", "#f2e6d0", "#d9b88f", "#b98d62"] };
const BAR_LEFT: f32 = MARGIN + 6.0 * STEP;

pub(super) fn to_svg(game: &Backgammon) -> String {
    let (width, height) = (BOARD.width(), 2.0 * MARGIN + HEIGHT + 24.0);
    let said = match game.turn() {
        Turn::Terminal => "the game is over",
        Turn::Chance => "to roll",
        Turn::Player(_) => "to play",
    };
    let mut svg = Svg::new(width, height, &format!("backgammon, {said}"));
    BOARD.draw(&mut svg);
    for player in PLAYERS {
        let side = game.sides[player.index()];
        BOARD.draw_side(&mut svg, side, player);
        // What is hit waits where it will enter: player 0 in the upper half.
        let y = |row| middle_of(player == Player::Zero, ROWS - 1 - row);
        draw_stack(&mut svg, player, BAR_LEFT + BOARD.gap / 2.0, side.count(BAR), y);
        // The pip count: how many points all checkers still have to go.
        let to_go: u32 = (0..=BAR).map(|place| side.count(place) * (place + 1)).sum();
        BOARD.write_at_tray(&mut svg, player, to_go);
    }
    if let Some([high, low]) = game.dice() {
        // A double is four dice.
        let dice = match game.left {
            [left, _] if high == low => (0..4).map(|number| (high, number < left)).collect(),
            [first, second] => vec![(high, first > 0), (low, second > 0)],
        };
        BOARD.draw_dice(&mut svg, game.mover, &dice);
    }
    let (y, middle) = (height - 15.0, width / 2.0);
    if game.turn() != Turn::Terminal {
        svg.circle(middle - 44.0, y, 7.0, &format!("fill=\"{}\"", color(game.mover)));
    }
    svg.text(middle, y, 15.0, said);
    svg.done()
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    match place {
        Some(BAR) => BOARD.touch("bar".to_owned(), BAR_LEFT, BOARD.gap, player == Player::Zero),
        _ => BOARD.touch_of(player, place, |place| format!("point {}", notation::name(place))),
    }
}
