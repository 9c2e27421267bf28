//! Games written in Python, behind the same contract as those in Rust.
//!
//! The contract's methods cannot fail; Python's can. The first exception is kept in the [`Fault`] that all positions of
//! a root share, and from then on every position says that the game is over. The owner of a search or of a `State` looks
//! there before it uses a reply. Replies are checked here, so that a wrong one is an error that names the method.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Values, action_planes};
use azpy_core::picture::{Touch, board_svg, board_touch, text_svg};
use azpy_core::rng::mix;
use azpy_core::text::{Notation, outcome_text};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use self::info::Info;
use crate::errors::GameError;
use crate::fault::{CHANCE, Fault, TERMINAL, turn_number};
use crate::listed::{Listed, entries, is_bool, numbers_of, short, text_of, wholes};
use crate::memory::{Answers, Remembered};

mod info;

/// A GameError with the parts that az-check-game reports: `rule`, `got`, `expected`.
pub(crate) fn broken(rule: &str, got: &str, expected: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let error = GameError::new_err(text);
        let value = error.value(py);
        let parts = [("rule", rule), ("got", got), ("expected", expected)];
        match parts.iter().try_for_each(|(name, part)| value.setattr(*name, *part)) {
            Ok(()) => error,
            Err(failed) => failed,
        }
    })
}

const ADVICE: &str = "az-check-game shows the line of play that leads there";
const OUTCOME: &str = "a number in [-1, 1]: 1.0 if player 0 won, -1.0 if player 0 lost, 0.0 for a draw";

/// What the numbers of an outcome say; nothing where they are not what was expected. `alone`: it is one number and no
/// sequence.
fn read_outcome(numbers: &[f32], alone: bool, info: &Info) -> Option<Values> {
    let outcome = match *numbers {
        [own] if info.zero_sum && alone => Values::new(&[own, -own]),
        [own, other] if info.zero_sum && own != -other => return None,
        _ if numbers.len() != info.num_players => return None,
        _ => Values::new(numbers),
    };
    Some(outcome).filter(|outcome| outcome.numbers().iter().all(|number| number.abs() <= 1.0))
}

/// What was expected in place of so many numbers, in words.
fn expected_outcome(came: usize, info: &Info) -> String {
    match info.num_players {
        _ if info.zero_sum && came == 2 => {
            "two numbers in [-1, 1] whose sum is 0, or zero_sum = False for any two numbers".to_owned()
        }
        _ if info.zero_sum => OUTCOME.to_owned(),
        1 => "a score in [-1, 1]".to_owned(),
        players => format!("a list of {players} numbers in [-1, 1], one for each player, player 0 first"),
    }
}

/// A number for a text: equal for equal ones, and as rarely for others as 128 bits allow.
fn digest(bytes: &[u8]) -> u128 {
    let (mut high, mut low) = (0, mix(bytes.len() as u64 + 1));
    for piece in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        low = mix(low.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ u64::from_le_bytes(word));
        high = mix(high ^ low);
    }
    u128::from(high) << 64 | u128::from(low)
}

/// The number of a line of play that is longer by an action.
fn line_after(line: u128, action: Action) -> u128 {
    let mut bytes = [0; 20];
    bytes[..16].copy_from_slice(&line.to_le_bytes());
    bytes[16..].copy_from_slice(&action.to_le_bytes());
    digest(&bytes)
}

/// A position held by Python.
pub(crate) struct PyGame {
    /// The game, without the actions that `remembered` is ahead of it. Clones of a remembered position share it, also
    /// those of other threads: they do nothing with it but clone it.
    object: Arc<Py<PyAny>>,
    info: Arc<Info>,
    /// The answer of `turn`, once it was asked: a search relies on one answer for a position.
    turn: OnceLock<Turn>,
    /// The number of the line of play from the game's start; 0 in an open game.
    line: u128,
    /// Nothing where each question goes to Python.
    remembered: Option<Remembered>,
}

