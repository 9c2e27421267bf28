//! What the options of a search promise, each against a slow obvious twin.

use std::convert::Infallible;

use crate::common::{Hashed, Naive, after, check_tree, finish, moves, run};
use azpy_core::batched::{Rounds, Workers};
use azpy_core::config::{RootNoise, SearchConfig};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Game, Player, Turn};
use azpy_core::rng::Stream;
use azpy_core::search::{Search, Stop};
use azpy_core::selfplay::sharpen;
use azpy_core::toy::Toy;
use azpy_core::tree::{Kind, NodeId, ROOT, Tree};

/// A random tree whose games end in a win, a draw or a loss.
fn decisive(seed: u64, depth: u32, rolls: bool) -> Toy {
    fn write(stream: &mut Stream, depth: u32, rolls: bool, root: bool, out: &mut String) {
        let kind = if depth == 0 { 0 } else { stream.below(if rolls { 8 } else { 7 }) };
        match kind {
            0 | 1 if !root => out.push(['+', '-', '='][stream.below(3)]),
            7 if !root => {
                out.push_str("?(");
                for _ in 0..=stream.below(2) {
                    out.push_str(&format!("{}:", 1 + stream.below(3)));
                    write(stream, depth - 1, rolls, false, out);
                    out.push(' ');
                }
                out.push(')');
            }
            _ => {
                out.push_str(["0(", "1("][stream.below(2)]);
                for _ in 0..=stream.below(3) {
                    write(stream, depth - 1, rolls, false, out);
                    out.push(' ');
                }
                out.push(')');
            }
        }
    }
    let mut text = String::new();
    write(&mut Stream::keyed(&[seed, 77]), depth, rolls, true, &mut text);
    Toy::parse(&text).unwrap()
}

/// Every reached node with its position and the view of its value sum.
pub(crate) fn walk(tree: &Tree, root: &Toy, mut look: impl FnMut(NodeId, &Toy, Player)) {
    let mut stack = vec![(ROOT, root.clone(), Player::Zero)];
    while let Some((id, state, viewer)) = stack.pop() {
        look(id, &state, viewer);
        let node = tree.node(id);
        let next = if let Kind::Decision(player) = node.kind { player } else { Player::Zero };
        for (index, child) in tree.children(id).iter().enumerate().filter(|(_, child)| child.visits > 0) {
            stack.push((node.first_child + index as NodeId, after(&state, child.action), next));
        }
    }
}

#[test]
fn proofs_are_true_and_a_small_game_is_proven_whole() {
    let mut proven_early = 0;
    for seed in 0..300 {
        for (eval_batch, gumbel_actions, lookahead) in [(1, 0, 0), (8, 0, 0), (4, 3, 0), (1, 0, 1), (8, 3, 4)] {
            let toy = decisive(seed, 6, seed % 2 == 1);
            let options = SearchConfig { eval_batch, gumbel_actions, lookahead, ..SearchConfig::default() };
            let config = SearchConfig { solver: true, ..options };
            let search = run(&toy, config, 20_000, seed, &mut Hashed);
            let result = search.result();
            assert_eq!(result.stop, Stop::Proven, "{}", toy.render());
            assert!(search.tree().node(ROOT).visits < 20_000);
            walk(search.tree(), &toy, |id, state, viewer| {
                let node = search.tree().node(id);
                if node.proof != 0 {
                    let exact = if viewer == Player::Zero { state.exact() } else { -state.exact() };
                    assert!((node.mean() - exact).abs() < 1e-6, "{} for {}", node.mean(), state.render());
                } else {
                    proven_early += 1;
                }
            });
            let Turn::Player(player) = toy.turn() else { unreachable!() };
            let exact = if player == Player::Zero { toy.exact() } else { -toy.exact() };
            assert!((f64::from(result.value) - exact).abs() < 1e-6);
            // The action chosen keeps that value.
            let kept = after(&toy, result.action.unwrap()).exact();
            let kept = if player == Player::Zero { kept } else { -kept };
            assert!((kept - exact).abs() < 1e-6);
        }
    }
    assert!(proven_early > 1000, "proofs cut nothing off");
}

