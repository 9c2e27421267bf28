//! A network's queue of requests. They arrive here while its scheduler is busy, and the next pipeline that uses the
//! scheduler takes them.
//!
//! Threads meet here as well as at [`super::Models`]: the tests in `races.rs` have queues.

use std::sync::PoisonError;
use std::time::Instant;

#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};

use super::{Priority, Request, Scheduler};
use crate::batched::RoundStats;
use crate::game::Game;
use crate::search::Search;

/// The requests of one network: those that have just arrived, and those at its scheduler.
pub struct Queue<G: Game, T> {
    /// They have not reached the scheduler yet. Nothing is done under this lock, so that nobody waits for it.
    arrived: Mutex<Vec<(Search<G>, Request<T>)>>,
    scheduler: Mutex<Scheduler<G, T>>,
}

/// Locks state that every panic leaves complete.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G: Game, T> Queue<G, T> {
    /// An empty queue.
    #[must_use]
    pub fn new(scheduler: Scheduler<G, T>) -> Self {
        Self { arrived: Mutex::default(), scheduler: Mutex::new(scheduler) }
    }

    /// Takes a request that `search` will answer. Waits for no round.
    pub fn arrive(&self, search: Search<G>, request: Request<T>) {
        locked(&self.arrived).push((search, request));
    }

    /// The scheduler, with all requests that have arrived.
    pub fn scheduler(&self, now: Instant) -> MutexGuard<'_, Scheduler<G, T>> {
        let mut scheduler = locked(&self.scheduler);
        let arrived = std::mem::take(&mut *locked(&self.arrived));
        for (search, request) in arrived {
            scheduler.join(search, request, now);
        }
        scheduler
    }
}

/// What an engine asks of a model's queue. Answers must be quick, because they are computed under a lock.
pub trait Waiting {
    /// Whether there is work. `quiet`: the whole engine only ponders, so pondering goes on.
    fn has_work(&self, quiet: bool) -> bool;
    /// Whether a request does not ponder.
    fn in_earnest(&self) -> bool;
    /// Whether no request is left.
    fn is_empty(&self) -> bool;
    /// See [`Scheduler::memory_bytes`].
    fn memory_bytes(&self) -> usize;
    /// See [`Scheduler::largest`].
    fn largest(&self) -> usize;
    /// See [`Scheduler::end_largest`].
    fn end_largest(&self) -> Option<usize>;
    /// What filled the batches, and how many requests the last one had no room for.
    fn stats(&self) -> (RoundStats, usize);
}

impl<G: Game, T> Waiting for Queue<G, T> {
    fn has_work(&self, quiet: bool) -> bool {
        !locked(&self.arrived).is_empty() || locked(&self.scheduler).has_work(quiet)
    }
    fn in_earnest(&self) -> bool {
        let arrived = locked(&self.arrived).iter().any(|(_, request)| request.priority != Priority::Ponder);
        arrived || locked(&self.scheduler).in_earnest()
    }
    fn is_empty(&self) -> bool {
        locked(&self.arrived).is_empty() && locked(&self.scheduler).is_empty()
    }
    fn memory_bytes(&self) -> usize {
        locked(&self.scheduler).memory_bytes()
    }
    fn largest(&self) -> usize {
        locked(&self.scheduler).largest()
    }
    fn end_largest(&self) -> Option<usize> {
        locked(&self.scheduler).end_largest()
    }
    fn stats(&self) -> (RoundStats, usize) {
        let scheduler = locked(&self.scheduler);
        (scheduler.stats(), scheduler.left_over())
    }
}
