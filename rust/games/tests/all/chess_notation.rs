//! Chess as text: FEN, UCI, SAN and PGN there and back, what is refused and with which words, and whatever text against
//! the readers.

use std::collections::HashSet;

use azpy_core::game::{Action, Game, Turn};
use azpy_core::text::Notation;
use azpy_core::written::{Bounds, Variations};
use azpy_games::Chess;
use azpy_games::chess::{Encoding, Ending};
use proptest::prelude::*;

use crate::chess::{at, az18, az119, chess960};
use crate::common::{BOUNDS, Random, after, check_written, encode, legal, random_tree, tree_text};

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
        ("8/8/8/8/8/8/4kP2/4K3 w - - 0 1", "the kings stand side by side; no game leads there"),
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
        ("4k3/8/8/8/1b6/5n2/8/q3K3 w - - 0 1", "3 men give check at once; no game leads there"),
        ("4k3/pppppppp/p7/8/8/8/8/4K3 w - - 0 1", "Black has 10 men, 9 of them pawns; at most 16 and 8 are possible"),
    ] {
        let error = start.parse(fen).err().unwrap_or_else(|| panic!("{fen} was accepted"));
        assert!(error.contains(why), "{fen}: {error}");
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
        for before in ["position fen ", "fen ", " ", "\n", "\u{feff}"] {
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
    let error = start.parse(&format!("[FEN \"{men} 0 1 moves e1g1\"]\n\nO-O-O")).unwrap_err();
    assert_eq!(error, "the tag FEN has more than a position: \"moves e1g1\"");
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
    assert!(start.parse_actions(&text).unwrap_err().contains("the game begins at"));
}

#[test]
fn signs_of_other_programs_are_no_moves() {
    let start = az119();
    let read = |text: &str| start.parse_actions(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let ucis = read("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6");
    for sign in
        "± ∓ = == += =+ += +/= =/+ +/- -/+ +- -+ +− −+ ⩲ ⩱ ∞ =∞ □ ⟳ → ↑ ⇆ ⊕ ∆ Δ N TN D RR $146 $1$14 !? ?! # + ep e.p. ch dbl mate N! TN!? N+= N$14 ch, ch. D. RR? Δ! dbl+ mate# ep! e.p.+"
            .split(' ')
    {
        assert_eq!(read(&format!("1.e4 {sign} e5 2.Nf3 Nc6 {sign} {sign} 3.Bb5 a6 {sign} *")), ucis, "{sign}");
        // Also glued to the move, where letters would be a promotion.
        if !sign.starts_with(|letter: char| letter.is_alphabetic()) {
            assert_eq!(read(&format!("1…e4{sign} e5 2.Nf3{sign} Nc6 3. … Bb5!{sign} a6{sign} *")), ucis, "{sign}");
        }
    }
    assert_eq!(read("e4 d5 e5 f5 exf6e.p. gxf6 Nf3"), read("e4 d5 e5 f5 exf6ep! gxf6 ep Nf3"));
    for (text, why) in [
        ("N", "which is not among the legal ones"),
        ("TN e4", "which is not among the legal ones"),
        ("N! e4", "which is not among the legal ones"),
        ("1. e4 e5 2.N! Nc6", "which is not among the legal ones"),
        ("1. e4 hello e5", "action 2 is \"hello\""),
        ("1. e4 -- e5", "action 2 is \"--\", a null move, which the rules do not have"),
        ("1. e4 Z0", "a null move"),
        ("1. e4 0000", "a null move"),
        ("1. e4 Nf9", "action 2 is \"Nf9\""),
        ("1. e4 ♘f6", "action 2 is \"♘f6\""),
    ] {
        let error = start.parse_actions(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_quote_in_a_tag_ends_it_only_before_its_bracket() {
    for (value, expected) in [
        (r#"Bob \"the\" Man"#, r#"Bob "the" Man"#),
        (r#"Bob "the" Man"#, r#"Bob "the" Man"#),
        (r#""Bob""#, r#""Bob""#),
        (r"C:\games\x", r"C:\games\x"),
        (r"C:\", r"C:\"),
        (r"a\\b", r"a\b"),
        ("a]b[c", "a]b[c"),
        ("", ""),
    ] {
        let text = format!("[Event \"x\"] [White \"{value}\" ]\r\n[X-y+ \"z\"]\r\n\r\n1. e4 1-0\r\n");
        let tags = read(&text).unwrap_or_else(|error| panic!("{error}: {text}")).tags;
        let tag = |name: &str| tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| &value[..]);
        assert_eq!((tag("Event"), tag("White"), tag("X-y+")), (Some("x"), Some(expected), Some("z")), "{text}");
    }
    // A tag ends in its line, whatever comes there.
    for text in ["[White \"Bob]\n[Black \"z\"]\n\ne4", "[White Bob]\n[Black \"z\"]\n\ne4", "[White \"a\n b\"]\n\ne4"] {
        assert!(read(text).unwrap_err().starts_with("line 1: a tag is [Name \"value\"]"), "{text}");
    }
}

#[test]
fn a_game_that_cannot_be_read_does_not_end_the_text() {
    let good = "[Event \"?\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n";
    let head = "[Event \"?\"]\n\n";
    let bad = [
        format!("{head}1. e4 {{no end 1-0\n\n"),
        format!("{head}1. e4 (1. d4 1-0\n\n"),
        format!("{head}1. e4 ) 1-0\n\n"),
        format!("{head}1. e4 ] 1-0\n\n"),
        "[Event]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n".to_owned(),
        "[Event \"?\"]\n[Result 1-0]\n\n1. e4 1-0\n\n".to_owned(),
    ];
    for bad in &bad {
        let text = format!("{good}{bad}{good}[White \"b\"]\n\n1. d4 {bad}{good}");
        let (mut rest, mut read) = (&text[..], Vec::new());
        while let Some((game, next)) = az119().read_game(rest).unwrap() {
            assert!(next.len() < rest.len());
            read.push(game.actions.is_ok());
            rest = next;
        }
        assert_eq!(read, [true, false, true, true, false, true], "{text}");
    }
    for (end, result) in [("1/2", "1/2-1/2"), ("½-½", "1/2-1/2"), ("1–0", "1-0"), ("0:1", "0-1"), ("*", "*")] {
        let game = az119().read_game(&format!("1. e4 e5 {end}\n")).unwrap().unwrap().0;
        assert_eq!((game.result.as_deref(), game.actions.unwrap().len()), (Some(result), 2), "{end}");
    }
    for text in ["[E \"\"]\n\n{\n\n".repeat(100_000), "[Event \"\"]\n{".repeat(100_000), "[E\n".repeat(100_000)] {
        let mut rest = &text[..];
        while let Some((_, next)) = az119().read_game(rest).unwrap() {
            rest = next; // in time: no text is looked at once a game
        }
    }
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

fn read(text: &str) -> Result<Variations<Chess>, String> {
    az119().read_variations(text, BOUNDS)
}

#[test]
fn variations_are_read_where_they_stand() {
    let game = read(GAME).unwrap();
    let expected = "e4 e5 Nf3 ( f4 exf4 ( d5 exd5 ) Nf3 ) Nc6 Bb5 a6 Ba4 Nf6 O-O Nxe4";
    assert_eq!(tree_text(&game.moves), expected);
    assert_eq!(game.start.key(), az119().key());
    let tag_of = |game: &Variations<Chess>, name: &str| {
        game.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(tag_of(&game, "Event"), "a \"game\" of \\ its own");
    assert_eq!(tag_of(&game, "Result"), "1/2-1/2");
    for (text, result) in [
        ("e4 0-1", "0-1"),
        ("[Result \"*\"]\ne4 0-1", "0-1"),
        ("[Result \"White wins\"]\ne4 1-0", "1-0"),
        ("[Result \"White wins\"]\ne4", ""),
        ("[Result \"1-0\"]\ne4", "1-0"),
        ("[Result \"1-0\"]\ne4 *", "1-0"),
    ] {
        assert_eq!(tag_of(&read(text).unwrap(), "Result"), result, "{text}");
    }
    // Two variations of one move, one of the last move, and one that repeats the move.
    assert_eq!(
        tree_text(&read("1. e4 (1. d4) (1. c4 e5) e5 (1... c5) 1-0").unwrap().moves),
        "e4 ( d4 ) ( c4 e5 ) e5 ( c5 )"
    );
    assert_eq!(tree_text(&read("e4 (e4 e5) c5 (d5)").unwrap().moves), "e4 c5 ( d5 ) ( e5 )");
    let text = "[SetUp \"1\"]\n[FEN \"4k3/P7/8/8/8/8/8/4K3 w - - 3 20\"]\n\n20. a8=Q+ (20. Kd2 Kd7) Kd7 1-0";
    let game = read(text).unwrap();
    assert_eq!(
        (tree_text(&game.moves), game.start.fen()),
        ("a8=Q+ ( Kd2 Kd7 ) Kd7".into(), at("4k3/P7/8/8/8/8/8/4K3 w - - 3 20").fen())
    );
    // What is no PGN.
    let game = read("4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1g1").unwrap();
    assert_eq!((tree_text(&game.moves), game.start.ply()), ("O-O+".replace('+', ""), 0));
    assert!(read("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1").unwrap().moves.is_empty());
    // Lines are those of the whole text.
    let wrong = read("4k3/8/8/8/8/8/8/4K2R w K - 0 1;\nmoves e1g1\nKe7\nKe5").unwrap_err();
    assert!(wrong.starts_with("line 4: action 3 is \"Ke5\""), "{wrong}");
    let wrong = read("startpos moves e2e4\ne7e5 {").unwrap_err();
    assert_eq!(wrong, "line 2: a comment that begins with { has no end");
}

#[test]
fn comments_and_glyphs_are_kept() {
    let text = "[Event \"x\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\"]\n\n{ two\n words } 1. e4! {a} {b} \
                ({better} 1. d4 $10 (1. c4 {c}) {d}) 1... e5?! ; to the end\n 2. Qh5 N $146 ± Nc6 3. Qxf7+?? $9 *";
    let game = read(text).unwrap();
    let said = |number: usize| {
        let notes = if number == 0 { &game.notes } else { &game.moves.all()[number - 1].1.notes };
        notes.iter().map(|(name, values)| format!("{name} {}", values.join(","))).collect::<Vec<_>>().join(" ")
    };
    let by_name: Vec<_> = (1..=game.moves.all().len())
        .map(|number| (game.moves.all()[number - 1].1.short.as_str(), said(number)))
        .collect();
    assert_eq!(said(0), "C two words");
    let notes = |name: &str| by_name.iter().find(|(short, _)| *short == name).unwrap().1.as_str();
    assert_eq!(notes("e4"), "NAG 1 C a b");
    assert_eq!((notes("d4"), notes("c4"), notes("e5")), ("C better d NAG 10", "C c", "NAG 6 C to the end"));
    assert_eq!((notes("Qh5"), notes("Nc6"), notes("Qxf7+")), ("NAG 146,146,16", "", "NAG 4,9"));
    assert_eq!(game.tags, [("Event", "x"), ("Result", "*")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let written = check_written(&az119(), &game);
    assert!(written.contains("1. e4 $1 {a b} (1. d4 $10 {better d}"), "{written}");
    assert!(az119().write_variations(&[], &[], &[vec![("LB".to_owned(), vec!["aa:1".to_owned()])]], BOUNDS).is_err());
}

#[test]
fn what_cannot_be_played_in_variations_is_left_out_with_its_line() {
    let game = read("1. e4 (1. d4 d5\n2. Ke3 (2. c4) e5) (1. -- e5) 1... e5").unwrap();
    assert_eq!(tree_text(&game.moves), "e4 ( d4 d5 c4 ) e5");
    assert_eq!(game.left_out.len(), 2);
    assert!(game.left_out[0].starts_with("line 2: action 3 is \"Ke3\""), "{}", game.left_out[0]);
    let game = read("1. f3 e5 2. g4 Qh4# 3. a3 (3. a4) Nc6 0-1").unwrap();
    assert_eq!(tree_text(&game.moves), "f3 e5 g4 Qh4#");
    assert_eq!(game.left_out.len(), 2);
}

#[test]
fn what_cannot_be_read_with_its_variations_is_refused_with_the_line() {
    for (text, why) in [
        ("1. e4 e5\n2. Ke3", "line 2: action 3 is \"Ke3\", which is not among the legal ones"),
        ("1. e4 e5\n2. Nf3 {never closed", "line 2: a comment that begins with { has no end"),
        ("1. e4\n(1. d4\n(1. c4)\n", "line 2: a variation that begins with ( has no end"),
        ("1. e4\n(\n(1. d4))", "line 3: a variation that begins with ( stands for no move"),
        ("(1. e4)", "line 1: a variation that begins with ( stands for no move"),
        ("1. e4\n)", "line 2: a ) without its ("),
        ("1. e4 1-0\n\n[Event \"?\"]\n1. d4", "line 1: more than one game"),
        ("[Event \"?\"]\n[Event]\n1. e4", "line 2: a tag is [Name \"value\"]"),
        ("[Variant \"Atomic\"]\n1. e4", "the variant is \"Atomic\""),
        ("[Variant \"Chess960\"]\n1. e4", "a game of Chess960 without its start, FEN"),
        ("[FEN \"nonsense\"]\n1. e4", "a FEN has 6 words"),
    ] {
        let error = read(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
        assert!(error.starts_with(why), "{text}: {error}");
        if text.starts_with("[Variant") {
            assert!(az119().parse_actions(text).unwrap_err().starts_with(why), "as a line of play");
        }
    }
    let few = |text, moves| az119().read_variations(text, Bounds { moves, depth: 1 }).err();
    assert_eq!(few("e4 (d4) e5 (c5)", 4), None);
    assert_eq!(few("e4 (d4) e5 (c5)", 3).unwrap(), "line 1: the game has more than 3 moves with its variations");
    let deep = few("e4 (d4 d5 (e5)) e5", 9).unwrap();
    assert_eq!(deep, "line 1: variations stand in each other more than 1 deep");
}

#[test]
fn games_with_variations_are_read_as_they_were_written() {
    for (seed, start) in starts().iter().enumerate() {
        for size in [0, 1, 9, 80, 400] {
            let tree = random_tree(start, size, &mut Random((seed * 1000 + size) as u64));
            let text = check_written(start, &tree);
            assert!(text.lines().all(|line| line.starts_with('[') || line.len() <= 80), "{text}");
        }
    }
}

#[test]
fn a_game_is_written_with_numbers_where_they_are_needed() {
    let write = |start: &Chess, moves: &[(Option<usize>, &str)], tags: &[(&str, &str)]| {
        let moves: Vec<_> = moves.iter().map(|(before, name)| (*before, (*name).to_owned())).collect();
        let tags: Vec<_> = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        start.write_variations(&moves, &tags, &[], BOUNDS)
    };
    let moves =
        [(None, "e2e4"), (None, "d2d4"), (Some(1), "d7d5"), (Some(0), "e7e5"), (Some(3), "g1f3"), (Some(0), "c7c5")];
    let text = write(&az119(), &moves, &[("Result", "1-0"), ("White", "a\n\"b\" \\"), ("Opening", "x")]).unwrap();
    let expected = "[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n[White \"a \\\"b\\\" \\\\\"]\n\
        [Black \"?\"]\n[Result \"1-0\"]\n[Opening \"x\"]\n\n1. e4 (1. d4 d5) 1... e5 (1... c5) 2. Nf3 1-0\n";
    assert_eq!(text, expected);
    let black = at("4k3/8/8/8/8/8/4P3/4K3 b - - 0 40");
    let text = write(&black, &[(None, "e8d8"), (Some(0), "e2e4")], &[]).unwrap();
    assert!(
        text.ends_with("[SetUp \"1\"]\n[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 40\"]\n\n40... Kd8 41. e4 *\n"),
        "{text}"
    );
    let mate = [(None, "f2f3"), (Some(0), "e7e5"), (Some(1), "g2g4"), (Some(2), "d8h4")];
    assert!(write(&az119(), &mate, &[]).unwrap().ends_with("1. f3 e5 2. g4 Qh4# 0-1\n"));
    for (moves, tags, why) in [
        (&[(None, "e2e5")][..], &[][..], "move 0 is \"e2e5\", which is not among the legal ones"),
        (&[(Some(0), "e2e4")], &[], "move 0 stands behind move 0"),
        (&[], &[("Result", "2-0")], "tag Result: expected one of 1-0, 0-1, 1/2-1/2, *, got \"2-0\""),
        (&[], &[("FEN", "x")], "\"FEN\" is no tag to choose"),
        (&[], &[("a b", "x")], "\"a b\" is no tag to choose"),
    ] {
        let error = write(&az119(), moves, tags).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
    let error = write(&at("e4 e5"), &[], &[]).unwrap_err();
    assert_eq!(error, "a PGN begins at a position without a past: give the moves before it too");
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
        if let Ok(read) = start.read_variations(text, BOUNDS) {
            check_written(start, &read);
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
        assert!(start.read_variations(&text, BOUNDS).is_err() || text.starts_with('1'));
    }
    let text = format!("e4 {} e5", "(".repeat(500_000) + &")".repeat(500_000));
    assert_eq!(start.parse_actions(&text).unwrap().len(), 2);
}
