//! All tests of the games in one program: it compiles and links once. `cargo test --test all hex::` runs a part. The
//! modules from src have tests in them, for which the crate is not compiled a second time.

mod backgammon;
mod backgammon_text;
mod boards;
#[allow(dead_code)]
#[path = "../../src/cells.rs"]
mod cells;
mod chess;
mod chess_notation;
mod chess_pgn;
mod common;
mod conformance;
mod dice;
mod exact;
mod go;
mod go_sgf;
mod golden;
mod hex;
mod hidden;
#[allow(dead_code)]
#[path = "../../src/key.rs"]
mod key;
mod notation;
mod othello;
mod parameters;
mod touches;
mod trictrac;
mod wall_game;
mod wall_game_turns;
