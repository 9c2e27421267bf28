//! Positions of backgammon as words: read as they are written, refused with the reason, and told apart by their keys.

use azpy_core::game::{Game, Turn};
use azpy_core::text::Notation;
use azpy_games::Backgammon;

use crate::common::keys_differ;

#[test]
fn words_may_come_in_any_order() {
    let start = Backgammon::default();
    let text = "x=24:1,23:1,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5 turn=x roll=3-1 left=3 closed=23,24 plies=1";
    let turned: Vec<_> = text.split(' ').rev().collect();
    assert_eq!(start.parse(&turned.join("\n")), start.parse(text));
}

#[test]
fn keys_tell_apart_whatever_the_words_do() {
    let boards = [
        "x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5",
        "x=24:2,13:5,8:3,6:4,5:1 o=24:2,13:5,8:3,6:5",
        "x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:4,5:1",
        "x=24:2,13:5,8:3,6:4,off:1 o=24:2,13:5,8:3,6:5",
        "x=24:1,bar:1,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5",
    ];
    let turns = "turn=x; turn=o; turn=x plies=1; turn=x roll=4-3; turn=o roll=4-3; turn=x roll=4-2; \
        turn=x roll=4-3 left=4; turn=x roll=4-3 left=3; turn=x roll=4-3 left=3 closed=13; \
        turn=x roll=4-3 left=3 closed=8,13; turn=x roll=4-4; turn=x roll=4-4 left=4-4-4; turn=x roll=4-4 left=4-4; \
        turn=x roll=4-4 left=4";
    let texts = boards.into_iter().flat_map(|board| turns.split("; ").map(move |turn| format!("{board} {turn}")));
    let texts: Vec<_> = texts.chain([format!("{} turn=x roll=opening", boards[0])]).collect();
    keys_differ([true, false].into_iter().flat_map(|gammons| {
        let read =
            move |text: &String| Backgammon::new(gammons).parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        texts.iter().map(move |text| (format!("{text}, gammons {gammons}"), read(text)))
    }));
}

#[test]
fn positions_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |text: &str| Backgammon::default().parse(text).unwrap_err().to_string();
    let start = "x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5";
    let with = |more: &str| refused(&format!("{start} {more}"));
    assert!(refused("x=24:2 turn=x").starts_with("x has 2 checkers, including those off; expected 15"));
    assert!(refused(start).starts_with("turn= is missing: expected x=PLACES"));
    assert!(refused("turn=x").starts_with("x= is missing"));
    assert!(with("turn=x turn=o").starts_with("turn= is given twice"));
    assert!(with("turn=x z=3").starts_with("\"z=3\" is not understood"));
    assert_eq!(with("turn=z"), "turn must be x or o, got \"z\"");
    assert_eq!(refused("x=24:16 o=6:15 turn=x"), "x has \"24:16\": expected place:number, as in 24:2, bar:1 or off:3");
    assert_eq!(refused("x=24:15,1:1 o=6:15 turn=x"), "x has more than 15 checkers");
    assert_eq!(refused("x=25:15 o=6:15 turn=x"), "\"25\" is not a place: expected 1 to 24 or bar");
    assert_eq!(refused("x=24:15 o=1:15 turn=x"), "x's point 24 has checkers of both players");
    assert_eq!(refused("x=off:15 o=off:15 turn=x"), "both players have all checkers off");
    assert_eq!(refused("x=off:15 o=1:15 turn=o roll=3-1"), "roll is \"3-1\", but the game is over");
    let winner_moves = "x has all checkers off, so the other player is to move, got x";
    assert_eq!(refused("x=off:15 o=1:15 turn=x"), winner_moves);
    for late in ["turn=o roll=opening", "turn=x roll=opening plies=2"] {
        assert_eq!(with(late), "roll=opening is only for the start of a game, where x is to move");
    }
    assert!(refused("x=1:15 o=1:15 turn=x roll=opening").starts_with("roll=opening is only for the start"));
    assert_eq!(with("turn=x roll=7-1"), "roll must be dice from 1 to 6 with - between, got \"7-1\"");
    assert_eq!(with("turn=x roll=1-2-3"), "roll must be two dice as in 3-1, or opening, got \"1-2-3\"");
    assert_eq!(with("turn=x roll=3-1 left=2"), "left must be dice of the roll 3-1, got \"2\"");
    assert_eq!(with("turn=x roll=3-1 left=3-3"), "left must be dice of the roll 3-1, got \"3-3\"");
    assert_eq!(with("turn=x left=3"), "left= needs a roll that is being played");
    assert_eq!(with("turn=x roll=3-1 closed=24"), "closed is \"24\", but no checker has moved: all dice are left");
    assert_eq!(with("turn=x roll=3-1 left=3 closed=5"), "closed has 5, where x does not have a checker");
    assert_eq!(with("turn=x plies=3001"), "plies must be at most 3000 in this game, got 3001");
    assert_eq!(with("turn=x plies=-1"), "plies must be a whole number, got \"-1\"");
    let blocked = "x=bar:1,6:14 o=1:2,2:2,3:2,4:2,5:2,6:2,12:3 turn=x roll=3-1";
    assert_eq!(refused(blocked), "x can play none of 3-1: leave the roll out and say turn=o");
    assert!(refused("3-1 8/5 9/5").starts_with("action 3 is \"9/5\", which is not among the legal ones: "));
}

