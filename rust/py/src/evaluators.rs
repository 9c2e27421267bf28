//! What may answer for leaves: the core's own evaluators, and any Python object with `evaluate_batch` or
//! `evaluate_states`.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use azpy_net::NetEvaluator;
use numpy::PyArray4;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};

use crate::own_net::Net;
use crate::settings::{U64, whole, within};
use crate::threads::exclusive;

thread_local! {
    pub(crate) static EVALUATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside an evaluator's `evaluate_batch`.
pub(crate) fn is_evaluating() -> bool {
    EVALUATING.get()
}

/// An evaluator with equal priors and value 0 for every position: the search alone, in Rust.
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

/// An evaluator with equal priors and the outcome of one random game as the value: plain Monte Carlo tree search, in
/// Rust.
///
/// Args:
///     seed: the same seed plays the same random games.
///
///     >>> import azpy
///     >>> azpy.Search(azpy.RolloutEvaluator(1), simulations=500).run(azpy.make_game("tic_tac_toe")).action
///     4
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
    /// A network of azpy's own, and its `network_id`.
    Net(Box<NetEvaluator<Arc<azpy_net::Net>>>, u64),
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
        // `azpy.NetEvaluator` has it; a subclass has None there, and is asked as any other object.
        if let Some(net) = object.getattr_opt("_azpy_net")?
            && let Ok(net) = net.cast::<Net>()
        {
            let net = &net.get().net;
            return Ok(Self::Net(Box::new(NetEvaluator::new(net.clone())), net.id()));
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
            return Err(PyValueError::new_err("the evaluators in a list must have the same network_id"));
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
            Self::Uniform | Self::Rollout(_) | Self::Net(..) => Ok(()),
        }
    }

    /// Has the network count as another one for each game, where several games share a cache.
    pub(crate) fn in_game(mut self, spec: &str) -> Self {
        if let Self::Python(PyEvaluator { network: Some(network), .. }) | Self::Net(_, network) = &mut self {
            let mut hasher = DefaultHasher::new();
            (*network, spec).hash(&mut hasher);
            *network = hasher.finish();
        }
        self
    }

    pub(crate) fn network_id(&self) -> Option<u64> {
        match self {
            Self::Python(evaluator) => evaluator.network,
            Self::Net(_, network) => Some(*network),
            Self::Uniform | Self::Rollout(_) => None,
        }
    }
}

/// The evaluator of a search object, which is its only owner: garbage collection can free the object where the evaluator
/// refers back to it.
pub(crate) struct Owned(Mutex<Option<AnyEvaluator>>);

impl Owned {
    pub(crate) fn new(evaluator: AnyEvaluator) -> Self {
        Self(Mutex::new(Some(evaluator)))
    }

    /// For a run, which one thread at a time does. It is there.
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Option<AnyEvaluator>>> {
        let evaluator = exclusive(&self.0)?;
        if evaluator.is_none() {
            return Err(PyRuntimeError::new_err("this search was freed by garbage collection: make a new one"));
        }
        Ok(evaluator)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Where a run has them, the search is in use.
        self.0.try_lock().map_or(Ok(()), |evaluator| evaluator.iter().try_for_each(|one| one.traverse(visit)))
    }

    pub(crate) fn clear(&self) {
        let freed = self.0.try_lock().map(|mut evaluator| evaluator.take());
        drop(freed);
    }
}

/// A Python object with `evaluate_batch` or `evaluate_states`. `evaluate.rs` asks it.
pub(crate) struct PyEvaluator {
    pub(crate) object: Arc<Py<PyAny>>,
    /// Its `network_id`, if it has one: then its answers may be cached.
    network: Option<u64>,
    /// Whether it has `evaluate_states`.
    pub(crate) takes_states: bool,
    /// Where observations go: `[capacity, C, H, W]`.
    pub(crate) memory: Option<Py<PyArray4<f32>>>,
    /// Held during a call where several pipelines share the object. Taken before the GIL, never while holding it.
    pub(crate) turns: Option<Arc<Mutex<()>>>,
}

impl PyEvaluator {
    fn new(py: Python<'_>, shared: &Arc<Py<PyAny>>, turns: Option<Arc<Mutex<()>>>) -> PyResult<Self> {
        let object = shared.bind(py);
        let given = |name: &str| -> PyResult<_> { Ok(object.getattr_opt(name)?.filter(|value| !value.is_none())) };
        let takes_states = given("evaluate_states")?.is_some();
        if object.is_instance_of::<PyType>() || !(takes_states || object.hasattr("evaluate_batch")?) {
            return Err(PyTypeError::new_err(format!(
                "expected an evaluator, an object with evaluate_batch(observations) -> (logits, values), got {}",
                object.repr()?
            )));
        }
        let network = given("network_id")?.map(|id| {
            // Records use 0 for "no network".
            id.extract::<u64>().ok().filter(|&id| id != 0).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "network_id must be None or a whole number from 1 to 2**64 - 1, got {id}"
                ))
            })
        });
        Ok(Self { object: shared.clone(), network: network.transpose()?, takes_states, memory: None, turns })
    }
}
