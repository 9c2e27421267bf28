//! What a look at a finished search shows is what happened in it.

use crate::common::{Hashed, after, finish, go_on, hashed_answer, moves, run};
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::game::{Game, Player, Pov, PovValue, Turn};
use azpy_core::look::{Shown, picture, standard_errors, variations};
use azpy_core::search::Search;
use azpy_core::toy::Toy;
use azpy_core::tree::{Kind, NodeId, ROOT, Tree};

/// As in a book: the standard deviation of a sample over the root of its size.
fn standard_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt() / n.sqrt()
}

fn assert_errors(found: &[f32], values: &[Vec<f64>]) {
    assert_eq!(found.len(), values.len());
    for (&error, values) in found.iter().zip(values) {
        if values.len() < 2 {
            assert!(error.is_nan(), "{error} of {} values", values.len());
        } else {
            let expected = standard_error(values);
            assert!((f64::from(error) - expected).abs() < 1e-6, "{error} instead of {expected}");
        }
    }
}

/// Plays on along the most visited actions and outcomes to the next player's turn; `None` where there is none.
fn best_way(search: &Search<Toy>) -> Option<Vec<u32>> {
    let (mut search, mut way) = (search.clone(), Vec::new());
    loop {
        let children = search.tree().children(ROOT);
        let best = children.iter().filter(|child| child.visits > 0).max_by_key(|child| child.visits)?.action;
        way.push(best);
        search.advance(best);
        match search.root().turn() {
            Turn::Player(_) => return Some(way),
            Turn::Terminal => return None,
            Turn::Chance => {}
        }
    }
}

/// Every value that was taken up through a node, for player 0: evaluations asked for again, outcomes by the rules, and
/// of a proven node what is proven. `view` is that of the node's value sum.
fn values(tree: &Tree, id: NodeId, state: &Toy, view: Player) -> Vec<f64> {
    let node = tree.node(id);
    if node.proof != 0 {
        let mean = if view == Player::Zero { node.mean() } else { -node.mean() };
        return vec![mean; node.visits as usize];
    }
    let mut found = Vec::new();
    match state.turn() {
        Turn::Terminal => found = vec![f64::from(state.outcome().0); node.visits as usize],
        Turn::Chance => {}
        Turn::Player(player) => {
            let (legal, mut row) = (moves(state), vec![0.0; 3]);
            state.encode(&mut row);
            let value = hashed_answer(&row, &legal, &mut vec![0.0; legal.len()]);
            found.push(f64::from(PovValue(value).absolute(player).0));
        }
    }
    for (id, child) in (node.first_child..).zip(tree.children(id)).filter(|(_, child)| child.visits > 0) {
        found.extend(values(tree, id, &after(state, child.action), mover(state)));
    }
    assert_eq!(found.len(), node.visits as usize);
    found
}

#[test]
fn standard_errors_are_those_of_all_values_below() {
    for seed in 0..100 {
        for (eval_batch, solver) in [(1, false), (8, false), (33, false), (1, true), (8, true)] {
            let toy = Toy::random(seed, 7, seed % 2 == 0);
            let config = SearchConfig { eval_batch, solver, ..SearchConfig::default() };
            let mut search = run(&toy, config, 300, seed, &mut Hashed);
            loop {
                let (tree, root) = (search.tree(), search.root());
                let children = (tree.node(ROOT).first_child..).zip(tree.children(ROOT));
                let all: Vec<Vec<f64>> = children
                    .map(|(id, child)| match child.visits {
                        0 => Vec::new(),
                        _ => values(tree, id, &after(root, child.action), mover(root)),
                    })
                    .collect();
                assert_errors(&standard_errors(tree), &all);
                let Some(way) = best_way(&search) else {
                    break;
                };
                way.into_iter().for_each(|action| search.advance(action));
                go_on(&mut search, 100, seed, &mut Hashed);
            }
        }
    }
}

