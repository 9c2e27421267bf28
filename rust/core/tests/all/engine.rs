//! Requests that share rounds: each finds what it would find alone, and gets its turn and its answer in time.

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
fn whoever_the_cap_leaves_over_comes_first() {
    let mut serving = Serving::new(one_leaf(), 32, None);
    let start = Asked::new(0, Toy::chain(60));
    for who in 0..50 {
        serving.join(Asked { who, ..start.clone() }, request(who, 40));
    }
    for rounds in 1..=20 {
        serving.round();
        assert_eq!(serving.scheduler.left_over(), 18);
        let turns: Vec<_> = (0..50).map(|who| serving.turns(who)).collect();
        assert!(turns.iter().max().unwrap() - turns.iter().min().unwrap() <= 1, "{turns:?} after {rounds} rounds");
    }
    // Those who come later do not push ahead.
    (50..90).for_each(|who| serving.join_random(who, 5));
    serving.round();
    assert!(serving.evaluator.batches.last().unwrap().iter().all(|&who| who < 50));
}

#[test]
fn small_requests_do_not_wait_for_large_ones() {
    let mut serving = Serving::new(one_leaf(), 256, None);
    let start = Asked::new(0, Toy::chain(2000));
    serving.join(start.clone(), request(0, 1000));
    serving.rounds(50);
    serving.join(Asked { who: 1, ..start }, request(1, 10));
    serving.rounds(10);
    assert_eq!(tokens(&serving.round()), [1]);
}

#[test]
fn searches_that_need_no_evaluator_leave_the_others_their_turns() {
    // All positions of a countdown from 3 are soon known: from then on every simulation ends in a finished game.
    let config = SearchConfig { in_flight_share: Some(0.05), ..SearchConfig::default() };
    let known = Asked::new(0, Toy::countdown(3));
    let simulations = 5000;
    let mut serving = Serving::new(config, 256, None);
    for who in 1..=20 {
        serving.join(Asked { who, ..known.clone() }, request(who, simulations));
    }
    serving.rounds(3);
    serving.join(Asked::new(99, Toy::chain(500)), request(99, 40));
    let first = loop {
        let ended = serving.round();
        if !ended.is_empty() {
            break ended;
        }
    };
    assert_eq!(tokens(&first), [99]);
    let rest = serving.finish();
    assert_eq!(rest.len(), 20);
    for OpenSearch { search, request: Request { token, .. }, .. } in rest {
        let twin = alone(&known, config, simulations, token as u64);
        assert_eq!((search.result(), search.stats()), (twin.result(), twin.stats()), "pauses change nothing");
    }
    // One that is alone does not take small steps.
    serving.join(known, request(0, simulations));
    let rounds = (1..).find(|_| !serving.round().is_empty()).unwrap();
    assert!(rounds < 20, "{rounds} rounds");
}

