//! Requests that come and go: searches that share rounds, and join and leave between them.
//!
//! A round takes the leaves that wait, up to a cap of rows, and never waits for more: 3 searches with a leaf each are a
//! batch of 3, and 300 under a cap of 256 are 256 and 44. Searches stand in a queue. The searches of a batch go to the
//! queue's end. So a search that the cap left over comes first the next time, with the leaves that it has gathered
//! already. Simulations that need no evaluator are shared out too: all searches together do about a thousand of them a
//! round.
//!
//! A search sees its own leaves and their answers alone, in its own order. So what a search finds does not depend on
//! the searches that share its rounds, if the evaluator's answer to a row does not. Only a deadline makes a result
//! depend on time: a search ends before the round that would probably end too late. The lengths of the last rounds say
//! how long the next one may take.
//!
//! This module knows no threads, and time only as it is told.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batched::{RoundStats, Rounds, SearchError, Workers};
use crate::cache::Cache;
use crate::config::SearchConfig;
use crate::evaluator::Evaluator;
use crate::game::{Game, GameFault};
use crate::search::{Search, stream_for};

/// Rounds of which the longest says how long the next one may take: few, so that a single slow one is soon forgotten.
const ROUNDS_REMEMBERED: usize = 8;

/// Simulations that end in known positions (finished games, answers of the cache) in one round, over all searches. They
/// need no evaluator, so a search in a nearly finished position could do thousands while the others wait.
const KNOWN_A_ROUND: u64 = 1024;

/// What somebody wants to know of a position.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// Whatever the owner tells requests apart by.
    pub token: T,
    /// Visits below the root.
    pub simulations: u32,
    /// Of the noise and the dice: a request finds what the first run of a search with this seed finds.
    pub seed: u64,
    /// When it is to be answered with what is known by then.
    pub deadline: Option<Instant>,
}

/// A request that is done, or has met a fault (see [`Search::fault`]).
pub struct Ended<G, T> {
    /// The search, with its tree.
    pub search: Search<G>,
    /// The request's.
    pub token: T,
}

/// Searches under way, one a request.
pub struct Serving<G, T> {
    config: SearchConfig,
    /// Rows of a batch, at most.
    max_batch: usize,
    /// Whether a game has failed in a way of its own: its request ends alone.
    broken: fn(&G) -> bool,
    rounds: Rounds<G>,
    /// The queue: searches and their requests, in step.
    searches: Vec<Search<G>>,
    requests: Vec<Request<T>>,
    /// Those that join with the next round.
    joining: Vec<(Search<G>, Request<T>)>,
    /// When the last round began, unless there was a pause after it.
    began: Option<Instant>,
    /// How long the last rounds took, and which of them is the oldest.
    lengths: [Duration; ROUNDS_REMEMBERED],
    oldest: usize,
    left_over: usize,
}

impl<G: Game, T> Serving<G, T> {
    /// Nobody asks yet. `broken` says whether a game has failed in a way of its own.
    ///
    /// # Panics
    /// When `max_batch` has no room for the leaves of one search.
    pub fn new(
        config: SearchConfig,
        max_batch: usize,
        workers: Workers,
        cache: Option<Arc<Cache>>,
        broken: fn(&G) -> bool,
    ) -> Self {
        assert!(max_batch >= config.eval_batch, "a batch has room for the leaves of one search");
        Self {
            config,
            max_batch,
            broken,
            rounds: Rounds::new(workers, cache),
            searches: Vec::new(),
            requests: Vec::new(),
            joining: Vec::new(),
            began: None,
            lengths: [Duration::ZERO; ROUNDS_REMEMBERED],
            oldest: 0,
            left_over: 0,
        }
    }

    /// Takes a request; its search begins with the next round.
    ///
    /// # Errors
    /// A root at a chance turn is refused, and the request comes back.
    pub fn join(&mut self, root: G, request: Request<T>) -> Result<(), (GameFault, T)> {
        let mut search = Search::new(root, self.config, 0);
        match search.begin(request.simulations, stream_for(request.seed, 0, 0)) {
            Ok(()) => self.joining.push((search, request)),
            Err(fault) => return Err((fault, request.token)),
        }
        Ok(())
    }

    /// Takes requests out whose owner says so.
    pub fn leave(&mut self, gone: impl Fn(&T) -> bool) -> Vec<T> {
        let mut left = Vec::new();
        for (search, request) in std::mem::take(&mut self.joining) {
            if gone(&request.token) {
                left.push(request.token);
            } else {
                self.joining.push((search, request));
            }
        }
        self.take_out(|_, request| gone(&request.token), |_, request| left.push(request.token));
        left
    }

    /// Takes all requests out: after an error, or to end.
    pub fn clear(&mut self) -> Vec<T> {
        self.leave(|_| true)
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.searches.is_empty() && self.joining.is_empty()
    }

    /// Searches for whose leaves the last batch had no room.
    #[must_use]
    pub fn left_over(&self) -> usize {
        self.left_over.min(self.searches.len())
    }

    /// What filled the batches so far.
    #[must_use]
    pub fn stats(&self) -> RoundStats {
        self.rounds.stats
    }

