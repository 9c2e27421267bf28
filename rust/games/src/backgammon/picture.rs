//! A backgammon board as SVG, as player 0 sees it: the own home is at the lower right.

use std::fmt::Write as _;

use azpy_core::game::{Game, Player, Turn};
use azpy_core::picture::Touch;

use super::side::BAR;
use super::{Backgammon, notation};
use crate::tables::pips;

/// Width of a point and diameter of a checker.
const STEP: f32 = 40.0;
const MARGIN: f32 = 26.0;
/// Bar between the halves, tray at the right.
const GAP: f32 = 48.0;
const HEIGHT: f32 = 440.0;
const ROWS: u32 = 5;
const COLORS: [&str; 2] = ["#b3362b", "#2d5f9a"];

/// The left edge of a point, numbered as player 0 does.
fn left_of(point: u32) -> f32 {
    let column = if point > 12 { point - 13 } else { 12 - point };
    MARGIN + STEP * column as f32 + if column >= 6 { GAP } else { 0.0 }
}

/// The point of a player's place, numbered as player 0 does.
fn point_of(player: Player, place: u32) -> u32 {
    if player == Player::Zero { place + 1 } else { 24 - place }
}

/// The middle of the checker in `row` of a stack that stands at the upper or at the lower edge.
fn middle_of(upper: bool, row: u32) -> f32 {
    let depth = STEP * (row as f32 + 0.5);
    if upper { MARGIN + depth } else { MARGIN + HEIGHT - depth }
}

pub(super) fn to_svg(game: &Backgammon) -> String {
    let width = 2.0 * MARGIN + 12.0 * STEP + 2.0 * GAP;
    let height = 2.0 * MARGIN + HEIGHT + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" text-anchor=\"middle\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    draw_board(&mut svg);
    for player in [Player::Zero, Player::One] {
        draw_side(&mut svg, game, player);
    }
    draw_dice(&mut svg, game);
    let said = match game.turn() {
        Turn::Terminal => "the game is over",
        Turn::Chance => "to roll",
        Turn::Player(_) => "to play",
    };
    let (y, middle) = (height - 10.0, width / 2.0);
    if game.turn() != Turn::Terminal {
        let color = COLORS[game.mover.index()];
        write!(svg, "<circle cx=\"{}\" cy=\"{}\" r=\"7\" fill=\"{color}\"/>", middle - 44.0, y - 5.0).unwrap();
    }
    write!(svg, "<text x=\"{middle}\" y=\"{y}\" font-size=\"15\" fill=\"#202020\">{said}</text></svg>").unwrap();
    svg
}

/// Where the checkers of `player` stand on a place, the tray if there is none. Called as in names of actions.
pub(super) fn touch(player: Player, place: Option<u32>) -> Touch {
    const DEPTH: f32 = STEP * ROWS as f32;
    let (name, x, width, upper) = match place {
        None => ("tray".to_owned(), MARGIN + 12.0 * STEP + GAP, GAP, player == Player::One),
        Some(BAR) => ("bar".to_owned(), MARGIN + 6.0 * STEP, GAP, player == Player::Zero),
        Some(place) => {
            let point = point_of(player, place);
            (format!("point {}", notation::name(place)), left_of(point), STEP, point > 12)
        }
    };
    let y = if upper { MARGIN } else { MARGIN + HEIGHT - DEPTH };
    Touch::new(name, [x, y, width, DEPTH])
}

fn draw_board(svg: &mut String) {
    let halves = [MARGIN, MARGIN + 6.0 * STEP + GAP];
    let wood = 12.0 * STEP + 2.0 * GAP;
    write!(
        svg,
        "<rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{wood}\" height=\"{HEIGHT}\" fill=\"#8a6a4a\" stroke=\"#4a3826\" \
         stroke-width=\"3\"/>"
    )
    .unwrap();
    for x in halves {
        let half = 6.0 * STEP;
        write!(svg, "<rect x=\"{x}\" y=\"{MARGIN}\" width=\"{half}\" height=\"{HEIGHT}\" fill=\"#f2e6d0\"/>").unwrap();
    }
    for point in 1..=24 {
        let (x, upper) = (left_of(point), point > 12);
        let (edge, tip) = if upper { (MARGIN, MARGIN + 190.0) } else { (MARGIN + HEIGHT, MARGIN + HEIGHT - 190.0) };
        let fill = if point % 2 == 0 { "#d9b88f" } else { "#b98d62" };
        let (middle, right) = (x + STEP / 2.0, x + STEP);
        write!(svg, "<path d=\"M{x} {edge}L{middle} {tip}L{right} {edge}Z\" fill=\"{fill}\"/>").unwrap();
        let y = if upper { MARGIN - 8.0 } else { MARGIN + HEIGHT + 18.0 };
        write!(svg, "<text x=\"{middle}\" y=\"{y}\" font-size=\"13\" fill=\"#606060\">{point}</text>").unwrap();
    }
}

