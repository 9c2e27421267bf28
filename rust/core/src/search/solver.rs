//! Proven values: what follows for a position from finished games below it (MCTS-solver, Winands, Björnsson and Saito
//! 2008, with draws and dice). With one player, or with two and zero sum: there one number says what everybody gets.
//!
//! A decision is proven when an action wins for certain, or when all its children are proven: then it is worth the best
//! of them. A roll is proven when all its outcomes are: then it is worth their expectation. The visits that a proven
//! node had are taken to have found its value, so that `value_sum / visits` says it exactly, and the sums above it are
//! corrected by as much (as lc0 does).

use crate::game::{Player, Pov, PovValue, Value};
use crate::search::tree::{Kind, LONGEST_PROOF, Node, NodeId, Tree};

/// The value of a whole win, which nothing exceeds.
const WIN: f32 = 1.0;

/// The proven value of a node, as its `value_sum` sees it.
pub(crate) fn proven_value(node: &Node) -> Option<f32> {
    (node.proof != 0).then(|| node.mean() as f32)
}

/// Ends a simulation. A descent that was under way when a node above its leaf was proven counts there as what was
/// proven.
pub(crate) fn ascend(tree: &mut Tree, path: &[NodeId], value: Value) {
    let known: Vec<(usize, Value)> = (0..path.len())
        .filter_map(|at| {
            let exact = PovValue(proven_value(tree.node(path[at]))?);
            Some((at, exact.absolute(chooser(tree, path, at))))
        })
        .collect();
    tree.ascend(path, value);
    for (at, exact) in known.into_iter().rev() {
        let plies = usize::from(tree.node(path[at]).proof) - 1;
        tree.settle(&path[..=at], exact, plies);
    }
}

/// Records that the game ends at most `plies` after the last node of `path` with `value`, and proves what follows
/// from that above.
pub(crate) fn prove(tree: &mut Tree, path: &[NodeId], mut value: Value, mut plies: usize) {
    for at in (0..path.len()).rev() {
        if tree.node(path[at]).proof != 0 {
            return;
        }
        tree.settle(&path[..=at], value, plies);
        let Some(above) = at.checked_sub(1).and_then(|above| follows(tree, path[above])) else {
            return;
        };
        (value, plies) = above;
    }
}

/// Whose view the node at `at` is in.
fn chooser(tree: &Tree, path: &[NodeId], at: usize) -> Player {
    at.checked_sub(1).map_or(Player::Zero, |above| tree.node(path[above]).kind.view())
}

/// The value of a node for player 0 and the plies to the end, if they follow from its children.
fn follows(tree: &Tree, id: NodeId) -> Option<(Value, usize)> {
    let children = tree.children(id);
    match tree.node(id).kind {
        Kind::Decision(player) => {
            let best = best_proven(children)?;
            let value = proven_value(&children[best])?;
            if value < WIN && children.iter().any(|child| child.proof == 0) {
                return None;
            }
            Some((PovValue(value).absolute(player), plies_after(&children[best])))
        }
        Kind::Chance => {
            // Skip outcomes of probability 0.
            let possible = || children.iter().filter(|child| child.prior > 0.0);
            let (mut sum, mut weights) = (0.0, 0.0);
            for child in possible() {
                sum += f64::from(child.prior) * f64::from(proven_value(child)?);
                weights += f64::from(child.prior);
            }
            Some((Value((sum / weights) as f32), possible().map(plies_after).max()?))
        }
        Kind::New | Kind::Pending | Kind::Terminal => None,
    }
}

/// The best proven child for the player who chooses: the soonest win, else the latest end.
pub(crate) fn best_proven(children: &[Node]) -> Option<usize> {
    let rank = |child: &Node| {
        let value = proven_value(child)?;
        let plies = i32::from(child.proof);
        Some((value, if value > 0.0 { -plies } else { plies }))
    };
    let mut best: Option<(usize, (f32, i32))> = None;
    for (index, child) in children.iter().enumerate() {
        if let Some(found) = rank(child)
            && best.is_none_or(|(_, highest)| found > highest)
        {
            best = Some((index, found));
        }
    }
    best.map(|(index, _)| index)
}

fn plies_after(child: &Node) -> usize {
    usize::from(child.proof.min(LONGEST_PROOF - 1))
}