impl PyGame {
    /// Wraps a copy of `object`, so that a search never plays on the caller's own position.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let info = Arc::new(Info::of(object)?);
        let object = Arc::new(object.call_method0("clone")?.unbind());
        Ok(Self { object, info, turn: OnceLock::new(), line: 0, remembered: None })
    }

    /// What records call the game: its attribute `game` if that is text, else the class's name.
    pub(crate) fn game(&self) -> &str {
        &self.info.game
    }

    /// Calls into Python; a failure becomes the fault and the reply `otherwise`.
    fn ask<T>(&self, otherwise: T, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        if self.info.fault.is_set() {
            return otherwise;
        }
        Python::attach(|py| {
            self.current(py).and_then(|object| question(&object)).unwrap_or_else(|error| {
                self.info.fault.set(error);
                otherwise
            })
        })
    }

    /// The game of this position: a copy of the object, where that is shared or behind.
    fn current<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.remembered {
            Some(Remembered { ahead, .. }) if !ahead.is_empty() || Arc::strong_count(&self.object) > 1 => {
                let copy = self.object.bind(py).call_method0("clone")?;
                ahead.iter().try_for_each(|&action| copy.call_method1(self.info.play, (action,)).map(drop))?;
                Ok(copy)
            }
            _ => Ok(self.object.bind(py).clone()),
        }
    }

    /// What Python said here before.
    fn recall<T>(&self, answer: impl Fn(&Answers) -> &OnceLock<T>) -> Option<&T> {
        let remembered = self.remembered.as_ref().filter(|_| !self.info.fault.is_set());
        remembered.and_then(|remembered| answer(&remembered.answers).get())
    }

    /// Remembers what Python said, of so many bytes beside those of `Answers`, unless it failed.
    fn keep<T>(&self, answer: impl Fn(&Answers) -> &OnceLock<T>, bytes: usize, said: impl FnOnce() -> T) {
        if let Some(remembered) = &self.remembered
            && !self.info.fault.is_set()
            && answer(&remembered.answers).get().is_none()
            && self.info.memory.has_room(bytes)
        {
            answer(&remembered.answers).get_or_init(said);
        }
    }

    /// Whether the game has an optional method.
    fn has(&self, method: &str) -> bool {
        self.ask(false, |object| object.hasattr(method))
    }

    /// Calls a method whose reply is only for display. An `Exception` is returned; others, such as Ctrl-C, are faults.
    fn shown(&self, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<String>) -> Result<String, String> {
        self.ask(Ok(String::new()), |object| match question(object) {
            Err(error) if error.is_instance_of::<PyException>(object.py()) => Ok(Err(error.to_string())),
            reply => Ok(Ok(reply?)),
        })
    }

    /// A reply that breaks the contract; `rule` is its name in az-check-game.
    fn wrong<T>(&self, rule: &str, method: &str, got: &str, expected: &str) -> PyResult<T> {
        let name = &self.info.name;
        Err(broken(rule, got, expected, format!("{name}.{method}() gave {got}, expected {expected}; {ADVICE}")))
    }
}

impl Clone for PyGame {
    fn clone(&self) -> Self {
        let copy = match self.remembered {
            Some(_) => None,
            None => self.ask(None, |object| Ok(Some(Arc::new(object.call_method0("clone")?.unbind())))),
        };
        // After a failure any object is fine, because it is never used.
        let object = copy.unwrap_or_else(|| self.object.clone());
        let (info, turn, remembered) = (self.info.clone(), self.turn.clone(), self.remembered.clone());
        Self { object, info, turn, line: self.line, remembered }
    }
}

impl PyGame {
    pub(crate) fn fault(&self) -> &Fault {
        &self.info.fault
    }

    /// The same position with the error of its game cleared.
    pub(crate) fn renewed(&self) -> Self {
        let info = Arc::new(Info { fault: Fault::default(), ..Info::clone(&self.info) });
        let (object, remembered) = (self.object.clone(), self.remembered.clone());
        Self { object, info, turn: OnceLock::new(), line: self.line, remembered }
    }

    /// A copy with its own place for errors, which asks Python, or the error of the game's `clone`.
    pub(crate) fn copied(&self) -> PyResult<Self> {
        let object = Python::attach(|py| Ok::<_, PyErr>(self.current(py)?.call_method0("clone")?.unbind()))?;
        Ok(Self { object: Arc::new(object), remembered: None, ..self.renewed() })
    }

    /// A copy that asks Python nothing twice, nor do the positions that are played from it; one that does, if there is
    /// no room.
    pub(crate) fn remembered(&self) -> Self {
        let mut copy = self.clone();
        copy.remembered = self.info.memory.meet(self.line).map(Remembered::of);
        copy
    }

    /// The game of a position that is not remembered.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.object
    }
}

impl Game for PyGame {
    type Payoff = Values;

    fn num_players(&self) -> usize {
        self.info.num_players
    }

