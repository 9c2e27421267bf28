//! The promises of `models.rs`, in many orders of the threads' steps. Shuttle decides which thread goes on at each
//! lock, so a failure repeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::models::*;
use super::queue::Waiting;
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
fn games_are_answered_though_others_take_their_models_places() {
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
fn of_many_models_the_least_recently_used_goes() {
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
