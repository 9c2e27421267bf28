//! One search: descend to leaves, and ascend with their values.
//!
//! A search gathers up to `eval_batch` leaves (`gather`), someone else finds their values, and `apply` takes them up.
//! It names no evaluator, no thread, no clock. With `eval_batch` 1 the visit counts are those of textbook PUCT, to the
//! last visit; `n` simulations are exactly `n` visits below the root, or fewer where `evaluations` ran out first.

use std::ops::Range;

use crate::cache::Cache;
use crate::config::SearchConfig;
use crate::game::{Action, Game, GameFault, Player, PovValue, Turn, Value};
use crate::gumbel;
use crate::puct::softmax;
use crate::rng::{Stream, mix};
use crate::root::explored_priors;
use crate::solver;
use crate::tree::{Kind, NodeId, ROOT, Tree};

mod descent;
mod result;

use descent::Descent;
pub use result::SearchResult;
pub(crate) use result::line;

/// Simulations that end in known positions before `gather` comes up for air, so that interrupts are seen.
const GATHER_AT_MOST: u64 = 4096;

/// Where a leaf's answer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// In this row of the batch; `u32::MAX` until the batch is made.
    Row(u32),
    /// Found in the cache: priors from here in `hit_priors`.
    Cached { priors: u32, value: PovValue },
}

/// A leaf that waits for its value.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    path: Range<u32>,
    pub(crate) legal: Range<u32>,
    player: Player,
    pub(crate) key: u128,
    pub(crate) stream: u64,
    pub(crate) answer: Answer,
    /// Whether its node is this position. Where a full tree could not take a roll, it is one behind that roll.
    at_node: bool,
}

/// The answers to one batch, as an evaluator leaves them.
#[derive(Clone, Copy)]
pub(crate) struct Replies<'a> {
    /// Where the logits of a row begin.
    pub(crate) offsets: &'a [u32],
    pub(crate) logits: &'a [f32],
    pub(crate) values: &'a [PovValue],
}

/// What was done since the search began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Simulations finished.
    pub simulations: u64,
    /// Leaves answered by the evaluator, the root's own evaluation included.
    pub evaluations: u64,
    /// Leaves answered by the cache.
    pub cache_hits: u64,
    /// Simulations that ended in a finished game.
    pub terminals: u64,
    /// Descents that met a leaf in flight and were taken back.
    pub collisions: u64,
    /// Rounds in which something was gathered.
    pub rounds: u64,
    /// Evaluated leaves whose children found no room in the tree.
    pub unexpanded: u64,
}

impl SearchStats {
    /// Adds another search's counts.
    pub fn add(&mut self, other: &Self) {
        self.simulations += other.simulations;
        self.evaluations += other.evaluations;
        self.cache_hits += other.cache_hits;
        self.terminals += other.terminals;
        self.collisions += other.collisions;
        self.rounds += other.rounds;
        self.unexpanded += other.unexpanded;
    }

    /// What came after `earlier`, of the same searches.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            simulations: self.simulations - earlier.simulations,
            evaluations: self.evaluations - earlier.evaluations,
            cache_hits: self.cache_hits - earlier.cache_hits,
            terminals: self.terminals - earlier.terminals,
            collisions: self.collisions - earlier.collisions,
            rounds: self.rounds - earlier.rounds,
            unexpanded: self.unexpanded - earlier.unexpanded,
        }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It did all the simulations that it was asked for.
    #[default]
    Simulations,
    /// The leaves that it might have evaluated are used up.
    Evaluations,
    /// No action can overtake the most visited one in the simulations left.
    Decided,
    /// The value of the root is proven.
    Proven,
    /// It was told to stop: its time was over.
    Interrupted,
    /// There is nothing to search: the game is over.
    GameOver,
}

