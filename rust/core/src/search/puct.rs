//! The search's arithmetic: which child to descend to. Pure functions of what they are given.

use crate::config::{Fpu, SearchConfig};
use crate::game::Player;
use crate::search::tree::{Node, NodeId, Tree};

/// The child that maximises `Q + U`; ties go to the lowest action.
///
/// For a child with n visits, value sum W seen by the player who chooses, prior P and f descents in flight, below a
/// node with N visits and F in flight (this descent not yet counted):
/// `Q = (W - v f) / (n + v f)`, `U = c P sqrt(N + F) / (1 + n + f)` (PUCT as in AlphaZero, Silver et al. 2018;
/// virtual loss v as in Chaslot et al. 2008).
///
/// With a solver, proven children are passed over. `PLAIN`: there is no solver.
#[inline(always)] // a call costs a tenth of a search's instructions
pub(crate) fn select<const PLAIN: bool>(
    tree: &Tree,
    id: NodeId,
    player: Player,
    chooser: Player,
    config: &SearchConfig,
) -> NodeId {
    let node = tree.node(id);
    let children = tree.children(id);
    let total = f64::from(node.visits + node.in_flight);
    let c = exploration(node, config);
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
    let best = if !PLAIN && config.solver {
        best_child_unproven(children, scale, config.virtual_loss, fpu)
    } else if node.in_flight == 0 && node.visits < SMALL {
        best_child_of_few(children, scale, fpu)
    } else {
        best_child(children, scale, config.virtual_loss, fpu)
    };
    node.first_child + best as NodeId
}

/// c(s) at a node: constant, or growing with its visits.
#[inline]
fn exploration(node: &Node, config: &SearchConfig) -> f64 {
    match config.c_puct_base {
        None => config.c_puct,
        Some(base) => config.c_puct + ((1.0 + f64::from(node.visits + node.in_flight) + base) / base).ln(),
    }
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

fn best_child_unproven(children: &[Node], scale: f64, virtual_loss: f64, fpu: f64) -> usize {
    let (mut best, mut best_score) = (0, f64::NEG_INFINITY);
    for (index, child) in children.iter().enumerate().filter(|(_, child)| child.proof == 0) {
        let score = score(child, scale, virtual_loss, fpu);
        if score > best_score {
            (best, best_score) = (index, score);
        }
    }
    best
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
