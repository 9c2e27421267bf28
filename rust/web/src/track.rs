//! A game whose tree is kept from query to query.

use std::cell::RefCell;
use std::rc::Rc;

use azpy_core::config::SearchConfig;
use azpy_core::engine::Seat;
use azpy_core::game::{Action, Game};
use azpy_query::Position;

/// A game that goes on, and the searches that wait in it: each is told apart by a number.
pub(crate) type Kept<G> = Rc<RefCell<Seat<G, u64>>>;

/// Follows the positions that queries name. The twin of `Track` in azpy/serving/track.py.
pub(crate) struct Track<G: Game> {
    pub(crate) name: String,
    config: SearchConfig,
    start: G,
    played: Vec<Action>,
    pub(crate) seat: Kept<G>,
}

impl<G: Position> Track<G> {
    /// A game without a tree.
    pub(crate) fn new(name: &str, start: G, config: SearchConfig) -> Self {
        let seat = seat(&start, config);
        Self { name: name.to_owned(), config, start, played: Vec::new(), seat }
    }

    /// The game at the position to which `played` leads from `start`.
    pub(crate) fn follow(&mut self, start: &G, played: &[Action]) -> &Kept<G> {
        let same = (self.start.game(), self.start.key()) == (start.game(), start.key());
        let common = self.played.iter().zip(played).take_while(|(one, other)| one == other).count();
        // Back at the start another game begins: its tree would otherwise grow with each game.
        if !same || (common == 0 && !self.played.is_empty()) {
            *self = Self::new(&self.name, start.clone(), self.config);
        }
        let mut seat = self.seat.borrow_mut();
        while self.played.len() > common {
            seat.undo();
            self.played.pop();
        }
        for &action in &played[self.played.len()..] {
            seat.play(action);
            self.played.push(action);
        }
        drop(seat);
        &self.seat
    }
}

fn seat<G: Game>(start: &G, config: SearchConfig) -> Kept<G> {
    Rc::new(RefCell::new(Seat::new(start.clone(), config, 0)))
}
