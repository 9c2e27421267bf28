//! What the owner of self-play and its pipelines share: one small state under one lock.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::PoisonError;
#[cfg(not(test))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

#[cfg(test)]
use shuttle::sync::{Condvar, Mutex, MutexGuard};

use crate::batched::{RoundStats, SearchError};
use crate::selfplay::record::GameRecord;
use crate::selfplay::timing::PipelineStats;

/// How many games are played, and how they start.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Games at once, over all pipelines.
    pub slots: usize,
    /// Id of the first game.
    pub first_game: u64,
    /// Games to play, further ones by [`crate::selfplay::SelfPlay::admit`]; `None`: for ever.
    pub games: Option<u64>,
    /// The first games of the slots begin one after another, while the longest game comes to so many plies; 0: all at
    /// once. Games that begin together end together.
    pub stagger: usize,
    /// Called before a pipeline's thread begins; what it gives runs the thread's whole life, for owners who count threads
    /// or whose evaluators want something set up once in each.
    pub inside: fn() -> Inside,
}

/// One slot, and games for ever.
impl Default for Layout {
    fn default() -> Self {
        Self { slots: 1, first_game: 0, games: None, stagger: 0, inside: || Box::new(|body| body()) }
    }
}

/// Runs a closure once.
pub type Inside = Box<dyn FnOnce(&mut (dyn FnMut() + Send)) + Send>;

/// Why self-play stopped.
#[derive(Debug)]
pub enum SelfPlayError<E> {
    /// A round failed.
    Search(SearchError<E>),
    /// The number of new evaluators differs from the number of pipelines.
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
    /// Over finished rounds.
    pub rounds: RoundStats,
}

/// What the owner and the pipelines share.
pub(crate) struct Shared<E, Error> {
    pub(crate) state: Mutex<State<E, Error>>,
    pub(crate) changed: Condvar,
}

/// The state behind the lock.
pub(crate) struct State<E, Error> {
    pub(crate) stop: bool,
    pub(crate) paused: bool,
    /// Ids of the games that no slot has begun, in the order in which they begin.
    pub(crate) queue: VecDeque<Range<u64>>,
    /// Games that began in another process, by id: they go on from there.
    pub(crate) begun: HashMap<u64, GameRecord>,
    /// The games that were in play when the pipelines stopped, as far as they came.
    pub(crate) unfinished: Vec<GameRecord>,
    /// Games that have begun and are not handed over.
    pub(crate) in_play: usize,
    pub(crate) finished: VecDeque<GameRecord>,
    /// Finished games that may wait before the pipelines do.
    pub(crate) room: usize,
    pub(crate) error: Option<SelfPlayError<Error>>,
    /// Whether a pipeline has failed. Later failures are not reported, because they probably have the same cause.
    pub(crate) failed: bool,
    /// Pipelines still at work, and how many of them wait.
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Evaluators to change to, one a pipeline.
    pub(crate) next: Vec<Option<E>>,
    /// Pipelines that have ended: they take no evaluator any more.
    pub(crate) ended: Vec<bool>,
    /// The score to beat of the next games, in place of the option.
    pub(crate) score_to_beat: Option<f32>,
    pub(crate) stats: SelfPlayStats,
    /// One a pipeline.
    pub(crate) pipelines: Vec<PipelineStats>,
    /// Since when a pipeline is waiting, and why.
    pub(crate) standing: Vec<Option<(Instant, Standing)>>,
}

/// Why a pipeline is waiting.
#[derive(Clone, Copy)]
pub(crate) enum Standing {
    /// Its owner asked for it.
    Paused,
    /// It has no game, and there is none to begin.
    Idle,
    /// Enough finished games wait to be taken.
    Waiting,
}

impl<E, Error> State<E, Error> {
    /// The next game to begin, if there is one: its id, its score to beat, and its first plies if it has begun in another
    /// process.
    pub(crate) fn begin_game(&mut self) -> Option<(u64, Option<f32>, Option<GameRecord>)> {
        let range = self.queue.front_mut()?;
        let game_id = range.start;
        range.start += 1;
        if range.is_empty() {
            self.queue.pop_front();
        }
        self.in_play += 1;
        Some((game_id, self.score_to_beat, self.begun.remove(&game_id)))
    }

    /// Whether no game is in play or waiting, or all pipelines have ended.
    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0 || (self.in_play == 0 && self.queue.is_empty())
    }

    /// Adds the time that a pipeline has stood still, if it does, up to now.
    pub(crate) fn count_standing(&mut self, pipeline: usize) {
        if let Some((since, why)) = self.standing[pipeline].take() {
            let stats = &mut self.pipelines[pipeline];
            *match why {
                Standing::Paused => &mut stats.paused,
                Standing::Idle => &mut stats.idle,
                Standing::Waiting => &mut stats.waiting,
            } += since.elapsed();
        }
    }
}

impl<E, Error> Shared<E, Error> {
    /// Before the first game of so many pipelines.
    pub(crate) fn new(layout: &Layout, pipelines: usize) -> Self {
        let end = layout.games.map_or(u64::MAX, |games| layout.first_game + games);
        let ids = layout.first_game..end;
        Self {
            state: Mutex::new(State {
                stop: false,
                paused: false,
                queue: VecDeque::from_iter((!ids.is_empty()).then_some(ids)),
                begun: HashMap::new(),
                unfinished: Vec::new(),
                in_play: 0,
                finished: VecDeque::new(),
                room: layout.slots.max(64),
                error: None,
                failed: false,
                running: pipelines,
                waiting: 0,
                next: (0..pipelines).map(|_| None).collect(),
                ended: vec![false; pipelines],
                score_to_beat: None,
                stats: SelfPlayStats::default(),
                pipelines: vec![PipelineStats::default(); pipelines],
                standing: vec![None; pipelines],
            }),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E, Error>> {
        // Each change under the lock is complete in itself, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the pipelines to stop after the round they are in.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }
}
