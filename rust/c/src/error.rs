//! Why a call failed.

/// Its text is what `azpy_error` gives.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of a player's files, or of a search.
    #[error(transparent)]
    Player(#[from] azpy_serve::Error),
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
    /// The game refuses its parameters, a position or a move.
    #[error("{0}")]
    Game(String),
    /// The position has nothing to search.
    #[error("{0}")]
    Search(&'static str),
    /// An earlier call panicked.
    #[error("an earlier call with this game failed because of a bug in azpy: close the game")]
    Broken,
    /// This call panicked.
    #[error("this call failed because of a bug in azpy; standard error has its message: close the game")]
    Panicked,
}

impl Error {
    /// What a game says.
    pub(crate) fn game(error: impl std::fmt::Display) -> Self {
        Self::Game(error.to_string())
    }
}
