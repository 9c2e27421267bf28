//! A position of any game behind one type, so that what searches, plays and learns is compiled once for all games that
//! pay alike.
//!
//! Its calls are indirect. On the way to a leaf a search needs one of them ([`Game::arrive`]), which uses the memory of
//! an old position again. Beside a network this costs nothing that one notices.

use std::any;
use std::sync::Arc;

use azpy_core::game::{Action, Game, Payoff, Player, RandomGames, Turn};
use azpy_core::rng::Stream;
use azpy_core::text::{Notation, Position, unmarked};
use azpy_core::written::{Bounds, Variations, WrittenGame};
use azpy_core::{declared, handed_on, of_game, of_notation};

use crate::error::{Error, invalid};
use crate::registry::{self, Entry, split, with_params};

/// What [`AnyGame`] asks of a game: that of [`Typed`] for each of them.
trait DynGame<P: Payoff>: any::Any + Send + Sync {
    of_game!(declared);
    of_notation!(declared);
    fn copied(&self) -> Box<dyn DynGame<P>>;
    fn play(&mut self, action: Action);
    /// Nothing, and is as it was, where `start` is of another type.
    fn arrive(&mut self, start: &dyn DynGame<P>, line: &[Action], legal: Option<&mut Vec<Action>>) -> Option<Turn>;
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize>;
    fn outcome(&self) -> P;
    fn parse(&self, text: &str) -> Result<Box<dyn DynGame<P>>, azpy_core::Error>;
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn DynGame<P>>, azpy_core::Error>;
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error>;
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn DynGame<P>>>, azpy_core::Error>;
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn DynGame<P>>>;
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn DynGame<P>>>;
}

struct Typed<G> {
    inner: G,
}

fn boxed<G: Notation>(inner: G) -> Box<dyn DynGame<G::Payoff>> {
    Box::new(Typed { inner })
}

impl<G: Notation> DynGame<G::Payoff> for Typed<G> {
    of_game!(handed_on, inner);
    of_notation!(handed_on, inner);
    fn copied(&self) -> Box<dyn DynGame<G::Payoff>> {
        boxed(self.inner.clone())
    }
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn arrive(
        &mut self,
        start: &dyn DynGame<G::Payoff>,
        line: &[Action],
        legal: Option<&mut Vec<Action>>,
    ) -> Option<Turn> {
        let start: &dyn any::Any = start;
        let start = start.downcast_ref::<Self>()?;
        Some(self.inner.arrive(&start.inner, line, legal))
    }
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize> {
        self.inner.play_out(games, stream)
    }
    fn outcome(&self) -> G::Payoff {
        self.inner.outcome()
    }
    fn parse(&self, text: &str) -> Result<Box<dyn DynGame<G::Payoff>>, azpy_core::Error> {
        Ok(boxed(self.inner.parse(unmarked(text))?))
    }
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn DynGame<G::Payoff>>, azpy_core::Error> {
        Ok(boxed(self.inner.parse_plies(unmarked(text), plies)?))
    }
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
        self.inner.read_game(text)
    }
    fn read_variations(
        &self,
        text: &str,
        bounds: Bounds,
    ) -> Result<Variations<Box<dyn DynGame<G::Payoff>>>, azpy_core::Error> {
        let Variations { start, moves, tags, notes, left_out } = self.inner.read_variations(unmarked(text), bounds)?;
        Ok(Variations { start: boxed(start), moves, tags, notes, left_out })
    }
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn DynGame<G::Payoff>>> {
        self.inner.without_dead(places).map(boxed)
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn DynGame<G::Payoff>>> {
        self.inner.without_past(mover).map(boxed)
    }
}

/// Makes the start of a game of its name and parameters.
type Make<S> = fn(&str, Vec<(String, String)>) -> Result<S, Error>;

/// A position of any game that pays a `P`.
pub struct AnyGame<P: Payoff> {
    game: Arc<Name<P>>,
    inner: Box<dyn DynGame<P>>,
}

/// What the positions of a game share.
struct Name<P: Payoff> {
    /// The game and its parameters.
    spec: String,
    /// The start of a game that pays a `P`, among those of the program.
    start: Make<AnyGame<P>>,
}

impl<P: Payoff> AnyGame<P> {
    /// A position of a game that is not among those of the program.
    pub fn unlisted<G: Notation<Payoff = P>>(spec: &str, game: G) -> Self {
        let start: Make<Self> = |name, _| Err(invalid!("{name} is not among the games of this program"));
        Self { game: Arc::new(Name { spec: spec.to_owned(), start }), inner: boxed(game) }
    }

    /// The position inside, if it is of the type `G`.
    #[must_use]
    pub fn inside<G: Notation<Payoff = P>>(&self) -> Option<&G> {
        let inner: &dyn any::Any = &*self.inner;
        inner.downcast_ref::<Typed<G>>().map(|typed| &typed.inner)
    }

    /// Another position of the same game.
    #[must_use]
    pub fn holding<G: Notation<Payoff = P>>(&self, game: G) -> Self {
        self.with(boxed(game))
    }

    /// The same position of a game of this name.
    fn named(self, spec: &str) -> Self {
        let start = self.game.start;
        Self { game: Arc::new(Name { spec: spec.to_owned(), start }), ..self }
    }

    fn with(&self, inner: Box<dyn DynGame<P>>) -> Self {
        Self { game: self.game.clone(), inner }
    }

