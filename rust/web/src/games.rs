//! The games by their names.

use azpy_core::game::{Game, Payoff, Value, Values};
use azpy_core::text::Notation;
use azpy_games::registry::{self, Entry};

use crate::any::Any;

/// The start of some game, by what the game pays.
pub(crate) enum Start {
    /// Two players share a zero sum.
    ZeroSum(Any<Value>),
    /// Each player has a number of its own.
    Each(Any<Values>),
}

impl Start {
    fn key(&self) -> u128 {
        match self {
            Self::ZeroSum(start) => start.key(),
            Self::Each(start) => start.key(),
        }
    }
}

/// What a game pays, and so which kind of [`Start`] it has.
pub(crate) trait Pays: Payoff {
    fn start(start: Any<Self>) -> Start;
    /// The start, if it is of this kind.
    fn of(start: Start) -> Option<Any<Self>>;
}

impl Pays for Value {
    fn start(start: Any<Self>) -> Start {
        Start::ZeroSum(start)
    }
    fn of(start: Start) -> Option<Any<Self>> {
        if let Start::ZeroSum(start) = start { Some(start) } else { None }
    }
}

impl Pays for Values {
    fn start(start: Any<Self>) -> Start {
        Start::Each(start)
    }
    fn of(start: Start) -> Option<Any<Self>> {
        if let Start::Each(start) = start { Some(start) } else { None }
    }
}

fn start<G: Notation<Payoff: Pays>>(game: G) -> Start {
    G::Payoff::start(Any::new(game))
}

const GAMES: &[Entry<Start>] = &azpy_games::built_in!(start);

/// The start of the game that a specification means, after the specification in its one spelling.
pub(crate) fn make(spec: &str, given: Vec<(String, String)>) -> Result<(String, Start), String> {
    let games: Vec<_> = GAMES.iter().collect();
    registry::make(&games, spec, given, |one, other| one.key() == other.key())
}
