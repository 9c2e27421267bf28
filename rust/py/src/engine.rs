//! `azpy.Engine`: searches for many who ask at once, with several models, and with games that keep their trees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use azpy_core::batched::Workers;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{Priority, Request};
use azpy_core::game::Action;
use azpy_core::text::Position;
use azpy_serve::{History, SearchRequest};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch::allowed_actions;
use crate::engine_stats::Stats;
use crate::engine_threads::{EngineThreads, is_serving};
use crate::errors::{RustError, caught, closed, forked};
use crate::evaluators::AnyEvaluator;
use crate::listed::Listed;
use crate::model::{AnyModel, ModelSettings, check_searchable, model_for};
use crate::position::{AnyState, Fallible};
use crate::requests::{AnyGameTree, PendingRequest, QueuedRequest, Responder, Signals};
use crate::settings::{self, SIZE, U64, Whole, whole, within};
use crate::state::any_state;
use crate::threads::{BackgroundTask, locked, wait, wait_until_attached};

mod game;

pub(crate) use game::EngineGame;

/// Fewer rows than this are one batch; more are shared out to two, and the trees of one grow while the other is evaluated.
const SPLIT_FROM: usize = 64;

/// What the only model is called.
pub(crate) const ONLY: &str = "main";

/// An engine that searches positions for many clients at once, in its own threads.
///
/// Use it for a site where people play against a network, or for a program with many games at a time. Use it in a
/// `with` block, or call `close`. The block ends when every request is answered; an exception that leaves the block
/// cancels them.
///
/// Requests share each call of the evaluator, and join and leave between calls. A batch takes the leaves that are
/// ready, at most `max_batch`, and does not wait for more. Requests of one priority take turns. While one batch is
/// evaluated, the trees of other requests grow. Each device evaluates one batch at a time.
///
/// A request finds what `azpy.Search(evaluator, seed=seed, ...).run(state)` finds: to the last visit if the evaluator
/// is `row_exact`, and nearly so otherwise. Only `seconds`, `stop` and a lack of memory make a result depend on time.
///
/// If a call of the evaluator raises, each request of its batch raises a copy of the exception. If a game raises, its
/// own request alone fails. Many threads may use one engine. At the end of the interpreter, open requests are
/// cancelled.
///
/// Args:
///     models: an evaluator, or a dict from names to evaluators. Evaluators with the same attribute `device`, or
///         without one, take turns.
///     simulations: the most visits below the root, for requests without their own number. None: 800, or no limit for a
///         request with `seconds`.
///     max_batch: the most rows in a call of an evaluator (256); at least eval_batch.
///     max_requests: the most unanswered requests (1024). Another one raises `queue.Full`.
///     total_memory_mb: memory of all trees together, in MB; None for no limit. At the limit, azpy first drops the
///         least recently used kept trees, then ends the search with the largest tree, with `stop` "memory".
///     cache_positions: how many answers to keep for each network with a `network_id`; 0 for none. Each takes 48 bytes,
///         and 4 for each legal action.
///     threads: how many threads grow the trees; by default one a core.
///
/// The other options are those of `Search`.
///
///     >>> import azpy
///     >>> state = azpy.make_game("connect_four")
///     >>> with azpy.Engine(azpy.RolloutEvaluator(1), simulations=400) as engine:
///     ...     pending = [engine.submit(state, seed=player) for player in range(3)]
///     ...     quick = engine.submit(state, 10**9, seconds=0.05)
///     ...     [int(each.result().visits.sum()) for each in pending]
///     [400, 400, 400]
///     >>> quick.result().stop
///     'seconds'
#[pyclass(module = "azpy", frozen)]
pub(crate) struct Engine {
    /// Where they were given.
    simulations: Option<u32>,
    config: SearchConfig,
    max_batch: usize,
    max_requests: usize,
    cache_positions: usize,
    budget: usize,
    threads: usize,
    shared: Mutex<Shared>,
}

