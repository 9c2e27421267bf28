//! Searches for many who ask at once, in rounds that a thread of its own runs.
//!
//! Requests come in under one lock, which is never held while Python or a search is at work. The thread takes them
//! between the halves of its rounds, and hands a `concurrent.futures.Future` its result as soon as that is known.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use azpy_core::batched::Workers;
use azpy_core::game::{GameFault, Turn};
use azpy_core::process::Process;
use azpy_core::search::Search;
use azpy_core::serving::{Ended, Request, Serving};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::batch::{Batch, same_game};
use crate::doors::{AnyServing, AnyState, Asked, ServingSettings};
use crate::errors::{GameError, caught, copied, forked, no_stop_iteration, search_error};
use crate::evaluators::AnyEvaluator;
use crate::hosted::{Fault, Hosted};
use crate::result::{SearchResult, Session};
use crate::serving_stats::Stats;
use crate::threads::{Stop, attached_once, stop_at_exit};

thread_local! {
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is that of a session.
pub(crate) fn is_serving() -> bool {
    SERVING.get()
}

/// Whoever asked.
struct Token {
    future: Py<PyAny>,
    /// Set when the future is cancelled (and when it is answered, when nobody looks any more).
    settled: Arc<AtomicBool>,
    asked: Instant,
    limit: Option<Duration>,
}

/// What became of a request; `None` where it was cancelled.
type Ending = Option<PyResult<SearchResult>>;

/// Requests that no search has begun for yet.
type Arrived<G> = Vec<(G, Request<Token>)>;

/// What the owner and the thread share.
struct Inbox<G> {
    arrived: Arrived<G>,
    closing: bool,
    stopped: bool,
    stats: Stats,
}

/// The one implementation of [`AnyServing`].
pub(crate) struct Server<G> {
    spec: String,
    /// Of the game and size that all requests are about.
    first: G,
    max_requests: usize,
    inbox: Mutex<Inbox<G>>,
    changed: Condvar,
    thread: OnceLock<JoinHandle<()>>,
    /// That has the thread.
    process: Process,
}

impl<G: Hosted> Server<G> {
    pub(crate) fn start(first: &G, settings: ServingSettings, mut evaluator: AnyEvaluator) -> PyResult<Arc<Self>> {
        let ServingSettings { config, spec, max_batch, max_requests, cache, threads } = settings;
        // A game written in Python is touched by one thread at a time.
        let threads = if first.fault().is_some() { 1 } else { threads };
        let workers = Workers::new(threads).map_err(PyOSError::new_err)?;
        let failed = |root: &G| root.fault().is_some_and(Fault::is_set);
        let mut serving = Serving::new(config, max_batch, workers, cache, failed);
        let inbox = Inbox { arrived: Vec::new(), closing: false, stopped: false, stats: Stats::default() };
        let server = Arc::new(Self {
            spec,
            first: first.clone(),
            max_requests,
            inbox: Mutex::new(inbox),
            changed: Condvar::new(),
            thread: OnceLock::new(),
            process: Process::current(),
        });
        stop_at_exit(&(server.clone() as Arc<dyn Stop>));
        let shared = server.clone();
        let inside = attached_once();
        let thread = std::thread::Builder::new()
            .name("azpy-serving".into())
            .spawn(move || inside(&mut || shared.run(&mut serving, &mut evaluator)))
            .map_err(|error| PyOSError::new_err(format!("cannot start a thread: {error}")))?;
        let _ = server.thread.set(thread);
        Ok(server)
    }

    fn lock(&self) -> MutexGuard<'_, Inbox<G>> {
        // Each change under the lock is complete in itself, so a panic elsewhere leaves nothing half done.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rounds until the session is closed and nobody waits any more. Runs detached from the interpreter.
    fn run(&self, serving: &mut Serving<G, Token>, evaluator: &mut AnyEvaluator) {
        SERVING.set(true);
        while let Some((arrived, stopped)) = self.next(serving.is_empty()) {
            let mut endings: Vec<(Token, Ending)> = Vec::new();
            for (root, request) in arrived {
                if let Err((fault, token)) = serving.join(root, request) {
                    endings.push((token, Some(Err(GameError::new_err(fault.to_string())))));
                }
            }
            let gone = serving.leave(|token| stopped || token.settled.load(Ordering::Relaxed));
            endings.extend(gone.into_iter().map(|token| (token, None)));
            self.hand_over(serving, endings);
            self.half_a_round(serving, |serving| Ok(serving.gather(evaluator, Instant::now())));
            self.half_a_round(serving, |serving| serving.answer(evaluator).map_err(search_error));
        }
    }

    /// Waits, where there is nothing to do, for requests. Whether all are to be cancelled; `None` at the end.
    fn next(&self, idle: bool) -> Option<(Arrived<G>, bool)> {
        let mut inbox = self.lock();
        while idle && inbox.arrived.is_empty() {
            if inbox.closing {
                return None;
            }
            inbox = self.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        Some((std::mem::take(&mut inbox.arrived), inbox.stopped))
    }

    /// Hands over what ends in it. An error ends whatever is under way; the next requests begin anew.
    fn half_a_round(
        &self,
        serving: &mut Serving<G, Token>,
        work: impl FnOnce(&mut Serving<G, Token>) -> PyResult<Vec<Ended<G, Token>>>,
    ) {
        let endings: Vec<(Token, Ending)> = match caught(|| work(serving)) {
            Ok(ended) => ended.into_iter().map(|Ended { search, token }| (token, Some(self.result(search)))).collect(),
            Err(error) => {
                let failed = serving.clear().into_iter();
                Python::attach(|py| failed.map(|token| (token, Some(Err(copied(py, &error))))).collect())
            }
        };
        self.hand_over(serving, endings);
    }

    /// What a search found, with its tree, which is this result's alone.
    fn result(&self, search: Search<G>) -> PyResult<SearchResult> {
        // A Python game's own error comes before whatever followed from it.
        search.root().fault().map_or(Ok(()), Fault::check)?;
        if let Some(fault) = search.fault() {
            return Err(GameError::new_err(fault.to_string()));
        }
        caught(|| {
            let session = Session { spec: self.spec.clone(), batch: Box::new(Batch::over(search)) };
            let shared = Arc::new(Mutex::new(session));
            let session = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let result = session.result(&shared, 0);
            session.batch.check().map(|()| result)
        })
    }

    fn hand_over(&self, serving: &Serving<G, Token>, endings: Vec<(Token, Ending)>) {
        {
            let stats = &mut self.lock().stats;
            (stats.rounds, stats.left_over) = (serving.stats(), serving.left_over());
        }
        if endings.is_empty() {
            return;
        }
        Python::attach(|py| {
            // Whoever gave up until now gets nothing; whoever does later has been answered.
            let answered: Vec<_> =
                endings.into_iter().map(|(token, ending)| (token.claim(py, ending.is_none()), token, ending)).collect();
            {
                // Counted before anybody is told, so that they see themselves in the counts.
                let now = Instant::now();
                let stats = &mut self.lock().stats;
                for (claimed, token, ending) in &answered {
                    match ending.as_ref().filter(|_| *claimed) {
                        None => stats.count_cancelled(),
                        Some(Err(_)) => stats.count_failed(),
                        Some(Ok(result)) => {
                            let taken = now.saturating_duration_since(token.asked);
                            stats.count_finished(result.counts(), taken, token.limit);
                        }
                    }
                }
            }
            for (claimed, token, ending) in answered {
                if let Some(ending) = ending.filter(|_| claimed) {
                    token.answer(py, ending);
                }
            }
        });
    }
}

impl Token {
    /// Whether the future is to be answered: after this it cannot be cancelled any more.
    fn claim(&self, py: Python<'_>, cancel: bool) -> bool {
        let claim = || -> PyResult<bool> {
            let future = self.future.bind(py);
            if cancel {
                future.call_method0(intern!(py, "cancel"))?;
            }
            future.call_method0(intern!(py, "set_running_or_notify_cancel"))?.is_truthy()
        };
        claim().unwrap_or_else(|error| {
            error.write_unraisable(py, None);
            false
        })
    }

    fn answer(&self, py: Python<'_>, ending: PyResult<SearchResult>) {
        let future = self.future.bind(py);
        let done = match ending {
            Ok(result) => future.call_method1(intern!(py, "set_result"), (result,)),
            Err(error) => {
                let error = no_stop_iteration(py, error).into_value(py);
                future.call_method1(intern!(py, "set_exception"), (error,))
            }
        };
        if let Err(error) = done {
            // Of a callback that raised no `Exception`: those the future reports itself.
            error.write_unraisable(py, None);
        }
    }
}

impl<G: Hosted> Stop for Server<G> {
    fn stop(&self) {
        let mut inbox = self.lock();
        (inbox.closing, inbox.stopped) = (true, true);
        self.changed.notify_all();
    }
}

impl<G: Hosted> AnyServing for Server<G> {
    fn submit(&self, py: Python<'_>, spec: &str, state: &dyn AnyState, asked: Asked) -> PyResult<Py<PyAny>> {
        if self.is_forked() {
            return Err(session_forked());
        }
        if spec != self.spec {
            return Err(PyValueError::new_err(format!("a state of {spec} in a session of {}", self.spec)));
        }
        let root = same_game(state, Some(&self.first))?.clone();
        let turn = root.turn();
        root.fault().map_or(Ok(()), Fault::check)?;
        if turn == Turn::Chance {
            return Err(GameError::new_err(GameFault::ChanceRoot.to_string()));
        }
        let future = py.import(intern!(py, "concurrent.futures"))?.getattr(intern!(py, "Future"))?.call0()?;
        let settled = Arc::new(AtomicBool::new(false));
        let flag = settled.clone();
        let settle = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| flag.store(true, Ordering::Relaxed);
        let settle = PyCFunction::new_closure(py, None, None, settle)?;
        future.call_method1(intern!(py, "add_done_callback"), (settle,))?;

        let Asked { simulations, limit, seed } = asked;
        let now = Instant::now();
        let token = Token { future: future.clone().unbind(), settled, asked: now, limit };
        // A limit beyond all clocks is none.
        let deadline = limit.and_then(|limit| now.checked_add(limit));
        let mut inbox = self.lock();
        if inbox.closing {
            drop(inbox);
            return Err(closed());
        }
        if inbox.stats.open >= self.max_requests {
            drop(inbox);
            let text = format!("{} requests wait for their answers already (max_requests)", self.max_requests);
            return Err(PyErr::from_value(py.import("queue")?.getattr("Full")?.call1((text,))?));
        }
        inbox.stats.count_request();
        inbox.arrived.push((root, Request { token, simulations, seed, deadline }));
        self.changed.notify_all();
        drop(inbox);
        Ok(future.unbind())
    }

    fn stats(&self) -> PyResult<Stats> {
        if self.is_forked() {
            return Err(session_forked());
        }
        Ok(self.lock().stats.clone())
    }

    fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.thread.get().is_none_or(JoinHandle::is_finished)
    }

    fn is_forked(&self) -> bool {
        !self.process.is_current()
    }
}

fn session_forked() -> PyErr {
    forked("this session's thread is", "a session")
}

/// What a closed session says.
pub(crate) fn closed() -> PyErr {
    PyRuntimeError::new_err("this session is closed: it takes no more requests")
}
