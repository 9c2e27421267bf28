//! Exact values of the dice games: the solver on the real rules against a recursion written straight from the rules, and
//! values known by hand. `tests/search/test_dice.py` plays Pig against its exact values.

use azpy_core::game::{Game, Player, Turn, Value};
use azpy_games::{DiceNim, Pig};

use crate::common::{Solver, after, moves};

/// Dice-Nim straight from its rules: the value, for the player about to roll, of each heap up to `heap`.
fn dice_nim_values(heap: usize) -> Vec<f64> {
    // An empty heap: the opponent has just taken the last counter.
    let mut values = vec![-1.0];
    for heap in 1..=heap {
        let after_roll = |roll: usize| (1..=roll.min(heap)).map(|take| -values[heap - take]).fold(-1.0, f64::max);
        values.push((1..=3).map(after_roll).sum::<f64>() / 3.0);
    }
    values
}

#[test]
fn dice_nim_has_the_values_of_its_recursion() {
    let values = dice_nim_values(40);
    // By hand: one counter is taken; of two, a one leaves the last; of three, a one or a two leave two or one.
    assert_eq!(values[1], 1.0);
    assert!((values[2] - 1.0 / 3.0).abs() < 1e-12);
    assert!((values[3] - 1.0 / 9.0).abs() < 1e-12);
    for (heap, value) in values.iter().enumerate().skip(1) {
        let found = Solver::default().value(&DiceNim::new(heap).unwrap());
        assert!((found - value).abs() < 1e-9, "heap {heap}: {found}, by recursion {value}");
    }
    let last = DiceNim::new(1).unwrap();
    for roll in moves(&last) {
        assert_eq!(Solver::default().value(&after(&last, roll)), 1.0);
    }
}

#[test]
fn pig_cut_short_is_decided_by_the_banks() {
    // A one-point game: any face but a one wins at once; two throws each before the cap.
    let mut solver = Solver::default();
    let cut = |plies| Pig::with_max_plies(1, plies).unwrap();
    assert_eq!(solver.value(&cut(2)), 0.0, "nothing can be banked in two plies");
    assert!((solver.value(&cut(3)) - 5.0 / 6.0).abs() < 1e-6);
    // Player 1 gets the dice after a one, but has two plies left of four, three of five.
    assert!((solver.value(&cut(4)) - 5.0 / 6.0).abs() < 1e-6);
    assert!((solver.value(&cut(5)) - (5.0 / 6.0 - 5.0 / 36.0)).abs() < 1e-6);

    let mut game = Pig::with_max_plies(100, 7).unwrap();
    for action in [0, 1, 1, 0, 5, 1] {
        game.try_play(action).unwrap();
    }
    assert_eq!((game.turn(), game.banks()), (Turn::Player(Player::Zero), [2, 6]));
    game.try_play(0).unwrap();
    assert_eq!((game.turn(), game.outcome()), (Turn::Terminal, Value(-1.0)));
}
