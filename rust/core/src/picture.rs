//! Pictures for games that draw none, and the places of a picture that a person touches to play.
//!
//! A picture is an SVG document. Knows no game.

use std::fmt::Write as _;

/// A place of a picture that a person touches, by a click or by its name, to play an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// What people call the place, short enough to be said and typed: e4, column 3, bar.
    pub place: String,
    /// x, y, width and height in the units of the picture's viewBox.
    pub rect: [f64; 4],
}

impl Touch {
    /// A place, with its lengths in hundredths, as pictures have them.
    #[must_use]
    pub fn new(place: impl Into<String>, rect: [f32; 4]) -> Self {
        Self { place: place.into(), rect: rect.map(|length| (f64::from(length) * 100.0).round() / 100.0) }
    }
}

/// A mark that is drawn over a picture, from a note of the game.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// One of "triangle", "square", "circle", "cross", "label", "arrow".
    pub shape: &'static str,
    /// The text of a label; else empty.
    pub text: String,
    /// Where: one place, of an arrow two.
    pub places: Vec<Touch>,
}

/// A text as it may stand in an XML document, also as an attribute. Characters that no document can hold are replaced.
#[must_use]
pub fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\t' | '\n' => out.push(' '),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

/// Text as a picture, for games that draw none.
#[must_use]
pub fn text_svg(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut svg = begun(widest(&lines), (lines.len() + 1) * LINE);
    write_lines(&mut svg, &lines, LINE / 2);
    svg + "</svg>"
}

/// The picture of a game that draws none and has actions with cells: a board of `height` rows and `width` columns.
///
/// Small letters in its cells name the columns, and numbers the rows from the bottom. `text` is what the game renders.
/// Exactly `height` of its lines may be rows of the board: `width` words of one or two characters, with or without a
/// word before them, or `width` characters without blanks. They stand in the cells, where a dot is an empty cell, and
/// the other lines stand below the board, but for one with the letters of the columns. Where no lines are rows, the
/// whole text stands below.
#[must_use]
pub fn board_svg(text: &str, height: usize, width: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let (glyphs, below) = read_rows(&lines, height, width);
    let [wide, high] = [width, height].map(|cells| cells * CELL);
    let lines_high = if below.is_empty() { 0 } else { (below.len() + 1) * LINE };
    let mut svg = begun(if below.is_empty() { wide } else { wide.max(widest(&below)) }, high + lines_high);
    svg += "<g font-family=\"sans-serif\" text-anchor=\"middle\" fill=\"#1f2937\">";
    for cell in 0..height * width {
        let [x, y] = corner(cell, width);
        let look = "fill=\"none\" stroke=\"#94a3b8\"";
        let _ = write!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" {look}/>");
        if let Some(glyph) = glyphs.get(cell).filter(|glyph| **glyph != ".") {
            write_glyph(&mut svg, [x + CELL / 2, y + CELL / 2], glyph);
        }
    }
    for column in 0..width {
        write_name(&mut svg, [CELL * (column + 1) - 5, high - 6], &letters(column));
    }
    for row in 0..height {
        write_name(&mut svg, [6, CELL * row + 6], &(height - row).to_string());
    }
    svg += "</g>";
    write_lines(&mut svg, &below, high + LINE / 2);
    svg + "</svg>"
}

/// The place of a cell (`row * width + column`, row 0 = top) of [`board_svg`], called as on a chess board.
///
/// ```
/// let touch = azpy_core::picture::board_touch(2, 3, 5);
/// assert_eq!((touch.place.as_str(), touch.rect), ("c1", [80.0, 40.0, 40.0, 40.0]));
/// ```
#[must_use]
pub fn board_touch(height: usize, width: usize, cell: usize) -> Touch {
    let ([x, y], side) = (corner(cell, width), CELL as f32);
    Touch::new(format!("{}{}", letters(cell % width), height - cell / width), [x as f32, y as f32, side, side])
}

/// The height of a line of text, and the width of a character at most.
const LINE: usize = 20;
const CHARACTER: usize = 10;
/// The side of a cell of a board.
const CELL: usize = 40;

/// A light ground, on which ink is read on any page.
fn begun(width: usize, height: usize) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#f1f5f9\"/>"
    )
}

/// The width of the ground for these lines.
fn widest(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) * CHARACTER + LINE
}

