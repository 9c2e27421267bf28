//! `azpy.SearchResult`, and what it reads of a search.

use std::sync::{Arc, RwLock};

use azpy_core::look::{Variation, standard_errors, variations as variations_of};
use azpy_core::search::{SearchResult as CoreResult, SearchStats};
use azpy_core::selfplay::{sharpen, soften};
use azpy_serve::{SearchRequest, chosen_at};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{AnyBatch, AnySearch};
use crate::errors::caught;
use crate::listed::set_fields;
use crate::picture::drawn;
use crate::settings::{SIZE, U64, Whole, whole, within};
use crate::threads::looking;

/// What a search found.
///
/// Arrays are [L]: one entry a legal action, in ascending order. Values are for the player to move.
///
/// `standard_errors`, `principal_variations` and `to_svg` read the search's tree when you ask for them. They raise
/// ValueError once the tree was run, advanced or replaced. A result keeps its tree in memory: to keep many results,
/// make them with one `Search`. A notebook shows a result as its picture.
///
///     >>> import azpy
///     >>> state = azpy.make_game("tic_tac_toe")
///     >>> result = azpy.Search(azpy.UniformEvaluator(), simulations=300).run(state)
///     >>> result.standard_errors.shape
///     (9,)
///     >>> actions, visits, q = result.principal_variations(1, length=2)[0]
///     >>> actions == result.principal_variation[:2]
///     True
///     >>> result.to_svg(max_nodes=20).startswith("<svg")
///     True
#[pyclass(module = "azpy", frozen)]
pub(crate) struct SearchResult {
    inner: CoreResult,
    num_actions: usize,
    stats: SearchStats,
    nodes: usize,
    memory: usize,
    /// Those that were read with the result.
    standard_errors: Option<Vec<f32>>,
    seen: Seen,
}

/// What can be asked of the tree.
enum Seen {
    /// The search, which nobody else has, and what its game is called.
    Own { spec: String, search: Box<dyn AnySearch> },
    /// The searches, which of them it is, and how often it had changed when this was read from it.
    Shared { searches: Arc<RwLock<dyn AnyBatch>>, index: usize, changes: u64 },
    /// Of a tree that an engine's game goes on with: what was seen of it in passing.
    Passing { variations: Vec<Variation> },
}

/// Of a picture: nobody reads more.
const MOST_NODES: i128 = 10_000;

impl SearchResult {
    fn new(search: &dyn AnySearch, errors: bool, seen: Seen) -> Self {
        let tree = search.tree();
        Self {
            inner: search.result(),
            num_actions: search.num_actions(),
            stats: *search.stats(),
            nodes: tree.nodes().len(),
            memory: tree.memory_bytes(),
            standard_errors: errors.then(|| standard_errors(tree)),
            seen,
        }
    }

    /// What a search has found that is over. `errors`: with the standard errors, before somebody asks for them.
    pub(crate) fn owning(spec: String, search: Box<dyn AnySearch>, errors: bool) -> PyResult<Self> {
        let mut result = Self::new(&*search, errors, Seen::Passing { variations: Vec::new() });
        search.check()?;
        result.seen = Seen::Own { spec, search };
        Ok(result)
    }

    /// What the search `index` of `now` has found, which are the `searches`.
    pub(crate) fn sharing(searches: Arc<RwLock<dyn AnyBatch>>, now: &dyn AnyBatch, index: usize) -> Self {
        Self::new(now.search(index), false, Seen::Shared { searches, index, changes: now.changes(index) })
    }

    /// What a search has found that goes on.
    pub(crate) fn in_passing(search: &dyn AnySearch, request: &SearchRequest) -> PyResult<Self> {
        let variations = variations_of(search.tree(), request.lines, request.line_length);
        let result = Self::new(search, request.standard_errors, Seen::Passing { variations });
        search.check().map(|()| result)
    }

    pub(crate) fn counts(&self) -> &SearchStats {
        &self.stats
    }

    pub(crate) fn core(&self) -> &CoreResult {
        &self.inner
    }

    /// See `principal_variations`.
    pub(crate) fn lines(&self, count: usize, length: usize) -> PyResult<Vec<Variation>> {
        let Seen::Passing { variations } = &self.seen else {
            return self.look("principal_variations", |_, search| variations_of(search.tree(), count, length));
        };
        let mut lines: Vec<_> = variations.iter().take(count).cloned().collect();
        lines.iter_mut().for_each(|line| line.actions.truncate(length));
        Ok(lines)
    }

    /// See `standard_errors`.
    pub(crate) fn errors(&self, py: Python<'_>) -> PyResult<Vec<f32>> {
        if let Some(errors) = &self.standard_errors {
            return Ok(errors.clone());
        }
        if let Seen::Passing { .. } = &self.seen {
            return Err(PyValueError::new_err(
                "this result has no standard_errors: pass standard_errors=True to search, because the search \
                 changes its tree afterwards",
            ));
        }
        // A walk through a large tree takes a second, in which other threads go on.
        py.detach(|| self.look("standard_errors", |_, search| standard_errors(search.tree())))
    }

