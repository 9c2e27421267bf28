//! The two encodings of chess: numbers of actions, and planes; docs/reference/games.md lists both. `az119` is
//! AlphaZero's (Silver et al. 2018, supplementary materials), and `az18` shows the board alone.

use azpy_core::game::Action;
use cozy_chess::{Color, File, Move, Piece, Rank, Square};

use super::history::{Men, PAST_BOARDS, by_piece, men};
use super::{Chess, Encoding};
use crate::planes::put_bits;

/// Planes of an action, for each square it can begin on.
pub(super) const PLANES: usize = 73;
const KNIGHT: usize = 56;
const UNDERPROMOTION: usize = 64;

/// (file, rank) a step.
const DIRECTIONS: [(i8, i8); 8] = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)];
const KNIGHT_STEPS: [(i8, i8); 8] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];
const UNDERPROMOTIONS: [Piece; 3] = [Piece::Knight, Piece::Bishop, Piece::Rook];
/// Planes of castling as two steps of the king.
const TWO_EAST: usize = 2 * 7 + 1;
const TWO_WEST: usize = 6 * 7 + 1;

/// No square.
const NONE: u8 = 64;

/// The (file, rank) that a plane leads to, promotion being upwards.
const fn step(plane: usize) -> (i8, i8) {
    if plane < KNIGHT {
        let ((file, rank), distance) = (DIRECTIONS[plane / 7], (plane % 7 + 1) as i8);
        (file * distance, rank * distance)
    } else if plane < UNDERPROMOTION {
        KNIGHT_STEPS[plane - KNIGHT]
    } else {
        (((plane - UNDERPROMOTION) / 3) as i8 - 1, 1)
    }
}

/// By square and plane: the square it leads to.
static TARGETS: [[u8; PLANES]; 64] = {
    let mut targets = [[NONE; PLANES]; 64];
    let mut from = 0;
    while from < 64 {
        let mut plane = 0;
        while plane < PLANES {
            let (file, rank) = step(plane);
            let (file, rank) = ((from % 8) as i8 + file, (from / 8) as i8 + rank);
            if file >= 0 && file < 8 && rank >= 0 && rank < 8 {
                targets[from][plane] = (rank * 8 + file) as u8;
            }
            plane += 1;
        }
        from += 1;
    }
    targets
};

/// By the squares it begins and ends on: the plane of a plain step.
static STEPS: [[u8; 64]; 64] = {
    let mut steps = [[0; 64]; 64];
    let mut from = 0;
    while from < 64 {
        let mut plane = 0;
        while plane < UNDERPROMOTION {
            let to = TARGETS[from][plane];
            if to != NONE {
                steps[from][to as usize] = plane as u8;
            }
            plane += 1;
        }
        from += 1;
    }
    steps
};

/// Bits of the plain planes by which a pawn promotes: to the file below, the same, and the one above, up or down.
const PROMOTING: [u64; 3] = [1 << 49 | 1 << 35, 1 | 1 << 28, 1 << 7 | 1 << 21];

impl Chess {
    /// What squares are exclusive-ored with to be numbered as the encoding does: 56 exchanges the ranks.
    #[inline]
    fn flip(&self) -> usize {
        match (self.rules.encoding, self.board.side_to_move()) {
            (Encoding::Az119, Color::Black) => 56,
            _ => 0,
        }
    }

