//! Games that keep their trees between requests, and roots that offer some actions only.

use std::sync::Arc;

use crate::common::engine::*;
use crate::common::{check_tree, finish, moves};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{GameTree, KEPT_TREES, Request};
use azpy_core::game::{Action, Game, Turn};
use azpy_core::rng::{Stream, mix};
use azpy_core::search::Search;
use azpy_core::toy::Toy;

#[test]
fn a_restricted_root_is_that_of_a_game_with_these_actions_only() {
    let plain = SearchConfig { eval_batch: 1, ..SearchConfig::default() };
    let configs = [
        plain,
        SearchConfig { eval_batch: 4, early_stop: true, ..plain },
        SearchConfig { solver: true, ..plain },
        SearchConfig { lcb: Some(1.0), ..plain },
        SearchConfig { gumbel_actions: 2, ..plain },
    ];
    let mut tried = 0;
    for (seed, config) in (0..40).flat_map(|seed| configs.map(|config| (seed, config))) {
        let root = Asked::new(0, Toy::random(seed, 6, true));
        let legal = moves(&root);
        if !matches!(root.turn(), Turn::Player(_)) || legal.len() < 3 {
            continue;
        }
        let allowed: Vec<Action> = legal.iter().copied().skip(seed as usize % 2).step_by(2).collect();
        let cache = Arc::new(Cache::new(512));
        let mut serving = Serving::new(config, 16, Some(cache));
        // The cache knows the root with all its actions.
        serving.join(root.clone(), request(0, 30));
        serving.finish();
        let mut search = serving.scheduler.search(root.clone());
        search.allow(allowed.clone());
        serving.scheduler.join(search, request(1, 100), serving.evaluator.now);
        // And does not learn what it is without them.
        let ended = serving.finish();
        serving.join(root.clone(), Request { seed: 1, ..request(2, 100) });
        let all = serving.finish();
        assert_eq!(all[0].search.result(), alone(&root, config, 100, 1).result());

        let twin = alone(&Asked { only: Some(allowed.clone()), ..root }, config, 100, 1);
        assert_eq!(ended[0].search.result(), twin.result());
        assert_eq!(twin.result().actions, allowed);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn a_game_keeps_its_tree_and_takes_actions_back() {
    let (mut undone, mut advanced, mut forgotten) = (0, 0, 0);
    for seed in 0..30 {
        let config = one_leaf();
        let root = Asked::new(0, Toy::random(seed, 15, false));
        let mut game_tree: GameTree<Asked, usize> = GameTree::new(root.clone(), config, 5);
        let (mut twin, mut runs) = (vec![Search::new(root, config)], 0);
        let mut serving = Serving::new(config, 16, None);
        let mut stream = Stream::keyed(&[seed]);
        for step in 0..40 {
            let legal = moves(game_tree.position());
            // Forth for a while, then back.
            match stream.bits() % 8 {
                0 | 4..8 if (step >= 22 || stream.bits().is_multiple_of(8)) && game_tree.undo() => {
                    twin.pop();
                    undone += 1;
                }
                1 | 4..8 if !legal.is_empty() => {
                    let action = legal[stream.bits() as usize % legal.len()];
                    game_tree.play(action);
                    let mut next = twin.last().unwrap().clone();
                    next.advance(action);
                    twin.push(next);
                    advanced += 1;
                    if let Some(at) = (twin.len() - 1).checked_sub(KEPT_TREES + 1) {
                        twin[at] = Search::new(twin[at].root().clone(), config);
                        forgotten += 1;
                    }
                }
                2 if !legal.is_empty() => {
                    // A look at one action alone leaves the tree as it is.
                    game_tree.search(request(step, 10), vec![legal[0]]);
                    let (search, asked) = game_tree.next(1).unwrap();
                    serving.scheduler.join(search, asked, serving.evaluator.now);
                    let ended = serving.finish().pop().unwrap();
                    assert_eq!(ended.search.result().actions, [legal[0]]);
                    game_tree.give_back(ended.search, true);
                }
                _ => {
                    game_tree.search(request(step, 20), Vec::new());
                    game_tree.search(request(step, 7), Vec::new());
                    for simulations in [20, 7] {
                        let (search, asked) = game_tree.next(1).unwrap();
                        assert!(game_tree.next(1).is_none(), "one at a time");
                        serving.scheduler.join(search, asked, serving.evaluator.now);
                        let ended = serving.finish().pop().unwrap();
                        let twin = twin.last_mut().unwrap();
                        finish(twin, simulations, &[mix(5), 0, runs], &mut Recording::new());
                        runs += 1;
                        assert_eq!(ended.search.result(), twin.result(), "seed {seed}, step {step}");
                        check_tree(&ended.search);
                        game_tree.give_back(ended.search, true);
                    }
                    assert!(game_tree.next(1).is_none());
                }
            }
        }
    }
    assert!(undone > 50 && advanced > 100 && forgotten > 5, "{undone} {advanced} {forgotten}");
}

#[test]
fn unusable_trees_begin_anew() {
    for why in ["dropped", "unsound", "another network"] {
        let root = Asked::new(0, Toy::random(3, 9, false));
        let mut game_tree: GameTree<Asked, usize> = GameTree::new(root.clone(), one_leaf(), 5);
        let mut serving = Serving::new(one_leaf(), 16, None);
        let mut visits = Vec::new();
        for run in 0..3 {
            if run == 2 && why == "dropped" {
                assert!(game_tree.memory_bytes() > 0);
                game_tree.drop_trees();
                assert_eq!(game_tree.memory_bytes(), 0);
            }
            game_tree.search(request(0, 30), Vec::new());
            let network = 1 + u64::from(run == 2 && why == "another network");
            let (search, asked) = game_tree.next(network).unwrap();
            assert_eq!((asked.seed, asked.run), (5, run), "each search has draws of its own");
            serving.scheduler.join(search, asked, serving.evaluator.now);
            let ended = serving.finish().pop().unwrap();
            visits.push(ended.search.result().visits.iter().sum::<u32>());
            game_tree.give_back(ended.search, run == 0 || why != "unsound");
        }
        assert_eq!(visits, [30, 60, 30]);
    }
}
