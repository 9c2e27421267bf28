//! The games that ship with azpy, one file each.
//!
//! | game | constructor | policy | observation |
//! |---|---|---|---|
//! | [`TicTacToe`] | `new()` | 9 cells | `[2, 3, 3]` |
//! | [`ConnectFour`] | `new(width, height, k)` | one a column | `[2, H, W]` |
//!
//! Every game keeps what [`azpy_core::game::Game`] promises; one test body (`tests/conformance.rs`) plays them
//! all at random and checks it. The crate knows the game contract of azpy-core and nothing above it: no tree,
//! no search, no network.
#![forbid(unsafe_code)]

pub mod connect_four;
mod key;
mod planes;
pub mod tictactoe;

pub use connect_four::ConnectFour;
pub use tictactoe::TicTacToe;
