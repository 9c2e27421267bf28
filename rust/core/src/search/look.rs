//! A look at a finished search: how its values scatter, the lines it found, and the part of its tree worth drawing.
//!
//! Everything is read from the tree on request, so a search itself pays nothing. Nothing may
//! be in flight. Nothing here changes a tree, and nothing knows how a child is chosen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::game::{Action, Game, Payoff, Player, Turn};
use crate::search::line;
pub use crate::search::spread::standard_errors;
use crate::search::tree::{Kind, Node, NodeId, ROOT, Tree};

/// One of the root's actions and the line that it leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// The action, and the most visited ones after it up to the first chance turn.
    pub actions: Vec<Action>,
    /// Simulations through the action.
    pub visits: u32,
    /// Mean value of the action for the player to move at the root.
    pub q: f32,
    /// `[P]` the same for each player, player 0 first; empty where they follow from `q`: with one player, or with two and
    /// zero sum.
    pub values: Vec<f32>,
}

/// The lines of the `count` most visited actions of the root, each of at most `length` actions; none of actions
/// without visits. In order: most visits, then higher prior, then lower action, as a search chooses.
#[must_use]
pub fn variations(tree: &Tree, count: usize, length: usize) -> Vec<Variation> {
    let root = tree.node(ROOT);
    let Kind::Decision(_) = root.kind else {
        return Vec::new();
    };
    let mut actions: Vec<(NodeId, &Node)> =
        (root.first_child..).zip(tree.children(ROOT)).filter(|(_, child)| child.visits > 0).collect();
    // A stable sort: what is equal stays ascending by action.
    actions.sort_by(|(_, a), (_, b)| b.visits.cmp(&a.visits).then(b.prior.total_cmp(&a.prior)));
    let variation = |&(id, child): &(NodeId, &Node)| Variation {
        actions: std::iter::once(child.action).chain(line(tree, id)).take(length).collect(),
        visits: child.visits,
        q: (child.value_sum / f64::from(child.visits)) as f32,
        values: tree.sums(id).iter().map(|sum| (sum / f64::from(child.visits)) as f32).collect(),
    };
    actions.iter().take(count).map(variation).collect()
}

/// A node of a tree's picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Where in the list its parent is, always before it; none for the root.
    pub parent: Option<usize>,
    /// Plies below the root, chance outcomes counted.
    pub depth: usize,
    /// What a person calls the action or the outcome that leads here; empty at the root.
    pub name: String,
    /// Whose turn it is here.
    pub turn: Turn,
    /// Whose view `q` is in: that of who chose the action, player 0's below a roll. At the root that of the player to
    /// move, and player 0's where there is none.
    pub view: Player,
    /// Finished simulations through here.
    pub visits: u32,
    /// Mean value; at a finished root the outcome, and 0 at a root that was never evaluated.
    pub q: f32,
    /// Prior of the action as the search used it (at the root's actions with its noise), or the outcome's probability.
    pub prior: f32,
    /// Whether the principal variation goes through the action that leads here.
    pub on_principal_variation: bool,
    /// Visited children that are not in the list.
    pub left_out: usize,
}

/// The part of a tree worth drawing: of the visited nodes down to `depth` the `max_nodes` most visited, in that order.
/// A node comes after its parent and children in the order of their visits; equals in the order of expansion, then by
/// action.
///
/// `root` is the position of the tree's root; the positions below are played out from it. `principal_variation` is
/// the search's, from the root on. `name` says what an action is called at a position.
pub fn picture<G: Game>(
    root: &G,
    tree: &Tree,
    principal_variation: &[Action],
    max_nodes: usize,
    depth: usize,
    name: impl Fn(&G, Action) -> String,
) -> Vec<Shown> {
    let (mut shown, mut states) = (Vec::<Shown>::new(), Vec::<G>::new());
    // No child has more visits than its parent, so the most visited node that is not drawn yet is among the children of
    // those that are.
    let mut waiting = BinaryHeap::from([(tree.node(ROOT).visits, Reverse(ROOT), None)]);
    while shown.len() < max_nodes {
        let Some((visits, Reverse(id), parent)) = waiting.pop() else {
            break;
        };
        let node = tree.node(id);
        let mean = if visits == 0 { 0.0 } else { (node.value_sum / f64::from(visits)) as f32 };
        let mut next = Shown {
            parent,
            depth: 0,
            name: String::new(),
            turn: Turn::Terminal,
            view: Player::Zero,
            visits,
            q: mean,
            prior: node.prior,
            on_principal_variation: false,
            left_out: 0,
        };
        let state = match parent {
            None => {
                next.turn = root.turn();
                next.view = mover(next.turn);
                // A search does not visit a root at which the game is over.
                next.q = match next.turn {
                    Turn::Terminal => root.outcome().of(Player::Zero),
                    _ => (tree.sum_for(ROOT, next.view, Player::Zero) / f64::from(visits.max(1))) as f32,
                };
                root.clone()
            }
            Some(parent) => {
                let above: &mut Shown = &mut shown[parent];
                above.left_out -= 1;
                let mut state = states[parent].clone();
                next.depth = above.depth + 1;
                next.on_principal_variation = (above.depth == 0 || above.on_principal_variation)
                    && principal_variation.get(above.depth) == Some(&node.action);
                next.view = mover(above.turn);
                next.name = name(&state, node.action);
                state.play(node.action);
                next.turn = state.turn();
                state
            }
        };
        for (id, child) in (node.first_child..).zip(tree.children(id)).filter(|(_, child)| child.visits > 0) {
            next.left_out += 1;
            if next.depth < depth {
                waiting.push((child.visits, Reverse(id), Some(shown.len())));
            }
        }
        shown.push(next);
        states.push(state);
    }
    shown
}

/// In whose view values are at a position: the player to move, or player 0.
fn mover(turn: Turn) -> Player {
    match turn {
        Turn::Player(player) => player,
        Turn::Chance | Turn::Terminal => Player::Zero,
    }
}
