//! PGN: games and variations there and back, what is left out or refused, and with which words.

use azpy_core::game::Game;
use azpy_core::text::Notation;
use azpy_core::written::{Bounds, Notes, Variations};
use azpy_games::Chess;

use crate::chess::{at, az119};
use crate::chess_notation::starts;
use crate::common::{self, BOUNDS, Random, check_written, notes_of, random_tree, tree_text};

pub(crate) const GAME: &str = r#"% a line that is no part of it
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
    assert!(start.parse_actions(&text).unwrap_err().to_string().contains("the game starts at"));
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
        let error = start.parse_actions(text).unwrap_err().to_string();
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
        assert!(read(text).unwrap_err().to_string().starts_with("line 1: a tag is [Name \"value\"]"), "{text}");
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
        ("1. e4 {never closed", "a comment that starts with { lacks its closing }"),
        ("1. e4 (1. d4", "a variation that starts with ( lacks its closing )"),
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
        let error = start.parse(text).err().unwrap_or_else(|| panic!("{text} was accepted")).to_string();
        assert!(error.contains(why), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

pub(crate) fn read(text: &str) -> Result<Variations<Chess>, azpy_core::Error> {
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
    let wrong = read("4k3/8/8/8/8/8/8/4K2R w K - 0 1;\nmoves e1g1\nKe7\nKe5").unwrap_err().to_string();
    assert!(wrong.starts_with("line 4: action 3 is \"Ke5\""), "{wrong}");
    let wrong = read("startpos moves e2e4\ne7e5 {").unwrap_err().to_string();
    assert_eq!(wrong, "line 2: a comment that starts with { lacks its closing }");
}

#[test]
fn comments_and_glyphs_are_kept() {
    let text = "[Event \"x\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\"]\n\n{ two\n words } 1. e4! {a} {b} \
                ({better} 1. d4 $10 (1. c4 {c}) {d}) 1... e5?! ; to the end\n 2. Qh5 N $146 ± Nc6 3. Qxf7+?? $9 *";
    let game = read(text).unwrap();
    let by_name: Vec<_> = (1..=game.moves.all().len())
        .map(|number| (game.moves.all()[number - 1].1.short.as_str(), notes_of(&game, number).join(" ")))
        .collect();
    assert_eq!(notes_of(&game, 0), ["C two words"]);
    let notes = |name: &str| by_name.iter().find(|(short, _)| *short == name).unwrap().1.as_str();
    assert_eq!(notes("e4"), "C a b NAG 1");
    assert_eq!((notes("d4"), notes("c4"), notes("e5")), ("C better d NAG 10", "C c", "C to the end NAG 6"));
    assert_eq!((notes("Qh5"), notes("Nc6"), notes("Qxf7+")), ("NAG 146,146,16", "", "NAG 4,9"));
    assert_eq!(game.tags, [("Event", "x"), ("Result", "*")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let written = check_written(&az119(), &game);
    assert!(written.contains("1. e4 $1 {a b} (1. d4 $10 {better d}"), "{written}");
    let twice = az119().read_variations("1. e4 e5 {a} (1... e5 {good idea} 2. Nf3)", BOUNDS).unwrap();
    assert_eq!(twice.moves.all()[1].1.notes["C"], ["a\n\ngood idea"]);
    let label = Notes::from([("LB".to_owned(), vec!["aa:1".to_owned()])]);
    assert!(az119().write_variations(&[], &[], &[label], BOUNDS).is_err());
    // A circle comes as often as a text says it, and is drawn once.
    let circles = Notes::from([("C".to_owned(), vec!["[%csl Ge4,Re4] [%cal Ge2e4,Ge2e4,Ge4e2]".to_owned(); 100])]);
    assert_eq!(az119().marks(&circles).len(), 3);
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
        ("1. e4 e5\n2. Nf3 {never closed", "line 2: a comment that starts with { lacks its closing }"),
        ("1. e4\n(1. d4\n(1. c4)\n", "line 2: a variation that starts with ( lacks its closing )"),
        ("1. e4\n(\n(1. d4))", "line 3: a variation that begins with ( stands for no move"),
        ("(1. e4)", "line 1: a variation that begins with ( stands for no move"),
        ("1. e4\n)", "line 2: a ) without its ("),
        ("1. e4 1-0\n\n[Event \"?\"]\n1. d4", "line 1: more than one game"),
        ("[Event \"?\"]\n[Event]\n1. e4", "line 2: a tag is [Name \"value\"]"),
        ("[Variant \"Atomic\"]\n1. e4", "the variant is \"Atomic\""),
        ("[Variant \"Chess960\"]\n1. e4", "a Chess960 game without its start position: add the tag FEN"),
        ("[FEN \"nonsense\"]\n1. e4", "a FEN has 6 words"),
    ] {
        let error = read(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
        assert!(error.to_string().starts_with(why), "{text}: {error}");
        if text.starts_with("[Variant") {
            assert!(az119().parse_actions(text).unwrap_err().to_string().starts_with(why), "as a line of play");
        }
    }
    let few =
        |text, moves| az119().read_variations(text, Bounds { moves, depth: 1 }).err().map(|error| error.to_string());
    assert_eq!(few("e4 (d4) e5 (c5)", 4), None);
    assert_eq!(few("e4 (d4) e5 (c5)", 3).unwrap(), "line 1: the game with its variations has more than 3 moves");
    let deep = few("e4 (d4 d5 (e5)) e5", 9).unwrap();
    assert_eq!(deep, "line 1: variations are nested more than 1 deep");
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
    let write = |start: &Chess, moves: &[_], tags: &[_]| common::write(start, moves, tags, BOUNDS);
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
        (&[(Some(0), "e2e4")], &[], "move 0 names move 0 as the one before it"),
        (&[], &[("Result", "2-0")], "tag Result: expected one of 1-0, 0-1, 1/2-1/2, *, got \"2-0\""),
        (&[], &[("FEN", "x")], "\"FEN\" is not a tag that can be set"),
        (&[], &[("a b", "x")], "\"a b\" is not a tag that can be set"),
    ] {
        let error = write(&az119(), moves, tags).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
    let error = write(&at("e4 e5"), &[], &[]).unwrap_err().to_string();
    assert_eq!(error, "a PGN needs the moves that led to this position: give them too");
}
