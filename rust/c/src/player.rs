//! A player as a folder has it: a run of az-train, or what `az-export --card` writes.

use std::fs;
use std::path::Path;

use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Rollout;
use azpy_core::game::Game;
use azpy_core::options::OptionValue;
use azpy_net::{Answers, Net, NetEvaluator};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

const WEIGHTS: &str = "model.safetensors";

/// A folder that was read.
pub(crate) struct Player {
    folder: String,
    settings: Table,
    /// The number of the newest checkpoint.
    iteration: u64,
    weights: Vec<u8>,
}

impl Player {
    /// Reads the settings, and the weights of the newest checkpoint.
    pub(crate) fn read(folder: &str) -> Result<Self, String> {
        if folder.is_empty() {
            return Err("folder is empty: give a player's folder, or NULL for none".to_owned());
        }
        let path = Path::new(folder);
        let settings = fs::read_to_string(path.join("config.toml")).map_err(|error| {
            format!("{folder}/config.toml cannot be read ({error}): give a run, or a folder of --card")
        })?;
        let settings = settings
            .parse()
            .map_err(|error: toml::de::Error| format!("{folder}/config.toml is no TOML: {}", error.message()))?;
        let newest = newest(&path.join("checkpoints"))
            .ok_or_else(|| format!("{folder} has no checkpoint yet: az-train saves one after each iteration"))?;
        let checkpoint = path.join("checkpoints").join(&newest);
        let weights = read(&checkpoint.join(WEIGHTS))?;
        let damaged = |why: &str| format!("{} is damaged: {why}; copy the player's folder again", checkpoint.display());
        let manifest: Json = serde_json::from_slice(&read(&checkpoint.join("manifest.json"))?)
            .map_err(|error| damaged(&format!("manifest.json is not JSON ({error})")))?;
        let hash: String = Sha256::digest(&weights).iter().map(|byte| format!("{byte:02x}")).collect();
        if manifest[WEIGHTS] != hash {
            return Err(damaged(&format!("{WEIGHTS} differs from manifest.json")));
        }
        let iteration = newest.parse().map_err(|error| damaged(&format!("{error}")))?;
        Ok(Self { folder: folder.to_owned(), settings, iteration, weights })
    }

    /// The game that it plays.
    pub(crate) fn game(&self) -> Result<&str, String> {
        self.text("game")
    }

    /// Whether its network has no weight that depends on the board's size.
    pub(crate) fn has_any_size(&self) -> Result<bool, String> {
        Ok(self.text("network")?.contains("+conv"))
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        let text = self.settings.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("{}/config.toml has no text as its {name}", self.folder))
    }

    /// How it searches: as the matches of its run. The solver goes where it can prove nothing.
    pub(crate) fn config<G: Game>(&self, start: &G) -> Result<SearchConfig, String> {
        let mut config = SearchConfig::default();
        for row in SearchConfig::OPTIONS {
            let name = format!("match_{}", row.name);
            let Some(value) = self.settings.get(&name) else { continue };
            let set = config.set(row.name, option(value));
            set.map_err(|error| format!("{}/config.toml: match_{error}", self.folder))?;
        }
        config.solver &= config.check_for(start).is_ok();
        if start.num_players() == 1 {
            config.score_to_beat = self.score_to_beat()?;
        }
        config.check().map_err(|error| format!("{}/config.toml: {error}", self.folder))?;
        Ok(config)
    }

    /// What the games of the checkpoint's iteration were to beat, as the run noted it. A network that learned from
    /// ranked rewards was trained on wins against this score, so its search counts wins too.
    fn score_to_beat(&self) -> Result<Option<f64>, String> {
        let path = Path::new(&self.folder).join("metrics.jsonl");
        // A card of a player of another kind may have no figures.
        let Some(text) = path.exists().then(|| read(&path)).transpose()? else { return Ok(None) };
        let mut found = None;
        // A run that goes on may be about to write its last line.
        for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let row: Json = serde_json::from_slice(line)
                .map_err(|error| format!("{} has a line that is not JSON ({error}): delete it", path.display()))?;
            if row["kind"] == "iteration" && row["iteration"] == self.iteration {
                found = row["score_to_beat"].as_f64();
            }
        }
        Ok(found)
    }

    /// What answers for its leaves.
    pub(crate) fn answers<G: Game>(&self, start: &G) -> Result<Answers<Rollout>, String> {
        let smoothing = self.settings.get("value_smoothing").and_then(Value::as_float).unwrap_or_default();
        let net = Net::for_game(start, self.text("network")?, smoothing, &self.weights);
        let net = net.map_err(|error| format!("{}: {error}", self.folder))?;
        Ok(Answers::Net(Box::new(NetEvaluator::new(net))))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// The name of the last checkpoint: they are numbers of six digits.
fn newest(checkpoints: &Path) -> Option<String> {
    let names = fs::read_dir(checkpoints).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_digit())).max()
}

/// The value of an option as a run's settings have it.
fn option(value: &Value) -> OptionValue<'_> {
    match value {
        Value::Boolean(on) => OptionValue::Switch(*on),
        Value::Integer(number) => OptionValue::Whole((*number).into()),
        Value::Float(number) => OptionValue::Number(*number),
        Value::String(word) => OptionValue::Word(word),
        _ => OptionValue::Other(value.type_str()),
    }
}
