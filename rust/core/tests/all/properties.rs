//! Promise 2 and what keeps it: counts are exact, nothing stays in flight, whatever is asked for in whatever order.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::selfplay::Network;
use crate::common::{Hashed, check_tree, finish, run};
use crate::options::walk;
use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::{Fpu, RootNoise, SearchConfig};
use azpy_core::evaluator::{Batch, Evaluator, Uniform};
use azpy_core::game::{Game, Payoff, Pov, PovValue, Sizes, Turn, Value};
use azpy_core::rng::Stream;
use azpy_core::search::{Search, SearchResult, Stop};
use azpy_core::toy::Toy;
use azpy_core::tree::{Kind, NodeId, ROOT, Tree};
use proptest::prelude::*;

#[test]
fn simulations_are_counted_exactly_at_every_batch_size() {
    for seed in [1, 2, 3, 4] {
        let toy = Toy::random(seed, 6, true);
        for simulations in 0..=40 {
            for eval_batch in 1..=17 {
                let config = SearchConfig { eval_batch, ..SearchConfig::default() };
                let search = run(&toy, config, simulations, 0, &mut Hashed);
                assert_eq!(search.result().visits.iter().sum::<u32>(), simulations);
                assert_eq!(search.tree().node(ROOT).visits, 1 + simulations);
                let stats = search.stats();
                assert_eq!(stats.simulations, u64::from(simulations));
                assert_eq!(stats.evaluations + stats.terminals, u64::from(simulations) + 1);
            }
        }
    }
}

#[test]
fn the_longest_descent_is_as_deep_as_the_tree() {
    fn deepest(tree: &Tree, id: NodeId) -> usize {
        let first = tree.node(id).first_child;
        let visited = tree.children(id).iter().enumerate().filter(|(_, child)| child.visits > 0);
        visited.map(|(index, _)| 1 + deepest(tree, first + index as NodeId)).max().unwrap_or(0)
    }
    for seed in 0..20 {
        for (simulations, eval_batch) in [(0, 1), (1, 1), (300, 1), (300, 8)] {
            let config = SearchConfig { eval_batch, solver: seed % 2 == 0, ..SearchConfig::default() };
            let search = run(&Toy::random(seed, 6, true), config, simulations, 0, &mut Hashed);
            assert_eq!(search.result().depth, deepest(search.tree(), ROOT), "seed {seed}");
        }
    }
    assert_eq!(run(&Toy::chain(50), SearchConfig::default(), 30, 0, &mut Uniform).result().depth, 30);
    assert_eq!(run(&Toy::chain(50), SearchConfig::default(), 90, 0, &mut Uniform).result().depth, 50);
}

#[test]
fn no_simulations_give_the_networks_own_opinion() {
    let toy = Toy::random(5, 5, false);
    let result = run(&toy, SearchConfig::default(), 0, 0, &mut Hashed).result();
    assert!(result.visits.iter().all(|&n| n == 0));
    let best = (0..result.priors.len()).max_by(|&a, &b| result.priors[a].total_cmp(&result.priors[b]));
    assert_eq!(result.action, best.map(|index| result.actions[index]));
    assert!(result.value != 0.0);
}

#[test]
fn an_evaluators_error_comes_back_and_leaves_nothing_in_flight() {
    for fail_at in 0..6 {
        let mut searches: Vec<_> =
            (0..9).map(|seed| Search::new(Toy::random(seed, 6, true), SearchConfig::default())).collect();
        for search in &mut searches {
            search.begin(300, Stream::keyed(&[])).unwrap();
        }
        let mut network = Network::new(2);
        let mut rounds = Rounds::new(Workers::new(2).unwrap(), None);
        let error = loop {
            network.fail.store(network.calls.load(SeqCst) == fail_at, SeqCst);
            match rounds.run(&mut searches, &mut network) {
                Ok(true) => {}
                Ok(false) => panic!("it should have failed"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, SearchError::Evaluator("asked to fail")));
        searches.iter().for_each(check_tree);
        // The same searches go on with an evaluator that works.
        network.fail.store(false, SeqCst);
        for search in &mut searches {
            let before = search.tree().node(ROOT).visits.max(1);
            search.begin(50, Stream::keyed(&[])).unwrap();
            while rounds.run(std::slice::from_mut(search), &mut network).unwrap() {}
            assert_eq!(search.tree().node(ROOT).visits, before + 50);
            check_tree(search);
        }
    }
}

struct Bad(f32, f32);

impl<G: Game<Payoff = Value>> Evaluator<G> for Bad {
    type Error = ();
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), ()> {
        batch.logits.fill(self.0);
        batch.values.fill(PovValue(self.1));
        Ok(())
    }
}

