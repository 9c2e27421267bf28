//! A position of any game, one in Python too, as one game of the core: for what need not be compiled once a game.

use std::sync::Arc;

use azpy_core::game::{Action, Game, PlayError, Player, Values};
use azpy_core::text::{Notation, Position};
use azpy_core::written::{Bounds, Variations};
use azpy_core::{handed_on, of_game, of_notation};
use azpy_games::registry::{split, with_params};
use pyo3::PyResult;

use crate::doors::AnyState;
use crate::registry::{make, spec_of};
use crate::state::State;

/// A position of any game. Positions that come from one another share the place of an error.
pub(crate) struct Any {
    pub(crate) spec: Arc<str>,
    pub(crate) inner: Box<dyn AnyState>,
}

impl Any {
    /// A copy with a place of its own for errors.
    pub(crate) fn of(state: &State) -> PyResult<Self> {
        Ok(Self { spec: state.spec.as_str().into(), inner: state.inner.boxed()? })
    }

    pub(crate) fn state(&self) -> PyResult<State> {
        Ok(State { spec: self.spec.to_string(), inner: self.inner.boxed()? })
    }

    /// A copy with a place of its own for errors: several threads may look at one position.
    pub(crate) fn copied(&self) -> PyResult<Self> {
        Ok(self.with(self.inner.boxed()?))
    }

    fn with(&self, inner: Box<dyn AnyState>) -> Self {
        Self { spec: self.spec.clone(), inner }
    }

    /// A position that was read: see [`spec_of`].
    fn with_read(&self, inner: Box<dyn AnyState>) -> Self {
        Self { spec: spec_of(&self.spec, &*inner).into(), inner }
    }
}

impl Clone for Any {
    fn clone(&self) -> Self {
        self.with(self.inner.shared())
    }
}

impl Game for Any {
    type Payoff = Values;

    of_game!(handed_on, inner);
    fn play(&mut self, action: Action) {
        self.inner.play(action);
    }
    fn try_play(&mut self, action: Action) -> Result<(), PlayError> {
        self.inner.try_play(action)
    }
    fn outcome(&self) -> Values {
        self.inner.outcome()
    }
}

impl Notation for Any {
    of_notation!(handed_on, inner);
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

impl Position for Any {
    fn game(&self) -> &str {
        &self.spec
    }

    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, String> {
        let (spec, inner) = make(split(&self.spec).0, with_params(&self.spec, params))?;
        Ok(Self { spec: spec.into(), inner })
    }
}
