//! Requests that share rounds: each finds what it would find alone, and gets its turn and its answer in time.

mod common;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{Desk, Lane, Open, Priority, Request, Seat, Wish};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Action, Game, GameFault, PovValue, Turn, Value};
use azpy_core::search::{Search, Stop, stream_for};
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

thread_local! {
    /// Owners who want something else than that their searches go on.
    static WISHES: RefCell<HashMap<usize, Wish>> = RefCell::default();
}

fn wish(who: usize, wish: Wish) {
    WISHES.with_borrow_mut(|wishes| wishes.insert(who, wish));
}

fn wished(who: &usize) -> Wish {
    WISHES.with_borrow(|wishes| wishes.get(who).copied().unwrap_or(Wish::GoOn))
}

type Ended = Open<Asked, usize>;

/// A desk and one lane.
struct Serving {
    desk: Desk<Asked, usize>,
    lane: Lane<Asked, usize>,
}

impl Serving {
    fn join(&mut self, root: Asked, request: Request<usize>) {
        let search = self.desk.search(root);
        self.desk.join(search, request, Instant::now());
    }

    /// A round, with the searches that ended or failed in it.
    fn round(&mut self, evaluator: &mut Recording) -> (Result<(), SearchError<&'static str>>, Vec<Ended>, Vec<Ended>) {
        while self.desk.give(&mut self.lane, evaluator.now, true) && self.lane.gather(evaluator.network()) {}
        let outcome = self.lane.answer(evaluator);
        let took = self.desk.take_back(&mut self.lane, evaluator.now);
        (outcome, took.ended, took.failed)
    }
}

fn serving(config: SearchConfig, max_batch: usize, cache: Option<Arc<Cache>>) -> Serving {
    let desk = Desk::new(config, max_batch, usize::MAX, broken, wished);
    let lane = desk.lane(Workers::new(2).unwrap(), cache);
    Serving { desk, lane }
}

fn one_leaf() -> SearchConfig {
    SearchConfig { eval_batch: 1, ..SearchConfig::default() }
}

fn request(who: usize, simulations: u32) -> Request<usize> {
    let (deadline, priority, report_every) = (None, Priority::Play, None);
    Request { token: who, simulations, seed: who as u64, run: 0, deadline, priority, report_every }
}

fn join(serving: &mut Serving, who: usize, simulations: u32) {
    let toy = Toy::random(who as u64, 7, true);
    serving.join(Asked::new(who, toy), request(who, simulations));
}

/// One round, and the searches that ended in it.
fn round(serving: &mut Serving, evaluator: &mut Recording) -> Vec<Ended> {
    let (outcome, ended, failed) = serving.round(evaluator);
    outcome.unwrap();
    assert!(failed.is_empty());
    ended
}

