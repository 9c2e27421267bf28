//! Searches of one game, and the loop that runs their rounds.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use azpy_core::batched::{RoundStats, Rounds, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::game::{Action, Game, GameFault, Payoff, PlayError, Turn, Value, Values, legal_of};
use azpy_core::look::{self, Shown};
use azpy_core::search::{Search, SearchResult, SearchStats, stream_for};
use azpy_core::text::{Notation, Position};
use azpy_core::tree::Tree;
use azpy_games::any::AnyGame;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::{CoreError, GameError, RustError, caught, no_stop_iteration, search_error};
use crate::evaluators::AnyEvaluator;
use crate::listed::Listed;
use crate::position::{AnyState, Fallible, renewed};
use crate::settings::Whole;

/// How long a search may go on before it looks for Ctrl-C.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Settings of a batch of searches.
pub(crate) struct BatchSettings {
    pub(crate) config: SearchConfig,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

/// A search of some game, to look at.
pub(crate) trait AnySearch: Send + Sync {
    fn num_actions(&self) -> usize;
    fn result(&self) -> SearchResult;
    fn stats(&self) -> &SearchStats;
    fn tree(&self) -> &Tree;
    /// The key of the root.
    fn key(&self) -> u128;
    /// The part of the tree worth drawing; `best` is its principal variation.
    fn picture(&self, best: &[Action], max_nodes: usize, depth: usize) -> PyResult<Vec<Shown>>;
    /// The error that the game has met, if any. Call it after each call that asks the game something.
    fn check(&self) -> PyResult<()>;
}

/// Searches of one game. Results look back at them; they hold no result, so nothing holds itself.
pub(crate) trait AnyBatch: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;
    fn search(&self, index: usize) -> &dyn AnySearch;
    fn state(&self, index: usize) -> PyResult<AnyState>;
    /// What the game is called.
    fn spec(&self) -> &str;
    /// How often the tree was run, advanced or replaced.
    fn changes(&self, index: usize) -> u64;
    fn replace(&mut self, index: usize, state: &AnyState) -> PyResult<()>;
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
    /// The first error of a game. Ask for it after each question to a game.
    fn check(&self) -> PyResult<()>;
}

/// A batch of searches of these states, at least one, all of one game.
pub(crate) fn batch_of(states: &[AnyState], settings: BatchSettings) -> PyResult<Arc<RwLock<dyn AnyBatch>>> {
    Ok(match states[0].is_zero_sum() {
        true => Arc::new(RwLock::new(Batch::<Value>::new(states, settings)?)),
        false => Arc::new(RwLock::new(Batch::<Values>::new(states, settings)?)),
    })
}

/// Searches of one game that pays a `P`, and the loop that runs their rounds.
struct Batch<P: Payoff> {
    searches: Vec<Search<AnyGame<P>>>,
    rounds: Rounds<AnyGame<P>>,
    seed: u64,
    /// Calls of `run` so far: each has draws of its own.
    runs: u64,
    /// For each search, how often its tree was run, advanced or replaced.
    changes: Vec<u64>,
}

impl<P: Payoff> Batch<P> {
    fn new(states: &[AnyState], settings: BatchSettings) -> PyResult<Self> {
        let roots = states.iter().map(|state| same_game(state, &states[0])).collect::<PyResult<Vec<AnyGame<P>>>>()?;
        roots.iter().try_for_each(|root| settings.config.check_for(root).map_err(RustError::raised))?;
        let serial = roots.iter().any(|root| root.fault().is_some());
        let threads = if serial { 1 } else { settings.threads };
        let workers = Workers::new(threads).map_err(RustError::raised)?;
        let changes = vec![0; roots.len()];
        Ok(Self {
            searches: roots.into_iter().map(|root| Search::new(root, settings.config)).collect(),
            rounds: Rounds::new(workers, settings.cache),
            seed: settings.seed,
            runs: 0,
            changes,
        })
    }