#[test]
fn ids_of_other_programs_are_positions() {
    let words = |id: &str| Backgammon::default().parse(id).unwrap_or_else(|error| panic!("{id}: {error}")).to_text();
    let start = "x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5";
    // As GNU Backgammon 1.07 prints them; the names of the match and the score count for nothing.
    let same = |id: &str, expected: &str| assert_eq!(words(id).as_deref(), Some(expected), "{id}");
    same("4HPwATDgc/ABMA", &format!("{start} turn=x"));
    same(" 4HPwATDgc/ABMA\n", &format!("{start} turn=x"));
    same("4HPwATDgc/ABMA:MIHlAAAAAAAE", &format!("{start} turn=o roll=3-1"));
    same("4HPwATDgc/ABMA:MAEPAAAAAAAE", &format!("{start} turn=o roll=6-3"));
    same("4HPwATDgc/ABMA:cAkPAAAAAAAE", &format!("{start} turn=x roll=6-3"));
    same("4HPwATDgc/ABMA:cAkAAAAAAAAA", &format!("{start} turn=x"));
    same("XGID=-b----E-C---eE---c-e----B-:0:0:1:13:2:3:0:7:10", &format!("{start} turn=x roll=3-1"));
    same("-b----E-C---eE---c-e----B-:1:-1:-1:00", &format!("{start} turn=o"));
    let (x, o) = ("x=24:1,13:4,7:2,6:4,5:2,1:1,off:1", "o=bar:1,15:1,13:5,8:4,6:4");
    same("XGID=aA---BDB--a-eD---d-d----A-:0:0:1:63:0:0:0:0:10", &format!("{x} {o} turn=x roll=6-3"));
    // What the programs show and copy around an id.
    let board = "\n +13-14-15-16-17-18------19-20-21-22-23-24-+\n | X           O    |   | O              X |\n";
    let xgid = "XGID=-b----E-C---eE---c-e----B-:0:0:1:52:0:0:0:0:10";
    same(
        &format!("{xgid}\n\nX:Player 1   O:Player 2\nScore is X:0 O:0. Unlimited Game{board}X to play 52\n"),
        &format!("{start} turn=x roll=5-2"),
    );
    same(&format!("Position 3\r\n{xgid}\r\n"), &format!("{start} turn=x roll=5-2"));
    for text in [
        "GNU Backgammon  Position ID: 4HPwATDgc/ABMA\n                 Match ID   : MIHlAAAAAAAE\n +12-11-10-",
        "Position ID: 4HPwATDgc/ABMA Match ID: MIHlAAAAAAAE",
        "position id : 4HPwATDgc/ABMA\tmatch id:MIHlAAAAAAAE",
    ] {
        same(text, &format!("{start} turn=o roll=3-1"));
    }
    same("GNU Backgammon  Position ID: 4HPwATDgc/ABMA", &format!("{start} turn=x"));
    // No checker of x leaves the bar by 3-1: the turn passes at once.
    let (x, o) = ("x=bar:1,6:14", "o=12:3,6:2,5:2,4:2,3:2,2:2,1:2");
    same("XGID=------N------c-----bbbbbbA:0:0:1:31:0:0:0:0:10", &format!("{x} {o} turn=o"));
    // The game is over: whoever is named as the next one, no roll follows.
    for turn in ["1:00", "-1:31"] {
        let id = format!("XGID=-----------------------o--:0:0:{turn}:0:0:0:0:10");
        same(&id, "x=off:15 o=2:15 turn=o");
        assert_eq!(Backgammon::default().parse(&id).unwrap().turn(), Turn::Terminal);
    }
    let long = Backgammon::with_max_plies(false, 9).unwrap();
    assert_eq!(long.parse("4HPwATDgc/ABMA").unwrap().max_plies(), 9, "the game is the one that was given");
}

