//! Pipelines, priorities, memory and reports of an engine: who goes on, and when.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::common::check_tree;
use crate::common::engine::*;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{OpenSearch, Pipeline, Priority, Queue, Request, Signal, Waiting};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::search::Stop;
use azpy_core::toy::Toy;

/// An evaluator with a bug.
struct Panicking;

impl Evaluator<Asked> for Panicking {
    type Error = &'static str;
    fn evaluate_batch(&mut self, _: Batch<'_, Asked>) -> Result<(), Self::Error> {
        resume_unwind(Box::new("without a message of the hook"))
    }
}

#[test]
fn pipelines_share_what_does_not_fill_two_batches() {
    for (split_from, requests, sizes) in [(0, 40, [20, 20]), (41, 40, [40, 0]), (0, 200, [64, 64]), (0, 1, [1, 0])] {
        let mut serving = Serving::splitting(one_leaf(), 64, split_from, None);
        (0..requests).for_each(|who| serving.join(Asked::new(who, Toy::chain(50)), request(who, 10)));
        [0, 1].into_iter().for_each(|pipeline| serving.gather(pipeline));
        let rows = serving.pipelines.each_ref().map(Pipeline::rows);
        assert_eq!(rows, sizes, "{requests} requests, split from {split_from}");
    }
}

/// Searches that never end at these priorities, and how many turns each had in so many rounds.
fn turns(priorities: &[Priority], max_batch: usize, rounds: usize) -> Vec<usize> {
    let mut serving = Serving::new(one_leaf(), max_batch, None);
    for (who, &priority) in priorities.iter().enumerate() {
        let asked = Request { priority, ..request(who, u32::MAX) };
        serving.join(Asked::new(who, Toy::chain(4000)), asked);
    }
    serving.rounds(rounds);
    (0..priorities.len()).map(|who| serving.turns(who)).collect()
}

#[test]
fn an_analysis_has_free_rows_and_else_every_eighth_turn() {
    use Priority::{Analysis, Play};
    // Room for all.
    assert_eq!(turns(&[Play, Analysis, Play], 4, 40), [40, 40, 40]);
    // No room: four play for three rows, or twenty for five.
    for (play, room, rounds) in [(4, 3, 400), (20, 5, 4000)] {
        let mut priorities = vec![Play; play];
        priorities.push(Analysis);
        let turns = turns(&priorities, room, rounds);
        let (&analysis, others) = turns.split_last().unwrap();
        let (fewest, most) = (*others.iter().min().unwrap(), *others.iter().max().unwrap());
        assert!(most - fewest <= 1 && analysis * 16 >= most && analysis * 5 <= most, "{turns:?}");
    }
}

#[test]
fn a_search_that_ponders_waits_for_all_others() {
    use Priority::{Analysis, Play, Ponder};
    assert_eq!(turns(&[Ponder, Play], 4, 40), [0, 40]);
    assert_eq!(turns(&[Ponder, Analysis], 4, 40), [0, 40]);
    assert_eq!(turns(&[Ponder, Ponder], 4, 40), [40, 40]);
    let mut serving = Serving::new(one_leaf(), 4, None);
    let ponder = Request { priority: Ponder, ..request(0, u32::MAX) };
    serving.join(Asked::new(0, Toy::chain(4000)), ponder);
    assert!(serving.scheduler.has_work(true) && !serving.scheduler.has_work(false) && !serving.scheduler.in_earnest());
    serving.rounds(5);
    serving.join_random(1, 10);
    let ended = loop {
        let ended = serving.round();
        if !ended.is_empty() {
            break ended;
        }
        assert!(serving.evaluator.batches[5..].iter().all(|batch| *batch == [1]));
    };
    assert_eq!(ended[0].request.token, 1);
    assert!(!serving.scheduler.is_empty());
}

#[test]
fn requests_count_before_they_reach_the_scheduler() {
    let Serving { scheduler, .. } = Serving::new(one_leaf(), 4, None);
    let (ponder, play) = ([0, 1].map(|who| scheduler.search(Asked::new(who, Toy::chain(9))))).into();
    let queue = Queue::new(scheduler);
    queue.arrive(ponder, Request { priority: Priority::Ponder, ..request(0, 10) });
    assert!(!queue.is_empty() && queue.has_work(false) && !queue.in_earnest());
    queue.arrive(play, request(1, 10));
    assert!(queue.in_earnest(), "whoever ponders waits from now on");
}