/// Checkers on points and the bar, and those that are off as slabs in the tray, with the pip count at its edge: how many
/// points all checkers still have to go.
fn draw_side(svg: &mut String, game: &Backgammon, player: Player) {
    let counts = game.checkers(player);
    let color = COLORS[player.index()];
    for place in 0..BAR {
        let point = point_of(player, place);
        draw_stack(svg, color, left_of(point) + STEP / 2.0, counts[place as usize], |row| middle_of(point > 12, row));
    }
    // What is hit waits where it will enter: player 0 in the upper half.
    let (bar, upper) = (MARGIN + 6.0 * STEP + GAP / 2.0, player == Player::Zero);
    let on_bar = counts[BAR as usize];
    draw_stack(svg, color, bar, on_bar, |row| middle_of(upper, ROWS - 1 - row.min(ROWS - 1)));
    let to_go: u32 = counts.iter().zip(1..=BAR + 1).map(|(count, far)| count * far).sum();
    let (middle, y) = (MARGIN + 12.0 * STEP + 1.5 * GAP, if upper { MARGIN + HEIGHT + 18.0 } else { MARGIN - 8.0 });
    write!(svg, "<text x=\"{middle}\" y=\"{y}\" font-size=\"13\" font-weight=\"bold\" fill=\"{color}\">{to_go}</text>")
        .unwrap();
    let x = MARGIN + 12.0 * STEP + GAP + 6.0;
    for slab in 0..counts[25] {
        let depth = 13.0 * slab as f32 + 4.0;
        let y = if player == Player::One { MARGIN + depth } else { MARGIN + HEIGHT - depth - 11.0 };
        let slab_width = GAP - 12.0;
        write!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{slab_width}\" height=\"11\" rx=\"2\" fill=\"{color}\"/>")
            .unwrap();
    }
}

/// At most five checkers; the last of more says how many there are.
fn draw_stack(svg: &mut String, color: &str, x: f32, count: u32, y: impl Fn(u32) -> f32) {
    for row in 0..count.min(ROWS) {
        let y = y(row);
        write!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"18.5\" fill=\"{color}\" stroke=\"#ffffff\" stroke-width=\"1.5\"/>"
        )
        .unwrap();
        if row + 1 == ROWS && count > ROWS {
            let y = y + 6.0;
            write!(svg, "<text x=\"{x}\" y=\"{y}\" font-size=\"17\" fill=\"#ffffff\">{count}</text>").unwrap();
        }
    }
}

/// The dice of the roll in the middle of a half, those that have been played faint; a double as four dice.
fn draw_dice(svg: &mut String, game: &Backgammon) {
    let Some([high, low]) = game.dice() else {
        return;
    };
    let left = game.left;
    let dice: Vec<_> = if high == low {
        (0..4).map(|number| (high, number < left[0])).collect()
    } else {
        vec![(high, left[0] > 0), (low, left[1] > 0)]
    };
    let size = 34.0;
    let half = if game.mover == Player::Zero { MARGIN + 6.0 * STEP + GAP } else { MARGIN };
    let begin = half + 3.0 * STEP - dice.len() as f32 * (size + 8.0) / 2.0 + 4.0;
    for (number, (die, to_play)) in dice.into_iter().enumerate() {
        let (x, y) = (begin + number as f32 * (size + 8.0), MARGIN + HEIGHT / 2.0 - size / 2.0);
        let color = COLORS[game.mover.index()];
        let opacity = if to_play { 1.0 } else { 0.3 };
        write!(
            svg,
            "<g opacity=\"{opacity}\"><rect x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" rx=\"6\" \
             fill=\"{color}\"/>"
        )
        .unwrap();
        for (column, row) in pips(die) {
            let (x, y) = (x + size / 2.0 + 9.0 * column, y + size / 2.0 + 9.0 * row);
            write!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3.2\" fill=\"#ffffff\"/>").unwrap();
        }
        *svg += "</g>";
    }
}
