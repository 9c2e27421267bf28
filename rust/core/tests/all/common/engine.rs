//! A scheduler with one pipeline, games that can fail, and a network that notes its batches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{finish, hashed_answer};
use azpy_core::batched::{SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{OpenSearch, Pipeline, Priority, Request, Scheduler, Signal, Took};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Action, Game, PovValue, Sizes, Turn, Value};
use azpy_core::rng::mix;
use azpy_core::search::Search;
use azpy_core::toy::Toy;

/// How a game fails, if it does.
#[derive(Clone, Copy, PartialEq)]
pub enum Fails {
    Never,
    /// It breaks the contract: a player without actions.
    Rules,
    /// As games in Python fail: as it is played, or as it is encoded.
    Playing,
    Encoding,
}

/// A toy that somebody asks about; equal ones of different owners are told apart by the tests alone.
#[derive(Clone)]
pub struct Asked {
    pub toy: Toy,
    pub who: usize,
    pub plies: usize,
    pub fails: Fails,
    /// The legal actions at the root, if these are not all.
    pub only: Option<Vec<Action>>,
    pub failed: Arc<AtomicBool>,
}

impl Asked {
    pub fn new(who: usize, toy: Toy) -> Self {
        Self { toy, who, plies: 0, fails: Fails::Never, only: None, failed: Arc::default() }
    }
    pub fn random(who: usize) -> Self {
        Self::new(who, Toy::random(who as u64, 7, true))
    }
    pub fn failing(who: usize, fails: Fails) -> Self {
        Self { fails, ..Self::new(who, Toy::countdown(12)) }
    }
}

impl Game for Asked {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: 8, obs_shape: self.toy.obs_shape(), max_plies: self.toy.max_plies(), num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        if self.failed.load(Ordering::SeqCst) { Turn::Terminal } else { self.toy.turn() }
    }
    fn legal_actions(&self, out: &mut Vec<Action>) {
        self.toy.legal_actions(out);
        if let Some(only) = self.only.as_ref().filter(|_| self.plies == 0) {
            out.retain(|action| only.contains(action));
        }
        if self.fails == Fails::Rules && self.plies == 3 {
            out.clear();
        }
    }
    fn play(&mut self, action: Action) {
        self.toy.play(action);
        self.plies += 1;
        if self.fails == Fails::Playing && self.plies == 3 {
            self.failed.store(true, Ordering::SeqCst);
        }
    }
    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        self.toy.chance_outcomes(out);
    }
    fn outcome(&self) -> Value {
        self.toy.outcome()
    }
    fn encode(&self, row: &mut [f32]) {
        self.toy.encode(row);
        if self.fails == Fails::Encoding && self.plies == 3 {
            self.failed.store(true, Ordering::SeqCst);
        }
    }
    fn key(&self) -> u128 {
        self.toy.key()
    }
    fn render(&self) -> String {
        self.toy.render()
    }
}

pub fn broken(game: &Asked) -> bool {
    game.failed.load(Ordering::SeqCst)
}

/// The hashed answers; notes whose rows were in each batch. It has a clock that stands still but for its own work.
pub struct Recording {
    pub batches: Vec<Vec<usize>>,
    pub fail_at: usize,
    pub cached: bool,
    pub now: Instant,
    pub a_row_takes: Duration,
}

impl Recording {
    pub fn new() -> Self {
        let (now, a_row_takes) = (Instant::now(), Duration::ZERO);
        Self { batches: Vec::new(), fail_at: usize::MAX, cached: false, now, a_row_takes }
    }
    pub fn sizes(&self) -> Vec<usize> {
        self.batches.iter().map(Vec::len).collect()
    }
}

impl Evaluator<Asked> for Recording {
    type Error = &'static str;
    fn evaluate_batch(&mut self, batch: Batch<'_, Asked>) -> Result<(), Self::Error> {
        let mut observations = vec![f32::NAN; batch.rows() * 3];
        batch.fill(0..batch.rows(), &mut observations);
        if batch.states.iter().any(broken) {
            return Err("a game failed");
        }
        self.batches.push(batch.states.iter().map(|state| state.who).collect());
        self.now += self.a_row_takes * batch.rows() as u32;
        if self.batches.len() > self.fail_at {
            return Err("asked to fail");
        }
        for (row, observation) in observations.chunks(3).enumerate() {
            let range = batch.range(row);
            batch.values[row] =
                PovValue(hashed_answer(observation, &batch.actions[range.clone()], &mut batch.logits[range]));
        }
        Ok(())
    }
    fn network(&self) -> Option<u64> {
        self.cached.then_some(1)
    }
}

thread_local! {
    /// Owners who want something else than that their searches go on.
    static SIGNALS: RefCell<HashMap<usize, Signal>> = RefCell::default();
}

pub fn signal(who: usize, signal: Signal) {
    SIGNALS.with_borrow_mut(|signals| signals.insert(who, signal));
}

