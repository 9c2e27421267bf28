//! Games played by a network against itself, and some against an earlier one, in pipelines of slots.
//!
//! A pipeline is a thread with its own slots and evaluators: the newest network's, which plays both sides of most
//! games, and any number of opponents, each of which plays one side of some. It plays rounds: all its slots' trees grow,
//! one batch a network goes to the device, and while it is there another pipeline's trees grow. A slot whose game ends
//! hands the record over and begins the next game.
//!
//! What a game is depends on (seed, game id), the list of opponents and the networks' answers alone: each draw comes
//! from a stream keyed by (seed, game id) and the ply, so the number of pipelines, slots and threads changes nothing but
//! the speed.
//!
//! Pipelines and their owner share one small state under one lock: who may run, which evaluators are next, and the
//! finished games. Nobody holds it while growing trees or evaluating.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::batched::{RoundStats, Rounds, SearchError, Workers};
use crate::cache::Cache;
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::play::{GameInPlay, begin_move, finish_move};
use crate::process::Process;
use crate::record::{FAST_SEARCH, GameRecord, Ply};
use crate::search::Search;
use crate::timing::{Clocked, PipelineStats};

pub use crate::play::{SelfPlayConfig, choose, sharpen};

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
struct Shared<E: Evaluator<G>, G: Game> {
    state: Mutex<State<E::Error, E>>,
    changed: Condvar,
    _game: std::marker::PhantomData<fn() -> G>,
}

struct State<Error, E> {
    stop: bool,
    paused: bool,
    next_game: u64,
    end: Option<u64>,
    finished: VecDeque<GameRecord>,
    /// Finished games that may wait before the pipelines do.
    room: usize,
    error: Option<SelfPlayError<Error>>,
    /// Pipelines still at work, and how many of them wait.
    running: usize,
    waiting: usize,
    /// Evaluators to change to, one a pipeline.
    next: Vec<Option<E>>,
    /// Opponents of the games to come, for each pipeline.
    next_opponents: Vec<Option<Vec<E>>>,
    /// Pipelines that have ended: they take no evaluator any more.
    ended: Vec<bool>,
    /// `Resign::below` from each pipeline's next round on.
    resign_below: f64,
    stats: SelfPlayStats,
    /// One a pipeline.
    pipelines: Vec<PipelineStats>,
    /// Since when a pipeline stands still, and whether it is paused (else it waits for its owner).
    standing: Vec<Option<(Instant, bool)>>,
}

impl<Error, E> State<Error, E> {
    /// Adds the time that a pipeline has stood still, if it does, up to now.
    fn count_standing(&mut self, pipeline: usize) {
        if let Some((since, paused)) = self.standing[pipeline].take() {
            let stats = &mut self.pipelines[pipeline];
            *(if paused { &mut stats.paused } else { &mut stats.waiting }) += since.elapsed();
        }
    }
}

impl<E: Evaluator<G>, G: Game> Shared<E, G> {
    fn lock(&self) -> MutexGuard<'_, State<E::Error, E>> {
        // Each change under the lock is complete in itself, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Self-play going on in its own threads.
pub struct SelfPlay<E: Evaluator<G> + 'static, G: Game>
where
    E::Error: 'static,
{
    shared: Arc<Shared<E, G>>,
    threads: Vec<JoinHandle<()>>,
    process: Process,
}

impl<E: Evaluator<G> + 'static, G: Game> SelfPlay<E, G>
where
    E::Error: 'static,
{
    /// Starts playing from `start`. For each pipeline there is a list of evaluators, of the same networks in the same
    /// order: first that of the newest network, then those of its opponents, if any.
    ///
    /// # Errors
    /// When a thread cannot be started.
    ///
    /// # Panics
    /// When a pipeline has no evaluator.
    pub fn start(
        start: &G,
        config: SelfPlayConfig,
        layout: &Layout,
        networks: Vec<Vec<E>>,
        workers: &Workers,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, String> {
        let pipelines = networks.len();
        let shared = Arc::new(Shared {
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
                resign_below: config.resign.below,
                stats: SelfPlayStats::default(),
                pipelines: vec![PipelineStats::default(); pipelines],
                standing: vec![None; pipelines],
            }),
            changed: Condvar::new(),
            _game: std::marker::PhantomData,
        });
        let mut selfplay = Self { shared, threads: Vec::new(), process: Process::current() };
        for (index, evaluators) in networks.into_iter().enumerate() {
            assert!(!evaluators.is_empty(), "pipeline {index} has no evaluator");
            // The first pipelines have one slot more where they do not divide evenly.
            let slots = layout.slots / pipelines + usize::from(index < layout.slots % pipelines);
            let pipeline = Pipeline {
                index,
                config: config.clone(),
                start: start.clone(),
                rounds: Rounds::new(workers.clone(), cache.clone()),
                opponents: evaluators.len() - 1,
                evaluators,
                searches: Vec::new(),
                games: Vec::new(),
                spent: PipelineStats::default(),
                began: Instant::now(),
            };
            let shared = selfplay.shared.clone();
            let inside = (layout.inside)();
            let thread = std::thread::Builder::new()
                .name(format!("azpy-pipeline-{index}"))
                .spawn(move || {
                    let mut pipeline = Some(pipeline);
                    inside(&mut || pipeline.take().into_iter().for_each(|pipeline| pipeline.run(&shared, slots)));
                })
                .map_err(|error| format!("cannot start a pipeline thread: {error}"))?;
            selfplay.threads.push(thread);
        }
        Ok(selfplay)
    }