/// Lines of text from `top` on.
fn write_lines(svg: &mut String, lines: &[&str], top: usize) {
    *svg += "<g font-family=\"monospace\" font-size=\"16\" fill=\"#1f2937\" xml:space=\"preserve\">";
    for (number, line) in lines.iter().enumerate() {
        let _ =
            write!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", LINE / 2, top + (number + 1) * LINE - 5, xml_text(line));
    }
    *svg += "</g>";
}

/// What stands in a cell, with its middle at (x, y).
fn write_glyph(svg: &mut String, [x, y]: [usize; 2], glyph: &str) {
    let _ = write!(svg, "<text x=\"{x}\" y=\"{}\" font-size=\"20\">{}</text>", y + 7, xml_text(glyph));
}

/// The name of a column or a row: its class tells it from what stands in the cells.
fn write_name(svg: &mut String, [x, y]: [usize; 2], name: &str) {
    let _ = write!(svg, "<text class=\"name\" x=\"{x}\" y=\"{}\" font-size=\"9\">{name}</text>", y + 3);
}

/// The top left corner of a board's cell.
fn corner(cell: usize, width: usize) -> [usize; 2] {
    [cell % width, cell / width].map(|number| number * CELL)
}

/// A column's name: a to z, then aa, ab, ...
fn letters(column: usize) -> String {
    let before = if column < 26 { String::new() } else { letters(column / 26 - 1) };
    format!("{before}{}", char::from(b'a' + (column % 26) as u8))
}

/// What stands in the cells of a board of this size, if `lines` have one, and the other lines but for the columns' names.
fn read_rows<'a>(lines: &[&'a str], height: usize, width: usize) -> (Vec<&'a str>, Vec<&'a str>) {
    let readings: [fn(&'a str) -> Vec<&'a str>; 3] = [
        // The first word is the row's name.
        |line| line.split_whitespace().skip(1).collect(),
        |line| line.split_whitespace().collect(),
        |line| line.trim().split("").filter(|glyph| !glyph.is_empty()).collect(),
    ];
    for read in readings {
        let is_row = |line: &&'a str| {
            let glyphs = read(line);
            glyphs.len() == width && glyphs.iter().all(|glyph| glyph.chars().count() <= 2)
        };
        let (rows, mut others): (Vec<_>, Vec<_>) = lines.iter().copied().partition(is_row);
        if rows.len() == height {
            others.retain(|line| !line.split_whitespace().eq((0..width).map(letters)));
            return (rows.into_iter().flat_map(read).collect(), others);
        }
    }
    (Vec::new(), lines.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_as_a_picture_is_xml() {
        let svg = text_svg("<&>\u{1b}[1m");
        assert!(svg.contains(">&lt;&amp;&gt;\u{fffd}[1m</text>"), "{svg}");
    }

    #[test]
    fn rows_of_a_text_stand_in_the_cells() {
        let read = |text: &'static str| read_rows(&text.lines().collect::<Vec<_>>(), 2, 3);
        let glyphs = vec!["x", ".", "o", ".", ".", "x"];
        assert_eq!(read("x . o\n. . x"), (glyphs.clone(), vec![]));
        assert_eq!(read("x.o\n..x\no to move"), (glyphs.clone(), vec!["o to move"]));
        assert_eq!(read("  a b c\n2 x . o\n1 . . x\nply 12"), (glyphs, vec!["ply 12"]));
        // One line too many could be a row, so that none is.
        for text in ["a b c\nx . o\n. . x", "x . o", "", "x . o\n. . red", "x . o .\n. x"] {
            assert_eq!(read(text), (vec![], text.lines().collect()), "{text}");
        }
    }

    #[test]
    fn cells_of_a_board_have_names_and_glyphs() {
        let svg = board_svg("x . <\n. . x\nno end", 2, 3);
        assert!(svg.starts_with("<svg ") && svg.contains("viewBox=\"0 0 120 120\""), "{svg}");
        // The names of two rows and three columns, three pieces, the other line.
        assert_eq!(svg.matches("<text ").count(), 2 + 3 + 3 + 1, "{svg}");
        assert!(svg.contains("<text x=\"100\" y=\"27\" font-size=\"20\">&lt;</text>"), "{svg}");
        assert!(svg.contains("<text x=\"10\" y=\"105\">no end</text>") && svg.contains(">c</text>"), "{svg}");
        assert_eq!([0, 25, 26, 701, 702].map(letters), ["a", "z", "aa", "zz", "aaa"]);
    }
}
