//! Go against a plain reading of its rules: boards as lists of stones, chains by flood fill, every board kept.

use azpy_core::game::{Action, Game, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::{Go, Go9, Go19};

use crate::common::{Random, encode, keys_differ, legal};

type Board = Vec<Option<Player>>;

fn go(size: usize) -> Go9 {
    Go9::new(size, 7.5, true).unwrap()
}

/// A start as drawn, x, o and dots, row by row.
fn drawn(rows: &[&str], superko: bool, mover: Player) -> Go9 {
    let cells: Vec<char> = rows.concat().chars().collect();
    let [black, white] = ['x', 'o'].map(|stone| (0..cells.len()).filter(|&cell| cells[cell] == stone).collect());
    let (black, white): (Vec<usize>, Vec<usize>) = (black, white);
    Go9::new(rows.len(), 7.5, superko).unwrap().with_stones([&black, &white], mover).unwrap()
}

struct Naive {
    size: usize,
    komi: f32,
    superko: bool,
    /// After every ply, the start first.
    boards: Vec<Board>,
    passes: usize,
    mover: Player,
}

impl Naive {
    fn new(size: usize, komi: f32, superko: bool) -> Self {
        Self { size, komi, superko, boards: vec![vec![None; size * size]], passes: 0, mover: Player::Zero }
    }

    fn board(&self) -> &Board {
        &self.boards[self.boards.len() - 1]
    }

    fn near(&self, cell: usize) -> Vec<usize> {
        let size = self.size as isize;
        let (row, column) = (cell as isize / size, cell as isize % size);
        let sides = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)];
        let on_board = |&(row, column): &(isize, isize)| (0..size).contains(&row) && (0..size).contains(&column);
        sides.into_iter().filter(on_board).map(|(row, column)| (row * size + column) as usize).collect()
    }

    /// The cells of the same content that are connected with `cell`, and what else is beside them.
    fn region(&self, board: &Board, cell: usize) -> (Vec<usize>, Vec<Option<Player>>) {
        let (mut region, mut border, mut at) = (vec![cell], Vec::new(), 0);
        while at < region.len() {
            for near in self.near(region[at]) {
                if board[near] != board[cell] {
                    border.push(board[near]);
                } else if !region.contains(&near) {
                    region.push(near);
                }
            }
            at += 1;
        }
        (region, border)
    }

    /// The board after a stone on `cell`, unless that is suicide or not empty.
    fn with(&self, cell: usize) -> Option<Board> {
        let mut board = self.board().clone();
        if board[cell].is_some() {
            return None;
        }
        board[cell] = Some(self.mover);
        for near in self.near(cell) {
            if board[near] == Some(self.mover.opponent()) {
                let (chain, border) = self.region(&board, near);
                if !border.contains(&None) {
                    for stone in chain {
                        board[stone] = None;
                    }
                }
            }
        }
        self.region(&board, cell).1.contains(&None).then_some(board)
    }

    /// Legal actions, and how many there were more if ko were simple.
    fn legal(&self) -> (Vec<Action>, usize) {
        let (mut legal, mut more) = (Vec::new(), 0);
        for cell in 0..self.size * self.size {
            let Some(board) = self.with(cell) else { continue };
            let simple = self.boards.len() >= 2 && board == self.boards[self.boards.len() - 2];
            let repeats = if self.superko { self.boards.contains(&board) } else { simple };
            if !repeats {
                legal.push(cell as Action);
            } else if !simple {
                more += 1;
            }
        }
        legal.push((self.size * self.size) as Action);
        (legal, more)
    }

    fn play(&mut self, action: Action) {
        let cell = action as usize;
        let board = if cell == self.size * self.size {
            self.passes += 1;
            self.board().clone()
        } else {
            self.passes = 0;
            self.with(cell).unwrap()
        };
        self.boards.push(board);
        self.mover = self.mover.opponent();
    }

    fn is_over(&self) -> bool {
        self.passes == 2 || self.boards.len() - 1 == 2 * self.size * self.size
    }

    fn score(&self) -> f32 {
        let mut score = -self.komi;
        for (cell, &stone) in self.board().iter().enumerate() {
            let owner = stone.or_else(|| {
                let border = self.region(self.board(), cell).1;
                let [black, white] = [Player::Zero, Player::One].map(|player| border.contains(&Some(player)));
                (black != white).then_some(if black { Player::Zero } else { Player::One })
            });
            score += match owner {
                Some(Player::Zero) => 1.0,
                Some(_) => -1.0,
                None => 0.0,
            };
        }
        score
    }

    fn encode(&self) -> Vec<f32> {
        let cells = self.size * self.size;
        let mut planes = Vec::new();
        for ago in 0..8 {
            for player in [self.mover, self.mover.opponent()] {
                let board = self.boards.len().checked_sub(1 + ago).map(|number| &self.boards[number]);
                planes.extend((0..cells).map(|cell| match board {
                    Some(board) => f32::from(u8::from(board[cell] == Some(player))),
                    None => 0.0,
                }));
            }
        }
        planes.extend(vec![if self.mover == Player::Zero { 1.0 } else { 0.0 }; cells]);
        planes
    }
}

