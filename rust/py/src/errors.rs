//! What can go wrong, as Python exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use azpy_core::batched::SearchError;
use azpy_core::selfplay::SelfPlayError;
use azpy_serve::Error as RequestError;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyOSError, PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

create_exception!(azpy._core, CoreError, PyRuntimeError, "A bug in azpy itself: the core panicked.");
create_exception!(
    azpy._core,
    EvaluatorError,
    PyValueError,
    "The reply of an evaluator cannot be used: NaN, a wrong shape or dtype, or a value outside [-1, 1]."
);
create_exception!(
    azpy._core,
    GameError,
    PyValueError,
    "A game breaks its contract: no legal action at a player's turn, more plies than max_plies, ..."
);

/// A panic's text as a `CoreError`. A `PanicException` is no `Exception`: `except Exception` would miss it.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    CoreError::new_err(format!("azpy's core panicked: {text}; please report this"))
}

/// Runs `work`, panics included.
pub(crate) fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// An error of an evaluator or a game as it may leave azpy. A `StopIteration` would be taken for the end of whatever is
/// being iterated, and a future refuses it. Generators do the same (PEP 479).
pub(crate) fn no_stop_iteration(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) {
        return error;
    }
    let raised = PyRuntimeError::new_err("the evaluator or the game raised StopIteration");
    raised.set_cause(py, Some(error));
    raised
}

/// A copy of an exception: the same type, arguments, attributes, traceback and cause. Each future gets its own, because
/// raising one adds to its traceback. An exception that cannot be copied comes back itself.
pub(crate) fn copied(py: Python<'_>, error: &PyErr) -> PyErr {
    let copy = || -> PyResult<PyErr> {
        let original = error.value(py);
        let (kind, args) = (original.get_type(), original.getattr("args")?);
        // Not `kind(*args)`: an `__init__` of its own may take other arguments than it hands on.
        let mut arguments = vec![kind.clone().into_any()];
        arguments.extend(args.try_iter()?.collect::<PyResult<Vec<_>>>()?);
        let mut copy = kind.call_method1("__new__", PyTuple::new(py, arguments)?)?;
        if copy.str()?.to_cow()? != original.str()?.to_cow()? {
            // Built-in types such as UnicodeDecodeError keep their text in fields that `__init__` sets.
            copy = py.import("copy")?.call_method1("copy", (original,))?;
        }
        copy.getattr("__dict__")?.call_method1("update", (original.getattr("__dict__")?,))?;
        for name in ["__cause__", "__context__", "__suppress_context__"] {
            copy.setattr(name, original.getattr(name)?)?;
        }
        copy.setattr("__traceback__", error.traceback(py))?;
        Ok(PyErr::from_value(copy))
    };
    copy().unwrap_or_else(|_| error.clone_ref(py))
}

/// What is refused in a fork of the process that has the threads.
pub(crate) fn forked(threads: &str, object: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{threads} in the process that was forked: create {object} in each process"))
}

/// Raises the `TypeError` of a class whose objects stay in their process: neither `pickle` nor `copy` takes them.
#[pyfunction]
#[pyo3(signature = (it, /))]
pub(crate) fn stays_here(it: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = it.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!(
        "{name} cannot be pickled or copied: it belongs to the memory and the threads of this process. Make another one \
         where it is needed, or pass on what it gave: arrays, azpy.State, azpy.GameRecord and azpy's evaluators can be \
         pickled"
    )))
}

/// Has pickle and copy refuse each class of the module that does not say how it is pickled. `copyreg` has the one table
/// that both read, and `multiprocessing` too.
pub(crate) fn keep_here(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (register, refuse) = (py.import("copyreg")?.getattr("pickle")?, module.getattr("stays_here")?);
    for class in module.dict().values() {
        let Ok(class) = class.cast_into::<PyType>() else { continue };
        if !class.is_subclass_of::<PyBaseException>()? && !class.getattr("__dict__")?.contains("__reduce__")? {
            register.call1((class, &refuse))?;
        }
    }
    Ok(())
}

/// An error of azpy's crates in Rust, as an exception. A `PyErr` is none of them: it is raised as it is.
pub(crate) trait RustError: std::error::Error + Sized {
    /// What can be mended by another value, except where a type says otherwise.
    fn raised(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl RustError for azpy_core::Error {
    fn raised(self) -> PyErr {
        match self {
            Self::Threads { .. } => PyOSError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl RustError for azpy_net::Error {
    fn raised(self) -> PyErr {
        match self {
            Self::OtherGame { .. } => EvaluatorError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl RustError for azpy_core::game::GameFault {}
impl RustError for azpy_games::Error {}
impl RustError for RequestError {}

/// A failed round as an exception: the evaluator's own error as it is.
pub(crate) fn search_error(error: SearchError<PyErr>) -> PyErr {
    match error {
        SearchError::Evaluator(error) => error,
        SearchError::BadReply(text) => EvaluatorError::new_err(text),
        SearchError::Game { fault, .. } => GameError::new_err(fault.to_string()),
    }
}

/// What ended self-play, as an exception.
pub(crate) fn selfplay_error(error: SelfPlayError<PyErr>) -> PyErr {
    match error {
        SelfPlayError::Search(error) => search_error(error),
        SelfPlayError::Swap(text) => PyValueError::new_err(text),
        SelfPlayError::Panic(text) => panicked(&text),
    }
}

/// An exception as the error of a request, in one line.
pub(crate) fn request_error(py: Python<'_>, error: PyErr) -> RequestError {
    let full = || Ok::<_, PyErr>(error.is_instance(py, &py.import("queue")?.getattr("Full")?));
    let kind = if full().unwrap_or(false) { RequestError::Busy } else { RequestError::Search };
    let line = |error: PyErr| py.import("azpy.errors")?.call_method1("one_line", (error.into_value(py),))?.extract();
    kind(line(error).unwrap_or_else(|error: PyErr| error.to_string()))
}

/// What a closed engine says.
pub(crate) fn closed() -> PyErr {
    PyRuntimeError::new_err("this engine is closed")
}
