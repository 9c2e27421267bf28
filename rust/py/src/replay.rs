//! `azpy.ReplayBuffer`: games in, training batches out.

use std::sync::{Arc, Mutex, TryLockError};

use azpy_core::batched::Workers;
use azpy_core::game::{Game, Payoff};
use azpy_core::process::Process;
use azpy_core::record::GameRecord as CoreRecord;
use azpy_core::replay::{Draw, ReplayBuffer as CoreBuffer, Samples};
use azpy_core::text::Position;
use azpy_games::any::AnyGame;
use azpy_games::each;
use numpy::{PyArray1, PyArray2, PyArray4, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::{RustError, caught};
use crate::games::any_game;
use crate::position::{AnyState, Fallible, remembered};
use crate::record::GameRecord;
use crate::settings::{self, SIZE, U64, Whole, whole, within};
use crate::state::State;
use crate::threads::locked;

/// See [`AnyReplay::origins`].
type Origins = (Vec<u64>, Vec<i64>, Vec<i64>, Vec<AnyState>);

type Buffer<P> = CoreBuffer<AnyGame<P>>;

/// A replay buffer of some game.
trait AnyReplay: Send {
    fn extend(&mut self, records: Vec<Arc<CoreRecord>>, workers: &Workers) -> PyResult<()>;
    fn sample(&self, draw: Draw, samples: Samples<'_>, workers: &Workers) -> PyResult<()>;
    /// Where so many rows of the same draw come from: their games' ids, plies, symmetries and states.
    fn origins(&self, draw: Draw, rows: usize) -> PyResult<Origins>;
    fn resize(&mut self, max_positions: usize);
    fn num_games(&self) -> usize;
    fn num_samples(&self) -> usize;
}

/// A game that can fail is a Python class, which one thread plays at a time.
fn workers_for<'a, P: Payoff>(buffer: &Buffer<P>, workers: &'a Workers) -> &'a Workers {
    if buffer.start().fault().is_some() { &Workers::Serial } else { workers }
}

impl<P: Payoff> AnyReplay for Buffer<P> {
    fn extend(&mut self, records: Vec<Arc<CoreRecord>>, workers: &Workers) -> PyResult<()> {
        let outcome = self.extend(records, workers_for(self, workers));
        self.start().check()?;
        outcome.map_err(RustError::raised)
    }

    fn sample(&self, draw: Draw, samples: Samples<'_>, workers: &Workers) -> PyResult<()> {
        self.sample(draw, samples, workers_for(self, workers));
        self.start().check()
    }

    fn origins(&self, draw: Draw, rows: usize) -> PyResult<Origins> {
        let mut origins = Origins::default();
        for found in (0..rows).map(|row| self.origin(draw, row)) {
            self.start().check()?;
            origins.0.push(found.record.game_id);
            origins.1.push(found.ply as i64);
            origins.2.push(found.symmetry as i64);
            origins.3.push(found.state.copied()?.paying()); // with errors of its own
        }
        Ok(origins)
    }

    fn resize(&mut self, max_positions: usize) {
        self.resize(max_positions);
    }

    fn num_games(&self) -> usize {
        self.num_games()
    }

    fn num_samples(&self) -> usize {
        self.num_samples()
    }
}

/// The newest games of a run, from which training draws batches.
///
/// Args:
///     game: a game's name, a `State`, or an `azpy.Game` at its start.
///     max_positions: about how many positions to keep; the oldest games go first.
///
///     >>> import azpy
///     >>> buffer = azpy.ReplayBuffer("tic_tac_toe")
///     >>> with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=2, simulations=8, games=4) as games:
///     ...     buffer.extend(games)
///     >>> observations, legal, policies, values = buffer.sample(16, seed=1)
///     >>> observations.shape, policies.shape, values.shape
///     ((16, 2, 3, 3), (16, 9), (16,))
#[pyclass(module = "azpy", frozen)]
pub(crate) struct ReplayBuffer {
    start: AnyState,
    workers: Workers,
    inner: Mutex<Box<dyn AnyReplay>>,
    /// Where the lock is known to be free, or held by a thread that there is.
    process: Mutex<Process>,
}

