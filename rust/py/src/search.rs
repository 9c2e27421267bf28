//! `azpy.Search` and `azpy.VectorSearch`: one tree, and many that share each call of the evaluator.

use std::sync::{Arc, Mutex, RwLock};

use azpy_core::config::SearchConfig;
use azpy_core::game::{Game, legal_of};
use azpy_core::search::SearchStats;
use azpy_core::selfplay::choose;
use azpy_core::text::Position;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{AnyBatch, BatchSettings, allowed_actions, batch_of, check_draws};
use crate::errors::caught;
use crate::evaluators::{AnyEvaluator, Owned};
use crate::listed::{Listed, set_fields};
use crate::result::{SearchResult, check_temperature, fill_policy, search_stats};
use crate::settings::{self, U64, Whole, whole, within};
use crate::state::{State, any_state};
use crate::threads::{changing, exclusive, looking};

/// A search of one position at a time.
///
/// Args:
///     evaluator: any object with `evaluate_batch` or `evaluate_states`; see `azpy.Evaluator`.
///     simulations: the most visits below the root that a run adds. None: 800, or no limit in a run with `seconds`.
///     cache_positions: how many answers of the evaluator to keep, if it has a `network_id`; 0 for none.
///     seed: the seed of root noise and dice. The k-th runs of two searches with one seed draw the same numbers.
///
/// Options (keywords, each with its default):
#[doc = azpy_core::search_options!()]
///
/// `gumbel_actions` above 0 replaces PUCT by Gumbel's sequential halving. Options of PUCT alone are then refused, and
/// options of Gumbel are refused without it. `azpy._core.OPTIONS` has the rule, the range and the source of each
/// option.
///
/// Raises:
///     TypeError: an unknown option, or a value of a wrong type.
///     ValueError: a value out of range, or options that exclude each other.
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
    session: Mutex<Option<Arc<RwLock<dyn AnyBatch>>>>,
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

    /// Search a position, or continue the search of the last run.
    ///
    /// A finished game gives an empty result. With 0 simulations azpy evaluates the root alone.
    ///
    /// Args:
    ///     state: the position, as `State` or `azpy.Game`. None continues with the tree of the last run, moved by
    ///         `advance`.
    ///     simulations: replaces the search's own number for this run.
    ///     seconds: a time limit. The round under way ends first, and the root is always evaluated.
    ///     actions: the root's actions to choose among; None for all. Other actions count as illegal at the root. Needs
    ///         `state`.
    ///     gumbel: float64 [L], used for the root's legal actions in place of random Gumbel draws. Needs
    ///         `gumbel_actions`.
    ///
    /// Returns:
    ///     A `SearchResult`.
    ///
    /// Raises:
    ///     GameError: the position is a chance turn, or the game breaks its contract.
    ///     EvaluatorError: the evaluator's reply cannot be used.
    ///     Exception: what the evaluator or a game in Python raises, unchanged.
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
                let legal = if allowed.is_empty() { legal_of(&state).len() } else { allowed.len() };
                check_draws(draws, legal)?;
            }
            let replaced = match kept.as_ref() {
                Some(shared) => changing(shared)?.replace(0, &state).is_ok(),
                None => false,
            };
            if !replaced {
                let settings = BatchSettings {
                    config: self.config,
                    cache: settings::cache(self.cache_positions),
                    threads: 1,
                    seed: self.seed,
                };
                *kept = Some(batch_of(&[state], settings)?);
            }
            if let (Some(shared), false) = (kept.as_ref(), allowed.is_empty()) {
                changing(shared)?.allow(0, allowed);
            }
        }
        let Some(shared) = kept.as_ref() else {
            return Err(PyValueError::new_err(
                "run() without a state continues a search, but none has been run yet: give a state",
            ));
        };
        let mut session = changing(shared)?;
        if let Some(Listed(draws)) = gumbel {
            session.set_gumbel_draws(0, &draws)?;
        }
        session.run(py, evaluator, simulations, limit)?;
        // With `lcb` the result takes a walk through the tree, in which other threads go on.
        let searched = &*session;
        let result = py.detach(|| SearchResult::sharing(shared.clone(), searched, 0));
        session.check().map(|()| result)
    }

    /// Move the root along an action or a chance outcome, and keep the tree below it. `run()` continues from there.
    ///
    /// Raises:
    ///     ValueError: the action is not legal; the search is unchanged.
    fn advance(&self, action: Whole) -> PyResult<()> {
        let kept = exclusive(&self.session)?;
        match kept.as_ref() {
            Some(shared) => changing(shared)?.advance(0, action),
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
/// Args:
///     states: the positions, [B], as `State` or `azpy.Game`.
///     evaluator: as for `Search`.
///     threads: how many threads grow the trees; by default one a core. A forked process uses the calling thread alone.
///
/// The other arguments and options are those of `Search`. A run leaves finished games out.
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
    session: Arc<RwLock<dyn AnyBatch>>,
}

impl VectorSearch {
    /// Looks at all searches. With `lcb` this takes walks through the trees, in which other threads go on.
    fn look<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&dyn AnyBatch) -> T + Send) -> PyResult<T> {
        py.detach(|| {
            let session = looking(&self.session)?;
            let found = caught(|| Ok(look(&*session)))?;
            session.check().map(|()| found)
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
        let session = batch_of(&states, BatchSettings { config, cache, threads, seed })?;
        let num_actions = first.num_actions();
        Ok(Self { seed, num_actions, evaluator: Owned::new(evaluator), session })
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(looking(&self.session)?.count())
    }

    /// Add simulations to every tree. You can call `run` again after an exception.
    ///
    /// Args:
    ///     simulations: visits to add to each tree.
    ///     seconds: a time limit, as for `Search.run`.
    #[pyo3(signature = (simulations, *, seconds = None))]
    fn run(&self, py: Python<'_>, simulations: Whole, seconds: Option<f64>) -> PyResult<()> {
        let limit = settings::limit(seconds)?;
        let simulations = within("simulations", simulations.0, 0, settings::U32)?;
        let mut session = changing(&self.session)?;
        let mut lent = self.evaluator.lock()?;
        let evaluator = lent.as_mut().expect("it is there");
        session.run(py, evaluator, simulations, limit)
    }

    /// Return what each search found, as a list of B `SearchResult`.
    fn results(&self, py: Python<'_>) -> PyResult<Vec<SearchResult>> {
        self.look(py, |session| {
            (0..session.count()).map(|index| SearchResult::sharing(self.session.clone(), session, index)).collect()
        })
    }

    /// Return `SearchResult.policy` of every tree, float32 [B, A]. The row of a finished game is zero.
    ///
    /// Args:
    ///     temperature: as for `SearchResult.policy`.
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

    /// Draw an action from each row of `action_probabilities`, int64 [B]; -1 for a finished game.
    ///
    /// The same call after the same run draws the same actions.
    #[pyo3(signature = (temperature = 1.0))]
    fn select_actions<'py>(&self, py: Python<'py>, temperature: f64) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let temperature = check_temperature(temperature)?;
        let select = |session: &dyn AnyBatch, index: usize| {
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

    /// Return `SearchResult.value` of every tree, float32 [B], each for its player to move.
    fn root_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let value = |session: &dyn AnyBatch, index| session.search(index).result().value;
        let values = self.look(py, |session| (0..session.count()).map(|index| value(session, index)).collect())?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Return copies of the positions, [B].
    fn states(&self) -> PyResult<Vec<State>> {
        let session = looking(&self.session)?;
        let state = |index| Ok(State::of(session.state(index)?));
        (0..session.count()).map(state).collect()
    }

    /// Play an action or a chance outcome in each tree, and keep the tree below it.
    ///
    /// Args:
    ///     actions: ints [B]; -1 leaves a tree as it is.
    ///
    /// Raises:
    ///     ValueError: an action is not legal. The trees before it have moved.
    fn advance(&self, actions: Listed<Whole>) -> PyResult<()> {
        let Listed(actions) = actions;
        let mut session = changing(&self.session)?;
        if actions.len() != session.count() {
            let (got, trees) = (actions.len(), session.count());
            return Err(PyValueError::new_err(format!("expected one action for each of {trees} trees, got {got}")));
        }
        for (index, action) in actions.into_iter().enumerate().filter(|&(_, Whole(action))| action != -1) {
            session.advance(index, action)?;
        }
        Ok(())
    }

    /// Replace the position with this index, and start its tree anew.
    fn replace(&self, index: Whole, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut session = changing(&self.session)?;
        let state = any_state(state)?;
        if state.game() != session.spec() {
            let (other, own) = (state.game(), session.spec());
            return Err(PyValueError::new_err(format!("a state of {other} in a search of {own}")));
        }
        let index = within("index", index.0, 0, session.count() as i128 - 1)?;
        session.replace(index, &state)
    }

    /// Counts, as a dict of ints.
    ///
    /// Since the last run began, over all trees: those of `SearchResult.stats`. Since the start: batches (calls of the
    /// evaluator), rows, rows_capacity (rows if every tree had filled eval_batch), shared (leaves that shared a row
    /// with an equal leaf).
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
        set_fields!(stats, session.rounds(); batches, rows, rows_capacity, shared);
        Ok(stats)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.evaluator.traverse(&visit)
    }

    fn __clear__(&self) {
        self.evaluator.clear();
    }
}
