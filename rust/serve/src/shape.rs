//! What the response to a search is made of.

use std::collections::BTreeMap;

use serde::Serialize;

/// The answer to a query, or a report, about one position.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchResponse<'a> {
    pub(crate) id: &'a str,
    pub(crate) turn_number: usize,
    pub(crate) is_during_search: bool,
    // Not as messages of their own: KaTrain 1.20 takes each message of a query for an answer.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) warnings: &'a [String],
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub(crate) best: Option<String>,
    pub(crate) move_infos: Vec<MoveInfo>,
    pub(crate) root_info: RootInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<Policy>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveInfo {
    #[serde(rename = "move")]
    pub(crate) name: String,
    pub(crate) visits: u32,
    pub(crate) prior: f64,
    pub(crate) value: f64,
    /// For each player, where two do not share a zero sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lcb: Option<f64>,
    pub(crate) order: usize,
    pub(crate) pv: Vec<String>,
    /// `pv` in short names, for a query that asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pv_short: Vec<String>,
    /// Plies from there to a proven end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<u8>,
    #[serde(flatten)]
    pub(crate) katago: Option<KataGoFields>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RootInfo<'a> {
    Searched {
        player: usize,
        visits: u64,
        value: f64,
        /// As of a move.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<f64>,
        network: Option<&'a str>,
        reused: u64,
        stop: &'a str,
        #[serde(flatten)]
        katago: Option<KataGoFields>,
    },
    Over {
        player: Option<usize>,
        visits: u64,
        value: Option<f64>,
        #[serde(flatten)]
        outcome: Outcome,
        stop: &'static str,
    },
}

/// The outcome of a finished game, under the name of its kind; none before the end.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// To player 0 of two who share a zero sum.
    Outcome(Option<f32>),
    /// To each player.
    Outcomes(Option<Vec<f32>>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Policy {
    /// By the names of the actions.
    Named(BTreeMap<String, f64>),
    /// Of Go's points from the upper left on, and of the pass; -1 where no move is legal.
    Board(Vec<f64>),
}

/// KataGo's fields of a move and of the root.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KataGoFields {
    pub(crate) winrate: f64,
    pub(crate) utility: f64,
    pub(crate) score_lead: f64,
    pub(crate) score_mean: f64,
    pub(crate) score_selfplay: f64,
    pub(crate) score_stdev: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lcb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) utility_lcb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current_player: Option<&'static str>,
}

/// With six decimal places.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
