//! Pipelines, priorities, memory and reports of an engine: who goes on, and when.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::check_tree;
use crate::common::engine::*;
use azpy_core::batched::Workers;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::{OpenSearch, Pipeline, Priority, Queue, Request, Scheduler, Signal, Waiting};
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

/// Rounds in which two pipelines alternate: one has its batch evaluated while the other gathers.
fn alternate(
    scheduler: &mut Scheduler<Asked, usize>,
    evaluator: &mut Recording,
    cache: Option<&Arc<Cache>>,
) -> Vec<Ended> {
    let mut pipelines = [0, 1].map(|_| scheduler.pipeline(Workers::new(2).unwrap(), cache.cloned()));
    let (mut ended, mut busy) = (Vec::new(), [false; 2]);
    while !scheduler.is_empty() {
        for (pipeline, busy) in pipelines.iter_mut().zip(&mut busy) {
            if *busy {
                let outcome = pipeline.evaluate(evaluator);
                pipeline.take_up(outcome).unwrap();
            }
            ended.append(&mut scheduler.take_back(pipeline, evaluator.now).ended);
            *busy = false;
            while scheduler.give(pipeline, evaluator.now, true) {
                *busy = true;
                if !pipeline.gather(evaluator.network()) {
                    break;
                }
            }
        }
    }
    ended
}

