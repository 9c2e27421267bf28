//! One search: descend to leaves, and ascend with their values.
//!
//! A search gathers up to `eval_batch` leaves (`gather`), the caller evaluates them, and `apply` backs up their values.
//! It uses no evaluator, thread or clock itself. With `eval_batch` 1 the visit counts equal those of textbook PUCT.
//! `n` simulations are exactly `n` visits below the root, or fewer if `evaluations` ran out first.

use std::cell::Cell;

use crate::config::SearchConfig;
use crate::game::{Action, Game, GameFault, Turn, can_prove, legal_of};
use crate::rng::{Stream, mix};
use crate::search::ahead::Ply;
use crate::search::mirror::Mirror;
use crate::search::root::Root;
use crate::search::round::Round;
use crate::search::tree::{Kind, MOST_VISITS, ROOT, Tree};

mod ahead;
mod descent;
mod folded;
mod gumbel;
pub mod look;
mod mirror;
mod puct;
mod result;
mod root;
mod round;
mod softmax;
mod solver;
mod spread;
mod stats;
pub mod tree;

pub use result::SearchResult;
pub(crate) use result::line;
pub(crate) use round::{Answer, GATHER_AT_MOST, Replies};
pub use stats::{SearchStats, Stop};

/// A search in progress over the tree of one position.
#[derive(Clone, Debug)]
pub struct Search<G: Game> {
    position: G,
    size: Size,
    config: SearchConfig,
    tree: Tree,
    root: Root,
    run: Run,
    pub(crate) round: Round<G>,
    /// For each ply of a look ahead.
    plies: Vec<Ply<G>>,
    /// The most actions of a leaf so far.
    widest_leaf: usize,
    /// The most nodes that the rolls of one descent made.
    widest_roll: usize,
    /// In place of the tree, in a game that hides something.
    mirror: Option<Box<Mirror<G>>>,
}

/// Lets rounds take searches, or other types that contain one.
impl<G: Game> AsMut<Self> for Search<G> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The goal that `begin` set, and the progress so far.
#[derive(Clone, Debug)]
struct Run {
    /// Simulations still to finish.
    remaining: u32,
    stream: Stream,
    /// Leaves get streams of their own from here, not from `stream`: dice must roll the same whether or not a cache
    /// answers for some leaves.
    leaf_streams: u64,
    /// Leaves since `begin`, answered by the evaluator or by the cache.
    leaves_met: u64,
    /// Plies of the longest descent.
    depth: usize,
    stats: SearchStats,
    /// Those that [`Search::take_counts`] has told.
    told: SearchStats,
    stop: Stop,
    fault: Option<GameFault>,
}

impl Run {
    fn new(mut stream: Stream) -> Self {
        let leaf_streams = stream.bits();
        Self {
            remaining: 0,
            stream,
            leaf_streams,
            leaves_met: 0,
            depth: 0,
            stats: SearchStats::default(),
            told: SearchStats::default(),
            stop: Stop::default(),
            fault: None,
        }
    }
}

/// Facts that are equal in all positions of a game.
#[derive(Clone, Copy, Debug)]
struct Size {
    num_actions: usize,
    num_players: usize,
    max_plies: usize,
}

impl Size {
    fn of<G: Game>(game: &G) -> Self {
        Self { num_actions: game.num_actions(), num_players: game.num_players(), max_plies: game.max_plies() }
    }

    /// What keeps these legal actions of a position, so many plies below the root, from being searched.
    #[inline]
    fn fault<G: Game>(&self, legal: &[Action], state: &G, plies: usize) -> Option<GameFault> {
        let &Self { num_actions, max_plies, .. } = self;
        match legal.last() {
            None => Some(GameFault::NoLegalActions(state.render())),
            Some(_) if legal.len() > usize::from(u16::MAX) => Some(GameFault::TooManyLegalActions(legal.len())),
            Some(&action) if action as usize >= num_actions => Some(GameFault::OutsidePolicy { action, num_actions }),
            Some(_) if plies > max_plies => Some(GameFault::TooLong(max_plies)),
            Some(_) => None,
        }
    }
}

/// Memory that searches use again and again. One for each thread: thousands of searches would have as many in no cache.
#[derive(Debug, Default)]
struct Scratch {
    /// The actions of a descent.
    line: Vec<Action>,
    actions: Vec<Action>,
    priors: Vec<f32>,
    outcomes: Vec<(Action, f32)>,
    scores: Vec<f64>,
}

