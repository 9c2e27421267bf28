//! Trictrac beside its twin in tests/games/test_trictrac.py: one line for each end of a turn, positions as words, bad texts.

use std::collections::HashMap;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_games::Trictrac;

use crate::common::{Random, after, keys_differ, legal, moves};

/// All that a position is but its actions of this turn: where a line ends.
fn ends(state: &Trictrac, mover: Player, line: &mut Vec<Action>, found: &mut Vec<(String, Vec<Action>)>) {
    if state.turn() != Turn::Player(mover) {
        let text = state.to_text().unwrap();
        found.push((text.split(" plies=").next().unwrap().to_owned(), line.clone()));
        return;
    }
    for action in legal(state) {
        line.push(action);
        ends(&after(state, action), mover, line, found);
        line.pop();
    }
}

#[test]
fn one_line_leads_to_each_end_of_a_turn_and_no_lesser_one() {
    let mut turns = 0;
    for seed in 0..30 {
        let (mut game, mut random) = (Trictrac::default(), Random(seed));
        loop {
            let offered = moves(&game);
            let Turn::Player(mover) = game.turn() else {
                if offered.is_empty() {
                    break;
                }
                game.play(*random.choose(&offered));
                continue;
            };
            let in_mid_turn = game.to_text().unwrap().contains(" first=");
            if !in_mid_turn && offered != [49, 50] {
                let mut found = Vec::new();
                ends(&game, mover, &mut Vec::new(), &mut found);
                assert!(found.iter().all(|(_, line)| line.len() <= 2), "{}", game.render());
                let mut lines: HashMap<_, Vec<Action>> = HashMap::new();
                for (end, line) in found {
                    // The last checker may leave in several ways that set the board up anew.
                    let before = lines.insert(end.clone(), line);
                    assert!(before.is_none(), "two lines lead to {end}:\n{}", game.render());
                }
                turns += 1;
            }
            game.play(*random.choose(&offered));
        }
    }
    assert!(turns > 3000, "{turns}");
}

#[test]
fn games_end_by_holes_or_by_length() {
    let (mut longest, mut won) = (0, [0; 2]);
    for seed in 0..200 {
        let (mut game, mut random, mut plies) = (Trictrac::default(), Random(seed), 0);
        while game.turn() != Turn::Terminal {
            game.play(*random.choose(&moves(&game)));
            plies += 1;
        }
        longest = longest.max(plies);
        let winner = if game.outcome().0 > 0.0 { Player::Zero } else { Player::One };
        assert!(game.outcome().0.abs() == 1.0 && game.score(winner).1 == 12, "{}", game.render());
        won[winner.index()] += 1;
    }
    assert!(longest < 1500 && won.iter().all(|&games| games > 60), "{longest} {won:?}");
    let mut cut = Trictrac::new(12, 3).unwrap();
    for action in [0, 0, 24] {
        assert_ne!(cut.turn(), Turn::Terminal);
        cut.play(action);
    }
    assert_eq!((cut.turn(), cut.outcome().0), (Turn::Terminal, 0.0));
}

#[test]
fn keys_tell_apart_whatever_the_words_do() {
    let boards = ["x=1:13,12:2 o=1:15", "x=1:12,2:1,12:2 o=1:15", "x=1:13,12:2 o=1:14,2:1", "x=1:12,12:2,off:1 o=1:15"];
    let turns = "turn=x; turn=o; turn=x plies=1; turn=x points=2,0; turn=x points=0,2; turn=x holes=2,0; \
        turn=x holes=0,2; turn=x runs=0,1; turn=x runs=1,0; turn=x rolls=1,0; turn=x rolls=0,1; turn=x rolls=3,0; \
        turn=x roll=4-3; turn=o roll=4-3; turn=x roll=4-2; turn=x roll=3-3; \
        turn=x roll=6-1 holes=2,0 stage=choice; turn=x roll=6-1 holes=2,0";
    let mut texts: Vec<_> =
        boards.iter().flat_map(|board| turns.split("; ").map(move |turn| format!("{board} {turn}"))).collect();
    texts.retain(|text| !text.contains("choice") || text.starts_with("x=1:13,12:2 "));
    for first in ["roll=4-3 left=3 first=1", "roll=4-2 left=2 first=1", "roll=4-1 left=1 first=1"] {
        texts.push(format!("x=1:12,5:1,12:2 o=1:15 turn=x {first}"));
    }
    keys_differ([11, 12].into_iter().flat_map(|holes| {
        let start = Trictrac::new(holes, 3000).unwrap();
        let read = move |text: &String| start.parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        texts.iter().map(move |text| (format!("{text}, {holes} holes"), read(text)))
    }));
}

