//! The games of a program, and what it does with one: a session.

use azpy_core::evaluator::Uniform;
use azpy_games::any::AnyGame;
use azpy_games::each;
use azpy_games::registry::{self, Entry};
use azpy_net::Answers;
use azpy_serve::{Error, Page, Position, Response, Session, Stepping, answers};

/// Memory of all trees: a page has less of it than a server.
const TREES: usize = 256 << 20;
/// Memory of the network's answers that are kept.
const ANSWERS: usize = 64 << 20;

/// The games that ship with azpy: all, or the one that the build names, whose program is less than half as large.
pub const BUILT_IN: &[Entry] = match option_env!("AZPY_WASM_GAME") {
    None => registry::BUILT_IN,
    Some(name) => &[only(registry::BUILT_IN, name.as_bytes())],
};

/// The game of this name; the build fails where there is none.
const fn only(games: &[Entry], wanted: &[u8]) -> Entry {
    let Some((&entry, others)) = games.split_first() else { panic!("AZPY_WASM_GAME names no game") };
    let (name, mut same) = (entry.name.as_bytes(), 0);
    while same < name.len() && same < wanted.len() && name[same] == wanted[same] {
        same += 1;
    }
    if same == name.len() && same == wanted.len() { entry } else { only(others, wanted) }
}

/// A session of any game. Its responses are lines of JSON.
pub(crate) trait AnySession {
    /// Takes a query or an action as JSON, and returns the responses that there are at once.
    fn ask(&mut self, text: &str) -> Vec<String>;
    /// Runs one round of one search. Returns whether there are more responses to come, and the responses so far.
    ///
    /// `now` is in milliseconds of any clock.
    fn step(&mut self, now: f64) -> (bool, Vec<String>);
}

impl<G: Position> AnySession for Session<G, Stepping<G, Answers<Uniform>>> {
    fn ask(&mut self, text: &str) -> Vec<String> {
        lines(self.ask(text))
    }

    fn step(&mut self, now: f64) -> (bool, Vec<String>) {
        self.searcher.step(now);
        let said = lines(self.take());
        // An answer may begin the next search: in a deal another player may move twice in a row.
        (self.is_busy(), said)
    }
}

fn lines(responses: Vec<Response>) -> Vec<String> {
    responses.into_iter().map(|response| response.line).collect()
}

/// A session with the player of a page, whose game is one of these.
///
/// # Errors
/// If the player or its weights cannot be read, or its game is none of these.
pub(crate) fn open(games: &'static [Entry], player: &str, weights: Vec<u8>) -> Result<Box<dyn AnySession>, Error> {
    let page = Page::read(player)?;
    let start = AnyGame::open(games, page.game()?, Vec::new()).map_err(|error| Error::Game(error.to_string()))?;
    each!(start.by_payoff(), start => {
        let (player, net) = page.player(start, &weights)?;
        let searcher = Stepping::new(player, answers(net, Uniform), TREES, ANSWERS);
        Ok(Box::new(Session::new(searcher, page.limits, page.seed)))
    })
}
