//! How fast the rules are: random games (turn, legal actions and play a ply), and single calls where a search makes
//! many of them. Elements are plies, so criterion's `elem/s` is moves a second.
//!
//! `cargo bench -p azpy-games`, or with a game's name after `--`.
#![allow(missing_docs, reason = "criterion's macros write public items without docs")]

use std::hint::black_box;
use std::time::Instant;

use azpy_core::game::{Action, Game, Turn};
use azpy_core::text::Notation;
use azpy_games::chess::Encoding;
use azpy_games::{
    Backgammon, Breakthrough, Chess, ConnectFour, DiceNim, Go9, Go19, Gomoku, Hex, Othello, Pig, TicTacToe, Trictrac,
    WallGame,
};
use cozy_chess::{Board, Move};
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
fn play_out<G: Notation>(start: &G, games: usize, random: &mut Random) -> u64 {
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

fn bench_game<G: Notation>(c: &mut Criterion, name: &str, start: &G) {
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

/// The single calls of a simulation, at a position in mid-game; `action` is legal there.
fn bench_calls_of<G: Notation>(c: &mut Criterion, name: &str, middle: &G, action: Action) {
    let mut group = c.benchmark_group(format!("{name}_calls"));
    let mut actions = Vec::new();
    let mut row = vec![0.0; middle.obs_shape().iter().product()];
    group.bench_function("clone_and_play", |b| {
        b.iter(|| {
            let mut next = black_box(middle).clone();
            next.play(black_box(action));
            next.turn()
        });
    });
    group.bench_function("legal_actions", |b| b.iter(|| black_box(middle).legal_actions(black_box(&mut actions))));
    group.bench_function("encode", |b| b.iter(|| black_box(middle).encode(black_box(&mut row))));
    group.bench_function("key", |b| b.iter(|| black_box(middle).key()));
    group.finish();
}

fn bench_calls(c: &mut Criterion) {
    let mut middle = ConnectFour::default();
    for column in [3, 3, 3, 2, 4, 2, 5, 6, 2, 4, 0, 3] {
        middle.try_play(column).expect("a legal line of play");
    }
    bench_calls_of(c, "connect_four", &middle, 5);
    let walls = "cats b6 g5 mice b2 h2 walls >b4 >c5 >e4 >f7 ^b3 ^c4 ^d5 ^f5 ^g3 ^h4 turn 5 red";
    let middle = WallGame::default().parse(walls).expect("a legal position");
    let step = middle.parse_actions("Cc6").expect("a legal step")[0];
    bench_calls_of(c, "wall_game", &middle, step);
    let line = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7 Re1 b5 Bb3 d6 c3 O-O h3 Na5 Bc2 c5 d4 Qc7 Nbd2";
    for (name, start) in [("chess", Chess::default()), ("chess_az18", chess_az18())] {
        let middle = start.parse(line).expect("a legal line of play");
        let action = middle.parse_actions("cxd4").expect("a legal action")[0];
        bench_calls_of(c, name, &middle, action);
    }
}

fn chess_az18() -> Chess {
    Chess::new(Encoding::Az18, None, 512).expect("a game that there is")
}

/// Lines of play through the contract of games: every position is asked whose turn it is.
fn perft<G: Notation>(state: &G, depth: usize, buffers: &mut [Vec<Action>]) -> u64 {
    let (actions, deeper) = buffers.split_first_mut().expect("a buffer a depth");
    if state.turn() == Turn::Terminal {
        return 0;
    }
    state.legal_actions(actions);
    if depth == 1 {
        return actions.len() as u64;
    }
    let mut lines = 0;
    for &action in &*actions {
        let mut next = state.clone();
        next.play(action);
        lines += perft(&next, depth - 1, deeper);
    }
    lines
}

/// The same by cozy-chess alone: lists of moves too, and nothing but the rules of movement.
fn cozy_perft(board: &Board, depth: usize, buffers: &mut [Vec<Move>]) -> u64 {
    let (moves, deeper) = buffers.split_first_mut().expect("a buffer a depth");
    moves.clear();
    board.generate_moves(|some| {
        moves.extend(some);
        false
    });
    if depth == 1 {
        return moves.len() as u64;
    }
    let mut lines = 0;
    for &played in &*moves {
        let mut next = board.clone();
        next.play_unchecked(played);
        lines += cozy_perft(&next, depth - 1, deeper);
    }
    lines
}

/// And counted without a list of the last moves, which no search can do with.
fn cozy_count(board: &Board, depth: usize) -> u64 {
    let mut lines = 0;
    board.generate_moves(|moves| {
        if depth == 1 {
            lines += moves.len() as u64;
            return false;
        }
        for played in moves {
            let mut next = board.clone();
            next.play_unchecked(played);
            lines += cozy_count(&next, depth - 1);
        }
        false
    });
    lines
}

/// And with every last move played, as a perft does where nothing is counted in bulk.
fn cozy_play(board: &Board, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let mut lines = 0;
    board.generate_moves(|moves| {
        for played in moves {
            let mut next = board.clone();
            next.play_unchecked(played);
            lines += cozy_play(&next, depth - 1);
        }
        false
    });
    lines
}

/// Prints what the contract costs: perft(5) through it, and by cozy-chess alone.
fn bench_perft(_: &mut Criterion) {
    const LINES: u64 = 4_865_609;
    let (mut actions, mut moves) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
    let (board, az119, az18) = (Board::startpos(), Chess::default(), chess_az18());
    let mut best = [f64::INFINITY; 5];
    // In turn, so that whatever else the machine does meets all of them.
    for _ in 0..15 {
        for (index, best) in best.iter_mut().enumerate() {
            let begin = Instant::now();
            let lines = match index {
                0 => cozy_perft(black_box(&board), 5, &mut moves),
                1 => cozy_count(black_box(&board), 5),
                2 => cozy_play(black_box(&board), 5),
                3 => perft(black_box(&az119), 5, &mut actions),
                _ => perft(black_box(&az18), 5, &mut actions),
            };
            *best = begin.elapsed().as_secs_f64().min(*best);
            assert_eq!(lines, LINES);
        }
    }
    let [listed, counted, played, az119, az18] = best;
    for (name, seconds) in [("chess", az119), ("chess_az18", az18)] {
        let [listed, counted, played] = [listed, counted, played].map(|cozy| seconds / cozy);
        println!(
            "{name}/perft 5: {:.1} ms; of cozy-chess alone {listed:.2} times where it lists the last moves, {counted:.2} \
             where it counts them, {played:.2} where it plays them",
            1e3 * seconds
        );
    }
}

fn bench_games(c: &mut Criterion) {
    bench_game(c, "tictactoe", &TicTacToe::new());
    bench_game(c, "connect_four", &ConnectFour::default());
    bench_game(c, "connect_four_8x7x5", &ConnectFour::new(8, 7, 5).expect("a board that fits"));
    bench_game(c, "hex", &Hex::default());
    bench_game(c, "chess", &Chess::default());
    bench_game(c, "chess_az18", &chess_az18());
    bench_game(c, "othello", &Othello::default());
    bench_game(c, "go_9", &Go9::new(9, 7.5, true).expect("a usual board"));
    bench_game(c, "go_19", &Go19::new(19, 7.5, true).expect("the usual board"));
    bench_game(c, "gomoku", &Gomoku::default());
    bench_game(c, "breakthrough", &Breakthrough::default());
    bench_game(c, "pig", &Pig::default());
    bench_game(c, "dice_nim", &DiceNim::default());
    bench_game(c, "backgammon", &Backgammon::default());
    bench_game(c, "trictrac", &Trictrac::default());
    bench_game(c, "wall_game", &WallGame::default());
}

criterion_group!(benches, bench_perft, bench_games, bench_calls);
criterion_main!(benches);
