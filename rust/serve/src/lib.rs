#![doc = include_str!("../README.md")]
//! # The modules
//!
//! There is no Python here, no thread, no socket, and no file but those that a caller reads. From the lowest layer to the
//! highest: `object` (JSON and its fields), `level` (simulations, temperature and the action that is played), `line`
//! (positions that go on where azpy's rules end a game), `query` (what is asked), `answer` and `games` (what is said),
//! `player` (who plays, as files have it), `searcher` (what a session asks of the search), `stepping` (a search in the
//! thread of the caller), `session` (the messages of one client). `katago` translates the objects of KataGo's analysis
//! engine.
#![forbid(unsafe_code)]

mod answer;
mod games;
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

pub use answer::{Found, show};
pub use azpy_core::text::Position;
pub use games::{Format, format_of, read, write};
pub use level::{Level, chosen_at};
pub use line::Line;
pub use object::{Allowed, Limits, Object, Refused};
pub use player::{Files, Page, Player, Run, answers};
pub use query::{Asking, LONGEST_NAME, Place, Query, action_of, id_of, terminated};
pub use searcher::{Event, Looked, Root, Searcher, Unbegun, Wanted};
pub use session::{Reply, Session};
pub use stepping::{Kept, Stepping};
