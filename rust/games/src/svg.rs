//! Pictures of positions: a small builder of SVG documents, which need nothing from outside.
//!
//! Lengths are pixels, from the top left corner. What a shape looks like is given as its attributes, such as
//! `fill="#ffffff"`; texts are escaped. Knows no game.

use std::fmt::{self, Write as _};

use azpy_core::game::{MAX_PLAYERS, Player, Turn};
use azpy_core::picture::{Touch, xml_text};
use azpy_core::text::Notation;

use crate::notation::letter;

/// The side of a cell of a board.
pub(crate) const CELL: f32 = 40.0;

/// What is written, lines, empty cells, and the players' colours (also those of a terminal: red and blue).
pub(crate) const INK: &str = "#1f2937";
pub(crate) const LINE: &str = "#94a3b8";
pub(crate) const EMPTY: &str = "#f1f5f9";
/// The wood around cells and holes: ink is read on it, and it is seen on light and on dark pages.
pub(crate) const GROUND: &str = "#e2e8f0";
const COLORS: [&str; MAX_PLAYERS] = ["#d03b2f", "#2463c4", "#2e8b4f", "#d99a1c", "#7d4bb0", "#6b4a35"];
/// What people call these colours.
pub(crate) const NAMES: [&str; MAX_PLAYERS] = ["red", "blue", "green", "yellow", "purple", "brown"];

pub(crate) fn color(player: Player) -> &'static str {
    COLORS[player.index()]
}

/// What a stone looks like; one of those that won the game has a rim.
pub(crate) fn stone(player: Player, has_won: bool) -> String {
    let rim = if has_won { format!(" stroke=\"{INK}\" stroke-width=\"4\"") } else { String::new() };
    format!("fill=\"{}\"{rim}", color(player))
}

/// A length with two places, those that are needed.
struct Length(f32);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

/// A picture under construction: later shapes lie above earlier ones.
pub(crate) struct Svg(String);

impl Svg {
    /// A picture without a ground: the page shows where nothing is drawn. Its label says how the game stands.
    pub(crate) fn new(width: f32, height: f32, game: &impl Notation) -> Self {
        let (wide, high, label) = (Length(width), Length(height), xml_text(&standing(game)));
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" \
             role=\"img\" aria-label=\"{label}\" font-family=\"sans-serif\" text-anchor=\"middle\" fill=\"{INK}\">"
        ))
    }

    /// The same on a light ground with round corners, on any page.
    pub(crate) fn on_ground(width: f32, height: f32, game: &impl Notation) -> Self {
        let mut svg = Self::new(width, height, game);
        svg.rect(0.0, 0.0, width, height, &format!("rx=\"6\" fill=\"{GROUND}\""));
        svg
    }

    /// The ground of a board of cells.
    pub(crate) fn board(columns: usize, rows: usize, game: &impl Notation) -> Self {
        Self::on_ground(CELL * columns as f32, CELL * rows as f32, game)
    }

    /// Small names in corners of a board's cells: letters of columns in the lowest row, numbers of rows in the first
    /// column. `up`: whether row 1 is the lowest.
    pub(crate) fn name_cells(&mut self, columns: usize, rows: usize, up: bool) {
        let bottom = CELL * rows as f32 - 6.0;
        for (column, letter) in letters(columns).iter().enumerate() {
            self.name(centre(column) + CELL / 2.0 - 5.0, bottom, letter);
        }
        for row in 0..rows {
            let number = if up { rows - row } else { row + 1 };
            self.name(6.0, centre(row) - CELL / 2.0 + 6.0, &number.to_string());
        }
    }

    pub(crate) fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, look: &str) {
        let [x, y, width, height] = [x, y, width, height].map(Length);
        let _ = write!(self.0, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {look}/>");
    }

    /// The square of a board's column and row.
    pub(crate) fn cell(&mut self, column: usize, row: usize, look: &str) {
        self.rect(centre(column) - CELL / 2.0, centre(row) - CELL / 2.0, CELL, CELL, look);
    }

    pub(crate) fn circle(&mut self, x: f32, y: f32, radius: f32, look: &str) {
        let [x, y, radius] = [x, y, radius].map(Length);
        let _ = write!(self.0, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {look}/>");
    }

    pub(crate) fn line(&mut self, from: (f32, f32), to: (f32, f32), look: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Length);
        let _ = write!(self.0, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {look}/>");
    }

    pub(crate) fn polygon(&mut self, points: &[(f32, f32)], look: &str) {
        let points: Vec<_> = points.iter().map(|&(x, y)| format!("{},{}", Length(x), Length(y))).collect();
        let _ = write!(self.0, "<polygon points=\"{}\" {look}/>", points.join(" "));
    }

    pub(crate) fn path(&mut self, path: &str, look: &str) {
        let _ = write!(self.0, "<path d=\"{path}\" {look}/>");
    }

    /// Text whose middle is at (x, y). Not by `dominant-baseline`, which many programs do not know.
    pub(crate) fn text(&mut self, x: f32, y: f32, size: f32, text: &str) {
        self.text_that_looks(x, y, size, text, "");
    }

    /// The small name of a column, row or point: its class tells it from what lies on the board.
    pub(crate) fn name(&mut self, x: f32, y: f32, name: &str) {
        self.text_that_looks(x, y, 9.0, name, "class=\"name\"");
    }

    pub(crate) fn text_that_looks(&mut self, x: f32, y: f32, size: f32, text: &str, look: &str) {
        let (x, y, size, text) = (Length(x), Length(y + 0.35 * size), Length(size), xml_text(text));
        let look = if look.is_empty() { String::new() } else { format!(" {look}") };
        let _ = write!(self.0, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{look}>{text}</text>");
    }

    /// The document.
    pub(crate) fn done(mut self) -> String {
        self.0 += "</svg>";
        self.0
    }
}

/// Where the middle of a board's column or row is.
pub(crate) fn centre(number: usize) -> f32 {
    CELL * (number as f32 + 0.5)
}

/// The square of a board's column and row.
pub(crate) fn square(place: String, column: usize, row: usize) -> Touch {
    Touch::new(place, [centre(column) - CELL / 2.0, centre(row) - CELL / 2.0, CELL, CELL])
}

/// The names of so many columns, by letters from a on.
pub(crate) fn letters(count: usize) -> Vec<String> {
    (0..count).map(|column| letter(column).to_string()).collect()
}

/// How a game stands, in words.
fn standing<G: Notation>(game: &G) -> String {
    match (game.turn(), game.side_names()) {
        (Turn::Player(player), Some(names)) => format!("{} to move", names[player.index()]),
        (Turn::Player(player), None) => format!("player {} to move", player.index()),
        (Turn::Chance, _) => "chance decides".to_owned(),
        (Turn::Terminal, _) => game.result_text(),
    }
}
