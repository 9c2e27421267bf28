//! What a session of batched searches counts.

use std::collections::VecDeque;
use std::time::Duration;

use azpy_core::batched::RoundStats;
use azpy_core::search::SearchStats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::listed::set_fields;

/// Requests whose times the percentiles are of: the last so many.
const TIMES_KEPT: usize = 4096;

/// Counts since the session began.
#[derive(Clone, Default)]
pub(crate) struct Stats {
    pub(crate) requests: u64,
    pub(crate) finished: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) late: u64,
    /// Not answered yet, and those of them that the last batch had no room for.
    pub(crate) open: usize,
    pub(crate) left_over: usize,
    /// Answers that the caches keep, and those that they have room for.
    pub(crate) cached: usize,
    pub(crate) cache_room: usize,
    pub(crate) rounds: RoundStats,
    /// Of finished requests.
    pub(crate) search: SearchStats,
    /// Seconds from `submit` to the answer, of the last that finished.
    pub(crate) times: VecDeque<f32>,
}

impl Stats {
    /// A request was answered after so long.
    pub(crate) fn count_finished(&mut self, search: &SearchStats, taken: Duration, limit: Option<Duration>) {
        self.finished += 1;
        self.late += u64::from(limit.is_some_and(|limit| taken > limit));
        self.search.add(search);
        if self.times.len() == TIMES_KEPT {
            self.times.pop_front();
        }
        self.times.push_back(taken.as_secs_f32());
    }

    /// The time within which this share of the last requests was answered; NaN before the first.
    fn percentile(&self, share: f64) -> f64 {
        let mut times: Vec<_> = self.times.iter().copied().collect();
        times.sort_by(f32::total_cmp);
        let place = (share * times.len() as f64).ceil() as usize;
        times.get(place.saturating_sub(1)).map_or(f64::NAN, |&seconds| f64::from(seconds))
    }

    /// The counts as Python sees them; `max_batch` is the number of rows that a batch could have held.
    pub(crate) fn dict<'py>(&self, py: Python<'py>, max_batch: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        set_fields!(dict, self; requests, finished, failed, cancelled, open, left_over, late);
        dict.set_item("seconds_p50", self.percentile(0.5))?;
        dict.set_item("seconds_p99", self.percentile(0.99))?;
        set_fields!(dict, self.rounds; batches, rows);
        let room = self.rounds.batches * max_batch as u64;
        dict.set_item("fill", self.rounds.rows as f64 / room.max(1) as f64)?;
        set_fields!(dict, self.rounds; shared);
        dict.set_item("cache_fill", self.cached as f64 / self.cache_room.max(1) as f64)?;
        set_fields!(dict, self.search; simulations, evaluations, cache_hits, terminals, collisions);
        Ok(dict)
    }
}
