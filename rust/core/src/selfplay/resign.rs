//! When a player gives up a lost game, and which games are played on to see how often that would have been wrong.

use crate::game::{MAX_PLAYERS, Player};
use crate::search::{SearchResult, stream_for};

/// Tells the stream that picks control games from those of a game's plies.
const CONTROL: u64 = u64::MAX - 1;

/// When players resign: the rule, the share of control games and the aim of a threshold that keeps wrong resignations
/// rare are AlphaGo Zero's (Silver et al. 2017, Methods, "Self-play"); several searches in a row are KataGo's
/// (`resignConsecTurns`). Only of two players with a zero sum does one win where the other gives up: in other games nobody
/// resigns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resign {
    /// A search finds the position lost when the root's value and its most visited action's are both below this, for
    /// the player to move; -1: never.
    pub below: f64,
    /// A player resigns when so many of its own searches in a row found the position lost. Fast searches count like full
    /// ones: they say what the same network thinks, and control games show what comes of it. Opponents never resign.
    pub plies: u32,
    /// Share of games, drawn by (seed, game id), that are played to the end all the same.
    pub control: f64,
}

impl Resign {
    /// Nobody resigns.
    pub const NEVER: Self = Self { below: -1.0, plies: 1, control: 0.0 };

    /// Whether this game is played to the end whatever its searches find.
    #[must_use]
    pub fn is_control(&self, seed: u64, game_id: u64) -> bool {
        self.below > -1.0 && stream_for(seed, game_id, CONTROL).unit() < self.control
    }

    fn is_lost(&self, result: &SearchResult) -> bool {
        let best = result.actions.iter().position(|&action| Some(action) == result.action);
        best.is_some_and(|best| f64::from(result.value) < self.below && f64::from(result.q[best]) < self.below)
    }
}

/// How many of its last searches in a row each player found lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Streaks([u32; MAX_PLAYERS]);

impl Streaks {
    /// Takes a search of `player` into account; says whether it is time to resign.
    pub(crate) fn note(&mut self, rule: &Resign, player: Player, result: &SearchResult) -> bool {
        let streak = &mut self.0[player.index()];
        *streak = if rule.is_lost(result) { *streak + 1 } else { 0 };
        *streak >= rule.plies.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: f32, q: f32) -> SearchResult {
        // The best action is the second; what the first is worth does not matter.
        SearchResult { actions: vec![2, 5], q: vec![0.9, q], value, action: Some(5), ..SearchResult::default() }
    }

    #[test]
    fn a_player_resigns_after_its_own_lost_searches_in_a_row() {
        let rule = Resign { below: -0.5, plies: 3, control: 0.0 };
        let (lost, open) = (found(-0.6, -0.51), found(-0.6, -0.5));
        let mut streaks = Streaks::default();
        let mut note = |player, result: &SearchResult| streaks.note(&rule, player, result);
        for result in [&lost, &lost, &open, &lost, &lost] {
            assert!(!note(Player::One, result));
            assert!(!note(Player::Zero, &open), "the other player's searches do not count");
        }
        assert!(!note(Player::Zero, &lost));
        assert!(note(Player::One, &lost));
        assert!(!rule.is_lost(&found(-0.5, -0.9)));
        assert!(!rule.is_lost(&SearchResult { value: -1.0, ..SearchResult::default() }), "no action, no search");
        assert!(!Resign::NEVER.is_lost(&found(-1.0, -1.0)));
    }

    #[test]
    fn the_share_of_control_games_is_the_one_asked_for() {
        let count = |seed, control| {
            let rule = Resign { below: -0.9, plies: 1, control };
            (0..10_000).filter(|&game| rule.is_control(seed, game)).count()
        };
        assert!((900..1100).contains(&count(1, 0.1)), "{}", count(1, 0.1));
        assert_ne!(count(1, 0.1), count(2, 0.1));
        assert_eq!((count(1, 0.0), count(1, 1.0)), (0, 10_000));
        assert!(!(0..100).any(|game| Resign { control: 1.0, ..Resign::NEVER }.is_control(1, game)));
    }
}
