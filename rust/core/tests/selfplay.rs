//! Self-play: games depend on (seed, id) alone, everything asked for is handed over, failures end it at once.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use azpy_core::batched::{SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::{RootNoise, SearchConfig};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Game, PovValue};
use azpy_core::record::{GameRecord, SEARCHED};
use azpy_core::replay::{Draw, ReplayBuffer, Samples};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig, SelfPlayError};
use azpy_core::toy::Toy;
use common::hashed_answer;

/// Hashed answers, a network number, and ways to misbehave.
#[derive(Clone)]
struct Network {
    id: u64,
    calls: Arc<AtomicU64>,
    sleep: Duration,
    fail: Arc<AtomicBool>,
    panics: bool,
}

impl Network {
    fn new(id: u64) -> Self {
        Self { id, calls: Arc::default(), sleep: Duration::ZERO, fail: Arc::default(), panics: false }
    }
}

impl<G: Game> Evaluator<G> for Network {
    type Error = &'static str;
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Self::Error> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "asked to panic");
        if self.fail.load(Ordering::SeqCst) {
            return Err("asked to fail");
        }
        std::thread::sleep(self.sleep);
        let mut observation = vec![0.0; batch.states[0].obs_shape().iter().product()];
        for row in 0..batch.rows() {
            batch.fill(row..row + 1, &mut observation);
            let range = batch.range(row);
            let value = hashed_answer(&observation, &batch.actions[range.clone()], &mut batch.logits[range]);
            batch.values[row] = PovValue(value);
        }
        Ok(())
    }
    fn network(&self) -> Option<u64> {
        Some(self.id)
    }
}

fn config() -> SelfPlayConfig {
    let root_noise = Some(RootNoise { alpha: None, fraction: 0.25 });
    SelfPlayConfig {
        search: SearchConfig { root_noise, eval_batch: 4, ..SearchConfig::default() },
        simulations: 30,
        temperature: 1.0,
        temperature_plies: 4,
        temperature_final: 0.3,
        opening_plies: 2,
        tree_reuse: true,
        max_plies: None,
        seed: 7,
        game: "toy".into(),
    }
}

fn start(config: SelfPlayConfig, slots: usize, games: Option<u64>, networks: Vec<Network>) -> SelfPlay<Network, Toy> {
    let layout = Layout { slots, first_game: 5, games, inside: |body| body() };
    let workers = Workers::new(2).unwrap();
    SelfPlay::start(&Toy::random(12, 12, true), config, &layout, networks, &workers, None).unwrap()
}

fn all(play: &SelfPlay<Network, Toy>) -> Vec<GameRecord> {
    let mut records = Vec::new();
    while !play.is_over() {
        records.extend(play.next(Duration::from_millis(20)).unwrap());
    }
    records.sort_by_key(|record| record.game_id);
    records
}

#[test]
fn games_depend_on_the_seed_and_their_id_alone() {
    let toy = Toy::random(12, 12, true);
    let play = |slots, pipelines, threads, cache: bool| {
        let layout = Layout { slots, first_game: 5, games: Some(40), inside: |body| body() };
        let cache = cache.then(|| Arc::new(Cache::new(4096)));
        let networks = vec![Network::new(3); pipelines];
        let workers = Workers::new(threads).unwrap();
        all(&SelfPlay::start(&toy, config(), &layout, networks, &workers, cache).unwrap())
    };
    let games = play(8, 1, 1, false);
    assert_eq!(games.iter().map(|game| game.game_id).collect::<Vec<_>>(), (5..45).collect::<Vec<_>>());
    assert!(games.iter().any(|game| game.plies != games[0].plies));
    for (slots, pipelines, threads, cache) in [(1, 1, 1, false), (7, 2, 2, true), (64, 3, 8, true), (40, 2, 4, false)] {
        assert!(play(slots, pipelines, threads, cache) == games, "{slots} slots, {pipelines} pipelines");
    }
    let other = all(&start(SelfPlayConfig { seed: 8, ..config() }, 8, Some(40), vec![Network::new(3)]));
    assert!(other.iter().zip(&games).any(|(one, two)| one.plies != two.plies));
    for game in &games {
        game.check(&toy).unwrap();
        assert_eq!(&GameRecord::from_bytes(&game.to_bytes()).unwrap(), game);
    }
}

#[test]
fn a_second_pipeline_changes_no_game_when_the_device_is_slow() {
    let network = Network { sleep: Duration::from_millis(4), ..Network::new(1) };
    let play = start(config(), 16, Some(30), vec![network.clone(), network.clone()]);
    let two = all(&play);
    let play = start(config(), 16, Some(30), vec![network]);
    assert!(all(&play) == two);
}

