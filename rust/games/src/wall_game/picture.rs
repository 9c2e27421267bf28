//! The board for people, as text and as SVG.

use std::fmt::Write as _;

use azpy_core::picture::Touch;

use super::{CAT, MOUSE, PLAYERS, Status, WallGame};
use crate::notation::letter;

/// Capitals are Red's; cats first.
const LETTERS: [[char; 2]; 2] = [['C', 'M'], ['c', 'm']];
const COLORS: [&str; 2] = ["#c0392b", "#2a6fbb"];
/// Of the SVG, in its units: a cell's side, and the margin with letters and numbers.
const CELL: usize = 48;
const MARGIN: usize = 32;
/// How thick a wall is to the touch. Cells are so much smaller.
const EDGE: usize = 12;
/// Room for the words below a small board.
const LEAST_WIDTH: usize = 240;

impl WallGame {
    /// The pieces on a cell, each as (player's number, piece).
    fn pieces_on(&self, cell: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = [(0, CAT), (0, MOUSE), (1, CAT), (1, MOUSE)].into_iter();
        let drawn = self.status != Status::Undrawn;
        all.filter(move |&(player, piece)| drawn && self.pawn(PLAYERS[player], piece) == cell)
    }

    /// Whose turn it is, in words.
    fn caption(&self) -> String {
        let side = ["red", "blue"][self.mover().index()];
        match self.status {
            Status::Undrawn => "a random start is to be drawn".to_owned(),
            Status::Stuck => format!("turn {}, {side}: no second action is legal", self.turns / 2 + 1),
            Status::Over(None) => "a draw".to_owned(),
            Status::Over(Some(player)) => format!("{} has won", ["red", "blue"][player.index()]),
            Status::Playing => {
                let action = if self.second { "second" } else { "first" };
                format!("turn {}, {side}: {action} action", self.turns / 2 + 1)
            }
        }
    }

    /// Letters are pieces, `|` and `--` walls; below the board whose turn it is.
    pub(super) fn drawn_as_text(&self) -> String {
        let (columns, rows, cells) = (self.columns(), self.rows(), self.board.cells());
        let on = |cell: usize| -> String {
            let letters: String = self.pieces_on(cell).map(|(player, piece)| LETTERS[player][piece]).collect();
            if letters.is_empty() { ".".to_owned() } else { letters }
        };
        let width = (0..cells).map(|cell| on(cell).len()).max().unwrap_or(0).max(2);
        let margin = rows.to_string().len();
        let mut text = String::new();
        for row in 0..rows {
            let mut line = format!("{:>margin$} ", rows - row);
            let mut below = " ".repeat(margin + 1);
            for column in 0..columns {
                let cell = column * rows + row;
                let beside = self.board.is_slot(cell) && self.board.is_closed(cell);
                line += &format!("{:width$}{}", on(cell), if beside { '|' } else { ' ' });
                let under = self.board.is_slot(cells + cell) && self.board.is_closed(cells + cell);
                below += &format!("{} ", if under { "-" } else { " " }.repeat(width));
            }
            text += line.trim_end();
            text.push('\n');
            if row + 1 < rows {
                text += below.trim_end();
                text.push('\n');
            }
        }
        let letters: String = (0..columns).map(|column| format!("{:<1$}", letter(column), width + 1)).collect();
        format!("{text}{:margin$} {}\n{}", "", letters.trim_end(), self.caption())
    }

    /// The upper left corner of a cell of the picture.
    fn corner(&self, cell: usize) -> [usize; 2] {
        [cell / self.rows(), cell % self.rows()].map(|number| MARGIN + number * CELL)
    }

