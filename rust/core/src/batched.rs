//! Many searches, one batch a round.
//!
//! A round: every search gathers its leaves, all leaves go to the network in one call, and every search takes
//! its answers up. A search sees only its own leaves and their answers, in its own order, so what it finds does not
//! depend on which others share its rounds: searches join and leave between rounds, nothing waits for the slowest.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::cache::Cache;
use crate::error::Error;
use crate::evaluator::{Batch, Evaluator};
use crate::game::{Action, Game, GameFault, Pov, PovOf};
use crate::process::Process;
use crate::rng::mix;
use crate::search::{Answer, GATHER_AT_MOST, Replies, Search, SearchStats};

/// Fewer jobs than this are done by the calling thread: handing them out costs more than doing them.
const PARALLEL_FROM: usize = 8;

/// The threads that do the host's work.
#[derive(Clone)]
pub enum Workers {
    /// The calling thread alone. Games that must not be touched from other threads need this.
    Serial,
    /// A pool of threads. In a fork of its process, which has none of them, the calling thread alone.
    Pool(Arc<Pool>),
}

/// The threads of a pool, and the process that they run in.
pub struct Pool {
    threads: Option<rayon::ThreadPool>,
    process: Process,
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // Ending the threads takes locks that they may have held when the process was forked.
            std::mem::forget(self.threads.take());
        }
    }
}

impl Workers {
    /// `threads` threads; with one, no pool at all.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn new(threads: usize) -> Result<Self, Error> {
        if threads <= 1 {
            return Ok(Self::Serial);
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("azpy-{index}"))
            .build()
            .map_err(|error| Error::Threads { threads: format!("{threads} threads"), why: error.to_string() })?;
        Ok(Self::Pool(Arc::new(Pool { threads: Some(pool), process: Process::current() })))
    }

    /// The threads for so many jobs; `None` where the calling thread does them.
    fn pool(&self, jobs: usize, parallel_from: usize) -> Option<&rayon::ThreadPool> {
        match self {
            Self::Pool(pool) if jobs >= parallel_from && pool.process.is_current() => pool.threads.as_ref(),
            _ => None,
        }
    }

    /// Calls `job` for every item, in any order.
    pub fn for_each<T: Send>(&self, items: &mut [T], job: impl Fn(&mut T) + Sync + Send) {
        match self.pool(items.len(), PARALLEL_FROM) {
            Some(pool) => pool.install(|| items.par_iter_mut().with_min_len(4).for_each(job)),
            None => items.iter_mut().for_each(job),
        }
    }

    /// Encodes states into consecutive rows.
    fn encode<G: Game>(&self, states: &[G], rows: &mut [f32]) {
        let Some(row_len) = rows.len().checked_div(states.len()).filter(|&len| len > 0) else {
            return;
        };
        match self.pool(states.len(), 64) {
            Some(pool) => pool.install(|| {
                let pairs = states.par_iter().zip(rows.par_chunks_exact_mut(row_len));
                pairs.with_min_len(32).for_each(|(state, row)| state.encode(row));
            }),
            None => states.iter().zip(rows.chunks_exact_mut(row_len)).for_each(|(state, row)| state.encode(row)),
        }
    }
}

/// Why a round failed. Everything in flight has been undone.
#[derive(Debug, thiserror::Error)]
pub enum SearchError<E> {
    /// The evaluator's error, unchanged.
    #[error("the evaluator failed")]
    Evaluator(E),
    /// An answer that cannot be used.
    #[error("{0}")]
    BadReply(String),
    /// A game that breaks its contract.
    #[error("{fault}")]
    Game {
        /// The index of the search.
        search: usize,
        /// The fault.
        fault: GameFault,
    },
}

/// What filled the batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundStats {
    /// Calls of an evaluator.
    pub batches: u64,
    /// Rows in them.
    pub rows: u64,
    /// Rows that would have been there had every search with work to do found `eval_batch` leaves.
    pub rows_capacity: u64,
    /// Leaves that shared the row of an equal leaf in the same batch.
    pub shared: u64,
    /// Counts of the searches in complete rounds (see `Rounds::run`).
    pub searches: SearchStats,
}

impl RoundStats {
    /// Adds other rounds.
    pub fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.rows += other.rows;
        self.rows_capacity += other.rows_capacity;
        self.shared += other.shared;
        self.searches.add(&other.searches);
    }
}

/// The hash of a position's key, which is a hash already but for a game that has few positions.
#[derive(Default)]
struct OfKey(u64);

