//! Open requests to an engine: who receives their answers, and what their owners want.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use azpy_core::engine::{Request, Signal};
use azpy_core::game::Action;
use azpy_serve::SearchRequest;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::errors::{closed, no_stop_iteration};
use crate::position::AnyState;
use crate::result::SearchResult;
use crate::settings::Whole;
use crate::threads::locked;

const STOP: u8 = 1;
const CANCEL: u8 = 2;

/// A shared signal. The strongest one counts.
#[derive(Default)]
pub(crate) struct Signals(AtomicU8);

impl Signals {
    pub(crate) fn stop(&self) {
        self.0.fetch_max(STOP, Ordering::Relaxed);
    }

    pub(crate) fn cancel(&self) {
        self.0.fetch_max(CANCEL, Ordering::Relaxed);
    }
}

/// The receiver of a request's reports and answer.
pub(crate) enum Responder {
    /// A Python future, and the callback for its reports.
    Future(Py<PyAny>, Option<Py<PyAny>>),
    /// A session, unless its client has left.
    Session(Weak<dyn Listener>),
}

/// A receiver without a future. It is called in the thread that gives all answers.
pub(crate) trait Listener: Send + Sync {
    /// The search goes on, and has found this.
    fn report(&self, py: Python<'_>, request: &SearchRequest, found: &SearchResult);
    /// The search has ended, so many seconds after it was asked for.
    fn end(&self, py: Python<'_>, request: &SearchRequest, ending: PyResult<SearchResult>, seconds: f64);
}

impl Responder {
    /// A new future, the signals that its callbacks give, and what is called with reports.
    pub(crate) fn future(py: Python<'_>, on_report: Option<Py<PyAny>>) -> PyResult<(Arc<Signals>, Self)> {
        let signals = Arc::<Signals>::default();
        let callback = |signals: Arc<Signals>, signal: fn(&Signals)| {
            let call = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| signal(&signals);
            PyCFunction::new_closure(py, None, None, call)
        };
        let stop = callback(signals.clone(), Signals::stop)?;
        let future = py.import(intern!(py, "azpy.pending"))?.getattr(intern!(py, "Pending"))?.call1((stop,))?;
        // The callback also runs after an answer, when the signal no longer matters.
        future.call_method1(intern!(py, "add_done_callback"), (callback(signals.clone(), Signals::cancel)?,))?;
        Ok((signals, Self::Future(future.unbind(), on_report)))
    }
}

/// A game that goes on in an engine. No method is called with the GIL.
pub(crate) trait AnyGameTree: Any + Send + Sync {
    /// The name of its model, and of its game.
    fn model(&self) -> (&str, &str);
    /// The position after everything that was asked for.
    fn state(&self) -> PyResult<AnyState>;
    fn num_played(&self) -> usize;
    /// Plays an action of any size, if it is legal, and returns it.
    fn play(&self, action: Whole) -> PyResult<Action>;
    fn undo(&self) -> bool;
    fn search(&self, request: QueuedRequest, allowed: Vec<Action>) -> PyResult<()>;
    /// Hands the next request to its model, where the one before is answered.
    fn go_on(&self, model: &dyn Any) -> bool;
    fn memory_bytes(&self) -> usize;
    fn drop_trees(&self);
}

/// A request in a model's queue.
pub(crate) type QueuedRequest = Request<Arc<PendingRequest>>;

/// An accepted request, until it is answered.
pub(crate) struct PendingRequest {
    responder: Responder,
    pub(crate) request: SearchRequest,
    pub(crate) signals: Arc<Signals>,
    /// Of all requests of its kind.
    all: Arc<Signals>,
    pub(crate) began: Instant,
    pub(crate) limit: Option<Duration>,
    /// The game that goes on, if it is of one.
    pub(crate) game: Option<Arc<dyn AnyGameTree>>,
    answered: AtomicBool,
    /// The newest report that its responder has not heard.
    report: Mutex<Option<SearchResult>>,
}

/// The result of a request; `None` if it was cancelled.
pub(crate) type Ending = Option<PyResult<SearchResult>>;

impl PendingRequest {
    pub(crate) fn new(
        request: SearchRequest,
        responder: Responder,
        signals: Arc<Signals>,
        all: Arc<Signals>,
        limit: Option<Duration>,
        game: Option<Arc<dyn AnyGameTree>>,
    ) -> Self {
        let (answered, report) = (AtomicBool::new(false), Mutex::default());
        Self { responder, request, signals, all, began: Instant::now(), limit, game, answered, report }
    }

    /// When it is answered with what is known by then. A limit beyond the clock's range counts as none.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.limit.and_then(|limit| self.began.checked_add(limit))
    }

    /// Its future; None of a session's.
    pub(crate) fn future(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if let Responder::Future(future, _) = &self.responder { Some(future.clone_ref(py)) } else { None }
    }

    /// Marks the request as refused: the caller gets the error itself, so `Drop` gives no answer.
    pub(crate) fn refuse(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// The owner's current signal.
    pub(crate) fn signal(&self) -> Signal {
        match self.signals.0.load(Ordering::Relaxed).max(self.all.0.load(Ordering::Relaxed)) {
            0 => Signal::Continue,
            STOP => Signal::Stop,
            _ => Signal::Cancel,
        }
    }

    /// Keeps a report until its receiver takes it. Returns whether no other report was waiting.
    pub(crate) fn keep_report(&self, report: SearchResult) -> bool {
        locked(&self.report).replace(report).is_none()
    }

    /// Gives the newest report.
    pub(crate) fn give_report(&self, py: Python<'_>) {
        let report = locked(&self.report).take();
        let Some(report) = report.filter(|_| self.signal() == Signal::Continue) else { return };
        match &self.responder {
            Responder::Session(session) => {
                session.upgrade().inspect(|session| session.report(py, &self.request, &report));
            }
            Responder::Future(_, None) => {}
            Responder::Future(_, Some(on_report)) => {
                if let Err(error) = on_report.call1(py, (report,)) {
                    error.write_unraisable(py, Some(on_report.bind(py)));
                }
            }
        }
    }

    /// Whether the request is to be answered. After this call it can no longer be cancelled.
    pub(crate) fn claim(&self, py: Python<'_>, cancel: bool) -> bool {
        self.answered.store(true, Ordering::Relaxed);
        let Responder::Future(future, _) = &self.responder else { return !cancel };
        let claim = || -> PyResult<bool> {
            let future = future.bind(py);
            if cancel {
                future.call_method0(intern!(py, "cancel"))?;
            }
            future.call_method0(intern!(py, "set_running_or_notify_cancel"))?.is_truthy()
        };
        claim().unwrap_or_else(|error| {
            error.write_unraisable(py, None);
            false
        })
    }

    /// Tells a session that a request was cancelled. (A future knows by itself.)
    pub(crate) fn cancelled(&self, py: Python<'_>) {
        if let Responder::Session(_) = &self.responder {
            self.answer(py, Err(PyRuntimeError::new_err("the search was cancelled, because the engine is closing")));
        }
    }

    pub(crate) fn answer(&self, py: Python<'_>, ending: PyResult<SearchResult>) {
        let future = match &self.responder {
            Responder::Future(future, _) => future.bind(py),
            Responder::Session(session) => {
                if let Some(session) = session.upgrade() {
                    session.end(py, &self.request, ending, self.began.elapsed().as_secs_f64());
                }
                return;
            }
        };
        let done = match ending {
            Ok(result) => future.call_method1(intern!(py, "set_result"), (result,)),
            Err(error) => {
                let error = no_stop_iteration(py, error).into_value(py);
                future.call_method1(intern!(py, "set_exception"), (error,))
            }
        };
        if let Err(error) = done {
            // Of a callback that raised no `Exception`: those the future reports itself.
            error.write_unraisable(py, None);
        }
    }
}

impl Drop for PendingRequest {
    /// A safety net: every accepted request gets an answer, because otherwise its owner would wait forever.
    fn drop(&mut self) {
        if *self.answered.get_mut() {
            return;
        }
        Python::try_attach(|py| {
            let done = match &self.responder {
                Responder::Session(_) => Ok(false),
                Responder::Future(future, _) => {
                    future.call_method0(py, intern!(py, "done")).and_then(|done| done.is_truthy(py))
                }
            };
            if !done.unwrap_or(true) && self.claim(py, false) {
                self.answer(py, Err(closed()));
            }
        });
    }
}
