//! Othello against a plain reading of its rules, with known counts and the exact result on 4x4.

use std::collections::HashMap;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_games::Othello;

use crate::common::{Oracle, Random, after, agree, legal, perft, planes};

fn othello(size: usize) -> Othello {
    Othello::new(size).unwrap()
}

/// Discs by cell, and a walk from a cell in each direction.
struct Naive {
    size: usize,
    discs: Vec<Option<Player>>,
    mover: Player,
    passes: usize,
}

impl Naive {
    fn start(size: usize) -> Self {
        let (mut discs, low, high) = (vec![None; size * size], size / 2 - 1, size / 2);
        for (row, column, player) in
            [(low, low, Player::One), (low, high, Player::Zero), (high, low, Player::Zero), (high, high, Player::One)]
        {
            discs[row * size + column] = Some(player);
        }
        Self { size, discs, mover: Player::Zero, passes: 0 }
    }

    /// The cells whose discs turn over when `player` puts one on `cell`.
    fn turned(&self, player: Player, cell: usize) -> Vec<usize> {
        let size = self.size as isize;
        let mut turned = Vec::new();
        for (down, right) in [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)] {
            let mut row = Vec::new();
            let mut at = (cell as isize / size + down, cell as isize % size + right);
            while (0..size).contains(&at.0) && (0..size).contains(&at.1) {
                let cell = (at.0 * size + at.1) as usize;
                match self.discs[cell] {
                    None => break,
                    Some(owner) if owner == player => {
                        turned.append(&mut row);
                        break;
                    }
                    Some(_) => row.push(cell),
                }
                at = (at.0 + down, at.1 + right);
            }
        }
        turned
    }

    fn moves(&self, player: Player) -> Vec<Action> {
        let fits = |&cell: &usize| self.discs[cell].is_none() && !self.turned(player, cell).is_empty();
        (0..self.discs.len()).filter(fits).map(|cell| cell as Action).collect()
    }

    fn count(&self, player: Player) -> usize {
        self.discs.iter().filter(|&&disc| disc == Some(player)).count()
    }
}

impl Oracle for Naive {
    fn turn(&self) -> Result<Player, Option<Player>> {
        if [Player::Zero, Player::One].iter().any(|&player| !self.moves(player).is_empty()) {
            return Ok(self.mover);
        }
        let [zero, one] = [Player::Zero, Player::One].map(|player| self.count(player));
        Err((zero != one).then_some(if zero > one { Player::Zero } else { Player::One }))
    }

    fn legal(&self) -> Vec<Action> {
        let moves = self.moves(self.mover);
        if moves.is_empty() { vec![self.discs.len() as Action] } else { moves }
    }

    fn encode(&self) -> Vec<f32> {
        planes(&self.discs, self.mover, 2)
    }

    fn play(&mut self, action: Action) {
        let cell = action as usize;
        if cell == self.discs.len() {
            self.passes += 1;
        } else {
            let turned = self.turned(self.mover, cell);
            turned.into_iter().chain([cell]).for_each(|cell| self.discs[cell] = Some(self.mover));
        }
        self.mover = self.mover.opponent();
    }
}

#[test]
fn othello_agrees_with_a_walk_in_every_direction() {
    let (mut random, mut passes, mut ends) = (Random(7), [0; 3], [0; 3]);
    for game in 0..900 {
        let size = [4, 6, 8][game % 3];
        let mut naive = Naive::start(size);
        let winner = agree(othello(size), &mut naive, &mut random);
        passes[game % 3] += naive.passes;
        ends[winner.map_or(2, Player::index)] += 1;
    }
    assert!(passes.iter().all(|&count| count > 100), "too few passes by size: {passes:?}");
    assert!(ends.iter().all(|&count| count > 20), "the games are one-sided: {ends:?}");
}

#[test]
fn othello_perft() {
    // Often published, by Aart Bik for one.
    let counts: Vec<_> = (1..=8).map(|depth| perft(&othello(8), depth)).collect();
    assert_eq!(counts, [4, 12, 56, 244, 1_396, 8_200, 55_092, 390_216]);
}

/// Discs of player 0 less those of player 1 at the end if both play for it, by recursion over all lines of play.
fn best_difference(state: &Othello, known: &mut HashMap<u128, i32>) -> i32 {
    let Turn::Player(player) = state.turn() else {
        let [zero, one] = state.discs().map(u64::count_ones);
        return zero as i32 - one as i32;
    };
    if let Some(&difference) = known.get(&state.key()) {
        return difference;
    }
    let values = legal(state).into_iter().map(|action| best_difference(&after(state, action), known));
    let best = if player == Player::Zero { values.max() } else { values.min() };
    let best = best.expect("a player always has an action");
    known.insert(state.key(), best);
    best
}

#[test]
fn othello_4x4_is_won_by_the_second_player_with_eight_discs_more() {
    assert_eq!(best_difference(&othello(4), &mut HashMap::new()), -8);
}
