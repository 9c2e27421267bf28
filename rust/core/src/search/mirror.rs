//! The search of a game that hides something: it grows no tree, because a tree sees what the players do not.
//!
//! A player of such a game does not search: it draws from the network's policy for its own view. In self-play each
//! legal action of the player who learns is then played in a copy of the position and rolled out to the end. There all
//! players draw from the network's policies of their own views. The position of a game of self-play is itself a draw
//! from what the player to move may believe, so no worlds are guessed. With policy pi and payoffs q the target is pi
//! exp(q / scale), as a share: a step of magnetic mirror descent (Sokota et al. 2022) with step size 1, but for the
//! magnet, which is the learner's.
//!
//! Invariant: each walker draws from a stream of its own, so a roll-out is the same whatever shares its batches.

use super::{Scratch, Search, SearchResult};
use crate::cache::Cache;
use crate::game::{Action, Game, GameFault, Payoff, Player, Pov, PovOf, Turn, check_chance};
use crate::rng::{Stream, mix};
use crate::search::round::{Answer, Leaf, Replies};
use crate::search::softmax::softmax;

/// What a search of a game that hides something has in place of a tree.
#[derive(Clone, Debug)]
pub(super) struct Mirror<G: Game> {
    /// What payoffs are divided by in the target. None: no roll-outs, the policy alone.
    pub(super) scale: Option<f64>,
    /// The network's answer for the root.
    root: Option<Answered<G::Payoff>>,
    /// One an action of the root.
    walkers: Vec<Walker<G>>,
}

#[derive(Clone, Debug)]
struct Answered<P> {
    actions: Vec<Action>,
    priors: Vec<f32>,
    value: P,
    /// The index of an action drawn from the priors.
    drawn: usize,
}

/// A roll-out under way.
#[derive(Clone, Debug)]
struct Walker<G: Game> {
    state: G,
    stream: Stream,
    /// For the streams of its leaves.
    seed: u64,
    plies: usize,
    payoff: Option<G::Payoff>,
}

impl<G: Game> Mirror<G> {
    pub(super) fn new(scale: Option<f64>) -> Self {
        Self { scale, root: None, walkers: Vec::new() }
    }

    pub(super) fn root_is_due(&self) -> bool {
        self.root.is_none()
    }

    /// Begins anew; gives the positions of its walkers back.
    pub(super) fn forget(&mut self, spare: &mut Vec<G>) {
        self.root = None;
        spare.extend(self.walkers.drain(..).map(|walker| walker.state));
    }
}

/// The number of what a player knows, for answers of networks: never that of another player.
fn view_of<G: Game>(state: &G, player: Player) -> u128 {
    let view = state.view_key(player).unwrap_or_else(|| state.key());
    let other = mix(player.index() as u64 + 1);
    // Not 0, which says that there is no key.
    (view ^ (u128::from(other) << 64 | u128::from(mix(other)))).max(1)
}

