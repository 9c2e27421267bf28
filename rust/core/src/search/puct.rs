//! The search's arithmetic: which child to descend to, and priors from logits. Pure functions of what they are given.

use crate::config::{Fpu, SearchConfig};
use crate::game::Player;
use crate::search::tree::{Node, NodeId, ROOT, Tree};

/// The child that maximises `Q + U`; ties go to the lowest action.
///
/// For a child with n visits, value sum W seen by the player who chooses, prior P and f descents in flight, below a
/// node with N visits and F in flight (this descent not yet counted):
/// `Q = (W - v f) / (n + v f)`, `U = c P sqrt(N + F) / (1 + n + f)` (PUCT as in AlphaZero, Silver et al. 2018;
/// virtual loss v as in Chaslot et al. 2008).
///
/// With `forced` k > 0, a child that was visited but has fewer than `sqrt(k P n)` of the n visits below the node comes
/// first (forced playouts, KataGo, Wu 2019, section 3.2). With a solver, proven children are passed over. `PLAIN`: neither
/// is asked for, nor a c that grows with the spread of values.
#[inline]
pub(crate) fn select<const PLAIN: bool>(
    tree: &Tree,
    id: NodeId,
    player: Player,
    chooser: Player,
    config: &SearchConfig,
    forced: f64,
) -> NodeId {
    let node = tree.node(id);
    let children = tree.children(id);
    let total = f64::from(node.visits + node.in_flight);
    let c = exploration::<PLAIN>(tree, id, config);
    let parent_q = || tree.sum_for(id, player, chooser) / f64::from(node.visits.max(1));
    let fpu = match config.fpu {
        Fpu::Zero => 0.0,
        Fpu::Parent => parent_q(),
        Fpu::Reduction(reduction) => {
            let tried = children.iter().filter(|child| child.visits + child.in_flight > 0);
            parent_q() - reduction * tried.map(|child| f64::from(child.prior)).sum::<f64>().sqrt()
        }
    };
    let scale = c * total.sqrt();
    let best = if !PLAIN && (config.solver || forced > 0.0) {
        best_child_allowed(children, scale, config.virtual_loss, fpu, forced)
    } else if node.in_flight == 0 && node.visits < SMALL {
        best_child_of_few(children, scale, fpu)
    } else {
        best_child(children, scale, config.virtual_loss, fpu)
    };
    node.first_child + best as NodeId
}

/// c(s) at a node: constant, or growing with its visits, or with the spread of the values below it.
#[inline]
fn exploration<const PLAIN: bool>(tree: &Tree, id: NodeId, config: &SearchConfig) -> f64 {
    let node = tree.node(id);
    let c = match config.c_puct_base {
        None => config.c_puct,
        Some(base) => config.c_puct + ((1.0 + f64::from(node.visits + node.in_flight) + base) / base).ln(),
    };
    if PLAIN {
        return c;
    }
    let player = node.kind.view();
    // Of two players either one's sum will do: its sign does not count.
    let factor = |squares| spread_factor(node, tree.sum_for(id, player, player), squares, config.c_puct_stdev);
    tree.squares(id).map_or(c, |squares| c * factor(squares))
}

/// `1 + scale (stdev / typical - 1)`, where the variance is that of the values backed up so far with [`FAITH`] visits'
/// worth of a typical one mixed in (KataGo's dynamic variance-scaled cPUCT and its constants).
fn spread_factor(node: &Node, sum: f64, squares: f64, scale: f64) -> f64 {
    const TYPICAL: f64 = 0.4;
    const FAITH: f64 = 2.0;
    let visits = f64::from(node.visits);
    let mean = sum / visits.max(1.0);
    let variance = (squares / visits.max(1.0) - mean * mean).max(0.0);
    let mixed = (FAITH * TYPICAL * TYPICAL + visits * variance) / (FAITH + visits);
    1.0 + scale * (mixed.sqrt() / TYPICAL - 1.0)
}

#[inline]
fn score(child: &Node, scale: f64, virtual_loss: f64, fpu: f64) -> f64 {
    let (visits, in_flight) = (f64::from(child.visits), f64::from(child.in_flight));
    let lost = virtual_loss * in_flight;
    let known = visits + lost;
    // No branch, as it would be guessed wrong: an untried child has 0 / tiny = 0 for its first term.
    let q = (child.value_sum - lost) / known.max(f64::MIN_POSITIVE);
    let untried = if known > 0.0 { 0.0 } else { fpu };
    q + untried + scale * (f64::from(child.prior) / (1.0 + visits + in_flight))
}

