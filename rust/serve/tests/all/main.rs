//! Tests of azpy-serve over real games, in one program.

mod queries;
mod searchers;
mod stepping;

use azpy_core::game::Payoff;
use azpy_games::any::{AnyGame, GameVisitor, Start};
use azpy_games::registry::Entry;
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

/// The games of azpy, behind the types that sessions have.
struct Games;

impl GameVisitor for Games {
    type Output = Box<dyn std::any::Any>;

    fn games() -> &'static [Entry<Start<Self>>] {
        const GAMES: &[Entry<Start<Games>>] = &azpy_games::built_in!(Start::<Games>::new);
        GAMES
    }

    fn visit<P: Payoff>(self, start: AnyGame<P>) -> Self::Output {
        Box::new(start)
    }
}

/// The start of a game, if it pays a `P`.
fn start<P: Payoff>(game: &str) -> Option<AnyGame<P>> {
    Start::open(game, Games).unwrap().downcast::<AnyGame<P>>().ok().map(|start| *start)
}
