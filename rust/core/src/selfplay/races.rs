//! Games beside takers, swaps, pauses, admissions and a stop, in many orders of the threads' steps. Shuttle decides
//! which thread goes on at each lock, and lets no wait time out: a wake-up that is forgotten is a deadlock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::{Layout, SelfPlay, SelfPlayConfig, SelfPlayError};
use crate::batched::Workers;
use crate::evaluator::{Batch, Evaluator};
use crate::game::PovValue;
use crate::selfplay::record::GameRecord;
use crate::toy::Toy;

const PATIENCE: Duration = Duration::from_secs(3600);

/// An evaluator with even answers that fails after a number of calls.
struct Network {
    left: u32,
}

impl Evaluator<Toy> for Network {
    type Error = u32;

    fn evaluate_batch(&mut self, batch: Batch<'_, Toy>) -> Result<(), u32> {
        self.left = self.left.checked_sub(1).ok_or(7_u32)?;
        batch.logits.fill(0.0);
        batch.values.fill(PovValue(0.0));
        Ok(())
    }
}

type Play = SelfPlay<Network, u32>;

fn networks(left: u32) -> Vec<Network> {
    (0..2).map(|_| Network { left }).collect()
}

fn start(game: &str, slots: usize, games: u64, left: u32) -> Arc<Play> {
    let config = SelfPlayConfig { simulations: 2, ..SelfPlayConfig::default() };
    let layout = Layout { slots, games: Some(games), ..Layout::default() };
    let start = Toy::parse(game).unwrap();
    Arc::new(SelfPlay::start(&start, config, &layout, networks(left), &Workers::Serial, None).unwrap())
}

/// Two threads that take games until there are so many, one of them one at a time, the other all there are.
fn takers(play: &Arc<Play>, games: usize) -> (Arc<Mutex<Vec<GameRecord>>>, Vec<thread::JoinHandle<()>>) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let take = |alone: bool| {
        let (play, taken) = (play.clone(), taken.clone());
        thread::spawn(move || {
            while taken.lock().unwrap().len() < games {
                if alone {
                    taken.lock().unwrap().extend(play.take_finished(usize::MAX));
                } else {
                    let next = play.next(PATIENCE).unwrap(); // before the lock: it may wait
                    taken.lock().unwrap().extend(next);
                }
                thread::yield_now();
            }
        })
    };
    let threads = vec![take(false), take(true)];
    (taken, threads)
}

fn ids(games: &[GameRecord]) -> Vec<u64> {
    let mut ids: Vec<_> = games.iter().map(|game| game.game_id).collect();
    ids.sort_unstable();
    ids
}

fn in_many_orders(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), 100);
    shuttle::check_pct(test, 100, 4);
}

#[test]
fn swaps_pauses_and_admissions_lose_no_game() {
    in_many_orders(|| {
        let play = start("0(+ 1(- =))", 3, 2, u32::MAX);
        let (taken, takers) = takers(&play, 7);
        play.admit(2..4);
        play.swap(networks(u32::MAX)).unwrap();
        play.pause(true);
        assert!(play.is_paused(PATIENCE));
        assert!(play.is_swapped(PATIENCE));
        play.pause(false);
        play.admit(4..7);
        play.swap(networks(u32::MAX)).unwrap();
        assert!(play.is_swapped(PATIENCE));
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(ids(&taken.lock().unwrap()), (0..7).collect::<Vec<_>>());
        assert!(play.is_over());
        play.stop();
    });
}

#[test]
fn games_that_wait_for_room_are_handed_over_once() {
    let takes: [fn(&Play) -> Vec<GameRecord>; 2] =
        [|play| Vec::from_iter(play.next(PATIENCE).unwrap()), |play| play.take_finished(9)];
    for take in takes {
        let test = move || {
            let play = start("0(+ -)", 2, 70, u32::MAX);
            assert!(play.is_paused(PATIENCE), "64 finished games may wait");
            let mut taken = Vec::new();
            while !play.is_over() {
                taken.append(&mut take(&play));
                thread::yield_now();
            }
            assert_eq!(ids(&taken), (0..70).collect::<Vec<_>>());
            play.stop();
        };
        shuttle::check_random(test, 20);
    }
}

#[test]
fn a_stop_loses_no_game_and_begun_games_go_on() {
    in_many_orders(|| {
        let stopped = start("0(+ 1(- 0(+ -)))", 3, 5, u32::MAX);
        let stopping = stopped.clone();
        let stopper = thread::spawn(move || stopping.stop());
        let mut there = Vec::from_iter(stopped.next(PATIENCE).unwrap());
        stopper.join().unwrap();
        assert!(stopped.wait_until(PATIENCE, |_| false));
        there.append(&mut stopped.take_finished(usize::MAX));
        assert_eq!(stopped.stats().games, there.len() as u64);
        let begun = stopped.unfinished();
        let (done, open) = (BTreeSet::from_iter(ids(&there)), BTreeSet::from_iter(ids(&begun)));
        assert_eq!((done.len(), open.len()), (there.len(), begun.len()), "no game twice");
        assert!(done.is_disjoint(&open));
        let play = start("0(+ 1(- 0(+ -)))", 3, 0, u32::MAX);
        play.go_on(begun);
        (0..5).filter(|id| !done.contains(id)).for_each(|id| play.admit(id..id + 1));
        while let Some(game) = play.next(PATIENCE).unwrap() {
            there.push(game);
        }
        assert_eq!(ids(&there), (0..5).collect::<Vec<_>>());
        assert!(play.unfinished().is_empty());
        play.stop();
    });
}

#[test]
fn an_error_is_told_once_and_nobody_waits_for_ever() {
    in_many_orders(|| {
        let play = start("0(+ 1(- =))", 2, 50, 3);
        let told = Arc::new(Mutex::new(0));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (play, told) = (play.clone(), told.clone());
                thread::spawn(move || {
                    while !play.is_over() {
                        match play.next(PATIENCE) {
                            Err(SelfPlayError::Search(_)) => *told.lock().unwrap() += 1,
                            Err(error) => panic!("{error:?}"),
                            Ok(_) => {}
                        }
                    }
                })
            })
            .collect();
        play.pause(true);
        assert!(play.is_paused(PATIENCE));
        play.pause(false);
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(*told.lock().unwrap(), 1);
    });
}
