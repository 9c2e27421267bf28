//! Chess and Chess960; White (player 0) begins.
//!
//! The crate cozy-chess has the legal moves. Positions are the same if the same player can do the same: an en-passant
//! square counts only where a pawn can capture there. `encoding.rs` has the two encodings, and `notation.rs` and
//! `pgn.rs` the texts.
//!
//! Invariant: `hash`, `draw` and `history` are those of `board`. Whether there is a legal move is looked up where it
//! is asked for: a search plays many actions and asks at the last position alone.

mod encoding;
mod fen;
mod history;
mod notation;
mod pgn;
mod picture;
mod san;

use std::fmt;
use std::str::FromStr;

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::text::shown;
use cozy_chess::{BitBoard, Board, Color, File, Piece, Rank, Square, get_pawn_attacks};

use crate::error::Error;
use crate::key::{Tag, digest};
use crate::notation::in_range;
use encoding::PLANES;
use history::{History, PAST_BOARDS, men};

/// The number of the usual start among those of Chess960.
const STANDARD: u16 = 518;

/// The fifty-move rule ends every game before: the longest possible one has 11,797 plies.
const MAX_PLIES: usize = 12_000;

/// How positions and actions look to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `[18, 8, 8]`: the board alone, absolute.
    Az18,
    /// `[119, 8, 8]`: eight boards, repetitions and the clock, seen by the player to move.
    Az119,
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "az18" => Ok(Self::Az18),
            "az119" => Ok(Self::Az119),
            _ => Err(Error::value("the encoding", "az18 or az119", shown(text))),
        }
    }
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The player to move is in check and has no move.
    Checkmate,
    /// The player to move is not in check and has no move.
    Stalemate,
    /// Nobody can be mated any more.
    Material,
    /// The position is there for the third time.
    Repetition,
    /// A hundred plies without a capture or a pawn's move.
    FiftyMoves,
    /// The game was cut at `max_plies`.
    PlyCap,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checkmate => "checkmate",
            Self::Stalemate => "stalemate",
            Self::Material => "insufficient material",
            Self::Repetition => "threefold repetition",
            Self::FiftyMoves => "the fifty-move rule",
            Self::PlyCap => "the limit of plies",
        })
    }
}

/// What the games of one start share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    encoding: Encoding,
    chess960: bool,
    /// The start's number in Chess960.
    number: u16,
    max_plies: u16,
}

/// A position of chess, with as much of its past as its rules and planes need.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn};
/// use azpy_core::text::Notation;
/// use azpy_games::Chess;
///
/// let start = Chess::default();
/// let mut game = start.parse("1. e4 e5 2. Qh5 Ke7")?;
/// assert_eq!(game.turn(), Turn::Player(Player::Zero));
/// game.try_play(game.parse_actions("Qxe5#")?[0]).unwrap();
/// assert_eq!(game.turn(), Turn::Terminal);
/// assert_eq!(game.ending().unwrap().to_string(), "checkmate");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chess {
    board: Board,
    history: History,
    /// Tells positions apart that are different for a repetition.
    hash: u64,
    rules: Rules,
    /// The draw by rule, if there is one; a mate comes before it.
    draw: Option<Ending>,
}

impl Default for Chess {
    /// The usual game, in az119, drawn after 512 plies.
    fn default() -> Self {
        let rules = Rules { encoding: Encoding::Az119, chess960: false, number: STANDARD, max_plies: 512 };
        Self::at(Board::startpos(), rules)
    }
}

impl Chess {
    /// The start: the usual one, or that of a number in Chess960, where 518 is the usual one with the other way to
    /// write castling. The game is drawn after `max_plies` plies.
    ///
    /// # Errors
    /// If there is no such start, or `max_plies` is not from 1 to 12,000.
    pub fn new(encoding: Encoding, chess960: Option<usize>, max_plies: usize) -> Result<Self, Error> {
        let max_plies = in_range("max_plies", max_plies, 1..=MAX_PLIES)?;
        if let Some(number) = chess960.filter(|&number| number >= 960) {
            return Err(Error::value("chess960", "off or a start's number, 0 to 959", number));
        }
        let number = chess960.map_or(STANDARD, |number| number as u16);
        let rules = Rules { encoding, chess960: chess960.is_some(), number, max_plies };
        Ok(Self::at(Board::chess960_startpos(u32::from(number)), rules))
    }

    /// A position without a past.
    fn at(board: Board, rules: Rules) -> Self {
        let history = History::new(&board);
        let mut game = Self { hash: repetition_hash(&board), board, history, rules, draw: None };
        game.draw = game.drawn(0);
        game
    }

    /// The start of this game, whatever the position.
    fn start(&self) -> Self {
        Self::at(Board::chess960_startpos(u32::from(self.rules.number)), self.rules)
    }

    /// Plies since move 1, as the FEN numbers moves.
    #[must_use]
    #[inline]
    pub fn ply(&self) -> usize {
        2 * (usize::from(self.board.fullmove_number()) - 1) + self.board.side_to_move() as usize
    }

