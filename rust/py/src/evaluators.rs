//! What may answer for leaves: the core's own evaluators, and any Python object with `evaluate_batch`.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use azpy_core::evaluator::{Batch, Evaluator, Rollout, Uniform};
use azpy_core::game::PovValue;
use numpy::{PyArray4, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};

use crate::errors::EvaluatorError;
use crate::hosted::Hosted;

thread_local! {
    static EVALUATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside an evaluator's `evaluate_batch`.
pub(crate) fn is_evaluating() -> bool {
    EVALUATING.get()
}

/// Equal priors and value 0 for every position: the search alone, in Rust.
///
///     >>> import azpy
///     >>> result = azpy.Search(azpy.UniformEvaluator(), simulations=90).run(azpy.make_game("tic_tac_toe"))
///     >>> round(float(result.priors[0]), 3)
///     0.111
#[pyclass(module = "azpy", frozen)]
pub(crate) struct UniformEvaluator;

#[pymethods]
impl UniformEvaluator {
    #[new]
    fn new() -> Self {
        Self
    }
}

/// Equal priors and the outcome of one random game from the position: plain Monte Carlo tree search, in Rust.
/// The same seed repeats the same games.
#[pyclass(module = "azpy", frozen)]
pub(crate) struct RolloutEvaluator(u64);

#[pymethods]
impl RolloutEvaluator {
    #[new]
    #[pyo3(signature = (seed = 0))]
    fn new(seed: u64) -> Self {
        Self(seed)
    }
}

/// Whose turn it is to call an evaluator that pipelines share, for each evaluator that may be in a list.
pub(crate) type Turns = [Arc<Mutex<()>>];

/// An evaluator as the core sees it.
pub(crate) enum AnyEvaluator {
    Uniform,
    Rollout(u64),
    Python(PyEvaluator),
}

impl AnyEvaluator {
    /// Any object that can evaluate.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<UniformEvaluator>() {
            return Ok(Self::Uniform);
        }
        if let Ok(rollout) = object.cast::<RolloutEvaluator>() {
            return Ok(Self::Rollout(rollout.get().0));
        }
        Ok(Self::Python(PyEvaluator::new(object, None)?))
    }

    /// One evaluator for each of `pipelines`. Of a list, one network on several devices, pipelines take one device after
    /// another; `turns` has a lock for each.
    pub(crate) fn for_pipelines(object: &Bound<'_, PyAny>, pipelines: usize, turns: &Turns) -> PyResult<Vec<Self>> {
        if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
            return Self::forked(object, pipelines, &turns[0]);
        }
        let devices = object.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let count = devices.len();
        if count == 0 || count > pipelines {
            return Err(PyValueError::new_err(format!(
                "expected 1 to {pipelines} evaluators in a list, a pipeline for each at least, got {count}"
            )));
        }
        let mut groups = Vec::new();
        for (index, (device, turns)) in devices.iter().zip(turns.iter()).enumerate() {
            groups.push(Self::forked(device, (pipelines - index).div_ceil(count), turns)?.into_iter());
        }
        let all: Vec<_> = (0..pipelines).filter_map(|index| groups[index % count].next()).collect();
        if all.iter().any(|evaluator| evaluator.network_id() != all[0].network_id()) {
            return Err(PyValueError::new_err(
                "the evaluators in a list must be of one network: their network_id differ",
            ));
        }
        Ok(all)
    }

    /// One evaluator for each of `pipelines`: `fork()` where the object has it, else the object itself, one call at a
    /// time.
    fn forked(object: &Bound<'_, PyAny>, pipelines: usize, turns: &Arc<Mutex<()>>) -> PyResult<Vec<Self>> {
        let first = Self::new(object)?;
        let Self::Python(_) = first else {
            return (0..pipelines).map(|_| Self::new(object)).collect();
        };
        if object.hasattr("fork")? {
            let mut all = vec![first];
            for _ in 1..pipelines {
                all.push(Self::new(&object.call_method0("fork")?)?);
            }
            return Ok(all);
        }
        (0..pipelines).map(|_| Ok(Self::Python(PyEvaluator::new(object, Some(turns.clone()))?))).collect()
    }

    fn network_id(&self) -> Option<u64> {
        match self {
            Self::Python(evaluator) => evaluator.network,
            Self::Uniform | Self::Rollout(_) => None,
        }
    }
}

