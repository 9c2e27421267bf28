//! KataGo's names of fields, for queries about Go (its document Analysis_Engine.md): its object is translated before the
//! reader, and its fields are added after the answer. Warnings name what azpy does not support.

use std::borrow::Cow;

use azpy_core::game::{Player, Turn};
use azpy_core::text::Position;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::line::{go_board, go_name, is_go};
use crate::object::{Limits, Object, expected, list_in, list_of, number, object_of, one_of, text, whole};
use crate::query::{NamedAction, cut};
use crate::shape::{KataGoFields, Policy, RootInfo, SearchResponse, rounded};

const PLAYERS: [&str; 4] = ["b", "black", "w", "white"];
/// The columns of Go as GTP names them: without I.
const COLUMNS: &str = "ABCDEFGHJKLMNOPQRST";
/// The scoreLead at odds of e : 1.
const POINTS: f64 = 4.0;

/// The fields that say where the moves begin.
const BOARD: [&str; 5] = ["boardXSize", "boardYSize", "komi", "initialStones", "initialPlayer"];
/// KataGo's other fields.
const OTHERS: &str = "maxVisits rules overrideSettings includeOwnership includeMovesOwnership \
    includePVVisits _kt_continuous";
/// KataGo's rules that azpy plays, besides the ko rule. The names come in pairs: of queries and of KataGo's answers.
const PLAYED: [(&str, &str, &str); 6] = [
    ("scoring", "scoringRule", "AREA"),
    ("tax", "taxRule", "NONE"),
    (BONUS, "whiteHandicapBonusRule", "0"),
    ("suicide", "multiStoneSuicideLegal", "false"),
    ("hasButton", "hasButton", "false"),
    ("friendlyPassOk", "friendlyPassOk", "false"),
];
const BONUS: &str = "whiteHandicapBonus";
/// The other settings of KataGo's named area-scoring rules (its document GTP_Extensions.md).
const NAMED: [(&str, &[(&str, &str)]); 7] = [
    ("tromp-taylor", &[("ko", "POSITIONAL"), ("suicide", "true")]),
    ("chinese", &[("ko", "SIMPLE"), (BONUS, "N")]),
    ("chinese-kgs", &[("ko", "POSITIONAL"), (BONUS, "N")]),
    ("chinese-ogs", &[("ko", "POSITIONAL"), (BONUS, "N")]),
    ("aga", &[("ko", "SITUATIONAL"), (BONUS, "N-1")]),
    ("bga", &[("ko", "SITUATIONAL"), (BONUS, "N-1")]),
    ("new-zealand", &[("ko", "SITUATIONAL"), ("suicide", "true")]),
];
/// The settings of `overrideSettings` that have an effect.
const SETTINGS: [&str; 2] = ["maxTime", "reportAnalysisWinratesAs"];

/// Whose view winrates and leads are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Player(Player),
    ToMove,
}

/// An object in azpy's own fields.
pub(crate) struct Translated<'a, P> {
    pub(crate) fields: Cow<'a, Object>,
    /// Where the moves begin if the fields name no position.
    pub(crate) start: P,
    /// The player to move before the first move, if given.
    pub(crate) first: Option<Player>,
    /// Ignored fields, with the reason.
    pub(crate) ignored: Vec<String>,
    /// None in other games than Go.
    pub(crate) view: Option<View>,
}

/// Translates an object into azpy's fields; in other games than Go the object is unchanged.
pub(crate) fn translated<'a, P: Position>(
    fields: &'a Object,
    start: &P,
    limits: &Limits,
) -> Result<Translated<'a, P>, Error> {
    let fields = Cow::Borrowed(fields);
    let mut translated = Translated { fields, start: start.clone(), first: None, ignored: Vec::new(), view: None };
    if is_go(start) {
        translate(&mut translated, limits)?;
    }
    Ok(translated)
}

