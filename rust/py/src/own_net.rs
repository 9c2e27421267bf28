//! azpy's own networks, computed here: `azpy.NetEvaluator` reads a run's files and asks this.

use std::cell::RefCell;
use std::sync::Arc;

use azpy_net::Scratch;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::errors::RustError;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A network, ready to answer. Threads share it: each has memory of its own, and none holds the GIL meanwhile.
#[pyclass(module = "azpy._core", frozen)]
pub(crate) struct Net {
    pub(crate) net: Arc<azpy_net::Net>,
    shape: String,
    weights: Py<PyBytes>,
}

#[pymethods]
impl Net {
    /// Reads a network; `shape` and `weights` are as azpy_net takes them.
    #[new]
    fn new(py: Python<'_>, shape: String, weights: Py<PyBytes>) -> PyResult<Self> {
        let bytes = weights.as_bytes(py);
        let net = py.detach(|| azpy_net::Net::read(&shape, bytes)).map_err(RustError::raised)?;
        Ok(Self { net: Arc::new(net), shape, weights })
    }

    /// A nonzero 64-bit hash of the shape and the weights.
    #[getter]
    fn id(&self) -> u64 {
        self.net.id()
    }

    #[getter]
    fn obs_shape(&self) -> (usize, usize, usize) {
        self.net.obs_shape().into()
    }

    #[getter]
    fn num_actions(&self) -> usize {
        self.net.num_actions()
    }

    #[getter]
    fn num_values(&self) -> usize {
        self.net.num_values()
    }

    /// Logits [B, A] and values [B] or [B, P] of observations [B, C, H, W].
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        observations: PyReadonlyArray4<'py, f32>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (net, shape) = (&*self.net, observations.shape());
        if shape[1..] != net.obs_shape() {
            return Err(PyValueError::new_err(format!(
                "observations are {shape:?}, expected [B, {}, {}, {}]",
                net.obs_shape()[0],
                net.obs_shape()[1],
                net.obs_shape()[2]
            )));
        }
        let (rows, actions, width) = (shape[0], net.num_actions(), net.num_values());
        let view = observations.as_array();
        let given = view.as_standard_layout();
        let given = given.as_slice().unwrap_or_default();
        let (mut logits, mut values) = (vec![0.0; rows * actions], vec![0.0; rows * width]);
        py.detach(|| {
            SCRATCH.with_borrow_mut(|scratch| net.evaluate(scratch, given, rows, &mut logits, &mut values));
        });
        let logits = PyArray1::from_vec(py, logits).reshape([rows, actions])?.into_any();
        let values = PyArray1::from_vec(py, values);
        Ok((logits, if width == 1 { values.into_any() } else { values.reshape([rows, width])?.into_any() }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String, Py<PyBytes>)) {
        (py.get_type::<Self>(), (self.shape.clone(), self.weights.clone_ref(py)))
    }
}
