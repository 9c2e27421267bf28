//! What Python holds without knowing which game it is: small object-safe traits, and the settings of the sessions.
//!
//! The traits mention each other, so they stand in one file, below everything that implements or uses one. `sessions.rs`
//! implements [`AnyState`]; each kind of session has a file of its own. What a result reads of a search is below, in
//! `result.rs`.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use azpy_core::batched::{RoundStats, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::engine::Served;
use azpy_core::game::{Action, PlayError, Player, Turn, Values};
use azpy_core::record::GameRecord as CoreRecord;
use azpy_core::replay::{Draw, Samples};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig};
use azpy_core::written::{Bounds, Variations, WrittenGame};
use azpy_core::{declared, handed_on, of_game, of_notation};
use pyo3::prelude::*;

use crate::calls::{Asked, Call, Ending};
use crate::evaluators::AnyEvaluator;
use crate::hosted::{Fault, Hosted};
use crate::result::Searches;
use crate::settings::Whole;

/// What a position answers as its game does.
pub(crate) trait Plain {
    of_game!(declared);
    of_notation!(declared);
    fn object(&self) -> Option<&Py<PyAny>>;
}

impl<G: Hosted> Plain for Typed<G> {
    of_game!(handed_on, 0);
    of_notation!(handed_on, 0);
    fn object(&self) -> Option<&Py<PyAny>> {
        self.0.object()
    }
}

/// A position of some game.
pub(crate) trait AnyState: Plain + Send + Sync {
    fn boxed(&self) -> PyResult<Box<dyn AnyState>>;
    /// As `boxed`, but an error of one of the two is an error of both.
    fn shared(&self) -> Box<dyn AnyState>;
    fn as_any(&self) -> &dyn Any;
    fn try_play(&mut self, action: Action) -> Result<(), PlayError>;
    /// Plays an action that is known to be on offer, without a question to the game.
    fn play(&mut self, action: Action);
    /// What each player gets.
    fn outcome(&self) -> Values;
    fn parse(&self, text: &str) -> Result<Box<dyn AnyState>, String>;
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn AnyState>, String>;
    /// The first written game of a text, how the rules end it (nothing where they do not), and where the text goes on.
    fn read_game(&self, text: &str) -> Result<Option<(WrittenGame, Option<f32>, usize)>, String>;
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn AnyState>>, String>;
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn AnyState>>;
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn AnyState>>;
    /// See `GameRecord::of_actions` of the core.
    fn record_of(&self, actions: &[Action], outcome: &[f32]) -> Result<CoreRecord, String>;
    /// The error that its game has met, if any.
    fn check(&self) -> PyResult<()>;
    /// As `check`, and forgets the error.
    fn take_error(&self) -> PyResult<()>;

    /// A batch of searches of these states, all of this state's game.
    fn batch(&self, states: &[&dyn AnyState], settings: BatchSettings) -> PyResult<Arc<RwLock<dyn AnyBatch>>>;
    fn selfplay(&self, settings: SelfPlaySettings) -> PyResult<Playing>;
    fn replay(&self, max_positions: usize) -> Box<dyn AnyReplay>;
    /// A model of an engine for requests about this state's game.
    fn model(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel>;
    /// Refuses a position that no search can begin at.
    fn check_searchable(&self) -> PyResult<()>;

    /// Plays the first random games of `games` from here, until they are done or it is `until`: how many games, and
    /// their plies.
    fn random_games(&self, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)>;
}

impl dyn AnyState + '_ {
    /// The legal actions; none where it is no player's turn.
    pub(crate) fn legal(&self) -> Vec<Action> {
        let mut legal = Vec::new();
        if matches!(self.turn(), Turn::Player(_)) {
            self.legal_actions(&mut legal);
        }
        legal
    }

    /// The outcomes of the roll; none where none is due.
    pub(crate) fn rolls(&self) -> Vec<(Action, f32)> {
        let mut rolls = Vec::new();
        if self.turn() == Turn::Chance {
            self.chance_outcomes(&mut rolls);
        }
        rolls
    }
}

/// A position of game `G`: what stands behind [`AnyState`].
#[derive(Clone)]
pub(crate) struct Typed<G>(pub(crate) G);

/// The position inside, if it is of game `G`.
pub(crate) fn downcast<G: Hosted>(state: &dyn AnyState) -> Option<&G> {
    state.as_any().downcast_ref::<Typed<G>>().map(|typed| &typed.0)
}

