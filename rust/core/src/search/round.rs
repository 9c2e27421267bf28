//! One round of a search: its leaves are gathered, and their answers are taken up.

use std::ops::Range;

use super::descent::Descent;
use super::{Scratch, Search};
use crate::cache::Cache;
use crate::game::{Action, Game, GameFault, Payoff, Player, Pov, PovOf};
use crate::rng::mix;
use crate::search::solver;
use crate::search::tree::{Kind, NodeId, ROOT};

/// A search pauses after so many simulations that end in known positions, so that others get their turn.
pub(crate) const GATHER_AT_MOST: u64 = 4096;

/// The network that is to answer and the cache of its answers, if equal positions get equal answers.
pub(crate) type Keyed<'a> = Option<(u64, Option<&'a Cache>)>;

/// Where the answer of a leaf is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer<V> {
    /// In this row of the batch; `u32::MAX` until the batch is made.
    Row(u32),
    /// Found in the cache: logits from here in `hit_logits`.
    Cached { logits: u32, value: V },
}

/// A leaf that waits for its value.
#[derive(Clone, Debug)]
pub(crate) struct Leaf<V> {
    /// Its nodes in `paths`. In a game that hides something 0..1 for the root, else the walker's index, twice.
    pub(super) path: Range<u32>,
    pub(crate) legal: Range<u32>,
    pub(super) player: Player,
    /// Of the position, or of what its player knows; 0 if equal positions got different answers when it was gathered.
    pub(crate) key: u128,
    pub(crate) stream: u64,
    pub(crate) answer: Answer<V>,
    /// Whether its node is this position. Where a full tree could not take a roll, it is one behind that roll.
    at_node: bool,
}

impl<V> Leaf<V> {
    /// A leaf of a game that hides something.
    pub(super) fn of_view(path: Range<u32>, legal: Range<u32>, player: Player, key: u128, stream: u64) -> Self {
        Self { path, legal, player, key, stream, answer: Answer::Row(u32::MAX), at_node: true }
    }
}

/// The answers to one batch, as an evaluator leaves them.
#[derive(Clone, Copy)]
pub(crate) struct Replies<'a, V> {
    /// Where the logits of a row begin.
    pub(crate) offsets: &'a [u32],
    pub(crate) logits: &'a [f32],
    pub(crate) values: &'a [V],
    /// See [`Batch::proofs`](crate::evaluator::Batch::proofs); rows behind its end have none.
    pub(crate) proofs: &'a [u8],
}

/// One round's leaves, in gathering order. All of it keeps its memory from round to round.
#[derive(Clone, Debug)]
pub(crate) struct Round<G: Game> {
    pub(crate) leaves: Vec<Leaf<PovOf<G>>>,
    /// Positions of the leaves that the cache did not answer.
    pub(crate) states: Vec<G>,
    /// Positions to reuse: their content is no longer needed.
    pub(crate) spare: Vec<G>,
    pub(crate) legal: Vec<Action>,
    hit_logits: Vec<f32>,
    pub(super) paths: Vec<NodeId>,
    collided: Vec<Range<u32>>,
}

impl<G: Game> Default for Round<G> {
    fn default() -> Self {
        Self {
            leaves: Vec::new(),
            states: Vec::new(),
            spare: Vec::new(),
            legal: Vec::new(),
            hit_logits: Vec::new(),
            paths: Vec::new(),
            collided: Vec::new(),
        }
    }
}

impl<G: Game> Search<G> {
    /// Gathers one round's leaves. Finished games go up at once. Where the cache answers every leaf the answers go up too
    /// and another round begins: such a search does not wait for the evaluator. It returns without leaves after `known`
    /// such simulations, and the next call goes on as if there had been no pause.
    pub(crate) fn gather(&mut self, keyed: Keyed<'_>, known: u64) {
        if self.hides() {
            let cache = keyed.and_then(|(network, cache)| Some((cache?, network)));
            return Scratch::lend(|scratch| self.gather_views(cache, scratch));
        }
        let until = self.run.stats.simulations + known;
        Scratch::lend(|scratch| {
            while !self.is_done() && self.run.fault.is_none() && self.run.stats.simulations < until {
                self.gather_round(keyed, until, scratch);
                if !self.round.states.is_empty() {
                    return;
                }
                self.apply_with(Replies { offsets: &[], logits: &[], values: &[], proofs: &[] }, None, scratch);
            }
        });
    }