/// A network that answers under a name.
#[derive(Clone)]
struct LoadedModel {
    /// Models have the evaluator too. This reference alone counts for Python, so garbage collection sees it here.
    evaluator: Arc<Py<PyAny>>,
    number: u64,
    device: Arc<Mutex<()>>,
    /// Of its answers in all games.
    cache: Option<Arc<Cache>>,
}

/// The models, and what the first request begins and `close` ends.
#[derive(Default)]
struct Shared {
    models: HashMap<String, LoadedModel>,
    /// Networks so far: each has a number.
    networks: u64,
    /// Evaluators on one device share a lock.
    devices: HashMap<String, Arc<Mutex<()>>>,
    live: Option<(Arc<EngineThreads>, Workers)>,
    closed: bool,
}

impl Engine {
    /// Taken for moments only: nothing is asked of Python under it.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        locked(&self.shared)
    }

    fn threads(&self) -> Option<Arc<EngineThreads>> {
        self.shared().live.as_ref().map(|(threads, _)| threads.clone())
    }

    /// The threads, which begin with the first request.
    fn live(&self, py: Python<'_>) -> PyResult<(Arc<EngineThreads>, Workers)> {
        let (live, over) = {
            let shared = self.shared();
            (shared.live.clone(), shared.closed)
        };
        match live {
            Some((threads, _)) if threads.is_forked() => return Err(forked("this engine's threads are", "an engine")),
            _ if over => return Err(closed()),
            Some(live) => return Ok(live),
            None => {}
        }
        // Start the workers first: if they fail, no pipeline is left waiting.
        let workers = Workers::new(self.threads).map_err(RustError::raised)?;
        let fresh = (EngineThreads::start(self.budget)?, workers);
        wait_until_attached(py);
        let mut shared = self.shared();
        let live = match (&shared.live, shared.closed) {
            (None, false) => {
                shared.live = Some(fresh.clone());
                return Ok(fresh);
            }
            (live, _) => live.clone(),
        };
        drop(shared);
        // Another thread was faster, so these are unused.
        py.detach(|| fresh.0.close());
        live.ok_or_else(closed)
    }

    /// The name of a model that was asked for.
    fn name(&self, model: Option<&str>) -> PyResult<String> {
        let shared = self.shared();
        let mut names: Vec<&str> = shared.models.keys().map(String::as_str).collect();
        names.sort_unstable();
        match model {
            Some(model) if names.contains(&model) => Ok(model.to_owned()),
            None if names.len() == 1 => Ok(names[0].to_owned()),
            Some(model) => Err(PyValueError::new_err(format!("no model {model}; there are: {}", names.join(", ")))),
            None => Err(PyValueError::new_err(format!("say which model: {}", names.join(", ")))),
        }
    }

    /// What a model of this network is made of.
    fn parts(
        &self,
        py: Python<'_>,
        loaded: &LoadedModel,
        spec: &str,
        workers: Workers,
    ) -> PyResult<(ModelSettings, AnyEvaluator)> {
        let settings = ModelSettings {
            config: self.config,
            number: loaded.number,
            max_batch: self.max_batch,
            split_from: SPLIT_FROM,
            cache: loaded.cache.clone(),
            workers,
            device: loaded.device.clone(),
        };
        Ok((settings, AnyEvaluator::shared(py, &loaded.evaluator)?.in_game(spec)))
    }

    /// The lock of the device that an evaluator names.
    fn device(&self, evaluator: &Bound<'_, PyAny>) -> PyResult<Arc<Mutex<()>>> {
        let device = match evaluator.getattr_opt("device")? {
            Some(device) => device.str()?.to_string(),
            None => String::new(),
        };
        Ok(self.shared().devices.entry(device).or_default().clone())
    }

    /// The model of this name for a state's game.
    fn model(&self, py: Python<'_>, name: &str, state: &AnyState) -> PyResult<(Arc<EngineThreads>, Arc<dyn AnyModel>)> {
        let spec = state.game();
        let (threads, workers) = self.live(py)?;
        if let Some(model) = py.detach(|| threads.models.get(name, spec)) {
            return Ok((threads, model));
        }
        loop {
            let loaded = self.shared().models.get(name).cloned().ok_or_else(closed)?;
            let (settings, evaluator) = self.parts(py, &loaded, spec, workers.clone())?;
            let model = model_for(state, settings, evaluator);
            let model = py.detach(|| threads.models.add((name.to_owned(), spec.to_owned()), model));
            // `load` may have come in between, and found no model of this game to renew.
            if self.shared().models.get(name).is_none_or(|newest| newest.number <= model.number()) {
                return Ok((threads, model));
            }
        }
    }

    /// Checks a request for a search of `state`, and counts it; `to` hands it to a model, or to a `game` that goes on.
    #[expect(clippy::too_many_arguments, reason = "a request, and who hears of it")]
    fn hand_over(
        &self,
        py: Python<'_>,
        threads: &EngineThreads,
        state: &AnyState,
        request: SearchRequest,
        seed: u64,
        game: Option<Arc<dyn AnyGameTree>>,
        (signals, responder): (Arc<Signals>, Responder),
        to: impl FnOnce(QueuedRequest, Vec<Action>) -> PyResult<()> + Send,
    ) -> PyResult<Arc<PendingRequest>> {
        let limit = settings::limit(request.seconds)?;
        let simulations = settings::simulations_within(request.simulations, limit, &self.config, self.simulations)?;
        let report_every = settings::limit(request.report_every)?;
        check_searchable(state)?;
        let (allowed, priority) = (request.allowed.clone(), request.priority);
        let all = if priority == Priority::Ponder { &threads.pondering } else { &threads.all }.clone();
        let token = Arc::new(PendingRequest::new(request, responder, signals, all, limit, game));
        if !threads.reserve(self.max_requests) {
            token.refuse();
            let text = format!(
                "{} requests are already waiting (max_requests): wait for an answer, or raise max_requests",
                self.max_requests
            );
            return Err(PyErr::from_value(py.import("queue")?.getattr("Full")?.call1((text,))?));
        }
        let (pending, deadline) = (token.clone(), token.deadline());
        let queued = Request { token, simulations, seed, run: 0, deadline, priority, report_every };
        let handed = py.detach(|| caught(|| threads.enter(|| to(queued, allowed))));
        handed.inspect_err(|_| {
            pending.refuse();
            threads.release();
        })?;
        Ok(pending)
    }

    /// Submits a search of a position.
    pub(crate) fn search(
        &self,
        py: Python<'_>,
        name: &str,
        state: &AnyState,
        request: SearchRequest,
        seed: u64,
        responder: (Arc<Signals>, Responder),
    ) -> PyResult<Arc<PendingRequest>> {
        let (threads, model) = self.model(py, name, state)?;
        // A replaced model is removed once no thread holds it, so drop it as soon as possible.
        let submit = move |queued, allowed| model.submit(state, queued, allowed);
        self.hand_over(py, &threads, state, request, seed, None, responder, submit)
    }

    /// A game that goes on.
    pub(crate) fn new_game(slf: &Bound<'_, Self>, name: &str, state: &AnyState, seed: u64) -> PyResult<EngineGame> {
        let py = slf.py();
        let (threads, model) = slf.get().model(py, name, state)?;
        let tree = py.detach(|| {
            let tree = model.game_tree(state, name, seed)?;
            threads.models.add_game_tree((name.to_owned(), state.game().to_owned()), &tree);
            Ok::<_, PyErr>(tree)
        })?;
        let history = Mutex::new(History::new(state.copied()?));
        Ok(EngineGame { engine: slf.clone().unbind(), threads, tree, history, seed })
    }

    /// The search options.
    pub(crate) fn config(&self) -> SearchConfig {
        self.config
    }
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (
        models, *, simulations = None, max_batch = 256, max_requests = 1024, total_memory_mb = None,
        cache_positions = 200_000, threads = None, **options
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        models: &Bound<'_, PyAny>,
        simulations: Option<Whole>,
        #[pyo3(from_py_with = whole)] max_batch: i128,
        #[pyo3(from_py_with = whole)] max_requests: i128,
        total_memory_mb: Option<Whole>,
        #[pyo3(from_py_with = whole)] cache_positions: i128,
        threads: Option<Whole>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = settings::search_config::<Self>(models.py(), options)?;
        let max_batch: usize = within("max_batch", max_batch, 1, SIZE)?;
        if max_batch < config.eval_batch {
            let leaves = config.eval_batch;
            return Err(PyValueError::new_err(format!(
                "max_batch must be at least eval_batch, the {leaves} leaves of one search, got {max_batch}"
            )));
        }
        let budget = total_memory_mb.map(|Whole(given)| within("total_memory_mb", given, 1, SIZE >> 20));
        let engine = Self {
            simulations: settings::simulations(simulations)?,
            config,
            max_batch,
            max_requests: within("max_requests", max_requests, 1, SIZE)?,
            cache_positions: settings::cache_positions(cache_positions)?,
            budget: budget.transpose()?.map_or(usize::MAX, |mb: usize| mb << 20),
            threads: settings::threads(threads)?,
            shared: Mutex::default(),
        };
        match models.cast::<PyDict>() {
            Ok(named) if named.is_empty() => return Err(PyValueError::new_err("an engine needs at least one model")),
            Ok(named) => {
                for (name, evaluator) in named {
                    engine.load(&name.extract::<String>()?, &evaluator)?;
                }
            }
            Err(_) => engine.load(ONLY, models)?,
        }
        Ok(engine)
    }

    /// The names of the models, sorted.
    #[getter]
    fn models(&self) -> Vec<String> {
        let mut names: Vec<_> = self.shared().models.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Add a model, or replace one.
    ///
    /// Searches under way end with their old network; later requests use the new one. A game drops a kept tree of the
    /// old one.
    fn load(&self, name: &str, evaluator: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = evaluator.py();
        AnyEvaluator::new(evaluator)?;
        let device = self.device(evaluator)?;
        let cache = settings::cache(self.cache_positions);
        let evaluator = Arc::new(evaluator.clone().unbind());
        let (loaded, live) = {
            let mut shared = self.shared();
            if shared.closed {
                return Err(closed());
            }
            shared.networks += 1;
            let loaded = LoadedModel { evaluator, number: shared.networks, device, cache };
            let old = shared.models.insert(name.to_owned(), loaded.clone());
            let live = shared.live.clone();
            drop(shared);
            drop(old);
            (loaded, live)
        };
        let Some((threads, workers)) = live else {
            return Ok(());
        };
        for (spec, model) in py.detach(|| threads.models.named(name)) {
            let (settings, evaluator) = self.parts(py, &loaded, &spec, workers.clone())?;
            py.detach(|| threads.models.renew((name.to_owned(), spec), model.renewed(settings, evaluator)));
        }
        py.detach(|| threads.models.wake());
        Ok(())
    }

    /// Request a search of `state`, and return at once.
    ///
    /// Callbacks of the future run in one thread of the engine, and delay other answers, but not searches. Never wait
    /// for a request in a callback, in the evaluator or in a game: it would never end.
    ///
    /// Args:
    ///     state: a position.
    ///     simulations: replaces the engine's own number for this request.
    ///     seconds: a time limit from now on. azpy answers with what is known by then: it estimates from the last calls
    ///         when to stop. The root is always evaluated, so a limit shorter than two calls of the evaluator can be
    ///         exceeded.
    ///     seed: the seed of root noise and dice.
    ///     model: the name of a model, if there are several.
    ///     priority: "play"; "analysis" takes free rows, or else one turn for every eight of a request to play;
    ///         "ponder" searches while there is nothing else to do.
    ///     actions: the root's actions to choose among; None for all. Other actions count as illegal at the root.
    ///     on_report: is called with a `SearchResult` of what is known so far. A slow listener gets the newest report
    ///         alone.
    ///     report_every: seconds between reports (0.1).
    ///     standard_errors: whether to compute `standard_errors` with each report and answer, by a walk through the
    ///         whole tree. Without it, an answer of `submit` computes them when asked; reports and answers of an
    ///         `EngineGame` have none.
    ///     lines: how many `principal_variations` the reports and answers of an `EngineGame` have; all by default. Each
    ///         takes a descent through the tree.
    ///
    /// Returns:
    ///     A `concurrent.futures.Future` of a `SearchResult`, which can be awaited. Its method `stop()` answers the
    ///     request with what is known by now. `cancel()` ends the search, and works until the result is there. The
    ///     future raises what the evaluator or the game raised.
    ///
    /// Raises:
    ///     GameError: the position cannot be searched.
    ///     RuntimeError: the engine is closed.
    ///     queue.Full: `max_requests` requests are open.
    #[pyo3(signature = (
        state, simulations = None, *, seconds = None, seed = 0, model = None, priority = "play", actions = None,
        on_report = None, report_every = None, standard_errors = false, lines = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn submit(
        &self,
        py: Python<'_>,
        state: &Bound<'_, PyAny>,
        simulations: Option<Whole>,
        seconds: Option<f64>,
        #[pyo3(from_py_with = whole)] seed: i128,
        model: Option<&str>,
        priority: &str,
        actions: Option<Listed<Whole>>,
        on_report: Option<Py<PyAny>>,
        report_every: Option<f64>,
        standard_errors: bool,
        lines: Option<Whole>,
    ) -> PyResult<Py<PyAny>> {
        let seed = within("seed", seed, 0, U64)?;
        let name = self.name(model)?;
        let state = any_state(state)?;
        let report_every = reports(on_report.as_ref(), report_every)?;
        let given = (simulations, seconds, priority, actions, report_every, standard_errors, lines);
        let request = request_of(&state, given)?;
        let pending = self.search(py, &name, &state, request, seed, Responder::future(py, on_report)?)?;
        Ok(pending.future(py).expect("it was asked for"))
    }

    /// Start a game at `state` that keeps its tree between requests.
    ///
    /// Returns:
    ///     An `EngineGame`.
    #[pyo3(signature = (state, *, model = None, seed = 0))]
    fn game(
        slf: &Bound<'_, Self>,
        state: &Bound<'_, PyAny>,
        model: Option<&str>,
        #[pyo3(from_py_with = whole)] seed: i128,
    ) -> PyResult<EngineGame> {
        let engine = slf.get();
        let seed = within("seed", seed, 0, U64)?;
        Self::new_game(slf, &engine.name(model)?, &any_state(state)?, seed)
    }

    /// Take no more requests, and return when the open ones are answered. Pondering stops. A second call does nothing.
    ///
    /// Args:
    ///     cancel: whether to cancel open requests. The call of the evaluator under way ends first.
    ///     seconds: answer open requests after so long with what is known by then.
    #[pyo3(signature = (*, cancel = false, seconds = None))]
    fn close(&self, py: Python<'_>, cancel: bool, seconds: Option<f64>) -> PyResult<()> {
        if is_serving() {
            return Err(PyRuntimeError::new_err(
                "close() cannot be called inside an engine's own thread (an evaluator, a game or a callback): it would wait for itself",
            ));
        }
        let limit = settings::limit(seconds)?;
        py.import("azpy.pending")?.call_method0("cancel_unwanted")?;
        self.shared().closed = true;
        let Some(threads) = self.threads().filter(|threads| !threads.is_forked()) else {
            return Ok(());
        };
        let began = std::time::Instant::now();
        py.detach(|| if cancel { threads.stop() } else { threads.close() });
        let over = wait(py, || {
            std::thread::sleep(Duration::from_millis(1));
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                threads.all.stop();
            }
            Ok(threads.is_over().then_some(()))
        });
        if over.is_ok() {
            // The threads that grew the trees go with the models.
            let pool = self.shared().live.as_mut().map(|(_, workers)| std::mem::replace(workers, Workers::Serial));
            py.detach(|| threads.models.clear());
            drop(pool);
        } else {
            // After an interrupt, do not wait.
            py.detach(|| threads.stop());
        }
        over
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, *_args))]
    fn __exit__(&self, py: Python<'_>, kind: &Bound<'_, PyAny>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py, !kind.is_none(), None)
    }

    /// Counts since the start, as a dict.
    ///
    /// Requests: requests (all), finished, failed, cancelled, open (not answered yet), left_over (open requests without
    /// room in the last batch), late (finished after their `seconds`). Of the last 4,096 finished: seconds_p50 and
    /// seconds_p99, from `submit` to the answer; NaN before the first. Batches: batches, rows, fill (share of the rows
    /// that the batches could hold), shared (leaves that shared a row with an equal leaf). Caches: cache_fill (share of
    /// their room in use; 0 without a cache). Of finished requests: simulations, evaluations, cache_hits, terminals,
    /// collisions.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut stats = match self.threads() {
            None => Stats::default(),
            Some(threads) if threads.is_forked() => return Err(forked("this engine's threads are", "an engine")),
            Some(threads) => py.detach(|| threads.counts()),
        };
        let caches: Vec<_> = self.shared().models.values().filter_map(|loaded| loaded.cache.clone()).collect();
        for cache in caches {
            stats.cached += cache.len();
            stats.cache_room += cache.capacity();
        }
        stats.dict(py, self.max_batch)
    }

    /// An evaluator may refer back to its engine. With open requests the engine is in use, though nobody has it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is taken with the GIL alone, and requests are counted with it: two looks in a row see the same.
        let Ok(shared) = self.shared.try_lock() else { return Ok(()) };
        if shared.live.as_ref().is_some_and(|(threads, _)| !threads.is_idle()) {
            return Ok(());
        }
        shared.models.values().try_for_each(|loaded| visit.call(&*loaded.evaluator))
    }

    fn __clear__(&self) {
        // In a fork of the process the lock may stay locked forever.
        let Ok(mut shared) = self.shared.try_lock() else { return };
        shared.closed = true;
        let freed = (std::mem::take(&mut shared.models), shared.live.take());
        drop(shared);
        if let Some((threads, _)) = freed.1.as_ref().filter(|(threads, _)| !threads.is_forked()) {
            // The threads end, and drop the models.
            Python::try_attach(|py| py.detach(|| threads.close()));
        }
        drop(freed);
    }
}

