//! Chess: known counts of moves, repetitions that are none, and keys. `chess_notation.rs` and `chess_pgn.rs` are about
//! text.
//!
//! python-chess, which shares no code with this, is the oracle of `tests/games/test_chess.py`: of planes, of the numbers of
//! actions, and of each way in which a game ends.

use azpy_core::game::{Game, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::Chess;
use azpy_games::chess::{Encoding, Ending};
use cozy_chess::Board;

use crate::common::{encode, keys_differ, perft};

fn chess(encoding: Encoding) -> Chess {
    Chess::new(encoding, None, 512).unwrap()
}

pub(crate) fn az18() -> Chess {
    chess(Encoding::Az18)
}

pub(crate) fn az119() -> Chess {
    chess(Encoding::Az119)
}

pub(crate) fn chess960(number: usize) -> Chess {
    Chess::new(Encoding::Az119, Some(number), 512).unwrap()
}

pub(crate) fn at(text: &str) -> Chess {
    az119().parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Position, and lines of play by depth from 1 on: <https://www.chessprogramming.org/Perft_Results>.
const PERFT: [(&str, [u64; 5]); 6] = [
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", [20, 400, 8_902, 197_281, 4_865_609]),
    (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        [48, 2_039, 97_862, 4_085_603, 193_690_690],
    ),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2_812, 43_238, 674_624]),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9_467, 422_333, 15_833_292]),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1_486, 62_379, 2_103_487, 89_941_194]),
    (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        [46, 2_079, 89_890, 3_894_594, 164_075_551],
    ),
];

/// The same without azpy.
fn cozy_perft(board: &Board, depth: usize) -> u64 {
    let mut lines = 0;
    board.generate_moves(|moves| {
        for played in moves {
            let mut next = board.clone();
            next.play_unchecked(played);
            lines += if depth > 1 { cozy_perft(&next, depth - 1) } else { 1 };
        }
        false
    });
    lines
}

fn check_perft(depth: usize) {
    for (fen, counts) in PERFT {
        for start in [az18(), az119(), chess960(518)] {
            let state = start.parse(fen).unwrap();
            assert_eq!(perft(&state, depth), counts[depth - 1], "{fen}");
        }
    }
}

#[test]
fn lines_of_play_are_as_many_as_known() {
    (1..=2).for_each(check_perft);
}

#[test]
#[ignore = "a minute with --release"]
fn longer_lines_of_play_are_as_many_as_known() {
    (3..=4).for_each(check_perft);
    for (fen, counts) in PERFT {
        assert_eq!(perft(&at(fen), 5), counts[4], "{fen}");
    }
}

#[test]
fn starts_of_chess960_have_the_moves_of_cozy_chess() {
    for number in (0..960).step_by(53).chain([518, 959]) {
        let (state, board) = (chess960(number), Board::chess960_startpos(number as u32));
        assert_eq!(state.fen(), format!("{board}"));
        assert_eq!(perft(&state, 2), cozy_perft(&board, 2), "{number}");
    }
}

fn ending(text: &str) -> Option<Ending> {
    let state = at(text);
    let found = state.ending();
    assert_eq!(found.is_some(), state.turn() == Turn::Terminal);
    if found.is_some_and(|ending| ending != Ending::Checkmate) {
        assert_eq!(state.outcome(), Value(0.0));
    }
    found
}

#[test]
fn an_en_passant_square_tells_positions_apart_only_where_a_pawn_can_capture() {
    let round = "Ng6 Ng3 Nh8 Nh1";
    // A pawn that could capture: the first time was another position.
    let start = "4k2n/8/8/8/3p4/8/4P3/4K2N w - - 0 1 moves e2e4";
    assert_eq!(ending(&format!("{start} {round} {round}")), None);
    assert_eq!(ending(&format!("{start} {round} {round} Ng6")), Some(Ending::Repetition));
    // No pawn beside it.
    let start = "4k2n/8/8/8/2p5/8/4P3/4K2N w - - 0 1 moves e2e4";
    assert_eq!(ending(&format!("{start} {round} {round}")), Some(Ending::Repetition));
    // One that may not: both pawns would leave the rank between king and rook.
    let start = "7n/8/8/8/k2p3R/8/4P3/4K2N w - - 0 1 moves e2e4";
    assert_eq!(ending(&format!("{start} {round} {round}")), Some(Ending::Repetition));
}

