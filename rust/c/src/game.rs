//! A game that goes on, and its search.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::{fs, io};

use azpy_core::config::SearchConfig;
use azpy_core::engine::GameTree;
use azpy_core::evaluator::Rollout;
use azpy_core::game::{Action, Game, Payoff, Turn, legal_of, rolls_of};
use azpy_core::search::SearchResult;
use azpy_core::text::{Notation, Position, shown};
use azpy_games::any::AnyGame;
use azpy_games::each;
use azpy_games::registry::{BUILT_IN, split, with_params};
use azpy_net::Answers;
use azpy_serve::{Event, Files, Player, Run, SearchRequest, Searcher, Stepping, SteppingGame, answers};

use crate::error::Error;

/// MiB of the tree of a position, and bytes of all trees that are kept.
const TREE: f64 = 1024.0;
const KEPT: usize = 1 << 30;
/// Of the random games, and of the dice in a search.
const SEED: u64 = 1;

/// A legal action, or an outcome of a roll.
#[derive(Default)]
pub(crate) struct Move {
    pub(crate) action: Action,
    pub(crate) name: String,
    pub(crate) probability: f32,
    pub(crate) visits: u32,
    pub(crate) prior: f32,
    pub(crate) policy: f32,
    pub(crate) value: f32,
}

/// What C sees of a game.
pub(crate) trait OpenGame {
    fn turn(&self) -> Turn;
    /// For each player, player 0 first: the outcome, or what the last search says; else 0.
    fn values(&self) -> Vec<f32>;
    fn moves(&self) -> Vec<Move>;
    fn drawing(&self) -> String;
    fn action(&self, text: &str) -> Result<Action, Error>;
    fn play(&mut self, action: Action) -> Result<(), Error>;
    /// Takes plies back, and says how many.
    fn undo(&mut self, plies: usize) -> usize;
    fn search(&mut self, simulations: u32) -> Result<Action, Error>;
}

/// A folder on the disk.
struct Folder<'a>(&'a Path);

impl Files for Folder<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}

/// Opens a game; see `azpy_open` in `azpy.h`.
pub(crate) fn open(
    folder: Option<&str>,
    game: Option<&str>,
    position: Option<&str>,
) -> Result<Box<dyn OpenGame>, Error> {
    let wrong = |problem: &str| Error::Argument(problem.to_owned());
    if folder == Some("") {
        return Err(wrong("folder is empty: give a player's folder, or NULL for none"));
    }
    let run = folder.map(|folder| Run::read(folder, &Folder(Path::new(folder)))).transpose()?;
    let own = run.as_ref().map(Run::game).transpose()?;
    let missing = || wrong("folder and game are both NULL: give a player's folder or a game's name");
    let wanted = game.or(own).ok_or_else(missing)?.to_owned();
    if let (Some(run), Some(own), Some(game)) = (&run, own, game)
        && !plays(run, own, game)?
    {
        let folder = folder.unwrap_or_default();
        return Err(Error::Argument(format!("the player in {folder} plays {own}, not {game}: leave the game out")));
    }
    let start = AnyGame::open(BUILT_IN, &wanted, Vec::new()).map_err(Error::game)?;
    if start.hides() {
        return Err(Error::Game(format!("{wanted} hides something from its players, and azpy_look would show it")));
    }
    each!(start.by_payoff(), start => open_at(start, run, position, KEPT))
}

/// Whether a player of its `own` game plays `game`: the same, or with any board one that differs by its size alone.
fn plays(run: &Run, own: &str, game: &str) -> Result<bool, Error> {
    let spelled = |spec: &str, params| match AnyGame::open(BUILT_IN, spec, params) {
        Ok(start) => Ok(start.game().to_owned()),
        Err(error) => Err(Error::game(error)),
    };
    let (own, game) = (spelled(own, Vec::new())?, spelled(game, Vec::new())?);
    if own == game || !run.has_any_size()? {
        return Ok(own == game);
    }
    let mut sides: Vec<(&str, String)> = Vec::new();
    for (name, value) in split(&own).1.chain(split(&game).1) {
        if ["size", "width", "height"].contains(&name) && sides.iter().all(|(known, _)| *known != name) {
            sides.push((name, value.to_owned()));
        }
    }
    Ok(spelled(split(&own).0, with_params(&own, &sides))? == spelled(split(&game).0, with_params(&game, &sides))?)
}

