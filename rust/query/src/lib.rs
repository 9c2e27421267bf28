#![doc = include_str!("../README.md")]
//! # The modules
//!
//! There is no Python here, no thread, no socket and no search: a server asks its engine in between, and a page without a
//! server can do the same. From the lowest layer to the highest: `object` (JSON and its fields), `line` (positions that go
//! on where azpy's rules end a game), `query` (what is asked), `answer` and `games` (what is said). `katago` translates the
//! objects of KataGo's analysis engine.
#![forbid(unsafe_code)]

mod answer;
mod games;
mod katago;
mod line;
mod object;
mod query;
mod shape;

pub use answer::{Found, show};
pub use azpy_core::text::Position;
pub use games::{Format, format_of, read, write};
pub use line::Line;
pub use object::{Limits, Object, Refused};
pub use query::{Asking, LONGEST_NAME, Place, Query, action_of, id_of, terminated};
