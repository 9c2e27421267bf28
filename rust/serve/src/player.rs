//! A player as files have it: a run of az-train, what `az-export --card` writes of one, or the folder of a page.

use std::io;

use azpy_core::config::SearchConfig;
use azpy_core::game::Game;
use azpy_core::options::{OptionRow, OptionValue};
use azpy_net::{Answers, Net, NetEvaluator};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::level::Level;
use crate::object::Limits;

const WEIGHTS: &str = "model.safetensors";

/// A player: what a search for it needs to know.
#[derive(Clone, Debug)]
pub struct Player<G> {
    /// Where its games begin.
    pub start: G,
    /// The search options.
    pub config: SearchConfig,
    /// Its name for clients.
    pub name: String,
    /// The entry in the response to `query_models`.
    pub about: Value,
    /// The hash of the model, if there is one.
    pub network: Option<String>,
    /// The simulations of a search that gives no limit of its own.
    pub simulations: u32,
    /// From the weakest to the strongest.
    pub levels: Vec<Level>,
    /// The temperature: above 0, weaker actions are played too.
    pub temperature: f64,
    /// Of the draws above temperature 0: with a seed always the same ones at a position.
    pub seed: Option<u64>,
}

impl<G> Player<G> {
    /// A player without a name, a network and levels.
    pub fn new(start: G, config: SearchConfig) -> Self {
        Self {
            start,
            config,
            name: String::new(),
            about: Value::Null,
            network: None,
            simulations: 0,
            levels: Vec::new(),
            temperature: 0.0,
            seed: None,
        }
    }
}

/// The evaluator: a network, or `plain` without one.
pub fn answers<E>(net: Option<Net>, plain: E) -> Answers<E> {
    net.map_or(Answers::Plain(plain), |net| Answers::Net(Box::new(NetEvaluator::new(net))))
}

/// The files of a folder.
pub trait Files {
    /// The bytes of a file. Its name has a / behind each folder.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// The names in a folder; none where there is no such folder.
    fn names(&self, folder: &str) -> Vec<String>;
}

/// A run, or a card, that was read: its settings, and the weights of its newest checkpoint.
#[derive(Debug)]
pub struct Run {
    /// The folder, for errors.
    folder: String,
    settings: Map<String, Value>,
    /// The number of the newest checkpoint.
    iteration: u64,
    weights: Vec<u8>,
    /// The figures of its iterations, if there are any.
    figures: io::Result<Vec<u8>>,
}

impl Run {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn read(folder: &str, files: &impl Files) -> Result<Self, Error> {
        let config = format!("{folder}/config.toml");
        let settings = files.read("config.toml").map_err(|error| {
            Error::file(&config, format_args!("cannot be read ({error}): give a run, or a folder of --card"))
        })?;
        let settings = toml::from_str(&String::from_utf8_lossy(&settings))
            .map_err(|error| Error::file(&config, format_args!("is not valid TOML: {}", error.message())))?;
        let newest = newest(files.names("checkpoints"))
            .ok_or_else(|| Error::file(folder, "has no checkpoint yet: az-train saves one after each iteration"))?;
        let checkpoint = format!("checkpoints/{newest}");
        let damaged = |problem: String| {
            let problem = format!("is damaged: {problem}; copy the player's folder again");
            Error::file(format!("{folder}/{checkpoint}"), problem)
        };
        let read = |name: &str| {
            let path = format!("{checkpoint}/{name}");
            let unread = |error| Error::file(format!("{folder}/{path}"), format_args!("cannot be read: {error}"));
            files.read(&path).map_err(unread)
        };
        let weights = read(WEIGHTS)?;
        let manifest: Value = serde_json::from_slice(&read("manifest.json")?)
            .map_err(|error| damaged(format!("manifest.json is not JSON ({error})")))?;
        let hash: String = Sha256::digest(&weights).iter().map(|byte| format!("{byte:02x}")).collect();
        if manifest[WEIGHTS] != hash {
            return Err(damaged(format!("{WEIGHTS} differs from manifest.json")));
        }
        let iteration = newest.parse().map_err(|error| damaged(format!("{error}")))?;
        let figures = files.read("metrics.jsonl");
        Ok(Self { folder: folder.to_owned(), settings, iteration, weights, figures })
    }

    /// The game that it plays.
    ///
    /// # Errors
    /// If the settings do not say it.
    pub fn game(&self) -> Result<&str, Error> {
        self.text("game")
    }

    /// Whether its network has no weight that depends on the board's size.
    ///
    /// # Errors
    /// If the settings do not say it.
    pub fn has_any_size(&self) -> Result<bool, Error> {
        Ok(self.text("network")?.contains("+conv"))
    }

