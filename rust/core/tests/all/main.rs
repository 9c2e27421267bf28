//! All tests of the core but one in one program: it compiles and links once. `cargo test --test all look::` runs a part.

mod common;
mod conformance;
mod engine;
mod engine_games;
mod engine_pipelines;
mod look;
mod options;
mod oracle;
mod players;
mod properties;
mod record;
mod selfplay;
mod training;
