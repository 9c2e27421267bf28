//! What may answer for leaves: the core's own evaluators, and any Python object with `evaluate_batch`.

use std::cell::Cell;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azpy_core::bytes::PlaneBytes;
use azpy_core::evaluator::{Batch, Evaluator, Rollout, Uniform};
use azpy_core::game::{Game, PovValue};
use numpy::ndarray::{Dimension, IntoDimension};
use numpy::{Element, PyArray, PyArray2, PyArray4, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple, PyType};

use crate::errors::EvaluatorError;
use crate::hosted::{Fault, Hosted};
use crate::settings::{U64, whole, within};
use crate::threads::exclusive;

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

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, ()) {
        (py.get_type::<Self>(), ())
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
    fn new(#[pyo3(from_py_with = whole)] seed: i128) -> PyResult<Self> {
        within("seed", seed, 0, U64).map(Self)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (u64,)) {
        (py.get_type::<Self>(), (self.0,))
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
        Self::shared(object.py(), &Arc::new(object.clone().unbind()))
    }

    /// As `new`. Whoever else has `shared` may tell garbage collection of it.
    pub(crate) fn shared(py: Python<'_>, shared: &Arc<Py<PyAny>>) -> PyResult<Self> {
        let object = shared.bind(py);
        if object.is_instance_of::<UniformEvaluator>() {
            return Ok(Self::Uniform);
        }
        if let Ok(rollout) = object.cast::<RolloutEvaluator>() {
            return Ok(Self::Rollout(rollout.get().0));
        }
        Ok(Self::Python(PyEvaluator::new(py, shared, None)?))
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
        let shared = Arc::new(object.clone().unbind());
        (0..pipelines).map(|_| Ok(Self::Python(PyEvaluator::new(object.py(), &shared, Some(turns.clone()))?))).collect()
    }

    /// Tells garbage collection which Python object it holds.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Python(evaluator) => visit.call(&*evaluator.object),
            Self::Uniform | Self::Rollout(_) => Ok(()),
        }
    }

    /// Has the network count as another one for each game, where several games share a cache.
    pub(crate) fn in_game(mut self, spec: &str) -> Self {
        if let Self::Python(PyEvaluator { network: Some(network), .. }) = &mut self {
            let mut hasher = DefaultHasher::new();
            (*network, spec).hash(&mut hasher);
            *network = hasher.finish();
        }
        self
    }

    pub(crate) fn network_id(&self) -> Option<u64> {
        match self {
            Self::Python(evaluator) => evaluator.network,
            Self::Uniform | Self::Rollout(_) => None,
        }
    }
}

/// The evaluators of a search object, which is their only owner: garbage collection can free the object where one of
/// them refers back to it.
pub(crate) struct Evaluators(Mutex<Vec<AnyEvaluator>>);

impl Evaluators {
    pub(crate) fn new(evaluators: Vec<AnyEvaluator>) -> Self {
        Self(Mutex::new(evaluators))
    }

    /// For a run, which one thread at a time does.
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Vec<AnyEvaluator>>> {
        let evaluators = exclusive(&self.0)?;
        if evaluators.is_empty() {
            return Err(PyRuntimeError::new_err("this search was freed by garbage collection: make a new one"));
        }
        Ok(evaluators)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Where a run has them, the search is in use.
        self.0.try_lock().map_or(Ok(()), |evaluators| evaluators.iter().try_for_each(|one| one.traverse(visit)))
    }

    pub(crate) fn clear(&self) {
        let freed = self.0.try_lock().map(|mut evaluators| std::mem::take(&mut *evaluators));
        drop(freed);
    }
}

/// A Python object with `evaluate_batch`.
pub(crate) struct PyEvaluator {
    object: Arc<Py<PyAny>>,
    /// Its `network_id`, if it has one: then its answers may be cached.
    network: Option<u64>,
    own_memory: bool,
    /// How many actions of a row its `evaluate_legal` takes, if it has one.
    legal_width: Option<usize>,
    /// Where observations go when the object gives no memory for them: `[capacity, C, H, W]`.
    memory: Option<Py<PyArray4<f32>>>,
    /// The legal actions: `[capacity, legal_width]`.
    actions: Option<Py<PyArray2<i32>>>,
    /// Held during a call where several pipelines share the object. Taken before the GIL, never while holding it.
    turns: Option<Arc<Mutex<()>>>,
}

