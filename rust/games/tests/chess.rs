//! Chess: known counts of moves, cozy-chess alone as a second opinion on the numbering of actions, each rule for a draw
//! by hand, notation there and back, and whatever text against the readers.
//!
//! python-chess, which shares no code with this, is the oracle of `tests/test_chess.py`.

use std::collections::HashSet;

use azpy_core::game::{Action, Game, Player, Turn, Value};
use azpy_games::Chess;
use azpy_games::chess::{Encoding, Ending};
use cozy_chess::Board;
use proptest::prelude::*;

mod common;
use common::{Random, after, encode, legal};

fn chess(encoding: Encoding) -> Chess {
    Chess::new(encoding, None, 512).unwrap()
}

fn az18() -> Chess {
    chess(Encoding::Az18)
}

fn az119() -> Chess {
    chess(Encoding::Az119)
}

fn chess960(number: usize) -> Chess {
    Chess::new(Encoding::Az119, Some(number), 512).unwrap()
}

fn at(text: &str) -> Chess {
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

/// Lines of play by the rules of movement alone: a perft goes on where a draw would end the game.
fn perft(state: &Chess, depth: usize) -> u64 {
    match depth {
        0 => 1,
        1 => legal(state).len() as u64,
        _ => legal(state).into_iter().map(|action| perft(&after(state, action), depth - 1)).sum(),
    }
}

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

#[test]
#[ignore = "seconds with --release"]
fn all_starts_of_chess960_have_the_lines_of_play_of_cozy_chess() {
    for number in 0..960 {
        assert_eq!(perft(&chess960(number), 4), cozy_perft(&Board::chess960_startpos(number as u32), 4), "{number}");
    }
}

/// A file of `epd FEN` and `perft DEPTH COUNT` lines, such as `examples/perft/random.perft` of python-chess's source.
#[test]
#[ignore = "needs a file of perft positions, named by AZPY_PERFT"]
fn lines_of_play_are_as_many_as_a_file_says() {
    let path = std::env::var("AZPY_PERFT").expect("AZPY_PERFT names the file");
    let most: u64 = std::env::var("AZPY_PERFT_NODES").map_or(30_000, |text| text.parse().unwrap());
    let (mut state, mut positions, mut compared) = (az119(), 0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if let Some(fen) = line.strip_prefix("epd ") {
            // A FEN with Chess960's castling is refused in a standard game.
            state =
                az119().parse(fen).or_else(|_| chess960(518).parse(fen)).unwrap_or_else(|why| panic!("{fen}: {why}"));
            positions += 1;
        } else if let Some(counts) = line.strip_prefix("perft ") {
            let (depth, lines) = counts.trim().split_once(' ').unwrap();
            let (depth, lines): (usize, u64) = (depth.parse().unwrap(), lines.trim().parse().unwrap());
            if lines <= most {
                assert_eq!(perft(&state, depth), lines, "{}", state.fen());
                compared += 1;
            }
        }
    }
    println!("{positions} positions, {compared} counts compared");
    assert!(compared > 0);
}

/// The action's number under this name, in this position.
fn number(state: &Chess, name: &str) -> Action {
    let found = legal(state).into_iter().find(|&action| state.action_name(action) == name);
    found.unwrap_or_else(|| panic!("no {name} in {}", state.fen()))
}

#[test]
fn actions_have_the_numbers_of_alphazeros_policy() {
    let promoting = "8/P6k/8/8/8/8/p6K/8 w - - 0 1";
    let black = "8/P6k/8/8/8/8/p6K/8 b - - 0 1";
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    for start in [az18(), az119()] {
        assert_eq!(number(&start, "e2e4"), 877);
        assert_eq!(number(&start, "g1f3"), 501);
        let state = start.parse(castling).unwrap();
        assert_eq!(number(&state, "e1g1"), 307);
        assert_eq!(number(&state, "e1c1"), 4 * 73 + 6 * 7 + 1);
        let state = start.parse(promoting).unwrap();
        assert_eq!(number(&state, "a7a8n"), 3571);
        assert_eq!(number(&state, "a7a8b"), 3572);
        assert_eq!(number(&state, "a7a8r"), 3573);
        assert_eq!(number(&state, "a7a8q"), 3504);
    }
    // Black's are mirrored where the planes are.
    let state = az119().parse(black).unwrap();
    assert_eq!(number(&state, "a2a1n"), 3571);
    assert_eq!(number(&state, "a2a1q"), 3504);
    assert_eq!(number(&az119().parse("e2e4").unwrap(), "e7e5"), 877);
    let state = az18().parse(black).unwrap();
    assert_eq!(number(&state, "a2a1n"), 8 * 73 + 67);
    assert_eq!(number(&state, "a2a1q"), 8 * 73 + 4 * 7);
    assert_eq!(number(&az18().parse("e2e4").unwrap(), "e7e5"), 52 * 73 + 4 * 7 + 1);
    // In Chess960 the king takes its rook.
    let state = chess960(518).parse(castling).unwrap();
    assert_eq!(number(&state, "e1h1"), 4 * 73 + 2 * 7 + 2);
    assert_eq!(number(&state, "e1a1"), 4 * 73 + 6 * 7 + 3);
}

/// The planes that are not empty, with the rows and columns of their ones (or `all`, and its value).
fn planes(state: &Chess) -> Vec<(usize, String)> {
    let row = encode(state);
    let planes = row.chunks(64).enumerate().filter(|(_, plane)| plane.iter().any(|&value| value != 0.0));
    let text = |plane: &[f32]| {
        if plane.iter().all(|&value| value == plane[0]) {
            return format!("all {}", plane[0]);
        }
        assert!(plane.iter().all(|&value| value == 0.0 || value == 1.0));
        let cells = (0..64).filter(|&cell| plane[cell] == 1.0);
        cells.map(|cell| format!("{}{}", cell / 8, cell % 8)).collect::<Vec<_>>().join(" ")
    };
    planes.map(|(index, plane)| (index, text(plane))).collect()
}

fn expected(planes: &[(usize, &str)]) -> Vec<(usize, String)> {
    planes.iter().map(|&(plane, cells)| (plane, cells.to_owned())).collect()
}

#[test]
fn az18_shows_the_board_as_it_lies() {
    let state = az18().parse("4k2r/8/8/3pP3/8/8/P7/R3K3 w Qk d6 0 7").unwrap();
    let found = [(0, "34 60"), (3, "70"), (5, "74"), (6, "33"), (9, "07"), (11, "04"), (12, "all 1"), (14, "all 1")];
    assert_eq!(planes(&state), [expected(&found), expected(&[(15, "all 1"), (17, "23")])].concat());
    // Set after every double step, whether or not a pawn can capture.
    let state = az18().parse("e2e4").unwrap();
    assert!(planes(&state).contains(&(17, "54".to_owned())));
    assert!(!planes(&state).contains(&(12, "all 1".to_owned())));
}

#[test]
fn az119_shows_eight_boards_to_the_player_to_move() {
    let start = Chess::new(Encoding::Az119, None, 100).unwrap();
    let state = start.parse("4k2r/8/8/8/8/8/8/R3K3 w Qk - 5 7 moves a1a4 e8e7").unwrap();
    let board = |back: usize, planes: &[(usize, &'static str)]| {
        planes.iter().map(|&(plane, cells)| (14 * back + plane, cells)).collect::<Vec<_>>()
    };
    let found = [
        board(0, &[(3, "40"), (5, "74"), (9, "07"), (11, "14")]),
        board(1, &[(3, "40"), (5, "74"), (9, "07"), (11, "04")]),
        board(2, &[(3, "70"), (5, "74"), (9, "07"), (11, "04")]),
        vec![(112, "all 1"), (113, "all 0.14"), (118, "all 0.07")],
    ];
    assert_eq!(planes(&state), expected(&found.concat()));
    // Black sees its own men first, and itself at the bottom, in the boards before as well.
    let state = start.parse("4k2r/8/8/8/8/8/8/R3K3 w Qk - 5 7 moves a1a4").unwrap();
    let found = [
        board(0, &[(3, "77"), (5, "74"), (9, "30"), (11, "04")]),
        board(1, &[(3, "77"), (5, "74"), (9, "00"), (11, "04")]),
        vec![(113, "all 0.13"), (114, "all 1"), (118, "all 0.06")],
    ];
    assert_eq!(planes(&state), expected(&found.concat()));
}

#[test]
fn az119_shows_which_boards_had_been_there_before() {
    let state = at("Nf3 Nf6 Ng1 Ng8 e4");
    let repeated: Vec<_> = planes(&state).into_iter().filter(|(plane, _)| *plane < 112 && plane % 14 >= 12).collect();
    // The board before e4 was that of the start.
    assert_eq!(repeated, expected(&[(14 + 12, "all 1")]));
    assert_eq!(planes(&state).iter().filter(|(plane, _)| plane % 14 == 5 && *plane < 112).count(), 6);
    // The oldest of the eight has knights on f3 and f6 alone.
    let knights = planes(&at("Nf3 Nf6 Nc3 Nc6 a3 a6 b3 b6 e4"));
    let oldest: Vec<_> = knights.into_iter().filter(|(plane, _)| [14 * 7 + 1, 14 * 7 + 7].contains(plane)).collect();
    assert_eq!(oldest, expected(&[(14 * 7 + 1, "55 71"), (14 * 7 + 7, "01 25")]));
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
fn a_mate_is_lost_by_the_player_to_move() {
    let state = at("f3 e5 g4 Qh4#");
    assert_eq!((state.ending(), state.outcome()), (Some(Ending::Checkmate), Value(-1.0)));
    let state = at("e4 e5 Qh5 Ke7 Qxe5#");
    assert_eq!((state.ending(), state.outcome()), (Some(Ending::Checkmate), Value(1.0)));
    // It comes before every draw.
    assert_eq!(ending("7k/6Q1/6K1/8/8/8/8/8 b - - 100 90"), Some(Ending::Checkmate));
    let short = Chess::new(Encoding::Az18, None, 4).unwrap();
    assert_eq!(short.parse("f3 e5 g4 Qh4").unwrap().outcome(), Value(-1.0));
    assert_eq!(short.parse("f3 e5 g4 Qg5").unwrap().ending(), Some(Ending::PlyCap));
}

#[test]
fn draws_end_the_game() {
    assert_eq!(ending("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), Some(Ending::Stalemate));
    assert_eq!(ending("7k/8/6K1/8/8/8/8/R7 w - - 99 90"), None);
    assert_eq!(ending("7k/8/6K1/8/8/8/8/R7 w - - 100 90"), Some(Ending::FiftyMoves));
    assert_eq!(ending("7k/8/6K1/8/8/8/8/R7 w - - 99 90 moves a1a2"), Some(Ending::FiftyMoves));
    assert_eq!(ending("7k/8/5K2/8/8/8/8/R7 b - - 99 90 moves h8g8"), Some(Ending::FiftyMoves));
    assert_eq!(ending("7k/8/6Kp/8/8/8/8/R7 b - - 99 90 moves h6h5"), None);
    let shuffle = "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1";
    assert_eq!(ending(shuffle), None);
    assert_eq!(ending(&format!("{shuffle} Ng8")), Some(Ending::Repetition));
    let short = Chess::new(Encoding::Az119, None, 3).unwrap();
    assert_eq!(short.parse("e4 e5").unwrap().ending(), None);
    assert_eq!(short.parse("e4 e5 Nf3").unwrap().ending(), Some(Ending::PlyCap));
}

#[test]
fn material_is_insufficient_where_no_mate_is_possible() {
    for (men, draw) in [
        ("8/8/4k3/8/8/3K4/8/8", true),
        ("8/8/4k3/8/8/3KN3/8/8", true),
        ("8/8/4k1n1/8/8/3K4/8/8", true),
        ("8/8/4k3/8/8/3KB3/8/8", true),
        // Bishops of one colour of squares, however many, whoever has them.
        ("2b5/8/4k3/8/8/3KB3/8/8", false),
        ("8/8/4kb2/8/8/3KB3/8/8", true),
        ("8/8/4k3/2B5/8/3KB3/8/8", true),
        ("8/8/4k3/8/4B3/4B3/3K4/8", false),
        ("8/8/4k1n1/8/8/3KN3/8/8", false),
        ("8/8/4k3/8/8/3KNN2/8/8", false),
        ("2b5/8/4k3/8/8/3KN3/8/8", false),
        ("8/8/4k3/8/8/3KP3/8/8", false),
        ("8/8/4k3/8/8/2RK4/8/8", false),
        ("8/8/4k3/8/8/2QK4/8/8", false),
    ] {
        for mover in ["w", "b"] {
            let state = at(&format!("{men} {mover} - - 0 1"));
            assert_eq!(state.ending() == Some(Ending::Material), draw, "{}", state.fen());
        }
    }
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
fn castling_is_written_as_each_kind_of_chess_does() {
    let fen = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1";
    for (start, uci) in [(az119(), ["e1g1", "e1c1"]), (chess960(0), ["e1h1", "e1a1"])] {
        let state = start.parse(fen).unwrap();
        for (uci, sans) in uci.into_iter().zip([["O-O", "0-0", "o-o"], ["O-O-O", "0-0-0", "O-O-O!?"]]) {
            let action = state.parse_actions(uci).unwrap()[0];
            assert_eq!((state.action_name(action).as_str(), state.short_name(action).as_str()), (uci, sans[0]));
            for san in sans {
                assert_eq!(state.parse_actions(san).unwrap(), [action], "{san}");
            }
        }
    }
    let state = at(fen);
    assert_eq!(state.parse_actions("e1h1").unwrap(), state.parse_actions("e1g1").unwrap());
    assert_eq!(after(&state, number(&state, "e1c1")).fen(), "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/2KR3R b kq - 1 1");
    // A king that does not move when it castles.
    let state = chess960(0).parse("4k3/8/8/8/8/8/8/6KR w H - 0 1").unwrap();
    assert_eq!(after(&state, number(&state, "g1h1")).fen(), "4k3/8/8/8/8/8/8/5RK1 b - - 1 1");
}

#[test]
fn rights_to_castle_are_written_so_that_they_can_be_read() {
    let start = chess960(0);
    for fen in [
        "4k3/8/8/8/8/8/8/1R1K2RR w GBgb - 0 1",
        "4k3/8/8/8/8/8/8/1R1K2RR w GB - 0 1",
        "4k3/8/8/8/8/8/8/RR1K2RR w KQ - 0 1",
        "1r2k1r1/8/8/8/8/8/8/4K3 b kq - 0 1",
    ] {
        match start.parse(fen) {
            Ok(state) => assert_eq!(start.parse(&state.fen()).unwrap().key(), state.key(), "{fen} {}", state.fen()),
            Err(error) => assert!(fen.contains("gb"), "{fen}: {error}"),
        }
    }
    // The outer rook has K, an inner one its letter.
    assert_eq!(start.parse("4k3/8/8/8/8/8/8/1R1K2RR w HB - 0 1").unwrap().fen(), "4k3/8/8/8/8/8/8/1R1K2RR w KQ - 0 1");
    assert_eq!(start.parse("4k3/8/8/8/8/8/8/1R1K2RR w GB - 0 1").unwrap().fen(), "4k3/8/8/8/8/8/8/1R1K2RR w GQ - 0 1");
}

#[test]
fn bad_positions_are_refused_with_the_reason() {
    let start = az119();
    for (fen, why) in [
        ("8/8/8/8/8/8/8/8 w - - 0 1", "White has 0 kings, expected 1"),
        ("4k3/8/8/8/8/8/8/K3K3 w - - 0 1", "White has 2 kings, expected 1"),
        ("4k3/8/8/8/8/8/8/4K2P w - - 0 1", "a pawn on h1, where none can stand"),
        ("p3k3/8/8/8/8/8/8/4K3 w - - 0 1", "a pawn on a8, where none can stand"),
        ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "the player who is not to move is in check; no game leads there"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "the side to move of a FEN is w or b, got \"x\""),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 rows with / between, got 7"),
        ("4k3/8/8/8/8/8/8/4K4 w - - 0 1", "row \"4K4\" of a FEN has 9 squares, expected 8"),
        ("4k3/8/8/8/8/8/8/4K2 w - - 0 1", "row \"4K2\" of a FEN has 7 squares, expected 8"),
        ("4k3/8/8/8/8/8/8/4K12 w - - 0 1", "row \"4K12\" of a FEN has two numbers side by side"),
        ("4k3/8/8/8/8/8/8/4K2z w - - 0 1", "'z' in row \"4K2z\" of a FEN; expected pnbrqk"),
        ("4k3/8/8/8/8/8/8/4K2R w KQ - 0 1", "castling rights \"KQ\" of a FEN: there is no rook for Q"),
        ("4k3/8/8/8/8/8/4K3/7R w K - 0 1", "castling rights \"K\" of a FEN: that king has left its own rank"),
        ("4k3/8/8/8/8/8/8/5K1R w K - 0 1", "make the game with chess960=518"),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "castling rights \"KK\" of a FEN: a right is there twice"),
        ("4k3/8/8/8/8/8/8/4K2R w KQkqK - 0 1", "expected - or up to four of KQkq"),
        ("4k3/8/8/8/8/8/8/4K2R w X - 0 1", "expected -, or letters of KQkq or A to H"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "no pawn can just have gone two steps past \"e6\""),
        ("4k3/8/8/8/4P3/8/8/4K3 b - e4 0 1", "no pawn can just have gone two steps past \"e4\""),
        ("4k3/8/8/8/4P3/8/8/4K3 b - e9 0 1", "en passant in a FEN is - or a square, got \"e9\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - 101 1", "the fifty-move clock, 0 to 100, got \"101\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - +1 1", "the fifty-move clock, 0 to 100, got \"+1\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "the move number, from 1 on, got \"0\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 300", "move 300 is past the 512 plies after which this game is drawn"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 99999", "the move number, from 1 on, got \"99999\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 e2e4", "a FEN has 6 words"),
        ("4k3/8/8/8/8/8/8/4K3", "a FEN has 6 words"),
        ("4k3/8/8/8/1b6/5n2/8/q3K3 w - - 0 1", "3 men give check at once; no game leads there"),
        ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "Black has 10 men, 9 of them pawns; at most 16 and 8 are possible"),
    ] {
        let error = start.parse(fen).err().unwrap_or_else(|| panic!("{fen} was accepted"));
        assert!(error.contains(why), "{fen}: {error}");
    }
}

#[test]
fn starts_that_do_not_exist_are_refused() {
    let refused = |chess960, max_plies| Chess::new(Encoding::Az18, chess960, max_plies).unwrap_err();
    assert_eq!(refused(Some(960), 512), "chess960 must be off or a start's number, 0 to 959, got 960");
    assert_eq!(refused(None, 0), "max_plies must be from 1 to 12000, got 0");
    assert_eq!(refused(Some(usize::MAX), 12_001), "max_plies must be from 1 to 12000, got 12001");
    assert_eq!("az73".parse::<Encoding>().unwrap_err(), "the encoding must be az18 or az119, got az73");
}

const GAME: &str = r#"% a line that is no part of it
[Event "a \"game\" of \\ its own"]
[Site "?"]

1. e4 {the king's pawn [e4]} e5 $1 2.Nf3 (2. f4 exf4 (2... d5 {Falkbeer ) } 3. exd5) 3. Nf3) 2... Nc6 ; Spanish (
3. Bb5 a6!? 4 Ba4 Nf6 5. O-O Nxe4 1/2-1/2
"#;

#[test]
fn a_pgn_is_read_past_all_that_is_no_move() {
    let start = az119();
    let ucis = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f6e4";
    let actions = start.parse_actions(ucis).unwrap();
    assert_eq!(start.parse_actions(GAME).unwrap(), actions);
    assert_eq!(
        start.parse(GAME).unwrap().key(),
        start.parse(&format!("position startpos moves {ucis}")).unwrap().key()
    );
    assert_eq!(start.parse_actions("1.e2-e4 e7e5 2.Ng1-f3 Nb8c6 3.Bf1b5+?! a6 Ba4 Nf6 0-0 Nf6xe4 *").unwrap(), actions);
    assert_eq!(start.parse_actions("").unwrap(), []);
    // A start of its own, which `parse` takes and a line of play must have already.
    let fen = "4k3/P7/8/8/8/8/8/4K3 w - - 3 20";
    let text = format!("[SetUp \"1\"]\n[FEN \"{fen}\"]\n\n20. a8=Q+ Kd7 1-0");
    assert_eq!(start.parse(&text).unwrap().fen(), "Q7/3k4/8/8/8/8/8/4K3 w - - 1 21");
    assert_eq!(at(fen).parse_actions(&text).unwrap().len(), 2);
    assert!(start.parse_actions(&text).unwrap_err().contains("the line of play begins at"));
}

#[test]
fn text_that_is_no_game_is_refused_with_the_place() {
    let start = az119();
    for (text, why) in [
        ("e4 e5 Ke3", "action 3 is \"Ke3\", which is not among the legal ones: Nc3, Na3"),
        ("e4 e5 --", "action 3 is \"--\""),
        ("e2e4 e7e5 0000", "action 3 is \"0000\""),
        ("e9", "action 1 is \"e9\""),
        ("f3 e5 g4 Qh4# a3", "action 5 is \"a3\", but the game is over before it"),
        ("1. e4 {never closed", "a comment that begins with { has no end"),
        ("1. e4 (1. d4", "a variation that begins with ( has no end"),
        ("1. e4 ) e5", "a ) without its ("),
        ("1. e4 } e5", "'}' where a move was expected"),
        ("1. e4 1-0 e5", "\"e5\" after the result"),
        ("1. e4 1-0\n[Event \"?\"]\n1. d4", "more than one game"),
        ("[Event]\n1. e4", "a tag is [Name \"value\"], got \"[Event]\""),
        ("[Event \"no end\n1. e4", "a tag is [Name \"value\"]"),
        ("[FEN \"nonsense\"]", "a FEN has 6 words"),
        ("startpos e2e4", "expected \"moves\" or nothing after the position, got \"e2e4\""),
        ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1 moves Rf5", "action 1 is \"Rf5\""),
        ("k7/8/8/8/7R/8/8/K6R w - - 0 1 moves Rh2", "which may be any of R1h2, R4h2"),
        ("fen", "a FEN has 6 words"),
    ] {
        let error = start.parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
        assert!(error.contains(why), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// Games at random, now and then drawn to shuffling men so that positions come again.
fn random_positions(start: &Chess, seed: u64, visit: &mut impl FnMut(&Chess)) {
    let (mut state, mut random) = (start.clone(), Random(seed));
    let mut before = Vec::new();
    while state.turn() != Turn::Terminal {
        visit(&state);
        let legal = legal(&state);
        let back: Vec<_> =
            legal.iter().copied().filter(|&action| before.contains(&after(&state, action).fen_men())).collect();
        let action =
            if back.is_empty() || random.next() % 3 == 0 { *random.choose(&legal) } else { *random.choose(&back) };
        before.push(state.fen_men());
        before.drain(..before.len().saturating_sub(6));
        state.play(action);
    }
    visit(&state);
}

/// Of a FEN the men alone.
trait Men {
    fn fen_men(&self) -> String;
}

impl Men for Chess {
    fn fen_men(&self) -> String {
        self.fen().split(' ').next().unwrap().to_owned()
    }
}

fn starts() -> Vec<Chess> {
    let mut starts: Vec<_> = [Encoding::Az18, Encoding::Az119]
        .into_iter()
        .flat_map(|encoding| {
            [None, Some(518), Some(0), Some(959)].map(|number| Chess::new(encoding, number, 120).unwrap())
        })
        .collect();
    for encoding in [Encoding::Az18, Encoding::Az119] {
        for text in ["r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6 90 31", "7k/8/8/8/8/8/P6p/K7 b - - 3 40"] {
            starts.push(Chess::new(encoding, None, 200).unwrap().parse(text).unwrap());
        }
    }
    starts
}

#[test]
fn positions_are_read_as_they_were_written() {
    let (mut positions, mut with_past, mut repetitions) = (0, 0, 0);
    for (seed, start) in starts().iter().enumerate() {
        random_positions(start, seed as u64, &mut |state| {
            let text = state.to_text().unwrap();
            let read = start.parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read.key(), state.key(), "{text}");
            assert_eq!(read.to_text().unwrap(), text);
            assert_eq!((read.fen(), read.ending(), read.turn()), (state.fen(), state.ending(), state.turn()), "{text}");
            assert_eq!(legal(&read), legal(state));
            assert_eq!(encode(&read), encode(state), "{text}");
            positions += 1;
            with_past += usize::from(text.contains("moves"));
            repetitions += usize::from(state.ending() == Some(Ending::Repetition));
        });
    }
    println!("{positions} positions, {with_past} with a past; {repetitions} games ended by repetition");
    assert!(positions > 500 && with_past > 200 && repetitions > 0);
}

#[test]
fn a_position_without_a_past_that_matters_is_a_fen() {
    assert_eq!(az18().parse("e4 e5").unwrap().to_text().unwrap(), at("e4 e5").fen());
    assert_eq!(
        az18().parse("e4 e5 Nf3").unwrap().to_text().unwrap(),
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2 moves g1f3"
    );
    assert_eq!(
        at("e4 e5").to_text().unwrap(),
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 moves e2e4 e7e5"
    );
}

#[test]
fn names_of_actions_are_read_as_those_actions() {
    let mut names = 0;
    for (seed, start) in starts().iter().enumerate() {
        random_positions(start, 100 + seed as u64, &mut |state| {
            if state.turn() == Turn::Terminal {
                return;
            }
            let legal = legal(state);
            let short: HashSet<_> = legal.iter().map(|&action| state.short_name(action)).collect();
            assert_eq!(short.len(), legal.len());
            for &action in legal.iter().step_by(5) {
                for name in [state.action_name(action), state.short_name(action)] {
                    assert_eq!(state.parse_actions(&name).unwrap(), [action], "{name} in {}", state.fen());
                    names += 1;
                }
            }
        });
    }
    println!("{names} names");
}

#[test]
fn every_number_has_a_name_legal_or_not() {
    for state in [az18().parse("e4").unwrap(), at("e4"), chess960(7)] {
        for action in (0..state.num_actions() as Action + 2).chain([Action::MAX]) {
            assert!(!state.action_name(action).is_empty() && !state.short_name(action).is_empty());
        }
    }
}

#[test]
fn keys_cover_clock_past_and_options() {
    let keys = |texts: &[&str]| texts.iter().map(|text| at(text).key()).collect::<HashSet<_>>().len();
    let fen = |rest: &str| format!("4k3/8/8/3pP3/8/8/8/R3K2R {rest}");
    let variants = ["w KQ d6 0 9", "w KQ - 0 9", "w K d6 0 9", "w KQ - 1 9", "w KQ - 0 10", "w - - 0 9", "b KQ - 0 9"];
    let fens: Vec<_> = variants.iter().map(|rest| fen(rest)).collect();
    assert_eq!(keys(&fens.iter().map(String::as_str).collect::<Vec<_>>()), variants.len());
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
    let keys: HashSet<_> =
        options.map(|(encoding, number, plies)| Chess::new(encoding, number, plies).unwrap().key()).into();
    assert_eq!(keys.len(), 4);
}

#[test]
fn boards_are_drawn() {
    let state = at("f3 e5 g4 Qh4");
    let drawn = "8 r n b . k b n r\n7 p p p p . p p p\n6 . . . . . . . .\n5 . . . . p . . .\n4 . . . . . . P q\n\
                 3 . . . . . P . .\n2 P P P P P . . P\n1 R N B Q K B N R\n  a b c d e f g h\n\
                 rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3\ncheckmate, Black wins";
    assert_eq!(state.render(), drawn);
    assert_eq!(state.owner(4, 'P'), Some(Player::Zero));
    assert_eq!(state.owner(4, 'q'), Some(Player::One));
    assert_eq!((state.owner(4, '.'), state.owner(4, '4'), state.owner(8, 'a')), (None, None, None));
    assert!(at("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").render().ends_with("\ndraw: stalemate"));
    let svg = state.to_svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    assert_eq!(svg.matches("<path ").count(), 32);
    assert_eq!(svg.matches("<rect ").count(), 65);
}

/// Valid texts to begin with.
const TEXTS: [&str; 10] = [
    GAME,
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1 moves e1g1 e8c8 a2a4",
    "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b HAha e3 0 3",
    "startpos moves e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 e1g1",
    "position fen 8/P6k/8/8/8/8/p6K/8 w - - 0 1 moves a7a8q a2a1n",
    "[FEN \"4k3/P7/8/8/8/8/8/4K3 w - - 3 20\"]\n\n20. a8=Q+ Kd7 21. Qd5+ Ke7 1-0",
    "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1",
    "e4 e5 Qh5 Ke7 Qxe5#",
    "4k3/8/8/8/8/8/8/1R1K2RR w GB - 99 200",
];

/// Cuts, doubles, swaps and replaces parts of a text.
fn mutated(random: &mut Random) -> String {
    const LETTERS: &str = "pnbrqkPNBRQK12345678/-  \n\t{}()[]\"\\;%$!?+#=x.*abcdefghO0wé♔\u{feff}\u{0}";
    let alphabet: Vec<char> = LETTERS.chars().collect();
    let mut text: Vec<char> = random.choose(&TEXTS).chars().collect();
    for _ in 0..random.next() % 5 {
        let place = |random: &mut Random, text: &[char]| random.next() as usize % (text.len() + 1);
        let (from, to) = (place(random, &text), place(random, &text));
        let (from, to) = (from.min(to), from.max(to));
        match random.next() % 5 {
            0 => drop(text.splice(from..(from + 1).min(text.len()), [*random.choose(&alphabet)])),
            1 => text.insert(from, *random.choose(&alphabet)),
            2 => drop(text.drain(from..to.min(from + 6))),
            3 => {
                let part = text[from..to].to_vec();
                drop(text.splice(from..from, part));
            }
            _ => {
                let other: Vec<char> = random.choose(&TEXTS).chars().collect();
                let cut = place(random, &other);
                drop(text.splice(from.., other[cut..].iter().copied()));
            }
        }
    }
    text.into_iter().collect()
}

/// Whatever is accepted is a position like any other.
fn survives(text: &str, starts: &[Chess]) -> usize {
    let mut accepted = 0;
    for start in starts {
        if let Ok(state) = start.parse(text) {
            let written = state.to_text().unwrap();
            assert_eq!(start.parse(&written).map(|read| read.key()), Ok(state.key()), "{text:?} {written}");
            for action in legal(&state) {
                assert_ne!(after(&state, action).key(), state.key());
            }
            accepted += 1;
        }
        if let Ok(actions) = start.parse_actions(text) {
            let mut state = start.clone();
            actions.iter().for_each(|&action| state.try_play(action).unwrap());
            accepted += 1;
        }
    }
    accepted
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_readers(letters in proptest::collection::vec(any::<char>(), 0..100)) {
        survives(&letters.into_iter().collect::<String>(), &[az18(), chess960(5)]);
    }

    #[test]
    fn no_broken_notation_breaks_the_readers(seed in any::<u64>()) {
        survives(&mutated(&mut Random(seed)), &[az119(), chess960(518)]);
    }
}

#[test]
#[ignore = "minutes with --release; AZPY_FUZZ texts, five million by default"]
fn millions_of_broken_texts_do_not_break_the_readers() {
    let texts: u64 = std::env::var("AZPY_FUZZ").map_or(5_000_000, |text| text.parse().unwrap());
    let (mut random, starts) = (Random(7), [az119(), chess960(518)]);
    let accepted: usize = (0..texts).map(|_| survives(&mutated(&mut random), &starts)).sum();
    println!("{texts} texts, {accepted} readings accepted");
}

#[test]
fn long_and_deep_texts_are_read_in_time() {
    let start = az119();
    for text in ["(".repeat(1_000_000), "[".repeat(1_000_000), "{".repeat(1_000_000), "1.".repeat(1_000_000)] {
        assert!(start.parse(&text).is_err() || text.starts_with('1'));
    }
    let text = format!("e4 {} e5", "(".repeat(500_000) + &")".repeat(500_000));
    assert_eq!(start.parse_actions(&text).unwrap().len(), 2);
}
