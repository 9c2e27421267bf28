//! azpy for C: a trained player in eight functions. `azpy.h` says what they do.
//!
//! From the lowest layer to the highest: `player` (a folder that az-export or az-train wrote), `table` (a game that
//! goes on, and its search), `door` (what C calls).
#![deny(unsafe_code)]

mod door;
mod player;
mod table;

#[doc(hidden)]
pub use door::{azpy_error, guarded};
