//! `azpy.Search` and `azpy.VectorSearch`: one tree, and many that share each call of the evaluator.

use std::sync::{Arc, Mutex, RwLock};

use azpy_core::config::SearchConfig;
use azpy_core::game::Game;
use azpy_core::search::SearchStats;
use azpy_core::selfplay::choose;
use azpy_core::text::Position;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{AnyBatch, BatchSettings, allowed_actions, check_draws};
use crate::errors::caught;
use crate::evaluators::{AnyEvaluator, Owned};
use crate::listed::Listed;
use crate::position::each;
use crate::result::{SearchResult, check_temperature, fill_policy, search_stats};
use crate::settings::{self, U64, Whole, whole, within};
use crate::state::{State, any_state};
use crate::threads::{changing, exclusive, looking};

/// Search of one position.
///
/// Args:
///     evaluator: UniformEvaluator, RolloutEvaluator, OnnxEvaluator, or any object with `evaluate_batch`.
///     simulations: visits below the root that a run adds at most. None: 800, or no limit in a run with `seconds`.
///     cache_positions: answers to keep, where the evaluator has a `network_id`.
///     seed: of the noise and the dice; run k of two searches with the same seed draws the same.
///
/// Options (keywords, each with its default):
#[doc = azpy_core::search_options!()]
///
/// `gumbel_actions` above 0 takes the place of PUCT: options that only PUCT looks at are refused with it, and Gumbel's
/// without it (`azpy._core.OPTIONS` has each option's rule, range and source).
///
///     >>> import azpy
///     >>> state = azpy.make_game("connect_four")
///     >>> result = azpy.Search(azpy.RolloutEvaluator(1), simulations=2000).run(state)
///     >>> result.action
///     3
#[pyclass(module = "azpy", frozen)]
pub(crate) struct Search {
    evaluator: Owned,
    /// Where they were given.
    simulations: Option<u32>,
    config: SearchConfig,
    cache_positions: usize,
    seed: u64,
    session: Mutex<Option<Arc<RwLock<AnyBatch>>>>,
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (evaluator, *, simulations = None, cache_positions = 0, seed = 0, **options))]
    fn new(
        evaluator: &Bound<'_, PyAny>,
        simulations: Option<Whole>,
        #[pyo3(from_py_with = whole)] cache_positions: i128,
        #[pyo3(from_py_with = whole)] seed: i128,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let owned = Owned::new(AnyEvaluator::new(evaluator)?);
        let config = settings::search_config::<Self>(evaluator.py(), options)?;
        Ok(Self {
            evaluator: owned,
            simulations: settings::simulations(simulations)?,
            config,
            cache_positions: settings::cache_positions(cache_positions)?,
            seed: within("seed", seed, 0, U64)?,
            session: Mutex::new(None),
        })
    }

    /// Searches `state` from nothing, or without one goes on with the tree of the last run (moved by `advance`).
    ///
    /// At a finished game there is nothing to do. With 0 simulations the root alone is evaluated. Raises GameError at a
    /// chance turn; an exception in the evaluator or the game comes as it is.
    ///
    /// Args:
    ///     state: a position; None to go on.
    ///     simulations: in place of the search's own number.
    ///     seconds: the run ends after so long, with the round under way, or with the last simulation if that comes first;
    ///         the root is evaluated in any case.
    ///     actions: the root's actions to choose among; None for all. The search is that of a game in which the others are
    ///         not legal in `state`, which must be given.
    ///     gumbel: float64 [L], draws for the root's actions in place of random ones, with `gumbel_actions`.
    #[pyo3(signature = (state = None, simulations = None, *, seconds = None, actions = None, gumbel = None))]
    fn run(
        &self,
        py: Python<'_>,
        state: Option<&Bound<'_, PyAny>>,
        simulations: Option<Whole>,
        seconds: Option<f64>,
        actions: Option<Listed<Whole>>,
        gumbel: Option<Listed<f64>>,
    ) -> PyResult<SearchResult> {
        let limit = settings::limit(seconds)?;
        let given = settings::simulations(simulations)?;
        let simulations = settings::simulations_within(given, limit, &self.config, self.simulations)?;
        if gumbel.is_some() && self.config.gumbel().is_none() {
            return Err(PyValueError::new_err(
                "gumbel gives draws for a search with gumbel_actions, but this search was made without them",
            ));
        }
        if actions.is_some() && state.is_none() {
            return Err(PyValueError::new_err("actions restrict the root of a new search: give its state too"));
        }
        let mut kept = exclusive(&self.session)?;
        let mut lent = self.evaluator.lock()?;
        let evaluator = lent.as_mut().expect("it is there");
        if let Some(state) = state {
            let state = any_state(state)?;
            let allowed = allowed_actions(&state, actions)?;
            if let Some(Listed(draws)) = &gumbel {
                let legal = if allowed.is_empty() { state.legal().len() } else { allowed.len() };
                check_draws(draws, legal)?;
            }
            let replaced = match kept.as_ref() {
                Some(shared) => {
                    each!(&mut *changing(shared)?, session => session.replace(0, &state).is_ok())
                }
                None => false,
            };
            if !replaced {
                let settings = BatchSettings {
                    config: self.config,
                    cache: settings::cache(self.cache_positions),
                    threads: 1,
                    seed: self.seed,
                };
                *kept = Some(Arc::new(RwLock::new(AnyBatch::new(&[state], settings)?)));
            }
            if let (Some(shared), false) = (kept.as_ref(), allowed.is_empty()) {
                each!(&mut *changing(shared)?, session => session.allow(0, allowed));
            }
        }
        let Some(shared) = kept.as_ref() else {
            return Err(PyValueError::new_err(
                "run() without a state continues a search, but none has been run yet: give a state",
            ));
        };
        let mut session = changing(shared)?;
        if let Some(Listed(draws)) = gumbel {
            each!(&mut *session, session => session.set_gumbel_draws(0, &draws))?;
        }
        each!(&mut *session, session => session.run(py, evaluator, simulations, limit))?;
        // With `lcb` the result takes a walk through the tree, in which other threads go on.
        let searched = &*session;
        let result = py.detach(|| SearchResult::sharing(shared.clone(), searched, 0));
        each!(&*session, session => session.check()).map(|()| result)
    }

    /// Moves the root along an action or a chance outcome and keeps what the tree knows below it; `run()` goes on from
    /// there. Raises ValueError, and changes nothing, if it is not legal.
    fn advance(&self, action: Whole) -> PyResult<()> {
        let kept = exclusive(&self.session)?;
        match kept.as_ref() {
            Some(shared) => each!(&mut *changing(shared)?, session => session.advance(0, action)),
            None => Err(PyValueError::new_err(
                "advance() moves the root of a search, but none has been run yet: call run() first",
            )),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.evaluator.traverse(&visit)
    }

    fn __clear__(&self) {
        self.evaluator.clear();
    }
}

