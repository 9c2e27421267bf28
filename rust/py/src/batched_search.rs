//! `azpy.BatchedSearch`: the class in front of a session that searches for many who ask at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azpy_core::config::SearchConfig;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::doors::{AnyServing, AnyState, Asked, ServingSettings};
use crate::evaluators::AnyEvaluator;
use crate::serving::{closed, is_serving};
use crate::serving_stats::Stats;
use crate::settings::{self, SIZE, U64, Whole, whole, within};
use crate::state::any_state;
use crate::threads::{wait, wait_until_attached};

/// A session that searches positions for many who ask at once, in a thread of its own. It is for a site where people
/// play against a network, or for a program with many games at a time.
///
/// Requests share each call of the evaluator, and join and leave between calls. A batch takes the leaves that wait, at
/// most `max_batch`, and never waits for more. If more leaves wait, those left over come first the next time. So equal
/// requests that come together take the same time, and no request waits for a longer one. What a request finds depends
/// on its state, its seed and the settings alone. It is what `azpy.Search(evaluator, seed=seed, ...).run(state)` finds:
/// to the last visit if a row's answer does not depend on the rest of its batch (`row_exact`), and nearly so otherwise.
///
/// There is one call of the evaluator at a time. An exception in this call ends every request under way, and each of
/// these requests raises a copy of the exception. The session goes on with the requests that come after. A game that
/// fails ends its own request alone. If it fails while it is encoded, the other requests of its batch begin again, and
/// find the same later.
///
/// Use a session in a `with` block, or call `close`. The block ends when every request is answered; if an exception
/// leaves the block, the requests are cancelled. All requests of a session are about one game, that of the first
/// request. Many threads may use a session. The end of the interpreter cancels open requests. It first waits for
/// threads that are no daemons, and so for what these threads wait for.
///
/// Args:
///     evaluator: as for `Search`.
///     simulations: visits below the root, at most, for a request that does not give its own. None: 800, or no limit
///         for a request with `seconds`.
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
        let config = settings::search_config::<Self>(evaluator.py(), options)?;
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

    /// Asks for a search of `state`, and returns at once. Returns a `concurrent.futures.Future` of a `SearchResult`;
    /// `asyncio.wrap_future` makes a future to await of it. `cancel()` works until the result is there, and ends the
    /// search.
    ///
    /// These errors are raised here: a state that cannot be searched, a closed session (RuntimeError), a session that
    /// is full (`queue.Full`). The future raises what the evaluator or the game raised, and a copy if several requests
    /// fail with it. No asyncio future takes a StopIteration, so a StopIteration becomes the cause of a RuntimeError. A
    /// result keeps its tree for as long as the result is kept.
    ///
    /// The future's callbacks run in the session's thread, and all requests wait for them. Never wait for a future of
    /// the session in a callback, in the evaluator or in a game: such a wait never ends.
    ///
    /// Args:
    ///     state: a position, of the game that the first request was about.
    ///     simulations: in place of the session's own number.
    ///     seconds: from now on, in which to answer with what is known by then. A search whose simulations are done
    ///         sooner is answered sooner. The search ends before the call of the evaluator that would end too late,
    ///         going by the last calls. The root is evaluated in any case. So no limit is kept that is shorter than the
    ///         call under way and one more.
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
        if is_serving() {
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

    /// Counts since the start.
    ///
    /// Requests: requests (all), finished, failed, cancelled, open (not answered yet), left_over (open requests for
    /// whose leaves the last batch had no room), late (finished after their `seconds`). seconds_p50 and seconds_p99 are
    /// from `submit` to the answer, of the last 4,096 requests that finished (NaN before the first).
    ///
    /// Batches: batches, rows, fill (rows over what the batches could have held), shared (leaves that shared a row with
    /// an equal one).
    ///
    /// Of finished requests: simulations, evaluations, cache_hits, terminals, collisions.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let server = self.live().server.clone();
        server.map_or_else(|| Ok(Stats::default()), |server| server.stats())?.dict(py, self.max_batch)
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
