//! `azpy._core.Message`, `Query` and `Line`: what a server's clients ask, and the lines of JSON that answer them.
//!
//! The crate `azpy-serve` reads and writes. Here a position of any game, one in Python too, is a position of that crate.

use std::sync::Arc;

use azpy_core::game::{Action, Game};
use azpy_serve::{
    Asking, Format, Found, Limits, Line as CoreLine, Object, Place, Query as CoreQuery, Refused, action_of, format_of,
    id_of, read, show, terminated, write,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde_json::{Map, Value};

use crate::errors::caught;
use crate::position::{AnyState, Hosted};
use crate::result::SearchResult;
use crate::settings::{SIZE, Whole, within};
use crate::state::{State, player_of};

impl AnyState {
    /// Asks the crate about positions that come from this one, and waits for Python only where the game is in Python. An
    /// error of the game comes before what followed from it.
    fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce() -> Result<T, Refused> + Send) -> PyResult<T> {
        let reply = py.detach(|| caught(|| Ok(question())));
        self.take_error()?;
        reply?.map_err(refused)
    }
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

fn refused(why: Refused) -> PyErr {
    PyValueError::new_err(why.0)
}

/// Attributes of `azpy.serving.limits.Limits`.
#[derive(FromPyObject)]
struct Allowed {
    simulations: u32,
    seconds: f64,
    moves: usize,
    turns: usize,
    nodes: usize,
    depth: usize,
    text_bytes: usize,
}

impl From<Allowed> for Limits {
    fn from(given: Allowed) -> Self {
        let Allowed { simulations, seconds, moves, turns, nodes, depth, text_bytes } = given;
        Self { simulations, seconds, moves, turns, nodes, depth, text_bytes }
    }
}

/// Attributes of `azpy.serving.models.Served`.
#[derive(FromPyObject)]
struct Served {
    start: Py<State>,
    simulations: u32,
    has_model: bool,
    levels: Vec<(String, u32)>,
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
    fields: Object,
}

impl Message {
    /// Has a function of the crate answer.
    fn answered<T: Send>(
        &self,
        py: Python<'_>,
        served: &Served,
        limits: Allowed,
        answer: fn(&Object, &Asking<'_, AnyState>, &Limits) -> Result<T, Refused>,
    ) -> PyResult<T> {
        let start = served.start.borrow(py).inner.copied()?;
        let Served { simulations, has_model, ref levels, .. } = *served;
        let asking = Asking { start: &start, simulations, levels, has_model };
        start.ask(py, || answer(&self.fields, &asking, &limits.into()))
    }
}

#[pymethods]
impl Message {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let read = |text: &str| py.detach(|| Object::read(text)).map_err(refused);
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
        python(py, self.fields.get(name).unwrap_or(&Value::Null))
    }

    /// All fields as a dict.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, self.fields.fields())
    }

    /// The text that names the message in its answers.
    #[getter]
    fn id(&self) -> PyResult<&str> {
        id_of(&self.fields).map_err(refused)
    }

    /// The name of a player; None for the first one.
    #[getter]
    fn model(&self) -> PyResult<Option<&str>> {
        self.fields.get("model").map(|_| self.fields.text("model")).transpose().map_err(refused)
    }

    /// The action that is asked for; None for a query. With `renews` there is an action `renew`.
    fn action(&self, renews: bool) -> PyResult<Option<&'static str>> {
        action_of(&self.fields, renews).map_err(refused)
    }

    /// Which searches the action `terminate` or `terminate_all` ends: the id of their query, and the numbers of turns; None for
    /// all.
    fn terminated(&self, limits: Allowed) -> PyResult<(Option<String>, Option<Vec<usize>>)> {
        terminated(&self.fields, &limits.into()).map_err(refused)
    }

    /// What the query has searched: one `Query` a turn.
    ///
    /// Args:
    ///     served: who is asked; see `azpy.serving.models.Served`.
    ///     limits: of the client; see `azpy.serving.limits.Limits`.
    fn queries(&self, py: Python<'_>, served: Served, limits: Allowed) -> PyResult<Vec<Query>> {
        let query = Arc::new(self.answered(py, &served, limits, CoreQuery::read)?);
        let one = |index| Query { query: query.clone(), index, warnings: Vec::new() };
        Ok((0..query.places.len()).map(one).collect())
    }

    /// The answer to the action `show`, as a line of JSON: what lies on the board, and what can be played.
    ///
    /// It has `player` (None at a roll and at the end), `outcome` for player 0, or `outcomes` for each player where two do
    /// not share a zero sum (None before the end), `svg`, `text` (None if the game has no notation of positions),
    /// `actions` (each with `name`, `short`, and `touches`: the places of the picture to touch one after the other, as
    /// [place, x, y, width, height] in the picture's units) and `rolls` (each with `name` and `probability`).
    fn show(&self, py: Python<'_>, served: Served, limits: Allowed) -> PyResult<String> {
        self.answered(py, &served, limits, show)
    }

    /// The answer to the action `read`, as a line of JSON: the game with variations that a text holds.
    fn read(&self, py: Python<'_>, served: Served, limits: Allowed) -> PyResult<String> {
        self.answered(py, &served, limits, read)
    }

    /// The answer to the action `write`, as a line of JSON: the text of a game with variations.
    fn write(&self, py: Python<'_>, served: Served, limits: Allowed) -> PyResult<String> {
        self.answered(py, &served, limits, write)
    }
}

