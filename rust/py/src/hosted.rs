//! What Python may hold without knowing which game it is.
//!
//! [`Hosted`] is a game that can be reached from Python. [`AnyState`] is one of its positions behind an object-safe
//! door, from which the coarse sessions are made: a batch of searches, self-play, a replay buffer.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::RandomGames;
use azpy_core::game::{Action, Game, PlayError, Player, Turn};
use azpy_core::rng::Stream;
use azpy_core::selfplay::{Layout, SelfPlayConfig};
use pyo3::prelude::*;

use crate::batch::{AnyBatch, Batch};
use crate::errors::GameError;
use crate::evaluators::AnyEvaluator;
use crate::replay::{AnyReplay, Replay};
use crate::selfplay::{AnySelfPlay, Playing};
use crate::serving::{AnyServing, Server, ServingSettings};

/// Where a game that can fail leaves its first error; all positions that come from one root share it. No lock: whoever
/// leaves an error holds the GIL, and whoever looks may not.
#[derive(Clone, Default)]
pub struct Fault(Arc<OnceLock<PyErr>>);

impl Fault {
    /// Whether there is an error.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Keeps the first error.
    pub(crate) fn set(&self, error: PyErr) {
        // A second one is dropped: it followed from the first.
        let _ = self.0.set(error);
    }

    /// The error, which stays where it is: several threads may have to be told.
    pub(crate) fn check(&self) -> PyResult<()> {
        match self.0.get() {
            Some(error) => Err(Python::attach(|py| error.clone_ref(py))),
            None => Ok(()),
        }
    }
}

/// A game that Python can reach.
pub trait Hosted: Game {
    /// Where its errors are, if it can fail. Such a game is touched by one thread at a time.
    #[doc(hidden)]
    fn fault(&self) -> Option<&Fault> {
        None
    }

    /// The same position without the error that its game met.
    #[doc(hidden)]
    fn renewed(&self) -> Self {
        self.clone()
    }

    /// The position as the Python object that it was given as, if it was.
    #[doc(hidden)]
    fn to_python(&self, _py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        None
    }
}

