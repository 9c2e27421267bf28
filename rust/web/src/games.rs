//! The games by their names, and a position of any of them behind one type, so that the search and the queries are
//! compiled once for all games that pay alike.
//!
//! A step of the search then asks for memory to copy a position, and its calls are indirect. Beside a network this costs
//! nothing that one notices, and a page of all games is as small as one of a few.

use std::sync::{Arc, OnceLock};

use azpy_core::game::{Action, Game, Payoff, Player};
use azpy_core::text::Notation;
use azpy_core::written::{Bounds, Variations};
use azpy_core::{of_game, of_notation};
use azpy_games::registry::{self, split, with_params};
use azpy_query::Position;

use crate::player::{About, Player as Who};
use crate::session::{Asked, Session};

/// The questions of [`Game`] that fill something.
macro_rules! of_filling {
    ($each:ident) => {
        $each! {
            fn legal_actions(&self, out: &mut Vec<Action>);
            fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>);
            fn encode(&self, row: &mut [f32]);
        }
    };
}

macro_rules! declared {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $reply:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) $(-> $reply)?;)*
    };
}

macro_rules! handed_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $reply:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) $(-> $reply)? {
            self.inner.$name($($argument),*)
        })*
    };
}

/// What stands behind [`Any`].
trait Behind<P: Payoff>: Send + Sync {
    of_game!(declared);
    of_filling!(declared);
    of_notation!(declared);
    fn copied(&self) -> Box<dyn Behind<P>>;
    fn play(&mut self, action: Action);
    fn outcome(&self) -> P;
    fn parse(&self, text: &str) -> Result<Box<dyn Behind<P>>, String>;
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn Behind<P>>>, String>;
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn Behind<P>>>;
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn Behind<P>>>;
}

struct Typed<G> {
    inner: G,
}

fn boxed<G: Notation>(inner: G) -> Box<dyn Behind<G::Payoff>> {
    Box::new(Typed { inner })
}

impl<G: Notation> Behind<G::Payoff> for Typed<G> {
    of_game!(handed_on);
    of_filling!(handed_on);
    of_notation!(handed_on);
    fn copied(&self) -> Box<dyn Behind<G::Payoff>> {
        boxed(self.inner.clone())
    }
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn outcome(&self) -> G::Payoff {
        self.inner.outcome()
    }
    fn parse(&self, text: &str) -> Result<Box<dyn Behind<G::Payoff>>, String> {
        Ok(boxed(self.inner.parse(text)?))
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn Behind<G::Payoff>>>, String> {
        let Variations { start, moves, tags, notes, left_out } = self.inner.read_variations(text, bounds)?;
        Ok(Variations { start: boxed(start), moves, tags, notes, left_out })
    }
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn Behind<G::Payoff>>> {
        self.inner.without_dead(places).map(boxed)
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn Behind<G::Payoff>>> {
        self.inner.without_past(mover).map(boxed)
    }
}

/// A position of any game that pays a `P`.
struct Any<P: Payoff> {
    /// The game and its parameters.
    spec: Arc<str>,
    inner: Box<dyn Behind<P>>,
}

impl<P: Payoff> Any<P> {
    fn with(&self, inner: Box<dyn Behind<P>>) -> Self {
        Self { spec: self.spec.clone(), inner }
    }

    /// A position that was read: a text of Go may have a komi of its own.
    fn with_read(&self, inner: Box<dyn Behind<P>>) -> Self {
        let read = self.with(inner);
        let Some(komi) = read.inner.komi() else { return read };
        match make(split(&self.spec).0, with_params(&self.spec, &[("komi", komi.to_string())])) {
            Ok((spec, _)) => Self { spec: spec.into(), ..read },
            Err(_) => read,
        }
    }
}

impl<P: Payoff> Clone for Any<P> {
    fn clone(&self) -> Self {
        self.with(self.inner.copied())
    }
}

impl<P: Payoff> Game for Any<P> {
    type Payoff = P;
    of_game!(handed_on);
    of_filling!(handed_on);
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn outcome(&self) -> P {
        self.inner.outcome()
    }
}

impl<P: Payoff> Notation for Any<P> {
    of_notation!(handed_on);
    fn parse(&self, text: &str) -> Result<Self, String> {
        Ok(self.with_read(self.inner.parse(text)?))
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, String> {
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

impl<P: Payoff> Position for Any<P> {
    fn game(&self) -> &str {
        &self.spec
    }

    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, String> {
        let (spec, Start(start)) = make(split(&self.spec).0, with_params(&self.spec, params))?;
        match start.any().downcast::<Self>() {
            Ok(start) => Ok(Self { spec: spec.into(), ..*start }),
            Err(_) => Err(format!("{spec} pays in another way than {}", self.spec)),
        }
    }
}

/// What stands behind [`Start`]. Only here a program learns what a game pays: one of a game for two has no search for
/// several players.
trait Opens {
    fn key(&self) -> u128;
    fn any(self: Box<Self>) -> Box<dyn std::any::Any>;
    fn open(self: Box<Self>, spec: &str, player: Who, about: About, weights: &[u8]) -> Result<Box<dyn Asked>, String>;
}

impl<P: Payoff> Opens for Any<P> {
    fn key(&self) -> u128 {
        self.inner.key()
    }
    fn any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
    fn open(self: Box<Self>, spec: &str, player: Who, about: About, weights: &[u8]) -> Result<Box<dyn Asked>, String> {
        let start = Self { spec: spec.into(), ..*self };
        Ok(Box::new(Session::new(start, player, about, weights)?))
    }
}

/// The start of some game.
pub struct Start(Box<dyn Opens>);

/// The start of a game, whatever its type.
pub fn start<G: Notation>(game: G) -> Start {
    Start(Box::new(Any { spec: "".into(), inner: boxed(game) }))
}

/// A game by its name.
pub type Entry = registry::Entry<Start>;

/// The games that ship with azpy: all, or the one that the build names, whose program is less than half as large.
pub const BUILT_IN: &[Entry] = match option_env!("AZPY_WASM_GAME") {
    None => &azpy_games::built_in!(start),
    Some(name) => &[only(&azpy_games::built_in!(start), name.as_bytes())],
};

/// The game of this name; the build fails where there is none.
const fn only(games: &[Entry], wanted: &[u8]) -> Entry {
    let Some((&Entry { name, params, make }, others)) = games.split_first() else {
        panic!("AZPY_WASM_GAME names no game")
    };
    let mut same = 0;
    while same < name.len() && same < wanted.len() && name.as_bytes()[same] == wanted[same] {
        same += 1;
    }
    if same == name.len() && same == wanted.len() { Entry { name, params, make } } else { only(others, wanted) }
}

/// Those of this program.
static GAMES: OnceLock<&[Entry]> = OnceLock::new();

/// A session with a player of one of these games.
///
/// # Errors
/// A sentence, if the player or its weights cannot be read, or its game is none of these.
pub(crate) fn open(games: &'static [Entry], player: &str, weights: &[u8]) -> Result<Box<dyn Asked>, String> {
    GAMES.get_or_init(|| games);
    let (player, about) = Who::read(player)?;
    let (spec, Start(start)) = make(&about.game, Vec::new())?;
    start.open(&spec, player, about, weights)
}

/// The start of the game that a specification means, after the specification in its one spelling.
fn make(spec: &str, given: Vec<(String, String)>) -> Result<(String, Start), String> {
    let games: Vec<_> = GAMES.get().copied().unwrap_or_default().iter().collect();
    registry::make(&games, spec, given, |Start(one), Start(other)| one.key() == other.key())
}
