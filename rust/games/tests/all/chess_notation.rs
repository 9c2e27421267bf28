//! Chess as text: FEN, UCI and SAN there and back, what is refused and with which words, and whatever text against the
//! readers.

use std::collections::HashSet;

use azpy_core::game::{Action, Game, Turn};
use azpy_core::text::Notation;
use azpy_games::Chess;
use azpy_games::chess::{Encoding, Ending};

use crate::chess::{at, az18, az119, chess960};
use crate::chess_pgn::read;
use crate::common::{Random, after, encode, legal};

/// The action's number under this name, in this position.
fn number(state: &Chess, name: &str) -> Action {
    let found = legal(state).into_iter().find(|&action| state.action_name(action) == name);
    found.unwrap_or_else(|| panic!("no {name} in {}", state.fen()))
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
    // Each way to write castling is understood in both kinds of chess.
    for start in [az119(), chess960(0)] {
        for side in ["w", "b"] {
            let state = start.parse(&fen.replace('w', side)).unwrap();
            let rank = if side == "w" { "1" } else { "8" };
            for (rook, king) in [("h", "g"), ("a", "c")] {
                let [takes, steps] =
                    [rook, king].map(|file| state.parse_actions(&format!("e{rank}{file}{rank}")).unwrap());
                assert_eq!(takes, steps);
                assert!(state.short_name(takes[0]).starts_with("O-O"));
            }
        }
    }
    // But steps of a king are steps, and what is no right is no move.
    let state = chess960(0).parse("4k3/8/8/8/8/8/8/5K1R w H - 0 1").unwrap();
    assert_eq!(state.short_name(state.parse_actions("f1g1").unwrap()[0]), "Kg1");
    let rook = chess960(0).parse("4k3/8/8/8/8/8/8/4KR2 w F - 0 1").unwrap();
    assert_eq!(rook.parse_actions("e1g1").unwrap(), rook.parse_actions("e1f1").unwrap());
    for text in ["e1g1", "e1h1", "e1c1", "e1a1"] {
        assert!(at("4k3/8/8/8/8/8/8/R3K2R w - - 0 1").parse_actions(text).is_err(), "{text}");
    }
    let state = at(fen);
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
fn the_bishop_on_rank_one_is_not_the_pawn_or_knight_on_the_b_file() {
    let position = az119().parse("4k3/8/8/4B3/8/8/7P/1N2B2K w - - 0 1").unwrap();
    for word in ["b1c3", "e1c3", "B1c3", "Nc3"] {
        let [action] = position.parse_actions(word).unwrap()[..] else { panic!("{word}") };
        let names = [position.action_name(action), position.short_name(action)];
        assert_eq!(names, if word.ends_with("1c3") && word != "b1c3" { ["e1c3", "B1c3"] } else { ["b1c3", "Nc3"] });
    }
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
        ("8/8/8/8/8/8/4kP2/4K3 w - - 0 1", "the kings stand side by side, which no game can reach"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "the side to move of a FEN is w or b, got \"x\""),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 rows with / between, got 7"),
        ("4k3/8/8/8/8/8/8/4K4 w - - 0 1", "row \"4K4\" of a FEN has 9 squares, expected 8"),
        ("4k3/8/8/8/8/8/8/4K2 w - - 0 1", "row \"4K2\" of a FEN has 7 squares, expected 8"),
        ("4k3/8/8/8/8/8/8/4K12 w - - 0 1", "row \"4K12\" of a FEN has two numbers side by side"),
        ("4k3/8/8/8/8/8/8/4K2z w - - 0 1", "'z' in row \"4K2z\" of a FEN; expected pnbrqk"),
        ("4k3/8/8/8/8/8/8/4K2R w KQ - 0 1", "castling rights \"KQ\" of a FEN: the board has no rook for Q"),
        ("4k3/8/8/8/8/8/4K3/7R w K - 0 1", "castling rights \"K\" of a FEN: that king has left its own rank"),
        ("4k3/8/8/8/8/8/8/5K1R w K - 0 1", "make the game with chess960=518"),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "castling rights \"KK\" of a FEN: a right is given twice"),
        ("4k3/8/8/8/8/8/8/4K2R w KQkqK - 0 1", "expected - or up to four of KQkq"),
        ("4k3/8/8/8/8/8/8/4K2R w X - 0 1", "expected -, or letters of KQkq or A to H"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "no pawn can just have gone two steps past \"e6\""),
        ("4k3/8/8/8/4P3/8/8/4K3 b - e4 0 1", "no pawn can just have gone two steps past \"e4\""),
        ("4k3/8/8/8/4P3/8/8/4K3 b - e9 0 1", "en passant in a FEN is - or a square, got \"e9\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - +1 1", "the fifty-move clock, of a FEN is a whole number, got \"+1\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - - -", "the fifty-move clock, of a FEN is a whole number, got \"-\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 -1", "the move number, of a FEN is a whole number, got \"-1\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - hmvc many;", "the fifty-move clock, of a FEN is a whole number, got \"many\""),
        ("4k3/8/8/8/8/8/8/4K3 w - - hmvc;", "the fifty-move clock, of a FEN is a whole number, got \"\""),
        (
            "4k3/8/8/8/8/8/8/4K3 w - - x 1",
            "or operations of EPD such as bm Qd1+; after the words of a FEN, got \"x 1\"",
        ),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 e1e2 e8e7;", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1; moves e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2; moves e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2; id \"a\"; moves e1e2;", "expected \"moves\", nothing, or operations"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2 moves e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - id \"a\" moves e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - id \"a moves e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 ; e1e2 e8e7", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2; e1e2", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 ; 4k3/8/8/8/8/8/8/3K4 w - - 0 1", "or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2; 4k3/8/8/8/8/8/8/3K4 w - - 0 1;", "or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Ke2 4k3/8/8/8/8/8/8/3K4 w - - 0 1", "or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 2 3", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/2P5/4K3 w - - c4 e5", "expected \"moves\", nothing, or operations of EPD"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Kd1;\n4k3/8/8/8/8/8/8/3K4 w - - bm Kd2;", "more than one position"),
        ("4k3/8/8/8/8/8/8/4K3", "a FEN has 6 words"),
        ("4k3/8/8/8/1b6/5n2/8/q3K3 w - - 0 1", "3 men give check at once, which no game can reach"),
        ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "Black has 10 men, 9 of them pawns; at most 16 and 8 are possible"),
    ] {
        let error = start.parse(fen).err().unwrap_or_else(|| panic!("{fen} was accepted"));
        assert!(error.to_string().contains(why), "{fen}: {error}");
    }
}

