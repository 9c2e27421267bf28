//! Self-play: games depend on (seed, id) alone, everything asked for is handed over, failures end it at once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::common::selfplay::{Network, all, config, draw, start, toy};
use azpy_core::Error;
use azpy_core::batched::{SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::Game;
use azpy_core::record::{FAST_SEARCH, GameRecord, Ply, SEARCHED};
use azpy_core::replay::{Draw, ReplayBuffer};
use azpy_core::rng::Stream;
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig, SelfPlayError, SelfPlayStats};
use azpy_core::timing::PipelineStats;
use azpy_core::toy::Toy;

/// How long a test waits for what comes at once.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn games_depend_on_the_seed_and_their_id_alone() {
    let toy = toy();
    let with_options = SelfPlayConfig {
        search: SearchConfig { evaluations: Some(12), ..config().search },
        full_search_share: 0.6,
        ..config()
    };
    for config in [config(), with_options] {
        let play = |slots, pipelines, threads, cache: bool| {
            let layout = Layout { slots, first_game: 5, games: Some(60), ..Layout::default() };
            let cache = cache.then(|| Arc::new(Cache::new(4096)));
            let (networks, workers) = (vec![Network::new(3); pipelines], Workers::new(threads).unwrap());
            let play = SelfPlay::start(&toy, config.clone(), &layout, networks, &workers, cache).unwrap();
            let games = all(&play);
            assert_stats(&play.stats(), &games);
            games
        };
        let games = play(8, 1, 1, false);
        assert_eq!(games.iter().map(|game| game.game_id).collect::<Vec<_>>(), (5..65).collect::<Vec<_>>());
        assert!(games.iter().any(|game| game.plies != games[0].plies));
        for (slots, pipelines, threads, cache) in
            [(1, 1, 1, true), (7, 2, 2, true), (64, 3, 8, true), (40, 2, 4, false)]
        {
            assert!(play(slots, pipelines, threads, cache) == games, "{slots} slots, {pipelines} pipelines");
        }
        let other = all(&start(SelfPlayConfig { seed: 8, ..config }, 8, Some(60), vec![Network::new(3)]));
        assert!(other.iter().zip(&games).any(|(one, two)| one.plies != two.plies));
        for game in &games {
            game.check(&toy).unwrap();
            assert_eq!(&GameRecord::from_bytes(&game.to_bytes()).unwrap(), game);
        }
    }
}

/// The totals are those of the games.
fn assert_stats(stats: &SelfPlayStats, games: &[GameRecord]) {
    let plies = |is: fn(&&Ply) -> bool| games.iter().flat_map(|game| &game.plies).filter(is).count() as u64;
    assert_eq!(stats.positions, plies(|ply| ply.flags & SEARCHED != 0));
    assert_eq!(stats.fast_searches, plies(|ply| ply.flags & FAST_SEARCH != 0));
    assert_eq!(stats.searches, plies(|ply| ply.is_searched()));
}

/// The ids of some games in ranges as they may be admitted: in any order, with gaps, some empty.
fn shuffled(mut ids: Vec<u64>, seed: u64) -> Vec<std::ops::Range<u64>> {
    let mut stream = Stream::keyed(&[seed]);
    let mut ranges = Vec::new();
    while !ids.is_empty() {
        let begin = stream.below(ids.len());
        let same_run =
            |&end: &usize| end == begin || ids.get(end).is_some_and(|&id| id == ids[begin] + (end - begin) as u64);
        let longest = (begin..begin + 5).take_while(same_run).count();
        let length = stream.below(longest + 1);
        ranges.push(ids[begin]..ids[begin] + length as u64);
        ids.drain(begin..begin + length);
    }
    ranges
}

