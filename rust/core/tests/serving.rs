//! Requests that share rounds: each finds what it would find alone, and gets its turn and its answer in time.

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Action, Game, PovValue, Turn, Value};
use azpy_core::search::{Search, Stop, stream_for};
use azpy_core::serving::{Ended, Request, Serving};
use azpy_core::toy::Toy;
use common::{check_tree, hashed_answer};

/// How a game fails, if it does.
#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Never,
    /// It breaks the contract: a player without actions.
    Rules,
    /// As games in Python fail: as it is played, or as it is encoded.
    Playing,
    Encoding,
}

/// A toy that somebody asks about; equal ones of different owners are told apart by the tests alone.
#[derive(Clone)]
struct Asked {
    toy: Toy,
    who: usize,
    plies: usize,
    fails: Fails,
    failed: Arc<AtomicBool>,
}

impl Asked {
    fn new(who: usize, toy: Toy) -> Self {
        Self { toy, who, plies: 0, fails: Fails::Never, failed: Arc::default() }
    }
    fn failing(who: usize, fails: Fails) -> Self {
        Self { fails, ..Self::new(who, Toy::countdown(12)) }
    }
}

impl Game for Asked {
    fn num_actions(&self) -> usize {
        8
    }
    fn obs_shape(&self) -> [usize; 3] {
        self.toy.obs_shape()
    }
    fn max_plies(&self) -> usize {
        self.toy.max_plies()
    }
    fn turn(&self) -> Turn {
        if self.failed.load(Ordering::SeqCst) { Turn::Terminal } else { self.toy.turn() }
    }
    fn legal_actions(&self, out: &mut Vec<Action>) {
        self.toy.legal_actions(out);
        if self.fails == Fails::Rules && self.plies == 3 {
            out.clear();
        }
    }
    fn play(&mut self, action: Action) {
        self.toy.play(action);
        self.plies += 1;
        if self.fails == Fails::Playing && self.plies == 3 {
            self.failed.store(true, Ordering::SeqCst);
        }
    }
    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        self.toy.chance_outcomes(out);
    }
    fn outcome(&self) -> Value {
        self.toy.outcome()
    }
    fn encode(&self, row: &mut [f32]) {
        self.toy.encode(row);
        if self.fails == Fails::Encoding && self.plies == 3 {
            self.failed.store(true, Ordering::SeqCst);
        }
    }
    fn key(&self) -> u128 {
        self.toy.key()
    }
    fn render(&self) -> String {
        self.toy.render()
    }
}

fn broken(game: &Asked) -> bool {
    game.failed.load(Ordering::SeqCst)
}

/// The hashed answers; notes whose rows were in each batch. It has a clock that stands still but for its own work.
struct Recording {
    batches: Vec<Vec<usize>>,
    fail_at: usize,
    cached: bool,
    now: Instant,
    a_row_takes: Duration,
}

impl Recording {
    fn new() -> Self {
        let (now, a_row_takes) = (Instant::now(), Duration::ZERO);
        Self { batches: Vec::new(), fail_at: usize::MAX, cached: false, now, a_row_takes }
    }
    fn sizes(&self) -> Vec<usize> {
        self.batches.iter().map(Vec::len).collect()
    }
}

impl Evaluator<Asked> for Recording {
    type Error = &'static str;
    fn evaluate_batch(&mut self, batch: Batch<'_, Asked>) -> Result<(), Self::Error> {
        let mut observations = vec![f32::NAN; batch.rows() * 3];
        batch.fill(0..batch.rows(), &mut observations);
        if batch.states.iter().any(broken) {
            return Err("a game failed");
        }
        self.batches.push(batch.states.iter().map(|state| state.who).collect());
        self.now += self.a_row_takes * batch.rows() as u32;
        if self.batches.len() > self.fail_at {
            return Err("asked to fail");
        }
        for (row, observation) in observations.chunks(3).enumerate() {
            let range = batch.range(row);
            batch.values[row] =
                PovValue(hashed_answer(observation, &batch.actions[range.clone()], &mut batch.logits[range]));
        }
        Ok(())
    }
    fn network(&self) -> Option<u64> {
        self.cached.then_some(1)
    }
}

fn serving(config: SearchConfig, max_batch: usize, cache: Option<Arc<Cache>>) -> Serving<Asked, usize> {
    Serving::new(config, max_batch, Workers::new(2).unwrap(), cache, broken)
}

fn one_leaf() -> SearchConfig {
    SearchConfig { eval_batch: 1, ..SearchConfig::default() }
}