    fn text(&self, name: &str) -> Result<&str, Error> {
        let text = self.settings.get(name).and_then(Value::as_str);
        let missing =
            || Error::file(format!("{}/config.toml", self.folder), format_args!("does not have a text as its {name}"));
        text.ok_or_else(missing)
    }

    /// The player of games that begin at `start`, and its network. It searches as the matches of its run do, without the
    /// solver where this can prove nothing.
    ///
    /// # Errors
    /// If an option is wrong, or the network does not fit.
    pub fn player<G: Game>(&self, start: G) -> Result<(Player<G>, Net), Error> {
        let path = format!("{}/config.toml", self.folder);
        let given = |row: &OptionRow| self.settings.get(&format!("match_{}", row.name));
        let mut config = SearchConfig::default();
        for (row, value) in SearchConfig::OPTIONS.iter().filter_map(|row| Some((row, given(row)?))) {
            let wrong = |error| Error::settings(&path, format_args!("match_{error}"));
            config.set(row.name, option(value)).map_err(wrong)?;
        }
        config.solver &= config.check_for(&start).is_ok();
        if start.num_players() == 1 {
            config.score_to_beat = self.score_to_beat()?;
        }
        config.check().map_err(|error| Error::settings(path, error))?;
        let smoothing = self.settings.get("value_smoothing").and_then(Value::as_f64).unwrap_or_default();
        let net = Net::for_game(&start, self.text("network")?, smoothing, &self.weights);
        let net = net.map_err(|error| Error::settings(&self.folder, error))?;
        Ok((Player::new(start, config), net))
    }

    /// The score to beat in the checkpoint's iteration, as the run stored it. A network that learned from
    /// ranked rewards was trained on wins against this score, so its search counts wins too.
    fn score_to_beat(&self) -> Result<Option<f64>, Error> {
        let path = format!("{}/metrics.jsonl", self.folder);
        let text = match &self.figures {
            // A card may have no figures of iterations.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.as_ref().map_err(|error| Error::file(&path, format_args!("cannot be read: {error}")))?,
        };
        let mut found = None;
        // A running az-train may be writing the last line.
        for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let row: Value = serde_json::from_slice(line).map_err(|error| {
                Error::file(&path, format_args!("has a line that is not JSON ({error}): delete it"))
            })?;
            if row["kind"] == "iteration" && row["iteration"] == self.iteration {
                found = row["score_to_beat"].as_f64();
            }
        }
        Ok(found)
    }
}

/// The name of the last checkpoint: they are numbers of six digits.
fn newest(names: Vec<String>) -> Option<String> {
    names.into_iter().filter(|name| name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_digit())).max()
}

/// The player of a page, as `az-export --web` writes it.
#[derive(Debug, Deserialize)]
pub struct Page {
    about: Value,
    temperature: f64,
    /// Limits of the page.
    pub limits: Limits,
    options: Map<String, Value>,
    /// See [`Net::read`]; none: the search alone.
    network: Option<Value>,
    /// Of the draws where the temperature is above 0.
    #[serde(default)]
    pub seed: u64,
}

/// What `about` has that is read here.
#[derive(Deserialize)]
struct About {
    name: String,
    network: Option<String>,
    simulations: u32,
    levels: Vec<Level>,
}

impl Page {
    /// Reads a player's JSON.
    ///
    /// # Errors
    /// If something is missing or wrong.
    pub fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(unreadable)
    }

    /// The game that it plays.
    ///
    /// # Errors
    /// If the file does not say it.
    pub fn game(&self) -> Result<&str, Error> {
        self.about["game"].as_str().ok_or_else(|| unreadable("about.game is not a text"))
    }

    /// The player of games that begin at `start`, and its network, if there is one. `weights` are its file.
    ///
    /// # Errors
    /// If something is missing or wrong, or the network does not fit.
    pub fn player<G: Game>(&self, start: G, weights: &[u8]) -> Result<(Player<G>, Option<Net>), Error> {
        let mut config = SearchConfig::default();
        let mut options = self.options.iter();
        options.try_for_each(|(name, value)| config.set(name, option(value))).map_err(Error::game)?;
        config.check().map_err(Error::game)?;
        let About { name, network, simulations, levels } = About::deserialize(&self.about).map_err(unreadable)?;
        let player = Player {
            name,
            network,
            simulations,
            levels,
            about: self.about.clone(),
            temperature: self.temperature,
            ..Player::new(start, config)
        };
        let net = self.network.as_ref().map(|shape| Net::read(&shape.to_string(), weights)).transpose();
        Ok((player, net.map_err(Error::game)?))
    }
}

fn unreadable(problem: impl std::fmt::Display) -> Error {
    Error::file("the player", format_args!("cannot be read: {problem}"))
}

/// The value of an option as JSON has it, or a run's settings.
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