impl Hasher for OfKey {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = mix(self.0 ^ u64::from(byte)));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = mix(key as u64 ^ (key >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The memory of a round, kept from one to the next.
pub struct Rounds<G: Game> {
    workers: Workers,
    cache: Option<Arc<Cache>>,
    /// The evaluator's network id in this round.
    network: Option<u64>,
    states: Vec<G>,
    /// Positions of the previous batch, returned to their searches for reuse.
    spare: Vec<G>,
    streams: Vec<u64>,
    offsets: Vec<u32>,
    actions: Vec<Action>,
    logits: Vec<f32>,
    values: Vec<PovOf<G>>,
    /// Empty if the evaluator proved nothing, else see [`Batch::proofs`].
    proofs: Vec<u8>,
    /// Rows of this batch by position, where equal positions get equal answers.
    seen: HashMap<u128, u32, BuildHasherDefault<OfKey>>,
    /// Simulations that one search may do in one [`Rounds::run`] without the evaluator.
    pub known: u64,
    /// What the rounds did so far.
    pub stats: RoundStats,
}

impl<G: Game> Rounds<G> {
    /// Nothing evaluated yet.
    pub fn new(workers: Workers, cache: Option<Arc<Cache>>) -> Self {
        Self {
            workers,
            cache,
            network: None,
            states: Vec::new(),
            spare: Vec::new(),
            streams: Vec::new(),
            offsets: Vec::new(),
            actions: Vec::new(),
            logits: Vec::new(),
            values: Vec::new(),
            proofs: Vec::new(),
            seen: HashMap::default(),
            known: GATHER_AT_MOST,
            stats: RoundStats::default(),
        }
    }

    /// The threads that grow the trees.
    #[must_use]
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// One round of `searches`, for which `evaluator` answers. Searches that are done take no part. Returns whether any
    /// search still has work.
    ///
    /// # Errors
    /// Every search is taken back to where nothing is in flight, and asked for nothing more.
    pub fn run<E: Evaluator<G>>(
        &mut self,
        searches: &mut [Search<G>],
        evaluator: &mut E,
    ) -> Result<bool, SearchError<E::Error>> {
        let outcome = self.try_run(searches, evaluator);
        if outcome.is_err() {
            searches.iter_mut().for_each(Search::abandon);
        }
        outcome
    }

    fn try_run<E: Evaluator<G>>(
        &mut self,
        searches: &mut [Search<G>],
        evaluator: &mut E,
    ) -> Result<bool, SearchError<E::Error>> {
        let known = self.known;
        if self.gather(searches, evaluator.network(), |_| known)
            && let Some((search, fault)) =
                searches.iter().enumerate().find_map(|(index, search)| Some((index, search.fault()?.clone())))
        {
            return Err(SearchError::Game { search, fault });
        }
        self.evaluate(searches, evaluator)?;
        self.take_up(searches);
        // One pass: where there are thousands of searches, each look at all of them reads memory that no cache holds.
        let mut is_more = false;
        for search in searches {
            self.stats.searches.add(&search.take_counts());
            is_more |= !search.is_done();
        }
        Ok(is_more)
    }

    /// The first part of a round: every search without leaves gathers some. A search that meets a fault is left with
    /// none. `known` says how many simulations a search may do that needs no evaluator. Returns whether there was a fault.
    pub(crate) fn gather<S: AsMut<Search<G>> + Send>(
        &mut self,
        searches: &mut [S],
        network: Option<u64>,
        known: impl Fn(&S) -> u64 + Sync + Send,
    ) -> bool {
        self.network = network;
        let (keyed, faulty) = (network.map(|network| (network, self.cache.as_deref())), AtomicBool::new(false));
        self.workers.for_each(searches, |search| {
            let (known, search) = (known(search), search.as_mut());
            if !search.has_leaves() {
                search.gather(keyed, known);
            }
            if search.fault().is_some() {
                faulty.store(true, Ordering::Relaxed);
            }
        });
        faulty.into_inner()
    }

    /// The second part: the gathered leaves are evaluated. On an error the leaves are lost,
    /// and it is for the caller to abandon them.
    pub(crate) fn evaluate<S: AsMut<Search<G>> + Send, E: Evaluator<G>>(
        &mut self,
        searches: &mut [S],
        evaluator: &mut E,
    ) -> Result<(), SearchError<E::Error>> {
        self.spare.append(&mut self.states);
        self.streams.clear();
        self.actions.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.logits.clear();
        self.values.clear();
        self.proofs.clear();
        self.collect(searches);
        // Keep as many as the next batch probably needs, so that a large batch does not hold memory.
        self.spare.truncate(self.states.len());
        if self.states.is_empty() { Ok(()) } else { self.evaluate_rows(evaluator) }
    }

    /// The third part: searches apply the answers to their leaves. Searches without leaves take part too.
    pub(crate) fn take_up<S: AsMut<Search<G>> + Send>(&self, searches: &mut [S]) {
        let cache = self.cache.as_deref().zip(self.network);
        let Self { offsets, logits, values, proofs, .. } = self;
        let replies = Replies { offsets, logits, values, proofs };
        self.workers.for_each(searches, |search| search.as_mut().apply(replies, cache));
    }

    /// Gives searches whose batch was not evaluated their leaves back, as they were gathered.
    pub(crate) fn restore<S: AsMut<Search<G>>>(&self, searches: &mut [S]) {
        for search in searches.iter_mut().map(AsMut::as_mut) {
            for leaf in &mut search.round.leaves {
                if let Answer::Row(row) = &mut leaf.answer {
                    search.round.states.push(self.states[*row as usize].clone());
                    *row = u32::MAX;
                }
            }
        }
    }

    /// Gives every leaf a row.
    fn collect<S: AsMut<Search<G>>>(&mut self, searches: &mut [S]) {
        self.seen.clear();
        for search in searches.iter_mut().map(AsMut::as_mut) {
            if search.round.states.is_empty() {
                continue;
            }
            self.stats.rows_capacity += search.eval_batch() as u64;
            // Append positions at once, because they may be kilobytes; duplicates are removed below.
            let begin = self.states.len();
            let spare = self.spare.len().saturating_sub(search.round.states.len());
            search.round.spare.extend(self.spare.drain(spare..));
            self.states.append(&mut search.round.states);
            let mut row = begin;
            let waiting = search.round.leaves.iter_mut().filter(|leaf| matches!(leaf.answer, Answer::Row(_)));
            for (position, leaf) in (begin..).zip(waiting) {
                let legal = &search.round.legal[leaf.legal.start as usize..leaf.legal.end as usize];
                leaf.answer = Answer::Row(row as u32);
                if self.network.is_some() && leaf.key != 0 {
                    let first = *self.seen.entry(leaf.key).or_insert(row as u32) as usize;
                    // Equal keys with other legal actions are a game's mistake; it must not become a panic here.
                    let same = first < row
                        && self.actions[self.offsets[first] as usize..self.offsets[first + 1] as usize] == *legal;
                    if same {
                        leaf.answer = Answer::Row(first as u32);
                        self.stats.shared += 1;
                        continue;
                    }
                }
                if position > row {
                    self.states.swap(row, position);
                }
                row += 1;
                self.streams.push(leaf.stream);
                self.actions.extend_from_slice(legal);
                self.offsets.push(self.actions.len() as u32);
            }
            self.spare.extend(self.states.drain(row..));
        }
    }

    /// Has the evaluator answer the rows, and refuses invalid answers.
    fn evaluate_rows<E: Evaluator<G>>(&mut self, evaluator: &mut E) -> Result<(), SearchError<E::Error>> {
        let rows = self.states.len();
        // NaN marks rows that the evaluator did not answer.
        self.logits.resize(self.actions.len(), f32::NAN);
        self.values.resize(rows, PovOf::<G>::filled(self.states[0].num_players(), f32::NAN));
        let workers = &self.workers;
        evaluator
            .evaluate_batch(Batch {
                states: &self.states,
                streams: &self.streams,
                offsets: &self.offsets,
                actions: &self.actions,
                logits: &mut self.logits,
                values: &mut self.values,
                proofs: &mut self.proofs,
                encode: &|states, rows| workers.encode(states, rows),
            })
            .map_err(SearchError::Evaluator)?;
        self.stats.batches += 1;
        self.stats.rows += rows as u64;
        if !self.proofs.is_empty() && self.proofs.len() != rows {
            let got = self.proofs.len();
            return Err(SearchError::BadReply(format!("{got} proofs in a reply for {rows} rows")));
        }
        for row in 0..rows {
            for number in self.values[row].numbers_mut() {
                let value = *number;
                // Rounding may put a tanh a little past 1; a value on another scale is a mistake.
                if value.is_nan() || value.abs() > 1.0 + 1e-3 {
                    return Err(SearchError::BadReply(format!(
                        "value {value} in row {row} of the evaluator's reply, expected a number in [-1, 1]"
                    )));
                }
                *number = value.clamp(-1.0, 1.0);
            }
        }
        // Without an early end, so that it is done for several numbers at once.
        if self.logits.iter().fold(true, |fine, logit| fine & logit.is_finite()) {
            return Ok(());
        }
        let bad = self.logits.iter().position(|logit| !logit.is_finite()).unwrap_or_default();
        let (logit, action) = (self.logits[bad], self.actions[bad]);
        let row = self.offsets.partition_point(|&begin| begin as usize <= bad) - 1;
        Err(SearchError::BadReply(format!(
            "logit {logit} for the legal action {action} in row {row} of the evaluator's reply, expected a finite number"
        )))
    }
}