fn translate<P: Position>(translated: &mut Translated<'_, P>, limits: &Limits) -> Result<(), Error> {
    let Translated { fields, start, first, ignored, view } = translated;
    let fields = fields.to_mut();
    *first = fields.optional("initialPlayer", player)?;
    let is_said = BOARD.iter().any(|name| fields.get(name).is_some());
    if is_said && fields.get("position").is_none() {
        *start = board(fields, start, *first)?;
    }
    if let Some(Value::Array(moves)) = fields.get("moves") {
        let moved = moves.iter().enumerate().map(|(index, value)| moved(value, &format!("moves[{index}]")));
        let moved = moved.collect::<Result<Vec<_>, _>>()?;
        *first = first.or(moved.first().and_then(|&(_, player)| player));
        fields.0.insert("moves".to_owned(), moved.into_iter().map(named).collect());
    }
    for path in ["allowMoves", "avoidMoves"] {
        let mut names = Vec::new();
        for (index, value) in list_in(fields, path)?.iter().enumerate() {
            names.extend(chosen(value, path, index, ignored)?);
        }
        fields.0.insert(path.to_owned(), names.into_iter().map(named).collect());
    }
    if let Some(visits) = fields.get("maxVisits") {
        if fields.get("simulations").is_some() {
            return Err(Error::field("simulations and maxVisits are the same", "give one of them"));
        }
        let visits = whole(visits, "maxVisits", 1, limits.simulations.into())?;
        fields.0.insert("simulations".to_owned(), visits.into());
    }
    let none = Map::new();
    let settings = fields.optional("overrideSettings", object_of)?.unwrap_or(&none);
    let seen = settings.get("reportAnalysisWinratesAs").map_or(Ok("BLACK"), |value| {
        one_of(value, "overrideSettings.reportAnalysisWinratesAs", &["BLACK", "WHITE", "SIDETOMOVE"])
    })?;
    *view = Some(match seen {
        "BLACK" => View::Player(Player::Zero),
        "WHITE" => View::Player(Player::One),
        _ => View::ToMove,
    });
    say_ignored(fields, settings, start, ignored);
    if let Some(time) = settings.get("maxTime") {
        let seconds = number(time, "overrideSettings.maxTime", 0.001, 1e30)?.min(limits.seconds);
        if fields.get("seconds").is_none() {
            fields.0.insert("seconds".to_owned(), seconds.into());
        }
    }
    fields.0.entry("includeLcb").or_insert(true.into()); // KataGo's answers always have it
    for name in BOARD.into_iter().chain(OTHERS.split(' ')) {
        fields.0.remove(name);
    }
    Ok(())
}

/// A name of an action in azpy's fields.
fn named((name, player): NamedAction) -> Value {
    player.map_or_else(|| name.clone().into(), |player| json!([player.index(), name]))
}

/// The board that size, komi, stones and player describe.
fn board<P: Position>(fields: &Object, start: &P, first: Option<Player>) -> Result<P, Error> {
    let mut sides = Vec::new();
    for name in ["boardXSize", "boardYSize"] {
        sides.extend(fields.optional(name, |value, name| whole(value, name, 2, 25))?);
    }
    if let [side, .., other] = sides[..]
        && side != other
    {
        let problem = format_args!("expected a square board, got {side} x {other}");
        return Err(Error::field("boardXSize, boardYSize", problem));
    }
    let size = sides.first().copied().unwrap_or(start.obs_shape()[1] as i64);
    let mut params = vec![("size", size.to_string())];
    if let Some(komi) = fields.get("komi") {
        params.push(("komi", number(komi, "komi", -1000.0, 1000.0)?.to_string()));
    }
    let mut stones = [Vec::new(), Vec::new()];
    for (index, value) in list_in(fields, "initialStones")?.iter().enumerate() {
        let path = format!("initialStones[{index}]");
        let (name, player) = moved(value, &path)?;
        let (Some(player), Some(point)) = (player, sgf_point(&name, size as usize)) else {
            return Err(expected(&path, "a stone such as [\"B\",\"D4\"]", value));
        };
        stones[player.index()].push(point);
    }
    // Stones of a handicap.
    let usual = if stones[0].len() > 1 && stones[1].is_empty() { Player::One } else { Player::Zero };
    let board = || go_board(&start.start_with(&params).map_err(Error::game)?, &stones, first.unwrap_or(usual));
    board().map_err(|error| Error::field("boardXSize, komi, initialStones", error))
}

