//! Requests to an engine: who asked, what they want by now, how they are told.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use azpy_core::engine::{Priority, Signal};
use azpy_core::game::Action;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::errors::{closed, no_stop_iteration};
use crate::listed::Listed;
use crate::result::{SearchResult, Told};
use crate::settings::{self, Whole};
use crate::threads::locked;

const STOP: u8 = 1;
const CANCEL: u8 = 2;

/// A signal that several share: the one that goes furthest counts.
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

/// Who hears what becomes of a request.
pub(crate) enum Owner {
    /// A future of Python's, and what hears its reports.
    Future(Py<PyAny>, Option<Py<PyAny>>),
    /// A session.
    Session(Box<dyn Listener>),
}

/// A part of a session that waits for one request. It is called in the thread that tells all answers.
pub(crate) trait Listener: Send + Sync {
    /// The search goes on, and has found this.
    fn report(&self, py: Python<'_>, found: &SearchResult);
    /// It has ended, so many seconds after it was asked for.
    fn end(&self, py: Python<'_>, ending: PyResult<SearchResult>, seconds: f64);
}

/// One request, and who hears of it.
pub(crate) struct Call {
    owner: Owner,
    /// Set to leave when the future is cancelled (and when it is answered, when nobody looks any more).
    pub(crate) signals: Arc<Signals>,
    /// Of all requests of its kind.
    all: Arc<Signals>,
    pub(crate) asked: Instant,
    pub(crate) limit: Option<Duration>,
    /// What its results are to tell.
    pub(crate) told: Told,
    answered: AtomicBool,
    /// The newest report that has not been told.
    report: Mutex<Option<SearchResult>>,
}

/// What became of a request; `None` where it was cancelled.
pub(crate) type Ending = Option<PyResult<SearchResult>>;

/// How a position is to be searched.
pub(crate) struct Asked {
    pub(crate) simulations: u32,
    pub(crate) seed: u64,
    pub(crate) priority: Priority,
    /// The root's actions to choose among, ascending; empty for all.
    pub(crate) allowed: Vec<Action>,
    pub(crate) report_every: Option<Duration>,
    pub(crate) call: Arc<Call>,
}

/// A request.
pub(crate) struct Given {
    pub(crate) simulations: Option<Whole>,
    pub(crate) seconds: Option<f64>,
    pub(crate) seed: u64,
    pub(crate) priority: Priority,
    pub(crate) allowed: Allowed,
    pub(crate) report_every: Option<Duration>,
    pub(crate) told: Told,
    pub(crate) hears: Hears,
}

/// The root's actions to choose among.
pub(crate) enum Allowed {
    /// As Python names them, to be checked; none for all.
    Given(Option<Listed<Whole>>),
    /// Ascending; empty for all.
    Known(Vec<Action>),
}

/// Who hears of a request.
pub(crate) enum Hears {
    /// A future that it makes, and what is called with reports.
    Future(Option<Py<PyAny>>),
    Session(Box<dyn Listener>),
}

/// A priority as Python names it.
pub(crate) fn priority_of(name: &str) -> PyResult<Priority> {
    match name {
        "play" => Ok(Priority::Play),
        "analysis" => Ok(Priority::Analysis),
        "ponder" => Ok(Priority::Ponder),
        other => {
            Err(PyValueError::new_err(format!("priority must be \"play\", \"analysis\" or \"ponder\", got {other:?}")))
        }
    }
}

/// How often there are reports.
pub(crate) fn reports(on_report: Option<&Py<PyAny>>, report_every: Option<f64>) -> PyResult<Option<Duration>> {
    match (on_report, report_every) {
        (Some(_), seconds) => Ok(Some(settings::limit(Some(seconds.unwrap_or(0.1)))?.unwrap_or_default())),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(PyValueError::new_err("report_every needs on_report, which hears the reports")),
    }
}

impl Asked {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        // A limit beyond all clocks is none.
        self.call.limit.and_then(|limit| self.call.asked.checked_add(limit))
    }
}

impl Call {
    /// A request of a session.
    pub(crate) fn heard(
        limit: Option<Duration>,
        listener: Box<dyn Listener>,
        told: Told,
        all: Arc<Signals>,
    ) -> Arc<Self> {
        Self::of(Owner::Session(listener), Arc::default(), limit, told, all)
    }

