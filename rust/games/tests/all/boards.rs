//! Gomoku and Breakthrough against plain readings of their rules, with exact values of small boards, and their notation.

use azpy_core::game::{Action, Game, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::{Breakthrough, Gomoku, TicTacToe};

use crate::common::{Random, Solver, encode, legal, perft};

fn gomoku(size: usize, k: usize) -> Gomoku {
    Gomoku::new(size, k).unwrap()
}

fn breakthrough(width: usize, height: usize) -> Breakthrough {
    Breakthrough::new(width, height).unwrap()
}

fn plane(board: &[Option<Player>], player: Player) -> impl Iterator<Item = f32> {
    board.iter().map(move |&piece| f32::from(u8::from(piece == Some(player))))
}

/// Whether `player` has `k` in a row, by a look from every cell in every direction.
fn has_row(board: &[Option<Player>], size: usize, k: usize, player: Player) -> bool {
    let cells = (0..size as isize).flat_map(|row| (0..size as isize).map(move |column| (row, column)));
    cells.into_iter().any(|(row, column)| {
        [(0, 1), (1, 0), (1, 1), (1, -1)].into_iter().any(|(down, right)| {
            (0..k as isize).all(|step| {
                let (row, column) = (row + step * down, column + step * right);
                let on_board = (0..size as isize).contains(&row) && (0..size as isize).contains(&column);
                on_board && board[(row * size as isize + column) as usize] == Some(player)
            })
        })
    })
}

#[test]
fn gomoku_agrees_with_a_look_at_all_rows() {
    let (mut wins, mut draws, mut overlines) = ([0; 2], 0, 0);
    for (size, k, games) in [(3, 3, 300), (4, 4, 300), (5, 4, 200), (6, 2, 20), (9, 5, 60), (15, 5, 8), (19, 6, 2)] {
        for seed in 0..games {
            let (mut game, mut board, mut mover) = (gomoku(size, k), vec![None; size * size], Player::Zero);
            let mut random = Random(seed);
            loop {
                let expected: Vec<_> = (0..size * size).filter(|&cell| board[cell].is_none()).collect();
                let won = has_row(&board, size, k, mover.opponent());
                if won || expected.is_empty() {
                    let outcome = if won { [-1.0, 1.0][mover.index()] } else { 0.0 };
                    assert_eq!((game.turn(), game.outcome()), (Turn::Terminal, Value(outcome)), "{}", game.render());
                    if won {
                        wins[mover.opponent().index()] += 1
                    } else {
                        draws += 1
                    }
                    overlines += usize::from(won && has_row(&board, size, k + 1, mover.opponent()));
                    break;
                }
                assert_eq!(game.turn(), Turn::Player(mover), "{}", game.render());
                assert_eq!(legal(&game), expected.iter().map(|&cell| cell as Action).collect::<Vec<_>>());
                let planes: Vec<_> = plane(&board, mover).chain(plane(&board, mover.opponent())).collect();
                assert_eq!(encode(&game), planes, "{}", game.render());
                let cell = *random.choose(&expected);
                game.play(cell as Action);
                board[cell] = Some(mover);
                mover = mover.opponent();
            }
        }
    }
    assert!(wins.iter().all(|&wins| wins > 100) && draws > 50 && overlines > 5, "{wins:?} {draws} {overlines}");
}

#[test]
fn three_in_a_row_is_tic_tac_toe() {
    let counts = (1..=6).map(|depth| perft(&gomoku(3, 3), depth));
    assert!(counts.eq((1..=6).map(|depth| perft(&TicTacToe::new(), depth))));
    let mut solver = Solver::default();
    assert_eq!(solver.value(&gomoku(3, 3)), 0.0);
    assert_eq!(Solver::default().value(&gomoku(4, 3)), 1.0);
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

    fn winner(&self) -> Option<Player> {
        let home = |row: usize| &self.board[row * self.width..(row + 1) * self.width];
        let none = |player| !self.board.contains(&Some(player));
        if home(0).contains(&Some(Player::Zero)) || none(Player::One) {
            Some(Player::Zero)
        } else if home(self.height - 1).contains(&Some(Player::One)) || none(Player::Zero) {
            Some(Player::One)
        } else {
            None
        }
    }
}

#[test]
fn breakthrough_agrees_with_a_look_at_every_step() {
    let (mut wins, mut emptied) = ([0; 2], 0);
    for (width, height, games) in [
        (8, 8, 60),
        (2, 3, 20),
        (3, 4, 100),
        (4, 5, 100),
        (5, 6, 60),
        (2, 32, 20),
        (21, 3, 20),
        (7, 9, 30),
        (4, 16, 10),
    ] {
        for seed in 0..games {
            let (mut game, mut naive) = (breakthrough(width, height), Naive::start(width, height));
            let mut random = Random(seed);
            loop {
                if let Some(winner) = naive.winner() {
                    let outcome = Value([1.0, -1.0][winner.index()]);
                    assert_eq!((game.turn(), game.outcome()), (Turn::Terminal, outcome), "{}", game.render());
                    wins[winner.index()] += 1;
                    emptied += usize::from(!naive.board.contains(&Some(winner.opponent())));
                    break;
                }
                let moves = naive.moves();
                assert_eq!(game.turn(), Turn::Player(naive.mover));
                assert_eq!(legal(&game), moves.iter().map(|&(action, ..)| action).collect::<Vec<_>>());
                let mut planes: Vec<_> = plane(&naive.board, naive.mover).collect();
                planes.extend(plane(&naive.board, naive.mover.opponent()));
                planes.extend(vec![naive.mover.index() as f32; width * height]);
                assert_eq!(encode(&game), planes, "{}", game.render());
                let &(action, from, to) = random.choose(&moves);
                let letter = |cell: usize| char::from(b'a' + (cell % width) as u8);
                let number = |cell: usize| height - cell / width;
                let name = format!("{}{}{}{}", letter(from), number(from), letter(to), number(to));
                assert_eq!(game.action_name(action), name);
                game.play(action);
                naive.board[to] = naive.board[from].take();
                naive.mover = naive.mover.opponent();
            }
        }
    }
    assert!(wins.iter().all(|&wins| wins > 100) && emptied > 0, "{wins:?} {emptied}");
}

#[test]
fn breakthrough_4x3_is_won_by_the_first_player() {
    assert_eq!(Solver::default().value(&breakthrough(4, 3)), 1.0);
    assert_eq!(Solver::default().value(&breakthrough(3, 4)), 1.0);
}

#[test]
fn boards_that_no_game_leads_to_are_refused_with_the_reason() {
    let refused = |text: &str| gomoku(5, 3).parse(text).unwrap_err();
    assert_eq!(refused("xxx../...../xxx../ooo../oo... o"), "both x and o have won");
    let twice = "x has won more than once: no last stone can have done that";
    assert_eq!(refused("xxx../oo.oo/xxx../o..../..... o"), twice);
    let refused = |text: &str| breakthrough(3, 4).parse(text).unwrap_err();
    assert_eq!(refused("ooo/o../.../xxx x"), "o has at most 3 pieces, got 4");
    assert_eq!(refused("x../.../.../o.. x"), "both x and o have won");
    assert_eq!(refused("x../o../.../... x"), "x has won, so that o is to move, got x");
    assert_eq!(refused("xx./o../.../... o"), twice);
    assert_eq!(refused(".../.../x../... x"), "x has won, so that o is to move, got x");
}