#[test]
fn positions_are_read_as_the_files_of_the_world_have_them() {
    let (men, start) = ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq -", az119());
    for (behind, clock, number) in [
        ("", 0, 1),
        (" 7", 7, 1),
        (" 7 30", 7, 30),
        (" 007 030", 7, 30),
        (" 98 1", 98, 1),
        // A game that azpy's rules have ended begins anew: beyond fifty moves, or beyond `max_plies`.
        (" 101 80", 0, 80),
        (" 150 80", 0, 80),
        (" 99999999999999999999 80", 0, 80),
        (" 7 258", 7, 1),
        (" 120 6000", 0, 1),
        (" 7 99999999999999999999", 7, 1),
        (" 7 0", 7, 1),
        (" 0 0", 0, 1),
        (";", 0, 1),
        (" ;", 0, 1),
        (" 7 30;", 7, 30),
        (" 7 30 ;", 7, 30),
        (" 7 30 ;D1 26 ;D2 568", 7, 30),
        (" bm O-O", 0, 1),
        (" bm O-O; id \"moves; of a name\";", 0, 1),
        (" c4 \"a remark\"", 0, 1),
        (" c4 \"not closed; hmvc 3;", 0, 1),
        (" bm O-O; c0 \"then moves e1g1\" ; c1 \"1/2 and moves\"", 0, 1),
        (" ; ; noop; ; id \"8/8/8/8/8/8/8/8 w\"", 0, 1),
        (" bm O-O; id BK.01", 0, 1),
        (" 7 30 bm O-O; am Kd1;", 7, 30),
        (" hmvc 7; fmvn 30;", 7, 30),
        (" id \"hmvc 9; x\"; fmvn 30; hmvc 7", 7, 30),
        (" hmvc 101; fmvn 0;", 0, 1),
        (" 8 31 hmvc 7; fmvn 30;", 8, 31),
        (" unheard_of 3 4; acd 9;", 0, 1),
        (" noop;\r\n", 0, 1),
    ] {
        let text = format!("{men}{behind}");
        let state = start.parse(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(state.fen(), format!("{men} {clock} {number}"), "{text:?}");
        assert!(!legal(&state).is_empty(), "{text:?}");
        for before in ["position fen ", "fen ", " ", "\n"] {
            assert_eq!(start.parse(&format!("{before}{text}")).unwrap().key(), state.key());
        }
        let moved = start.parse(&format!("{text}\nmoves e1g1 {{a move}}\n e8c8")).unwrap();
        assert_eq!(moved.key(), state.parse("e1g1 e8c8").unwrap().key(), "{text:?}");
        let tag = text.replace('"', "\\\"");
        let game = start.parse(&format!("[FEN \"{}\"]\n\nO-O O-O-O", tag.trim())).unwrap();
        assert_eq!(game.key(), moved.key(), "{text:?}");
        assert_eq!(read(&text).unwrap().start.key(), state.key());
    }
    // The fifty-first move is the first that azpy's rules do not see.
    assert_eq!(start.parse(&format!("{men} 100 80")).unwrap().ending(), Some(Ending::FiftyMoves));
    let capped = Chess::new(Encoding::Az18, None, 60).unwrap();
    assert_eq!(capped.parse(&format!("{men} 0 31")).unwrap().ending(), Some(Ending::PlyCap));
    assert_eq!(capped.parse(&format!("{men} 0 32")).unwrap().ending(), None);
    let error = start.parse(&format!("[FEN \"{men} 0 1 moves e1g1\"]\n\nO-O-O")).unwrap_err().to_string();
    assert_eq!(error, "the tag FEN has more than a position: \"moves e1g1\"");
}

/// Games at random, now and then drawn to shuffling men so that positions come again.
fn random_positions(start: &Chess, seed: u64, visit: &mut impl FnMut(&Chess)) {
    let (mut state, mut random) = (start.clone(), Random(seed));
    let mut before = Vec::new();
    while state.turn() != Turn::Terminal {
        visit(&state);
        let legal = legal(&state);
        let back: Vec<_> =
            legal.iter().copied().filter(|&action| before.contains(&men(&after(&state, action)))).collect();
        let action =
            if back.is_empty() || random.next() % 3 == 0 { *random.choose(&legal) } else { *random.choose(&back) };
        before.push(men(&state));
        before.drain(..before.len().saturating_sub(6));
        state.play(action);
    }
    visit(&state);
}

/// Of a FEN the men alone.
fn men(state: &Chess) -> String {
    state.fen().split(' ').next().unwrap().to_owned()
}

pub(crate) fn starts() -> Vec<Chess> {
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
                }
            }
        });
    }
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
fn deep_variations_are_read_in_time() {
    let text = format!("e4 {} e5", "(".repeat(500_000) + &")".repeat(500_000));
    assert_eq!(az119().parse_actions(&text).unwrap().len(), 2);
}