pub fn signal_of(who: &usize) -> Signal {
    SIGNALS.with_borrow(|signals| signals.get(who).copied().unwrap_or(Signal::Continue))
}

pub type Ended = OpenSearch<Asked, usize>;

/// A scheduler, its pipelines, and the network that answers.
pub struct Serving {
    pub scheduler: Scheduler<Asked, usize>,
    pub pipelines: [Pipeline<Asked, usize>; 2],
    pub evaluator: Recording,
}

impl Serving {
    /// Whose batches are not shared out to several pipelines.
    pub fn new(config: SearchConfig, max_batch: usize, cache: Option<Arc<Cache>>) -> Self {
        Self::splitting(config, max_batch, usize::MAX, cache)
    }

    pub fn splitting(config: SearchConfig, max_batch: usize, from: usize, cache: Option<Arc<Cache>>) -> Self {
        let mut scheduler = Scheduler::new(config, max_batch, from, broken, signal_of);
        let pipelines = [0, 1].map(|_| scheduler.pipeline(Workers::new(2).unwrap(), cache.clone()));
        Self { scheduler, pipelines, evaluator: Recording { cached: cache.is_some(), ..Recording::new() } }
    }

    pub fn join(&mut self, root: Asked, request: Request<usize>) {
        let search = self.scheduler.search(root);
        self.scheduler.join(search, request, self.evaluator.now);
    }

    /// A request for a search that does not end by itself.
    pub fn join_endless(&mut self, who: usize, deadline: Option<Instant>) {
        self.join(Asked::new(who, Toy::chain(4000)), Request { deadline, ..request(who, u32::MAX) });
    }

    /// A request about a game that its number chooses.
    pub fn join_random(&mut self, who: usize, simulations: u32) {
        self.join(Asked::random(who), request(who, simulations));
    }

    /// The first half of a pipeline's round: searches gather leaves until the batch is full.
    pub fn gather(&mut self, pipeline: usize) {
        let (now, network, pipeline) = (self.evaluator.now, self.evaluator.network(), &mut self.pipelines[pipeline]);
        while self.scheduler.give(pipeline, now, true) && pipeline.gather(network) {}
    }

    /// The batch is evaluated, and the searches take its answers up.
    pub fn evaluate(&mut self, pipeline: usize) -> Result<(), SearchError<&'static str>> {
        let outcome = self.pipelines[pipeline].evaluate(&mut self.evaluator);
        self.pipelines[pipeline].take_up(outcome)
    }

    /// The searches go back to the scheduler, those that ended and failed to their owners.
    pub fn take_back(&mut self, pipeline: usize) -> Took<Asked, usize> {
        self.scheduler.take_back(&mut self.pipelines[pipeline], self.evaluator.now)
    }

    /// One round of the first pipeline. `report` is told of searches whose report is due, and takes as long as it says.
    pub fn round_with_reports(&mut self, mut report: impl FnMut(&Ended) -> Duration) -> Vec<Ended> {
        self.gather(0);
        self.evaluate(0).unwrap();
        let now = &mut self.evaluator.now;
        self.pipelines[0].report(*now, |open| {
            *now += report(open);
            *now
        });
        let took = self.take_back(0);
        assert!(took.failed.is_empty());
        took.ended
    }

    /// One round of the first pipeline, and the searches that ended in it.
    pub fn round(&mut self) -> Vec<Ended> {
        self.round_with_reports(|_| Duration::ZERO)
    }

    /// Rounds in which no search ends.
    pub fn rounds(&mut self, count: usize) {
        (0..count).for_each(|_| assert!(self.round().is_empty()));
    }

    /// Rounds until all is done.
    pub fn finish(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        while !self.scheduler.is_empty() {
            ended.append(&mut self.round());
        }
        ended
    }

    /// Whose rows were in how many batches.
    pub fn turns(&self, who: usize) -> usize {
        self.evaluator.batches.iter().flatten().filter(|&&other| other == who).count()
    }
}

pub fn one_leaf() -> SearchConfig {
    SearchConfig { eval_batch: 1, ..SearchConfig::default() }
}

pub fn request(who: usize, simulations: u32) -> Request<usize> {
    let (deadline, priority, report_every) = (None, Priority::Play, None);
    Request { token: who, simulations, seed: who as u64, run: 0, deadline, priority, report_every }
}

/// The owners of some searches, in order.
pub fn tokens(open: &[Ended]) -> Vec<usize> {
    let mut tokens: Vec<_> = open.iter().map(|open| open.request.token).collect();
    tokens.sort_unstable();
    tokens
}

/// What a search of its own finds.
pub fn alone(root: &Asked, config: SearchConfig, simulations: u32, seed: u64) -> Search<Asked> {
    let mut search = Search::new(root.clone(), config);
    finish(&mut search, simulations, &[mix(seed), 0, 0], &mut Recording::new());
    search
}
