//! Numbers and lists as Python gives them, and dicts for it.

use azpy_core::game::MAX_PLAYERS;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};
use pyo3::{Borrowed, intern};

use crate::settings::Whole;

/// Sets the entries of a dict that have the names of fields.
macro_rules! set_fields {
    ($dict:expr, $from:expr; $($field:ident),+) => {
        $($dict.set_item(stringify!($field), $from.$field)?;)+
    };
}
pub(crate) use set_fields;

/// Takes the entries of a list, a tuple, an array or another sequence.
///
/// # Errors
/// TypeError for anything else. Iterating over a dict gives its keys, over a set any order, and over bytes or text the
/// characters: none of these are the entries that a caller means.
pub(crate) fn entries<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = given.cast::<PyList>() {
        return Ok(list.iter().collect());
    }
    if let Ok(tuple) = given.cast::<PyTuple>() {
        return Ok(tuple.iter().collect());
    }
    let is_text = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyByteArray>()
        || given.is_instance_of::<PyMemoryView>();
    if !is_text {
        // Arrays of numpy, torch and JAX become lists of Python's own numbers in one call.
        if let Ok(Ok(list)) = given.call_method0(intern!(given.py(), "tolist")).map(Bound::cast_into::<PyList>) {
            return Ok(list.iter().collect());
        }
        let has = |name| given.hasattr(name);
        if has("__getitem__")?
            && has("__len__")?
            && !has("keys")?
            && let Ok(entries) = given.try_iter().and_then(Iterator::collect)
        {
            return Ok(entries);
        }
    }
    Err(PyTypeError::new_err(format!("expected a list, got a {}: {}", given.get_type().name()?, short(given))))
}

/// The [`entries`] of a list that azpy's Python code takes.
#[pyfunction]
#[pyo3(signature = (given, /))]
pub(crate) fn listed<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    entries(given)
}

/// A list of `T`, read by [`entries`].
pub(crate) struct Listed<T>(pub(crate) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Listed<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let read = |one: Bound<'py, PyAny>| one.extract::<T>().map_err(Into::into);
        entries(&given)?.into_iter().map(read).collect::<PyResult<_>>().map(Self)
    }
}

/// A list of whole numbers that all are of type `T`; nothing for anything else.
pub(crate) fn wholes<T: TryFrom<i128>>(given: &Bound<'_, PyAny>) -> Option<Vec<T>> {
    let Listed(numbers) = given.extract().ok()?;
    numbers.into_iter().map(|Whole(number)| T::try_from(number).ok()).collect()
}

/// A number alone, or the numbers of a list; nothing for anything else. Also whether it is one alone.
pub(crate) fn numbers_of(given: &Bound<'_, PyAny>) -> Option<(Vec<f32>, bool)> {
    // A bool says who won and who did not: as a number, False is a draw.
    let number = |given: &Bound<'_, PyAny>| if is_bool(given) { None } else { given.extract::<f32>().ok() };
    match number(given) {
        Some(only) => Some((vec![only], true)),
        None => {
            let each = entries(given).ok()?;
            Some((each.iter().take(MAX_PLAYERS + 1).map(number).collect::<Option<_>>()?, false))
        }
    }
}

/// Whether a value is a bool of Python, or of numpy or torch (an array of one, too). PyO3 reads all of them as numbers.
pub(crate) fn is_bool(given: &Bound<'_, PyAny>) -> bool {
    if given.is_instance_of::<PyBool>() {
        return true;
    }
    if given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>() {
        return false;
    }
    let dtype = given.getattr(intern!(given.py(), "dtype")).and_then(|dtype| text_of(&dtype));
    dtype.is_ok_and(|name| name.ends_with("bool")) // "bool", "torch.bool"
}

/// A value as an error repeats it: on one line, cut where it is long.
pub(crate) fn short(given: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 200;
    let text = given.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string_lossy().into_owned());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST { line } else { line.chars().take(MOST).collect::<String>() + "..." }
}

/// As `str` gives it, with a replacement for what no file can hold: half of a surrogate pair.
pub(crate) fn text_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(object.str()?.to_string_lossy().into_owned())
}