    /// A wall's edge; or the half of a cell that a piece stands in, cats above, and the cell where it goes, or its half
    /// where the other piece of the player to move stands there.
    pub(super) fn touched(&self, action: usize) -> Vec<Touch> {
        const INNER: usize = CELL - EDGE;
        let cells = self.board.cells();
        let place = |name: String, cell: usize, [right, down]: [usize; 2], [width, height]: [usize; 2]| {
            let [x, y] = self.corner(cell);
            Touch::new(name, [x + right, y + down, width, height].map(|length| length as f32))
        };
        if self.status != Status::Playing {
            return Vec::new();
        }
        if action < 2 * cells {
            let (kind, cell) = (action / cells, action % cells);
            let far = CELL - EDGE / 2;
            return match kind {
                _ if !self.board.is_slot(action) => Vec::new(),
                0 => vec![place(self.wall_words(action), cell, [far, EDGE / 2], [EDGE, INNER])],
                _ => vec![place(self.wall_words(action), cell, [EDGE / 2, far], [INNER, EDGE])],
            };
        }
        let (piece, direction) = self.step_of(action);
        let [from, other] = [piece, 1 - piece].map(|piece| self.pawn(self.mover(), piece));
        let Some(to) = self.step(from, direction) else { return Vec::new() };
        let half = |name, cell| place(name, cell, [EDGE / 2, EDGE / 2 + piece * INNER / 2], [INNER, INNER / 2]);
        let goal = if to == other {
            half(self.cell_name(to), to)
        } else {
            place(self.cell_name(to), to, [EDGE / 2; 2], [INNER; 2])
        };
        vec![half(format!("{} on {}", ["cat", "mouse"][piece], self.cell_name(from)), from), goal]
    }

    /// Cells, walls as thick lines, and pieces in the corners of their cells: cats above, mice below, Red's on the left.
    pub(super) fn drawn_as_svg(&self) -> String {
        let (columns, rows, cells) = (self.columns(), self.rows(), self.board.cells());
        let (wide, high) = (columns * CELL, rows * CELL);
        let (width, height) = ((wide + 2 * MARGIN).max(LEAST_WIDTH), high + 2 * MARGIN + MARGIN / 2);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\
             <rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{wide}\" height=\"{high}\" fill=\"#f4efe6\" \
             stroke=\"#404040\" stroke-width=\"3\"/>\
             <g font-family=\"sans-serif\" font-size=\"14\" text-anchor=\"middle\" fill=\"#404040\">"
        );
        let mut write = |text: std::fmt::Arguments<'_>| svg.write_fmt(text).expect("a String takes all");
        for column in 0..columns {
            let (x, y) = (MARGIN + column * CELL + CELL / 2, MARGIN + high + 20);
            write(format_args!("<text x=\"{x}\" y=\"{y}\">{}</text>", letter(column)));
        }
        for row in 0..rows {
            let y = MARGIN + row * CELL + CELL / 2 + 5;
            write(format_args!("<text x=\"{}\" y=\"{y}\">{}</text>", MARGIN / 2, rows - row));
        }
        write(format_args!("<text x=\"{}\" y=\"{}\">{}</text>", width / 2, MARGIN + high + 42, self.caption()));
        // Each edge between two cells: a thin line, or a wall, which comes later and so on top.
        let edges = (0..2 * cells).filter(|&slot| self.board.is_slot(slot));
        let (walls, lines): (Vec<_>, Vec<_>) = edges.partition(|&slot| self.board.is_closed(slot));
        for slot in lines.into_iter().chain(walls) {
            let [x, y] = self.corner(slot % cells);
            let [from, to] = if slot < cells {
                [(x + CELL, y), (x + CELL, y + CELL)]
            } else {
                [(x, y + CELL), (x + CELL, y + CELL)]
            };
            let style = if self.board.is_closed(slot) {
                "stroke=\"#202020\" stroke-width=\"6\" stroke-linecap=\"round\""
            } else {
                "stroke=\"#d8cfbf\" stroke-width=\"1\""
            };
            write(format_args!("<path d=\"M{} {}L{} {}\" {style}/>", from.0, from.1, to.0, to.1));
        }
        for cell in 0..cells {
            for (player, piece) in self.pieces_on(cell) {
                let [x, y] = self.corner(cell).map(|length| length + CELL / 4);
                let (x, y) = (x + player * CELL / 2, y + piece * CELL / 2);
                // A cat is a disc with its letter, a mouse a smaller ring.
                let (radius, fill, ink) = [(11, COLORS[player], "#ffffff"), (10, "#ffffff", COLORS[player])][piece];
                write(format_args!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"2\"/>\
                     <text x=\"{x}\" y=\"{}\" fill=\"{ink}\" font-weight=\"bold\">{}</text>",
                    COLORS[player],
                    y + 5,
                    LETTERS[0][piece],
                ));
            }
        }
        svg + "</g></svg>"
    }
}
