//! Square boards with stones on the crossings of their lines, as text and as a picture: for Go and Gomoku.
//!
//! Columns have letters, rows have numbers, row 1 at the bottom. Cells are `row * size + column` with row 0 at the top.

use std::fmt::Write as _;

use azpy_core::game::Player;
use azpy_core::picture::Touch;
use azpy_core::text::Notation;

use crate::notation::rows;
use crate::svg::Svg;

/// Pixels between two lines of a picture.
const STEP: f32 = 30.0;
/// Pixels from a line at the edge to the end of the wood, without names and with them.
const NEAR: f32 = 16.0;
const FAR: f32 = 26.0;

/// Where a line of a picture is, from the left and from the top.
fn at(line: usize) -> [f32; 2] {
    [FAR, NEAR].map(|edge| edge + STEP * line as f32)
}

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

/// The board as an SVG document: player 0 has the black stones. `is_marked` says whether a cell's stone gets a ring.
pub(crate) fn to_svg(
    size: usize,
    letters: &[u8],
    game: &impl Notation,
    stone: impl Fn(usize) -> Option<Player>,
    is_marked: impl Fn(usize) -> bool,
) -> String {
    const NAME: &str = "class=\"name\"";
    const LINE: &str = "stroke=\"#4a3a1c\" stroke-width=\"1.2\" stroke-linecap=\"square\"";
    let ([left, top], [right, bottom]) = (at(0), at(size - 1));
    let side = right + NEAR;
    let mut svg = Svg::new(side, side, game);
    svg.rect(0.0, 0.0, side, side, "fill=\"#e3b869\"");
    for (line, &letter) in letters[..size].iter().enumerate() {
        let [x, y] = at(line);
        svg.line((left, y), (right, y), LINE);
        svg.line((x, top), (x, bottom), LINE);
        svg.text_that_looks(x, side - 6.0, 11.0, &char::from(letter).to_string(), NAME);
        svg.text_that_looks(6.5, y, 11.0, &(size - line).to_string(), NAME);
    }
    let middle = |cell: usize| (at(cell % size)[0], at(cell / size)[1]);
    for cell in star_cells(size) {
        let (x, y) = middle(cell);
        svg.circle(x, y, 3.5, "fill=\"#4a3a1c\"");
    }
    for cell in 0..size * size {
        let Some(player) = stone(cell) else { continue };
        let (x, y) = middle(cell);
        let [fill, contrast] = [["#161616", "#ffffff"], ["#fdfdf8", "#161616"]][player.index()];
        svg.circle(x, y, 14.0, &format!("fill=\"{fill}\" stroke=\"#161616\""));
        if is_marked(cell) {
            svg.circle(x, y, 7.0, &format!("fill=\"none\" stroke=\"{contrast}\" stroke-width=\"2\""));
        }
    }
    svg.done()
}

/// The place of a cell of the picture.
pub(crate) fn touch(size: usize, cell: usize, name: String) -> Touch {
    let [x, y] = [at(cell % size)[0], at(cell / size)[1]];
    Touch::new(name, [x - STEP / 2.0, y - STEP / 2.0, STEP, STEP])
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
