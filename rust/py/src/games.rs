//! A game by its name, as a line of play, or as what a caller gives.

use std::time::Instant;

use azpy_core::text::Notation;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::SIGNALS_EVERY;
use crate::errors::{RustError, caught};
use crate::position::{AnyState, Fallible, random_games};
use crate::registry::make;
use crate::settings::{SIZE, U64, Whole, whole, within};
use crate::state::{State, state_of};

/// As [`any_state`](crate::state::any_state), or the name of a built-in game.
pub(crate) fn any_game(object: &Bound<'_, PyAny>) -> PyResult<AnyState> {
    match object.extract::<String>() {
        Ok(spec) => make(&spec, Vec::new()),
        Err(_) => state_of(object, "a game's name, an azpy.State or an instance of an azpy.Game"),
    }
}

/// The start of a game. Parameters are given as keywords or in the name, as in "connect_four(width=5, height=4)".
///
/// Raises ValueError for a game or parameter that does not exist, or a board that the game refuses.
///
///     >>> import azpy
///     >>> azpy.make_game("connect_four", width=5).num_actions
///     5
#[pyfunction]
#[pyo3(signature = (name, **params))]
pub(crate) fn make_game(name: &str, params: Option<&Bound<'_, PyDict>>) -> PyResult<State> {
    let mut given = Vec::new();
    if let Some(params) = params {
        for (key, value) in params {
            let key: String = key.extract()?;
            // True is 1: a switch may be given as what it is.
            let text = match value.extract::<bool>() {
                Ok(switch) => u8::from(switch).to_string(),
                Err(_) => value.str()?.to_string(),
            };
            given.push((key, text));
        }
    }
    make(name, given).map(State::of)
}

/// Read a position from text: the game's notation, or a line of play.
///
/// Args:
///     game: a game's name with its parameters. Or a `State` or `azpy.Game`, where a line of play then begins.
///     text: what `State.to_text` writes, or names of actions and chance outcomes with blanks between;
///         docs/reference/games.md has each game's notation. azpy reads the moves of a game in Python by `action_name`,
///         else by number. An empty text is the position where a line begins.
///     plies: how many moves of the main line to play; None for all.
///
/// Returns:
///     A `State`.
///
/// Raises:
///     ValueError: the text cannot be read, or the position is impossible.
///     TypeError: `game` is not a game.
///
///     >>> import azpy
///     >>> azpy.parse_state("hex(size=5)", "a1 c3 b2").turn
///     1
///     >>> print(azpy.parse_state("hex(size=3)", ".../.x./..o x"))
///       a b c
///     1 . . .
///      2 . x .
///       3 . . o
#[pyfunction]
#[pyo3(signature = (game, text, *, plies=None))]
pub(crate) fn parse_state(game: &Bound<'_, PyAny>, text: &str, plies: Option<Whole>) -> PyResult<State> {
    let plies = plies.map(|Whole(plies)| within("plies", plies, 0, SIZE)).transpose()?;
    let start = any_game(game)?;
    let read = caught(|| Ok(plies.map_or_else(|| start.parse(text), |plies| start.parse_plies(text, plies))));
    // An error of a game in Python comes before what followed from it.
    start.check()?;
    Ok(State::of(read?.map_err(RustError::raised)?))
}

/// Plays random games from a position to their ends, in Rust and on one thread: for tests and for measuring rules.
///
/// Args:
///     game: a game's name, a State, or an azpy.Game.
///     games: how many.
///     seed: the same one gives the same games.
///
/// Returns:
///     The plies of all of them, rolls counted.
///
///     >>> from azpy._core import random_playouts
///     >>> 5 <= random_playouts("tic_tac_toe", 1) <= 9
///     True
#[pyfunction]
#[pyo3(signature = (game, games, seed = 0))]
pub(crate) fn random_playouts(
    py: Python<'_>,
    game: &Bound<'_, PyAny>,
    games: Whole,
    #[pyo3(from_py_with = whole)] seed: i128,
) -> PyResult<u64> {
    let start = any_game(game)?;
    let (games, seed) = (within("games", games.0, 0, U64)?, within("seed", seed, 0, U64)?);
    let (mut done, mut plies) = (0, 0);
    while done < games {
        let until = Instant::now() + SIGNALS_EVERY;
        let (more, played) = py.detach(|| caught(|| random_games(&start, seed, done..games, until)))?;
        done += more;
        plies += played;
        py.check_signals()?;
    }
    Ok(plies)
}