/// A Python object with `evaluate_batch`.
pub(crate) struct PyEvaluator {
    object: Py<PyAny>,
    /// Its `network_id`, if it has one: then its answers may be cached.
    network: Option<u64>,
    own_memory: bool,
    /// Where observations go when the object has no `input_buffer`: `[capacity, C, H, W]`.
    memory: Option<Py<PyArray4<f32>>>,
    /// Held during a call where several pipelines share the object. Taken before the GIL, never while holding it.
    turns: Option<Arc<Mutex<()>>>,
}

impl PyEvaluator {
    fn new(object: &Bound<'_, PyAny>, turns: Option<Arc<Mutex<()>>>) -> PyResult<Self> {
        if object.is_instance_of::<pyo3::types::PyType>() || !object.hasattr("evaluate_batch")? {
            return Err(PyTypeError::new_err(format!(
                "expected an evaluator, an object with evaluate_batch(observations) -> (logits, values), got {}",
                object.repr()?
            )));
        }
        let network = match object.getattr_opt("network_id")? {
            None => None,
            Some(id) if id.is_none() => None,
            Some(id) => Some(id.extract::<u64>().map_err(|_| {
                PyValueError::new_err(format!("network_id must be None or a whole number in [0, 2**64), got {id}"))
            })?),
        };
        let own_memory = object.hasattr("input_buffer")?;
        Ok(Self { object: object.clone().unbind(), network, own_memory, memory: None, turns })
    }

    /// `[rows, C, H, W]` to fill: the evaluator's own memory, or ours.
    fn memory<'py>(&mut self, py: Python<'py>, rows: usize, shape: [usize; 3]) -> PyResult<Bound<'py, PyArray4<f32>>> {
        let wanted = [rows, shape[0], shape[1], shape[2]];
        if self.own_memory {
            let given = self.object.bind(py).call_method1(intern!(py, "input_buffer"), (rows,))?;
            let fits = |array: &Bound<'_, PyArray4<f32>>| array.shape() == wanted && array.is_c_contiguous();
            return given.cast_into::<PyArray4<f32>>().ok().filter(fits).ok_or_else(|| {
                EvaluatorError::new_err(format!(
                    "input_buffer({rows}) must give a C-contiguous float32 array of shape {wanted:?}"
                ))
            });
        }
        let fits = |memory: &Py<PyArray4<f32>>| {
            let have = memory.bind(py).shape();
            have[0] >= rows && have[1..] == wanted[1..]
        };
        if !self.memory.as_ref().is_some_and(fits) {
            let capacity = rows.next_power_of_two();
            let memory = PyArray4::<f32>::zeros(py, [capacity, shape[0], shape[1], shape[2]], false);
            self.memory = Some(memory.unbind());
        }
        let memory = self.memory.as_ref().expect("just made").bind(py);
        if memory.shape()[0] == rows {
            return Ok(memory.clone());
        }
        let rows = PySlice::new(py, 0, rows as isize, 1);
        Ok(memory.get_item(rows)?.cast_into::<PyArray4<f32>>()?)
    }

    fn evaluate<G: Hosted>(&mut self, batch: Batch<'_, G>) -> PyResult<()> {
        let turns = self.turns.clone();
        let _turn = turns.as_ref().map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner));
        Python::attach(|py| {
            let (rows, shape) = (batch.rows(), batch.states[0].obs_shape());
            let observations = self.memory(py, rows, shape)?;
            {
                let mut memory = observations.try_readwrite().map_err(|error| {
                    EvaluatorError::new_err(format!("the memory for observations cannot be written: {error}"))
                })?;
                let memory = memory.as_slice_mut()?;
                py.detach(|| batch.fill(0..rows, memory));
            }
            check_faults(batch.states)?;
            let outer = EVALUATING.replace(true);
            let reply = self.object.bind(py).call_method1(intern!(py, "evaluate_batch"), (observations,));
            EVALUATING.set(outer);
            take_reply(&reply?, batch)?;
            py.check_signals()
        })
    }
}

