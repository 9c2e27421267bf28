//! azpy's search and networks as WebAssembly: what answers the board's queries on a page without a server.
//!
//! `games` has a position of any game behind one type, and opens a session of azpy-serve with the player that
//! `az-export --web` wrote; `ffi` is what JavaScript calls. There is no thread and no clock: the page says what time it
//! is.
//!
//! A crate that has this one and `export_game!` of the crate `azpy-own` is a program.
#![deny(unsafe_code)]

mod ffi;
mod games;

pub use azpy_games::registry::{Entry, Params};
pub use azpy_games::start::Start;

pub use crate::ffi::open;
pub use crate::games::BUILT_IN;