impl Scratch {
    /// Lends this thread's to `work`.
    #[inline]
    fn lend<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        thread_local! {
            static OWN: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
        }
        let mut scratch = OWN.take().unwrap_or_default();
        let found = work(&mut scratch);
        OWN.set(Some(scratch));
        found
    }
}

impl<G: Game> Search<G> {
    /// A search of `root` that has not begun.
    pub fn new(root: G, config: SearchConfig) -> Self {
        let sums = if can_prove(&root) { 0 } else { root.num_players() };
        let bytes = |mb: f64| (mb * f64::from(1 << 20)) as usize;
        let max_nodes = |mb| (bytes(mb) / Tree::bytes_of(1, sums)).max(1);
        Self {
            tree: Tree::new(config.max_memory_mb.map_or(usize::MAX, max_nodes), sums),
            size: Size::of(&root),
            mirror: root.hides().then(|| Box::new(Mirror::new(None))),
            position: root,
            config,
            root: Root::default(),
            run: Run::new(Stream::keyed(&[])),
            round: Round::default(),
            plies: (0..config.lookahead).map(|_| Ply::new()).collect(),
            widest_leaf: 0,
            widest_roll: 0,
        }
    }

    /// Asks for `simulations` more, with draws (noise, dice) from `stream`. A root not yet evaluated is evaluated
    /// first; that is no simulation. At a finished game there is nothing to do. The search gets fewer simulations, and
    /// ends with [`Stop::Visits`], where the root's visits would pass [`tree::MOST_VISITS`].
    ///
    /// # Errors
    /// A root at a chance turn is refused, and an option that is not for this game.
    pub fn begin(&mut self, simulations: u32, stream: Stream) -> Result<(), GameFault> {
        if self.mirror.is_none() && self.position.hides() {
            self.reset(self.position.clone()); // the first view came later than the first position
        }
        self.run = Run::new(stream);
        self.config.check_for(&self.position)?;
        match self.position.turn() {
            Turn::Chance => return Err(GameFault::ChanceRoot),
            Turn::Terminal => self.end(Stop::GameOver),
            Turn::Player(_) if self.hides() => self.forget_views(),
            Turn::Player(_) => {
                // The evaluation of a new root is a visit too. No node has more visits than the root.
                let room = MOST_VISITS.saturating_sub(self.tree.node(ROOT).visits + u32::from(self.root_is_due()));
                if simulations > room {
                    self.run.stop = Stop::Visits;
                }
                self.run.remaining = simulations.min(room);
                self.root.halving.simulations = self.run.remaining;
                self.root.start(&mut self.tree, &self.config, &mut self.run.stream);
                self.end_early();
            }
        }
        Ok(())
    }

    /// Sets whether later searches explore their root for training, with noise and temperature. The default is true.
    pub fn set_exploring(&mut self, exploring: bool) {
        self.root.exploring = exploring;
    }

    /// Gumbel draws for the root's legal actions, to use in place of random ones until the root changes.
    pub fn set_gumbel_draws(&mut self, draws: &[f64]) {
        self.root.set_draws(draws);
    }

    /// Ends the search between rounds. A root that was never evaluated is still evaluated.
    pub fn interrupt(&mut self) {
        self.cut_short(Stop::Interrupted);
    }

    /// As [`Search::interrupt`], but in the middle of a round and for any reason: descents in flight are undone.
    pub(crate) fn cut_short(&mut self, why: Stop) {
        if self.is_done() {
            return;
        }
        // The root keeps its leaf, because it must be evaluated: otherwise it would be gathered and counted again.
        let at_root = self.round.leaves.first().is_some_and(|leaf| leaf.path.len() == 1);
        if !at_root {
            self.abandon();
        }
        self.end(why);
    }

    fn end(&mut self, why: Stop) {
        self.run.remaining = 0;
        self.run.stop = why;
    }

    /// Starts over at another position; memory is kept.
    pub fn reset(&mut self, root: G) {
        self.abandon();
        let scale = self.mirror.take().and_then(|mirror| mirror.scale);
        self.mirror = root.hides().then(|| Box::new(Mirror::new(scale)));
        self.size = Size::of(&root);
        self.position = root;
        self.tree.clear();
        self.root.forget();
    }

