//! Promise 1: with one leaf at a time the search is textbook PUCT, visit for visit.

use crate::common::{Hashed, Naive, run};
use azpy_core::config::{Fpu, SearchConfig};
use azpy_core::game::{Game, Turn};
use azpy_core::rng::Stream;
use azpy_core::toy::Toy;

/// Options with which a search is textbook PUCT.
pub(crate) fn configs() -> [SearchConfig; 4] {
    let base = SearchConfig { eval_batch: 1, ..SearchConfig::default() };
    [
        base,
        SearchConfig { c_puct: 0.4, fpu: Fpu::Parent, ..base },
        SearchConfig { c_puct: 2.5, fpu: Fpu::Reduction(0.3), ..base },
        SearchConfig { c_puct: 1.25, c_puct_base: Some(100.0), virtual_loss: 3.0, ..base },
    ]
}

fn assert_equal<G: Game>(root: &G, config: SearchConfig, simulations: u32) {
    let search = run(root, config, simulations, 0, &mut Hashed);
    let mut naive = Naive::new(root.clone());
    let mut dice = Stream::keyed(&[0]);
    // The search's own first draw: a seed for streams that leaves may ask for.
    dice.bits();
    for _ in 0..=simulations {
        naive.simulate(&config, &mut dice);
    }
    let result = search.result();
    assert_eq!(result.visits, naive.visits(), "{config:?}, {simulations} simulations of\n{}", root.render());
    assert_eq!(result.visits.iter().sum::<u32>(), simulations);
    let Turn::Player(player) = root.turn() else { unreachable!() };
    for (found, sum) in result.values.iter().zip(&naive.sums) {
        assert!((f64::from(*found) - sum / f64::from(naive.n)).abs() < 1e-6);
    }
    assert_eq!((result.values.len(), result.values[player.index()]), (root.num_players(), result.value));
    assert_eq!(search.tree().nodes().iter().filter(|node| node.visits > 0).count(), count(&naive));
}

fn count<G: Game>(naive: &Naive<G>) -> usize {
    1 + naive.children.iter().filter_map(|(_, _, child)| child.as_deref()).map(count).sum::<usize>()
}

#[test]
fn visits_equal_recursive_puct_on_random_trees() {
    for seed in 0..80 {
        let toy = Toy::random(seed, 7, seed % 2 == 1);
        for config in configs() {
            for simulations in [0, 1, 2, 16, 100, 1000] {
                assert_equal(&toy, config, simulations);
            }
        }
    }
}

#[test]
fn exchanging_the_players_changes_no_visit() {
    // The evaluator answers for the player to move and cannot tell who that is.
    for seed in 0..100 {
        for eval_batch in [1, 4] {
            let toy = Toy::random(seed, 7, true);
            let config = SearchConfig { eval_batch, ..SearchConfig::default() };
            let visits = |toy: &Toy| run(toy, config, 200, seed, &mut Hashed).result().visits;
            assert_eq!(visits(&toy), visits(&toy.swapped()));
        }
    }
}

#[test]
fn many_leaves_at_a_time_do_not_starve_a_leaf_that_waits() {
    // Nearly all simulations end in finished games here; the few leaves must still be reached as soon as with one
    // leaf at a time.
    for seed in 0..60 {
        let toy = Toy::random(seed, 5, true);
        let evaluations = |eval_batch| {
            let config = SearchConfig { eval_batch, ..SearchConfig::default() };
            run(&toy, config, 3_000, seed, &mut Hashed).stats().evaluations as i64
        };
        assert!((evaluations(1) - evaluations(8)).abs() <= 4, "seed {seed}: {} {}", evaluations(1), evaluations(8));
    }
}

#[test]
fn the_same_stream_rolls_the_same_dice() {
    let toy = Toy::random(3, 6, true);
    let visits = |seed| {
        let search = run(&toy, SearchConfig::default(), 500, seed, &mut Hashed);
        search.tree().nodes().iter().map(|node| node.visits).collect::<Vec<_>>()
    };
    assert_eq!(visits(1), visits(1));
    assert_ne!(visits(1), visits(2));
}
