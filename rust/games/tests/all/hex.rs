//! Hex against a plain reading of its rules, with its exact values on small boards, and the swap by hand.

use std::collections::HashMap;

use azpy_core::game::{Action, Game, Player, Pov, PovValue, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::Hex;

use crate::common::{Random, Solver, after, encode, legal};

fn hex(size: usize, swap: bool) -> Hex {
    Hex::new(size, swap).unwrap()
}

fn played(mut game: Hex, actions: &[Action]) -> Hex {
    for &action in actions {
        game.try_play(action).unwrap();
    }
    game
}

/// Stones by cell, and a search of the whole board for a chain.
struct Naive {
    size: usize,
    stones: Vec<Option<Player>>,
}

impl Naive {
    fn empty(size: usize) -> Self {
        Self { size, stones: vec![None; size * size] }
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

    fn legal(&self) -> Vec<Action> {
        (0..self.stones.len()).filter(|&cell| self.stones[cell].is_none()).map(|cell| cell as Action).collect()
    }

    fn encode(&self, mover: Player) -> Vec<f32> {
        let last = self.size as isize - 1;
        let mut planes = Vec::new();
        for player in [Player::Zero, Player::One] {
            planes.push(self.stones.iter().map(|&stone| stone == Some(player)).collect());
            planes.extend([0, last].map(|from| self.connected(player, from)));
        }
        planes.push(vec![mover == Player::One; self.stones.len()]);
        planes.concat().into_iter().map(|one| f32::from(u8::from(one))).collect()
    }

    /// The value for `mover`, by negamax without any pruning.
    fn value(&mut self, mover: Player, known: &mut HashMap<Vec<Option<Player>>, i8>) -> i8 {
        if self.is_won_by(mover.opponent()) {
            return -1;
        }
        if let Some(&value) = known.get(&self.stones) {
            return value;
        }
        let mut best = -1;
        for cell in self.legal() {
            self.stones[cell as usize] = Some(mover);
            best = best.max(-self.value(mover.opponent(), known));
            self.stones[cell as usize] = None;
        }
        known.insert(self.stones.clone(), best);
        best
    }
}

#[test]
fn hex_agrees_with_a_search_of_the_whole_board() {
    let mut random = Random(5);
    let mut wins = [0; 2];
    for game in 0..330 {
        let size = 3 + game % 11;
        let (mut fast, mut naive, mut mover) = (hex(size, false), Naive::empty(size), Player::Zero);
        loop {
            assert_eq!(fast.turn(), Turn::Player(mover));
            assert_eq!(legal(&fast), naive.legal(), "{}", fast.render());
            assert_eq!(encode(&fast), naive.encode(mover), "{}", fast.render());
            let action = *random.choose(&naive.legal());
            fast.play(action);
            naive.stones[action as usize] = Some(mover);
            for (cell, &stone) in naive.stones.iter().enumerate() {
                assert_eq!(fast.stone(cell), stone);
            }
            // Only the last to move can have made a chain.
            if naive.is_won_by(mover) {
                assert_eq!((fast.turn(), fast.outcome()), (Turn::Terminal, PovValue(1.0).absolute(mover)));
                wins[mover.index()] += 1;
                break;
            }
            mover = mover.opponent();
        }
    }
    assert!(wins.iter().all(|&count| count > 100), "the games are one-sided: {wins:?}");
}

#[test]
fn a_full_board_has_one_winner() {
    let mut random = Random(6);
    for game in 0..500 {
        let mut naive = Naive::empty(3 + game % 5);
        for stone in &mut naive.stones {
            *stone = Some(*random.choose(&[Player::Zero, Player::One]));
        }
        assert_ne!(naive.is_won_by(Player::Zero), naive.is_won_by(Player::One));
    }
}

#[test]
fn hex_3x3_is_won_by_the_first_player_as_a_naive_solver_says() {
    let (start, mut solver) = (hex(3, false), Solver::default());
    assert_eq!(solver.value(&start), 1.0);
    let mut known = HashMap::new();
    assert_eq!(Naive::empty(3).value(Player::Zero, &mut known), 1);
    for opening in legal(&start) {
        let mut naive = Naive::empty(3);
        naive.stones[opening as usize] = Some(Player::Zero);
        let expected = -f64::from(naive.value(Player::One, &mut known));
        assert_eq!(solver.value(&after(&start, opening)), expected, "{}", start.action_name(opening));
        // The centre wins, a1 and c3 lose.
        match opening {
            4 => assert_eq!(expected, 1.0),
            0 | 8 => assert_eq!(expected, -1.0),
            _ => {}
        }
    }
}

#[test]
fn whoever_may_swap_wins() {
    let (start, mut solver) = (hex(3, true), Solver::default());
    assert_eq!(solver.value(&start), -1.0);
    // Swapping takes over the opening with all that it is worth.
    for opening in legal(&start) {
        let swapped = solver.value(&played(start, &[opening, 9]));
        let kept = Solver::default().value(&played(hex(3, false), &[opening]));
        assert_eq!(swapped, -kept, "{}", start.action_name(opening));
    }
}

#[test]
fn the_swap_is_the_first_action_of_player_1_or_none() {
    const SWAP: Action = 16;
    let start = hex(4, true);
    assert_eq!(start.num_actions(), 17);
    assert!(!legal(&start).contains(&SWAP));
    for opening in legal(&start) {
        let opened = played(start, &[opening]);
        assert_eq!(legal(&opened).last(), Some(&SWAP));
        assert_eq!(opened.action_name(SWAP), "swap");
        let declined = after(&opened, legal(&opened)[0]);
        let swapped = after(&opened, SWAP);
        for next in [declined, swapped] {
            assert_eq!(next.turn(), Turn::Player(Player::Zero));
            assert!(!legal(&next).contains(&SWAP));
            assert!(!legal(&after(&next, legal(&next)[0])).contains(&SWAP));
        }
        // Row and column exchanged: the mirror image in the diagonal from a1 to the opposite corner.
        let (row, column) = (opening / 4, opening % 4);
        for cell in 0..16 {
            let expected = (cell == column * 4 + row).then_some(Player::One);
            assert_eq!(swapped.stone(cell as usize), expected);
        }
    }
    let without = hex(4, false);
    assert_eq!(without.num_actions(), 16);
    assert!(played(without, &[0]).try_play(SWAP).is_err());
}

#[test]
fn a_stone_taken_over_connects_for_its_new_owner_alone() {
    // b1 becomes a2. Player 0 fills column b below b1, and does not win: b1 is gone.
    let mut game = played(hex(4, true), &[1, 16, 5, 0, 9, 3, 13]);
    assert_eq!(game.render(), "  a b c d\n1 o . . o\n 2 o x . .\n  3 . x . .\n   4 . x . .");
    assert_eq!(game.turn(), Turn::Player(Player::One));
    game.try_play(15).unwrap();
    game.try_play(1).unwrap();
    assert_eq!((game.turn(), game.outcome()), (Turn::Terminal, Value(1.0)));

    // Player 1 goes on from a2 to the right side.
    let game = played(hex(4, true), &[1, 16, 0, 5, 12, 6, 13, 7]);
    assert_eq!(game.render(), "  a b c d\n1 x . . .\n 2 o o o o\n  3 . . . .\n   4 x x . .");
    assert_eq!((game.turn(), game.outcome()), (Turn::Terminal, Value(-1.0)));
}

#[test]
fn a_swap_is_told_from_the_same_stones_without_one() {
    // a2 and c3, once with player 0 to move, once with player 1.
    let declined = played(hex(3, true), &[8, 3]);
    let swapped = played(hex(3, true), &[1, 9, 8]);
    for cell in 0..9 {
        assert_eq!(declined.stone(cell), swapped.stone(cell));
    }
    assert_eq!(declined.turn(), Turn::Player(Player::Zero));
    assert_eq!(swapped.turn(), Turn::Player(Player::One));
    assert_ne!(declined.key(), swapped.key());
    assert_ne!(encode(&declined), encode(&swapped));
}

#[test]
fn diagonals_connect_in_one_direction_only() {
    // a1, b2, c3 do not touch each other; c1, b2, a3 do.
    assert_ne!(played(hex(3, false), &[0, 1, 4, 2, 8]).turn(), Turn::Terminal);
    assert_eq!(played(hex(3, false), &[2, 1, 4, 0, 6]).outcome(), Value(1.0));
    assert_eq!(played(hex(3, false), &[0, 2, 1, 4, 7, 6]).outcome(), Value(-1.0));
}
