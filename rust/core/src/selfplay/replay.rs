//! The replay buffer: games in memory as records, training batches by playing them again.
//!
//! A sample is one ply searched in full, or one played in an imported game. A draw takes a game in proportion to its
//! samples, then one of them: each alike, or rather those that surprised the network. Draws are with replacement; row i
//! of a batch depends on (seed, i) alone. The oldest games make room, whole games at a time. A batch depends on the
//! games held and their order, and on nothing that was held before. A buffer that merges takes equal positions, of
//! whatever games, as one sample: the mean of their targets.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use crate::batched::Workers;
use crate::game::{Game, MAX_PLAYERS, Payoff, Player};
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
    /// `[B, W]` value targets. W is 1 with two players and zero sum: that of the player to move. Else it is P, one a player,
    /// the player to move first.
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
    /// Below 1, [`lambda_return`] stands in the place of the outcome.
    pub value_lambda: f64,
    /// Whether to apply a random symmetry to each row.
    pub symmetries: bool,
    /// Share of the draws within a game that go by surprise, the divergence of the policy target from the prior; the
    /// others take each sample alike. KataGo's policy surprise weighting (its docs/KataGoMethods.md; 0.5 there), except
    /// that a row is drawn by the weight where KataGo writes one as often as the weight says.
    pub surprise_weight: f64,
    /// Weight of the value target of an imported game's sample, where that of others is 1.
    pub imported_value_weight: f32,
}

/// The value targets are the outcomes, all alike, without symmetries and surprise.
impl Default for Draw {
    fn default() -> Self {
        Self {
            seed: 0,
            root_value_weight: 0.0,
            value_lambda: 1.0,
            symmetries: false,
            surprise_weight: 0.0,
            imported_value_weight: 1.0,
        }
    }
}

/// Plies between two states that are kept of a game whose rules are slow.
const KEPT_EVERY: usize = 8;

/// A game held.
struct Held<G> {
    /// Number of samples ever added before it.
    first: u64,
    record: Arc<GameRecord>,
    /// For each of its samples, `surprise`.
    surprises: Vec<f64>,
    /// For each of its samples, the key of its position, if equal positions are merged.
    keys: Vec<u128>,
    /// If the rules are slow: the states before every `KEPT_EVERY`th ply.
    kept: Vec<G>,
}

