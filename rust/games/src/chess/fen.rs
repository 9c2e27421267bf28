//! Positions as FEN, with the castling rights of X-FEN and Shredder-FEN for Chess960; and as EPD, which has operations
//! in place of the two counters of a FEN (Edwards 1994, 16.2), in many files behind them.

use cozy_chess::{
    Board, BoardBuilder, BoardBuilderError, CastleRights, Color, File, Piece, Rank, Square, get_king_moves,
};

use super::san::is_move;
use super::{Chess, Rules};
use crate::error::{Error, invalid};
use azpy_core::text::shown;

/// Plies without a capture or a pawn's move after which the game is drawn.
const FIFTY_MOVES: u16 = 100;

/// Operations of EPD that many files write without the semicolon at their end.
const OPEN_OPERATIONS: [&str; 12] = ["acd", "acn", "acs", "am", "bm", "ce", "dm", "fmvn", "hmvc", "pm", "pv", "sm"];

impl Chess {
    /// The position of a FEN, or of an EPD, with which a text begins, under these rules; and the text behind it, which is
    /// empty or begins with "moves".
    ///
    /// The position may be of a game that went on where azpy's rules had ended it: its clock is above 100, or its number
    /// is past `max_plies`. There the clock begins anew at 0, or the number at 1. The number 0, which some programs
    /// write, is 1.
    pub(super) fn from_fen(text: &str, rules: Rules) -> Result<(Self, &str), Error> {
        let (words, behind) = words_of(text);
        let (operations, rest) = split_operations(behind)?;
        if words.len() < 4 {
            return Err(invalid!(
                "a FEN has 6 words (men, side to move, castling, en passant, clock, move number), of which the last two \
                 may be missing; got {}: {}",
                words.len(),
                shown(text.trim())
            ));
        }
        let mut builder = BoardBuilder::empty();
        read_men(&mut builder, words[0])?;
        builder.side_to_move = match words[1] {
            "w" => Color::White,
            "b" => Color::Black,
            word => return Err(Error::form("the side to move of a FEN is w or b", shown(word))),
        };
        check_men(&builder)?;
        read_castling(&mut builder, words[2], rules.chess960)?;
        read_en_passant(&mut builder, words[3])?;
        let counter = |index: usize, opcode: &str, what: &str| {
            let given = words.get(index).copied().or_else(|| operand_of(operations, opcode));
            let wrong = |word: &str| Error::form(format!("{what} of a FEN is a whole number"), shown(word));
            given.map(|word| plain_number(word).ok_or_else(|| wrong(word))).transpose()
        };
        let clock = counter(4, "hmvc", "the fifth word, the fifty-move clock,")?.unwrap_or(0);
        builder.halfmove_clock = if clock <= FIFTY_MOVES { clock as u8 } else { 0 };
        builder.fullmove_number = counter(5, "fmvn", "the sixth word, the move number,")?.unwrap_or(1).max(1);
        let board = builder.build().map_err(|error| refusal(error, words[3]))?;
        // The crate does not count kings among what gives check.
        if get_king_moves(board.king(Color::White)).has(board.king(Color::Black)) {
            return Err(invalid!("the kings stand side by side, which no game can reach"));
        }
        if board.checkers().len() > 2 {
            return Err(invalid!("{} men give check at once, which no game can reach", board.checkers().len()));
        }
        let mut game = Self::at(board, rules);
        if game.ply() > usize::from(rules.max_plies) {
            game.board.set_fullmove_number(1);
            game = Self::at(game.board, rules);
        }
        Ok((game, rest))
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

/// The words of a FEN with which a text begins, without operations; and the text behind them.
fn words_of(text: &str) -> (Vec<&str>, &str) {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while words.len() < 6 {
        let (word, behind) = next_word(rest);
        // An operation begins with a letter.
        let is_operation = words.len() >= 4 && word.starts_with(char::is_alphabetic);
        if word.is_empty() || word == "moves" || is_operation {
            break;
        }
        words.push(word);
        rest = behind.trim_start();
    }
    (words, rest)
}

/// The word with which a text begins, and the text behind it. A semicolon ends a word too.
fn next_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| letter.is_whitespace() || letter == ';').unwrap_or(text.len()))
}