fn request(who: usize, simulations: u32) -> Request<usize> {
    Request { token: who, simulations, seed: who as u64, deadline: None }
}

fn join(serving: &mut Serving<Asked, usize>, who: usize, simulations: u32) {
    let toy = Toy::random(who as u64, 7, true);
    assert!(serving.join(Asked::new(who, toy), request(who, simulations)).is_ok());
}

/// One round, and what ended in it.
fn round(
    serving: &mut Serving<Asked, usize>,
    evaluator: &mut Recording,
) -> Result<Vec<Ended<Asked, usize>>, SearchError<&'static str>> {
    let mut ended = serving.gather(evaluator, Instant::now());
    ended.append(&mut serving.answer(evaluator)?);
    Ok(ended)
}

/// Rounds until all is done.
fn finish(serving: &mut Serving<Asked, usize>, evaluator: &mut Recording) -> Vec<Ended<Asked, usize>> {
    let mut ended = Vec::new();
    while !serving.is_empty() {
        ended.append(&mut round(serving, evaluator).unwrap());
    }
    ended
}

/// What a search of its own finds.
fn alone(root: &Asked, config: SearchConfig, simulations: u32, seed: u64) -> Search<Asked> {
    let mut search = Search::new(root.clone(), config, 0);
    search.begin(simulations, stream_for(seed, 0, 0)).unwrap();
    let mut rounds = Rounds::new(Workers::Serial, None);
    while rounds.run(std::slice::from_mut(&mut search), &mut [Recording::new()]).unwrap() {}
    search
}

#[test]
fn a_batch_takes_what_waits_up_to_the_cap() {
    for (requests, batches) in [(1, vec![1]), (3, vec![3]), (200, vec![200]), (256, vec![256]), (300, vec![256, 44])] {
        let mut serving = serving(one_leaf(), 256, None);
        let mut evaluator = Recording::new();
        (0..requests).for_each(|who| join(&mut serving, who, 0));
        assert_eq!(finish(&mut serving, &mut evaluator).len(), requests);
        assert_eq!(evaluator.sizes(), batches);
    }
}

#[test]
fn whoever_the_cap_leaves_over_comes_first() {
    let mut serving = serving(one_leaf(), 32, None);
    let mut evaluator = Recording::new();
    let start = Asked::new(0, Toy::chain(60));
    for who in 0..50 {
        assert!(serving.join(Asked { who, ..start.clone() }, request(who, 40)).is_ok());
    }
    let mut ended = Vec::new();
    for rounds in 1..=20 {
        ended.append(&mut round(&mut serving, &mut evaluator).unwrap());
        assert_eq!(serving.left_over(), 18);
        let mut turns: HashMap<usize, usize> = HashMap::new();
        evaluator.batches.iter().flatten().for_each(|&who| *turns.entry(who).or_default() += 1);
        let (fewest, most) = ((0..50).map(|who| turns.get(&who).copied().unwrap_or(0)).min(), turns.values().max());
        assert!(
            most.unwrap() - fewest.unwrap() <= 1,
            "after {rounds} rounds somebody had {most:?} turns, and {fewest:?}"
        );
    }
    // Those who come later do not push ahead.
    (50..90).for_each(|who| join(&mut serving, who, 5));
    ended.append(&mut round(&mut serving, &mut evaluator).unwrap());
    assert!(evaluator.batches.last().unwrap().iter().all(|&who| who < 50));
}

#[test]
fn small_requests_do_not_wait_for_large_ones() {
    let mut serving = serving(one_leaf(), 256, None);
    let mut evaluator = Recording::new();
    let start = Asked::new(0, Toy::chain(2000));
    assert!(serving.join(start.clone(), request(0, 1000)).is_ok());
    let mut ended = Vec::new();
    (0..50).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator).unwrap()));
    assert!(serving.join(Asked { who: 1, ..start }, request(1, 10)).is_ok());
    (0..11).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator).unwrap()));
    assert_eq!(ended.iter().map(|ended| ended.token).collect::<Vec<_>>(), [1]);
}