impl<G: Game> Held<G> {
    fn of(record: Arc<GameRecord>, start: &G, with_keys: bool) -> Self {
        let mut held = Self { first: 0, surprises: Vec::new(), keys: Vec::new(), kept: Vec::new(), record };
        held.surprises = samples_of(&held.record).map(|ply| surprise(&held.record, ply)).collect();
        if with_keys || start.is_slow() {
            let mut state = start.clone();
            for (index, ply) in held.record.plies.iter().enumerate() {
                if with_keys && ply.is_sample() {
                    held.keys.push(state.key());
                }
                if start.is_slow() && index % KEPT_EVERY == 0 {
                    held.kept.push(state.clone());
                }
                state.play(ply.action);
            }
        }
        held
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

/// A sample: a game, by its place among those held, and a ply.
type Place = (u32, u32);

/// The positions held, each once.
#[derive(Default)]
struct Merged {
    /// `[M]` where each position is found, in the order of the games; positions in the order of their first places.
    places: Vec<Vec<Place>>,
    /// `[M]` the sum of the weights up to and with a position: log2(n) + 1 for one that is found n times, as in
    /// AlphaZero.jl (`LOG_WEIGHT` of its memory).
    ends: Vec<f64>,
}

impl Merged {
    fn of<G>(games: &VecDeque<Held<G>>) -> Self {
        let (mut merged, mut numbers) = (Self::default(), HashMap::new());
        for (index, game) in games.iter().enumerate() {
            for (ply, &key) in samples_of(&game.record).zip(&game.keys) {
                let number = *numbers.entry(key).or_insert(merged.places.len());
                if number == merged.places.len() {
                    merged.places.push(Vec::new());
                }
                merged.places[number].push((index as u32, ply as u32));
            }
        }
        let weights = merged.places.iter().map(|places| (places.len() as f64).log2() + 1.0);
        merged.ends = weights
            .scan(0.0, |sum, weight| {
                Some({
                    *sum += weight;
                    *sum
                })
            })
            .collect();
        merged
    }

    /// Draws a position in proportion to the weights.
    fn pick(&self, stream: &mut Stream) -> &[Place] {
        let wanted = stream.unit() * self.ends.last().expect("there are samples");
        &self.places[self.ends.partition_point(|&end| end <= wanted).min(self.ends.len() - 1)]
    }
}

/// Records to learn from.
pub struct ReplayBuffer<G> {
    start: G,
    max_samples: usize,
    games: VecDeque<Held<G>>,
    added: u64,
    /// Of a buffer that merges equal positions; made for the first draw after a change.
    merged: Option<OnceLock<Merged>>,
}

impl<G: Game> ReplayBuffer<G> {
    /// A buffer of games from `start` that keeps at most about `max_samples` samples (one game at least).
    pub fn new(start: G, max_samples: usize) -> Self {
        Self { start, max_samples, games: VecDeque::new(), added: 0, merged: None }
    }

    /// The same, but equal positions are one sample: with the mean of their targets, drawn with a weight of log2(n) + 1
    /// for n of them. `surprise_weight` has no effect.
    pub fn merging(start: G, max_samples: usize) -> Self {
        Self { merged: Some(OnceLock::new()), ..Self::new(start, max_samples) }
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
        let held = |record| Held::of(record, &self.start, self.merged.is_some());
        let mut checked: Vec<_> = records.into_iter().map(|record| (record, Err(String::new()))).collect();
        workers.for_each(&mut checked, |(record, outcome)| {
            *outcome = record
                .check(&self.start)
                .map(|()| held(record.clone()))
                .map_err(|text| format!("game {} is not a game by the rules: {text}", record.game_id));
        });
        for game in checked.into_iter().map(|(_, outcome)| outcome).collect::<Result<Vec<_>, _>>()? {
            let samples = game.surprises.len() as u64;
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
        if let Some(merged) = &mut self.merged {
            *merged = OnceLock::new();
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
        if G::Payoff::ZERO_SUM { 1 } else { self.start.num_players() }
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
            let mut stream = Stream::keyed(&[draw.seed, *row as u64]);
            let places = self.places(draw, &mut stream);
            self.fill(&places, draw, &mut stream, observation, legal, policy, (values, weight));
        });
    }

    /// Where a row of the batch comes from that `sample` draws likewise. A buffer that merges equal positions gives the
    /// first game among those held that has the position.
    ///
    /// # Panics
    /// When the buffer is empty.
    pub fn origin(&self, draw: Draw, row: usize) -> Origin<'_, G> {
        let mut stream = Stream::keyed(&[draw.seed, row as u64]);
        self.origin_of(self.places(draw, &mut stream)[0], draw, &mut stream)
    }

    fn origin_of(&self, (game, ply): Place, draw: Draw, stream: &mut Stream) -> Origin<'_, G> {
        let (held, ply) = (&self.games[game as usize], ply as usize);
        let state = held.state(ply, &self.start);
        let symmetry = if draw.symmetries { stream.below(state.num_symmetries()) } else { 0 };
        Origin { record: &held.record, ply, state, symmetry }
    }

    /// The weight of a game's value targets.
    fn weight(&self, game: u32, draw: Draw) -> f64 {
        if self.games[game as usize].record.imported { f64::from(draw.imported_value_weight) } else { 1.0 }
    }

