//! What the owner of self-play and its pipelines share: one small state under one lock.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::batched::{RoundStats, SearchError};
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::selfplay::record::GameRecord;
use crate::selfplay::timing::PipelineStats;

/// What keeps the games going.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Games at once, over all pipelines.
    pub slots: usize,
    /// Id of the first game.
    pub first_game: u64,
    /// Games to play; `None`: for ever.
    pub games: Option<u64>,
    /// Called before a pipeline's thread begins; what it gives runs the thread's whole life, for owners who count threads
    /// or whose evaluators want something set up once in each.
    pub inside: fn() -> Inside,
}

/// Runs what it is given, once.
pub type Inside = Box<dyn FnOnce(&mut (dyn FnMut() + Send)) + Send>;

/// Why self-play stopped.
#[derive(Debug)]
pub enum SelfPlayError<E> {
    /// A round failed.
    Search(SearchError<E>),
    /// The evaluators to change to do not go with the pipelines there are.
    Swap(String),
    /// A bug: a pipeline panicked.
    Panic(String),
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfPlayStats {
    /// Finished games.
    pub games: u64,
    /// Samples of finished games.
    pub positions: u64,
    /// Searched plies of finished games, samples or not.
    pub searches: u64,
    /// Those of them with a fast search.
    pub fast_searches: u64,
    /// Games in which an opponent searched.
    pub opponent_games: u64,
    /// Games that a player gave up.
    pub resigned: u64,
    /// Control games in which a player would have done so.
    pub controls: u64,
    /// Those of them that this player did not lose.
    pub false_resignations: u64,
    /// Over finished rounds.
    pub rounds: RoundStats,
}

/// What the owner and the pipelines share.
pub(crate) struct Shared<E: Evaluator<G>, G: Game> {
    pub(crate) state: Mutex<State<E::Error, E>>,
    pub(crate) changed: Condvar,
    _game: std::marker::PhantomData<fn() -> G>,
}

/// The state behind the lock.
pub(crate) struct State<Error, E> {
    pub(crate) stop: bool,
    pub(crate) paused: bool,
    pub(crate) next_game: u64,
    pub(crate) end: Option<u64>,
    pub(crate) finished: VecDeque<GameRecord>,
    /// Finished games that may wait before the pipelines do.
    pub(crate) room: usize,
    pub(crate) error: Option<SelfPlayError<Error>>,
    /// Pipelines still at work, and how many of them wait.
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Evaluators to change to, one a pipeline.
    pub(crate) next: Vec<Option<E>>,
    /// Opponents of the games to come, for each pipeline.
    pub(crate) next_opponents: Vec<Option<Vec<E>>>,
    /// Pipelines that have ended: they take no evaluator any more.
    pub(crate) ended: Vec<bool>,
    /// `Resign::below` from each pipeline's next round on.
    pub(crate) resign_below: f64,
    pub(crate) stats: SelfPlayStats,
    /// One a pipeline.
    pub(crate) pipelines: Vec<PipelineStats>,
    /// Since when a pipeline stands still, and whether it is paused (else it waits for its owner).
    pub(crate) standing: Vec<Option<(Instant, bool)>>,
}

impl<Error, E> State<Error, E> {
    /// Adds the time that a pipeline has stood still, if it does, up to now.
    pub(crate) fn count_standing(&mut self, pipeline: usize) {
        if let Some((since, paused)) = self.standing[pipeline].take() {
            let stats = &mut self.pipelines[pipeline];
            *(if paused { &mut stats.paused } else { &mut stats.waiting }) += since.elapsed();
        }
    }
}

impl<E: Evaluator<G>, G: Game> Shared<E, G> {
    /// Before the first game of so many pipelines.
    pub(crate) fn new(layout: &Layout, pipelines: usize, resign_below: f64) -> Self {
        Self {
            state: Mutex::new(State {
                stop: false,
                paused: false,
                next_game: layout.first_game,
                end: layout.games.map(|games| layout.first_game + games),
                finished: VecDeque::new(),
                room: layout.slots.max(64),
                error: None,
                running: pipelines,
                waiting: 0,
                next: (0..pipelines).map(|_| None).collect(),
                next_opponents: (0..pipelines).map(|_| None).collect(),
                ended: vec![false; pipelines],
                resign_below,
                stats: SelfPlayStats::default(),
                pipelines: vec![PipelineStats::default(); pipelines],
                standing: vec![None; pipelines],
            }),
            changed: Condvar::new(),
            _game: std::marker::PhantomData,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E::Error, E>> {
        // Each change under the lock is complete in itself, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
