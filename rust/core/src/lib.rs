#![doc = include_str!("../README.md")]
//! # The modules
//!
//! From the lowest layer to the highest:
//!
//! 1. [`game`] is the contract of a game, [`rng`] has the random streams.
//! 2. [`evaluator`], [`cache`], [`options`] (the table of all options that users set) and [`config`].
//! 3. [`search`] is the room of one search: [`tree`], the rules that choose a child, and [`look`] (what people see).
//! 4. [`batched`] runs rounds of many searches, [`engine`] shares rounds among requests.
//! 5. [`selfplay`] is the room of games that a network plays against itself: [`record`], [`replay`], [`timing`].
//!
//! [`conformance`] checks the rules that every game must keep. [`exploit`] says how far a policy of a small game that hides
//! something is from an equilibrium. [`text`] is how people write a game, [`written`] a whole
//! game with its variations, [`picture`] how they see and touch it, [`process`] detects forks. The crate knows no Python,
//! no concrete game and no file.
#![forbid(unsafe_code)]

pub mod batched;
pub mod cache;
pub mod config;
pub mod conformance;
pub mod engine;
mod error;
pub mod evaluator;
pub mod exploit;
pub mod game;
pub mod options;
pub mod payoff;
pub mod picture;
pub mod process;
mod questions;
pub mod rng;
pub mod search;
pub mod selfplay;

pub mod text;
pub mod toy;
pub mod written;

pub use error::Error;
pub use search::{look, tree};
pub use selfplay::{record, replay, timing};
