//! The games by their names, and a position of any of them behind one type, so that a search of it is compiled once for
//! all games.
//!
//! A step of the search then asks for memory to copy a position, and its calls are indirect. Beside a network this costs
//! nothing that one notices, and a program of all games is as small as one of a few.

use std::sync::Arc;

use azpy_core::game::{Action, Game, Payoff, Player, Turn, Value, Values};
use azpy_core::picture::{Mark, Touch};
use azpy_core::text::{Notation, Position};
use azpy_core::written::{Bounds, Named, Notes, Variations};

use crate::registry::{self, Entry, built_in, split, with_params};

/// The questions of [`Game`] that name no type of the game.
macro_rules! of_game {
    ($each:ident) => {
        $each! {
            fn num_players(&self) -> usize;
            fn num_actions(&self) -> usize;
            fn obs_shape(&self) -> [usize; 3];
            fn max_plies(&self) -> usize;
            fn turn(&self) -> Turn;
            fn legal_actions(&self, out: &mut Vec<Action>);
            fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>);
            fn encode(&self, row: &mut [f32]);
            fn action_cells(&self) -> Option<Vec<u16>>;
            fn policy_planes(&self) -> Option<Vec<Option<u32>>>;
            fn plane_divisors(&self) -> Option<Vec<u16>>;
            fn key(&self) -> u128;
            fn render(&self) -> String;
        }
    };
}

/// The same of [`Notation`].
macro_rules! of_notation {
    ($each:ident) => {
        $each! {
            fn action_name(&self, action: Action) -> String;
            fn short_name(&self, action: Action) -> String;
            fn on_board(&self) -> Vec<(String, char)>;
            fn captured(&self, actions: &[Action]) -> Vec<String>;
            fn side_names(&self) -> Option<Vec<&str>>;
            fn result_text(&self) -> String;
            fn to_svg(&self) -> String;
            fn touches(&self, action: Action) -> Vec<Touch>;
            fn marks(&self, notes: &Notes) -> Vec<Mark>;
            fn parse_actions(&self, text: &str) -> Result<Vec<Action>, String>;
            fn write_variations(
                &self,
                moves: &[Named],
                tags: &[(String, String)],
                notes: &[Notes],
                bounds: Bounds
            ) -> Result<String, String>;
            fn to_text(&self) -> Option<String>;
            fn fen(&self) -> Option<String>;
            fn komi(&self) -> Option<f32>;
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
pub struct Any<P: Payoff> {
    /// The game and its parameters.
    spec: Arc<str>,
    inner: Box<dyn Behind<P>>,
}

impl<P: Payoff> Any<P> {
    /// A position of a game that has no name yet.
    pub fn new<G: Notation<Payoff = P>>(inner: G) -> Self {
        Self { spec: "".into(), inner: boxed(inner) }
    }

    /// The same with the game's name.
    pub fn named(self, spec: &str) -> Self {
        Self { spec: spec.into(), ..self }
    }

    fn with(&self, inner: Box<dyn Behind<P>>) -> Self {
        Self { spec: self.spec.clone(), inner }
    }
}

impl<P: Payoff> Clone for Any<P> {
    fn clone(&self) -> Self {
        self.with(self.inner.copied())
    }
}

impl<P: Pays> Any<P> {
    /// A position that was read: a text of Go may have a komi of its own.
    fn with_read(&self, inner: Box<dyn Behind<P>>) -> Self {
        let read = self.with(inner);
        let Some(komi) = read.inner.komi() else { return read };
        match make(split(&self.spec).0, with_params(&self.spec, &[("komi", komi.to_string())])) {
            Ok((spec, _)) => read.named(&spec),
            Err(_) => read,
        }
    }
}

impl<P: Pays> Game for Any<P> {
    type Payoff = P;
    of_game!(handed_on);
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn outcome(&self) -> P {
        self.inner.outcome()
    }
}

impl<P: Pays> Notation for Any<P> {
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

impl<P: Pays> Position for Any<P> {
    fn game(&self) -> &str {
        &self.spec
    }

    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, String> {
        let (spec, start) = make(split(&self.spec).0, with_params(&self.spec, params))?;
        let start = P::taken(start).ok_or_else(|| format!("{spec} pays in another way than {}", self.spec))?;
        Ok(start.named(&spec))
    }
}

/// The start of some game, by what the game pays.
pub enum Start {
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
pub trait Pays: Payoff {
    /// The start of such a game.
    fn start(start: Any<Self>) -> Start;
    /// The start, if it is of this kind.
    fn taken(start: Start) -> Option<Any<Self>>;
}

impl Pays for Value {
    fn start(start: Any<Self>) -> Start {
        Start::ZeroSum(start)
    }
    fn taken(start: Start) -> Option<Any<Self>> {
        if let Start::ZeroSum(start) = start { Some(start) } else { None }
    }
}

impl Pays for Values {
    fn start(start: Any<Self>) -> Start {
        Start::Each(start)
    }
    fn taken(start: Start) -> Option<Any<Self>> {
        if let Start::Each(start) = start { Some(start) } else { None }
    }
}

fn start<G: Notation<Payoff: Pays>>(game: G) -> Start {
    G::Payoff::start(Any::new(game))
}

/// All games, or the one that the build names: its program is less than half as large.
const GAMES: &[Entry<Start>] = match option_env!("AZPY_WASM_GAME") {
    None => &built_in!(start),
    Some(name) => &[only(&built_in!(start), name.as_bytes())],
};

/// The game of this name; the build fails where there is none.
const fn only(games: &[Entry<Start>], wanted: &[u8]) -> Entry<Start> {
    let Some((&Entry { name, params, make }, others)) = games.split_first() else {
        panic!("AZPY_WASM_GAME names no game")
    };
    let mut same = 0;
    while same < name.len() && same < wanted.len() && name.as_bytes()[same] == wanted[same] {
        same += 1;
    }
    if same == name.len() && same == wanted.len() { Entry { name, params, make } } else { only(others, wanted) }
}

/// The start of the game that a specification means, after the specification in its one spelling.
///
/// # Arguments
/// - `given`: parameters besides those in the specification.
///
/// # Errors
/// A sentence about what cannot be read, or what the game refuses.
#[inline] // so that only the programs that ask for it compile all games behind one type
pub fn make(spec: &str, given: Vec<(String, String)>) -> Result<(String, Start), String> {
    let games: Vec<_> = GAMES.iter().collect();
    registry::make(&games, spec, given, |one, other| one.key() == other.key())
}
