//! Searches on request: they share batches, join and leave between rounds, and end in time.
//!
//! A [`Scheduler`] has the open searches of one network. A [`Pipeline`] takes some of them for a round: they gather
//! their leaves, one batch is evaluated, and they come back. Two pipelines alternate, as in self-play: while the batch
//! of one is evaluated, the trees of the other grow. A round takes the searches that wait, up to a cap of rows, and
//! never waits for more: 3 searches with a leaf each are a batch of 3, and 300 under a cap of 256 are 256 and 44.
//!
//! A search sees only its own leaves and their answers, in its own order. So a search finds the same whoever shares its
//! rounds, as long as the evaluator's answer to a row does not depend on the rest of the batch. Only a deadline, a call
//! to stop and a lack of memory make a result depend on time.
//!
//! [`Models`] has the schedulers of an engine, each behind its [`Queue`]; the pipelines' threads take turns at them. The
//! rest of the module knows no threads, and time only as it is told.

mod game_tree;
mod models;
mod pipeline;
mod queue;
#[cfg(test)]
mod races;
mod scheduler;

use std::time::{Duration, Instant};

use crate::game::Game;
use crate::rng::Stream;
use crate::search::{Search, stream_for};

pub use game_tree::{GameTree, KEPT_TREES};
pub use models::{EngineModel, Entry, Key, Models};
pub use pipeline::{Pipeline, Took};
pub use queue::{Queue, Waiting};
pub use scheduler::Scheduler;

/// How urgent a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A person or a game waits for the answer.
    #[default]
    Play,
    /// It has one turn for every [`STRIDE`] turns of a request at [`Priority::Play`], and all rows that are free.
    Analysis,
    /// It goes on while there is nothing else to do.
    Ponder,
}

/// Turns of a played move for one turn of an analysis.
pub const STRIDE: u64 = 8;

/// The owner's current instruction for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Go on.
    Continue,
    /// End with what is known.
    Stop,
    /// End without an answer, because the owner no longer waits.
    Cancel,
}

/// A request to search a position.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// The owner's key for the request.
    pub token: T,
    /// Visits below the root.
    pub simulations: u32,
    /// Seed of the noise and the dice.
    pub seed: u64,
    /// Which run of a search with this seed it is: the first is 0.
    pub run: u64,
    /// When it is answered with what is known by then.
    pub deadline: Option<Instant>,
    /// How urgent it is.
    pub priority: Priority,
    /// How often its owner wants to hear of it before the end.
    pub report_every: Option<Duration>,
}

impl<T> Request<T> {
    /// The random stream of the search that answers it.
    fn stream(&self) -> Stream {
        stream_for(self.seed, 0, self.run)
    }
}

/// A search and the request that it answers.
pub struct OpenSearch<G: Game, T> {
    /// The search, with its tree.
    pub search: Search<G>,
    /// The request.
    pub request: Request<T>,
    /// The order of the queue: a round's number, later for lower priorities.
    turn: u64,
    /// Whether it has been in a batch.
    begun: bool,
    /// Simulations that it may do in its next round without the evaluator.
    known: u64,
    /// Memory of its tree after the round that it is in, in bytes.
    bytes: usize,
    /// When the next report is due.
    report: Option<Instant>,
}

impl<G: Game, T> OpenSearch<G, T> {
    /// Rows that it probably needs in the next batch.
    fn rows(&self) -> usize {
        match self.search.rows() {
            0 if self.search.root_is_due() => 1,
            0 => self.search.eval_batch(),
            rows => rows,
        }
    }

    fn hurries(&self) -> bool {
        self.request.deadline.is_some() && !self.begun
    }

    /// Memory of its tree after its next round, in bytes. Before the first, how a tree grows is not known.
    fn memory_ahead(&self) -> usize {
        if self.begun { self.search.memory_ahead(self.known) } else { self.search.tree().memory_bytes() }
    }

    /// Whether its tree has begun to grow, and goes on.
    fn is_growing(&self) -> bool {
        self.begun && !self.search.is_done()
    }

    fn ponders(&self) -> bool {
        self.request.priority == Priority::Ponder
    }
}

impl<G: Game, T> AsMut<Search<G>> for OpenSearch<G, T> {
    fn as_mut(&mut self) -> &mut Search<G> {
        &mut self.search
    }
}
