//! The history of a game of chess: the earlier positions, and the latest boards.
//!
//! A search copies a position for each of its simulations, so a history must be cheap to copy. The newest plies are in
//! the value itself; older ones are in a chain of chunks that all copies share and none changes.

use std::sync::Arc;

use azpy_core::game::Action;
use cozy_chess::{Board, Color, Piece};

use crate::key::scatter;

/// Plies in a chunk.
const CHUNK: usize = 8;

/// Boards that az119 shows beside the current one.
pub(super) const PAST_BOARDS: usize = 7;

/// Which man is on each square, in four bits: the sets of squares where black men stand, and of those where the first,
/// the second and the third bit of the piece's number (pawn 1, knight 2, bishop 3, rook 4, queen 5, king 6) is set.
/// All zero before the game began.
pub(super) type Men = [u64; 4];

/// The men of a board.
#[inline]
pub(super) fn men(board: &Board) -> Men {
    let of = |pieces: [Piece; 3]| pieces.iter().fold(0, |squares, &piece| squares | board.pieces(piece).0);
    [
        board.colors(Color::Black).0,
        of([Piece::Pawn, Piece::Bishop, Piece::Queen]),
        of([Piece::Knight, Piece::Bishop, Piece::King]),
        of([Piece::Rook, Piece::Queen, Piece::King]),
    ]
}

/// The squares of White's and of Black's pawns, knights, bishops, rooks, queens and kings.
#[inline]
pub(super) fn by_piece([black, a, b, c]: Men) -> [[u64; 6]; 2] {
    let all = [a & !b & !c, b & !a & !c, a & b & !c, c & !a & !b, a & c & !b, b & c & !a];
    [all.map(|squares| squares & !black), all.map(|squares| squares & black)]
}

/// The plies before those that a history holds itself.
#[derive(Debug)]
enum Past {
    /// None at the first chunk of the game.
    Start(Board),
    Plies {
        before: Arc<Past>,
        hashes: [u64; CHUNK],
        actions: [u16; CHUNK],
    },
}

/// The plies of a game, and what its rules and planes need of the positions before them.
#[derive(Clone, Debug)]
pub(super) struct History {
    past: Arc<Past>,
    /// Of the newest `plies % CHUNK` plies: the hash of the position in which it was played, and its action.
    hashes: [u64; CHUNK],
    actions: [u16; CHUNK],
    plies: u16,
    /// Plies since the last one after which no earlier position can come again.
    run: u16,
    /// Two bits a position, the current one lowest: how often it had been there before, in az119's eight positions.
    repeats: u16,
    /// The latest boards, the newest first, for encodings that show them.
    boards: [Men; PAST_BOARDS],
}

impl History {
    /// A record that begins at this position.
    pub(super) fn new(start: &Board) -> Self {
        Self {
            past: Arc::new(Past::Start(start.clone())),
            hashes: [0; CHUNK],
            actions: [0; CHUNK],
            plies: 0,
            run: 0,
            repeats: 0,
            boards: [[0; 4]; PAST_BOARDS],
        }
    }

    /// Plies since the record began.
    pub(super) fn plies(&self) -> usize {
        usize::from(self.plies)
    }

    /// Notes that `action` is played in the position of this hash.
    #[inline]
    pub(super) fn push(&mut self, hash: u64, action: Action) {
        let newest = self.plies() % CHUNK;
        self.hashes[newest] = hash;
        self.actions[newest] = action as u16;
        self.plies += 1;
        if newest + 1 == CHUNK {
            let before = Arc::clone(&self.past);
            self.past = Arc::new(Past::Plies { before, hashes: self.hashes, actions: self.actions });
        }
    }

    /// Notes how the board stood before the ply just pushed.
    #[inline]
    pub(super) fn push_board(&mut self, men: Men) {
        self.boards.copy_within(..PAST_BOARDS - 1, 1);
        self.boards[0] = men;
    }

    /// Notes the position of this hash as the current one: after a ply that left no way back, or another. Returns how
    /// often it had been there before.
    #[inline]
    pub(super) fn arrive(&mut self, hash: u64, no_way_back: bool) -> u32 {
        self.run = if no_way_back { 0 } else { self.run + 1 };
        let mut earlier = 0;
        // The same player is to move after an even number of plies, and two are not enough to go and come back.
        if self.run >= 4 {
            self.for_run(|before| earlier += u32::from(before == hash));
        }
        self.repeats = self.repeats << 2 | earlier.min(3) as u16;
        earlier
    }

    /// Visits the hashes of the positions that can come again, the newest first.
    #[inline]
    fn for_run(&self, mut visit: impl FnMut(u64)) {
        let mut left = usize::from(self.run);
        let mut visit_newest = |hashes: &[u64]| {
            hashes.iter().rev().take(left).for_each(|&hash| visit(hash));
            left -= left.min(hashes.len());
            left > 0
        };
        let mut more = visit_newest(&self.hashes[..self.plies() % CHUNK]);
        let mut past = &self.past;
        while more && let Past::Plies { before, hashes, .. } = &**past {
            more = visit_newest(hashes);
            past = before;
        }
    }

    /// A number for the positions that can come again, in whatever order they came: it is all that the rules ask.
    #[inline]
    pub(super) fn digest(&self) -> [u64; 2] {
        let mut sums = [0_u64; 2];
        self.for_run(|hash| {
            let [high, low] = scatter(hash);
            sums = [sums[0].wrapping_add(high), sums[1].wrapping_add(low)];
        });
        sums
    }

    /// The boards before the current one, the newest first, all zero before the record began.
    #[inline]
    pub(super) fn boards(&self) -> &[Men; PAST_BOARDS] {
        &self.boards
    }

    /// How often the position `back` plies ago (0 to 7) had been there before.
    #[inline]
    pub(super) fn repeats(&self, back: usize) -> u16 {
        self.repeats >> (2 * back) & 3
    }

    /// [`History::repeats`] of all eight, as one number.
    #[inline]
    pub(super) fn all_repeats(&self) -> u64 {
        u64::from(self.repeats)
    }

    /// The plies since the last one after which no earlier position can come again, or since the record began.
    pub(super) fn run(&self) -> usize {
        usize::from(self.run)
    }

    /// Where the record begins, and all of its actions.
    pub(super) fn record(&self) -> (&Board, Vec<Action>) {
        let mut actions: Vec<_> = self.actions[..self.plies() % CHUNK].iter().rev().copied().collect();
        let mut past = &self.past;
        loop {
            match &**past {
                Past::Start(board) => return (board, actions.into_iter().rev().map(Action::from).collect()),
                Past::Plies { before, actions: older, .. } => {
                    actions.extend(older.iter().rev());
                    past = before;
                }
            }
        }
    }
}
