//! A scheduler with one pipeline, games that can fail, and a network that notes its batches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::hashed_answer;
use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{OpenSearch, Pipeline, Priority, Request, Scheduler, Signal};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Action, Game, PovValue, Turn, Value};
use azpy_core::search::{Search, stream_for};
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
    pub fn failing(who: usize, fails: Fails) -> Self {
        Self { fails, ..Self::new(who, Toy::countdown(12)) }
    }
}

impl Game for Asked {
    type Payoff = Value;

    fn num_actions(&self) -> usize {
        8
    }
    fn obs_shape(&self) -> [usize; 3] {
        self.toy.obs_shape()
    }
    fn max_plies(&self) -> usize {
        self.toy.max_plies()
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

/// A scheduler and one pipeline.
pub struct Serving {
    pub scheduler: Scheduler<Asked, usize>,
    pub pipeline: Pipeline<Asked, usize>,
}

impl Serving {
    pub fn join(&mut self, root: Asked, request: Request<usize>) {
        let search = self.scheduler.search(root);
        self.scheduler.join(search, request, Instant::now());
    }

    /// A round, with the searches that ended or failed in it.
    pub fn round(
        &mut self,
        evaluator: &mut Recording,
    ) -> (Result<(), SearchError<&'static str>>, Vec<Ended>, Vec<Ended>) {
        while self.scheduler.give(&mut self.pipeline, evaluator.now, true) && self.pipeline.gather(evaluator.network())
        {
        }
        let outcome = self.pipeline.evaluate(evaluator);
        let outcome = self.pipeline.take_up(outcome);
        let took = self.scheduler.take_back(&mut self.pipeline, evaluator.now);
        (outcome, took.ended, took.failed)
    }
}

pub fn serving(config: SearchConfig, max_batch: usize, cache: Option<Arc<Cache>>) -> Serving {
    let mut scheduler = Scheduler::new(config, max_batch, usize::MAX, broken, signal_of);
    let pipeline = scheduler.pipeline(Workers::new(2).unwrap(), cache);
    Serving { scheduler, pipeline }
}

pub fn one_leaf() -> SearchConfig {
    SearchConfig { eval_batch: 1, ..SearchConfig::default() }
}

pub fn request(who: usize, simulations: u32) -> Request<usize> {
    let (deadline, priority, report_every) = (None, Priority::Play, None);
    Request { token: who, simulations, seed: who as u64, run: 0, deadline, priority, report_every }
}

pub fn join(serving: &mut Serving, who: usize, simulations: u32) {
    let toy = Toy::random(who as u64, 7, true);
    serving.join(Asked::new(who, toy), request(who, simulations));
}

/// One round, and the searches that ended in it.
pub fn round(serving: &mut Serving, evaluator: &mut Recording) -> Vec<Ended> {
    let (outcome, ended, failed) = serving.round(evaluator);
    outcome.unwrap();
    assert!(failed.is_empty());
    ended
}

/// Rounds until all is done.
pub fn finish(serving: &mut Serving, evaluator: &mut Recording) -> Vec<Ended> {
    let mut ended = Vec::new();
    while !serving.scheduler.is_empty() {
        ended.append(&mut round(serving, evaluator));
    }
    ended
}

/// What a search of its own finds.
pub fn alone(root: &Asked, config: SearchConfig, simulations: u32, seed: u64) -> Search<Asked> {
    let mut search = Search::new(root.clone(), config);
    search.begin(simulations, stream_for(seed, 0, 0)).unwrap();
    let mut rounds = Rounds::new(Workers::Serial, None);
    while rounds.run(std::slice::from_mut(&mut search), &mut Recording::new()).unwrap() {}
    search
}
