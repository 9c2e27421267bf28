#![doc = include_str!("../README.md")]
//! # The modules
//!
//! There is no Python here, no thread, no socket, and no file but those that a caller reads. From the lowest layer to the
//! highest: `error` (what can be wrong), `object` (JSON and its fields), `level` (simulations, temperature and the action
//! that is played), `line` (positions that go on where azpy's rules end a game), `history` (the line along which a tree is
//! kept), `player` (who plays, as files have it), `query` (requests), `searcher` (what a session asks of who searches),
//! `answer` and `games` (responses), `deals` (games that hide something), `stepping` (searches in the thread of the
//! caller), `session` (the messages of one client). `katago` translates the objects of KataGo's analysis engine.
#![forbid(unsafe_code)]

mod answer;
mod deals;
mod error;
mod games;
mod history;
mod katago;
mod level;
mod line;
mod object;
mod player;
mod query;
mod searcher;
mod session;
mod shape;
mod stepping;

pub use answer::show;
pub use azpy_core::text::Position;
pub use error::Error;
pub use games::{Format, format_of, read, write};
pub use history::History;
pub use level::{Level, chosen_at};
pub use line::Line;
pub use object::{Limits, Object};
pub use player::{Files, Page, Player, Run, answers};
pub use query::{LONGEST_NAME, Query, action_of, id_of, terminated};
pub use searcher::{Event, SearchReport, SearchRequest, Searcher};
pub use session::{Response, Session};
pub use stepping::{Stepping, SteppingGame};
