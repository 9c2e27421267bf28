//! The search tree: an arena of nodes, and the only code that changes their statistics.
//!
//! ```text
//! nodes:  [ root | children of root | children of some leaf | children of another | ... ]
//!            |       ^  ^  ^
//!            +-------+--+--+  first_child, num_children: one contiguous range, ascending by action
//! ```
//!
//! A node is an action that could be taken together with the position it leads to. It exists, with its prior, from
//! the moment its parent is expanded; its own children exist from the moment it is expanded itself.
//!
//! A node's `in_flight` is, at any time, the number of descents that passed through it and have neither gone up
//! (`ascend`) nor been taken back (`release`). With nothing in flight, an evaluated decision node has 1 + the sum of its
//! children's visits, and a chance node has the sum. There are two exceptions:
//!
//! - A proven node may have more: dice can lead to it again, and a look ahead proves it, without a visit below. Its
//!   `value_sum / visits` is as proven.
//! - A node that found no room for its children in a full tree is evaluated anew at each visit. It keeps these visits if
//!   it gets children later, when the root has moved on and there is room.
//!
//! A node holds one number of the values backed up: the sum for the player who chose the node, which is all that a choice
//! between children needs. Of two players with a zero sum, or of one, every other sum follows from it. Where it does not,
//! the tree keeps the sums for all players beside the nodes.
//!
//! The tree does not know the rules, the formula that chooses, or where values come from.

use crate::game::{Action, Payoff, Player, Value};

/// An index into the arena.
pub type NodeId = u32;

/// The root's index.
pub const ROOT: NodeId = 0;

/// Visits that a node may have. Below the 2^32 that `Node::visits` can count by more than a search has in flight (at
/// most 65,536 leaves and 65,536 collisions), so that `visits + in_flight` does not overflow either.
pub const MOST_VISITS: u32 = u32::MAX - (1 << 18);

/// What is known of the position at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not expanded: never reached by a descent, or its children found no room, or a look ahead proved its value.
    New,
    /// A leaf whose evaluation is under way.
    Pending,
    /// Evaluated; this player chooses among the children.
    Decision(Player),
    /// The children are the outcomes of a roll, their priors the probabilities.
    Chance,
    /// The game is over here.
    Terminal,
}

/// One action and the position it leads to. 32 bytes.
#[derive(Clone, Debug)]
pub struct Node {
    /// Sum of the values backed up through here, from the view of the player who chose this action;
    /// player 0's view at the root and below a chance node. f64: exact to far beyond 2^32 visits of f32 values.
    pub value_sum: f64,
    /// Prior P of the action, or the probability of the outcome.
    pub prior: f32,
    /// Finished simulations through here, at most [`MOST_VISITS`]. The node's own evaluation counts.
    pub visits: u32,
    /// Unfinished descents through here. Kept apart from the statistics, so undoing one leaves no trace.
    pub in_flight: u32,
    /// Where the children begin.
    pub first_child: NodeId,
    /// The action, or the outcome, that leads here.
    pub action: Action,
    /// How many children there are; 0 until the node is expanded.
    pub num_children: u16,
    /// What is known of the position.
    pub kind: Kind,
    /// 0, or 1 + the plies in which the game is proven to end with the node's mean value, at most [`LONGEST_PROOF`].
    /// Only a search with a solver writes it.
    pub proof: u8,
}

/// What `Node::proof` stops counting at.
pub const LONGEST_PROOF: u8 = u8::MAX;

impl Kind {
    /// Whose view the value sums of a node's children are in.
    #[must_use]
    #[inline]
    pub fn view(self) -> Player {
        match self {
            Self::Decision(player) => player,
            _ => Player::Zero,
        }
    }
}

impl Node {
    fn new(action: Action, prior: f32) -> Self {
        Self {
            value_sum: 0.0,
            prior,
            visits: 0,
            in_flight: 0,
            first_child: 0,
            action,
            num_children: 0,
            kind: Kind::New,
            proof: 0,
        }
    }

    /// Mean of the values backed up, as `value_sum` sees them; 0 without visits.
    #[must_use]
    #[inline]
    pub fn mean(&self) -> f64 {
        if self.visits == 0 { 0.0 } else { self.value_sum / f64::from(self.visits) }
    }
}

