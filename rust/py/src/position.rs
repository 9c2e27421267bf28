//! A position of any game, in Rust or in Python, as Python holds it and as the core is compiled for it.
//!
//! What Python holds is [`Either`] of two types, by what the game pays.

use std::ops::Range;
use std::time::Instant;

use azpy_core::Error;
use azpy_core::game::{Action, Game, Payoff, Player, RandomGames, Turn, Values};
use azpy_core::record::GameRecord;
use azpy_core::rng::Stream;
use azpy_core::text::{Notation, Position};
use azpy_core::written::{Bounds, Variations, WrittenGame};
use azpy_core::{of_game, of_notation};
use azpy_games::any::AnyGame;
use pyo3::prelude::*;

use crate::errors::GameError;
use crate::fault::Fault;
use crate::pygame::{PyGame, PyPayoff};

pub(crate) use crate::either::{AnyState, Either, each, map};

/// What a position has where its game may be in Python, and fail.
pub(crate) trait Fallible: Sized {
    /// Where its errors are, if it can fail. Such a game is touched by one thread at a time.
    fn fault(&self) -> Option<&Fault>;
    /// An independent copy with a place of its own for errors, or the error of the game that refused. A clone shares
    /// this place: an error of one is an error of both.
    fn copied(&self) -> PyResult<Self>;
    /// The azpy.Game that it is.
    fn object(&self) -> Option<&Py<PyAny>>;

    /// The error that its game has met, if any.
    fn check(&self) -> PyResult<()> {
        self.fault().map_or(Ok(()), Fault::check)
    }
    /// As `check`, and forgets the error.
    fn take_error(&self) -> PyResult<()> {
        self.fault().map_or(Ok(()), Fault::take)
    }
}

impl<P: PyPayoff> Fallible for AnyGame<P> {
    fn fault(&self) -> Option<&Fault> {
        self.inside::<PyGame<P>>().map(PyGame::fault)
    }
    fn copied(&self) -> PyResult<Self> {
        self.inside::<PyGame<P>>().map_or_else(|| Ok(self.clone()), |game| Ok(self.holding(game.copied()?)))
    }
    fn object(&self) -> Option<&Py<PyAny>> {
        self.inside::<PyGame<P>>().map(PyGame::object)
    }
}

/// The same position without the error that its game met.
pub(crate) fn renewed<P: PyPayoff>(state: &AnyGame<P>) -> AnyGame<P> {
    state.inside::<PyGame<P>>().map_or_else(|| state.clone(), |game| state.holding(game.renewed()))
}

impl Fallible for AnyState {
    fn fault(&self) -> Option<&Fault> {
        each!(self, state => state.fault())
    }
    fn copied(&self) -> PyResult<Self> {
        Ok(map!(self, state => state.copied()?))
    }
    fn object(&self) -> Option<&Py<PyAny>> {
        each!(self, state => state.object())
    }
}

/// Passes a question on to the position in either.
macro_rules! asked {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $reply:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) $(-> $reply)? {
            each!(self, state => state.$name($($argument),*))
        })*
    };
}

/// A position of any game as a game itself: for code that is compiled once, as that of queries and checks.
impl Game for AnyState {
    type Payoff = Values;

    of_game!(asked);
    fn play(&mut self, action: Action) {
        each!(self, state => state.play(action));
    }
    fn outcome(&self) -> Values {
        each!(self, state => state.outcome().each())
    }
}

impl Notation for AnyState {
    of_notation!(asked);
    fn parse(&self, text: &str) -> Result<Self, Error> {
        Ok(map!(self, state => state.parse(text)?))
    }
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Self, Error> {
        Ok(map!(self, state => state.parse_plies(text, plies)?))
    }
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, Error> {
        each!(self, state => state.read_game(text))
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, Error> {
        fn read<P: PyPayoff>(state: &AnyGame<P>, text: &str, bounds: Bounds) -> Result<Variations<AnyState>, Error> {
            let Variations { start, moves, tags, notes, left_out } = state.read_variations(text, bounds)?;
            Ok(Variations { start: P::held(start), moves, tags, notes, left_out })
        }
        each!(self, state => read(state, text, bounds))
    }
    fn without_dead(&self, places: &[String]) -> Option<Self> {
        Some(map!(self, state => state.without_dead(places)?))
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Self> {
        Some(map!(self, state => state.without_past(mover)?))
    }
}

impl Position for AnyState {
    fn game(&self) -> &str {
        each!(self, state => state.game())
    }
    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, Error> {
        Ok(map!(self, state => state.start_with(params)?))
    }
}

impl AnyState {
    /// The legal actions; none where it is no player's turn.
    pub(crate) fn legal(&self) -> Vec<Action> {
        let mut legal = Vec::new();
        if matches!(self.turn(), Turn::Player(_)) {
            self.legal_actions(&mut legal);
        }
        legal
    }

    /// The outcomes of the roll; none where none is due.
    pub(crate) fn rolls(&self) -> Vec<(Action, f32)> {
        let mut rolls = Vec::new();
        if self.turn() == Turn::Chance {
            self.chance_outcomes(&mut rolls);
        }
        rolls
    }

    /// How the rules end a written game that begins here, for player 0; nothing where they do not, or where players do not
    /// share a zero sum.
    pub(crate) fn end_of(&self, game: &WrittenGame) -> Option<f32> {
        let Self::Zero(start) = self else { return None };
        let mut end = start.clone();
        game.actions.iter().flatten().for_each(|&action| end.play(action));
        (end.turn() == Turn::Terminal).then(|| end.outcome().of(Player::Zero))
    }

    /// See `GameRecord::of_actions` of the core.
    pub(crate) fn record_of(&self, actions: &[Action], outcome: &[f32]) -> Result<GameRecord, Error> {
        each!(self, state => GameRecord::of_actions(state, actions, outcome))
    }

    /// Plays the first random games of `games` from here, until they are done or it is `until`: how many games, and
    /// their plies.
    pub(crate) fn random_games(&self, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)> {
        each!(self, start => random_games(start, seed, games, until))
    }
}

fn random_games<P: PyPayoff>(start: &AnyGame<P>, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)> {
    let mut random = RandomGames::default();
    let (mut done, mut plies) = (0, 0);
    for game in games {
        let played = start.clone().play_out(&mut random, &mut Stream::keyed(&[seed, game]));
        // An error of a game in Python comes before what followed from it.
        start.check()?;
        plies += played.ok_or_else(|| GameError::new_err("a random game found no action, or did not end"))? as u64;
        done += 1;
        // A reading of the clock takes as long as a ply or two.
        if done % 16 == 0 && Instant::now() > until {
            break;
        }
    }
    Ok((done, plies))
}
