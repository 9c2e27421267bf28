//! Games played by a network against itself, in pipelines of slots.
//!
//! A pipeline is a thread with its own slots and an evaluator of its own. It plays rounds: all its slots' trees grow,
//! one batch goes to the device, and while it is there another pipeline's trees grow. A slot whose game ends hands the
//! record over and begins the next game of a queue of id ranges. A pipeline without a game waits until its owner admits
//! more.
//!
//! A game depends only on (seed, game id) and the network's answers: each draw comes from a stream keyed by
//! (seed, game id) and the ply, so the number of pipelines, slots and threads changes nothing but the speed.
//!
//! Pipelines and their owner share one small state under one lock: who may run, which evaluators are next, and the
//! finished games. Nobody holds it while growing trees or evaluating.

use std::ops::Range;
use std::sync::{Arc, PoisonError};
#[cfg(not(test))]
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(test)]
use shuttle::thread::{Builder, JoinHandle};

use crate::batched::{Rounds, Workers};
use crate::cache::Cache;
use crate::error::Error;
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::process::Process;
use crate::selfplay::pipeline::{Pipeline, Ramp};
use crate::selfplay::record::GameRecord;
use crate::selfplay::shared::{Shared, State};
use crate::selfplay::timing::PipelineStats;

mod pipeline;
mod play;
#[cfg(test)]
mod races;
pub mod record;
pub mod replay;
mod shared;
pub mod timing;

pub use play::{SelfPlayConfig, choose, sharpen, soften};
pub use shared::{Inside, Layout, SelfPlayError, SelfPlayStats};

/// Self-play running in its own threads, with evaluators whose error is `F`. Only its threads know the game type.
pub struct SelfPlay<E, F> {
    shared: Arc<Shared<E, F>>,
    threads: Vec<JoinHandle<()>>,
    process: Process,
}

