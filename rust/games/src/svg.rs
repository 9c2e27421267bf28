//! Pictures of positions: a small builder of SVG documents, which need nothing from outside.
//!
//! Lengths are pixels, from the top left corner. What a shape looks like is given as its attributes, such as
//! `fill="#ffffff"`; texts are escaped. Knows no game.

use std::fmt::{self, Write as _};

use azpy_core::game::{Game, MAX_PLAYERS, Payoff, Player, Turn};
use azpy_core::picture::{Touch, xml_text};

use crate::notation::{leader, letter};

/// The side of a cell of a board.
pub(crate) const CELL: f32 = 40.0;
/// What a board has around it, for the names of its columns and rows and for a line below.
const MARGIN: f32 = 28.0;

/// What is written, lines, empty cells, and the players' colours (also those of a terminal: red and blue).
pub(crate) const INK: &str = "#1f2937";
pub(crate) const LINE: &str = "#94a3b8";
pub(crate) const EMPTY: &str = "#f1f5f9";
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
    /// White paper; `label` is what stands for the picture where it cannot be seen.
    pub(crate) fn new(width: f32, height: f32, label: &str) -> Self {
        let (wide, high, label) = (Length(width), Length(height), xml_text(label));
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" \
             role=\"img\" aria-label=\"{label}\" font-family=\"sans-serif\" text-anchor=\"middle\" fill=\"{INK}\">"
        ));
        svg.rect(0.0, 0.0, width, height, "fill=\"#ffffff\"");
        svg
    }

    /// Paper for a board of cells with the names of its columns above, those of its rows on the left, and a line of
    /// text below.
    pub(crate) fn board(columns: &[String], rows: &[String], below: &str) -> Self {
        // The same on the right as on the left, so that the board is in the middle.
        let width = CELL * columns.len() as f32 + 2.0 * MARGIN;
        let height = CELL * rows.len() as f32 + 2.0 * MARGIN;
        let mut svg = Self::new(width, height, below);
        // Skip empty names.
        for (number, name) in columns.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            svg.text(centre(number), MARGIN / 2.0, 14.0, name);
        }
        for (number, name) in rows.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            svg.text(MARGIN / 2.0, centre(number), 14.0, name);
        }
        // A character is about half as wide as high: on narrow boards the text is small.
        let size = f32::min(15.0, 1.7 * width / below.chars().count() as f32);
        svg.text(width / 2.0, height - MARGIN / 2.0, size, below);
        svg
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
    MARGIN + CELL * (number as f32 + 0.5)
}

/// The square of a board's column and row.
pub(crate) fn square(place: String, column: usize, row: usize) -> Touch {
    Touch::new(place, [centre(column) - CELL / 2.0, centre(row) - CELL / 2.0, CELL, CELL])
}

/// The names of so many columns, by letters from a on.
pub(crate) fn letters(count: usize) -> Vec<String> {
    (0..count).map(|column| letter(column).to_string()).collect()
}

/// The numbers from 1 to `count`.
pub(crate) fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

/// The numbers from `count` to 1: those of rows that are counted from below.
pub(crate) fn numbers_up(count: usize) -> Vec<String> {
    numbers(count).into_iter().rev().collect()
}

/// The state of a game in words; `names` are those of the players. A player who alone has the most has won.
pub(crate) fn standing<G: Game, const N: usize>(game: &G, names: [&str; N]) -> String {
    match game.turn() {
        Turn::Player(player) => format!("{} to move", names[player.index()]),
        Turn::Chance => "the dice roll".to_owned(),
        Turn::Terminal => {
            let each = game.outcome().each();
            let scores = Player::ALL.into_iter().zip(each.numbers().iter().copied());
            leader(scores).map_or("a draw".to_owned(), |winner| format!("{} has won", names[winner.index()]))
        }
    }
}
