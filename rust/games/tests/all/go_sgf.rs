//! SGF in and out: what is written is read as the same position, what others write is read, and anything else is
//! refused with a sentence.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_core::written::{Bounds, Notes, Unfit, Variations};
use azpy_games::{Go9, Go19};

use crate::common::{self, BOUNDS, Random, check_written, legal, notes_of, random_tree, tree_text};

fn go(size: usize) -> Go9 {
    Go9::new(size, 7.5, true).unwrap()
}

#[test]
fn a_finished_game_says_its_result() {
    let game = go(5).parse("C3 pass pass").unwrap();
    assert_eq!(game.to_text().unwrap(), "(;FF[4]GM[1]CA[UTF-8]AP[azpy]SZ[5]KM[7.5]RE[B+17.5]\n;B[cc];W[];B[])\n");
    let game = Go9::new(5, 0.0, true).unwrap().parse("pass pass").unwrap();
    assert!(game.to_text().unwrap().contains("KM[0]RE[0]"));
}

/// Two games with the same stones, if not the same way there.
fn same_board(text: &str, size: usize, names: &str) {
    let read = go(size).parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let expected = go(size).parse(names).unwrap();
    assert_eq!((read.key(), read.render()), (expected.key(), expected.render()), "{text}");
}

#[test]
fn what_others_write_is_read() {
    same_board("(;GM[1]FF[4]SZ[9]KM[7.5];B[cc];W[gg])", 9, "C7 G3");
    same_board("  (;SZ[9];B[cc]C[a move :-\\] with \\\\ and\nlines];W[];B[tt])", 9, "C7 pass pass");
    same_board("(;SZ[9:9] KM[ 7.50 ]\n;B [cc] ; W[gg] )", 9, "C7 G3");
    // The main line is the first at every fork.
    same_board("(;SZ[9];B[aa](;W[bb](;B[cc])(;B[dd];W[ee]))(;W[ff]))", 9, "A9 B8 C7");
    same_board("(;SZ[9](;B[aa];W[bb];B[cc]))", 9, "A9 B8 C7");
    // Names spelt out, as in old files, and properties of no concern, of any length.
    same_board(
        &format!("(;SiZe[9]GaMe[1]PB[\u{9ed2}]PC[{}]HA[0];Black[aa]BL[3.5]LB[aa:1][bb:2])", "x".repeat(999)),
        9,
        "A9",
    );
    same_board("(;sz[9]gm[1];b[aa];w[bb])", 9, "A9 B8");
    // Text around a game, a ) too many, and values that say nothing.
    same_board("From: a (b) [c]; d\n(\n ;SZ[9];B[aa](;W[bb])(;W[cc])))\n) e", 9, "A9 B8");
    same_board("(;GM[]SZ[9]KM[]HA[ ]PL[]AB[];B[aa])", 9, "A9");
    let nineteen = Go19::new(19, 7.5, true).unwrap();
    assert_eq!(nineteen.parse("(;SZ[];B[aa];W[tt])").unwrap().key(), nineteen.parse("A19 pass").unwrap().key());
    // One move a node: Black's, and the first of two.
    same_board("(;SZ[9];W[bb]B[aa];W[cc])", 9, "A9 C7");
    same_board("(;SZ[9];B[aa]B[bb];W[cc]W[dd])", 9, "A9 C7");
    // PL says the turn only where no move does, and sets nothing up where it is Black's.
    same_board("(;SZ[9]PL[B];B[aa];PL[W];W[bb]PL[B])", 9, "A9 B8");
    same_board("(;SZ[9]PL[W];B[aa];W[bb])", 9, "A9 B8");
}

