//! How a player plays: its simulations a move, its temperature, and the action that it chooses.

use azpy_core::game::Action;
use azpy_core::rng::Stream;
use azpy_core::search::SearchResult;
use azpy_core::selfplay::soften;
use serde::Deserialize;

use crate::error::Error;
use crate::object::{Limits, Object, number, whole};

/// Limit values that mean no limit.
pub(crate) const ENDLESS: u32 = u32::MAX;
pub(crate) const FOREVER: f64 = 1e6;

/// A way to play: each search has a tree of its own.
#[derive(Clone, Debug, Deserialize)]
pub struct Level {
    /// Its name for clients.
    pub name: String,
    /// Of a move.
    pub simulations: u32,
    /// Above 0 weaker actions are played too, see [`chosen`].
    pub temperature: f64,
}

/// The level that an object names, in any case and with - or _ for a blank.
pub(crate) fn level_of(fields: &Object, levels: &[Level]) -> Result<Option<usize>, Error> {
    let Some(value) = fields.get("level") else { return Ok(None) };
    let word = value.as_str().unwrap_or_default().trim().to_lowercase().replace(['-', '_'], " ");
    let Some(level) = levels.iter().position(|level| level.name == word) else {
        let known: Vec<&str> = levels.iter().map(|level| level.name.as_str()).collect();
        return Err(Error::field("level", format_args!("expected one of {}", known.join(", "))));
    };
    match ["simulations", "maxVisits"].into_iter().find(|name| fields.get(name).is_some()) {
        Some(name) => Err(Error::field("level", format_args!("a level sets the simulations: leave out {name}"))),
        None => Ok(Some(level)),
    }
}

/// Simulations and seconds of a search; without any, the simulations of the player.
pub(crate) fn limits_of(
    fields: &Object,
    of_level: Option<u32>,
    otherwise: u32,
    limits: &Limits,
) -> Result<(Option<u32>, Option<f64>), Error> {
    let most = i64::from(limits.simulations);
    let given = fields.optional("simulations", |value, name| whole(value, name, 1, most))?;
    let given = given.map(|simulations| simulations as u32).or(of_level.map(|level| level.min(limits.simulations)));
    let seconds = fields.optional("seconds", |value, name| number(value, name, 0.001, limits.seconds))?;
    let usual = if seconds.is_none() { otherwise.min(limits.simulations) } else { limits.simulations };
    let simulations = given.or(Some(usual).filter(|_| seconds.is_none() || limits.simulations < ENDLESS));
    Ok((simulations, seconds.or(Some(limits.seconds).filter(|&most| most < FOREVER))))
}

/// The action that a player plays: at temperature 0 the search's own, else one drawn as `soften` weighs them. None where
/// there is no action.
pub(crate) fn chosen(result: &SearchResult, temperature: f64, draws: &mut Stream) -> Option<Action> {
    if temperature == 0.0 && result.action.is_some() {
        return result.action;
    }
    let weights = soften(result, temperature);
    let drawn = (!weights.is_empty()).then(|| draws.weighted(weights.iter().copied()))?;
    result.actions.get(drawn).copied()
}

/// As [`chosen`]: with one seed always the same action at a position, by its key.
pub fn chosen_at(result: &SearchResult, temperature: f64, seed: u64, key: u128) -> Option<Action> {
    chosen(result, temperature, &mut Stream::keyed(&[seed, key as u64, (key >> 64) as u64]))
}
