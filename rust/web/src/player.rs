//! Who plays: what `az-export --web` writes of a player, read again.

use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::options::OptionValue;
use azpy_net::{Answers, Net, NetEvaluator};
use azpy_query::Limits;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A player as its file says it.
#[derive(Debug, Deserialize)]
pub(crate) struct Player {
    /// What the action `query_models` says of it; some of it is read here too.
    pub(crate) about: Value,
    /// Above 0 weaker actions are played too.
    pub(crate) temperature: f64,
    pub(crate) limits: Allowed,
    /// Options of the search by their names.
    options: Map<String, Value>,
    /// See [`Net::read`]; none: the search alone, with equal priors.
    network: Option<Value>,
    /// Of the draws where the temperature is above 0.
    #[serde(default)]
    pub(crate) seed: u32,
}

/// Limits of the page.
#[derive(Debug, Deserialize)]
pub(crate) struct Allowed {
    #[serde(flatten)]
    pub(crate) of_query: Limits,
    /// Open searches at once.
    pub(crate) searches: usize,
    /// Games with kept trees.
    pub(crate) games: usize,
}

/// What `about` has that is read here.
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) game: String,
    /// The hash of the model.
    pub(crate) network: Option<String>,
    pub(crate) simulations: u32,
    pub(crate) levels: Vec<Level>,
}

/// A way to play.
#[derive(Debug, Deserialize)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) simulations: u32,
    pub(crate) temperature: f64,
}

impl Player {
    /// Reads a player.
    pub(crate) fn read(text: &str) -> Result<(Self, About), String> {
        let wrong = |error| format!("the player cannot be read: {error}");
        let player: Self = serde_json::from_str(text).map_err(wrong)?;
        let about = About::deserialize(&player.about).map_err(wrong)?;
        Ok((player, about))
    }

    /// How it searches.
    pub(crate) fn config(&self) -> Result<SearchConfig, String> {
        let mut config = SearchConfig::default();
        for (name, value) in &self.options {
            config.set(name, option(value))?;
        }
        config.check()?;
        Ok(config)
    }

    /// What answers for its leaves.
    pub(crate) fn evaluator(&self, weights: &[u8]) -> Result<Answers<Uniform>, String> {
        let Some(shape) = &self.network else { return Ok(Answers::Plain(Uniform)) };
        Ok(Answers::Net(Box::new(NetEvaluator::new(Net::read(&shape.to_string(), weights)?))))
    }
}

/// The value of an option as JSON has it.
fn option(value: &Value) -> OptionValue<'_> {
    let whole = value.as_i64().map(|number| OptionValue::Whole(number.into()));
    let number = || value.as_f64().map(OptionValue::Number);
    let pair = || match value.as_array()?.as_slice() {
        [alpha, fraction] => Some(OptionValue::Noise(alpha.as_f64(), fraction.as_f64()?)),
        _ => None,
    };
    match value {
        Value::Null => OptionValue::None,
        Value::Bool(on) => OptionValue::Switch(*on),
        Value::String(text) => OptionValue::Word(text),
        _ => whole.or_else(number).or_else(pair).unwrap_or(OptionValue::Other("a list or an object")),
    }
}
