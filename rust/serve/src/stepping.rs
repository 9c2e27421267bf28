//! Searches for one player, a round at a time in the thread of the caller, by the caller's clock.
//!
//! A search that has to end is answered first. Else the search of the highest priority goes on until it is done, of one
//! priority the oldest.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Display;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::{ANSWER_BYTES, Cache};
use azpy_core::engine::{GameTree, Priority, Request};
use azpy_core::evaluator::Evaluator;
use azpy_core::game::{Action, Game};
use azpy_core::search::{Search, Stop, stream_for};

use crate::error::Error;
use crate::player::Player;
use crate::searcher::{Event, SearchReport, SearchRequest, Searcher};

/// Simulations of a round that need no network: few, as the memory for all of them has to be there before.
const KNOWN: u64 = 64;
/// Trees belong to a network, and there is only one here.
const NETWORK: u64 = 1;
/// The network's answers that are kept, at most.
const MOST_ANSWERS: usize = 100_000;

/// A game that goes on, and the searches that wait in it: each is told apart by its token.
pub type SteppingGame<G> = Rc<RefCell<GameTree<G, u64>>>;

/// A search that goes on, or that waits for its turn in its game.
struct OpenSearch<G: Game> {
    request: SearchRequest,
    /// The game that keeps its tree, if there is one.
    game: Option<SteppingGame<G>>,
    /// None before its turn in its game.
    search: Option<Search<G>>,
    /// When it began, and when its last report was; milliseconds.
    began: Option<f64>,
    reported: f64,
    /// Why it stops early.
    cut: Option<Stop>,
}

impl<G: Game> OpenSearch<G> {
    fn memory_bytes(&self) -> usize {
        self.search.as_ref().map_or(0, |search| search.tree().memory_bytes())
    }

    /// Whether its time is over or it was stopped.
    fn has_to_end(&self, now: f64) -> bool {
        let is_late = |(began, seconds): (f64, f64)| now - began >= 1e3 * seconds;
        self.cut.is_some() || self.began.zip(self.request.seconds).is_some_and(is_late)
    }

    /// What it has found, if it has begun.
    fn report(&self) -> Option<SearchReport> {
        let mut report = SearchReport::of(self.search.as_ref()?, &self.request);
        if report.result.stop == Stop::Interrupted {
            report.result.stop = self.cut.unwrap_or(Stop::Interrupted);
        }
        Some(report)
    }
}

/// Searches for one player; see the module.
pub struct Stepping<G: Game, E> {
    player: Arc<Player<G>>,
    evaluator: E,
    rounds: Rounds<G>,
    /// Memory of all trees, in bytes.
    pub trees: usize,
    /// The games that keep their trees. The one that was searched last stands last.
    games: Vec<Weak<RefCell<GameTree<G, u64>>>>,
    open: Vec<OpenSearch<G>>,
    events: VecDeque<Event>,
}

impl<G: Game, E: Evaluator<G, Error: Display>> Stepping<G, E> {
    /// No searches yet.
    ///
    /// # Arguments
    /// - `trees`: the memory of all trees, in bytes.
    /// - `answers`: the memory of the network's answers that are kept, as if every action were legal in each position.
    pub fn new(player: Player<G>, evaluator: E, trees: usize, answers: usize) -> Self {
        let answer = ANSWER_BYTES + size_of::<f32>() * (player.start.num_actions() + player.start.num_players());
        let cached = (answers / answer).min(MOST_ANSWERS);
        let has_cache = cached > 0 && evaluator.network().is_some();
        let mut rounds = Rounds::new(Workers::Serial, has_cache.then(|| Arc::new(Cache::new(cached))));
        rounds.known = KNOWN;
        let (games, open, events) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { player: Arc::new(player), evaluator, rounds, trees, games, open, events }
    }

    /// Runs one round of one search; `now` is in milliseconds of any clock. Returns whether searches go on.
    pub fn step(&mut self, now: f64) -> bool {
        let ready = (0..self.open.len()).filter(|&place| self.open[place].search.is_some());
        let turn = |&place: &usize| {
            let open = &self.open[place];
            (!open.has_to_end(now), open.request.priority, open.request.token)
        };
        let Some(place) = ready.min_by_key(turn) else { return false };
        if !self.open[place].has_to_end(now) && !self.bound_memory(place) {
            return true;
        }
        let open = &mut self.open[place];
        if open.began.is_none() {
            (open.began, open.reported) = (Some(now), now);
        }
        let has_to_end = open.has_to_end(now);
        let Some(search) = &mut open.search else { return true };
        if has_to_end {
            search.interrupt();
        }
        if let Err(error) = self.rounds.run(std::slice::from_mut(search), &mut self.evaluator) {
            let problem = match error {
                SearchError::Evaluator(problem) => problem.to_string(),
                other => other.to_string(),
            };
            self.fail(place, Error::Search(problem));
        } else if search.is_done() {
            self.end(place);
        } else if open.request.report_every.is_some_and(|every| now - open.reported >= 1e3 * every) {
            open.reported = now;
            let token = open.request.token;
            self.events.extend(open.report().map(|report| Event::Report(token, report)));
        }
        !self.open.is_empty()
    }

    /// Begins the next search of a game, where the one before has ended.
    fn go_on(&mut self, game: &SteppingGame<G>) {
        let next = game.borrow_mut().next(NETWORK);
        let Some((search, request)) = next else { return };
        let Some(place) = self.open.iter().position(|open| open.request.token == request.token) else { return };
        match begun(search, &request) {
            Ok(search) => self.open[place].search = Some(search),
            Err(error) => self.fail(place, error),
        }
    }