#[test]
fn ids_that_are_none_are_refused_with_the_reason() {
    let refused = |text: &str| Backgammon::default().parse(text).unwrap_err().to_string();
    let letters = "the position id must be 14 letters of base64, got ";
    assert_eq!(refused("4HPwATDgc/ABM:cAkPAAAAAAAE"), format!("{letters}\"4HPwATDgc/ABM\""));
    assert_eq!(refused("4HPwATDgc_ABMA:cAkPAAAAAAAE"), format!("{letters}\"4HPwATDgc_ABMA\""));
    assert_eq!(
        refused("4HPwATDgc/ABMB:cAkPAAAAAAAE"),
        format!("{letters}\"4HPwATDgc/ABMB\""),
        "bits that fill no byte"
    );
    assert_eq!(refused("4HPwATDgc/ABMA:cAkP"), "the match id must be 12 letters of base64, got \"cAkP\"");
    let long = "A".repeat(40);
    assert!(refused(&format!("{long}:")).starts_with(letters));
    assert!(refused(&format!("4HPwATDgc/ABMA:{long}")).starts_with("the match id must be 12 letters"));
    assert_eq!(refused("/////////////w"), "the position id has more than 15 checkers of a player");
    assert_eq!(refused("AAAAAAAAAAAAAA"), "both players have all checkers off");
    assert!(refused("4HPwATDgc/ABMA:MIH9AAAAAAAE").starts_with("the dice must be from 1 to 6, got 3 and 7"));
    assert!(refused("4HPwATDgc/ABMA:cBkPAAAAAAAE").starts_with("the match id says that a double is offered"));
    assert!(refused("4HPwATDgc/ABMA:cCkPAAAAAAAE").starts_with("the match id says that a resignation is offered"));
    assert!(refused("4HPwATDgc/ABMA:cAsPAAAAAAAE").starts_with("the match id says that a player resigned"));
    assert_eq!(refused("Position ID: 4HPw Match ID: MIHlAAAAAAAE"), format!("{letters}\"4HPw\""));
    assert!(refused("Position ID: 4HPwATDgc/ABMA Match ID: MIH").starts_with("the match id must be 12 letters"));
    assert!(refused("X to move\nXGID=-b:0").starts_with("an XGID must be BOARD:CUBE:OWNER:TURN:DICE"));
    let xgid = |rest: &str| refused(&format!("XGID={rest}"));
    assert!(xgid("").starts_with("an XGID must be BOARD:CUBE:OWNER:TURN:DICE and what follows, got \"\""));
    assert!(xgid("-b----E-C---eE---c-e----B:0:0:1:00").starts_with("the board of an XGID must be 26 letters"));
    assert!(
        xgid("-b----Z-C---eE---c-e----B-:0:0:1:00").starts_with("the board of an XGID has \"Z\" at letter 7: expected")
    );
    assert!(xgid("Ab----D-C---eE---c-e----B-:0:0:1:00").starts_with("the board of an XGID has \"A\" at letter 1"));
    assert!(xgid("-b----E-C---eE---c-d----Ba:0:0:1:00").starts_with("the board of an XGID has \"a\" at letter 26"));
    assert_eq!(xgid("-b----F-C---eE---c-e----B-:0:0:1:00"), "the XGID has more than 15 checkers of a player");
    assert_eq!(xgid("-b----E-C---eE---c-e----B-:0:0:0:00"), "the turn of an XGID must be 1 or -1, got \"0\"");
    for double in ["D", "B", "R"] {
        let text = format!("-b----E-C---eE---c-e----B-:0:0:1:{double}");
        assert_eq!(
            xgid(&text),
            format!("the dice of the XGID are {double}, an offered double, but azpy plays without the cube")
        );
    }
    for dice in ["0", "1", "-1", "x1", ""] {
        assert!(
            xgid(&format!("-b----E-C---eE---c-e----B-:0:0:1:{dice}")).starts_with("the dice of an XGID must be 00 or")
        );
    }
    for dice in ["07", "01", "77", "70"] {
        assert!(xgid(&format!("-b----E-C---eE---c-e----B-:0:0:1:{dice}")).starts_with("the dice must be from 1 to 6"));
    }
}
