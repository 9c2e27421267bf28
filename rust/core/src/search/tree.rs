//! The search tree: an arena of nodes, and the only code that changes their statistics.
//!
//! ```text
//! nodes:  [ root | children of root | children of some leaf | children of another | ... ]
//!            |       ^  ^  ^
//!            +-------+--+--+  first_child, num_children: one contiguous range, ascending by action
//! ```
//!
//! A node is an action that could be taken together with the position it leads to. It exists, with its prior, from
//! the moment its parent is expanded; its own children exist from the moment it is expanded itself. In a tree that folds
//! ([`Tree::fold`]) they exist from the moment a descent comes back to it.
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
use crate::search::folded::Folded;
use crate::search::softmax::softmax;

/// An index into the arena.
pub type NodeId = u32;

/// The root's index.
pub const ROOT: NodeId = 0;

/// Visits that a node may have. Below the 2^32 that `Node::visits` can count by more than a search has in flight (at
/// most 65,536 leaves and 65,536 collisions), so that `visits + in_flight` does not overflow either.
pub const MOST_VISITS: u32 = u32::MAX - (1 << 18);

/// Nodes of a tree without a limit: indices are 32 bits, and one more node may always be expanded.
const UNLIMITED: usize = (u32::MAX - u16::MAX as u32) as usize;

/// The state of the position at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not expanded: no descent reached it, the tree was full, or a look ahead proved its value.
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

/// One action and the position it leads to. 32 bytes, those that are 0 at first side by side: a search writes many more
/// nodes than it visits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Node {
    /// Sum of the values backed up through here, from the view of the player who chose this action;
    /// player 0's view at the root and below a chance node. f64: exact to far beyond 2^32 visits of f32 values.
    pub value_sum: f64,
    /// Finished simulations through here, at most [`MOST_VISITS`]. The node's own evaluation counts.
    pub visits: u32,
    /// Unfinished descents through here. Kept apart from the statistics, so undoing one leaves no trace.
    pub in_flight: u32,
    /// Where the children begin, in the arena, or among those that are folded.
    pub first_child: NodeId,
    /// How many children there are in the arena; 0 until the node is expanded, and while its children are folded.
    pub num_children: u16,
    /// The state of the position.
    pub kind: Kind,
    /// 0, or 1 + the plies in which the game is proven to end with the node's mean value, at most [`LONGEST_PROOF`].
    /// Only a search with a solver writes it.
    pub proof: u8,
    /// The action, or the outcome, that leads here.
    pub action: Action,
    /// Prior P of the action, or the probability of the outcome.
    pub prior: f32,
}

