//! Errors about games and positions that do not exist.

use azpy_core::text::shown;
use azpy_core::written::{Unfit, Wrong};

/// What a game refuses, or the list of games. The sentence says what came and what was expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that a parameter of a game, or a part of a text, cannot have.
    #[error("{what} must be {expected}, got {got}")]
    Value {
        /// The parameter, or the part of the text.
        what: String,
        /// What it can be.
        expected: String,
        /// The value. A text is in quotes, and cut where it is long.
        got: String,
    },
    /// A text, or a part of it, that has another form.
    #[error("{expected}, got {got}")]
    Form {
        /// Which form it should have.
        expected: String,
        /// What came.
        got: String,
    },
    /// What is incomplete or contradicts itself, such as a position that no game leads to.
    #[error("{0}")]
    Invalid(String),
    /// No game has this name.
    #[error("unknown game {}; there are: {}", shown(.name), .known.join(", "))]
    UnknownGame {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// The game has no parameter of this name.
    #[error("{game} has no parameter {}; {}", shown(.name), listed(.known))]
    UnknownParameter {
        /// The game.
        game: &'static str,
        /// The name that was asked for.
        name: String,
        /// The parameters that the game has.
        known: Vec<&'static str>,
    },
    /// A parameter has more than one value.
    #[error("parameter {} is given twice", shown(.0))]
    GivenTwice(String),
    /// What azpy's core, or a game of one's own, refuses.
    #[error(transparent)]
    Core(#[from] azpy_core::Error),
}

impl Error {
    pub(crate) fn value(what: impl Into<String>, expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Value { what: what.into(), expected: expected.into(), got: got.to_string() }
    }

    pub(crate) fn form(expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Form { expected: expected.into(), got: got.to_string() }
    }
}

/// An [`Error::Invalid`] with a text that is put together as by `format!`.
macro_rules! invalid {
    ($($part:tt)*) => {
        $crate::Error::Invalid(format!($($part)*))
    };
}
pub(crate) use invalid;

/// Turns an error into an [`Unfit`] of this kind.
pub(crate) fn unfit(kind: fn(String) -> Unfit) -> impl Fn(Error) -> Unfit {
    move |error| kind(error.into())
}

/// What is wrong at a byte of a text.
pub(crate) fn wrong(at: usize, error: Error) -> Wrong {
    Wrong { at, why: error.into() }
}

impl From<String> for Error {
    fn from(why: String) -> Self {
        Self::Core(why.into())
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

/// What a game's notation refuses, as the traits of the core pass it on.
impl From<Error> for azpy_core::Error {
    fn from(error: Error) -> Self {
        if let Error::Core(error) = error { error } else { Self::Text(error.to_string()) }
    }
}

fn listed(parameters: &[&str]) -> String {
    if parameters.is_empty() { "it has none".to_owned() } else { format!("it has: {}", parameters.join(", ")) }
}
