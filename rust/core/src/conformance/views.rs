//! What players of a game that hides something must be able to tell apart, over all lines of play of a walk.

use std::collections::HashMap;

use super::{Facts, Violation};
use crate::game::{Action, Turn};
use crate::rng::mix;

/// A player's view, by its number.
type View = (usize, u128);

/// A player's turn as it was first met with its view.
struct Met {
    actions: Vec<Action>,
    /// The observation.
    look: u64,
    /// What a person sees.
    shown: String,
    /// The player's view and action one decision before.
    before: Option<(u128, Action)>,
    line: Vec<Action>,
}

#[derive(Default)]
pub(super) struct Views {
    met: HashMap<View, Met>,
    /// The first view with a look.
    looks: HashMap<(usize, u64, Vec<Action>), u128>,
    /// On this line, each player's last view at a turn, and its action.
    last: HashMap<usize, (u128, Action)>,
}

impl Views {
    pub(super) fn restart(&mut self) {
        self.last.clear();
    }

    pub(super) fn play(&mut self, facts: &Facts, action: Action) {
        if let Turn::Player(player) = facts.turn
            && let Some(&view) = facts.views.get(player.index())
        {
            self.last.insert(player.index(), (view, action));
        }
    }

    /// Compares a position at the end of `line` with those of the same view, and gives a line to one that looks the same
    /// and has another view. `shown` is what a person in the place of the player to move sees.
    pub(super) fn meet<E>(
        &mut self,
        facts: &Facts,
        line: &[Action],
        shown: String,
    ) -> Result<Option<Vec<Action>>, Violation<E>> {
        let Turn::Player(player) = facts.turn else { return Ok(None) };
        let player = player.index();
        let Some(&view) = facts.views.get(player) else { return Ok(None) };
        let look = facts
            .observation
            .iter()
            .fold(0_u64, |look, value| mix(look.wrapping_add(1) ^ u64::from((value + 0.0).to_bits())));
        let before = self.last.get(&player).copied();
        let met = self.met.entry((player, view)).or_insert_with(|| Met {
            actions: facts.actions.clone(),
            look,
            shown: shown.clone(),
            before,
            line: line.to_vec(),
        });
        let broken = |rule, differ: &str, expected: &str| {
            let got = format!("two positions with one view_key of player {player}, which differ in {differ}");
            Err(Violation { other: Some(met.line.clone()), ..Violation::new(rule, got, expected) })
        };
        if met.actions != facts.actions {
            return broken("view", "the legal actions", "equal legal actions, or two view_keys");
        }
        if met.look != look {
            return broken("view", "the observation", "equal observations, or two view_keys");
        }
        if met.shown != shown {
            let differ = "what a person sees (render_view, or names of legal actions)";
            return broken("view", differ, "equal texts, or two view_keys");
        }
        if met.before != before {
            let differ = "what the player knew or did at its turn before";
            return broken("recall", differ, "a view_key of all that the player has seen and done (perfect recall)");
        }
        let first = *self.looks.entry((player, look, facts.actions.clone())).or_insert(view);
        Ok(self.met.get(&(player, first)).filter(|_| first != view).map(|other| other.line.clone()))
    }
}
