//! What a search can ask of a position, and the rules that each answer keeps by itself.

use super::Violation;
use crate::game::{Action, Game, Payoff, Player, Turn};

/// All that a search can ask of a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Whose turn it is.
    pub turn: Turn,
    /// The legal actions, or the outcomes of the roll.
    pub actions: Vec<Action>,
    /// The probabilities of a roll's outcomes.
    pub chances: Vec<f32>,
    /// Empty but at a player's turn.
    pub observation: Vec<f32>,
    /// At the end: one number a player, or player 0's with two players and zero sum.
    pub outcome: Option<Vec<f32>>,
    /// The position's number.
    pub key: u128,
    /// What each player knows; empty in a game that hides nothing.
    pub views: Vec<u128>,
}

impl Facts {
    /// Asks a position for everything.
    pub fn of<G: Game>(state: &G) -> Self {
        let turn = state.turn();
        // The old content of a buffer must not matter.
        let (mut actions, mut outcomes, mut observation) =
            (vec![Action::MAX; 3], vec![(Action::MAX, 1.0); 3], Vec::new());
        let mut outcome = None;
        match turn {
            Turn::Player(_) => {
                state.legal_actions(&mut actions);
                observation.resize(state.obs_shape().iter().product(), f32::NAN);
                state.encode(&mut observation);
                outcomes.clear();
            }
            Turn::Chance => {
                state.chance_outcomes(&mut outcomes);
                actions = outcomes.iter().map(|&(outcome, _)| outcome).collect();
            }
            Turn::Terminal => {
                let each = state.outcome().each();
                let told = if state.is_zero_sum() { &each.numbers()[..1] } else { each.numbers() };
                outcome = Some(told.to_vec());
                actions.clear();
                outcomes.clear();
            }
        }
        let chances = outcomes.into_iter().map(|(_, chance)| chance).collect();
        let players = &Player::ALL[..state.num_players()];
        let views = players.iter().filter_map(|&player| state.view_key(player)).collect();
        Self { turn, actions, chances, observation, outcome, key: state.key(), views }
    }

    /// The legal actions, or the outcomes that can come.
    pub fn playable(&self) -> Vec<Action> {
        let can_come = |index: usize| self.turn != Turn::Chance || self.chances[index] > 0.0;
        (0..self.actions.len()).filter(|&index| can_come(index)).map(|index| self.actions[index]).collect()
    }

    /// The names of the facts that differ.
    pub fn differences(&self, other: &Self) -> String {
        let mut found = Vec::new();
        let mut note = |differs: bool, name: &str, mine: String, theirs: String| {
            if differs {
                found.push(format!("{name} ({} and {})", short(&mine), short(&theirs)));
            }
        };
        let actions = if self.turn == Turn::Chance { "chance outcomes" } else { "legal actions" };
        note(self.turn != other.turn, "turn", self.turn.to_string(), other.turn.to_string());
        note(self.actions != other.actions, actions, format!("{:?}", self.actions), format!("{:?}", other.actions));
        note(self.chances != other.chances, "chances", format!("{:?}", self.chances), format!("{:?}", other.chances));
        let outcome = |facts: &Self| facts.outcome.as_deref().map_or_else(|| "none".to_owned(), shown);
        note(self.outcome != other.outcome, "outcome", outcome(self), outcome(other));
        note(self.key != other.key, "key", self.key.to_string(), other.key.to_string());
        note(self.views != other.views, "view_key", format!("{:?}", self.views), format!("{:?}", other.views));
        if self.observation != other.observation {
            found.push("observation".to_owned());
        }
        found.join(", ")
    }

    /// Checks each reply by itself.
    pub(super) fn check<E>(&self, num_actions: usize, num_players: usize, hides: bool) -> Result<(), Violation<E>> {
        let broken = |rule, got: String, expected: String| Err(Violation::new(rule, got, expected));
        let actions = short(&format!("{:?}", self.actions));
        if self.views.len() != if hides { num_players } else { 0 } {
            let got = format!("a view_key for {} of {num_players} players", self.views.len());
            return broken(
                "view-type",
                got,
                "one for each player in all positions, or for nobody in all positions".into(),
            );
        }
        match self.turn {
            Turn::Player(player) => {
                if player.index() >= num_players {
                    let expected = format!("players 0 to {}, as num_players is {num_players}", num_players - 1);
                    return broken("turn", format!("the turn of player {}", player.index()), expected);
                }
                let expected = format!("at least one, as it is the turn of player {}", player.index());
                let Some(&last) = self.actions.iter().max() else {
                    return broken("legal-none", "no legal action".into(), expected);
                };
                if last as usize >= num_actions {
                    let expected = format!("actions from 0 to {}, as num_actions is {num_actions}", num_actions - 1);
                    return broken("legal-range", format!("action {last}"), expected);
                }
                if !self.actions.is_sorted_by(|a, b| a < b) {
                    let rule = if self.actions.is_sorted() { "legal-twice" } else { "legal-order" };
                    return broken(rule, actions, "each legal action once, ascending".into());
                }
                if let Some(number) = self.observation.iter().find(|number| !number.is_finite()) {
                    return broken("encode-finite", format!("the number {number}"), "finite numbers".into());
                }
            }
            Turn::Chance => {
                if self.actions.is_empty() || !self.actions.is_sorted_by(|a, b| a < b) {
                    return broken("chance-type", actions, "outcomes ascending, each once, not empty".into());
                }
                let chances = short(&format!("{:?}", self.chances));
                if !self.chances.iter().all(|chance| (0.0..=1.0).contains(chance)) {
                    return broken("chance-type", format!("probabilities {chances}"), "them from 0 to 1".into());
                }
                let sum: f64 = self.chances.iter().map(|&chance| f64::from(chance)).sum();
                if (sum - 1.0).abs() > 1e-4 {
                    return broken("chance-sum", format!("{sum:.6} as the sum of {chances}"), "1".into());
                }
            }
            Turn::Terminal => {
                let told = self.outcome.as_deref().unwrap_or(&[]);
                if told.is_empty() || !told.iter().all(|number| (-1.0..=1.0).contains(number)) {
                    let expected = match told.len() {
                        0 | 1 if num_players == 2 => "a number from -1 to 1, for player 0",
                        _ => "a number from -1 to 1 for each player",
                    };
                    let got = if let [only] = told { only.to_string() } else { shown(told) };
                    return broken("outcome", got, expected.into());
                }
            }
        }
        Ok(())
    }
}

/// An outcome as a sentence has it.
fn shown(outcome: &[f32]) -> String {
    match outcome {
        [only] => format!("{only:?}"),
        all => format!("{all:?}"),
    }
}

pub(super) fn short(text: &str) -> String {
    const MOST: usize = 200;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).collect::<String>() + "..." }
}
