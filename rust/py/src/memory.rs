//! What Python said of the positions of a game, so that it is asked once.
//!
//! For games that hide something: self-play comes to the same few positions again and again. A position is known by its
//! line of play. Nothing here waits: a lock that is taken reads as a position that is not known yet, so neither the GIL
//! nor a fork, which may leave the lock taken for ever, can stop a thread here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use azpy_core::game::{Action, MAX_PLAYERS, Turn, Values};
use pyo3::prelude::*;

use crate::settings::{SIZE, Whole, within};

/// The most bytes that the memory of a game takes.
static MOST_BYTES: AtomicUsize = AtomicUsize::new(256 << 20);
/// Of a position, without its lists. A map of them is half empty at worst.
const POSITION_BYTES: usize = size_of::<Answers>() + 64;

/// Let what is remembered of a game in Python take at most `size` bytes, for tests: of games that are wrapped from now on.
#[pyfunction]
pub(crate) fn remember_at_most(size: Whole) -> PyResult<()> {
    MOST_BYTES.store(within("size", size.0, 0, SIZE)?, Ordering::Relaxed);
    Ok(())
}

/// What Python said of a position, once it was asked.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) turn: OnceLock<Turn>,
    pub(crate) legal: OnceLock<Vec<Action>>,
    pub(crate) rolls: OnceLock<Vec<(Action, f32)>>,
    pub(crate) outcome: OnceLock<Values>,
    pub(crate) planes: OnceLock<Vec<f32>>,
    pub(crate) views: [OnceLock<Option<u128>>; MAX_PLAYERS],
}

/// A position that is remembered.
#[derive(Clone)]
pub(crate) struct Remembered {
    pub(crate) answers: Arc<Answers>,
    /// The last actions, which were not played in Python.
    pub(crate) ahead: Vec<Action>,
}

impl Remembered {
    pub(crate) fn of(answers: Arc<Answers>) -> Self {
        Self { answers, ahead: Vec::new() }
    }
}

/// The positions of a game by the numbers of their lines of play.
pub(crate) struct Memory {
    positions: RwLock<HashMap<u128, Arc<Answers>>>,
    /// Bytes that are left.
    room: AtomicUsize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { positions: RwLock::default(), room: AtomicUsize::new(MOST_BYTES.load(Ordering::Relaxed)) }
    }
}

impl Memory {
    /// What was said of a position that is known.
    pub(crate) fn known(&self, line: u128) -> Option<Arc<Answers>> {
        self.positions.try_read().ok()?.get(&line).cloned()
    }

    /// The same of a position that need not be known yet; nothing where there is no room for it.
    pub(crate) fn meet(&self, line: u128) -> Option<Arc<Answers>> {
        let known = self.known(line);
        if known.is_some() || self.room.load(Ordering::Relaxed) < POSITION_BYTES {
            return known;
        }
        let Ok(mut positions) = self.positions.try_write() else { return Some(Arc::default()) };
        self.has_room(POSITION_BYTES).then(|| positions.entry(line).or_default().clone())
    }

    /// Whether there is room for so many bytes, which are then taken.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }
}
