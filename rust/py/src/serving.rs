//! `azpy.BatchedSearch`: searches for many who ask at once, in rounds that a thread of its own runs.
//!
//! Requests come in under one lock, which is never held while Python or a search is at work. The thread takes them
//! between the halves of its rounds, and hands a `concurrent.futures.Future` its result as soon as that is known.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use azpy_core::batched::{RoundStats, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::game::{GameFault, Turn};
use azpy_core::process::Process;
use azpy_core::search::{Search, SearchStats};
use azpy_core::serving::{Ended, Request, Serving};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::batch::{Batch, same_game};
use crate::errors::{GameError, caught, forked, no_stop_iteration, search_error};
use crate::evaluators::AnyEvaluator;
use crate::hosted::{AnyState, Fault, Hosted};
use crate::result::{SearchResult, Session};
use crate::settings::{self, SIZE, U64, Whole, whole, within};
use crate::state::any_state;
use crate::threads::{Stop, attached_once, stop_at_exit, wait, wait_until_attached};

/// Requests whose times the percentiles are of: the last so many.
const TIMES_KEPT: usize = 4096;

thread_local! {
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Settings of a session.
pub(crate) struct ServingSettings {
    pub(crate) config: SearchConfig,
    pub(crate) spec: String,
    pub(crate) max_batch: usize,
    pub(crate) max_requests: usize,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
}

/// How a position is to be searched.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    simulations: u32,
    limit: Option<Duration>,
    seed: u64,
}

