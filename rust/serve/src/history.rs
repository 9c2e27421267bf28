//! The line of play along which a game and its tree are moved.

use azpy_core::game::Action;
use azpy_core::text::Position;

/// The start of a game that keeps its tree, and the actions that were played in it.
///
/// A client names its whole position in each query. The tree is kept along the actions that two positions share.
#[derive(Clone, Debug)]
pub struct History<G> {
    start: G,
    played: Vec<Action>,
}

impl<G: Position> History<G> {
    /// A game without moves.
    pub fn new(start: G) -> Self {
        Self { start, played: Vec::new() }
    }

    /// Whether the game can go on at the position to which `played` leads from `start`.
    ///
    /// It cannot where the first action is another one. Back at its start another game begins: its tree would otherwise
    /// grow with each game.
    pub fn leads_to(&self, start: &G, played: &[Action]) -> bool {
        (self.start.game(), self.start.key()) == (start.game(), start.key())
            && (self.played.is_empty() || self.played.first() == played.first())
    }

    /// The game played an action.
    pub fn play(&mut self, action: Action) {
        self.played.push(action);
    }

    /// The game took its last action back, if there was one.
    pub fn undo(&mut self) {
        self.played.pop();
    }

    /// Moves the game to the position after `played`. `step` plays an action, or takes the last one back (`None`).
    ///
    /// # Errors
    /// That of `step`. The history is then what was played until there.
    pub fn follow<E>(
        &mut self,
        played: &[Action],
        mut step: impl FnMut(Option<Action>) -> Result<(), E>,
    ) -> Result<(), E> {
        let common = self.played.iter().zip(played).take_while(|(one, other)| one == other).count();
        while self.played.len() > common {
            step(None)?;
            self.played.pop();
        }
        for &action in &played[common..] {
            step(Some(action))?;
            self.played.push(action);
        }
        Ok(())
    }
}
