//! One type for the two ways in which games pay ([`Value`], [`Values`]).
//!
//! Code that is generic over games is compiled twice, once for [`AnyGame`] of each payoff. Python holds [`Either`] of the
//! two.

use azpy_core::game::{Value, Values};
use azpy_games::any::AnyGame;

/// One of two, by what the game pays.
#[derive(Clone)]
pub enum Either<Z, S> {
    /// Two players share a zero sum.
    Zero(Z),
    /// Each player has a number.
    Several(S),
}

/// A position of any game.
pub(crate) type AnyState = Either<AnyGame<Value>, AnyGame<Values>>;

/// Does the same with either.
macro_rules! each {
    ($either:expr, $one:pat => $body:expr) => {
        match $either {
            $crate::either::Either::Zero($one) => $body,
            $crate::either::Either::Several($one) => $body,
        }
    };
}
/// Makes the same of either.
macro_rules! map {
    ($either:expr, $one:pat => $body:expr) => {
        match $either {
            $crate::either::Either::Zero($one) => $crate::either::Either::Zero($body),
            $crate::either::Either::Several($one) => $crate::either::Either::Several($body),
        }
    };
}
pub(crate) use {each, map};