/// Whether several evaluations of one position below are known by their sum alone: a full tree had no room for it, and
/// perhaps has now.
fn has_summed_evaluations(tree: &Tree, id: NodeId) -> bool {
    let (node, children) = (tree.node(id), tree.children(id));
    let own = node.visits - children.iter().map(|child| child.visits).sum::<u32>().min(node.visits);
    let mut below = (node.first_child..).zip(children);
    node.proof == 0 && (own > 1 && node.kind != Kind::Terminal || below.any(|(id, _)| has_summed_evaluations(tree, id)))
}

#[test]
fn a_node_that_grew_late_has_no_standard_error_and_no_bound() {
    let mut grown = 0;
    for seed in 0..60 {
        let max_memory_mb = Some((40 * 32) as f64 / f64::from(1 << 20)); // 40 nodes of 32 bytes
        let config = SearchConfig { max_memory_mb, lcb: Some(1.0), ..SearchConfig::default() };
        let mut search = run(&Toy::random(seed, 9, true), config, 300, seed, &mut Hashed);
        while let Some(way) = best_way(&search) {
            way.into_iter().for_each(|action| search.advance(action));
            finish(&mut search, 20, &[seed], &mut Hashed);
            let (tree, result) = (search.tree(), search.result());
            let most = *result.visits.iter().max().unwrap();
            let errors = standard_errors(tree);
            for (index, id) in (0..errors.len()).zip(tree.node(ROOT).first_child..) {
                let unknown = has_summed_evaluations(tree, id);
                assert_eq!(errors[index].is_nan(), unknown || result.visits[index] < 2);
                grown += u32::from(unknown && tree.node(id).kind != Kind::New);
                if unknown && result.visits[index] >= most.div_ceil(10) {
                    let action = result.actions.iter().position(|&action| Some(action) == result.action).unwrap();
                    assert_eq!(result.visits[action], most, "bounds that are not all known are not compared");
                }
            }
        }
    }
    assert!(grown > 100, "only {grown} such nodes");
}

#[test]
fn there_is_nothing_to_see_of_a_root_that_was_not_searched() {
    for text in ["-", "?(1:+ 1:-)", "0(+ -)"] {
        let search = Search::new(Toy::parse(text).unwrap(), SearchConfig::default());
        assert!(standard_errors(search.tree()).is_empty());
        assert!(variations(search.tree(), 3, 10).is_empty());
        let shown = shown(&search, 10, 10);
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].turn, search.root().turn());
        assert_eq!(shown[0].q, if text == "-" { -1.0 } else { 0.0 });
    }
}

#[test]
fn a_line_of_100_000_plies_is_searched_without_recursion() {
    let config = SearchConfig { eval_batch: 1, ..SearchConfig::default() };
    let search = run(&Toy::chain(100_000), config, 3_000, 0, &mut Uniform);
    assert_eq!(search.result().principal_variation.len(), 3_000);
    assert_eq!(standard_errors(search.tree()), [0.0]);
    assert_eq!(variations(search.tree(), 1, usize::MAX)[0].actions.len(), 3_000);
    let shown = shown(&search, usize::MAX, usize::MAX);
    assert_eq!(shown.len(), 3_001);
    assert!(shown[1..].iter().all(|node| node.on_principal_variation));
}

#[test]
fn variations_follow_the_most_visited_actions() {
    for seed in 0..100 {
        let toy = Toy::random(seed, 7, seed % 2 == 0);
        let search = run(&toy, SearchConfig::default(), 300, seed, &mut Hashed);
        let result = search.result();
        let all = variations(search.tree(), usize::MAX, usize::MAX);
        assert_eq!(all[0].actions, result.principal_variation);
        assert_eq!(all.len(), result.visits.iter().filter(|&&visits| visits > 0).count());
        assert!(all.windows(2).all(|pair| pair[0].visits >= pair[1].visits));
        for variation in &all {
            let index = result.actions.iter().position(|&action| action == variation.actions[0]).unwrap();
            assert_eq!((variation.visits, variation.q), (result.visits[index], result.q[index]));
            // The rest is the principal variation of the tree below the action.
            let mut below = search.clone();
            below.advance(variation.actions[0]);
            assert_eq!(variation.actions[1..], below.result().principal_variation);
        }
        let short = variations(search.tree(), 2, 1);
        assert_eq!(short.len(), all.len().min(2));
        assert!(short.iter().zip(&all).all(|(short, long)| short.actions == long.actions[..1]));
    }
}

