#![doc = include_str!("../README.md")]
//! # The games
//!
//! One file each, or a folder where that would be long. [`docs/reference/games.md`] has the rules, actions, planes and
//! notation of each game. A module's doc says what its code needs besides.
//!
//! [`docs/reference/games.md`]: https://github.com/azpy/azpy/blob/main/docs/reference/games.md
//!
//! | game | constructor | policy | observation |
//! |---|---|---|---|
//! | [`TicTacToe`] | `new()` | 9 cells | `[2, 3, 3]` |
//! | [`ConnectFour`] | `new(width, height, k)` | one a column | `[2, H, W]` |
//! | [`ConnectFourForThree`] (three players) | `new(width, height, k)` | one a column | `[3, H, W]` |
//! | [`Hex`] | `new(size, swap)` | size x size cells, then the swap if there is one | `[3, size, size]` |
//! | [`Othello`] | `new(size)` | size x size cells, pass | `[2, size, size]` |
//! | [`Chess`] | `new(encoding, chess960, max_plies)` | from square x 73 kinds of step | `[119, 8, 8]` or `[18, 8, 8]` |
//! | [`Go`] ([`Go9`], [`Go19`]) | `new(size, komi, superko)` | size x size cells, pass | `[17, size, size]` |
//! | [`Gomoku`] | `new(size, k)` | size x size cells | `[2, size, size]` |
//! | [`Breakthrough`] | `new(width, height)` | W x H cells x 3 directions | `[3, H, W]` |
//! | [`Pig`] (dice) | `new(target)` | roll, hold | `[5, 1, 1]` |
//! | [`DiceNim`] (dice) | `new(heap)` | take 1, 2 or 3 | `[4, 1, 1]` |
//! | [`KuhnPoker`] (hidden cards) | `new()` | pass, bet | `[11, 1, 1]` |
//! | [`LeducPoker`] (hidden cards) | `new()` | fold, call, raise | `[30, 1, 1]` |
//! | [`LiarsDice`] (hidden dice) | `new(sides)` | the bids, then liar | `[2 + 3 sides, 1, 1]` |
//! | [`Backgammon`] (dice) | `new(gammons)` | source place x the die that is played | `[243, 1, 1]` |
//! | [`Trictrac`] (dice) | `new(holes, max_plies)` | source field x the die, power, hold, leave | `[252, 1, 1]` |
//! | [`Maedn`] (dice) | `new(players, opposite, max_plies)` | pass, bring in, a piece by its field | `[187, 1, 1]` |
//! | [`ChineseCheckers`] | `new(players, max_turns)` | 121 cells x 6 directions, pass | `[10, 17, 17]` |
//! | [`Blokus`] | `new(players, size)` | cells x 91 shapes | `[22 P + 1, size, size]` |
//! | [`Game2048`] (one player, dice) | `new(size, target)` | up, right, down, left | `[log2(target), size, size]` |
//! | [`PegSolitaire`] (one player) | `new(board)` | hole x direction | `[2, 7, 7]` or `[2, 5, 5]` |
//! | [`WallGame`] | `new(columns, rows, rules)` | right walls, bottom walls, steps | `[9, columns, rows]` |
//!
//! [`registry`] has them by their names, and [`any`] has a position of any of them as one type. Each has a `Default`,
//! and a constructor that takes numbers refuses bad ones with an [`Error`].
//!
//! Every game keeps the rules of [`azpy_core::game::Game`]. `tests/all/conformance.rs` plays all games at random and calls
//! [`azpy_core::conformance`] in each position. The crate knows the game contract of azpy-core and nothing above it: no
//! tree, no search, no network.
#![forbid(unsafe_code)]

pub mod any;
pub mod backgammon;
pub mod blokus;
pub mod breakthrough;
mod cells;
pub mod chess;
pub mod chinese_checkers;
pub mod connect_four;
pub mod dice_nim;
mod error;
pub mod game2048;
pub mod go;
pub mod gomoku;
mod grid;
pub mod hex;
mod key;
pub mod kuhn_poker;
pub mod leduc_poker;
pub mod liars_dice;
pub mod maedn;
mod notation;
pub mod othello;
pub mod peg_solitaire;
pub mod pig;
mod planes;
pub mod registry;
pub mod start;
mod svg;
mod tables;
pub mod tictactoe;
pub mod trictrac;
pub mod wall_game;

pub use backgammon::Backgammon;
pub use blokus::Blokus;
pub use breakthrough::Breakthrough;
pub use chess::Chess;
pub use chinese_checkers::ChineseCheckers;
pub use connect_four::{ConnectFour, ConnectFourForThree};
pub use dice_nim::DiceNim;
pub use error::Error;
pub use game2048::Game2048;
pub use go::{Go, Go9, Go19};
pub use gomoku::Gomoku;
pub use hex::Hex;
pub use kuhn_poker::KuhnPoker;
pub use leduc_poker::LeducPoker;
pub use liars_dice::LiarsDice;
pub use maedn::Maedn;
pub use othello::Othello;
pub use peg_solitaire::{PegBoard, PegSolitaire};
pub use pig::Pig;
pub use tictactoe::TicTacToe;
pub use trictrac::Trictrac;
pub use wall_game::{Variant, WallGame, WallRules};
