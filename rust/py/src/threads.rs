//! Threads that go on in the background: how they meet the interpreter, and how they end before it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long to wait without looking for Ctrl-C.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// What has threads of its own.
pub(crate) trait Stop: Send + Sync {
    /// Asks them to end, and does not wait.
    fn stop(&self);
}

/// What is still going on, so that it can be stopped before the interpreter goes.
static OPEN: Mutex<Vec<Weak<dyn Stop>>> = Mutex::new(Vec::new());

/// Threads there are, those of dropped owners included.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The process whose threads they are.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Whether this process is a copy of the one that has the threads: a fork takes none along.
pub(crate) fn is_forked() -> bool {
    PROCESS.get().is_some_and(|&process| process != std::process::id())
}

/// Has `open` stopped as the interpreter exits, if it is still there.
pub(crate) fn stop_at_exit(open: &Arc<dyn Stop>) {
    PROCESS.get_or_init(std::process::id);
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|other| other.strong_count() > 0);
    all.push(Arc::downgrade(open));
}

/// Runs a thread's whole life: it meets the interpreter once, not once a batch.
pub(crate) fn attached_once(body: &mut (dyn FnMut() + Send)) {
    THREADS.fetch_add(1, Ordering::SeqCst);
    Python::attach(|py| py.detach(body));
    THREADS.fetch_sub(1, Ordering::SeqCst);
}

/// Repeats `step`, without the GIL, until it gives something; looks for Ctrl-C in between.
pub(crate) fn wait<T: Send>(py: Python<'_>, mut step: impl FnMut() -> PyResult<Option<T>> + Send) -> PyResult<T> {
    loop {
        if let Some(done) = py.detach(&mut step)? {
            return Ok(done);
        }
        py.check_signals()?;
    }
}

/// Stops all that goes on in the background; called as the interpreter exits.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) {
    if is_forked() {
        return;
    }
    py.detach(|| {
        let all = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
        let all: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|open| open.stop());
        // An evaluator that never returns must not keep the interpreter for ever.
        let until = Instant::now() + Duration::from_secs(60);
        while THREADS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