#[test]
fn two_pipelines_alternate_and_change_nothing() {
    for (eval_batch, max_batch, split_from, cached) in
        [(1, 256, 0, false), (1, 5, 0, true), (8, 16, 8, true), (3, 7, 0, false), (8, 64, usize::MAX, false)]
    {
        let config = SearchConfig { eval_batch, ..SearchConfig::default() };
        let mut scheduler = Scheduler::new(config, max_batch, split_from, broken, signal_of);
        let mut evaluator = Recording { cached, ..Recording::new() };
        let cache = cached.then(|| Arc::new(Cache::new(512)));
        for who in 0..40 {
            let search = scheduler.search(Asked::new(who, Toy::random(who as u64, 7, true)));
            scheduler.join(search, request(who, 60), evaluator.now);
        }
        let ended = alternate(&mut scheduler, &mut evaluator, cache.as_ref());
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
        let mut scheduler = Scheduler::new(one_leaf(), 64, split_from, broken, signal_of);
        let mut evaluator = Recording::new();
        for who in 0..requests {
            let search = scheduler.search(Asked::new(who, Toy::chain(50)));
            scheduler.join(search, request(who, 10), evaluator.now);
        }
        let mut pipelines = [0, 1].map(|_| scheduler.pipeline(Workers::Serial, None));
        let rows = pipelines.each_mut().map(|pipeline| {
            while scheduler.give(pipeline, evaluator.now, true) && pipeline.gather(evaluator.network()) {}
            pipeline.rows()
        });
        assert_eq!((rows[0], rows[1]), sizes, "{requests} requests, split from {split_from}");
        for mut pipeline in pipelines {
            let outcome = pipeline.evaluate(&mut evaluator);
            pipeline.take_up(outcome).unwrap();
            scheduler.take_back(&mut pipeline, evaluator.now);
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
    assert!(serving.scheduler.has_work(true) && !serving.scheduler.has_work(false) && !serving.scheduler.in_earnest());
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
    assert!(!serving.scheduler.is_empty());
}

#[test]
fn requests_count_before_they_reach_the_desk() {
    let scheduler = serving(one_leaf(), 4, None).scheduler;
    let (ponder, play) = ([0, 1].map(|who| scheduler.search(Asked::new(who, Toy::chain(9))))).into();
    let queue = Queue::new(scheduler);
    queue.arrive(ponder, Request { priority: Priority::Ponder, ..request(0, 10) });
    assert!(!queue.is_empty() && queue.has_work(false) && !queue.in_earnest());
    queue.arrive(play, request(1, 10));
    assert!(queue.in_earnest(), "whoever ponders waits from now on");
}

#[test]
fn an_ended_search_gets_its_root_on_a_busy_engine() {
    for priority in [Priority::Analysis, Priority::Ponder] {
        for by_deadline in [false, true] {
            let mut serving = serving(one_leaf(), 1, None);
            let mut evaluator = Recording::new();
            join(&mut serving, 0, u32::MAX);
            assert!(round(&mut serving, &mut evaluator).is_empty());
            let deadline = by_deadline.then_some(evaluator.now);
            signal(1, if by_deadline { Signal::Continue } else { Signal::Stop });
            let ended = Request { priority, deadline, ..request(1, u32::MAX) };
            serving.join(Asked::new(1, Toy::chain(4000)), ended);
            assert!(serving.scheduler.look(evaluator.now).is_empty() && serving.scheduler.has_work(false));
            let ended: Vec<_> = (0..2).flat_map(|_| round(&mut serving, &mut evaluator)).collect();
            let [OpenSearch { search, request, .. }] = &ended[..] else { panic!("{priority:?} waits for the others") };
            let stop = if by_deadline { Stop::Interrupted } else { Stop::Stopped };
            assert_eq!((request.token, search.stop(), search.stats().evaluations), (1, stop, 1));
            signal(0, Signal::Cancel);
            assert_eq!(serving.scheduler.look(evaluator.now).len(), 1);
            assert!(serving.scheduler.is_empty() && !serving.scheduler.in_earnest());
            signal(0, Signal::Continue);
        }
    }
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
    assert!(serving.scheduler.memory_bytes() > 0);
    for who in [0, 1] {
        assert!(serving.scheduler.end_largest().is_some());
        let ended = serving.scheduler.look(evaluator.now);
        assert_eq!((ended.len(), ended[0].request.token, ended[0].search.stop()), (1, who, Stop::Memory));
        check_tree(&ended[0].search);
    }
    assert!(serving.scheduler.end_largest().is_none(), "a search that has not begun has no tree");
}

#[test]
fn memory_counts_the_trees_in_the_pipelines() {
    let mut serving = serving(one_leaf(), 1, None);
    let mut evaluator = Recording::new();
    join(&mut serving, 0, u32::MAX);
    (0..50).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    join(&mut serving, 1, u32::MAX);
    (0..2).for_each(|_| assert!(round(&mut serving, &mut evaluator).is_empty()));
    let (all, largest) = (serving.scheduler.memory_bytes(), serving.scheduler.largest());
    assert!(largest > all - largest, "the first search has the larger tree");
    // A pipeline takes it: it still counts. It ends as the pipeline returns it, and the smaller one does not end in its place.
    let (scheduler, pipeline) = (&mut serving.scheduler, &mut serving.pipeline);
    assert!(scheduler.give(pipeline, evaluator.now, true));
    assert_eq!((scheduler.memory_bytes(), scheduler.largest(), scheduler.end_largest()), (all, largest, Some(largest)));
    assert_eq!(scheduler.memory_bytes(), all - largest, "a search that is about to end grows no more");
    pipeline.gather(None);
    let outcome = pipeline.evaluate(&mut evaluator);
    pipeline.take_up(outcome).unwrap();
    let ended = scheduler.take_back(pipeline, evaluator.now).ended;
    assert_eq!((ended.len(), ended[0].request.token, ended[0].search.stop()), (1, 0, Stop::Memory));
    check_tree(&ended[0].search);
}

#[test]
fn the_largest_tree_ends_though_another_pipeline_has_taken_it() {
    let mut scheduler = Scheduler::new(one_leaf(), 1, 0, broken, signal_of);
    let mut evaluator = Recording::new();
    let mut pipelines = [0, 1].map(|_| scheduler.pipeline(Workers::Serial, None));
    let play = |pipeline: &mut Pipeline<_, _>, evaluator: &mut Recording| {
        pipeline.gather(None);
        let outcome = pipeline.evaluate(evaluator);
        pipeline.take_up(outcome).unwrap();
    };
    for (who, rounds) in [(0, 50), (1, 3)] {
        let search = scheduler.search(Asked::new(who, Toy::random(who as u64, 7, true)));
        scheduler.join(search, request(who, u32::MAX), evaluator.now);
        for _ in 0..rounds {
            assert!(scheduler.give(&mut pipelines[0], evaluator.now, true));
            play(&mut pipelines[0], &mut evaluator);
            assert!(scheduler.take_back(&mut pipelines[0], evaluator.now).ended.is_empty());
        }
    }
    let ended = (0..40).find_map(|turn| {
        // Each pipeline returns its search, and the other one takes what waits before the memory is looked at.
        let (one, other) = (turn % 2, 1 - turn % 2);
        scheduler.give(&mut pipelines[one], evaluator.now, true);
        play(&mut pipelines[one], &mut evaluator);
        let mut ended = scheduler.take_back(&mut pipelines[one], evaluator.now).ended;
        scheduler.give(&mut pipelines[other], evaluator.now, true);
        if turn == 0 {
            assert!(scheduler.end_largest().is_some());
        }
        play(&mut pipelines[other], &mut evaluator);
        ended.append(&mut scheduler.take_back(&mut pipelines[other], evaluator.now).ended);
        ended.append(&mut scheduler.look(evaluator.now));
        ended.pop()
    });
    let ended = ended.expect("the search with the largest tree ends");
    assert_eq!((ended.request.token, ended.search.stop()), (0, Stop::Memory));
    assert!(scheduler.look(evaluator.now).is_empty() && scheduler.largest() > 0, "one search ends, and not both");
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
        let mut serving = serving(config, 4_096, Some(Arc::new(Cache::new(4_096))));
        let mut evaluator = Recording { cached: true, ..Recording::new() };
        // The cache answers the searches of the second time.
        for _ in 0..2 {
            for who in 0..searches {
                let asked = Request { report_every: Some(Duration::ZERO), ..request(who, simulations) };
                serving.join(Asked { who, ..start.clone() }, asked);
            }
            for round in 0.. {
                let (scheduler, pipeline, now) = (&mut serving.scheduler, &mut serving.pipeline, evaluator.now);
                while scheduler.give(pipeline, now, true) && pipeline.gather(evaluator.network()) {}
                let foreseen = scheduler.memory_bytes();
                let outcome = pipeline.evaluate(&mut evaluator);
                pipeline.take_up(outcome).unwrap();
                let mut held = 0;
                pipeline.report(Instant::now(), |open| {
                    held += open.search.tree().memory_bytes();
                    now
                });
                let ended = scheduler.take_back(pipeline, now).ended;
                held += ended.iter().map(|open| open.search.tree().memory_bytes()).sum::<usize>();
                assert!(round == 0 || held <= foreseen, "{held} bytes, {foreseen} foreseen, {searches} searches");
                if scheduler.is_empty() {
                    break;
                }
            }
        }
    }
}

#[test]
fn reports_come_as_often_as_they_are_asked_for() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording { a_row_takes: Duration::from_millis(10), ..Recording::new() };
    let every = Some(Duration::from_millis(50));
    let asked = Request { report_every: every, ..request(0, 40) };
    let search = serving.scheduler.search(Asked::new(0, Toy::random(3, 7, true)));
    serving.scheduler.join(search, asked, evaluator.now);
    let mut seen = Vec::new();
    while !serving.scheduler.is_empty() {
        while serving.scheduler.give(&mut serving.pipeline, evaluator.now, true)
            && serving.pipeline.gather(evaluator.network())
        {}
        let outcome = serving.pipeline.evaluate(&mut evaluator);
        serving.pipeline.take_up(outcome).unwrap();
        let now = evaluator.now;
        serving.pipeline.report(now, |open| {
            seen.push(open.search.result().visits.iter().sum::<u32>());
            now
        });
        serving.scheduler.take_back(&mut serving.pipeline, evaluator.now);
    }
    // Rounds take 10 ms; the first is the root's. Finished games cost nothing, so there are more visits than rounds.
    assert!(seen.len() >= 3 && seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert_eq!(seen.len(), evaluator.batches.len() / 5);
}

#[test]
fn reports_that_take_long_come_less_often() {
    let mut serving = serving(one_leaf(), 4, None);
    let mut evaluator = Recording { a_row_takes: Duration::from_millis(10), ..Recording::new() };
    let asked = Request { report_every: Some(Duration::from_millis(10)), ..request(0, 40) };
    let search = serving.scheduler.search(Asked::new(0, Toy::random(3, 7, true)));
    serving.scheduler.join(search, asked, evaluator.now);
    let mut reports = 0;
    while !serving.scheduler.is_empty() {
        while serving.scheduler.give(&mut serving.pipeline, evaluator.now, true)
            && serving.pipeline.gather(evaluator.network())
        {}
        let outcome = serving.pipeline.evaluate(&mut evaluator);
        serving.pipeline.take_up(outcome).unwrap();
        let now = evaluator.now;
        serving.pipeline.report(now, |_| {
            reports += 1;
            evaluator.now = now + Duration::from_millis(30);
            evaluator.now
        });
        serving.scheduler.take_back(&mut serving.pipeline, evaluator.now);
    }
    // A report of 30 ms, then 120 ms of rounds, of 10 ms each.
    assert!(reports >= 2, "{reports}");
    assert!(reports <= evaluator.batches.len() / 12 + 1, "{reports} in {}", evaluator.batches.len());
}

#[test]
fn a_panic_of_the_evaluator_ends_its_round_and_the_pipeline_goes_on() {
    let mut serving = serving(one_leaf(), 8, None);
    (0..3).for_each(|who| join(&mut serving, who, 5));
    while serving.scheduler.give(&mut serving.pipeline, Instant::now(), true) && serving.pipeline.gather(None) {}
    let pipeline = &mut serving.pipeline;
    assert!(catch_unwind(AssertUnwindSafe(|| pipeline.evaluate(&mut Panicking))).is_err());
    serving.pipeline.fail();
    let took = serving.scheduler.take_back(&mut serving.pipeline, Instant::now());
    assert_eq!((took.ended.len(), took.failed.len()), (0, 3));
    // A round in which nothing needs the evaluator, and one in which something does.
    assert!(serving.round(&mut Recording::new()).0.is_ok());
    join(&mut serving, 4, 5);
    assert_eq!(finish(&mut serving, &mut Recording::new()).len(), 1);
}
