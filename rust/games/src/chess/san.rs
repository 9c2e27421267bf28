//! Words as SAN writes moves.

use cozy_chess::{File, Move, Piece, Rank, Square};

/// A move as SAN describes it: what is not said matches everything.
pub(super) struct Description {
    piece: Piece,
    from_file: Option<File>,
    from_rank: Option<Rank>,
    to: Square,
    promotion: Option<Piece>,
}

impl Description {
    /// Reads `Nf3`, `exd5`, `R1e2`, `e8=Q`, also long as in `e2-e4` and `Ng1xf3`; no castling.
    pub(super) fn read(word: &str) -> Option<Self> {
        let piece_of = |letter: char| Piece::try_from(letter.to_ascii_lowercase()).ok();
        let mut letters: Vec<char> = word.chars().filter(|letter| !matches!(letter, 'x' | ':' | '-')).collect();
        // A square ends with a digit, so a letter at the end is a promotion.
        let promotion = match letters.last() {
            Some(&letter) if letter.is_alphabetic() => {
                letters.pop();
                letters.pop_if(|letter| *letter == '=');
                Some(piece_of(letter).filter(|piece| !matches!(piece, Piece::Pawn | Piece::King))?)
            }
            _ => None,
        };
        let piece = match letters.first() {
            Some(&letter) if letter.is_uppercase() => {
                letters.remove(0);
                piece_of(letter)?
            }
            _ => Piece::Pawn,
        };
        let rank = Rank::try_from(letters.pop()?).ok()?;
        let to = Square::new(File::try_from(letters.pop()?).ok()?, rank);
        let from_rank = letters.last().and_then(|&letter| Rank::try_from(letter).ok());
        if from_rank.is_some() {
            letters.pop();
        }
        let mut from_file = letters.last().and_then(|&letter| File::try_from(letter).ok());
        if from_file.is_some() {
            letters.pop();
        } else if piece == Piece::Pawn {
            // A pawn that captures says where it comes from.
            from_file = Some(to.file());
        }
        letters.is_empty().then_some(Self { piece, from_file, from_rank, to, promotion })
    }

    pub(super) fn fits(&self, piece: Piece, played: Move) -> bool {
        piece == self.piece
            && played.to == self.to
            && played.promotion == self.promotion
            && self.from_file.is_none_or(|file| file == played.from.file())
            && self.from_rank.is_none_or(|rank| rank == played.from.rank())
    }
}

/// Whether a word is castling, and to the king's side.
pub(super) fn castling(word: &str) -> Option<bool> {
    match word.replace(['0', 'o'], "O").as_str() {
        "O-O" => Some(true),
        "O-O-O" => Some(false),
        _ => None,
    }
}

/// Whether a word is shaped as a move.
pub(super) fn is_move(word: &str) -> bool {
    castling(word).is_some() || Description::read(word).is_some()
}