    /// Rounds until all is done. Runs detached from the interpreter.
    fn work(&mut self, evaluator: &mut AnyEvaluator, limit: Option<Duration>) -> PyResult<()> {
        let began = Instant::now();
        let mut looked = began;
        let (mut rounds, mut rows) = (0, self.rounds.stats.rows);
        loop {
            let outcome = self.rounds.run(&mut self.searches, evaluator);
            // A Python game's own error comes before whatever followed from it.
            self.check()?;
            if !outcome.map_err(search_error)? {
                return Ok(());
            }
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                self.searches.iter_mut().for_each(Search::interrupt);
            }
            rounds += 1;
            // Reading the clock costs as much as a round of a single small tree.
            let large = self.searches.len() > 1 || self.rounds.stats.rows - rows > 256;
            if large || rounds >= 64 {
                (rounds, rows) = (0, self.rounds.stats.rows);
                if looked.elapsed() > SIGNALS_EVERY {
                    Python::attach(|py| py.check_signals())?;
                    looked = Instant::now();
                }
            }
        }
    }
}

/// Actions as the core counts them, of any size. A number that no game has for an action is refused before any is played.
pub(crate) fn action_numbers(given: &[Whole]) -> PyResult<Vec<Action>> {
    let number = |action: &Whole| u32::try_from(action.0);
    given
        .iter()
        .map(|action| number(action).map_err(|_| PyValueError::new_err(format!("illegal action {action}"))))
        .collect()
}

/// Plays an action of any size. The number that was played, or why it was refused.
pub(crate) fn try_play(action: Whole, play: impl FnOnce(Action) -> Result<(), PlayError>) -> PyResult<Action> {
    let number = u32::try_from(action.0).unwrap_or(u32::MAX);
    play(number).map(|()| number).map_err(|error| {
        let text = error.to_string();
        // An error names the action that was given, and not the one that stands in for it.
        let is_beyond = number == u32::MAX;
        let text = if is_beyond { text.replacen(&number.to_string(), &action.to_string(), 1) } else { text };
        PyValueError::new_err(text)
    })
}

/// Refuses Gumbel draws that are not one finite number for each of the legal actions.
pub(crate) fn check_draws(draws: &[f64], actions: usize) -> PyResult<()> {
    if draws.len() == actions && draws.iter().all(|draw| draw.is_finite()) {
        return Ok(());
    }
    let got = draws.len();
    Err(PyValueError::new_err(format!(
        "gumbel must be one finite number for each of the {actions} legal actions, got {got} numbers"
    )))
}

/// The root's actions to choose among, ascending; empty for all.
pub(crate) fn allowed_actions(state: &AnyState, given: Option<Listed<Whole>>) -> PyResult<Vec<Action>> {
    let Some(Listed(given)) = given else {
        return Ok(Vec::new());
    };
    let legal = legal_of(state);
    state.check()?;
    let mut allowed = Vec::new();
    for action in given {
        match u32::try_from(action.0).ok().filter(|number| legal.contains(number)) {
            Some(number) => allowed.push(number),
            None => return Err(PyValueError::new_err(format!("actions: {action} is not legal here"))),
        }
    }
    allowed.sort_unstable();
    allowed.dedup();
    if allowed.is_empty() {
        return Err(PyValueError::new_err("actions must name at least one legal action; None stands for all"));
    }
    if allowed.len() == legal.len() {
        allowed.clear();
    }
    Ok(allowed)
}

/// A copy of the position, if it is of the game of `first`.
pub(crate) fn same_game<P: Payoff, Q: Payoff>(state: &AnyState, first: &AnyGame<Q>) -> PyResult<AnyGame<P>> {
    // A class in Python may have the name of a game in Rust. Only one thread may touch it.
    fn kind<P: Payoff>(game: &AnyGame<P>) -> (&str, usize, [usize; 3], usize, bool, bool) {
        let (players, zero_sum) = (game.num_players(), game.is_zero_sum());
        (game.game(), game.num_actions(), game.obs_shape(), players, zero_sum, game.fault().is_some())
    }
    if kind(state) == kind(first) {
        return Ok(state.clone().paying());
    }
    Err(PyTypeError::new_err("the states of one search must all be of one game and size"))
}