/// A search in progress over the tree of one position.
#[derive(Clone, Debug)]
pub struct Search<G> {
    /// Which of the owner's networks answers for it.
    pub network: usize,
    root: G,
    config: SearchConfig,
    tree: Tree,
    /// Simulations still to finish.
    remaining: u32,
    stream: Stream,
    /// Leaves get streams of their own from here, not from `stream`: dice must roll the same whether or not a cache
    /// answers for some leaves.
    leaf_streams: u64,
    /// Leaves since `begin`, whoever answered for them.
    leaves_met: u64,
    stats: SearchStats,
    stop: Stop,
    /// Priors of the root before noise; empty until the root is expanded.
    clean_priors: Vec<f32>,
    /// Whether the root's own draws have been made.
    noised: bool,
    exploring: bool,
    halving: gumbel::Root,
    /// Gumbel draws to use in place of random ones.
    given_draws: Vec<f64>,
    fault: Option<GameFault>,
    // One round's leaves, in gathering order. All of it keeps its memory from round to round.
    pub(crate) leaves: Vec<Leaf>,
    /// Positions of the leaves that the cache did not answer.
    pub(crate) states: Vec<G>,
    pub(crate) legal: Vec<Action>,
    hit_priors: Vec<f32>,
    paths: Vec<NodeId>,
    collided: Vec<Range<u32>>,
    scratch_actions: Vec<Action>,
    scratch_priors: Vec<f32>,
    scratch_outcomes: Vec<(Action, f32)>,
    scratch_scores: Vec<f64>,
}

impl<G: Game> Search<G> {
    /// A search of `root` that has not begun. `network` says which of the owner's networks answers for it.
    pub fn new(root: G, config: SearchConfig, network: usize) -> Self {
        Self {
            network,
            root,
            tree: Tree::new(config.max_nodes.unwrap_or(usize::MAX), config.c_puct_stdev > 0.0),
            config,
            remaining: 0,
            stream: Stream::keyed(&[]),
            leaf_streams: 0,
            leaves_met: 0,
            stats: SearchStats::default(),
            stop: Stop::default(),
            clean_priors: Vec::new(),
            noised: false,
            exploring: true,
            halving: gumbel::Root::default(),
            given_draws: Vec::new(),
            fault: None,
            leaves: Vec::new(),
            states: Vec::new(),
            legal: Vec::new(),
            hit_priors: Vec::new(),
            paths: Vec::new(),
            collided: Vec::new(),
            scratch_actions: Vec::new(),
            scratch_priors: Vec::new(),
            scratch_outcomes: Vec::new(),
            scratch_scores: Vec::new(),
        }
    }

    /// Asks for `simulations` more, with draws (noise, dice) from `stream`. A root not yet evaluated is evaluated
    /// first; that is no simulation. At a finished game there is nothing to do.
    ///
    /// # Errors
    /// A root at a chance turn is refused.
    pub fn begin(&mut self, simulations: u32, stream: Stream) -> Result<(), GameFault> {
        self.stream = stream;
        self.leaf_streams = self.stream.bits();
        self.leaves_met = 0;
        self.stats = SearchStats::default();
        self.stop = Stop::Simulations;
        self.fault = None;
        match self.root.turn() {
            Turn::Chance => return Err(GameFault::ChanceRoot),
            Turn::Terminal => self.end(Stop::GameOver),
            Turn::Player(_) => {
                self.remaining = simulations;
                self.halving.simulations = simulations;
                self.start_root();
                self.end_early();
            }
        }
        Ok(())
    }

    /// Whether the searches to come explore their root for training: noise, temperature, forced visits and Gumbel
    /// draws. They do unless told otherwise.
    pub fn set_exploring(&mut self, exploring: bool) {
        self.exploring = exploring;
    }

    /// Gumbel draws for the root's legal actions, to use in place of random ones until the root changes.
    pub fn set_gumbel_draws(&mut self, draws: &[f64]) {
        self.given_draws.clear();
        self.given_draws.extend_from_slice(draws);
        self.noised = false;
    }

    /// Ends the search where it is, between rounds. A root that was never evaluated still will be.
    pub fn interrupt(&mut self) {
        if !self.is_done() {
            self.end(Stop::Interrupted);
        }
    }

    /// As [`Search::interrupt`], but in the middle of a round: what is in flight is taken back.
    pub(crate) fn cut_short(&mut self) {
        if self.is_done() {
            return;
        }
        // But for the root itself, which is evaluated in any case: it would be gathered anew, and counted again.
        let at_root = self.leaves.first().is_some_and(|leaf| leaf.path.len() == 1);
        if !at_root {
            self.abandon();
        }
        self.end(Stop::Interrupted);
    }

    fn end(&mut self, why: Stop) {
        self.remaining = 0;
        self.stop = why;
    }

    /// Searches another position from nothing; memory is kept.
    pub fn reset(&mut self, root: G) {
        self.abandon();
        self.root = root;
        self.tree.clear();
        self.forget_root();
    }

