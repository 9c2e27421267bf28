//! Exact values and counts, proven here by a plain solver or known from the literature, and a naive twin of each
//! piece of fast code.

use std::collections::{HashMap, HashSet};

use azpy_core::game::{Action, Game, Payoff, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::{ConnectFour, PegBoard, PegSolitaire, TicTacToe};

use crate::common::{Random, Solver, after, legal, moves, perft};

fn connect_four(width: usize, height: usize, k: usize) -> ConnectFour {
    ConnectFour::new(width, height, k).unwrap()
}

/// Distinct positions, by key, that can be reached from `start` in exactly 0, 1, 2, ... plies, up to `depth`.
fn positions_by_ply<G: Game>(start: &G, depth: usize) -> Vec<usize> {
    let mut layer = vec![start.clone()];
    let mut counts = Vec::new();
    for _ in 0..=depth {
        counts.push(layer.len());
        let mut seen = HashSet::new();
        let next = layer.iter().flat_map(|state| moves(state).into_iter().map(move |action| after(state, action)));
        layer = next.filter(|state| seen.insert(state.key())).collect();
    }
    counts
}

#[test]
fn tic_tac_toe_is_a_draw() {
    assert_eq!(Solver::default().value(&TicTacToe::new()), 0.0);
    // After a corner only the centre holds.
    let corner = after(&TicTacToe::new(), 0);
    let mut solver = Solver::default();
    for action in legal(&corner) {
        let expected = if action == 4 { 0.0 } else { 1.0 };
        assert_eq!(solver.value(&after(&corner, action)), expected, "o plays {action}");
    }
}

#[test]
fn tic_tac_toe_has_as_many_positions_and_games_as_counted_elsewhere() {
    // The often quoted 5,478 and 255,168: positions up to the end of the game, and orders of play.
    assert_eq!(positions_by_ply(&TicTacToe::new(), 9).iter().sum::<usize>(), 5_478);
    fn finished(state: &TicTacToe) -> u64 {
        if state.turn() == Turn::Terminal {
            return 1;
        }
        legal(state).into_iter().map(|action| finished(&after(state, action))).sum()
    }
    assert_eq!(finished(&TicTacToe::new()), 255_168);
}

#[test]
fn connect_four_perft() {
    let counts: Vec<_> = (1..=8).map(|depth| perft(&ConnectFour::default(), depth)).collect();
    assert_eq!(counts, [7, 49, 343, 2_401, 16_807, 117_649, 823_536, 5_673_234]);
}

#[test]
fn connect_four_has_as_many_positions_as_counted_elsewhere() {
    // OEIS A212693 (7x6 by ply) and John Tromp's count for 4x4.
    assert_eq!(positions_by_ply(&ConnectFour::default(), 7), [1, 7, 49, 238, 1_120, 4_263, 16_422, 54_859]);
    assert_eq!(positions_by_ply(&connect_four(4, 4, 4), 16).iter().sum::<usize>(), 161_029);
}

#[test]
fn connect_four_4x4_and_4x5_are_draws() {
    // John Tromp's table of solved sizes.
    assert_eq!(Solver::default().value(&connect_four(4, 4, 4)), 0.0);
    assert_eq!(Solver::default().value(&connect_four(4, 5, 4)), 0.0);
}

#[test]
fn small_connect_four_boards_have_the_values_of_a_naive_solver() {
    let wins = [(4, 3, 3), (5, 3, 3), (2, 2, 2), (3, 1, 2)];
    let draws = [(3, 3, 3), (3, 4, 3), (6, 2, 3), (1, 6, 2), (2, 1, 2)];
    for (boards, expected) in [(&wins[..], 1.0), (&draws[..], 0.0)] {
        for &(width, height, k) in boards {
            let value = Solver::default().value(&connect_four(width, height, k));
            assert_eq!(value, expected, "{width} x {height}, {k} in a row");
            let naive = NaiveConnectFour { columns: vec![Vec::new(); width], height, k };
            let value = f64::from(naive.value(&mut HashMap::new()));
            assert_eq!(value, expected, "{width} x {height}, {k} in a row, by the naive solver");
        }
    }
}

/// A board as a list of columns, each from the bottom up, with a scan of the whole board for lines.
struct NaiveConnectFour {
    columns: Vec<Vec<Player>>,
    height: usize,
    k: usize,
}

impl NaiveConnectFour {
    fn at(&self, column: isize, row: isize) -> Option<Player> {
        let column = self.columns.get(usize::try_from(column).ok()?)?;
        column.get(usize::try_from(row).ok()?).copied()
    }

    fn has_line(&self, player: Player) -> bool {
        let cells =
            (0..self.columns.len() as isize).flat_map(|column| (0..self.height as isize).map(move |row| (column, row)));
        let directions = [(1, 0), (0, 1), (1, 1), (1, -1)];
        let own = |&(column, row): &(isize, isize)| self.at(column, row) == Some(player);
        cells.into_iter().filter(own).any(|(column, row)| {
            directions.iter().any(|(right, up)| {
                (0..self.k as isize).all(|i| self.at(column + i * right, row + i * up) == Some(player))
            })
        })
    }

    fn legal(&self) -> Vec<Action> {
        let is_open = |column: &Action| self.columns[*column as usize].len() < self.height;
        (0..self.columns.len() as Action).filter(is_open).collect()
    }

    /// The value for the player to move, by negamax without any pruning.
    fn value(&self, known: &mut HashMap<Vec<Vec<Player>>, i8>) -> i8 {
        if let Some(&value) = known.get(&self.columns) {
            return value;
        }
        let stones = self.columns.iter().map(Vec::len).sum::<usize>();
        let mover = if stones.is_multiple_of(2) { Player::Zero } else { Player::One };
        let play = |column: Action| {
            let mut columns = self.columns.clone();
            columns[column as usize].push(mover);
            -Self { columns, height: self.height, k: self.k }.value(known)
        };
        let value =
            if self.has_line(mover.opponent()) { -1 } else { self.legal().into_iter().map(play).max().unwrap_or(0) };
        known.insert(self.columns.clone(), value);
        value
    }
}

#[test]
fn connect_four_agrees_with_a_scan_of_the_whole_board() {
    let sizes = [
        (7, 6, 4),
        (7, 6, 3),
        (7, 6, 5),
        (8, 7, 4),
        (5, 5, 4),
        (4, 6, 3),
        (6, 4, 6),
        (9, 6, 5),
        (2, 7, 2),
        (12, 4, 4),
        (10, 5, 7),
        (3, 9, 8),
        (1, 63, 5),
        (32, 1, 3),
        (16, 3, 4),
        (4, 15, 4),
    ];
    let mut random = Random(4);
    let mut ends = [0; 3];
    for game in 0..3_000 {
        let (width, height, k) = sizes[game % sizes.len()];
        let mut fast = connect_four(width, height, k);
        let mut naive = NaiveConnectFour { columns: vec![Vec::new(); width], height, k };
        let mut mover = Player::Zero;
        loop {
            assert_eq!(fast.turn(), Turn::Player(mover));
            assert_eq!(legal(&fast), naive.legal(), "{}", fast.render());
            let action = *random.choose(&naive.legal());
            fast.play(action);
            naive.columns[action as usize].push(mover);
            // The scan is slow; only the last to move can have made a line.
            let won = naive.has_line(mover);
            if won || naive.legal().is_empty() {
                let outcome = if won { Value(1.0).pov(mover).0 } else { 0.0 };
                assert_eq!((fast.turn(), fast.outcome()), (Turn::Terminal, Value(outcome)), "{}", fast.render());
                ends[(outcome + 1.0) as usize] += 1;
                break;
            }
            mover = mover.opponent();
        }
        for (column, stones) in naive.columns.iter().enumerate() {
            for row in 0..height {
                assert_eq!(fast.stone(column, height - 1 - row), stones.get(row).copied());
            }
        }
    }
    assert!(ends.iter().all(|&count| count > 150), "the games are one-sided: {ends:?}");
}

/// How many games there are from a position, and how many of them leave one peg.
fn puzzles(state: &PegSolitaire, known: &mut HashMap<u128, [u64; 2]>) -> [u64; 2] {
    if state.turn() == Turn::Terminal {
        return [1, u64::from(state.pegs() == 1)];
    }
    if let Some(&counts) = known.get(&state.key()) {
        return counts;
    }
    let all = legal(state).into_iter().map(|action| puzzles(&after(state, action), known));
    let counts = all.fold([0, 0], |[games, solved], [more, of_them]| [games + more, solved + of_them]);
    known.insert(state.key(), counts);
    counts
}

#[test]
fn the_triangle_has_as_many_solutions_as_counted_elsewhere() {
    // By the empty hole: the top, one beside it, the middle of an edge, the middle. Games and solutions are those that
    // pages on this puzzle give (568,630 and 29,760 from the top).
    let cases = [
        ("./xx/xxx/xxxx/xxxxx", [568_630, 29_760]),
        ("x/.x/xxx/xxxx/xxxxx", [294_543, 14_880]),
        ("x/xx/.xx/xxxx/xxxxx", [1_149_568, 85_258]),
        ("x/xx/x.x/xxxx/xxxxx", [137_846, 1_550]),
    ];
    let triangle = PegSolitaire::new(PegBoard::Triangle);
    for (board, counts) in cases {
        assert_eq!(puzzles(&triangle.parse(board).unwrap(), &mut HashMap::new()), counts, "{board}");
    }
    assert_eq!(Solver::default().value(&triangle), 1.0);
}

#[test]
fn the_english_board_has_as_many_positions_as_counted_elsewhere() {
    // Positions after each jump up to symmetry, as Bell ("Peg solitaire", 2004) and others count them.
    let start = PegSolitaire::default();
    let image = |state: &PegSolitaire, symmetry: usize| {
        let (mut row, mut moved) = (vec![0.0; 98], vec![0.0; 98]);
        state.encode(&mut row);
        state.symmetric_observation(symmetry, &row, &mut moved);
        moved[..49].iter().fold(0_u64, |pegs, &peg| pegs << 1 | u64::from(peg == 1.0))
    };
    let (mut layer, mut counts) = (vec![start], Vec::new());
    for _ in 0..6 {
        counts.push(layer.len());
        let mut seen = HashSet::new();
        let next = layer.iter().flat_map(|state| moves(state).into_iter().map(move |action| after(state, action)));
        let first = |symmetries: &PegSolitaire| (0..8).map(|symmetry| image(symmetries, symmetry)).min();
        layer = next.filter(|state| seen.insert(first(state))).collect();
    }
    assert_eq!(counts, [1, 1, 2, 8, 39, 171]);
}
