//! Games with variations as texts of other programs (PGN of chess, SGF of Go), read as lists of moves and written.

use azpy_core::game::Player as Side;
use azpy_core::text::{Position, moves_of, play_named};
use azpy_core::written::{Bounds, Named, Notes, ReadMove, Variations, join};
use serde::Serialize;
use serde_json::json;

use crate::answer::action_response;
use crate::error::Error;
use crate::katago;
use crate::object::{Limits, Object, list_in, list_of, text, whole};
use crate::player::Player;
use crate::query::{notes_in, start_of};

/// The value of a tag that is not known.
const UNKNOWN: [&str; 3] = ["", "?", "*"];

/// A notation of whole games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name, and the suffix of its files.
    pub name: &'static str,
    /// The tags that name player 0 and player 1.
    pub players: [&'static str; 2],
    /// The tags of their ratings or ranks.
    pub ranks: [&'static str; 2],
    /// The tag of the result.
    pub result: &'static str,
}

impl Format {
    /// The tags that a game that was read has fields for.
    fn own(self) -> impl Iterator<Item = &'static str> {
        self.players.into_iter().chain(self.ranks).chain([self.result])
    }
}

/// The notation of the games of a name, with parameters or without; nothing if there is none.
#[must_use]
pub fn format_of(game: &str) -> Option<Format> {
    match game.split('(').next().unwrap_or_default().trim() {
        "chess" => {
            Some(Format { name: "pgn", players: ["White", "Black"], ranks: ["WhiteElo", "BlackElo"], result: "Result" })
        }
        "go" => Some(Format { name: "sgf", players: ["PB", "PW"], ranks: ["BR", "WR"], result: "RE" }),
        _ => None,
    }
}

/// A game that was read.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadResponse<'a> {
    /// Where it begins; `None` at the start that the object or the player gives.
    position: Option<String>,
    /// Of the nodes behind one node, the first is that of the main line.
    nodes: Vec<Node<'a>>,
    /// On the start.
    notes: &'a Notes,
    /// As the text names them.
    players: Option<[Option<&'a str>; 2]>,
    ranks: Option<[Option<&'a str>; 2]>,
    result: Option<&'a str>,
    /// What else the text says of the game: names and values.
    tags: Vec<&'a (String, String)>,
    /// Why lines end early or are missing.
    left_out: Vec<String>,
}

/// The index of the node before it or -1, the action's name, its short name, who played it (none: dice), and the notes
/// on it.
type Node<'a> = (i64, &'a str, &'a str, Option<usize>, &'a Notes);

/// The game of a text in its notation, a position, or moves, as a line of JSON; or the game of nodes, as [`write`]
/// takes them.
///
/// # Errors
/// If a field is wrong or beyond a limit, or the text cannot be read; says where.
pub fn read<P: Position>(fields: &Object, player: &Player<P>, limits: &Limits) -> Result<String, Error> {
    let start = start_of(&katago::translated(fields, &player.start, limits)?, player)?;
    let found = if fields.get("nodes").is_some() {
        let (named, mut notes) = nodes(fields, limits)?;
        let moves = moves_of(
            &start,
            &named,
            bounds(limits),
            |state, action, index| ReadMove {
                notes: std::mem::take(&mut notes[index + 1]),
                ..play_named(state, action)
            },
            |told, other| join(&mut told.notes, other.notes),
        )
        .map_err(Error::game)?;
        let notes = std::mem::take(&mut notes[0]);
        Variations { start: start.clone(), moves, tags: Vec::new(), notes, left_out: Vec::new() }
    } else {
        let given = text(fields.field("text")?, "text")?;
        if given.len() > limits.text_bytes {
            let problem = format_args!("expected at most {} bytes, got {}", limits.text_bytes, given.len());
            return Err(Error::field("text", problem));
        }
        if given.trim().is_empty() {
            return Err(Error::field("text", "it is empty"));
        }
        start.read_variations(given, bounds(limits)).map_err(|error| Error::field("text", error))?
    };
    // The first value of a name counts.
    let tag = |name: &str| {
        let value = found.tags.iter().find(|tag| tag.0 == name).map(|tag| tag.1.as_str());
        value.filter(|value| !UNKNOWN.contains(value))
    };
    let format = format_of(start.game());
    let named =
        |names: Option<[&str; 2]>| names.map(|names| names.map(tag)).filter(|found| found.iter().any(Option::is_some));
    let said: Vec<&str> = format.into_iter().flat_map(|format| format.own()).collect();
    let moves = found.moves.all().iter();
    let read = ReadResponse {
        position: if found.start.key() == start.key() { None } else { found.start.to_text() },
        nodes: moves
            .map(|(before, told)| {
                let player = told.player.map(Side::index);
                (*before as i64 - 1, told.name.as_str(), told.short.as_str(), player, &told.notes)
            })
            .collect(),
        notes: &found.notes,
        players: named(format.map(|format| format.players)),
        ranks: named(format.map(|format| format.ranks)),
        tags: found.tags.iter().filter(|(name, _)| !said.contains(&&name[..])).collect(),
        result: format.and_then(|format| tag(format.result)),
        left_out: found.left_out,
    };
    Ok(action_response(fields, read))
}