impl Drop for Engine {
    /// A dropped engine still answers its open requests.
    fn drop(&mut self) {
        if let Some(threads) = self.threads().filter(|threads| !threads.is_forked()) {
            // This is dropped with the GIL, for which a thread that has the lock of the models may wait.
            Python::try_attach(|py| py.detach(|| threads.close()));
        }
    }
}

/// The keywords that requests of an engine and of a game share: simulations, seconds, priority, actions, report_every,
/// standard_errors and lines.
type Keywords<'a> = (Option<Whole>, Option<f64>, &'a str, Option<Listed<Whole>>, Option<f64>, bool, Option<Whole>);

/// A request for a search of `state`.
fn request_of(state: &AnyState, given: Keywords<'_>) -> PyResult<SearchRequest> {
    let (simulations, seconds, priority, actions, report_every, standard_errors, lines) = given;
    // An error of the game comes before wrong actions.
    if actions.is_some() {
        check_searchable(state)?;
    }
    let priority = match priority {
        "play" => Priority::Play,
        "analysis" => Priority::Analysis,
        "ponder" => Priority::Ponder,
        other => {
            let text = format!("priority must be \"play\", \"analysis\" or \"ponder\", got {other:?}");
            return Err(PyValueError::new_err(text));
        }
    };
    Ok(SearchRequest {
        simulations: settings::simulations(simulations)?,
        seconds,
        priority,
        allowed: allowed_actions(state, actions)?,
        report_every,
        standard_errors,
        lines: lines.map_or(Ok(usize::MAX), |Whole(lines)| within("lines", lines, 0, SIZE))?,
        ..SearchRequest::default()
    })
}

/// Seconds between reports.
fn reports(on_report: Option<&Py<PyAny>>, report_every: Option<f64>) -> PyResult<Option<f64>> {
    if on_report.is_none() && report_every.is_some() {
        return Err(PyValueError::new_err("report_every needs on_report, the function that receives the reports"));
    }
    Ok(on_report.map(|_| report_every.unwrap_or(0.1)))
}