    /// How the game ended, if it has.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        match (self.can_move(), self.is_check()) {
            (true, _) => self.draw,
            (false, true) => Some(Ending::Checkmate),
            (false, false) => self.draw.or(Some(Ending::Stalemate)),
        }
    }

    #[inline]
    fn can_move(&self) -> bool {
        self.board.generate_moves(|_| true)
    }

    fn is_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// The square behind a pawn that has just gone two.
    fn en_passant_square(&self) -> Option<Square> {
        let rank = Rank::Sixth.relative_to(self.board.side_to_move());
        self.board.en_passant().map(|file| Square::new(file, rank))
    }

    /// Which draw the rules see, where the position had been there so often before.
    #[inline]
    fn drawn(&self, earlier: u32) -> Option<Ending> {
        if earlier >= 2 {
            Some(Ending::Repetition)
        } else if self.board.halfmove_clock() >= 100 {
            Some(Ending::FiftyMoves)
        } else if is_material_insufficient(&self.board) {
            Some(Ending::Material)
        } else if self.ply() >= usize::from(self.rules.max_plies) {
            Some(Ending::PlyCap)
        } else {
            None
        }
    }

    fn castling(&self) -> [Option<File>; 4] {
        let [white, black] = Color::ALL.map(|color| self.board.castle_rights(color));
        [white.short, white.long, black.short, black.long]
    }
}

/// No mate is possible, as python-chess counts it: beside the kings one knight, or bishops of one colour of squares.
#[inline]
fn is_material_insufficient(board: &Board) -> bool {
    let of = |piece| board.pieces(piece);
    if !(of(Piece::Pawn) | of(Piece::Rook) | of(Piece::Queen)).is_empty() {
        return false;
    }
    let (knights, bishops) = (of(Piece::Knight), of(Piece::Bishop));
    match knights.len() {
        0 => (bishops & BitBoard::DARK_SQUARES).is_empty() || (bishops & BitBoard::LIGHT_SQUARES).is_empty(),
        1 => bishops.is_empty(),
        _ => false,
    }
}

/// Equal where the same player can do the same (FIDE's Laws of Chess, 9.2.3): a square for en passant is part of the
/// position only if a pawn can capture there.
#[inline]
fn repetition_hash(board: &Board) -> u64 {
    let Some(file) = board.en_passant() else { return board.hash() };
    let color = board.side_to_move();
    let square = Square::new(file, Rank::Sixth.relative_to(color));
    let pawns = get_pawn_attacks(square, !color) & board.colored_pieces(color, Piece::Pawn);
    let capture = !pawns.is_empty() && board.generate_moves_for(pawns, |moves| moves.to.has(square));
    if capture { board.hash() } else { board.hash_without_ep() }
}

impl Game for Chess {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 64 * PLANES,
            obs_shape: [self.planes(), 8, 8],
            max_plies: usize::from(self.rules.max_plies),
            num_symmetries: 1,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.draw.is_some() || !self.can_move() {
            return Turn::Terminal;
        }
        Turn::Player(match self.board.side_to_move() {
            Color::White => Player::Zero,
            Color::Black => Player::One,
        })
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        self.list_actions(out);
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let played = self.move_of(action).expect("a legal action");
        debug_assert!(self.board.is_legal(played));
        let castling = self.castling();
        self.history.push(self.hash, action);
        if self.rules.encoding == Encoding::Az119 {
            self.history.push_board(men(&self.board));
        }
        self.board.play_unchecked(played);
        self.hash = repetition_hash(&self.board);
        let no_way_back = self.board.halfmove_clock() == 0 || self.castling() != castling;
        let earlier = self.history.arrive(self.hash, no_way_back);
        self.draw = self.drawn(earlier);
    }

    fn outcome(&self) -> Value {
        if self.can_move() || !self.is_check() {
            return Value(0.0);
        }
        match self.board.side_to_move() {
            Color::White => Value(-1.0),
            Color::Black => Value(1.0),
        }
    }

    fn encode(&self, row: &mut [f32]) {
        self.encode_planes(row);
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(self.divisors())
    }

    /// Planes begin with rank 8, actions with a1.
    fn action_cells(&self) -> Option<Vec<u16>> {
        Some((0..64).map(|square| square ^ 56).collect())
    }

    fn key(&self) -> u128 {
        const NO_FILE: u64 = 8;
        let (board, rules) = (&self.board, &self.rules);
        let file = |file: Option<File>| file.map_or(NO_FILE, |file| file as u64);
        let castling = self.castling().into_iter().fold(0, |word, right| word << 4 | file(right));
        let state = board.side_to_move() as u64
            | file(board.en_passant()) << 1
            | u64::from(board.halfmove_clock()) << 5
            | castling << 12
            | u64::from(board.fullmove_number()) << 28
            | u64::from(rules.max_plies) << 44
            | u64::from(rules.chess960) << 60
            | (rules.encoding as u64) << 61;
        // What can still be repeated is in the key, as a third time is a draw; and all that az119 shows.
        let [past_high, past_low] = self.history.digest();
        let [a, b, c, d] = men(board);
        let words = [state, a, b, c, d, past_high, past_low];
        if rules.encoding == Encoding::Az18 {
            return digest(Tag::Chess, &words);
        }
        let mut long = [0; 8 + 4 * PAST_BOARDS];
        long[..7].copy_from_slice(&words);
        long[7] = self.history.all_repeats();
        for (words, board) in long[8..].chunks_exact_mut(4).zip(self.history.boards()) {
            words.copy_from_slice(board);
        }
        digest(Tag::Chess, &long)
    }

    /// The board from White's side, White's men in capitals; then the FEN, and how the game ended.
    fn render(&self) -> String {
        self.drawing()
    }
}
