//! Promise 1: with one leaf at a time the search is textbook PUCT, visit for visit.

use crate::common::{Hashed, Naive, run};
use azpy_core::config::{Fpu, SearchConfig};
use azpy_core::game::{Game, Payoff, Turn};
use azpy_core::look::{standard_errors, variations};
use azpy_core::search::Search;
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

/// What the search knows is what the twin wrote down: the mean values of all players, and the standard errors for the
/// player to move.
pub(crate) fn assert_equal<G: Game>(search: &Search<G>, twin: &Naive<G>) {
    let result = search.result();
    assert_eq!(result.visits, twin.visits(), "{}", search.root().render());
    let Turn::Player(player) = search.root().turn() else { unreachable!() };
    for (found, sum) in result.values.iter().zip(&twin.sums) {
        assert!((f64::from(*found) - sum / f64::from(twin.n)).abs() < 1e-6, "{result:?} {:?}", twin.sums);
    }
    assert_eq!((result.values.len(), result.value), (twin.sums.len(), result.values[player.index()]));
    let (errors, lines) = (standard_errors(search.tree()), variations(search.tree(), usize::MAX, 1));
    for (index, (_, _, child)) in twin.children.iter().enumerate() {
        let Some(child) = child else { continue };
        let mean = child.sums[player.index()] / f64::from(child.n);
        assert!((f64::from(result.q[index]) - mean).abs() < 1e-6);
        let line = lines.iter().find(|line| line.actions[0] == result.actions[index]).unwrap();
        let is_one_number = G::Payoff::ZERO_SUM || child.sums.len() == 1;
        assert_eq!(line.values.len(), if is_one_number { 0 } else { child.sums.len() });
        for (value, sum) in line.values.iter().zip(&child.sums) {
            assert!((f64::from(*value) - sum / f64::from(child.n)).abs() < 1e-6);
        }
        if child.n > 1 {
            let deviation = |value: &G::Payoff| (f64::from(value.of(player)) - mean).powi(2);
            let sum: f64 = child.values.iter().map(deviation).sum();
            let error = (sum / (f64::from(child.n) * f64::from(child.n - 1))).sqrt();
            assert!((f64::from(errors[index]) - error).abs() < 1e-6, "{} {error}", errors[index]);
        }
    }
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
                let search = run(&toy, config, simulations, 0, &mut Hashed);
                let mut twin = Naive::new(toy.clone());
                twin.finish(&config, simulations + 1, 0);
                assert_equal(&search, &twin);
                assert_eq!(search.result().visits.iter().sum::<u32>(), simulations);
                assert_eq!(search.tree().nodes().iter().filter(|node| node.visits > 0).count(), count(&twin));
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