/// Nothing is asked, answered or cached for a position of a game that has failed. Roots fail each for itself.
fn check_faults<G: Hosted>(states: &[G]) -> PyResult<()> {
    // All states are of one game, and a game can fail or it cannot.
    states.iter().map_while(Hosted::fault).try_for_each(crate::hosted::Fault::check)
}

/// Checks a reply and copies what belongs to legal actions.
fn take_reply<G: Hosted>(reply: &Bound<'_, PyAny>, batch: Batch<'_, G>) -> PyResult<()> {
    let (rows, num_actions) = (batch.rows(), batch.states[0].num_actions());
    let pair = reply.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        let got = reply.get_type().name()?;
        return Err(EvaluatorError::new_err(format!(
            "evaluate_batch must return a tuple (logits, values), got {got}{}",
            reply.len().map_or(String::new(), |len| format!(" of length {len}"))
        )));
    };
    let logits = float32(&pair.get_item(0)?, "logits", &[&[rows, num_actions]])?;
    let values = float32(&pair.get_item(1)?, "values", &[&[rows], &[rows, 1]])?;
    let borrowed = |error| EvaluatorError::new_err(format!("the evaluator's reply cannot be read: {error}"));
    let logits = logits.try_readonly().map_err(borrowed)?;
    let values = values.try_readonly().map_err(borrowed)?;
    let view = logits.as_array();
    // `as_slice` alone would also accept Fortran order and read it scrambled; `to_slice` of a view is C order or none.
    match view.to_slice() {
        Some(flat) => {
            for row in 0..rows {
                let from = &flat[row * num_actions..(row + 1) * num_actions];
                for index in batch.range(row) {
                    batch.logits[index] = from[batch.actions[index] as usize];
                }
            }
        }
        None => {
            for row in 0..rows {
                for index in batch.range(row) {
                    batch.logits[index] = view[[row, batch.actions[index] as usize]];
                }
            }
        }
    }
    for (to, &from) in batch.values.iter_mut().zip(values.as_array()) {
        *to = PovValue(from);
    }
    Ok(())
}

fn float32<'py>(object: &Bound<'py, PyAny>, what: &str, shapes: &[&[usize]]) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let expected = format!("a numpy array of float32, shape {:?}", shapes[0]);
    let Ok(array) = object.cast::<PyArrayDyn<f32>>() else {
        let got = match object.getattr("dtype") {
            Ok(dtype) => format!("{} of {dtype}", object.get_type().name()?),
            Err(_) => object.get_type().name()?.to_string(),
        };
        return Err(EvaluatorError::new_err(format!(
            "{what} of the evaluator's reply: got {got}, expected {expected}"
        )));
    };
    if !shapes.contains(&array.shape()) {
        let got = array.shape();
        return Err(EvaluatorError::new_err(format!(
            "{what} of the evaluator's reply: got shape {got:?}, expected {expected}"
        )));
    }
    Ok(array.clone())
}

impl<G: Hosted> Evaluator<G> for AnyEvaluator {
    type Error = PyErr;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> PyResult<()> {
        check_faults(batch.states)?;
        let never = |error: Infallible| match error {};
        match self {
            Self::Uniform => Uniform.evaluate_batch(batch).map_err(never),
            Self::Rollout(seed) => Rollout { seed: *seed }.evaluate_batch(batch).map_err(never),
            Self::Python(evaluator) => evaluator.evaluate(batch),
        }
    }

    fn network(&self) -> Option<u64> {
        self.network_id()
    }
}