/// Memory to fill with the observations of a batch.
enum Observations<'py> {
    /// `[rows, C, H, W]`.
    Floats(Bound<'py, PyArray4<f32>>),
    /// `[rows, C', H, W]`, see `PlaneBytes`.
    Bytes(PlaneBytes, Bound<'py, PyArray4<u8>>),
}

impl PyEvaluator {
    fn new(py: Python<'_>, shared: &Arc<Py<PyAny>>, turns: Option<Arc<Mutex<()>>>) -> PyResult<Self> {
        let object = shared.bind(py);
        if object.is_instance_of::<pyo3::types::PyType>() || !object.hasattr("evaluate_batch")? {
            return Err(PyTypeError::new_err(format!(
                "expected an evaluator, an object with evaluate_batch(observations) -> (logits, values), got {}",
                object.repr()?
            )));
        }
        let given = |name: &str| -> PyResult<_> { Ok(object.getattr_opt(name)?.filter(|value| !value.is_none())) };
        let network = given("network_id")?.map(|id| {
            // Records use 0 for "no network".
            id.extract::<u64>().ok().filter(|&id| id != 0).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "network_id must be None or a whole number from 1 to 2**64 - 1, got {id}"
                ))
            })
        });
        let legal_width = given("legal_width")?.map(|width| {
            let number = width.extract::<usize>().ok().filter(|&number| number > 0 && object.hasattr("evaluate_legal").unwrap_or(false));
            number.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "legal_width must be None or a whole number above 0, of an evaluator with evaluate_legal, got {width}"
                ))
            })
        });
        Ok(Self {
            object: shared.clone(),
            network: network.transpose()?,
            own_memory: object.hasattr("input_buffer")?,
            legal_width: legal_width.transpose()?,
            memory: None,
            actions: None,
            turns,
        })
    }

    /// Memory for the observations of a batch: the evaluator's own, or ours.
    fn observations<'py, G: Game>(&mut self, py: Python<'py>, batch: &Batch<'_, G>) -> PyResult<Observations<'py>> {
        let (rows, [c, h, w]) = (batch.rows(), batch.states[0].obs_shape());
        if self.own_memory {
            let given = self.object.bind(py).call_method1(intern!(py, "input_buffer"), (rows,))?;
            if !given.is_none() {
                return own_memory(&given, &batch.states[0], rows);
            }
        }
        Ok(Observations::Floats(rows_of(py, &mut self.memory, [rows, c, h, w])?))
    }

    /// The legal actions of each row `[rows, legal_width]`, zeros behind them; `None` where the evaluator takes none, or
    /// fewer than a row has.
    fn legal<'py, G: Game>(
        &mut self,
        py: Python<'py>,
        batch: &Batch<'_, G>,
    ) -> PyResult<Option<Bound<'py, PyArray2<i32>>>> {
        let rows = batch.rows();
        let fits = |&width: &usize| (0..rows).all(|row| batch.range(row).len() <= width);
        let Some(width) = self.legal_width.filter(fits) else { return Ok(None) };
        let actions = rows_of(py, &mut self.actions, [rows, width])?;
        {
            let mut memory = actions.try_readwrite().map_err(unwritable)?;
            for (row, padded) in memory.as_slice_mut()?.chunks_exact_mut(width).enumerate() {
                let legal = &batch.actions[batch.range(row)];
                padded[legal.len()..].fill(0);
                for (to, &action) in padded.iter_mut().zip(legal) {
                    *to = action as i32;
                }
            }
        }
        Ok(Some(actions))
    }

    fn evaluate<G: Hosted>(&mut self, batch: Batch<'_, G>) -> PyResult<()> {
        let turns = self.turns.clone();
        let _turn = turns.as_ref().map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner));
        Python::attach(|py| {
            let rows = 0..batch.rows();
            let observations = match self.observations(py, &batch)? {
                Observations::Floats(array) => {
                    let mut memory = array.try_readwrite().map_err(unwritable)?;
                    let memory = memory.as_slice_mut()?;
                    py.detach(|| batch.fill(rows, memory));
                    array.clone().into_any()
                }
                Observations::Bytes(bytes, array) => {
                    let mut memory = array.try_readwrite().map_err(unwritable)?;
                    let memory = memory.as_slice_mut()?;
                    py.detach(|| batch.fill_bytes(rows, &bytes, memory));
                    array.clone().into_any()
                }
            };
            check_faults(batch.states)?;
            let legal = self.legal(py, &batch)?;
            let object = self.object.bind(py);
            let outer = EVALUATING.replace(true);
            let (method, width, reply) = match legal {
                Some(actions) => {
                    let width = actions.shape()[1];
                    let reply = object.call_method1(intern!(py, "evaluate_legal"), (observations, actions));
                    ("evaluate_legal", Some(width), reply)
                }
                None => ("evaluate_batch", None, object.call_method1(intern!(py, "evaluate_batch"), (observations,))),
            };
            EVALUATING.set(outer);
            take_reply(&reply?, batch, method, width)?;
            py.check_signals()
        })
    }
}