impl<P: Payoff> AnySearch for Search<AnyGame<P>> {
    fn num_actions(&self) -> usize {
        self.root().num_actions()
    }

    fn result(&self) -> SearchResult {
        self.result()
    }

    fn stats(&self) -> &SearchStats {
        self.stats()
    }

    fn tree(&self) -> &Tree {
        self.tree()
    }

    fn key(&self) -> u128 {
        self.root().key()
    }

    fn picture(&self, best: &[Action], max_nodes: usize, depth: usize) -> PyResult<Vec<Shown>> {
        // On copies with a place of their own for errors: a game in Python that fails here has not failed the search.
        let root = renewed(self.root());
        let shown = look::picture(&root, self.tree(), best, max_nodes, depth, AnyGame::action_name);
        root.check()?;
        Ok(shown)
    }

    fn check(&self) -> PyResult<()> {
        self.root().check()
    }
}

impl<P: Payoff> AnyBatch for Batch<P> {
    fn count(&self) -> usize {
        self.searches.len()
    }

    fn search(&self, index: usize) -> &dyn AnySearch {
        &self.searches[index]
    }

    fn state(&self, index: usize) -> PyResult<AnyState> {
        Ok(self.searches[index].root().copied()?.paying())
    }

    fn spec(&self) -> &str {
        self.searches[0].root().game()
    }

    fn changes(&self, index: usize) -> u64 {
        self.changes[index]
    }

    fn replace(&mut self, index: usize, state: &AnyState) -> PyResult<()> {
        let root = same_game(state, self.searches[index].root())?;
        self.changes[index] += 1;
        self.searches[index].reset(root);
        Ok(())
    }

    fn run(
        &mut self,
        py: Python<'_>,
        evaluator: &mut AnyEvaluator,
        simulations: u32,
        limit: Option<Duration>,
    ) -> PyResult<()> {
        let rolls = self.searches.iter().position(|search| search.root().turn() == Turn::Chance);
        self.check()?;
        if let Some(index) = rolls {
            let which = if self.searches.len() == 1 { String::new() } else { format!(" (state {index})") };
            return Err(GameError::new_err(format!("{}{which}", GameFault::ChanceRoot)));
        }
        self.changes.iter_mut().for_each(|changes| *changes += 1);
        for (index, search) in self.searches.iter_mut().enumerate() {
            let stream = stream_for(self.seed, index as u64, self.runs);
            search.begin(simulations, stream).map_err(|fault| GameError::new_err(fault.to_string()))?;
        }
        self.runs += 1;
        let outcome = py.detach(|| caught(|| self.work(evaluator, limit)));
        let failed = self.check();
        // A game that failed left positions in the trees that are none, a panic perhaps half a round: all trees begin
        // again, from roots that are as they were.
        if failed.is_err() || outcome.as_ref().is_err_and(|error| error.is_instance_of::<CoreError>(py)) {
            for search in &mut self.searches {
                search.reset(renewed(search.root()));
            }
        }
        failed.and(outcome).map_err(|error| no_stop_iteration(py, error))
    }

    fn set_gumbel_draws(&mut self, index: usize, draws: &[f64]) -> PyResult<()> {
        let search = &mut self.searches[index];
        check_draws(draws, search.num_root_actions())?;
        search.set_gumbel_draws(draws);
        Ok(())
    }

    fn allow(&mut self, index: usize, actions: Vec<Action>) {
        self.searches[index].allow(actions);
    }

    fn advance(&mut self, index: usize, action: Whole) -> PyResult<()> {
        let search = &mut self.searches[index];
        // Checked on a copy, so that a refused action changes nothing.
        let mut copy = search.root().copied()?;
        let played = try_play(action, |action| copy.try_play(action));
        copy.check()?;
        let action = played?;
        self.changes[index] += 1;
        search.advance(action);
        search.root().check()
    }

    fn rounds(&self) -> RoundStats {
        self.rounds.stats
    }

    fn check(&self) -> PyResult<()> {
        self.searches.iter().try_for_each(AnySearch::check)
    }
}
