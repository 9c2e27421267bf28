//! Hex against a plain reading of its rules, with its exact values on small boards.

use azpy_core::game::{Action, Game, Player};
use azpy_core::text::Notation;
use azpy_games::Hex;

use crate::common::{Oracle, Random, Solver, after, agree, encode, legal};

fn hex(size: usize, swap: bool) -> Hex {
    Hex::new(size, swap).unwrap()
}

/// Stones by cell, and a search of the whole board for a chain.
struct Naive {
    size: usize,
    stones: Vec<Option<Player>>,
    mover: Player,
}

impl Naive {
    fn empty(size: usize) -> Self {
        Self { size, stones: vec![None; size * size], mover: Player::Zero }
    }

    /// Where a chain of stones leads to from a row (player 0) or column (player 1).
    fn connected(&self, player: Player, from: isize) -> Vec<bool> {
        let size = self.size as isize;
        let mut open: Vec<_> =
            (0..size).map(|place| if player == Player::Zero { (from, place) } else { (place, from) }).collect();
        let mut seen = vec![false; self.stones.len()];
        while let Some((row, column)) = open.pop() {
            let on_board = (0..size).contains(&row) && (0..size).contains(&column);
            let cell = (row * size + column) as usize;
            if !on_board || seen[cell] || self.stones[cell] != Some(player) {
                continue;
            }
            seen[cell] = true;
            let around = [(-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)];
            open.extend(around.map(|(down, right)| (row + down, column + right)));
        }
        seen
    }

    fn is_won_by(&self, player: Player) -> bool {
        let ends = [0, self.size as isize - 1].map(|from| self.connected(player, from));
        ends[0].iter().zip(&ends[1]).any(|(&first, &last)| first && last)
    }
}

impl Oracle for Naive {
    fn turn(&self) -> Result<Player, Option<Player>> {
        let last = self.mover.opponent();
        if self.is_won_by(last) { Err(Some(last)) } else { Ok(self.mover) }
    }

    fn legal(&self) -> Vec<Action> {
        (0..self.stones.len()).filter(|&cell| self.stones[cell].is_none()).map(|cell| cell as Action).collect()
    }

    fn encode(&self) -> Vec<f32> {
        let last = self.size as isize - 1;
        let mut planes = Vec::new();
        for player in [Player::Zero, Player::One] {
            planes.push(self.stones.iter().map(|&stone| stone == Some(player)).collect());
            planes.extend([0, last].map(|from| self.connected(player, from)));
        }
        planes.push(vec![self.mover == Player::One; self.stones.len()]);
        planes.concat().into_iter().map(|one| f32::from(u8::from(one))).collect()
    }

    fn play(&mut self, action: Action) {
        self.stones[action as usize] = Some(self.mover);
        self.mover = self.mover.opponent();
    }
}

#[test]
fn hex_agrees_with_a_search_of_the_whole_board() {
    let (mut random, mut wins) = (Random(5), [0; 2]);
    for game in 0..330 {
        let size = 3 + game % 11;
        let winner = agree(hex(size, false), &mut Naive::empty(size), &mut random).expect("nothing is drawn");
        wins[winner.index()] += 1;
    }
    assert!(wins.iter().all(|&count| count > 100), "the games are one-sided: {wins:?}");
}

#[test]
fn hex_3x3_is_won_by_the_first_player() {
    let (start, mut solver) = (hex(3, false), Solver::default());
    // By the centre for one; a1 and c3 lose.
    let values: Vec<_> = legal(&start).into_iter().map(|opening| solver.value(&after(&start, opening))).collect();
    assert_eq!(solver.value(&start), 1.0);
    assert_eq!((values[0], values[4], values[8]), (-1.0, 1.0, -1.0));
}

#[test]
fn whoever_may_swap_wins() {
    let (start, mut solver) = (hex(3, true), Solver::default());
    assert_eq!(solver.value(&start), -1.0);
    // Swapping takes over the opening with all that it is worth.
    for opening in legal(&start) {
        let swapped = solver.value(&after(&after(&start, opening), 9));
        let kept = Solver::default().value(&after(&hex(3, false), opening));
        assert_eq!(swapped, -kept, "{}", start.action_name(opening));
    }
}

#[test]
fn a_swap_is_told_from_the_same_stones_without_one() {
    let [declined, swapped] = ["c3 a2", "b1 swap c3"].map(|line| hex(3, true).parse(line).unwrap());
    assert_eq!(declined.to_text().unwrap().replace(" x", " o"), swapped.to_text().unwrap());
    assert_ne!(declined.key(), swapped.key());
    assert_ne!(encode(&declined), encode(&swapped));
}
