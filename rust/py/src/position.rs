//! A position of any game, in Rust or in Python, as Python holds it.

use std::ops::Range;
use std::time::Instant;

use azpy_core::Error;
use azpy_core::game::{Action, Game, Payoff, Player, RandomGames, Turn};
use azpy_core::record::GameRecord;
use azpy_core::rng::Stream;
use azpy_core::written::WrittenGame;
use azpy_games::any::AnyGame;
use azpy_games::each;
use pyo3::prelude::*;

use crate::errors::GameError;
use crate::fault::Fault;
use crate::pygame::PyGame;

/// A position of any game, as Python holds it.
pub(crate) type AnyState = AnyGame;

/// What a position has where its game may be in Python, and fail.
pub(crate) trait Fallible: Sized {
    /// Where its errors are, if it can fail. Such a game is touched by one thread at a time.
    fn fault(&self) -> Option<&Fault>;
    /// An independent copy with a place of its own for errors, or the error of the game that refused. A clone shares
    /// this place: an error of one is an error of both.
    fn copied(&self) -> PyResult<Self>;
    /// The azpy.Game that it is.
    fn object(&self) -> Option<&Py<PyAny>>;

    /// The error that its game has met, if any.
    fn check(&self) -> PyResult<()> {
        self.fault().map_or(Ok(()), Fault::check)
    }
    /// As `check`, and forgets the error.
    fn take_error(&self) -> PyResult<()> {
        self.fault().map_or(Ok(()), Fault::take)
    }
}

impl<P: Payoff> Fallible for AnyGame<P> {
    fn fault(&self) -> Option<&Fault> {
        self.inside::<PyGame>().map(PyGame::fault)
    }
    fn copied(&self) -> PyResult<Self> {
        self.inside::<PyGame>().map_or_else(|| Ok(self.clone()), |game| Ok(self.holding(game.copied()?)))
    }
    fn object(&self) -> Option<&Py<PyAny>> {
        self.inside::<PyGame>().map(PyGame::object)
    }
}

/// The same position with the error of its game cleared.
pub(crate) fn renewed<P: Payoff>(state: &AnyGame<P>) -> AnyGame<P> {
    state.inside::<PyGame>().map_or_else(|| state.clone(), |game| state.holding(game.renewed()))
}

/// The position of a game that hides something, of which Python is asked nothing twice. Other games are as they were: few
/// of their games meet in a position.
pub(crate) fn remembered(state: AnyState) -> AnyState {
    match state.inside::<PyGame>() {
        Some(game) if game.hides() => state.holding(game.remembered()),
        _ => state,
    }
}

/// How the rules end a written game that begins at `start`, for player 0; nothing where they do not, or where players do
/// not share a zero sum.
pub(crate) fn end_of(start: &AnyState, game: &WrittenGame) -> Option<f32> {
    if !start.is_zero_sum() {
        return None;
    }
    let mut end = start.clone();
    game.actions.iter().flatten().for_each(|&action| end.play(action));
    (end.turn() == Turn::Terminal).then(|| end.outcome().of(Player::Zero))
}

/// See `GameRecord::of_actions` of the core.
pub(crate) fn record_of(start: &AnyState, actions: &[Action], outcome: &[f32]) -> Result<GameRecord, Error> {
    each!(start.clone().by_payoff(), start => GameRecord::of_actions(&start, actions, outcome))
}

/// Plays the first random games of `games` from `start`, until they are done or it is `until`: how many games, and their
/// plies.
pub(crate) fn random_games(start: &AnyState, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)> {
    let mut random = RandomGames::default();
    let (mut done, mut plies) = (0, 0);
    for game in games {
        let played = start.clone().play_out(&mut random, &mut Stream::keyed(&[seed, game]));
        // An error of a game in Python comes before what followed from it.
        start.check()?;
        plies += played.ok_or_else(|| GameError::new_err("a random game found no action, or did not end"))? as u64;
        done += 1;
        // A reading of the clock takes as long as a ply or two.
        if done % 16 == 0 && Instant::now() > until {
            break;
        }
    }
    Ok((done, plies))
}