/// What came up in some games.
#[derive(Debug, Default)]
struct Seen {
    barred_by_superko: usize,
    by_passes: usize,
    by_cap: usize,
}

fn go_of<const WORDS: usize>(size: usize, komi: f32, superko: bool) -> Go<WORDS> {
    Go::new(size, komi, superko).unwrap()
}

/// Plays on in both from a start, by the opening and then at random, for `plies` at most, and compares all that can be
/// asked at every `every`th.
fn compare<const WORDS: usize>(
    mut fast: Go<WORDS>,
    opening: &[Action],
    seed: u64,
    every: usize,
    plies: usize,
    seen: &mut Seen,
) {
    let (size, superko) = (fast.size(), fast.superko());
    let (mut naive, mut random) = (Naive::new(size, fast.komi(), superko), Random(seed));
    naive.boards[0] = (0..size * size).map(|cell| fast.stone(cell)).collect();
    for ply in 0..plies {
        if naive.is_over() {
            break;
        }
        assert_eq!(fast.turn(), Turn::Player(naive.mover), "{}", fast.render());
        let offered = legal(&fast);
        if ply % every == 0 {
            let (expected, barred) = naive.legal();
            assert_eq!(offered, expected, "size {size}, superko {superko}, seed {seed}, ply {ply}\n{}", fast.render());
            assert_eq!(encode(&fast), naive.encode(), "{}", fast.render());
            assert_eq!(fast.score(), naive.score(), "{}", fast.render());
            seen.barred_by_superko += barred;
        }
        // A pass now and then, so that games end that way too.
        let passes = usize::from(random.next() % 24 == 0 || offered.len() == 1);
        let choices = &offered[..offered.len() - 1 + passes];
        // Mostly where a stone of the own colour has been before, so that boards come back if they may.
        let been =
            |&action: &Action| naive.boards.iter().any(|board| board.get(action as usize) == Some(&Some(naive.mover)));
        let again: Vec<_> = choices.iter().copied().filter(been).collect();
        let any = again.is_empty() || random.next() % 64 == 0;
        let action = *random.choose(if any { choices } else { &again });
        let action = *opening.get(ply).unwrap_or(&action);
        fast.play(action);
        naive.play(action);
    }
    assert_eq!(fast.score(), naive.score(), "{}", fast.render());
    if naive.is_over() {
        assert_eq!(fast.turn(), Turn::Terminal, "{}", fast.render());
        let score = naive.score();
        let outcome = if score == 0.0 { 0.0 } else { score.signum() };
        assert_eq!(fast.outcome(), Value(outcome), "{}", fast.render());
        *if naive.passes == 2 { &mut seen.by_passes } else { &mut seen.by_cap } += 1;
    }
}

fn compare_small(games: u64) -> Seen {
    let mut seen = Seen::default();
    for seed in 0..games {
        let (size, komi) = ([5, 5, 5, 6, 7][seed as usize % 5], [7.5, 0.0, -3.0][seed as usize % 3]);
        for superko in [true, false] {
            compare(go_of::<2>(size, komi, superko), &[], seed, 1, usize::MAX, &mut seen);
        }
    }
    seen
}

/// Games from a board with six kos, three for either player to take, which they do first.
fn compare_kos(games: u64, every: usize) -> Seen {
    let mut seen = Seen::default();
    let band = [".xo...ox.", "xo.o.ox.x", ".xo...ox."];
    for seed in 0..games {
        let start = drawn(&band.repeat(3), seed % 4 != 0, Player::Zero);
        compare(start, &[11, 16, 38, 43, 65, 70], seed, every, 60, &mut seen);
    }
    seen
}