/// A session of some game.
pub(crate) trait AnyServing: Stop {
    /// A `concurrent.futures.Future` of what will be found.
    fn submit(&self, py: Python<'_>, spec: &str, state: &dyn AnyState, asked: Asked) -> PyResult<Py<PyAny>>;
    fn stats(&self) -> PyResult<Stats>;
    /// Takes no more requests, and ends with the last of those there are.
    fn close(&self);
    fn is_over(&self) -> bool;
    /// Whether this process is a copy of the one that has the thread. The copy may not even lock the inbox: the thread
    /// may have held the lock in that moment.
    fn is_forked(&self) -> bool;
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

#[derive(Clone, Default)]
pub(crate) struct Stats {
    requests: u64,
    finished: u64,
    failed: u64,
    cancelled: u64,
    late: u64,
    /// Not answered yet, and those of them that the last batch had no room for.
    open: usize,
    left_over: usize,
    rounds: RoundStats,
    /// Of finished requests.
    search: SearchStats,
    /// Seconds from `submit` to the answer, of the last that finished.
    times: VecDeque<f32>,
}

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
                Python::attach(|py| failed.map(|token| (token, Some(Err(error.clone_ref(py))))).collect())
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
                    stats.count(token, ending.as_ref().filter(|_| *claimed), now);
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

impl Stats {
    /// One request has ended; `None`: it was cancelled.
    fn count(&mut self, token: &Token, ending: Option<&PyResult<SearchResult>>, now: Instant) {
        self.open -= 1;
        match ending {
            None => self.cancelled += 1,
            Some(Err(_)) => self.failed += 1,
            Some(Ok(result)) => {
                let taken = now.saturating_duration_since(token.asked);
                self.finished += 1;
                self.late += u64::from(token.limit.is_some_and(|limit| taken > limit));
                self.search.add(result.counts());
                if self.times.len() == TIMES_KEPT {
                    self.times.pop_front();
                }
                self.times.push_back(taken.as_secs_f32());
            }
        }
    }

    /// The time within which this share of the last requests was answered; NaN before the first.
    fn percentile(&self, share: f64) -> f64 {
        let mut times: Vec<_> = self.times.iter().copied().collect();
        times.sort_by(f32::total_cmp);
        let place = (share * times.len() as f64).ceil() as usize;
        times.get(place.saturating_sub(1)).map_or(f64::NAN, |&seconds| f64::from(seconds))
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
        inbox.stats.open += 1;
        inbox.stats.requests += 1;
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

fn closed() -> PyErr {
    PyRuntimeError::new_err("this session is closed: it takes no more requests")
}

/// A session that searches positions for many who ask at once, in a thread of its own: for a site where people play
/// against a network, or a program with many games at a time.
///
/// Requests share each call of the evaluator, and join and leave between calls: a batch takes whatever leaves wait, at
/// most `max_batch`, and never waits for more. Where there are more, those left over come first the next time, so equal
/// requests that come together take the same time, and none waits for a longer one. What a request finds depends on its
/// state, its seed and the settings alone: it is what `azpy.Search(evaluator, seed=seed, ...).run(state)` finds, to the
/// last visit where a row's answer does not depend on the rest of its batch (`row_exact`), and nearly so elsewhere.
///
/// There is one call of the evaluator at a time. An exception in it is that of every request under way, the same object
/// for all, and the session goes on with those that come after. A game that fails, fails its own request alone; if it
/// fails while it is encoded, the others of its batch begin again, and find the same later.
///
/// Use it in a `with` block, which ends when every request is answered (or cancelled, if an exception leaves the block),
/// or call `close`. All its requests are about one game, that of the first. Safe to use from many threads. The end of the
/// interpreter cancels what is open, but waits for threads that are no daemons first, and so for what these wait for.
///
/// Args:
///     evaluator: as for `Search`.
///     simulations: visits below the root at most, where a request does not say it. None: 800, or no limit for a request
///         with `seconds`.
///     max_batch: rows of a call of the evaluator, at most (256); at least eval_batch.
///     max_requests: that may wait for their answers at once (1024); each has a tree. One more raises `queue.Full`.
///     cache_positions: answers to keep, where the evaluator has a `network_id`; 0 for none. One takes 48 bytes,
///         and 4 for each legal action.
///     threads: grow the trees; by default one a core.
///     Others as for `Search`.
///
///     >>> import azpy
///     >>> state = azpy.make_game("connect_four")
///     >>> with azpy.BatchedSearch(azpy.RolloutEvaluator(1), simulations=400) as session:
///     ...     futures = [session.submit(state, seed=player) for player in range(3)]
///     ...     quick = session.submit(state, 10**9, seconds=0.05)
///     ...     [int(future.result().visits.sum()) for future in futures]
///     [400, 400, 400]
///     >>> quick.result().stop
///     'seconds'
#[pyclass(module = "azpy", frozen)]
pub(crate) struct BatchedSearch {
    evaluator: Py<PyAny>,
    /// Where they were given.
    simulations: Option<u32>,
    config: SearchConfig,
    max_batch: usize,
    max_requests: usize,
    cache_positions: usize,
    threads: usize,
    live: Mutex<Live>,
}

/// What the first request begins, and `close` ends.
#[derive(Default)]
struct Live {
    server: Option<Arc<dyn AnyServing>>,
    closed: bool,
}

impl BatchedSearch {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of the first state's game.
    fn server(&self, py: Python<'_>, spec: &str, state: &dyn AnyState) -> PyResult<Arc<dyn AnyServing>> {
        if let Some(server) = &self.live().server {
            return Ok(server.clone());
        }
        let settings = ServingSettings {
            config: self.config,
            spec: spec.to_owned(),
            max_batch: self.max_batch,
            max_requests: self.max_requests,
            cache: settings::cache(self.cache_positions),
            threads: self.threads,
        };
        // These ask Python (a game of Python's is cloned), so before the lock: another thread may wait for it with the
        // interpreter in hand.
        let evaluator = AnyEvaluator::new(self.evaluator.bind(py))?;
        let server = state.serve(settings, evaluator)?;
        wait_until_attached(py);
        let earlier = {
            let mut live = self.live();
            if live.server.is_none() && !live.closed {
                live.server = Some(server.clone());
                return Ok(server);
            }
            live.server.clone()
        };
        // Another thread was faster: nobody will use this one.
        server.close();
        earlier.ok_or_else(closed)
    }
}

#[pymethods]
impl BatchedSearch {
    #[new]
    #[pyo3(signature = (
        evaluator, *, simulations = None, max_batch = 256, max_requests = 1024, cache_positions = 200_000, threads = None,
        **options
    ))]
    fn new(
        evaluator: &Bound<'_, PyAny>,
        simulations: Option<Whole>,
        #[pyo3(from_py_with = whole)] max_batch: i128,
        #[pyo3(from_py_with = whole)] max_requests: i128,
        #[pyo3(from_py_with = whole)] cache_positions: i128,
        threads: Option<Whole>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        AnyEvaluator::new(evaluator)?;
        let config = settings::search_config::<Self>(evaluator.py(), options, 0.0)?;
        let max_batch: usize = within("max_batch", max_batch, 1, SIZE)?;
        if max_batch < config.eval_batch {
            let leaves = config.eval_batch;
            return Err(PyValueError::new_err(format!(
                "max_batch must be at least eval_batch, the {leaves} leaves of one search, got {max_batch}"
            )));
        }
        Ok(Self {
            evaluator: evaluator.clone().unbind(),
            simulations: simulations.map(|Whole(given)| settings::simulations(given)).transpose()?,
            config,
            max_batch,
            max_requests: within("max_requests", max_requests, 1, SIZE)?,
            cache_positions: settings::cache_positions(cache_positions)?,
            threads: settings::threads(threads)?,
            live: Mutex::default(),
        })
    }

    /// Asks for a search of `state`, and returns at once: a `concurrent.futures.Future` of a `SearchResult`
    /// (`asyncio.wrap_future` makes it one to await). `cancel()` works until the result is there, and ends the search.
    ///
    /// A state that cannot be searched, a closed session (RuntimeError) and one that is full (`queue.Full`) are raised
    /// here. The future raises what the evaluator or the game raised, as it is; a StopIteration, which no asyncio future
    /// takes, becomes the cause of a RuntimeError. Its callbacks run in the session's thread, and everybody waits for
    /// them: to wait for a future of the session there, in the evaluator or in a game is to wait for ever. A result keeps
    /// its tree for as long as it is kept.
    ///
    /// Args:
    ///     state: a position, of the game that the first request was about.
    ///     simulations: in place of the session's own number.
    ///     seconds: from now on, in which to answer with what is known by then; a search whose simulations are done sooner
    ///         is answered sooner. The search ends before the call of the
    ///         evaluator that would end too late, going by the last calls. The root is evaluated in any case, so less
    ///         than the call under way and one more cannot be kept.
    ///     seed: of the noise and the dice.
    #[pyo3(signature = (state, simulations = None, *, seconds = None, seed = 0))]
    fn submit(
        &self,
        py: Python<'_>,
        state: &Bound<'_, PyAny>,
        simulations: Option<Whole>,
        seconds: Option<f64>,
        #[pyo3(from_py_with = whole)] seed: i128,
    ) -> PyResult<Py<PyAny>> {
        let limit = settings::limit(seconds)?;
        let seed = within("seed", seed, 0, U64)?;
        let simulations = settings::simulations_within(simulations, limit, &self.config, self.simulations)?;
        let (spec, state) = any_state(state)?;
        self.server(py, &spec, &*state)?.submit(py, &spec, &*state, Asked { simulations, limit, seed })
    }

    /// Takes no more requests, and returns when those there are have been answered; with `cancel` they are cancelled,
    /// and it returns after the call of the evaluator that is under way. A second call does no harm.
    #[pyo3(signature = (*, cancel = false))]
    fn close(&self, py: Python<'_>, cancel: bool) -> PyResult<()> {
        if SERVING.get() {
            return Err(PyRuntimeError::new_err(
                "close() inside a session's own thread (an evaluator, a game or a callback) would wait for itself",
            ));
        }
        let server = {
            let mut live = self.live();
            live.closed = true;
            live.server.clone()
        };
        let Some(server) = server.filter(|server| !server.is_forked()) else {
            return Ok(());
        };
        if cancel {
            server.stop();
        } else {
            server.close();
        }
        let over = wait(py, || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(server.is_over().then_some(()))
        });
        if over.is_err() {
            // Whoever interrupts this does not want to wait.
            server.stop();
        }
        over
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, *_args))]
    fn __exit__(&self, py: Python<'_>, kind: &Bound<'_, PyAny>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py, !kind.is_none())
    }

    /// Since the start. Requests: requests (all), finished, failed, cancelled, open (not answered yet), left_over (those
    /// of them for whose leaves the last batch had no room), late (finished after their `seconds`); seconds_p50 and
    /// seconds_p99, from `submit` to the answer, of the last 4,096 that finished (NaN before the first). Batches:
    /// batches, rows, fill (rows over what the batches could have held), shared (leaves that shared a row with an equal
    /// one). Of finished requests: simulations, evaluations, cache_hits, terminals, collisions.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let server = self.live().server.clone();
        let stats = server.map_or_else(|| Ok(Stats::default()), |server| server.stats())?;
        let dict = PyDict::new(py);
        dict.set_item("requests", stats.requests)?;
        dict.set_item("finished", stats.finished)?;
        dict.set_item("failed", stats.failed)?;
        dict.set_item("cancelled", stats.cancelled)?;
        dict.set_item("open", stats.open)?;
        dict.set_item("left_over", stats.left_over)?;
        dict.set_item("late", stats.late)?;
        dict.set_item("seconds_p50", stats.percentile(0.5))?;
        dict.set_item("seconds_p99", stats.percentile(0.99))?;
        dict.set_item("batches", stats.rounds.batches)?;
        dict.set_item("rows", stats.rounds.rows)?;
        let room = stats.rounds.batches * self.max_batch as u64;
        dict.set_item("fill", stats.rounds.rows as f64 / room.max(1) as f64)?;
        dict.set_item("shared", stats.rounds.shared)?;
        dict.set_item("simulations", stats.search.simulations)?;
        dict.set_item("evaluations", stats.search.evaluations)?;
        dict.set_item("cache_hits", stats.search.cache_hits)?;
        dict.set_item("terminals", stats.search.terminals)?;
        dict.set_item("collisions", stats.search.collisions)?;
        Ok(dict)
    }
}

impl Drop for BatchedSearch {
    /// A session that nobody can reach any more still answers whoever waits.
    fn drop(&mut self) {
        if let Some(server) = self.live().server.take().filter(|server| !server.is_forked()) {
            server.close();
        }
    }
}