#[test]
fn a_proof_says_in_how_many_plies_the_game_can_be_ended() {
    // The proven value must be forced within that many plies: the longest line against best defence.
    fn forced(state: &Toy, tree: &Tree, id: NodeId) -> usize {
        let node = tree.node(id);
        assert_ne!(node.proof, 0);
        let children = tree.children(id);
        match node.kind {
            Kind::Decision(_) => {
                let best = children.iter().filter(|child| child.proof != 0).map(|child| child.mean() as f32);
                let best = best.fold(f32::NEG_INFINITY, f32::max);
                let lines = children.iter().enumerate().filter(|(_, c)| c.proof != 0 && c.mean() as f32 == best);
                let plies = lines.map(|(index, child)| {
                    1 + forced(&after(state, child.action), tree, node.first_child + index as NodeId)
                });
                if best > 0.0 { plies.min().unwrap() } else { plies.max().unwrap() }
            }
            Kind::Terminal => 0,
            _ => panic!("no dice here"),
        }
    }
    for seed in 0..200 {
        let toy = decisive(seed, 7, false);
        let config = SearchConfig { solver: true, ..SearchConfig::default() };
        let search = run(&toy, config, 20_000, seed, &mut Hashed);
        assert_eq!(usize::from(search.result().proof), 1 + forced(&toy, search.tree(), ROOT), "{}", toy.render());
    }
}

/// The least and the highest value for player 0 that a position can have, as far as so many plies tell.
fn bounds(state: &Toy, plies: usize) -> (f64, f64) {
    let turn = state.turn();
    let (Turn::Player(player), 1..) = (turn, plies) else {
        let value = f64::from(state.outcome().0);
        return if turn == Turn::Terminal { (value, value) } else { (-1.0, 1.0) };
    };
    let next = moves(state).into_iter().map(|action| bounds(&after(state, action), plies - 1));
    next.reduce(|(low, high), (a, b)| match player {
        Player::Zero => (low.max(a), high.max(b)),
        _ => (low.min(a), high.min(b)),
    })
    .unwrap()
}

/// Whether so many plies tell a position's value.
fn is_decided(state: &Toy, plies: usize) -> bool {
    let (low, high) = bounds(state, plies);
    low == high && (low - state.exact()).abs() < 1e-6
}

#[test]
fn a_look_ahead_finds_the_forced_ends_within_its_plies() {
    let (mut found, mut open, mut won) = ([0; 5], 0, 0);
    for seed in 0..600 {
        let (rolls, lookahead) = (seed % 2 == 1, 1 + seed as usize / 2 % 4);
        let toy = decisive(seed, 7, rolls);
        let config =
            SearchConfig { solver: true, lookahead, eval_batch: 1 + seed as usize % 3, ..SearchConfig::default() };
        let search = run(&toy, config, 60, seed, &mut Hashed);
        walk(search.tree(), &toy, |id, state, _| {
            let node = search.tree().node(id);
            if id == ROOT || !matches!(state.turn(), Turn::Player(_)) {
                return;
            }
            // No other leaf is left without children.
            let (low, high) = bounds(state, lookahead);
            let forced = low == 1.0 || high == -1.0;
            assert_eq!(node.num_children == 0, forced, "{lookahead} plies from {}", state.render());
            if forced {
                let plies = usize::from(node.proof) - 1;
                // The soonest end: who puts a win off could do so for ever.
                assert!(is_decided(state, plies) && !is_decided(state, plies - 1), "{plies}: {}", state.render());
                found[plies] += 1;
            } else {
                open += 1;
            }
        });
        let result = search.result();
        // Where the root's player can force a win, one simulation is enough, with Gumbel too.
        let (low, high) = bounds(&toy, lookahead);
        let is_won = if toy.turn() == Turn::Player(Player::Zero) { low == 1.0 } else { high == -1.0 };
        if is_won {
            for gumbel_actions in [0, 2] {
                let once = run(&toy, SearchConfig { gumbel_actions, ..config }, 1, seed, &mut Hashed).result();
                assert_eq!((once.value, once.stop), (1.0, Stop::Proven), "{}", toy.render());
                won += 1;
            }
        }
        if result.proof != 0 && result.value.abs() == 1.0 && !rolls {
            assert!(is_decided(&toy, usize::from(result.proof) - 1), "{}", toy.render());
        }
    }
    assert!(found[1..].iter().all(|&count| count > 20) && open > 1000 && won > 100, "{found:?}, {open} open, {won}");
}

