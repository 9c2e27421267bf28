//! One network of an engine and one game: their desk behind an object-safe door, and games that keep their trees.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use azpy_core::config::SearchConfig;
use azpy_core::engine::{Desk, Lane, Open, Priority, Queue, Request, Seat, Served, Waiting, Wish};
use azpy_core::game::Turn;
use azpy_core::search::Search;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::batch::{same_game, try_play};
use crate::calls::{Asked, Call};
use crate::doors::{AnyModel, AnySeat, AnyState, Done, ModelSettings, Typed};
use crate::errors::{GameError, caught, copied, search_error};
use crate::evaluators::AnyEvaluator;
use crate::hosted::{Fault, Hosted};
use crate::result::SearchResult;
use crate::settings::Whole;
use crate::threads::locked;

/// Lanes of an engine: the batch of one is evaluated while the trees of the other grow.
pub(crate) const LANES: usize = 2;

/// Whoever asked, and their game if it goes on.
pub(crate) struct Token<G: Hosted> {
    call: Arc<Call>,
    game: Option<Arc<OpenGame<G>>>,
}

fn wish<G: Hosted>(token: &Token<G>) -> Wish {
    token.call.wish()
}

fn failed<G: Hosted>(root: &G) -> bool {
    root.fault().is_some_and(Fault::is_set)
}

fn request<G: Hosted>(asked: Asked, game: Option<Arc<OpenGame<G>>>) -> Request<Token<G>> {
    let deadline = asked.deadline();
    let Asked { simulations, seed, priority, report_every, call, .. } = asked;
    Request { token: Token { call, game }, simulations, seed, run: 0, deadline, priority, report_every }
}

/// The one implementation of [`AnyModel`].
pub(crate) struct Model<G: Hosted> {
    spec: String,
    /// Of the game and size that all requests are about.
    first: G,
    config: SearchConfig,
    /// Tells networks apart.
    number: u64,
    /// The evaluator's name for its network, for the cache.
    network: Option<u64>,
    evaluator: Mutex<AnyEvaluator>,
    device: Arc<Mutex<()>>,
    queue: Queue<G, Token<G>>,
    lanes: [Mutex<Lane<G, Token<G>>>; LANES],
}

impl<G: Hosted> Model<G> {
    pub(crate) fn new(first: &G, settings: ModelSettings, evaluator: AnyEvaluator) -> Self {
        let ModelSettings { config, spec, number, max_batch, split_from, cache, workers, device } = settings;
        let mut desk = Desk::new(config, max_batch, split_from, failed, wish);
        // A game written in Python is touched by one thread at a time.
        let workers = if first.fault().is_some() { azpy_core::batched::Workers::Serial } else { workers };
        let lanes = [(); LANES].map(|()| Mutex::new(desk.lane(workers.clone(), cache.clone())));
        Self {
            spec,
            first: first.clone(),
            config,
            number,
            network: evaluator.network_id(),
            evaluator: Mutex::new(evaluator),
            device,
            queue: Queue::new(desk),
            lanes,
        }
    }

    /// The end of a request. Its search goes back to its game, or into its result.
    fn done(&self, open: Open<G, Token<G>>, error: Option<PyErr>) -> Done {
        let Open { search, request: Request { token: Token { call, game }, .. }, .. } = open;
        // A Python game's own error comes before whatever followed from it.
        let broken = search.root().fault().map_or(Ok(()), Fault::check).err();
        let fault = || search.fault().map(|fault| GameError::new_err(fault.to_string()));
        let error = broken.or(error).or_else(fault);
        let sound = error.is_none();
        let wanted = call.wish() != Wish::Leave;
        let Some(game) = game else {
            // The standard errors are read here, and not in the thread that tells all answers.
            let found = || SearchResult::owning(self.spec.clone(), Box::new(search), call.told.standard_errors);
            let result = error.map_or_else(|| caught(found), Err);
            return Done { ending: wanted.then_some(result), call, seat: None };
        };
        let result = error.map_or_else(|| caught(|| SearchResult::in_passing(&search, call.told)), Err);
        locked(&game.seat).give_back(search, sound);
        Done { ending: wanted.then_some(result), call, seat: Some(game) }
    }

    /// Has a lane take searches, and these gather leaves, until its batch is full or nothing waits.
    fn fill(&self, lane: &mut Lane<G, Token<G>>, quiet: bool) {
        loop {
            let now = Instant::now();
            if !(self.queue.desk(now).give(lane, now, quiet) && lane.gather(self.network)) {
                return;
            }
        }
    }

    /// One part of a round after the other.
    fn work(&self, lane: &mut Lane<G, Token<G>>, quiet: bool, filled: &dyn Fn()) -> PyResult<()> {
        self.fill(lane, quiet);
        filled();
        if !lane.needs_evaluator() {
            let outcome = lane.evaluate(&mut AnyEvaluator::Uniform);
            return lane.take_up(outcome).map_err(search_error);
        }
        let turn = self.device.try_lock().unwrap_or_else(|_| {
            let turn = locked(&self.device);
            // Requests have come while the batch of the other lane was evaluated.
            self.fill(lane, quiet);
            turn
        });
        let mut evaluator = locked(&self.evaluator);
        let outcome = lane.evaluate(&mut *evaluator);
        // The device goes on with the other lane's batch while this one's answers are taken up.
        drop((evaluator, turn));
        lane.take_up(outcome).map_err(search_error)
    }
}

impl<G: Hosted> Served for Model<G> {
    fn number(&self) -> u64 {
        self.number
    }

    fn is_serial(&self) -> bool {
        self.first.fault().is_some()
    }

