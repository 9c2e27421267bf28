//! `cargo bench --bench cache`: what looking answers up and storing them costs, how often threads meet at a lock, and
//! (on Linux) the memory of full caches as the system sees it.
//!
//! Threads do nothing but what self-play asks of the cache: look each leaf up, and store the answers of those that were
//! not there, four of ten being found. In self-play a thread spends most of its time elsewhere, so it waits more seldom
//! than here, by the share of its time that these calls take.

use std::sync::Barrier;
use std::time::Instant;

use azpy_core::cache::{ANSWER_BYTES, Cache};
use azpy_core::game::PovValue;
use azpy_core::rng::mix;

const LEAVES: u64 = 1_000_000;
const POSITIONS: usize = 1 << 18;
const REPEATS: usize = 7;

/// Nanoseconds that a leaf takes a thread, and the share of the calls in which it met another thread.
fn hammer(threads: u64, legal: usize) -> (f64, f64) {
    let cache = Cache::new(POSITIONS);
    let begin = Barrier::new(threads as usize);
    let work = |thread: u64| {
        let (priors, mut found) = (vec![1.0 / legal as f32; legal], Vec::new());
        let position = |leaf: u64| u128::from(mix(thread << 40 | leaf));
        let leaf = |number: u64| {
            let draw = mix(number ^ 0x1234);
            // One that is not long ago, or a new one.
            if draw % 10 < 4 && number > 0 {
                position(number - 1 - mix(draw) % number.min(20_000))
            } else {
                position(number)
            }
        };
        (0..POSITIONS as u64)
            .for_each(|number| cache.put(1, position(u64::MAX >> 24 ^ number), &priors, PovValue(0.0)));
        begin.wait();
        let (began, mut calls) = (Instant::now(), 0);
        for number in 0..LEAVES {
            let key = leaf(number);
            found.clear();
            calls += 1;
            if cache.get::<PovValue>(1, key, legal, 2, &mut found).is_none() {
                cache.put(1, key, &priors, PovValue(0.0));
                calls += 1;
            }
        }
        (began.elapsed().as_secs_f64(), calls)
    };
    let before = cache.waits();
    let done: Vec<(f64, u64)> = std::thread::scope(|scope| {
        let work = &work;
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        all.into_iter().map(|thread| thread.join().expect("nothing can fail")).collect()
    });
    let seconds = done.iter().map(|&(seconds, _)| seconds).sum::<f64>() / threads as f64;
    let calls: u64 = done.iter().map(|&(_, calls)| calls).sum::<u64>() + threads * POSITIONS as u64;
    (1e9 * seconds / LEAVES as f64, (cache.waits() - before) as f64 / calls as f64)
}

/// MiB of resident memory, where the system says it.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()));
    pages.unwrap_or(f64::NAN) * 4096.0 / f64::from(1 << 20)
}

fn main() {
    let games = [("Connect Four", 7), ("chess", 30), ("Go 9x9", 70)];
    let mut full = Vec::new();
    for (game, legal) in games {
        let before = resident();
        let (cache, priors) = (Cache::new(POSITIONS), vec![1.0 / legal as f32; legal]);
        (0..5 * POSITIONS as u64).for_each(|number| cache.put(1, u128::from(mix(number)), &priors, PovValue(0.0)));
        full.push(cache);
        // With glibc's allocator: 8 bytes more, and a multiple of 16.
        let said = (POSITIONS * (ANSWER_BYTES + (4 * legal + 8).next_multiple_of(16))) as f64 / f64::from(1 << 20);
        println!("{game}: {POSITIONS} answers should take {said:.1} MiB, and take {:.1}", resident() - before);
    }
    drop(full);
    for (game, legal) in games {
        let counts = [1, 2, 4];
        let mut found = vec![Vec::new(); counts.len()];
        for _ in 0..REPEATS {
            for (threads, found) in counts.iter().zip(&mut found) {
                found.push(hammer(*threads, legal));
            }
        }
        for (threads, mut found) in counts.iter().zip(found) {
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (nanoseconds, waits) = found[REPEATS / 2];
            println!("{game}, {threads} threads: {nanoseconds:.0} ns a leaf, {:.2} % of the calls wait", 100.0 * waits);
        }
    }
}