#[test]
fn a_shown_game_begins_where_the_rules_have_no_such_move() {
    let read = |text: &str| go(9).parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let set_up = |black: &[usize], white: &[usize], mover| go(9).with_stones([black, white], mover).unwrap();
    // Handicap stones as moves.
    for text in ["(;SZ[9]HA[2];B[aa];B[cc];W[ee])", "(;SZ[9];B[aa];B[cc];W[ee])"] {
        let expected = set_up(&[0], &[], Player::Zero).parse("C7 E5").unwrap();
        assert_eq!(read(text).key(), expected.key(), "{text}");
    }
    let expected = set_up(&[0, 1, 2], &[], Player::Zero).parse("D9 E5").unwrap();
    assert_eq!(read("(;SZ[9];B[aa];B[ba];B[ca];B[da];W[ee])").key(), expected.key());
    // A colour that plays twice later, here after a capture; and a pass between is a move.
    let text = "(;SZ[9];B[ba];W[aa];B[ab];B[ii];W[hh];W[hi])";
    assert_eq!(read(text).key(), set_up(&[1, 9, 80], &[70], Player::One).parse("H1").unwrap().key());
    assert_eq!(read("(;SZ[9];B[];B[aa])").key(), go(9).parse("A9").unwrap().key());
    // Stones that are set up behind moves, with whose turn it is then.
    assert_eq!(read("(;SZ[9];B[aa];AW[bb]AE[aa])").key(), set_up(&[], &[10], Player::One).key());
    assert_eq!(read("(;SZ[9];B[aa];AW[bb]PL[B])").key(), set_up(&[0], &[10], Player::Zero).key());
    assert_eq!(read("(;SZ[9];B[aa];AW[bb];B[cc])").key(), set_up(&[0], &[10], Player::Zero).parse("C7").unwrap().key());
    // With its variations: those before the position that is set up have no place.
    let game = self::read("(;SZ[9];B[aa](;B[bb]\n(;W[cc](;B[dd])(;B[ee]))(;W[ff]))\n(;B[gg])(;W[hh]))").unwrap();
    assert_eq!(tree_text(&game.moves), "B8 ( G3 ) C7 ( F4 ) D6 ( E5 )");
    assert_eq!(game.start.key(), set_up(&[0], &[], Player::Zero).key());
    assert_eq!(
        game.left_out,
        [
            "line 1: Black plays move 1 and the next one: the 1 moves before are set up as a position",
            "line 3: move 2, W[hh], is out of turn: Black is to move"
        ]
    );
}

#[test]
fn a_game_that_begins_anew_often_is_read_in_time() {
    // If each new beginning looked at every node before it, the two together would take hours.
    for (again, moves) in [(";B[]", 25_000), (";B[];AE[aa]", 25_000)] {
        let text = format!("(;SZ[5]KM[7.5]{}{})", ";".repeat(1_000_000), again.repeat(moves));
        assert!(go(5).parse(&text).is_ok());
    }
}

#[test]
fn a_game_to_learn_from_is_as_the_rules_have_it_and_a_bad_one_does_not_end_the_text() {
    let texts = [
        ("(;SZ[9]PL[B]KM[];B[aa];W[bb]PL[B])", Ok(2)),
        ("(;SZ[9];B[aa];B[bb])", Err(Unfit::Action(String::new()))),
        ("(;SZ[9]HA[2];B[aa];B[bb];W[cc])", Err(Unfit::Start(String::new()))),
        ("(;SZ[9];B[aa];AW[bb])", Err(Unfit::Start(String::new()))),
        ("(;SZ[9]PL[W];W[aa])", Err(Unfit::Start(String::new()))),
        ("(;GM[2]SZ[9];B[aa])", Err(Unfit::Variant(String::new()))),
        ("(;SZ[9];B[aa] \u{e9} (;W[bb])(;W[cc]))", Err(Unfit::Text(String::new()))),
        ("(;SZ[9];B;W[aa])", Err(Unfit::Text(String::new()))),
        ("(;SZ[9];B[aa](;W[bb])", Err(Unfit::Text(String::new()))),
        ("(;SZ[9]SZ[13];B[aa])", Err(Unfit::Size(String::new()))),
        ("(;SZ[9]C[(;GM[1\\])];B[aa];W[bb];B[cc])", Ok(3)),
        ("(;SZ[9];B[aa]C[no end", Err(Unfit::Text(String::new()))),
    ];
    let text: String = texts.iter().map(|(text, _)| format!("{text}\n\n")).collect();
    let (mut rest, mut read) = (&text[..], Vec::new());
    while let Some((game, next)) = go(9).read_game(rest).unwrap() {
        read.push(game.actions.map(|actions| actions.len()));
        rest = next;
    }
    let kinds = |one: &Result<usize, Unfit>| one.clone().map_err(|unfit| std::mem::discriminant(&unfit));
    assert_eq!(read.iter().map(kinds).collect::<Vec<_>>(), texts.iter().map(|(_, one)| kinds(one)).collect::<Vec<_>>());
    for text in ["(;C[", "(;GM[1]", "(;GM[1", "(;GM[1] x"].map(|part| part.repeat(50_000)) {
        let mut rest = &text[..];
        while let Some((_, next)) = go(9).read_game(rest).unwrap() {
            rest = next; // in time: no text is looked at once a game
        }
    }
}

