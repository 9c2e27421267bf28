//! The replay buffer: games in memory as records, training batches by playing them again.
//!
//! A sample is one ply searched in full. A draw takes a game in proportion to its samples, then one of them: each alike,
//! or rather those that surprised the network. Draws are with replacement; row i of a batch depends on (seed, i) alone.
//! The oldest games make room, whole games at a time. A batch depends on the games held and their order, and on nothing
//! that was held before.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::batched::Workers;
use crate::game::{Game, Player, Value};
use crate::rng::Stream;
use crate::selfplay::record::{GameRecord, SEARCHED};

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
    /// Share of the draws within a game that go by surprise, the divergence of the policy target from the prior; the
    /// others take each sample alike. KataGo's policy surprise weighting (its docs/KataGoMethods.md; 0.5 there), except
    /// that a row is drawn by the weight where KataGo writes one as often as the weight says.
    pub surprise_weight: f64,
}

/// A game held.
struct Held {
    /// Number of samples ever added before it.
    first: u64,
    record: Arc<GameRecord>,
    /// For each of its samples, `surprise`.
    surprises: Vec<f64>,
}

/// Records to learn from.
pub struct ReplayBuffer<G> {
    start: G,
    max_samples: usize,
    games: VecDeque<Held>,
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

    /// Checks games against the rules and keeps them, the last one as the newest.
    ///
    /// # Errors
    /// The first game that the rules do not allow, and why; the buffer is unchanged.
    pub fn extend(
        &mut self,
        records: impl IntoIterator<Item = Arc<GameRecord>>,
        workers: &Workers,
    ) -> Result<(), String> {
        let mut checked: Vec<_> = records.into_iter().map(|record| (record, Ok(Vec::new()))).collect();
        workers.for_each(&mut checked, |(record, surprises)| {
            *surprises = record
                .check(&self.start)
                .map(|()| samples_of(record).map(|ply| surprise(record, ply)).collect())
                .map_err(|text| format!("game {} is not a game by the rules: {text}", record.game_id));
        });
        let checked = checked.into_iter().map(|(record, surprises)| surprises.map(|surprises| (record, surprises)));
        for (record, surprises) in checked.collect::<Result<Vec<(_, Vec<f64>)>, _>>()? {
            let samples = surprises.len() as u64;
            if samples > 0 {
                self.games.push_back(Held { first: self.added, record, surprises });
                self.added += samples;
            }
        }
        self.resize(self.max_samples);
        Ok(())
    }

    /// Keeps at most about `max_samples` samples from now on, and lets go of the oldest games beyond.
    pub fn resize(&mut self, max_samples: usize) {
        self.max_samples = max_samples;
        while self.games.len() > 1 && self.added - self.games[1].first >= max_samples as u64 {
            self.games.pop_front();
        }
    }

    /// Games held.
    #[must_use]
    pub fn num_games(&self) -> usize {
        self.games.len()
    }

    /// Samples held.
    #[must_use]
    pub fn num_samples(&self) -> usize {
        self.games.front().map_or(0, |oldest| (self.added - oldest.first) as usize)
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
            let (record, ply) = self.pick(draw, &mut stream);
            self.fill(record, ply, draw, &mut stream, observation, legal, policy, value);
        });
    }

    /// Draws a sample.
    fn pick(&self, draw: Draw, stream: &mut Stream) -> (&GameRecord, usize) {
        let wanted = self.games[0].first + stream.below(self.num_samples()) as u64;
        let game = &self.games[self.games.partition_point(|game| game.first <= wanted) - 1];
        // Without surprises each sample of the game is as likely as another; that is what `wanted` gives.
        let mut sample = (wanted - game.first) as usize;
        if draw.surprise_weight > 0.0
            && stream.unit() < draw.surprise_weight
            && game.surprises.iter().any(|&surprise| surprise > 0.0)
        {
            sample = stream.weighted(game.surprises.iter().copied());
        }
        let ply = samples_of(&game.record).nth(sample).expect("the game has as many samples as were counted");
        (&game.record, ply)
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

/// The plies of a game that can be learned from.
fn samples_of(record: &GameRecord) -> impl Iterator<Item = usize> {
    (0..record.plies.len()).filter(move |&ply| record.plies[ply].flags & SEARCHED != 0)
}

/// How much a search found that the network did not know: KL(target || prior) in nats, at least 0.
fn surprise(record: &GameRecord, ply: usize) -> f64 {
    /// What a prior of 0 counts as, after rounding: no sample is infinitely surprising.
    const LEAST_PRIOR: f64 = 1e-12;
    let target = record.target(ply);
    let pairs = target.iter().zip(&record.priors[record.range(ply)]).filter(|&(&share, _)| share > 0.0);
    let nats = pairs.map(|(&share, &prior)| {
        let share = f64::from(share);
        share * (share / f64::from(prior).max(LEAST_PRIOR)).ln()
    });
    // Rounding can leave equal distributions a little below 0.
    nats.sum::<f64>().max(0.0)
}