#[test]
fn a_request_finds_what_it_would_find_alone() {
    for (eval_batch, max_batch, split_from, cached) in
        [(1, 256, 0, false), (1, 5, 0, true), (8, 16, 8, true), (3, 7, 0, false), (8, 64, usize::MAX, false)]
    {
        let config = SearchConfig { eval_batch, ..SearchConfig::default() };
        let cache = cached.then(|| Arc::new(Cache::new(512)));
        let mut serving = Serving::splitting(config, max_batch, split_from, cache);
        let (mut ended, size) = (Vec::new(), |who: usize| [0, 1, 7, 40, 150][who % 5]);
        // They come a few at a time, three of them for the same position, and some give up. One pipeline has its batch
        // evaluated while the other one's is there.
        for turn in 0.. {
            for who in (4 * turn..60).take(4) {
                serving.join(Asked::new(who, Toy::random(who as u64 / 3, 7, true)), request(who, size(who)));
            }
            (0..60.min(4 * turn)).filter(|who| who % 11 == 10).for_each(|who| signal(who, Signal::Cancel));
            serving.gather(turn % 2);
            serving.evaluate((turn + 1) % 2).unwrap();
            ended.append(&mut serving.take_back((turn + 1) % 2).ended);
            if turn >= 15 && serving.scheduler.is_empty() {
                break;
            }
        }
        ended.retain(|open| open.request.token % 11 != 10);
        assert!(serving.evaluator.sizes().iter().all(|&rows| rows <= max_batch));
        assert_eq!(ended.len(), 55);
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
    let mut serving = Serving::new(one_leaf(), 64, None);
    serving.evaluator.a_row_takes = Duration::from_micros(100);
    // Three rounds' worth of others that never end.
    (0..192).for_each(|who| serving.join_endless(who, None));
    let mut ended = Vec::new();
    serving.rounds(5);
    for who in 200..220 {
        let asked = serving.evaluator.now;
        let allowed = Duration::from_millis(13 + who as u64);
        serving.join_endless(who, Some(asked + allowed));
        while ended.is_empty() {
            // Rounds take 6.4 or 2.6 ms.
            serving.evaluator.a_row_takes = Duration::from_micros(140) - serving.evaluator.a_row_takes;
            ended.append(&mut serving.round());
        }
        let taken = serving.evaluator.now - asked;
        let OpenSearch { search, request: Request { token, .. }, .. } = ended.pop().unwrap();
        assert_eq!((token, search.stop()), (who, Stop::Interrupted));
        // In time, but not much too early.
        assert!(taken <= allowed && taken + Duration::from_millis(15) > allowed, "{taken:?} of {allowed:?}");
        assert!(search.result().visits.iter().sum::<u32>() > 0);
        check_tree(&search);
    }
}

#[test]
fn whoever_is_due_keeps_the_root_that_waits() {
    for evaluations in [2, 3] {
        let config = SearchConfig { evaluations: Some(evaluations), ..one_leaf() };
        let mut serving = Serving::new(config, 1, None);
        for who in 0..6 {
            let due = Request { deadline: Some(serving.evaluator.now), ..request(who, u32::MAX) };
            serving.join(Asked::new(who, Toy::countdown(12)), due);
        }
        // One a round: those left over are due again and again.
        let mut ended = Vec::new();
        (0..7).for_each(|_| ended.append(&mut serving.round()));
        assert_eq!(ended.len(), 6);
        for OpenSearch { search, .. } in ended {
            assert_eq!((search.stop(), search.stats().evaluations, search.stats().rounds), (Stop::Interrupted, 1, 1));
            check_tree(&search);
        }
    }
}

#[test]
fn the_others_go_on_however_many_are_in_a_hurry() {
    let mut serving = Serving::new(one_leaf(), 8, None);
    (0..20).for_each(|who| serving.join_endless(who, None));
    for who in 100..900 {
        serving.join_endless(who, Some(serving.evaluator.now));
        if who % 10 == 0 {
            serving.round();
        }
    }
    let turns: Vec<_> = (0..20).map(|who| serving.turns(who)).collect();
    let (fewest, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
    assert!(*fewest >= 3 && most - fewest <= 1, "the others had {turns:?} turns of 80");
}

#[test]
fn hurried_newcomers_do_not_hold_up_full_batches() {
    let new = Toy::countdown(16);
    // Where the root is known already, a newcomer has as many rows as any other.
    for (max_batch, each, cached) in [(8, 1, false), (12, 5, false), (32, 8, true)] {
        let config = SearchConfig { eval_batch: 8, ..SearchConfig::default() };
        let mut serving = Serving::new(config, max_batch, cached.then(|| Arc::new(Cache::new(4096))));
        if cached {
            serving.join(Asked::new(99, new.clone()), request(99, 0));
            serving.finish();
        }
        for who in 0..3 {
            serving.join(Asked::new(who, Toy::countdown(17 + who as u32)), request(who, u32::MAX));
        }
        serving.rounds(6);
        serving.evaluator.batches.clear();
        for rounds in 0..60 {
            for one in 0..each {
                let who = 100 + rounds * each + one;
                let late = Some(Instant::now() + Duration::from_secs(600));
                let hurried = Request { deadline: late, ..request(who, 8 * u32::from(cached)) };
                serving.join(Asked::new(who, new.clone()), hurried);
            }
            serving.round();
        }
        for who in 0..3 {
            let turns = serving.evaluator.batches.iter().filter(|batch| batch.contains(&who)).count(); // each of 8 rows
            assert!(turns >= 5, "{who} had {turns} turns of 60 with {each} in a hurry and room for {max_batch}");
        }
    }
}

#[test]
fn a_pause_after_an_error_is_no_rounds_length() {
    let mut serving = Serving::new(one_leaf(), 8, None);
    serving.evaluator.fail_at = 0;
    let start = Asked::new(0, Toy::chain(4000));
    serving.join(start.clone(), request(0, 10));
    serving.gather(0);
    assert!(serving.evaluate(0).is_err());
    assert_eq!(serving.take_back(0).failed.len(), 1);
    serving.evaluator.fail_at = usize::MAX;
    serving.evaluator.now += Duration::from_secs(3);
    let soon = Request { deadline: Some(serving.evaluator.now + Duration::from_millis(500)), ..request(1, 20) };
    serving.join(Asked { who: 1, ..start }, soon);
    assert_eq!(serving.finish()[0].search.stop(), Stop::Simulations);
}

#[test]
fn an_evaluators_error_ends_the_searches_of_its_batch_alone() {
    let mut serving = Serving::new(one_leaf(), 16, None);
    serving.evaluator.fail_at = 2;
    (0..20).for_each(|who| serving.join_random(who, 300));
    serving.rounds(2);
    serving.gather(0);
    assert!(matches!(serving.evaluate(0), Err(SearchError::Evaluator("asked to fail"))));
    let mut failed = serving.take_back(0).failed;
    assert_eq!(failed.len(), 16);
    serving.evaluator.fail_at = usize::MAX;
    let ended = serving.finish();
    let mut all = [tokens(&failed), tokens(&ended)].concat();
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    for open in &ended {
        let who = open.request.token;
        let twin = alone(&Asked::random(who), one_leaf(), 300, who as u64);
        assert_eq!(open.search.result(), twin.result());
    }
    // A tree that was in the batch can be used on.
    let open = failed.pop().unwrap();
    check_tree(&open.search);
    let before: u32 = open.search.result().visits.iter().sum();
    serving.scheduler.join(open.search, request(99, 50), serving.evaluator.now);
    let visits: u32 = serving.finish()[0].search.result().visits.iter().sum();
    assert_eq!(visits, before + 50);
}

#[test]
fn a_game_that_fails_fails_alone() {
    for fails in [Fails::Rules, Fails::Playing, Fails::Encoding] {
        let config = SearchConfig { eval_batch: 4, ..SearchConfig::default() };
        let mut serving = Serving::new(config, 16, None);
        for who in 0..9 {
            if who == 4 {
                serving.join(Asked::failing(4, fails), request(4, 1_000_000));
            } else {
                serving.join_random(who, 200);
            }
        }
        let ended = serving.finish();
        assert_eq!(ended.len(), 9);
        for OpenSearch { search, request: Request { token: who, .. }, .. } in ended {
            if who == 4 {
                assert_eq!(search.fault().is_some(), fails == Fails::Rules);
                assert_eq!(broken(search.root()), fails != Fails::Rules);
                assert!(search.stats().simulations < 10_000, "it ends at once");
            } else {
                let root = Asked::random(who);
                assert_eq!(search.result(), alone(&root, config, 200, who as u64).result());
            }
        }
    }
}

#[test]
fn a_roll_and_a_finished_game_are_told_apart_at_once() {
    let mut serving = Serving::new(one_leaf(), 8, None);
    let roll = Asked::new(0, Toy::parse("?(1:+ 1:-)").unwrap());
    serving.join(roll, request(0, 10));
    assert!(matches!(serving.finish()[0].search.fault(), Some(GameFault::ChanceRoot)));
    serving.join(Asked::new(1, Toy::parse("-").unwrap()), request(1, 10));
    let over = serving.finish()[0].search.result();
    assert_eq!((over.stop, over.value, over.action), (Stop::GameOver, -1.0, None));
    assert!(serving.evaluator.batches.is_empty());
}

#[test]
fn those_who_leave_are_given_back_and_the_others_go_on() {
    let mut serving = Serving::new(one_leaf(), 4, None);
    (0..10).for_each(|who| serving.join_random(who, 50));
    assert!(serving.round().is_empty());
    (10..12).for_each(|who| serving.join_random(who, 50));
    (0..12).filter(|who| who % 2 == 1).for_each(|who| signal(who, Signal::Cancel));
    let left = serving.scheduler.look(serving.evaluator.now);
    left.iter().for_each(|open| check_tree(&open.search));
    let ended = serving.finish();
    assert_eq!((tokens(&left), tokens(&ended)), (vec![1, 3, 5, 7, 9, 11], vec![0, 2, 4, 6, 8, 10]));
}

#[test]
fn a_search_that_is_told_to_stop_gives_what_it_knows() {
    let mut serving = Serving::new(one_leaf(), 4, None);
    (0..3).for_each(|who| serving.join_endless(who, None));
    serving.rounds(30);
    signal(1, Signal::Stop);
    let stopped = serving.scheduler.look(serving.evaluator.now);
    assert_eq!((stopped.len(), stopped[0].request.token, stopped[0].search.stop()), (1, 1, Stop::Stopped));
    assert_eq!(stopped[0].search.result().visits.iter().sum::<u32>(), 29);
}
