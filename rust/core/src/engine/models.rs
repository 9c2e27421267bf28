//! The models of an engine: whose turn it is, which of them go, and when the engine ends. Threads meet here.
//!
//! Four promises, which the tests below try in hundreds of orders of the threads' steps:
//!
//! - Whoever got an [`Entry`] is answered: no thread ends while somebody is about to hand a request over.
//! - A model goes only when nobody else has it. So a request that is handed to a model that was replaced meanwhile is
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
    /// Tells networks apart: later ones have higher numbers.
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
    /// Pipelines that are at it.
    pipelines: usize,
}

struct State<M: ?Sized, S: ?Sized> {
    slots: Vec<Slot<M>>,
    /// The newest of each name and game.
    current: HashMap<Key, Arc<M>>,
    /// Games that go on, in the order of their last use.
    game_trees: Vec<(Key, Weak<S>)>,
    /// What filled the batches of models that are gone.
    retired: RoundStats,
    rounds: u64,
    /// Threads that are about to hand a request over.
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
    /// No model yet. `pipelines` threads take turns by [`Models::next`]. Of more than `most` models those go that nobody uses,
    /// the least recently used first.
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
        let mut state = self.lock();
        match state.current.get(&key) {
            Some(there) if there.number() >= model.number() => return there.clone(),
            _ if state.closing => return model,
            _ => {}
        }
        let served = state.rounds;
        state.slots.push(Slot { model: model.clone(), served, pipelines: 0 });
        let old = state.current.insert(key, model.clone());
        drop(state);
        drop(old);
        model
    }

    /// As [`Models::add`], where its name and game have a model. Where they have none the model is not needed: the next
    /// request brings the newest.
    pub fn renew(&self, key: Key, model: Arc<M>) {
        let mut state = self.lock();
        if let Some(there) = state.current.get_mut(&key).filter(|there| there.number() < model.number()) {
            let old = std::mem::replace(there, model.clone());
            let served = state.rounds;
            state.slots.push(Slot { model, served, pipelines: 0 });
            drop(state);
            drop(old);
        }
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

    /// Leave to hand a request over; `None` where the engine takes no more.
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

    /// Wakes a pipeline, which lets models go that nobody has any more.
    pub fn wake(&self) {
        drop(self.lock());
        self.changed.notify_one();
    }

    /// Takes no more requests, and ends with the last of those there are.
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
                // Their memory is freed without the lock.
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
            // Before a pipeline looks for models that nobody has.
            drop(model);
        });
    }

    /// Changes what the end waits for. Whether the end is near.
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

    /// Whether nobody has the model but its `owners`. Whoever hands a request over has it.
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

/// Leave to hand a request over: until it is dropped, no pipeline ends. A pipeline looks for work when it is.
pub struct Entry<'a, M: EngineModel + ?Sized, S: ?Sized>(&'a Models<M, S>);