#[test]
fn numbers_that_are_none_are_refused_and_named() {
    let toy = Toy::countdown(5);
    for (logit, value, named) in [
        (f32::NAN, 0.0, "logit NaN"),
        (f32::INFINITY, 0.0, "logit inf"),
        (0.0, f32::NAN, "value NaN"),
        (0.0, 1.5, "value 1.5"),
    ] {
        let mut search = Search::new(toy.clone(), SearchConfig::default());
        search.begin(10, Stream::keyed(&[])).unwrap();
        let error = Rounds::new(Workers::Serial, None).run(std::slice::from_mut(&mut search), &mut Bad(logit, value));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(named), "{text}");
        check_tree(&search);
    }
    for logit in [1e4, -1e4, f32::MAX] {
        let mut search = Search::new(toy.clone(), SearchConfig::default());
        finish(&mut search, 10, &[], &mut Bad(logit, 0.0));
        check_tree(&search);
    }
}

#[test]
fn the_cache_changes_no_visit_and_saves_evaluations() {
    let searches = |cache: Option<&Arc<Cache>>, threads: usize| {
        let mut searches: Vec<_> = (0..24)
            .map(|index| {
                let config = SearchConfig { c_puct: 1.0 + 0.1 * index as f64, ..SearchConfig::default() };
                Search::new(Toy::random(index % 6, 7, index % 2 == 0), config)
            })
            .collect();
        let mut rounds = Rounds::new(Workers::new(threads).unwrap(), cache.cloned());
        let mut network = Network::new(4);
        for (index, search) in searches.iter_mut().enumerate() {
            // The last one pauses, where the cache has all answers.
            let simulations = if index == 23 { 20_000 } else { 150 + 10 * (index as u32 % 5) };
            search.begin(simulations, Stream::keyed(&[9])).unwrap();
        }
        while rounds.run(&mut searches, &mut network).unwrap() {}
        searches.iter().for_each(check_tree);
        let nodes = searches.iter().flat_map(|search| search.tree().nodes());
        (nodes.map(|node| (node.visits, node.value_sum.to_bits())).collect::<Vec<_>>(), network.rows.load(SeqCst))
    };
    let (plain, rows) = searches(None, 1);
    for (positions, threads, mask) in [(100_000, 1, u64::MAX), (100_000, 4, u64::MAX), (4096, 2, 0xFF), (256, 2, 0)] {
        let cache = Arc::new(Cache::with_index_mask(positions, mask));
        for is_warm in [false, true] {
            let (cached, fewer) = searches(Some(&cache), threads);
            assert!(plain == cached, "a cache of {positions}");
            assert!(if positions > 1000 { fewer < rows } else { fewer <= rows });
            assert!(positions < 100_000 || !is_warm || fewer == 0, "a warm cache has all answers");
        }
    }
}

#[test]
fn each_position_is_evaluated_once_with_a_cache() {
    let mut searches: Vec<_> =
        (0..16).map(|_| Search::new(Toy::random(11, 7, true), SearchConfig::default())).collect();
    for (index, search) in searches.iter_mut().enumerate() {
        search.begin(400, Stream::keyed(&[index as u64])).unwrap();
    }
    let mut rounds = Rounds::new(Workers::new(2).unwrap(), Some(Arc::new(Cache::new(1 << 16))));
    let mut network = Network::new(4);
    while rounds.run(&mut searches, &mut network).unwrap() {}
    let mut distinct = HashSet::new();
    for search in &searches {
        walk(search.tree(), search.root(), |id, state, _| {
            if matches!(search.tree().node(id).kind, Kind::Decision(_)) {
                distinct.insert(state.key());
            }
        });
    }
    assert_eq!(network.rows.load(SeqCst), distinct.len() as u64);
}

#[test]
fn a_reused_root_has_its_old_visits_and_new_noise() {
    let noise = RootNoise { alpha: Some(0.5), fraction: 0.25 };
    let config = SearchConfig { root_noise: Some(noise), ..SearchConfig::default() };
    for seed in 0..30 {
        let toy = Toy::random(seed, 8, false);
        let mut search = run(&toy, config, 300, seed, &mut Hashed);
        let memory = search.tree().memory_bytes();
        while let Some(action) = search.result().action {
            let child = *search.tree().children(ROOT).iter().find(|child| child.action == action).unwrap();
            let chooser = search.root().turn();
            search.advance(action);
            let inherited = search.tree().node(ROOT).visits;
            assert_eq!(inherited, child.visits);
            // What the chooser thought of the action is what the position is worth, seen by whoever moves now.
            if let (Turn::Player(before), Turn::Player(now)) = (chooser, search.root().turn()) {
                let mean = (child.value_sum / f64::from(child.visits)) as f32;
                let seen = PovValue(mean).absolute(before).pov(now).0;
                assert_eq!(search.result().value, seen);
            }
            if search.root().turn() == Turn::Terminal {
                break;
            }
            finish(&mut search, 100, &[seed, 1], &mut Hashed);
            assert_eq!(search.tree().node(ROOT).visits, inherited.max(1) + 100);
            check_tree(&search);
            // The clean priors are the network's: the noise of no move is left in them.
            let clean = run(search.root(), SearchConfig::default(), 0, 0, &mut Hashed).result().priors;
            assert_eq!(search.result().priors, clean);
            let noised: Vec<f32> = search.tree().children(ROOT).iter().map(|child| child.prior).collect();
            assert!(clean.len() == 1 || noised != clean);
        }
        assert!(search.tree().memory_bytes() <= 4 * memory.max(1 << 12));
    }
}

