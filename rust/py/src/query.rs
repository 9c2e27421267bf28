//! `azpy._core.Message` and `Line`: what a client sends, and lines of play as other programs tell them.

use azpy_core::game::{Action, Game};
use azpy_serve::{Error, Format, Limits, Line as CoreLine, Object, action_of, format_of, id_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde::Serialize;

use crate::errors::{RustError, caught};
use crate::position::{AnyState, Fallible};
use crate::settings::{SIZE, Whole, within};
use crate::state::{State, player_of};

/// Asks the crate about positions that come from `start`, and waits for Python only where the game is in Python. An error
/// of the game comes before what followed from it.
fn ask<T: Send>(py: Python<'_>, start: &AnyState, question: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let reply = py.detach(|| caught(|| Ok(question())));
    start.take_error()?;
    reply?.map_err(RustError::raised)
}

/// A notation of whole games: PGN for chess, SGF for Go.
#[pyclass(module = "azpy", name = "Notation", frozen, get_all)]
pub(crate) struct GameNotation {
    /// As users know it, and as files end.
    name: &'static str,
    /// The tags that name player 0 and player 1.
    players: (&'static str, &'static str),
    /// The tag of the result.
    result: &'static str,
}

/// The notation of a game by its name, with parameters or without; None if there is none.
///
///     >>> from azpy._core import notation_of
///     >>> notation_of("go(size=9)").name
///     'sgf'
#[pyfunction]
pub(crate) fn notation_of(game: &str) -> Option<GameNotation> {
    let Format { name, players: [first, second], result, .. } = format_of(game)?;
    Some(GameNotation { name, players: (first, second), result })
}

/// What one client may ask for: the attributes of an `azpy.serving.limits.Limits`.
pub(crate) fn limits_of(given: &Bound<'_, PyAny>) -> PyResult<Limits> {
    let size = |name: &str| given.getattr(name)?.extract::<usize>();
    Ok(Limits {
        simulations: given.getattr("simulations")?.extract()?,
        seconds: given.getattr("seconds")?.extract()?,
        moves: size("moves")?,
        turns: size("turns")?,
        nodes: size("nodes")?,
        depth: size("depth")?,
        text_bytes: size("text_bytes")?,
        searches: size("searches")?,
        games: size("games")?,
    })
}

/// What a client sent, an object of JSON: a query, or an action. Whatever is wrong with it raises ValueError, with the field's name.
///
/// Args:
///     data: its text, or the bytes of it in UTF-8.
///
///     >>> from azpy._core import Message
///     >>> Message('{"id": "1", "moves": ["e2e4"]}').get("moves")
///     ['e2e4']
#[pyclass(module = "azpy", frozen)]
pub(crate) struct Message {
    pub(crate) fields: Object,
}

#[pymethods]
impl Message {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let read = |text: &str| py.detach(|| Object::read(text)).map_err(RustError::raised);
        let fields = match data.cast::<PyBytes>() {
            Ok(bytes) => {
                read(std::str::from_utf8(bytes.as_bytes()).map_err(|_| PyValueError::new_err("expected UTF-8"))?)?
            }
            Err(_) => read(data.cast::<PyString>()?.to_str()?)?,
        };
        Ok(Self { fields })
    }

    /// A field as Python has it; None if it is not there.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.fields.get(name))
    }

    /// All fields as a dict.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.fields.fields())
    }

    /// The text that names the message in its answers.
    #[getter]
    fn id(&self) -> PyResult<&str> {
        id_of(&self.fields).map_err(RustError::raised)
    }

    /// The action that is asked for; None for a query. With `renews` there is an action `renew`.
    fn action(&self, renews: bool) -> PyResult<Option<&'static str>> {
        action_of(&self.fields, renews).map_err(RustError::raised)
    }
}

/// A value of JSON as Python has it.
fn python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    // What was read as JSON can be written.
    py.import("json")?.call_method1("loads", (serde_json::to_string(value).unwrap_or_default(),))
}

/// A line of play as a person or another program tells it, by the names of actions. It goes on where azpy's rules end a
/// game: chess after a repetition, fifty moves or too many plies, and Go after two passes or too many plies. There the line
/// begins anew at the board, and `start` is another position.
///
/// Args:
///     start: where the line begins; it stays as it is.
///
///     >>> import azpy
///     >>> line = azpy._core.Line(azpy.make_game("hex", size=5))
///     >>> line.play("a1")
///     >>> line.played
///     [0]
#[pyclass(module = "azpy")]
pub(crate) struct Line {
    line: CoreLine<AnyState>,
}

impl Line {
    /// Changes the line, or leaves it as it is where something is wrong.
    fn change(
        &mut self,
        py: Python<'_>,
        change: impl FnOnce(&mut CoreLine<AnyState>) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let mut line = self.line.clone();
        ask(py, &self.line.start, || change(&mut line))?;
        self.line = line;
        Ok(())
    }
}

#[pymethods]
impl Line {
    #[new]
    fn new(start: &State) -> PyResult<Self> {
        Ok(Self { line: CoreLine::new(start.inner.copied()?) })
    }

    /// Where the line begins, a copy.
    #[getter]
    fn start(&self) -> PyResult<State> {
        self.line.start.copied().map(State::of)
    }

    /// The actions since `start`.
    #[getter]
    fn played(&self) -> Vec<Action> {
        self.line.played.clone()
    }

    /// The position that they lead to, a copy.
    #[getter]
    fn state(&self) -> PyResult<State> {
        self.line.state.copied().map(State::of)
    }

    /// Plays the action, or takes the roll, of a name, in Go in any case; there `player` may play twice in a row. Raises
    /// ValueError, and changes nothing, if none is legal for this player.
    #[pyo3(signature = (name, player = None))]
    fn play(&mut self, py: Python<'_>, name: &str, player: Option<Whole>) -> PyResult<()> {
        let player = player_of(player, self.line.start.num_players())?;
        self.change(py, |line| line.play(name, player))
    }

    /// Begins anew at the present board where the game is over by its past alone, and in Go where `player` is not to move.
    #[pyo3(signature = (player = None))]
    fn go_on(&mut self, py: Python<'_>, player: Option<Whole>) -> PyResult<()> {
        let player = player_of(player, self.line.start.num_players())?;
        self.change(py, |line| {
            line.go_on(player);
            Ok(())
        })
    }

    /// The first plies of the line.
    fn upto(&self, py: Python<'_>, plies: Whole) -> PyResult<Self> {
        let plies = within("plies", plies.0, 0, SIZE)?;
        let line = ask(py, &self.line.start, || Ok(self.line.upto(plies)))?;
        Ok(Self { line })
    }
}
