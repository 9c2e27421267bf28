//! The replay buffer: games in memory as records, training batches by playing them again.
//!
//! A sample is one searched ply. Drawing is uniform over the samples held, with replacement; row i of a batch depends on
//! (seed, i) alone. The oldest games make room, whole games at a time.

use std::collections::VecDeque;

use crate::batched::Workers;
use crate::game::{Game, Player, Value};
use crate::record::{GameRecord, SEARCHED};
use crate::rng::Stream;

/// Where one training batch goes; all row-major, all overwritten.
pub struct Samples<'a> {
    /// `[B, C, H, W]` observations.
    pub observations: &'a mut [f32],
    /// `[B, A]` whether an action is legal.
    pub legal: &'a mut [bool],
    /// `[B, A]` policy targets, 0 for illegal actions.
    pub policies: &'a mut [f32],
    /// `[B]` value targets for the player to move.
    pub values: &'a mut [f32],
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Of the batch.
    pub seed: u64,
    /// Weight w of the search's value in the value target `(1 - w) outcome + w root_value`.
    pub root_value_weight: f32,
    /// Whether to apply a random symmetry to each row.
    pub symmetries: bool,
}

/// Records to learn from.
pub struct ReplayBuffer<G> {
    start: G,
    max_samples: usize,
    /// With, for each game, the number of samples ever added before it.
    games: VecDeque<(u64, GameRecord)>,
    added: u64,
}

impl<G: Game> ReplayBuffer<G> {
    /// A buffer of games from `start` that keeps at most about `max_samples` samples (one game at least).
    pub fn new(start: G, max_samples: usize) -> Self {
        Self { start, max_samples, games: VecDeque::new(), added: 0 }
    }

    /// The position that all its games begin from.
    #[must_use]
    pub fn start(&self) -> &G {
        &self.start
    }

    /// Checks a game against the rules and keeps it.
    ///
    /// # Errors
    /// What is wrong with it; the buffer is unchanged.
    pub fn add(&mut self, record: GameRecord) -> Result<(), String> {
        record.check(&self.start)?;
        let samples = record.samples() as u64;
        if samples > 0 {
            self.games.push_back((self.added, record));
            self.added += samples;
        }
        while self.games.len() > 1 && self.added - self.games[1].0 >= self.max_samples as u64 {
            self.games.pop_front();
        }
        Ok(())
    }

    /// Games held.
    #[must_use]
    pub fn num_games(&self) -> usize {
        self.games.len()
    }

    /// Samples held.
    #[must_use]
    pub fn num_samples(&self) -> usize {
        self.games.front().map_or(0, |(first, _)| (self.added - first) as usize)
    }

    /// Draws a batch.
    ///
    /// # Panics
    /// When the buffer is empty, or the arrays do not fit each other.
    pub fn sample(&self, draw: Draw, samples: Samples<'_>, workers: &Workers) {
        let (actions, row_len) = (self.start.num_actions(), self.start.obs_shape().iter().product());
        let mut rows: Vec<_> = samples
            .observations
            .chunks_exact_mut(row_len)
            .zip(samples.legal.chunks_exact_mut(actions))
            .zip(samples.policies.chunks_exact_mut(actions))
            .zip(samples.values)
            .enumerate()
            .collect();
        workers.for_each(&mut rows, |(row, (((observation, legal), policy), value))| {
            let mut stream = Stream::keyed(&[draw.seed, *row as u64]);
            let (record, ply) = self.pick(stream.below(self.num_samples()));
            self.fill(record, ply, draw, &mut stream, observation, legal, policy, value);
        });
    }

    /// The `index`-th sample held, oldest first.
    fn pick(&self, index: usize) -> (&GameRecord, usize) {
        let wanted = self.games[0].0 + index as u64;
        let (first, record) = &self.games[self.games.partition_point(|(first, _)| *first <= wanted) - 1];
        let mut searched = (0..record.plies.len()).filter(|&ply| record.plies[ply].flags & SEARCHED != 0);
        let ply = searched.nth((wanted - first) as usize).expect("the game has as many samples as were counted");
        (record, ply)
    }

    #[allow(clippy::too_many_arguments)]
    fn fill(
        &self,
        record: &GameRecord,
        ply: usize,
        draw: Draw,
        stream: &mut Stream,
        observation: &mut [f32],
        legal: &mut [bool],
        policy: &mut [f32],
        value: &mut f32,
    ) {
        let mut state = self.start.clone();
        record.plies[..ply].iter().for_each(|earlier| state.play(earlier.action));
        let symmetry = if draw.symmetries { stream.below(state.num_symmetries()) } else { 0 };
        if symmetry == 0 {
            state.encode(observation);
        } else {
            let mut plain = vec![0.0; observation.len()];
            state.encode(&mut plain);
            state.symmetric_observation(symmetry, &plain, observation);
        }
        legal.fill(false);
        policy.fill(0.0);
        for (index, share) in record.range(ply).zip(record.target(ply)) {
            let action = state.symmetric_action(symmetry, record.legal[index]) as usize;
            legal[action] = true;
            policy[action] = share;
        }
        let player = if record.plies[ply].player == 0 { Player::Zero } else { Player::One };
        let outcome = Value(record.outcome).pov(player).0;
        *value = (1.0 - draw.root_value_weight) * outcome + draw.root_value_weight * record.plies[ply].root_value;
    }
}
