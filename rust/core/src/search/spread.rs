//! How the values of a search scatter, read from its tree. Nothing may be in flight.

use crate::game::Player;
use crate::search::tree::{Kind, NodeId, ROOT, Tree};

/// `[L]`: the standard error of the mean value of each of the root's actions. NaN below 2 visits. NaN too where a full
/// tree had no room for a node below the action, and the node was evaluated several times: the tree has only the sum of
/// those values. Empty unless the root is an evaluated position at a player's turn.
///
/// For the values v that n simulations took up through an action, with mean m, it is
/// `sqrt(sum (v - m)^2 / (n (n - 1)))`, as for n independent values. Those of a search are not independent: it goes
/// where earlier ones were good. So it says how much the values scatter, and is no promise about the true one.
#[must_use]
pub fn standard_errors(tree: &Tree) -> Vec<f32> {
    let root = tree.node(ROOT);
    let Kind::Decision(player) = root.kind else {
        return Vec::new();
    };
    (root.first_child..).zip(tree.children(ROOT)).map(|(id, _)| standard_error(tree, id, player) as f32).collect()
}

/// That of one node for `chooser`, who chose it.
pub(crate) fn standard_error(tree: &Tree, id: NodeId, chooser: Player) -> f64 {
    let n = f64::from(tree.node(id).visits);
    if n < 2.0 {
        return f64::NAN;
    }
    (squared_deviations(tree, id, chooser) / (n * (n - 1.0))).sqrt()
}

/// The sum of `(v - m)^2` over the values v for `player` that were taken up through a visited node, m being their mean.
/// `player` chose the node.
///
/// No value is stored; all values follow from the tree. A node's own visits are its visits less those of its children:
/// the one evaluation of a decision node, every visit of a finished game, none of a roll. Their sum is the node's value
/// sum less those of its children, all for one player. NaN where the own visits had several values: a full
/// tree had no room for the node's children, and may have it now.
fn squared_deviations(tree: &Tree, id: NodeId, player: Player) -> f64 {
    let mean = tree.sum_for(id, player, player) / f64::from(tree.node(id).visits);
    let mut sum = 0.0;
    // Not a recursion: lines can be 100,000 plies long.
    let mut waiting = vec![(id, player)];
    while let Some((id, chooser)) = waiting.pop() {
        let node = tree.node(id);
        let below = node.kind.view();
        let (mut own_visits, mut own_sum) = (node.visits, tree.sum_for(id, player, chooser));
        // The visits of a proven node are taken to have found its value, whatever is below it.
        let children = if node.proof == 0 { tree.children(id) } else { &[] };
        for (id, child) in (node.first_child..).zip(children).filter(|(_, child)| child.visits > 0) {
            own_visits -= child.visits;
            own_sum -= tree.sum_for(id, player, below);
            waiting.push((id, below));
        }
        if own_visits > 1 && node.proof == 0 && node.kind != Kind::Terminal {
            return f64::NAN;
        }
        if own_visits > 0 {
            let deviation = own_sum / f64::from(own_visits) - mean;
            sum += f64::from(own_visits) * deviation * deviation;
        }
    }
    sum
}
