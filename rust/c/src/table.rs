//! A game that goes on, and its search.

use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::config::SearchConfig;
use azpy_core::engine::{Priority, Request, Seat};
use azpy_core::evaluator::Rollout;
use azpy_core::game::{Action, Game, Payoff, Turn};
use azpy_core::search::{Search, SearchResult, stream_for};
use azpy_core::text::{Notation, shown};
use azpy_games::any::{Any, Open, Start};
use azpy_games::registry::{Entry, split, with_params};
use azpy_net::Answers;

use crate::player::Player;

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
pub(crate) trait Table {
    fn turn(&self) -> Turn;
    /// For each player, player 0 first: the outcome, or what the last search says; else 0.
    fn values(&self) -> Vec<f32>;
    fn moves(&self) -> Vec<Move>;
    fn drawing(&self) -> String;
    fn action(&self, text: &str) -> Result<Action, String>;
    fn play(&mut self, action: Action) -> Result<(), String>;
    /// Takes plies back, and says how many.
    fn undo(&mut self, plies: usize) -> usize;
    fn search(&mut self, simulations: u32) -> Result<Action, String>;
}

/// Opens a game; see `azpy_open` in `azpy.h`.
pub(crate) fn open(folder: Option<&str>, game: Option<&str>, position: Option<&str>) -> Result<Box<dyn Table>, String> {
    let player = folder.map(Player::read).transpose()?;
    let own = player.as_ref().map(Player::game).transpose()?;
    let wanted =
        game.or(own).ok_or("folder and game are both NULL: give a player's folder or a game's name")?.to_owned();
    if let (Some(player), Some(own), Some(game)) = (&player, own, game)
        && !plays(player, own, game)?
    {
        return Err(format!(
            "the player in {} plays {own}, not {game}: leave the game out",
            folder.unwrap_or_default()
        ));
    }
    Start::open(&wanted, Opening { player, position: position.map(str::to_owned), kept: KEPT })?
}