#[test]
fn games_admitted_in_any_order_are_those_of_a_plain_run() {
    let toy = toy();
    let network = Network::new(3);
    let config = SelfPlayConfig { full_search_share: 0.6, ..config() };
    let begin = |slots, pipelines, games| {
        let layout = Layout { slots, first_game: 5, games: Some(games), ..Layout::default() };
        let workers = Workers::new(2).unwrap();
        let cache = Some(Arc::new(Cache::new(4096)));
        SelfPlay::start(&toy, config.clone(), &layout, vec![network.clone(); pipelines], &workers, cache).unwrap()
    };
    let plain = all(&begin(8, 1, 60));
    for seed in 0..12 {
        let mut stream = Stream::keyed(&[seed, 1]);
        let wanted = |game: &&GameRecord| game.game_id < 8 || seed < 6 || game.game_id % 3 != seed % 3;
        let expected: Vec<_> = plain.iter().filter(wanted).cloned().collect();
        // The first three are asked for at the start, the others are admitted in several goes: before, while and after
        // those before are played.
        let play = begin(1 + stream.below(20), 1 + stream.below(3).min(seed as usize), 3);
        let ids = expected.iter().map(|game| game.game_id).filter(|&id| id >= 8).collect();
        let mut games = Vec::new();
        for range in shuffled(ids, seed) {
            play.admit(range);
            match stream.below(3) {
                0 => games.extend(play.take_finished(usize::MAX)),
                1 => games.extend(play.next(PATIENCE).unwrap()),
                _ => {}
            }
            if stream.below(8) == 0 {
                games.extend(all(&play));
                assert!(play.is_over());
            }
        }
        games.extend(all(&play));
        games.sort_by_key(|game| game.game_id);
        assert!(games == expected, "seed {seed}");
        assert_eq!(play.stats().games, expected.len() as u64);
    }
}

#[test]
fn self_play_without_games_waits_and_takes_a_new_network() {
    let (old, new) = (Network::new(1), Network::new(2));
    let play = start(config(), 4, Some(0), vec![old.clone(), old.clone()]);
    assert!(play.next(PATIENCE).unwrap().is_none() && play.is_over());
    play.swap(vec![new.clone(), new.clone()]).unwrap();
    assert!(play.is_swapped(PATIENCE));
    play.pause(true);
    assert!(play.is_paused(PATIENCE));
    play.admit(5..25);
    assert!(!play.is_over());
    assert_eq!(new.calls.load(Ordering::SeqCst), 0);
    play.pause(false);
    let games = all(&play);
    assert_eq!(old.calls.load(Ordering::SeqCst), 0);
    assert!(games == all(&start(config(), 4, Some(20), vec![new])));
    let idle = |stats: PipelineStats| stats.idle > Duration::ZERO && stats.waiting == Duration::ZERO;
    assert!(play.pipeline_stats().into_iter().all(idle));
}

/// A network that is held up in one of its calls, until the test lets it go on.
#[derive(Clone)]
struct Held {
    network: Network,
    at_call: u64,
    barrier: Arc<Barrier>,
}

impl Evaluator<Toy> for Held {
    type Error = &'static str;
    fn evaluate_batch(&mut self, batch: Batch<'_, Toy>) -> Result<(), Self::Error> {
        if self.network.calls.load(Ordering::SeqCst) == self.at_call {
            self.barrier.wait();
            self.barrier.wait();
        }
        self.network.evaluate_batch(batch)
    }
    fn network(&self) -> Option<u64> {
        Evaluator::<Toy>::network(&self.network)
    }
}

#[test]
fn a_game_under_way_at_a_change_of_the_network_names_both() {
    let barrier = Arc::new(Barrier::new(2));
    let held = |network, at_call| Held { network, at_call, barrier: barrier.clone() };
    let layout = Layout { slots: 4, first_game: 5, games: Some(4), ..Layout::default() };
    let networks = vec![held(Network::new(1), 20)];
    let play = SelfPlay::start(&toy(), config(), &layout, networks, &Workers::Serial, None).unwrap();
    barrier.wait();
    play.pause(true);
    barrier.wait();
    assert!(play.is_paused(PATIENCE));
    let before = play.take_finished(usize::MAX);
    play.swap(vec![held(Network { salt: 1.0, ..Network::new(2) }, u64::MAX)]).unwrap();
    assert!(play.is_swapped(PATIENCE));
    play.pause(false);
    play.admit(20..24);
    let mut after = Vec::new();
    while !play.is_over() {
        after.extend(play.next(PATIENCE).unwrap());
    }
    assert_eq!(after.len() + before.len(), 8);
    let networks = |game: &GameRecord| -> Vec<u64> {
        game.plies.iter().filter(|ply| ply.is_searched()).map(|ply| ply.network).collect()
    };
    assert!(before.iter().all(|game| networks(game).iter().all(|&network| network == 1)));
    assert!(after.iter().all(|game| networks(game).is_sorted()));
    let both = |game: &&GameRecord| networks(game).starts_with(&[1]) && networks(game).ends_with(&[2]);
    assert!(after.iter().any(|game| both(&game)), "no game was under way");
    assert!(after.iter().filter(|game| game.game_id >= 20).all(|game| networks(game)[0] == 2));
}

