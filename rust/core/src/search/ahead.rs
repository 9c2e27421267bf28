//! A look ahead from a new position: does the game end within a few plies, whatever the other player does?
//!
//! Lines are played by the rules alone, so a leaf with such an end needs no evaluation (Baier and Winands 2015,
//! MCTS-minimax hybrids, in the selection and expansion phase). Only whole wins and losses are found: one reply that
//! leaves the end open is enough to give a line up, which keeps the look cheap. A roll leaves the end open.
//!
//! A look goes one ply deeper at a time, so it finds the soonest end. A player who took any win within the plies could
//! put the win off for ever.
//!
//! Of one player who looks ahead, a whole win is the best score and a whole loss the worst one, or a score above the
//! score to beat and one below it. With three and more players a loss of one says nothing of who wins, so no look is made.
//!
//! `memory` has room for each ply of a line, with any content.

use crate::config::SearchConfig;
use crate::game::{Action, Game, Payoff, Player, Pov, PovValue, Turn, Value};

/// A ply of a line: what can be played, and the position after one of that.
#[derive(Clone, Debug)]
pub(super) struct Ply<G> {
    actions: Vec<Action>,
    next: Option<G>,
}

impl<G: Game> Ply<G> {
    pub(super) fn new() -> Self {
        Self { actions: Vec::new(), next: None }
    }

    pub(super) fn clear(&mut self) {
        self.next = None;
    }
}

/// Who wins, as the value for player 0, and in how many plies; `None` if lines of `memory.len()` plies do not tell.
/// `player` is to move in `state`.
pub(super) fn forced_end<G: Game>(
    state: &G,
    player: Player,
    config: &SearchConfig,
    memory: &mut [Ply<G>],
) -> Option<(Value, usize)> {
    (1..=memory.len()).find_map(|plies| {
        let memory = &mut memory[..plies];
        if wins(state, player, config, memory).is_some() {
            return Some((PovValue(1.0).absolute(player), plies));
        }
        loses(state, player, config, memory).then(|| (PovValue(-1.0).absolute(player), plies))
    })
}

/// The action with which the player to move forces the soonest win within `memory.len()` plies.
pub(super) fn winning_action<G: Game>(
    state: &G,
    player: Player,
    config: &SearchConfig,
    memory: &mut [Ply<G>],
) -> Option<Action> {
    (1..=memory.len()).find_map(|plies| wins(state, player, config, &mut memory[..plies]))
}

/// An action with which the player to move forces a win within `memory.len()` plies.
fn wins<G: Game>(state: &G, player: Player, config: &SearchConfig, memory: &mut [Ply<G>]) -> Option<Action> {
    let (Ply { actions, next }, deeper) = memory.split_first_mut()?;
    state.legal_actions(actions);
    let next = next.get_or_insert_with(|| state.clone());
    actions.iter().copied().find(|&action| match next.arrive(state, &[action], None) {
        Turn::Terminal => config.outcome(next).of(player) == 1.0,
        Turn::Player(other) if other == player => wins(next, player, config, deeper).is_some(),
        Turn::Player(other) => loses(next, other, config, deeper),
        Turn::Chance => false,
    })
}

/// Whether the player to move loses within `memory.len()` plies, whatever this player does.
fn loses<G: Game>(state: &G, player: Player, config: &SearchConfig, memory: &mut [Ply<G>]) -> bool {
    let Some((Ply { actions, next }, deeper)) = memory.split_first_mut() else {
        return false;
    };
    state.legal_actions(actions);
    let next = next.get_or_insert_with(|| state.clone());
    !actions.is_empty()
        && actions.iter().all(|&action| match next.arrive(state, &[action], None) {
            Turn::Terminal => config.outcome(next).of(player) == -1.0,
            Turn::Player(other) if other == player => loses(next, player, config, deeper),
            Turn::Player(other) => wins(next, other, config, deeper).is_some(),
            Turn::Chance => false,
        })
}
