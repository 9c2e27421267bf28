//! Answers of networks, kept by (network, position).
//!
//! Sharded and bounded. The whole key is stored beside each entry and compared, so two positions that fall into the
//! same place never share an answer; and an answer with another number of actions is not a hit. An answer has a number
//! for each legal action: its logit, because a search needs the priors of few positions, or its prior in a game that
//! hides something.
//!
//! A full cache holds as many answers as it was made for, and takes [`ANSWER_BYTES`] for each and 4 for each action; what
//! the allocator adds to a small piece of memory comes on top. Where a network says a number for each player, those of the
//! other players take 4 bytes each too.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::game::Pov;
use crate::rng::mix;

/// Entries that compete for one place. Four: docs/explanation/design.md compares other numbers.
const WAYS: usize = 4;

/// Locks, so that many threads seldom meet at one.
const SHARDS: usize = 64;

/// Memory of an answer, without the numbers of its actions.
pub const ANSWER_BYTES: usize = size_of::<Option<Entry>>();

#[derive(Clone)]
struct Entry {
    network: u64,
    position: u128,
    /// For the player to move.
    value: f32,
    last_used: u32,
    /// A number for each of the `[L]` actions, then the values for the other players.
    numbers: Box<[f32]>,
}

#[derive(Default)]
struct Shard {
    entries: Vec<Option<Entry>>,
    clock: u32,
}

/// A bounded store of answers, safe to use from many threads.
pub struct Cache {
    shards: Vec<Mutex<Shard>>,
    /// Buckets in a shard.
    buckets: usize,
    /// Answers kept.
    len: AtomicUsize,
    /// Bits of the position that choose the place. Fewer than 64 only in tests that provoke collisions.
    index_mask: u64,
}

impl Cache {
    /// A cache that holds `positions` answers (rounded up to a multiple of 256).
    #[must_use]
    pub fn new(positions: usize) -> Self {
        Self::with_index_mask(positions, u64::MAX)
    }