/// A game that breaks its promises at the second ply.
#[derive(Clone)]
struct Broken(&'static str, u32);

impl Game for Broken {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: 2, obs_shape: [1, 1, 1], max_plies: 5, num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        match (self.0, self.1) {
            ("no outcomes" | "bad outcomes", 1) => Turn::Chance,
            ("endless rolls", 1..) => Turn::Chance,
            _ => Turn::Player(azpy_core::game::Player::Zero),
        }
    }
    fn legal_actions(&self, out: &mut Vec<u32>) {
        out.clear();
        match self.0 {
            "no action" if self.1 > 0 => {}
            "outside" if self.1 > 0 => out.push(2),
            _ => out.push(0),
        }
    }
    fn chance_outcomes(&self, out: &mut Vec<(u32, f32)>) {
        out.clear();
        match self.0 {
            "bad outcomes" => out.extend([(0, 0.2), (1, 0.2)]),
            "endless rolls" => out.push((0, 1.0)),
            _ => {}
        }
    }
    fn play(&mut self, _: u32) {
        self.1 += 1;
    }
    fn outcome(&self) -> Value {
        azpy_core::game::Value(0.0)
    }
    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
    }
    fn key(&self) -> u128 {
        u128::from(self.1)
    }
    fn render(&self) -> String {
        self.0.into()
    }
}

#[test]
fn a_game_that_breaks_its_promises_is_named_and_never_hangs() {
    for (what, named) in [
        ("no action", "no action at a player's turn"),
        ("outside", "outside the policy"),
        ("no outcomes", "chance_outcomes"),
        ("bad outcomes", "chance_outcomes"),
        ("endless rolls", "longer than max_plies"),
        ("endless turns", "longer than max_plies"),
    ] {
        for eval_batch in [1, 8] {
            let mut search = Search::new(Broken(what, 0), SearchConfig { eval_batch, ..SearchConfig::default() });
            search.begin(100, Stream::keyed(&[])).unwrap();
            let mut rounds = Rounds::new(Workers::Serial, None);
            let error = loop {
                match rounds.run(std::slice::from_mut(&mut search), &mut Uniform) {
                    Ok(more) => assert!(more, "{what} was not noticed"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(named), "{what}: {error}");
            assert!(search.tree().nodes().iter().all(|node| node.in_flight == 0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_search_of_any_tree_keeps_its_counts(
        seed in 0..10_000_u64,
        depth in 1..8_u32,
        simulations in 0..400_u32,
        eval_batch in 1..80_usize,
        virtual_loss in 0.0..3.0_f64,
        c_puct in 0.0..4.0_f64,
        fpu in prop_oneof![Just(Fpu::Zero), Just(Fpu::Parent), (0.0..1.0).prop_map(Fpu::Reduction)],
        in_flight_share in proptest::option::of(0.01..1.0_f64),
        noisy in any::<bool>(),
        root_temperature in prop_oneof![Just(1.0), 0.5..2.0],
        gumbel_actions in prop_oneof![Just(0), 0..20_usize],
        evaluations in proptest::option::of(2..300_u32),
    ) {
        let root_noise = noisy.then_some(RootNoise { alpha: None, fraction: 0.3 });
        let config = SearchConfig {
            eval_batch, c_puct, fpu, virtual_loss, in_flight_share, root_noise, root_temperature, gumbel_actions,
            evaluations, ..SearchConfig::default()
        };
        let search = run(&Toy::random(seed, depth, true), config, simulations, seed, &mut Hashed);
        let result = search.result();
        let visits = result.visits.iter().sum::<u32>();
        let leaves = search.stats().evaluations;
        match evaluations {
            Some(limit) if visits < simulations => {
                prop_assert_eq!(leaves, u64::from(limit));
                prop_assert_eq!(result.stop, Stop::Evaluations);
            }
            Some(limit) => prop_assert!(leaves <= u64::from(limit) && visits == simulations),
            None => prop_assert_eq!(visits, simulations),
        }
        prop_assert!((result.target.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        prop_assert!(result.target.iter().all(|&share| share >= 0.0));
        // What ran out of evaluations is the search of as many simulations. Sequential halving plans for its number.
        if gumbel_actions == 0 {
            let free = SearchConfig { evaluations: None, ..config };
            let same = run(&Toy::random(seed, depth, true), free, visits, seed, &mut Hashed);
            prop_assert_eq!(SearchResult { stop: Stop::Simulations, ..result }, same.result());
            prop_assert_eq!(leaves, same.stats().evaluations);
        }
    }
}
