//! `azpy.SelfPlay`: games played in the background, handed over as they finish.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use azpy_core::batched::Workers;
use azpy_core::cache::Cache;
use azpy_core::game::Payoff;
use azpy_core::process::Process;
use azpy_core::record::GameRecord as CoreRecord;
use azpy_core::selfplay::{Layout, SelfPlay as CoreSelfPlay, SelfPlayConfig, SelfPlayStats};
use azpy_core::text::Position;
use azpy_core::timing::PipelineStats;
use azpy_games::any::AnyGame;
use azpy_games::each;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{RustError, forked, no_stop_iteration, selfplay_error};
use crate::evaluators::{AnyEvaluator, is_evaluating};
use crate::fault::Fault;
use crate::games::any_game;
use crate::listed::{Listed, set_fields};
use crate::position::{Fallible, remembered};
use crate::record::GameRecord;
use crate::settings::{self, SIZE, U64, Whole, whole, within};
use crate::threads::{self, BackgroundTask, PATIENCE, attached_once, locked, wait};

/// The most slots: more would exhaust a machine before the first game.
const MOST_SLOTS: i128 = 1 << 20;
/// Of a wait.
const MOST_SECONDS: f64 = 1e6;

/// Settings of self-play.
struct SelfPlaySettings {
    config: SelfPlayConfig,
    layout: Layout,
    /// One a pipeline.
    evaluators: Vec<AnyEvaluator>,
    cache: Option<Arc<Cache>>,
    threads: usize,
}

/// Self-play of some game.
struct Playing {
    /// Every method is called without the GIL.
    core: CoreSelfPlay<AnyEvaluator, PyErr>,
    /// Where its game leaves its first error, if it can fail.
    fault: Option<Fault>,
}

impl Playing {
    fn start<P: Payoff>(start: &AnyGame<P>, settings: SelfPlaySettings) -> PyResult<Self> {
        let threads = if start.fault().is_some() { 1 } else { settings.threads };
        let workers = Workers::new(threads).map_err(RustError::raised)?;
        let SelfPlaySettings { config, layout, evaluators, cache, .. } = settings;
        let core = CoreSelfPlay::start(start, config, &layout, evaluators, &workers, cache);
        Ok(Self { core: core.map_err(RustError::raised)?, fault: start.fault().cloned() })
    }

    /// `Ok(None)`: nothing yet, or over.
    fn next(&self, patience: Duration) -> PyResult<Option<CoreRecord>> {
        let record = self.core.next(patience);
        // Games that ended after a Python game failed ended because of the failure.
        self.check()?;
        record.map_err(selfplay_error)
    }

    fn take_finished(&self, most: usize) -> PyResult<Vec<CoreRecord>> {
        let games = self.core.take_finished(most);
        self.check().map(|()| games)
    }

    fn check(&self) -> PyResult<()> {
        self.fault.as_ref().map_or(Ok(()), Fault::check)
    }
}

impl BackgroundTask for Playing {
    fn stop(&self) {
        self.core.stop();
    }
}

type Counted = (SelfPlayStats, Vec<PipelineStats>);
type Live = Mutex<Option<Arc<Playing>>>;

/// Games that a network plays against itself, in background threads.
///
/// Iterate over it to get finished `GameRecord`s. The iteration ends when all games are finished and taken; after
/// `admit` it continues. Use it in a `with` block, or call `close`.
///
/// A game depends on (seed, game id) and the evaluator's answers alone, not on slots, pipelines or threads. Each
/// pipeline calls its own evaluator, made by `fork()`, with at most eval_batch leaves from each of its slots. Pipelines
/// share an evaluator without `fork`, one call at a time. In a forked process every method but `close` raises
/// RuntimeError.
///
/// Args:
///     game: a game's name, a `State`, or an `azpy.Game` at its start.
///     evaluator: as for `Search`; or a list of evaluators of one network, each on a device of its own, which take the
///         pipelines in turn.
///     slots: how many games are in play at once, at most 2^20.
///     pipelines: threads that each have their own batch, at most 256. While one batch is evaluated, the other trees
///         grow.
///     cache_positions: how many answers to keep, if the evaluator has a `network_id`; 0 for none. Each takes 48 bytes,
///         and 4 for each legal action.
///     threads: how many threads grow the trees; by default one a core.
///     first_game: the id of the first game.
///     games: how many games to play; None plays until `close`. `admit` adds others.
///     stagger: spreads the starts of the slots' first games over so many plies of the longest game; 0 starts all at
///         once. Games that start together end together.
///
/// Options of self-play (keywords, each with its default):
#[doc = azpy_core::selfplay_options!()]
///
/// The options of its searches are those of `Search`, with root_noise 0.25 by default.
///
///     >>> import azpy
///     >>> with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=20, games=10) as games:
///     ...     len([record.outcome for record in games])
///     10
#[pyclass(module = "azpy", frozen)]
pub(crate) struct SelfPlay {
    live: Live,
    /// The final counts, once it is closed.
    counted: Mutex<Option<Counted>>,
    pipelines: usize,
    /// It plays for ever.
    endless: bool,
    /// For evaluators that pipelines share; also across a swap.
    turns: Vec<Arc<Mutex<()>>>,
    /// That has the pipelines.
    process: Process,
    /// The games in play when it was closed.
    unfinished: Mutex<Vec<CoreRecord>>,
}