    /// Replaces the contents of `out` by all that the pieces may do, draws aside.
    #[inline]
    pub(super) fn list_actions(&self, out: &mut Vec<Action>) {
        let (board, flip) = (&self.board, self.flip());
        let own = board.colors(board.side_to_move());
        let seventh = Rank::Seventh.relative_to(board.side_to_move()).bitboard();
        // Actions ascend by square and then by plane: sets of bits are sorted as they are.
        let (mut sources, mut promoting, mut planes) = (0_u64, 0_u64, [0_u64; 64]);
        board.generate_moves(|moves| {
            let from = moves.from as usize ^ flip;
            let (steps, mut set) = (&STEPS[from], 0);
            sources |= 1 << from;
            let mut targets = moves.to;
            match moves.piece {
                Piece::Pawn if seventh.has(moves.from) => promoting |= 1 << from,
                Piece::King if !self.rules.chess960 => {
                    for rook in targets & own {
                        set |= 1 << if rook > moves.from { TWO_EAST } else { TWO_WEST };
                    }
                    targets &= !own;
                }
                _ => {}
            }
            let mut rest = targets.0;
            while rest != 0 {
                let to = rest.trailing_zeros() as usize % 64;
                set |= 1 << steps[to ^ flip];
                rest &= rest - 1;
            }
            planes[from] |= set;
            false
        });
        out.clear();
        while sources != 0 {
            let from = sources.trailing_zeros() as usize;
            sources &= sources - 1;
            let first = (from * PLANES) as Action;
            let mut rest = planes[from];
            while rest != 0 {
                out.push(first + rest.trailing_zeros());
                rest &= rest - 1;
            }
            if promoting >> from & 1 == 1 {
                for (file, bits) in PROMOTING.into_iter().enumerate() {
                    if planes[from] & bits != 0 {
                        let first = first + (UNDERPROMOTION + 3 * file) as Action;
                        out.extend(first..first + 3);
                    }
                }
            }
        }
    }

    /// Where an action leads from and to, and a promotion that its number names; nothing if it leads off the board.
    #[inline]
    pub(super) fn squares(&self, action: Action) -> Option<(Square, Square, Option<Piece>)> {
        let (from, plane) = (action as usize / PLANES, action as usize % PLANES);
        let flip = self.flip();
        let promotion = (plane >= UNDERPROMOTION).then(|| UNDERPROMOTIONS[(plane - UNDERPROMOTION) % 3]);
        let down = promotion.is_some() && flip == 0 && self.board.side_to_move() == Color::Black;
        let mirror = if down { 56 } else { 0 };
        let to = TARGETS.get(from ^ mirror)?[plane];
        (to != NONE).then(|| (Square::index(from ^ flip), Square::index(usize::from(to) ^ mirror ^ flip), promotion))
    }

    /// The promotion of a step between these squares to a queen, if it is one.
    #[inline]
    fn queening(&self, from: Square, to: Square) -> Option<Piece> {
        let pawn = self.board.pieces(Piece::Pawn).has(from);
        (pawn && (Rank::First.bitboard() | Rank::Eighth.bitboard()).has(to)).then_some(Piece::Queen)
    }

    /// A legal action as cozy-chess writes it, where castling is the king taking its own rook. Nothing, or an illegal
    /// move, for an illegal action.
    #[inline]
    pub(super) fn move_of(&self, action: Action) -> Option<Move> {
        let (from, mut to, promotion) = self.squares(action)?;
        let plane = action as usize % PLANES;
        if !self.rules.chess960 && (plane == TWO_EAST || plane == TWO_WEST) && self.board.pieces(Piece::King).has(from)
        {
            let rights = self.board.castle_rights(self.board.side_to_move());
            let rook = if plane == TWO_EAST { rights.short } else { rights.long };
            to = Square::new(rook?, from.rank());
        }
        Some(Move { from, to, promotion: promotion.or_else(|| self.queening(from, to)) })
    }

    /// The number of a legal move that cozy-chess writes.
    pub(super) fn action_of(&self, played: Move) -> Action {
        let Move { from, mut to, promotion } = played;
        if !self.rules.chess960 && self.board.colors(self.board.side_to_move()).has(to) {
            to = Square::new(if to > from { File::G } else { File::C }, from.rank());
        }
        let flip = self.flip();
        let plane = match UNDERPROMOTIONS.iter().position(|&piece| Some(piece) == promotion) {
            Some(piece) => UNDERPROMOTION + 3 * (to.file() as usize + 1 - from.file() as usize) + piece,
            None => usize::from(STEPS[from as usize ^ flip][to as usize ^ flip]),
        };
        ((from as usize ^ flip) * PLANES + plane) as Action
    }

    /// An action as UCI writes it, with the squares of its number: in Chess960 castling is the king taking its own rook.
    pub(super) fn uci(&self, action: Action) -> Option<String> {
        let (from, to, promotion) = self.squares(action)?;
        let promotion = promotion.or_else(|| self.queening(from, to));
        Some(format!("{from}{to}{}", promotion.map_or(String::new(), |piece| piece.to_string())))
    }