/// Opens a game at a position, or at its start; trees of `kept` bytes in all are kept.
fn open_at<P: Payoff>(
    start: AnyGame<P>,
    run: Option<Run>,
    position: Option<&str>,
    kept: usize,
) -> Result<Box<dyn OpenGame>, Error> {
    let begin = position.map_or_else(|| Ok(start.clone()), |text| start.parse(text)).map_err(Error::game)?;
    let (mut player, net) = match run {
        Some(run) => run.player(start).map(|(player, net)| (player, Some(net)))?,
        None => (Player::new(start, SearchConfig::default()), None),
    };
    player.config.max_memory_mb = Some(TREE);
    // No search ends for memory: a tree that is full no longer grows, and kept trees go before a search.
    let game = Rc::new(RefCell::new(GameTree::new(begin, player.config, SEED)));
    let searcher = Stepping::new(player, answers(net, Rollout { seed: SEED }), usize::MAX, 0);
    Ok(Box::new(SearchedGame { game, searcher, kept, found: SearchResult::default() }))
}

struct SearchedGame<P: Payoff> {
    game: SteppingGame<AnyGame<P>>,
    searcher: Stepping<AnyGame<P>, Answers<Rollout>>,
    kept: usize,
    /// Of the last search of this position; empty where there was none.
    found: SearchResult,
}

impl<P: Payoff> OpenGame for SearchedGame<P> {
    fn turn(&self) -> Turn {
        self.game.borrow().position().turn()
    }

    fn values(&self) -> Vec<f32> {
        let game = self.game.borrow();
        let position = game.position();
        match position.turn() {
            Turn::Terminal => position.outcome().each().numbers().to_vec(),
            _ if self.found.values.is_empty() => vec![0.0; position.num_players()],
            _ => self.found.values.clone(),
        }
    }

    fn moves(&self) -> Vec<Move> {
        let (game, found) = (self.game.borrow(), &self.found);
        let position = game.position();
        let plain = |action| Move { action, name: position.action_name(action), ..Move::default() };
        let rolls = rolls_of(position).into_iter().map(|(outcome, probability)| Move { probability, ..plain(outcome) });
        let mut moves: Vec<Move> = legal_of(position).into_iter().map(plain).chain(rolls).collect();
        // A search has all legal actions, in the same order.
        for (index, each) in moves.iter_mut().enumerate().take(found.actions.len()) {
            each.visits = found.visits[index];
            each.prior = found.priors[index];
            each.policy = found.target[index];
            each.value = found.q[index];
        }
        moves
    }

    fn drawing(&self) -> String {
        self.game.borrow().position().render()
    }

    fn action(&self, text: &str) -> Result<Action, Error> {
        match self.game.borrow().position().parse_actions(text).map_err(Error::game)?.as_slice() {
            &[action] => Ok(action),
            several => Err(Error::game(format_args!("expected one move, got {} in {}", several.len(), shown(text)))),
        }
    }

    fn play(&mut self, action: Action) -> Result<(), Error> {
        self.game.borrow().position().clone().try_play(action).map_err(Error::game)?;
        self.game.borrow_mut().play(action);
        self.found = SearchResult::default();
        Ok(())
    }

    fn undo(&mut self, plies: usize) -> usize {
        let taken = (0..plies).take_while(|_| self.game.borrow_mut().undo()).count();
        if taken > 0 {
            self.found = SearchResult::default();
        }
        taken
    }

    fn search(&mut self, simulations: u32) -> Result<Action, Error> {
        match self.turn() {
            Turn::Player(_) => {}
            Turn::Chance => return Err(Error::Search("a roll is due: play its outcome, then search")),
            Turn::Terminal => return Err(Error::Search("the game is over, so no move can be searched")),
        }
        if self.game.borrow().memory_bytes() > self.kept {
            self.game.borrow_mut().drop_trees();
        }
        let request = SearchRequest { simulations: Some(simulations), lines: 0, ..SearchRequest::default() };
        let position = self.game.borrow().position().clone();
        self.searcher.begin(0, &position, Some(&self.game), request)?;
        while self.searcher.step(0.0) {}
        self.found = match self.searcher.take() {
            Some(Event::Done(_, report)) => report.result,
            Some(Event::Failed(_, error)) => return Err(error.into()),
            _ => return Err(Error::Search("the previous search has not ended")),
        };
        self.found.action.ok_or(Error::Search("the search found no action"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(game: &mut dyn OpenGame, simulations: u32) -> u32 {
        game.search(simulations).unwrap();
        game.moves().iter().map(|each| each.visits).sum()
    }

    #[test]
    fn trees_are_dropped_once_they_are_too_large_together() {
        let mut game =
            open_at(AnyGame::open(BUILT_IN, "connect_four", Vec::new()).unwrap(), None, None, 100_000).unwrap();
        assert_eq!(visits(&mut *game, 100), 100);
        game.play(3).unwrap();
        assert!(visits(&mut *game, 10) > 10);
        assert_eq!(game.undo(1), 1);
        assert_eq!(visits(&mut *game, 2_000), 2_100, "the tree of 100 simulations was small enough");
        game.play(3).unwrap();
        assert_eq!(visits(&mut *game, 10), 10);
        assert_eq!(game.undo(1), 1);
        assert_eq!(visits(&mut *game, 10), 10);
    }
}