/// An arena of nodes; index [`ROOT`] is the root.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// The other half of the double buffer that [`Tree::keep_subtree`] copies into.
    spare: Vec<Node>,
    /// Nodes it may have; the root and its children come even so.
    max_nodes: usize,
    /// Sums for each player that every node has beside it: P, or 0 where `Node::value_sum` says enough.
    sums: usize,
    /// What every node has beside it, one after another; empty where that is nothing.
    beside: Vec<f64>,
    spare_beside: Vec<f64>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(usize::MAX, 0)
    }
}

impl Tree {
    /// A root alone, in a tree that has room for `max_nodes` nodes. It keeps the sums of the values of so many players beside
    /// each node. `sums` is 0 with one player, or with two and zero sum.
    #[must_use]
    pub fn new(max_nodes: usize, sums: usize) -> Self {
        // Indices are 32 bits, and one more node may always be expanded.
        let max_nodes = max_nodes.min((u32::MAX - u32::from(u16::MAX)) as usize);
        let (nodes, spare) = (vec![Node::new(0, 1.0)], Vec::new());
        Self { nodes, spare, max_nodes, sums, beside: vec![0.0; sums], spare_beside: Vec::new() }
    }

    /// Forgets everything but the allocated memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.nodes.push(Node::new(0, 1.0));
        self.beside.clear();
        self.beside.resize(self.sums, 0.0);
    }

    /// The node with this index.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The children of an expanded node, ascending by action; none otherwise.
    #[must_use]
    #[inline]
    pub fn children(&self, id: NodeId) -> &[Node] {
        let node = self.node(id);
        let first = node.first_child as usize;
        &self.nodes[first..first + usize::from(node.num_children)]
    }

    /// Every node there is, in the order of expansion.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let beside = self.beside.capacity() + self.spare_beside.capacity();
        (self.nodes.capacity() + self.spare.capacity()) * size_of::<Node>() + beside * size_of::<f64>()
    }

    /// Whether there is room for so many children of one more node.
    #[must_use]
    #[inline]
    pub fn has_room(&self, children: usize) -> bool {
        self.nodes.len() + children <= self.max_nodes
    }

    /// `[P]` the sums for each player of the values backed up through a node; empty where `Node::value_sum` says them all.
    #[must_use]
    pub fn sums(&self, id: NodeId) -> &[f64] {
        &self.beside[id as usize * self.sums..][..self.sums]
    }

    /// The sum of the values backed up through a node for `player`, given who chose the node.
    #[must_use]
    #[inline]
    pub fn sum_for(&self, id: NodeId, player: Player, chooser: Player) -> f64 {
        if self.sums > 0 {
            return self.beside[id as usize * self.sums + player.index()];
        }
        let sum = self.node(id).value_sum;
        if player == chooser { sum } else { -sum }
    }

    /// Notes that a descent passes through the node.
    #[inline]
    pub fn mark(&mut self, id: NodeId) {
        self.nodes[id as usize].in_flight += 1;
    }

    /// Says what the position at an unexpanded node is.
    #[inline]
    pub fn set_kind(&mut self, id: NodeId, kind: Kind) {
        self.nodes[id as usize].kind = kind;
    }

    /// Gives a node its children: `actions` ascending, with their priors (or probabilities).
    ///
    /// # Panics
    /// With more than 65,535 children; the search refuses such a game first.
    pub fn expand(&mut self, id: NodeId, kind: Kind, actions: &[Action], priors: &[f32]) {
        let needed = self.nodes.len() + actions.len();
        if needed > self.nodes.capacity() {
            // Doubling wastes up to half of a large tree; past a million nodes (32 MB) a quarter is enough, since
            // the allocator moves pages of this size rather than copies them.
            let capacity = self.nodes.capacity();
            let grown = if capacity < 1 << 20 { capacity * 2 } else { capacity + capacity / 4 };
            self.nodes.reserve_exact(grown.min(self.max_nodes).max(needed) - self.nodes.len());
        }
        let first_child = self.nodes.len() as NodeId;
        self.nodes.extend(actions.iter().zip(priors).map(|(&action, &prior)| Node::new(action, prior)));
        if self.sums > 0 {
            self.beside.reserve_exact(self.nodes.capacity() * self.sums - self.beside.len());
            self.beside.resize(needed * self.sums, 0.0);
        }
        let node = &mut self.nodes[id as usize];
        node.kind = kind;
        node.first_child = first_child;
        node.num_children = u16::try_from(actions.len()).expect("at most 65,535 children");
    }

    /// Ends a simulation: adds `value` to every node of `path` (root first) from the view of whoever chose it.
    /// The only writer of `visits`; of `value_sum` there is one more, [`Tree::settle`].
    #[inline]
    pub fn ascend<P: Payoff>(&mut self, path: &[NodeId], value: P) {
        if self.sums > 0 {
            let each = value.each();
            for &id in path {
                let beside = &mut self.beside[id as usize * self.sums..][..self.sums];
                beside.iter_mut().zip(each.numbers()).for_each(|(sum, &own)| *sum += f64::from(own));
            }
        }
        let first = f64::from(value.of(Player::Zero));
        let mut seen = first;
        for &id in path {
            let node = &mut self.nodes[id as usize];
            node.in_flight -= 1;
            node.visits += 1;
            node.value_sum += seen;
            seen = match node.kind {
                Kind::Decision(player) => f64::from(value.of(player)),
                _ => first,
            };
        }
    }

    /// Notes that the last node of `path` (root first) is proven to be worth `value`, the game being over after `plies`
    /// more at the most: its visits are taken to have found that value, here and in the sums above. With one player, or with
    /// two and zero sum.
    pub fn settle(&mut self, path: &[NodeId], value: Value, plies: usize) {
        let (&last, above) = path.split_last().expect("a path has its root");
        let chooser = above.last().map_or(Player::Zero, |&id| self.node(id).kind.view());
        let node = &mut self.nodes[last as usize];
        let proven = f64::from(value.pov(chooser).0) * f64::from(node.visits);
        let found = node.value_sum;
        node.value_sum = proven;
        node.proof = u8::try_from(plies + 1).unwrap_or(LONGEST_PROOF);
        let change = if chooser == Player::Zero { proven - found } else { found - proven };
        let mut viewer = Player::Zero;
        for &id in above {
            let node = &mut self.nodes[id as usize];
            node.value_sum += if viewer == Player::Zero { change } else { -change };
            viewer = node.kind.view();
        }
    }

    /// Gives the root and one of its children more visits, without values.
    #[cfg(test)]
    pub(crate) fn add_visits(&mut self, child: NodeId, visits: u32) {
        for id in [ROOT, child] {
            self.nodes[id as usize].visits += visits;
        }
    }

    /// Takes back a descent that found nothing new. A leaf that was waiting at its end can be reached again.
    pub fn release(&mut self, path: &[NodeId]) {
        for &id in path {
            let node = &mut self.nodes[id as usize];
            node.in_flight -= 1;
            if node.kind == Kind::Pending && node.in_flight == 0 {
                node.kind = Kind::New;
            }
        }
    }

    /// Sets the prior of the root's `index`-th child (root noise).
    pub fn set_root_prior(&mut self, index: usize, prior: f32) {
        let first = self.nodes[0].first_child as usize;
        self.nodes[first + index].prior = prior;
    }

    /// Makes the root's child under `action` the new root and drops everything else; without such a child, or where it
    /// was never expanded, the tree is cleared. Nothing may be in flight.
    pub fn keep_subtree(&mut self, action: Action) {
        let (mut nodes, mut beside) = (std::mem::take(&mut self.spare), std::mem::take(&mut self.spare_beside));
        if self.copy_subtree(action, &mut nodes, &mut beside) {
            self.spare = std::mem::replace(&mut self.nodes, nodes);
            self.spare_beside = std::mem::replace(&mut self.beside, beside);
        } else {
            (self.spare, self.spare_beside) = (nodes, beside);
            self.clear();
        }
    }

    /// The tree below an action of the root, as [`Tree::keep_subtree`] keeps it. This one stays as it is.
    #[must_use]
    pub fn subtree(&self, action: Action) -> Self {
        let mut below = Self::new(self.max_nodes, self.sums);
        let (mut nodes, mut beside) = (Vec::new(), Vec::new());
        if self.copy_subtree(action, &mut nodes, &mut beside) {
            nodes.shrink_to_fit();
            beside.shrink_to_fit();
            (below.nodes, below.beside) = (nodes, beside);
        }
        below
    }

    /// Copies what lies below an action of the root into `new`; whether anything is known of it.
    fn copy_subtree(&self, action: Action, new: &mut Vec<Node>, new_beside: &mut Vec<f64>) -> bool {
        let known = |child: &Node| child.action == action && child.kind != Kind::New;
        let Some(index) = self.children(ROOT).iter().position(known) else {
            return false;
        };
        let (old, width) = (&self.nodes, self.sums);
        let mut root = self.children(ROOT)[index].clone();
        let first = old[0].first_child as usize + index;
        root.value_sum = self.sum_for(first as NodeId, Player::Zero, old[0].kind.view());
        new.clear();
        // Not by doubling, so that both halves keep to the room that there is.
        new.reserve_exact(old.len());
        new.push(root);
        let beside = |first: usize, count: usize| &self.beside[first * width..(first + count) * width];
        new_beside.clear();
        new_beside.reserve_exact(old.len() * width);
        new_beside.extend_from_slice(beside(first, 1));
        // Breadth first: the part of `new` not yet looked at is the queue.
        let mut next = 0;
        while next < new.len() {
            let (first, count) = (new[next].first_child as usize, usize::from(new[next].num_children));
            new[next].first_child = new.len() as NodeId;
            new.extend_from_slice(&old[first..first + count]);
            if width > 0 {
                new_beside.extend_from_slice(beside(first, count));
            }
            next += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_takes_32_bytes() {
        assert_eq!(size_of::<Node>(), 32);
    }

    #[test]
    fn a_million_releases_leave_no_trace() {
        let mut tree = Tree::default();
        tree.mark(ROOT);
        tree.set_kind(ROOT, Kind::Pending);
        tree.expand(ROOT, Kind::Decision(Player::One), &[0, 1], &[0.5, 0.5]);
        tree.ascend(&[ROOT], Value(0.1));
        for id in [ROOT, 1] {
            tree.mark(id);
        }
        tree.ascend(&[ROOT, 1], Value(0.3));
        let before = (tree.node(ROOT).value_sum.to_bits(), tree.node(1).value_sum.to_bits());
        assert_eq!(tree.node(1).value_sum, -f64::from(0.3_f32));
        for _ in 0..1_000_000 {
            tree.mark(ROOT);
            tree.mark(1);
            tree.release(&[ROOT, 1]);
        }
        assert_eq!(before, (tree.node(ROOT).value_sum.to_bits(), tree.node(1).value_sum.to_bits()));
        assert!(tree.nodes().iter().all(|node| node.in_flight == 0));
    }

    #[test]
    fn the_kept_subtree_keeps_its_statistics_and_the_old_memory() {
        let mut tree = Tree::default();
        tree.mark(ROOT);
        tree.expand(ROOT, Kind::Decision(Player::One), &[3, 5], &[0.25, 0.75]);
        tree.ascend(&[ROOT], Value(0.5));
        for id in [ROOT, 2] {
            tree.mark(id);
        }
        tree.expand(2, Kind::Decision(Player::Zero), &[1, 4, 6], &[0.2, 0.3, 0.5]);
        tree.ascend(&[ROOT, 2], Value(-0.25));
        tree.keep_subtree(5);
        assert_eq!(tree.nodes().len(), 4);
        assert_eq!((tree.node(ROOT).visits, tree.node(ROOT).value_sum), (1, -0.25));
        assert_eq!(tree.children(ROOT).iter().map(|child| child.action).collect::<Vec<_>>(), [1, 4, 6]);
        tree.keep_subtree(9);
        assert_eq!((tree.nodes().len(), tree.node(ROOT).kind), (1, Kind::New));
    }
}