impl<G: Game> Search<G> {
    /// Whether the game hides something: then the search is no search of a tree.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.mirror.is_some()
    }

    /// Has later searches roll out each action of the root, where the game hides something: then a result has a policy
    /// target, for which payoffs are divided by `scale`.
    pub fn roll_out(&mut self, scale: f64) {
        if let Some(mirror) = &mut self.mirror {
            mirror.scale = Some(scale);
        }
    }

    /// Gathers leaves. A walker whose answer is in the cache walks on; every other walker adds one leaf.
    pub(super) fn gather_views(&mut self, cache: Option<(&Cache, u64)>, scratch: &mut Scratch) {
        if self.is_done() || self.run.fault.is_some() {
            return;
        }
        if let Err(fault) = self.gather_leaves(cache, scratch) {
            self.abandon();
            self.run.fault = Some(fault);
        }
        self.run.stats.rounds += u64::from(!self.round.leaves.is_empty());
    }

    fn gather_leaves(&mut self, cache: Option<(&Cache, u64)>, scratch: &mut Scratch) -> Result<(), GameFault> {
        if self.root_is_due() {
            let Turn::Player(player) = self.position.turn() else { return Ok(()) };
            self.position.legal_actions(&mut scratch.actions);
            if self.is_restricted() {
                let allowed = &self.root.allowed;
                scratch.actions.retain(|action| allowed.binary_search(action).is_ok());
            }
            let stream = self.run.leaf_streams;
            let known = if self.is_restricted() { None } else { cache };
            let position = self.position.clone();
            match self.ask(&position, player, 0..1, 0, stream, known, scratch)? {
                None => return Ok(()),
                Some(value) => self.answer_root(player, value, scratch),
            }
        }
        for index in 0..self.mirror.as_ref().map_or(0, |mirror| mirror.walkers.len()) {
            if self.round.leaves.len() >= self.config.eval_batch {
                break;
            }
            self.walk(index, cache, scratch)?;
        }
        Ok(())
    }

    /// Asks the cache for the answer of a view, and gives the value: the priors are in `scratch`. Else there is a leaf
    /// more. The legal actions are in `scratch`.
    #[expect(clippy::too_many_arguments, reason = "a leaf, and where its answer may be")]
    fn ask(
        &mut self,
        state: &G,
        player: Player,
        place: std::ops::Range<u32>,
        plies: usize,
        stream: u64,
        cache: Option<(&Cache, u64)>,
        scratch: &mut Scratch,
    ) -> Result<Option<PovOf<G>>, GameFault> {
        let legal = &scratch.actions;
        if let Some(fault) = self.size.fault(legal, state, plies) {
            return Err(fault);
        }
        let key = view_of(state, player);
        if let Some((cache, network)) = cache {
            scratch.priors.clear();
            let priors = &mut scratch.priors;
            if let Some(value) = cache.get(network, key, legal.len(), self.size.num_players, priors) {
                self.run.stats.cache_hits += 1;
                return Ok(Some(value));
            }
        }
        let start = self.round.legal.len() as u32;
        self.round.legal.extend_from_slice(legal);
        let legal = start..self.round.legal.len() as u32;
        let mut copy = self.round.spare.pop().unwrap_or_else(|| state.clone());
        copy.arrive(state, &[], None);
        self.round.states.push(copy);
        self.round.leaves.push(Leaf::of_view(place, legal, player, key, mix(stream)));
        Ok(None)
    }

    /// The root has its answer, the priors in `scratch`: roll-outs begin.
    fn answer_root(&mut self, player: Player, value: PovOf<G>, scratch: &Scratch) {
        let (base, view) = (self.run.leaf_streams, view_of(&self.position, player));
        let Some(mirror) = &mut self.mirror else { return };
        let (actions, priors) = (scratch.actions.clone(), scratch.priors.clone());
        // Draws of one seed differ from view to view.
        let mut stream = Stream::keyed(&[base, view as u64, (view >> 64) as u64]);
        let drawn = stream.weighted(priors.iter().map(|&prior| f64::from(prior)));
        if mirror.scale.is_some() && self.root.exploring {
            for (index, &action) in actions.iter().enumerate() {
                let mut state = self.round.spare.pop().unwrap_or_else(|| self.position.clone());
                state.arrive(&self.position, &[action], None);
                let mut stream = Stream::keyed(&[base, index as u64]);
                let seed = stream.bits();
                mirror.walkers.push(Walker { state, stream, seed, plies: 1, payoff: None });
            }
            self.run.remaining = actions.len() as u32;
        }
        mirror.root = Some(Answered { actions, priors, value: value.absolute(player), drawn });
    }

    /// A walker goes on until it needs an answer, or its game is over.
    fn walk(&mut self, index: usize, cache: Option<(&Cache, u64)>, scratch: &mut Scratch) -> Result<(), GameFault> {
        let Some(mut mirror) = self.mirror.take() else { return Ok(()) };
        let found = self.walk_on(&mut mirror.walkers[index], index as u32, cache, scratch);
        self.mirror = Some(mirror);
        found
    }

    fn walk_on(
        &mut self,
        walker: &mut Walker<G>,
        index: u32,
        cache: Option<(&Cache, u64)>,
        scratch: &mut Scratch,
    ) -> Result<(), GameFault> {
        while walker.payoff.is_none() {
            match walker.state.turn() {
                Turn::Terminal => {
                    walker.payoff = Some(self.config.outcome(&walker.state));
                    self.run.depth = self.run.depth.max(walker.plies);
                    self.run.remaining -= 1;
                    self.run.stats.simulations += 1;
                    self.run.stats.terminals += 1;
                }
                _ if walker.plies >= self.size.max_plies => return Err(GameFault::TooLong(self.size.max_plies)),
                Turn::Chance => {
                    let outcomes = &mut scratch.outcomes;
                    walker.state.chance_outcomes(outcomes);
                    check_chance(outcomes)?;
                    let drawn = walker.stream.weighted(outcomes.iter().map(|&(_, p)| f64::from(p)));
                    walker.play(outcomes[drawn].0);
                }
                Turn::Player(player) => {
                    walker.state.legal_actions(&mut scratch.actions);
                    let stream = walker.seed.wrapping_add(walker.plies as u64);
                    if self.ask(&walker.state, player, index..index, walker.plies, stream, cache, scratch)?.is_none() {
                        break;
                    }
                    walker.draw(&scratch.actions, &scratch.priors);
                }
            }
        }
        Ok(())
    }

    /// Applies the evaluator's answers to the walkers that wait for them.
    pub(super) fn apply_views(
        &mut self,
        replies: Replies<'_, PovOf<G>>,
        cache: Option<(&Cache, u64)>,
        scratch: &mut Scratch,
    ) {
        for index in 0..self.round.leaves.len() {
            let leaf = self.round.leaves[index].clone();
            let Answer::Row(row) = leaf.answer else { continue };
            let legal = leaf.legal.start as usize..leaf.legal.end as usize;
            let first = replies.offsets[row as usize] as usize;
            softmax(&replies.logits[first..first + legal.len()], &mut scratch.priors);
            let value = replies.values[row as usize];
            let is_root = leaf.path.len() == 1;
            if let Some((cache, network)) = cache
                && !(is_root && self.is_restricted())
            {
                cache.put(network, leaf.key, &scratch.priors, value);
            }
            self.run.stats.evaluations += 1;
            if is_root {
                scratch.actions.clear();
                scratch.actions.extend_from_slice(&self.round.legal[legal]);
                self.answer_root(leaf.player, value, scratch);
            } else if let Some(mirror) = &mut self.mirror {
                mirror.walkers[leaf.path.start as usize].draw(&self.round.legal[legal], &scratch.priors);
            }
        }
        self.round.leaves.clear();
        self.forget_round();
    }

    /// What is known so far, at the turn of `player`.
    pub(super) fn views_result(&self, mirror: &Mirror<G>, player: Player) -> SearchResult {
        let players = &Player::ALL[..self.size.num_players];
        let Some(root) = &mirror.root else {
            return SearchResult { values: vec![0.0; players.len()], stop: self.run.stop, ..SearchResult::default() };
        };
        let payoffs: Vec<G::Payoff> = mirror.walkers.iter().filter_map(|walker| walker.payoff).collect();
        let scale = mirror.scale.filter(|_| payoffs.len() == root.actions.len());
        let of = |player: Player| -> Vec<f32> { payoffs.iter().map(|payoff| payoff.of(player)).collect() };
        let mean = |player: Player| -> f32 {
            let products =
                root.priors.iter().zip(of(player)).map(|(&prior, payoff)| f64::from(prior) * f64::from(payoff));
            (products.sum::<f64>() as f32).clamp(-1.0, 1.0)
        };
        let (target, values) = match scale {
            None => (root.priors.clone(), root.value.each().numbers().to_vec()),
            Some(scale) => (improved(&root.priors, &of(player), scale), players.iter().map(|&one| mean(one)).collect()),
        };
        let walked = usize::from(scale.is_some());
        let action = root.actions[root.drawn];
        SearchResult {
            actions: root.actions.clone(),
            visits: vec![walked as u32; root.actions.len()],
            priors: root.priors.clone(),
            q: if scale.is_some() { of(player) } else { vec![0.0; root.actions.len()] },
            proofs: vec![0; root.actions.len()],
            target,
            value: values[player.index()],
            values,
            action: Some(action),
            principal_variation: vec![action],
            depth: self.run.depth,
            stop: self.run.stop,
            ..SearchResult::default()
        }
    }
}

impl<G: Game> Walker<G> {
    fn play(&mut self, action: Action) {
        self.state.play(action);
        self.plies += 1;
    }

    /// Plays an action of the policy.
    fn draw(&mut self, legal: &[Action], priors: &[f32]) {
        let drawn = self.stream.weighted(priors.iter().map(|&prior| f64::from(prior)));
        self.play(legal[drawn]);
    }
}

/// The policy after a step: pi exp(q / scale), as shares.
fn improved(priors: &[f32], q: &[f32], scale: f64) -> Vec<f32> {
    // Relative to the largest: no power can overflow.
    let most = q.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |(&prior, &q): (&f32, &f32)| f64::from(prior) * (f64::from(q - most) / scale).exp();
    let weights: Vec<f64> = priors.iter().zip(q).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 { weights.into_iter().map(|weight| (weight / sum) as f32).collect() } else { priors.to_vec() }
}