    /// The first half of a round: every search gathers its leaves. Gives those that ended without the evaluator, for
    /// which it would be too long to wait: it is `now`.
    pub fn gather<E: Evaluator<G>>(&mut self, evaluator: &E, now: Instant) -> Vec<Ended<G, T>> {
        let new = self.searches.len();
        for (search, request) in self.joining.drain(..) {
            self.searches.push(search);
            self.requests.push(request);
        }
        self.end_due(now);
        // Each search has the same share, and no less than the simulations of a search that needs the evaluator.
        let share = KNOWN_A_ROUND / self.searches.len().max(1) as u64;
        let known = share.max(self.config.eval_batch as u64);
        self.rounds.gather(&mut self.searches, slice::from_ref(evaluator), known);
        self.let_ahead(new);
        self.take_ended()
    }

    /// The second half: one batch is evaluated and taken up. Gives those that have ended by that.
    ///
    /// # Errors
    /// The evaluator's. The searches of the batch have lost their leaves: none can go on, and it is for the owner to
    /// take them out.
    pub fn answer<E: Evaluator<G>>(&mut self, evaluator: &mut E) -> Result<Vec<Ended<G, T>>, SearchError<E::Error>> {
        let mut rows = 0;
        let fits = |search: &&Search<G>| {
            rows += search.rows();
            rows <= self.max_batch
        };
        let batch = self.searches.iter().take_while(fits).count();
        self.left_over = self.searches.len() - batch;
        match self.rounds.answer(&mut self.searches[..batch], slice::from_mut(evaluator)) {
            Ok(()) => {
                self.searches.rotate_left(batch);
                self.requests.rotate_left(batch);
            }
            // A game failed as it was encoded: the evaluator was not asked, and the others are not to blame.
            Err(_) if self.searches.iter().any(|search| (self.broken)(search.root())) => self.begin_again(batch),
            Err(error) => return Err(error),
        }
        Ok(self.take_ended())
    }

    /// Lets newcomers with a deadline (those from `new` on) ahead once, so that there is something to answer them with.
    /// They get half of a batch at most, and stay behind the first search of the queue. So the other searches go on,
    /// however many leaves the newcomers have.
    fn let_ahead(&mut self, new: usize) {
        let mut room = self.max_batch / 2;
        let newcomers = self.searches.drain(new..).zip(self.requests.drain(new..));
        let (hurried, others): (Vec<_>, Vec<_>) = newcomers.partition(|(search, request)| {
            let hurried = request.deadline.is_some() && search.rows() <= room;
            room -= if hurried { search.rows() } else { 0 };
            hurried
        });
        let first = new.min(1);
        let old: Vec<_> = match hurried.is_empty() {
            true => Vec::new(),
            false => self.searches.drain(first..).zip(self.requests.drain(first..)).collect(),
        };
        for (search, request) in hurried.into_iter().chain(old).chain(others) {
            self.searches.push(search);
            self.requests.push(request);
        }
    }

    /// Ends the searches for which another round would probably be too long.
    fn end_due(&mut self, now: Instant) {
        if let Some(began) = self.began.replace(now) {
            self.lengths[self.oldest] = now.saturating_duration_since(began);
            self.oldest = (self.oldest + 1) % ROUNDS_REMEMBERED;
        }
        // And a quarter more, as the next one may be longer still.
        let longest = self.lengths.iter().max().copied().unwrap_or_default().mul_f64(1.25);
        for (search, request) in self.searches.iter_mut().zip(&self.requests) {
            if request.deadline.is_some_and(|deadline| deadline.saturating_duration_since(now) <= longest) {
                search.cut_short();
            }
        }
    }

    /// Has the searches of a batch that came to nothing begin from nothing, but for those that are to blame: leaves are
    /// lost, and what has been drawn for them cannot be drawn again.
    fn begin_again(&mut self, batch: usize) {
        for (search, request) in self.searches[..batch].iter_mut().zip(&self.requests) {
            if search.has_leaves() && !(self.broken)(search.root()) {
                search.reset(search.root().clone());
                // It was no chance turn before. Should a game have changed its mind, the search is over.
                let _ = search.begin(request.simulations, stream_for(request.seed, 0, 0));
            }
        }
    }

    fn take_ended(&mut self) -> Vec<Ended<G, T>> {
        let (broken, mut ended) = (self.broken, Vec::new());
        self.take_out(
            |search, _| search.is_done() || search.fault().is_some() || broken(search.root()),
            |search, request| ended.push(Ended { search, token: request.token }),
        );
        ended
    }

    /// Takes some out of the queue; the others keep their order.
    fn take_out(&mut self, out: impl Fn(&Search<G>, &Request<T>) -> bool, mut take: impl FnMut(Search<G>, Request<T>)) {
        if self.searches.iter().zip(&self.requests).any(|(search, request)| out(search, request)) {
            let all = std::mem::take(&mut self.searches).into_iter().zip(std::mem::take(&mut self.requests));
            for (search, request) in all {
                if out(&search, &request) {
                    take(search, request);
                } else {
                    self.searches.push(search);
                    self.requests.push(request);
                }
            }
        }
        if self.is_empty() {
            // What comes now is a pause, and no round's length.
            self.began = None;
        }
    }
}
