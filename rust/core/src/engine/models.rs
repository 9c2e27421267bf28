//! The models of an engine: which one is served next, which are removed, and when the engine ends. Threads meet here.
//!
//! Four promises, which `races.rs` tries in hundreds of orders of the threads' steps:
//!
//! - A caller with an [`Entry`] is answered: no thread ends while a request is about to be handed over.
//! - A model is removed only when no caller holds it. So a request handed to a model that was replaced meanwhile is
//!   still answered by this model.
//! - The newest network of a game stays, in whatever order networks arrive.
//! - A game that goes on has a model.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

#[cfg(test)]
use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(test))]
use std::sync::{Condvar, Mutex, MutexGuard};

use super::queue::Waiting;
use crate::batched::RoundStats;

/// The name of a model, and of its game with its parameters.
pub type Key = (String, String);

/// What an engine asks of a model.
pub trait EngineModel {
    /// The number of the network: later ones have higher numbers.
    fn number(&self) -> u64;
    /// Whether one thread at a time may touch its games.
    fn is_serial(&self) -> bool;
    /// Its requests.
    fn queue(&self) -> &dyn Waiting;
}

/// A model and where it stands.
struct Slot<M: ?Sized> {
    model: Arc<M>,
    /// The round in which it was last served.
    served: u64,
    /// Pipelines that are serving it.
    pipelines: usize,
}

struct State<M: ?Sized, S: ?Sized> {
    slots: Vec<Slot<M>>,
    /// The newest of each name and game.
    current: HashMap<Key, Arc<M>>,
    /// Games that go on, in the order of their last use.
    game_trees: Vec<(Key, Weak<S>)>,
    /// Batch counts of removed models.
    retired: RoundStats,
    rounds: u64,
    /// Callers that are about to hand a request over.
    entering: usize,
    closing: bool,
}

/// The models of an engine, and the games that go on with them.
pub struct Models<M: ?Sized, S: ?Sized> {
    state: Mutex<State<M, S>>,
    changed: Condvar,
    pipelines: usize,
    most: usize,
}