    fn is_zero_sum(&self) -> bool {
        self.info.zero_sum
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.info.num_actions,
            obs_shape: self.info.obs_shape,
            max_plies: self.info.max_plies,
            num_symmetries: 1,
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn action_cells(&self) -> Option<Vec<u16>> {
        self.info.action_cells.clone()
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        self.info.policy_planes.clone().or_else(|| action_planes(self))
    }

    fn turn(&self) -> Turn {
        if let Some(&turn) = self.recall(|answers| &answers.turn) {
            return turn;
        }
        let turn = self.ask(Turn::Terminal, |object| {
            let reply = object.call_method0("turn")?;
            let players = self.info.num_players;
            let mover = |number: i32| Player::from_index(usize::try_from(number).ok().filter(|&own| own < players)?);
            let turn = match reply.extract::<i32>() {
                Ok(CHANCE) => Turn::Chance,
                Ok(TERMINAL) => Turn::Terminal,
                other => match other.ok().and_then(mover) {
                    Some(player) => Turn::Player(player),
                    None => {
                        let each = match players {
                            1 => "0 for the one player".to_owned(),
                            2 => "0 or 1 for the two players".to_owned(),
                            _ => format!("0 to {} for the {players} players", players - 1),
                        };
                        let expected = format!("{each} (num_players = {players}), azpy.CHANCE or azpy.TERMINAL");
                        return self.wrong("turn", "turn", &reply.repr()?.to_string(), &expected);
                    }
                },
            };
            match self.turn.get_or_init(|| turn) {
                first if *first == turn => Ok(turn),
                first => {
                    let got = format!("{} and then {reply} for the same position or its clone", turn_number(*first));
                    self.wrong("asking", "turn", &got, "the same answer every time")
                }
            }
        });
        self.keep(|answers| &answers.turn, 0, || turn);
        turn
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        if let Some(legal) = self.recall(|answers| &answers.legal) {
            return out.clone_from(legal);
        }
        // After a failure return one action, because a turn without actions would be reported instead.
        *out = self.ask(vec![0], |object| {
            let reply = object.call_method0("legal_actions")?;
            let wrong = |rule, expected: &str| self.wrong(rule, "legal_actions", &short(&reply), expected);
            let Ok(given) = entries(&reply) else {
                return wrong("legal-type", "a list of whole numbers");
            };
            if given.first().is_some_and(is_bool) {
                return wrong("legal-type", "a list of the actions' whole numbers, not a mask of all actions");
            }
            let Ok(actions) = given.iter().map(PyAnyMethods::extract::<i64>).collect::<PyResult<Vec<_>>>() else {
                return wrong("legal-type", "a list of whole numbers");
            };
            let last = self.info.num_actions as i64 - 1;
            if actions.is_empty() {
                return wrong("legal-none", "at least one action at a player's turn");
            }
            if actions.iter().any(|action| !(0..=last).contains(action)) {
                return wrong("legal-range", &format!("actions from 0 to {last}, as num_actions is {}", last + 1));
            }
            if !actions.is_sorted() {
                return wrong("legal-order", "them ascending");
            }
            if actions.windows(2).any(|pair| pair[0] == pair[1]) {
                return wrong("legal-twice", "each action once");
            }
            Ok(actions.into_iter().map(|action| action as Action).collect())
        });
        self.keep(|answers| &answers.legal, size_of_val(&**out), || out.clone());
    }

    fn play(&mut self, action: Action) {
        self.turn = OnceLock::new();
        if self.info.has_views {
            self.line = line_after(self.line, action);
        }
        let Some(remembered) = &mut self.remembered else {
            return self.ask((), |object| object.call_method1(self.info.play, (action,)).map(drop));
        };
        remembered.ahead.push(action);
        if let Some(answers) = self.info.memory.known(self.line) {
            remembered.answers = answers;
            return;
        }
        // After a failure any object is fine, because it is never used.
        if let Some(object) = self.ask(None, |object| Ok(Some(object.clone().unbind()))) {
            self.object = Arc::new(object);
        }
        self.remembered = self.info.memory.meet(self.line).map(Remembered::of);
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        if let Some(rolls) = self.recall(|answers| &answers.rolls) {
            return out.clone_from(rolls);
        }
        *out = self.ask(vec![(0, 1.0)], |object| {
            let reply = object.call_method0("chance_outcomes")?;
            let wrong = |rule, expected| self.wrong(rule, "chance_outcomes", &short(&reply), expected);
            let fine = |outcomes: &Vec<(Action, f32)>| {
                !outcomes.is_empty()
                    && outcomes.iter().all(|&(_, probability)| (0.0..=1.0).contains(&probability))
                    && outcomes.windows(2).all(|pair| pair[0].0 < pair[1].0)
            };
            let Some(outcomes) = reply.extract().ok().map(|Listed(outcomes)| outcomes).filter(fine) else {
                return wrong(
                    "chance-type",
                    "a list of (outcome, probability from 0 to 1), outcomes ascending, not empty",
                );
            };
            let sum: f32 = outcomes.iter().map(|&(_, probability)| probability).sum();
            if (sum - 1.0).abs() < 1e-3 { Ok(outcomes) } else { wrong("chance-sum", "probabilities that sum to 1") }
        });
        self.keep(|answers| &answers.rolls, size_of_val(&**out), || out.clone());
    }

    fn outcome(&self) -> Values {
        if let Some(&outcome) = self.recall(|answers| &answers.outcome) {
            return outcome;
        }
        let outcome = self.ask(Values::draw(self.info.num_players), |object| {
            let reply = object.call_method0("outcome")?;
            let (numbers, alone) = numbers_of(&reply).unwrap_or_default();
            match read_outcome(&numbers, alone, &self.info) {
                Some(outcome) => Ok(outcome),
                None => {
                    let expected = expected_outcome(numbers.len(), &self.info);
                    self.wrong("outcome", "outcome", &short(&reply), &expected)
                }
            }
        });
        self.keep(|answers| &answers.outcome, 0, || outcome);
        outcome
    }

    fn encode(&self, row: &mut [f32]) {
        if let Some(planes) = self.recall(|answers| &answers.planes) {
            return row.copy_from_slice(planes);
        }
        row.fill(0.0);
        self.ask((), |object| {
            let reply = object.call_method0("encode")?;
            let [c, h, w] = self.info.obs_shape;
            let expected = format!("a numpy array of float32, shape ({c}, {h}, {w})");
            let Ok(array) = reply.cast::<PyArrayDyn<f32>>() else {
                let got = match reply.getattr("dtype") {
                    Ok(dtype) => format!("an array of {dtype}"),
                    Err(_) => reply.repr()?.to_string(),
                };
                return self.wrong("encode-type", "encode", &got, &expected);
            };
            if array.shape() != self.info.obs_shape {
                return self.wrong("encode-type", "encode", &format!("shape {:?}", array.shape()), &expected);
            }
            let array = array
                .try_readonly()
                .map_err(|error| GameError::new_err(format!("the array that encode() gave cannot be read: {error}")))?;
            for (to, &from) in row.iter_mut().zip(array.as_array()) {
                if !from.is_finite() {
                    return self.wrong("encode-finite", "encode", &format!("the number {from}"), "finite numbers");
                }
                *to = from;
            }
            Ok(())
        });
        self.keep(|answers| &answers.planes, size_of_val(row), || row.to_vec());
    }

    fn key(&self) -> u128 {
        self.ask(0, |object| {
            let reply = object.call_method0("key")?;
            match reply.extract::<u128>() {
                Ok(key) => Ok(key),
                Err(_) => self.wrong("key-range", "key", &reply.repr()?.to_string(), "a whole number in [0, 2**128)"),
            }
        })
    }

    /// What the game's own `view_key(player)` gives, if it has one: text and bytes as their digest.
    fn view_key(&self, player: Player) -> Option<u128> {
        if !self.info.has_views {
            return None;
        }
        if let Some(&view) = self.recall(|answers| &answers.views[player.index()]) {
            return view;
        }
        // After a failure the game goes on hiding: nothing may search its true position.
        let view = self.ask(Some(0), |object| {
            let reply = object.call_method1("view_key", (player.index(),))?;
            if reply.is_none() {
                return Ok(None);
            }
            if let Ok(text) = reply.extract::<&str>() {
                return Ok(Some(digest(text.as_bytes())));
            }
            if let Ok(bytes) = reply.cast::<PyBytes>() {
                return Ok(Some(digest(bytes.as_bytes())));
            }
            match reply.extract::<u128>() {
                Ok(number) => Ok(Some(digest(&number.to_le_bytes()))),
                Err(_) => {
                    let expected = "str, bytes or a whole number in [0, 2**128); None in all positions of a game that \
                                    hides nothing";
                    self.wrong("view-type", "view_key", &short(&reply), expected)
                }
            }
        });
        self.keep(|answers| &answers.views[player.index()], 0, || view);
        view
    }

    /// What `str` gives. An error in the game's `__str__` is shown in its place: it must not end a run.
    fn render(&self) -> String {
        self.shown(text_of).unwrap_or_else(|error| format!("(cannot be drawn: {error})"))
    }

    /// The text of the game's `render_view(player)`, or of its `view_key`. The text of an error may say what is hidden, so
    /// it is left out.
    fn render_view(&self, player: Player) -> String {
        if self.view_key(player).is_none() {
            return self.render();
        }
        let method = if self.has("render_view") { "render_view" } else { "view_key" };
        let view = self.shown(|object| text_of(&object.call_method1(method, (player.index(),))?));
        view.unwrap_or_else(|_| format!("({method} cannot be shown)"))
    }
}

impl Notation for PyGame {
    /// The action's number where the game has no name for it: many know none of rolls, and names are for people alone.
    fn action_name(&self, action: Action) -> String {
        let name = self.shown(|object| object.call_method1("action_name", (action,))?.extract::<String>());
        let name = name.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| action.to_string())
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        self.info.side_names.as_ref().map(|names| names.iter().map(String::as_str).collect())
    }