/// Rounds until all is done.
fn finish(serving: &mut Serving, evaluator: &mut Recording) -> Vec<Ended> {
    let mut ended = Vec::new();
    while !serving.desk.is_empty() {
        ended.append(&mut round(serving, evaluator));
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
        serving.join(Asked { who, ..start.clone() }, request(who, 40));
    }
    let mut ended = Vec::new();
    for rounds in 1..=20 {
        ended.append(&mut round(&mut serving, &mut evaluator));
        assert_eq!(serving.desk.left_over(), 18);
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
    ended.append(&mut round(&mut serving, &mut evaluator));
    assert!(evaluator.batches.last().unwrap().iter().all(|&who| who < 50));
}

#[test]
fn small_requests_do_not_wait_for_large_ones() {
    let mut serving = serving(one_leaf(), 256, None);
    let mut evaluator = Recording::new();
    let start = Asked::new(0, Toy::chain(2000));
    serving.join(start.clone(), request(0, 1000));
    let mut ended = Vec::new();
    (0..50).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator)));
    serving.join(Asked { who: 1, ..start }, request(1, 10));
    (0..11).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator)));
    assert_eq!(ended.iter().map(|ended| ended.request.token).collect::<Vec<_>>(), [1]);
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
        serving.join(Asked { who, ..known.clone() }, request(who, simulations));
    }
    (0..3).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    serving.join(Asked::new(99, Toy::chain(500)), request(99, 40));
    let first = loop {
        let ended = round(&mut serving, &mut evaluator);
        if !ended.is_empty() {
            break ended;
        }
    };
    assert_eq!(first.iter().map(|ended| ended.request.token).collect::<Vec<_>>(), [99]);
    let rest = finish(&mut serving, &mut evaluator);
    assert_eq!(rest.len(), 20);
    for Open { search, request: Request { token, .. }, .. } in rest {
        let twin = alone(&known, config, simulations, token as u64);
        assert_eq!((search.result(), search.stats()), (twin.result(), twin.stats()), "pauses change nothing");
    }
    // One that is alone does not take small steps.
    serving.join(known, request(0, simulations));
    let rounds = (1..).find(|_| !round(&mut serving, &mut evaluator).is_empty()).unwrap();
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
            serving.join(Asked::new(who, toy), request(who, size(who)));
            if who % 4 == 0 {
                ended.append(&mut round(&mut serving, &mut evaluator));
                (0..=who).filter(|who| who % 11 == 10).for_each(|who| wish(who, Wish::Leave));
            }
        }
        ended.append(&mut finish(&mut serving, &mut evaluator));
        ended.retain(|open| open.request.token % 11 != 10);
        assert!(evaluator.sizes().iter().all(|&rows| rows <= max_batch));
        assert!(ended.len() >= 54);
        for Open { search, request: Request { token: who, .. }, .. } in ended {
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
        serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX));
    }
    let mut ended = Vec::new();
    for _ in 0..5 {
        assert!(round(&mut serving, &mut evaluator).is_empty());
    }
    for who in 200..220 {
        let asked = evaluator.now;
        let allowed = Duration::from_millis(13 + who as u64);
        let request = Request { deadline: Some(asked + allowed), ..request(who, u32::MAX) };
        serving.join(Asked { who, ..start.clone() }, request);
        while ended.is_empty() {
            // Rounds take 6.4 or 2.6 ms.
            evaluator.a_row_takes = Duration::from_micros(140) - evaluator.a_row_takes;
            ended.append(&mut round(&mut serving, &mut evaluator));
        }
        let taken = evaluator.now - asked;
        let Open { search, request: Request { token, .. }, .. } = ended.pop().unwrap();
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
        serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX));
    }
    (0..3).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator)));
    let hurried = Request { deadline: Some(evaluator.now), ..request(30, u32::MAX) };
    serving.join(Asked { who: 30, ..start }, hurried);
    (0..2).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator)));
    let Open { search, request: Request { token, .. }, .. } = ended.pop().unwrap();
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
            serving.join(Asked::new(who, Toy::countdown(12)), due);
        }
        // One a round: those left over are due again and again.
        let mut ended = Vec::new();
        (0..7).for_each(|_| ended.append(&mut round(&mut serving, &mut evaluator)));
        assert_eq!(ended.len(), 6);
        for Open { search, .. } in ended {
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
        serving.join(Asked { who, ..start.clone() }, request(who, u32::MAX));
    }
    for who in 100..900 {
        let hurried = Request { deadline: Some(evaluator.now), ..request(who, u32::MAX) };
        serving.join(Asked { who, ..start.clone() }, hurried);
        if who % 10 == 0 {
            round(&mut serving, &mut evaluator);
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
            serving.join(Asked::new(99, new.clone()), request(99, 0));
            finish(&mut serving, &mut evaluator);
        }
        for who in 0..3 {
            serving.join(Asked::new(who, Toy::countdown(17 + who as u32)), request(who, u32::MAX));
        }
        (0..6).for_each(|_| drop(round(&mut serving, &mut evaluator)));
        evaluator.batches.clear();
        for rounds in 0..60 {
            for one in 0..each {
                let who = 100 + rounds * each + one;
                let late = Some(Instant::now() + Duration::from_secs(600));
                let hurried = Request { deadline: late, ..request(who, 8 * u32::from(cached)) };
                serving.join(Asked::new(who, new.clone()), hurried);
            }
            round(&mut serving, &mut evaluator);
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
    serving.join(start.clone(), request(0, 10));
    assert!(serving.round(&mut evaluator).0.is_err());
    evaluator.fail_at = usize::MAX;
    evaluator.now += Duration::from_secs(3);
    let soon = Request { deadline: Some(evaluator.now + Duration::from_millis(500)), ..request(1, 20) };
    serving.join(Asked { who: 1, ..start }, soon);
    let mut ended = Vec::new();
    while !serving.desk.is_empty() {
        ended.append(&mut round(&mut serving, &mut evaluator));
    }
    assert_eq!(ended[0].search.stop(), Stop::Simulations);
}

#[test]
fn an_error_of_the_evaluator_ends_the_searches_of_its_batch_and_no_others() {
    let mut serving = serving(one_leaf(), 16, None);
    let mut evaluator = Recording { fail_at: 2, ..Recording::new() };
    (0..20).for_each(|who| join(&mut serving, who, 300));
    let mut failed = loop {
        let (outcome, ended, failed) = serving.round(&mut evaluator);
        assert!(ended.is_empty());
        if let Err(error) = outcome {
            assert!(matches!(error, SearchError::Evaluator("asked to fail")));
            break failed;
        }
        assert!(failed.is_empty());
    };
    assert_eq!(failed.len(), 16);
    evaluator.fail_at = usize::MAX;
    let ended = finish(&mut serving, &mut evaluator);
    let mut all: Vec<_> = failed.iter().chain(&ended).map(|open| open.request.token).collect();
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    for open in &ended {
        let who = open.request.token;
        let twin = alone(&Asked::new(who, Toy::random(who as u64, 7, true)), one_leaf(), 300, who as u64);
        assert_eq!(open.search.result(), twin.result());
    }
    // A tree that was in the batch can be used on.
    let open = failed.pop().unwrap();
    check_tree(&open.search);
    let before: u32 = open.search.result().visits.iter().sum();
    serving.desk.join(open.search, request(99, 50), evaluator.now);
    let visits: u32 = finish(&mut serving, &mut evaluator)[0].search.result().visits.iter().sum();
    assert_eq!(visits, before + 50);
}

#[test]
fn a_game_that_fails_fails_alone() {
    for fails in [Fails::Rules, Fails::Playing, Fails::Encoding] {
        let config = SearchConfig { eval_batch: 4, ..SearchConfig::default() };
        let mut serving = serving(config, 16, None);
        let mut evaluator = Recording::new();
        for who in 0..9 {
            if who == 4 {
                serving.join(Asked::failing(4, fails), request(4, 1_000_000));
            } else {
                join(&mut serving, who, 200);
            }
        }
        let ended = finish(&mut serving, &mut evaluator);
        assert_eq!(ended.len(), 9);
        for Open { search, request: Request { token: who, .. }, .. } in ended {
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
    serving.join(roll, request(0, 10));
    let mut evaluator = Recording::new();
    let ended = finish(&mut serving, &mut evaluator);
    assert!(matches!(ended[0].search.fault(), Some(GameFault::ChanceRoot)));
    serving.join(Asked::new(1, Toy::parse("-").unwrap()), request(1, 10));
    let ended = finish(&mut serving, &mut evaluator);
    assert_eq!((ended[0].search.stop(), evaluator.batches.len()), (Stop::GameOver, 0));
}

#[test]
fn those_who_leave_are_given_back_and_the_others_go_on() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording::new();
    (0..10).for_each(|who| join(&mut serving, who, 50));
    assert!(round(&mut serving, &mut evaluator).is_empty());
    (10..12).for_each(|who| join(&mut serving, who, 50));
    (0..12).filter(|who| who % 2 == 1).for_each(|who| wish(who, Wish::Leave));
    let left = serving.desk.look(evaluator.now);
    left.iter().for_each(|open| check_tree(&open.search));
    let ended = finish(&mut serving, &mut evaluator);
    let tokens = |open: &[Ended]| {
        let mut tokens: Vec<_> = open.iter().map(|open| open.request.token).collect();
        tokens.sort_unstable();
        tokens
    };
    assert_eq!((tokens(&left), tokens(&ended)), (vec![1, 3, 5, 7, 9, 11], vec![0, 2, 4, 6, 8, 10]));
}

#[test]
fn a_search_that_is_told_to_stop_gives_what_it_knows() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording::new();
    for who in 0..3 {
        serving.join(Asked::new(who, Toy::chain(4000)), request(who, u32::MAX));
    }
    (0..30).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    wish(1, Wish::Stop);
    let stopped = serving.desk.look(evaluator.now);
    assert_eq!((stopped.len(), stopped[0].request.token, stopped[0].search.stop()), (1, 1, Stop::Stopped));
    assert_eq!(stopped[0].search.result().visits.iter().sum::<u32>(), 29);
    // Before it has begun, the root is evaluated all the same.
    wish(3, Wish::Stop);
    join(&mut serving, 3, u32::MAX);
    let ended = round(&mut serving, &mut evaluator);
    assert_eq!((ended[0].request.token, ended[0].search.stats().evaluations), (3, 1));
}

/// Rounds in which two lanes alternate: one has its batch evaluated while the other gathers.
fn alternate(desk: &mut Desk<Asked, usize>, evaluator: &mut Recording, cache: Option<&Arc<Cache>>) -> Vec<Ended> {
    let mut lanes = [0, 1].map(|_| desk.lane(Workers::new(2).unwrap(), cache.cloned()));
    let (mut ended, mut busy) = (Vec::new(), [false; 2]);
    while !desk.is_empty() {
        for (lane, busy) in lanes.iter_mut().zip(&mut busy) {
            if *busy {
                lane.answer(evaluator).unwrap();
            }
            ended.append(&mut desk.take_back(lane, evaluator.now).ended);
            *busy = false;
            while desk.give(lane, evaluator.now, true) {
                *busy = true;
                if !lane.gather(evaluator.network()) {
                    break;
                }
            }
        }
    }
    ended
}

#[test]
fn two_lanes_alternate_and_change_nothing() {
    for (eval_batch, max_batch, split_from, cached) in
        [(1, 256, 0, false), (1, 5, 0, true), (8, 16, 8, true), (3, 7, 0, false), (8, 64, usize::MAX, false)]
    {
        let config = SearchConfig { eval_batch, ..SearchConfig::default() };
        let mut desk = Desk::new(config, max_batch, split_from, broken, wished);
        let mut evaluator = Recording { cached, ..Recording::new() };
        let cache = cached.then(|| Arc::new(Cache::new(512)));
        for who in 0..40 {
            let search = desk.search(Asked::new(who, Toy::random(who as u64, 7, true)));
            desk.join(search, request(who, 60), evaluator.now);
        }
        let ended = alternate(&mut desk, &mut evaluator, cache.as_ref());
        assert_eq!(ended.len(), 40);
        assert!(evaluator.sizes().iter().all(|&rows| rows <= max_batch));
        for open in ended {
            let who = open.request.token;
            let twin = alone(&Asked::new(who, Toy::random(who as u64, 7, true)), config, 60, who as u64);
            assert_eq!(open.search.result(), twin.result());
        }
    }
}

#[test]
fn lanes_share_what_does_not_fill_two_batches() {
    for (split_from, requests, sizes) in [(0, 40, (20, 20)), (41, 40, (40, 0)), (0, 200, (64, 64)), (0, 1, (1, 0))] {
        let mut desk = Desk::new(one_leaf(), 64, split_from, broken, wished);
        let mut evaluator = Recording::new();
        for who in 0..requests {
            let search = desk.search(Asked::new(who, Toy::chain(50)));
            desk.join(search, request(who, 10), evaluator.now);
        }
        let mut lanes = [0, 1].map(|_| desk.lane(Workers::Serial, None));
        let rows = lanes.each_mut().map(|lane| {
            while desk.give(lane, evaluator.now, true) && lane.gather(evaluator.network()) {}
            lane.rows()
        });
        assert_eq!((rows[0], rows[1]), sizes, "{requests} requests, split from {split_from}");
        for mut lane in lanes {
            lane.answer(&mut evaluator).unwrap();
            desk.take_back(&mut lane, evaluator.now);
        }
    }
}

/// Searches that never end at these priorities, and how many turns each had in so many rounds.
fn turns(priorities: &[Priority], max_batch: usize, rounds: usize) -> Vec<usize> {
    let mut serving = serving(one_leaf(), max_batch, None);
    let mut evaluator = Recording::new();
    for (who, &priority) in priorities.iter().enumerate() {
        let asked = Request { priority, ..request(who, u32::MAX) };
        serving.join(Asked::new(who, Toy::chain(4000)), asked);
    }
    (0..rounds).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    let turns = |who| evaluator.batches.iter().flatten().filter(|&&other| other == who).count();
    (0..priorities.len()).map(turns).collect()
}

#[test]
fn an_analysis_has_the_free_rows_and_else_a_turn_for_eight_of_the_others() {
    use Priority::{Analysis, Play};
    // Room for all.
    assert_eq!(turns(&[Play, Analysis, Play], 4, 40), [40, 40, 40]);
    // No room: four play for three rows, or twenty for five.
    for (play, room, rounds) in [(4, 3, 400), (20, 5, 4000)] {
        let mut priorities = vec![Play; play];
        priorities.push(Analysis);
        let turns = turns(&priorities, room, rounds);
        let (fewest, most) = (turns[..play].iter().min().unwrap(), turns[..play].iter().max().unwrap());
        assert!(most - fewest <= 1, "{turns:?}");
        let analysis = turns[play];
        assert!(analysis * 16 >= *most && analysis * 5 <= *most, "{turns:?}");
    }
}

#[test]
fn a_search_that_ponders_goes_on_only_while_there_is_nothing_else() {
    use Priority::{Analysis, Play, Ponder};
    assert_eq!(turns(&[Ponder, Play], 4, 40), [0, 40]);
    assert_eq!(turns(&[Ponder, Analysis], 4, 40), [0, 40]);
    assert_eq!(turns(&[Ponder, Ponder], 4, 40), [40, 40]);
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording::new();
    let ponder = Request { priority: Ponder, ..request(0, u32::MAX) };
    serving.join(Asked::new(0, Toy::chain(4000)), ponder);
    assert!(serving.desk.has_work(true) && !serving.desk.has_work(false) && !serving.desk.in_earnest());
    (0..5).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    join(&mut serving, 1, 10);
    let ended = loop {
        let ended = round(&mut serving, &mut evaluator);
        if !ended.is_empty() {
            break ended;
        }
        assert!(evaluator.batches[5..].iter().all(|batch| *batch == [1]));
    };
    assert_eq!(ended[0].request.token, 1);
    assert!(!serving.desk.is_empty());
}

#[test]
fn the_largest_tree_ends_where_memory_does() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording::new();
    join(&mut serving, 0, u32::MAX);
    (0..50).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    join(&mut serving, 1, u32::MAX);
    (0..5).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    join(&mut serving, 2, u32::MAX);
    assert!(serving.desk.memory_bytes() > 0);
    for who in [0, 1] {
        assert!(serving.desk.end_largest());
        let ended = serving.desk.look(evaluator.now);
        assert_eq!((ended.len(), ended[0].request.token, ended[0].search.stop()), (1, who, Stop::Memory));
        check_tree(&ended[0].search);
    }
    assert!(!serving.desk.end_largest(), "a search that has not begun has no tree");
}