    /// A position that was read: a text of Go may have a komi of its own.
    fn with_read(&self, inner: Box<dyn DynGame<P>>) -> Self {
        let read = self.with(inner);
        let Some(komi) = read.inner.komi() else { return read };
        match self.start_with(&[("komi", komi.to_string())]) {
            Ok(start) => Self { game: start.game, ..read },
            Err(_) => read,
        }
    }
}

impl<P: Payoff> Clone for AnyGame<P> {
    fn clone(&self) -> Self {
        self.with(self.inner.copied())
    }
}

impl<P: Payoff> Game for AnyGame<P> {
    type Payoff = P;
    of_game!(handed_on, inner);
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    // One call for all of it, and the memory of `self` is used again.
    #[inline]
    fn arrive(&mut self, start: &Self, line: &[Action], legal: Option<&mut Vec<Action>>) -> Turn {
        let mut legal = legal;
        if let Some(turn) = self.inner.arrive(&*start.inner, line, legal.as_deref_mut()) {
            if !Arc::ptr_eq(&self.game, &start.game) {
                self.game = start.game.clone();
            }
            return turn;
        }
        *self = start.clone();
        self.inner.arrive(&*start.inner, line, legal).expect("it is of the same type now")
    }
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize> {
        self.inner.play_out(games, stream)
    }
    fn outcome(&self) -> P {
        self.inner.outcome()
    }
}

impl<P: Payoff> Notation for AnyGame<P> {
    of_notation!(handed_on, inner);
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        Ok(self.with_read(self.inner.parse(text)?))
    }
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Self, azpy_core::Error> {
        Ok(self.with_read(self.inner.parse_plies(text, plies)?))
    }
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
        self.inner.read_game(text)
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, azpy_core::Error> {
        let Variations { start, moves, tags, notes, left_out } = self.inner.read_variations(text, bounds)?;
        Ok(Variations { start: self.with_read(start), moves, tags, notes, left_out })
    }
    fn without_dead(&self, places: &[String]) -> Option<Self> {
        Some(self.with(self.inner.without_dead(places)?))
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Self> {
        Some(self.with(self.inner.without_past(mover)?))
    }
}

impl<P: Payoff> Position for AnyGame<P> {
    fn game(&self) -> &str {
        &self.game.spec
    }

    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, azpy_core::Error> {
        let Name { spec, start } = &*self.game;
        Ok(start(split(spec).0, with_params(spec, params))?)
    }
}

/// What a program does with the start of a game, whatever the game pays.
pub trait GameVisitor: Sized + 'static {
    /// What comes of the start.
    type Output;
    /// The games of the program.
    fn games() -> &'static [Entry<Start<Self>>];
    /// Takes the start of a game.
    fn visit<P: Payoff>(self, start: AnyGame<P>) -> Self::Output;
}

/// What stands behind [`Start`]. Only here a program learns what a game pays: one of a game for two has no search for
/// several players.
trait DynStart<V: GameVisitor> {
    fn key(&self) -> u128;
    fn any(self: Box<Self>) -> Box<dyn any::Any>;
    fn visited(self: Box<Self>, spec: &str, by: V) -> V::Output;
}

impl<P: Payoff, V: GameVisitor> DynStart<V> for AnyGame<P> {
    fn key(&self) -> u128 {
        self.inner.key()
    }
    fn any(self: Box<Self>) -> Box<dyn any::Any> {
        self
    }
    fn visited(self: Box<Self>, spec: &str, by: V) -> V::Output {
        by.visit(self.named(spec))
    }
}

/// The start of some game.
pub struct Start<V>(Box<dyn DynStart<V>>);

impl<V: GameVisitor> Start<V> {
    /// The start of a game, whatever its type.
    pub fn new<G: Notation>(inner: G) -> Self {
        let game = Name { spec: String::new(), start: taken::<V, G::Payoff> };
        Self(Box::new(AnyGame { game: Arc::new(game), inner: boxed(inner) }))
    }

    /// The one spelling of a game, with `given` parameters besides those in its specification.
    ///
    /// # Errors
    /// As [`Start::open`].
    pub fn spelled(spec: &str, given: Vec<(String, String)>) -> Result<String, Error> {
        Ok(make::<V>(spec, given)?.0)
    }

    /// Opens a game by its name.
    ///
    /// # Errors
    /// What cannot be read, or what the game refuses.
    pub fn open(spec: &str, visitor: V) -> Result<V::Output, Error> {
        Self::open_with(spec, Vec::new(), visitor)
    }

    /// As [`Start::open`], with `given` parameters besides those in its specification.
    ///
    /// # Errors
    /// As [`Start::open`].
    pub fn open_with(spec: &str, given: Vec<(String, String)>, visitor: V) -> Result<V::Output, Error> {
        let (spec, Self(start)) = make(spec, given)?;
        Ok(start.visited(&spec, visitor))
    }
}

/// The start of the game that a specification means, after the specification in its one spelling.
fn make<V: GameVisitor>(spec: &str, given: Vec<(String, String)>) -> Result<(String, Start<V>), Error> {
    let games: Vec<_> = V::games().iter().collect();
    registry::make(&games, spec, given, |Start(one), Start(other)| one.key() == other.key())
}

fn taken<V: GameVisitor, P: Payoff>(spec: &str, given: Vec<(String, String)>) -> Result<AnyGame<P>, Error> {
    let (spec, Start(start)) = make::<V>(spec, given)?;
    match start.any().downcast::<AnyGame<P>>() {
        Ok(start) => Ok(start.named(&spec)),
        Err(_) => Err(invalid!("{spec} has other payoffs than this game")),
    }
}
