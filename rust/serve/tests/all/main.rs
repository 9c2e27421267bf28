//! Tests of azpy-serve over real games, in one program.

mod deals;
mod queries;
mod searchers;
mod stepping;

use azpy_core::game::{Game as _, Payoff};
use azpy_games::any::AnyGame;
use azpy_games::registry::BUILT_IN;
use azpy_serve::Limits;

/// Bounds that the tests meet only where they want to.
const LIMITS: Limits = Limits {
    simulations: u32::MAX,
    seconds: 1e6,
    moves: 4_000,
    turns: 1_000,
    nodes: 100,
    depth: 10,
    text_bytes: 9_999,
    searches: 5,
    games: 3,
};

/// The start of a game, if it pays a `P`.
fn start<P: Payoff>(game: &str) -> Option<AnyGame<P>> {
    let start = AnyGame::open(BUILT_IN, game, Vec::new()).unwrap();
    (start.is_zero_sum() == P::ZERO_SUM).then(|| start.paying())
}
