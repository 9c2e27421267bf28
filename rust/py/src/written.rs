//! `azpy._core.GameReader`: the games that a text holds, one after the other.

use std::collections::HashMap;

use azpy_core::Error;
use azpy_core::text::Notation;
use azpy_core::written::{Unfit, WrittenGame as CoreGame};
use pyo3::prelude::*;

use crate::errors::{RustError, caught};
use crate::games::any_game;
use crate::position::{AnyState, end_of};

/// A game as a text has it.
#[pyclass(module = "azpy", frozen, get_all)]
pub(crate) struct WrittenGame {
    /// The line of the text in which it begins, from 1 on.
    line: usize,
    /// The game's own text.
    text: String,
    /// What the text says of the game, by name (PGN's tags, or the properties of SGF's first node); the first value of a
    /// name counts.
    tags: HashMap<String, String>,
    /// The result behind the moves, where the notation has one (PGN).
    result: Option<String>,
    /// The actions from the start; None if it is no game of these rules from this start.
    actions: Option<Vec<u32>>,
    /// The actions from the start up to the one that is unfit, where `unfit` is "action" or "after end"; else none.
    before: Vec<u32>,
    /// Why not: "text" (it is not in the notation, or cut), "variant", "start", "size", "komi", "action" or "after end"; None if it is one.
    unfit: Option<&'static str>,
    /// A sentence on what came there.
    why: Option<String>,
    /// How the rules end it, for player 0; None where they do not end it.
    outcome: Option<f32>,
}

/// Reads the games of a text in the game's notation of whole games: PGN for chess, SGF for Go.
///
/// Iterating gives each as a `WrittenGame`, those too that cannot be read: behind one, reading goes on where another game
/// seems to begin. Variations, comments and glyphs are passed over. Raises ValueError for a game without such a notation.
///
/// Args:
///     game: a game's name, or a State, the start of its games.
///     text: one game or several.
///
///     >>> from azpy._core import GameReader
///     >>> [game.outcome for game in GameReader("chess", "1. f3 e5 2. g4 Qh4# 0-1")]
///     [-1.0]
#[pyclass(module = "azpy")]
pub(crate) struct GameReader {
    start: AnyState,
    text: String,
    /// The byte that is read next.
    at: usize,
    /// Its line, from 1 on.
    line: usize,
}

#[pymethods]
impl GameReader {
    #[new]
    fn new(game: &Bound<'_, PyAny>, text: String) -> PyResult<Self> {
        Ok(Self { start: any_game(game)?, text, at: 0, line: 1 })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<WrittenGame>> {
        let text = &self.text[self.at..];
        // Files that were joined have a byte order mark between their games too.
        let blank = text.len() - text.trim_start_matches(|one: char| one.is_whitespace() || one == '\u{feff}').len();
        self.line += lines(&text[..blank]);
        self.at += blank;
        let (text, start, line) = (&text[blank..], &self.start, self.line);
        let read = || Ok(start.read_game(text)?.map(|(game, rest)| (end_of(start, &game), game, rest)));
        let read: Result<_, Error> = py.detach(|| caught(|| Ok(read())))?;
        let Some((outcome, game, rest)) = read.map_err(RustError::raised)? else {
            self.at = self.text.len();
            return Ok(None);
        };
        let length = text.len() - rest.len();
        let text = text[..length].to_owned();
        self.line += lines(&text);
        self.at += length;
        let CoreGame { tags, result, actions, before } = game;
        let (actions, unfit) = match actions {
            Ok(actions) => (Some(actions), None),
            Err(unfit) => (None, Some(unfit)),
        };
        // The first value of a name counts: a later one would replace it.
        let tags = tags.into_iter().rev().collect();
        let outcome = outcome.filter(|_| actions.is_some());
        let kind = unfit.as_ref().map(|unfit| match unfit {
            Unfit::Text(_) => "text",
            Unfit::Variant(_) => "variant",
            Unfit::Start(_) => "start",
            Unfit::Size(_) => "size",
            Unfit::Komi(_) => "komi",
            Unfit::Action(_) => "action",
            Unfit::AfterEnd(_) => "after end",
        });
        let why = unfit.map(|unfit| unfit.to_string());
        Ok(Some(WrittenGame { line, text, tags, result, actions, before, unfit: kind, why, outcome }))
    }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}