#[test]
fn reports_come_as_often_as_they_are_asked_for() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording { a_row_takes: Duration::from_millis(10), ..Recording::new() };
    let every = Some(Duration::from_millis(50));
    let asked = Request { report_every: every, ..request(0, 40) };
    let search = serving.desk.search(Asked::new(0, Toy::random(3, 7, true)));
    serving.desk.join(search, asked, evaluator.now);
    let mut seen = Vec::new();
    while !serving.desk.is_empty() {
        while serving.desk.give(&mut serving.lane, evaluator.now, true) && serving.lane.gather(evaluator.network()) {}
        serving.lane.answer(&mut evaluator).unwrap();
        serving.lane.report(evaluator.now, |open| seen.push(open.search.result().visits.iter().sum::<u32>()));
        serving.desk.take_back(&mut serving.lane, evaluator.now);
    }
    // Rounds take 10 ms; the first is the root's. Finished games cost nothing, so there are more visits than rounds.
    assert!(seen.len() >= 3 && seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert_eq!(seen.len(), evaluator.batches.len() / 5);
}

#[test]
fn a_restricted_root_is_that_of_a_game_with_these_actions_only() {
    /// A toy whose root has some of its actions only.
    #[derive(Clone)]
    struct Only(Asked, Vec<Action>);
    impl Game for Only {
        fn num_actions(&self) -> usize {
            self.0.num_actions()
        }
        fn obs_shape(&self) -> [usize; 3] {
            self.0.obs_shape()
        }
        fn max_plies(&self) -> usize {
            self.0.max_plies()
        }
        fn turn(&self) -> Turn {
            self.0.turn()
        }
        fn legal_actions(&self, out: &mut Vec<Action>) {
            self.0.legal_actions(out);
            if self.0.plies == 0 {
                out.retain(|action| self.1.contains(action));
            }
        }
        fn play(&mut self, action: Action) {
            self.0.play(action);
        }
        fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
            self.0.chance_outcomes(out);
        }
        fn outcome(&self) -> Value {
            self.0.outcome()
        }
        fn encode(&self, row: &mut [f32]) {
            self.0.encode(row);
        }
        fn key(&self) -> u128 {
            self.0.key()
        }
        fn render(&self) -> String {
            self.0.render()
        }
    }
    let plain = SearchConfig { eval_batch: 1, ..SearchConfig::default() };
    let configs = [
        plain,
        SearchConfig { eval_batch: 4, early_stop: true, ..plain },
        SearchConfig { solver: true, ..plain },
        SearchConfig { lcb: Some(1.0), ..plain },
        SearchConfig { gumbel_actions: 2, ..plain },
    ];
    let mut tried = 0;
    for (seed, config) in (0..40).flat_map(|seed| configs.map(|config| (seed, config))) {
        let root = Asked::new(0, Toy::random(seed, 6, true));
        let mut legal = Vec::new();
        if !matches!(root.turn(), Turn::Player(_)) {
            continue;
        }
        root.legal_actions(&mut legal);
        if legal.len() < 3 {
            continue;
        }
        let allowed: Vec<Action> = legal.iter().copied().skip(seed as usize % 2).step_by(2).collect();
        let cache = Arc::new(Cache::new(512));
        let mut serving = serving(config, 16, Some(cache));
        let mut evaluator = Recording { cached: true, ..Recording::new() };
        // The cache knows the root with all its actions.
        serving.join(root.clone(), request(0, 30));
        finish(&mut serving, &mut evaluator);
        let mut search = serving.desk.search(root.clone());
        search.allow(allowed.clone());
        serving.desk.join(search, request(1, 100), evaluator.now);
        // And does not learn what it is without them.
        let ended = finish(&mut serving, &mut evaluator);
        serving.join(root.clone(), Request { seed: 1, ..request(2, 100) });
        let all = finish(&mut serving, &mut evaluator);
        assert_eq!(all[0].search.result(), alone(&root, config, 100, 1).result());

        let mut twin = Search::new(Only(root, allowed.clone()), config, 0);
        twin.begin(100, stream_for(1, 0, 0)).unwrap();
        let mut rounds = Rounds::new(Workers::Serial, None);
        let mut hashed = azpy_core::evaluator::RowByRow::new(common::Hashed);
        while rounds.run(std::slice::from_mut(&mut twin), std::slice::from_mut(&mut hashed)).unwrap() {}
        assert_eq!(ended[0].search.result(), twin.result());
        assert_eq!(twin.result().actions, allowed);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// What a search of its own finds that plays and searches in turn.
struct Twin {
    searches: Vec<Search<Asked>>,
    runs: u64,
}

impl Twin {
    fn search(&mut self, simulations: u32) -> azpy_core::search::SearchResult {
        let search = self.searches.last_mut().unwrap();
        search.begin(simulations, stream_for(5, 0, self.runs)).unwrap();
        self.runs += 1;
        let mut rounds = Rounds::new(Workers::Serial, None);
        while rounds.run(std::slice::from_mut(search), &mut [Recording::new()]).unwrap() {}
        search.result()
    }
}

#[test]
fn a_game_keeps_its_tree_and_takes_actions_back() {
    let (mut undone, mut advanced) = (0, 0);
    for seed in 0..60 {
        let config = SearchConfig { c_puct_stdev: f64::from(seed as u32 % 2), ..one_leaf() };
        let root = Asked::new(0, Toy::random(seed, 9, false));
        let mut seat: Seat<Asked, usize> = Seat::new(root.clone(), config, 5);
        let mut twin = Twin { searches: vec![Search::new(root, config, 0)], runs: 0 };
        let mut serving = serving(config, 16, None);
        let mut evaluator = Recording::new();
        let mut stream = azpy_core::rng::Stream::keyed(&[seed]);
        for step in 0..12 {
            let mut legal = Vec::new();
            if matches!(seat.position().turn(), Turn::Player(_)) {
                seat.position().legal_actions(&mut legal);
            }
            match stream.bits() % 4 {
                0 if seat.undo() => {
                    twin.searches.pop();
                    undone += 1;
                }
                1 if !legal.is_empty() => {
                    let action = legal[stream.bits() as usize % legal.len()];
                    seat.play(action);
                    let mut next = twin.searches.last().unwrap().clone();
                    next.advance(action);
                    twin.searches.push(next);
                    advanced += 1;
                }
                2 if !legal.is_empty() => {
                    // A look at one action alone leaves the tree as it is.
                    seat.search(request(step, 10), vec![legal[0]]);
                    let (search, asked) = seat.next(1).unwrap();
                    serving.desk.join(search, asked, evaluator.now);
                    let ended = finish(&mut serving, &mut evaluator).pop().unwrap();
                    assert_eq!(ended.search.result().actions, [legal[0]]);
                    seat.give_back(ended.search, true);
                }
                _ => {
                    seat.search(request(step, 20), Vec::new());
                    seat.search(request(step, 7), Vec::new());
                    for simulations in [20, 7] {
                        let (search, asked) = seat.next(1).unwrap();
                        assert!(seat.next(1).is_none(), "one at a time");
                        serving.desk.join(search, asked, evaluator.now);
                        let ended = finish(&mut serving, &mut evaluator).pop().unwrap();
                        assert_eq!(ended.search.result(), twin.search(simulations), "seed {seed}, step {step}");
                        check_tree(&ended.search);
                        seat.give_back(ended.search, true);
                    }
                    assert!(seat.next(1).is_none());
                }
            }
        }
    }
    assert!(undone > 50 && advanced > 100, "{undone} {advanced}");
}

#[test]
fn trees_that_are_dropped_or_of_another_network_begin_anew() {
    for dropped in [false, true] {
        let root = Asked::new(0, Toy::random(3, 9, false));
        let mut seat: Seat<Asked, usize> = Seat::new(root.clone(), one_leaf(), 5);
        let mut serving = serving(one_leaf(), 16, None);
        let mut evaluator = Recording::new();
        let mut visits = Vec::new();
        for network in [1, 1, 1 + u64::from(!dropped)] {
            if visits.len() == 2 && dropped {
                assert!(seat.memory_bytes() > 0);
                seat.drop_trees();
                assert_eq!(seat.memory_bytes(), 0);
            }
            seat.search(request(0, 30), Vec::new());
            let (search, asked) = seat.next(network).unwrap();
            serving.desk.join(search, asked, evaluator.now);
            let ended = finish(&mut serving, &mut evaluator).pop().unwrap();
            visits.push(ended.search.result().visits.iter().sum::<u32>());
            seat.give_back(ended.search, true);
        }
        assert_eq!(visits, [30, 60, 30]);
    }
}
