//! Games written in Python, behind the same contract as those in Rust.
//!
//! The contract's methods cannot fail; Python's can. The first exception is kept in the [`Fault`] that all positions of
//! a root share, and from then on every position says that the game is over. Whoever runs the search looks there before
//! it believes anything. What a method returns is checked here, so that a wrong reply is an error with its name in it.

use std::sync::Arc;

use azpy_core::game::{Action, Game, Player, Turn, Value};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::GameError;
use crate::hosted::{Fault, Hosted};
use crate::state::{CHANCE, TERMINAL};

struct Info {
    /// The class's name, for errors.
    name: String,
    /// What records call the game.
    game: String,
    num_actions: usize,
    obs_shape: [usize; 3],
    max_plies: usize,
    /// The method that plays: actions are known to be legal here, and a game may be faster where it need not look.
    play: &'static str,
    fault: Fault,
}

/// A position held by Python.
pub(crate) struct PyGame {
    object: Py<PyAny>,
    info: Arc<Info>,
}

impl PyGame {
    /// Wraps a copy of `object`, so that a search never plays on the caller's own position.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = object.get_type().name()?.to_string();
        let number = |name: &str| -> PyResult<usize> {
            let value = object.getattr(name)?;
            value.extract::<usize>().ok().filter(|&number| number > 0).ok_or_else(|| {
                GameError::new_err(format!("{class}.{name} must be a whole number above 0, got {value}"))
            })
        };
        let shape = object.getattr("obs_shape")?;
        let obs_shape = shape.extract::<[usize; 3]>().ok().filter(|shape| shape.iter().all(|&size| size > 0));
        let obs_shape = obs_shape.ok_or_else(|| {
            GameError::new_err(format!("{class}.obs_shape must be (C, H, W), all above 0, got {shape}"))
        })?;
        // Most games are their class; one class may be many games, and then says which.
        let game = object.getattr_opt("game")?.and_then(|game| game.extract().ok()).unwrap_or_else(|| class.clone());
        let info = Info {
            game,
            num_actions: number("num_actions")?,
            obs_shape,
            max_plies: number("max_plies")?,
            play: if object.hasattr("play_legal")? { "play_legal" } else { "play" },
            fault: Fault::default(),
            name: class,
        };
        Ok(Self { object: object.call_method0("clone")?.unbind(), info: Arc::new(info) })
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
            question(self.object.bind(py)).unwrap_or_else(|error| {
                self.info.fault.set(error);
                otherwise
            })
        })
    }

    fn wrong<T>(&self, method: &str, got: &str, expected: &str) -> PyResult<T> {
        Err(GameError::new_err(format!("{}.{method}() gave {got}, expected {expected}", self.info.name)))
    }
}

impl Clone for PyGame {
    fn clone(&self) -> Self {
        let copy = self.ask(None, |object| Ok(Some(object.call_method0("clone")?.unbind())));
        // After a failure any object will do: it is never asked again.
        let object = copy.unwrap_or_else(|| Python::attach(|py| self.object.clone_ref(py)));
        Self { object, info: self.info.clone() }
    }
}

impl Hosted for PyGame {
    fn fault(&self) -> Option<&Fault> {
        Some(&self.info.fault)
    }

    fn renewed(&self) -> Self {
        let Info { name, game, num_actions, obs_shape, max_plies, play, .. } = &*self.info;
        let info = Info {
            name: name.clone(),
            game: game.clone(),
            num_actions: *num_actions,
            obs_shape: *obs_shape,
            max_plies: *max_plies,
            play,
            fault: Fault::default(),
        };
        let object = Python::attach(|py| self.object.clone_ref(py));
        Self { object, info: Arc::new(info) }
    }

    fn to_python(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        Some(self.object.call_method0(py, "clone"))
    }
}

impl Game for PyGame {
    fn num_actions(&self) -> usize {
        self.info.num_actions
    }

    fn obs_shape(&self) -> [usize; 3] {
        self.info.obs_shape
    }

    fn max_plies(&self) -> usize {
        self.info.max_plies
    }

