//! azpy's search and networks as WebAssembly: what answers the board's queries on a page without a server.
//!
//! From the lowest layer to the highest: `player` (who plays, as `az-export --web` writes it), `track` (a game whose
//! tree is kept), `session` (queries are taken, searched a round at a time, and answered), `games` (a position of any
//! game behind one type), `door` (what JavaScript calls). Queries are read and answers are written by azpy-query, as
//! for the server. There is no thread and no clock: the page says what time it is.
//!
//! A crate that has this one and `export_game!` of the crate `azpy-own` is a program.
#![deny(unsafe_code)]

mod door;
mod games;
mod player;
mod session;
#[cfg(test)]
mod tests;
mod track;

pub use azpy_games::registry::Params;

pub use crate::door::open;
pub use crate::games::{BUILT_IN, Entry, Start, start};
