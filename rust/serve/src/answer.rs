//! Responses to a client: the result of a search, and the content of the board.

use std::fmt::Write;

use azpy_core::game::{Action, Payoff, Player as Side, Turn, legal_of, rolls_of};
use azpy_core::look::Variation;
use azpy_core::picture::Touch;
use azpy_core::text::Position;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::katago;
use crate::object::{Limits, Object, texts_of};
use crate::player::Player;
use crate::query::{Query, notes_in, read_position};
use crate::searcher::SearchReport;
use crate::shape::{MoveInfo, Outcome, Policy, RootInfo, SearchResponse, rounded};

/// Standard errors of a lower confidence bound: 95 percent.
const DEVIATIONS: f64 = 1.96;

impl<P: Position> Query<P> {
    /// The answer about a position that is over, as a line of JSON; nothing for another one.
    ///
    /// # Arguments
    /// - `turn`: the number of moves before the position.
    /// - `warnings`: sentences that go with it.
    ///
    /// # Errors
    /// If a roll is due, which no search can begin with.
    pub fn end(&self, turn: usize, state: &P, warnings: &[String]) -> Result<Option<String>, Error> {
        match state.turn() {
            Turn::Player(_) => Ok(None),
            Turn::Chance => Err(Error::RollDue(turn)),
            Turn::Terminal => {
                let (outcome, stop) = (outcome(state), "game over");
                let over = RootInfo::Over { player: None, visits: 0, value: None, outcome, stop };
                Ok(Some(line_of(&self.response(turn, false, warnings, over))))
            }
        }
    }

    /// The answer about a search of a position, or a report while it goes on, as a line of JSON.
    ///
    /// # Arguments
    /// - `turn`: the number of moves before the position.
    /// - `warnings`: sentences that go with it.
    /// - `best`: the action to play.
    /// - `network`: the hash of the player's model, if there is one.
    #[expect(clippy::too_many_arguments, reason = "the fields of one response")]
    pub fn answer(
        &self,
        turn: usize,
        state: &P,
        during: bool,
        warnings: &[String],
        found: &SearchReport,
        best: Action,
        network: Option<&str>,
    ) -> String {
        let result = &found.result;
        let visits = result.visits.iter().map(|&visits| u64::from(visits)).sum();
        let root = RootInfo::Searched {
            player: if let Turn::Player(player) = state.turn() { player.index() } else { 0 },
            visits,
            value: rounded(result.value.into()),
            values: each(state, &result.values),
            network,
            reused: visits.saturating_sub(found.simulations),
            stop: result.stop.name(),
            katago: None,
        };
        let mut response = self.response(turn, during, warnings, root);
        response.best = Some(state.action_name(best));
        let (first, others): (Vec<&Variation>, Vec<&Variation>) =
            found.lines.iter().partition(|line| line.actions.first() == result.action.as_ref());
        let lines = first.into_iter().chain(others).enumerate();
        response.move_infos = lines.filter_map(|(order, line)| self.move_info(state, order, line, found)).collect();
        if self.policy {
            let priors = result.actions.iter().zip(&result.priors);
            let named = priors.map(|(&action, &prior)| (state.action_name(action), rounded(prior.into())));
            response.policy = Some(Policy::Named(named.collect()));
        }
        if let Some(view) = self.view {
            katago::translate_back(&mut response, state, view);
        }
        line_of(&response)
    }

    fn move_info(&self, state: &P, order: usize, line: &Variation, found: &SearchReport) -> Option<MoveInfo> {
        let (result, mut now) = (&found.result, state.clone());
        let index = result.actions.binary_search(line.actions.first()?).ok()?;
        let mut pv = Vec::new();
        let mut pv_short = Vec::new();
        for &action in line.actions.iter().take(self.pv_length) {
            if self.short_names {
                pv_short.push(now.short_name(action));
            }
            pv.push(now.action_name(action));
            now.play(action);
        }
        Some(MoveInfo {
            name: pv.first()?.clone(),
            visits: line.visits,
            prior: rounded(result.priors[index].into()),
            value: rounded(line.q.into()),
            values: each(state, if line.values.is_empty() { std::slice::from_ref(&line.q) } else { &line.values }),
            lcb: found.standard_errors.as_ref().map(|errors| rounded(lower_bound(line.q, errors[index]))),
            order,
            pv,
            pv_short,
            proof: result.proofs[index].checked_sub(1),
            katago: None,
        })
    }

    fn response<'a>(
        &'a self,
        turn_number: usize,
        is_during_search: bool,
        warnings: &'a [String],
        root_info: RootInfo<'a>,
    ) -> SearchResponse<'a> {
        let (id, move_infos) = (&*self.id, Vec::new());
        SearchResponse { id, turn_number, is_during_search, warnings, best: None, move_infos, root_info, policy: None }
    }
}

/// Values for each player, of a game in which they do not follow from one.
fn each<P: Position>(state: &P, values: &[f32]) -> Vec<f64> {
    if state.is_zero_sum() { Vec::new() } else { values.iter().map(|&value| rounded(value.into())).collect() }
}

