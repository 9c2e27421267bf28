//! How a Python evaluator is asked for a batch of leaves, and how its reply is read.

use std::convert::Infallible;

use azpy_core::evaluator::{Batch, Evaluator, Rollout, Uniform};
use azpy_core::game::{Game, Payoff, Pov};
use azpy_core::tree::LONGEST_PROOF;
use azpy_games::any::AnyGame;
use numpy::{PyArray4, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};

use crate::errors::{EvaluatorError, RustError};
use crate::evaluators::{AnyEvaluator, EVALUATING, PyEvaluator};
use crate::listed::{entries, is_bool};
use crate::position::Fallible;
use crate::settings::Whole;
use crate::state::State;
use crate::threads::locked;

impl PyEvaluator {
    /// The positions as Python sees them: copies, as an evaluator may play on in them.
    fn states<'py, P: Payoff>(py: Python<'py>, states: &[AnyGame<P>]) -> PyResult<Bound<'py, PyList>> {
        let copies = states.iter().map(|state| Bound::new(py, State::of(state.copied()?.paying())));
        PyList::new(py, copies.collect::<PyResult<Vec<_>>>()?)
    }

    fn evaluate<P: Payoff>(&mut self, batch: Batch<'_, AnyGame<P>>) -> PyResult<()> {
        let turns = self.turns.clone();
        let _turn = turns.as_deref().map(locked);
        Python::attach(|py| {
            let (rows, [c, h, w]) = (batch.rows(), batch.states[0].obs_shape());
            let observations = rows_of(py, &mut self.memory, [rows, c, h, w])?;
            {
                let mut memory = observations.try_readwrite().map_err(unwritable)?;
                let memory = memory.as_slice_mut()?;
                py.detach(|| batch.fill(0..rows, memory));
            }
            check_faults(batch.states)?;
            let states = if self.takes_states { Some(Self::states(py, batch.states)?) } else { None };
            let object = self.object.bind(py);
            let outer = EVALUATING.replace(true);
            let (method, reply) = match states {
                Some(states) => {
                    let reply = object.call_method1(intern!(py, "evaluate_states"), (states, observations));
                    ("evaluate_states", reply)
                }
                None => ("evaluate_batch", object.call_method1(intern!(py, "evaluate_batch"), (observations,))),
            };
            EVALUATING.set(outer);
            take_reply(&reply?, batch, method)?;
            py.check_signals()
        })
    }
}

fn unwritable(error: impl std::fmt::Display) -> PyErr {
    EvaluatorError::new_err(format!("the memory for observations cannot be written: {error}"))
}

/// The first rows of memory that is kept from batch to batch, and made anew where it is too small.
fn rows_of<'py>(
    py: Python<'py>,
    memory: &mut Option<Py<PyArray4<f32>>>,
    shape: [usize; 4],
) -> PyResult<Bound<'py, PyArray4<f32>>> {
    let fits = |memory: &Py<PyArray4<f32>>| {
        let have = memory.bind(py).shape();
        have[0] >= shape[0] && have[1..] == shape[1..]
    };
    let kept = match memory.take().filter(fits) {
        Some(kept) => kept,
        None => {
            let mut capacity = shape;
            capacity[0] = shape[0].next_power_of_two();
            PyArray4::zeros(py, capacity, false).unbind()
        }
    };
    let all = memory.insert(kept).bind(py);
    if all.shape()[0] == shape[0] {
        return Ok(all.clone());
    }
    Ok(all.get_item(PySlice::new(py, 0, shape[0] as isize, 1))?.cast_into::<PyArray4<f32>>()?)
}

/// Nothing is asked, answered or cached for a position of a game that has failed. Roots fail each for itself.
fn check_faults<P: Payoff>(states: &[AnyGame<P>]) -> PyResult<()> {
    // All states are of one game, and a game can fail or it cannot.
    states.iter().take_while(|state| state.fault().is_some()).try_for_each(Fallible::check)
}

