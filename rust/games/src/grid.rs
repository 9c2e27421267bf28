//! Square boards with stones on the crossings of their lines, as text and as a picture: for Go and Gomoku.
//!
//! Columns have letters, rows have numbers, row 1 at the bottom. Cells are `row * size + column` with row 0 at the top.

use std::fmt::Write as _;

use azpy_core::game::Player;
use azpy_core::picture::Touch;

use crate::notation::rows;
use crate::svg::Svg;

/// Pixels between two lines of a picture.
const STEP: f32 = 30.0;
/// Pixels from a picture's edge to the first line.
const MARGIN: f32 = 45.0;

/// Where a line of a picture is.
fn at(line: usize) -> f32 {
    MARGIN + STEP * line as f32
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

/// Whose a character of [`render`] is. Letters of columns are no stones.
pub(crate) fn owner(line: usize, glyph: char) -> Option<Player> {
    match glyph {
        'x' if line > 0 => Some(Player::Zero),
        'o' if line > 0 => Some(Player::One),
        _ => None,
    }
}

/// The board as an SVG document: player 0 has the black stones. `said` is how the game stands, and `is_marked` whether a
/// cell's stone gets a ring.
pub(crate) fn to_svg(
    size: usize,
    letters: &[u8],
    said: &str,
    stone: impl Fn(usize) -> Option<Player>,
    is_marked: impl Fn(usize) -> bool,
) -> String {
    const LINE: &str = "stroke=\"#4a3a1c\" stroke-width=\"1.2\" stroke-linecap=\"square\"";
    let (first, last) = (at(0), at(size - 1));
    let mut svg = Svg::new(last + MARGIN, last + MARGIN, said);
    svg.rect(0.0, 0.0, last + MARGIN, last + MARGIN, "fill=\"#e3b869\"");
    for (line, &letter) in letters[..size].iter().enumerate() {
        svg.line((first, at(line)), (last, at(line)), LINE);
        svg.line((at(line), first), (at(line), last), LINE);
        let (letter, number) = (char::from(letter).to_string(), (size - line).to_string());
        for beyond in [first - 29.0, last + 29.0] {
            svg.text(at(line), beyond, 13.0, &letter);
            svg.text(beyond, at(line), 13.0, &number);
        }
    }
    for cell in star_cells(size) {
        svg.circle(at(cell % size), at(cell / size), 3.5, "fill=\"#4a3a1c\"");
    }
    for cell in 0..size * size {
        let Some(player) = stone(cell) else { continue };
        let (x, y) = (at(cell % size), at(cell / size));
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
    let [x, y] = [cell % size, cell / size].map(|line| at(line) - STEP / 2.0);
    Touch::new(name, [x, y, STEP, STEP])
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
