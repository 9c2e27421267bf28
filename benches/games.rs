//! How fast the rules are: random games (turn, legal actions and play a ply), and single calls where a search makes
//! many of them. Elements are plies, so criterion's `elem/s` is moves a second.
//!
//! `cargo bench -p azpy-games`, or with a game's name after `--`.
#![allow(missing_docs, reason = "criterion's macros write public items without docs")]

use std::hint::black_box;

use azpy_core::game::{Action, Game, Turn};
use azpy_games::{Breakthrough, ConnectFour, DiceNim, Go9, Go19, Gomoku, Hex, Othello, Pig, TicTacToe};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Xorshift64 (Marsaglia 2003): cheap enough not to be what is measured.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}

/// Plays random games to their ends and returns the plies they took.
fn play_out<G: Game>(start: &G, games: usize, random: &mut Random) -> u64 {
    let mut actions: Vec<Action> = Vec::new();
    let mut outcomes = Vec::new();
    let mut plies = 0;
    for _ in 0..games {
        let mut state = start.clone();
        loop {
            let action = match state.turn() {
                Turn::Player(_) => {
                    state.legal_actions(&mut actions);
                    actions[random.below(actions.len())]
                }
                Turn::Chance => {
                    state.chance_outcomes(&mut outcomes);
                    outcomes[random.below(outcomes.len())].0
                }
                Turn::Terminal => break,
            };
            state.play(action);
            plies += 1;
        }
        black_box(state.outcome());
    }
    plies
}

fn bench_game<G: Game>(c: &mut Criterion, name: &str, start: &G) {
    const GAMES: usize = 1000;
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    let plies = play_out(start, GAMES, &mut Random(SEED));
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(plies));
    group.bench_function("random_games", |b| {
        b.iter(|| {
            // The same games each time: a change of the rules shows as another number of plies.
            assert_eq!(play_out(black_box(start), GAMES, &mut Random(SEED)), plies);
        });
    });
    group.finish();
}

/// The single calls of a simulation, at a position in mid-game.
fn bench_calls(c: &mut Criterion) {
    let mut middle = ConnectFour::default();
    for column in [3, 3, 3, 2, 4, 2, 5, 6, 2, 4, 0, 3] {
        middle.try_play(column).expect("a legal line of play");
    }
    let mut group = c.benchmark_group("connect_four_calls");
    let mut actions = Vec::new();
    let mut row = vec![0.0; middle.obs_shape().iter().product()];
    group.bench_function("clone_and_play", |b| {
        b.iter(|| {
            let mut next = *black_box(&middle);
            next.play(black_box(5));
            next.turn()
        });
    });
    group.bench_function("legal_actions", |b| b.iter(|| black_box(&middle).legal_actions(black_box(&mut actions))));
    group.bench_function("encode", |b| b.iter(|| black_box(&middle).encode(black_box(&mut row))));
    group.bench_function("key", |b| b.iter(|| black_box(&middle).key()));
    group.finish();
}

fn bench_games(c: &mut Criterion) {
    bench_game(c, "tictactoe", &TicTacToe::new());
    bench_game(c, "connect_four", &ConnectFour::default());
    bench_game(c, "connect_four_8x7x5", &ConnectFour::new(8, 7, 5).expect("a board that fits"));
    bench_game(c, "hex", &Hex::default());
    bench_game(c, "othello", &Othello::default());
    bench_game(c, "go_9", &Go9::new(9, 7.5, true).expect("a usual board"));
    bench_game(c, "go_19", &Go19::new(19, 7.5, true).expect("the usual board"));
    bench_game(c, "gomoku", &Gomoku::default());
    bench_game(c, "breakthrough", &Breakthrough::default());
    bench_game(c, "pig", &Pig::default());
    bench_game(c, "dice_nim", &DiceNim::default());
}

criterion_group!(benches, bench_games, bench_calls);
criterion_main!(benches);
