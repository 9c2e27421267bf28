//! What an analysis query asks for: its fields, read one by one. What is wrong is said with the field's name.

use std::collections::HashSet;

use azpy_core::game::{Action, MAX_PLAYERS, Player, Turn};
use azpy_core::text::Position;
use azpy_core::written::Notes;
use serde_json::Value;

use crate::katago::{self, Asked, View};
use crate::level::{FOREVER, effort, level_of};
use crate::line::Line;
use crate::object::{Limits, Object, Refused, flag, list_in, list_of, number, object_of, one_of, text, whole};

/// Characters of an id or a game's name.
pub const LONGEST_NAME: usize = 200;
/// Seconds between reports.
const LEAST_REPORT: f64 = 0.05;
const PRIORITIES: [&str; 3] = ["play", "analysis", "ponder"];
const ACTIONS: [&str; 8] =
    ["query_version", "query_models", "show", "read", "write", "terminate", "terminate_all", "renew"];
const KNOWN: [&str; 17] = [
    "id",
    "model",
    "game",
    "level",
    "position",
    "moves",
    "analyzeTurns",
    "simulations",
    "seconds",
    "priority",
    "reportDuringSearchEvery",
    "allowMoves",
    "avoidMoves",
    "analysisPVLen",
    "includePolicy",
    "includeLcb",
    "includeShortNames",
];

/// Who is asked.
#[derive(Debug)]
pub struct Asking<'a, P> {
    /// Where its games begin.
    pub start: &'a P,
    /// Of a search that says no other limit.
    pub simulations: u32,
    /// The words for its levels, and the simulations of each.
    pub levels: &'a [(String, u32)],
    /// Whether it has a network, and so plays one size of the game.
    pub has_model: bool,
}

/// The name of an action, and the player for whom it counts; for all if there is none.
pub(crate) type Named = (String, Option<Player>);

/// Names of actions for the first move of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    all: HashSet<String>,
    /// Those that count at one player's turns alone.
    own: [HashSet<String>; MAX_PLAYERS],
}

impl Names {
    fn read(fields: &Object, path: &str, players: usize) -> Result<Self, Refused> {
        let mut found = Self::default();
        for (name, player) in names(fields, path, players)? {
            player.map_or(&mut found.all, |player| &mut found.own[player.index()]).insert(name);
        }
        Ok(found)
    }

    fn is_empty(&self, player: Player) -> bool {
        self.all.is_empty() && self.own[player.index()].is_empty()
    }

    fn has(&self, player: Player, name: &str) -> bool {
        self.all.contains(name) || self.own[player.index()].contains(name)
    }
}

/// A position that a query has searched.
#[derive(Clone, Debug)]
pub struct Place<P> {
    /// After so many of the query's moves.
    pub turn: usize,
    /// The position, and the actions that led to it from the start of a line.
    pub line: Line<P>,
}

/// A query that was read.
#[derive(Clone, Debug)]
pub struct Query<P> {
    /// Repeated in each answer.
    pub id: String,
    /// What is searched.
    pub places: Vec<Place<P>>,
    /// The limits of each search, at least one of them.
    pub simulations: Option<u32>,
    /// See `simulations`.
    pub seconds: Option<f64>,
    /// "play", "analysis" or "ponder".
    pub priority: &'static str,
    /// Seconds between reports.
    pub report_every: Option<f64>,
    /// Whether moves have lower confidence bounds.
    pub bounds: bool,
    /// The name of the game that keeps its tree.
    pub game: Option<String>,
    /// Which of the player's levels plays, by its index. It is part of `simulations`.
    pub level: Option<usize>,
    /// Fields that change nothing, and why.
    pub ignored: Vec<String>,
    pub(crate) allowed: Names,
    pub(crate) avoided: Names,
    /// The most moves of a principal variation.
    pub pv_length: usize,
    pub(crate) policy: bool,
    /// Whether lines are told in short names too.
    pub(crate) short_names: bool,
    /// From where KataGo's numbers are seen; none for another game than Go.
    pub(crate) view: Option<View>,
}

/// The text that answers repeat.
///
/// # Errors
/// If there is none, or a long one.
pub fn id_of(fields: &Object) -> Result<&str, Refused> {
    let id = fields.text("id")?;
    if id.chars().count() > LONGEST_NAME {
        return Err(Refused(format!("id: expected at most {LONGEST_NAME} characters")));
    }
    Ok(id)
}

/// The action that an object names in place of a query; none for a query.
///
/// # Errors
/// If there is no such action. The last one, `renew`, is there where `renews` says so.
pub fn action_of(fields: &Object, renews: bool) -> Result<Option<&'static str>, Refused> {
    let actions = if renews { &ACTIONS[..] } else { &ACTIONS[..ACTIONS.len() - 1] };
    fields.get("action").map(|value| one_of(value, "action", actions)).transpose()
}

