//! Promise 3: forced wins are found, with exact visit counts at eval batch 1.

use crate::common::run;
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::toy::Toy;

fn countdown(n: u32, simulations: u32, eval_batch: usize) -> Vec<u32> {
    let config = SearchConfig { eval_batch, c_puct: 1.5, ..SearchConfig::default() };
    run(&Toy::countdown(n), config, simulations, 0, &mut Uniform).result().visits
}

/// (start, winning action: take 1 is action 0, visits it must get)
const COUNTDOWN: [(u32, usize, u32); 4] = [(4, 0, 392), (5, 1, 388), (7, 0, 387), (8, 1, 378)];

#[test]
fn countdown_gets_the_exact_counts_one_leaf_at_a_time() {
    for (n, winning, visits) in COUNTDOWN {
        assert_eq!(countdown(n, 400, 1)[winning], visits, "from {n}");
    }
}

#[test]
fn countdown_is_won_with_many_leaves_at_a_time() {
    for (n, winning, _) in COUNTDOWN {
        for (simulations, eval_batch) in [(400, 8), (6400, 64)] {
            let visits = countdown(n, simulations, eval_batch);
            assert!(visits[winning] >= 2 * visits[1 - winning], "from {n}: {visits:?}");
        }
    }
}

#[test]
fn double_turns_passes_and_dice_are_won_too() {
    for (text, winning) in [
        // Player 0 moves twice in a row; only 1 then 0 wins.
        ("0(0(- -) 0(+ -))", 1),
        // Player 1 has to pass once, then loses or wins by player 0's first choice.
        ("0(1(0(- =)) 1(0(- +)))", 1),
        // Player 0 to move twice, player 1 twice.
        ("0(0(1(1(- -)) 1(1(+ -))) 0(1(1(+ +)) 1(1(- -))))", 1),
        // A roll that is better on average than the sure thing, and one that is worse.
        ("0(0.2 ?(3:+ 1:-))", 1),
        ("0(0.2 ?(1:+ 1:-))", 0),
        // The same choices for player 1, mirrored.
        ("1(-0.2 ?(3:- 1:+))", 1),
        ("1(-0.2 ?(1:- 1:+))", 0),
    ] {
        for (simulations, eval_batch) in [(400, 1), (800, 8), (6400, 64)] {
            let config = SearchConfig { eval_batch, ..SearchConfig::default() };
            let visits = run(&Toy::parse(text).unwrap(), config, simulations, 1, &mut Uniform).result().visits;
            assert!(visits[winning] >= 2 * visits[1 - winning], "{text} at batch {eval_batch}: {visits:?}");
        }
    }
}