/// The SGF name of a vertex such as D4; `None` if it is not on the board.
fn sgf_point(vertex: &str, size: usize) -> Option<String> {
    let vertex = vertex.to_uppercase();
    let column = COLUMNS.find(vertex.chars().next()?)?;
    let row = Some(&vertex[1..]).filter(|row| row.len() <= 2 && row.bytes().all(|byte| byte.is_ascii_digit()))?;
    let row: usize = row.parse().ok()?;
    let letter = |index: usize| char::from(b'a' + index as u8);
    let is_there = column < size && (1..=size).contains(&row);
    is_there.then(|| format!("{}{}", letter(column), letter(size - row)))
}

/// A player as KataGo names it, or as azpy does, 0 or 1.
fn player(value: &Value, path: &str) -> Result<Player, Error> {
    match value.as_u64() {
        Some(0) => return Ok(Player::Zero),
        Some(1) => return Ok(Player::One),
        _ => {}
    }
    let lower = value.as_str().map_or_else(|| value.clone(), |name| name.to_lowercase().into());
    let is_black = one_of(&lower, path, &PLAYERS)?.starts_with('b');
    Ok(if is_black { Player::Zero } else { Player::One })
}

/// A move and its player: `["B","D4"]`, or `"D4"` for the player to move.
fn moved(value: &Value, path: &str) -> Result<NamedAction, Error> {
    if let Some(name) = value.as_str() {
        return Ok((name.to_owned(), None));
    }
    let [who, name] = list_of(value, path)? else {
        return Err(expected(path, "a move such as [\"B\",\"D4\"] or \"D4\"", value));
    };
    let name = text(name, &format!("{path}[1]"))?.to_owned();
    Ok((name, Some(player(who, &format!("{path}[0]"))?)))
}

/// The moves of `{"player": "B", "moves": [...], "untilDepth": N}`, each with the player; or one move.
fn chosen(value: &Value, list: &str, index: usize, ignored: &mut Vec<String>) -> Result<Vec<NamedAction>, Error> {
    let path = format!("{list}[{index}]");
    let Some(fields) = value.as_object() else {
        let (name, player) = moved(value, &path)?;
        return Ok(vec![(go_name(&name), player)]);
    };
    if let Some(depth) = fields.get("untilDepth")
        && whole(depth, &format!("{path}.untilDepth"), 1, i64::MAX)? > 1
    {
        ignored.push(format!("{list}.untilDepth: azpy only restricts the first move, as untilDepth 1 does"));
    }
    let side = player(fields.get("player").unwrap_or(&Value::Null), &format!("{path}.player"))?;
    let path = format!("{path}.moves");
    let moves = list_of(fields.get("moves").unwrap_or(&Value::Null), &path)?.iter().enumerate();
    moves.map(|(index, one)| Ok((go_name(text(one, &format!("{path}[{index}]"))?), Some(side)))).collect()
}

/// Warns of fields that are ignored, with the reason.
fn say_ignored<P: Position>(fields: &Object, settings: &Map<String, Value>, start: &P, said: &mut Vec<String>) {
    // A field that is false has no effect in KataGo either.
    let is_on = |value: &Value| *value != Value::Bool(false) && value.as_f64() != Some(0.0);
    for (name, why) in [
        ("includeOwnership", "azpy's networks do not predict ownership"),
        ("includeMovesOwnership", "azpy's networks do not predict ownership"),
        ("includePVVisits", "azpy does not report the visits of later moves"),
    ] {
        said.extend(fields.get(name).filter(|value| is_on(value)).map(|_| format!("{name}: {why}")));
    }
    if let Some(rules) = fields.get("rules") {
        say_rules(rules, start, has_handicap(fields), said);
    }
    if fields.get("position").is_some() {
        let named = BOARD.iter().filter(|&&name| name != "initialPlayer" && fields.get(name).is_some());
        said.extend(named.map(|name| format!("{name}: ignored, because the position sets it")));
    }
    if fields.get("seconds").is_some() && settings.contains_key("maxTime") {
        said.push("overrideSettings.maxTime: ignored, because seconds is given".to_owned());
    }
    let unknown = settings.iter().filter(|(name, value)| !SETTINGS.contains(&name.as_str()) && is_on(value));
    said.extend(unknown.map(|(name, _)| format!("overrideSettings.{}: azpy does not have this setting", cut(name))));
}

