//! The start of a game of any type, behind one type: what a row of the registry makes, and what a position of any game
//! is made of.

use std::any;

use azpy_core::game::{Action, Payoff, Player, RandomGames, Turn, Value, Values};
use azpy_core::rng::Stream;
use azpy_core::text::{Notation, unmarked};
use azpy_core::written::{Bounds, Variations, WrittenGame};
use azpy_core::{declared, handed_on, of_game, of_notation};

/// What [`AnyGame`](crate::any::AnyGame) asks of a game. [`Typed`] answers for each of them.
pub(crate) trait DynGame: any::Any + Send + Sync {
    of_game!(declared);
    of_notation!(declared);
    fn copied(&self) -> Box<dyn DynGame>;
    fn play(&mut self, action: Action);
    /// Nothing, and is as it was, where `start` is of another type.
    fn arrive(&mut self, start: &dyn DynGame, line: &[Action], legal: Option<&mut Vec<Action>>) -> Option<Turn>;
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize>;
    fn outcome(&self) -> Values;
    /// What player 0 gets: all that a search of two players with a zero sum asks of an end.
    fn value(&self) -> Value;
    fn parse(&self, text: &str) -> Result<Box<dyn DynGame>, azpy_core::Error>;
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn DynGame>, azpy_core::Error>;
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error>;
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn DynGame>>, azpy_core::Error>;
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn DynGame>>;
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn DynGame>>;
}

pub(crate) struct Typed<G> {
    pub(crate) inner: G,
}

pub(crate) fn boxed<G: Notation>(inner: G) -> Box<dyn DynGame> {
    Box::new(Typed { inner })
}

impl<G: Notation> DynGame for Typed<G> {
    of_game!(handed_on, inner);
    of_notation!(handed_on, inner);
    fn copied(&self) -> Box<dyn DynGame> {
        boxed(self.inner.clone())
    }
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn arrive(&mut self, start: &dyn DynGame, line: &[Action], legal: Option<&mut Vec<Action>>) -> Option<Turn> {
        let start: &dyn any::Any = start;
        let start = start.downcast_ref::<Self>()?;
        Some(self.inner.arrive(&start.inner, line, legal))
    }
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize> {
        self.inner.play_out(games, stream)
    }
    fn outcome(&self) -> Values {
        self.inner.outcome().each()
    }
    fn value(&self) -> Value {
        Value(self.inner.outcome().of(Player::Zero))
    }
    fn parse(&self, text: &str) -> Result<Box<dyn DynGame>, azpy_core::Error> {
        Ok(boxed(self.inner.parse(unmarked(text))?))
    }
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn DynGame>, azpy_core::Error> {
        Ok(boxed(self.inner.parse_plies(unmarked(text), plies)?))
    }
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
        self.inner.read_game(text)
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn DynGame>>, azpy_core::Error> {
        let Variations { start, moves, tags, notes, left_out } = self.inner.read_variations(unmarked(text), bounds)?;
        Ok(Variations { start: boxed(start), moves, tags, notes, left_out })
    }
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn DynGame>> {
        self.inner.without_dead(places).map(boxed)
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn DynGame>> {
        self.inner.without_past(mover).map(boxed)
    }
}

/// The start of some game.
pub struct Start(pub(crate) Box<dyn DynGame>);

impl Start {
    /// The start of a game, whatever its type.
    pub fn new<G: Notation>(game: G) -> Self {
        Self(boxed(game))
    }

    /// Whether two starts are the same position.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
