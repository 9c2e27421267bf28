//! Positions as FEN, with the castling rights of X-FEN and Shredder-FEN for Chess960.

use std::ops::RangeInclusive;

use cozy_chess::{
    Board, BoardBuilder, BoardBuilderError, CastleRights, Color, File, Piece, Rank, Square, get_king_moves,
};

use super::{Chess, Rules};
use azpy_core::text::shown;

/// The words of a FEN: men, side to move, castling, en passant, and the two counters, which may be missing.
const WORDS: RangeInclusive<usize> = 4..=6;

impl Chess {
    /// The position of a FEN, under these rules.
    pub(super) fn from_fen(words: &[&str], rules: Rules) -> Result<Self, String> {
        if !WORDS.contains(&words.len()) {
            return Err(format!(
                "a FEN has 6 words (men, side to move, castling, en passant, clock, move number), of which the last two \
                 may be missing; got {}: {}",
                words.len(),
                shown(&words.join(" "))
            ));
        }
        let mut builder = BoardBuilder::empty();
        read_men(&mut builder, words[0])?;
        builder.side_to_move = match words[1] {
            "w" => Color::White,
            "b" => Color::Black,
            word => return Err(format!("the side to move of a FEN is w or b, got {}", shown(word))),
        };
        check_men(&builder)?;
        read_castling(&mut builder, words[2], rules.chess960)?;
        read_en_passant(&mut builder, words[3])?;
        builder.halfmove_clock = match words.get(4).map(|word| (word, plain_number(word))) {
            None => 0,
            Some((_, Some(clock @ 0..=100))) => clock as u8,
            Some((word, _)) => {
                return Err(format!("the fifth word of a FEN is the fifty-move clock, 0 to 100, got {}", shown(word)));
            }
        };
        builder.fullmove_number = match words.get(5).map(|word| (word, plain_number(word))) {
            None => 1,
            Some((_, Some(number))) if number >= 1 => number,
            Some((word, _)) => {
                return Err(format!("the sixth word of a FEN is the move number, from 1 on, got {}", shown(word)));
            }
        };
        let board = builder.build().map_err(|error| refusal(error, words))?;
        // The crate does not count kings among what gives check.
        if get_king_moves(board.king(Color::White)).has(board.king(Color::Black)) {
            return Err("the kings stand side by side; no game leads there".to_owned());
        }
        if board.checkers().len() > 2 {
            return Err(format!("{} men give check at once; no game leads there", board.checkers().len()));
        }
        let max_plies = rules.max_plies;
        let game = Self::at(board, rules);
        if game.ply() > usize::from(max_plies) {
            return Err(format!(
                "move {} is past the {max_plies} plies after which this game is drawn; give a lower move number, or make \
                 the game with a higher max_plies",
                game.board.fullmove_number()
            ));
        }
        Ok(game)
    }

    /// The position as FEN. The en-passant square is there after every pawn's double step, as the standard asks. Of the
    /// castling rights KQkq mean the outermost rooks (X-FEN); a letter names the file of another one.
    #[must_use]
    pub fn fen(&self) -> String {
        fen_of(&self.board)
    }
}

pub(super) fn fen_of(board: &Board) -> String {
    let ranks = Rank::ALL.iter().rev().map(|&rank| rank_of(board, rank));
    let men = ranks.collect::<Vec<_>>().join("/");
    let castling: String = Color::ALL.iter().map(|&color| castling_of(board, color)).collect();
    let castling = if castling.is_empty() { "-" } else { &castling };
    let square = |file| Square::new(file, Rank::Sixth.relative_to(board.side_to_move())).to_string();
    let en_passant = board.en_passant().map_or("-".to_owned(), square);
    let (clock, number) = (board.halfmove_clock(), board.fullmove_number());
    format!("{men} {} {castling} {en_passant} {clock} {number}", board.side_to_move())
}

fn rank_of(board: &Board, rank: Rank) -> String {
    let (mut text, mut empty) = (String::new(), 0);
    for &file in &File::ALL {
        match letter(board, Square::new(file, rank)) {
            None => empty += 1,
            Some(letter) => {
                if empty > 0 {
                    text += &empty.to_string();
                    empty = 0;
                }
                text.push(letter);
            }
        }
    }
    if empty > 0 {
        text += &empty.to_string();
    }
    text
}

/// The letter of the man on a square: White's are capitals.
pub(super) fn letter(board: &Board, square: Square) -> Option<char> {
    let letter = char::from(board.piece_on(square)?);
    Some(if board.colors(Color::White).has(square) { letter.to_ascii_uppercase() } else { letter })
}

fn castling_of(board: &Board, color: Color) -> String {
    let (king, rights) = (board.king(color), board.castle_rights(color));
    let rooks = board.colored_pieces(color, Piece::Rook) & king.rank().bitboard();
    let files: Vec<_> = rooks.iter().map(Square::file).collect();
    let right = |right: Option<File>, outermost: Option<&File>, letter| {
        right.map(|file| if Some(&file) == outermost { letter } else { char::from(file) })
    };
    let letters =
        [right(rights.short, files.last(), 'k'), right(rights.long, files.first(), 'q')].into_iter().flatten();
    letters.map(|letter| if color == Color::White { letter.to_ascii_uppercase() } else { letter }).collect()
}