#[test]
fn a_resigned_game_is_the_same_game_cut_short() {
    let play = |resign_at| all(&start(SelfPlayConfig { resign_at, ..config() }, 8, Some(200), vec![Network::new(3)]));
    let (whole, cut) = (play(1.0), play(0.1));
    let value = |game: &GameRecord, ply: usize| game.root_value_of(ply, game.plies[ply].mover().unwrap());
    let mut played_on = 0;
    for (whole, cut) in whole.iter().zip(&cut) {
        // Where a player's search and its last one before find it lost.
        let is_lost = |&ply: &usize| {
            let before = (0..ply).rev().find(|&before| whole.plies[before].player == whole.plies[ply].player);
            value(whole, ply) < -0.1 && before.is_some_and(|before| value(whole, before) < -0.1)
        };
        let lost = (0..whole.plies.len()).filter(|&ply| whole.plies[ply].mover().is_some()).find(is_lost);
        cut.check(&toy()).unwrap();
        if !cut.resigned {
            played_on += usize::from(lost.is_some());
            assert_eq!(cut, whole);
            continue;
        }
        let plies = cut.plies.len();
        assert_eq!(Some(plies), lost);
        assert!(cut.plies == whole.plies[..plies] && cut.offsets == whole.offsets[..=plies]);
        assert_eq!(cut.outcomes, [if whole.plies[plies].player == 0 { -1.0 } else { 1.0 }]);
    }
    let resigned = cut.iter().filter(|game| game.resigned).count();
    assert!(resigned > 20 && (1..resigned / 4).contains(&played_on), "{resigned} resigned, {played_on} played on");
}

fn first_error(play: &SelfPlay<Network, &'static str>) -> SelfPlayError<&'static str> {
    loop {
        if let Err(error) = play.next(PATIENCE) {
            return error;
        }
    }
}

#[test]
fn a_failing_evaluator_ends_the_run_with_its_own_error() {
    let network = Network::new(1);
    let play = start(config(), 16, None, vec![network.clone(), network.clone()]);
    while play.next(PATIENCE).unwrap().is_none() {}
    network.fail.store(true, Ordering::SeqCst);
    assert!(matches!(first_error(&play), SelfPlayError::Search(SearchError::Evaluator("asked to fail"))));
}

#[test]
fn a_panic_is_an_error_not_a_hang() {
    let play = start(config(), 4, None, vec![Network { panics: true, ..Network::new(1) }, Network::new(1)]);
    assert!(matches!(first_error(&play), SelfPlayError::Panic(text) if text.contains("asked to panic")));
}

#[test]
fn nothing_is_sent_to_the_old_network_after_a_swap() {
    let (old, new) = (Network::new(1), Network::new(2));
    let play = start(config(), 16, None, vec![old.clone(), old.clone()]);
    for paused in [false, true] {
        play.pause(paused);
        play.swap(vec![new.clone(), new.clone()]).unwrap();
        assert!(play.is_swapped(PATIENCE));
        play.pause(false);
    }
    let calls = old.calls.load(Ordering::SeqCst);
    for _ in 0..50 {
        while play.next(PATIENCE).unwrap().is_none() {}
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
    assert!(play.is_swapped(PATIENCE));
    play.pause(false);
    assert_eq!(all(&play).len(), 1);
}

#[test]
fn a_game_cut_short_is_a_marked_draw() {
    let play = start(SelfPlayConfig { max_plies: Some(3), ..config() }, 4, Some(40), vec![Network::new(1)]);
    let games = all(&play);
    assert!(games.iter().any(|game| game.capped));
    for game in games {
        game.check(&toy()).unwrap();
        assert!(game.plies.len() <= 3 && (!game.capped || game.outcomes == [0.0]));
    }
}

#[test]
fn the_replay_buffer_draws_what_the_records_say() {
    let toy = toy();
    let games = all(&start(config(), 8, Some(30), vec![Network::new(1)]));
    let mut buffer = ReplayBuffer::new(toy.clone(), 40);
    buffer.extend(games.iter().cloned().map(Arc::new), &Workers::Serial).unwrap();
    assert!(buffer.num_samples() >= 40 || buffer.num_games() == 30);
    assert!(buffer.num_games() < 30, "old games make room");
    let drawn = draw(&buffer, Draw { seed: 1, root_value_weight: 0.5, symmetries: true, ..Draw::default() }, 64);
    for policy in drawn.policies.chunks(toy.num_actions()) {
        assert!((policy.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    assert!(drawn.values.iter().all(|value| value.abs() <= 1.0));
    let mut broken = games[0].clone();
    broken.outcomes[0] += 0.5;
    let error = buffer.extend([Arc::new(broken)], &Workers::Serial).unwrap_err();
    assert!(matches!(error, Error::InvalidGame { game_id: 5, .. }), "{error}");
}