    /// Has `look` read the search for `what`, and its game's name: the tree is as this result knows it.
    fn look<T>(&self, what: &str, look: impl FnOnce(&str, &dyn AnySearch) -> T) -> PyResult<T> {
        match &self.seen {
            Seen::Own { spec, search } => Ok(look(spec, &**search)),
            Seen::Shared { searches, index, changes } => {
                let searches = looking(searches)?;
                if searches.changes(*index) == *changes {
                    return Ok(look(searches.spec(), searches.search(*index)));
                }
                Err(PyValueError::new_err(format!(
                    "{what} reads the search's tree, which has been run, advanced or replaced since this result: \
                     call it earlier, or search the position again"
                )))
            }
            Seen::Passing { .. } => Err(PyValueError::new_err(format!(
                "{what} reads the search's tree, which an engine's game has kept; engine.submit gives a result its tree"
            ))),
        }
    }
}

#[pymethods]
impl SearchResult {
    /// The legal actions, int64 [L]; empty when the game is over.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.actions.iter().map(|&action| i64::from(action)))
    }

    /// Simulations through each action, int64 [L].
    #[getter]
    fn visits<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.visits.iter().map(|&visits| i64::from(visits)))
    }

    /// The evaluator's prior of each action, float32 [L], without root noise.
    #[getter]
    fn priors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.priors)
    }

    /// The mean value of each action for the player to move, float32 [L]; 0 for an action without visits.
    #[getter]
    fn q<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.q)
    }

    /// The mean value of the position for the player to move, in [-1, 1], its own evaluation included. When the game is
    /// over: the outcome for player 0.
    #[getter]
    fn value(&self) -> f32 {
        self.inner.value
    }

    /// The mean value of the position for each player, float32 [P], player 0 first; (x, -x) for two players with a zero
    /// sum. When the game is over: the outcomes.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.values)
    }

    /// Plies from each action to the proven end of the game, int64 [L]; -1 where nothing is proven, and at most 254.
    /// `q` has the proven value. Needs `solver`.
    #[getter]
    fn proofs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.proofs.iter().map(|&proof| i64::from(proof) - 1))
    }

    /// Plies in which the game is proven to end with `value`, or None.
    #[getter]
    fn proof(&self) -> Option<u8> {
        self.inner.proof.checked_sub(1)
    }

    /// The policy to learn from this search, float32 [L]; it sums to 1.
    ///
    /// With PUCT: shares of the visits; those of a proven action are from before its proof. With Gumbel: the improved
    /// policy, or all on `action` where the position is proven. Without visits: the priors.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.target)
    }

    /// Why the run ended: "simulations" (all are done), "evaluations", "decided" (`early_stop`), "proven", "seconds",
    /// "game over", "visits" (the root has as many as a tree can count, about 2**32); in an `Engine` also "stopped" and
    /// "memory".
    #[getter]
    fn stop(&self) -> &'static str {
        self.inner.stop.name()
    }

    /// The action to play, or None when the game is over.
    ///
    /// It is a proven win if there is one; else the action with the most visits (then the higher prior, then the lower
    /// number), or the choice of `lcb` or Gumbel's rule. A proven better action replaces it.
    #[getter]
    fn action(&self) -> Option<u32> {
        self.inner.action
    }

    /// The line of play that begins with `action` and takes the most visited action from there, up to the first roll.
    #[getter]
    fn principal_variation(&self) -> Vec<u32> {
        self.inner.principal_variation.clone()
    }

    /// The standard error of each `q`, float32 [L], from the scatter of the values of the action's simulations.
    ///
    /// NaN below 2 visits, and where `max_memory_mb` left no room for a node. The formula assumes independent
    /// simulations, which those of a search are not.
    #[getter]
    fn standard_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(py, self.errors(py)?))
    }

    /// Return the lines of the `count` most visited actions, as [(actions, visits, q)].
    ///
    /// Args:
    ///     count: how many lines, at most. An action without visits has none.
    ///     length: the most actions in a line. A line ends at the first roll.
    ///
    /// Returns:
    ///     For each line its actions, the simulations through the first action, and its mean value for the player to
    ///     move.
    #[pyo3(signature = (count = 3, length = None))]
    fn principal_variations(
        &self,
        #[pyo3(from_py_with = whole)] count: i128,
        length: Option<Whole>,
    ) -> PyResult<Vec<(Vec<u32>, u32, f32)>> {
        let count = within("count", count, 0, SIZE)?;
        let length = length.map_or(Ok(usize::MAX), |Whole(length)| within("length", length, 1, SIZE))?;
        let lines = self.lines(count, length)?.into_iter();
        Ok(lines.map(|Variation { actions, visits, q, .. }| (actions, visits, q)).collect())
    }

    /// Return the tree as an SVG picture that needs no other file.
    ///
    /// A node shows its visits N, the prior P that the search used (root noise included; after a roll, the
    /// probability), and Q, the mean value for the named player: the one who chose the action, player 0 after a roll,
    /// or the player to move at the root. Siblings stand in the order of their visits, and "+n more" counts visited
    /// ones that are left out.
    ///
    /// Args:
    ///     depth: the most plies below the root, rolls counted.
    ///     max_nodes: the most nodes, at most 10,000; the most visited ones are shown.
    #[pyo3(signature = (max_nodes = 60, depth = None))]
    fn to_svg<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] max_nodes: i128,
        depth: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let max_nodes = within("max_nodes", max_nodes, 1, MOST_NODES)?;
        let depth = depth.map_or(Ok(usize::MAX), |Whole(depth)| within("depth", depth, 0, SIZE))?;
        let best = &self.inner.principal_variation;
        let (title, shown) =
            self.look("to_svg", |spec, search| (spec.to_owned(), caught(|| search.picture(best, max_nodes, depth))))?;
        drawn(py, &title, shown?)
    }

    /// For notebooks: `to_svg()`, or None where the tree has changed or is being searched.
    fn _repr_svg_<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.look("_repr_svg_", |_, _| ()).is_err() {
            return Ok(None);
        }
        self.to_svg(py, 60, None).map(Some)
    }

    /// Counts, as a dict of ints.
    ///
    /// Of this run: simulations, evaluations (leaves that the evaluator answered, the root included), cache_hits,
    /// terminals, collisions, rounds, unexpanded (leaves that found a full tree), depth (plies of the longest descent,
    /// rolls counted). Of the tree: nodes, memory_bytes.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = search_stats(py, &self.stats)?;
        stats.set_item("nodes", self.nodes)?;
        stats.set_item("memory_bytes", self.memory)?;
        stats.set_item("depth", self.inner.depth)?;
        Ok(stats)
    }

    /// Return the probability of each action, float32 [A], in proportion to target^(1/temperature).
    ///
    /// Illegal actions have 0. So do actions that are proven to lose, unless nothing else is left.
    ///
    /// Args:
    ///     temperature: 0 puts all on `action`.
    #[pyo3(signature = (temperature = 1.0))]
    fn policy<'py>(&self, py: Python<'py>, temperature: f64) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let mut policy = vec![0.0; self.num_actions];
        fill_policy(&self.inner, check_temperature(temperature)?, &mut policy);
        Ok(policy.into_pyarray(py))
    }

    /// float64 [A]: the probabilities of a player that plays weaker actions too: those of `policy`, or after one simulation
    /// the priors to the power 1/temperature. Temperature 0 is all on `action`.
    fn _softened<'py>(&self, py: Python<'py>, temperature: f64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut policy = vec![0.0; self.num_actions];
        for (&action, share) in self.inner.actions.iter().zip(soften(&self.inner, check_temperature(temperature)?)) {
            policy[action as usize] = share;
        }
        Ok(policy.into_pyarray(py))
    }

    /// The action that a player plays: at temperature 0 `action`, else one drawn, with one seed always the same at a
    /// position's `key`. None when the game is over.
    fn _chosen(
        &self,
        temperature: f64,
        #[pyo3(from_py_with = whole)] seed: i128,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u32>> {
        let (temperature, seed) = (check_temperature(temperature)?, within("seed", seed, 0, U64)?);
        Ok(chosen_at(&self.inner, temperature, seed, key.extract()?))
    }

    fn __repr__(&self) -> String {
        let Some(action) = self.inner.action else {
            return match &self.inner.values[..] {
                values if values.len() > 2 => format!("<azpy.SearchResult of a finished game, outcome {values:?}>"),
                _ => format!("<azpy.SearchResult of a finished game, outcome {} for player 0>", self.inner.value),
            };
        };
        let visits: u64 = self.inner.visits.iter().map(|&visits| u64::from(visits)).sum();
        format!("<azpy.SearchResult action {action}, value {:.3}, {visits} visits>", self.inner.value)
    }
}

pub(crate) fn search_stats<'py>(py: Python<'py>, stats: &SearchStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    set_fields!(dict, stats; simulations, evaluations, cache_hits, terminals, collisions, rounds, unexpanded);
    Ok(dict)
}

pub(crate) fn check_temperature(temperature: f64) -> PyResult<f64> {
    if temperature.is_finite() && temperature >= 0.0 {
        return Ok(temperature);
    }
    Err(PyValueError::new_err(format!("temperature must be a number >= 0, got {temperature}")))
}

pub(crate) fn fill_policy(result: &CoreResult, temperature: f64, row: &mut [f32]) {
    for (&action, share) in result.actions.iter().zip(sharpen(result, temperature)) {
        row[action as usize] = share as f32;
    }
}