#[test]
fn positions_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |text: &str| Trictrac::default().parse(text).unwrap_err().to_string();
    let with = |more: &str| refused(&format!("x=1:13,12:2 o=1:15 {more}"));
    assert_eq!(refused("x=1:2 o=1:15 turn=x"), "x has 2 checkers, including those off; expected 15");
    assert_eq!(with("turn=z"), "turn must be x or o, got \"z\"");
    assert_eq!(refused("x=1:16 o=1:15 turn=x"), "x has \"1:16\": expected field:number, as in 1:13 or off:2");
    assert_eq!(refused("x=1:15,2:1 o=1:15 turn=x"), "x has more than 15 checkers");
    assert_eq!(refused("x=25:15 o=1:15 turn=x"), "x has \"25:15\": expected field:number, as in 1:13 or off:2");
    assert_eq!(refused("x=24:15 o=1:15 turn=x"), "x's field 24 has checkers of both players");
    assert_eq!(refused("x=off:15 o=1:15 turn=x"), "x has all checkers off; they go back to the talon then");
    assert_eq!(refused("x=1:14,13:1 o=1:15 turn=x"), "x has checkers on 13, the other player's corner");
    assert_eq!(refused("x=1:15 o=1:14,12:1 turn=x"), "o has one checker on 12; the corner is held with two");
    assert_eq!(refused("x=1:15 o=1:15 turn=o"), "x begins the game, got turn=o at the start");
    assert_eq!(with("turn=x roll=7-1"), "roll must be two dice as in 3-1, got \"7-1\"");
    assert_eq!(with("turn=x left=3"), "left= needs a roll that is being played");
    assert!(with("turn=x roll=3-1 left=3").starts_with("first= is missing"));
    assert_eq!(with("turn=x roll=3-1 left=2 first=1"), "left must be a die of the roll 3-1, got 2");
    assert_eq!(with("turn=x roll=3-1 left=1 first=1"), "first is 1, but x does not have a checker on 4");
    assert_eq!(with("turn=x roll=3-1 left=1 first=23"), "first is 23, but x has not borne off a checker");
    let late = "x=1:12,7:1,12:2 o=1:15 turn=x roll=4-3 left=4 first=4";
    assert_eq!(refused(late), "first is 4, but no play of this roll begins there");
    assert_eq!(with("turn=x roll=3-1 stage=play"), "stage must be choice, got \"play\"");
    let no_hole = "stage=choice follows a hole of x, but this roll is worth 0 points";
    assert_eq!(with("turn=x roll=3-2 stage=choice holes=2,0"), no_hole);
    let not_after = "stage=choice follows a hole: the other player has no points, and both runs are unbroken";
    assert_eq!(with("turn=x roll=3-1 stage=choice holes=2,0 points=0,2"), not_after);
    assert_eq!(with("turn=x points=1,0"), "points must be even numbers, got \"1,0\"");
    assert_eq!(with("turn=x points=12,0"), "points must be a whole number from 0 to 10, got \"12\"");
    assert_eq!(with("turn=x points=2"), "points must be two numbers, of x and of o, as in points=0,0, got \"2\"");
    assert_eq!(with("turn=x holes=13,0"), "holes must be a whole number from 0 to 12, got \"13\"");
    assert_eq!(with("turn=x holes=12,12"), "both players have 12 holes");
    assert_eq!(with("turn=x holes=12,0 roll=3-1"), "roll is \"3-1\", but the game is over");
    assert_eq!(with("turn=x plies=3001"), "plies must be a whole number from 0 to 3000, got \"3001\"");
    let stuck = "x=11:5,23:1,off:9 o=7:1,1:12,off:2 turn=x roll=5-5";
    assert_eq!(refused(stuck), "x can play none of 5-5: leave the roll out and say turn=o");
    assert!(refused("6-5 1/7 2/8").starts_with("action 3 is \"2/8\", which is not among the legal ones: "));
}
