//! Who plays: what `az-export --web` writes of a player, read again.

use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::options::{Kind, OptionRow, OptionValue};
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
            let row = SearchConfig::OPTIONS.iter().find(|row| row.name == name);
            let option = row.and_then(|row| option(row, value).map(|option| (row, option)));
            let (row, option) = option.ok_or_else(|| format!("{name} cannot be {value}"))?;
            row.check(option)?;
            config.set(name, option)?;
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
fn option(row: &OptionRow, value: &Value) -> Option<OptionValue> {
    Some(match (value, row.kind) {
        (Value::Null, _) => OptionValue::None,
        (Value::Bool(on), Kind::Switch) => OptionValue::Switch(*on),
        (Value::String(text), _) => OptionValue::Word(row.words.iter().copied().find(|word| *word == *text)?),
        (Value::Number(number), Kind::Whole) => OptionValue::Whole(number.as_i64()?.into()),
        (Value::Number(number), Kind::Number | Kind::Noise) => OptionValue::Number(number.as_f64()?),
        (Value::Array(pair), Kind::Noise) => match pair.as_slice() {
            [alpha, fraction] => OptionValue::Noise(alpha.as_f64(), fraction.as_f64()?),
            _ => return None,
        },
        _ => return None,
    })
}
