//! The fields of an analysis query, read one by one. Errors name the field.

use std::collections::HashMap;

use azpy_core::engine::Priority;
use azpy_core::game::{Action, Player, Turn, legal_of};
use azpy_core::text::Position;
use azpy_core::written::Notes;
use serde_json::Value;

use crate::error::Error;
use crate::katago::{self, Translated, View};
use crate::level::{FOREVER, level_of, limits_of};
use crate::line::Line;
use crate::object::{Limits, Object, flag, list_in, list_of, number, object_of, one_of, text, texts_of, whole};
use crate::player;

/// Characters of an id or a game's name.
pub const LONGEST_NAME: usize = 200;
/// Seconds between reports.
const LEAST_REPORT: f64 = 0.05;
const ACTIONS: [&str; 10] =
    ["query_version", "query_models", "show", "read", "write", "deal", "play", "terminate", "terminate_all", "renew"];
/// The fields of a query.
const KNOWN: &str = "id model game level position moves analyzeTurns simulations seconds \
    priority reportDuringSearchEvery allowMoves avoidMoves analysisPVLen includePolicy includeLcb includeShortNames";

/// The name of an action, and the player it applies to; all players if `None`.
pub(crate) type NamedAction = (String, Option<Player>);

/// Names of actions for the first move of a search.
#[derive(Clone, Debug, Default)]
struct ActionFilter {
    /// Each with the players it applies to, one bit per player.
    names: HashMap<String, u8>,
    /// The players that a name applies to.
    players: u8,
}

impl ActionFilter {
    fn read(fields: &Object, path: &str, players: usize) -> Result<Self, Error> {
        let mut found = Self::default();
        for (name, player) in names(fields, path, players)? {
            let counts_for = player.map_or(u8::MAX, bit);
            *found.names.entry(name).or_default() |= counts_for;
            found.players |= counts_for;
        }
        Ok(found)
    }

    fn is_empty(&self, player: Player) -> bool {
        self.players & bit(player) == 0
    }

    fn has(&self, player: Player, name: &str) -> bool {
        self.names.get(name).is_some_and(|players| players & bit(player) != 0)
    }
}

/// There are six players at most.
fn bit(player: Player) -> u8 {
    1 << player.index()
}

/// A query that was read.
#[derive(Clone, Debug)]
pub struct Query<P> {
    /// Repeated in each answer.
    pub id: String,
    /// The positions to search, each with its number of moves.
    pub positions: Vec<(usize, Line<P>)>,
    /// The limits of each search, at least one of them.
    pub simulations: Option<u32>,
    /// See `simulations`.
    pub seconds: Option<f64>,
    /// How urgent it is.
    pub priority: Priority,
    /// Seconds between reports.
    pub report_every: Option<f64>,
    /// Whether moves have lower confidence bounds.
    pub lower_bounds: bool,
    /// The name of the game that keeps its tree.
    pub game: Option<String>,
    /// Which of the player's levels plays, by its index. It is part of `simulations`.
    pub level: Option<usize>,
    /// Ignored fields, with the reason.
    pub ignored: Vec<String>,
    allowed: ActionFilter,
    avoided: ActionFilter,
    /// The most moves of a principal variation.
    pub pv_length: usize,
    pub(crate) policy: bool,
    /// Whether lines also have short names.
    pub(crate) short_names: bool,
    /// Whose view KataGo's numbers are in; `None` in other games than Go.
    pub(crate) view: Option<View>,
}

/// The text that answers repeat.
///
/// # Errors
/// If there is none, or a long one.
pub fn id_of(fields: &Object) -> Result<&str, Error> {
    let id = fields.text("id")?;
    if id.chars().count() > LONGEST_NAME {
        return Err(Error::field("id", format_args!("expected at most {LONGEST_NAME} characters")));
    }
    Ok(id)
}

/// The action that an object names in place of a query; none for a query.
///
/// # Errors
/// If there is no such action. The last one, `renew`, is there where `renews` says so.
pub fn action_of(fields: &Object, renews: bool) -> Result<Option<&'static str>, Error> {
    let actions = if renews { &ACTIONS[..] } else { &ACTIONS[..ACTIONS.len() - 1] };
    fields.optional("action", |value, name| one_of(value, name, actions))
}