#[test]
fn a_root_that_a_look_ahead_would_end_has_children_all_the_same() {
    let toy = Toy::parse("0(0(+ 1(- =)) 1(= -))").unwrap();
    let config = SearchConfig { solver: true, lookahead: 6, ..SearchConfig::default() };
    let mut search = run(&toy, config, 10, 0, &mut Hashed);
    assert_eq!((search.result().action, search.result().stop), (Some(0), Stop::Proven));
    let finish = |search: &mut Search<Toy>| {
        finish(search, 10, &[1], &mut Hashed);
        search.result()
    };
    search.advance(0);
    let result = finish(&mut search);
    assert_eq!((result.actions, result.action), (vec![0, 1], Some(0)));
    // A win that the root does not offer is not taken.
    let mut restricted = Search::new(Toy::parse("0(+ 1(- =) 1(= =))").unwrap(), config);
    restricted.allow(vec![1, 2]);
    let result = finish(&mut restricted);
    assert_eq!((result.action, result.value), (Some(2), 0.0));
}

#[test]
fn a_proven_loss_keeps_the_visits_that_it_had_and_is_not_drawn() {
    // Action 1 loses at once: the first look at it proves that, and it is not looked at again.
    let toy = Toy::parse("0(0(0(0(= +) -) 1(= -)) - 1(0(= -) 0(- =)))").unwrap();
    let config = SearchConfig { solver: true, eval_batch: 1, ..SearchConfig::default() };
    for simulations in 5..60 {
        let result = run(&toy, config, simulations, 0, &mut Hashed).result();
        assert_eq!((result.visits[1], result.proofs[1], result.q[1]), (1, 1, -1.0));
        let total: u32 = result.visits.iter().sum();
        let shares: Vec<f32> = result.visits.iter().map(|&n| (f64::from(n) / f64::from(total)) as f32).collect();
        assert_eq!(result.target, shares);
        let drawn = sharpen(&result, 1.0);
        assert!(drawn[1] == 0.0 && (drawn.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let plain = SearchConfig { solver: false, ..config };
    assert!(run(&toy, plain, 59, 0, &mut Hashed).result().visits[1] > 1);
    // Where nothing else is left a lost action is drawn all the same.
    let lost = run(&Toy::parse("0(- -)").unwrap(), config, 10, 0, &mut Hashed).result();
    assert!((sharpen(&lost, 1.0).iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn a_proven_root_teaches_gumbels_network_the_proven_action() {
    let config = SearchConfig { solver: true, eval_batch: 1, gumbel_actions: 4, ..SearchConfig::default() };
    let mut won = 0;
    for seed in 0..100 {
        let result = run(&decisive(seed, 6, false), config, 5_000, seed, &mut Hashed).result();
        let chosen = result.actions.iter().position(|&action| Some(action) == result.action).unwrap();
        assert!(result.proof != 0 && result.target[chosen] == 1.0);
        won += u32::from(result.value == 1.0);
    }
    assert!(won > 10);
}

#[test]
fn a_root_moved_along_can_be_looked_at_before_it_is_searched() {
    for (seed, gumbel_actions) in (0..20).flat_map(|seed| [(seed, 0), (seed, 16)]) {
        let config = SearchConfig { gumbel_actions, ..SearchConfig::default() };
        let mut search = run(&Toy::random(seed, 8, true), config, 200, seed, &mut Hashed);
        while let Some(action) = search.result().action {
            search.advance(action);
            let (result, legal) = (search.result(), search.num_root_actions());
            assert!(result.target.is_empty() || (result.target.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert_eq!((result.actions.len(), result.priors.len()), (legal, legal));
            assert!(result.value.abs() <= 1.0);
        }
    }
}

#[test]
fn an_early_stop_changes_no_choice_and_saves_simulations() {
    let mut saved = 0;
    for seed in 0..200 {
        let toy = Toy::random(seed, 7, true);
        let config = SearchConfig { eval_batch: 1 + seed as usize % 4, ..SearchConfig::default() };
        let whole = run(&toy, config, 300, seed, &mut Hashed).result();
        let search = run(&toy, SearchConfig { early_stop: true, ..config }, 300, seed, &mut Hashed);
        let short = search.result();
        assert_eq!(whole.action, short.action);
        let done = search.stats().simulations;
        match short.stop {
            Stop::Decided => saved += 300 - done,
            stop => assert!(stop == Stop::Simulations && done == 300),
        }
        // A lone action is decided once it was tried, by the first round.
        assert!(whole.actions.len() > 1 || (1..=config.eval_batch as u64).contains(&done));
    }
    assert!(saved > 10_000, "{saved} simulations saved");
}

#[test]
fn a_full_tree_is_searched_on_without_growing() {
    let mut unexpanded = 0;
    for seed in 0..60 {
        for eval_batch in [1, 8] {
            for max_nodes in [1, 20, 60] {
                let toy = Toy::random(seed, 9, true);
                let bytes = max_nodes * size_of::<azpy_core::tree::Node>();
                let max_memory_mb = Some(bytes as f64 / f64::from(1 << 20));
                let config = SearchConfig { eval_batch, max_memory_mb, ..SearchConfig::default() };
                let mut search = run(&toy, config, 500, seed, &mut Hashed);
                let result = search.result();
                assert_eq!(result.visits.iter().sum::<u32>(), 500);
                let widest = max_nodes.max(1 + result.actions.len());
                assert!(search.tree().nodes().len() <= widest, "{} nodes", search.tree().nodes().len());
                let whole = run(&toy, SearchConfig { max_memory_mb: None, ..config }, 500, seed, &mut Hashed);
                if whole.tree().nodes().len() <= max_nodes {
                    assert_eq!((search.stats().unexpanded, &result), (0, &whole.result()));
                }
                unexpanded += search.stats().unexpanded;
                for node in search.tree().nodes() {
                    assert!(node.in_flight == 0 && node.kind != Kind::Pending && node.mean().abs() <= 1.0 + 1e-6);
                }
                // Where the root moves there is room again, and what stands in the tree is used.
                while let (Some(action), Turn::Player(_)) = (search.result().action, search.root().turn()) {
                    search.advance(action);
                    if !matches!(search.root().turn(), Turn::Player(_)) {
                        break;
                    }
                    let before = search.result().visits.iter().sum::<u32>();
                    finish(&mut search, 50, &[seed], &mut Hashed);
                    assert_eq!(search.result().visits.iter().sum::<u32>(), before + 50);
                }
            }
        }
    }
    assert!(unexpanded > 10_000, "only {unexpanded} leaves found no room");
}

/// Notes the largest batch.
struct Widest(Hashed, usize);

impl<G: Game> Evaluator<G> for Widest {
    type Error = Infallible;
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        self.1 = self.1.max(batch.rows());
        self.0.evaluate_batch(batch)
    }
}

#[test]
fn leaves_in_flight_are_a_share_of_the_visits_there_are() {
    for seed in 0..20 {
        let toy = Toy::random(seed, 9, false);
        let config = SearchConfig { eval_batch: 32, in_flight_share: Some(0.1), ..SearchConfig::default() };
        for (simulations, most) in [(15, 1), (49, 4), (400, 32)] {
            let mut evaluator = Widest(Hashed, 0);
            run(&toy, config, simulations, seed, &mut evaluator);
            assert!(evaluator.1 <= most, "{} leaves at once in {simulations} simulations", evaluator.1);
        }
        // Small trees are searched as one leaf at a time would search them.
        let one = SearchConfig { eval_batch: 1, ..config };
        let visits = |config| run(&toy, config, 19, seed, &mut Hashed).result().visits;
        assert_eq!(visits(config), visits(one));
    }
}

#[test]
fn a_search_that_does_not_explore_has_no_noise() {
    let noise = RootNoise { alpha: Some(0.5), fraction: 0.5 };
    let config = SearchConfig { root_noise: Some(noise), root_temperature: 2.0, ..SearchConfig::default() };
    let mut differ = 0;
    for seed in 0..20 {
        let toy = Toy::random(seed, 8, false);
        let mut quiet = Search::new(toy.clone(), config);
        quiet.set_exploring(false);
        finish(&mut quiet, 400, &[1], &mut Hashed);
        let plain = run(&toy, SearchConfig::default(), 400, 1, &mut Hashed).result();
        assert_eq!(quiet.result(), plain);
        differ += u32::from(run(&toy, config, 400, 1, &mut Hashed).result() != plain);
    }
    assert!(differ > 10, "{differ}");
}

#[test]
fn the_lower_confidence_bound_is_that_of_the_values_backed_up() {
    let mut differ = 0;
    for seed in 0..150 {
        let toy = Toy::random(seed, 8, seed % 2 == 0);
        let config = SearchConfig { eval_batch: 1, lcb: Some(1.5), c_puct: 3.0, ..SearchConfig::default() };
        let search = run(&toy, config, 200, 0, &mut Hashed);
        let mut naive = Naive::new(toy.clone());
        let mut dice = Stream::keyed(&[0]);
        dice.bits();
        let Turn::Player(player) = toy.turn() else { unreachable!() };
        let mut values = vec![Vec::new(); search.result().actions.len()];
        naive.simulate(&config, &mut dice);
        for _ in 0..200 {
            let before = naive.visits();
            let value = f64::from(naive.simulate(&config, &mut dice).0);
            let tried = naive.visits().iter().zip(&before).position(|(now, then)| now > then).unwrap();
            values[tried].push(if player == Player::Zero { value } else { -value });
        }
        let most = values.iter().map(Vec::len).max().unwrap() as f64;
        let bound = |values: &Vec<f64>| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
            if n < 2.0 || n < 0.1 * most { f64::NEG_INFINITY } else { mean - 1.5 * (variance / n).sqrt() }
        };
        let bounds: Vec<f64> = values.iter().map(bound).collect();
        let best = (0..bounds.len()).fold(0, |best, i| if bounds[i] > bounds[best] { i } else { best });
        let result = search.result();
        assert_eq!(result.action, Some(result.actions[best]));
        differ += u32::from(values[best].len() as f64 != most);
    }
    assert!(differ > 5, "the bound never disagreed with the visits");
}

#[test]
fn gumbel_considers_no_more_actions_than_it_may() {
    for seed in 0..40 {
        let toy = Toy::random(seed, 8, true);
        for gumbel_actions in [1, 2, 3, 16] {
            for simulations in [1, 2, 5, 32, 100] {
                let config = SearchConfig { eval_batch: 1, gumbel_actions, ..SearchConfig::default() };
                let visits = run(&toy, config, simulations, seed, &mut Hashed).result().visits;
                assert!(visits.iter().filter(|&&n| n > 0).count() <= gumbel_actions);
            }
        }
    }
}

#[test]
fn a_second_gumbel_search_of_a_tree_halves_anew() {
    let toy = Toy::random(7, 8, false);
    let config = SearchConfig { eval_batch: 1, gumbel_actions: 16, ..SearchConfig::default() };
    let mut search = run(&toy, config, 16, 3, &mut Hashed);
    let before = search.result().visits;
    finish(&mut search, before.len() as u32, &[4], &mut Hashed);
    check_tree(&search);
    // As many simulations as actions: one each, however many they had.
    let gained: Vec<u32> = search.result().visits.iter().zip(&before).map(|(now, then)| now - then).collect();
    assert!(gained.iter().all(|&n| n == 1), "{gained:?}");
}

#[test]
fn draws_that_are_given_take_the_place_of_random_ones() {
    let toy = Toy::random(3, 8, false);
    let config = SearchConfig { eval_batch: 1, gumbel_actions: 1, ..SearchConfig::default() };
    let actions = run(&toy, config, 0, 0, &mut Hashed).result().actions;
    for favourite in 0..actions.len() {
        let mut search = Search::new(toy.clone(), config);
        let mut draws = vec![0.0; actions.len()];
        draws[favourite] = 100.0;
        search.set_gumbel_draws(&draws);
        finish(&mut search, 10, &[1], &mut Hashed);
        assert_eq!(search.result().visits[favourite], 10);
        assert_eq!(search.result().action, Some(actions[favourite]));
    }
}

#[test]
fn an_interrupted_search_has_evaluated_its_root_and_can_go_on() {
    let toy = Toy::random(2, 8, false);
    let mut search = Search::new(toy, SearchConfig::default());
    search.begin(u32::MAX, Stream::keyed(&[1])).unwrap();
    search.interrupt();
    while Rounds::new(Workers::Serial, None).run(std::slice::from_mut(&mut search), &mut Hashed).unwrap() {}
    let result = search.result();
    assert!(result.action.is_some() && result.visits.iter().all(|&n| n == 0));
    assert_eq!(result.stop, Stop::Interrupted);
    finish(&mut search, 30, &[1], &mut Hashed);
    assert_eq!(search.result().visits.iter().sum::<u32>(), 30);
    assert_eq!(search.result().stop, Stop::Simulations);
}