#[test]
fn searches_that_need_no_evaluator_leave_the_others_their_turns() {
    // All positions of a countdown from 3 are soon known: from then on every simulation ends in a finished game.
    let config = SearchConfig { in_flight_share: Some(0.05), ..SearchConfig::default() };
    let known = Asked::new(0, Toy::countdown(3));
    let simulations = 5000;
    let mut serving = serving(config, 256, None);
    let mut evaluator = Recording::new();
    for who in 1..=20 {
        assert!(serving.join(Asked { who, ..known.clone() }, request(who, simulations)).is_ok());
    }
    (0..3).for_each(|_| assert!(round(&mut serving, &mut evaluator).unwrap().is_empty()));
    assert!(serving.join(Asked::new(99, Toy::chain(500)), request(99, 40)).is_ok());
    let first = loop {
        let ended = round(&mut serving, &mut evaluator).unwrap();
        if !ended.is_empty() {
            break ended;
        }
    };
    assert_eq!(first.iter().map(|ended| ended.token).collect::<Vec<_>>(), [99]);
    let rest = finish(&mut serving, &mut evaluator);
    assert_eq!(rest.len(), 20);
    for Ended { search, token } in rest {
        let twin = alone(&known, config, simulations, token as u64);
        assert_eq!((search.result(), search.stats()), (twin.result(), twin.stats()), "pauses change nothing");
    }
    // One that is alone does not take small steps.
    assert!(serving.join(known, request(0, simulations)).is_ok());
    let rounds = (1..).find(|_| !round(&mut serving, &mut evaluator).unwrap().is_empty()).unwrap();
    assert!(rounds < 20, "{rounds} rounds");
}

#[test]
fn a_request_finds_what_it_would_find_alone() {
    for (eval_batch, max_batch, cached) in [(1, 256, false), (1, 5, true), (8, 16, true), (3, 7, false)] {
        let config = SearchConfig { eval_batch, ..SearchConfig::default() };
        let cache = cached.then(|| Arc::new(Cache::new(512)));
        let mut serving = serving(config, max_batch, cache);
        let mut evaluator = Recording { cached, ..Recording::new() };
        let mut ended = Vec::new();
        let size = |who: usize| [0, 1, 7, 40, 150][who % 5];
        // They come a few at a time, three of them for the same position, and some give up.
        for who in 0..60 {
            let toy = Toy::random(who as u64 / 3, 7, true);
            assert!(serving.join(Asked::new(who, toy), request(who, size(who))).is_ok());
            if who % 4 == 0 {
                ended.append(&mut round(&mut serving, &mut evaluator).unwrap());
                serving.leave(|&other| other % 11 == 10);
            }
        }
        ended.append(&mut finish(&mut serving, &mut evaluator));
        assert!(evaluator.sizes().iter().all(|&rows| rows <= max_batch));
        assert!(ended.len() >= 54);
        for Ended { search, token: who } in ended {
            let root = Asked::new(who, Toy::random(who as u64 / 3, 7, true));
            let twin = alone(&root, config, size(who), who as u64);
            assert_eq!(search.result(), twin.result(), "request {who}");
            check_tree(&search);
        }
    }
}

#[test]
fn a_deadline_is_kept_beside_others_that_have_none() {
    let mut serving = serving(one_leaf(), 64, None);
    let mut evaluator = Recording { a_row_takes: Duration::from_micros(100), ..Recording::new() };
    let start = Asked::new(0, Toy::chain(4000));
    // Three rounds' worth of others that never end.
    for who in 0..192 {
        assert!(serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX)).is_ok());
    }
    let mut ended = Vec::new();
    for _ in 0..5 {
        assert!(serving.gather(&evaluator, evaluator.now).is_empty());
        assert!(serving.answer(&mut evaluator).unwrap().is_empty());
    }
    for who in 200..220 {
        let asked = evaluator.now;
        let allowed = Duration::from_millis(13 + who as u64);
        let request = Request { deadline: Some(asked + allowed), ..request(who, u32::MAX) };
        assert!(serving.join(Asked { who, ..start.clone() }, request).is_ok());
        while ended.is_empty() {
            ended.append(&mut serving.gather(&evaluator, evaluator.now));
            if ended.is_empty() {
                // Rounds take 6.4 or 2.6 ms.
                evaluator.a_row_takes = Duration::from_micros(140) - evaluator.a_row_takes;
                ended.append(&mut serving.answer(&mut evaluator).unwrap());
            }
        }
        let taken = evaluator.now - asked;
        let Ended { search, token } = ended.pop().unwrap();
        assert_eq!((token, search.stop()), (who, Stop::Interrupted));
        // In time, but not much too early.
        assert!(taken <= allowed && taken + Duration::from_millis(15) > allowed, "{taken:?} of {allowed:?}");
        assert!(search.result().visits.iter().sum::<u32>() > 0);
        check_tree(&search);
    }
}

