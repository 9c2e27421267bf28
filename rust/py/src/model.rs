//! One network of an engine and one game: their scheduler, and games that keep their trees.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use azpy_core::batched::Workers;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{
    EngineModel, GameTree, OpenSearch, Pipeline, Priority, Queue, Request, Scheduler, Signal, Waiting,
};
use azpy_core::game::{Action, Game, Payoff, Turn};
use azpy_core::search::Search;
use azpy_core::text::Position;
use azpy_games::any::AnyGame;
use azpy_games::each;
use pyo3::prelude::*;

use crate::batch::{same_game, try_play};
use crate::errors::{GameError, caught, copied, search_error};
use crate::evaluators::AnyEvaluator;
use crate::fault::Fault;
use crate::position::{AnyState, Fallible};
use crate::requests::{AnyGameTree, Ending, PendingRequest, QueuedRequest, Signals};
use crate::result::SearchResult;
use crate::settings::Whole;
use crate::threads::locked;

/// Pipelines of an engine: the batch of one is evaluated while the trees of the other grow.
pub(crate) const PIPELINES: usize = 2;

/// Settings of one network of an engine.
pub(crate) struct ModelSettings {
    pub(crate) config: SearchConfig,
    /// Tells networks apart.
    pub(crate) number: u64,
    pub(crate) max_batch: usize,
    /// Fewer rows than this are one batch.
    pub(crate) split_from: usize,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) workers: Workers,
    /// Held during a call of the evaluator.
    pub(crate) device: Arc<Mutex<()>>,
}