    #[inline]
    pub(super) fn planes(&self) -> usize {
        match self.rules.encoding {
            Encoding::Az18 => 18,
            Encoding::Az119 => 119,
        }
    }

    /// Of the planes: all are 0 or 1 but for the clocks of az119.
    pub(super) fn divisors(&self) -> Vec<u16> {
        let mut divisors = vec![1; self.planes()];
        if self.rules.encoding == Encoding::Az119 {
            divisors[113] = self.rules.max_plies;
            divisors[118] = 100;
        }
        divisors
    }

    pub(super) fn encode_planes(&self, row: &mut [f32]) {
        match self.rules.encoding {
            Encoding::Az18 => self.encode_az18(row),
            Encoding::Az119 => self.encode_az119(row),
        }
    }

    /// Absolute planes. 0 to 5 White's PNBRQK, 6 to 11 Black's, 12 White to move, 13 to 16 castling of White on the
    /// king's and the queen's side and of Black, 17 the square behind a pawn that has just gone two.
    fn encode_az18(&self, row: &mut [f32]) {
        let board = &self.board;
        put_men(row, men(board), false);
        put_fact(row, 12, board.side_to_move() == Color::White);
        for (index, color) in Color::ALL.into_iter().enumerate() {
            let rights = board.castle_rights(color);
            put_fact(row, 13 + 2 * index, rights.short.is_some());
            put_fact(row, 14 + 2 * index, rights.long.is_some());
        }
        put(&mut row[17 * 64..], self.en_passant_square().map_or(0, |square| square.bitboard().0), false);
    }

    /// Planes of the player to move, who is at the bottom. Eight times 14 planes, the current position first: its own
    /// PNBRQK, the opponent's, whether the position had been there before, and whether twice. Then 112 White to move,
    /// 113 plies so far / `max_plies`, 114 to 117 castling on the king's and the queen's side, its own and the
    /// opponent's, 118 the fifty-move clock / 100.
    fn encode_az119(&self, row: &mut [f32]) {
        let (board, mover) = (&self.board, self.board.side_to_move());
        let black = mover == Color::Black;
        let boards = std::iter::once(men(board)).chain(*self.history.boards());
        for (back, (men, row)) in boards.zip(row.chunks_exact_mut(14 * 64)).enumerate() {
            put_men(row, men, black);
            let repeats = self.history.repeats(back);
            put_fact(row, 12, repeats >= 1);
            put_fact(row, 13, repeats >= 2);
        }
        let rest = &mut row[(PAST_BOARDS + 1) * 14 * 64..];
        put_fact(rest, 0, !black);
        rest[64..128].fill(self.ply() as f32 / f32::from(self.rules.max_plies));
        for (index, color) in [mover, !mover].into_iter().enumerate() {
            let rights = board.castle_rights(color);
            put_fact(rest, 2 + 2 * index, rights.short.is_some());
            put_fact(rest, 3 + 2 * index, rights.long.is_some());
        }
        rest[6 * 64..].fill(f32::from(board.halfmove_clock()) / 100.0);
    }
}

fn put_fact(row: &mut [f32], plane: usize, fact: bool) {
    row[plane * 64..(plane + 1) * 64].fill(f32::from(u8::from(fact)));
}

/// Ones on the squares of the set, and else zeros. Row 0 is rank 8, or, seen by Black, rank 1.
#[inline]
fn put(plane: &mut [f32], squares: u64, seen_by_black: bool) {
    put_bits(plane, &[if seen_by_black { squares } else { squares.swap_bytes() }]);
}

/// Twelve planes of men: those of the player who sees them first.
#[inline]
fn put_men(row: &mut [f32], men: Men, seen_by_black: bool) {
    let [white, black] = by_piece(men);
    let sides = if seen_by_black { [black, white] } else { [white, black] };
    for (plane, squares) in row.chunks_exact_mut(64).zip(sides.into_iter().flatten()) {
        put(plane, squares, seen_by_black);
    }
}
