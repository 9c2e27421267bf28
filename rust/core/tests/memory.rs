//! The memory that a cache and a copied tree take, counted for each thread where it is given out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use azpy_core::cache::{ANSWER_BYTES, Cache};
use azpy_core::game::{Player, PovValue};
use azpy_core::rng::mix;
use azpy_core::search::tree::{Kind, NodeId, ROOT, Tree};

/// Counts the bytes that a thread has in use, and the most of them.
struct Counting;

thread_local! {
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    IN_USE.set(IN_USE.get() + bytes);
    MOST.set(MOST.get().max(IN_USE.get()));
}

// SAFETY: all is left to the system's allocator; counting touches no memory that is given out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
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
        let before = IN_USE.get();
        let cache = Cache::new(positions);
        let priors = vec![0.5; 2 * actions];
        let mut most = 0;
        for position in 0..4 * positions as u64 {
            // On average as many as `actions`.
            let legal = mix(position) as usize % (2 * actions + 1);
            cache.put(1, u128::from(mix(position)), &priors[..legal], PovValue(0.0));
            most = most.max(IN_USE.get() - before);
        }
        let said = (positions * (ANSWER_BYTES + 4 * actions) + 8 * actions) as f64;
        let taken = (IN_USE.get() - before) as f64;
        assert!((taken / said - 1.0).abs() < 0.01, "{taken} bytes of {positions} answers, {said} were said");
        assert!(most as f64 / said < 1.01, "{most} bytes on the way to {said}");
        drop((cache, priors));
        assert_eq!(IN_USE.get(), before);
    }
}

#[test]
fn a_copied_subtree_takes_memory_for_itself_alone() {
    for sums in [0, 3] {
        let mut tree = Tree::new(usize::MAX, sums);
        let mut expand = |id: NodeId| {
            tree.expand(id, Kind::Decision(Player::Zero), &[0, 1, 2, 3], &[0.25; 4]);
            tree.nodes().len() as NodeId - 4
        };
        let first = expand(ROOT);
        let mut large = expand(first);
        (0..50_000).for_each(|_| large = expand(large));
        let small = expand(first + 1);
        (0..100).fold(small, |id, _| expand(id));
        // A small part of the tree, an action that was not explored, and one that does not exist.
        for (action, nodes) in [(1, 1 + 4 * 101), (2, 1), (9, 1)] {
            let before = IN_USE.get();
            MOST.set(before);
            let copy = tree.subtree(action);
            let (own, most) = (Tree::bytes_of(nodes, sums) as isize, MOST.get() - before);
            assert_eq!((copy.nodes().len(), copy.memory_bytes() as isize, IN_USE.get() - before), (nodes, own, own));
            assert!(most <= 4 * own, "{most} bytes on the way to {own}, of a tree of {}", tree.memory_bytes());
        }
    }
}