    fn of(owner: Owner, signals: Arc<Signals>, limit: Option<Duration>, told: Told, all: Arc<Signals>) -> Arc<Self> {
        let (report, answered) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { owner, signals, all, asked: Instant::now(), limit, told, answered, report })
    }

    /// A request with a future to answer.
    pub(crate) fn new(
        py: Python<'_>,
        limit: Option<Duration>,
        on_report: Option<Py<PyAny>>,
        told: Told,
        all: Arc<Signals>,
    ) -> PyResult<Arc<Self>> {
        let signals = Arc::new(Signals::default());
        let signal = signals.clone();
        let stop = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| signal.stop();
        let stop = PyCFunction::new_closure(py, None, None, stop)?;
        let future = py.import(intern!(py, "azpy.pending"))?.getattr(intern!(py, "Pending"))?.call1((stop,))?;
        let signal = signals.clone();
        let settle = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| signal.cancel();
        let settle = PyCFunction::new_closure(py, None, None, settle)?;
        future.call_method1(intern!(py, "add_done_callback"), (settle,))?;
        Ok(Self::of(Owner::Future(future.unbind(), on_report), signals, limit, told, all))
    }

    /// Its future; None of a session's.
    pub(crate) fn future(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if let Owner::Future(future, _) = &self.owner { Some(future.clone_ref(py)) } else { None }
    }

    /// Marks the request as refused: the caller gets the error itself, so `Drop` tells nobody.
    pub(crate) fn refuse(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// What its owner wants by now.
    pub(crate) fn signal(&self) -> Signal {
        match self.signals.0.load(Ordering::Relaxed).max(self.all.0.load(Ordering::Relaxed)) {
            0 => Signal::Continue,
            STOP => Signal::Stop,
            _ => Signal::Cancel,
        }
    }

    /// Keeps a report until it is told. Whether there was none that waits.
    pub(crate) fn keep_report(&self, report: SearchResult) -> bool {
        locked(&self.report).replace(report).is_none()
    }

    /// Tells the newest report.
    pub(crate) fn tell_report(&self, py: Python<'_>) {
        let report = locked(&self.report).take();
        let Some(report) = report.filter(|_| self.signal() == Signal::Continue) else { return };
        match &self.owner {
            Owner::Session(listener) => listener.report(py, &report),
            Owner::Future(_, None) => {}
            Owner::Future(_, Some(on_report)) => {
                if let Err(error) = on_report.call1(py, (report,)) {
                    error.write_unraisable(py, Some(on_report.bind(py)));
                }
            }
        }
    }

    /// Whether the request is to be answered: after this it cannot be cancelled any more.
    pub(crate) fn claim(&self, py: Python<'_>, cancel: bool) -> bool {
        self.answered.store(true, Ordering::Relaxed);
        let Owner::Future(future, _) = &self.owner else { return !cancel };
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

    /// Tells a session that a request was cancelled; a future knows.
    pub(crate) fn cancelled(&self, py: Python<'_>) {
        if let Owner::Session(_) = &self.owner {
            self.answer(py, Err(PyRuntimeError::new_err("the search was cancelled: the engine ends")));
        }
    }

    pub(crate) fn answer(&self, py: Python<'_>, ending: PyResult<SearchResult>) {
        let future = match &self.owner {
            Owner::Session(listener) => return listener.end(py, ending, self.asked.elapsed().as_secs_f64()),
            Owner::Future(future, _) => future.bind(py),
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

impl Drop for Call {
    /// A net: no request that was taken ends without an answer. If one did, whoever waits would wait for ever.
    fn drop(&mut self) {
        if *self.answered.get_mut() {
            return;
        }
        Python::try_attach(|py| {
            let done = match &self.owner {
                Owner::Session(_) => Ok(false),
                Owner::Future(future, _) => {
                    future.call_method0(py, intern!(py, "done")).and_then(|done| done.is_truthy(py))
                }
            };
            if !done.unwrap_or(true) && self.claim(py, false) {
                self.answer(py, Err(closed()));
            }
        });
    }
}