fn dict<'py>(py: Python<'py>, fields: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, value) in fields {
        found.set_item(name, python(py, value)?)?;
    }
    Ok(found)
}

/// A value of JSON as Python has it.
fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(list) => {
            let found = PyList::empty(py);
            for value in list {
                found.append(python(py, value)?)?;
            }
            found.into_any()
        }
        Value::Object(fields) => dict(py, fields)?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (None, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
    })
}

/// A position that a query has searched, and how its answers are written.
#[pyclass(module = "azpy")]
pub(crate) struct Query {
    query: Arc<CoreQuery<AnyState>>,
    index: usize,
    /// Sentences that each answer has.
    #[pyo3(get, set)]
    warnings: Vec<String>,
}

impl Query {
    fn place(&self) -> &Place<AnyState> {
        &self.query.places[self.index]
    }
}

#[pymethods]
impl Query {
    /// The text that names the query in its answers.
    #[getter]
    fn id(&self) -> &str {
        &self.query.id
    }

    /// After so many of the query's moves.
    #[getter]
    fn turn(&self) -> usize {
        self.place().turn
    }

    /// Where the line begins that leads to the position.
    #[getter]
    fn start(&self) -> PyResult<State> {
        self.place().line.start.copied().map(State::of)
    }

    /// The actions of the line.
    #[getter]
    fn played(&self) -> Vec<Action> {
        self.place().line.played.clone()
    }

    /// The position.
    #[getter]
    fn state(&self) -> PyResult<State> {
        self.place().line.state.copied().map(State::of)
    }

    /// The most simulations of the search; None for no limit.
    #[getter]
    fn simulations(&self) -> Option<u32> {
        self.query.simulations
    }

    /// The most seconds of the search; None for no limit.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.query.seconds
    }

    /// "play", "analysis" or "ponder".
    #[getter]
    fn priority(&self) -> &'static str {
        self.query.priority
    }

    /// Seconds between reports; None for no reports.
    #[getter]
    fn report_every(&self) -> Option<f64> {
        self.query.report_every
    }

    /// Whether moves have lower confidence bounds, which need the standard errors of a result.
    #[getter]
    fn bounds(&self) -> bool {
        self.query.bounds
    }

    /// The name of the game that keeps its tree; None for none.
    #[getter]
    fn game(&self) -> Option<&str> {
        self.query.game.as_deref()
    }

    /// Which of the player's levels plays, by its index; None for none.
    #[getter]
    fn level(&self) -> Option<usize> {
        self.query.level
    }

    /// The fields that change nothing, each with the reason.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.query.ignored.clone()
    }

    /// The actions that the search may choose among; None for all.
    fn actions(&self, py: Python<'_>) -> PyResult<Option<Vec<Action>>> {
        let state = self.place().line.state.copied()?;
        state.ask(py, || self.query.actions(&state))
    }

    /// The answer where the game is over, as a line of JSON; else None.
    fn end(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let (turn, state) = (self.place().turn, self.place().line.state.copied()?);
        state.ask(py, || self.query.end(turn, &state, &self.warnings))
    }

    /// The answer to a search of the position, or a report while it goes on, as a line of JSON.
    ///
    /// Args:
    ///     result: of the search; it has its standard errors where `bounds` says so.
    ///     best: the action to play.
    ///     network: the hash of the model; None if there is none.
    ///     during: whether it is a report.
    fn answer(
        &self,
        py: Python<'_>,
        result: &SearchResult,
        best: Whole,
        network: Option<&str>,
        during: bool,
    ) -> PyResult<String> {
        let (turn, state) = (self.place().turn, self.place().line.state.copied()?);
        let best = within("best", best.0, 0, state.num_actions() as i128 - 1)?;
        let errors = if self.bounds() { Some(result.errors(py)?) } else { None };
        let (found, lines) = (result.core(), result.lines(usize::MAX, self.query.pv_length)?);
        let found = Found {
            result: found,
            lines: &lines,
            errors: errors.as_deref(),
            simulations: result.counts().simulations,
            best,
            network,
            stop: found.stop.name(),
        };
        state.ask(py, || Ok(self.query.answer(turn, &state, during, &self.warnings, found)))
    }
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
        change: impl FnOnce(&mut CoreLine<AnyState>) -> Result<(), Refused> + Send,
    ) -> PyResult<()> {
        let mut line = self.line.clone();
        self.line.start.ask(py, || change(&mut line))?;
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
        let line = self.line.start.ask(py, || Ok(self.line.upto(plies)))?;
        Ok(Self { line })
    }
}