/// The largest number of plies that `Node::proof` counts.
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

    /// Whether it was evaluated, and its children are not nodes yet.
    #[inline]
    fn is_folded(&self) -> bool {
        self.num_children == 0 && matches!(self.kind, Kind::Decision(_))
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
    /// Most nodes it may have. The root and its children are always allowed.
    max_nodes: usize,
    /// Sums per player stored for every node: P, or 0 where `Node::value_sum` is enough.
    sums: usize,
    /// These sums, node after node; empty if there are none.
    beside: Vec<f64>,
    /// See [`Tree::fold`].
    folds: bool,
    folded: Folded,
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
        let max_nodes = max_nodes.min(UNLIMITED);
        let (nodes, beside) = (vec![Node::new(0, 1.0)], vec![0.0; sums]);
        Self { nodes, max_nodes, sums, beside, folds: false, folded: Folded::default() }
    }

    /// Has the tree fold children: they take a quarter of their memory until a descent comes back to their parent. A tree
    /// with a limit does not fold, because it would need more memory for the children that come back.
    pub(crate) fn fold(&mut self) {
        self.folds = self.max_nodes >= UNLIMITED;
    }

    /// Forgets everything but the allocated memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.nodes.push(Node::new(0, 1.0));
        self.beside.clear();
        self.beside.resize(self.sums, 0.0);
        self.folded.clear();
    }

    /// The node with this index.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The children of an expanded node, ascending by action; none otherwise, and none if they are folded.
    #[must_use]
    #[inline]
    pub fn children(&self, id: NodeId) -> &[Node] {
        let node = self.node(id);
        if node.num_children == 0 {
            return &[];
        }
        let first = node.first_child as usize;
        &self.nodes[first..first + usize::from(node.num_children)]
    }

    /// Every node there is, in the order of expansion.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many nodes there are, those that are folded included.
    #[must_use]
    pub(crate) fn num_nodes(&self) -> usize {
        self.nodes.len() + self.folded.waiting()
    }

    /// Memory that so many nodes take.
    #[must_use]
    pub fn bytes_of(nodes: usize, sums: usize) -> usize {
        nodes.saturating_mul(size_of::<Node>() + sums * size_of::<f64>())
    }

    /// Memory held, in bytes. Every bound of memory counts it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        Self::bytes_of(self.nodes.capacity(), self.sums) + self.folded.memory_bytes()
    }

    /// Memory held after adding a number of nodes.
    #[must_use]
    pub fn memory_after(&self, more: usize) -> usize {
        Self::bytes_of(self.capacity_for(self.nodes.len().saturating_add(more).min(self.max_nodes)), self.sums)
    }

    /// Reserves capacity for as many nodes as fit into this memory.
    pub fn reserve(&mut self, bytes: usize) {
        self.grow_to((bytes / Self::bytes_of(1, self.sums)).min(self.max_nodes));
    }

    /// Frees the unused capacity.
    pub fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.beside.shrink_to_fit();
        self.folded.shrink();
    }

    /// The capacity after growing to hold `needed` nodes.
    #[inline]
    fn capacity_for(&self, needed: usize) -> usize {
        let capacity = self.nodes.capacity();
        if needed <= capacity {
            return capacity;
        }
        // Doubling wastes up to half of a large tree; past a million nodes (32 MB) a quarter is enough, since
        // the allocator moves pages of this size rather than copies them.
        let grown = if capacity < 1 << 20 { capacity * 2 } else { capacity + capacity / 4 };
        grown.min(self.max_nodes).max(needed)
    }

    fn grow_to(&mut self, capacity: usize) {
        self.nodes.reserve_exact(capacity.saturating_sub(self.nodes.len()));
        self.beside.reserve_exact((self.nodes.capacity() * self.sums).saturating_sub(self.beside.len()));
    }

    /// Whether there is room for so many children of one more node.
    #[must_use]
    #[inline]
    pub fn has_room(&self, children: usize) -> bool {
        self.num_nodes() + children <= self.max_nodes
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

    /// Sets the state of an unexpanded node.
    #[inline]
    pub fn set_kind(&mut self, id: NodeId, kind: Kind) {
        self.nodes[id as usize].kind = kind;
    }

    /// Gives a node its children: `actions` ascending, with their priors (or probabilities).
    ///
    /// # Panics
    /// With more than 65,535 children; the search refuses such a game first.
    pub fn expand(&mut self, id: NodeId, kind: Kind, actions: &[Action], priors: &[f32]) {
        self.set_kind(id, kind);
        self.adopt(id, actions.iter().copied().zip(priors.iter().copied()));
    }

    /// As [`Tree::expand`], for a node that was evaluated, with at least one child. Overwrites `priors`.
    pub(crate) fn evaluated(
        &mut self,
        id: NodeId,
        player: Player,
        actions: &[Action],
        logits: &[f32],
        priors: &mut Vec<f32>,
    ) {
        if id == ROOT || !self.folds || !self.folded.has_room() {
            softmax(logits, priors);
            return self.expand(id, Kind::Decision(player), actions, priors);
        }
        let node = &mut self.nodes[id as usize];
        node.kind = Kind::Decision(player);
        node.first_child = self.folded.push(actions, logits);
    }

    /// Turns the folded children of a node, if it has some, into nodes, so that one can be chosen.
    #[inline]
    pub(crate) fn unfold(&mut self, id: NodeId) {
        if self.nodes[id as usize].is_folded() {
            self.unfold_at(id);
        }
    }

    #[inline(never)]
    fn unfold_at(&mut self, id: NodeId) {
        let mut folded = std::mem::take(&mut self.folded);
        self.adopt(id, folded.take(self.nodes[id as usize].first_child));
        self.folded = folded;
    }

    /// Makes children of a node, given the action and prior of each.
    #[inline]
    fn adopt(&mut self, id: NodeId, children: impl ExactSizeIterator<Item = (Action, f32)>) {
        let (first_child, count) = (self.nodes.len(), children.len());
        if first_child + count > self.nodes.capacity() {
            self.grow_to(self.capacity_for(first_child + count));
        }
        self.nodes.extend(children.map(|(action, prior)| Node::new(action, prior)));
        if self.sums > 0 {
            self.beside.resize(self.nodes.len() * self.sums, 0.0);
        }
        let node = &mut self.nodes[id as usize];
        node.first_child = first_child as NodeId;
        node.num_children = u16::try_from(count).expect("at most 65,535 children");
    }

    /// Ends a simulation: adds `value` to every node of `path` (root first) from the view of whoever chose it.
    /// The only writer of `visits`; of `value_sum` there is one more, [`Tree::settle`].
    #[inline(never)]
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

    /// Undoes a descent that found nothing new. If a leaf waited at its end, descents can reach it again.
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
    /// was never expanded, the tree is cleared. Nothing may be in flight. The nodes move up in place and keep their order,
    /// so no second tree is needed.
    pub fn keep_subtree(&mut self, action: Action) {
        let Some((child, root)) = self.next_root(action) else {
            return self.clear();
        };
        self.nodes[child] = root;
        let mut kept = self.keep(child, 1, 0);
        // Children lie behind their parents. The first of those to keep has its parent's new place, and 1.
        let mut next = child + 1;
        while let Some(&Node { in_flight, .. }) = self.nodes.get(next) {
            let Some(parent) = in_flight.checked_sub(1) else {
                next += 1;
                continue;
            };
            let parent = &mut self.nodes[parent as usize];
            parent.first_child = kept as NodeId;
            let count = usize::from(parent.num_children);
            kept = self.keep(next, count, kept);
            next += count;
        }
        self.nodes.truncate(kept);
        self.beside.truncate(kept * self.sums);
        let folded = self.nodes.iter_mut().filter(|node| node.is_folded());
        self.folded.keep(folded.map(|node| &mut node.first_child));
        self.unfold(ROOT);
    }

    /// The place of the root's child under `action`, if that was expanded, and this child as the root of a tree.
    fn next_root(&self, action: Action) -> Option<(usize, Node)> {
        let known = |child: &Node| child.action == action && child.kind != Kind::New;
        let child = self.node(ROOT).first_child + self.children(ROOT).iter().position(known)? as NodeId;
        let value_sum = self.sum_for(child, Player::Zero, self.node(ROOT).kind.view());
        Some((child as usize, Node { value_sum, ..*self.node(child) }))
    }

    /// Moves nodes up to `place`, and tells the first child of each where its parent is. Returns where they end.
    fn keep(&mut self, first: usize, count: usize, place: usize) -> usize {
        let (end, width) = (place + count, self.sums);
        self.nodes.copy_within(first..first + count, place);
        if width > 0 {
            self.beside.copy_within(first * width..(first + count) * width, place * width);
        }
        self.nodes[place].in_flight = 0;
        for id in place..end {
            let Node { first_child, num_children, .. } = self.nodes[id];
            if num_children > 0 {
                self.nodes[first_child as usize].in_flight = id as u32 + 1;
            }
        }
        end
    }

    /// A copy of the tree below an action of the root, with what [`Tree::keep_subtree`] keeps. This tree stays as it is.
    #[must_use]
    pub fn subtree(&self, action: Action) -> Self {
        let mut below = Self::new(self.max_nodes, self.sums);
        below.folds = self.folds;
        let Some((child, root)) = self.next_root(action) else {
            return below;
        };
        below.nodes[0] = root;
        below.beside.copy_from_slice(self.sums(child as NodeId));
        // Breadth first: the nodes from `next` on are the queue.
        let mut next = 0;
        while let Some(&node) = below.nodes.get(next) {
            let is_folded = node.is_folded();
            let first = if is_folded { 0 } else { node.first_child as usize };
            let end = first + usize::from(node.num_children);
            below.nodes[next].first_child =
                if is_folded { below.folded.copy(&self.folded, node.first_child) } else { below.nodes.len() as NodeId };
            below.nodes.extend_from_slice(&self.nodes[first..end]);
            below.beside.extend_from_slice(&self.beside[first * self.sums..end * self.sums]);
            next += 1;
        }
        below.unfold(ROOT);
        below.shrink();
        below
    }
}

#[cfg(test)]
mod tests;