impl<E: Send + 'static, F: Send + 'static> SelfPlay<E, F> {
    /// Starts playing from `start`, with a pipeline for each of the evaluators, which are of one network.
    ///
    /// # Errors
    /// When a thread cannot be started, or an option is not for this game.
    pub fn start<G: Game>(
        start: &G,
        config: SelfPlayConfig,
        layout: &Layout,
        evaluators: Vec<E>,
        workers: &Workers,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, Error>
    where
        E: Evaluator<G, Error = F>,
    {
        config.check_for(start)?;
        let pipelines = evaluators.len();
        let shared = Arc::new(Shared::new(layout, pipelines));
        let mut selfplay = Self { shared, threads: Vec::new(), process: Process::current() };
        for (index, evaluator) in evaluators.into_iter().enumerate() {
            // The first pipelines have one slot more where they do not divide evenly.
            let slots = layout.slots / pipelines + usize::from(index < layout.slots % pipelines);
            let rounds = Rounds::new(workers.clone(), cache.clone());
            let ramp = Ramp::new(slots, layout.stagger);
            let pipeline = Pipeline::new(index, config.clone(), start.clone(), rounds, evaluator, ramp);
            let shared = selfplay.shared.clone();
            let inside = (layout.inside)();
            let thread = Builder::new()
                .name(format!("azpy-pipeline-{index}"))
                .spawn(move || {
                    let mut pipeline = Some(pipeline);
                    inside(&mut || pipeline.take().into_iter().for_each(|pipeline| pipeline.run(&shared)));
                })
                .map_err(|error| Error::Threads { threads: "a pipeline thread".into(), why: error.to_string() })?;
            selfplay.threads.push(thread);
        }
        Ok(selfplay)
    }

    /// Waits at most `patience` for a finished game. `Ok(None)` is a time-out, or all games were handed over; see
    /// [`SelfPlay::is_over`].
    ///
    /// # Errors
    /// What stopped the pipelines, once.
    pub fn next(&self, patience: Duration) -> Result<Option<GameRecord>, SelfPlayError<F>> {
        let until = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            // Return the error first, so that the caller does not use games of a broken run without knowing.
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if let Some(record) = state.finished.pop_front() {
                self.shared.changed.notify_all();
                return Ok(Some(record));
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.is_idle() || left.is_zero() {
                return Ok(None);
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the finished games that are there, `most` at most, without waiting for others.
    #[must_use]
    pub fn take_finished(&self, most: usize) -> Vec<GameRecord> {
        let mut state = self.shared.lock();
        let count = most.min(state.finished.len());
        let games = state.finished.drain(..count).collect();
        drop(state);
        self.shared.changed.notify_all();
        games
    }

    /// Puts taken games back at the front, in their order.
    pub fn put_back(&self, games: Vec<GameRecord>) {
        let mut state = self.shared.lock();
        games.into_iter().rev().for_each(|game| state.finished.push_front(game));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Whether all games asked for have been handed over (or an error ended them). More may be admitted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let state = self.shared.lock();
        state.is_idle() && state.finished.is_empty() && state.error.is_none()
    }

    /// Has these games played too, after those that wait already. Gaps are played as they are: a game depends on its id,
    /// not on its neighbours. A game that is admitted twice is played twice.
    pub fn admit(&self, ids: Range<u64>) {
        if !ids.is_empty() {
            self.shared.lock().queue.push_back(ids);
            self.shared.changed.notify_all();
        }
    }

    /// Has games go on that another self-play left [`SelfPlay::unfinished`], once their ids come up. A game of another
    /// run begins anew.
    pub fn go_on(&self, games: Vec<GameRecord>) {
        self.shared.lock().begun.extend(games.into_iter().map(|game| (game.game_id, game)));
    }

    /// Takes the games that were in play when the pipelines stopped, as far as they came, if anything was searched. Those
    /// of [`SelfPlay::go_on`] whose ids did not come up are among them.
    #[must_use]
    pub fn unfinished(&self) -> Vec<GameRecord> {
        let mut state = self.shared.lock();
        let mut games = std::mem::take(&mut state.unfinished);
        games.extend(std::mem::take(&mut state.begun).into_values());
        games
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

    /// Leaves evaluators of a new network for the pipelines, one each, to be taken between rounds.
    ///
    /// # Errors
    /// When their number is not that of the pipelines.
    pub fn swap(&self, evaluators: Vec<E>) -> Result<(), SelfPlayError<F>> {
        let mut state = self.shared.lock();
        if evaluators.len() != state.next.len() {
            let (given, pipelines) = (evaluators.len(), state.next.len());
            return Err(SelfPlayError::Swap(format!("{given} evaluators for {pipelines} pipelines")));
        }
        state.next = evaluators.into_iter().map(Some).collect();
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

    /// Has the games that begin from now on count scores against this one (see [`crate::game::ranked`]), in place of the
    /// one of the options. Their records name it. A game of several players then ends self-play with an error.
    pub fn set_score_to_beat(&self, score: f32) {
        self.shared.lock().score_to_beat = Some(score);
    }

    /// Waits at most `patience` for a condition that pipelines bring about; returns true at once if all have ended.
    fn wait_until(&self, patience: Duration, done: impl Fn(&State<E, F>) -> bool) -> bool {
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
            state.standing[index] = standing.map(|(_, why)| (Instant::now(), why));
        }
        state.pipelines.clone()
    }

    /// Asks the pipelines to stop after the round they are in.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether every pipeline has ended.
    #[cfg(not(test))] // shuttle's threads do not say it
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }
}

impl<E, F> Drop for SelfPlay<E, F> {
    /// Tells the pipelines to stop and does not wait: this may be one of their own threads, or hold what they need.
    fn drop(&mut self) {
        if self.process.is_current() {
            self.shared.stop();
        } else {
            // A fork has no pipelines. The state may stay locked, and the handles belong to threads of the parent.
            std::mem::forget(std::mem::take(&mut self.threads));
        }
    }
}