/// Which searches the action `terminate` or `terminate_all` ends: of which query, and of which turns; none for all.
///
/// # Errors
/// If a field is wrong.
pub fn terminated(fields: &Object, limits: &Limits) -> Result<(Option<String>, Option<Vec<usize>>), Error> {
    let all = fields.get("action").and_then(Value::as_str) == Some("terminate_all");
    let id = if all { None } else { Some(fields.text("terminateId")?.to_owned()) };
    let turn = |value| whole(value, "turnNumbers", 0, limits.moves as i64).map(|turn| turn as usize);
    let turns = fields.optional("turnNumbers", |value, name| list_of(value, name)?.iter().map(turn).collect())?;
    Ok((id, turns))
}

impl<P: Position> Query<P> {
    /// The query that an object describes.
    ///
    /// # Errors
    /// If a field is wrong or beyond a limit, or a position cannot be read.
    pub fn read(fields: &Object, player: &player::Player<P>, limits: &Limits) -> Result<Self, Error> {
        let id = id_of(fields)?.to_owned();
        let level = level_of(fields, &player.levels)?;
        let translated = katago::translated(fields, &player.start, limits)?;
        let (start, fields) = (start_of(&translated, player)?, &*translated.fields);
        let players = start.num_players();
        let moves = moves(fields, limits, players)?;
        let of_level = level.map(|level| player.levels[level].simulations);
        let (simulations, seconds) = limits_of(fields, of_level, player.simulations, limits)?;
        let report_every =
            fields.optional("reportDuringSearchEvery", |value, name| number(value, name, 0.001, FOREVER))?;
        let flag = |name: &str| Ok::<_, Error>(fields.optional(name, flag)?.unwrap_or(false));
        let length = fields.optional("analysisPVLen", |value, name| whole(value, name, 1, 1000))?;
        let game = fields.optional("game", text)?;
        let unknown = fields.fields().keys().filter(|name| !KNOWN.split(' ').any(|known| known == *name));
        let unknown = unknown.map(|name| format!("{}: unknown field, ignored", cut(name)));
        Ok(Self {
            id,
            simulations,
            seconds,
            priority: priority(fields)?,
            report_every: report_every.map(|every| every.max(LEAST_REPORT)),
            lower_bounds: flag("includeLcb")?,
            game: game.map(cut),
            level,
            ignored: unknown.chain(translated.ignored.iter().cloned()).collect(),
            allowed: ActionFilter::read(fields, "allowMoves", players)?,
            avoided: ActionFilter::read(fields, "avoidMoves", players)?,
            pv_length: length.map_or(usize::MAX, |length| length as usize),
            policy: flag("includePolicy")?,
            short_names: flag("includeShortNames")?,
            view: translated.view,
            positions: walk(start, &moves, &turns(fields, moves.len(), limits)?, translated.first)?,
        })
    }

