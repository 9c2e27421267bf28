//! A look ahead from a leaf: does the game end within a few plies, whatever the other player does?
//!
//! Lines are played by the rules alone, so a leaf with such an end needs no evaluation (Baier and Winands 2015,
//! MCTS-minimax hybrids, in the selection and expansion phase). Only whole wins and losses are found: one reply that
//! leaves the end open is enough to give a line up, which keeps the look cheap. A roll leaves the end open.

use crate::game::{Action, Game, Player, Turn, Value};

/// Who wins, as the value for player 0, and in how many plies at the most; `None` if lines of `memory.len()` plies do
/// not tell. `player` is to move in `state`. `memory` has a list of actions for each ply of a line, with any content.
pub(super) fn forced_end<G: Game>(state: &G, player: Player, memory: &mut [Vec<Action>]) -> Option<(Value, usize)> {
    if let Some((_, plies)) = wins(state, player, memory) {
        return Some((whole_win(player), plies));
    }
    loses(state, player, memory).map(|plies| (whole_win(player.opponent()), plies))
}

fn whole_win(player: Player) -> Value {
    match player {
        Player::Zero => Value(1.0),
        Player::One => Value(-1.0),
    }
}

/// An action with which the player to move forces a win, and in how many plies; wins at once come first.
pub(super) fn wins<G: Game>(state: &G, player: Player, memory: &mut [Vec<Action>]) -> Option<(Action, usize)> {
    let (actions, deeper) = memory.split_first_mut()?;
    state.legal_actions(actions);
    if let Some(&action) = actions.iter().find(|&&action| is_won(&after(state, action), player)) {
        return Some((action, 1));
    }
    if deeper.is_empty() {
        return None;
    }
    actions.iter().find_map(|&action| {
        let next = after(state, action);
        let plies = match next.turn() {
            Turn::Player(other) if other == player => wins(&next, player, deeper).map(|(_, plies)| plies),
            Turn::Player(other) => loses(&next, other, deeper),
            Turn::Chance | Turn::Terminal => None,
        };
        plies.map(|plies| (action, plies + 1))
    })
}

/// In how many plies the player to move loses, whatever this player does.
fn loses<G: Game>(state: &G, player: Player, memory: &mut [Vec<Action>]) -> Option<usize> {
    let (actions, deeper) = memory.split_first_mut()?;
    state.legal_actions(actions);
    let mut most = None;
    for &action in actions.iter() {
        let next = after(state, action);
        let plies = match next.turn() {
            Turn::Terminal if is_won(&next, player.opponent()) => 0,
            Turn::Player(other) if other == player => loses(&next, player, deeper)?,
            Turn::Player(other) => wins(&next, other, deeper)?.1,
            Turn::Chance | Turn::Terminal => return None,
        };
        most = most.max(Some(plies + 1));
    }
    most
}

fn after<G: Game>(state: &G, action: Action) -> G {
    let mut next = state.clone();
    next.play(action);
    next
}

fn is_won<G: Game>(state: &G, player: Player) -> bool {
    state.turn() == Turn::Terminal && state.outcome() == whole_win(player)
}
