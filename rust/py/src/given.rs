//! What a caller gives as a game: a state, a game written in Python, or a name.

use azpy_core::game::{Value, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::doors::{AnyState, Typed};
use crate::pygame::{PyGame, Told, players_of};
use crate::registry::make;
use crate::state::State;

/// A state, or a game written in Python, as what it is called and a position.
pub(crate) fn any_state(object: &Bound<'_, PyAny>) -> PyResult<(String, Box<dyn AnyState>)> {
    state_of(object, "an azpy.State or an instance of an azpy.Game")
}

fn state_of(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<(String, Box<dyn AnyState>)> {
    if let Ok(state) = object.cast::<State>() {
        let state = state.borrow();
        return Ok((state.spec.clone(), state.inner.boxed()?));
    }
    if object.is_instance_of::<pyo3::types::PyType>() || !object.hasattr("legal_actions")? {
        let came: String = object.repr()?.to_cow()?.chars().take(200).collect();
        return Err(PyTypeError::new_err(format!("expected {expected}, got {came}")));
    }
    fn held<P: Told>(object: &Bound<'_, PyAny>) -> PyResult<(String, Box<dyn AnyState>)> {
        let game = PyGame::<P>::new(object)?;
        Ok((game.game().to_string(), Box::new(Typed(game))))
    }
    if players_of(object)?.1 { held::<Value>(object) } else { held::<Values>(object) }
}

/// As [`any_state`], or the name of a built-in game.
pub(crate) fn any_game(object: &Bound<'_, PyAny>) -> PyResult<(String, Box<dyn AnyState>)> {
    match object.extract::<String>() {
        Ok(spec) => make(&spec, Vec::new()).map_err(PyValueError::new_err),
        Err(_) => state_of(object, "a game's name, an azpy.State or an instance of an azpy.Game"),
    }
}
