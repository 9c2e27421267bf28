//! Requests that share rounds: each finds what it would find alone, and gets its turn and its answer in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::check_tree;
use crate::common::engine::*;
use azpy_core::batched::SearchError;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{OpenSearch, Request, Signal};
use azpy_core::game::GameFault;
use azpy_core::search::Stop;
use azpy_core::toy::Toy;
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
        assert_eq!(serving.scheduler.left_over(), 18);
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
    for OpenSearch { search, request: Request { token, .. }, .. } in rest {
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
                (0..=who).filter(|who| who % 11 == 10).for_each(|who| signal(who, Signal::Cancel));
            }
        }
        ended.append(&mut finish(&mut serving, &mut evaluator));
        ended.retain(|open| open.request.token % 11 != 10);
        assert!(evaluator.sizes().iter().all(|&rows| rows <= max_batch));
        assert!(ended.len() >= 54);
        for OpenSearch { search, request: Request { token: who, .. }, .. } in ended {
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
        let OpenSearch { search, request: Request { token, .. }, .. } = ended.pop().unwrap();
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
    let OpenSearch { search, request: Request { token, .. }, .. } = ended.pop().unwrap();
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
        for OpenSearch { search, .. } in ended {
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
    while !serving.scheduler.is_empty() {
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
    serving.scheduler.join(open.search, request(99, 50), evaluator.now);
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
        for OpenSearch { search, request: Request { token: who, .. }, .. } in ended {
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
    (0..12).filter(|who| who % 2 == 1).for_each(|who| signal(who, Signal::Cancel));
    let left = serving.scheduler.look(evaluator.now);
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
    signal(1, Signal::Stop);
    let stopped = serving.scheduler.look(evaluator.now);
    assert_eq!((stopped.len(), stopped[0].request.token, stopped[0].search.stop()), (1, 1, Stop::Stopped));
    assert_eq!(stopped[0].search.result().visits.iter().sum::<u32>(), 29);
    // Before it has begun, the root is evaluated all the same.
    signal(3, Signal::Stop);
    join(&mut serving, 3, u32::MAX);
    let ended = round(&mut serving, &mut evaluator);
    assert_eq!((ended[0].request.token, ended[0].search.stats().evaluations), (3, 1));
}