/// Settings of a batch of searches.
pub(crate) struct BatchSettings {
    /// What the game is called.
    pub(crate) spec: String,
    pub(crate) config: SearchConfig,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

/// Settings of self-play.
pub(crate) struct SelfPlaySettings {
    pub(crate) config: SelfPlayConfig,
    pub(crate) layout: Layout,
    /// One a pipeline.
    pub(crate) evaluators: Vec<AnyEvaluator>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
}

/// Self-play of some game.
pub(crate) struct Playing {
    /// Every method is called without the GIL.
    pub(crate) core: SelfPlay<AnyEvaluator, PyErr>,
    /// Where its game leaves its first error, if it can fail.
    pub(crate) fault: Option<Fault>,
}

/// Searches of one game, whatever it is.
pub(crate) trait AnyBatch: Searches {
    fn len(&self) -> usize;
    fn replace(&mut self, index: usize, state: &dyn AnyState) -> PyResult<()>;
    /// With a limit the run also ends after so long.
    fn run(
        &mut self,
        py: Python<'_>,
        evaluator: &mut AnyEvaluator,
        simulations: u32,
        limit: Option<Duration>,
    ) -> PyResult<()>;
    fn set_gumbel_draws(&mut self, index: usize, draws: &[f64]) -> PyResult<()>;
    /// Has the root of a search offer these actions only.
    fn allow(&mut self, index: usize, actions: Vec<Action>);
    fn advance(&mut self, index: usize, action: Whole) -> PyResult<()>;
    fn rounds(&self) -> RoundStats;
    fn state(&self, index: usize) -> PyResult<Box<dyn AnyState>>;
    /// The first error that a game met. To be asked after whatever asks a game something.
    fn check(&self) -> PyResult<()>;
}

/// A replay buffer of some game.
pub(crate) trait AnyReplay: Send {
    fn extend(&mut self, records: Vec<Arc<CoreRecord>>, workers: &Workers) -> PyResult<()>;
    fn resize(&mut self, max_samples: usize);
    fn num_games(&self) -> usize;
    fn num_samples(&self) -> usize;
    /// Numbers of a row's value target.
    fn value_width(&self) -> usize;
    fn sample(&self, draw: Draw, samples: Samples<'_>, workers: &Workers) -> PyResult<()>;
    /// Where so many rows of the same draw come from.
    fn origins(&self, draw: Draw, rows: usize) -> PyResult<Vec<Origin>>;
}

/// Where a row of a batch comes from, see the core's `Origin`.
pub(crate) struct Origin {
    pub(crate) game_id: u64,
    pub(crate) ply: usize,
    pub(crate) symmetry: usize,
    pub(crate) state: Box<dyn AnyState>,
}

/// Settings of one network of an engine.
pub(crate) struct ModelSettings {
    pub(crate) config: SearchConfig,
    pub(crate) spec: String,
    /// Tells networks apart.
    pub(crate) number: u64,
    pub(crate) max_batch: usize,
    /// Fewer rows than this are one batch.
    pub(crate) split_from: usize,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) workers: Workers,
    /// Held during a call of the evaluator.
    pub(crate) device: Arc<Mutex<()>>,
}

/// One network of an engine and one game. No method is called with the GIL, for they wait for each other, and some of them
/// for the GIL.
pub(crate) trait AnyModel: Served + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// Has a position searched.
    fn submit(&self, state: &dyn AnyState, asked: Asked) -> PyResult<()>;
    /// A game of this model's, which keeps its tree.
    fn seat(&self, state: &dyn AnyState, model: &str, seed: u64) -> PyResult<Arc<dyn AnySeat>>;
    /// The same game for another network.
    fn renewed(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel>;
    /// A round of this lane. `filled` is called when it has its searches, `tell` with requests that have a report.
    fn round(&self, lane: usize, quiet: bool, filled: &dyn Fn(), tell: &mut dyn FnMut(&Arc<Call>)) -> Vec<Done>;
    /// Requests that have ended in the queue.
    fn look(&self) -> Vec<Done>;
}

/// A request that has ended, and its game if that goes on.
pub(crate) struct Done {
    pub(crate) call: Arc<Call>,
    pub(crate) ending: Ending,
    pub(crate) seat: Option<Arc<dyn AnySeat>>,
}

/// A game that goes on in an engine. No method is called with the GIL.
pub(crate) trait AnySeat: Send + Sync {
    /// The name of its model, and of its game.
    fn model(&self) -> (&str, &str);
    /// The position after everything that was asked for.
    fn state(&self) -> PyResult<Box<dyn AnyState>>;
    fn num_played(&self) -> usize;
    fn play(&self, action: Whole) -> PyResult<()>;
    fn undo(&self) -> bool;
    fn search(&self, asked: Asked) -> PyResult<()>;
    /// Hands the next request to its model, where the one before is answered.
    fn go_on(&self, model: &dyn AnyModel) -> bool;
    fn memory_bytes(&self) -> usize;
    fn drop_trees(&self);
}
