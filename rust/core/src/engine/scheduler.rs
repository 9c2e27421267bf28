//! The queue of one network's open searches: whose turn it is, and who ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pipeline::KNOWN_A_ROUND;
use super::{OpenSearch, Pipeline, Priority, Request, STRIDE, Signal, Took};
use crate::batched::{RoundStats, Workers};
use crate::cache::Cache;
use crate::config::SearchConfig;
use crate::game::Game;
use crate::search::{Search, Stop};

/// The longest of the last rounds predicts the next one. They are few, so that one slow round is soon forgotten.
const ROUNDS_REMEMBERED: usize = 8;

/// The searches that a pipeline has taken from a scheduler.
#[derive(Default)]
struct Out {
    searches: usize,
    /// Those that do not ponder.
    in_earnest: usize,
    /// Memory of the trees after the round, in bytes.
    bytes: usize,
    /// The bytes of each search among them that has begun.
    begun: Vec<usize>,
    /// The bytes of each search that ends with the round; `bytes` is without them.
    cut: Vec<usize>,
}

/// The open searches of one network.
pub struct Scheduler<G: Game, T> {
    config: SearchConfig,
    max_batch: usize,
    /// Fewer rows than this are not shared out to several pipelines.
    split_from: usize,
    /// Whether a game has failed by itself, so that only its request ends.
    broken: fn(&G) -> bool,
    signal: fn(&T) -> Signal,
    /// The waiting searches, in the order of their turns.
    waiting: Vec<OpenSearch<G, T>>,
    /// What each pipeline has.
    out: Vec<Out>,
    /// Rounds so far.
    rounds: u64,
    /// How long the last rounds took, and which of them is the oldest.
    lengths: [Duration; ROUNDS_REMEMBERED],
    oldest: usize,
    left_over: usize,
    stats: RoundStats,
}

impl<G: Game, T> Scheduler<G, T> {
    /// A scheduler without requests. `broken` says whether a game has failed in a way of its own, `signal` what an owner
    /// wants by now. Fewer rows than `split_from` stay in one batch.
    ///
    /// # Panics
    /// When `max_batch` has no room for the leaves of one search.
    pub fn new(
        config: SearchConfig,
        max_batch: usize,
        split_from: usize,
        broken: fn(&G) -> bool,
        signal: fn(&T) -> Signal,
    ) -> Self {
        assert!(max_batch >= config.eval_batch, "a batch has room for the leaves of one search");
        Self {
            config,
            max_batch,
            split_from,
            broken,
            signal,
            waiting: Vec::new(),
            out: Vec::new(),
            rounds: 0,
            lengths: [Duration::ZERO; ROUNDS_REMEMBERED],
            oldest: 0,
            left_over: 0,
            stats: RoundStats::default(),
        }
    }

    /// A pipeline for this scheduler's searches.
    pub fn pipeline(&mut self, workers: Workers, cache: Option<Arc<Cache>>) -> Pipeline<G, T> {
        self.out.push(Out::default());
        Pipeline::new(self.out.len() - 1, workers, cache, self.max_batch, self.broken)
    }

    /// A search from nothing, with the scheduler's options.
    pub fn search(&self, root: G) -> Search<G> {
        Search::new(root, self.config)
    }

    /// Takes a request that `search` will answer, with the tree that it has already. At a chance turn it ends with a
    /// fault.
    pub fn join(&mut self, mut search: Search<G>, request: Request<T>, now: Instant) {
        if let Err(fault) = search.begin(request.simulations, request.stream()) {
            search.fail(fault);
        }
        let report = request.report_every.map(|every| now + every);
        let turn = self.next_turn(request.priority);
        // Few at first, because the growth of a new tree is unknown.
        let known = self.config.eval_batch as u64;
        self.queue(OpenSearch { search, request, turn, begun: false, known, bytes: 0, report });
    }

    /// Whether there is a search for a pipeline to take. Searches that ponder wait until the whole engine is `quiet`.
    #[must_use]
    pub fn has_work(&self, quiet: bool) -> bool {
        self.waiting.iter().any(|open| self.may_go(open, quiet))
    }

    /// Whether there is a search that does not ponder, waiting or in a pipeline.
    #[must_use]
    pub fn in_earnest(&self) -> bool {
        self.out.iter().any(|pipeline| pipeline.in_earnest > 0) || self.waiting.iter().any(|open| !open.ponders())
    }

