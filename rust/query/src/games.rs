//! Games with variations as texts of other programs (PGN of chess, SGF of Go), read as lists of moves and written.

use azpy_core::written::{Bounds, Named};
use serde::Serialize;

use crate::answer::told;
use crate::katago;
use crate::line::Position;
use crate::object::{Limits, Object, Refused, list_of, text, whole};
use crate::query::{Asking, start_of};

/// What tags say where nothing is known.
const UNKNOWN: [&str; 3] = ["", "?", "*"];

/// A notation of whole games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// As users know it, and as files end.
    pub name: &'static str,
    /// The tags that name player 0 and player 1.
    pub players: [&'static str; 2],
    /// The tag of the result.
    pub result: &'static str,
}

/// The notation of the games of a name, with parameters or without; nothing if there is none.
#[must_use]
pub fn format_of(game: &str) -> Option<Format> {
    match game.split('(').next().unwrap_or_default().trim() {
        "chess" => Some(Format { name: "pgn", players: ["White", "Black"], result: "Result" }),
        "go" => Some(Format { name: "sgf", players: ["PB", "PW"], result: "RE" }),
        _ => None,
    }
}

/// A game that was read.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    /// Where it begins; none where the object or the player says so.
    position: Option<String>,
    /// Each as [the index of the node before it or -1, the action's name, its short name]. Of the nodes behind one node,
    /// the first is that of the main line.
    nodes: Vec<(i64, &'a str, &'a str)>,
    /// As the text names them.
    players: Option<[Option<&'a str>; 2]>,
    result: Option<&'a str>,
    /// Why lines end early, or are not there.
    left_out: Vec<String>,
}

/// The game of a text in its notation, a position, or moves, as a line of JSON.
///
/// # Errors
/// If a field is wrong or beyond a limit, or the text cannot be read; says where.
pub fn read<P: Position>(fields: &Object, asking: &Asking<'_, P>, limits: &Limits) -> Result<String, Refused> {
    let start = start_of(&katago::translated(fields, asking.start, limits)?, asking)?;
    let given = text(fields.field("text")?, "text")?;
    if given.len() > limits.text_bytes {
        return Err(Refused(format!("text: expected at most {} bytes, got {}", limits.text_bytes, given.len())));
    }
    if given.trim().is_empty() {
        return Err(Refused("text: it is empty".to_owned()));
    }
    let found = start.read_variations(given, bounds(limits)).map_err(|why| Refused(format!("text: {why}")))?;
    // The first value of a name counts.
    let tag = |name: &str| {
        let value = found.tags.iter().find(|tag| tag.0 == name).map(|tag| tag.1.as_str());
        value.filter(|value| !UNKNOWN.contains(value))
    };
    let format = format_of(start.game());
    let players = format.map(|format| format.players.map(tag)).filter(|players| players.iter().any(Option::is_some));
    let moves = found.moves.all().iter();
    let read = Read {
        position: if found.start.key() == start.key() { None } else { found.start.to_text() },
        nodes: moves.map(|(before, (name, short))| (*before as i64 - 1, name.as_str(), short.as_str())).collect(),
        players,
        result: format.and_then(|format| tag(format.result)),
        left_out: found.left_out,
    };
    Ok(told(fields, read))
}

/// The text of a game in its notation, as a line of JSON.
///
/// # Errors
/// If a field is wrong or beyond a limit, or the game has no notation.
pub fn write<P: Position>(fields: &Object, asking: &Asking<'_, P>, limits: &Limits) -> Result<String, Refused> {
    #[derive(Serialize)]
    struct Written {
        text: String,
    }

    let start = start_of(&katago::translated(fields, asking.start, limits)?, asking)?;
    let format = format_of(start.game()).ok_or_else(|| {
        let game = start.game();
        Refused(format!("write: there is no notation of whole games of {game}, but of chess and go"))
    })?;
    let given = list_of(fields.field("nodes")?, "nodes")?;
    if given.len() > limits.nodes {
        return Err(Refused(format!("nodes: expected at most {}, got {}", limits.nodes, given.len())));
    }
    let mut nodes = Vec::<Named>::new();
    for (index, value) in given.iter().enumerate() {
        let path = format!("nodes[{index}]");
        let [before, name, ..] = list_of(value, &path)? else {
            return Err(no_node(&path));
        };
        if list_of(value, &path)?.len() > 3 {
            return Err(no_node(&path));
        }
        let before = whole(before, &path, -1, index as i64 - 1)?;
        nodes.push((usize::try_from(before).ok(), text(name, &path)?.to_owned()));
    }
    let text = start.write_variations(&nodes, &tags(fields, format)?, bounds(limits))?;
    Ok(told(fields, Written { text }))
}

fn no_node(path: &str) -> Refused {
    Refused::at(path, "expected the index of the node before it, a name and perhaps a short name")
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds { moves: limits.nodes, depth: limits.depth }
}

/// The players and the result that an object names, as tags.
fn tags(fields: &Object, format: Format) -> Result<Vec<(String, String)>, Refused> {
    let mut tags = Vec::new();
    if let Some(value) = fields.given("players") {
        let players = list_of(value, "players")?;
        if players.len() != format.players.len() {
            return Err(Refused(format!("players: expected a list of two names, got {}", players.len())));
        }
        for (tag, name) in format.players.into_iter().zip(players).filter(|(_, name)| !name.is_null()) {
            tags.push((tag.to_owned(), text(name, "players")?.to_owned()));
        }
    }
    if let Some(result) = fields.given("result") {
        tags.push((format.result.to_owned(), text(result, "result")?.to_owned()));
    }
    Ok(tags)
}