    fn turn(&self) -> Turn {
        self.ask(Turn::Terminal, |object| {
            let reply = object.call_method0("turn")?;
            match reply.extract::<i32>() {
                Ok(0) => Ok(Turn::Player(Player::Zero)),
                Ok(1) => Ok(Turn::Player(Player::One)),
                Ok(CHANCE) => Ok(Turn::Chance),
                Ok(TERMINAL) => Ok(Turn::Terminal),
                _ => self.wrong("turn", &reply.repr()?.to_string(), "0, 1, azpy.CHANCE or azpy.TERMINAL"),
            }
        })
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        // After a failure one action stands in for the reply: a player's turn without any would be reported instead.
        *out = self.ask(vec![0], |object| {
            let reply = object.call_method0("legal_actions")?;
            let expected = format!("a list of ascending actions in 0..{}, not empty", self.info.num_actions);
            let fine = |actions: &Vec<i64>| {
                !actions.is_empty()
                    && actions.windows(2).all(|pair| pair[0] < pair[1])
                    && actions[0] >= 0
                    && actions[actions.len() - 1] < self.info.num_actions as i64
            };
            match reply.extract::<Vec<i64>>().ok().filter(fine) {
                Some(actions) => Ok(actions.into_iter().map(|action| action as Action).collect()),
                None => self.wrong("legal_actions", &reply.repr()?.to_string(), &expected),
            }
        });
    }

    fn play(&mut self, action: Action) {
        self.ask((), |object| object.call_method1(self.info.play, (action,)).map(drop));
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        *out = self.ask(vec![(0, 1.0)], |object| {
            let reply = object.call_method0("chance_outcomes")?;
            let fine = |outcomes: &Vec<(Action, f32)>| {
                let sum: f32 = outcomes.iter().map(|&(_, probability)| probability).sum();
                (sum - 1.0).abs() < 1e-3
                    && outcomes.iter().all(|&(_, probability)| probability >= 0.0)
                    && outcomes.windows(2).all(|pair| pair[0].0 < pair[1].0)
            };
            match reply.extract::<Vec<(Action, f32)>>().ok().filter(fine) {
                Some(outcomes) => Ok(outcomes),
                None => self.wrong(
                    "chance_outcomes",
                    &reply.repr()?.to_string(),
                    "a list of (outcome, probability), ascending, with probabilities >= 0 that sum to 1",
                ),
            }
        });
    }

    fn outcome(&self) -> Value {
        self.ask(Value(0.0), |object| {
            let reply = object.call_method0("outcome")?;
            match reply.extract::<f32>().ok().filter(|value| value.abs() <= 1.0) {
                Some(value) => Ok(Value(value)),
                None => self.wrong("outcome", &reply.repr()?.to_string(), "a number in [-1, 1], for player 0"),
            }
        })
    }

    fn encode(&self, row: &mut [f32]) {
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
                return self.wrong("encode", &got, &expected);
            };
            if array.shape() != self.info.obs_shape {
                return self.wrong("encode", &format!("shape {:?}", array.shape()), &expected);
            }
            let array = array
                .try_readonly()
                .map_err(|error| GameError::new_err(format!("the array that encode() gave cannot be read: {error}")))?;
            for (to, &from) in row.iter_mut().zip(array.as_array()) {
                if !from.is_finite() {
                    return self.wrong("encode", &format!("the number {from}"), "finite numbers");
                }
                *to = from;
            }
            Ok(())
        });
    }

    fn key(&self) -> u128 {
        self.ask(0, |object| {
            let reply = object.call_method0("key")?;
            match reply.extract::<u128>() {
                Ok(key) => Ok(key),
                Err(_) => self.wrong("key", &reply.repr()?.to_string(), "a whole number in [0, 2**128)"),
            }
        })
    }

    /// The action's number where the game has no name for it: many know none of rolls, and names are for people alone.
    fn action_name(&self, action: Action) -> String {
        let name = |object: &Bound<'_, PyAny>| -> PyResult<String> {
            object.call_method1("action_name", (action,))?.extract()
        };
        self.ask(action.to_string(), |object| match name(object) {
            Err(error) if error.is_instance_of::<PyException>(object.py()) => Ok(action.to_string()),
            named => named,
        })
    }

    fn render(&self) -> String {
        self.ask(String::new(), |object| Ok(object.str()?.to_string()))
    }
}