/// Checks the reply of `method` and copies what belongs to legal actions.
fn take_reply<P: Payoff>(reply: &Bound<'_, PyAny>, batch: Batch<'_, AnyGame<P>>, method: &str) -> PyResult<()> {
    let (rows, width) = (batch.rows(), batch.states[0].num_actions());
    let proves = method == "evaluate_states";
    let pair = reply.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2 || (proves && pair.len() == 3));
    let Some(pair) = pair else {
        let got = reply.get_type().name()?;
        let or = if proves { " or (logits, values, proven)" } else { "" };
        return Err(EvaluatorError::new_err(format!(
            "{method} must return a tuple (logits, values){or}, got {got}{}",
            reply.len().map_or(String::new(), |len| format!(" of length {len}"))
        )));
    };
    let logits = float32(&pair.get_item(0)?, "logits", &[&[rows, width]])?;
    let players = batch.states[0].num_players();
    let values = match P::width(players) {
        1 => float32(&pair.get_item(1)?, "values", &[&[rows], &[rows, 1]])?,
        _ => float32(&pair.get_item(1)?, "values", &[&[rows, players]])?,
    };
    let borrowed = |error| EvaluatorError::new_err(format!("the evaluator's reply cannot be read: {error}"));
    let logits = logits.try_readonly().map_err(borrowed)?;
    let values = values.try_readonly().map_err(borrowed)?;
    let view = logits.as_array();
    // `as_slice` alone would also accept Fortran order and read it scrambled; `to_slice` of a view is C order or none.
    let flat = view.to_slice();
    for row in 0..rows {
        let range = batch.range(row);
        let (actions, logits) = (&batch.actions[range.clone()], &mut batch.logits[range]);
        match flat.map(|flat| &flat[row * width..(row + 1) * width]) {
            Some(from) => logits.iter_mut().zip(actions).for_each(|(to, &action)| *to = from[action as usize]),
            None => logits.iter_mut().zip(actions).for_each(|(to, &action)| *to = view[[row, action as usize]]),
        }
    }
    let values = values.as_array();
    let numbers = batch.values.iter_mut().flat_map(Pov::numbers_mut);
    numbers.zip(&values).for_each(|(to, &from)| *to = from);
    if pair.len() == 3 {
        *batch.proofs = proofs(&pair.get_item(2)?, rows)?;
    }
    Ok(())
}

/// `Batch::proofs` of an evaluator's `proven`: booleans, or whole numbers, the plies to the end and -1 for no proof.
fn proofs(object: &Bound<'_, PyAny>, rows: usize) -> PyResult<Vec<u8>> {
    let wrong = |got: String| {
        EvaluatorError::new_err(format!(
            "proven of the evaluator's reply: got {got}, expected a bool or whole number for each of {rows} rows"
        ))
    };
    let proof = |one: &Bound<'_, PyAny>| -> PyResult<u8> {
        if is_bool(one) {
            return Ok(if one.is_truthy()? { LONGEST_PROOF } else { 0 });
        }
        let Whole(plies) = one.extract()?;
        Ok(u8::try_from(plies.max(-1).saturating_add(1)).unwrap_or(LONGEST_PROOF))
    };
    let read = |given: Vec<Bound<'_, PyAny>>| given.iter().map(proof).collect::<PyResult<Vec<_>>>();
    let proofs = entries(object).and_then(read).map_err(|_| wrong(describe(object)))?;
    if proofs.len() == rows { Ok(proofs) } else { Err(wrong(format!("{} of them", proofs.len()))) }
}

/// The type of an object, and of its numbers if it is an array.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    object.getattr("dtype").map_or(name.clone(), |dtype| format!("{name} of {dtype}"))
}

fn float32<'py>(object: &Bound<'py, PyAny>, what: &str, shapes: &[&[usize]]) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let expected = format!("a numpy array of float32, shape {:?}", shapes[0]);
    let refused = |mend: &str| {
        let got = describe(object);
        EvaluatorError::new_err(format!("{what} of the evaluator's reply: got {got}, expected {expected}{mend}"))
    };
    let taken = as_numpy(object).map_err(|error| {
        let mend = "give tensor.detach().cpu().float().numpy(), or np.asarray(array, np.float32)";
        refused(&format!("; numpy cannot read it ({error}): {mend}"))
    })?;
    let Ok(array) = taken.cast::<PyArrayDyn<f32>>() else {
        let mend = "; convert it by .float() (torch) or .astype(\"float32\") (JAX)";
        return Err(refused(if taken.is(object) { "" } else { mend }));
    };
    if !shapes.contains(&array.shape()) {
        let got = array.shape();
        return Err(EvaluatorError::new_err(format!(
            "{what} of the evaluator's reply: got shape {got:?}, expected {expected}"
        )));
    }
    Ok(array.clone())
}

/// An array of torch, JAX or their like as numpy's, without a copy where it lies in main memory.
fn as_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if object.cast::<PyArrayDyn<f32>>().is_ok() || !object.hasattr("__array__")? {
        return Ok(object.clone());
    }
    object.py().import("numpy")?.call_method1("asarray", (object,))
}

impl<P: Payoff> Evaluator<AnyGame<P>> for AnyEvaluator {
    type Error = PyErr;

    fn evaluate_batch(&mut self, batch: Batch<'_, AnyGame<P>>) -> PyResult<()> {
        check_faults(batch.states)?;
        let never = |error: Infallible| match error {};
        match self {
            Self::Uniform => Uniform.evaluate_batch(batch).map_err(never),
            Self::Rollout(seed) => Rollout { seed: *seed }.evaluate_batch(batch).map_err(never),
            Self::Net(evaluator, _) => {
                let states = batch.states;
                evaluator.evaluate_batch(batch).map_err(RustError::raised)?;
                check_faults(states)
            }
            Self::Python(evaluator) => evaluator.evaluate(batch),
        }
    }

    fn network(&self) -> Option<u64> {
        self.network_id()
    }
}
