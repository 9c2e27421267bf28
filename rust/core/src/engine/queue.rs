//! A network's queue of requests: they arrive here, whatever its desk is at, and lanes meet them at the desk.
//!
//! Threads meet here as well as at [`super::Models`], whose tests have queues.

use std::sync::PoisonError;
use std::time::Instant;

#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};

use super::{Desk, Priority, Request};
use crate::batched::RoundStats;
use crate::game::Game;
use crate::search::Search;

/// The requests of one network: those that have just arrived, and those at its desk.
pub struct Queue<G: Game, T> {
    /// They have not reached the desk yet. Nothing is done under this lock, so that nobody waits for it.
    arrived: Mutex<Vec<(Search<G>, Request<T>)>>,
    desk: Mutex<Desk<G, T>>,
}

/// The lock of something that is whole whenever a panic could leave it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G: Game, T> Queue<G, T> {
    /// Nobody asks yet.
    #[must_use]
    pub fn new(desk: Desk<G, T>) -> Self {
        Self { arrived: Mutex::default(), desk: Mutex::new(desk) }
    }

    /// Takes a request that `search` will answer. Waits for no round.
    pub fn arrive(&self, search: Search<G>, request: Request<T>) {
        locked(&self.arrived).push((search, request));
    }

    /// The desk, with all requests that have arrived.
    pub fn desk(&self, now: Instant) -> MutexGuard<'_, Desk<G, T>> {
        let mut desk = locked(&self.desk);
        let arrived = std::mem::take(&mut *locked(&self.arrived));
        for (search, request) in arrived {
            desk.join(search, request, now);
        }
        desk
    }
}

/// What an engine asks of a model's queue. Each answer comes soon: it is asked under a lock.
pub trait Waiting {
    /// Whether there is something to do. `quiet`: nobody waits in the whole engine, so pondering goes on.
    fn has_work(&self, quiet: bool) -> bool;
    /// Whether a request does not ponder.
    fn in_earnest(&self) -> bool;
    /// Whether no request is left.
    fn is_empty(&self) -> bool;
    /// See [`Desk::memory_bytes`].
    fn memory_bytes(&self) -> usize;
    /// See [`Desk::largest`].
    fn largest(&self) -> usize;
    /// See [`Desk::end_largest`].
    fn end_largest(&self) -> Option<usize>;
    /// What filled the batches, and how many requests the last one had no room for.
    fn stats(&self) -> (RoundStats, usize);
}

impl<G: Game, T> Waiting for Queue<G, T> {
    fn has_work(&self, quiet: bool) -> bool {
        !locked(&self.arrived).is_empty() || locked(&self.desk).has_work(quiet)
    }
    fn in_earnest(&self) -> bool {
        let arrived = locked(&self.arrived).iter().any(|(_, request)| request.priority != Priority::Ponder);
        arrived || locked(&self.desk).in_earnest()
    }
    fn is_empty(&self) -> bool {
        locked(&self.arrived).is_empty() && locked(&self.desk).is_empty()
    }
    fn memory_bytes(&self) -> usize {
        locked(&self.desk).memory_bytes()
    }
    fn largest(&self) -> usize {
        locked(&self.desk).largest()
    }
    fn end_largest(&self) -> Option<usize> {
        locked(&self.desk).end_largest()
    }
    fn stats(&self) -> (RoundStats, usize) {
        let desk = locked(&self.desk);
        (desk.stats(), desk.left_over())
    }
}
