//! Turns of the Wall Game as they are played: short ones, the end of a turn, what follows the hundredth, and positions in
//! mid-turn.

use azpy_core::game::{Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_games::WallGame;

use crate::common::legal;
use crate::wall_game::{CLASSIC, FREESTYLE, board, standard};

fn winner(game: &WallGame) -> f32 {
    assert_eq!(game.turn(), Turn::Terminal, "{}", game.render());
    game.outcome().0
}

#[test]
fn a_turn_has_two_actions_and_the_second_does_not_take_back_the_first() {
    let start = standard(8, 8);
    let step = start.parse("Cb8").unwrap();
    assert_eq!(step.turn(), Turn::Player(Player::Zero));
    assert_eq!(["Ca8", "Cc8", "Ma2"].map(|name| step.parse_actions(name).is_ok()), [false, true, true]);
    let blue = step.parse(">d4").unwrap();
    assert_eq!(blue.turn(), Turn::Player(Player::One));
    // The next turn may.
    let red = blue.parse("Ch7 Ch6").unwrap();
    assert!(red.parse_actions("Ca8").is_ok());
    // A wall is nothing to take back, and neither is a step of the other piece.
    assert!(start.parse(">d4 Cb8 Ch7 Ch6 Ca8").is_ok());
    assert!(start.parse("Cb8 Ma2").is_ok());
}

#[test]
fn after_a_hundred_turns_of_both_it_is_a_draw() {
    let start = standard(8, 8);
    // Red's cat goes round in a square; so does Blue's.
    let mut game = start;
    for turn in 0..200 {
        assert_eq!(game.turn(), Turn::Player([Player::Zero, Player::One][turn % 2]), "turn {turn}");
        game = game.parse(["Cb7", "Cg7", "Ca8", "Ch8"][turn % 4]).unwrap();
    }
    assert_eq!(winner(&game), 0.0);
    let text = game.to_text().unwrap();
    assert_eq!(text, "cats a8 h8 mice a1 h1 turn 101 red");
    assert_eq!(start.parse(&text).unwrap().key(), game.key());
    // The capture on the last turn counts.
    let last = start.parse("cats g8 b8 mice a1 h8 turn 100 blue second").unwrap();
    assert_eq!(winner(&last.parse("Mg8").unwrap()), 1.0);
    assert_eq!(winner(&last.parse("Mh7").unwrap()), 0.0);
    assert_eq!(game.max_plies(), 400);
}

#[test]
fn a_turn_may_end_early_but_not_by_an_action() {
    let start = standard(8, 8);
    let game = start.parse("end_turn Ch7 end_turn Cb8.>e4").unwrap();
    assert_eq!(game.to_text().unwrap(), "cats b8 h7 mice a1 h1 walls >e4 turn 2 blue");
    assert_eq!(game, start.parse("--- Ch7 --- Cb8.>e4").unwrap());
    let error = start.parse_actions("Cb8 end_turn").unwrap_err().to_string();
    assert_eq!(error, "word 2: no number of an action stands for end_turn, which positions are read with");
    assert!(start.parse("----").is_err() && start.parse("Cb8.---").is_err());
    let over = start.parse("cats h1 h8 mice a1 h1 turn 2 blue").unwrap();
    assert!(over.parse("---").unwrap_err().to_string().contains("the game is over"));
    // A capture that stands is judged when the turn ends.
    let caught = start.parse("cats g1 b8 mice a1 h1 turn 3 red").unwrap().parse("Ch1").unwrap();
    assert_eq!(caught.turn(), Turn::Player(Player::Zero));
    let mut ended = caught;
    ended.end_turn().unwrap();
    assert_eq!(winner(&ended), 1.0);
    assert!(ended.end_turn().is_err() && board(12, 10, FREESTYLE).end_turn().is_err());
}

/// Every open edge is on a cat's only path, so that no wall is legal. Mice stay at home.
const CLOSED: &str = "mice a2 a2 walls ^a1";

#[test]
fn a_turn_ends_where_no_second_action_is_legal() {
    let start = board(2, 2, CLASSIC);
    // Blue's cat steps into a dead end.
    let blue = start.parse(&format!("cats b2 b1 {CLOSED} turn 1 blue")).unwrap();
    let red = blue.parse("Ca1").unwrap();
    assert_eq!(red.to_text().unwrap(), format!("cats b2 a1 {CLOSED} turn 2 red"));
    assert_eq!(red.turn(), Turn::Player(Player::Zero));
    // A capture by the only action of a turn wins.
    assert_eq!(winner(&red.parse("Ca2").unwrap()), 1.0);
    // Such a turn is a word of a line of play.
    let line = blue.parse_actions("Ca1 Ca2").unwrap();
    assert_eq!(line.len(), 2);
    assert_eq!(blue.format_actions(&line).unwrap(), "Ca1 Ca2");
    assert_eq!(winner(&blue.parse("Ca1 Ca2").unwrap()), 1.0);
}

#[test]
fn a_position_in_mid_turn_without_an_action_is_read_and_goes_on() {
    let start = board(2, 2, CLASSIC);
    let text = "cats a1 b2 mice a2 b2 walls ^a1 turn 1 red second";
    assert_eq!(legal(&start.parse(text).unwrap()), [8]);
    let text = format!("{text} not Cb1");
    let stuck = start.parse(&text).unwrap();
    assert_eq!((stuck.turn(), stuck.outcome().0), (Turn::Terminal, 0.0));
    assert_eq!(stuck.to_text().unwrap(), text);
    assert!(stuck.render().ends_with("turn 1, red: no second action is legal"));
    assert!(
        stuck.parse("Cb1").unwrap_err().to_string().contains("no second action is legal; expected end_turn or ---")
    );
    assert_eq!(stuck.parse("---").unwrap().to_text().unwrap(), "cats a1 b2 mice a2 b2 walls ^a1 turn 1 blue");
    // A capture that stands is judged then.
    let caught = start.parse("cats a2 a1 mice a2 a2 walls ^a1 turn 2 red second not Cb2").unwrap();
    assert_eq!(winner(&caught.parse("---").unwrap()), 1.0);
}

#[test]
fn blue_may_begin_and_half_a_turn_may_be_played() {
    let start = standard(8, 8);
    let pieces = "cats a8 h7 mice a1 h1";
    let blue = start.parse(&format!("{pieces} turn 1 blue")).unwrap();
    assert_eq!(blue.turn(), Turn::Player(Player::One));
    assert_eq!(blue.parse("Ch6.>e4").unwrap().turn(), Turn::Player(Player::Zero));
    let half = start.parse(&format!("{pieces} turn 1 blue second not Ch8")).unwrap();
    assert_eq!(half.turn(), Turn::Player(Player::One));
    assert!(half.parse_actions("Ch8").is_err() && half.parse_actions("Ch6.>e4").is_err());
    let red = half.parse("Ch6").unwrap();
    assert_eq!(red.to_text().unwrap(), "cats a8 h6 mice a1 h1 turn 2 red");
    // After a wall everything is legal.
    let half = start.parse(&format!("{pieces} walls >e4 turn 1 blue second")).unwrap();
    assert!(half.parse_actions("Ch8").is_ok());
    assert_eq!(half.parse("---").unwrap().to_text().unwrap(), format!("{pieces} walls >e4 turn 2 red"));
    // It is the game's own text.
    assert_eq!(
        standard(8, 8).parse("--- Ch7").unwrap(),
        start.parse(&format!("{pieces} turn 1 blue second not Ch8")).unwrap()
    );
}