#[test]
fn a_lost_right_to_castle_tells_positions_apart() {
    let start = "4k3/8/8/8/8/8/P7/4K2R w K - 0 1";
    let round = "Rg1 Kd8 Rh1 Ke8";
    // The first position of the rounds had the right, all others have not.
    assert_eq!(ending(&format!("{start} moves {round} {round}")), None);
    assert_eq!(ending(&format!("{start} moves {round} {round} Rg1")), Some(Ending::Repetition));
}

#[test]
fn keys_cover_clock_past_and_options() {
    let variants = ["w KQ d6 0 9", "w KQ - 0 9", "w K d6 0 9", "w KQ - 1 9", "w KQ - 0 10", "w - - 0 9", "b KQ - 0 9"];
    keys_differ(variants.map(|rest| (rest.to_owned(), at(&format!("4k3/8/8/3pP3/8/8/8/R3K2R {rest}")))));
    for start in [az18(), az119()] {
        // The same board, clock and move number; only one of them has been here before.
        let twice = start.parse("Nf3 Nf6 Ng1 Ng8").unwrap();
        let once = start.parse("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3").unwrap();
        assert_eq!(twice.fen(), once.fen());
        assert_ne!(twice.key(), once.key());
        // Eight boards alike, none of them repeated; what was there before and can come again is not the same.
        let way = "Nh3 Nh6 Nf4 Nf5 Nh5 Nh4 Ng3 Ng6";
        let [one, other] = ["Nf3 Nf6 Ng1 Ng8 Nc3 Nc6", "Nc3 Nc6 Na4 Na5 Nc3 Nc6"]
            .map(|line| start.parse(&format!("{line} {way}")).unwrap());
        assert_eq!((one.fen(), encode(&one)), (other.fen(), encode(&other)));
        assert_ne!(one.key(), other.key());
    }
    // What az119 alone shows: the boards on the way, and that the board before e4 was there for the second time.
    let before = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3";
    let way = "e4 e5 d4 d5 c4 c5 b4";
    for [one, other] in [
        ["e3 a6 d3 b6".to_owned(), "d3 a6 e3 b6".to_owned()],
        ["a3 e6 b3 d6".to_owned(), "a3 d6 b3 e6".to_owned()],
        [format!("Nf3 Nf6 Ng1 Ng8 {way}"), format!("{before} moves {way}")],
    ] {
        let [one18, other18] = [&one, &other].map(|text| az18().parse(text).unwrap());
        assert_eq!((one18.fen(), one18.key()), (other18.fen(), other18.key()));
        let [one119, other119] = [&one, &other].map(|text| at(text));
        assert_ne!(encode(&one119), encode(&other119));
        assert_ne!(one119.key(), other119.key());
    }
    let options = [
        (Encoding::Az18, None, 512),
        (Encoding::Az119, None, 512),
        (Encoding::Az119, Some(518), 512),
        (Encoding::Az119, None, 511),
    ];
    keys_differ(options.map(|options @ (encoding, number, plies)| {
        (format!("{options:?}"), Chess::new(encoding, number, plies).unwrap())
    }));
}

#[test]
fn boards_are_drawn() {
    let state = at("f3 e5 g4 Qh4");
    assert!(state.render().ends_with("\nBlack wins by checkmate"));
    assert_eq!(state.owner(4, 'P'), Some(Player::Zero));
    assert_eq!(state.owner(4, 'q'), Some(Player::One));
    assert_eq!((state.owner(4, '.'), state.owner(4, '4'), state.owner(8, 'a')), (None, None, None));
    assert!(at("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").render().ends_with("\nDraw by stalemate"));
    let svg = state.to_svg();
    assert_eq!(svg.matches("<path ").count(), 32);
    assert_eq!(svg.matches("<rect ").count(), 65);
}