/// One network of an engine and one game. No method is called with the GIL, for they wait for each other, and some of them
/// for the GIL.
pub(crate) trait AnyModel: EngineModel + Any + Send + Sync {
    /// Has a position searched; `allowed` are the root's actions to choose among, none for all.
    fn submit(&self, state: &AnyState, request: QueuedRequest, allowed: Vec<Action>) -> PyResult<()>;
    /// A game of this model's, which keeps its tree.
    fn game_tree(&self, state: &AnyState, model: &str, seed: u64) -> PyResult<Arc<dyn AnyGameTree>>;
    /// The same game for another network.
    fn renewed(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel>;
    /// A round of this pipeline. `filled` is called when it has its searches, `report` with requests that have a report.
    fn round(
        &self,
        pipeline: usize,
        quiet: bool,
        filled: &dyn Fn(),
        report: &mut dyn FnMut(&Arc<PendingRequest>),
    ) -> Vec<Done>;
    /// Requests that have ended in the queue.
    fn look(&self) -> Vec<Done>;
}

/// A request that has ended.
pub(crate) struct Done {
    pub(crate) request: Arc<PendingRequest>,
    pub(crate) ending: Ending,
}

/// A model of an engine for requests about this state's game.
pub(crate) fn model_for(state: &AnyState, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel> {
    each!(state.clone().by_payoff(), first => Arc::new(Model::new(&first, settings, evaluator)))
}

fn failed<P: Payoff>(root: &AnyGame<P>) -> bool {
    root.fault().is_some_and(Fault::is_set)
}

/// The one implementation of [`AnyModel`].
struct Model<P: Payoff> {
    /// Of the game and size that all requests are about.
    first: AnyGame<P>,
    config: SearchConfig,
    /// Tells networks apart.
    number: u64,
    /// The evaluator's name for its network, for the cache.
    network: Option<u64>,
    evaluator: Mutex<AnyEvaluator>,
    device: Arc<Mutex<()>>,
    queue: Queue<AnyGame<P>, Arc<PendingRequest>>,
    pipelines: [Mutex<Pipeline<AnyGame<P>, Arc<PendingRequest>>>; PIPELINES],
}

impl<P: Payoff> Model<P> {
    fn new(first: &AnyGame<P>, settings: ModelSettings, evaluator: AnyEvaluator) -> Self {
        let ModelSettings { config, number, max_batch, split_from, cache, workers, device } = settings;
        let mut scheduler =
            Scheduler::new(config, max_batch, split_from, failed, |request: &Arc<PendingRequest>| request.signal());
        // A game written in Python is touched by one thread at a time.
        let workers = if first.fault().is_some() { Workers::Serial } else { workers };
        let pipelines = [(); PIPELINES].map(|()| Mutex::new(scheduler.pipeline(workers.clone(), cache.clone())));
        Self {
            first: first.clone(),
            config,
            number,
            network: evaluator.network_id(),
            evaluator: Mutex::new(evaluator),
            device,
            queue: Queue::new(scheduler),
            pipelines,
        }
    }

    /// The end of a request. Its search goes back to its game, or into its result.
    fn done(&self, open: OpenSearch<AnyGame<P>, Arc<PendingRequest>>, error: Option<PyErr>) -> Done {
        let OpenSearch { mut search, request: Request { token: request, .. }, .. } = open;
        search.drop_spare();
        // A Python game's own error comes before whatever followed from it.
        let broken = search.root().check().err();
        let fault = || search.fault().map(|fault| GameError::new_err(fault.to_string()));
        let error = broken.or(error).or_else(fault);
        let sound = error.is_none();
        let is_awaited = request.signal() != Signal::Cancel;
        let game = request.game.as_ref().and_then(|game| (&**game as &dyn Any).downcast_ref::<OpenGame<P>>());
        let result = if let Some(game) = game {
            let found = || SearchResult::in_passing(&search, &request.request);
            let result = error.map_or_else(|| caught(found), Err);
            locked(&game.game_tree).give_back(search, sound);
            result
        } else {
            // The standard errors are read here, and not in the thread that gives all answers.
            let has_errors = request.request.standard_errors;
            let found = || SearchResult::owning(self.first.game().to_owned(), Box::new(search), has_errors);
            error.map_or_else(|| caught(found), Err)
        };
        Done { ending: is_awaited.then_some(result), request }
    }

    /// Has a pipeline take searches, and these gather leaves, until its batch is full or nothing waits.
    fn fill(&self, pipeline: &mut Pipeline<AnyGame<P>, Arc<PendingRequest>>, quiet: bool) {
        loop {
            let now = Instant::now();
            if !(self.queue.scheduler(now).give(pipeline, now, quiet) && pipeline.gather(self.network)) {
                return;
            }
        }
    }

    /// One part of a round after the other.
    fn work(
        &self,
        pipeline: &mut Pipeline<AnyGame<P>, Arc<PendingRequest>>,
        quiet: bool,
        filled: &dyn Fn(),
    ) -> PyResult<()> {
        self.fill(pipeline, quiet);
        filled();
        if !pipeline.needs_evaluator() {
            let outcome = pipeline.evaluate(&mut AnyEvaluator::Uniform);
            return pipeline.take_up(outcome).map_err(search_error);
        }
        let turn = self.device.try_lock().unwrap_or_else(|_| {
            let turn = locked(&self.device);
            // Requests have come while the batch of the other pipeline was evaluated.
            self.fill(pipeline, quiet);
            turn
        });
        let mut evaluator = locked(&self.evaluator);
        let outcome = pipeline.evaluate(&mut *evaluator);
        // The device goes on with the other pipeline's batch while this one's answers are taken up.
        drop((evaluator, turn));
        pipeline.take_up(outcome).map_err(search_error)
    }
}

impl<P: Payoff> EngineModel for Model<P> {
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

impl<P: Payoff> AnyModel for Model<P> {
    fn submit(&self, state: &AnyState, request: QueuedRequest, allowed: Vec<Action>) -> PyResult<()> {
        let root = same_game(state, &self.first)?;
        let mut search = Search::new(root, self.config);
        if !allowed.is_empty() {
            search.allow(allowed);
        }
        self.queue.arrive(search, request);
        Ok(())
    }

    fn game_tree(&self, state: &AnyState, model: &str, seed: u64) -> PyResult<Arc<dyn AnyGameTree>> {
        let root = same_game::<P, _>(state, &self.first)?.copied()?;
        let game_tree = Mutex::new(GameTree::new(root, self.config, seed));
        let (model, spec) = (model.to_owned(), self.first.game().to_owned());
        Ok(Arc::new(OpenGame { game_tree, model, spec, pondering: Mutex::default() }))
    }

    fn renewed(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel> {
        Arc::new(Self::new(&self.first, settings, evaluator))
    }

    fn round(
        &self,
        pipeline: usize,
        quiet: bool,
        filled: &dyn Fn(),
        report: &mut dyn FnMut(&Arc<PendingRequest>),
    ) -> Vec<Done> {
        let mut pipeline = locked(&self.pipelines[pipeline]);
        let pipeline = &mut *pipeline;
        let outcome = caught(|| Ok(self.work(pipeline, quiet, filled)));
        let error = match outcome {
            Ok(outcome) => outcome.err(),
            Err(panic) => {
                pipeline.fail();
                Some(panic)
            }
        };
        let now = Instant::now();
        pipeline.report(now, |open| {
            let request = &open.request.token;
            if let Ok(found) = caught(|| SearchResult::in_passing(&open.search, &request.request))
                && request.keep_report(found)
            {
                report(request);
            }
            Instant::now()
        });
        let took = self.queue.scheduler(now).take_back(pipeline, now);
        let mut done: Vec<_> = took.ended.into_iter().map(|open| self.done(open, None)).collect();
        if let Some(error) = error {
            // A thread that has the lock of a game's tree may wait for the GIL, so no thread waits for the lock with it.
            let copies: Vec<_> = Python::attach(|py| took.failed.iter().map(|_| copied(py, &error)).collect());
            done.extend(took.failed.into_iter().zip(copies).map(|(open, copy)| self.done(open, Some(copy))));
        }
        done
    }

    fn look(&self) -> Vec<Done> {
        let now = Instant::now();
        let ended = self.queue.scheduler(now).look(now);
        ended.into_iter().map(|open| self.done(open, None)).collect()
    }
}

/// A game that goes on, the one implementation of [`AnyGameTree`].
struct OpenGame<P: Payoff> {
    game_tree: Mutex<GameTree<AnyGame<P>, Arc<PendingRequest>>>,
    model: String,
    spec: String,
    /// Of requests that end as soon as something else is asked for.
    pondering: Mutex<Vec<Arc<Signals>>>,
}

impl<P: Payoff> OpenGame<P> {
    /// The game's tree, for a thread that does not hold the GIL. Requests that ponder there stop.
    fn interrupted(&self) -> MutexGuard<'_, GameTree<AnyGame<P>, Arc<PendingRequest>>> {
        // First the lock: the thread that has it may be about to add a request that ponders.
        let game_tree = locked(&self.game_tree);
        locked(&self.pondering).drain(..).for_each(|signals| signals.stop());
        game_tree
    }
}

impl<P: Payoff> AnyGameTree for OpenGame<P> {
    fn model(&self) -> (&str, &str) {
        (&self.model, &self.spec)
    }

    fn state(&self) -> PyResult<AnyState> {
        Ok(locked(&self.game_tree).position().copied()?.paying())
    }

    fn num_played(&self) -> usize {
        locked(&self.game_tree).num_played()
    }

    fn play(&self, action: Whole) -> PyResult<Action> {
        let mut game_tree = self.interrupted();
        // Checked on a copy, so that a refused action changes nothing.
        let mut copy = game_tree.position().copied()?;
        let played = try_play(action, |action| copy.try_play(action));
        copy.check()?;
        let action = played?;
        game_tree.play(action);
        Ok(action)
    }

    fn undo(&self) -> bool {
        self.interrupted().undo()
    }

    fn search(&self, request: QueuedRequest, allowed: Vec<Action>) -> PyResult<()> {
        let mut game_tree = self.interrupted();
        check_searchable(game_tree.position())?;
        if request.priority == Priority::Ponder {
            locked(&self.pondering).push(request.token.signals.clone());
        }
        game_tree.search(request, allowed);
        Ok(())
    }

    fn go_on(&self, model: &dyn Any) -> bool {
        let Some(model) = model.downcast_ref::<Model<P>>() else {
            return false;
        };
        let next = locked(&self.game_tree).next(model.number);
        next.is_some_and(|(search, request)| {
            model.queue.arrive(search, request);
            true
        })
    }

    fn memory_bytes(&self) -> usize {
        locked(&self.game_tree).memory_bytes()
    }

    fn drop_trees(&self) {
        locked(&self.game_tree).drop_trees();
    }
}

/// Refuses a position that no search can begin at.
pub(crate) fn check_searchable<G: Game + Fallible>(root: &G) -> PyResult<()> {
    let turn = root.turn();
    root.check()?;
    if turn == Turn::Chance {
        return Err(GameError::new_err(azpy_core::game::GameFault::ChanceRoot.to_string()));
    }
    Ok(())
}
