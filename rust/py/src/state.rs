//! `azpy.State`: a position of a built-in game.

use std::time::Instant;

use azpy_core::game::{Player, Turn};
use numpy::ndarray::Array3;
use numpy::{IntoPyArray, PyArray3, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::batch::{SIGNALS_EVERY, try_play};
use crate::errors::caught;
use crate::hosted::{AnyState, Typed};
use crate::pygame::PyGame;
use crate::settings::{U64, Whole, whole, within};

/// `turn` before a roll.
pub(crate) const CHANCE: i32 = -1;
/// `turn` after the end.
pub(crate) const TERMINAL: i32 = -2;

/// A position of a built-in game. `azpy.make_game` gives the first one.
///
///     >>> import azpy
///     >>> state = azpy.make_game("tic_tac_toe")
///     >>> state.play(4)
///     >>> state.turn, len(state.legal_actions())
///     (1, 8)
#[pyclass(module = "azpy")]
pub(crate) struct State {
    pub(crate) spec: String,
    pub(crate) inner: Box<dyn AnyState>,
}

pub(crate) fn turn_number(turn: Turn) -> i32 {
    match turn {
        Turn::Player(player) => player.index() as i32,
        Turn::Chance => CHANCE,
        Turn::Terminal => TERMINAL,
    }
}

impl State {
    fn symmetry(&self, symmetry: Whole) -> PyResult<usize> {
        let count = self.inner.num_symmetries();
        usize::try_from(symmetry.0).ok().filter(|&number| number < count).ok_or_else(|| {
            PyValueError::new_err(format!("symmetry {symmetry} does not exist; {} has 0 to {}", self.spec, count - 1))
        })
    }

    fn action(&self, action: Whole) -> PyResult<u32> {
        let actions = self.inner.num_actions().max(self.inner.chance_outcomes().len());
        match u32::try_from(action.0) {
            Ok(number) if (number as usize) < actions => Ok(number),
            _ => Err(PyValueError::new_err(format!("action {action} does not exist; there are 0 to {}", actions - 1))),
        }
    }
}

#[pymethods]
impl State {
    /// The game and, where they are not the usual ones, its parameters: "connect_four(width=5,height=4,k=4)".
    #[getter]
    fn game(&self) -> &str {
        &self.spec
    }

    /// Whose turn it is: 0, 1, `azpy.CHANCE` or `azpy.TERMINAL`.
    #[getter]
    fn turn(&self) -> i32 {
        turn_number(self.inner.turn())
    }

    /// Whether the game is over.
    #[getter]
    fn is_terminal(&self) -> bool {
        self.inner.turn() == Turn::Terminal
    }

    /// Size A of the policy.
    #[getter]
    fn num_actions(&self) -> usize {
        self.inner.num_actions()
    }

    /// (C, H, W) of an observation.
    #[getter]
    fn obs_shape(&self) -> (usize, usize, usize) {
        self.inner.obs_shape().into()
    }

    /// An upper bound on the plies of a game, rolls counted.
    #[getter]
    fn max_plies(&self) -> usize {
        self.inner.max_plies()
    }

    /// What the planes hold where that is whole numbers, a divisor for each of the C planes: every value of a plane is
    /// n / divisor in float32, n whole and at most 255, or at most 65,535 where the divisor is above 255. Else None.
    #[getter]
    fn plane_divisors(&self) -> Option<Vec<u16>> {
        self.inner.plane_divisors()
    }

    /// About how many actions are legal at most, in any position of the game.
    #[getter]
    fn most_legal_actions(&self) -> usize {
        self.inner.most_legal_actions()
    }

    /// The cell of the planes (row * W + column) that each group of actions belongs to, where they come in equal
    /// groups: action group * n + i, with i below n of the same meaning in all of them. Else None. Networks then have
    /// one policy head for all cells.
    #[getter]
    fn action_cells(&self) -> Option<Vec<u16>> {
        self.inner.action_cells()
    }

    /// How many symmetries the rules have, the identity (number 0) included.
    #[getter]
    fn num_symmetries(&self) -> usize {
        self.inner.num_symmetries()
    }

    /// The legal actions, ascending; none unless it is a player's turn.
    fn legal_actions(&self) -> Vec<u32> {
        self.inner.legal_actions()
    }

    /// (outcome, probability) of the roll, ascending; none unless `turn` is `azpy.CHANCE`.
    fn chance_outcomes(&self) -> Vec<(u32, f32)> {
        self.inner.chance_outcomes()
    }

    /// Plays an action, or takes a chance outcome. Raises ValueError, and changes nothing, if it is not legal here.
    fn play(&mut self, action: Whole) -> PyResult<()> {
        try_play(action, |action| self.inner.try_play(action)).map(drop).map_err(|text| {
            PyValueError::new_err(format!("{text}, in this position of {}:\n{}", self.spec, self.inner.render()))
        })
    }

    /// An independent copy.
    #[pyo3(name = "clone")]
    pub(crate) fn copy(&self) -> Self {
        Self { spec: self.spec.clone(), inner: self.inner.boxed() }
    }

    /// The result for player 0: 1 a win, -1 a loss. Raises ValueError before the end.
    fn outcome(&self) -> PyResult<f32> {
        if self.is_terminal() {
            return Ok(self.inner.outcome());
        }
        Err(PyValueError::new_err("the game is not over yet: outcome() needs is_terminal"))
    }

    /// float32 [C, H, W], seen by the player to move. Raises ValueError unless it is a player's turn.
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
        if !matches!(self.inner.turn(), Turn::Player(_)) {
            let turn = self.inner.turn();
            return Err(PyValueError::new_err(format!("an observation is seen by the player to move; it is {turn}")));
        }
        let shape = self.inner.obs_shape();
        let array = Array3::from_shape_vec(shape, self.inner.encode());
        Ok(array.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
    }

    /// The position's number, below 2**128: equal keys mean equal observations, legal actions and future.
    fn key(&self) -> u128 {
        self.inner.key()
    }

    /// What a person calls the action here.
    fn action_name(&self, action: Whole) -> PyResult<String> {
        Ok(self.inner.action_name(self.action(action)?))
    }

    /// The action as people of this game write it in short, SAN in chess; elsewhere as `action_name`.
    fn short_name(&self, action: Whole) -> PyResult<String> {
        Ok(self.inner.short_name(self.action(action)?))
    }

    /// The board as text.
    ///
    /// Args:
    ///     color: pieces in colours of their owners, by ANSI escapes. None: where standard output is a terminal and the
    ///         environment does not say otherwise (NO_COLOR, TERM=dumb). `str(state)` never has colours.
    #[pyo3(signature = (color = None))]
    fn render(&self, py: Python<'_>, color: Option<bool>) -> PyResult<String> {
        let text = self.inner.render();
        let color = match color {
            Some(color) => color,
            None => terminal_shows_colors(py)?,
        };
        Ok(if color { colored(&*self.inner, &text) } else { text })
    }

    /// A picture of the position: a whole SVG document.
    fn to_svg(&self) -> String {
        self.inner.to_svg()
    }

    fn _repr_svg_(&self) -> String {
        self.inner.to_svg()
    }

    /// The position in the game's notation (FEN, SGF, ...), as `azpy.parse_state` reads it. Raises ValueError for a
    /// game that has none which says everything.
    fn to_text(&self) -> PyResult<String> {
        self.inner.to_text().ok_or_else(|| {
            let name = self.spec.split('(').next().unwrap_or_default();
            PyValueError::new_err(format!("{name} has no notation of positions; keep the actions that lead here"))
        })
    }

    /// Reads a line of play that begins here: names of actions (and of chance outcomes) with blanks between, or a game's
    /// own notation. Raises ValueError with the word that is wrong.
    ///
    ///     >>> import azpy
    ///     >>> azpy.make_game("hex", size=5).parse_actions("a1 c3 b2")
    ///     [0, 12, 6]
    fn parse_actions(&self, text: &str) -> PyResult<Vec<u32>> {
        caught(|| self.inner.parse_actions(text).map_err(PyValueError::new_err))
    }

    /// The action that corresponds to `action` after a symmetry.
    fn symmetric_action(&self, symmetry: Whole, action: Whole) -> PyResult<u32> {
        Ok(self.inner.symmetric_action(self.symmetry(symmetry)?, self.action(action)?))
    }

    /// The observation [C, H, W] as it is after a symmetry.
    fn symmetric_observation<'py>(
        &self,
        py: Python<'py>,
        symmetry: Whole,
        observation: PyReadonlyArray3<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let symmetry = self.symmetry(symmetry)?;
        let shape = self.inner.obs_shape();
        if observation.shape() != shape {
            let got = observation.shape();
            return Err(PyValueError::new_err(format!("an observation of shape {got:?}, expected {shape:?}")));
        }
        let row: Vec<f32> = observation.as_array().iter().copied().collect();
        let array = Array3::from_shape_vec(shape, self.inner.symmetric_observation(symmetry, &row));
        Ok(array.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
    }

    fn __copy__(&self) -> Self {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy()
    }

    fn __str__(&self) -> String {
        self.inner.render()
    }

    fn __repr__(&self) -> String {
        format!("<azpy.State {}, {} to move>\n{}", self.spec, self.inner.turn(), self.inner.render())
    }
}

/// Reads a position in its game's notation, or as the line of play that leads there.
///
/// Args:
///     game: a game's name, with its parameters if they are not the usual ones; or a State, or an instance of an
///         azpy.Game, where a line of play then begins.
///     text: see the game in docs/games.md: what `State.to_text` writes, or names of actions and of chance outcomes with
///         blanks between. A game written in Python is read by its `action_name`, and where that knows no name, by the
///         number. An empty text is the position where a line begins.
///
/// Returns:
///     A State; for a game written in Python a new instance.
///
/// Raises:
///     ValueError: text that cannot be read, or a position that cannot be; says what was expected.
///     TypeError: something that is no game.
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
pub(crate) fn parse_state(py: Python<'_>, game: &Bound<'_, PyAny>, text: &str) -> PyResult<Py<PyAny>> {
    let (spec, start) = any_game(game)?;
    let read = caught(|| Ok(start.parse(text)));
    // An error of a game in Python comes before what followed from it.
    start.check()?;
    let inner = read?.map_err(PyValueError::new_err)?;
    as_object(py, &spec, inner)
}

/// A position as Python holds it: a `State`, or the object of a game written in Python.
pub(crate) fn as_object(py: Python<'_>, spec: &str, inner: Box<dyn AnyState>) -> PyResult<Py<PyAny>> {
    match inner.to_python(py) {
        Some(object) => object,
        None => Ok(Py::new(py, State { spec: spec.to_string(), inner })?.into_any()),
    }
}

fn terminal_shows_colors(py: Python<'_>) -> PyResult<bool> {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var("TERM").as_deref() == Ok("dumb")
    {
        return Ok(false);
    }
    // There is none in a program without a console, and it may be anything that can be written to.
    let out = py.import("sys")?.getattr("stdout")?;
    Ok(out.call_method0("isatty").and_then(|reply| reply.extract()).unwrap_or(false))
}

/// Characters that stand alone and are someone's pieces, in bold red (player 0) and blue (player 1).
fn colored(state: &dyn AnyState, text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let glyphs: Vec<char> = line.chars().collect();
        for (place, &glyph) in glyphs.iter().enumerate() {
            let alone = |place: Option<usize>| {
                place.and_then(|place| glyphs.get(place)).is_none_or(|neighbour| !neighbour.is_alphanumeric())
            };
            let owner =
                if alone(place.checked_sub(1)) && alone(Some(place + 1)) { state.owner(number, glyph) } else { None };
            match owner {
                Some(Player::Zero) => out += &format!("\x1b[1;31m{glyph}\x1b[0m"),
                Some(Player::One) => out += &format!("\x1b[1;34m{glyph}\x1b[0m"),
                None => out.push(glyph),
            }
        }
    }
    out
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
    let (_, start) = any_game(game)?;
    let (games, seed) = (within("games", games.0, 0, U64)?, within("seed", seed, 0, U64)?);
    let (mut done, mut plies) = (0, 0);
    while done < games {
        let until = Instant::now() + SIGNALS_EVERY;
        let (more, played) = py.detach(|| caught(|| start.random_games(seed, done..games, until)))?;
        done += more;
        plies += played;
        py.check_signals()?;
    }
    Ok(plies)
}

