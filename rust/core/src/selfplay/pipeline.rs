//! One thread of self-play: rounds over its slots, and what it hands over between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::batched::{Rounds, SearchError};
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::search::Search;
use crate::selfplay::play::{GameInPlay, SelfPlayConfig, begin_move, finish_move};
use crate::selfplay::record::{FAST_SEARCH, GameRecord, Ply};
use crate::selfplay::shared::{SelfPlayError, Shared, Standing};
use crate::selfplay::timing::{Clocked, PipelineStats};

/// How many slots may have a game: all, once the first games have begun one after another.
pub(crate) struct Ramp {
    slots: usize,
    /// The plies over which first games begin.
    plies: usize,
    open: usize,
}

impl Ramp {
    /// An eighth of the slots is open from the start; all are with 0 plies.
    pub(crate) fn new(slots: usize, plies: usize) -> Self {
        Self { slots, plies, open: if plies == 0 { slots } else { slots.div_ceil(8) } }
    }

    /// Opens slots for the plies of the longest game in play, and one for each game that ended.
    fn widen(&mut self, longest: usize, ended: usize) {
        if self.open < self.slots {
            let least = self.slots.div_ceil(8);
            let due = least + (self.slots - least) * longest / self.plies;
            self.open = due.max(self.open + ended).min(self.slots);
        }
    }
}

/// A thread's games and evaluator.
pub(crate) struct Pipeline<E, G: Game> {
    index: usize,
    config: SelfPlayConfig,
    start: G,
    rounds: Rounds<G>,
    evaluator: E,
    /// The slots: their searches and their games, in step.
    searches: Vec<Search<G>>,
    games: Vec<GameInPlay>,
    ramp: Ramp,
    /// Plies of the longest game after the last round, and of the longest without its random opening.
    longest: [usize; 2],
    /// Finished games not handed over yet, and since when.
    spent: PipelineStats,
    began: Instant,
}

impl<E: Evaluator<G>, G: Game> Pipeline<E, G> {
    /// A pipeline without games.
    pub(crate) fn new(
        index: usize,
        config: SelfPlayConfig,
        start: G,
        rounds: Rounds<G>,
        evaluator: E,
        ramp: Ramp,
    ) -> Self {
        Self {
            ramp,
            index,
            config,
            start,
            rounds,
            evaluator,
            searches: Vec::new(),
            games: Vec::new(),
            longest: [0; 2],
            spent: PipelineStats::default(),
            began: Instant::now(),
        }
    }

