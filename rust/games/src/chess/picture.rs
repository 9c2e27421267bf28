//! A position as text and as SVG.

use std::collections::HashSet;

use azpy_core::picture::{Mark, Touch};
use azpy_core::text::Notation;
use azpy_core::written::{COMMENT, Notes};
use cozy_chess::{Color, File, Piece, Rank, Square};

use super::Chess;
use super::fen::letter;
use crate::svg::{CELL, Svg};

/// Outlines of a man in a square of 40, of our own drawing.
fn outline(piece: Piece) -> &'static str {
    match piece {
        Piece::Pawn => "M12 34V31L17 23A6 6 0 1 1 23 23L28 31V34Z",
        Piece::Knight => "M12 34V31Q13 25 19 20L12 23L9 19L16 11L17 6L21 9Q30 13 28 31V34ZM17 13.5H17.8",
        Piece::Bishop => "M11 34V31H16Q9 21 18 11A3 3 0 1 1 22 11Q31 21 24 31H29V34ZM20 15V23M16.5 18.5H23.5",
        Piece::Rook => "M10 34V30H13L14 16H10V8H15V11H18V8H22V11H25V8H30V16H26L27 30H30V34Z",
        Piece::Queen => "M11 34V31L6 13L13 22L14 9L20 20L26 9L27 22L34 13L29 31V34ZM12 28.5H28",
        Piece::King => {
            "M12 34V31Q7 25 8 19Q11 13 18 17V11H15V7H18V4H22V7H25V11H22V17Q29 13 32 19Q33 25 28 31V34ZM13 28.5H27"
        }
    }
}

impl Chess {
    /// See [`azpy_core::game::Game::render`].
    pub(super) fn drawing(&self) -> String {
        let mut text = String::new();
        for &rank in Rank::ALL.iter().rev() {
            text += &rank.to_string();
            for &file in &File::ALL {
                text.push(' ');
                text.push(letter(&self.board, Square::new(file, rank)).unwrap_or('.'));
            }
            text.push('\n');
        }
        text += "  a b c d e f g h\n";
        text += &self.fen();
        if self.ending().is_some() {
            text = text + "\n" + &self.result_text();
        }
        text
    }

    /// The board from White's side, with the names of files and ranks.
    pub(super) fn svg(&self) -> String {
        let mut svg = Svg::board(8, 8, self);
        let checked = self.is_check().then(|| self.board.king(self.board.side_to_move()));
        for square in Square::ALL {
            let [x, y] = corner(square);
            let is_dark = (square.file() as usize + square.rank() as usize).is_multiple_of(2);
            let fill = match is_dark {
                _ if checked == Some(square) => "#e07a5f",
                true => "#8fa5b5",
                false => "#e6ebee",
            };
            svg.rect(x, y, CELL, CELL, &format!("fill=\"{fill}\""));
            let Some(piece) = self.board.piece_on(square) else { continue };
            // Dark men have light lines inside, and a rim that is hardly seen.
            let is_white = self.board.colors(Color::White).has(square);
            let (fill, line) = if is_white { ("#ffffff", "#202020") } else { ("#262626", "#c8c8c8") };
            let look = format!(
                "class=\"{piece}\" transform=\"translate({x} {y})\" fill=\"{fill}\" stroke=\"{line}\" \
                 stroke-width=\"1.4\" stroke-linecap=\"round\" stroke-linejoin=\"round\""
            );
            svg.path(outline(piece), &look);
        }
        svg.name_cells(8, 8, true);
        svg.done()
    }
}

/// The upper left corner of a square.
fn corner(square: Square) -> [f32; 2] {
    [square.file() as usize, 7 - square.rank() as usize].map(|number| CELL * number as f32)
}

pub(super) fn touch(square: Square) -> Touch {
    let [x, y] = corner(square);
    Touch::new(square.to_string(), [x, y, CELL, CELL])
}

/// The circles and arrows of comments, as lichess and ChessBase write them: [%csl Gd4,Re5] and [%cal Gd1d4]. Colors do
/// not count, and equal ones are one.
pub(super) fn marks(notes: &Notes) -> Vec<Mark> {
    let (mut marks, mut known) = (Vec::new(), HashSet::new());
    for comment in notes.get(COMMENT).into_iter().flatten() {
        for command in comment.split("[%").skip(1) {
            let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
            let listed = rest.split(']').next().unwrap_or_default();
            let shape = match name {
                "csl" => "circle",
                "cal" => "arrow",
                _ => continue,
            };
            for word in listed.split(',').map(str::trim) {
                let squares = word.get(1..3).into_iter().chain(word.get(3..5));
                let squares: Vec<_> = squares.filter_map(|square| square.parse().ok()).collect();
                if squares.len() == if shape == "arrow" { 2 } else { 1 } && known.insert(squares.clone()) {
                    let places = squares.into_iter().map(touch).collect();
                    marks.push(Mark { shape, text: String::new(), places });
                }
            }
        }
    }
    marks
}