    /// Whether there is nothing to do, and no pipeline has a search.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.num_out() == 0
    }

    /// Searches for whose leaves the last batch had no room.
    #[must_use]
    pub fn left_over(&self) -> usize {
        self.left_over.min(self.waiting.len())
    }

    /// What filled the batches so far.
    #[must_use]
    pub fn stats(&self) -> RoundStats {
        self.stats
    }

    /// Bytes of the trees of all searches that go on, in the pipelines too, after their next rounds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let waiting = self.waiting.iter().filter(|open| !open.search.is_done()).map(OpenSearch::memory_ahead);
        waiting.chain(self.out.iter().map(|pipeline| pipeline.bytes)).sum()
    }

    /// Bytes of the largest of these trees whose search has begun.
    #[must_use]
    pub fn largest(&self) -> usize {
        let waiting = self.waiting.iter().filter(|open| open.is_growing()).map(OpenSearch::memory_ahead);
        waiting.chain(self.out.iter().flat_map(|pipeline| &pipeline.begun).copied()).max().unwrap_or_default()
    }

    /// Ends the search with the largest tree, and returns the tree's bytes. A search that is in a pipeline ends when the
    /// pipeline returns it, and [`Scheduler::memory_bytes`] leaves its tree out at once.
    pub fn end_largest(&mut self) -> Option<usize> {
        let largest = self.largest();
        if let Some(open) = self.waiting.iter_mut().find(|open| open.is_growing() && open.memory_ahead() == largest) {
            open.search.cut_short(Stop::Memory);
            return Some(largest);
        }
        for pipeline in &mut self.out {
            if let Some(place) = pipeline.begun.iter().position(|&bytes| bytes == largest) {
                pipeline.cut.push(pipeline.begun.swap_remove(place));
                pipeline.bytes -= largest;
                return Some(largest);
            }
        }
        None
    }

    /// Simulations that a search may do in a round without the evaluator, beside so many others: the same for all, and no
    /// less than a search does that needs the evaluator.
    fn share_of_known(&self, others: usize) -> u64 {
        let searches = (self.waiting.len() + self.num_out() + others).max(1);
        (KNOWN_A_ROUND / searches as u64).max(self.config.eval_batch as u64)
    }

    /// Searches in the pipelines.
    fn num_out(&self) -> usize {
        self.out.iter().map(|pipeline| pipeline.searches).sum()
    }

    /// Gives a pipeline the searches whose turn it is, as many as fit into what its batch has left. Returns whether there
    /// was one.
    pub fn give(&mut self, pipeline: &mut Pipeline<G, T>, now: Instant, quiet: bool) -> bool {
        self.end_due(now);
        if pipeline.open.is_empty() {
            pipeline.began = Some(now);
            self.rounds += 1;
        }
        let mut room = self.share(pipeline).saturating_sub(pipeline.rows());
        self.let_ahead(room);
        let mut took = Vec::new();
        let mut index = 0;
        while index < self.waiting.len() {
            let open = &self.waiting[index];
            if !self.may_go(open, quiet) {
                index += 1;
                continue;
            }
            let rows = open.rows();
            if rows > room && !(pipeline.open.is_empty() && took.is_empty()) {
                break;
            }
            room = room.saturating_sub(rows);
            took.push(index);
            index += 1;
        }
        if took.is_empty() {
            return false;
        }
        let mut next = took.iter().copied().peekable();
        let out = &mut self.out[pipeline.number];
        for (index, mut open) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            if next.next_if_eq(&index).is_some() {
                open.bytes = open.memory_ahead();
                out.bytes += open.bytes;
                out.begun.extend(open.begun.then_some(open.bytes));
                out.searches += 1;
                out.in_earnest += usize::from(!open.ponders());
                pipeline.open.push(open);
            } else {
                self.waiting.push(open);
            }
        }
        true
    }

    /// Takes a pipeline's searches back after a round. Finished searches go to their owners.
    pub fn take_back(&mut self, pipeline: &mut Pipeline<G, T>, now: Instant) -> Took<G, T> {
        if let Some(began) = pipeline.began.take() {
            self.lengths[self.oldest] = now.saturating_duration_since(began);
            self.oldest = (self.oldest + 1) % ROUNDS_REMEMBERED;
        }
        self.stats.add(&std::mem::take(&mut pipeline.rounds.stats));
        let mut took = std::mem::take(&mut pipeline.took);
        let mut cut = std::mem::take(&mut self.out[pipeline.number]).cut;
        self.left_over = self.waiting.len();
        let known = self.share_of_known(pipeline.open.len());
        pipeline.gathered = 0;
        for mut open in pipeline.open.drain(..) {
            open.known = known;
            if open.begun
                && let Some(place) = cut.iter().position(|&bytes| bytes == open.bytes)
            {
                cut.swap_remove(place);
                open.search.cut_short(Stop::Memory);
            }
            if open.search.has_leaves() {
                self.left_over += 1;
            } else {
                open.begun = true;
                open.turn = self.next_turn(open.request.priority);
            }
            self.queue(open);
        }
        self.end_due(now);
        took.ended.append(&mut self.take_ended());
        took
    }

    /// Searches that have ended in the queue, by a signal of their owners or a deadline.
    pub fn look(&mut self, now: Instant) -> Vec<OpenSearch<G, T>> {
        self.end_due(now);
        self.take_ended()
    }

    fn may_go(&self, open: &OpenSearch<G, T>, quiet: bool) -> bool {
        !open.ponders() || (quiet && !self.in_earnest())
    }

    /// Rows that the pipeline's batch may have. Where two pipelines could not both have a full one, each has half of what
    /// there is.
    fn share(&self, pipeline: &Pipeline<G, T>) -> usize {
        let rows: usize = self.waiting.iter().chain(&pipeline.open).map(OpenSearch::rows).sum();
        let rows = rows + self.num_out().saturating_sub(pipeline.open.len()) * self.config.eval_batch;
        if rows >= 2 * self.max_batch || rows < self.split_from {
            return self.max_batch;
        }
        rows.div_ceil(2).min(self.max_batch)
    }

    /// When a search of this priority has its next turn: searches that ponder after all others, an analysis after so many
    /// turns of the others.
    fn next_turn(&self, priority: Priority) -> u64 {
        match priority {
            Priority::Play => self.rounds,
            Priority::Analysis => {
                let rounds = (self.waiting.len() + self.num_out()) * self.config.eval_batch / self.max_batch;
                self.rounds + STRIDE * (1 + rounds as u64)
            }
            Priority::Ponder => u64::MAX,
        }
    }

    /// Puts a search behind all whose turn is not after its own.
    fn queue(&mut self, open: OpenSearch<G, T>) {
        let place = self.waiting.partition_point(|other| other.turn <= open.turn);
        self.waiting.insert(place, open);
    }

    /// Lets newcomers with a deadline ahead once, so that there is something to answer them with. But as half of a batch at
    /// most, and behind the first of the queue: so the others go on, however large their leaves' share.
    fn let_ahead(&mut self, room: usize) {
        let Some(first) = self.waiting.first() else {
            return;
        };
        let (turn, mut room) = (first.turn, room / 2);
        let mut ahead = Vec::new();
        for index in (1..self.waiting.len()).filter(|&index| self.waiting[index].hurries()).collect::<Vec<_>>() {
            let rows = self.waiting[index].rows();
            if rows <= room {
                room -= rows;
                ahead.push(index);
            }
        }
        for (place, index) in ahead.into_iter().enumerate() {
            self.waiting[1 + place..=index].rotate_right(1);
            self.waiting[1 + place].turn = turn;
        }
    }

    /// Ends the searches for which another round would probably be too long, and those whose owners ask for it. Their
    /// answer still needs the root's evaluation. To get it they count as play from then on: as analysis or pondering they
    /// would wait for the others.
    fn end_due(&mut self, now: Instant) {
        // Add a quarter, because the next round may be longer.
        let longest = self.lengths.iter().max().copied().unwrap_or_default().mul_f64(1.25);
        let signal = self.signal;
        let is_late = |deadline: Instant| deadline.saturating_duration_since(now) <= longest;
        let needs_its_root = |open: &mut OpenSearch<G, T>| {
            let why = match signal(&open.request.token) {
                Signal::Stop => Stop::Stopped,
                _ if open.request.deadline.is_some_and(is_late) => Stop::Interrupted,
                _ => return false,
            };
            open.search.cut_short(why);
            !open.search.is_done() && open.request.priority != Priority::Play
        };
        let urgent: Vec<_> = self.waiting.extract_if(.., needs_its_root).collect();
        for mut open in urgent {
            open.request.priority = Priority::Play;
            open.turn = self.next_turn(Priority::Play);
            self.queue(open);
        }
    }

    fn take_ended(&mut self) -> Vec<OpenSearch<G, T>> {
        let over = |open: &mut OpenSearch<G, T>| {
            open.search.is_done()
                || open.search.fault().is_some()
                || (self.broken)(open.search.root())
                || (self.signal)(&open.request.token) == Signal::Cancel
        };
        let mut ended: Vec<_> = self.waiting.extract_if(.., over).collect();
        // Searches whose owners have left may still have leaves.
        ended.iter_mut().filter(|open| open.search.has_leaves()).for_each(|open| open.search.abandon());
        ended
    }
}
