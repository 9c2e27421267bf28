//! What Python gives and takes of a game with variations, by the index of a move: -1 is the start.

use std::collections::HashMap;

use azpy_core::written::{Bounds, Moves, Named, Notes, ReadMove};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::settings::{SIZE, Whole, within};

/// Notes by the index of the move that leads to their position, and by their names.
pub(crate) type NotesByIndex = HashMap<i64, HashMap<String, Vec<String>>>;

/// A game with its variations, as `State.read_variations` returns it.
#[pyclass(module = "azpy", frozen, get_all)]
pub(crate) struct Variations {
    /// The position where the moves begin, a `State`.
    start: Py<PyAny>,
    /// The moves as (before, name, short name). `before` is the index of the move before, or -1 at the start. The first
    /// move after a position belongs to the main line, and a line comes before the variations of its moves.
    moves: Vec<(i64, String, String)>,
    /// What the text says of the game, by name: PGN's tags, SGF's game info properties. `State.write_variations` takes
    /// it. If a name comes twice, its first value counts. `Result` is there if PGN has a result.
    tags: HashMap<String, String>,
    /// What the text says of positions: by the index of the move before (-1 for the start), a dict from name to values.
    /// Names are SGF's properties; in PGN, `C` is a comment and `NAG` has the numbers of glyphs.
    notes: NotesByIndex,
    /// Why lines end early or are missing, one text each.
    left_out: Vec<String>,
}

impl Variations {
    /// What was read from a text. The first value of a tag counts: a later one would replace it.
    pub(crate) fn of(
        start: Py<PyAny>,
        moves: Moves<ReadMove>,
        tags: Vec<(String, String)>,
        notes: &Notes,
        left_out: Vec<String>,
    ) -> Self {
        let notes = notes_by_index(notes, &moves);
        let named =
            moves.all().iter().map(|(before, told)| (*before as i64 - 1, told.name.clone(), told.short.clone()));
        Self { start, moves: named.collect(), tags: tags.into_iter().rev().collect(), notes, left_out }
    }
}

/// The bounds of a game with variations.
pub(crate) fn bounds(max_moves: i128, max_depth: i128) -> PyResult<Bounds> {
    Ok(Bounds { moves: within("max_moves", max_moves, 0, SIZE)?, depth: within("max_depth", max_depth, 0, SIZE)? })
}

/// Moves, each with the index of the move before it.
pub(crate) fn named(moves: Vec<(Whole, String)>) -> PyResult<Vec<Named>> {
    let of = |(index, (before, name)): (usize, (Whole, String))| {
        let before = match before.0 {
            -1 => None,
            before => Some(within(&format!("before of move {index}"), before, -1, SIZE)?),
        };
        Ok((before, name))
    };
    moves.into_iter().enumerate().map(of).collect()
}

/// The notes on the start and on each move; none of positions without any.
fn notes_by_index(start: &Notes, moves: &Moves<ReadMove>) -> NotesByIndex {
    let all = std::iter::once(start).chain(moves.all().iter().map(|(_, told)| &told.notes));
    let noted = (-1..).zip(all).filter(|(_, notes)| !notes.is_empty());
    noted.map(|(index, notes)| (index, notes.clone().into_iter().collect())).collect()
}

/// The notes on the start and then on each of so many moves, by their names.
pub(crate) fn notes_in_order(notes: Option<NotesByIndex>, moves: usize) -> PyResult<Vec<Notes>> {
    let mut ordered = vec![Notes::new(); moves + 1];
    for (index, notes) in notes.unwrap_or_default() {
        let place = index.checked_add(1).and_then(|at| usize::try_from(at).ok()).and_then(|at| ordered.get_mut(at));
        let missing = || PyValueError::new_err(format!("notes on move {index}, but there are {moves} moves"));
        let place = place.ok_or_else(missing)?;
        *place = notes.into_iter().collect();
    }
    Ok(ordered)
}