/// Searches of B positions of one game that share each call of the evaluator.
///
/// Settings are those of `Search`, and `threads`: they grow the trees, by default one a core. Finished games take no part.
/// A fork of the process has none of the threads: there the calling one grows the trees.
///
///     >>> import azpy
///     >>> states = [azpy.make_game("tic_tac_toe") for _ in range(3)]
///     >>> search = azpy.VectorSearch(states, azpy.UniformEvaluator())
///     >>> search.run(50)
///     >>> search.action_probabilities().shape
///     (3, 9)
#[pyclass(module = "azpy", frozen)]
pub(crate) struct VectorSearch {
    seed: u64,
    num_actions: usize,
    evaluator: Owned,
    session: Arc<RwLock<AnyBatch>>,
}

impl VectorSearch {
    /// Looks at all searches. With `lcb` this takes walks through the trees, in which other threads go on.
    fn look<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&AnyBatch) -> T + Send) -> PyResult<T> {
        py.detach(|| {
            let session = looking(&self.session)?;
            let found = caught(|| Ok(look(&session)))?;
            each!(&*session, session => session.check()).map(|()| found)
        })
    }
}

#[pymethods]
impl VectorSearch {
    #[new]
    #[pyo3(signature = (states, evaluator, *, cache_positions = 0, seed = 0, threads = None, **options))]
    fn new(
        states: Listed<Bound<'_, PyAny>>,
        evaluator: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] cache_positions: i128,
        #[pyo3(from_py_with = whole)] seed: i128,
        threads: Option<Whole>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = settings::search_config::<Self>(evaluator.py(), options)?;
        let evaluator = AnyEvaluator::new(evaluator)?;
        let states: Vec<_> = states.0.iter().map(any_state).collect::<PyResult<_>>()?;
        let Some(first) = states.first() else {
            return Err(PyValueError::new_err("expected at least one state, got none"));
        };
        if let Some(other) = states.iter().find(|other| other.game() != first.game()) {
            let (first, other) = (first.game(), other.game());
            return Err(PyValueError::new_err(format!(
                "the states of one search must be of one game, got {first} and {other}"
            )));
        }
        let cache = settings::cache(settings::cache_positions(cache_positions)?);
        let seed = within("seed", seed, 0, U64)?;
        let threads = settings::threads(threads)?;
        let session = AnyBatch::new(&states, BatchSettings { config, cache, threads, seed })?;
        let num_actions = first.num_actions();
        Ok(Self { seed, num_actions, evaluator: Owned::new(evaluator), session: Arc::new(RwLock::new(session)) })
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(looking(&self.session)?.count())
    }

    /// Adds simulations to every tree. On an exception nothing stays in flight, and `run` may be called again.
    /// `seconds` as for `Search.run`.
    #[pyo3(signature = (simulations, *, seconds = None))]
    fn run(&self, py: Python<'_>, simulations: Whole, seconds: Option<f64>) -> PyResult<()> {
        let limit = settings::limit(seconds)?;
        let simulations = within("simulations", simulations.0, 0, settings::U32)?;
        let mut session = changing(&self.session)?;
        let mut lent = self.evaluator.lock()?;
        let evaluator = lent.as_mut().expect("it is there");
        each!(&mut *session, session => session.run(py, evaluator, simulations, limit))
    }

    /// What each search found, [B].
    fn results(&self, py: Python<'_>) -> PyResult<Vec<SearchResult>> {
        self.look(py, |session| {
            (0..session.count()).map(|index| SearchResult::sharing(self.session.clone(), session, index)).collect()
        })
    }

    /// float32 [B, A]: `SearchResult.policy` of every tree; a row of zeros where the game is over.
    #[pyo3(signature = (temperature = 1.0))]
    fn action_probabilities<'py>(&self, py: Python<'py>, temperature: f64) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let temperature = check_temperature(temperature)?;
        let policies = self.look(py, |session| {
            let mut policies = Array2::zeros((session.count(), self.num_actions));
            for (index, mut row) in policies.rows_mut().into_iter().enumerate() {
                let row = row.as_slice_mut().expect("rows are contiguous");
                fill_policy(&session.search(index).result(), temperature, row);
            }
            policies
        })?;
        Ok(policies.into_pyarray(py))
    }

    /// int64 [B]: an action drawn from each row of `action_probabilities`; -1 where the game is over. The same call
    /// after the same run draws the same.
    #[pyo3(signature = (temperature = 1.0))]
    fn select_actions<'py>(&self, py: Python<'py>, temperature: f64) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let temperature = check_temperature(temperature)?;
        let select = |session: &AnyBatch, index: usize| {
            let result = session.search(index).result();
            let visits: u64 = result.visits.iter().map(|&visits| u64::from(visits)).sum();
            let key = session.search(index).key();
            let mut stream =
                azpy_core::rng::Stream::keyed(&[self.seed, index as u64, visits, key as u64, (key >> 64) as u64]);
            choose(&result, temperature, &mut stream).map_or(-1, |chosen| i64::from(result.actions[chosen]))
        };
        let actions = self.look(py, |session| (0..session.count()).map(|index| select(session, index)).collect())?;
        Ok(PyArray1::from_vec(py, actions))
    }

    /// float32 [B]: `SearchResult.value` of every tree.
    fn root_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let value = |session: &AnyBatch, index| session.search(index).result().value;
        let values = self.look(py, |session| (0..session.count()).map(|index| value(session, index)).collect())?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Copies of the positions, [B].
    fn states(&self) -> PyResult<Vec<State>> {
        let session = looking(&self.session)?;
        let state = |index| Ok(State::of(session.state(index)?));
        (0..session.count()).map(state).collect()
    }

    /// Plays actions [B] (or chance outcomes) and keeps each tree below them; -1 leaves a tree as it is. Raises
    /// ValueError at the first action that is not legal; the trees before it have moved.
    fn advance(&self, actions: Listed<Whole>) -> PyResult<()> {
        let Listed(actions) = actions;
        let mut session = changing(&self.session)?;
        if actions.len() != session.count() {
            let (got, trees) = (actions.len(), session.count());
            return Err(PyValueError::new_err(format!("expected one action for each of {trees} trees, got {got}")));
        }
        for (index, action) in actions.into_iter().enumerate().filter(|&(_, Whole(action))| action != -1) {
            each!(&mut *session, session => session.advance(index, action))?;
        }
        Ok(())
    }

    /// Puts another position in place of the `index`-th.
    fn replace(&self, index: Whole, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut session = changing(&self.session)?;
        let state = any_state(state)?;
        if state.game() != session.spec() {
            let (other, own) = (state.game(), session.spec());
            return Err(PyValueError::new_err(format!("a state of {other} in a search of {own}")));
        }
        let index = within("index", index.0, 0, session.count() as i128 - 1)?;
        each!(&mut *session, session => session.replace(index, &state))
    }

    /// Counts since the last run began, as in `SearchResult.stats`, over all trees; and since the start: batches
    /// (calls of an evaluator), rows, rows_capacity (rows, had every tree found eval_batch leaves), shared (leaves
    /// that shared a row with an equal one).
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let session = looking(&self.session)?;
        let mut total = SearchStats::default();
        let (mut nodes, mut memory) = (0, 0);
        for index in 0..session.count() {
            let search = session.search(index);
            total.add(search.stats());
            nodes += search.tree().nodes().len();
            memory += search.tree().memory_bytes();
        }
        let stats = search_stats(py, &total)?;
        stats.set_item("nodes", nodes)?;
        stats.set_item("memory_bytes", memory)?;
        let rounds = each!(&*session, session => session.rounds());
        stats.set_item("batches", rounds.batches)?;
        stats.set_item("rows", rounds.rows)?;
        stats.set_item("rows_capacity", rounds.rows_capacity)?;
        stats.set_item("shared", rounds.shared)?;
        Ok(stats)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.evaluator.traverse(&visit)
    }

    fn __clear__(&self) {
        self.evaluator.clear();
    }
}