#[test]
fn an_ended_search_gets_its_root_on_a_busy_engine() {
    for priority in [Priority::Play, Priority::Analysis, Priority::Ponder] {
        for by_deadline in [false, true] {
            let mut serving = Serving::new(one_leaf(), 1, None);
            serving.join_random(0, u32::MAX);
            assert!(serving.round().is_empty());
            let deadline = by_deadline.then_some(serving.evaluator.now);
            signal(1, if by_deadline { Signal::Continue } else { Signal::Stop });
            let ended = Request { priority, deadline, ..request(1, u32::MAX) };
            serving.join(Asked::new(1, Toy::chain(4000)), ended);
            assert!(serving.scheduler.look(serving.evaluator.now).is_empty() && serving.scheduler.has_work(false));
            let ended: Vec<_> = (0..2).flat_map(|_| serving.round()).collect();
            let [OpenSearch { search, request, .. }] = &ended[..] else { panic!("{priority:?} waits for the others") };
            let stop = if by_deadline { Stop::Interrupted } else { Stop::Stopped };
            assert_eq!((request.token, search.stop(), search.stats().evaluations), (1, stop, 1));
            signal(0, Signal::Cancel);
            assert_eq!(serving.scheduler.look(serving.evaluator.now).len(), 1);
            assert!(serving.scheduler.is_empty() && !serving.scheduler.in_earnest());
            signal(0, Signal::Continue);
        }
    }
}

#[test]
fn the_largest_tree_ends_where_memory_does() {
    let mut serving = Serving::new(one_leaf(), 4, None);
    serving.join_random(0, u32::MAX);
    serving.rounds(50);
    serving.join_random(1, u32::MAX);
    serving.rounds(5);
    serving.join_random(2, u32::MAX);
    assert!(serving.scheduler.memory_bytes() > 0);
    for who in [0, 1] {
        assert!(serving.scheduler.end_largest().is_some());
        let ended = serving.scheduler.look(serving.evaluator.now);
        assert_eq!((ended.len(), ended[0].request.token, ended[0].search.stop()), (1, who, Stop::Memory));
        check_tree(&ended[0].search);
    }
    assert!(serving.scheduler.end_largest().is_none(), "a search that has not begun has no tree");
}

#[test]
fn memory_counts_the_trees_in_the_pipelines() {
    let mut serving = Serving::new(one_leaf(), 1, None);
    serving.join_random(0, u32::MAX);
    serving.rounds(50);
    serving.join_random(1, u32::MAX);
    serving.rounds(2);
    let (all, largest) = (serving.scheduler.memory_bytes(), serving.scheduler.largest());
    assert!(largest > all - largest, "the first search has the larger tree");
    // A pipeline takes it: it still counts. It ends as the pipeline returns it, and the smaller one does not end.
    serving.gather(0);
    let scheduler = &mut serving.scheduler;
    assert_eq!((scheduler.memory_bytes(), scheduler.largest(), scheduler.end_largest()), (all, largest, Some(largest)));
    assert_eq!(scheduler.memory_bytes(), all - largest, "a search that is about to end grows no more");
    serving.evaluate(0).unwrap();
    let ended = serving.take_back(0).ended;
    assert_eq!((ended.len(), ended[0].request.token, ended[0].search.stop()), (1, 0, Stop::Memory));
    check_tree(&ended[0].search);
}