impl SelfPlay {
    fn playing(&self) -> PyResult<Option<Arc<Playing>>> {
        if is_evaluating() {
            return Err(PyRuntimeError::new_err(
                "self-play cannot be called from inside an evaluator: it may be waiting for that evaluator",
            ));
        }
        let live = locked(&self.live).clone();
        if live.is_some() && !self.process.is_current() {
            return Err(forked("this self-play's pipelines are", "a SelfPlay"));
        }
        Ok(live)
    }

    /// The counts so far, or those at `close`.
    fn counted(&self, py: Python<'_>) -> PyResult<Counted> {
        if let Some(playing) = self.playing()? {
            return Ok(py.detach(|| (playing.core.stats(), playing.core.pipeline_stats())));
        }
        let counted = locked(&self.counted).clone();
        counted.ok_or_else(|| PyValueError::new_err("this self-play is being closed"))
    }

    fn open(&self) -> PyResult<Arc<Playing>> {
        self.playing()?.ok_or_else(|| PyValueError::new_err("this self-play is closed"))
    }
}

#[pymethods]
impl SelfPlay {
    #[new]
    #[pyo3(signature = (
        game, evaluator, *, slots = 256, pipelines = 2, cache_positions = 200_000, threads = None, seed = 0,
        first_game = 0, games = None, stagger = 0, **options
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        game: &Bound<'_, PyAny>,
        evaluator: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] slots: i128,
        #[pyo3(from_py_with = whole)] pipelines: i128,
        #[pyo3(from_py_with = whole)] cache_positions: i128,
        threads: Option<Whole>,
        #[pyo3(from_py_with = whole)] seed: i128,
        #[pyo3(from_py_with = whole)] first_game: i128,
        games: Option<Whole>,
        #[pyo3(from_py_with = whole)] stagger: i128,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let start = remembered(any_game(game)?);
        let options = settings::selfplay_config::<Self>(py, options)?;
        let slots = within("slots", slots, 1, MOST_SLOTS)?;
        let pipelines = within("pipelines", pipelines, 1, settings::MOST_PIPELINES as i128)?;
        if slots < pipelines {
            return Err(PyValueError::new_err(format!(
                "expected a slot for each pipeline, got {pipelines} pipelines and {slots} slots"
            )));
        }
        let cache_positions = settings::cache_positions(cache_positions)?;
        let threads = settings::threads(threads)?;
        let seed = within("seed", seed, 0, U64)?;
        let first_game: u64 = within("first_game", first_game, 0, U64)?;
        // The last one has an id too.
        let games = games.map(|Whole(given)| within("games", given, 0, U64 - i128::from(first_game))).transpose()?;
        let stagger = within("stagger", stagger, 0, SIZE)?;
        let config = SelfPlayConfig { seed, game: start.game().to_owned(), ..options };
        let layout = Layout { slots, first_game, games, stagger, inside: attached_once };
        let turns: Vec<_> = (0..pipelines).map(|_| Arc::default()).collect();
        let evaluators = AnyEvaluator::for_pipelines(evaluator, pipelines, &turns)?;
        let settings =
            SelfPlaySettings { config, layout, evaluators, cache: settings::cache(cache_positions), threads };
        let playing = Arc::new(py.detach(|| each!(start.by_payoff(), start => Playing::start(&start, settings)))?);
        threads::stop_at_exit(&(playing.clone() as Arc<dyn BackgroundTask>));
        threads::wait_until_attached(py);
        let endless = games.is_none();
        Ok(Self {
            live: Mutex::new(Some(playing)),
            counted: Mutex::default(),
            pipelines,
            endless,
            turns,
            process: Process::current(),
            unfinished: Mutex::default(),
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Return the next finished game, in the order of finishing.
    ///
    /// Raises:
    ///     Exception: what the evaluator or the game raised, unchanged; it ends the run. A StopIteration becomes the
    ///         cause of a RuntimeError.
    fn __next__(&self, py: Python<'_>) -> PyResult<GameRecord> {
        let Some(playing) = self.playing()? else {
            return Err(PyStopIteration::new_err(()));
        };
        let record = wait(py, || match playing.next(PATIENCE)? {
            Some(record) => Ok(Some(Some(record))),
            None if playing.core.is_over() => Ok(Some(None)),
            None => Ok(None),
        });
        let record = record.map_err(|error| no_stop_iteration(py, error))?;
        let record = record.ok_or_else(|| PyStopIteration::new_err(()))?;
        // After a Ctrl-C in the meantime, Python would drop the returned games.
        if let Err(interrupt) = py.check_signals() {
            playing.core.put_back(vec![record]);
            return Err(interrupt);
        }
        Ok(GameRecord(Arc::new(record)))
    }

    /// Add the games `first` to `first + n - 1` to those to play.
    ///
    /// Ids may come in any order and with gaps. A game does not depend on what else is played. An id that you admit
    /// twice is played twice.
    ///
    /// Raises:
    ///     ValueError: self-play without `games` plays every id already.
    fn admit(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] first: i128,
        #[pyo3(from_py_with = whole)] n: i128,
    ) -> PyResult<()> {
        let playing = self.open()?;
        if self.endless {
            return Err(PyValueError::new_err("admit needs games=0 or more: self-play without an end plays every id"));
        }
        let first: u64 = within("first", first, 0, U64)?;
        let n: u64 = within("n", n, 0, U64 - i128::from(first))?;
        py.detach(|| playing.core.admit(first..first + n));
        Ok(())
    }

    /// Return the finished games that nobody has taken yet, in a list.
    ///
    /// Args:
    ///     most: the most games to return; None for all.
    ///     seconds: how long to wait for the first one. With 0 it does not wait, and does not raise what ended the run.
    #[pyo3(signature = (most = None, *, seconds = 0.0))]
    fn take_finished(&self, py: Python<'_>, most: Option<Whole>, seconds: f64) -> PyResult<Vec<GameRecord>> {
        let playing = self.open()?;
        let most = most.map_or(Ok(usize::MAX), |most| within("most", most.0, 0, SIZE))?;
        if !(0.0..=MOST_SECONDS).contains(&seconds) {
            return Err(PyValueError::new_err(format!("seconds must be in [0, {MOST_SECONDS}], got {seconds}")));
        }
        let mut games = py.detach(|| playing.take_finished(most))?;
        if games.is_empty() && most > 0 && seconds > 0.0 {
            let until = Instant::now() + Duration::from_secs_f64(seconds);
            let first = wait(py, || {
                let left = until.saturating_duration_since(Instant::now());
                match playing.next(PATIENCE.min(left))? {
                    Some(record) => Ok(Some(Some(record))),
                    None if left.is_zero() || playing.core.is_over() => Ok(Some(None)),
                    None => Ok(None),
                }
            })?;
            if let Some(first) = first {
                games.push(first);
                games.extend(py.detach(|| playing.take_finished(most - 1))?);
            }
        }
        // After a Ctrl-C in the meantime, Python would drop the returned games.
        if let Err(interrupt) = py.check_signals() {
            playing.core.put_back(games);
            return Err(interrupt);
        }
        Ok(games.into_iter().map(|record| GameRecord(Arc::new(record))).collect())
    }

    /// Change to another evaluator between rounds, and return when every pipeline has. Trees keep what they know, and
    /// `network_id` tells the answers of the two apart.
    fn swap(&self, py: Python<'_>, evaluator: &Bound<'_, PyAny>) -> PyResult<()> {
        let playing = self.open()?;
        let evaluators = AnyEvaluator::for_pipelines(evaluator, self.pipelines, &self.turns)?;
        py.detach(|| playing.core.swap(evaluators)).map_err(selfplay_error)?;
        wait(py, || Ok(playing.core.is_swapped(PATIENCE).then_some(())))
    }

    /// Replace the option `score_to_beat` for games that begin from now on. Their records name the score.
    ///
    /// A game of several players then ends self-play with a GameError.
    fn set_score_to_beat(&self, py: Python<'_>, score: f32) -> PyResult<()> {
        if !(-1.0..=1.0).contains(&score) {
            return Err(PyValueError::new_err(format!("the score to beat must be in [-1, 1], got {score}")));
        }
        let playing = self.open()?;
        py.detach(|| playing.core.set_score_to_beat(score));
        Ok(())
    }

    /// Hold the pipelines at the end of their rounds, and return when all have stopped. Games in play stay as they are.
    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        let playing = self.open()?;
        py.detach(|| playing.core.pause(true));
        wait(py, || Ok(playing.core.is_paused(PATIENCE).then_some(())))
    }

    /// Let paused pipelines continue.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let playing = self.open()?;
        py.detach(|| playing.core.pause(false));
        Ok(())
    }

    /// Continue games that another self-play left `unfinished`, once their ids come up; `admit` them, or leave `games`
    /// out.
    ///
    /// Their first search starts with a new tree. A game of another run starts from its beginning.
    fn go_on(&self, py: Python<'_>, games: Listed<PyRef<'_, GameRecord>>) -> PyResult<()> {
        let playing = self.open()?;
        let games = games.0.iter().map(|game| (*game.0).clone()).collect();
        py.detach(|| playing.core.go_on(games));
        Ok(())
    }

    /// After `close`: records of the games that were in play and searched, without outcomes. `go_on` of another
    /// self-play takes them.
    #[getter]
    fn unfinished(&self) -> Vec<GameRecord> {
        let games = locked(&self.unfinished).clone();
        games.into_iter().map(|record| GameRecord(Arc::new(record))).collect()
    }

    /// Stop after the rounds under way, and keep the games in play as `unfinished`. Does nothing in a forked process.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.process.is_current() {
            return Ok(());
        }
        let Some(playing) = self.playing()? else {
            return Ok(());
        };
        py.detach(|| playing.core.stop());
        let stopped = wait(py, || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(playing.core.is_stopped().then_some(()))
        });
        locked(&self.unfinished).extend(playing.core.unfinished());
        let counted = py.detach(|| (playing.core.stats(), playing.core.pipeline_stats()));
        locked(&self.counted).replace(counted);
        let live = locked(&self.live).take();
        py.detach(move || drop((playing, live)));
        stopped
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// Totals since the start, as a dict of ints; also after `close`.
    ///
    /// Of finished games: games, positions (samples), searches (samples or not) and fast_searches (among them). Of
    /// rounds: simulations, evaluations, cache_hits, terminals, collisions, batches, rows, rows_capacity (rows if every
    /// tree had filled eval_batch), shared (leaves that shared a row with an equal leaf).
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, _) = self.counted(py)?;
        let dict = PyDict::new(py);
        set_fields!(dict, stats; games, positions, searches, fast_searches);
        set_fields!(dict, stats.rounds.searches; simulations, evaluations, cache_hits, terminals, collisions);
        set_fields!(dict, stats.rounds; batches, rows, rows_capacity, shared);
        Ok(dict)
    }

    /// The number of games in play, and the plies of the longest one, after each pipeline's last round.
    #[getter]
    fn in_play(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        let playing = self.open()?;
        let pipelines = py.detach(|| playing.core.pipeline_stats());
        let longest = pipelines.iter().map(|stats| stats.longest).max().unwrap_or(0);
        Ok((pipelines.iter().map(|stats| stats.in_play).sum(), longest))
    }

    /// Where the time of each pipeline went since the start, as a list of dicts; also after `close`.
    ///
    /// Each has rounds, seconds_growing (trees, encoding and moves), seconds_evaluating (in the evaluator, or waiting
    /// for a shared one), seconds_waiting (for finished games to be taken), seconds_idle (without a game) and
    /// seconds_paused. Together they are the pipeline's life without the round under way.
    #[getter]
    fn pipeline_stats<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (_, pipelines) = self.counted(py)?;
        let dict = |stats: PipelineStats| {
            let dict = PyDict::new(py);
            dict.set_item("rounds", stats.rounds)?;
            dict.set_item("seconds_growing", stats.growing.as_secs_f64())?;
            dict.set_item("seconds_evaluating", stats.evaluating.as_secs_f64())?;
            dict.set_item("seconds_waiting", stats.waiting.as_secs_f64())?;
            dict.set_item("seconds_idle", stats.idle.as_secs_f64())?;
            dict.set_item("seconds_paused", stats.paused.as_secs_f64())?;
            Ok(dict)
        };
        pipelines.into_iter().map(dict).collect()
    }
}