/// Digits alone: a sign would be read too.
fn plain_number(word: &str) -> Option<u16> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

fn read_men(builder: &mut BoardBuilder, word: &str) -> Result<(), String> {
    let rows: Vec<_> = word.split('/').collect();
    if rows.len() != 8 {
        return Err(format!("the men of a FEN are 8 rows with / between, got {}: {}", rows.len(), shown(word)));
    }
    for (row, &rank) in rows.into_iter().zip(Rank::ALL.iter().rev()) {
        let (mut file, mut after_number) = (0, false);
        for letter in row.chars() {
            let number = letter.to_digit(10);
            if number.is_some() && after_number {
                return Err(format!("row {} of a FEN has two numbers side by side", shown(row)));
            }
            after_number = number.is_some();
            if let Some(empty @ 1..=8) = number {
                file += empty as usize;
            } else if let Ok(piece) = Piece::try_from(letter.to_ascii_lowercase()) {
                let color = if letter.is_ascii_uppercase() { Color::White } else { Color::Black };
                if let Some(file) = File::try_index(file) {
                    *builder.square_mut(Square::new(file, rank)) = Some((piece, color));
                }
                file += 1;
            } else {
                let expected = "pnbrqk in capitals or small letters, or 1 to 8 empty squares";
                return Err(format!("{letter:?} in row {} of a FEN; expected {expected}", shown(row)));
            }
        }
        if file != 8 {
            return Err(format!("row {} of a FEN has {file} squares, expected 8", shown(row)));
        }
    }
    Ok(())
}

/// What no game of chess has, so that the reason can be named.
fn check_men(builder: &BoardBuilder) -> Result<(), String> {
    for (color, name) in [(Color::White, "White"), (Color::Black, "Black")] {
        let count = |wanted: Option<Piece>| {
            let men = builder.board.iter().flatten();
            men.filter(|&&(piece, of)| of == color && wanted.is_none_or(|wanted| wanted == piece)).count()
        };
        let (kings, pawns, all) = (count(Some(Piece::King)), count(Some(Piece::Pawn)), count(None));
        if kings != 1 {
            return Err(format!("{name} has {kings} kings, expected 1"));
        }
        if pawns > 8 || all > 16 {
            return Err(format!("{name} has {all} men, {pawns} of them pawns; at most 16 and 8 are possible"));
        }
    }
    for (index, man) in builder.board.iter().enumerate() {
        let square = Square::index(index);
        if matches!(man, Some((Piece::Pawn, _))) && matches!(square.rank(), Rank::First | Rank::Eighth) {
            return Err(format!("a pawn on {square}, where none can stand"));
        }
    }
    Ok(())
}

fn read_castling(builder: &mut BoardBuilder, word: &str, chess960: bool) -> Result<(), String> {
    if word == "-" {
        return Ok(());
    }
    let nonsense = |why: &str| format!("castling rights {} of a FEN: {why}", shown(word));
    if word.is_empty() || word.len() > 4 {
        return Err(nonsense("expected - or up to four of KQkq, in Chess960 also letters of the rooks' files"));
    }
    for letter in word.chars() {
        let color = if letter.is_ascii_uppercase() { Color::White } else { Color::Black };
        let rank = Rank::First.relative_to(color);
        let on = |builder: &BoardBuilder, file, piece| builder.square(Square::new(file, rank)) == Some((piece, color));
        let Some(king) = File::ALL.into_iter().find(|&file| on(builder, file, Piece::King)) else {
            return Err(nonsense("that king has left its own rank"));
        };
        let rook = {
            let mut rooks = File::ALL.into_iter().filter(|&file| on(builder, file, Piece::Rook));
            match letter.to_ascii_lowercase() {
                'k' => rooks.rfind(|&file| file > king),
                'q' => rooks.find(|&file| file < king),
                letter => {
                    let file =
                        File::try_from(letter).map_err(|_| nonsense("expected -, or letters of KQkq or A to H"))?;
                    rooks.find(|&rook| rook == file)
                }
            }
        };
        let rook = rook.ok_or_else(|| nonsense(&format!("there is no rook for {letter}")))?;
        if !chess960 && (king != File::E || !matches!(rook, File::A | File::H)) {
            return Err(nonsense(
                "king and rooks are not where a standard game begins; make the game with chess960=518",
            ));
        }
        let CastleRights { short, long } = builder.castle_rights_mut(color);
        let right = if rook > king { short } else { long };
        if right.replace(rook).is_some() {
            return Err(nonsense("a right is there twice"));
        }
    }
    Ok(())
}

fn read_en_passant(builder: &mut BoardBuilder, word: &str) -> Result<(), String> {
    if word != "-" {
        let square =
            word.parse::<Square>().map_err(|_| format!("en passant in a FEN is - or a square, got {}", shown(word)))?;
        builder.en_passant = Some(square);
    }
    Ok(())
}

fn refusal(error: BoardBuilderError, words: &[&str]) -> String {
    match error {
        BoardBuilderError::InvalidBoard => "the player who is not to move is in check; no game leads there".to_owned(),
        BoardBuilderError::InvalidEnPassant => {
            format!("no pawn can just have gone two steps past {}, the en-passant square of the FEN", shown(words[3]))
        }
        // Each of the others was looked at before.
        error => format!("{error} (in a FEN)"),
    }
}