    /// Plays until it is told to stop.
    pub(crate) fn run(mut self, shared: &Shared<E, E::Error>) {
        let index = self.index;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.play(shared)));
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(SelfPlayError::Search(error)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Some(SelfPlayError::Panic(text.unwrap_or_else(|| "a panic without a text".into())))
            }
        };
        let mut state = shared.lock();
        state.running -= 1;
        state.ended[index] = true;
        if error.is_none() {
            let begun = self.games.into_iter().map(|game| game.record).filter(|record| record.samples() > 0);
            state.unfinished.extend(begun);
        }
        if let Some(error) = error {
            state.stop = true;
            if !std::mem::replace(&mut state.failed, true) {
                state.error = Some(error);
            }
        }
        shared.changed.notify_all();
    }

    fn play(&mut self, shared: &Shared<E, E::Error>) -> Result<(), SearchError<E::Error>> {
        self.began = Instant::now();
        let mut over = Vec::new();
        while self.hand_over(shared, std::mem::take(&mut over)) {
            self.refill(shared)?;
            if self.searches.is_empty() {
                continue; // another pipeline took the games, or they were over at once
            }
            let mut clocked = Clocked { inner: &mut self.evaluator, evaluating: Duration::ZERO };
            self.rounds.run(&mut self.searches, &mut clocked)?;
            self.spent.evaluating += clocked.evaluating;
            self.spent.rounds += 1;
            let network = self.network();
            let config = &self.config;
            let mut slots_in_play: Vec<_> = self.searches.iter_mut().zip(&mut self.games).collect();
            self.rounds.workers().for_each(&mut slots_in_play, |(search, game)| {
                // Games end and start here. An unfinished search needs nothing.
                if search.is_done() {
                    finish_move(search, game, config, network);
                    begin_move(search, game, config, network);
                }
            });
            for index in self.look()?.into_iter().rev() {
                self.searches.swap_remove(index);
                over.push(self.games.swap_remove(index).into_record());
            }
        }
        Ok(())
    }

    /// The slots whose games are over, ascending. Notes how long the others are.
    fn look(&mut self) -> Result<Vec<usize>, SearchError<E::Error>> {
        let mut over = Vec::new();
        self.longest = [0; 2];
        for (slot, game) in self.games.iter().enumerate() {
            if game.over {
                over.push(slot);
            } else if let Some(fault) = &game.fault {
                return Err(SearchError::Game { search: slot, fault: fault.clone() });
            } else {
                let plies = game.record.plies.len();
                let lengths = [plies, plies.saturating_sub(game.opening)];
                self.longest = std::array::from_fn(|which| self.longest[which].max(lengths[which]));
            }
        }
        Ok(over)
    }

    /// What records call the network.
    fn network(&self) -> u64 {
        self.evaluator.network().unwrap_or(0)
    }

    /// Starts games until every open slot has one or no game is left.
    fn refill(&mut self, shared: &Shared<E, E::Error>) -> Result<(), SearchError<E::Error>> {
        while self.searches.len() < self.ramp.open {
            let next = {
                let mut state = shared.lock();
                if state.stop {
                    return Ok(());
                }
                state.begin_game()
            };
            let Some((game_id, to_beat, begun)) = next else {
                return Ok(());
            };
            let begun = begun.and_then(|record| GameInPlay::begun(&self.config, &self.start, record));
            let anew = || (GameInPlay::new(&self.config, &self.start, game_id, to_beat), self.start.clone());
            let (mut game, position) = begun.unwrap_or_else(anew);
            let mut search = Search::new(position, game.search_config(&self.config));
            search.roll_out(self.config.payoff_scale);
            search.fold();
            begin_move(&mut search, &mut game, &self.config, self.network());
            if let Some(fault) = game.fault {
                return Err(SearchError::Game { search: self.searches.len(), fault });
            }
            // A game without any search (over at once, or all opening) still counts.
            if game.over {
                self.hand_over(shared, vec![game.into_record()]);
            } else {
                self.searches.push(search);
                self.games.push(game);
            }
        }
        Ok(())
    }

    /// Hands over finished games, waits if necessary, and takes a new evaluator. Returns whether to go on: a slot has a
    /// game, or a game was waiting to start.
    fn hand_over(&mut self, shared: &Shared<E, E::Error>, over: Vec<GameRecord>) -> bool {
        let mut state = shared.lock();
        let rounds = std::mem::take(&mut self.rounds.stats);
        let stats = &mut state.stats;
        stats.games += over.len() as u64;
        state.in_play -= over.len();
        let stats = &mut state.stats;
        for record in &over {
            stats.positions += record.samples() as u64;
            let count = |is: fn(&&Ply) -> bool| record.plies.iter().filter(is).count() as u64;
            stats.searches += count(|ply| ply.is_searched());
            stats.fast_searches += count(|ply| ply.flags & FAST_SEARCH != 0);
        }
        stats.rounds.add(&rounds);
        let mut spent = std::mem::take(&mut self.spent);
        let [longest, searched] = self.longest; // random openings need no search
        self.ramp.widen(searched, over.len());
        (spent.in_play, spent.longest) = (self.games.len(), longest);
        spent.growing = self.began.elapsed().saturating_sub(spent.evaluating);
        state.pipelines[self.index].add(&spent);
        if !over.is_empty() {
            state.finished.extend(over);
            shared.changed.notify_all();
        }
        let has_games = !self.searches.is_empty();
        let mut waiting = false;
        loop {
            if let Some(evaluator) = state.next[self.index].take() {
                self.evaluator = evaluator;
                shared.changed.notify_all();
            }
            let idle = !has_games && state.queue.is_empty();
            let go_on = !state.paused && !idle && state.finished.len() < state.room;
            state.count_standing(self.index);
            if state.stop || go_on {
                self.began = Instant::now();
                state.waiting -= usize::from(waiting);
                return !state.stop;
            }
            // Notify once: two pipelines that answered every wake-up would never sleep.
            if !waiting {
                waiting = true;
                state.waiting += 1;
                shared.changed.notify_all();
            }
            let why = match (state.paused, idle) {
                (true, _) => Standing::Paused,
                (false, true) => Standing::Idle,
                (false, false) => Standing::Waiting,
            };
            state.standing[self.index] = Some((Instant::now(), why));
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_open_while_the_first_games_go_on_and_as_games_end() {
        let mut ramp = Ramp::new(16, 40);
        let mut open = |longest, ended| {
            ramp.widen(longest, ended);
            ramp.open
        };
        assert_eq!([open(0, 0), open(20, 0), open(5, 0), open(5, 3)], [2, 9, 9, 12]);
        assert_eq!([open(39, 0), open(40, 0), open(400, 9)], [15, 16, 16]);
        assert_eq!(Ramp::new(16, 0).open, 16);
        assert_eq!(Ramp::new(1, 40).open, 1);
    }
}