    /// As [`Cache::new`], but only the masked bits of a position's hash choose its place: a test's way to make
    /// different positions collide.
    #[must_use]
    pub fn with_index_mask(positions: usize, index_mask: u64) -> Self {
        let buckets = positions.div_ceil(WAYS * SHARDS).max(1);
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, buckets, len: AtomicUsize::new(0), index_mask }
    }

    fn place(&self, network: u64, position: u128) -> (usize, usize) {
        let hash = mix(mix(position as u64 ^ network) ^ (position >> 64) as u64) & self.index_mask;
        let shard = hash as usize % self.shards.len();
        let bucket = (hash >> 6) as usize % self.buckets;
        (shard, bucket * WAYS)
    }

    /// How many answers it keeps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether it keeps no answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many answers it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shards.len() * self.buckets * WAYS
    }

    fn lock(&self, shard: usize) -> std::sync::MutexGuard<'_, Shard> {
        // A panic cannot leave a shard half written: entries are replaced whole.
        self.shards[shard].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The stored answer for so many players, if there is one with `num_legal` actions: appends their numbers to `policy`
    /// and returns the values.
    pub fn get<V: Pov>(
        &self,
        network: u64,
        position: u128,
        num_legal: usize,
        players: usize,
        policy: &mut Vec<f32>,
    ) -> Option<V> {
        let mut value = V::filled(players, 0.0);
        let (own, others) = value.numbers_mut().split_first_mut()?;
        let stored = num_legal + others.len();
        let (shard, first) = self.place(network, position);
        let mut shard = self.lock(shard);
        shard.clock = shard.clock.wrapping_add(1);
        let clock = shard.clock;
        let entry =
            shard.entries.get_mut(first..first + WAYS)?.iter_mut().flatten().find(|entry| {
                entry.position == position && entry.network == network && entry.numbers.len() == stored
            })?;
        entry.last_used = clock;
        policy.extend_from_slice(&entry.numbers[..num_legal]);
        others.copy_from_slice(&entry.numbers[num_legal..]);
        *own = entry.value;
        Some(value)
    }

    /// Stores an answer, in place of the one of its bucket that was not used for longest.
    pub fn put<V: Pov>(&self, network: u64, position: u128, policy: &[f32], value: V) {
        let (own, others) = value.numbers().split_first().map_or((0.0, &[][..]), |(&own, others)| (own, others));
        let numbers: Box<[f32]> = if others.is_empty() { policy.into() } else { [policy, others].concat().into() };
        let (shard, first) = self.place(network, position);
        let mut shard = self.lock(shard);
        if shard.entries.is_empty() {
            // Memory is taken by the shards that are used, when they are.
            shard.entries = vec![None; self.buckets * WAYS];
        }
        shard.clock = shard.clock.wrapping_add(1);
        let clock = shard.clock;
        let entry = Entry { network, position, value: own, last_used: clock, numbers };
        let ways = &mut shard.entries[first..first + WAYS];
        let same = |way: &Option<Entry>| {
            way.as_ref().is_some_and(|entry| entry.position == position && entry.network == network)
        };
        let index = ways.iter().position(same).or_else(|| ways.iter().position(Option::is_none)).unwrap_or_else(|| {
            let age = |index: &usize| ways[*index].as_ref().map_or(0, |entry| clock.wrapping_sub(entry.last_used));
            (0..WAYS).max_by_key(age).expect("there are four ways")
        });
        if ways[index].replace(entry).is_none() {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{PovValue, PovValues};

    #[test]
    fn an_answer_comes_back_only_under_its_own_key() {
        let cache = Cache::with_index_mask(1000, 0); // all answers in one place
        cache.put(1, 7, &[0.25, 0.75], PovValue(0.5));
        let mut priors = vec![9.0];
        assert_eq!(cache.get(1, 7, 2, 2, &mut priors), Some(PovValue(0.5)));
        assert_eq!(priors, [9.0, 0.25, 0.75]);
        assert_eq!(cache.get::<PovValue>(2, 7, 2, 2, &mut priors), None);
        assert_eq!(cache.get::<PovValue>(1, 8, 2, 2, &mut priors), None);
        assert_eq!(cache.get::<PovValue>(1, 7, 3, 2, &mut priors), None);
        assert_eq!(priors.len(), 3);
        let three = PovValues::new(&[0.5, -0.25, 1.0]);
        cache.put(1, 9, &[0.25, 0.75], three);
        assert_eq!(cache.get(1, 9, 2, 3, &mut priors), Some(three));
        assert_eq!(priors[3..], [0.25, 0.75]);
        assert_eq!(cache.get::<PovValues>(1, 9, 2, 4, &mut priors), None);
    }

    #[test]
    fn it_knows_how_full_it_is() {
        let cache = Cache::new(1000);
        assert_eq!((cache.len(), cache.capacity(), cache.is_empty()), (0, 1024, true));
        for position in 0..20_000_u128 {
            cache.put(1, position % 7000, &[], PovValue(0.0));
            let kept: usize =
                cache.shards.iter().map(|shard| shard.lock().unwrap().entries.iter().flatten().count()).sum();
            assert_eq!(cache.len(), kept);
            assert!(position < 3000 || kept > 0);
        }
        assert_eq!(cache.len(), cache.capacity());
    }

    #[test]
    fn the_least_recently_used_answer_makes_room() {
        let cache = Cache::with_index_mask(256, 0);
        for position in 0..4 {
            cache.put(1, position, &[], PovValue(0.0));
        }
        assert!(cache.get::<PovValue>(1, 0, 0, 2, &mut Vec::new()).is_some());
        cache.put(1, 4, &[], PovValue(0.0));
        assert!(cache.get::<PovValue>(1, 0, 0, 2, &mut Vec::new()).is_some());
        assert!(cache.get::<PovValue>(1, 1, 0, 2, &mut Vec::new()).is_none());
    }
}
