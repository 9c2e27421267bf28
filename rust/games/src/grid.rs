//! Square boards with stones on the crossings of their lines, as text and as a picture: for Go and Gomoku.
//!
//! Columns have letters, rows have numbers, row 1 at the bottom. Cells are `row * size + column` with row 0 at the top.

use std::fmt::Write as _;

use azpy_core::game::Player;
use azpy_core::picture::Touch;

use crate::notation::rows;

/// Pixels between two lines of a picture.
const STEP: usize = 30;
/// Pixels from a picture's edge to the first line.
const MARGIN: usize = 45;

/// The board, with `x` for the stones of player 0 and `o` for those of player 1; line 0 has the letters.
pub(crate) fn render(size: usize, letters: &[u8], stone: impl Fn(usize) -> Option<Player>) -> String {
    let places = size.to_string().len();
    let mut board = format!("{:places$}", "");
    letters[..size].iter().for_each(|&letter| board.extend([' ', char::from(letter)]));
    for (row, stones) in rows(size, size, stone).enumerate() {
        // Cannot fail: a string takes all that is written to it.
        let _ = write!(board, "\n{:>places$} {stones}", size - row);
    }
    board
}

/// Whose a character of [`render`] is. Letters of columns are no stones.
pub(crate) fn owner(line: usize, glyph: char) -> Option<Player> {
    match glyph {
        'x' if line > 0 => Some(Player::Zero),
        'o' if line > 0 => Some(Player::One),
        _ => None,
    }
}

/// The board as an SVG document: player 0 has the black stones. `is_marked`: whether a cell's stone gets a ring.
pub(crate) fn to_svg(
    size: usize,
    letters: &[u8],
    stone: impl Fn(usize) -> Option<Player>,
    is_marked: impl Fn(usize) -> bool,
) -> String {
    let at = |line: usize| MARGIN + line * STEP;
    let (first, last) = (at(0), at(size - 1));
    let side = last + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" width=\"{side}\" height=\"{side}\">\
         <rect width=\"{side}\" height=\"{side}\" fill=\"#e3b869\"/>\
         <g stroke=\"#4a3a1c\" stroke-width=\"1.2\" stroke-linecap=\"square\">"
    );
    for line in 0..size {
        let at = at(line);
        let _ = write!(svg, "<path d=\"M{first} {at}H{last}M{at} {first}V{last}\"/>");
    }
    svg += "</g><g fill=\"#4a3a1c\">";
    for cell in star_cells(size) {
        let _ = write!(svg, "<circle cx=\"{}\" cy=\"{}\" r=\"3.5\"/>", at(cell % size), at(cell / size));
    }
    svg += "</g><g font-family=\"sans-serif\" font-size=\"13\" fill=\"#4a3a1c\" text-anchor=\"middle\">";
    for (line, &letter) in letters[..size].iter().enumerate() {
        let (at, letter, number) = (at(line), char::from(letter), size - line);
        for edge in [first - 24, last + 33] {
            let _ = write!(svg, "<text x=\"{at}\" y=\"{edge}\">{letter}</text>");
        }
        for edge in [first - 29, last + 29] {
            let _ = write!(svg, "<text x=\"{edge}\" y=\"{}\">{number}</text>", at + 5);
        }
    }
    svg += "</g>";
    for cell in 0..size * size {
        let Some(player) = stone(cell) else { continue };
        let (x, y) = (at(cell % size), at(cell / size));
        let (fill, contrast) = match player {
            Player::Zero => ("#161616", "#ffffff"),
            _ => ("#fdfdf8", "#161616"),
        };
        let _ = write!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"14\" fill=\"{fill}\" stroke=\"#161616\"/>");
        if is_marked(cell) {
            let _ = write!(
                svg,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"7\" fill=\"none\" stroke=\"{contrast}\" stroke-width=\"2\"/>"
            );
        }
    }
    svg + "</svg>"
}

/// The place of a cell of the picture.
pub(crate) fn touch(size: usize, cell: usize, name: String) -> Touch {
    let [x, y] = [cell % size, cell / size].map(|line| (MARGIN + line * STEP - STEP / 2) as f32);
    Touch::new(name, [x, y, STEP as f32, STEP as f32])
}

/// Where boards have dots: the middle where there is one, the corners from 7 lines on, the sides' middles from 17.
fn star_cells(size: usize) -> Vec<usize> {
    let from_edge = if size < 12 { 2 } else { 3 };
    let (low, middle, high) = (from_edge, size / 2, size.saturating_sub(1 + from_edge));
    let mut cells = Vec::new();
    if size >= 7 {
        cells.extend([low, high].into_iter().flat_map(|row| [low, high].map(|column| row * size + column)));
    }
    if size % 2 == 1 {
        cells.push(middle * size + middle);
        if size >= 17 {
            cells.extend([(low, middle), (middle, low), (middle, high), (high, middle)].map(|(r, c)| r * size + c));
        }
    }
    cells
}
