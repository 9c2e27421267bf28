//! All tests of the games in one program: it compiles and links once. `cargo test --test all hex::` runs a part.

mod backgammon;
mod backgammon_text;
mod boards;
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
mod notation;
mod othello;
mod touches;
mod trictrac;
mod wall_game;
mod wall_game_turns;
