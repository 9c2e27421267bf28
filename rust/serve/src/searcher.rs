//! The interface between a session and its searches: requests start, and events report their progress.

use std::sync::Arc;

use azpy_core::engine::Priority;
use azpy_core::game::{Action, Game};
use azpy_core::look::{Variation, standard_errors, variations};
use azpy_core::search::{Search, SearchResult};

use crate::error::Error;
use crate::player::Player;

/// A request for a search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The number of the search in its session; later ones are larger.
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
    /// Whether reports have the standard errors, for which the whole tree is walked.
    pub standard_errors: bool,
    /// The most lines of play in a report, and the longest of them.
    pub lines: usize,
    /// See `lines`.
    pub line_length: usize,
}

impl Default for SearchRequest {
    /// A search without limits that reports all lines.
    fn default() -> Self {
        Self {
            token: 0,
            allowed: Vec::new(),
            simulations: None,
            seconds: None,
            priority: Priority::Play,
            report_every: None,
            standard_errors: false,
            lines: usize::MAX,
            line_length: usize::MAX,
        }
    }
}

/// The results of a search so far, in the view of the player to move.
#[derive(Debug)]
pub struct SearchReport {
    /// The result.
    pub result: SearchResult,
    /// The lines of visited actions, most visited first.
    pub lines: Vec<Variation>,
    /// The standard errors of each action of the result, if they were asked for.
    pub standard_errors: Option<Vec<f32>>,
    /// Simulations since it began: other visits were there before.
    pub simulations: u64,
}

impl SearchReport {
    /// Reads what the request asks for from a search.
    pub fn of<G: Game>(search: &Search<G>, request: &SearchRequest) -> Self {
        Self {
            result: search.result(),
            lines: variations(search.tree(), request.lines, request.line_length),
            standard_errors: request.standard_errors.then(|| standard_errors(search.tree())),
            simulations: search.stats().simulations,
        }
    }
}

/// What happened to the request with this token.
#[derive(Debug)]
pub enum Event {
    /// The search goes on, and has found this.
    Report(u64, SearchReport),
    /// The search has ended.
    Done(u64, SearchReport),
    /// The search ended without a result.
    Failed(u64, Error),
    /// A player was renewed, or not: whether its network is another one now, or why it cannot be loaded.
    Renewed(u64, Result<bool, Error>),
}

/// The players of a session, and who searches for them. No method waits for a search.
///
/// [`Stepping`](crate::Stepping) searches for one player, in the thread of its caller. Over the threads of an engine,
/// `begin` hands a request on, events wait in a queue from which `take` takes them, several sessions share the players,
/// and any of them may renew one.
pub trait Searcher<G: Game> {
    /// A game that goes on, and keeps its tree.
    type Game;

    /// The players as they are now, one at least. The first one answers for a query that names none.
    ///
    /// # Errors
    /// If there is none.
    fn players(&mut self) -> Result<Vec<Arc<Player<G>>>, Error>;

    /// A game of a player, by its number, that begins at `start`.
    ///
    /// # Errors
    /// Why there is none.
    fn new_game(&mut self, player: usize, start: &G) -> Result<Self::Game, Error>;

    /// Plays an action of a game, after all that was asked of it before.
    ///
    /// # Errors
    /// If a game of the user's own fails.
    fn play(&mut self, game: &Self::Game, action: Action) -> Result<(), Error>;

    /// Takes the last action of a game back.
    fn undo(&mut self, game: &Self::Game);

    /// Whether a game is one of the player as it is now: trees of a player that was renewed may be of no more use.
    fn is_current(&mut self, _player: usize, _game: &Self::Game) -> bool {
        true
    }

    /// Begins a search for a player: with an empty tree, or with that of a `game` at this position, after the searches
    /// that the game was asked for before. Events tell what becomes of it.
    ///
    /// # Errors
    /// If it does not begin; [`Error::Busy`] if it may begin later. There are no events then.
    fn begin(
        &mut self,
        player: usize,
        position: &G,
        game: Option<&Self::Game>,
        request: SearchRequest,
    ) -> Result<(), Error>;

    /// Has a search end with what it has found.
    fn stop(&mut self, token: u64);

    /// Cancels a search. It may have no further events.
    fn cancel(&mut self, token: u64);

    /// The next event.
    fn take(&mut self) -> Option<Event>;

    /// The error of a game of the user's own since the last call, if it has failed: it comes before what followed from
    /// it.
    fn fault(&mut self, _position: &G) -> Option<Error> {
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