#[test]
fn too_little_time_is_enough_for_the_network_alone() {
    let mut serving = serving(one_leaf(), 8, None);
    let mut evaluator = Recording::new();
    let (start, mut ended) = (Asked::new(0, Toy::chain(4000)), Vec::new());
    for who in 0..30 {
        assert!(serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX)).is_ok());
    }
    (0..3).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator).unwrap()));
    let hurried = Request { deadline: Some(Instant::now()), ..request(30, u32::MAX) };
    assert!(serving.join(Asked { who: 30, ..start }, hurried).is_ok());
    (0..2).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator).unwrap()));
    let Ended { search, token } = ended.pop().unwrap();
    assert_eq!((token, search.stats().evaluations, search.result().visits), (30, 1, vec![0]));
}

#[test]
fn whoever_is_due_keeps_the_root_that_waits() {
    for evaluations in [2, 3] {
        let config = SearchConfig { evaluations: Some(evaluations), ..one_leaf() };
        let mut serving = serving(config, 1, None);
        let mut evaluator = Recording::new();
        for who in 0..6 {
            let due = Request { deadline: Some(evaluator.now), ..request(who, u32::MAX) };
            assert!(serving.join(Asked::new(who, Toy::countdown(12)), due).is_ok());
        }
        // One a round: those left over are due again and again.
        let mut ended = Vec::new();
        (0..7).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator).unwrap()));
        assert_eq!(ended.len(), 6);
        for Ended { search, .. } in ended {
            assert_eq!((search.stop(), search.stats().evaluations, search.stats().rounds), (Stop::Interrupted, 1, 1));
            check_tree(&search);
        }
    }
}

#[test]
fn the_others_go_on_however_many_are_in_a_hurry() {
    let mut serving = serving(one_leaf(), 8, None);
    let mut evaluator = Recording::new();
    let start = Asked::new(0, Toy::chain(4000));
    for who in 0..20 {
        assert!(serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX)).is_ok());
    }
    for who in 100..900 {
        let hurried = Request { deadline: Some(Instant::now()), ..request(who, u32::MAX) };
        assert!(serving.join(Asked { who, ..start.clone() }, hurried).is_ok());
        if who % 10 == 0 {
            round(&mut serving, &mut evaluator).unwrap();
        }
    }
    let turns = |who: usize| evaluator.batches.iter().flatten().filter(|&&other| other == who).count();
    let (fewest, most) = ((0..20).map(turns).min().unwrap(), (0..20).map(turns).max().unwrap());
    assert!(fewest >= 3 && most - fewest <= 1, "the others had {fewest} to {most} turns of 80");
}

#[test]
fn one_in_a_hurry_each_round_does_not_hold_up_whoever_fills_a_batch() {
    let new = Toy::countdown(16);
    // Where the root is known already, a newcomer has as many rows as any other.
    for (max_batch, each, cached) in [(8, 1, false), (12, 5, false), (32, 8, true)] {
        let config = SearchConfig { eval_batch: 8, ..SearchConfig::default() };
        let mut serving = serving(config, max_batch, cached.then(|| Arc::new(Cache::new(4096))));
        let mut evaluator = Recording { cached, ..Recording::new() };
        if cached {
            assert!(serving.join(Asked::new(99, new.clone()), request(99, 0)).is_ok());
            finish(&mut serving, &mut evaluator);
        }
        for who in 0..3 {
            assert!(serving.join(Asked::new(who, Toy::countdown(17 + who as u32)), request(who, u32::MAX)).is_ok());
        }
        (0..6).for_each(|_| drop(round(&mut serving, &mut evaluator).unwrap()));
        evaluator.batches.clear();
        for rounds in 0..60 {
            for one in 0..each {
                let who = 100 + rounds * each + one;
                let late = Some(Instant::now() + Duration::from_secs(600));
                let hurried = Request { deadline: late, ..request(who, 8 * u32::from(cached)) };
                assert!(serving.join(Asked::new(who, new.clone()), hurried).is_ok());
            }
            round(&mut serving, &mut evaluator).unwrap();
        }
        for who in 0..3 {
            let turns = evaluator.batches.iter().filter(|batch| batch.contains(&who)).count();
            assert!(turns >= 5, "{who} had {turns} turns of 60 with {each} in a hurry and room for {max_batch}");
        }
    }
}

