//! Self-play over a toy, and a network that answers by a formula.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use azpy_core::batched::Workers;
use azpy_core::config::{RootNoise, SearchConfig};
use azpy_core::evaluator::{self, Evaluator};
use azpy_core::game::{Game, PovValue, Turn, Value};
use azpy_core::record::GameRecord;
use azpy_core::replay::{Draw, ReplayBuffer, Samples};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig};
use azpy_core::toy::Toy;

use super::hashed_answer;

/// Hashed answers, a network number, and ways to misbehave.
#[derive(Clone)]
pub struct Network {
    pub id: u64,
    pub calls: Arc<AtomicU64>,
    pub rows: Arc<AtomicU64>,
    pub fail: Arc<AtomicBool>,
    pub panics: bool,
    /// Networks with another salt answer otherwise.
    pub salt: f32,
}

impl Network {
    pub fn new(id: u64) -> Self {
        Self { id, calls: Arc::default(), rows: Arc::default(), fail: Arc::default(), panics: false, salt: 0.0 }
    }
}

impl<G: Game<Payoff = Value>> Evaluator<G> for Network {
    type Error = &'static str;
    fn evaluate_batch(&mut self, batch: evaluator::Batch<'_, G>) -> Result<(), Self::Error> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.rows.fetch_add(batch.rows() as u64, Ordering::SeqCst);
        assert!(!self.panics, "asked to panic");
        let asked = batch.states.iter().all(|state| matches!(state.turn(), Turn::Player(_)));
        assert!(asked, "a finished game or a roll was evaluated");
        if self.fail.load(Ordering::SeqCst) {
            return Err("asked to fail");
        }
        let observed: usize = batch.states[0].obs_shape().iter().product();
        let mut row_and_salt = vec![0.0; observed];
        if self.salt != 0.0 {
            row_and_salt.push(self.salt);
        }
        for row in 0..batch.rows() {
            batch.fill(row..row + 1, &mut row_and_salt[..observed]);
            let range = batch.range(row);
            let value = hashed_answer(&row_and_salt, &batch.actions[range.clone()], &mut batch.logits[range]);
            batch.values[row] = PovValue(value);
        }
        Ok(())
    }
    fn network(&self) -> Option<u64> {
        Some(self.id)
    }
}

/// A tree in which some players lose on the way, and some of them win in the end.
pub fn toy() -> Toy {
    Toy::random(19, 12, true)
}

pub fn config() -> SelfPlayConfig {
    let root_noise = Some(RootNoise { alpha: None, fraction: 0.25 });
    SelfPlayConfig {
        search: SearchConfig { root_noise, eval_batch: 4, ..SearchConfig::default() },
        simulations: 30,
        fast_simulations: Some(7),
        temperature_plies: 4,
        temperature_final: 0.3,
        opening_plies: 2,
        seed: 7,
        game: "toy".into(),
        ..SelfPlayConfig::default()
    }
}

/// Games of the toy, the first of which has the id 5.
pub fn start(
    config: SelfPlayConfig,
    slots: usize,
    games: Option<u64>,
    networks: Vec<Network>,
) -> SelfPlay<Network, &'static str> {
    let layout = Layout { slots, first_game: 5, games, ..Layout::default() };
    let workers = Workers::new(2).unwrap();
    SelfPlay::start(&toy(), config, &layout, networks, &workers, None).unwrap()
}

/// A batch of training data.
pub struct Batch {
    pub legal: Vec<bool>,
    /// `[rows, A]`
    pub policies: Vec<f32>,
    /// `[rows, W]`
    pub values: Vec<f32>,
}

/// So many rows of a buffer.
pub fn draw<G: Game>(buffer: &ReplayBuffer<G>, draw: Draw, rows: usize) -> Batch {
    let (actions, observed) = (buffer.start().num_actions(), buffer.start().obs_shape().iter().product::<usize>());
    let mut batch = Batch {
        legal: vec![true; rows * actions],
        policies: vec![f32::NAN; rows * actions],
        values: vec![f32::NAN; rows * buffer.value_width()],
    };
    let samples = Samples {
        observations: &mut vec![f32::NAN; rows * observed],
        legal: &mut batch.legal,
        policies: &mut batch.policies,
        values: &mut batch.values,
        weights: &mut vec![f32::NAN; rows],
    };
    buffer.sample(draw, samples, &Workers::new(2).unwrap());
    batch
}

pub fn all<E: Send + 'static, Error: std::fmt::Debug + Send + 'static>(play: &SelfPlay<E, Error>) -> Vec<GameRecord> {
    let mut records = Vec::new();
    while !play.is_over() {
        records.extend(play.next(Duration::from_millis(20)).unwrap());
    }
    records.sort_by_key(|record| record.game_id);
    records
}
