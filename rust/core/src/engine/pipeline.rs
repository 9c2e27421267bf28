//! One round of some searches: they gather leaves, a batch is evaluated, and they take its answers up.

use std::sync::Arc;
use std::time::Instant;

use super::OpenSearch;
use crate::batched::{Rounds, SearchError, Workers};
use crate::cache::Cache;
use crate::evaluator::Evaluator;
use crate::game::Game;

/// Simulations that end in known positions (finished games, answers of the cache) in one round, over all searches. They
/// need no evaluator, so a search in a nearly finished position could do thousands while the others wait.
pub(super) const KNOWN_A_ROUND: u64 = 1024;

/// How long a search goes on between two reports, at least: so many times as long as the last report took.
const BETWEEN_REPORTS: u32 = 4;

/// Searches that a scheduler has given out, for a round.
pub struct Pipeline<G: Game, T> {
    /// The pipeline's number in its scheduler.
    pub(super) number: usize,
    pub(super) rounds: Rounds<G>,
    pub(super) open: Vec<OpenSearch<G, T>>,
    pub(super) took: Took<G, T>,
    pub(super) began: Option<Instant>,
    /// How many of its searches have gathered in this round: none does so twice.
    pub(super) gathered: usize,
    /// How many of its searches are in the batch.
    batch: usize,
    max_batch: usize,
    broken: fn(&G) -> bool,
}

/// Searches that a round took out of the queue.
pub struct Took<G: Game, T> {
    /// They are done, or have met a fault ([`crate::search::Search::fault`]), or their owners have left.
    pub ended: Vec<OpenSearch<G, T>>,
    /// They were in a batch that the evaluator could not answer. They have nothing in flight.
    pub failed: Vec<OpenSearch<G, T>>,
}

impl<G: Game, T> Default for Took<G, T> {
    fn default() -> Self {
        Self { ended: Vec::new(), failed: Vec::new() }
    }
}

impl<G: Game, T> Pipeline<G, T> {
    pub(super) fn new(
        number: usize,
        workers: Workers,
        cache: Option<Arc<Cache>>,
        max_batch: usize,
        broken: fn(&G) -> bool,
    ) -> Self {
        let rounds = Rounds::new(workers, cache);
        let (open, took) = (Vec::new(), Took::default());
        Self { number, rounds, open, took, began: None, gathered: 0, batch: 0, max_batch, broken }
    }

    /// Rows that its searches have gathered, or probably will.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.open.iter().map(OpenSearch::rows).sum()
    }

    /// The first part of a round: every search that has come since the last call, without leaves, gathers some. `network`
    /// is that of the evaluator, for the cache. Returns whether the batch has room for more.
    pub fn gather(&mut self, network: Option<u64>) -> bool
    where
        T: Send,
    {
        self.rounds.gather(&mut self.open[self.gathered..], network, |open| open.known);
        self.take_ended();
        self.gathered = self.open.len();
        self.open.iter().map(|open| open.search.rows()).sum::<usize>() < self.max_batch
    }

    /// Whether leaves wait that the cache did not answer.
    #[must_use]
    pub fn needs_evaluator(&self) -> bool {
        self.open.iter().any(|open| open.search.rows() > 0)
    }

    /// The second part: one batch is evaluated. Searches that do not fit keep their leaves. What it returns is for
    /// [`Pipeline::take_up`].
    ///
    /// # Errors
    /// The evaluator's.
    pub fn evaluate<E: Evaluator<G>>(&mut self, evaluator: &mut E) -> Result<(), SearchError<E::Error>>
    where
        T: Send,
    {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut rows = 0;
        let fits = |open: &&OpenSearch<G, T>| {
            rows += open.search.rows();
            rows <= self.max_batch
        };
        self.batch = self.open.iter().take_while(fits).count();
        self.rounds.evaluate(&mut self.open[..self.batch], evaluator)
    }

    /// The third part: the searches of the batch take its answers up, which needs no evaluator.
    ///
    /// # Errors
    /// Those of [`Pipeline::evaluate`], whose outcome it takes: the searches of the batch have failed. Where a game failed
    /// as it was encoded, only its own search ends, and the others keep their leaves.
    pub fn take_up<E>(&mut self, outcome: Result<(), SearchError<E>>) -> Result<(), SearchError<E>>
    where
        T: Send,
    {
        let batch = std::mem::take(&mut self.batch);
        let outcome = match outcome {
            Ok(()) => {
                self.rounds.take_up(&mut self.open[..batch]);
                Ok(())
            }
            Err(_) if self.open.iter().any(|open| (self.broken)(open.search.root())) => {
                self.rounds.restore(&mut self.open[..batch]);
                Ok(())
            }
            Err(error) => {
                self.took.failed.extend(self.open.drain(..batch));
                self.took.failed.iter_mut().for_each(|open| open.search.abandon());
                Err(error)
            }
        };
        self.take_ended();
        outcome
    }

    /// Calls `tell` for every search whose report is due. `tell` returns what time it is then: a report of a large tree
    /// takes a while, and the search goes on for [`BETWEEN_REPORTS`] times as long before the next one.
    pub fn report(&mut self, mut now: Instant, mut tell: impl FnMut(&OpenSearch<G, T>) -> Instant) {
        for open in &mut self.open {
            if open.report.is_some_and(|due| due <= now) && open.search.tree().nodes().len() > 1 {
                let told = tell(open);
                let took = told.saturating_duration_since(now);
                now = told;
                open.report = open.request.report_every.map(|every| now + every.max(took * BETWEEN_REPORTS));
            }
        }
    }

    /// Takes all its searches out as failed, after a panic in the middle of a round.
    pub fn fail(&mut self) {
        self.batch = 0;
        self.took.failed.append(&mut self.open);
    }

    fn take_ended(&mut self) {
        let over = |open: &mut OpenSearch<G, T>| {
            open.search.is_done() || open.search.fault().is_some() || (self.broken)(open.search.root())
        };
        self.took.ended.extend(self.open.extract_if(.., over));
    }
}
