//! AlphaZero search, batching and self-play.
//!
//! Lowest to highest: [`game`] (the rules' contract), [`rng`] · [`evaluator`], [`tree`], [`cache`], [`config`] · [`search`]
//! (one tree: descend, expand, ascend; PUCT, Gumbel, the root's noise and the solver in files of their own) · [`look`] (what
//! people see of it) · [`batched`] (many trees, one call a network a round), [`serving`] (requests that share rounds) ·
//! [`record`], [`resign`], [`timing`], [`selfplay`] (one game in its own file), [`replay`]. Beside [`game`] stand [`text`]
//! (positions as people read and write them), [`bytes`] (planes as bytes) and [`process`] (what a fork leaves behind).
//! Nothing here knows Python, a concrete game, or a file.
#![forbid(unsafe_code)]

pub mod batched;
pub mod bytes;
pub mod cache;
pub mod config;
pub mod evaluator;
pub mod game;
mod gumbel;
pub mod look;
mod play;
pub mod process;
mod puct;
pub mod record;
pub mod replay;
pub mod resign;
pub mod rng;
mod root;
pub mod search;
pub mod selfplay;
pub mod serving;
mod solver;
mod spread;
pub mod text;
pub mod timing;
pub mod toy;
pub mod tree;
