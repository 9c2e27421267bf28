//! A trictrac board as SVG, as player 0 sees it: the own talon is at the lower left.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::picture::Touch;

use super::{FIELDS, Side, Trictrac, notation};
use crate::notation::PLAYERS;
use crate::svg::{INK, Svg, color, standing};
use crate::tables::pips;

/// Width of a field and diameter of a checker.
const STEP: f32 = 40.0;
const MARGIN: f32 = 26.0;
/// Between the halves, and the tray at the left, where checkers leave.
const GAP: f32 = 24.0;
const TRAY: f32 = 48.0;
const HEIGHT: f32 = 440.0;
const ROWS: u32 = 5;
const WIDTH: f32 = 2.0 * MARGIN + 12.0 * STEP + GAP + TRAY;
/// Two lines of scores, and one that says what is next.
const BELOW: f32 = 66.0;

/// The left edge of a field, numbered as player 0 does.
fn left_of(field: u32) -> f32 {
    let column = if field > 12 { 24 - field } else { field - 1 };
    MARGIN + TRAY + STEP * column as f32 + if column >= 6 { GAP } else { 0.0 }
}

/// The field of a player's place, numbered as player 0 does.
fn field_of(player: Player, place: u32) -> u32 {
    if player == Player::Zero { place + 1 } else { 24 - place }
}

/// The middle of the checker in `row` of a stack that stands at the upper or at the lower edge.
fn middle_of(upper: bool, row: u32) -> f32 {
    let depth = STEP * (row as f32 + 0.5);
    if upper { MARGIN + depth } else { MARGIN + HEIGHT - depth }
}

pub(super) fn to_svg(game: &Trictrac) -> String {
    let height = 2.0 * MARGIN + HEIGHT + BELOW;
    let said = match game.turn() {
        Turn::Player(_) if game.dice().is_some() && game.stage == super::Stage::Choice => "hold or leave".to_owned(),
        _ => standing(game, ["red", "blue"]),
    };
    let mut svg = Svg::new(WIDTH, height, &format!("trictrac, {said}"));
    draw_board(&mut svg);
    for (number, player) in PLAYERS.into_iter().enumerate() {
        draw_side(&mut svg, game.sides[player.index()], player);
        let y = 2.0 * MARGIN + HEIGHT + 10.0 + 20.0 * number as f32;
        svg.circle(MARGIN + 8.0, y, 7.0, &format!("fill=\"{}\"", color(player)));
        svg.text(WIDTH / 2.0, y, 14.0, &notation::score_text(game, player));
    }
    draw_dice(&mut svg, game);
    let y = height - 18.0;
    if game.turn() != Turn::Terminal {
        svg.circle(WIDTH / 2.0 - 80.0, y, 7.0, &format!("fill=\"{}\"", color(game.mover)));
    }
    svg.text(WIDTH / 2.0, y, 15.0, &said);
    svg.done()
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    const DEPTH: f32 = STEP * ROWS as f32;
    let (name, x, width, upper) = match place {
        // Player 0 leaves behind field 24, at the upper left.
        None => ("tray".to_owned(), MARGIN, TRAY, player == Player::Zero),
        Some(place) => {
            let field = field_of(player, place);
            (format!("field {}", place + 1), left_of(field), STEP, field > 12)
        }
    };
    let y = if upper { MARGIN } else { MARGIN + HEIGHT - DEPTH };
    Touch::new(name, [x, y, width, DEPTH])
}

fn draw_board(svg: &mut Svg) {
    let wood = WIDTH - 2.0 * MARGIN;
    svg.rect(MARGIN, MARGIN, wood, HEIGHT, "fill=\"#6b5a44\" stroke=\"#3d3226\" stroke-width=\"3\"");
    for first in [1, 7] {
        svg.rect(left_of(first), MARGIN, 6.0 * STEP, HEIGHT, "fill=\"#eee4cf\"");
    }
    for field in 1..=FIELDS as u32 {
        let (x, upper) = (left_of(field), field > 12);
        let (edge, tip) = if upper { (MARGIN, MARGIN + 190.0) } else { (MARGIN + HEIGHT, MARGIN + HEIGHT - 190.0) };
        let fill = if field % 2 == 0 { "fill=\"#c9a877\"" } else { "fill=\"#9c7f57\"" };
        svg.polygon(&[(x, edge), (x + STEP / 2.0, tip), (x + STEP, edge)], fill);
        let y = if upper { MARGIN - 13.0 } else { MARGIN + HEIGHT + 13.0 };
        svg.text(x + STEP / 2.0, y, 13.0, &field.to_string());
    }
}

/// Checkers on fields, at most five a stack of which the last one says how many there are, and those off as slabs.
fn draw_side(svg: &mut Svg, side: Side, player: Player) {
    let look = format!("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1.5\"", color(player));
    for place in 0..FIELDS as u32 {
        let (field, count) = (field_of(player, place), side.count(place));
        let x = left_of(field) + STEP / 2.0;
        for row in 0..count.min(ROWS) {
            svg.circle(x, middle_of(field > 12, row), 18.5, &look);
        }
        if count > ROWS {
            let y = middle_of(field > 12, ROWS - 1);
            svg.circle(x, y, 12.0, "fill=\"#ffffff\"");
            svg.text(x, y, 16.0, &count.to_string());
        }
    }
    for slab in 0..side.off() {
        let depth = 13.0 * slab as f32 + 4.0;
        let y = if player == Player::Zero { MARGIN + depth } else { MARGIN + HEIGHT - depth - 11.0 };
        svg.rect(MARGIN + 6.0, y, TRAY - 12.0, 11.0, &format!("rx=\"2\" fill=\"{}\"", color(player)));
    }
}

/// The dice of the roll in the middle of a half, the one that has been played faint.
fn draw_dice(svg: &mut Svg, game: &Trictrac) {
    let Some(dice) = game.dice() else {
        return;
    };
    let played = game.first.map(|action| usize::from(action) / FIELDS);
    let size = 34.0;
    let half = if game.mover == Player::Zero { left_of(7) } else { left_of(1) };
    let begin = half + 3.0 * STEP - (size + 4.0);
    for (number, die) in dice.into_iter().enumerate() {
        let (x, y) = (begin + number as f32 * (size + 8.0), MARGIN + HEIGHT / 2.0 - size / 2.0);
        let opacity = if played == Some(number) { 0.3 } else { 1.0 };
        let look = format!("rx=\"6\" fill=\"{}\" stroke=\"{INK}\" opacity=\"{opacity}\"", color(game.mover));
        svg.rect(x, y, size, size, &look);
        for (column, row) in pips(die) {
            svg.circle(x + size / 2.0 + 9.0 * column, y + size / 2.0 + 9.0 * row, 3.2, "fill=\"#ffffff\"");
        }
    }
}
