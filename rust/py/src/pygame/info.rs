//! What a game written in Python says of itself, the same in all positions.

use std::sync::Arc;

use azpy_core::game::MAX_PLAYERS;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::broken;
use crate::fault::Fault;
use crate::listed::{Listed, wholes};
use crate::memory::Memory;
use crate::settings::Whole;

#[derive(Clone)]
pub(super) struct Info {
    /// The class's name, for errors.
    pub(super) name: String,
    /// The name of the game in records.
    pub(super) game: String,
    pub(super) num_actions: usize,
    pub(super) num_players: usize,
    pub(super) zero_sum: bool,
    pub(super) side_names: Option<Vec<String>>,
    pub(super) obs_shape: [usize; 3],
    pub(super) max_plies: usize,
    pub(super) action_cells: Option<Vec<u16>>,
    /// None: those that follow from `action_cells`.
    pub(super) policy_planes: Option<Vec<Option<u32>>>,
    /// What an outcome of 1 is worth, and in which unit.
    pub(super) payoff_unit: (f32, String),
    /// Whether the game has the method `view_key`.
    pub(super) has_views: bool,
    /// The method that plays: actions are known to be legal here, and a game may be faster where it need not look.
    pub(super) play: &'static str,
    pub(super) fault: Fault,
    pub(super) memory: Arc<Memory>,
}

impl Info {
    /// Reads the attributes of a game.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = object.get_type().name()?.to_string();
        let number = |name: &str| -> PyResult<usize> {
            let found = attribute(object, name, Some(object.getattr(name)?), "a whole number above 0", whole_of)?;
            Ok(found.unwrap_or_default())
        };
        let shape = |value: &Bound<'_, PyAny>| {
            wholes(value)?.try_into().ok().filter(|shape: &[usize; 3]| shape.iter().all(|&size| size > 0))
        };
        let (name, expected) = ("obs_shape", "(C, H, W), all above 0");
        let obs_shape = attribute(object, name, Some(object.getattr(name)?), expected, shape)?.unwrap_or_default();
        let given = |name: &str| -> PyResult<_> { Ok(object.getattr_opt(name)?.filter(|list| !list.is_none())) };
        let (name, expected) = ("action_cells", "None or a list of whole numbers from 0 to 65535");
        let action_cells = attribute(object, name, given(name)?, expected, wholes::<u16>)?;
        let (name, expected) = ("policy_planes", "None or a list of whole numbers from 0 and None");
        let policy_planes = attribute(object, name, given(name)?, expected, |places| {
            let Listed(places) = places.extract().ok()?;
            let number = |place: Option<Whole>| place.map(|Whole(place)| u32::try_from(place)).transpose().ok();
            places.into_iter().map(number).collect::<Option<Vec<_>>>()
        })?;
        let (num_players, zero_sum) = players_of(object)?;
        let names = |value: &Bound<'_, PyAny>| {
            let Listed::<String>(names) = value.extract().ok()?;
            (names.len() == num_players && names.iter().all(|name| !name.trim().is_empty())).then_some(names)
        };
        let expected = format!("None or a list of names, one for each of num_players = {num_players}");
        let side_names = attribute(object, "side_names", given("side_names")?, &expected, names)?;
        let (name, expected) = ("payoff_unit", "a number above 0 and a name, such as (13, 'chips')");
        let unit = |value: &Bound<'_, PyAny>| {
            value.extract::<(f32, String)>().ok().filter(|&(worth, _)| worth > 0.0 && worth.is_finite())
        };
        let payoff_unit = attribute(object, name, given(name)?, expected, unit)?.unwrap_or((1.0, String::new()));
        for name in ["turn", "legal_actions", "play", "clone", "outcome", "encode", "key", "view_key"] {
            // Looked up on the class: nothing of the game runs.
            if object.get_type().getattr_opt(name)?.is_some_and(|method| !method.is_callable()) {
                return Err(PyTypeError::new_err(format!(
                    "{class}.{name} must be a method (def {name}(self...)), not a property or a value"
                )));
            }
        }
        // Most games are their class; one class may be many games, and then says which.
        let game = object.getattr_opt("game")?.and_then(|game| game.extract().ok()).unwrap_or_else(|| class.clone());
        Ok(Self {
            game,
            num_actions: number("num_actions")?,
            num_players,
            zero_sum,
            side_names,
            obs_shape,
            max_plies: number("max_plies")?,
            action_cells,
            policy_planes,
            payoff_unit,
            has_views: object.get_type().hasattr("view_key")?,
            play: if object.hasattr("play_legal")? { "play_legal" } else { "play" },
            fault: Fault::default(),
            memory: Arc::default(),
            name: class,
        })
    }
}

/// Reads the value of a game's attribute, if there is one.
fn attribute<'py, T>(
    object: &Bound<'py, PyAny>,
    name: &str,
    value: Option<Bound<'py, PyAny>>,
    expected: &str,
    read: impl FnOnce(&Bound<'py, PyAny>) -> Option<T>,
) -> PyResult<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let found = read(&value);
    if found.is_none() {
        let text = format!("{}.{name} must be {expected}, got {value}", object.get_type().name()?);
        return Err(broken("attributes", &format!("{name} {value}"), expected, text));
    }
    Ok(found)
}

/// How many players a game in Python has, and whether they are two with a zero sum.
fn players_of(object: &Bound<'_, PyAny>) -> PyResult<(usize, bool)> {
    let read = |given: &Bound<'_, PyAny>| whole_of(given).filter(|number| (1..=MAX_PLAYERS).contains(number));
    let (name, expected) = ("num_players", format!("a whole number from 1 to {MAX_PLAYERS}"));
    let players = attribute(object, name, object.getattr_opt(name)?, &expected, read)?.unwrap_or(2);
    let (name, read) = ("zero_sum", |given: &Bound<'_, PyAny>| given.extract::<bool>().ok());
    let zero_sum = attribute(object, name, object.getattr_opt(name)?, "True or False", read)?.unwrap_or(true);
    Ok((players, players == 2 && zero_sum))
}

/// A whole number above 0.
fn whole_of(given: &Bound<'_, PyAny>) -> Option<usize> {
    let Whole(number) = given.extract().ok()?;
    usize::try_from(number).ok().filter(|&number| number > 0)
}
