//! An engine's threads: lanes that run the rounds of all models, and one that tells whoever asked.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

use azpy_core::batched::RoundStats;
use azpy_core::process::Process;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::calls::{AnyModel, AnySeat, Call, Done, Ending, Wishes};
use crate::engine_stats::Stats;
use crate::model::LANES;
use crate::threads::{Stop, attached_once, stop_at_exit};

thread_local! {
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is that of an engine.
pub(crate) fn is_serving() -> bool {
    SERVING.get()
}

/// A model and where it stands.
struct Slot {
    model: Arc<dyn AnyModel>,
    /// The round in which it was last served.
    served: u64,
    /// Lanes that are at it.
    lanes: usize,
}

/// What the owner and the threads share.
#[derive(Default)]
struct Shared {
    slots: Vec<Slot>,
    /// By name of the model and of the game.
    current: HashMap<(String, String), Arc<dyn AnyModel>>,
    seats: Vec<Weak<dyn AnySeat>>,
    /// What filled the batches of models that are gone.
    retired: RoundStats,
    rounds: u64,
    /// Lanes that are at a model.
    busy: usize,
    closing: bool,
}

/// Something to tell: an answer, or that there is a report.
enum News {
    Answer(Arc<Call>, Box<Ending>),
    Report(Arc<Call>),
}

#[derive(Default)]
struct Answers {
    news: VecDeque<News>,
    /// Lanes that have ended: none will have news.
    ended: usize,
}

/// What an engine's threads have in common.
pub(crate) struct Hub {
    shared: Mutex<Shared>,
    changed: Condvar,
    answers: Mutex<Answers>,
    told: Condvar,
    pub(crate) stats: Mutex<Stats>,
    /// What is wished of all requests.
    pub(crate) all: Arc<Wishes>,
    /// What is wished of those that ponder.
    pub(crate) pondering: Arc<Wishes>,
    /// Bytes that all trees may have together.
    budget: usize,
    threads: OnceLock<Vec<JoinHandle<()>>>,
    /// That has the threads.
    process: Process,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under these locks is complete in itself, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn start(budget: usize) -> PyResult<Arc<Self>> {
        let hub = Arc::new(Self {
            shared: Mutex::default(),
            changed: Condvar::new(),
            answers: Mutex::default(),
            told: Condvar::new(),
            stats: Mutex::default(),
            all: Arc::default(),
            pondering: Arc::default(),
            budget,
            threads: OnceLock::new(),
            process: Process::current(),
        });
        stop_at_exit(&(hub.clone() as Arc<dyn Stop>));
        let mut threads = Vec::new();
        for number in 0..=LANES {
            let (shared, inside) = (hub.clone(), attached_once());
            let body = move || {
                inside(&mut || {
                    SERVING.set(true);
                    match number {
                        LANES => shared.tell(),
                        lane => shared.run(lane),
                    }
                });
            };
            let name = if number == LANES { "azpy-answers".into() } else { format!("azpy-lane-{number}") };
            match std::thread::Builder::new().name(name).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    hub.stop();
                    return Err(PyOSError::new_err(format!("cannot start a thread: {error}")));
                }
            }
        }
        let _ = hub.threads.set(threads);
        Ok(hub)
    }

    /// The model of this name and game, if there is one already.
    pub(crate) fn model(&self, name: &str, spec: &str) -> Option<Arc<dyn AnyModel>> {
        locked(&self.shared).current.get(&(name.to_owned(), spec.to_owned())).cloned()
    }

    /// The games for which there is a model of this name, and these models.
    pub(crate) fn models(&self, name: &str) -> Vec<(String, Arc<dyn AnyModel>)> {
        let shared = locked(&self.shared);
        let named = shared.current.iter().filter(|((model, _), _)| model == name);
        named.map(|((_, spec), model)| (spec.clone(), model.clone())).collect()
    }

    /// Puts a model where its name and game were free; with `instead`, in place of another.
    pub(crate) fn add(&self, name: &str, spec: &str, model: Arc<dyn AnyModel>, instead: bool) -> Arc<dyn AnyModel> {
        let mut shared = locked(&self.shared);
        let key = (name.to_owned(), spec.to_owned());
        if let Some(there) = shared.current.get(&key).filter(|_| !instead) {
            return there.clone();
        }
        shared.current.insert(key, model.clone());
        let served = shared.rounds;
        shared.slots.push(Slot { model: model.clone(), served, lanes: 0 });
        model
    }

    /// Notes a game, whose tree is memory.
    pub(crate) fn add_seat(&self, seat: &Arc<dyn AnySeat>) {
        let mut shared = locked(&self.shared);
        shared.seats.retain(|seat| seat.strong_count() > 0);
        shared.seats.push(Arc::downgrade(seat));
    }

    /// Refuses a request where the engine is closed.
    pub(crate) fn check_open(&self) -> PyResult<()> {
        if locked(&self.shared).closing {
            return Err(closed());
        }
        Ok(())
    }

    /// Wakes a lane: something has arrived.
    pub(crate) fn wake(&self) {
        drop(locked(&self.shared));
        self.changed.notify_one();
    }

    /// Wakes a lane that waits, if there is something for it.
    fn wake_for_the_rest(&self) {
        let shared = locked(&self.shared);
        if shared.busy < LANES && shared.slots.iter().any(|slot| slot.model.has_work(false)) {
            self.changed.notify_one();
        }
    }

    /// Has a game go on with its next request.
    pub(crate) fn go_on(&self, seat: &Arc<dyn AnySeat>) {
        let (name, spec) = seat.model();
        if self.model(name, spec).is_some_and(|model| seat.go_on(&*model)) {
            // The seats stand in the order of their last use.
            let mut shared = locked(&self.shared);
            let this = shared.seats.iter().position(|other| std::ptr::addr_eq(other.as_ptr(), Arc::as_ptr(seat)));
            if let Some(this) = this {
                shared.seats[this..].rotate_left(1);
            }
            drop(shared);
            self.changed.notify_one();
        }
    }

    /// Takes no more requests, and ends with the last of those there are. Whoever ponders stops.
    pub(crate) fn close(&self) {
        self.pondering.stop();
        locked(&self.shared).closing = true;
        self.changed.notify_all();
    }

    /// Drops the models, after the end.
    pub(crate) fn clear(&self) {
        let mut shared = locked(&self.shared);
        let (slots, current) = (std::mem::take(&mut shared.slots), std::mem::take(&mut shared.current));
        slots.iter().for_each(|slot| shared.retired.add(&slot.model.stats().0));
        drop(shared);
        drop((slots, current));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.threads.get().is_none_or(|threads| threads.iter().all(JoinHandle::is_finished))
    }

    /// Whether this process is a copy of the one that has the threads. The copy may not even lock anything: a thread may
    /// have held the lock in that moment.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// Rounds until the engine is closed and nobody waits any more. Runs detached from the interpreter.
    fn run(&self, lane: usize) {
        while let Some((model, quiet)) = self.next() {
            let mut reports = Vec::new();
            // This lane goes on by itself: another one is woken only for what is left.
            let filled = || self.wake_for_the_rest();
            let mut done = model.round(lane, quiet, &filled, &mut |call| reports.push(News::Report(call.clone())));
            self.keep_to_the_budget();
            done.append(&mut self.look());
            self.hand_over(reports, done);
            let mut shared = locked(&self.shared);
            shared.busy -= 1;
            if let Some(slot) = shared.slots.iter_mut().find(|slot| Arc::ptr_eq(&slot.model, &model)) {
                slot.lanes -= 1;
            }
            let ending = shared.closing;
            drop(shared);
            if ending {
                self.changed.notify_all();
            }
        }
        locked(&self.answers).ended += 1;
        self.told.notify_all();
    }

    /// Waits for a model that has work: the one that has waited longest. Whether the whole engine is quiet; `None` at the
    /// end.
    fn next(&self) -> Option<(Arc<dyn AnyModel>, bool)> {
        let mut shared = locked(&self.shared);
        loop {
            // A model that was replaced goes with its last request.
            let Shared { slots, current, retired, .. } = &mut *shared;
            let is_current = |slot: &Slot| current.values().any(|model| Arc::ptr_eq(model, &slot.model));
            for slot in slots.extract_if(.., |slot| slot.lanes == 0 && slot.model.is_empty() && !is_current(slot)) {
                retired.add(&slot.model.stats().0);
            }
            let quiet = !shared.slots.iter().any(|slot| slot.model.in_earnest());
            let free = |slot: &&mut Slot| (slot.lanes == 0 || !slot.model.is_serial()) && slot.model.has_work(quiet);
            let rounds = shared.rounds + 1;
            if let Some(slot) = shared.slots.iter_mut().filter(free).min_by_key(|slot| slot.served) {
                slot.served = rounds;
                slot.lanes += 1;
                let model = slot.model.clone();
                shared.rounds = rounds;
                shared.busy += 1;
                return Some((model, quiet));
            }
            if shared.closing && shared.busy == 0 {
                drop(shared);
                self.changed.notify_all();
                return None;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// All models.
    fn all_models(&self) -> Vec<Arc<dyn AnyModel>> {
        locked(&self.shared).slots.iter().map(|slot| slot.model.clone()).collect()
    }

    /// Requests that have ended in any queue.
    fn look(&self) -> Vec<Done> {
        self.all_models().iter().flat_map(|model| model.look()).collect()
    }

    /// Counts so far, of requests and of batches.
    pub(crate) fn counts(&self) -> Stats {
        let mut stats = locked(&self.stats).clone();
        stats.rounds = locked(&self.shared).retired;
        for model in self.all_models() {
            let (rounds, left_over) = model.stats();
            stats.rounds.add(&rounds);
            stats.left_over += left_over;
            let (cached, room) = model.cached();
            stats.cached += cached;
            stats.cache_room += room;
        }
        stats
    }

    /// Drops kept trees, the least recently used first, then ends searches, the largest first, until all trees fit.
    fn keep_to_the_budget(&self) {
        if self.budget == usize::MAX {
            return;
        }
        let models = self.all_models();
        let seats: Vec<_> = locked(&self.shared).seats.iter().filter_map(Weak::upgrade).collect();
        let searching: usize = models.iter().map(|model| model.memory_bytes()).sum();
        let mut total = searching + seats.iter().map(|seat| seat.memory_bytes()).sum::<usize>();
        for seat in &seats {
            if total <= self.budget {
                return;
            }
            total -= seat.memory_bytes();
            seat.drop_trees();
        }
        if total > self.budget {
            let _ = models.iter().max_by_key(|model| model.memory_bytes()).is_some_and(|model| model.end_largest());
        }
    }

    fn hand_over(&self, reports: Vec<News>, mut done: Vec<Done>) {
        // Each answer takes Python some time: requests with a time limit come first.
        done.sort_by_key(|done| done.call.limit.is_none());
        for seat in done.iter().filter_map(|done| done.seat.as_ref()) {
            self.go_on(seat);
        }
        if reports.is_empty() && done.is_empty() {
            return;
        }
        let news = done.into_iter().map(|Done { call, ending, .. }| News::Answer(call, Box::new(ending)));
        locked(&self.answers).news.extend(news.chain(reports));
        self.told.notify_all();
    }

    /// Tells whoever asked, until the lanes have ended. Runs detached from the interpreter.
    fn tell(&self) {
        loop {
            let mut answers = locked(&self.answers);
            while answers.news.is_empty() {
                if answers.ended == LANES {
                    return;
                }
                answers = self.told.wait(answers).unwrap_or_else(PoisonError::into_inner);
            }
            let news = std::mem::take(&mut answers.news);
            drop(answers);
            Python::attach(|py| self.tell_all(py, news));
        }
    }

    fn tell_all(&self, py: Python<'_>, news: VecDeque<News>) {
        let mut answered = Vec::new();
        for news in news {
            match news {
                News::Report(call) => call.tell_report(py),
                // Whoever gave up until now gets nothing; whoever does later has been answered.
                News::Answer(call, ending) => answered.push((call.claim(py, ending.is_none()), call, *ending)),
            }
        }
        {
            // Counted before anybody is told, so that they see themselves in the counts.
            let now = Instant::now();
            let mut stats = locked(&self.stats);
            for (claimed, call, ending) in &answered {
                match ending.as_ref().filter(|_| *claimed) {
                    None => stats.count_cancelled(),
                    Some(Err(_)) => stats.count_failed(),
                    Some(Ok(result)) => {
                        stats.count_finished(result.counts(), now.saturating_duration_since(call.asked), call.limit);
                    }
                }
            }
        }
        for (claimed, call, ending) in answered {
            if let Some(ending) = ending.filter(|_| claimed) {
                call.answer(py, ending);
            }
        }
    }
}

impl Stop for Hub {
    fn stop(&self) {
        self.all.leave();
        self.pondering.leave();
        self.close();
    }
}

/// What a closed engine says.
pub(crate) fn closed() -> PyErr {
    PyRuntimeError::new_err("this engine is closed: it takes no more requests")
}