#[test]
fn a_pause_after_an_error_is_no_rounds_length() {
    let mut serving = serving(one_leaf(), 8, None);
    let mut evaluator = Recording { fail_at: 0, ..Recording::new() };
    let start = Asked::new(0, Toy::chain(4000));
    assert!(serving.join(start.clone(), request(0, 10)).is_ok());
    serving.gather(&evaluator, evaluator.now);
    assert!(serving.answer(&mut evaluator).is_err());
    serving.clear();
    evaluator.fail_at = usize::MAX;
    evaluator.now += Duration::from_secs(3);
    let soon = Request { deadline: Some(evaluator.now + Duration::from_millis(500)), ..request(1, 20) };
    assert!(serving.join(Asked { who: 1, ..start }, soon).is_ok());
    let mut ended = Vec::new();
    while !serving.is_empty() {
        ended.append(&mut serving.gather(&evaluator, evaluator.now));
        ended.append(&mut serving.answer(&mut evaluator).unwrap());
    }
    assert_eq!(ended[0].search.stop(), Stop::Simulations);
}

#[test]
fn an_error_of_the_evaluator_ends_what_is_under_way_and_nothing_else() {
    let mut serving = serving(one_leaf(), 16, None);
    let mut evaluator = Recording { fail_at: 2, ..Recording::new() };
    let mut ended = Vec::new();
    (0..20).for_each(|who| join(&mut serving, who, 1000));
    let error = loop {
        match round(&mut serving, &mut evaluator) {
            Ok(mut more) => ended.append(&mut more),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SearchError::Evaluator("asked to fail")));
    let mut failed = serving.clear();
    failed.sort_unstable();
    assert_eq!(failed, (0..20).collect::<Vec<_>>());
    assert!(serving.is_empty() && ended.is_empty());
    evaluator.fail_at = usize::MAX;
    join(&mut serving, 3, 100);
    let found = finish(&mut serving, &mut evaluator).pop().unwrap().search.result();
    assert_eq!(found, alone(&Asked::new(3, Toy::random(3, 7, true)), one_leaf(), 100, 3).result());
}

#[test]
fn a_game_that_fails_fails_alone() {
    for fails in [Fails::Rules, Fails::Playing, Fails::Encoding] {
        let config = SearchConfig { eval_batch: 4, ..SearchConfig::default() };
        let mut serving = serving(config, 16, None);
        let mut evaluator = Recording::new();
        for who in 0..9 {
            if who == 4 {
                assert!(serving.join(Asked::failing(4, fails), request(4, 1_000_000)).is_ok());
            } else {
                join(&mut serving, who, 200);
            }
        }
        let ended = finish(&mut serving, &mut evaluator);
        assert_eq!(ended.len(), 9);
        for Ended { search, token: who } in ended {
            if who == 4 {
                assert_eq!(search.fault().is_some(), fails == Fails::Rules);
                assert_eq!(broken(search.root()), fails != Fails::Rules);
                assert!(search.stats().simulations < 10_000, "it ends at once");
            } else {
                let root = Asked::new(who, Toy::random(who as u64, 7, true));
                assert_eq!(search.result(), alone(&root, config, 200, who as u64).result());
            }
        }
    }
}

#[test]
fn a_roll_and_a_finished_game_are_told_apart_at_once() {
    let mut serving = serving(one_leaf(), 8, None);
    let roll = Asked::new(0, Toy::parse("?(1:+ 1:-)").unwrap());
    assert!(serving.join(roll, request(0, 10)).is_err_and(|(_, token)| token == 0));
    assert!(serving.is_empty());
    assert!(serving.join(Asked::new(1, Toy::parse("-").unwrap()), request(1, 10)).is_ok());
    let mut evaluator = Recording::new();
    let ended = finish(&mut serving, &mut evaluator);
    assert_eq!((ended[0].search.stop(), evaluator.batches.len()), (Stop::GameOver, 0));
}

#[test]
fn those_who_leave_are_given_back_and_the_others_go_on() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording::new();
    let mut ended = Vec::new();
    (0..10).for_each(|who| join(&mut serving, who, 50));
    ended.append(&mut round(&mut serving, &mut evaluator).unwrap());
    (10..12).for_each(|who| join(&mut serving, who, 50));
    let mut left = serving.leave(|who| who % 2 == 1);
    left.sort_unstable();
    ended.append(&mut finish(&mut serving, &mut evaluator));
    let mut stayed: Vec<_> = ended.iter().map(|ended| ended.token).collect();
    stayed.sort_unstable();
    assert_eq!((left, stayed), ((0..12).filter(|who| who % 2 == 1).collect(), vec![0, 2, 4, 6, 8, 10]));
}