impl ReplayBuffer {
    fn extend_by(&self, py: Python<'_>, records: Vec<Arc<CoreRecord>>) -> PyResult<()> {
        let own = self.start.game();
        if let Some(other) = records.iter().find(|record| record.game != own) {
            return Err(PyValueError::new_err(format!(
                "a game of {} cannot go into a replay buffer of {own}",
                other.game
            )));
        }
        let workers = &self.workers;
        self.locked(py, |inner| caught(|| inner.extend(records, workers)))?
    }

    /// The dict of `sample`'s details.
    fn details<'py>(py: Python<'py>, (games, plies, symmetries, states): Origins) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("game_ids", PyArray1::from_vec(py, games))?;
        dict.set_item("plies", PyArray1::from_vec(py, plies))?;
        dict.set_item("symmetries", PyArray1::from_vec(py, symmetries))?;
        let states = states.into_iter().map(|state| Bound::new(py, State::of(state)));
        dict.set_item("states", states.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    }

    fn locked<T>(&self, py: Python<'_>, work: impl FnOnce(&mut dyn AnyReplay) -> T + Send) -> PyResult<T>
    where
        T: Send,
    {
        {
            // Nobody lets the GIL go in this block, so this lock is free in a fork.
            let mut process = locked(&self.process);
            if !process.is_current() {
                if matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock)) {
                    return Err(PyRuntimeError::new_err(
                        "another thread was using this replay buffer when the process was forked: fork while none does",
                    ));
                }
                *process = Process::current();
            }
        }
        // Waited for without the GIL: whoever has the lock may need it.
        Ok(py.detach(|| work(&mut **locked(&self.inner))))
    }
}

#[pymethods]
impl ReplayBuffer {
    #[new]
    #[pyo3(signature = (game, *, max_positions = 1_000_000))]
    fn new(game: &Bound<'_, PyAny>, #[pyo3(from_py_with = whole)] max_positions: i128) -> PyResult<Self> {
        let start = remembered(any_game(game)?);
        let max_positions = within("max_positions", max_positions, 1, SIZE)?;
        let workers = Workers::new(settings::threads(None)?).map_err(RustError::raised)?;
        let inner: Box<dyn AnyReplay> =
            each!(start.clone().by_payoff(), start => Box::new(Buffer::new(start, max_positions)));
        Ok(Self { workers, inner: Mutex::new(inner), start, process: Mutex::new(Process::current()) })
    }

    /// Check a game against the rules, and keep it as the newest.
    ///
    /// Raises:
    ///     ValueError: the rules do not allow the game.
    fn add(&self, py: Python<'_>, record: &GameRecord) -> PyResult<()> {
        self.extend_by(py, vec![record.0.clone()])
    }

    /// Check games against the rules, and keep them, the last one as the newest.
    ///
    /// Raises:
    ///     ValueError: the rules do not allow one of the games; the buffer is unchanged.
    fn extend(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let records = records.try_iter()?.map(|record| Ok(record?.cast::<GameRecord>()?.get().0.clone()));
        self.extend_by(py, records.collect::<PyResult<_>>()?)
    }

    /// Keep about `max_positions` positions from now on, and drop the oldest games beyond. One game always stays.
    fn resize(&self, py: Python<'_>, #[pyo3(from_py_with = whole)] max_positions: i128) -> PyResult<()> {
        let max_positions = within("max_positions", max_positions, 1, SIZE)?;
        self.locked(py, |inner| inner.resize(max_positions))
    }

    /// The number of games.
    #[getter]
    fn num_games(&self, py: Python<'_>) -> PyResult<usize> {
        self.locked(py, |inner| inner.num_games())
    }

    /// The number of positions to learn from.
    #[getter]
    fn num_positions(&self, py: Python<'_>) -> PyResult<usize> {
        self.locked(py, |inner| inner.num_samples())
    }