/// The outcome of a position where the game is over.
pub(crate) fn outcome<P: Position>(state: &P) -> Outcome {
    let each = (state.turn() == Turn::Terminal).then(|| state.outcome().each());
    if state.is_zero_sum() {
        Outcome::Outcome(each.map(|each| each.of(Side::Zero)))
    } else {
        Outcome::Outcomes(each.map(|each| each.numbers().to_vec()))
    }
}

/// A value that an action has with 97.5 percent at least; -1 where its standard error is not known.
fn lower_bound(value: f32, error: f32) -> f64 {
    let bound = f64::from(value) - DEVIATIONS * f64::from(error);
    if bound.is_nan() { -1.0 } else { bound.max(-1.0) }
}

/// The response to an action: the `more` fields behind the action's name, as a line of JSON.
pub(crate) fn action_response(fields: &Object, more: impl Serialize) -> String {
    #[derive(Serialize)]
    struct ActionResponse<'a, T> {
        id: Option<&'a Value>,
        action: Option<&'a Value>,
        #[serde(flatten)]
        more: T,
    }

    line_of(&ActionResponse { id: fields.get("id"), action: fields.get("action"), more })
}

/// One line of ASCII, so that every reader finds the same line ends. The types of this crate have texts as keys, and
/// numbers that are finite, so they can be written.
pub(crate) fn line_of(said: &impl Serialize) -> String {
    let line = serde_json::to_string(said).unwrap_or_default();
    let mut ascii = String::with_capacity(line.len());
    for letter in line.chars() {
        if letter.is_ascii() && letter != '\x7f' {
            ascii.push(letter);
        } else {
            // Only texts have such letters.
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

/// A position for display.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShowResponse {
    turn_number: usize,
    /// None at a roll and at the end.
    player: Option<usize>,
    #[serde(flatten)]
    outcome: Outcome,
    /// The result in words; none before the end.
    result: Option<String>,
    svg: String,
    /// What notes ask to be drawn on the picture: shape, text and places.
    marks: Vec<(&'static str, String, Vec<Area>)>,
    /// None if the game has no notation of positions. Of chess a FEN.
    text: Option<String>,
    /// The points that White gets in Go.
    komi: Option<f32>,
    /// The men that each player took since the start.
    captured: Vec<String>,
    /// Words beside the name of each player, such as its points.
    counts: Vec<String>,
    /// All places of the picture.
    places: Vec<Area>,
    /// The places where men can be marked as dead, and the marked ones, if `dead` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    men: Option<Vec<Area>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<Vec<String>>,
    actions: Vec<ShownAction>,
    rolls: Vec<ShownRoll>,
}

#[derive(Serialize)]
struct ShownAction {
    name: String,
    short: String,
    /// The places of the picture to touch one after the other.
    touches: Vec<Area>,
}

/// [place, x, y, width, height] in the picture's units.
type Area = (String, f64, f64, f64, f64);

fn area(touch: Touch) -> Area {
    let [x, y, width, height] = touch.rect;
    (touch.place, x, y, width, height)
}

#[derive(Serialize)]
struct ShownRoll {
    name: String,
    probability: f32,
}

/// The board after an object's moves, and the legal actions there, as a line of JSON.
///
/// # Errors
/// See [`Query::read`].
pub fn show<P: Position>(fields: &Object, player: &Player<P>, limits: &Limits) -> Result<String, Error> {
    let (turn_number, line) = read_position(fields, player, limits)?;
    let (captured, mut state) = (line.captured(), line.state);
    let (mut men, mut dead) = (None, None);
    if let Some(places) = fields.optional("dead", texts_of)? {
        let over = state.without_dead(&places);
        let over = over.ok_or_else(|| Error::field("dead", "expected a game of Go that ended by two passes"))?;
        let there: Vec<String> = state.on_board().into_iter().map(|(place, _)| place).collect();
        let men_of = state.places().into_iter().filter(|touch| there.contains(&touch.place));
        men = Some(men_of.map(area).collect());
        let left: Vec<String> = over.on_board().into_iter().map(|(place, _)| place).collect();
        dead = Some(there.into_iter().filter(|place| !left.contains(place)).collect());
        state = over;
    }
    let notes = fields.optional("notes", notes_in)?;
    let marks = notes.map_or(Vec::new(), |notes| state.marks(&notes));
    let action = |action| ShownAction {
        name: state.action_name(action),
        short: state.short_name(action),
        touches: state.touches(action).into_iter().map(area).collect(),
    };
    let roll = |(outcome, probability)| ShownRoll { name: state.action_name(outcome), probability };
    let shown = ShowResponse {
        turn_number,
        player: match state.turn() {
            Turn::Player(player) => Some(player.index()),
            _ => None,
        },
        outcome: outcome(&state),
        result: (state.turn() == Turn::Terminal).then(|| state.result_text()),
        svg: state.to_svg(),
        marks: marks
            .into_iter()
            .map(|mark| (mark.shape, mark.text, mark.places.into_iter().map(area).collect()))
            .collect(),
        text: state.fen().or_else(|| state.to_text()),
        komi: state.komi(),
        captured,
        counts: state.counts(),
        places: state.places().into_iter().map(area).collect(),
        men,
        dead,
        actions: legal_of(&state).into_iter().map(action).collect(),
        rolls: rolls_of(&state).into_iter().map(roll).collect(),
    };
    Ok(action_response(fields, shown))
}
