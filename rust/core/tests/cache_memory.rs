//! What a cache takes is what it says: counted where memory is given out. One test alone, as the count is of everything.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use azpy_core::cache::{ANSWER_BYTES, Cache};
use azpy_core::game::PovValue;
use azpy_core::rng::mix;

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator; counting touches no memory that is given out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_full_cache_takes_what_it_says_to_one_percent() {
    let positions = 60_000;
    // As in Connect Four, chess and Go on 9x9.
    for actions in [7, 30, 82] {
        let before = IN_USE.load(Ordering::Relaxed);
        let cache = Cache::new(positions);
        let priors = vec![0.5; 2 * actions];
        let mut most = 0;
        for position in 0..4 * positions as u64 {
            // On average as many as `actions`.
            let legal = mix(position) as usize % (2 * actions + 1);
            cache.put(1, u128::from(mix(position)), &priors[..legal], PovValue(0.0));
            most = most.max(IN_USE.load(Ordering::Relaxed) - before);
        }
        let said = (positions * (ANSWER_BYTES + 4 * actions) + 8 * actions) as f64;
        let taken = (IN_USE.load(Ordering::Relaxed) - before) as f64;
        assert!((taken / said - 1.0).abs() < 0.01, "{taken} bytes of {positions} answers, {said} were said");
        assert!(most as f64 / said < 1.01, "{most} bytes on the way to {said}");
        drop((cache, priors));
        // The test's runner has a thread that takes memory too, when a test is slow.
        assert!(IN_USE.load(Ordering::Relaxed).abs_diff(before) < 1 << 14);
    }
}
