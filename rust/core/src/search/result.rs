//! What a search reports: the action to play, the policy to learn, and what it thought of each action.

use super::{Search, Stop};
use crate::game::{Action, Game, Payoff, Player, Turn};
use crate::search::gumbel::{self, Choice};
use crate::search::solver::best_proven;
use crate::search::spread::standard_error;
use crate::search::tree::{Kind, Node, NodeId, ROOT, Tree};

/// With `lcb`, actions with less than this share of the most visits are not played, however good they look.
const LCB_SHARE: f64 = 0.1;

/// What a search found. All vectors are `[L]`, one entry a legal action, ascending by action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// The legal actions; empty at a finished game.
    pub actions: Vec<Action>,
    /// Simulations through each.
    pub visits: Vec<u32>,
    /// Priors without root noise.
    pub priors: Vec<f32>,
    /// Mean value of each for the player to move; 0 for an action without visits.
    pub q: Vec<f32>,
    /// 0, or 1 + the plies in which the game is proven to end with this value after the action.
    pub proofs: Vec<u8>,
    /// The policy to learn from this search; sums to 1. Shares of the visits (those of a proven action are from before it
    /// was proven: it is not searched again), or with Gumbel the improved policy, all on the chosen action where the root
    /// is proven. Without visits, the priors. In a game that hides something, see [`Search::roll_out`].
    pub target: Vec<f32>,
    /// Mean value of the root for the player to move, its own evaluation included; at a finished game the outcome
    /// for player 0, and at a chance turn (after `advance`) the mean value for player 0.
    pub value: f32,
    /// `[P]` the same for each player, player 0 first.
    pub values: Vec<f32>,
    /// 0, or 1 + the plies in which the game is proven to end with this value.
    pub proof: u8,
    /// The action to play: a proven win; else the most visited (then higher prior, then lower action), or what the lower
    /// confidence bound or the Gumbel rule says; or a proven draw or loss if that is better.
    pub action: Option<Action>,
    /// The line that `action` begins, most visited from there on, up to the first chance turn.
    pub principal_variation: Vec<Action>,
    /// Plies of the longest descent since `begin`, rolls counted.
    pub depth: usize,
    /// Why the search ended.
    pub stop: Stop,
}

impl<G: Game> Search<G> {
    /// What is known so far.
    #[must_use]
    pub fn result(&self) -> SearchResult {
        let root = self.tree.node(ROOT);
        let Turn::Player(player) = self.position.turn() else {
            let over = self.position.turn() == Turn::Terminal;
            let values = if over { self.position.outcome().each().numbers().to_vec() } else { self.root_values() };
            return SearchResult { value: values[0], values, stop: self.run.stop, ..SearchResult::default() };
        };
        if let Some(mirror) = &self.mirror {
            return self.views_result(mirror, player);
        }
        let children = self.tree.children(ROOT);
        let improved = self.config.gumbel().map(|rule| self.root.halving.improved_logits(&self.choice(), rule));
        let (chosen, values) = (self.chosen(improved.as_deref()), self.root_values());
        SearchResult {
            actions: children.iter().map(|child| child.action).collect(),
            visits: children.iter().map(|child| child.visits).collect(),
            priors: self.root.clean_priors.clone(),
            q: children.iter().map(|child| child.mean() as f32).collect(),
            proofs: children.iter().map(|child| child.proof).collect(),
            target: self.target(chosen, improved),
            value: values[player.index()],
            values,
            proof: root.proof,
            action: chosen.map(|index| children[index].action),
            principal_variation: chosen.map_or_else(Vec::new, |chosen| self.principal_variation(chosen)),
            depth: self.run.depth,
            stop: self.run.stop,
        }
    }

    /// `[P]` mean value of the root for each player; 0 without visits.
    fn root_values(&self) -> Vec<f32> {
        let visits = f64::from(self.tree.node(ROOT).visits.max(1));
        let mean = |&player: &Player| (self.tree.sum_for(ROOT, player, Player::Zero) / visits) as f32;
        Player::ALL[..self.position.num_players()].iter().map(mean).collect()
    }

    /// The line that the chosen action begins.
    fn principal_variation(&self, chosen: usize) -> Vec<Action> {
        let first = self.tree.node(ROOT).first_child + chosen as NodeId;
        if self.tree.node(first).visits == 0 {
            return Vec::new();
        }
        std::iter::once(self.tree.node(first).action).chain(line(&self.tree, first)).collect()
    }