/// Which searches the action `terminate` or `terminate_all` ends: of which query, and of which turns; none for all.
///
/// # Errors
/// If a field is wrong.
pub fn terminated(fields: &Object, limits: &Limits) -> Result<(Option<String>, Option<Vec<usize>>), Refused> {
    let all = fields.get("action").and_then(Value::as_str) == Some("terminate_all");
    let id = if all { None } else { Some(fields.text("terminateId")?.to_owned()) };
    let turn = |value| whole(value, "turnNumbers", 0, limits.moves as i64).map(|turn| turn as usize);
    let turns = fields.get("turnNumbers").map(|value| list_of(value, "turnNumbers")?.iter().map(turn).collect());
    Ok((id, turns.transpose()?))
}

impl<P: Position> Query<P> {
    /// The query that an object describes.
    ///
    /// # Errors
    /// If a field is wrong or beyond a limit, or a position cannot be read.
    pub fn read(fields: &Object, asking: &Asking<'_, P>, limits: &Limits) -> Result<Self, Refused> {
        let id = id_of(fields)?.to_owned();
        let level = level_of(fields, asking.levels)?;
        let asked = katago::translated(fields, asking.start, limits)?;
        let (start, fields) = (start_of(&asked, asking)?, &*asked.fields);
        let players = start.num_players();
        let moves = moves(fields, limits, players)?;
        let of_level = level.map(|level| asking.levels[level].1);
        let (simulations, seconds) = effort(fields, of_level, asking.simulations, limits)?;
        let read = |name: &str, low: f64| fields.get(name).map(|value| number(value, name, low, FOREVER)).transpose();
        let flag = |name: &str| fields.get(name).map_or(Ok(false), |value| flag(value, name));
        let length = fields.get("analysisPVLen").map(|value| whole(value, "analysisPVLen", 1, 1000)).transpose()?;
        let game = fields.get("game").map(|value| text(value, "game")).transpose()?;
        let unknown = fields.fields().keys().filter(|name| !KNOWN.contains(&name.as_str()));
        let unknown = unknown.map(|name| format!("{}: no field of a query: it changes nothing", cut(name)));
        Ok(Self {
            id,
            simulations,
            seconds,
            priority: priority(fields)?,
            report_every: read("reportDuringSearchEvery", 0.001)?.map(|every| every.max(LEAST_REPORT)),
            bounds: flag("includeLcb")?,
            game: game.map(cut),
            level,
            ignored: unknown.chain(asked.ignored.iter().cloned()).collect(),
            allowed: Names::read(fields, "allowMoves", players)?,
            avoided: Names::read(fields, "avoidMoves", players)?,
            pv_length: length.map_or(usize::MAX, |length| length as usize),
            policy: flag("includePolicy")?,
            short_names: flag("includeShortNames")?,
            view: asked.view,
            places: walk(start, &moves, &turns(fields, moves.len(), limits)?, asked.first)?,
        })
    }

    /// The actions that a search of a position may choose among; nothing for all.
    ///
    /// # Errors
    /// If none is left.
    pub fn actions(&self, state: &P) -> Result<Option<Vec<Action>>, Refused> {
        let (allowed, avoided) = (&self.allowed, &self.avoided);
        let Turn::Player(player) = state.turn() else { return Ok(None) };
        if allowed.is_empty(player) && avoided.is_empty(player) {
            return Ok(None);
        }
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let mut found = legal.clone();
        found.retain(|&action| {
            let name = state.action_name(action);
            (allowed.is_empty(player) || allowed.has(player, &name)) && !avoided.has(player, &name)
        });
        if found.is_empty() {
            return Err(Refused("allowMoves, avoidMoves: no legal move is left".to_owned()));
        }
        Ok((found.len() < legal.len()).then_some(found))
    }
}

/// The number of moves that an object names, and the line that they are: over where azpy's rules end it.
///
/// # Errors
/// See [`Query::read`].
pub(crate) fn read_position<P: Position>(
    fields: &Object,
    asking: &Asking<'_, P>,
    limits: &Limits,
) -> Result<(usize, Line<P>), Refused> {
    let asked = katago::translated(fields, asking.start, limits)?;
    let mut line = Line::new(start_of(&asked, asking)?);
    let moves = moves(&asked.fields, limits, line.start.num_players())?;
    for (count, named) in moves.iter().enumerate() {
        play(&mut line, count, named)?;
    }
    Ok((moves.len(), line))
}

