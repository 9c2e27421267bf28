//! The errors of games in Python; turns and outcomes as Python has them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use azpy_core::game::Turn;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::threads::locked;

/// `turn` before a roll.
pub(crate) const CHANCE: i32 = -1;
/// `turn` after the end.
pub(crate) const TERMINAL: i32 = -2;

/// A turn as Python counts it.
pub(crate) fn turn_number(turn: Turn) -> i32 {
    match turn {
        Turn::Player(player) => player.index() as i32,
        Turn::Chance => CHANCE,
        Turn::Terminal => TERMINAL,
    }
}

/// An outcome as Python sees it: player 0's number with one player, or with two and zero sum; else one number a player.
pub(crate) fn outcome_object<'py>(py: Python<'py>, each: &[f32]) -> PyResult<Bound<'py, PyAny>> {
    match each {
        [own] => Ok(own.into_pyobject(py)?.into_any()),
        _ => Ok(PyTuple::new(py, each)?.into_any()),
    }
}

/// Where a game that can fail leaves its first error. All positions that come from one root share it.
///
/// A thread takes the lock only while it is attached to Python. No Python code runs under the lock, because that could
/// hand the GIL to a thread that waits for the lock: errors are made before it is taken, and dropped after.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<(AtomicBool, Mutex<Option<PyErr>>)>);

impl Fault {
    /// Whether there is an error. Takes no lock.
    pub(crate) fn is_set(&self) -> bool {
        self.0.0.load(Ordering::Acquire)
    }

    /// Keeps the first error. Later ones follow from it.
    pub(crate) fn set(&self, error: PyErr) {
        Python::attach(|py| {
            // A Rust error becomes a Python object on first use, which runs Python code.
            let _ = error.value(py);
            let mut kept = locked(&self.0.1);
            let second = if kept.is_none() { kept.replace(error) } else { Some(error) };
            self.0.0.store(true, Ordering::Release);
            drop(kept);
            drop(second);
        });
    }

    /// The error. It is kept, because several threads may ask for it.
    pub(crate) fn check(&self) -> PyResult<()> {
        if !self.is_set() {
            return Ok(());
        }
        Python::attach(|py| locked(&self.0.1).as_ref().map_or(Ok(()), |error| Err(error.clone_ref(py))))
    }

    /// The error, which is removed: the position can be asked again.
    pub(crate) fn take(&self) -> PyResult<()> {
        if !self.is_set() {
            return Ok(());
        }
        Python::attach(|_| {
            let mut kept = locked(&self.0.1);
            self.0.0.store(false, Ordering::Release);
            kept.take().map_or(Ok(()), Err)
        })
    }
}
