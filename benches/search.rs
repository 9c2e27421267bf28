//! `cargo bench --bench search`: simulations a second with the uniform evaluator, one thread.
//!
//! Every measurement asserts its node counts first: a fast search that does less is no search.

use azpy_core::batched::{Rounds, Workers};
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::game::Game;
use azpy_core::rng::Stream;
use azpy_core::search::Search;
use azpy_games::chess::Encoding;
use azpy_games::{Breakthrough, Chess, ConnectFour, Go9, Go19, Gomoku, TicTacToe, WallGame};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn search<G: Game>(criterion: &mut Criterion, name: &str, root: G, eval_batch: usize, simulations: u32) {
    let config = SearchConfig { eval_batch, ..SearchConfig::default() };
    let mut search = Search::new(root.clone(), config, 0);
    let mut rounds = Rounds::new(Workers::Serial, None);
    let mut once = || {
        search.reset(root.clone());
        search.begin(simulations, Stream::keyed(&[1])).expect("the start is a player's turn");
        while rounds.run(std::slice::from_mut(&mut search), &mut [Uniform]).expect("nothing can fail") {}
        search.result().visits.iter().sum::<u32>()
    };
    assert_eq!(once(), simulations);
    let mut group = criterion.benchmark_group("search");
    group.throughput(Throughput::Elements(u64::from(simulations)));
    group.bench_function(format!("{name}/{simulations} simulations/eval batch {eval_batch}"), |b| b.iter(&mut once));
    group.finish();
}

fn searches(criterion: &mut Criterion) {
    let connect_four = ConnectFour::new(7, 6, 4).expect("the usual board");
    for (eval_batch, simulations) in [(1, 800), (8, 800), (1, 100_000)] {
        search(criterion, "connect_four", connect_four, eval_batch, simulations);
    }
    for (name, encoding) in [("chess", Encoding::Az119), ("chess_az18", Encoding::Az18)] {
        let start = Chess::new(encoding, None, 512).expect("a game that there is");
        search(criterion, name, start, 1, 800);
    }
    search(criterion, "tictactoe", TicTacToe::default(), 1, 800);
    search(criterion, "wall_game", WallGame::default(), 1, 800);
    search(criterion, "go_9", Go9::new(9, 7.5, true).expect("a usual board"), 1, 800);
    search(criterion, "go_19", Go19::new(19, 7.5, true).expect("the usual board"), 1, 800);
    search(criterion, "gomoku", Gomoku::default(), 1, 800);
    search(criterion, "breakthrough", Breakthrough::default(), 1, 800);
}

criterion_group!(benches, searches);
criterion_main!(benches);
