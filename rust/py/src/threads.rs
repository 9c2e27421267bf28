//! Background threads: how they attach to the interpreter, and how they end before it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

use azpy_core::process::Process;
use azpy_core::selfplay::Inside;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

/// How long to wait without looking for Ctrl-C.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// An object with its own threads.
pub(crate) trait BackgroundTask: Send + Sync {
    /// Asks them to end, and does not wait.
    fn stop(&self);
}

/// What is still going on, so that it can be stopped before the interpreter goes; and in which process, as a fork takes no
/// threads along.
struct Running {
    process: Option<Process>,
    tasks: Vec<Weak<dyn BackgroundTask>>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { process: None, tasks: Vec::new() });

/// Threads that go on or are about to begin, those of dropped owners included: the interpreter's end waits for them.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Threads that have not attached to the interpreter yet.
static UNMET: AtomicUsize = AtomicUsize::new(0);

/// The state of this process. After a fork, the parent's threads run only in the parent.
fn running() -> MutexGuard<'static, Running> {
    let mut running = locked(&RUNNING);
    if running.process.is_none_or(|process| !process.is_current()) {
        *running = Running { process: Some(Process::current()), tasks: Vec::new() };
        THREADS.store(0, Ordering::SeqCst);
        UNMET.store(0, Ordering::SeqCst);
    }
    running
}

/// Registers a task to be stopped when the interpreter exits.
pub(crate) fn stop_at_exit(task: &Arc<dyn BackgroundTask>) {
    let mut running = running();
    running.tasks.retain(|other| other.strong_count() > 0);
    running.tasks.push(Arc::downgrade(task));
}

/// A thread that counts among these until it is dropped, also if it could not be made.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn among(threads: &'static AtomicUsize) -> Self {
        let _running = running(); // a new process counts from 0
        threads.fetch_add(1, Ordering::SeqCst);
        Self(threads)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// To run a thread's whole life: it meets the interpreter once, not once a batch. It is counted from here on: where the
/// interpreter ended before it has begun, there would be nothing to meet.
pub(crate) fn attached_once() -> Inside {
    let (counted, unmet) = (Counted::among(&THREADS), Counted::among(&UNMET));
    Box::new(move |body| {
        Python::attach(|py| {
            drop(unmet);
            py.detach(body);
        });
        drop(counted);
    })
}

/// Waits until all threads have attached to the interpreter. Attaching holds a lock of CPython without the GIL, and
/// a fork in that moment would wait for this lock for ever.
pub(crate) fn wait_until_attached(py: Python<'_>) {
    py.detach(|| {
        while UNMET.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    });
}

/// Repeats `step`, without the GIL, until it returns something; checks for Ctrl-C in between.
pub(crate) fn wait<T: Send>(py: Python<'_>, mut step: impl FnMut() -> PyResult<Option<T>> + Send) -> PyResult<T> {
    loop {
        if let Some(done) = py.detach(&mut step)? {
            return Ok(done);
        }
        py.check_signals()?;
    }
}

/// Stops all that goes on in the background; called as the interpreter exits. Waits for evaluators and games that have not
/// returned, for a minute at most. Ctrl-C ends the wait, and the process: a thread that came back to an interpreter that is
/// half gone would crash. What another signal handler raises is raised after the wait.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    let tasks = std::mem::take(&mut running().tasks);
    let tasks: Vec<_> = tasks.iter().filter_map(Weak::upgrade).collect();
    py.detach(|| tasks.iter().for_each(|task| task.stop()));
    let until = Instant::now() + Duration::from_secs(60);
    let mut raised = None;
    while THREADS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        match py.check_signals() {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => return end_by_ctrl_c(py),
            Err(error) => raised = raised.or(Some(error)),
            Ok(()) => {}
        }
    }
    py.detach(|| drop(tasks));
    raised.map_or(Ok(()), Err)
}

/// Ends this process as Ctrl-C ends a program without a handler.
fn end_by_ctrl_c(py: Python<'_>) -> PyResult<()> {
    let sys = py.import("sys")?;
    for stream in ["stdout", "stderr"] {
        // Standard error may be missing or closed.
        let _ = sys.getattr(stream).and_then(|stream| stream.call_method0("flush"));
    }
    eprintln!(
        "azpy: Ctrl-C ended the wait for self-play or a batched search to stop; threads still in an evaluator or a game: {}",
        THREADS.load(Ordering::SeqCst)
    );
    let signal = py.import("signal")?;
    let interrupt = signal.getattr("SIGINT")?;
    signal.call_method1("signal", (&interrupt, signal.getattr("SIG_DFL")?))?;
    py.import("os")?.call_method1("kill", (std::process::id(), interrupt))?;
    Ok(())
}

/// Locks state that every panic leaves complete.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy<G>(error: TryLockError<G>) -> PyResult<G> {
    match error {
        // A panic while reading the results changes nothing.
        TryLockError::Poisoned(poisoned) => Ok(poisoned.into_inner()),
        TryLockError::WouldBlock => Err(PyRuntimeError::new_err(
            "this search is already running (in another thread, or it called its own evaluator)",
        )),
    }
}

/// Locks something that one thread at a time uses.
pub(crate) fn exclusive<T>(mutex: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    mutex.try_lock().or_else(busy)
}

/// Locks a search's trees for changes.
pub(crate) fn changing<T: ?Sized>(trees: &RwLock<T>) -> PyResult<RwLockWriteGuard<'_, T>> {
    trees.try_write().or_else(busy)
}

/// Locks a search's trees for reading. Several threads may read at once.
pub(crate) fn looking<T: ?Sized>(trees: &RwLock<T>) -> PyResult<RwLockReadGuard<'_, T>> {
    trees.try_read().or_else(busy)
}