    fn payoff_unit(&self) -> (f32, &str) {
        (self.info.payoff_unit.0, &self.info.payoff_unit.1)
    }

    /// No character of a game written in Python is known to be a player's piece.
    fn owner(&self, _line: usize, _glyph: char) -> Option<Player> {
        None
    }

    /// The game's own `result_text()`, where it has one that works.
    fn result_text(&self) -> String {
        let own = if self.has("result_text") {
            self.shown(|object| text_of(&object.call_method0("result_text")?)).ok()
        } else {
            None
        };
        own.unwrap_or_else(|| outcome_text(self, ""))
    }

    /// The game's own `to_svg()`, where it has one that works. A game with `touches` alone has a board of cells.
    fn to_svg(&self) -> String {
        let own = self.shown(|object| text_of(&object.call_method0("to_svg")?));
        own.unwrap_or_else(|_| {
            let [_, height, width] = self.info.obs_shape;
            let text = self.render();
            if self.has("touches") && !self.has("to_svg") { board_svg(&text, height, width) } else { text_svg(&text) }
        })
    }

    /// What the game's own `touches(action)` gives: cells of a board, or places of the picture that its `to_svg` draws.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let [_, height, width] = self.info.obs_shape;
        let cells = |reply: &Bound<'_, PyAny>| -> Option<Vec<Touch>> {
            let touch = |cell| (cell < height * width).then(|| board_touch(height, width, cell));
            wholes::<usize>(reply)?.into_iter().map(touch).collect()
        };
        if !self.has("touches") {
            return Vec::new();
        }
        let drawn = self.has("to_svg");
        self.ask(Vec::new(), |object| {
            let reply = object.call_method1("touches", (action,))?;
            let touches = if drawn { drawn_places(&reply) } else { cells(&reply) };
            touches.ok_or_else(|| {
                let expected = if drawn {
                    "a list of (place, (x, y, width, height)) of the picture that to_svg draws".to_owned()
                } else {
                    format!(
                        "a list of cells, row * W + column, from 0 to {} as obs_shape has H x W",
                        height * width - 1
                    )
                };
                let (name, got) = (&self.info.name, short(&reply));
                GameError::new_err(format!("{name}.touches({action}) gave {got}, expected {expected}"))
            })
        })
    }

    /// All cells of a board; of a picture that the game draws, what its `touches` gives for any action without failing.
    fn places(&self) -> Vec<Touch> {
        let [_, height, width] = self.info.obs_shape;
        if !self.has("touches") {
            return Vec::new();
        }
        if !self.has("to_svg") {
            return (0..height * width).map(|cell| board_touch(height, width, cell)).collect();
        }
        let mut known = HashSet::new();
        let touched = (0..self.num_actions() as Action).flat_map(|action| {
            self.ask(Vec::new(), |object| match object.call_method1("touches", (action,)) {
                Err(error) if error.is_instance_of::<PyException>(object.py()) => Ok(Vec::new()),
                reply => Ok(drawn_places(&reply?).unwrap_or_default()),
            })
        });
        touched.filter(|touch| known.insert(touch.place.clone())).collect()
    }
}

/// What a game's own `touches` gives, as places of its picture; `None` if it is something else.
fn drawn_places(reply: &Bound<'_, PyAny>) -> Option<Vec<Touch>> {
    let Listed::<(String, Listed<f64>)>(places) = reply.extract().ok()?;
    let rect = |(place, Listed(rect)): (String, Listed<f64>)| Some((place, rect.try_into().ok()?));
    let places: Vec<(String, [f64; 4])> = places.into_iter().map(rect).collect::<Option<_>>()?;
    let fine = |(place, [x, y, width, height]): &(String, [f64; 4])| {
        !place.trim().is_empty()
            && [x, y, width, height].iter().all(|length| length.is_finite())
            && *width > 0.0
            && *height > 0.0
    };
    let touch = |(place, rect)| Touch { place, rect };
    places.iter().all(fine).then(|| places.into_iter().map(touch).collect())
}
