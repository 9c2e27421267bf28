//! Exact values and counts, proven here by a plain solver or known from the literature, and a naive twin of each
//! piece of fast code.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_games::{ConnectFour, ConnectFourForThree, PegBoard, PegSolitaire, TicTacToe};

use crate::common::{Oracle, Random, Solver, after, agree, encode, has_row, legal, moves, planes};

fn connect_four(width: usize, height: usize, k: usize) -> ConnectFour {
    ConnectFour::new(width, height, k).unwrap()
}

/// Distinct positions that can be reached from `start` in exactly 0, 1, 2, ... plies, up to `depth`.
fn positions_by_ply<G: Game, K: Hash + Eq>(start: &G, depth: usize, key: impl Fn(&G) -> K) -> Vec<usize> {
    let mut layer = vec![start.clone()];
    let mut counts = Vec::new();
    for _ in 0..=depth {
        counts.push(layer.len());
        let mut seen = HashSet::new();
        let next = layer.iter().flat_map(|state| moves(state).into_iter().map(move |action| after(state, action)));
        layer = next.filter(|state| seen.insert(key(state))).collect();
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
fn connect_four_has_as_many_positions_as_counted_elsewhere() {
    // OEIS A212693 (7x6 by ply) and John Tromp's count for 4x4.
    assert_eq!(positions_by_ply(&ConnectFour::default(), 7, Game::key), [1, 7, 49, 238, 1_120, 4_263, 16_422, 54_859]);
    assert_eq!(positions_by_ply(&connect_four(4, 4, 4), 16, Game::key).iter().sum::<usize>(), 161_029);
}

#[test]
fn small_connect_four_boards_have_known_values() {
    // 4x4 and 4x5 as in John Tromp's table of solved sizes.
    for (value, boards) in [
        (1.0, &[(4, 3, 3), (5, 3, 3), (2, 2, 2), (3, 1, 2)][..]),
        (0.0, &[(4, 4, 4), (4, 5, 4), (3, 3, 3), (3, 4, 3), (6, 2, 3), (1, 6, 2), (2, 1, 2)]),
    ] {
        for &(width, height, k) in boards {
            let found = Solver::default().value(&connect_four(width, height, k));
            assert_eq!(found, value, "{width} x {height}, {k} in a row");
        }
    }
}

/// Stones by cell, and a scan of the whole board for lines. Where there are as many actions as columns, stones fall.
pub(crate) struct Scanned {
    width: usize,
    k: usize,
    players: usize,
    actions: usize,
    board: Vec<Option<Player>>,
}

impl Scanned {
    pub(crate) fn new(width: usize, height: usize, k: usize, players: usize, actions: usize) -> Self {
        Self { width, k, players, actions, board: vec![None; width * height] }
    }

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
        (0..self.actions).filter(|&cell| self.board[cell].is_none()).map(|cell| cell as Action).collect()
    }

    fn encode(&self) -> Vec<f32> {
        planes(&self.board, Player::ALL[self.stones() % self.players], self.players)
    }

    fn play(&mut self, action: Action) {
        let mover = Player::ALL[self.stones() % self.players];
        let column = self.board.iter_mut().skip(action as usize).step_by(self.actions);
        *column.rev().find(|cell| cell.is_none()).unwrap() = Some(mover);
    }
}

#[test]
fn connect_four_agrees_with_a_scan_of_the_whole_board() {
    let usual = [(7, 6, 4), (7, 6, 3), (8, 7, 4), (5, 5, 4), (4, 6, 3), (6, 4, 6)];
    let long = [(2, 7, 2), (12, 4, 4), (3, 9, 8), (1, 63, 5), (32, 1, 3), (4, 15, 4)];
    let sizes = [usual, long].concat();
    let (mut random, mut ends) = (Random(4), [[0; 4]; 2]);
    for game in 0..1_500 {
        let (width, height, k) = sizes[game % sizes.len()];
        let scanned = |players| Scanned::new(width, height, k, players, width);
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
    let first_image = |state: &PegSolitaire| {
        let image = |symmetry| {
            let mut moved = vec![0.0; 98];
            state.symmetric_observation(symmetry, &encode(state), &mut moved);
            moved[..49].iter().fold(0_u64, |pegs, &peg| pegs << 1 | u64::from(peg == 1.0))
        };
        (0..8).map(image).min()
    };
    assert_eq!(positions_by_ply(&PegSolitaire::default(), 5, first_image), [1, 1, 2, 8, 39, 171]);
}
