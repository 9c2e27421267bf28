//! AlphaZero search, batching and self-play.
#![forbid(unsafe_code)]

pub mod game;
