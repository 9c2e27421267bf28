//! How a self-play pipeline spends its time.
//!
//! A pipeline is always doing one of five things, so its times add up to its life: growing trees (descending, encoding
//! rows, expanding, playing moves), evaluating (inside the evaluator, its turn at a shared one included), waiting for
//! its owner to take finished games, idle without a game to play, or paused. The clock is read a few times a round, never for a leaf.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::evaluator::{Batch, Evaluator};
use crate::game::Game;

/// Where the time of one pipeline went, since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipelineStats {
    /// Rounds: every slot's tree gathers, one batch is evaluated, every tree takes its answers up.
    pub rounds: u64,
    /// The host's work: everything that the other fields do not count.
    pub growing: Duration,
    /// In the evaluator, except where it has rows encoded.
    pub evaluating: Duration,
    /// Waiting because enough finished games wait to be taken.
    pub waiting: Duration,
    /// Waiting because there is no game to play.
    pub idle: Duration,
    /// Waiting because the owner paused it.
    pub paused: Duration,
    /// Games in its slots after the last round.
    pub in_play: usize,
    /// Plies of the longest of them.
    pub longest: usize,
}

impl PipelineStats {
    /// Adds other times, and takes over the other's games in play.
    pub fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.growing += other.growing;
        self.evaluating += other.evaluating;
        self.waiting += other.waiting;
        self.idle += other.idle;
        self.paused += other.paused;
        (self.in_play, self.longest) = (other.in_play, other.longest);
    }
}

/// An evaluator and the time spent in it; having rows encoded is the host's work and not counted.
pub(crate) struct Clocked<'a, E> {
    pub(crate) inner: &'a mut E,
    pub(crate) evaluating: Duration,
}

impl<G: Game, E: Evaluator<G>> Evaluator<G> for Clocked<'_, E> {
    type Error = E::Error;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Self::Error> {
        let begun = Instant::now();
        let encoding = AtomicU64::new(0);
        let plain = batch.encode;
        let encode = |states: &[G], rows: &mut [f32]| {
            let begun = Instant::now();
            plain(states, rows);
            encoding.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        };
        let answered = self.inner.evaluate_batch(Batch { encode: &encode, ..batch });
        let encoding = Duration::from_nanos(encoding.into_inner());
        self.evaluating += begun.elapsed().saturating_sub(encoding);
        answered
    }

    fn network(&self) -> Option<u64> {
        self.inner.network()
    }
}
