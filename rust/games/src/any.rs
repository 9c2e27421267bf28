//! A position of any game behind one type, so that what searches, plays and learns is compiled once for all games that
//! pay alike.
//!
//! Its calls are indirect. On the way to a leaf a search needs one of them ([`Game::arrive`]), which uses the memory of
//! an old position again. Beside a network this costs nothing that one notices.
//!
//! [`AnyGame`] pays one number a player. A search of two players with a zero sum needs one number in all, so a program
//! that searches turns a position into one of [`AnyGame::by_payoff`].

use std::any;
use std::marker::PhantomData;
use std::sync::Arc;

use azpy_core::game::{Action, Game, Payoff, Player, RandomGames, Turn, Value, Values};
use azpy_core::rng::Stream;
use azpy_core::text::{Notation, Position};
use azpy_core::written::{Bounds, Variations, WrittenGame};
use azpy_core::{handed_on, of_game, of_notation};

use crate::error::{Error, invalid};
use crate::registry::{Entry, make, split, with_params};
use crate::start::{DynGame, Start, Typed, boxed};

/// A position of any game, whose outcomes are a `P`.
pub struct AnyGame<P = Values> {
    game: Arc<Name>,
    inner: Box<dyn DynGame>,
    pays: PhantomData<fn() -> P>,
}

/// What the positions of a game share.
struct Name {
    /// The game and its parameters.
    spec: String,
    /// The games of the program.
    games: &'static [Entry],
}

/// One of two, by what a game pays.
#[derive(Clone)]
pub enum Either<Z, S> {
    /// Two players share a zero sum.
    Zero(Z),
    /// Each player has a number.
    Several(S),
}

/// Does the same with either.
#[macro_export]
macro_rules! each {
    ($either:expr, $one:pat => $body:expr) => {
        match $either {
            $crate::any::Either::Zero($one) => $body,
            $crate::any::Either::Several($one) => $body,
        }
    };
}

impl AnyGame {
    /// Opens a game among those of the program by its name, with `given` parameters besides those in its specification.
    ///
    /// # Errors
    /// What cannot be read, or what the game refuses.
    pub fn open(games: &'static [Entry], spec: &str, given: Vec<(String, String)>) -> Result<Self, Error> {
        let (spec, Start(inner)) = make(games, spec, given)?;
        Ok(Self { game: Arc::new(Name { spec, games }), inner, pays: PhantomData })
    }

    /// A position of a game that is not among those of the program.
    pub fn unlisted<G: Notation>(spec: &str, game: G) -> Self {
        Self { game: Arc::new(Name { spec: spec.to_owned(), games: &[] }), inner: boxed(game), pays: PhantomData }
    }

    /// The same position as a search of its game needs it.
    #[must_use]
    pub fn by_payoff(self) -> Either<AnyGame<Value>, Self> {
        if self.is_zero_sum() { Either::Zero(self.paying()) } else { Either::Several(self) }
    }
}

impl<P: Payoff> AnyGame<P> {
    /// The same position, whose outcomes are a `Q`: any game may pay a [`Values`], and a game of two players with a zero
    /// sum a [`Value`].
    ///
    /// # Panics
    /// If the game cannot pay a `Q`.
    #[must_use]
    pub fn paying<Q: Payoff>(self) -> AnyGame<Q> {
        assert!(!Q::ZERO_SUM || self.is_zero_sum(), "{} is not a game of two players with a zero sum", self.game.spec);
        AnyGame { game: self.game, inner: self.inner, pays: PhantomData }
    }

    /// The position inside, if it is of the type `G`.
    #[must_use]
    pub fn inside<G: Notation>(&self) -> Option<&G> {
        let inner: &dyn any::Any = &*self.inner;
        inner.downcast_ref::<Typed<G>>().map(|typed| &typed.inner)
    }

    /// Another position of the same game.
    #[must_use]
    pub fn holding<G: Notation>(&self, game: G) -> Self {
        self.with(boxed(game))
    }

    fn with(&self, inner: Box<dyn DynGame>) -> Self {
        Self { game: self.game.clone(), inner, pays: PhantomData }
    }

    /// A position that was read: a text of Go may have a komi of its own.
    fn with_read(&self, inner: Box<dyn DynGame>) -> Self {
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
    #[inline]
    fn outcome(&self) -> P {
        if P::ZERO_SUM { P::of_proven(self.inner.value()) } else { P::of_each(self.inner.outcome()) }
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
        let Name { spec, games } = &*self.game;
        let name = split(spec).0;
        if games.is_empty() {
            return Err(invalid!("{name} is not among the games of this program").into());
        }
        let start = AnyGame::open(games, name, with_params(spec, params))?;
        if start.is_zero_sum() != self.is_zero_sum() {
            return Err(invalid!("{} has other payoffs than {spec}", start.game.spec).into());
        }
        Ok(start.paying())
    }
}
