//! Exact values and counts, proven here by a plain solver or known from the literature, and a naive twin of each
//! piece of fast code.

use std::collections::{HashMap, HashSet};

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_games::{ConnectFour, ConnectFourForThree, PegBoard, PegSolitaire, TicTacToe};

use crate::common::{Oracle, Random, Solver, after, agree, has_row, legal, moves, planes};

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
fn small_connect_four_boards_have_known_values() {
    for (width, height, k) in [(4, 3, 3), (5, 3, 3), (2, 2, 2), (3, 1, 2)] {
        assert_eq!(Solver::default().value(&connect_four(width, height, k)), 1.0, "{width} x {height}, {k} in a row");
    }
    for (width, height, k) in [(3, 3, 3), (3, 4, 3), (6, 2, 3), (1, 6, 2), (2, 1, 2)] {
        assert_eq!(Solver::default().value(&connect_four(width, height, k)), 0.0, "{width} x {height}, {k} in a row");
    }
}

/// Stones by cell, and a scan of the whole board for lines.
struct Scanned {
    width: usize,
    k: usize,
    players: usize,
    board: Vec<Option<Player>>,
}

impl Scanned {
    fn stones(&self) -> usize {
        self.board.iter().flatten().count()
    }
}

impl Oracle for Scanned {
    fn turn(&self) -> Result<Player, Option<Player>> {
        let of = |turn: usize| Player::ALL[turn % self.players];
        let last = of(self.stones() + self.players - 1);
        match has_row(&self.board, self.width, self.k, last) {
            true => Err(Some(last)),
            false if !self.board.contains(&None) => Err(None),
            false => Ok(of(self.stones())),
        }
    }

    fn legal(&self) -> Vec<Action> {
        (0..self.width).filter(|&column| self.board[column].is_none()).map(|column| column as Action).collect()
    }

    fn encode(&self) -> Vec<f32> {
        planes(&self.board, Player::ALL[self.stones() % self.players], self.players)
    }

    fn play(&mut self, action: Action) {
        let mover = Player::ALL[self.stones() % self.players];
        let column = self.board.iter_mut().skip(action as usize).step_by(self.width);
        *column.rev().find(|cell| cell.is_none()).unwrap() = Some(mover);
    }
}

#[test]
fn connect_four_agrees_with_a_scan_of_the_whole_board() {
    let sizes = [
        (7, 6, 4),
        (7, 6, 3),
        (8, 7, 4),
        (5, 5, 4),
        (4, 6, 3),
        (6, 4, 6),
        (2, 7, 2),
        (12, 4, 4),
        (3, 9, 8),
        (1, 63, 5),
        (32, 1, 3),
        (4, 15, 4),
    ];
    let (mut random, mut ends) = (Random(4), [[0; 4]; 2]);
    for game in 0..1_500 {
        let (width, height, k) = sizes[game % sizes.len()];
        let scanned = |players| Scanned { width, k, players, board: vec![None; width * height] };
        let winner = agree(connect_four(width, height, k), &mut scanned(2), &mut random);
        ends[0][winner.map_or(3, Player::index)] += 1;
        let three = ConnectFourForThree::new(width, height, k).unwrap();
        ends[1][agree(three, &mut scanned(3), &mut random).map_or(3, Player::index)] += 1;
    }
    let [two, three] = ends;
    assert!(two[0].min(two[1]).min(two[3]) > 75 && three.iter().all(|&games| games > 75), "one-sided: {ends:?}");
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
