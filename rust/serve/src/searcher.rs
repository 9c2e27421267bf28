//! What a session asks of the search: requests begin, and what becomes of them is taken as events.

use std::sync::Arc;

use azpy_core::engine::Priority;
use azpy_core::game::{Action, Game};
use azpy_core::look::{Variation, standard_errors, variations};
use azpy_core::search::{Search, SearchResult};

use crate::player::Player;

/// What is asked of a search.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Tells the open searches of a session apart; a later one is larger.
    pub token: u64,
    /// The root's actions to choose among; empty for all.
    pub allowed: Vec<Action>,
    /// The most simulations; none: no limit.
    pub simulations: Option<u32>,
    /// The most seconds, from its first round on in [`Stepping`](crate::Stepping), in an engine from the request on;
    /// none: no limit.
    pub seconds: Option<f64>,
    /// How urgent it is.
    pub priority: Priority,
    /// Seconds between reports; none: no reports.
    pub report_every: Option<f64>,
    /// Whether the standard errors are wanted, for which the whole tree is walked.
    pub errors: bool,
    /// The longest variation.
    pub pv_length: usize,
}

/// What a search has found by now.
#[derive(Debug)]
pub struct Looked {
    /// The result.
    pub result: SearchResult,
    /// The lines of all visited actions, most visited first.
    pub lines: Vec<Variation>,
    /// The standard errors of each action of the result, if they are wanted.
    pub errors: Option<Vec<f32>>,
    /// Simulations since it began.
    pub simulations: u64,
}

impl Looked {
    /// Looks at a search for what is wanted of it.
    pub fn at<G: Game>(search: &Search<G>, wanted: &Wanted) -> Self {
        Self {
            result: search.result(),
            lines: variations(search.tree(), usize::MAX, wanted.pv_length),
            errors: wanted.errors.then(|| standard_errors(search.tree())),
            simulations: search.stats().simulations,
        }
    }
}

/// What became of what was asked for with this token.
#[derive(Debug)]
pub enum Event {
    /// It goes on, and has found this.
    Report(u64, Looked),
    /// It has ended.
    Done(u64, Looked),
    /// It ended without a result.
    Failed(u64, String),
    /// A player was renewed, or not: whether its network is another one now, or why it cannot be loaded.
    Renewed(u64, Result<bool, String>),
}

/// Where a search begins: at a position, or in a game that keeps its tree.
#[derive(Debug)]
pub enum Root<'a, G, K> {
    /// With an empty tree.
    Fresh(&'a G),
    /// With the tree of the game's position, after the searches that it was asked for before.
    Kept(&'a K),
}

/// Why a search did not begin.
#[derive(Debug)]
pub struct Unbegun {
    /// A sentence.
    pub why: String,
    /// Whether it may begin later, when others have ended.
    pub is_full: bool,
}

impl From<String> for Unbegun {
    fn from(why: String) -> Self {
        Self { why, is_full: false }
    }
}

/// The players of a session, and who searches for them. No method waits for a search.
///
/// [`Stepping`](crate::Stepping) searches for one player, in the thread of its caller. Over the threads of an engine,
/// `begin` hands a request on, events wait in a queue from which `take` takes them, several sessions share the players,
/// and any of them may renew one.
pub trait Searcher<G: Game> {
    /// A game that goes on, and keeps its tree.
    type Kept;

    /// The players as they are now, one at least. The first one answers for a query that names none.
    ///
    /// # Errors
    /// If there is none: a sentence, as of the other methods.
    fn players(&mut self) -> Result<Vec<Arc<Player<G>>>, String>;

    /// A game of a player, by its number, that begins at `start`.
    ///
    /// # Errors
    /// Why there is none.
    fn keep(&mut self, player: usize, start: &G) -> Result<Self::Kept, String>;

    /// Plays an action of a game, after all that was asked of it before.
    ///
    /// # Errors
    /// If a game of the user's own fails.
    fn play(&mut self, kept: &Self::Kept, action: Action) -> Result<(), String>;

    /// Takes the last action of a game back.
    fn undo(&mut self, kept: &Self::Kept);

    /// Whether a game is one of the player as it is now: trees of a player that was renewed may be of no more use.
    fn is_current(&mut self, _player: usize, _kept: &Self::Kept) -> bool {
        true
    }

    /// Begins a search for a player. Events tell what becomes of it.
    ///
    /// # Errors
    /// If it does not begin. There are no events then.
    fn begin(&mut self, player: usize, root: Root<'_, G, Self::Kept>, wanted: Wanted) -> Result<(), Unbegun>;

    /// Has a search end with what it has found.
    fn stop(&mut self, token: u64);

    /// Has a search end for which nobody waits any more. It may have no further events.
    fn leave(&mut self, token: u64);

    /// The next event.
    fn take(&mut self) -> Option<Event>;

    /// What a game of the user's own has failed with since the last call, if it has: it comes before what followed from
    /// it.
    fn fault(&mut self, _state: &G) -> Option<String> {
        None
    }

    /// Whether [`Searcher::renew`] is for clients.
    fn renews(&self) -> bool {
        false
    }

    /// Begins to load a player's newest checkpoint; [`Event::Renewed`] tells of it. One that cannot be loaded leaves the
    /// player as it is.
    fn renew(&mut self, _player: usize, _token: u64) {}
}
