//! The rules that every game must keep, for az-check-game: `azpy_core::conformance` in Python.

use std::collections::BTreeMap;

use azpy_core::conformance::{
    Facts as CoreFacts, Hooks, Look as CoreLook, Violation, Walk as CoreWalk, check_symmetries, own_images,
};
use azpy_core::game::{Action, Game};
use numpy::ndarray::Array3;
use numpy::{IntoPyArray, PyArray3};
use pyo3::exceptions::{PyException, PySystemExit};
use pyo3::prelude::*;

use crate::errors::caught;
use crate::fault::{outcome_object, turn_number};
use crate::position::{AnyState, Fallible};
use crate::pygame::broken;
use crate::state::any_state;

/// All that a search can ask of a position.
///
/// Facts are equal if a search cannot tell their positions apart.
#[pyclass(module = "azpy._core", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct Facts {
    facts: CoreFacts,
    shape: [usize; 3],
}

#[pymethods]
impl Facts {
    /// The player's number, `azpy.CHANCE` or `azpy.TERMINAL`.
    #[getter]
    fn turn(&self) -> i32 {
        turn_number(self.facts.turn)
    }

    /// The legal actions, or the outcomes of the roll.
    #[getter]
    fn actions(&self) -> Vec<Action> {
        self.facts.actions.clone()
    }

    /// The probabilities of a roll's outcomes.
    #[getter]
    fn chances(&self) -> Vec<f32> {
        self.facts.chances.clone()
    }

    /// The legal actions, or the outcomes with a probability above 0.
    #[getter]
    fn playable(&self) -> Vec<Action> {
        self.facts.playable()
    }

    /// float32 [C, H, W], seen by the player to move. None unless it is a player's turn.
    #[getter]
    fn observation<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray3<f32>>> {
        let array = Array3::from_shape_vec(self.shape, self.facts.observation.clone());
        array.ok().map(|array| array.into_pyarray(py))
    }

    /// The result as `State.outcome` gives it. None before the end.
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.facts.outcome.as_deref().map(|told| outcome_object(py, told)).transpose()
    }

    /// The position's key.
    #[getter]
    fn key(&self) -> u128 {
        self.facts.key
    }

    /// Of each player the number of what it knows; empty in a game that hides nothing.
    #[getter]
    fn views(&self) -> Vec<u128> {
        self.facts.views.clone()
    }

    /// Names the facts that differ, with both values.
    fn differences(&self, other: &Self) -> String {
        self.facts.differences(&other.facts)
    }
}

/// What a check saw of a position.
#[pyclass(module = "azpy._core", frozen, get_all)]
pub(crate) struct Look {
    /// The facts of the position.
    facts: Py<Facts>,
    /// (action, key after the action), of at most 64 actions of a game in Python and 1,000 of a game in Rust.
    followers: Vec<(Action, u128)>,
    /// action -> outcome for the player to move, for each of those actions that ends the game.
    ends: BTreeMap<Action, f32>,
    /// A name that several legal actions share, and how many share it.
    shared_name: Option<(String, usize)>,
    /// A line of play to a position that looks the same to the player to move, but with another view_key; or None.
    same_look: Option<Vec<Action>>,
}

/// A line of play, and checks of the position at its end.
///
/// A broken rule is a GameError with the attributes `rule`, `got`, `expected`, `action` and `other`. `action` is None,
/// or the rule is broken in the position after this action. `other` is None, or a line of play that contradicts this one. An
/// exception of a game written in Python is the `__cause__`.
///
/// Args:
///     start: where lines begin.
#[pyclass(module = "azpy._core")]
pub(crate) struct Walk(CoreWalk<AnyState, PyErr>);

#[pymethods]
impl Walk {
    #[new]
    #[pyo3(signature = (start, /))]
    fn new(start: &Bound<'_, PyAny>) -> PyResult<Self> {
        let start = any_state(start)?;
        caught(|| {
            check_symmetries(&start).map_err(raised)?;
            let images = if start.num_symmetries() > 1 { own_images(&start) } else { Vec::new() };
            let hooks = Hooks { copy: AnyState::copied, take_error: AnyState::take_error };
            // An azpy.Game need not refuse illegal actions: azpy plays legal ones only.
            let thorough = start.object().is_none();
            CoreWalk::new(&start, images, hooks, thorough).map(Self).map_err(raised)
        })
    }

    /// Goes back to the start.
    fn restart(&mut self) -> PyResult<()> {
        caught(|| self.0.restart().map_err(raised))
    }

    /// Plays an action. Gives False, and plays nothing, if the position does not offer the action.
    fn play(&mut self, action: Action) -> PyResult<bool> {
        caught(|| self.0.play(action).map_err(raised))
    }

    /// The facts of the position, unchecked.
    fn facts(&self) -> PyResult<Facts> {
        let facts = caught(|| self.0.facts().map_err(raised))?;
        Ok(Facts { facts, shape: self.0.state().obs_shape() })
    }

    /// Checks the position. `from_start` also plays the line from the start without any question on the way.
    #[pyo3(signature = (*, from_start = true))]
    fn look(&mut self, py: Python<'_>, from_start: bool) -> PyResult<Look> {
        let CoreLook { facts, followers, ends, shared_name, same_look } =
            caught(|| self.0.look(from_start).map_err(raised))?;
        let facts = Py::new(py, Facts { facts, shape: self.0.state().obs_shape() })?;
        Ok(Look { facts, followers, ends: ends.into_iter().collect(), shared_name, same_look })
    }

    /// The symmetries under which the line is played as well: those under which the start is its own image.
    #[getter]
    fn symmetries(&self) -> Vec<usize> {
        self.0.symmetries().collect()
    }

    /// The azpy.Game that is the position, or None for a game written in Rust. Only look at it.
    #[getter]
    fn game_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.state().object().map(|object| object.clone_ref(py))
    }
}

fn raised(violation: Violation<PyErr>) -> PyErr {
    let text = violation.to_string();
    Python::attach(|py| {
        let is_answer =
            |error: &PyErr| error.is_instance_of::<PyException>(py) || error.is_instance_of::<PySystemExit>(py);
        let cause = match violation.error {
            // Such as Ctrl-C.
            Some(error) if !is_answer(&error) => return error,
            cause => cause,
        };
        let error = broken(violation.rule, &violation.got, &violation.expected, text);
        error.set_cause(py, cause);
        let value = error.value(py);
        match value.setattr("action", violation.action).and_then(|()| value.setattr("other", violation.other)) {
            Ok(()) => error,
            Err(failed) => failed,
        }
    })
}
