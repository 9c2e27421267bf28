//! What the Wall Game has for Python beside its positions: the notation of whole turns.

use azpy_games::WallGame;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::hosted::downcast;
use crate::settings::{Whole, within};
use crate::state::State;

/// The name of a turn of the Wall Game, such as "Cb7.>e4": what `State.parse_actions` reads.
///
/// Args:
///     state: a position at the first action of a turn.
///     actions: one or two, legal one after the other; none is "end_turn".
///
/// Raises TypeError for another game, ValueError for actions that are no turn.
///
///     >>> import azpy
///     >>> state = azpy.make_game("wall_game")
///     >>> azpy.wall_turn_name(state, state.parse_actions("Ca7 Cb7"))
///     'Cb7'
#[pyfunction]
pub(crate) fn wall_turn_name(state: &State, actions: Vec<Whole>) -> PyResult<String> {
    let Some(game) = downcast::<WallGame>(&*state.inner) else {
        return Err(PyTypeError::new_err(format!("expected a position of wall_game, got one of {}", state.spec)));
    };
    let last = state.inner.num_actions() as i128 - 1;
    let actions = actions.into_iter().map(|Whole(action)| within("actions", action, 0, last));
    game.turn_name(&actions.collect::<PyResult<Vec<_>>>()?).map_err(PyValueError::new_err)
}
