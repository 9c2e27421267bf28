//! `azpy.EngineGame`: a game that goes on in an engine, and keeps its tree.

use std::sync::{Arc, Mutex};

use azpy_serve::{History, SearchRequest};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::batch::action_numbers;
use crate::engine_threads::EngineThreads;
use crate::errors::forked;
use crate::listed::Listed;
use crate::position::{AnyState, Fallible};
use crate::requests::{AnyGameTree, PendingRequest, Responder, Signals};
use crate::settings::Whole;
use crate::state::{State, any_state};
use crate::threads::locked;

use super::{Engine, reports, request_of};

/// A game in an `Engine` that keeps its tree between requests. `Engine.game` makes one.
///
/// The engine handles requests, `play` and `undo` of one game in order. With `simulations`, an answer is what a
/// `Search` with the game's seed finds that is run and advanced in the same way. You can read its arrays and
/// `principal_variations` at any time, and `standard_errors` if the request asked for them; it has no picture, because
/// the tree continues.
///
///     >>> import azpy
///     >>> with azpy.Engine(azpy.RolloutEvaluator(1), simulations=400) as engine:
///     ...     game = engine.game(azpy.make_game("connect_four"))
///     ...     action = game.search().result().action
///     ...     game.play(action)
///     ...     before = int(game.search(0).result().visits.sum())  # of the kept tree
///     ...     after = int(game.search(100).result().visits.sum())
///     >>> (action, before > 50, after - before)
///     (3, True, 100)
#[pyclass(module = "azpy", frozen)]
pub(crate) struct EngineGame {
    pub(crate) engine: Py<Engine>,
    pub(super) threads: Arc<EngineThreads>,
    pub(crate) tree: Arc<dyn AnyGameTree>,
    /// What was played since the start. Lock it without the GIL, for which the thread that has the lock may wait.
    pub(super) history: Mutex<History<AnyState>>,
    pub(super) seed: u64,
}

impl EngineGame {
    /// Has its position, which is `state`, searched.
    pub(crate) fn begin(
        &self,
        py: Python<'_>,
        state: &AnyState,
        request: SearchRequest,
        responder: (Arc<Signals>, Responder),
    ) -> PyResult<Arc<PendingRequest>> {
        let search = |queued, allowed| {
            self.tree.search(queued, allowed)?;
            self.threads.go_on(&self.tree);
            Ok(())
        };
        let (engine, game) = (self.engine.get(), Some(self.tree.clone()));
        engine.hand_over(py, &self.threads, state, request, 0, game, responder, search)
    }

    pub(crate) fn check_fork(&self) -> PyResult<()> {
        if self.threads.is_forked() {
            return Err(forked("this engine's threads are", "an engine"));
        }
        Ok(())
    }
}

#[pymethods]
impl EngineGame {
    /// Request a search of the current position, and return a future, as `Engine.submit` does.
    ///
    /// A search with `actions` grows its own tree, and leaves the game's tree as it is.
    #[pyo3(signature = (
        simulations = None, *, seconds = None, priority = "play", actions = None, on_report = None, report_every = None,
        standard_errors = false, lines = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn search(
        &self,
        py: Python<'_>,
        simulations: Option<Whole>,
        seconds: Option<f64>,
        priority: &str,
        actions: Option<Listed<Whole>>,
        on_report: Option<Py<PyAny>>,
        report_every: Option<f64>,
        standard_errors: bool,
        lines: Option<Whole>,
    ) -> PyResult<Py<PyAny>> {
        let report_every = reports(on_report.as_ref(), report_every)?;
        self.check_fork()?;
        let state = py.detach(|| self.tree.state())?;
        let given = (simulations, seconds, priority, actions, report_every, standard_errors, lines);
        let request = request_of(&state, given)?;
        let pending = self.begin(py, &state, request, Responder::future(py, on_report)?)?;
        Ok(pending.future(py).expect("it was asked for"))
    }

    /// Search until the next call on this game, while the engine has nothing else to do. Returns a future.
    fn ponder(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.engine.get().config.gumbel().is_some() {
            return Err(PyValueError::new_err(
                "sequential halving needs a fixed number of simulations, so it cannot ponder",
            ));
        }
        self.search(py, Some(Whole(u32::MAX.into())), None, "ponder", None, None, None, false, None)
    }

    /// Play an action or a chance outcome, and keep the tree below it.
    ///
    /// Raises:
    ///     ValueError: it is not legal; the game is unchanged.
    fn play(&self, py: Python<'_>, action: Whole) -> PyResult<()> {
        self.check_fork()?;
        py.detach(|| {
            let mut history = locked(&self.history);
            let played = self.tree.play(action)?;
            history.play(played);
            Ok(())
        })
    }

    /// Take the last action back. The last 8 positions before this one keep their trees while memory lasts.
    ///
    /// Raises:
    ///     ValueError: nothing was played.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.check_fork()?;
        let undone = py.detach(|| {
            let mut history = locked(&self.history);
            history.undo();
            self.tree.undo()
        });
        if undone {
            return Ok(());
        }
        Err(PyValueError::new_err("undo() has no move to take back: the game is at its start position"))
    }

    /// Go to the position to which `actions` lead from `start`, for programs that name the whole line of play each
    /// time.
    ///
    /// azpy keeps the tree along the actions that the new line shares with the old one.
    ///
    /// Returns:
    ///     This game; or a new one, if `start` is another position or the lines share no action.
    ///
    /// Raises:
    ///     ValueError: an action is not legal. The game has then played the actions before it.
    ///
    ///     >>> import azpy
    ///     >>> state = azpy.make_game("tic_tac_toe")
    ///     >>> with azpy.Engine(azpy.UniformEvaluator()) as engine:
    ///     ...     game = engine.game(state).follow(state, [4, 0])
    ///     ...     (game.follow(state, [4, 1]) is game, game.follow(state, []) is game, game.num_played)
    ///     (True, False, 2)
    fn follow(slf: &Bound<'_, Self>, start: &Bound<'_, PyAny>, actions: Listed<Whole>) -> PyResult<Py<Self>> {
        let (py, game) = (slf.py(), slf.get());
        game.check_fork()?;
        let start = any_state(start)?;
        let actions = action_numbers(&actions.0)?;
        let goes_on = py.detach(|| locked(&game.history).leads_to(&start, &actions));
        start.take_error()?;
        let found = if goes_on {
            slf.clone().unbind()
        } else {
            let (name, _) = game.tree.model();
            Py::new(py, Engine::new_game(game.engine.bind(py), name, &start, game.seed)?)?
        };
        let Self { tree, history, .. } = found.get();
        py.detach(|| {
            locked(history).follow(&actions, |step| match step {
                Some(action) => tree.play(Whole(action.into())).map(drop),
                None => {
                    tree.undo();
                    Ok(())
                }
            })
        })?;
        Ok(found)
    }

    /// A copy of the current position.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.check_fork()?;
        Ok(State::of(py.detach(|| self.tree.state())?))
    }

    /// The number of actions that can be undone.
    #[getter]
    fn num_played(&self, py: Python<'_>) -> PyResult<usize> {
        self.check_fork()?;
        Ok(py.detach(|| self.tree.num_played()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)
    }
}