    /// The actions that a search of a position may choose among; nothing for all.
    ///
    /// # Errors
    /// If none is left.
    pub fn actions(&self, state: &P) -> Result<Option<Vec<Action>>, Error> {
        let (allowed, avoided) = (&self.allowed, &self.avoided);
        let Turn::Player(player) = state.turn() else { return Ok(None) };
        if allowed.is_empty(player) && avoided.is_empty(player) {
            return Ok(None);
        }
        let legal = legal_of(state);
        let mut found = legal.clone();
        found.retain(|&action| {
            let name = state.action_name(action);
            (allowed.is_empty(player) || allowed.has(player, &name)) && !avoided.has(player, &name)
        });
        if found.is_empty() {
            return Err(Error::field("allowMoves, avoidMoves", "no legal move is left"));
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
    player: &player::Player<P>,
    limits: &Limits,
) -> Result<(usize, Line<P>), Error> {
    let translated = katago::translated(fields, &player.start, limits)?;
    let mut line = Line::new(start_of(&translated, player)?);
    let moves = moves(&translated.fields, limits, line.start.num_players())?;
    for (count, named) in moves.iter().enumerate() {
        play(&mut line, count, named)?;
    }
    Ok((moves.len(), line))
}

/// The start of an object's moves: its own, or that of the player's games.
pub(crate) fn start_of<P: Position>(translated: &Translated<'_, P>, player: &player::Player<P>) -> Result<P, Error> {
    let start = match translated.fields.optional("position", text)? {
        Some(position) => translated.start.parse(position).map_err(Error::game)?,
        None => translated.start.clone(),
    };
    let shape = |state: &P| (state.num_actions(), state.obs_shape());
    // A network plays one size of the game.
    if player.network.is_some() && shape(&start) != shape(&player.start) {
        return Err(Error::Game(format!("the network plays {}, not {}", player.start.game(), start.game())));
    }
    Ok(start)
}

/// Names of actions, with their players if given.
fn moves(fields: &Object, limits: &Limits, players: usize) -> Result<Vec<NamedAction>, Error> {
    let found = match fields.get("moves") {
        Some(Value::String(names)) => names.split_whitespace().map(|name| (name.to_owned(), None)).collect(),
        _ => names(fields, "moves", players)?,
    };
    if found.len() > limits.moves {
        return Err(Error::field("moves", format_args!("expected at most {}, got {}", limits.moves, found.len())));
    }
    Ok(found)
}

/// Names of actions; also as [player, name], for one of so many players.
fn names(fields: &Object, path: &str, players: usize) -> Result<Vec<NamedAction>, Error> {
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
fn turns(fields: &Object, moves: usize, limits: &Limits) -> Result<Vec<usize>, Error> {
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
        let problem = format_args!("expected from 1 to {}, got {}", limits.turns, turns.len());
        return Err(Error::field("analyzeTurns", problem));
    }
    Ok(turns)
}

/// The positions after so many moves, in the order of `turns`. `first` is to move at the first one.
fn walk<P: Position>(
    start: P,
    moves: &[NamedAction],
    turns: &[usize],
    first: Option<Player>,
) -> Result<Vec<(usize, Line<P>)>, Error> {
    let mut order = vec![None; moves.len() + 1];
    turns.iter().enumerate().for_each(|(index, &turn)| order[turn] = Some(index));
    let (mut line, mut positions) = (Line::new(start), Vec::new());
    for (turn, &index) in order.iter().enumerate() {
        if index.is_some() {
            line.go_on(first.filter(|_| turn == 0));
            positions.push((turn, line.clone()));
        }
        if let Some(named) = moves.get(turn) {
            play(&mut line, turn, named)?;
        }
    }
    positions.sort_by_key(|&(turn, _)| order[turn]);
    Ok(positions)
}

/// Plays a move; `count` moves were played before it.
fn play<P: Position>(line: &mut Line<P>, count: usize, (name, player): &NamedAction) -> Result<(), Error> {
    line.play(name, *player).map_err(|error| Error::field(format!("moves[{count}]"), error))
}

/// One of three words. Also a number, as KataGo has it: a larger one goes first, and 0 is usual.
fn priority(fields: &Object) -> Result<Priority, Error> {
    match fields.get("priority") {
        None => Ok(Priority::Play),
        Some(Value::Number(number)) if !number.is_f64() => {
            let is_low = number.as_i64().is_some_and(|number| number < 0);
            Ok(if is_low { Priority::Analysis } else { Priority::Play })
        }
        Some(value) => Ok(match one_of(value, "priority", &["play", "analysis", "ponder"])? {
            "play" => Priority::Play,
            "analysis" => Priority::Analysis,
            _ => Priority::Ponder,
        }),
    }
}

/// A name, cut where it is long.
pub(crate) fn cut(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// Notes by their names, each a list of texts.
pub(crate) fn notes_in(value: &Value, path: &str) -> Result<Notes, Error> {
    let mut notes = Notes::new();
    for (name, values) in object_of(value, path)? {
        notes.insert(name.clone(), texts_of(values, path)?);
    }
    Ok(notes)
}
