//! Chess: known counts of moves, cozy-chess alone as a second opinion on the numbering of actions, each rule for a draw
//! by hand, planes and keys. `chess_notation.rs` and `chess_pgn.rs` are about text.
//!
//! python-chess, which shares no code with this, is the oracle of `tests/test_chess.py`.

use std::collections::HashSet;

use azpy_core::game::{Action, Game, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::Chess;
use azpy_games::chess::{Encoding, Ending};
use cozy_chess::Board;

use crate::common::{after, encode, legal};

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
fn starts_that_do_not_exist_are_refused() {
    let refused = |chess960, max_plies| Chess::new(Encoding::Az18, chess960, max_plies).unwrap_err();
    assert_eq!(refused(Some(960), 512), "chess960 must be off or a start's number, 0 to 959, got 960");
    assert_eq!(refused(None, 0), "max_plies must be from 1 to 12000, got 0");
    assert_eq!(refused(Some(usize::MAX), 12_001), "max_plies must be from 1 to 12000, got 12001");
    assert_eq!("az73".parse::<Encoding>().unwrap_err(), "the encoding must be az18 or az119, got \"az73\"");
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
                 rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3\nBlack wins by checkmate";
    assert_eq!(state.render(), drawn);
    assert_eq!(state.owner(4, 'P'), Some(Player::Zero));
    assert_eq!(state.owner(4, 'q'), Some(Player::One));
    assert_eq!((state.owner(4, '.'), state.owner(4, '4'), state.owner(8, 'a')), (None, None, None));
    assert!(at("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").render().ends_with("\nDraw by stalemate"));
    let svg = state.to_svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    assert_eq!(svg.matches("<path ").count(), 32);
    assert_eq!(svg.matches("<rect ").count(), 65);
}