    fn forget_root(&mut self) {
        self.clean_priors.clear();
        self.noised = false;
        self.halving = gumbel::Root::default();
        self.given_draws.clear();
    }

    /// Moves the root along an action or a chance outcome, and keeps what the tree knows of it.
    pub fn advance(&mut self, action: Action) {
        self.abandon();
        self.root.play(action);
        self.tree.keep_subtree(action);
        self.forget_root();
        let children = self.tree.children(ROOT);
        // Noise was on the old root's children only: these are clean.
        self.clean_priors.extend(children.iter().map(|child| child.prior));
        // Whoever looks before the next search sees a root without draws.
        self.halving.inherited.extend(children.iter().map(|child| child.visits));
        self.halving.draws.resize(self.clean_priors.len(), 0.0);
    }

    /// The position searched.
    #[must_use]
    pub fn root(&self) -> &G {
        &self.root
    }

    /// The tree, to look at.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether everything asked for is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.leaves.is_empty() && self.remaining == 0 && !self.root_is_due()
    }

    /// Counts since `begin`.
    #[must_use]
    pub fn stats(&self) -> &SearchStats {
        &self.stats
    }

    /// Why the last search ended (or, while it goes on, would).
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// A broken game rule met by the last `gather`, if any; the search cannot go on.
    #[must_use]
    pub fn fault(&self) -> Option<&GameFault> {
        self.fault.as_ref()
    }

    /// Leaves it may gather in a round.
    pub(crate) fn eval_batch(&self) -> usize {
        self.config.eval_batch
    }

    /// Whether leaves wait for their answers.
    pub(crate) fn has_leaves(&self) -> bool {
        !self.leaves.is_empty()
    }

    /// How many of them the cache did not answer: the rows they need at most.
    pub(crate) fn rows(&self) -> usize {
        self.states.len()
    }

    /// Whether the leaves met so far are all that may be evaluated.
    fn evaluations_are_spent(&self) -> bool {
        self.config.evaluations.is_some_and(|evaluations| self.leaves_met >= u64::from(evaluations))
    }

    fn root_is_due(&self) -> bool {
        self.tree.node(ROOT).kind == Kind::New && matches!(self.root.turn(), Turn::Player(_))
    }

    /// Gathers one round's leaves. Finished games go up at once. Where the cache answers every leaf they go up too and
    /// another round begins: such a tree waits for nobody.
    pub(crate) fn gather(&mut self, cache: Option<(&Cache, u64)>) {
        let before = self.stats.simulations;
        while !self.is_done() && self.fault.is_none() && self.stats.simulations - before < GATHER_AT_MOST {
            self.gather_round(cache);
            if !self.states.is_empty() {
                return;
            }
            self.apply(Replies { offsets: &[], logits: &[], values: &[] }, None);
        }
    }

    fn gather_round(&mut self, cache: Option<(&Cache, u64)>) {
        self.stats.rounds += 1;
        // A root without children can give one leaf, itself.
        let root_is_due = self.root_is_due();
        let wanted = match self.config.in_flight_share {
            _ if root_is_due => 1,
            Some(share) => {
                let visits = f64::from(self.tree.node(ROOT).visits);
                self.config.eval_batch.min((share * visits) as usize).max(1)
            }
            None => self.config.eval_batch,
        };
        let plain = self.is_plain();
        // While a leaf waits, other descents shun it. Endgames can have thousands of finished games to visit: were they
        // free, they would take the visits that the waiting leaf deserves, so they count once a leaf waits.
        let mut terminals = 0;
        // A round may be cut short while no leaf waits: that changes nothing, the next one goes on from the same tree.
        let until = self.stats.simulations + GATHER_AT_MOST;
        while self.leaves.len() + terminals < wanted
            && (root_is_due || (self.leaves.len() as u64) < u64::from(self.remaining))
            && !self.evaluations_are_spent()
            && self.tree.node(ROOT).proof == 0
            && !(self.config.early_stop && self.is_decided())
            && self.collided.len() < self.config.max_collisions.max(1)
            && (!self.leaves.is_empty() || self.stats.simulations < until)
        {
            let start = self.paths.len() as u32;
            match if plain { self.descend::<true>() } else { self.descend::<false>() } {
                Err(fault) => {
                    // The whole round is taken back: nothing stays in flight.
                    self.tree.release(&self.paths[start as usize..]);
                    self.abandon();
                    self.fault = Some(fault);
                    return;
                }
                Ok(Descent::Terminal(value)) => {
                    self.ascend(start as usize..self.paths.len(), value);
                    self.paths.truncate(start as usize);
                    self.remaining -= 1;
                    self.stats.simulations += 1;
                    self.stats.terminals += 1;
                    terminals += usize::from(!self.leaves.is_empty());
                }
                Ok(Descent::Collision) => {
                    self.collided.push(start..self.paths.len() as u32);
                    self.stats.collisions += 1;
                }
                Ok(Descent::Leaf(player, at_node)) => {
                    let path = start..self.paths.len() as u32;
                    if let Err(fault) = self.add_leaf(path, player, at_node, cache) {
                        self.abandon();
                        self.fault = Some(fault);
                        return;
                    }
                }
            }
        }
    }

    /// Ends a simulation, and with a solver draws the conclusions of a finished game at its end.
    #[inline]
    fn ascend(&mut self, path: Range<usize>, value: Value) {
        if self.config.solver {
            self.ascend_and_prove(path, value);
        } else {
            self.tree.ascend(&self.paths[path], value);
        }
    }

    fn ascend_and_prove(&mut self, path: Range<usize>, value: Value) {
        let path = &self.paths[path];
        solver::ascend(&mut self.tree, path, value);
        let last = self.tree.node(path[path.len() - 1]);
        if last.kind == Kind::Terminal && last.proof == 0 {
            solver::prove(&mut self.tree, path, value);
        }
    }

    /// Ends a search that has nothing left to find out. Nothing may be in flight.
    fn end_early(&mut self) {
        if self.tree.node(ROOT).proof != 0 {
            self.end(Stop::Proven);
        } else if self.remaining == 0 {
            // It did what it was asked for.
        } else if self.evaluations_are_spent() {
            self.end(Stop::Evaluations);
        } else if self.config.early_stop && self.is_decided() {
            self.end(Stop::Decided);
        }
    }

    /// Whether the most visited action will be so whatever the simulations left find.
    fn is_decided(&self) -> bool {
        if self.config.lcb.is_some() || self.config.solver || self.config.gumbel.is_some() {
            return false;
        }
        let children = self.tree.children(ROOT);
        let Some(best) = result::most_visited(children) else {
            return false;
        };
        let rivals = children.iter().enumerate().filter(|&(index, _)| index != best);
        // Not before it was tried, even if it is the only one: a search leaves visits.
        children[best].visits > 0
            && rivals.map(|(_, child)| child.visits.saturating_add(self.remaining)).all(|n| n < children[best].visits)
    }

    /// Notes the leaf that a descent ended in. Its position is the last of `states`; it stays there unless the cache
    /// has the answer.
    fn add_leaf(
        &mut self,
        path: Range<u32>,
        player: Player,
        at_node: bool,
        cache: Option<(&Cache, u64)>,
    ) -> Result<(), GameFault> {
        let state = self.states.last().expect("a leaf leaves its position");
        let legal_start = self.legal.len() as u32;
        state.legal_actions(&mut self.scratch_actions);
        self.legal.extend_from_slice(&self.scratch_actions);
        let legal = &self.scratch_actions;
        debug_assert!(legal.windows(2).all(|pair| pair[0] < pair[1]), "legal actions must ascend: {legal:?}");
        let num_actions = state.num_actions();
        let fault = match legal.last() {
            None => Some(GameFault::NoLegalActions(state.render())),
            Some(_) if legal.len() > usize::from(u16::MAX) => Some(GameFault::TooManyLegalActions(legal.len())),
            Some(&action) if action as usize >= num_actions => Some(GameFault::OutsidePolicy { action, num_actions }),
            Some(_) if path.len() > state.max_plies() + 1 => Some(GameFault::TooLong(state.max_plies())),
            Some(_) => None,
        };
        let mut leaf = Leaf {
            path,
            legal: legal_start..self.legal.len() as u32,
            player,
            key: 0,
            stream: mix(self.leaf_streams.wrapping_add(self.leaves_met)),
            answer: Answer::Row(u32::MAX),
            at_node,
        };
        self.leaves_met += 1;
        if let Some(fault) = fault {
            // Noted all the same, so that `abandon` takes it back with the others.
            self.leaves.push(leaf);
            return Err(fault);
        }
        if let Some((cache, network)) = cache {
            leaf.key = state.key();
            let priors = self.hit_priors.len() as u32;
            if let Some(value) = cache.get(network, leaf.key, legal.len(), &mut self.hit_priors) {
                leaf.answer = Answer::Cached { priors, value };
                self.states.pop();
            }
        }
        self.leaves.push(leaf);
        Ok(())
    }

    /// Takes the round's leaves up, in the order they were gathered, and then releases the collisions.
    pub(crate) fn apply(&mut self, replies: Replies<'_>, cache: Option<(&Cache, u64)>) {
        for index in 0..self.leaves.len() {
            let leaf = self.leaves[index].clone();
            let legal = leaf.legal.start as usize..leaf.legal.end as usize;
            let path = leaf.path.start as usize..leaf.path.end as usize;
            let id = *self.paths[path.clone()].last().expect("a path has its root");
            let value = match leaf.answer {
                Answer::Row(row) => {
                    let first = replies.offsets[row as usize] as usize;
                    softmax(&replies.logits[first..first + legal.len()], &mut self.scratch_priors);
                    let value = replies.values[row as usize];
                    if let Some((cache, network)) = cache {
                        cache.put(network, leaf.key, &self.scratch_priors, value);
                    }
                    self.stats.evaluations += 1;
                    value
                }
                Answer::Cached { priors, value } => {
                    let first = priors as usize;
                    self.scratch_priors.clear();
                    self.scratch_priors.extend_from_slice(&self.hit_priors[first..first + legal.len()]);
                    self.stats.cache_hits += 1;
                    value
                }
            };
            if path.len() == 1 || (leaf.at_node && self.tree.has_room(legal.len())) {
                self.tree.expand(id, Kind::Decision(leaf.player), &self.legal[legal], &self.scratch_priors);
            } else {
                self.tree.set_kind(id, Kind::New);
                self.stats.unexpanded += 1;
            }
            if path.len() > 1 {
                self.remaining -= 1;
                self.stats.simulations += 1;
            } else {
                self.start_root();
            }
            self.ascend(path, value.absolute(leaf.player));
        }
        self.leaves.clear();
        self.forget_round();
        self.end_early();
    }

    /// Takes back everything in flight.
    pub(crate) fn abandon(&mut self) {
        for leaf in self.leaves.drain(..) {
            self.tree.release(&self.paths[leaf.path.start as usize..leaf.path.end as usize]);
        }
        self.forget_round();
        self.remaining = 0;
    }

    fn forget_round(&mut self) {
        for path in self.collided.drain(..) {
            self.tree.release(&self.paths[path.start as usize..path.end as usize]);
        }
        self.paths.clear();
        self.legal.clear();
        self.hit_priors.clear();
        self.states.clear();
    }

    /// As soon as the root has children: once a move remembers its clean priors and makes the draws of a search that
    /// explores; once a search notes what the children have already.
    fn start_root(&mut self) {
        let children = self.tree.children(ROOT);
        if children.is_empty() {
            return;
        }
        self.halving.inherited.clear();
        self.halving.inherited.extend(children.iter().map(|child| child.visits));
        if self.noised {
            return;
        }
        self.noised = true;
        self.clean_priors.clear();
        self.clean_priors.extend(children.iter().map(|child| child.prior));
        let actions = self.clean_priors.len();
        if let Some(rule) = &self.config.gumbel {
            // Its draws take the place of noise.
            let scale = if self.exploring { rule.scale } else { 0.0 };
            self.halving.draws.clear();
            if self.given_draws.len() == actions {
                self.halving.draws.extend_from_slice(&self.given_draws);
            } else if scale == 0.0 {
                self.halving.draws.resize(actions, 0.0);
            } else {
                self.halving.draws.extend((0..actions).map(|_| scale * self.stream.gumbel()));
            }
        } else if self.exploring {
            let priors = explored_priors(&self.clean_priors, &self.config, &mut self.stream);
            for (index, &prior) in priors.iter().enumerate() {
                self.tree.set_root_prior(index, prior);
            }
        }
    }
}

/// The seed of a search that belongs to a game's ply, or to a tree of a batch.
#[must_use]
pub fn stream_for(seed: u64, game: u64, ply: u64) -> Stream {
    Stream::keyed(&[mix(seed), game, ply])
}