    /// Leaves that a round may have whose first is about to be gathered.
    fn wanted(&self) -> usize {
        match self.config.in_flight_share {
            // A root without children can give one leaf, itself.
            _ if self.root_is_due() => 1,
            Some(share) => {
                let visits = f64::from(self.tree.node(ROOT).visits);
                self.config.eval_batch.min((share * visits) as usize).max(1)
            }
            None => self.config.eval_batch,
        }
    }

    fn gather_round(&mut self, keyed: Keyed<'_>, until: u64, scratch: &mut Scratch) {
        let mut wanted = self.wanted();
        let root_is_due = self.root_is_due();
        let plain = self.is_plain();
        // Other descents avoid a waiting leaf. Endgames can have thousands of finished games to visit: if those were
        // free, they would take the visits that the waiting leaf deserves, so they count once a leaf waits.
        let mut terminals = 0;
        while self.round.leaves.len() + terminals < wanted
            && (root_is_due || (self.round.leaves.len() as u64) < u64::from(self.run.remaining))
            && !self.evaluations_are_spent()
            && self.tree.node(ROOT).proof == 0
            && !(self.config.early_stop && self.is_decided())
            && self.round.collided.len() < self.config.eval_batch.max(1)
            && (!self.round.leaves.is_empty() || self.run.stats.simulations < until)
        {
            let (start, nodes) = (self.round.paths.len() as u32, self.tree.num_nodes());
            let descent = if plain { self.descend::<true>(scratch) } else { self.descend::<false>(scratch) };
            self.widest_roll = self.widest_roll.max(self.tree.num_nodes() - nodes);
            match descent {
                Err(fault) => {
                    // Undo the whole round, so that nothing stays in flight.
                    self.tree.release(&self.round.paths[start as usize..]);
                    self.abandon();
                    self.run.fault = Some(fault);
                    return;
                }
                Ok(Descent::Known(value, plies)) => {
                    let path = start as usize..self.round.paths.len();
                    self.ascend(path.clone(), value);
                    if self.config.solver
                        && let Some(plies) = plies
                    {
                        solver::prove(&mut self.tree, &self.round.paths[path], value.proven(), plies);
                    }
                    self.round.paths.truncate(start as usize);
                    self.run.remaining -= 1;
                    self.run.stats.simulations += 1;
                    self.run.stats.terminals += 1;
                    if self.round.leaves.is_empty() {
                        wanted = self.wanted();
                    } else {
                        terminals += 1;
                    }
                }
                Ok(Descent::Collision) => {
                    self.round.collided.push(start..self.round.paths.len() as u32);
                    self.run.stats.collisions += 1;
                }
                Ok(Descent::Leaf(player, at_node)) => {
                    let path = start..self.round.paths.len() as u32;
                    if let Err(fault) = self.add_leaf(path, player, at_node, keyed, &mut scratch.actions) {
                        self.abandon();
                        self.run.fault = Some(fault);
                        return;
                    }
                }
            }
        }
        self.run.stats.rounds += u64::from(!self.round.leaves.is_empty());
    }

    /// Ends a simulation.
    #[inline(always)]
    fn ascend(&mut self, path: Range<usize>, value: G::Payoff) {
        let path = &self.round.paths[path];
        self.run.depth = self.run.depth.max(path.len() - 1);
        if self.config.solver {
            solver::ascend(&mut self.tree, path, value.proven());
        } else {
            self.tree.ascend(path, value);
        }
    }

    /// Notes the leaf that a descent ended in, and its legal actions. Its position is the last of `states`; it stays
    /// there unless the cache has the answer.
    fn add_leaf(
        &mut self,
        path: Range<u32>,
        player: Player,
        at_node: bool,
        keyed: Keyed<'_>,
        legal: &mut Vec<Action>,
    ) -> Result<(), GameFault> {
        let state = self.round.states.last().expect("a leaf leaves its position");
        let legal_start = self.round.legal.len() as u32;
        self.widest_leaf = self.widest_leaf.max(legal.len());
        let restricted = path.len() == 1 && self.is_restricted();
        if restricted {
            let allowed = &self.root.allowed;
            legal.retain(|action| allowed.binary_search(action).is_ok());
        }
        self.round.legal.extend_from_slice(legal);
        debug_assert!(legal.windows(2).all(|pair| pair[0] < pair[1]), "legal actions must ascend: {legal:?}");
        let num_players = self.size.num_players;
        let fault = self.size.fault(legal, state, path.len() - 1);
        let mut leaf = Leaf {
            path,
            legal: legal_start..self.round.legal.len() as u32,
            player,
            key: 0,
            stream: mix(self.run.leaf_streams.wrapping_add(self.run.leaves_met)),
            answer: Answer::Row(u32::MAX),
            at_node,
        };
        self.run.leaves_met += 1;
        if let Some(fault) = fault {
            // Record it even so, so that `abandon` undoes it with the others.
            self.round.leaves.push(leaf);
            return Err(fault);
        }
        if let Some((network, cache)) = keyed {
            leaf.key = state.key();
            let logits = self.round.hit_logits.len() as u32;
            // The cache has the logits of all legal actions.
            if !restricted
                && let Some(cache) = cache
                && let Some(value) = cache.get(network, leaf.key, legal.len(), num_players, &mut self.round.hit_logits)
            {
                leaf.answer = Answer::Cached { logits, value };
                self.round.spare.extend(self.round.states.pop());
            }
        }
        self.round.leaves.push(leaf);
        Ok(())
    }