    /// Waits at most `patience` for a finished game. `Ok(None)` is a time-out or the end; see [`SelfPlay::is_over`].
    ///
    /// # Errors
    /// What stopped the pipelines, once.
    pub fn next(&self, patience: Duration) -> Result<Option<GameRecord>, SelfPlayError<E::Error>> {
        let until = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            // An error first: games of a broken run are no use to anyone who was not told of it.
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if let Some(record) = state.finished.pop_front() {
                self.shared.changed.notify_all();
                return Ok(Some(record));
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.running == 0 || left.is_zero() {
                return Ok(None);
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the finished games that are there, without waiting for others.
    #[must_use]
    pub fn take_finished(&self) -> Vec<GameRecord> {
        let games = self.shared.lock().finished.drain(..).collect();
        self.shared.changed.notify_all();
        games
    }

    /// Puts a game back that was taken: it is the next one again.
    pub fn put_back(&self, game: GameRecord) {
        self.shared.lock().finished.push_front(game);
        self.shared.changed.notify_all();
    }

    /// Whether all games asked for have been handed over (or an error ended them).
    #[must_use]
    pub fn is_over(&self) -> bool {
        let state = self.shared.lock();
        state.running == 0 && state.finished.is_empty() && state.error.is_none()
    }

    /// Holds the pipelines at the end of their rounds, or lets them go on.
    pub fn pause(&self, paused: bool) {
        self.shared.lock().paused = paused;
        self.shared.changed.notify_all();
    }

    /// Waits at most `patience` until no pipeline is in a round (after `pause(true)`).
    #[must_use]
    pub fn is_paused(&self, patience: Duration) -> bool {
        self.wait_until(patience, |state| state.waiting == state.running)
    }

    /// Leaves evaluators of a new newest network for the pipelines, one each, to be taken between rounds.
    ///
    /// # Errors
    /// When their number is not that of the pipelines.
    pub fn swap(&self, evaluators: Vec<E>) -> Result<(), SelfPlayError<E::Error>> {
        let mut state = self.shared.lock();
        if evaluators.len() != state.next.len() {
            let (given, pipelines) = (evaluators.len(), state.next.len());
            return Err(SelfPlayError::Swap(format!("{given} evaluators for {pipelines} pipelines")));
        }
        state.next = evaluators.into_iter().map(Some).collect();
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Leaves new opponents for the pipelines, a list for each, to be taken between rounds. Games that have begun go on
    /// with the opponents that they have.
    ///
    /// # Errors
    /// When their number is not that of the pipelines.
    pub fn set_opponents(&self, opponents: Vec<Vec<E>>) -> Result<(), SelfPlayError<E::Error>> {
        let mut state = self.shared.lock();
        if opponents.len() != state.next_opponents.len() {
            let (given, pipelines) = (opponents.len(), state.next_opponents.len());
            return Err(SelfPlayError::Swap(format!("{given} lists of opponents for {pipelines} pipelines")));
        }
        state.next_opponents = opponents.into_iter().map(Some).collect();
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits at most `patience` until every pipeline has taken the evaluator of the last `swap`.
    #[must_use]
    pub fn is_swapped(&self, patience: Duration) -> bool {
        self.wait_until(patience, |state| {
            let mut pipelines = state.next.iter().zip(&state.ended);
            pipelines.all(|(next, ended)| next.is_none() || *ended)
        })
    }

    /// Changes `Resign::below` from each pipeline's next round on.
    pub fn set_resign_below(&self, below: f64) {
        self.shared.lock().resign_below = below;
    }

    /// Waits at most `patience` for something that the pipelines do; true at once when none is left to do it.
    fn wait_until(&self, patience: Duration, done: impl Fn(&State<E::Error, E>) -> bool) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            if state.running == 0 || done(&state) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Totals so far.
    #[must_use]
    pub fn stats(&self) -> SelfPlayStats {
        self.shared.lock().stats
    }

    /// Where the time of each pipeline went so far, rounds under way not included.
    #[must_use]
    pub fn pipeline_stats(&self) -> Vec<PipelineStats> {
        let mut state = self.shared.lock();
        for index in 0..state.pipelines.len() {
            let standing = state.standing[index];
            state.count_standing(index);
            state.standing[index] = standing.map(|(_, paused)| (Instant::now(), paused));
        }
        state.pipelines.clone()
    }

    /// Asks the pipelines to stop after the round they are in.
    pub fn stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }

    /// Whether every pipeline has ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }
}

impl<E: Evaluator<G> + 'static, G: Game> Drop for SelfPlay<E, G>
where
    E::Error: 'static,
{
    /// Tells the pipelines to stop and does not wait: this may be one of their own threads, or hold what they need.
    fn drop(&mut self) {
        if self.process.is_current() {
            self.stop();
        } else {
            // A fork has no pipelines. The state may be locked for ever, and the handles are of threads that are not there.
            std::mem::forget(std::mem::take(&mut self.threads));
        }
    }
}

struct Pipeline<E, G: Game> {
    index: usize,
    config: SelfPlayConfig,
    start: G,
    rounds: Rounds<G>,
    /// The newest network's, those of the opponents that new games may have, and those that only games in play have.
    evaluators: Vec<E>,
    /// How many opponents new games may have.
    opponents: usize,
    /// The slots: their searches and their games, in step.
    searches: Vec<Search<G>>,
    games: Vec<GameInPlay>,
    /// What is not handed over yet, and since when.
    spent: PipelineStats,
    began: Instant,
}

impl<E: Evaluator<G>, G: Game> Pipeline<E, G> {
    fn run(mut self, shared: &Shared<E, G>, slots: usize) {
        let index = self.index;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.play(shared, slots)));
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(SelfPlayError::Search(error)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Some(SelfPlayError::Panic(text.unwrap_or_else(|| "a panic without a text".into())))
            }
        };
        let mut state = shared.lock();
        state.running -= 1;
        state.ended[index] = true;
        if let Some(error) = error {
            state.stop = true;
            state.error.get_or_insert(error);
        }
        shared.changed.notify_all();
    }

    fn play(&mut self, shared: &Shared<E, G>, slots: usize) -> Result<(), SearchError<E::Error>> {
        self.began = Instant::now();
        self.refill(shared, slots);
        while !self.searches.is_empty() {
            self.check()?;
            let clocked = |inner| Clocked { inner, evaluating: Duration::ZERO };
            let mut evaluators: Vec<_> = self.evaluators.iter_mut().map(clocked).collect();
            self.rounds.run(&mut self.searches, &mut evaluators)?;
            self.spent.evaluating += evaluators.iter().map(|clocked| clocked.evaluating).sum::<Duration>();
            self.spent.rounds += 1;
            let networks = self.networks();
            let config = &self.config;
            let mut slots_in_play: Vec<_> = self.searches.iter_mut().zip(&mut self.games).collect();
            self.rounds.workers().for_each(&mut slots_in_play, |(search, game)| {
                // Games end and begin here; a search that is not done has nothing to be told.
                if search.is_done() {
                    finish_move(search, game, config, &networks);
                    begin_move(search, game, config, &networks);
                }
            });
            self.check()?;
            let mut over = Vec::new();
            for index in (0..self.games.len()).rev().filter(|&index| self.games[index].over).collect::<Vec<_>>() {
                self.searches.swap_remove(index);
                over.push(self.games.swap_remove(index).into_record());
            }
            if !self.hand_over(shared, over) {
                return Ok(());
            }
            self.refill(shared, slots);
        }
        Ok(())
    }

    /// What records call the networks.
    fn networks(&self) -> Vec<u64> {
        self.evaluators.iter().map(|evaluator| evaluator.network().unwrap_or(0)).collect()
    }

    /// Has new games draw from these opponents, and keeps the old ones that games in play still have.
    fn take_opponents(&mut self, fresh: Vec<E>) {
        let mut old: Vec<_> = self.evaluators.drain(1..).map(Some).collect();
        self.opponents = fresh.len();
        self.evaluators.extend(fresh);
        let mut places = vec![0; old.len()];
        for (search, game) in self.searches.iter_mut().zip(&mut self.games) {
            let Some(opponent) = &mut game.opponent else {
                continue;
            };
            let place = opponent.network - 1;
            if let Some(evaluator) = old[place].take() {
                places[place] = self.evaluators.len();
                self.evaluators.push(evaluator);
            }
            opponent.network = places[place];
            if search.network > 0 {
                search.network = places[place];
            }
        }
    }

    /// Whether every game keeps its promises.
    fn check(&self) -> Result<(), SearchError<E::Error>> {
        let fault = self.games.iter().enumerate().find_map(|(slot, game)| Some((slot, game.fault.clone()?)));
        fault.map_or(Ok(()), |(search, fault)| Err(SearchError::Game { search, fault }))
    }

    /// Begins games until every slot has one or none is left to begin.
    fn refill(&mut self, shared: &Shared<E, G>, slots: usize) {
        while self.searches.len() < slots {
            let game_id = {
                let mut state = shared.lock();
                if state.stop || state.end.is_some_and(|end| state.next_game >= end) {
                    return;
                }
                state.next_game += 1;
                state.next_game - 1
            };
            let mut game = GameInPlay::new(&self.config, game_id, self.opponents);
            let mut search = Search::new(self.start.clone(), self.config.search, 0);
            begin_move(&mut search, &mut game, &self.config, &self.networks());
            // A game without a single search (over at once, or all opening) still counts.
            if game.over {
                self.hand_over(shared, vec![game.into_record()]);
            } else {
                self.searches.push(search);
                self.games.push(game);
            }
        }
    }

    /// Hands finished games over, waits where it has to, takes a new evaluator. Says whether to go on.
    fn hand_over(&mut self, shared: &Shared<E, G>, over: Vec<GameRecord>) -> bool {
        let mut state = shared.lock();
        let rounds = std::mem::take(&mut self.rounds.stats);
        let stats = &mut state.stats;
        stats.games += over.len() as u64;
        for record in &over {
            stats.positions += record.samples() as u64;
            let count = |is: fn(&&Ply) -> bool| record.plies.iter().filter(is).count() as u64;
            stats.searches += count(|ply| ply.is_searched());
            stats.fast_searches += count(|ply| ply.flags & FAST_SEARCH != 0);
            stats.opponent_games += u64::from(record.has_opponent());
            stats.resigned += u64::from(record.resigned);
            stats.controls += u64::from(record.control && record.resign_ply.is_some());
            stats.false_resignations += u64::from(record.false_resignation());
        }
        stats.rounds.add(&rounds);
        let mut spent = std::mem::take(&mut self.spent);
        spent.growing = self.began.elapsed().saturating_sub(spent.evaluating);
        state.pipelines[self.index].add(&spent);
        if !over.is_empty() {
            state.finished.extend(over);
            shared.changed.notify_all();
        }
        let mut waiting = false;
        loop {
            if let Some(evaluator) = state.next[self.index].take() {
                self.evaluators[0] = evaluator;
                shared.changed.notify_all();
            }
            if let Some(opponents) = state.next_opponents[self.index].take() {
                self.take_opponents(opponents);
            }
            self.config.resign.below = state.resign_below;
            let go_on = !state.paused && state.finished.len() < state.room;
            state.count_standing(self.index);
            if state.stop || go_on {
                self.began = Instant::now();
                state.waiting -= usize::from(waiting);
                return !state.stop;
            }
            // Said once: two pipelines that told each other of every wake-up would never sleep.
            if !waiting {
                waiting = true;
                state.waiting += 1;
                shared.changed.notify_all();
            }
            state.standing[self.index] = Some((Instant::now(), state.paused));
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