    /// The index of the action to play. `improved` are the improved logits of Gumbel's rule.
    fn chosen(&self, improved: Option<&[f64]>) -> Option<usize> {
        let children = self.tree.children(ROOT);
        match (improved, self.config.lcb) {
            (Some(improved), _) => with_proofs(children, self.root.halving.choose(children, improved), true),
            (None, Some(deviations)) => with_proofs(children, highest_bound(&self.tree, deviations), true),
            (None, None) => with_proofs(children, most_visited(children), false),
        }
    }

    /// The root's children as Gumbel's rule wants them.
    fn choice(&self) -> Choice<'_> {
        // The root's own sum is in player 0's view.
        let player = self.tree.node(ROOT).kind.view();
        Choice::at(&self.tree, ROOT, player, Player::Zero, self.position.num_actions())
    }

    fn target(&self, chosen: Option<usize>, improved: Option<Vec<f64>>) -> Vec<f32> {
        let children = self.tree.children(ROOT);
        if let Some(mut weights) = improved {
            if self.tree.node(ROOT).proof != 0 {
                // The sum of a proven node no longer equals its own evaluation plus its children's.
                return (0..children.len()).map(|index| f32::from(u8::from(Some(index) == chosen))).collect();
            }
            gumbel::softmax(&mut weights);
            return weights.into_iter().map(|weight| weight as f32).collect();
        }
        let total: f64 = children.iter().map(|child| f64::from(child.visits)).sum();
        if total > 0.0 {
            children.iter().map(|child| (f64::from(child.visits) / total) as f32).collect()
        } else {
            self.root.clean_priors.clone()
        }
    }
}

/// The most visited line from a node on, up to the first chance turn.
pub(crate) fn line(tree: &Tree, mut id: NodeId) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Kind::Decision(_) = tree.node(id).kind {
        let children = tree.children(id);
        let Some(best) = with_proofs(children, most_visited(children), false) else {
            break;
        };
        id = tree.node(id).first_child + best as NodeId;
        if tree.node(id).visits == 0 {
            break;
        }
        actions.push(tree.node(id).action);
    }
    actions
}

/// Most visits, then higher prior, then lower action.
pub(super) fn most_visited(children: &[Node]) -> Option<usize> {
    let better = |a: &Node, b: &Node| a.visits > b.visits || (a.visits == b.visits && a.prior > b.prior);
    (0..children.len()).reduce(|best, index| if better(&children[index], &children[best]) { index } else { best })
}

/// What to play where some children may be proven: a win; else the choice among the others, unless what is proven is
/// better. `by_value`: whether the choice was made by values and not by visits alone.
fn with_proofs(children: &[Node], chosen: Option<usize>, by_value: bool) -> Option<usize> {
    let Some(proven) = best_proven(children) else {
        return chosen;
    };
    let open = |index: &usize| children[*index].proof == 0;
    // The proven action is better than the open ones, and is not a loss.
    if by_value && chosen.is_some_and(|index| !open(&index)) && children[proven].mean() > -1.0 {
        return Some(proven);
    }
    // A proven action gets no more visits, so compare with the most visited of the others.
    let other = chosen.filter(open).or_else(|| {
        let others = (0..children.len()).filter(open);
        others.reduce(|best, index| if children[index].visits > children[best].visits { index } else { best })
    });
    match other {
        // Any action is at least as good as a proven loss.
        Some(other) if children[proven].mean() <= -1.0 => Some(other),
        Some(other) if children[other].visits > 0 && children[other].mean() > children[proven].mean() => Some(other),
        _ => Some(proven),
    }
}

/// The highest `Q - deviations * standard error` among those with enough visits. The most visited, where no child has
/// enough visits or one of those has no standard error: its bound cannot be compared with the others.
fn highest_bound(tree: &Tree, deviations: f64) -> Option<usize> {
    let (root, children) = (tree.node(ROOT), tree.children(ROOT));
    let most = children.iter().map(|child| child.visits).max()?;
    let mut best: Option<(usize, f64)> = None;
    for (index, child) in children.iter().enumerate() {
        if child.visits < 2 || f64::from(child.visits) < LCB_SHARE * f64::from(most) {
            continue;
        }
        let error = standard_error(tree, root.first_child + index as NodeId, root.kind.view());
        if error.is_nan() {
            return most_visited(children);
        }
        let bound = child.mean() - deviations * error;
        if best.is_none_or(|(_, highest)| bound > highest) {
            best = Some((index, bound));
        }
    }
    best.map_or_else(|| most_visited(children), |(index, _)| Some(index))
}
