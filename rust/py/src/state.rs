//! `azpy.State`: a position of any game, written in Rust or in Python.

use azpy_core::game::{Game, Player, Turn, Values, legal_of, rolls_of};
use azpy_core::text::{Notation, Position, result_words, unmarked};
use azpy_games::any::AnyGame;
use numpy::ndarray::Array3;
use numpy::{IntoPyArray, PyArray3, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use crate::batch::{action_numbers, try_play};
use crate::colors::{colored, terminal_shows_colors};
use crate::errors::{RustError, caught};
use crate::fault::{outcome_object, turn_number};
use crate::listed::{Listed, short};
use crate::position::{AnyState, Fallible};
use crate::pygame::PyGame;
use crate::registry::described;
use crate::settings::{Whole, whole, within};
use crate::variations::{NotesByIndex, Variations, bounds, named, notes_in_order};

/// x, y, width and height.
type Rect = (f64, f64, f64, f64);

/// A position of any game. `azpy.make_game` returns the start of a named game.
///
/// Args:
///     game: an `azpy.Game`, which the State clones; or a State, which it copies.
///
/// Raises:
///     GameError: a game in Python breaks the contract of `azpy.Game`; from any method. Exceptions of the game itself
///         reach the caller unchanged.
///
///     >>> import azpy
///     >>> state = azpy.make_game("tic_tac_toe")
///     >>> state.play(4)
///     >>> state.turn, len(state.legal_actions())
///     (1, 8)
#[pyclass(module = "azpy")]
pub(crate) struct State {
    pub(crate) inner: AnyState,
}

impl State {
    pub(crate) fn of(inner: AnyState) -> Self {
        Self { inner }
    }

    fn symmetry(&self, symmetry: Whole) -> PyResult<usize> {
        let count = self.inner.num_symmetries();
        usize::try_from(symmetry.0).ok().filter(|&number| number < count).ok_or_else(|| {
            PyValueError::new_err(format!(
                "symmetry {symmetry} does not exist; {} has 0 to {}",
                self.inner.game(),
                count - 1
            ))
        })
    }

    /// What each player gets, for the method that is named.
    fn outcomes(&self, asked: &str) -> PyResult<Values> {
        if self.ask(|state| state.turn() == Turn::Terminal)? {
            return self.ask(|state| state.outcome());
        }
        Err(PyValueError::new_err(format!("the game is not over yet: {asked}() needs is_terminal")))
    }

    /// Asks the position; an error of a game written in Python comes before what followed from it.
    fn ask<T>(&self, question: impl FnOnce(&AnyState) -> T) -> PyResult<T> {
        let reply = question(&self.inner);
        self.inner.take_error().map(|()| reply)
    }

    fn action(&self, action: Whole) -> PyResult<u32> {
        let last_outcome = self.ask(rolls_of)?.last().map_or(0, |&(outcome, _)| outcome as usize);
        let actions = self.inner.num_actions().max(last_outcome + 1);
        match u32::try_from(action.0) {
            Ok(number) if (number as usize) < actions => Ok(number),
            _ => Err(PyValueError::new_err(format!("action {action} does not exist; there are 0 to {}", actions - 1))),
        }
    }
}

/// One of so many players as Python names it.
pub(crate) fn player_of(number: Option<Whole>, players: usize) -> PyResult<Option<Player>> {
    let last = players as i128 - 1;
    let number = number.map(|Whole(number)| within::<usize>("player", number, 0, last)).transpose()?;
    Ok(number.and_then(Player::from_index))
}

/// The position that a state or a game written in Python is.
pub(crate) fn any_state(object: &Bound<'_, PyAny>) -> PyResult<AnyState> {
    state_of(object, "an azpy.State or an instance of an azpy.Game")
}

/// As [`any_state`], with the words of the error for what is neither.
pub(crate) fn state_of(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<AnyState> {
    if let Ok(state) = object.cast::<State>() {
        return state.borrow().inner.copied();
    }
    if object.is_instance_of::<pyo3::types::PyType>() || !object.hasattr("legal_actions")? {
        return Err(PyTypeError::new_err(format!("expected {expected}, got {}", short(object))));
    }
    let game = PyGame::new(object)?;
    let spec = game.game().to_owned();
    Ok(AnyGame::unlisted(&spec, game))
}

#[pymethods]
impl State {
    #[new]
    #[pyo3(signature = (game, /))]
    fn new(game: &Bound<'_, PyAny>) -> PyResult<Self> {
        any_state(game).map(Self::of)
    }

    /// The game with those of its parameters that differ from the defaults: "connect_four(width=5,height=4,k=4)". For a
    /// game in Python: its attribute `game`, or the name of its class.
    #[getter]
    fn game(&self) -> &str {
        self.inner.game()
    }

    /// The game's name without its parameters: "connect_four".
    #[getter]
    fn name(&self) -> &str {
        self.inner.game().split('(').next().unwrap_or_default()
    }

    /// All parameters of a game in Rust with their values, as `azpy.make_game` takes them; {} for other games.
    ///
    ///     >>> import azpy
    ///     >>> azpy.make_game("go(size=13)").params
    ///     {'size': 13, 'komi': 7.5, 'superko': 1}
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let is_python = self.inner.object().is_some();
        if is_python { Ok(PyDict::new(py)) } else { described(self.inner.game()).1.into_py_dict(py) }
    }

    /// What people call the players within a sentence, player 0 first, such as ("White", "Black"); or None.
    #[getter]
    fn side_names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner.side_names().map(|names| PyTuple::new(py, names)).transpose()
    }

    /// The rules in a sentence, for people; empty where the game does not say them. A game in Python may have a text
    /// `rules`.
    #[getter]
    fn rules(&self, py: Python<'_>) -> PyResult<String> {
        let Some(object) = self.inner.object() else { return Ok(described(self.inner.game()).0) };
        Ok(object.bind(py).getattr_opt("rules")?.and_then(|rules| rules.extract().ok()).unwrap_or_default())
    }

    /// Whether the picture makes sense upside down, as the other player sees it. False for Connect Four, where pieces
    /// fall.
    #[getter]
    fn can_rotate(&self) -> bool {
        self.inner.can_rotate()
    }

    /// The `azpy.Game` of this position, or None for a game in Rust. Do not play on it: play on a clone.
    #[getter]
    fn game_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.inner.object().map(|object| object.clone_ref(py))
    }

    /// The number of players, 1 to 6.
    #[getter]
    fn num_players(&self) -> usize {
        self.inner.num_players()
    }

    /// Whether the game has two players, and one loses what the other wins. Its values and outcomes are then one
    /// number; games of more players have one number a player.
    #[getter]
    fn zero_sum(&self) -> bool {
        self.inner.is_zero_sum()
    }

    /// Whether the game hides something from its players, such as cards: a network sees what the player to move knows.
    #[getter]
    fn hides(&self) -> PyResult<bool> {
        self.ask(|state| state.hides())
    }

    /// What an outcome of 1 is worth in the units that people count, and their name; (1.0, "") for most games.
    ///
    ///     >>> import azpy
    ///     >>> azpy.make_game("leduc_poker").payoff_unit
    ///     (13.0, 'chips')
    #[getter]
    fn payoff_unit(&self) -> (f32, &str) {
        self.inner.payoff_unit()
    }

    /// Whose turn it is: a player's number from 0 on, `azpy.CHANCE` or `azpy.TERMINAL`.
    #[getter]
    fn turn(&self) -> PyResult<i32> {
        self.ask(|state| turn_number(state.turn()))
    }

    /// Whether the game is over.
    #[getter]
    fn is_terminal(&self) -> PyResult<bool> {
        self.ask(|state| state.turn() == Turn::Terminal)
    }

    /// The size A of the policy. Actions are 0 to A - 1.
    #[getter]
    fn num_actions(&self) -> usize {
        self.inner.num_actions()
    }

    /// The shape (C, H, W) of an observation.
    #[getter]
    fn obs_shape(&self) -> (usize, usize, usize) {
        self.inner.obs_shape().into()
    }

    /// An upper bound on the plies of a game, rolls counted.
    #[getter]
    fn max_plies(&self) -> usize {
        self.inner.max_plies()
    }

    /// A divisor for each of the C planes, or None. Every value of a plane is then n / divisor in float32, with a whole
    /// n. A network with `+conv` reads planes that are divided by the board's area in units of 64 cells.
    #[getter]
    fn plane_divisors(&self) -> Option<Vec<u16>> {
        self.inner.plane_divisors()
    }

    /// The cell of the planes (row * W + column) of each group of actions, or None if actions do not come in equal
    /// groups. Action group * n + i, with i below n, means the same in every group. Networks then have one policy head
    /// for all cells.
    #[getter]
    fn action_cells(&self) -> Option<Vec<u16>> {
        self.inner.action_cells()
    }

    /// The place of each action in planes of actions [N, H, W] (plane * H * W + cell), or None if there are no such
    /// planes. An action of one plane means the same in each cell. The place is None for an action without a cell, such
    /// as a pass. One network can then play on boards of several sizes (`--network 4x48+conv`).
    #[getter]
    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        self.inner.policy_planes()
    }

    /// The number of symmetries of the rules, with the identity as number 0.
    #[getter]
    fn num_symmetries(&self) -> usize {
        self.inner.num_symmetries()
    }

    /// Return the result, and how it came about, in words. A game in Python can have a method `result_text` for it.
    ///
    /// Raises:
    ///     ValueError: the game is not over.
    ///
    ///     >>> import azpy
    ///     >>> azpy.parse_state("chess", "f3 e5 g4 Qh4#").result_text()
    ///     'Black wins by checkmate'
    ///     >>> azpy.parse_state("go", "C3 pass pass").result_text()
    ///     'Black wins by 73.5'
    fn result_text(&self) -> PyResult<String> {
        if self.is_terminal()? {
            return self.ask(|state| state.result_text());
        }
        Err(PyValueError::new_err("the game is not over yet: result_text() needs is_terminal"))
    }

    /// The result in words of a game of these players, whoever ended it: `outcomes` are what each gets, and `how` says how
    /// it came about.
    fn _result_words(&self, outcomes: Vec<f32>, how: &str) -> PyResult<String> {
        let players = self.inner.num_players();
        if outcomes.len() != players {
            let got = outcomes.len();
            return Err(PyValueError::new_err(format!(
                "outcomes must have one number for each of {players} players, got {got}"
            )));
        }
        Ok(result_words(self.inner.side_names(), &outcomes, self.inner.is_zero_sum(), how))
    }

    /// Return the legal actions, ascending; an empty list unless it is a player's turn.
    fn legal_actions(&self) -> PyResult<Vec<u32>> {
        self.ask(legal_of)
    }

    /// Return (outcome, probability) for each result of the roll, ascending; an empty list unless `turn` is
    /// `azpy.CHANCE`.
    fn chance_outcomes(&self) -> PyResult<Vec<(u32, f32)>> {
        self.ask(rolls_of)
    }

    /// Play an action, or take a chance outcome.
    ///
    /// Raises:
    ///     ValueError: it is not legal here; the position is unchanged.
    fn play(&mut self, py: Python<'_>, action: Whole) -> PyResult<()> {
        let played = try_play(action, |action| self.inner.try_play(action));
        self.inner.take_error()?;
        played.map(drop).map_err(|error| {
            let (text, game, board) = (error.value(py), self.inner.game(), self.inner.render());
            PyValueError::new_err(format!("{text}, in this position of {game}:\n{board}"))
        })
    }

    /// For az-check-game: plays an action that was on offer, without a question to the game.
    fn _play(&mut self, action: u32) -> PyResult<()> {
        self.inner.play(action);
        self.inner.take_error()
    }

    /// Return an independent copy.
    #[pyo3(name = "clone")]
    pub(crate) fn copy(&self) -> PyResult<Self> {
        self.inner.copied().map(Self::of)
    }

    /// Return the result of a finished game, in [-1, 1].
    ///
    /// Returns:
    ///     With two players and a zero sum, a float for player 0, with 1 for a win and -1 for a loss. With one player,
    ///     the score as a float. Else a tuple of one float a player.
    ///
    /// Raises:
    ///     ValueError: the game is not over.
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let outcomes = self.outcomes("outcome")?;
        outcome_object(py, if self.inner.is_zero_sum() { &outcomes.numbers()[..1] } else { outcomes.numbers() })
    }

    /// Return the result for each player as a tuple, player 0 first; (x, -x) for two players with a zero sum.
    ///
    /// Raises:
    ///     ValueError: the game is not over.
    #[pyo3(name = "outcomes")]
    fn each_outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.outcomes("outcomes")?.numbers())
    }

    /// Return what a network sees of the position, float32 [C, H, W], from the view of the player to move.
    ///
    /// Raises:
    ///     ValueError: it is not a player's turn.
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let turn = self.ask(|state| state.turn())?;
        if !matches!(turn, Turn::Player(_)) {
            return Err(PyValueError::new_err(format!(
                "an observation is seen by the player to move, but it is {turn}"
            )));
        }
        let mut array = Array3::zeros(self.inner.obs_shape());
        let row = array.as_slice_mut().expect("a new array is contiguous");
        self.ask(|state| state.encode(row))?;
        Ok(array.into_pyarray(py))
    }

    /// Return the position's number, below 2**128. Equal keys mean equal observations, legal actions and future.
    fn key(&self) -> PyResult<u128> {
        self.ask(|state| state.key())
    }

    /// Return what a person calls the action at this position.
    fn action_name(&self, action: Whole) -> PyResult<String> {
        let action = self.action(action)?;
        self.ask(|state| state.action_name(action))
    }

    /// Return the action in short notation: SAN in chess; in other games the same as `action_name`.
    fn short_name(&self, action: Whole) -> PyResult<String> {
        let action = self.action(action)?;
        self.ask(|state| state.short_name(action))
    }

    /// Return the board as text.
    ///
    /// Args:
    ///     color: whether to color the pieces by ANSI escapes. None: if standard output is a terminal and the
    ///         environment does not forbid it (NO_COLOR, TERM=dumb). `str(state)` has no colors.
    #[pyo3(signature = (color = None))]
    fn render(&self, py: Python<'_>, color: Option<bool>) -> PyResult<String> {
        let text = self.__str__()?;
        let color = match color {
            Some(color) => color,
            None => terminal_shows_colors(py)?,
        };
        Ok(if color { colored(&self.inner, &text) } else { text })
    }

    /// Return the board as text, as far as a player sees it.
    ///
    /// Args:
    ///     player: whose view it is. In a game that hides nothing all is shown.
    fn render_view(&self, player: Whole) -> PyResult<String> {
        let player = player_of(Some(player), self.inner.num_players())?;
        self.ask(|state| player.map(|player| state.render_view(player)).unwrap_or_default())
    }

    /// Return the position as an SVG document.
    ///
    /// A game in Python can have a method `to_svg` for it, or `touches` for a board of cells. Otherwise the picture is
    /// its text.
    fn to_svg(&self) -> PyResult<String> {
        self.ask(|state| state.to_svg())
    }

    /// Return the places of the picture (`to_svg`) that a person touches, in order, to play a legal action.
    ///
    /// A move has two places: where the piece stands and where it goes. The list is empty for an action without a
    /// place, such as a pass, and at a chance turn. The places of one action are never the first places of another one.
    /// Actions with the same places, such as promotions in chess, differ by their names.
    ///
    /// Returns:
    ///     A list of (place, (x, y, width, height)), with the name of the place, and its rectangle in units of the
    ///     picture's viewBox, from the upper left corner.
    ///
    ///     >>> import azpy
    ///     >>> state = azpy.make_game("chess")
    ///     >>> state.touches(state.parse_actions("e2e4")[0])
    ///     [('e2', (160.0, 240.0, 40.0, 40.0)), ('e4', (160.0, 160.0, 40.0, 40.0))]
    fn touches(&self, action: Whole) -> PyResult<Vec<(String, Rect)>> {
        let action = self.action(action)?;
        if !matches!(self.ask(|state| state.turn())?, Turn::Player(_)) {
            return Ok(Vec::new());
        }
        let touches = self.ask(|state| state.touches(action))?;
        Ok(touches.into_iter().map(|touch| (touch.place, touch.rect.into())).collect())
    }

    /// Return the pieces on the board: a dict from a place (see `touches`) to the character that `render` shows there.
    ///
    /// Supported by Breakthrough, chess, Go, Gomoku, Hex, Othello and tic-tac-toe; other games return {}.
    ///
    ///     >>> import azpy
    ///     >>> azpy.parse_state("go(size=9)", "C3 D4 pass").board()
    ///     {'D4': 'o', 'C3': 'x'}
    fn board<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.ask(|state| state.on_board())?.into_py_dict(py)
    }

    fn _repr_svg_(&self) -> PyResult<String> {
        self.to_svg()
    }

    /// Return the position in the game's notation (FEN, SGF, ...), which `azpy.parse_state` reads.
    ///
    /// Raises:
    ///     ValueError: the game has no notation of whole positions.
    fn to_text(&self) -> PyResult<String> {
        self.inner.to_text().ok_or_else(|| {
            let name = self.name();
            PyValueError::new_err(format!(
                "{name} does not have a notation for positions: keep the actions that lead here"
            ))
        })
    }

    /// Return the position in the Forsyth-Edwards Notation.
    ///
    /// Raises:
    ///     ValueError: the game is not chess.
    ///
    ///     >>> import azpy
    ///     >>> azpy.parse_state("chess", "e4 c5").fen()
    ///     'rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq c6 0 2'
    fn fen(&self) -> PyResult<String> {
        let fen = self.inner.fen();
        fen.ok_or_else(|| {
            PyValueError::new_err(format!("{} does not have a FEN, only chess does: see to_text", self.name()))
        })
    }

    /// Return a copy of the position as a start, without the plies that led to it.
    ///
    /// In chess, repetitions and the fifty-move count start anew. In Go, no earlier board forbids a stone, and nobody
    /// has passed. A game that only its past ended continues. Other games are copied as they are.
    ///
    /// Args:
    ///     player: the player to move; None keeps it. Only Go accepts the other player.
    ///
    /// Raises:
    ///     ValueError: this player cannot be to move.
    ///
    ///     >>> import azpy
    ///     >>> over = azpy.parse_state("go", "C3 pass pass")
    ///     >>> over.turn == azpy.TERMINAL, over.without_past().turn, over.without_past(0).turn
    ///     (True, 1, 0)
    #[pyo3(signature = (player = None))]
    fn without_past(&self, player: Option<Whole>) -> PyResult<Self> {
        let copy = self.copy()?;
        let mover = player_of(player, self.inner.num_players())?;
        let inner = copy.ask(|state| state.without_past(mover))?;
        let refused =
            || PyValueError::new_err(format!("in this position of {} the other player is to move", self.inner.game()));
        inner.map(Self::of).ok_or_else(refused)
    }

    /// Read a line of play that begins here, and return its actions.
    ///
    /// Args:
    ///     text: names of actions and chance outcomes with blanks between, or the game's own notation.
    ///
    /// Raises:
    ///     ValueError: the line cannot be played; the text names the wrong word.
    ///
    ///     >>> import azpy
    ///     >>> azpy.make_game("hex", size=5).parse_actions("a1 c3 b2")
    ///     [0, 12, 6]
    fn parse_actions(&self, text: &str) -> PyResult<Vec<u32>> {
        let read = caught(|| Ok(self.inner.parse_actions(unmarked(text))));
        self.inner.take_error()?;
        read?.map_err(RustError::raised)
    }

    /// Write a line of play that begins here, as text that `parse_actions` reads.
    ///
    /// The text is the names with blanks between; the Wall Game writes whole turns.
    ///
    /// Raises:
    ///     ValueError: an action is not legal.
    ///
    ///     >>> import azpy
    ///     >>> state = azpy.make_game("wall_game")
    ///     >>> state.format_actions(state.parse_actions("Ca7 Cb7 Mg1 >e4"))
    ///     'Cb7 Mg1.>e4'
    fn format_actions(&self, actions: Listed<Whole>) -> PyResult<String> {
        let actions = action_numbers(&actions.0)?;
        self.ask(|state| state.format_actions(&actions))?.map_err(RustError::raised)
    }

    /// Return the pieces that each player captured on a line of play that begins here, one text a player, as `board`
    /// shows them.
    ///
    /// Chess lists the most valuable pieces first. Games without captures give empty texts.
    ///
    /// Raises:
    ///     ValueError: an action is not legal.
    ///
    ///     >>> import azpy
    ///     >>> state = azpy.make_game("chess")
    ///     >>> state.captured(state.parse_actions("e4 d5 exd5 Qxd5"))
    ///     ['p', 'P']
    fn captured(&self, actions: Listed<Whole>) -> PyResult<Vec<String>> {
        let (mut state, mut legal) = (self.inner.copied()?, Vec::new());
        for action in actions.0 {
            let played = try_play(action, |action| {
                legal.push(action);
                state.try_play(action)
            });
            state.take_error()?;
            played?;
        }
        self.ask(|state| state.captured(&legal))
    }

    /// Read a game with its variations: PGN for chess, SGF for Go, with this game's board size and options.
    ///
    /// An SGF's own komi counts. Any other text that `azpy.parse_state` reads is one line, or a start without moves.
    /// azpy cuts a variation at its first illegal move, cuts moves after the end of the game, and merges equal moves of
    /// one position.
    ///
    /// Args:
    ///     text: one game. A game that does not say where it begins starts at this position.
    ///     max_moves: the most moves, variations included.
    ///     max_depth: how deep variations may nest; 1 is a variation of the main line.
    ///
    /// Returns:
    ///     A `Variations` with `start`, `moves`, `tags`, `notes` and `left_out`.
    ///
    /// Raises:
    ///     ValueError: the text cannot be read, exceeds a bound, or has an illegal main line; the message says where.
    ///
    ///     >>> import azpy
    ///     >>> azpy.make_game("chess").read_variations("1. e4 (1. d4 d5) e5").moves
    ///     [(-1, 'e2e4', 'e4'), (0, 'e7e5', 'e5'), (-1, 'd2d4', 'd4'), (2, 'd7d5', 'd5')]
    #[pyo3(signature = (text, *, max_moves = 100_000, max_depth = 1_000))]
    fn read_variations(
        &self,
        py: Python<'_>,
        text: &str,
        #[pyo3(from_py_with = whole)] max_moves: i128,
        #[pyo3(from_py_with = whole)] max_depth: i128,
    ) -> PyResult<Variations> {
        let bounds = bounds(max_moves, max_depth)?;
        let read = caught(|| Ok(py.detach(|| self.inner.read_variations(text, bounds))));
        self.inner.take_error()?;
        let read = read?.map_err(RustError::raised)?;
        let start = Py::new(py, Self::of(read.start))?.into_any();
        Ok(Variations::of(start, read.moves, read.tags, &read.notes, read.left_out))
    }

    /// Write a game with variations that begins here: PGN for chess, SGF for Go.
    ///
    /// Args:
    ///     moves: (before, name) of each move: the index of the move before, or -1 at the start, and the name of its
    ///         action. A move comes after the one before it. The first move after a position belongs to the main line.
    ///     tags: what to say of the game: PGN's tags, or properties of SGF's first node, without those that follow from
    ///         the game. If there is no result (`Result`, `RE`), the end of the main line gives it.
    ///     notes: what to say of positions, as in `Variations.notes`: comments, marks, glyphs.
    ///     max_moves: the most moves.
    ///     max_depth: how deep variations may nest.
    ///
    /// Raises:
    ///     ValueError: a move is not legal, a bound is exceeded, a tag or note cannot be written, the position has a
    ///         past that such a text does not hold, or the game is neither chess nor Go.
    ///
    ///     >>> import azpy
    ///     >>> text = azpy.make_game("go", size=9).write_variations([(-1, "C3"), (0, "D4"), (0, "E5")], {"PB": "Ann"})
    ///     >>> print(text.strip())
    ///     (;FF[4]GM[1]CA[UTF-8]AP[azpy]PB[Ann]SZ[9]KM[7.5]
    ///     ;B[cg](;W[df])(;W[ee]))
    #[pyo3(signature = (moves, tags = None, notes = None, *, max_moves = 100_000, max_depth = 1_000))]
    fn write_variations(
        &self,
        py: Python<'_>,
        moves: Listed<(Whole, String)>,
        tags: Option<&Bound<'_, PyDict>>,
        notes: Option<NotesByIndex>,
        #[pyo3(from_py_with = whole)] max_moves: i128,
        #[pyo3(from_py_with = whole)] max_depth: i128,
    ) -> PyResult<String> {
        let bounds = bounds(max_moves, max_depth)?;
        let named = named(moves.0)?;
        let mut told = Vec::new();
        for (name, value) in tags.into_iter().flatten() {
            told.push((name.extract::<String>()?, value.extract::<String>()?));
        }
        let noted = notes_in_order(notes, named.len())?;
        let text = caught(|| Ok(py.detach(|| self.inner.write_variations(&named, &told, &noted, bounds))));
        self.inner.take_error()?;
        text?.map_err(RustError::raised)
    }

    /// Return the action that corresponds to `action` after a symmetry.
    fn symmetric_action(&self, symmetry: Whole, action: Whole) -> PyResult<u32> {
        Ok(self.inner.symmetric_action(self.symmetry(symmetry)?, self.action(action)?))
    }

    /// Return the observation after a symmetry, float32 [C, H, W].
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
            return Err(PyValueError::new_err(format!("the observation has shape {got:?}, expected {shape:?}")));
        }
        let row: Vec<f32> = observation.as_array().iter().copied().collect();
        let mut array = Array3::zeros(shape);
        let out = array.as_slice_mut().expect("a new array is contiguous");
        self.inner.symmetric_observation(symmetry, &row, out);
        Ok(array.into_pyarray(py))
    }

    fn __copy__(&self) -> PyResult<Self> {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy()
    }

    /// Pickles the `azpy.Game`, or the notation of the position; TypeError for a game in Rust that has none.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if let Some(object) = self.inner.object() {
            return Ok((py.get_type::<Self>().into_any(), (object,).into_pyobject(py)?));
        }
        let text =
            self.to_text().map_err(|error| PyTypeError::new_err(format!("cannot pickle: {}", error.value(py))))?;
        Ok((py.import("azpy")?.getattr("parse_state")?, (self.inner.game(), text).into_pyobject(py)?))
    }

    fn __str__(&self) -> PyResult<String> {
        self.ask(|state| state.render())
    }

    fn __repr__(&self) -> PyResult<String> {
        self.ask(|state| format!("<azpy.State {}, {} to move>\n{}", state.game(), state.turn(), state.render()))
    }
}
