//! Errors: of a request and its fields, of a player's files, of a search.

use std::fmt::Display;

/// Why a request is not served, a player not opened, or a search not done. Its text is a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A field has another value than was expected.
    #[error("{field}: expected {expected}, got {value}")]
    Value {
        /// The field's name, with the way to it: `moves[3]`.
        field: String,
        /// What was expected, in words.
        expected: String,
        /// What came, cut where it is long.
        value: String,
    },
    /// A field, or several together, is wrong.
    #[error("{field}: {problem}")]
    Field {
        /// As of [`Error::Value`].
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// A field is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A text is not one JSON object.
    #[error("{0}")]
    Json(String),
    /// A game refuses a position, a line of play or a record, or a game of the user's own failed.
    #[error("{0}")]
    Game(String),
    /// After so many moves a roll is due, which no search can begin with.
    #[error("moves: after {0} moves a roll is due: add its outcome as the next move")]
    RollDue(usize),
    /// Too much is going on: the same request may be served later.
    #[error("{0}")]
    Busy(String),
    /// A search did not begin, or it failed.
    #[error("{0}")]
    Search(String),
    /// A player's file is missing or damaged.
    #[error("{path} {problem}")]
    File {
        /// The file, or its folder.
        path: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A player's settings are wrong.
    #[error("{path}: {problem}")]
    Settings {
        /// The file, or its folder.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// What is wrong with a field.
    pub(crate) fn field(field: impl Into<String>, problem: impl Display) -> Self {
        Self::Field { field: field.into(), problem: problem.to_string() }
    }

    /// What a game says.
    pub(crate) fn game(error: impl Display) -> Self {
        Self::Game(error.to_string())
    }

    pub(crate) fn file(path: impl Into<String>, problem: impl Display) -> Self {
        Self::File { path: path.into(), problem: problem.to_string() }
    }

    pub(crate) fn settings(path: impl Into<String>, problem: impl Display) -> Self {
        Self::Settings { path: path.into(), problem: problem.to_string() }
    }
}