#[test]
fn go_agrees_with_flood_fills_over_kept_boards() {
    let mut seen = compare_small(30);
    assert!(seen.by_passes >= 2 && seen.by_cap >= 5, "too little came up: {seen:?}");
    compare(go_of::<2>(9, 7.5, true), &[], 1, 3, 162, &mut seen);
    compare(go_of::<2>(11, 5.5, false), &[], 2, 17, 242, &mut seen);
    compare(go_of::<6>(6, 7.5, true), &[], 4, 1, 72, &mut seen);
    compare(go_of::<6>(13, 7.5, true), &[], 3, 29, 200, &mut seen);
    compare(go_of::<6>(19, 7.5, true), &[], 5, 47, 150, &mut seen);
    let kos = compare_kos(6, 1);
    assert!(kos.barred_by_superko >= 20, "too little came up: {kos:?}");
}

#[test]
#[ignore = "minutes: cargo test --release --test all go:: -- --ignored"]
fn go_agrees_with_flood_fills_in_many_games() {
    let mut seen = compare_small(3000);
    for seed in 0..20 {
        compare(go_of::<2>(9, 7.5, seed % 2 == 0), &[], seed, 1, 162, &mut seen);
        compare(go_of::<6>(13, 7.5, seed % 2 == 0), &[], seed, 5, 338, &mut seen);
        compare(go_of::<6>(19, 7.5, seed % 2 == 0), &[], seed, 17, 722, &mut seen);
    }
    println!("{seen:?}, {:?}", compare_kos(100, 1));
}

#[test]
fn a_chain_of_two_hundred_stones_has_its_liberties() {
    // Every second row is black, and the first column; one cell more, so that the one beside it has no liberty.
    let black: Vec<usize> = (0..361).filter(|&cell| cell / 19 % 2 == 0 || cell % 19 == 0 || cell == 21).collect();
    let start = Go19::new(19, 7.5, true).unwrap().with_stones([&black, &[]], Player::One).unwrap();
    assert_eq!((black.len(), start.score()), (200, 361.0 - 7.5));
    assert_eq!(legal(&start).len(), 361 - 200 - 1 + 1, "all empty cells but B18, and the pass");
    assert!(!legal(&start).contains(&20));
}

#[test]
fn keys_tell_apart_what_differs() {
    let (start, simple) = (go(9), Go9::new(9, 7.5, false).unwrap());
    // The same stones with another history, which planes show for eight plies, and which superko asks for later. And the
    // same boards, but two passes nearer to the cap.
    let late = "J1 J2 J3 J4 J5 J6 J7 J8 H1 H2";
    let lines = ["", "pass", "A1 B2 C3 D4", "C3 B2 A1 D4"].map(str::to_owned);
    let long = ["A1 B2 C3 D4", "C3 B2 A1 D4", "A1 pass C3 B2 pass D4"].map(|line| format!("{line} {late}"));
    let mut games: Vec<_> =
        lines.into_iter().chain(long).map(|line| (line.clone(), start.parse(&line).unwrap())).collect();
    let others = [simple.clone(), Go9::new(9, 7.0, true).unwrap(), Go9::new(9, -7.5, true).unwrap(), go(8)];
    games.extend(others.map(|other| ("another game".to_owned(), other)));
    games.push(("White begins".to_owned(), start.with_stones([&[], &[]], Player::One).unwrap()));
    // A ko that bars a cell, and the same boards without one.
    let ko = drawn(&[".xo..", "xo.o.", ".xo..", ".....", "....."], false, Player::Zero);
    games.extend(["C4", "pass"].map(|line| (format!("ko {line}"), ko.parse(line).unwrap())));
    keys_differ(games);
    // With simple ko no later ply asks for the history. The size of a position in memory is no part of the key.
    let [one, other] = ["A1 B2 C3 D4", "C3 B2 A1 D4"].map(|line| simple.parse(&format!("{line} {late}")).unwrap());
    assert_eq!(one.key(), other.key());
    assert_eq!(start.key(), Go19::new(9, 7.5, true).unwrap().key());
}

#[test]
fn a_start_with_bad_stones_is_refused() {
    let refused = |cells: [&[usize]; 2]| go(5).with_stones(cells, Player::Zero).unwrap_err().to_string();
    assert_eq!(refused([&[25], &[]]), "cell 25 is not on the board, expected 0 to 24");
    assert_eq!(refused([&[3], &[3]]), "D5 has two stones");
    assert_eq!(refused([&[0], &[1, 5]]), "the stone on A5 does not have a liberty");
}