impl<M: EngineModel + ?Sized, S: ?Sized> Drop for Entry<'_, M, S> {
    fn drop(&mut self) {
        if !self.0.change(|state| state.entering -= 1) {
            self.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    //! The promises of this file, in many orders of the threads' steps. Shuttle decides which thread goes on at each
    //! lock, so a failure repeats.

    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::time::Instant;

    use shuttle::thread;

    use super::*;
    use crate::batched::Workers;
    use crate::config::SearchConfig;
    use crate::engine::{Priority, Queue, Request, Scheduler, Signal};
    use crate::evaluator::Uniform;
    use crate::search::Search;
    use crate::toy::Toy;

    /// A model of a short game, whose searches take a few rounds.
    struct Model {
        number: u64,
        queue: Queue<Toy, Asked>,
    }

    /// Who asked.
    #[derive(Clone)]
    struct Asked {
        id: usize,
        game: Option<Arc<Game>>,
    }

    /// A game that goes on: one request of it at a time is at a model.
    #[derive(Default)]
    struct Game {
        name: &'static str,
        waiting: Mutex<Vec<usize>>,
        out: AtomicBool,
    }

    impl Model {
        fn new(number: u64) -> Arc<Self> {
            let scheduler = Scheduler::new(SearchConfig::default(), 8, 0, |_| false, |_| Signal::Continue);
            Arc::new(Self { number, queue: Queue::new(scheduler) })
        }

        /// As an engine's: a search from nothing arrives, whatever the scheduler is at.
        fn ask(&self, token: Asked) {
            let search = Search::new(Toy::countdown(3), SearchConfig::default());
            let priority = if token.id.is_multiple_of(2) { Priority::Play } else { Priority::Ponder };
            let (deadline, report_every) = (None, None);
            let request = Request { token, simulations: 2, seed: 0, run: 0, deadline, priority, report_every };
            self.queue.arrive(search, request);
        }

        /// A pipeline's round, and who is answered.
        fn round(&self, quiet: bool) -> Vec<Asked> {
            let now = Instant::now();
            let mut pipeline = self.queue.scheduler(now).pipeline(Workers::Serial, None);
            while self.queue.scheduler(now).give(&mut pipeline, now, quiet) && pipeline.gather(None) {}
            let outcome = pipeline.evaluate(&mut Uniform);
            pipeline.take_up(outcome).unwrap();
            let took = self.queue.scheduler(now).take_back(&mut pipeline, now);
            took.ended.into_iter().map(|open| open.request.token).collect()
        }
    }

    impl EngineModel for Model {
        fn number(&self) -> u64 {
            self.number
        }
        fn is_serial(&self) -> bool {
            false
        }
        fn queue(&self) -> &dyn Waiting {
            &self.queue
        }
    }

    type Tested = Models<Model, Game>;

    /// As an engine: a model that is not there is made anew.
    fn get_or_add(models: &Tested, game: &str) -> Arc<Model> {
        models.get("main", game).unwrap_or_else(|| models.add(key(game), Model::new(0)))
    }

    fn key(game: &str) -> Key {
        ("main".to_owned(), game.to_owned())
    }

    /// As an engine's `go_on`: the next request of a game goes to its newest model.
    fn go_on(models: &Tested, game: &Arc<Game>) {
        let model = models.get("main", game.name).expect("a game that goes on has a model");
        let mut waiting = game.waiting.lock().unwrap();
        if !waiting.is_empty() && !game.out.swap(true, SeqCst) {
            model.ask(Asked { id: waiting.remove(0), game: Some(game.clone()) });
        }
    }

    fn pipeline(models: &Tested, answered: &Mutex<Vec<usize>>) {
        while let Some((model, quiet)) = models.next() {
            for asked in model.round(quiet) {
                answered.lock().unwrap().push(asked.id);
                if let Some(game) = asked.game {
                    game.out.store(false, SeqCst);
                    go_on(models, &game);
                }
            }
            models.finish(model);
        }
    }

    /// Rounds with the model whose turn it is, until nobody waits there.
    fn serve(models: &Tested) {
        let (model, quiet) = models.next().unwrap();
        while !model.queue.is_empty() {
            model.round(quiet);
        }
        models.finish(model);
    }

    /// Asks as an engine does: takes the model, is held up by Python for a while, and hands the request over.
    fn ask(models: &Tested, asked: &Asked, accepted: &Mutex<Vec<usize>>) {
        let model = get_or_add(models, asked.game.as_ref().map_or("a", |game| game.name));
        thread::yield_now();
        let Some(_entry) = models.enter() else { return };
        accepted.lock().unwrap().push(asked.id);
        match &asked.game {
            None => model.ask(asked.clone()),
            Some(game) => {
                game.waiting.lock().unwrap().push(asked.id);
                go_on(models, game);
            }
        }
    }

    fn in_many_orders(test: impl Fn() + Send + Sync + Clone + 'static) {
        shuttle::check_random(test.clone(), 300);
        shuttle::check_pct(test, 300, 4);
    }

    #[test]
    fn every_request_is_answered_beside_loads_and_a_close() {
        in_many_orders(|| {
            let models = Arc::new(Tested::new(2, 16));
            models.add(key("a"), Model::new(0));
            let (accepted, answered) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
            let mut threads = Vec::new();
            for _ in 0..2 {
                let (models, answered) = (models.clone(), answered.clone());
                threads.push(thread::spawn(move || pipeline(&models, &answered)));
            }
            let game = Arc::new(Game { name: "a", ..Game::default() });
            models.add_game_tree(key("a"), &game);
            for asker in 0..3 {
                let (models, accepted) = (models.clone(), accepted.clone());
                // Two of three ask a game that goes on.
                let game = (asker > 0).then(|| game.clone());
                threads.push(thread::spawn(move || {
                    for turn in 0..2 {
                        ask(&models, &Asked { id: 2 * asker + turn, game: game.clone() }, &accepted);
                    }
                }));
            }
            let loader = models.clone();
            threads.push(thread::spawn(move || {
                for number in 1..3 {
                    loader.add(key("a"), Model::new(number));
                    loader.wake();
                }
                loader.close();
            }));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let (mut accepted, mut answered) = (accepted.lock().unwrap().clone(), answered.lock().unwrap().clone());
            accepted.sort_unstable();
            answered.sort_unstable();
            assert_eq!(accepted, answered);
        });
    }

    #[test]
    fn the_newest_network_stays_in_whatever_order_networks_arrive() {
        in_many_orders(|| {
            let models = Arc::new(Tested::new(1, 16));
            let newest = Arc::new(Mutex::new(0));
            let mut threads = Vec::new();
            for number in 1..3 {
                let (models, newest) = (models.clone(), newest.clone());
                threads.push(thread::spawn(move || {
                    let mut now = newest.lock().unwrap();
                    *now = number.max(*now);
                    drop(now);
                    for (game, _) in models.named("main") {
                        models.renew(key(&game), Model::new(number));
                    }
                }));
            }
            let (first, known) = (models.clone(), newest.clone());
            threads.push(thread::spawn(move || {
                // As an engine's first request of a game: a network may have come that saw no model to renew.
                loop {
                    let number = *known.lock().unwrap();
                    let model = first.add(key("a"), Model::new(number));
                    if *known.lock().unwrap() <= model.number() {
                        return;
                    }
                }
            }));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(models.get("main", "a").unwrap().number(), 2);
        });
    }

    #[test]
    fn a_replaced_model_goes_once_nobody_has_it() {
        shuttle::check_random(
            || {
                let models = Tested::new(1, 16);
                let old = models.add(key("a"), Model::new(0));
                old.ask(Asked { id: 0, game: None });
                models.add(key("a"), Model::new(1));
                assert_eq!(models.all().len(), 2);
                serve(&models);
                assert!(old.queue.is_empty());
                models.close();
                assert!(models.next().is_none());
                assert_eq!(models.all().len(), 2, "somebody has it");
                drop(old);
                assert!(models.next().is_none());
                assert_eq!(models.all().len(), 1);
            },
            1,
        );
    }

    #[test]
    fn games_beside_others_that_take_their_models_places_are_answered() {
        in_many_orders(|| {
            let models = Arc::new(Tested::new(2, 1));
            let (accepted, answered) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
            let mut pipelines = Vec::new();
            for _ in 0..2 {
                let (models, answered) = (models.clone(), answered.clone());
                pipelines.push(thread::spawn(move || pipeline(&models, &answered)));
            }
            let mut askers = Vec::new();
            for (asker, name) in ["a", "b", "c"].into_iter().enumerate() {
                let (models, accepted) = (models.clone(), accepted.clone());
                askers.push(thread::spawn(move || {
                    let game = Arc::new(Game { name, ..Game::default() });
                    {
                        let _model = get_or_add(&models, name);
                        models.add_game_tree(key(name), &game);
                    }
                    for turn in 0..2 {
                        ask(&models, &Asked { id: 2 * asker + turn, game: Some(game.clone()) }, &accepted);
                    }
                    game
                }));
            }
            let games: Vec<_> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
            // Nobody closes the engine: whoever waits for a pipeline has to be woken by the request itself.
            while answered.lock().unwrap().len() < 6 {
                thread::yield_now();
            }
            drop(games);
            models.close();
            pipelines.into_iter().for_each(|pipeline| pipeline.join().unwrap());
            assert!(models.all().len() <= 1);
        });
    }

    #[test]
    fn of_many_games_the_least_recently_used_model_goes_that_nobody_uses() {
        shuttle::check_random(
            || {
                let models = Tested::new(1, 3);
                let ask = |game: &str| models.add(key(game), Model::new(0)).ask(Asked { id: 0, game: None });
                let there = |games: &str| {
                    games.split(' ').filter(|game| models.get("main", game).is_some()).collect::<Vec<_>>().join(" ")
                };
                ["a", "b", "c", "d"].into_iter().for_each(ask);
                serve(&models);
                assert_eq!(there("a b c d"), "a b c d", "all four had requests");
                (0..3).for_each(|_| serve(&models));
                assert_eq!(there("a b c d"), "b c d");
                let game = Arc::new(Game::default());
                models.add_game_tree(key("b"), &game);
                let held = models.get("main", "c").unwrap();
                ["e", "f"].into_iter().for_each(ask);
                (0..2).for_each(|_| serve(&models));
                ask("e");
                serve(&models);
                assert_eq!(there("b c d e f"), "b c e", "a game has b, somebody holds c, and e was used last");
                drop((game, held));
                ["f", "g"].into_iter().for_each(ask);
                (0..2).for_each(|_| serve(&models));
                ask("g");
                serve(&models);
                assert_eq!(there("b c d e f g"), "e f g");
            },
            1,
        );
    }
}