    fn queue(&self) -> &dyn Waiting {
        &self.queue
    }
}

impl<G: Hosted> AnyModel for Model<G> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn submit(&self, state: &dyn AnyState, asked: Asked) -> PyResult<()> {
        let root = same_game(state, Some(&self.first))?.clone();
        let allowed = asked.allowed.clone();
        let mut search = Search::new(root, self.config);
        if !allowed.is_empty() {
            search.allow(allowed);
        }
        self.queue.arrive(search, request(asked, None));
        Ok(())
    }

    fn seat(&self, state: &dyn AnyState, model: &str, seed: u64) -> PyResult<Arc<dyn AnySeat>> {
        let root = same_game(state, Some(&self.first))?.copied()?;
        let seat = Mutex::new(Seat::new(root, self.config, seed));
        let (model, spec) = (model.to_owned(), self.spec.clone());
        Ok(Arc::new_cyclic(|this| OpenGame { this: this.clone(), seat, model, spec, pondering: Mutex::default() }))
    }

    fn renewed(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel> {
        Arc::new(Self::new(&self.first, settings, evaluator))
    }

    fn round(&self, lane: usize, quiet: bool, filled: &dyn Fn(), tell: &mut dyn FnMut(&Arc<Call>)) -> Vec<Done> {
        let mut lane = locked(&self.lanes[lane]);
        let lane = &mut *lane;
        let outcome = caught(|| Ok(self.work(lane, quiet, filled)));
        let error = match outcome {
            Ok(outcome) => outcome.err(),
            Err(panic) => {
                lane.fail();
                Some(panic)
            }
        };
        let now = Instant::now();
        lane.report(now, |open| {
            let call = &open.request.token.call;
            if let Ok(report) = caught(|| SearchResult::in_passing(&open.search, call.told))
                && call.keep_report(report)
            {
                tell(call);
            }
            Instant::now()
        });
        let took = self.queue.desk(now).take_back(lane, now);
        let mut done: Vec<_> = took.ended.into_iter().map(|open| self.done(open, None)).collect();
        if let Some(error) = error {
            // Whoever has a seat may wait for the GIL, so nobody waits for a seat with the GIL.
            let copies: Vec<_> = Python::attach(|py| took.failed.iter().map(|_| copied(py, &error)).collect());
            done.extend(took.failed.into_iter().zip(copies).map(|(open, copy)| self.done(open, Some(copy))));
        }
        done
    }

    fn look(&self) -> Vec<Done> {
        let now = Instant::now();
        let ended = self.queue.desk(now).look(now);
        ended.into_iter().map(|open| self.done(open, None)).collect()
    }
}

/// A game that goes on, the one implementation of [`AnySeat`].
pub(crate) struct OpenGame<G: Hosted> {
    this: std::sync::Weak<Self>,
    seat: Mutex<Seat<G, Token<G>>>,
    model: String,
    spec: String,
    /// Requests that end as soon as something else is asked for.
    pondering: Mutex<Vec<Arc<Call>>>,
}

impl<G: Hosted> OpenGame<G> {
    /// The seat, for a thread that does not hold the GIL. Whoever ponders there stops.
    fn interrupted(&self) -> MutexGuard<'_, Seat<G, Token<G>>> {
        // First the seat: whoever has it may be about to ponder.
        let seat = locked(&self.seat);
        locked(&self.pondering).drain(..).for_each(|call| call.wishes.stop());
        seat
    }
}

impl<G: Hosted> AnySeat for OpenGame<G> {
    fn model(&self) -> (&str, &str) {
        (&self.model, &self.spec)
    }

    fn state(&self) -> PyResult<Box<dyn AnyState>> {
        Ok(Box::new(Typed(locked(&self.seat).position().copied()?)))
    }

    fn num_played(&self) -> usize {
        locked(&self.seat).num_played()
    }

    fn play(&self, action: Whole) -> PyResult<()> {
        let mut seat = self.interrupted();
        // Checked on a copy, so that a refused action changes nothing.
        let mut copy = seat.position().clone();
        let played = try_play(action, |action| copy.try_play(action));
        copy.fault().map_or(Ok(()), Fault::check)?;
        seat.play(played.map_err(PyValueError::new_err)?);
        Ok(())
    }

    fn undo(&self) -> bool {
        self.interrupted().undo()
    }

    fn search(&self, asked: Asked) -> PyResult<()> {
        let mut seat = self.interrupted();
        check_searchable(seat.position())?;
        let (allowed, call) = (asked.allowed.clone(), asked.call.clone());
        if asked.priority == Priority::Ponder {
            locked(&self.pondering).push(call);
        }
        seat.search(request(asked, self.this.upgrade()), allowed);
        Ok(())
    }

    fn go_on(&self, model: &dyn AnyModel) -> bool {
        let Some(model) = model.as_any().downcast_ref::<Model<G>>() else {
            return false;
        };
        let next = locked(&self.seat).next(model.number);
        next.is_some_and(|(search, request)| {
            model.queue.arrive(search, request);
            true
        })
    }

    fn memory_bytes(&self) -> usize {
        locked(&self.seat).memory_bytes()
    }

    fn drop_trees(&self) {
        locked(&self.seat).drop_trees();
    }
}

/// Refuses a position that no search can begin at.
pub(crate) fn check_searchable<G: Hosted>(root: &G) -> PyResult<()> {
    let turn = root.turn();
    root.fault().map_or(Ok(()), Fault::check)?;
    if turn == Turn::Chance {
        return Err(GameError::new_err(azpy_core::game::GameFault::ChanceRoot.to_string()));
    }
    Ok(())
}