    /// Draw a batch of positions, by playing the stored games again.
    ///
    /// Uses several threads; in a forked process, such as a worker of torch's DataLoader, the calling thread alone.
    ///
    /// Args:
    ///     rows: B, the rows of the batch.
    ///     seed: the same seed draws the same batch from the same games.
    ///     root_value_weight: w in the value target (1 - w) outcome + w root_value.
    ///     symmetries: whether to apply a random symmetry to each row.
    ///     imported_value_weight: the weight of the value target in rows of imported games; other rows have 1. If
    ///         given, `sample` also returns the weights.
    ///     details: whether to return a dict, as the last element, that says where each row comes from.
    ///     in_order: whether row i is position i of the buffer, the oldest game's first, and begins again after the last.
    ///
    /// Returns:
    ///     observations float32 [B, C, H, W]; legal bool [B, A]; policy targets float32 [B, A], 0 for illegal actions;
    ///     value targets float32 [B] for the player to move (games of several players without a zero sum: float32 [B,
    ///     P] in turn order, the player to move first). With `imported_value_weight`, also weights float32 [B] of the
    ///     value targets. With `details`, also a dict of `game_ids` uint64 [B], `plies` int64 [B] (the row is the
    ///     position before this ply), `states` (B States, as played) and `symmetries` int64 [B] (the symmetry of the
    ///     state that the row shows; 0 is none, see `State.symmetric_action`). In a ply of an imported game without a
    ///     search, the value target is the outcome, and the policy target is the action played, with a share of 0.05
    ///     spread over the legal actions.
    ///
    /// Raises:
    ///     ValueError: the buffer is empty, or an argument is out of range.
    #[pyo3(signature = (rows, *, seed, root_value_weight = 0.0, symmetries = true, imported_value_weight = None, details = false, in_order = false))]
    #[allow(clippy::too_many_arguments)] // they are keywords
    fn sample<'py>(
        &self,
        py: Python<'py>,
        rows: Whole,
        seed: Whole,
        root_value_weight: f32,
        symmetries: bool,
        imported_value_weight: Option<f32>,
        details: bool,
        in_order: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (rows, seed) = (within::<usize>("rows", rows.0, 0, SIZE)?, within("seed", seed.0, 0, U64)?);
        let row_len: usize = self.start.obs_shape().iter().product();
        if rows.saturating_mul(row_len + self.start.num_actions()) > 1 << 32 {
            return Err(PyValueError::new_err(format!("a batch of {rows} rows is too large")));
        }
        if !(0.0..=1.0).contains(&root_value_weight) {
            let got = root_value_weight;
            return Err(PyValueError::new_err(format!("root_value_weight must be in [0, 1], got {got}")));
        }
        let imported_weight = imported_value_weight.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&imported_weight) {
            return Err(PyValueError::new_err(format!(
                "imported_value_weight must be in [0, 1], got {imported_weight}"
            )));
        }
        let ([c, h, w], actions) = (self.start.obs_shape(), self.start.num_actions());
        let observations = PyArray4::<f32>::zeros(py, [rows, c, h, w], false);
        let legal = PyArray2::<bool>::zeros(py, [rows, actions], false);
        let policies = PyArray2::<f32>::zeros(py, [rows, actions], false);
        let width = if self.start.is_zero_sum() { 1 } else { self.start.num_players() };
        let values = PyArray2::<f32>::zeros(py, [rows, width], false);
        let weights = PyArray1::<f32>::zeros(py, [rows], false);
        let origins = {
            let mut arrays = (observations.readwrite(), legal.readwrite(), policies.readwrite(), values.readwrite());
            let mut weights = weights.readwrite();
            let samples = Samples {
                observations: arrays.0.as_slice_mut()?,
                legal: arrays.1.as_slice_mut()?,
                policies: arrays.2.as_slice_mut()?,
                values: arrays.3.as_slice_mut()?,
                weights: weights.as_slice_mut()?,
            };
            let draw = Draw { seed, root_value_weight, symmetries, imported_value_weight: imported_weight, in_order };
            let workers = &self.workers;
            self.locked(py, |inner| {
                if inner.num_samples() == 0 {
                    return Err(PyValueError::new_err("the replay buffer is empty: add games before drawing from it"));
                }
                caught(|| {
                    inner
                        .sample(draw, samples, workers)
                        .and_then(|()| inner.origins(draw, if details { rows } else { 0 }))
                })
            })??
        };
        let mut found = vec![observations.into_any(), legal.into_any(), policies.into_any()];
        found.push(if width == 1 { values.reshape([rows])?.into_any() } else { values.into_any() });
        if imported_value_weight.is_some() {
            found.push(weights.into_any());
        }
        if details {
            found.push(Self::details(py, origins)?.into_any());
        }
        PyTuple::new(py, found)
    }
}