#[test]
fn a_game_that_is_cut_by_the_limit_of_plies_says_so() {
    let mut seen = [0, 0];
    for seed in 0..20 {
        let (mut game, mut random, mut passes) = (go(5), Random(seed), 0);
        while game.turn() != Turn::Terminal {
            let actions = legal(&game);
            // Half of the games have passes only where nothing else is left.
            let stones = &actions[..(actions.len() - 1).max(1)];
            let action = *random.choose(if seed % 2 == 0 { stones } else { &actions });
            passes = if action == 25 { passes + 1 } else { 0 };
            game.play(action);
        }
        assert_eq!(game.result_text().ends_with(", at the limit of plies"), passes < 2, "{}", game.result_text());
        seen[usize::from(passes < 2)] += 1;
    }
    assert!(seen.iter().all(|&games| games > 0), "{seen:?}");
}

#[test]
fn a_position_is_set_up_before_the_moves() {
    let read = |text: &str| go(9).parse(text).unwrap();
    let handicap = read("(;SZ[9]HA[2]AB[cc][gg];W[ee])");
    assert_eq!(handicap.key(), go(9).with_stones([&[20, 60], &[]], Player::One).unwrap().parse("E5").unwrap().key());
    assert_eq!(read("(;SZ[9]HA[2]AB[cc][gg])").turn(), Turn::Player(Player::One), "White follows a handicap");
    assert_eq!(read("(;SZ[9]AB[cc]AW[gg])").turn(), Turn::Player(Player::Zero));
    assert_eq!(read("(;SZ[9]AB[cc]PL[B])").turn(), Turn::Player(Player::Zero));
    assert_eq!(read("(;SZ[9];AB[cc]AW[gg];PL[white])").turn(), Turn::Player(Player::One));
    assert_eq!(read("(;SZ[9];W[cc])").turn(), Turn::Player(Player::Zero));
    let rectangle = read("(;SZ[9]AW[ab:cc][ii]AE[bb])");
    assert_eq!(rectangle.render().matches('o').count(), 6);
    assert_eq!(
        (rectangle.stone(9), rectangle.stone(10), rectangle.stone(20)),
        (Some(Player::One), None, Some(Player::One))
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let cases = [
        ("(;SZ[13];B[aa])", "the game is of size 13, expected 9"),
        ("(;SZ[9:13])", "the game is of size 9:13, expected 9"),
        ("(;B[aa])", "the game is of size 19, expected 9 (a game without SZ is of 19)"),
        ("(;SZ[9]GM[2])", "GM[2] is another game, expected GM[1], Go"),
        ("(;SZ[9]HA[3];W[aa])", "HA[3] without the stones: expected them as AB"),
        ("(;SZ[9]HA[x])", "HA[x] is not a number of stones"),
        ("(;SZ[9]PL[red])", "PL[red] is not a colour, expected B or W"),
        ("(;SZ[9];B[aa];B[bb];W[bb])", "move 3, W[bb], at B8, is illegal: the point has a stone already"),
        ("(;SZ[9];B[aa];W[aa])", "move 2, W[aa], at A9, is illegal: the point has a stone already"),
        ("(;SZ[9];B[ab];W[];B[ba];W[aa])", "move 4, W[aa], at A9, is illegal: the stone would have no liberty"),
        ("(;SZ[9];B[];W[];B[aa])", "move 3, B[aa], comes after the end of the game"),
        ("(;SZ[9];B[jj])", "move 1, B[jj], \"jj\" is not a point: expected two letters from a to i"),
        ("(;SZ[9];B[C3x])", "move 1, B[C3x], \"C3x\" is not a point: expected two letters from a to i"),
        ("(;SZ[9];B[aa][bb])", "B takes one value, got 2"),
        ("(;SZ[9]PL[\u{1b}[31m])", "PL has an invalid value: \"\\u{1b}[31m\""),
        ("(;SZ[9]AB[aa][aa]AW[aa])", "A9 is set up twice"),
        ("(;SZ[9]AB[cc:aa])", "AB[cc:aa] is not a rectangle, expected its upper left and lower right"),
        ("(;SZ[9]AB[aa]AW[ab][ba])", "the stone on A9 does not have a liberty"),
        ("(;SZ[9];B[aa]", "the game ends before its last )"),
        ("()", "the text does not hold a game: expected it to start with (;"),
        ("(;SZ[9];B[aa)", "a value of B lacks its closing ]: \"[aa)\""),
        ("(;SZ[9];B;W[aa])", "property B lacks a value: \";W[aa])\""),
        ("(SZ[9])", "the text does not hold a game: expected it to start with (;"),
        ("(;SZ[9]) (;SZ[9])", "the text holds more than one game; give one at a time"),
        ("(;SZ[9];B[aa] (;SZ[9]))", "another game begins before the last ) of this one"),
        ("(;SZ[9] \u{e9})", "\"\u{e9})\" is not valid SGF: expected ( ; ) or a property"),
    ];
    for (text, expected) in cases {
        assert_eq!(go(9).parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let ko = "(;SZ[9]AB[ba][ab][bc]AW[ca][bb][db][cc]PL[B];B[cb];W[bb])";
    assert!(go(9).parse(ko).unwrap_err().to_string().ends_with("is illegal: it brings back an earlier board"));
    let simple = Go9::new(9, 7.5, false).unwrap();
    assert!(simple.parse(ko).unwrap_err().to_string().ends_with("is illegal: it retakes a ko at once"));
    let long = format!("(;SZ[9];B[{}])", "a".repeat(1000));
    assert!(go(9).parse(&long).unwrap_err().to_string().len() < 200);
    assert!(go(9).parse("D4 I5").unwrap_err().to_string().contains("\"I5\""), "there is no column I");
}

fn read(text: &str) -> Result<Variations<Go9>, azpy_core::Error> {
    go(9).read_variations(text, BOUNDS)
}

#[test]
fn variations_are_read_where_they_stand() {
    let tree = |text: &str| tree_text(&read(text).unwrap().moves);
    assert_eq!(tree("(;SZ[9];B[aa](;W[bb](;B[cc])(;B[dd];W[ee]))(;W[ff]))"), "A9 B8 ( F4 ) C7 ( D6 E5 )");
    assert_eq!(tree("(;SZ[9](;B[aa])(;B[bb];W[]))"), "A9 ( B8 pass )");
    // Nodes without moves, moves of one node, and a move that stands there twice.
    assert_eq!(tree("(;SZ[9];C[a];B[aa];W[bb];C[b](;B[cc])(;C[c];B[dd])(;B[cc];W[ee]))"), "A9 B8 C7 ( D6 ) E5");
    assert_eq!(tree("C3 D4 pass"), "C3 D4 pass");
    let game = read("(;SZ[9]PB[a\\]b]RE[B+R]AB[aa][bb]PL[W](;W[cc])(;W[dd]C[;(]))").unwrap();
    assert_eq!(tree_text(&game.moves), "C7 ( D6 )");
    assert_eq!(game.start.key(), go(9).with_stones([&[0, 10], &[]], Player::One).unwrap().key());
    assert!(game.tags.contains(&("PB".to_owned(), "a]b".to_owned())) && game.tags.len() == 2);
}

#[test]
fn what_cannot_be_played_in_variations_is_left_out_with_its_line() {
    let game = read("(;SZ[9];B[aa](;W[bb])\n(;W[cc]\n;B[cc];W[dd])(;AB[ee];W[ff])(;W[gg]))").unwrap();
    assert_eq!(tree_text(&game.moves), "A9 B8 ( C7 ) ( G3 )");
    assert_eq!(
        game.left_out,
        [
            "line 3: move 3, B[cc], at C7, is illegal: the point has a stone already",
            "line 3: AB after move 1: a position is set up before the moves"
        ]
    );
    let game = read("(;SZ[9];B[];W[]\n;B[aa])").unwrap();
    assert_eq!(tree_text(&game.moves), "pass pass");
    assert_eq!(game.left_out, ["line 2: move 3, B[aa], comes after the end of the game"]);
}

#[test]
fn what_cannot_be_read_with_its_variations_is_refused_with_the_line() {
    for (text, expected) in [
        ("(;SZ[9]\n;B[aa]\n;W[aa])", "line 3: move 2, W[aa], at A9, is illegal: the point has a stone already"),
        ("(;SZ[9];B[aa]\n(;W[bb]\n(;B[cc", "line 3: a value of B lacks its closing ]: \"[cc\""),
        ("\n(;SZ[9];B[aa]\n", "line 2: the game ends before its last )"),
        ("(;SZ[9])\n(;SZ[9])", "line 2: the text holds more than one game; give one at a time"),
        ("((;SZ[9])\n(;SZ[9]))", "line 2: the text holds more than one game; give one at a time"),
        ("(;SZ[9]\nx", "line 2: property X lacks a value: \"\""),
        ("()", "line 1: the text does not hold a game: expected it to start with (;"),
        ("(;SZ[13])", "the game is of size 13, expected 9"),
        ("D4 I5", "action 2 is \"I5\", which is not among the legal ones"),
    ] {
        let error = read(text).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let illegal = read("(;SZ[9];B[aa];W[aa])").err();
    assert!(matches!(illegal, Some(azpy_core::Error::Written(Unfit::Action(_)))));
    let few =
        |text: &str| go(9).read_variations(text, Bounds { moves: 3, depth: 1 }).err().map(|error| error.to_string());
    assert_eq!(few("(;SZ[9];B[aa](;W[bb])(;W[cc]))"), None);
    let error = few("(;SZ[9];B[aa](;W[bb])(;W[cc])(;W[dd]))").unwrap();
    assert_eq!(error, "the game with its variations has more than 3 moves");
    let error = few("(;SZ[9](;B[aa])(;B[bb](;W[cc])(;W[dd])))").unwrap();
    assert!(error.contains("more than"), "{error}");
    assert_eq!(
        few("(;SZ[9](;B[aa])(;B[bb](;W[])(;W[cc])))").unwrap(),
        "the game with its variations has more than 3 moves"
    );
    let deep = go(9).read_variations("(;SZ[9](;B[aa])(;B[bb](;W[])(;W[cc])))", Bounds { moves: 9, depth: 1 }).err();
    assert_eq!(deep.unwrap().to_string(), "variations are nested more than 1 deep");
    // Moves that are set up as a position count too.
    let black = |moves: usize| format!("(;SZ[9]{})", ";B[]".repeat(moves));
    assert_eq!(few(&black(3)), None);
    assert_eq!(few(&black(4)).unwrap(), "the game with its variations has more than 3 moves");
    assert!(few("(;SZ[9];B[aa];AW[bb];B[cc];AW[dd];B[ee];AE[aa];B[ff])").unwrap().contains("more than 3 moves"));
    let _ = read(&("(;SZ[9]".repeat(100_000) + &")".repeat(100_000))); // in time, and without a stack that overflows
}

#[test]
fn a_game_that_is_shown_has_its_own_komi_and_keeps_its_notes() {
    let text = "(;GM[1]SZ[9]KM[0.5]HA[2]AB[cc][gg]PB[a\\]b]RE[W+R]C[start\nof it]ST[2];W[aa]C[x]LB[cc:1][dd:\\]]TR[aa:bb];C[y];\
                B[bb](;W[ee]N[n])(;W[ff]))";
    let game = read(text).unwrap();
    assert_eq!((game.start.komi(), game.left_out.len()), (0.5, 0));
    let notes = |number: usize| notes_of(&game, number);
    assert_eq!(notes(0), ["C start\nof it", "ST 2"]);
    assert_eq!(notes(1), ["C x\n\ny", "LB cc:1,dd:]", "TR aa:bb"]);
    assert_eq!((notes(2), notes(3)), (vec![], vec!["N n".to_owned()]));
    assert_eq!(game.tags.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["HA", "PB", "RE"]);
    let marks = game.start.marks(&game.moves.all()[0].1.notes);
    let shapes: Vec<_> =
        marks.iter().map(|mark| (mark.shape, mark.text.as_str(), mark.places[0].place.as_str())).collect();
    assert_eq!(shapes[..2], [("label", "1", "C7"), ("label", "]", "D6")]);
    assert_eq!(shapes[2..].iter().map(|mark| mark.2).collect::<Vec<_>>(), ["A9", "B9", "A8", "B8"]);
    assert!(check_written(&go(9), &game).contains("KM[0.5]"));
    // A komi that the rules cannot have.
    let odd = read("(;SZ[9]KM[3.7];B[aa])").unwrap();
    assert_eq!((odd.start.komi(), odd.moves.all().len()), (7.5, 1));
    assert_eq!(odd.left_out, ["KM[\"3.7\"] is not a komi under these rules: azpy reads it as 7.5"]);
    // The komi of a variation is none of the game.
    let late = read("(;FF[4]SZ[9]KM[6.5];B[cc](;W[dd])\n(;W[ee]KM[0.5]))").unwrap();
    assert_eq!((late.start.komi(), late.moves.all().len()), (6.5, 3));
    assert_eq!(
        late.left_out,
        ["line 2: KM[\"0.5\"] is ignored, because it comes after the first node: the komi is 6.5"]
    );
    assert_eq!(go(9).parse(text).unwrap().komi(), 0.5);
    assert!(matches!(go(9).read_game(text).unwrap().unwrap().0.actions, Err(Unfit::Komi(_))));
}

#[test]
fn komi_is_read_as_servers_write_it() {
    for (written, points) in [
        ("KM[6.50]", 6.5),
        ("KM[ 6,5 ]", 6.5),
        ("KM[+5]", 5.0),
        ("KM[0]", 0.0),
        ("KM[-5.5]", -5.5),
        ("KM[]", 7.5),
        // Stones of two points, and hundredths of points or of such stones.
        ("KM[3.75]", 7.5),
        ("KM[2,75]", 5.5),
        ("KM[375]", 7.5),
        ("KM[350]", 7.0),
        ("KM[325]RU[Chinese]AP[foxwq]", 6.5),
        ("KM[650]", 6.5),
        ("KM[750]", 7.5),
        ("KM[50]HA[2]AB[aa][bb]AP[GNU Go:3.8]AP[foxwq]", 0.5),
        // So many points are a komi of azpy.
        ("KM[50]", 50.0),
        ("KM[375.0]", 375.0),
        ("KM[400]", 400.0),
    ] {
        let text = format!("(;SZ[9]{written};W[cc])");
        let game = read(&text).unwrap();
        assert_eq!((game.start.komi(), &game.left_out[..]), (points, &[][..]), "{text}");
        let rules = Go9::new(9, points, true).unwrap();
        let learned = rules.read_game(&text.replace(";W[cc]", ";W[];B[];W[]")).unwrap().unwrap().0.actions;
        assert!(!matches!(learned, Err(Unfit::Komi(_))), "{text}: {learned:?}");
        assert_eq!(rules.parse(&rules.to_text().unwrap()).unwrap().komi(), points, "{text}");
    }
    for written in ["KM[6.3]", "KM[x]", "KM[3751]"] {
        let game = read(&format!("(;SZ[9]{written};B[cc])")).unwrap();
        assert_eq!((game.start.komi(), game.left_out.len()), (7.5, 1), "{written}");
    }
}

#[test]
fn notes_of_equal_moves_of_later_nodes_and_of_moves_that_are_set_up_are_kept() {
    let notes = |text: &str, number: usize| notes_of(&read(text).unwrap(), number);
    let twice = "(;SZ[9];B[cc](;W[dd]C[one])(;W[dd]C[two]TR[aa]))";
    assert_eq!(notes(twice, 2), ["C one\n\ntwo", "TR aa"]);
    assert_eq!(notes("(;SZ[9];B[cc]PB[Ann]EV[x])", 1), ["EV x", "PB Ann"]);
    let anew = "(;SZ[9]C[start];B[cc]C[one];W[dd]C[two]TR[dd];AE[cc]C[anew];W[ee])";
    assert_eq!(notes(anew, 0), ["C start\n\none\n\ntwo\n\nanew"]);
    for text in [twice, anew, "(;SZ[9];B[cc]PB[Ann]EV[x])"] {
        let game = read(text).unwrap();
        check_written(&go(9), &Variations { left_out: Vec::new(), ..game });
    }
    // What is written of equal moves, and of a name without values.
    let moves = [(None, "A1".to_owned()), (None, "A1".to_owned())];
    let noted = |name: &str, values: &[&str]| {
        Notes::from([(name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())])
    };
    let all = [Notes::new(), noted("C", &["one"]), noted("TR", &["aa"])];
    assert!(go(9).write_variations(&moves, &[], &all, BOUNDS).unwrap().contains(";B[ai]C[one]TR[aa]"));
    let empty = go(9).write_variations(&moves, &[], &[noted("SQ", &[]), noted("TR", &[])], BOUNDS).unwrap();
    assert!(read(&empty).is_ok(), "{empty}");
}

/// Marks by what they are and where.
fn drawn(values: &[(&str, Vec<String>)]) -> Vec<String> {
    let notes = values.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect();
    let mut drawn: Vec<_> = go(9)
        .marks(&notes)
        .into_iter()
        .map(|mark| {
            let places: Vec<_> = mark.places.into_iter().map(|touch| touch.place).collect();
            format!("{} {}{}", mark.shape, mark.text, places.join("-"))
        })
        .collect();
    drawn.sort();
    drawn
}

#[test]
fn marks_are_few_however_much_the_notes_say() {
    // Rectangles, some of them no rectangles, against a plain reading.
    let mut random = Random(7);
    let mut point =
        || format!("{}{}", char::from(b'a' + random.next() as u8 % 9), char::from(b'a' + random.next() as u8 % 9));
    let values: Vec<_> = (0..8).map(|_| format!("{}:{}", point(), point())).chain(["cc".to_owned()]).collect();
    let lies_in = |value: &str, cell: [u8; 2]| {
        let (from, to) = value.split_once(':').unwrap_or((value, value));
        (0..2).all(|axis| (from.as_bytes()[axis]..=to.as_bytes()[axis]).contains(&(b'a' + cell[axis])))
    };
    let mut plain = Vec::new();
    for (row, column) in (0..9).flat_map(|row| (0..9).map(move |column| (row, column))) {
        if values.iter().any(|value| lies_in(value, [column, row])) {
            plain.push(format!("triangle {}", go(9).action_name(u32::from(row) * 9 + u32::from(column))));
        }
    }
    plain.sort();
    assert_eq!(drawn(&[("TR", values)]), plain);
    // Each shape once on a point, a point's last label, and no more arrows than points.
    let all = || vec!["aa:ii".to_owned(); 1000];
    assert_eq!(drawn(&[("TR", all()), ("SQ", all()), ("SL", all())]).len(), 2 * 81);
    let labels: Vec<_> = (0..1000).map(|number| format!("aa:{number}")).collect();
    assert_eq!(drawn(&[("LB", labels)]), ["label 999A9"]);
    let arrows: Vec<_> = (0..1000).map(|_| format!("{}:{}", point(), point())).collect();
    assert_eq!(drawn(&[("LN", arrows.clone()), ("AR", arrows)]).len(), 81);
    assert_eq!(drawn(&[("AR", vec!["aa:ba".to_owned(); 9])]), ["arrow A9-B9"]);
}

#[test]
fn games_with_variations_are_read_as_they_were_written() {
    let start = go(5);
    let setup = start.with_stones([&[6, 7], &[1]], Player::One).unwrap();
    for seed in 0..40 {
        let start = if seed % 2 == 0 { &start } else { &setup };
        let tree = random_tree(start, [0, 1, 9, 60, 300][seed as usize % 5], &mut Random(seed));
        check_written(&go(5), &tree);
    }
}

#[test]
fn what_is_no_game_is_not_written() {
    let write = |game: &Go9, moves: &[_], tags: &[_]| common::write(game, moves, tags, Bounds { moves: 4, depth: 1 });
    let text = write(&go(5), &[(None, "C3"), (Some(0), "pass"), (Some(1), "pass"), (None, "A1")], &[("PB", "a]\\")]);
    let expected = "(;FF[4]GM[1]CA[UTF-8]AP[azpy]PB[a\\]\\\\]SZ[5]KM[7.5]RE[B+17.5](\n;B[cc];W[];B[])(;B[ae]))\n";
    assert_eq!(text.unwrap(), expected);
    assert!(write(&go(5), &[], &[("RE", "B+R")]).unwrap().contains("RE[B+R]"));
    for (moves, tags, why) in [
        (&[(None, "C3"), (Some(0), "C3")][..], &[][..], "move 1 is \"C3\", which is not among the legal ones"),
        (&[(None, "c3")], &[], "move 0 is \"c3\""),
        (&[(Some(0), "C3")], &[], "move 0 names move 0 as the one before it, but that comes later"),
        (&[(None, "pass"), (Some(0), "pass"), (Some(1), "C3")], &[], "but the game is over before it"),
        (&[(None, "A1"); 5], &[], "the game with its variations has more than 4 moves"),
        (&[], &[("SZ", "9")], "\"SZ\" is not a property that can be set"),
        (&[], &[("P]", "9")], "\"P]\" is not a property that can be set"),
    ] {
        let error = write(&go(5), moves, tags).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = write(&go(5).parse("C3").unwrap(), &[], &[]).unwrap_err().to_string();
    assert_eq!(error, "an SGF needs the moves that led to this position: give them too");
}