/// Where an object says that its moves begin, or where the player's games do.
pub(crate) fn start_of<P: Position>(asked: &Asked<'_, P>, asking: &Asking<'_, P>) -> Result<P, Refused> {
    let start = match asked.fields.get("position") {
        Some(position) => asked.start.parse(text(position, "position")?)?,
        None => asked.start.clone(),
    };
    let shape = |state: &P| (state.num_actions(), state.obs_shape());
    if asking.has_model && shape(&start) != shape(asking.start) {
        return Err(Refused(format!("the network plays {}, not {}", asking.start.game(), start.game())));
    }
    Ok(start)
}

/// Names of actions, and who plays them, if it is said.
fn moves(fields: &Object, limits: &Limits, players: usize) -> Result<Vec<Named>, Refused> {
    let found = match fields.get("moves") {
        Some(Value::String(names)) => names.split_whitespace().map(|name| (name.to_owned(), None)).collect(),
        _ => names(fields, "moves", players)?,
    };
    if found.len() > limits.moves {
        return Err(Refused(format!("moves: expected at most {}, got {}", limits.moves, found.len())));
    }
    Ok(found)
}

/// Names of actions; also as [player, name], for one of so many players.
fn names(fields: &Object, path: &str, players: usize) -> Result<Vec<Named>, Refused> {
    let named = |(index, value): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        let Some([player, name]) = value.as_array().map(Vec::as_slice) else {
            return Ok((text(value, &path)?.to_owned(), None));
        };
        let player = Player::ALL[whole(player, &path, 0, players as i64 - 1)? as usize];
        Ok((text(name, &path)?.to_owned(), Some(player)))
    };
    list_in(fields, path)?.iter().enumerate().map(named).collect()
}

/// The numbers of moves after which to search, each once.
fn turns(fields: &Object, moves: usize, limits: &Limits) -> Result<Vec<usize>, Refused> {
    let Some(value) = fields.get("analyzeTurns") else {
        return Ok(vec![moves]);
    };
    let mut is_there = vec![false; moves + 1];
    let mut turns = Vec::new();
    for value in list_of(value, "analyzeTurns")? {
        let turn = whole(value, "analyzeTurns", 0, moves as i64)? as usize;
        if !std::mem::replace(&mut is_there[turn], true) {
            turns.push(turn);
        }
    }
    if turns.is_empty() || turns.len() > limits.turns {
        return Err(Refused(format!("analyzeTurns: expected from 1 to {}, got {}", limits.turns, turns.len())));
    }
    Ok(turns)
}

/// The positions after so many moves, in the order of `turns`. `first` is to move at the first one.
fn walk<P: Position>(
    start: P,
    moves: &[Named],
    turns: &[usize],
    first: Option<Player>,
) -> Result<Vec<Place<P>>, Refused> {
    let mut order = vec![None; moves.len() + 1];
    turns.iter().enumerate().for_each(|(place, &turn)| order[turn] = Some(place));
    let (mut line, mut places) = (Line::new(start), Vec::new());
    for (turn, order) in order.into_iter().enumerate() {
        if let Some(order) = order {
            line.go_on(first.filter(|_| turn == 0));
            places.push((order, Place { turn, line: line.clone() }));
        }
        if let Some(named) = moves.get(turn) {
            play(&mut line, turn, named)?;
        }
    }
    places.sort_by_key(|&(order, _)| order);
    Ok(places.into_iter().map(|(_, place)| place).collect())
}

/// Plays a move; `count` moves were played before it.
fn play<P: Position>(line: &mut Line<P>, count: usize, (name, player): &Named) -> Result<(), Refused> {
    line.play(name, *player).map_err(|Refused(said)| Refused(format!("moves[{count}]: {said}")))
}

/// One of three words. Also a number, as KataGo has it: a larger one goes first, and 0 is usual.
fn priority(fields: &Object) -> Result<&'static str, Refused> {
    match fields.get("priority") {
        None => Ok("play"),
        Some(Value::Number(number)) if !number.is_f64() => {
            Ok(if number.as_i64().is_some_and(|number| number < 0) { "analysis" } else { "play" })
        }
        Some(value) => one_of(value, "priority", &PRIORITIES),
    }
}

/// A name, cut where it is long.
pub(crate) fn cut(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// Notes by their names, each a list of texts.
pub(crate) fn notes_in(value: &Value, path: &str) -> Result<Notes, Refused> {
    let mut notes = Notes::new();
    for (name, values) in object_of(value, path)? {
        let values = list_of(values, path)?.iter().map(|value| Ok(text(value, path)?.to_owned()));
        notes.insert(name.clone(), values.collect::<Result<_, Refused>>()?);
    }
    Ok(notes)
}
