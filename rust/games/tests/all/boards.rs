//! Gomoku and Breakthrough against plain readings of their rules, with exact values of small boards, and their notation.

use azpy_core::game::{Action, Player};
use azpy_core::text::Notation;
use azpy_games::{Breakthrough, Gomoku, TicTacToe};

use crate::common::{Oracle, Random, Solver, agree, planes};
use crate::exact::Scanned;

fn gomoku(size: usize, k: usize) -> Gomoku {
    Gomoku::new(size, k).unwrap()
}

fn breakthrough(width: usize, height: usize) -> Breakthrough {
    Breakthrough::new(width, height).unwrap()
}

#[test]
fn gomoku_and_tic_tac_toe_agree_with_a_look_at_all_rows() {
    let scanned = |size, k| Scanned::new(size, size, k, 2, size * size);
    let mut ends = [0; 3];
    for (size, k, games) in [(3, 3, 300), (4, 4, 300), (5, 4, 200), (6, 2, 20), (9, 5, 60), (15, 5, 8), (19, 6, 2)] {
        for seed in 0..games {
            let winner = agree(gomoku(size, k), &mut scanned(size, k), &mut Random(seed));
            ends[winner.map_or(2, Player::index)] += 1;
        }
    }
    assert!(ends.iter().all(|&games| games > 50), "the games are one-sided: {ends:?}");
    for seed in 0..200 {
        agree(TicTacToe::new(), &mut scanned(3, 3), &mut Random(seed));
    }
}

/// Pieces by cell, and every step of every piece looked at.
struct Naive {
    width: usize,
    height: usize,
    board: Vec<Option<Player>>,
    mover: Player,
}

impl Naive {
    fn start(width: usize, height: usize) -> Self {
        let rows = if height >= 6 { 2 } else { 1 };
        let board = (0..width * height).map(|cell| match cell / width {
            row if row < rows => Some(Player::One),
            row if row >= height - rows => Some(Player::Zero),
            _ => None,
        });
        Self { width, height, board: board.collect(), mover: Player::Zero }
    }

    /// Actions with where they come from and go to.
    fn moves(&self) -> Vec<(Action, usize, usize)> {
        let mut moves = Vec::new();
        for from in (0..self.board.len()).filter(|&cell| self.board[cell] == Some(self.mover)) {
            for direction in 0..3 {
                let down = if self.mover == Player::Zero { -1 } else { 1 };
                let (row, column) = ((from / self.width) as isize + down, (from % self.width + direction) as isize - 1);
                if (0..self.height as isize).contains(&row) && (0..self.width as isize).contains(&column) {
                    let to = row as usize * self.width + column as usize;
                    let free =
                        if direction == 1 { self.board[to].is_none() } else { self.board[to] != Some(self.mover) };
                    if free {
                        moves.push(((3 * from + direction) as Action, from, to));
                    }
                }
            }
        }
        moves
    }
}

impl Oracle for Naive {
    fn turn(&self) -> Result<Player, Option<Player>> {
        let last = self.mover.opponent();
        let goal = if last == Player::Zero { 0 } else { self.board.len() - self.width };
        let is_home = self.board[goal..goal + self.width].contains(&Some(last));
        if is_home || !self.board.contains(&Some(self.mover)) { Err(Some(last)) } else { Ok(self.mover) }
    }

    fn legal(&self) -> Vec<Action> {
        self.moves().into_iter().map(|(action, ..)| action).collect()
    }

    fn encode(&self) -> Vec<f32> {
        let mut planes = planes(&self.board, self.mover, 2);
        planes.extend(vec![self.mover.index() as f32; self.board.len()]);
        planes
    }

    fn play(&mut self, action: Action) {
        let moves = self.moves();
        let (_, from, to) = *moves.iter().find(|&&(other, ..)| other == action).unwrap();
        self.board[to] = self.board[from].take();
        self.mover = self.mover.opponent();
    }
}

#[test]
fn breakthrough_agrees_with_a_look_at_every_step() {
    let (mut wins, mut emptied) = ([0; 2], 0);
    let small = [(2, 3, 20), (3, 4, 100), (4, 5, 100), (5, 6, 60)];
    for (width, height, games) in
        small.into_iter().chain([(8, 8, 60), (2, 32, 20), (21, 3, 20), (7, 9, 30), (4, 16, 10)])
    {
        for seed in 0..games {
            let mut naive = Naive::start(width, height);
            let winner = agree(breakthrough(width, height), &mut naive, &mut Random(seed)).unwrap();
            wins[winner.index()] += 1;
            emptied += usize::from(!naive.board.contains(&Some(winner.opponent())));
        }
    }
    assert!(wins.iter().all(|&wins| wins > 100) && emptied > 0, "{wins:?} {emptied}");
}

#[test]
fn small_boards_have_known_values() {
    assert_eq!([3, 4].map(|size| Solver::default().value(&gomoku(size, 3))), [0.0, 1.0]);
    let breakthroughs = [breakthrough(4, 3), breakthrough(3, 4)];
    assert_eq!(breakthroughs.map(|start| Solver::default().value(&start)), [1.0, 1.0]);
}

#[test]
fn boards_that_no_game_leads_to_are_refused_with_the_reason() {
    let refused = |text: &str| gomoku(5, 3).parse(text).unwrap_err().to_string();
    assert_eq!(refused("xxx../...../xxx../ooo../oo... o"), "both x and o have won");
    let twice = "x has won more than once, which no single stone can do";
    assert_eq!(refused("xxx../oo.oo/xxx../o..../..... o"), twice);
    let refused = |text: &str| breakthrough(3, 4).parse(text).unwrap_err().to_string();
    assert_eq!(refused("ooo/o../.../xxx x"), "o has at most 3 pieces, got 4");
    assert_eq!(refused("x../.../.../o.. x"), "both x and o have won");
    assert_eq!(refused("x../o../.../... x"), "x has won, so o is to move, got x");
    assert_eq!(refused("xx./o../.../... o"), twice);
    assert_eq!(refused(".../.../x../... x"), "x has won, so o is to move, got x");
}
