//! Answers of a game in Python, kept by position, so that each question is asked once.
//!
//! This is for games that hide something: their self-play comes to the same few positions again and again. The key of a
//! position is its line of play. No thread waits for the map's lock: while another thread holds it, a position counts as
//! unknown. So a fork, which may leave the lock taken for ever, cannot stop a thread here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use azpy_core::game::{Action, MAX_PLAYERS, Turn, Values};
use pyo3::prelude::*;

use crate::settings::{SIZE, Whole, within};

/// The most bytes that the memory of a game takes.
static MOST_BYTES: AtomicUsize = AtomicUsize::new(256 << 20);
/// Bytes that a position takes without its lists: its answers, and its place in a map that may be half empty.
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
    /// The last actions of the line, which the Python object has not played yet.
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
    /// Bytes that may still be used.
    room: AtomicUsize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { positions: RwLock::default(), room: AtomicUsize::new(MOST_BYTES.load(Ordering::Relaxed)) }
    }
}

impl Memory {
    /// The answers of a position, if it is in the map.
    pub(crate) fn known(&self, line: u128) -> Option<Arc<Answers>> {
        self.positions.try_read().ok()?.get(&line).cloned()
    }

    /// The answers of a position, which is added if it is new. `None` if there is no room for it.
    pub(crate) fn meet(&self, line: u128) -> Option<Arc<Answers>> {
        let known = self.known(line);
        if known.is_some() || self.room.load(Ordering::Relaxed) < POSITION_BYTES {
            return known;
        }
        let Ok(mut positions) = self.positions.try_write() else { return Some(Arc::default()) };
        self.has_room(POSITION_BYTES).then(|| positions.entry(line).or_default().clone())
    }

    /// Takes so many bytes of the room; returns whether they were left.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }
}
