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
use crate::picture::drawn;
use crate::settings::{SIZE, U64, Whole, whole, within};
use crate::threads::looking;

/// What a search found. Arrays are [L], one entry a legal action, ascending; values are for the player to move.
///
/// `standard_errors`, `principal_variations` and `to_svg` read the search's tree when they are asked for, and raise
/// ValueError once it has been run, advanced or replaced. So a result is small, but as long as there is one its search's
/// tree stays in memory: to keep many, use one `Search` for all. A notebook shows a result as its picture.
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
    Shared { searches: Arc<RwLock<AnyBatch>>, index: usize, changes: u64 },
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
    pub(crate) fn sharing(searches: Arc<RwLock<AnyBatch>>, now: &AnyBatch, index: usize) -> Self {
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
                "this result has no standard_errors: pass standard_errors=True to search, because the tree they are \
                 read from goes on",
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
    /// int64 [L]: the legal actions; empty when the game is over.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.actions.iter().map(|&action| i64::from(action)))
    }

    /// int64 [L]: simulations through each action.
    #[getter]
    fn visits<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.visits.iter().map(|&visits| i64::from(visits)))
    }

    /// float32 [L]: the evaluator's priors, without root noise.
    #[getter]
    fn priors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.priors)
    }

    /// float32 [L]: mean value of each action for the player to move; 0 for an action without visits.
    #[getter]
    fn q<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.q)
    }

    /// Mean value of the position for the player to move, in [-1, 1], its own evaluation included; when the game is
    /// over, the outcome for player 0.
    #[getter]
    fn value(&self) -> f32 {
        self.inner.value
    }

    /// float32 [P]: mean value of the position for each player, player 0 first; when the game is over, the outcomes. In a
    /// game of two players and zero sum (x, -x).
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.values)
    }

    /// int64 [L]: -1, or the plies in which the game is proven to end, with the value in `q`, after the action (254 for
    /// 254 and more). Only with `solver`.
    #[getter]
    fn proofs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.proofs.iter().map(|&proof| i64::from(proof) - 1))
    }

    /// The plies in which the game is proven to end with `value`, or None.
    #[getter]
    fn proof(&self) -> Option<u8> {
        self.inner.proof.checked_sub(1)
    }

    /// float32 [L]: the policy to learn from this search; sums to 1. Shares of the visits (those of a proven action are
    /// from before it was proven), or with Gumbel the improved policy, all on `action` where the position is proven.
    /// Without visits, the priors.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.inner.target)
    }

    /// Why the run ended: "simulations" (all are done), "evaluations", "decided" (early_stop), "proven", "seconds",
    /// "game over", "stopped" and "memory" (in an `Engine`), or "visits" (the root has 2**32 - 2**18 visits, about the most that a tree can count).
    #[getter]
    fn stop(&self) -> &'static str {
        self.inner.stop.name()
    }

    /// The action to play: a proven win; else the one with the most visits (then the higher prior, then the lower
    /// number), or what `lcb` or Gumbel's rule says; or what is proven to be better. None when the game is over.
    #[getter]
    fn action(&self) -> Option<u32> {
        self.inner.action
    }

    /// The line of play that `action` begins, most visited from there on, up to the first roll.
    #[getter]
    fn principal_variation(&self) -> Vec<u32> {
        self.inner.principal_variation.clone()
    }

    /// float32 [L]: the standard error of each `q`, from how the values of the action's simulations scatter. NaN below
    /// 2 visits, and where `max_memory_mb` left no room for a node below the action that was evaluated several times.
    ///
    /// It takes the simulations for independent, which those of a search are not: a measure of scatter, no promise.
    #[getter]
    fn standard_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(py, self.errors(py)?))
    }

    /// The lines of the `count` most visited actions, as [(actions, visits, q)].
    ///
    /// `actions` is the action with the most visited ones after it, at most `length` and up to the first roll; `visits`
    /// are the simulations through the action, `q` its mean value for the player to move. The first line is
    /// `principal_variation` where `action` is the most visited one. An action without visits has none.
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

    /// The tree as a picture, SVG that needs no other file: of the visited nodes down to `depth` plies (rolls counted)
    /// below the root the `max_nodes` most visited, at most 10,000.
    ///
    /// A node shows its visits N, the prior P that it was searched with (root noise included; after a roll the
    /// probability) and Q, the mean value for the player who is named: who chose the action; player 0 after a roll; at
    /// the root the player to move. Siblings stand in the order of their visits; "+n more" counts visited ones left
    /// out. An exception in a game written in Python comes as it is; an action that it cannot name is a number.
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

    /// Counts of this run: simulations, evaluations (leaves the evaluator answered, the root's own included),
    /// cache_hits, terminals, collisions, rounds, unexpanded (leaves for whose children a full tree had no room), depth
    /// (plies of the longest descent, rolls counted); and of the tree: nodes, memory_bytes.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = search_stats(py, &self.stats)?;
        stats.set_item("nodes", self.nodes)?;
        stats.set_item("memory_bytes", self.memory)?;
        stats.set_item("depth", self.inner.depth)?;
        Ok(stats)
    }

    /// float32 [A]: probabilities proportional to target^(1/temperature), so by default to powers of the visits; 0 for
    /// illegal actions, and for what is proven to lose unless there is nothing else. Temperature 0 is all on `action`.
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
    dict.set_item("simulations", stats.simulations)?;
    dict.set_item("evaluations", stats.evaluations)?;
    dict.set_item("cache_hits", stats.cache_hits)?;
    dict.set_item("terminals", stats.terminals)?;
    dict.set_item("collisions", stats.collisions)?;
    dict.set_item("rounds", stats.rounds)?;
    dict.set_item("unexpanded", stats.unexpanded)?;
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
