//! An engine's threads: pipelines that run the rounds of all models, and one that gives the answers.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use azpy_core::engine::Models;
use azpy_core::process::Process;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::engine_stats::Stats;
use crate::errors::closed;
use crate::model::{AnyModel, Done, PIPELINES};
use crate::requests::{AnyGameTree, Ending, PendingRequest, Signals};
use crate::threads::{BackgroundTask, attached_once, locked, stop_at_exit};

thread_local! {
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread works for an engine: as one of its own, or as it hands a request over.
pub(crate) fn is_serving() -> bool {
    SERVING.get()
}

/// Until it is dropped, this thread works for an engine.
struct Serving(bool);

impl Serving {
    fn new() -> Self {
        Self(SERVING.replace(true))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        SERVING.set(self.0);
    }
}

/// Models that stay while nobody uses them. Each game with other parameters (Go with another komi) has a model.
const MOST_MODELS: usize = 16;

/// A message for the owner of a request: an answer, or a notice that a report waits.
enum Delivery {
    Answer(Arc<PendingRequest>, Box<Ending>),
    Report(Arc<PendingRequest>),
}

#[derive(Default)]
struct Deliveries {
    waiting: VecDeque<Delivery>,
    /// Pipelines that have ended: none will have more.
    ended: usize,
}

/// The shared state of an engine's threads.
pub(crate) struct EngineThreads {
    pub(crate) models: Models<dyn AnyModel, dyn AnyGameTree>,
    deliveries: Mutex<Deliveries>,
    delivers: Condvar,
    stats: Mutex<Stats>,
    /// Requests that are not answered yet. Changed with the GIL alone: garbage collection looks at it twice, and has to
    /// see the same.
    open: AtomicUsize,
    /// The signal to all requests.
    pub(crate) all: Arc<Signals>,
    /// The signal to those that ponder.
    pub(crate) pondering: Arc<Signals>,
    /// Bytes that all trees may have together.
    budget: usize,
    threads: OnceLock<Vec<JoinHandle<()>>>,
    /// That has the threads.
    process: Process,
}

impl EngineThreads {
    pub(crate) fn start(budget: usize) -> PyResult<Arc<Self>> {
        let shared = Arc::new(Self {
            models: Models::new(PIPELINES, MOST_MODELS),
            deliveries: Mutex::default(),
            delivers: Condvar::new(),
            stats: Mutex::default(),
            open: AtomicUsize::new(0),
            all: Arc::default(),
            pondering: Arc::default(),
            budget,
            threads: OnceLock::new(),
            process: Process::current(),
        });
        stop_at_exit(&(shared.clone() as Arc<dyn BackgroundTask>));
        let mut threads = Vec::new();
        for number in 0..=PIPELINES {
            let (own, inside) = (shared.clone(), attached_once());
            let body = move || {
                inside(&mut || {
                    let _serving = Serving::new();
                    match number {
                        PIPELINES => own.deliver(),
                        pipeline => own.run(pipeline),
                    }
                });
            };
            let name = if number == PIPELINES { "azpy-answers".into() } else { format!("azpy-engine-{number}") };
            match std::thread::Builder::new().name(name).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.stop();
                    return Err(PyOSError::new_err(format!("cannot start a thread: {error}")));
                }
            }
        }
        let _ = shared.threads.set(threads);
        Ok(shared)
    }

    /// Hands a request over, which is answered from then on, or refuses it as the engine is closed.
    pub(crate) fn enter<T>(&self, hand_over: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let _entry = self.models.enter().ok_or_else(closed)?;
        let _serving = Serving::new();
        hand_over()
    }

    /// Has a game go on with its next request. Called where no pipeline can end: in [`EngineThreads::enter`], or by a pipeline.
    pub(crate) fn go_on(&self, game_tree: &Arc<dyn AnyGameTree>) {
        let (name, spec) = game_tree.model();
        if self.models.get(name, spec).is_some_and(|model| game_tree.go_on(&*model)) {
            self.models.use_game_tree(game_tree);
        }
    }

    /// Refuses new requests, and ends once the open ones are answered. Pondering searches stop.
    pub(crate) fn close(&self) {
        self.pondering.stop();
        self.models.close();
    }

    /// Whether no request waits for its answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Counts one more request, where fewer than `most` wait for their answers. To be called with the GIL.
    pub(crate) fn reserve(&self, most: usize) -> bool {
        let one_more = |open| (open < most).then_some(open + 1);
        let has_room = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        locked(&self.stats).requests += u64::from(has_room);
        has_room
    }

    /// Uncounts the last request, which was refused. To be called with the GIL.
    pub(crate) fn release(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        locked(&self.stats).requests -= 1;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.threads.get().is_none_or(|threads| threads.iter().all(JoinHandle::is_finished))
    }

    /// Whether this process is a copy of the one that has the threads. The copy may not even lock anything: a thread may
    /// have held the lock in that moment.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// Runs rounds until the engine is closed and all requests are answered. Runs detached from the interpreter.
    fn run(&self, pipeline: usize) {
        while let Some((model, quiet)) = self.models.next() {
            let mut reports = Vec::new();
            // This pipeline continues by itself. Another one is woken only for remaining work.
            let filled = || self.models.wake_for_the_rest();
            let mut report = |request: &Arc<PendingRequest>| reports.push(Delivery::Report(request.clone()));
            let mut done = model.round(pipeline, quiet, &filled, &mut report);
            self.keep_to_the_budget();
            done.append(&mut self.look());
            self.hand_over(reports, done);
            self.models.finish(model);
        }
        locked(&self.deliveries).ended += 1;
        self.delivers.notify_all();
    }

    /// Requests that have ended in any queue.
    fn look(&self) -> Vec<Done> {
        self.models.all().iter().flat_map(|model| model.look()).collect()
    }

    /// Counts so far, of requests and of batches.
    pub(crate) fn counts(&self) -> Stats {
        let mut stats = locked(&self.stats).clone();
        (stats.rounds, stats.left_over) = self.models.stats();
        stats.open = self.open.load(Ordering::Relaxed);
        stats
    }

    /// Drops kept trees, the least recently used first, then ends searches, the largest first, until all trees fit.
    fn keep_to_the_budget(&self) {
        if self.budget == usize::MAX {
            return;
        }
        let (models, game_trees) = (self.models.all(), self.models.game_trees());
        let searching: usize = models.iter().map(|model| model.queue().memory_bytes()).sum();
        let mut total = searching + game_trees.iter().map(|game_tree| game_tree.memory_bytes()).sum::<usize>();
        for game_tree in &game_trees {
            if total <= self.budget {
                return;
            }
            total = total.saturating_sub(game_tree.memory_bytes());
            game_tree.drop_trees();
        }
        while total > self.budget {
            let Some(model) = models.iter().max_by_key(|model| model.queue().largest()) else { return };
            let Some(freed) = model.queue().end_largest() else { return };
            total = total.saturating_sub(freed);
        }
    }

    fn hand_over(&self, reports: Vec<Delivery>, mut done: Vec<Done>) {
        // Each answer takes Python some time: requests with a time limit come first.
        done.sort_by_key(|done| done.request.limit.is_none());
        for game_tree in done.iter().filter_map(|done| done.request.game.as_ref()) {
            self.go_on(game_tree);
        }
        if reports.is_empty() && done.is_empty() {
            return;
        }
        let answers = done.into_iter().map(|Done { request, ending }| Delivery::Answer(request, Box::new(ending)));
        locked(&self.deliveries).waiting.extend(answers.chain(reports));
        self.delivers.notify_all();
    }

    /// Gives answers and reports, until the pipelines have ended. Runs detached from the interpreter.
    fn deliver(&self) {
        loop {
            let mut deliveries = locked(&self.deliveries);
            while deliveries.waiting.is_empty() {
                if deliveries.ended == PIPELINES {
                    return;
                }
                deliveries = self.delivers.wait(deliveries).unwrap_or_else(PoisonError::into_inner);
            }
            let waiting = std::mem::take(&mut deliveries.waiting);
            drop(deliveries);
            Python::attach(|py| self.deliver_all(py, waiting));
        }
    }

    fn deliver_all(&self, py: Python<'_>, waiting: VecDeque<Delivery>) {
        let mut answered = Vec::new();
        for delivery in waiting {
            match delivery {
                Delivery::Report(request) => request.give_report(py),
                // A request cancelled before this point gets no answer; one cancelled later has been answered.
                Delivery::Answer(request, ending) => {
                    answered.push((request.claim(py, ending.is_none()), request, *ending));
                }
            }
        }
        {
            // Count before answering, so that owners find their own requests in the counts.
            let now = Instant::now();
            let mut stats = locked(&self.stats);
            self.open.fetch_sub(answered.len(), Ordering::Relaxed);
            for (claimed, request, ending) in &answered {
                match ending.as_ref().filter(|_| *claimed) {
                    None => stats.cancelled += 1,
                    Some(Err(_)) => stats.failed += 1,
                    Some(Ok(result)) => {
                        let seconds = now.saturating_duration_since(request.began);
                        stats.count_finished(result.counts(), seconds, request.limit);
                    }
                }
            }
        }
        for (claimed, request, ending) in answered {
            match ending {
                Some(ending) if claimed => request.answer(py, ending),
                Some(_) => {}
                None => request.cancelled(py),
            }
        }
    }
}

impl BackgroundTask for EngineThreads {
    fn stop(&self) {
        self.all.cancel();
        self.pondering.cancel();
        self.close();
    }
}