    /// Applies the answers to the round's leaves, in the order they were gathered, and then releases the collisions.
    pub(crate) fn apply(&mut self, replies: Replies<'_, PovOf<G>>, cache: Option<(&Cache, u64)>) {
        Scratch::lend(|scratch| self.apply_with(replies, cache, scratch));
    }

    fn apply_with(&mut self, replies: Replies<'_, PovOf<G>>, cache: Option<(&Cache, u64)>, scratch: &mut Scratch) {
        if self.hides() {
            return self.apply_views(replies, cache, scratch);
        }
        for index in 0..self.round.leaves.len() {
            let leaf = self.round.leaves[index].clone();
            let legal = leaf.legal.start as usize..leaf.legal.end as usize;
            let path = leaf.path.start as usize..leaf.path.end as usize;
            let id = *self.round.paths[path.clone()].last().expect("a path has its root");
            let mut proof = 0;
            let (logits, value) = match leaf.answer {
                Answer::Row(row) => {
                    let first = replies.offsets[row as usize] as usize;
                    let logits = &replies.logits[first..first + legal.len()];
                    let value = replies.values[row as usize];
                    proof = replies.proofs.get(row as usize).copied().unwrap_or(0);
                    // The cache keeps no proofs. A leaf that was gathered without a network has no key.
                    if proof == 0
                        && leaf.key != 0
                        && let Some((cache, network)) = cache
                        && (path.len() > 1 || !self.is_restricted())
                    {
                        cache.put(network, leaf.key, logits, value);
                    }
                    self.run.stats.evaluations += 1;
                    (logits, value)
                }
                Answer::Cached { logits: first, value } => {
                    self.run.stats.cache_hits += 1;
                    (&self.round.hit_logits[first as usize..][..legal.len()], value)
                }
            };
            if path.len() == 1 || (leaf.at_node && self.tree.has_room(legal.len())) {
                self.tree.evaluated(id, leaf.player, &self.round.legal[legal], logits, &mut scratch.priors);
            } else {
                self.tree.set_kind(id, Kind::New);
                self.run.stats.unexpanded += 1;
            }
            if path.len() > 1 {
                self.run.remaining -= 1;
                self.run.stats.simulations += 1;
            } else {
                self.root.start(&mut self.tree, &self.config, &mut self.run.stream);
            }
            let value = value.absolute(leaf.player);
            self.ascend(path.clone(), value);
            // Search the root even if its value is proven, because an action must be chosen.
            if proof != 0 && self.config.solver && path.len() > 1 && leaf.at_node {
                let plies = usize::from(proof) - 1;
                solver::prove(&mut self.tree, &self.round.paths[path], value.proven(), plies);
            }
        }
        self.round.leaves.clear();
        self.forget_round();
        self.end_early();
    }

    /// Undoes everything in flight.
    pub(crate) fn abandon(&mut self) {
        let has_nodes = self.mirror.is_none();
        for leaf in self.round.leaves.drain(..).filter(|_| has_nodes) {
            self.tree.release(&self.round.paths[leaf.path.start as usize..leaf.path.end as usize]);
        }
        self.forget_round();
        self.run.remaining = 0;
    }

    pub(super) fn forget_round(&mut self) {
        for path in self.round.collided.drain(..) {
            self.tree.release(&self.round.paths[path.start as usize..path.end as usize]);
        }
        self.round.paths.clear();
        self.round.legal.clear();
        self.round.hit_logits.clear();
        self.round.spare.append(&mut self.round.states);
    }
}