    /// Has the root offer these of its legal actions only, ascending, until it changes: the search is that of a game in
    /// which the others are not legal there. A tree that has begun with other actions begins anew.
    pub fn allow(&mut self, actions: Vec<Action>) {
        self.reset(self.position.clone());
        self.root.allowed = actions;
    }

    /// Moves the root along an action or a chance outcome, and keeps what the tree knows of it.
    pub fn advance(&mut self, action: Action) {
        self.abandon();
        self.forget_views();
        self.position.play(action);
        self.tree.keep_subtree(action);
        self.root.forget();
        self.root.inherit(self.tree.children(ROOT));
    }

    /// A search of the position after `action`, with what this one's tree knows of it. This one stays as it is.
    #[must_use]
    pub fn child(&self, action: Action) -> Self {
        let mut child = Self::new(self.position.clone(), self.config);
        child.position.play(action);
        if let Some(scale) = self.mirror.as_ref().and_then(|mirror| mirror.scale) {
            child.roll_out(scale);
        }
        child.tree = self.tree.subtree(action);
        (child.widest_leaf, child.widest_roll) = (self.widest_leaf, self.widest_roll);
        child.root.inherit(child.tree.children(ROOT));
        child.root.exploring = self.root.exploring;
        child
    }

    /// Whether the root offers only some of its legal actions (see [`Search::allow`]).
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        !self.root.allowed.is_empty()
    }

    /// How many actions the root offers.
    #[must_use]
    pub fn num_root_actions(&self) -> usize {
        if self.is_restricted() {
            return self.root.allowed.len();
        }
        legal_of(&self.position).len()
    }

    /// The position searched.
    #[must_use]
    pub fn root(&self) -> &G {
        &self.position
    }

    /// The tree, to look at.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Memory that the tree takes at most after the next round, in bytes. `known` is how many simulations the round may do
    /// without the evaluator. No position may have more actions than any before it, and no roll more outcomes. A search
    /// that has met no position yet counts all actions of the game.
    #[must_use]
    pub fn memory_ahead(&self, known: u64) -> usize {
        let widest_leaf = if self.widest_leaf == 0 { self.size.num_actions } else { self.widest_leaf };
        self.tree.memory_after((self.config.eval_batch + known as usize).saturating_mul(widest_leaf + self.widest_roll))
    }

    /// See [`Tree::fold`]. Only for searches without a memory limit.
    pub(crate) fn fold(&mut self) {
        self.tree.fold();
    }

    /// See [`Tree::shrink`].
    pub fn shrink(&mut self) {
        self.tree.shrink();
    }

    /// Drops the positions kept for reuse. Call it when the search may not continue.
    pub fn drop_spare(&mut self) {
        self.round.spare = Vec::new();
        self.plies.iter_mut().for_each(Ply::clear);
    }

    /// See [`Tree::reserve`].
    pub fn reserve(&mut self, bytes: usize) {
        self.tree.reserve(bytes);
    }

    /// Whether everything asked for is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.round.leaves.is_empty() && self.run.remaining == 0 && !self.root_is_due()
    }

    /// Ends a search that cannot start.
    pub(crate) fn fail(&mut self, fault: GameFault) {
        self.run.fault = Some(fault);
    }

    /// Counts since `begin`.
    #[must_use]
    pub fn stats(&self) -> &SearchStats {
        &self.run.stats
    }

    /// Counts since the last call, or since `begin`.
    pub(crate) fn take_counts(&mut self) -> SearchStats {
        let told = std::mem::replace(&mut self.run.told, self.run.stats);
        self.run.stats.since(&told)
    }

    /// Why the last search ended (or, while it goes on, would).
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.run.stop
    }

    /// A broken game rule met by the last `gather`, if any; the search cannot go on.
    #[must_use]
    pub fn fault(&self) -> Option<&GameFault> {
        self.run.fault.as_ref()
    }

    /// Leaves it may gather in a round.
    pub(crate) fn eval_batch(&self) -> usize {
        self.config.eval_batch
    }

    /// Whether leaves wait for their answers.
    pub(crate) fn has_leaves(&self) -> bool {
        !self.round.leaves.is_empty()
    }

    /// How many of them the cache did not answer, which is the most rows they need.
    pub(crate) fn rows(&self) -> usize {
        self.round.states.len()
    }

    /// Whether the search has used up its evaluations.
    fn evaluations_are_spent(&self) -> bool {
        self.config.evaluations.is_some_and(|evaluations| self.run.leaves_met >= u64::from(evaluations))
    }

    pub(crate) fn root_is_due(&self) -> bool {
        let is_new = match &self.mirror {
            None => self.tree.node(ROOT).kind == Kind::New,
            Some(mirror) => mirror.root_is_due(),
        };
        is_new && matches!(self.position.turn(), Turn::Player(_))
    }

    fn forget_views(&mut self) {
        if let Some(mirror) = &mut self.mirror {
            mirror.forget(&mut self.round.spare);
        }
    }

    /// Ends a search whose result is certain. Nothing may be in flight.
    fn end_early(&mut self) {
        if self.tree.node(ROOT).proof != 0 {
            self.end(Stop::Proven);
        } else if self.run.remaining == 0 {
            // The search finished its simulations.
        } else if self.evaluations_are_spent() {
            self.end(Stop::Evaluations);
        } else if self.config.early_stop && self.is_decided() {
            self.end(Stop::Decided);
        }
    }

    /// Whether the most visited action stays first whatever the remaining simulations find.
    fn is_decided(&self) -> bool {
        let children = self.tree.children(ROOT);
        let Some(best) = result::most_visited(children) else {
            return false;
        };
        let rivals = children.iter().enumerate().filter(|&(index, _)| index != best);
        // Even an only action gets a visit first, so that the result has visits.
        children[best].visits > 0
            && rivals
                .map(|(_, child)| child.visits.saturating_add(self.run.remaining))
                .all(|n| n < children[best].visits)
    }
}