#[test]
fn the_largest_tree_ends_though_another_pipeline_has_taken_it() {
    let mut serving = Serving::splitting(one_leaf(), 1, 0, None);
    for (who, rounds) in [(0, 50), (1, 3)] {
        serving.join_random(who, u32::MAX);
        serving.rounds(rounds);
    }
    let ended = (0..40).find_map(|turn| {
        // Each pipeline returns its search, and the other one takes what waits before the memory is looked at.
        let (one, other) = (turn % 2, 1 - turn % 2);
        serving.gather(one);
        serving.evaluate(one).unwrap();
        let mut ended = serving.take_back(one).ended;
        serving.gather(other);
        if turn == 0 {
            assert!(serving.scheduler.end_largest().is_some());
        }
        serving.evaluate(other).unwrap();
        ended.append(&mut serving.take_back(other).ended);
        ended.append(&mut serving.scheduler.look(serving.evaluator.now));
        ended.pop()
    });
    let ended = ended.expect("the search with the largest tree ends");
    assert_eq!((ended.request.token, ended.search.stop()), (0, Stop::Memory));
    let others = serving.scheduler.look(serving.evaluator.now);
    assert!(others.is_empty() && serving.scheduler.largest() > 0, "one search ends, and not both");
}

#[test]
fn a_round_takes_no_more_memory_than_was_foreseen() {
    /// Three actions, each followed by a roll of two outcomes.
    fn tree(plies: usize) -> String {
        if plies == 0 {
            return "+".to_owned();
        }
        let roll = format!("?(1:{0} 1:{0})", tree(plies - 1));
        format!("{}({roll} {roll} {roll})", plies % 2)
    }
    let start = Asked::new(0, Toy::parse(&tree(5)).unwrap());
    for (eval_batch, searches, simulations) in [(1, 1, 4_000), (8, 1, 4_000), (8, 5, 2_000), (8, 300, 100)] {
        let config = SearchConfig { eval_batch, ..SearchConfig::default() };
        let mut serving = Serving::new(config, 4_096, Some(Arc::new(Cache::new(4_096))));
        // The cache answers the searches of the second time.
        for _ in 0..2 {
            for who in 0..searches {
                let asked = Request { report_every: Some(Duration::ZERO), ..request(who, simulations) };
                serving.join(Asked { who, ..start.clone() }, asked);
            }
            let mut is_first = true;
            while !serving.scheduler.is_empty() {
                serving.gather(0);
                let (foreseen, mut held) = (serving.scheduler.memory_bytes(), 0);
                // Nothing is left to be gathered: this is the round's other half.
                let ended = serving.round_with_reports(|open| {
                    held += open.search.tree().memory_bytes();
                    Duration::ZERO
                });
                held += ended.iter().map(|open| open.search.tree().memory_bytes()).sum::<usize>();
                assert!(is_first || held <= foreseen, "{held} bytes, {foreseen} foreseen, {searches} searches");
                is_first = false;
            }
        }
    }
}

#[test]
fn reports_come_as_asked_for_and_rarer_if_they_take_long() {
    // Rounds take 10 ms; a report of 30 ms pauses for 120.
    for (every, takes, rounds_between) in [(50, 0, 5), (10, 30, 12)] {
        let mut serving = Serving::new(one_leaf(), 4, None);
        serving.evaluator.a_row_takes = Duration::from_millis(10);
        let asked = Request { report_every: Some(Duration::from_millis(every)), ..request(3, 40) };
        serving.join(Asked::random(3), asked);
        let mut seen = Vec::new();
        while !serving.scheduler.is_empty() {
            serving.round_with_reports(|open| {
                seen.push(open.search.result().visits.iter().sum::<u32>());
                Duration::from_millis(takes)
            });
        }
        assert!(seen.len() >= 2 && seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        let most = serving.evaluator.batches.len() / rounds_between + usize::from(takes > 0);
        assert!(seen.len() <= most && seen.len() + 1 >= most, "{seen:?} in {} rounds", serving.evaluator.batches.len());
    }
}

#[test]
fn a_panic_ends_its_round_and_the_pipeline_goes_on() {
    let mut serving = Serving::new(one_leaf(), 8, None);
    (0..3).for_each(|who| serving.join_random(who, 5));
    serving.gather(0);
    let pipeline = &mut serving.pipelines[0];
    assert!(catch_unwind(AssertUnwindSafe(|| pipeline.evaluate(&mut Panicking))).is_err());
    pipeline.fail();
    let took = serving.take_back(0);
    assert_eq!((took.ended.len(), took.failed.len()), (0, 3));
    // A round in which nothing needs the evaluator, and one in which something does.
    serving.rounds(1);
    serving.join_random(4, 5);
    assert_eq!(serving.finish().len(), 1);
}
