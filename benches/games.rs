//! How fast the rules are: random games (turn, legal actions and play a ply), and single calls where a search makes
//! many of them. Elements are plies, so criterion's `elem/s` is moves a second.
//!
//! `cargo bench -p azpy-games`, or with a game's name after `--`.
#![allow(missing_docs, reason = "criterion's macros write public items without docs")]

use std::hint::black_box;

use azpy_core::game::{Action, Game, Turn};
use azpy_games::{ConnectFour, DiceNim, Hex, Othello, Pig, TicTacToe, WallGame};
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

/// The single calls of a simulation.
fn calls<G: Game>(c: &mut Criterion, name: &str, position: &G, action: Action) {
    let mut group = c.benchmark_group(name);
    let mut actions = Vec::new();
    let mut row = vec![0.0; position.obs_shape().iter().product()];
    group.bench_function("clone_and_play", |b| {
        b.iter(|| {
            let mut next = black_box(position).clone();
            next.play(black_box(action));
            next.turn()
        });
    });
    group.bench_function("legal_actions", |b| b.iter(|| black_box(position).legal_actions(black_box(&mut actions))));
    group.bench_function("encode", |b| b.iter(|| black_box(position).encode(black_box(&mut row))));
    group.bench_function("key", |b| b.iter(|| black_box(position).key()));
    group.finish();
}

/// At positions in mid-game.
fn bench_calls(c: &mut Criterion) {
    let mut middle = ConnectFour::default();
    for column in [3, 3, 3, 2, 4, 2, 5, 6, 2, 4, 0, 3] {
        middle.try_play(column).expect("a legal line of play");
    }
    calls(c, "connect_four_calls", &middle, 5);
    let walls = "cats b6 g5 mice b2 h2 walls >b4 >c5 >e4 >f7 ^b3 ^c4 ^d5 ^f5 ^g3 ^h4 turn 5 red";
    let middle = WallGame::default().parse(walls).expect("a legal position");
    let step = middle.parse_actions("Cc6").expect("a legal step")[0];
    calls(c, "wall_game_calls", &middle, step);
}

fn bench_games(c: &mut Criterion) {
    bench_game(c, "tictactoe", &TicTacToe::new());
    bench_game(c, "connect_four", &ConnectFour::default());
    bench_game(c, "connect_four_8x7x5", &ConnectFour::new(8, 7, 5).expect("a board that fits"));
    bench_game(c, "hex", &Hex::default());
    bench_game(c, "othello", &Othello::default());
    bench_game(c, "pig", &Pig::default());
    bench_game(c, "dice_nim", &DiceNim::default());
    bench_game(c, "wall_game", &WallGame::default());
}

criterion_group!(benches, bench_games, bench_calls);
criterion_main!(benches);