fn best_child(children: &[Node], scale: f64, virtual_loss: f64, fpu: f64) -> usize {
    let (mut best, mut best_score) = (0, f64::NEG_INFINITY);
    for (index, child) in children.iter().enumerate() {
        let score = score(child, scale, virtual_loss, fpu);
        if score > best_score {
            (best, best_score) = (index, score);
        }
    }
    best
}

fn best_child_allowed(children: &[Node], scale: f64, virtual_loss: f64, fpu: f64, forced: f64) -> usize {
    let begun = |child: &Node| child.visits + child.in_flight;
    let below = f64::from(children.iter().map(begun).sum::<u32>());
    let (mut best, mut best_score) = (0, f64::NEG_INFINITY);
    for (index, child) in children.iter().enumerate().filter(|(_, child)| child.proof == 0) {
        if forced > 0.0 && begun(child) > 0 && f64::from(begun(child)) < forced_visits(child, forced, below) {
            return index;
        }
        let score = score(child, scale, virtual_loss, fpu);
        if score > best_score {
            (best, best_score) = (index, score);
        }
    }
    best
}

/// `sqrt(k P n)`: what a child gets at least of the n visits below its parent.
fn forced_visits(child: &Node, k: f64, below: f64) -> f64 {
    (k * f64::from(child.prior) * below).sqrt()
}

/// The root's visits without those that only `forced_visits` brought, `[L]` (policy target pruning, KataGo, Wu 2019,
/// section 3.2): of each child but the most visited, as many as were forced are taken away, as long as the formula
/// would still not have chosen it before the most visited one; what is left with a single visit is left out.
pub(crate) fn pruned_visits(tree: &Tree, most_visited: usize, config: &SearchConfig) -> Vec<f64> {
    let (root, children) = (tree.node(ROOT), tree.children(ROOT));
    let below = f64::from(children.iter().map(|child| child.visits).sum::<u32>());
    let scale = exploration::<false>(tree, ROOT, config) * f64::from(root.visits).sqrt();
    let best = score(&children[most_visited], scale, 0.0, 0.0);
    let pruned = |(index, child): (usize, &Node)| {
        let visits = f64::from(child.visits);
        if index == most_visited || child.visits == 0 {
            return visits;
        }
        // Its score reaches the best one's at this many visits, if it falls short of it at all.
        let needed = match best - child.mean() {
            ahead if ahead > 0.0 => scale * f64::from(child.prior) / ahead - 1.0,
            _ => f64::INFINITY,
        };
        let left = (visits - forced_visits(child, config.forced_visits, below)).max(needed).min(visits);
        if left > 1.0 { left } else { 0.0 }
    };
    children.iter().enumerate().map(pruned).collect()
}

/// As [`best_child`] where nothing is in flight and the parent has fewer than [`SMALL`] visits. The same formula, with
/// the divisions looked up: they were half of the search's time (November 2026).
fn best_child_of_few(children: &[Node], scale: f64, fpu: f64) -> usize {
    let (mut best, mut best_score) = (0, f64::NEG_INFINITY);
    for (index, child) in children.iter().enumerate() {
        // Children have fewer visits than their parent; the mask spares the check of the index.
        let visits = (child.visits & (SMALL - 1)) as usize;
        let untried = if visits == 0 { fpu } else { 0.0 };
        let q = child.value_sum * RECIPROCALS[visits] + untried;
        let score = q + scale * (f64::from(child.prior) * RECIPROCALS[visits + 1]);
        if score > best_score {
            (best, best_score) = (index, score);
        }
    }
    best
}

const SMALL: u32 = 1024;

/// 1 / n, and 0 for 0: the value sum of an untried child is 0 too.
static RECIPROCALS: [f64; SMALL as usize + 1] = {
    let mut table = [0.0; SMALL as usize + 1];
    let mut n = 1;
    while n < table.len() {
        table[n] = 1.0 / n as f64;
        n += 1;
    }
    table
};

/// Priors from raw logits; all of them finite.
pub(crate) fn softmax(logits: &[f32], priors: &mut Vec<f32>) {
    priors.clear();
    // Not `f32::max`, which takes care of NaN: there is none.
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, larger);
    if logits.iter().all(|&logit| logit == highest) {
        // What the lines below would give, without the exponentials: uniform and rollout evaluators end here.
        priors.resize(logits.len(), 1.0 / logits.len() as f32);
        return;
    }
    let mut sum = 0.0;
    priors.extend(logits.iter().map(|&logit| {
        let weight = (logit - highest).exp();
        sum += weight;
        weight
    }));
    // The largest weight is exactly 1, so the sum is never 0.
    let scale = 1.0 / sum;
    priors.iter_mut().for_each(|prior| *prior *= scale);
}
