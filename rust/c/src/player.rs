//! A player as a folder has it: a run of az-train, or what `az-export --card` writes.

use std::fs;
use std::path::Path;

use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Rollout;
use azpy_core::game::Game;
use azpy_core::options::{Kind, OptionRow, OptionValue};
use azpy_net::{Answers, Net, NetEvaluator};
use toml::{Table, Value};

/// A folder that was read.
pub(crate) struct Player {
    folder: String,
    settings: Table,
    weights: Vec<u8>,
}

impl Player {
    /// Reads the settings, and the weights of the newest checkpoint.
    pub(crate) fn read(folder: &str) -> Result<Self, String> {
        let path = Path::new(folder);
        let settings = fs::read_to_string(path.join("config.toml")).map_err(|error| {
            format!("{folder}/config.toml cannot be read ({error}): give a run, or a folder of --card")
        })?;
        let settings = settings
            .parse()
            .map_err(|error: toml::de::Error| format!("{folder}/config.toml is no TOML: {}", error.message()))?;
        let newest = newest(&path.join("checkpoints"))
            .ok_or_else(|| format!("{folder} has no checkpoint yet: az-train saves one after each iteration"))?;
        let weights = path.join("checkpoints").join(newest).join("model.safetensors");
        let weights = fs::read(&weights).map_err(|error| format!("{} cannot be read: {error}", weights.display()))?;
        Ok(Self { folder: folder.to_owned(), settings, weights })
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
            option(row, value)
                .and_then(|option| config.set(row.name, option).ok())
                .ok_or_else(|| format!("{}/config.toml: {name} cannot be {value:?}", self.folder))?;
        }
        config.solver &= config.check_for(start).is_ok();
        config.check().map_err(|error| format!("{}/config.toml: {error}", self.folder))?;
        Ok(config)
    }

    /// What answers for its leaves.
    pub(crate) fn answers<G: Game>(&self, start: &G) -> Result<Answers<Rollout>, String> {
        let smoothing = self.settings.get("value_smoothing").and_then(Value::as_float).unwrap_or_default();
        let net = Net::for_game(start, self.text("network")?, smoothing, &self.weights);
        let net = net.map_err(|error| format!("{}: {error}", self.folder))?;
        Ok(Answers::Net(Box::new(NetEvaluator::new(net))))
    }
}

/// The name of the last checkpoint: they are numbers of six digits.
fn newest(checkpoints: &Path) -> Option<String> {
    let names = fs::read_dir(checkpoints).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_digit())).max()
}

/// The value of an option as a run's settings have it.
fn option(row: &OptionRow, value: &Value) -> Option<OptionValue> {
    Some(match value {
        Value::Boolean(on) => OptionValue::Switch(*on),
        Value::Integer(number) if row.kind == Kind::Whole => OptionValue::Whole((*number).into()),
        Value::Integer(number) => OptionValue::Number(*number as f64),
        Value::Float(number) => OptionValue::Number(*number),
        Value::String(word) if word == "none" => OptionValue::None,
        Value::String(word) => OptionValue::Word(row.words.iter().copied().find(|known| known == word)?),
        _ => return None,
    })
}