fn unwritable(error: impl std::fmt::Display) -> PyErr {
    EvaluatorError::new_err(format!("the memory for observations cannot be written: {error}"))
}

/// The memory that an evaluator's `input_buffer` gave, if its shape and type do.
fn own_memory<'py, G: Game>(given: &Bound<'py, PyAny>, state: &G, rows: usize) -> PyResult<Observations<'py>> {
    let [c, h, w] = state.obs_shape();
    let floats = [rows, c, h, w];
    if let Ok(array) = given.cast::<PyArray4<f32>>()
        && array.shape() == floats
        && array.is_c_contiguous()
    {
        return Ok(Observations::Floats(array.clone()));
    }
    let mut expected = format!("float32 array of shape {floats:?}");
    if let Some(bytes) = PlaneBytes::of(state) {
        let [c, h, w] = bytes.shape();
        let shape = [rows, c, h, w];
        if let Ok(array) = given.cast::<PyArray4<u8>>()
            && array.shape() == shape
            && array.is_c_contiguous()
        {
            return Ok(Observations::Bytes(bytes, array.clone()));
        }
        expected += &format!(", or uint8 array of shape {shape:?}");
    }
    Err(EvaluatorError::new_err(format!("input_buffer({rows}) must give a C-contiguous {expected}")))
}

/// The first rows of memory that is kept from batch to batch, and made anew where it is too small.
fn rows_of<'py, T: Element, D: Dimension, const N: usize>(
    py: Python<'py>,
    memory: &mut Option<Py<PyArray<T, D>>>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>>
where
    [usize; N]: IntoDimension<Dim = D>,
{
    let fits = |memory: &Py<PyArray<T, D>>| {
        let have = memory.bind(py).shape();
        have[0] >= shape[0] && have[1..] == shape[1..]
    };
    let kept = match memory.take().filter(fits) {
        Some(kept) => kept,
        None => {
            let mut capacity = shape;
            capacity[0] = shape[0].next_power_of_two();
            PyArray::zeros(py, capacity, false).unbind()
        }
    };
    let all = memory.insert(kept).bind(py);
    if all.shape()[0] == shape[0] {
        return Ok(all.clone());
    }
    Ok(all.get_item(PySlice::new(py, 0, shape[0] as isize, 1))?.cast_into::<PyArray<T, D>>()?)
}

/// Nothing is asked, answered or cached for a position of a game that has failed. Roots fail each for itself.
fn check_faults<G: Hosted>(states: &[G]) -> PyResult<()> {
    // All states are of one game, and a game can fail or it cannot.
    states.iter().map_while(Hosted::fault).try_for_each(Fault::check)
}

/// Checks the reply of `method` and copies what belongs to legal actions: those of all actions, or, `legal_width` of a
/// row, of the legal ones alone.
fn take_reply<G: Hosted>(
    reply: &Bound<'_, PyAny>,
    batch: Batch<'_, G>,
    method: &str,
    legal_width: Option<usize>,
) -> PyResult<()> {
    let (rows, width) = (batch.rows(), legal_width.unwrap_or_else(|| batch.states[0].num_actions()));
    let pair = reply.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        let got = reply.get_type().name()?;
        return Err(EvaluatorError::new_err(format!(
            "{method} must return a tuple (logits, values), got {got}{}",
            reply.len().map_or(String::new(), |len| format!(" of length {len}"))
        )));
    };
    let logits = float32(&pair.get_item(0)?, "logits", &[&[rows, width]])?;
    let values = float32(&pair.get_item(1)?, "values", &[&[rows], &[rows, 1]])?;
    let borrowed = |error| EvaluatorError::new_err(format!("the evaluator's reply cannot be read: {error}"));
    let logits = logits.try_readonly().map_err(borrowed)?;
    let values = values.try_readonly().map_err(borrowed)?;
    let view = logits.as_array();
    // `as_slice` alone would also accept Fortran order and read it scrambled; `to_slice` of a view is C order or none.
    let flat = view.to_slice();
    for row in 0..rows {
        let range = batch.range(row);
        let (actions, logits) = (&batch.actions[range.clone()], &mut batch.logits[range]);
        match (flat.map(|flat| &flat[row * width..(row + 1) * width]), legal_width) {
            (Some(from), Some(_)) => logits.copy_from_slice(&from[..logits.len()]),
            (Some(from), None) => logits.iter_mut().zip(actions).for_each(|(to, &action)| *to = from[action as usize]),
            (None, Some(_)) => logits.iter_mut().enumerate().for_each(|(index, to)| *to = view[[row, index]]),
            (None, None) => logits.iter_mut().zip(actions).for_each(|(to, &action)| *to = view[[row, action as usize]]),
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
