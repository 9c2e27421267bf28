//! `azpy.GameRecord`: a finished game as Python sees it.

use std::sync::Arc;

use azpy_core::game::Player;
use azpy_core::record::{GameRecord as CoreRecord, Ply};
use azpy_core::text::Position;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::{RustError, caught};
use crate::fault::outcome_object;
use crate::listed::{Listed, numbers_of, short};
use crate::position::{Fallible, record_of};
use crate::settings::{U64, whole, within};
use crate::state::State;

/// A finished game of T plies, rolls included. K is the number of legal actions over all its samples.
///
/// `SelfPlay` makes records, and `ReplayBuffer` takes them. A record can be pickled.
#[pyclass(module = "azpy", frozen)]
pub(crate) struct GameRecord(pub(crate) Arc<CoreRecord>);

#[pymethods]
impl GameRecord {
    /// The game, as `State.game`.
    #[getter]
    fn game(&self) -> &str {
        &self.0.game
    }

    /// The game's number in its run.
    #[getter]
    fn game_id(&self) -> u64 {
        self.0.game_id
    }

    /// The seed of the game's run.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The result, as `State.outcome` returns it: 0 for each player if capped, and a loss for a player who resigned.
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        outcome_object(py, &self.0.outcomes)
    }

    /// The result for each player, player 0 first; (x, -x) for two players with a zero sum.
    #[getter]
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, Player::ALL[..self.0.num_players].iter().map(|&player| self.0.outcome_of(player)))
    }

    /// The number of players.
    #[getter]
    fn num_players(&self) -> usize {
        self.0.num_players
    }

    /// Whether a cap on plies ended the game as a draw.
    #[getter]
    fn capped(&self) -> bool {
        self.0.capped
    }

    /// Whether the player to move after the last ply resigned. The outcome is that player's loss.
    #[getter]
    fn resigned(&self) -> bool {
        self.0.resigned
    }

    /// The number of positions to train on: the searched ones, and all of a player in an imported game without
    /// searches.
    #[getter]
    fn positions(&self) -> usize {
        self.0.samples()
    }

    /// Whether the game comes from a file. Its outcome is then the file's, unless the rules end the game.
    #[getter]
    fn imported(&self) -> bool {
        self.0.imported
    }

    /// In a game of one player: the score to beat (option `score_to_beat`), or None.
    #[getter]
    fn score_to_beat(&self) -> Option<f32> {
        self.0.score_to_beat
    }

    /// What the network learns that each player got, player 0 first.
    ///
    /// These are `outcomes`; with a score to beat, 1 above it and -1 below it. If the outcome equals the score, a coin
    /// decides, tossed by the seed and the game's number.
    #[getter]
    fn rewards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, Player::ALL[..self.0.num_players].iter().map(|&player| self.0.reward_of(player)))
    }

    /// Actions and chance outcomes, int32 [T].
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.0.plies.iter().map(|ply| ply.action as i32))
    }

    /// Who played each ply, int8 [T]; -1 at a chance turn.
    #[getter]
    fn players<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i8>> {
        PyArray1::from_iter(py, self.0.plies.iter().map(|ply| ply.player))
    }

    /// Bits of each ply, uint8 [T]; 0 where chance, an opening or the raw policy chose.
    ///
    /// Bit 0: a sample to learn from, searched in full. Bit 1: the network was exchanged during the search. Bit 2: no
    /// sample, only the value is kept: of a fast search, or, where the game hides something, of a player who does not
    /// learn in this game. Bit 4: a sample of an imported game, of which only the action is known.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_iter(py, self.0.plies.iter().map(|ply| ply.flags))
    }

    /// The search's value for the player to move, float32 [T]; 0 where nothing was searched.
    #[getter]
    fn root_values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let of = |(index, ply): (usize, &Ply)| ply.mover().map_or(0.0, |mover| self.0.root_value_of(index, mover));
        PyArray1::from_iter(py, self.0.plies.iter().enumerate().map(of))
    }

    /// The search's value for each player, float32 [T, P], player 0 first; 0 where nothing was searched.
    #[getter]
    fn player_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let players = self.0.num_players;
        let of = |ply: usize| Player::ALL[..players].iter().map(move |&player| self.0.root_value_of(ply, player));
        let values: Vec<f32> = (0..self.0.plies.len()).flat_map(of).collect();
        let array = Array2::from_shape_vec((self.0.plies.len(), players), values);
        Ok(array.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
    }

    /// The `network_id` of the evaluator that searched, or whose raw policy chose, uint64 [T]; 0 for none.
    #[getter]
    fn networks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.0.plies.iter().map(|ply| ply.network))
    }

    /// Where each ply's entries in `legal`, `visits`, `priors` and `targets` begin and end, int64 [T + 1]. A ply that
    /// is not a sample has none.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.0.offsets.iter().map(|&offset| i64::from(offset)))
    }

    /// Legal actions, ply by ply and ascending, int32 [K].
    #[getter]
    fn legal<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.0.legal.iter().map(|&action| action as i32))
    }

    /// Visits of each legal action, uint32 [K].
    #[getter]
    fn visits<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.0.visits)
    }

    /// The prior of each legal action, float32 [K], without root noise.
    #[getter]
    fn priors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.0.priors)
    }

    /// The policy target of each legal action, float32 [K]; the sum of a ply is 1. See `SearchResult.target`.
    #[getter]
    fn targets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_vec(py, (0..self.0.plies.len()).flat_map(|ply| self.0.target(ply)).collect())
    }

    /// Make the record of a game that was played elsewhere, of which only the actions and the outcome are known.
    ///
    /// Args:
    ///     start: the position where it begins.
    ///     actions: actions and chance outcomes, all legal.
    ///     outcome: as `State.outcome` returns it, numbers in [-1, 1]. Where the rules end the game, the outcome of the
    ///         rules.
    ///     game_id: the game's number in its run.
    ///     seed: the seed of its run.
    ///
    /// Raises:
    ///     ValueError: the rules do not allow the game.
    #[staticmethod]
    #[pyo3(signature = (start, actions, outcome, *, game_id = 0, seed = 0))]
    fn of_actions(
        start: &State,
        actions: Listed<u32>,
        outcome: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] game_id: i128,
        #[pyo3(from_py_with = whole)] seed: i128,
    ) -> PyResult<Self> {
        let (game_id, seed) = (within("game_id", game_id, 0, U64)?, within("seed", seed, 0, U64)?);
        let (outcome, _) = numbers_of(outcome).ok_or_else(|| {
            PyTypeError::new_err(format!("outcome must be a number or a list of numbers, got {}", short(outcome)))
        })?;
        let record = caught(|| Ok(record_of(&start.inner, &actions.0, &outcome)));
        start.inner.take_error()?;
        let record = record?.map_err(RustError::raised)?;
        Ok(Self(Arc::new(CoreRecord { game: start.inner.game().to_owned(), game_id, seed, ..record })))
    }

    /// Return the same game as an imported one, with its actions, searches and outcome, but not how it ended.
    ///
    /// Args:
    ///     game_id: the game's number in its new run.
    ///     seed: the seed of that run.
    ///     score_to_beat: the score to beat of that run. The reward replaces values of searches that counted another
    ///         score.
    #[pyo3(signature = (*, game_id, seed, score_to_beat = None))]
    fn as_imported(
        &self,
        #[pyo3(from_py_with = whole)] game_id: i128,
        #[pyo3(from_py_with = whole)] seed: i128,
        score_to_beat: Option<f32>,
    ) -> PyResult<Self> {
        let (game_id, seed) = (within("game_id", game_id, 0, U64)?, within("seed", seed, 0, U64)?);
        let named = CoreRecord { game_id, seed, ..CoreRecord::clone(&self.0) };
        Ok(Self(Arc::new(named.as_imported(score_to_beat))))
    }

    /// Return the record in azpy's own format.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Read what `to_bytes` returned. `ReplayBuffer.add` checks later whether the game obeys the rules.
    ///
    /// Raises:
    ///     ValueError: the bytes are not a record.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        CoreRecord::from_bytes(data).map(|record| Self(Arc::new(record))).map_err(RustError::raised)
    }

    /// Pickles `to_bytes`.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py),)))
    }

    fn __len__(&self) -> usize {
        self.0.plies.len()
    }

    fn __repr__(&self) -> String {
        let CoreRecord { game, game_id, outcomes, plies, .. } = &*self.0;
        let outcome = if let [outcome] = outcomes[..] { outcome.to_string() } else { format!("{outcomes:?}") };
        format!("<azpy.GameRecord {game_id} of {game}, {} plies, outcome {outcome}>", plies.len())
    }
}
