//! Errors about input: an option, a text of a game, a record. Their texts are for people.

use crate::game::{GameFault, PlayError};

/// Why a text, an option or a record is refused, or why threads cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// An action that cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A game that breaks its contract, or an option that is not for this game.
    #[error(transparent)]
    Game(#[from] GameFault),
    /// A text that a game's own notation refuses.
    #[error("{0}")]
    Text(String),
    /// A written game that the rules do not bear out.
    #[error(transparent)]
    Written(#[from] Unfit),
    /// The game has no notation of whole games, such as PGN.
    #[error("this game does not have a notation for whole games")]
    NoNotation,
    /// A line of play goes on after the end of the game.
    #[error("action {number} is {came}, but the game is over before it")]
    AfterEnd {
        /// Which action of the line, from 1.
        number: usize,
        /// What stands there, in quotes.
        came: String,
    },
    /// A word of a line of play that names no action, or more than one.
    #[error(
        "action {number} is {came}, which {} the legal ones: {offered}",
        if *.is_ambiguous { "names more than one of" } else { "is not among" }
    )]
    Name {
        /// Which action of the line, from 1.
        number: usize,
        /// What stands there, in quotes.
        came: String,
        /// Whether several actions have the name.
        is_ambiguous: bool,
        /// The names that could have stood there.
        offered: String,
    },
    /// A move of a tree of moves that stands behind a later one.
    #[error("move {index} names move {before} as the one before it, but that comes later")]
    Order {
        /// The move.
        index: usize,
        /// The one that it names as the move before it.
        before: usize,
    },
    /// A game with variations that has too many moves.
    #[error("the game with its variations has more than {0} moves")]
    TooManyMoves(usize),
    /// A game with variations in variations, too many of them.
    #[error("variations are nested more than {0} deep")]
    TooDeep(usize),
    /// A game with too many variations that cannot be played.
    #[error("more than {most} variations cannot be played; the first: {first}")]
    TooManyUnfit {
        /// How many may be left out.
        most: usize,
        /// Why the first one was.
        first: String,
    },
    /// A value that an option does not take.
    #[error("{name} must be {expected}, got {got}")]
    Option {
        /// The option.
        name: String,
        /// What it takes.
        expected: String,
        /// The value, as it was written.
        got: String,
    },
    /// There is no option of this name.
    #[error("unknown option {0}")]
    UnknownOption(String),
    /// An option that the search would not look at.
    #[error("{name} {why}")]
    UnusedOption {
        /// The option.
        name: String,
        /// With which other option it does not go, and what to do.
        why: String,
    },
    /// Bytes that are no game record that this version reads.
    #[error("{0}")]
    Bytes(String),
    /// A game record that the rules do not bear out.
    #[error("{0}")]
    Record(String),
    /// The same, for one of many games.
    #[error("game {game_id} breaks the rules: {why}")]
    InvalidGame {
        /// Which game.
        game_id: u64,
        /// What is wrong.
        why: Box<Error>,
    },
    /// The system gives no more threads.
    #[error("cannot start {threads}: {why}")]
    Threads {
        /// Which threads.
        threads: String,
        /// What the system says.
        why: String,
    },
}

/// A sentence of a game's own notation.
impl From<String> for Error {
    fn from(why: String) -> Self {
        Self::Text(why)
    }
}

/// A sentence of a game's own notation.
impl From<&str> for Error {
    fn from(why: &str) -> Self {
        Self::Text(why.to_owned())
    }
}

/// For errors that quote this one.
impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

/// Why the rules refuse a written game, with a sentence on what came.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub enum Unfit {
    /// It is not in the notation, or cut.
    Text(String),
    /// Another variant of the game.
    Variant(String),
    /// It begins at another position.
    Start(String),
    /// Another size of board.
    Size(String),
    /// Another komi.
    Komi(String),
    /// An action that is not legal, or cannot be read.
    Action(String),
    /// Actions after the rules end the game.
    AfterEnd(String),
}

impl Unfit {
    /// The same sentence, with the line of `text` that has byte `at`.
    #[must_use]
    pub fn in_line_of(self, text: &str, at: usize) -> Self {
        let is_over = matches!(self, Self::AfterEnd(_));
        let why = Wrong { at, why: self.to_string() }.in_line_of(text);
        if is_over { Self::AfterEnd(why) } else { Self::Action(why) }
    }
}

/// A fault of a text, and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// The byte.
    pub at: usize,
    /// A sentence.
    pub why: String,
}

impl Wrong {
    /// The sentence with the line of `text`, from 1 on.
    #[must_use]
    pub fn in_line_of(self, text: &str) -> String {
        let line = 1 + text.bytes().take(self.at).filter(|&byte| byte == b'\n').count();
        format!("line {line}: {}", self.why)
    }
}