impl<M: EngineModel + ?Sized, S: ?Sized> Models<M, S> {
    /// No model yet. `pipelines` threads take turns by [`Models::next`]. Of more than `most` models those go that nobody
    /// uses, the least recently used first.
    #[must_use]
    pub fn new(pipelines: usize, most: usize) -> Self {
        let state = State {
            slots: Vec::new(),
            current: HashMap::new(),
            game_trees: Vec::new(),
            retired: RoundStats::default(),
            rounds: 0,
            entering: 0,
            closing: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), pipelines, most }
    }

    fn lock(&self) -> MutexGuard<'_, State<M, S>> {
        // Each change under this lock is complete in itself, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest model of this name and game.
    #[must_use]
    pub fn get(&self, name: &str, game: &str) -> Option<Arc<M>> {
        self.lock().current.get(&(name.to_owned(), game.to_owned())).cloned()
    }

    /// The games for which there is a model of this name, and these models.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<(String, Arc<M>)> {
        let state = self.lock();
        let named = state.current.iter().filter(|((model, _), _)| model == name);
        named.map(|((_, game), model)| (game.clone(), model.clone())).collect()
    }

    /// Puts a model where its name and game have none, or in the place of an older one. Returns the newest of them.
    pub fn add(&self, key: Key, model: Arc<M>) -> Arc<M> {
        let state = self.lock();
        let is_newest = state.current.get(&key).is_none_or(|there| there.number() < model.number());
        if state.closing && is_newest { model } else { Self::put(state, key, model) }
    }

    /// As [`Models::add`], where its name and game have a model. Where they have none the model is not needed: the next
    /// request brings the newest.
    pub fn renew(&self, key: Key, model: Arc<M>) {
        let state = self.lock();
        if state.current.contains_key(&key) {
            Self::put(state, key, model);
        }
    }

    fn put(mut state: MutexGuard<'_, State<M, S>>, key: Key, model: Arc<M>) -> Arc<M> {
        if let Some(there) = state.current.get(&key).filter(|there| there.number() >= model.number()).cloned() {
            drop(state);
            return there;
        }
        let served = state.rounds;
        state.slots.push(Slot { model: model.clone(), served, pipelines: 0 });
        let old = state.current.insert(key, model.clone());
        // Here and above, free the memory of the other model after releasing the lock.
        drop(state);
        drop(old);
        model
    }

    /// Notes a game that goes on with the model of this key: the model stays for as long as the game.
    pub fn add_game_tree(&self, key: Key, game_tree: &Arc<S>) {
        let mut state = self.lock();
        state.game_trees.retain(|(_, game_tree)| game_tree.strong_count() > 0);
        state.game_trees.push((key, Arc::downgrade(game_tree)));
    }

    /// Notes that a game was used.
    pub fn use_game_tree(&self, game_tree: &Arc<S>) {
        let mut state = self.lock();
        let this =
            state.game_trees.iter().position(|(_, other)| std::ptr::addr_eq(other.as_ptr(), Arc::as_ptr(game_tree)));
        if let Some(this) = this {
            state.game_trees[this..].rotate_left(1);
        }
    }

    /// The games that go on, the least recently used first.
    #[must_use]
    pub fn game_trees(&self) -> Vec<Arc<S>> {
        self.lock().game_trees.iter().filter_map(|(_, game_tree)| game_tree.upgrade()).collect()
    }

    /// All models that have not gone, replaced ones included.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<M>> {
        self.lock().slots.iter().map(|slot| slot.model.clone()).collect()
    }

    /// What filled the batches, of models that are gone too, and how many requests the last ones had no room for.
    #[must_use]
    pub fn stats(&self) -> (RoundStats, usize) {
        let state = self.lock();
        let (mut rounds, mut left_over) = (state.retired, 0);
        for slot in &state.slots {
            let (own, left) = slot.model.queue().stats();
            rounds.add(&own);
            left_over += left;
        }
        (rounds, left_over)
    }

    /// Permission to hand a request over; `None` if the engine is closing.
    #[must_use]
    pub fn enter(&self) -> Option<Entry<'_, M, S>> {
        let mut state = self.lock();
        if state.closing {
            return None;
        }
        state.entering += 1;
        Some(Entry(self))
    }

    /// Wakes a pipeline that waits, if there is something for it.
    pub fn wake_for_the_rest(&self) {
        let state = self.lock();
        if state.busy() < self.pipelines && state.slots.iter().any(|slot| slot.model.queue().has_work(false)) {
            self.changed.notify_one();
        }
    }

    /// Wakes a pipeline, which removes unused models.
    pub fn wake(&self) {
        drop(self.lock());
        self.changed.notify_one();
    }

    /// Refuses new requests, and ends once the open ones are answered.
    pub fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    /// Drops all models, after the end.
    pub fn clear(&self) {
        let mut state = self.lock();
        let (slots, current) = (std::mem::take(&mut state.slots), std::mem::take(&mut state.current));
        slots.iter().for_each(|slot| state.retired.add(&slot.model.queue().stats().0));
        drop(state);
        drop((slots, current));
    }

    /// Waits for a model that has work: the one that has waited longest. Whether the whole engine is quiet; `None` at
    /// the end. The pipeline gives the model back by [`Models::finish`].
    pub fn next(&self) -> Option<(Arc<M>, bool)> {
        let mut state = self.lock();
        loop {
            let gone = state.retire(self.most);
            if !gone.is_empty() {
                // Free their memory after releasing the lock.
                drop(state);
                drop(gone);
                state = self.lock();
                continue;
            }
            let quiet = !state.slots.iter().any(|slot| slot.model.queue().in_earnest());
            let free = |slot: &&mut Slot<M>| {
                (slot.pipelines == 0 || !slot.model.is_serial()) && slot.model.queue().has_work(quiet)
            };
            let rounds = state.rounds + 1;
            if let Some(slot) = state.slots.iter_mut().filter(free).min_by_key(|slot| slot.served) {
                slot.served = rounds;
                slot.pipelines += 1;
                let model = slot.model.clone();
                state.rounds = rounds;
                return Some((model, quiet));
            }
            if state.closing && state.busy() == 0 && state.entering == 0 {
                drop(state);
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends a pipeline's round with a model. What the round has to hand over comes before.
    pub fn finish(&self, model: Arc<M>) {
        self.change(|state| {
            if let Some(slot) = state.slots.iter_mut().find(|slot| Arc::ptr_eq(&slot.model, &model)) {
                slot.pipelines -= 1;
            }
            // First, before a pipeline looks for unused models.
            drop(model);
        });
    }

    /// Changes what a closing engine waits for. Returns whether the engine is closing.
    fn change(&self, change: impl FnOnce(&mut State<M, S>)) -> bool {
        let mut state = self.lock();
        change(&mut state);
        let closing = state.closing;
        drop(state);
        if closing {
            self.changed.notify_all();
        }
        closing
    }
}

impl<M: EngineModel + ?Sized, S: ?Sized> State<M, S> {
    /// Pipelines that are at a model.
    fn busy(&self) -> usize {
        self.slots.iter().map(|slot| slot.pipelines).sum()
    }

    /// Whether only its `owners` hold the model. A caller that hands a request over holds it too.
    fn is_unused(model: &Arc<M>, owners: usize) -> bool {
        Arc::strong_count(model) == owners && model.queue().is_empty()
    }

    /// Takes out the models that were replaced, and the least recently used ones of too many, which nobody uses.
    fn retire(&mut self, most: usize) -> Vec<Arc<M>> {
        while self.current.len() > most {
            let served = |model| self.slots.iter().find(|slot| Arc::ptr_eq(&slot.model, model)).map(|slot| slot.served);
            let has_game =
                |key| self.game_trees.iter().any(|(other, game_tree)| other == key && game_tree.strong_count() > 0);
            // `current` and the slot have it.
            let unused = self.current.iter().filter(|(key, model)| Self::is_unused(model, 2) && !has_game(*key));
            let oldest = unused.min_by_key(|(_, model)| served(*model)).map(|(key, _)| key.clone());
            let Some(key) = oldest else { break };
            self.current.remove(&key);
        }
        let gone: Vec<_> = self.slots.extract_if(.., |slot| Self::is_unused(&slot.model, 1)).collect();
        gone.iter().for_each(|slot| self.retired.add(&slot.model.queue().stats().0));
        gone.into_iter().map(|slot| slot.model).collect()
    }
}

/// Permission to hand a request over. No pipeline ends before it is dropped, and dropping it wakes one.
pub struct Entry<'a, M: EngineModel + ?Sized, S: ?Sized>(&'a Models<M, S>);

impl<M: EngineModel + ?Sized, S: ?Sized> Drop for Entry<'_, M, S> {
    fn drop(&mut self) {
        if !self.0.change(|state| state.entering -= 1) {
            self.0.changed.notify_one();
        }
    }
}
