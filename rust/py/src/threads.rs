//! Threads that go on in the background: how they meet the interpreter, and how they end before it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use azpy_core::selfplay::Inside;
use pyo3::prelude::*;

/// How long to wait without looking for Ctrl-C.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// What has threads of its own.
pub(crate) trait Stop: Send + Sync {
    /// Asks them to end, and does not wait.
    fn stop(&self);
}

/// What is still going on, so that it can be stopped before the interpreter goes; and in which process, as a fork takes no
/// threads along.
struct Open {
    process: u32,
    all: Vec<Weak<dyn Stop>>,
}

static OPEN: Mutex<Open> = Mutex::new(Open { process: 0, all: Vec::new() });

/// Threads there are, those of dropped owners included.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// What there is in this process: what the one that was forked had going goes on there alone.
fn opened() -> MutexGuard<'static, Open> {
    let mut opened = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.process != std::process::id() {
        *opened = Open { process: std::process::id(), all: Vec::new() };
        THREADS.store(0, Ordering::SeqCst);
    }
    opened
}

/// Has `open` stopped as the interpreter exits, if it is still there.
pub(crate) fn stop_at_exit(open: &Arc<dyn Stop>) {
    let mut opened = opened();
    opened.all.retain(|other| other.strong_count() > 0);
    opened.all.push(Arc::downgrade(open));
}

/// A thread that goes on, or is about to begin: the interpreter's end waits for it.
struct Counted;

impl Counted {
    fn new() -> Self {
        let _opened = opened(); // a new process counts from 0
        THREADS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// To run a thread's whole life: it meets the interpreter once, not once a batch. It is counted from here on: where the
/// interpreter ended before it has begun, there would be nothing to meet.
pub(crate) fn attached_once() -> Inside {
    let counted = Counted::new();
    Box::new(move |body| {
        Python::attach(|py| py.detach(body));
        drop(counted);
    })
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
    py.detach(|| {
        let all = std::mem::take(&mut opened().all);
        let all: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|open| open.stop());
        // An evaluator that never returns must not keep the interpreter for ever.
        let until = Instant::now() + Duration::from_secs(60);
        while THREADS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