/// The operations of an EPD, which end with their line; and the text behind them.
fn split_operations(text: &str) -> Result<(&str, &str), Error> {
    if text.is_empty() || next_word(text).0 == "moves" {
        return Ok(("", text));
    }
    let (operations, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let (mut left, mut is_first) = (Some(operations), true);
    while let Some(text) = left {
        let (opcode, operand, behind) = next_operation(text);
        let is_quoted = operand.starts_with('"');
        // The first one shows whether these are operations at all, or a remark behind a semicolon.
        let is_known = !is_first || behind.is_some() || is_quoted || OPEN_OPERATIONS.contains(&opcode);
        // Moves, with the word "moves" before them or without, and a second position must not pass for an operation.
        let is_none = is_foreign(opcode)
            || is_move(opcode) && !is_quoted
            || behind.is_none() && unquoted(operand).flat_map(str::split_whitespace).any(is_foreign);
        if !opcode.is_empty() && (is_none || !is_known) {
            return Err(Error::form(
                "expected \"moves\", nothing, or operations of EPD such as bm Qd1+; after the words of a FEN",
                shown(operations.trim()),
            ));
        }
        is_first = false;
        left = behind;
    }
    let rest = rest.trim_start();
    if rest.is_empty() || next_word(rest).0 == "moves" {
        return Ok((operations, rest));
    }
    Err(invalid!("more than one position: {} follows the first one; give one at a time", shown(rest)))
}

/// Whether a word begins what stands behind a position, or a position.
fn is_foreign(word: &str) -> bool {
    word == "moves" || word.matches('/').count() == 7
}

/// The parts of an operand outside its quotes. A quote without an end is none.
fn unquoted(operand: &str) -> impl Iterator<Item = &str> {
    let count = operand.split('"').count();
    operand.split('"').enumerate().filter(move |&(at, _)| at % 2 == 0 || at + 1 == count).map(|(_, part)| part)
}

/// The opcode and the operand of the first operation, and the text behind its semicolon, if it has one.
fn next_operation(text: &str) -> (&str, &str, Option<&str>) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|letter: char| {
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        letter == ';' && !is_quoted
    });
    let operation = text[..end.unwrap_or(text.len())].trim();
    let (opcode, operand) = operation.split_once(char::is_whitespace).unwrap_or((operation, ""));
    (opcode, operand.trim(), end.map(|end| &text[end + 1..]))
}

/// The operand of this opcode, if it is there.
fn operand_of<'a>(operations: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = Some(operations);
    while let Some(text) = rest {
        let (opcode, operand, behind) = next_operation(text);
        if opcode == wanted {
            return Some(operand);
        }
        rest = behind;
    }
    None
}

/// Digits alone: a sign would be read too. A number beyond those of all games counts as the largest one.
fn plain_number(word: &str) -> Option<u16> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().unwrap_or(u16::MAX))
}

fn read_men(builder: &mut BoardBuilder, word: &str) -> Result<(), Error> {
    let rows: Vec<_> = word.split('/').collect();
    if rows.len() != 8 {
        return Err(invalid!("the men of a FEN are 8 rows with / between, got {}: {}", rows.len(), shown(word)));
    }
    for (row, &rank) in rows.into_iter().zip(Rank::ALL.iter().rev()) {
        let (mut file, mut after_number) = (0, false);
        for letter in row.chars() {
            let number = letter.to_digit(10);
            if number.is_some() && after_number {
                return Err(invalid!("row {} of a FEN has two numbers side by side", shown(row)));
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
                return Err(invalid!("{letter:?} in row {} of a FEN; expected {expected}", shown(row)));
            }
        }
        if file != 8 {
            return Err(invalid!("row {} of a FEN has {file} squares, expected 8", shown(row)));
        }
    }
    Ok(())
}

/// Checks for impossible positions, so that the error can name the reason.
fn check_men(builder: &BoardBuilder) -> Result<(), Error> {
    for (color, name) in [(Color::White, "White"), (Color::Black, "Black")] {
        let count = |wanted: Option<Piece>| {
            let men = builder.board.iter().flatten();
            men.filter(|&&(piece, of)| of == color && wanted.is_none_or(|wanted| wanted == piece)).count()
        };
        let (kings, pawns, all) = (count(Some(Piece::King)), count(Some(Piece::Pawn)), count(None));
        if kings != 1 {
            return Err(invalid!("{name} has {kings} kings, expected 1"));
        }
        if pawns > 8 || all > 16 {
            return Err(invalid!("{name} has {all} men, {pawns} of them pawns; at most 16 and 8 are possible"));
        }
    }
    for (index, man) in builder.board.iter().enumerate() {
        let square = Square::index(index);
        if matches!(man, Some((Piece::Pawn, _))) && matches!(square.rank(), Rank::First | Rank::Eighth) {
            return Err(invalid!("a pawn on {square}, where none can stand"));
        }
    }
    Ok(())
}

fn read_castling(builder: &mut BoardBuilder, word: &str, chess960: bool) -> Result<(), Error> {
    if word == "-" {
        return Ok(());
    }
    let nonsense = |why: &str| invalid!("castling rights {} of a FEN: {why}", shown(word));
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
        let rook = rook.ok_or_else(|| nonsense(&format!("the board has no rook for {letter}")))?;
        if !chess960 && (king != File::E || !matches!(rook, File::A | File::H)) {
            return Err(nonsense(
                "king and rooks are not where a standard game begins; make the game with chess960=518",
            ));
        }
        let CastleRights { short, long } = builder.castle_rights_mut(color);
        let right = if rook > king { short } else { long };
        if right.replace(rook).is_some() {
            return Err(nonsense("a right is given twice"));
        }
    }
    Ok(())
}

fn read_en_passant(builder: &mut BoardBuilder, word: &str) -> Result<(), Error> {
    if word != "-" {
        let wrong = |_| Error::form("en passant in a FEN is - or a square", shown(word));
        builder.en_passant = Some(word.parse::<Square>().map_err(wrong)?);
    }
    Ok(())
}

fn refusal(error: BoardBuilderError, en_passant: &str) -> Error {
    match error {
        BoardBuilderError::InvalidBoard => invalid!("the player who is not to move is in check; no game leads there"),
        BoardBuilderError::InvalidEnPassant => {
            let square = shown(en_passant);
            invalid!("no pawn can just have gone two steps past {square}, the en-passant square of the FEN")
        }
        // The other kinds were checked before.
        error => invalid!("{error} (in a FEN)"),
    }
}
