//! A position in the colors of a terminal.

use azpy_core::game::MAX_PLAYERS;
use azpy_core::text::Notation;
use pyo3::prelude::*;

use crate::position::AnyState;

/// Whether standard output is a terminal, and nobody asked for no colors.
pub(crate) fn terminal_shows_colors(py: Python<'_>) -> PyResult<bool> {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var("TERM").as_deref() == Ok("dumb")
    {
        return Ok(false);
    }
    // There is none in a program without a console, and it may be anything that can be written to.
    let out = py.import("sys")?.getattr("stdout")?;
    Ok(out.call_method0("isatty").and_then(|reply| reply.extract()).unwrap_or(false))
}

/// The colors of a terminal by player: red, blue, green, yellow, magenta, cyan.
const COLORS: [u8; MAX_PLAYERS] = [31, 34, 32, 33, 35, 36];

/// Characters that stand alone and are someone's pieces, in bold in the player's color.
pub(crate) fn colored(state: &AnyState, text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let glyphs: Vec<char> = line.chars().collect();
        for (place, &glyph) in glyphs.iter().enumerate() {
            let alone = |place: Option<usize>| {
                place.and_then(|place| glyphs.get(place)).is_none_or(|neighbour| !neighbour.is_alphanumeric())
            };
            let owner =
                if alone(place.checked_sub(1)) && alone(Some(place + 1)) { state.owner(number, glyph) } else { None };
            match owner {
                Some(player) => out += &format!("\x1b[1;{}m{glyph}\x1b[0m", COLORS[player.index()]),
                None => out.push(glyph),
            }
        }
    }
    out
}