/// The text of a game in its notation, as a line of JSON.
///
/// # Errors
/// If a field is wrong or beyond a limit, or the game has no notation.
pub fn write<P: Position>(fields: &Object, player: &Player<P>, limits: &Limits) -> Result<String, Error> {
    let start = start_of(&katago::translated(fields, &player.start, limits)?, player)?;
    let format = format_of(start.game()).ok_or_else(|| {
        let game = start.game();
        Error::field("write", format_args!("{game} does not have a notation for whole games; chess and go have one"))
    })?;
    let (nodes, notes) = nodes(fields, limits)?;
    let text = start.write_variations(&nodes, &tags(fields, format)?, &notes, bounds(limits)).map_err(Error::game)?;
    Ok(action_response(fields, json!({ "text": text })))
}

/// The nodes of an object, and the notes on its start and on each node.
fn nodes(fields: &Object, limits: &Limits) -> Result<(Vec<Named>, Vec<Notes>), Error> {
    let given = list_of(fields.field("nodes")?, "nodes")?;
    if given.len() > limits.nodes {
        return Err(Error::field("nodes", format_args!("expected at most {}, got {}", limits.nodes, given.len())));
    }
    let mut nodes = Vec::<Named>::new();
    let mut notes = vec![fields.optional("notes", notes_in)?.unwrap_or_default()];
    for (index, value) in given.iter().enumerate() {
        let path = format!("nodes[{index}]");
        let (before, name, noted) = match list_of(value, &path)? {
            [before, name] | [before, name, _] | [before, name, _, _] => (before, name, None),
            [before, name, _, _, notes] => (before, name, Some(notes)),
            _ => {
                let expected =
                    "expected the index of the node before it, a name and perhaps a short name, the player, notes";
                return Err(Error::field(path, expected));
            }
        };
        let before = whole(before, &path, -1, index as i64 - 1)?;
        nodes.push((usize::try_from(before).ok(), text(name, &path)?.to_owned()));
        notes.push(noted.map_or(Ok(Notes::new()), |value| notes_in(value, &path))?);
    }
    Ok((nodes, notes))
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds { moves: limits.nodes, depth: limits.depth }
}

/// The tags of an object: players, ranks and result, and then the tags that it names.
fn tags(fields: &Object, format: Format) -> Result<Vec<(String, String)>, Error> {
    let mut tags = Vec::new();
    for (field, names) in [("players", format.players), ("ranks", format.ranks)] {
        let Some(value) = fields.get(field) else { continue };
        let given = list_of(value, field)?;
        if given.len() != names.len() {
            return Err(Error::field(field, format_args!("expected a list of two texts, got {}", given.len())));
        }
        for (tag, value) in names.into_iter().zip(given).filter(|(_, value)| !value.is_null()) {
            tags.push((tag.to_owned(), text(value, field)?.to_owned()));
        }
    }
    if let Some(result) = fields.optional("result", text)? {
        tags.push((format.result.to_owned(), result.to_owned()));
    }
    for (index, value) in list_in(fields, "tags")?.iter().enumerate() {
        let path = format!("tags[{index}]");
        match list_of(value, &path)? {
            [name, value] => tags.push((text(name, &path)?.to_owned(), text(value, &path)?.to_owned())),
            _ => return Err(Error::field(path, "expected a name and a value")),
        }
    }
    Ok(tags)
}