fn shown(search: &Search<Toy>, max_nodes: usize, depth: usize) -> Vec<Shown> {
    let best = search.result().principal_variation;
    let name = |state: &Toy, action| format!("{}, {action}", state.render());
    picture(search.root(), search.tree(), &best, max_nodes, depth, name)
}

/// Every visited node by its line from the root, with its number of visited children.
fn all_nodes(search: &Search<Toy>) -> Vec<(Vec<u32>, NodeId, usize)> {
    let tree = search.tree();
    let mut found = vec![(Vec::new(), ROOT, 0)];
    let mut next = 0;
    while next < found.len() {
        let (line, id, _) = found[next].clone();
        for (id, child) in (tree.node(id).first_child..).zip(tree.children(id)).filter(|(_, child)| child.visits > 0) {
            found.push(([&line[..], &[child.action]].concat(), id, 0));
            found[next].2 += 1;
        }
        next += 1;
    }
    found
}

#[test]
fn a_picture_shows_the_most_visited_nodes_as_they_are() {
    for seed in 0..60 {
        let toy = Toy::random(seed, 6, seed % 2 == 0);
        let search = run(&toy, SearchConfig::default(), 250, seed, &mut Hashed);
        let tree = search.tree();
        for (max_nodes, depth) in [(1, 9), (2, 9), (10, 9), (60, 9), (usize::MAX, 9), (60, 2), (usize::MAX, 0)] {
            let mut all = all_nodes(&search);
            all.retain(|(line, ..)| line.len() <= depth);
            let picture = shown(&search, max_nodes, depth);
            // As many as there can be, and no node that is left out has more visits.
            let mut visits: Vec<u32> = all.iter().map(|&(_, id, _)| tree.node(id).visits).collect();
            visits.sort_unstable_by(|a, b| b.cmp(a));
            visits.truncate(max_nodes);
            assert_eq!(picture.iter().map(|node| node.visits).collect::<Vec<_>>(), visits);
            // Each is the node at the end of a line of its own; the names carry the positions.
            let mut lines: Vec<(Vec<u32>, Toy)> = Vec::new();
            for (index, node) in picture.iter().enumerate() {
                let (line, state) = match node.parent {
                    None => {
                        assert_eq!((index, node.depth), (0, 0));
                        assert_eq!((node.view, node.q), (mover(&toy), search.result().value));
                        (Vec::new(), toy.clone())
                    }
                    Some(parent) => {
                        assert!(parent < index);
                        let (line, state) = lines[parent].clone();
                        let (position, action) = node.name.rsplit_once(", ").unwrap();
                        let action = action.parse().unwrap();
                        assert_eq!(position, state.render());
                        assert_eq!((node.view, node.depth), (mover(&state), picture[parent].depth + 1));
                        ([&line[..], &[action]].concat(), after(&state, action))
                    }
                };
                assert_eq!(node.turn, state.turn());
                let (_, id, children) = all.iter().find(|(other, ..)| *other == line).unwrap();
                let known = tree.node(*id);
                assert_eq!((node.visits, node.prior), (known.visits, known.prior));
                if index > 0 {
                    assert_eq!(node.q, (known.value_sum / f64::from(known.visits)) as f32);
                    assert_eq!(node.on_principal_variation, search.result().principal_variation.starts_with(&line));
                }
                let drawn = picture.iter().filter(|other| other.parent == Some(index)).count();
                assert_eq!(node.left_out, children - drawn);
                lines.push((line, state));
            }
            let mut distinct: Vec<_> = lines.iter().map(|(line, _)| line).collect();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), picture.len());
        }
    }
}

fn mover(state: &Toy) -> Player {
    match state.turn() {
        Turn::Player(player) => player,
        _ => Player::Zero,
    }
}