/// Whether a player of its `own` game plays `game`: the same, or with any board one that differs by its size alone.
fn plays(player: &Player, own: &str, game: &str) -> Result<bool, String> {
    let spelled = Start::<Opening>::spelled;
    let (own, game) = (spelled(own, Vec::new())?, spelled(game, Vec::new())?);
    if own == game || !player.has_any_size()? {
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

/// Who plays, and from where.
struct Opening {
    player: Option<Player>,
    position: Option<String>,
    /// Bytes of all trees that are kept.
    kept: usize,
}

impl Open for Opening {
    type Opened = Result<Box<dyn Table>, String>;

    fn games() -> &'static [Entry<Start<Self>>] {
        const GAMES: &[Entry<Start<Opening>>] = &azpy_games::built_in!(Start::<Opening>::new);
        GAMES
    }

    fn open<P: Payoff>(self, start: Any<P>) -> Self::Opened {
        let (config, answers) = match self.player {
            Some(player) => (player.config(&start)?, player.answers(&start)?),
            None => (SearchConfig::default(), Answers::Plain(Rollout { seed: SEED })),
        };
        let config = SearchConfig { max_memory_mb: Some(TREE), ..config };
        let begin = self.position.map_or_else(|| Ok(start.clone()), |text| start.parse(&text))?;
        Ok(Box::new(Seated {
            seat: Seat::new(begin, config, SEED),
            rounds: Rounds::new(Workers::Serial, None),
            answers,
            kept: self.kept,
            found: SearchResult::default(),
        }))
    }
}

struct Seated<P: Payoff> {
    seat: Seat<Any<P>, ()>,
    rounds: Rounds<Any<P>>,
    answers: Answers<Rollout>,
    kept: usize,
    /// Of the last search of this position; empty where there was none.
    found: SearchResult,
}

impl<P: Payoff> Seated<P> {
    /// Has a search do what a request asks.
    fn finish(&mut self, search: &mut [Search<Any<P>>; 1], request: &Request<()>) -> Result<(), String> {
        let stream = stream_for(request.seed, 0, request.run);
        search[0].begin(request.simulations, stream).map_err(|fault| fault.to_string())?;
        let said = |error| match error {
            SearchError::Evaluator(said) => said,
            other => other.to_string(),
        };
        while self.rounds.run(search, &mut self.answers).map_err(said)? {}
        Ok(())
    }
}

impl<P: Payoff> Table for Seated<P> {
    fn turn(&self) -> Turn {
        self.seat.position().turn()
    }

    fn values(&self) -> Vec<f32> {
        let position = self.seat.position();
        match position.turn() {
            Turn::Terminal => position.outcome().each().numbers().to_vec(),
            _ if self.found.values.is_empty() => vec![0.0; position.num_players()],
            _ => self.found.values.clone(),
        }
    }

    fn moves(&self) -> Vec<Move> {
        let (position, found) = (self.seat.position(), &self.found);
        let (mut legal, mut rolls) = (Vec::new(), Vec::new());
        match position.turn() {
            Turn::Player(_) => position.legal_actions(&mut legal),
            Turn::Chance => position.chance_outcomes(&mut rolls),
            Turn::Terminal => {}
        }
        let plain = |action| Move { action, name: position.action_name(action), ..Move::default() };
        let rolls = rolls.into_iter().map(|(outcome, probability)| Move { probability, ..plain(outcome) });
        let mut moves: Vec<Move> = legal.into_iter().map(plain).chain(rolls).collect();
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
        self.seat.position().render()
    }

    fn action(&self, text: &str) -> Result<Action, String> {
        match self.seat.position().parse_actions(text)?.as_slice() {
            &[action] => Ok(action),
            several => Err(format!("expected one move, got {} in {}", several.len(), shown(text))),
        }
    }

    fn play(&mut self, action: Action) -> Result<(), String> {
        self.seat.position().clone().try_play(action).map_err(|error| error.to_string())?;
        self.seat.play(action);
        self.found = SearchResult::default();
        Ok(())
    }

    fn undo(&mut self, plies: usize) -> usize {
        let taken = (0..plies).take_while(|_| self.seat.undo()).count();
        if taken > 0 {
            self.found = SearchResult::default();
        }
        taken
    }

    fn search(&mut self, simulations: u32) -> Result<Action, String> {
        match self.turn() {
            Turn::Player(_) => {}
            Turn::Chance => return Err("a roll is next: play its outcome, then search".to_owned()),
            Turn::Terminal => return Err("the game is over: there is nothing to search".to_owned()),
        }
        if self.seat.memory_bytes() > self.kept {
            self.seat.drop_trees();
        }
        let (priority, token) = (Priority::Play, ());
        let request = Request { token, simulations, seed: SEED, run: 0, deadline: None, priority, report_every: None };
        self.seat.search(request, Vec::new());
        let (search, request) = self.seat.next(1).ok_or("the search before has not ended")?;
        let mut search = [search];
        let done = self.finish(&mut search, &request);
        let [search] = search;
        let found = search.result();
        self.seat.give_back(search, done.is_ok());
        done?;
        self.found = found;
        self.found.action.ok_or_else(|| "the search found no action".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(table: &mut dyn Table, simulations: u32) -> u32 {
        table.search(simulations).unwrap();
        table.moves().iter().map(|each| each.visits).sum()
    }

    #[test]
    fn trees_are_dropped_once_they_are_too_large_together() {
        let mut table =
            Start::open("connect_four", Opening { player: None, position: None, kept: 100_000 }).unwrap().unwrap();
        assert_eq!(visits(&mut *table, 100), 100);
        table.play(3).unwrap();
        assert!(visits(&mut *table, 10) > 10);
        assert_eq!(table.undo(1), 1);
        assert_eq!(visits(&mut *table, 2_000), 2_100, "the tree of 100 simulations was small enough");
        table.play(3).unwrap();
        assert_eq!(visits(&mut *table, 10), 10);
        assert_eq!(table.undo(1), 1);
        assert_eq!(visits(&mut *table, 10), 10);
    }
}