/// Settings of a batch of searches.
pub(crate) struct BatchSettings {
    pub(crate) config: SearchConfig,
    /// Which evaluator answers for each tree.
    pub(crate) networks: Vec<usize>,
    pub(crate) evaluators: Vec<AnyEvaluator>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

/// Settings of self-play.
pub(crate) struct SelfPlaySettings {
    pub(crate) config: SelfPlayConfig,
    pub(crate) layout: Layout,
    /// For each pipeline, see `SelfPlay::start`.
    pub(crate) networks: Vec<Vec<AnyEvaluator>>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
}

/// A position of some game.
pub(crate) trait AnyState: Send + Sync {
    fn boxed(&self) -> Box<dyn AnyState>;
    fn as_any(&self) -> &dyn Any;
    fn num_actions(&self) -> usize;
    fn obs_shape(&self) -> [usize; 3];
    fn max_plies(&self) -> usize;
    fn plane_divisors(&self) -> Option<Vec<u16>>;
    fn most_legal_actions(&self) -> usize;
    fn action_cells(&self) -> Option<Vec<u16>>;
    fn turn(&self) -> Turn;
    fn legal_actions(&self) -> Vec<Action>;
    fn chance_outcomes(&self) -> Vec<(Action, f32)>;
    fn try_play(&mut self, action: Action) -> Result<(), PlayError>;
    fn outcome(&self) -> f32;
    fn encode(&self) -> Vec<f32>;
    fn key(&self) -> u128;
    fn num_symmetries(&self) -> usize;
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action;
    fn symmetric_observation(&self, symmetry: usize, row: &[f32]) -> Vec<f32>;
    fn action_name(&self, action: Action) -> String;
    fn short_name(&self, action: Action) -> String;
    fn render(&self) -> String;
    fn owner(&self, line: usize, glyph: char) -> Option<Player>;
    fn to_svg(&self) -> String;
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, String>;
    fn parse(&self, text: &str) -> Result<Box<dyn AnyState>, String>;
    fn to_text(&self) -> Option<String>;
    fn to_python(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>>;
    /// The error that its game met, if it can fail and has.
    fn check(&self) -> PyResult<()>;

    /// A batch of searches of these states, all of this state's game.
    fn batch(&self, states: &[&dyn AnyState], settings: BatchSettings) -> PyResult<Box<dyn AnyBatch>>;
    fn selfplay(&self, settings: SelfPlaySettings) -> PyResult<Box<dyn AnySelfPlay>>;
    fn replay(&self, max_positions: usize) -> Box<dyn AnyReplay>;
    /// A session for requests about this state's game.
    fn serve(&self, settings: ServingSettings, evaluator: AnyEvaluator) -> PyResult<Arc<dyn AnyServing>>;

    /// Plays the first random games of `games` from here, until they are done or it is `until`: how many games, and
    /// their plies.
    fn random_games(&self, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)>;
}

/// The one implementation of [`AnyState`].
#[derive(Clone)]
pub(crate) struct Typed<G>(pub(crate) G);

/// The position inside, if it is of game `G`.
pub(crate) fn downcast<G: Hosted>(state: &dyn AnyState) -> Option<&G> {
    state.as_any().downcast_ref::<Typed<G>>().map(|typed| &typed.0)
}

impl<G: Hosted> AnyState for Typed<G> {
    fn boxed(&self) -> Box<dyn AnyState> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn num_actions(&self) -> usize {
        self.0.num_actions()
    }
    fn obs_shape(&self) -> [usize; 3] {
        self.0.obs_shape()
    }
    fn max_plies(&self) -> usize {
        self.0.max_plies()
    }
    fn plane_divisors(&self) -> Option<Vec<u16>> {
        self.0.plane_divisors()
    }
    fn most_legal_actions(&self) -> usize {
        self.0.most_legal_actions()
    }
    fn action_cells(&self) -> Option<Vec<u16>> {
        self.0.action_cells()
    }
    fn turn(&self) -> Turn {
        self.0.turn()
    }
    fn legal_actions(&self) -> Vec<Action> {
        let mut out = Vec::new();
        if matches!(self.0.turn(), Turn::Player(_)) {
            self.0.legal_actions(&mut out);
        }
        out
    }
    fn chance_outcomes(&self) -> Vec<(Action, f32)> {
        let mut out = Vec::new();
        if self.0.turn() == Turn::Chance {
            self.0.chance_outcomes(&mut out);
        }
        out
    }
    fn try_play(&mut self, action: Action) -> Result<(), PlayError> {
        self.0.try_play(action)
    }
    fn outcome(&self) -> f32 {
        self.0.outcome().0
    }
    fn encode(&self) -> Vec<f32> {
        let mut row = vec![0.0; self.0.obs_shape().iter().product()];
        self.0.encode(&mut row);
        row
    }
    fn key(&self) -> u128 {
        self.0.key()
    }
    fn num_symmetries(&self) -> usize {
        self.0.num_symmetries()
    }
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        self.0.symmetric_action(symmetry, action)
    }
    fn symmetric_observation(&self, symmetry: usize, row: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; row.len()];
        self.0.symmetric_observation(symmetry, row, &mut out);
        out
    }
    fn action_name(&self, action: Action) -> String {
        self.0.action_name(action)
    }
    fn short_name(&self, action: Action) -> String {
        self.0.short_name(action)
    }
    fn render(&self) -> String {
        self.0.render()
    }
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        self.0.owner(line, glyph)
    }
    fn to_svg(&self) -> String {
        self.0.to_svg()
    }
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, String> {
        self.0.parse_actions(text)
    }
    fn parse(&self, text: &str) -> Result<Box<dyn AnyState>, String> {
        Ok(Box::new(Typed(self.0.parse(text)?)))
    }
    fn to_text(&self) -> Option<String> {
        self.0.to_text()
    }
    fn to_python(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.to_python(py)
    }
    fn check(&self) -> PyResult<()> {
        self.0.fault().map_or(Ok(()), Fault::check)
    }
    fn batch(&self, states: &[&dyn AnyState], settings: BatchSettings) -> PyResult<Box<dyn AnyBatch>> {
        Ok(Box::new(Batch::<G>::new(states, settings)?))
    }
    fn selfplay(&self, settings: SelfPlaySettings) -> PyResult<Box<dyn AnySelfPlay>> {
        Ok(Box::new(Playing::start(&self.0, settings)?))
    }
    fn replay(&self, max_positions: usize) -> Box<dyn AnyReplay> {
        Box::new(Replay::new(self.0.clone(), max_positions))
    }
    fn serve(&self, settings: ServingSettings, evaluator: AnyEvaluator) -> PyResult<Arc<dyn AnyServing>> {
        Ok(Server::start(&self.0, settings, evaluator)?)
    }
    fn random_games(&self, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)> {
        let mut random = RandomGames::default();
        let (mut done, mut plies) = (0, 0);
        for game in games {
            let mut state = self.0.clone();
            let played = random.play(&mut state, &mut Stream::keyed(&[seed, game]));
            // An error of a game in Python comes before what followed from it.
            self.check()?;
            plies += played.ok_or_else(|| GameError::new_err("a random game found no action, or did not end"))? as u64;
            done += 1;
            // A reading of the clock takes as long as a ply or two.
            if done % 16 == 0 && Instant::now() > until {
                break;
            }
        }
        Ok((done, plies))
    }
}