#[test]
fn a_failing_evaluator_ends_the_run_with_its_own_error() {
    let network = Network::new(1);
    let play = start(config(), 16, None, vec![network.clone(), network.clone()]);
    while play.next(Duration::from_secs(5)).unwrap().is_none() {}
    network.fail.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    let error = loop {
        if let Err(error) = play.next(Duration::from_secs(5)) {
            break error;
        }
    };
    assert!(matches!(error, SelfPlayError::Search(SearchError::Evaluator("asked to fail"))));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_panic_is_an_error_not_a_hang() {
    let play = start(config(), 4, None, vec![Network { panics: true, ..Network::new(1) }, Network::new(1)]);
    let error = loop {
        if let Err(error) = play.next(Duration::from_secs(5)) {
            break error;
        }
    };
    assert!(matches!(error, SelfPlayError::Panic(text) if text.contains("asked to panic")));
}

#[test]
fn nothing_is_sent_to_the_old_network_after_a_swap() {
    let (old, new) = (Network::new(1), Network::new(2));
    let play = start(config(), 16, None, vec![old.clone(), old.clone()]);
    for paused in [false, true] {
        play.pause(paused);
        play.swap(vec![new.clone(), new.clone()]).unwrap();
        assert!(play.is_swapped(Duration::from_secs(5)));
        play.pause(false);
    }
    let calls = old.calls.load(Ordering::SeqCst);
    for _ in 0..50 {
        while play.next(Duration::from_secs(5)).unwrap().is_none() {}
    }
    assert_eq!(old.calls.load(Ordering::SeqCst), calls);
    assert!(new.calls.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_swap_waits_for_no_pipeline_that_has_ended() {
    let network = Network::new(1);
    let play = start(config(), 4, Some(1), vec![network.clone(), network.clone(), network.clone()]);
    play.pause(true);
    play.swap(vec![network.clone(), network.clone(), network]).unwrap();
    assert!(play.is_swapped(Duration::from_secs(5)));
    play.pause(false);
    assert_eq!(all(&play).len(), 1);
}

#[test]
fn a_game_cut_short_is_a_marked_draw() {
    let play = start(SelfPlayConfig { max_plies: Some(3), ..config() }, 4, Some(40), vec![Network::new(1)]);
    let games = all(&play);
    assert!(games.iter().any(|game| game.capped));
    for game in games {
        game.check(&Toy::random(12, 12, true)).unwrap();
        assert!(game.plies.len() <= 3 && (!game.capped || game.outcome == 0.0));
    }
}

#[test]
fn a_consumer_that_does_not_look_stops_nothing_from_ending() {
    let play = start(config(), 4, None, vec![Network::new(1)]);
    std::thread::sleep(Duration::from_millis(100));
    // The pipelines wait for room by now; dropping ends them all the same.
    drop(play);
}

#[test]
fn the_replay_buffer_draws_what_the_records_say() {
    let toy = Toy::random(12, 12, true);
    let games = all(&start(config(), 8, Some(30), vec![Network::new(1)]));
    let mut buffer = ReplayBuffer::new(toy.clone(), 40);
    games.iter().for_each(|game| buffer.add(game.clone()).unwrap());
    assert!(buffer.num_samples() >= 40 || buffer.num_games() == 30);
    assert!(buffer.num_games() < 30, "old games make room");
    let (rows, actions) = (64, toy.num_actions());
    let (mut observations, mut legal) = (vec![f32::NAN; rows * 3], vec![true; rows * actions]);
    let (mut policies, mut values) = (vec![f32::NAN; rows * actions], vec![f32::NAN; rows]);
    let draw = Draw { seed: 1, root_value_weight: 0.5, symmetries: true };
    let samples =
        Samples { observations: &mut observations, legal: &mut legal, policies: &mut policies, values: &mut values };
    buffer.sample(draw, samples, &Workers::new(2).unwrap());
    for policy in policies.chunks(actions) {
        assert!((policy.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    assert!(values.iter().all(|value| value.abs() <= 1.0));
    let mut broken = games[0].clone();
    broken.outcome += 0.5;
    assert!(buffer.add(broken).unwrap_err().contains("outcome"));
    for number in [f32::NAN, f32::INFINITY, 2.0] {
        let mut broken = games.iter().find(|game| game.samples() > 0).unwrap().clone();
        let searched = broken.plies.iter().position(|ply| ply.flags & SEARCHED != 0).unwrap();
        broken.plies[searched].root_value = number;
        assert!(buffer.add(broken).unwrap_err().contains("value"));
    }
}

#[test]
fn any_bytes_are_refused_without_a_panic() {
    let record = all(&start(config(), 8, Some(1), vec![Network::new(1)])).remove(0);
    let bytes = record.to_bytes();
    for end in 0..bytes.len() {
        assert!(GameRecord::from_bytes(&bytes[..end]).is_err());
    }
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 0x41;
        if let Ok(other) = GameRecord::from_bytes(&flipped) {
            let _ = other.check(&Toy::random(12, 12, true));
        }
    }
}