    /// Ends a search without a result, and drops its tree.
    fn fail(&mut self, place: usize, error: Error) {
        let open = self.open.remove(place);
        self.events.push_back(Event::Failed(open.request.token, error));
        if let Some(game) = open.game {
            let search = open.search.unwrap_or_else(|| Search::new(self.player.start.clone(), self.player.config));
            game.borrow_mut().give_back(search, false);
            self.go_on(&game);
        }
    }

    /// Ends a search that is done.
    fn end(&mut self, place: usize) {
        let open = self.open.remove(place);
        self.events.extend(open.report().map(|report| Event::Done(open.request.token, report)));
        if let (Some(game), Some(mut search)) = (open.game, open.search) {
            search.shrink();
            game.borrow_mut().give_back(search, true);
            self.go_on(&game);
        }
    }

    /// Bytes of all trees, those that games keep among them.
    pub fn memory_bytes(&self) -> usize {
        let kept = self.games.iter().filter_map(Weak::upgrade).map(|game| game.borrow().memory_bytes());
        kept.chain(self.open.iter().map(OpenSearch::memory_bytes)).sum()
    }

    /// Keeps the trees within their memory before the tree of this search grows: room that no node has taken goes first,
    /// then kept trees, the least recently used before the others. Then the search with the largest tree ends. Returns
    /// whether the round may begin.
    fn bound_memory(&mut self, place: usize) -> bool {
        let own = self.open[place].memory_bytes();
        let ahead = self.open[place].search.as_ref().map_or(own, |search| search.memory_ahead(KNOWN));
        // In WebAssembly a vector that grows is copied.
        let more = if ahead > own { ahead } else { 0 };
        if self.memory_bytes() + more > self.trees {
            let others = self.open.iter_mut().enumerate().filter(|(other, _)| *other != place);
            others.filter_map(|(_, open)| open.search.as_mut()).for_each(Search::shrink);
        }
        for game in self.games.iter().filter_map(Weak::upgrade) {
            if self.memory_bytes() + more <= self.trees {
                break;
            }
            game.borrow_mut().drop_trees();
        }
        let Some(left) = self.trees.checked_sub(self.memory_bytes()).filter(|&left| left >= more) else {
            if let Some(largest) = self.open.iter_mut().max_by_key(|open| open.memory_bytes()) {
                largest.cut = Some(Stop::Memory);
            }
            return false;
        };
        // A tree that grows is copied, and a page never gives the memory of an old copy back. So a large tree grows once:
        // into what is left beside its present copy and the copy before that, which counts as large.
        if more > 0
            && own >= self.trees / 16
            && let Some(search) = &mut self.open[place].search
        {
            search.reserve(left.saturating_sub(own).max(ahead));
        }
        true
    }
}

impl<G: Game, E: Evaluator<G, Error: Display>> Searcher<G> for Stepping<G, E> {
    type Game = SteppingGame<G>;

    fn players(&mut self) -> Result<Vec<Arc<Player<G>>>, Error> {
        Ok(vec![self.player.clone()])
    }

    fn new_game(&mut self, _: usize, start: &G) -> Result<SteppingGame<G>, Error> {
        Ok(Rc::new(RefCell::new(GameTree::new(start.clone(), self.player.config, 0))))
    }

    fn play(&mut self, game: &SteppingGame<G>, action: Action) -> Result<(), Error> {
        game.borrow_mut().play(action);
        Ok(())
    }

    fn undo(&mut self, game: &SteppingGame<G>) {
        game.borrow_mut().undo();
    }

    fn begin(
        &mut self,
        _: usize,
        position: &G,
        game: Option<&SteppingGame<G>>,
        mut request: SearchRequest,
    ) -> Result<(), Error> {
        let queued = Request {
            token: request.token,
            simulations: request.simulations.unwrap_or(u32::MAX),
            seed: 0,
            run: 0,
            deadline: None,
            priority: request.priority,
            report_every: None,
        };
        let allowed = std::mem::take(&mut request.allowed);
        let mut open = OpenSearch { request, game: game.cloned(), search: None, began: None, reported: 0.0, cut: None };
        let Some(game) = game else {
            let mut search = Search::new(position.clone(), self.player.config);
            if !allowed.is_empty() {
                search.allow(allowed);
            }
            open.search = Some(begun(search, &queued)?);
            self.open.push(open);
            return Ok(());
        };
        self.games.retain(|other| other.strong_count() > 0 && other.as_ptr() != Rc::as_ptr(game));
        self.games.push(Rc::downgrade(game));
        // As in an engine, a pondering search ends once its game gets another request.
        let same = |open: &&mut OpenSearch<G>| open.game.as_ref().is_some_and(|other| Rc::ptr_eq(other, game));
        for open in self.open.iter_mut().filter(same).filter(|open| open.request.priority == Priority::Ponder) {
            open.cut = open.cut.or(Some(Stop::Stopped));
        }
        game.borrow_mut().search(queued, allowed);
        self.open.push(open);
        self.go_on(game);
        Ok(())
    }

    fn stop(&mut self, token: u64) {
        if let Some(open) = self.open.iter_mut().find(|open| open.request.token == token) {
            open.cut = open.cut.or(Some(Stop::Stopped));
        }
    }

    fn cancel(&mut self, token: u64) {
        if let Some(place) = self.open.iter().position(|open| open.request.token == token) {
            self.fail(place, Error::Search("the search was cancelled".to_owned()));
        }
    }

    fn take(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// A search that begins as a request asks.
fn begun<G: Game>(mut search: Search<G>, request: &Request<u64>) -> Result<Search<G>, Error> {
    search.begin(request.simulations, stream_for(request.seed, 0, request.run)).map_err(Error::game)?;
    Ok(search)
}