/// The seed of a search that belongs to a game's ply, or to a tree of a batch.
#[must_use]
pub fn stream_for(seed: u64, game: u64, ply: u64) -> Stream {
    Stream::keyed(&[mix(seed), game, ply])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batched::{Rounds, Workers};
    use crate::evaluator::Uniform;
    use crate::toy::Toy;

    #[test]
    fn pauses_between_known_simulations_change_nothing() {
        for (seed, in_flight_share) in [(1, None), (2, Some(0.01)), (3, Some(0.1)), (4, Some(0.5))] {
            let found = [1, 2, 7, 100, GATHER_AT_MOST].map(|known| {
                let config = SearchConfig { in_flight_share, ..SearchConfig::default() };
                let mut search = [Search::new(Toy::random(seed, 5, true), config)];
                search[0].begin(10_000, Stream::keyed(&[seed])).unwrap();
                let mut rounds = Rounds::new(Workers::Serial, None);
                while !search[0].is_done() {
                    rounds.gather(&mut search, None, |_| known);
                    rounds.evaluate(&mut search, &mut Uniform).unwrap();
                    rounds.take_up(&mut search);
                }
                let bits = |node: &tree::Node| (node.visits, node.value_sum.to_bits());
                let nodes: Vec<_> = search[0].tree.nodes().iter().map(bits).collect();
                (nodes, search[0].run.stats)
            });
            assert!(found[4].1.terminals > 2 * GATHER_AT_MOST);
            assert!(found.iter().all(|other| *other == found[4]), "seed {seed}");
        }
    }

    #[test]
    fn a_search_stops_before_a_nodes_visits_overflow_and_says_so() {
        let run = |search: &mut Search<Toy>, simulations| {
            search.begin(simulations, Stream::keyed(&[1])).unwrap();
            let mut rounds = Rounds::new(Workers::Serial, None);
            while rounds.run(std::slice::from_mut(search), &mut Uniform).unwrap() {}
            let root = search.tree.node(ROOT);
            assert_eq!(root.visits, 1 + search.tree.children(ROOT).iter().map(|child| child.visits).sum::<u32>());
            (search.result().stop, search.stats().simulations, root.visits)
        };
        let mut search = Search::new(Toy::random(3, 5, false), SearchConfig::default());
        assert_eq!(run(&mut search, 100), (Stop::Simulations, 100, 101));
        search.tree.add_visits(1, MOST_VISITS - 101 - 60);
        assert_eq!(run(&mut search, 50), (Stop::Simulations, 50, MOST_VISITS - 10));
        assert_eq!(run(&mut search, u32::MAX), (Stop::Visits, 10, MOST_VISITS));
        assert_eq!(run(&mut search, u32::MAX), (Stop::Visits, 0, MOST_VISITS));
        assert_eq!(run(&mut search, 0), (Stop::Simulations, 0, MOST_VISITS));
    }
}
