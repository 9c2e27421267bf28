//! Parameters of games: which are refused, and with which words.

use azpy_core::game::{Value, Values};
use azpy_core::text::Position as _;
use azpy_games::any::AnyGame;
use azpy_games::registry::BUILT_IN;
use azpy_games::{Error, Go9, Maedn, Pig};

fn refused(spec: &str) -> Error {
    AnyGame::open(BUILT_IN, spec, Vec::new()).err().expect(spec)
}

#[test]
fn bad_parameters_are_refused_with_the_reason() {
    for (spec, why) in [
        ("backgammon(max_plies=0)", "max_plies must be from 1 to 65535, got 0"),
        ("backgammon(gammons=2)", "gammons must be 0 or 1, got 2"),
        ("blokus(players=3)", "players must be one of 2, 4, got 3"),
        ("blokus(size=21)", "the size must be from 5 to 20, got 21"),
        ("blokus(size=x)", "size must be auto or a whole number >= 0, got \"x\""),
        ("breakthrough(width=1)", "a board needs at least 2 columns and 3 rows, got 1 x 8"),
        ("breakthrough(height=9)", "a board of 8 x 9 is too large: there may be at most 64 cells"),
        ("chess(max_plies=0)", "max_plies must be from 1 to 12000, got 0"),
        ("chess(max_plies=12001)", "max_plies must be from 1 to 12000, got 12001"),
        ("chess(chess960=960)", "chess960 must be off or a start's number, 0 to 959, got 960"),
        ("chess(encoding=az73)", "the encoding must be az18 or az119, got \"az73\""),
        ("chinese_checkers(players=5)", "players must be one of 2, 3, 4, 6, got 5"),
        ("chinese_checkers(max_turns=1001)", "max_turns must be from 1 to 1000, got 1001"),
        ("connect_four(width=0)", "a board needs at least one column and one row, got 0 x 6"),
        (
            "connect_four(width=8,height=8)",
            "a board of 8 x 8 is too large: width * (height + 1) may be at most 64, got 72",
        ),
        ("connect_four(k=8)", "k must be from 2 to the longer side of the board (7 for 7 x 6), got 8"),
        ("connect_four(k=1)", "k must be from 2 to the longer side of the board (7 for 7 x 6), got 1"),
        ("connect_four_for_three(k=8)", "k must be from 2 to the longer side of the board (7 for 7 x 6), got 8"),
        ("dice_nim(heap=1001)", "the heap must be from 1 to 1000, got 1001"),
        ("game2048(size=5)", "the size must be from 2 to 4, got 5"),
        ("game2048(target=0)", "the target must be a power of two from 8 to 32768, got 0"),
        ("game2048(target=100)", "the target must be a power of two from 8 to 32768, got 100"),
        ("game2048(target=65536)", "the target must be a power of two from 8 to 32768, got 65536"),
        ("go(size=4)", "the size must be from 5 to 19, got 4"),
        ("go(size=20)", "the size must be from 5 to 19, got 20"),
        ("go(komi=0.25)", "komi must be a half or whole number from -1000 to 1000, got 0.25"),
        ("go(komi=1000.5)", "komi must be a half or whole number from -1000 to 1000, got 1000.5"),
        ("go(komi=0.1)", "komi must be a half or whole number, got 0.1"),
        ("go(komi=inf)", "komi must be a number, got \"inf\""),
        ("gomoku(size=2)", "the size must be from 3 to 19, got 2"),
        ("gomoku(size=9,k=10)", "k must be from 2 to the size of the board (9), got 10"),
        ("hex(size=2)", "the size must be from 3 to 13, got 2"),
        ("hex(size=14)", "the size must be from 3 to 13, got 14"),
        ("liars_dice(sides=7)", "the sides must be from 2 to 6, got 7"),
        ("maedn(players=5)", "players must be one of 2, 3, 4, got 5"),
        ("maedn(players=3,opposite=0)", "opposite=0 seats two players side by side, got 3 players"),
        ("maedn(max_plies=65536)", "max_plies must be from 1 to 65535, got 65536"),
        ("othello(size=5)", "the size must be 4, 6 or 8, got 5"),
        ("peg_solitaire(board=round)", "board must be english or triangle, got \"round\""),
        ("pig(target=1001)", "the target must be from 1 to 1000, got 1001"),
        ("trictrac(holes=13)", "holes must be from 1 to 12, got 13"),
        ("trictrac(max_plies=65536)", "max_plies must be from 1 to 65535, got 65536"),
        ("wall_game(width=1)", "columns and rows must be from 2 to 20, got 1 x 8"),
        ("wall_game(height=21)", "columns and rows must be from 2 to 20, got 8 x 21"),
        ("wall_game(variant=freestyle,width=8)", "freestyle is played on 12 x 10 cells, got 8 x 10"),
        ("wall_game(variant=fast)", "the variant must be standard, classic or freestyle, got \"fast\""),
        ("wall_game(seed=1)", "only freestyle has random starts, so only it takes a seed, got 1"),
        ("wall_game(classic_policy=1)", "a policy without steps of mice (classic_policy) needs the classic variant"),
    ] {
        assert_eq!(refused(spec).to_string(), why, "{spec}");
    }
}

#[test]
fn absurd_sizes_are_refused_and_do_not_wrap_around() {
    let (most, half) = (usize::MAX, usize::MAX / 2 + 1);
    for game in ["breakthrough", "connect_four", "wall_game"] {
        for (width, height) in [(most, 3), (3, most), (most, most), (half, 2), (2, half)] {
            refused(&format!("{game}(width={width},height={height})"));
        }
    }
    for game in ["blokus", "game2048", "go", "gomoku", "hex", "othello"] {
        refused(&format!("{game}(size={most})"));
    }
    assert!(Pig::new(most).is_err() && Pig::with_max_plies(20, 0).is_err());
    assert!(Go9::new(12, 7.5, true).is_err() && Go9::new(9, f32::NAN, true).is_err());
    assert!(Maedn::<Values>::new(2, true, 9).is_err() && Maedn::<Value>::new(3, true, 9).is_err());
}

#[test]
fn an_error_says_what_it_is_about() {
    assert!(matches!(refused("hex(size=99)"), Error::Value { what, got, .. } if what == "the size" && got == "99"));
    assert!(
        matches!(refused("chest"), Error::UnknownGame { name, known } if name == "chest" && known.contains(&"chess"))
    );
    let known = vec!["size", "swap"];
    assert_eq!(refused("hex(sise=5)"), Error::UnknownParameter { game: "hex", name: "sise".to_owned(), known });
    assert_eq!(refused("hex(size=5,size=5)"), Error::GivenTwice("size".to_owned()));
    assert!(matches!(refused("hex(5)"), Error::Form { got, .. } if got == "\"5\""));
    assert!(matches!(refused("hex(size=5"), Error::Invalid(_)));
}

#[test]
fn other_parameters_may_not_change_what_a_game_pays() {
    for (spec, players) in [("blokus", 4), ("blokus(players=4)", 2), ("maedn", 3), ("maedn(players=3)", 2)] {
        let start = AnyGame::open(BUILT_IN, spec, Vec::new()).unwrap();
        let error = start.start_with(&[("players", players.to_string())]).err().expect(spec);
        assert!(error.to_string().contains("has other payoffs than"), "{error}");
    }
}