/// A state, or a game written in Python, as what it is called and a position.
pub(crate) fn any_state(object: &Bound<'_, PyAny>) -> PyResult<(String, Box<dyn AnyState>)> {
    state_of(object, "an azpy.State or an instance of an azpy.Game")
}

fn state_of(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<(String, Box<dyn AnyState>)> {
    if let Ok(state) = object.cast::<State>() {
        let state = state.borrow();
        return Ok((state.spec.clone(), state.inner.boxed()));
    }
    if object.is_instance_of::<pyo3::types::PyType>() || !object.hasattr("legal_actions")? {
        let came: String = object.repr()?.to_cow()?.chars().take(200).collect();
        return Err(PyTypeError::new_err(format!("expected {expected}, got {came}")));
    }
    let game = PyGame::new(object)?;
    Ok((game.game().to_string(), Box::new(Typed(game))))
}

/// As [`any_state`], or the name of a built-in game.
pub(crate) fn any_game(object: &Bound<'_, PyAny>) -> PyResult<(String, Box<dyn AnyState>)> {
    match object.extract::<String>() {
        Ok(spec) => {
            let state = crate::registry::make(&spec, Vec::new()).map_err(PyValueError::new_err)?;
            Ok((state.spec, state.inner))
        }
        Err(_) => state_of(object, "a game's name, an azpy.State or an instance of an azpy.Game"),
    }
}
