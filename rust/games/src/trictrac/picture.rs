//! A trictrac board as SVG, as player 0 sees it: the own talon is at the lower left, and checkers leave at the left.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::picture::Touch;

use super::{FIELDS, Stage, Trictrac, notation};
use crate::notation::PLAYERS;
use crate::svg::{Svg, color, standing};
use crate::tables::picture::{BoardPicture, HEIGHT, MARGIN};

const BOARD: BoardPicture =
    BoardPicture { from_left: true, gap: 24.0, fills: ["#6b5a44", "#3d3226", "#eee4cf", "#c9a877", "#9c7f57"] };
/// Two lines of scores, and one that says what is next.
const BELOW: f32 = 66.0;

pub(super) fn to_svg(game: &Trictrac) -> String {
    let (width, height) = (BOARD.width(), 2.0 * MARGIN + HEIGHT + BELOW);
    let said = match game.turn() {
        Turn::Player(_) if game.dice().is_some() && game.stage == Stage::Choice => "hold or leave".to_owned(),
        _ => standing(game, ["red", "blue"]),
    };
    let mut svg = Svg::new(width, height, &format!("trictrac, {said}"));
    BOARD.draw(&mut svg);
    for (number, player) in PLAYERS.into_iter().enumerate() {
        BOARD.draw_side(&mut svg, game.sides[player.index()], player);
        let y = 2.0 * MARGIN + HEIGHT + 10.0 + 20.0 * number as f32;
        svg.circle(MARGIN + 8.0, y, 7.0, &format!("fill=\"{}\"", color(player)));
        svg.text(width / 2.0, y, 14.0, &notation::score_text(game, player));
    }
    if let Some([high, low]) = game.dice() {
        let played = game.first.map(|action| usize::from(action) / FIELDS);
        BOARD.draw_dice(&mut svg, game.mover, &[(high, played != Some(0)), (low, played != Some(1))]);
    }
    let y = height - 18.0;
    if game.turn() != Turn::Terminal {
        svg.circle(width / 2.0 - 80.0, y, 7.0, &format!("fill=\"{}\"", color(game.mover)));
    }
    svg.text(width / 2.0, y, 15.0, &said);
    svg.done()
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    BOARD.touch_of(player, place, |place| format!("field {}", place + 1))
}
