//! A position of a game behind [`AnyState`], and the sessions that begin there.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use azpy_core::evaluator::RandomGames;
use azpy_core::game::{Action, Payoff, PlayError, Player, Turn, Values};
use azpy_core::record::GameRecord as CoreRecord;
use azpy_core::rng::Stream;
use azpy_core::text::unmarked;
use azpy_core::written::{Bounds, Variations, WrittenGame};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::doors::{
    AnyBatch, AnyModel, AnyReplay, AnyState, BatchSettings, ModelSettings, Playing, SelfPlaySettings, Typed,
};
use crate::errors::GameError;
use crate::evaluators::AnyEvaluator;
use crate::hosted::{Fault, Hosted};
use crate::model::{Model, check_searchable};
use crate::replay::Replay;

impl<G: Hosted> AnyState for Typed<G> {
    fn boxed(&self) -> PyResult<Box<dyn AnyState>> {
        Ok(Box::new(Self(self.0.copied()?)))
    }
    fn shared(&self) -> Box<dyn AnyState> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn try_play(&mut self, action: Action) -> Result<(), PlayError> {
        self.0.try_play(action)
    }
    fn play(&mut self, action: Action) {
        self.0.play(action);
    }
    fn outcome(&self) -> Values {
        self.0.outcome().each()
    }
    fn parse(&self, text: &str) -> Result<Box<dyn AnyState>, String> {
        Ok(Box::new(Typed(self.0.parse(unmarked(text))?)))
    }
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Box<dyn AnyState>, String> {
        Ok(Box::new(Typed(self.0.parse_plies(unmarked(text), plies)?)))
    }
    fn read_game(&self, text: &str) -> Result<Option<(WrittenGame, Option<f32>, usize)>, String> {
        let Some((game, rest)) = self.0.read_game(text)? else { return Ok(None) };
        let mut end = self.0.clone();
        game.actions.iter().flatten().for_each(|&action| end.play(action));
        if !G::Payoff::ZERO_SUM {
            return Err("written games are read for two players with a zero sum; this game has none".to_owned());
        }
        let outcome = (end.turn() == Turn::Terminal).then(|| end.outcome().of(Player::Zero));
        Ok(Some((game, outcome, text.len() - rest.len())))
    }
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Box<dyn AnyState>>, String> {
        let Variations { start, moves, tags, notes, left_out } = self.0.read_variations(unmarked(text), bounds)?;
        Ok(Variations { start: Box::new(Typed(start)), moves, tags, notes, left_out })
    }
    fn without_dead(&self, places: &[String]) -> Option<Box<dyn AnyState>> {
        Some(Box::new(Typed(self.0.without_dead(places)?)))
    }
    fn without_past(&self, mover: Option<Player>) -> Option<Box<dyn AnyState>> {
        Some(Box::new(Typed(self.0.without_past(mover)?)))
    }
    fn record_of(&self, actions: &[Action], outcome: &[f32]) -> Result<CoreRecord, String> {
        CoreRecord::of_actions(&self.0, actions, outcome)
    }
    fn check(&self) -> PyResult<()> {
        self.0.fault().map_or(Ok(()), Fault::check)
    }
    fn take_error(&self) -> PyResult<()> {
        self.0.fault().map_or(Ok(()), Fault::take)
    }
    fn batch(&self, states: &[&dyn AnyState], settings: BatchSettings) -> PyResult<Arc<RwLock<dyn AnyBatch>>> {
        Ok(Arc::new(RwLock::new(Batch::<G>::new(states, settings)?)))
    }
    fn selfplay(&self, settings: SelfPlaySettings) -> PyResult<Playing> {
        Playing::start(&self.0, settings)
    }
    fn replay(&self, max_positions: usize) -> Box<dyn AnyReplay> {
        Box::new(Replay::new(self.0.clone(), max_positions))
    }
    fn check_searchable(&self) -> PyResult<()> {
        check_searchable(&self.0)
    }
    fn model(&self, settings: ModelSettings, evaluator: AnyEvaluator) -> Arc<dyn AnyModel> {
        Arc::new(Model::new(&self.0, settings, evaluator))
    }
    fn random_games(&self, seed: u64, games: Range<u64>, until: Instant) -> PyResult<(u64, u64)> {
        let mut random = RandomGames::default();
        let (mut done, mut plies) = (0, 0);
        for game in games {
            let mut state = self.0.clone();
            let played = random.play(&mut state, &mut Stream::keyed(&[seed, game]));
            // An error of a game in Python comes before what followed from it.
            self.check()?;
            plies += played.ok_or_else(|| GameError::new_err("a random game found no action, or did not end"))? as u64;
            done += 1;
            // A reading of the clock takes as long as a ply or two.
            if done % 16 == 0 && Instant::now() > until {
                break;
            }
        }
        Ok((done, plies))
    }
}