/// Names the rules, given as an object or a name, that azpy does not play. Without a handicap no bonus counts.
fn say_rules<P: Position>(rules: &Value, start: &P, has_handicap: bool, said: &mut Vec<String>) {
    let ko = if start.game().contains("superko=0") { "SIMPLE" } else { "POSITIONAL" };
    let played = [("ko", "koRule", ko)].into_iter().chain(PLAYED);
    let wanted = match rules {
        Value::Object(wanted) => Some(Cow::Borrowed(wanted)),
        Value::String(name) => named_rules(name).map(Cow::Owned),
        _ => None,
    };
    let differs = |&(name, other, played): &(&str, &str, &str)| {
        // A name that is not of the table may stand for any rules.
        let Some(wanted) = &wanted else { return true };
        let value = wanted.get(name).or_else(|| wanted.get(other)).filter(|_| name != BONUS || has_handicap);
        value.is_some_and(|value| !value.to_string().trim_matches('"').eq_ignore_ascii_case(played))
    };
    let other: Vec<_> = played.clone().filter(differs).map(|(name, _, played)| format!("{name} {played}")).collect();
    if !other.is_empty() {
        said.push(format!("rules: azpy plays {}: other rules are not played", other.join(", ")));
    }
    let is_known = |key: &str| played.clone().any(|(name, other, _)| key == name || key == other);
    let unknown = wanted.iter().flat_map(|wanted| wanted.keys()).filter(|key| !is_known(key));
    said.extend(unknown.map(|key| format!("rules.{}: azpy does not have this rule", cut(key))));
}

/// The rules of a name, which may be written with blanks or underscores too.
fn named_rules(name: &str) -> Option<Map<String, Value>> {
    let name = name.to_lowercase().replace(['_', ' '], "-");
    let (_, rules) = NAMED.iter().find(|(one, _)| *one == name)?;
    Some(rules.iter().map(|&(rule, value)| (rule.to_owned(), value.into())).collect())
}

/// Whether Black begins with stones of a handicap, as far as is known: a position in azpy's own field may have some.
fn has_handicap(fields: &Object) -> bool {
    let stones = list_in(fields, "initialStones").unwrap_or_default();
    let is_black = |stone| moved(stone, "").is_ok_and(|(_, player)| player == Some(Player::Zero));
    fields.get("position").is_some() || (stones.len() > 1 && stones.iter().all(is_black))
}

/// Adds KataGo's fields to an answer.
///
/// azpy's networks know no score. `scoreLead` is the lead that has the winrate's odds, at e : 1 for 4 points.
pub(crate) fn translate_back<P: Position>(response: &mut SearchResponse<'_>, state: &P, view: View) {
    let Turn::Player(mover) = state.turn() else { return };
    let side = match view {
        View::Player(player) if player != mover => -1.0,
        _ => 1.0,
    };
    let translated = |value: f64, lcb: Option<f64>| {
        let winrate = (1.0 + side * value) / 2.0;
        let odds = winrate.clamp(0.001, 0.999);
        let lead = (POINTS * (odds / (1.0 - odds)).ln() * 1e3).round() / 1e3;
        KataGoFields {
            winrate: rounded(winrate),
            utility: rounded(side * value),
            score_lead: lead,
            score_mean: lead,
            score_selfplay: lead,
            score_stdev: 0.0,
            // Lower is worse for the player to move, in any view.
            lcb: lcb.map(|lcb| rounded((1.0 + side * lcb) / 2.0)),
            utility_lcb: lcb.map(|lcb| rounded(side * lcb)),
            current_player: None,
        }
    };
    for one in &mut response.move_infos {
        one.katago = Some(translated(one.value, one.lcb.take()));
    }
    if let RootInfo::Searched { value, katago, .. } = &mut response.root_info {
        let current_player = Some(["B", "W"][mover.index()]);
        *katago = Some(KataGoFields { current_player, ..translated(*value, Some(*value)) });
    }
    if let Some(Policy::Named(priors)) = &response.policy {
        let size = state.obs_shape()[1];
        let points =
            (1..=size).rev().flat_map(|row| COLUMNS.chars().take(size).map(move |column| format!("{column}{row}")));
        let prior = |name: String| priors.get(&name).copied().unwrap_or(-1.0);
        response.policy = Some(Policy::Board(points.chain(["pass".to_owned()]).map(prior).collect()));
    }
}
