//! The board for people, as text and as SVG.

use azpy_core::picture::Touch;

use super::{CAT, MOUSE, PLAYERS, Status, WallGame};
use crate::notation::letter;
use crate::svg::Svg;

/// Capitals are Red's; cats first.
const LETTERS: [[char; 2]; 2] = [['C', 'M'], ['c', 'm']];
const COLORS: [&str; 2] = ["#c0392b", "#2a6fbb"];
/// Of the SVG, in its units: a cell's side, and the rim of the board, at the left and below with letters and numbers.
const CELL: f32 = 48.0;
const RIM: f32 = 3.0;
const NAMED_RIM: f32 = 15.0;
/// How thick a wall is to the touch. Cells are so much smaller.
const EDGE: f32 = 12.0;

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
    fn corner(&self, cell: usize) -> [f32; 2] {
        [NAMED_RIM + CELL * (cell / self.rows()) as f32, RIM + CELL * (cell % self.rows()) as f32]
    }

    /// A wall's edge; or the half of a cell that a piece stands in, cats above, and the cell where it goes, or its half
    /// where the other piece of the player to move stands there.
    pub(super) fn touched(&self, action: usize) -> Vec<Touch> {
        const INNER: f32 = CELL - EDGE;
        let cells = self.board.cells();
        let place = |name: String, cell: usize, [right, down]: [f32; 2], [width, height]: [f32; 2]| {
            let [x, y] = self.corner(cell);
            Touch::new(name, [x + right, y + down, width, height])
        };
        if self.status != Status::Playing {
            return Vec::new();
        }
        if action < 2 * cells {
            let (kind, cell) = (action / cells, action % cells);
            let far = CELL - EDGE / 2.0;
            return match kind {
                _ if !self.board.is_slot(action) => Vec::new(),
                0 => vec![place(self.wall_words(action), cell, [far, EDGE / 2.0], [EDGE, INNER])],
                _ => vec![place(self.wall_words(action), cell, [EDGE / 2.0, far], [INNER, EDGE])],
            };
        }
        let (piece, direction) = self.step_of(action);
        let [from, other] = [piece, 1 - piece].map(|piece| self.pawn(self.mover(), piece));
        let Some(to) = self.step(from, direction) else { return Vec::new() };
        let below = EDGE / 2.0 + piece as f32 * INNER / 2.0;
        let half = |name, cell| place(name, cell, [EDGE / 2.0, below], [INNER, INNER / 2.0]);
        let goal = if to == other { half(self.cell_name(to), to) } else { self.whole_cell(to) };
        vec![half(format!("{} on {}", ["cat", "mouse"][piece], self.cell_name(from)), from), goal]
    }

    /// The place of a cell.
    pub(super) fn whole_cell(&self, cell: usize) -> Touch {
        let [x, y] = self.corner(cell);
        Touch::new(self.cell_name(cell), [x + EDGE / 2.0, y + EDGE / 2.0, CELL - EDGE, CELL - EDGE])
    }

    /// Cells, walls as thick lines, and pieces in the corners of their cells: cats above, mice below, Red's on the left.
    pub(super) fn drawn_as_svg(&self) -> String {
        let (columns, rows, cells) = (self.columns(), self.rows(), self.board.cells());
        let (wide, high) = (CELL * columns as f32, CELL * rows as f32);
        let [width, height] = [wide, high].map(|side| NAMED_RIM + side + RIM);
        let mut svg = Svg::new(width, height, self);
        svg.rect(0.0, 0.0, width, height, "rx=\"4\" fill=\"#d8cfbf\"");
        svg.rect(NAMED_RIM, RIM, wide, high, "fill=\"#f4efe6\" stroke=\"#404040\" stroke-width=\"2\"");
        for column in 0..columns {
            let x = NAMED_RIM + CELL * (column as f32 + 0.5);
            svg.name(x, height - NAMED_RIM / 2.0, &letter(column).to_string());
        }
        for row in 0..rows {
            svg.name(NAMED_RIM / 2.0, RIM + CELL * (row as f32 + 0.5), &(rows - row).to_string());
        }
        // Each edge between two cells: a thin line, or a wall, which comes later and so on top.
        let edges = (0..2 * cells).filter(|&slot| self.board.is_slot(slot));
        let (walls, lines): (Vec<_>, Vec<_>) = edges.partition(|&slot| self.board.is_closed(slot));
        for slot in lines.into_iter().chain(walls) {
            let [x, y] = self.corner(slot % cells);
            let (left, top) = if slot < cells { (x + CELL, y) } else { (x, y + CELL) };
            let look = if self.board.is_closed(slot) {
                "stroke=\"#202020\" stroke-width=\"6\" stroke-linecap=\"round\""
            } else {
                "stroke=\"#d8cfbf\" stroke-width=\"1\""
            };
            svg.path(&format!("M{left} {top}L{} {}", x + CELL, y + CELL), look);
        }
        for cell in 0..cells {
            for (player, piece) in self.pieces_on(cell) {
                let [x, y] = self.corner(cell);
                let [x, y] = [x + CELL * (player as f32 + 0.5) / 2.0, y + CELL * (piece as f32 + 0.5) / 2.0];
                // A cat is a disc with its letter, a mouse a smaller ring.
                let color = COLORS[player];
                let (radius, fill, ink) = [(11.0, color, "#ffffff"), (10.0, "#ffffff", color)][piece];
                svg.circle(x, y, radius, &format!("fill=\"{fill}\" stroke=\"{color}\" stroke-width=\"2\""));
                let look = format!("fill=\"{ink}\" font-weight=\"bold\"");
                svg.text_that_looks(x, y, 14.0, &LETTERS[0][piece].to_string(), &look);
            }
        }
        svg.done()
    }
}
