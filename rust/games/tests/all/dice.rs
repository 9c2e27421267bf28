//! Exact values of the dice games: the solver on the real rules against recursions written straight from the rules.

use azpy_core::game::{Game, Player, Turn, Value};
use azpy_games::{DiceNim, Pig, pig};

use crate::common::{Random, Solver, after, moves};

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

/// Pig without a cap, by value iteration (Neller and Presser, "Optimal play of the dice game Pig", 2004): the value
/// for the player to move by own bank, opponent's bank and points on the table.
#[allow(clippy::needless_range_loop, reason = "both banks index the table twice, in both orders")]
fn pig_values(target: usize) -> Vec<Vec<Vec<f64>>> {
    let mut values: Vec<Vec<Vec<f64>>> = (0..target).map(|own| vec![vec![0.0; target - own]; target]).collect();
    loop {
        let mut change = 0.0_f64;
        for own in 0..target {
            for other in 0..target {
                for table in 0..target - own {
                    let thrown = |face: usize| match own + table + face {
                        sum if sum >= target => 1.0,
                        _ => values[own][other][table + face],
                    };
                    let mut best = (-values[other][own][0] + (2..=6).map(thrown).sum::<f64>()) / 6.0;
                    if table > 0 {
                        best = best.max(-values[other][own + table][0]);
                    }
                    change = change.max((best - values[own][other][table]).abs());
                    values[own][other][table] = best;
                }
            }
        }
        if change < 1e-12 {
            return values;
        }
    }
}

#[test]
fn pig_has_the_values_of_value_iteration() {
    let target = 10;
    let values = pig_values(target);
    let start = Pig::with_max_plies(target, 100).unwrap();
    let mut solver = Solver::default();
    let found = solver.value(&start);
    assert!((found - values[0][0][0]).abs() < 1e-3, "{found}, without a cap {}", values[0][0][0]);

    // Early in random games, where the cap is far: the value, and the choice where there is one.
    let mut choices = [0; 2];
    for seed in 0..300 {
        let (mut state, mut random) = (start, Random(seed));
        for _ in 0..20 {
            if let Turn::Player(player) = state.turn() {
                let (own, other) = (state.banks()[player.index()], state.banks()[player.opponent().index()]);
                let (action, value) = solver.best(&state, player);
                let value = Value(value as f32).pov(player).0;
                if own + state.table() == target {
                    assert_eq!((action, value), (pig::HOLD, 1.0));
                    choices[pig::HOLD as usize] += 1;
                } else {
                    let expected = values[own][other][state.table()] as f32;
                    assert!((value - expected).abs() < 1e-2, "{value}, without a cap {expected}: {}", state.render());
                    assert_eq!(action, pig::ROLL, "{}", state.render());
                    choices[pig::ROLL as usize] += 1;
                }
            }
            let moves = moves(&state);
            if moves.is_empty() {
                break;
            }
            state.play(*random.choose(&moves));
        }
    }
    assert!(choices.iter().all(|&count| count > 10), "roll and hold should both be best at times: {choices:?}");
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

#[test]
fn pig_to_twenty_is_won_by_rolling_on() {
    let values = pig_values(20);
    // Twenty points are so near that no early hold is right.
    for (own, by_other) in values.iter().enumerate() {
        for (other, by_table) in by_other.iter().enumerate() {
            for (table, value) in by_table.iter().enumerate().skip(1) {
                assert!(*value > -values[other][own + table][0], "hold at {own}, {other}, {table}");
            }
        }
    }
    assert!((values[0][0][0] - 0.231_117).abs() < 1e-6, "{}", values[0][0][0]);
}