    /// Draws a row: where its position is found.
    fn places(&self, draw: Draw, stream: &mut Stream) -> Cow<'_, [Place]> {
        match &self.merged {
            Some(merged) => Cow::Borrowed(merged.get_or_init(|| Merged::of(&self.games)).pick(stream)),
            None => Cow::Owned(vec![self.pick(draw, stream)]),
        }
    }

    /// Draws a sample.
    fn pick(&self, draw: Draw, stream: &mut Stream) -> Place {
        let wanted = self.games[0].first + stream.below(self.num_samples()) as u64;
        let index = self.games.partition_point(|game| game.first <= wanted) - 1;
        let game = &self.games[index];
        // Without surprises each sample of the game is as likely as another; that is what `wanted` gives.
        let mut sample = (wanted - game.first) as usize;
        if draw.surprise_weight > 0.0
            && stream.unit() < draw.surprise_weight
            && game.surprises.iter().any(|&surprise| surprise > 0.0)
        {
            sample = stream.weighted(game.surprises.iter().copied());
        }
        let ply = samples_of(&game.record).nth(sample).expect("the game has as many samples as were counted");
        (index as u32, ply as u32)
    }

    /// Writes a row: the position of the first place, and the mean of the targets of all.
    #[allow(clippy::too_many_arguments)]
    fn fill(
        &self,
        places: &[Place],
        draw: Draw,
        stream: &mut Stream,
        observation: &mut [f32],
        legal: &mut [bool],
        policy: &mut [f32],
        (values, weight): (&mut [f32], &mut f32),
    ) {
        let of = |&(game, ply): &Place| (&*self.games[game as usize].record, ply as usize);
        let Origin { record, ply, state, symmetry } = self.origin_of(places[0], draw, stream);
        if symmetry == 0 {
            state.encode(observation);
        } else {
            let mut plain = vec![0.0; observation.len()];
            state.encode(&mut plain);
            state.symmetric_observation(symmetry, &plain, observation);
        }
        legal.fill(false);
        policy.fill(0.0);
        let mut actions = Vec::new();
        if record.plies[ply].flags & PLAYED == 0 {
            actions.extend(&record.legal[record.range(ply)]);
        } else {
            state.legal_actions(&mut actions);
        }
        let (mut shares, mut worth, mut weights) = (vec![0.0; actions.len()], [0.0; MAX_PLAYERS], 0.0);
        for place in places {
            let ((record, ply), share) = (of(place), self.weight(place.0, draw));
            let entry = record.plies[ply];
            let target =
                if entry.flags & PLAYED == 0 { record.target(ply) } else { played_target(entry.action, &actions) };
            shares.iter_mut().zip(target).for_each(|(sum, share)| *sum += f64::from(share));
            for (seat, worth) in worth[..values.len()].iter_mut().enumerate() {
                *worth += share * f64::from(value_target(record, ply, seat, draw));
            }
            weights += share;
        }
        // Of one place: its own numbers, to the last bit.
        for (&action, sum) in actions.iter().zip(shares) {
            let action = state.symmetric_action(symmetry, action) as usize;
            legal[action] = true;
            policy[action] = (sum / places.len() as f64) as f32;
        }
        // Without any weight the target counts for nothing.
        for (value, worth) in values.iter_mut().zip(worth) {
            *value = if weights > 0.0 { (worth / weights) as f32 } else { 0.0 };
        }
        *weight = (weights / places.len() as f64) as f32;
    }
}

/// What the value of a ply should be, for the player who is so many seats after its player in turn order.
fn value_target(record: &GameRecord, ply: usize, seat: usize, draw: Draw) -> f32 {
    let mover = record.plies[ply].mover().map_or(0, Player::index);
    let player = Player::ALL[(mover + seat) % record.num_players()];
    let lambda = draw.value_lambda;
    let end = if lambda < 1.0 { lambda_return(record, ply, player, lambda) } else { record.reward_of(player) };
    if record.plies[ply].flags & PLAYED != 0 {
        return end; // nobody searched it
    }
    (1.0 - draw.root_value_weight) * end + draw.root_value_weight * record.root_value_of(ply, player)
}

/// The lambda return of a ply (Sutton 1988) for a player: of the values q of the searches from this ply on, and of the
/// outcome z, the mean `sum over k of (1 - lambda) lambda^k q_k, + lambda^n z`, where n plies were searched. A ply without a
/// search (dice, an opening) has no value and takes no weight.
fn lambda_return(record: &GameRecord, ply: usize, player: Player, lambda: f64) -> f32 {
    let searched = (ply..record.plies.len()).rev().filter(|&later| record.plies[later].is_searched());
    searched.fold(f64::from(record.reward_of(player)), |later, ply| {
        (1.0 - lambda) * f64::from(record.root_value_of(ply, player)) + lambda * later
    }) as f32
}

/// The plies of a game that can be learned from.
fn samples_of(record: &GameRecord) -> impl Iterator<Item = usize> {
    (0..record.plies.len()).filter(move |&ply| record.plies[ply].is_sample())
}

/// How much a search found that the network did not know: KL(target || prior) in nats, at least 0. 0 for a ply that was
/// played elsewhere: no prior is known.
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
