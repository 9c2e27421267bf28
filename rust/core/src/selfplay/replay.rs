//! The replay buffer: games in memory as records, training batches by playing them again.
//!
//! A sample is one ply searched in full, or one played in an imported game. Each is drawn alike, with replacement, or all
//! are taken in order; row i of a batch depends on (seed, i) alone. The oldest games make room, whole games at a time. A
//! batch depends on the games held and their order, and on nothing that was held before.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::batched::Workers;
use crate::error::Error;
use crate::game::{Game, Payoff, Player};
use crate::rng::Stream;
use crate::selfplay::record::{GameRecord, PLAYED, played_target};

/// Where one training batch goes; all row-major, all overwritten.
pub struct Samples<'a> {
    /// `[B, C, H, W]` observations.
    pub observations: &'a mut [f32],
    /// `[B, A]` whether an action is legal.
    pub legal: &'a mut [bool],
    /// `[B, A]` policy targets, 0 for illegal actions.
    pub policies: &'a mut [f32],
    /// `[B, W]` value targets, [`Payoff::width`] numbers a row: that of the player to move, or all, the player to move first.
    pub values: &'a mut [f32],
    /// `[B]` weights of the value targets, see [`Draw::imported_value_weight`].
    pub weights: &'a mut [f32],
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
    /// Weight of the value target of an imported game's sample, where that of others is 1.
    pub imported_value_weight: f32,
    /// Whether row i is the sample i of the buffer, the oldest game's first, in place of one that is drawn.
    pub in_order: bool,
}

/// The value targets are the outcomes, all alike, without symmetries.
impl Default for Draw {
    fn default() -> Self {
        Self { seed: 0, root_value_weight: 0.0, symmetries: false, imported_value_weight: 1.0, in_order: false }
    }
}

/// Plies between two states that are kept of a game whose rules are slow.
const KEPT_EVERY: usize = 8;

/// A game held.
struct Held<G> {
    /// Number of samples ever added before it.
    first: u64,
    record: Arc<GameRecord>,
    /// Its plies that can be learned from.
    samples: Vec<u32>,
    /// If the rules are slow: the states before every `KEPT_EVERY`th ply.
    kept: Vec<G>,
}

impl<G: Game> Held<G> {
    fn of(record: Arc<GameRecord>, start: &G) -> Self {
        let plies = record.plies.iter().enumerate();
        let samples = plies.filter(|(_, ply)| ply.is_sample()).map(|(index, _)| index as u32).collect();
        let mut kept = Vec::new();
        if start.is_slow() {
            let mut state = start.clone();
            for (index, ply) in record.plies.iter().enumerate() {
                if index % KEPT_EVERY == 0 {
                    kept.push(state.clone());
                }
                state.play(ply.action);
            }
        }
        Self { first: 0, record, samples, kept }
    }

    /// The state before a ply.
    fn state(&self, ply: usize, start: &G) -> G {
        let (begin, state) = match self.kept.get(ply / KEPT_EVERY) {
            Some(kept) => (ply - ply % KEPT_EVERY, kept),
            None => (0, start),
        };
        let mut state = state.clone();
        self.record.plies[begin..ply].iter().for_each(|earlier| state.play(earlier.action));
        state
    }
}

/// Where a row of a batch comes from.
pub struct Origin<'a, G> {
    /// The game.
    pub record: &'a GameRecord,
    /// The ply in it.
    pub ply: usize,
    /// The position before the ply, as it was played.
    pub state: G,
    /// Which symmetry of the position the row shows; 0 is none.
    pub symmetry: usize,
}

/// Records to learn from.
pub struct ReplayBuffer<G> {
    start: G,
    max_samples: usize,
    games: VecDeque<Held<G>>,
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
    ) -> Result<(), Error> {
        let mut checked: Vec<_> = records.into_iter().map(|record| (record, None)).collect();
        workers.for_each(&mut checked, |(record, outcome)| {
            let invalid = |why| Error::InvalidGame { game_id: record.game_id, why: Box::new(why) };
            *outcome = Some(record.check(&self.start).map_err(invalid).map(|()| Held::of(record.clone(), &self.start)));
        });
        for game in checked.into_iter().filter_map(|(_, outcome)| outcome).collect::<Result<Vec<_>, _>>()? {
            let samples = game.samples.len() as u64;
            if samples > 0 {
                self.games.push_back(Held { first: self.added, ..game });
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

    /// Numbers W of a row's value target; see [`Samples::values`].
    #[must_use]
    pub fn value_width(&self) -> usize {
        G::Payoff::width(self.start.num_players())
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
            .zip(samples.values.chunks_exact_mut(self.value_width()).zip(samples.weights))
            .enumerate()
            .collect();
        workers.for_each(&mut rows, |(row, (((observation, legal), policy), (values, weight)))| {
            self.fill(draw, *row, observation, legal, policy, (values, weight));
        });
    }

    /// Where a row of the batch comes from that `sample` draws likewise.
    ///
    /// # Panics
    /// When the buffer is empty.
    pub fn origin(&self, draw: Draw, row: usize) -> Origin<'_, G> {
        let (samples, mut stream) = (self.num_samples(), Stream::keyed(&[draw.seed, row as u64]));
        let index = if draw.in_order { row % samples } else { stream.below(samples) };
        let wanted = self.games[0].first + index as u64;
        let held = &self.games[self.games.partition_point(|game| game.first <= wanted) - 1];
        let ply = held.samples[(wanted - held.first) as usize] as usize;
        let state = held.state(ply, &self.start);
        let symmetry = if draw.symmetries { stream.below(state.num_symmetries()) } else { 0 };
        Origin { record: &held.record, ply, state, symmetry }
    }

    /// Draws a row and writes it.
    fn fill(
        &self,
        draw: Draw,
        row: usize,
        observation: &mut [f32],
        legal: &mut [bool],
        policy: &mut [f32],
        (values, weight): (&mut [f32], &mut f32),
    ) {
        let Origin { record, ply, state, symmetry } = self.origin(draw, row);
        if symmetry == 0 {
            state.encode(observation);
        } else {
            let mut plain = vec![0.0; observation.len()];
            state.encode(&mut plain);
            state.symmetric_observation(symmetry, &plain, observation);
        }
        legal.fill(false);
        policy.fill(0.0);
        let (mut actions, entry) = (Vec::new(), record.plies[ply]);
        let target = if entry.flags & PLAYED == 0 {
            actions.extend(&record.legal[record.range(ply)]);
            record.target(ply)
        } else {
            state.legal_actions(&mut actions);
            played_target(entry.action, &actions)
        };
        for (&action, share) in actions.iter().zip(target) {
            let action = state.symmetric_action(symmetry, action) as usize;
            legal[action] = true;
            policy[action] = share;
        }
        for (seat, value) in values.iter_mut().enumerate() {
            *value = value_target(record, ply, seat, draw);
        }
        *weight = if record.imported { draw.imported_value_weight } else { 1.0 };
    }
}

/// What the value of a ply should be, for the player who is so many seats after its player in turn order.
fn value_target(record: &GameRecord, ply: usize, seat: usize, draw: Draw) -> f32 {
    let mover = record.plies[ply].mover().map_or(0, Player::index);
    let player = Player::ALL[(mover + seat) % record.num_players];
    let end = record.reward_of(player);
    if record.plies[ply].flags & PLAYED != 0 {
        return end; // the ply was not searched
    }
    (1.0 - draw.root_value_weight) * end + draw.root_value_weight * record.root_value_of(ply, player)
}
