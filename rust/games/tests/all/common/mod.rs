//! What the tests of the games share: seeded random play and a plain exact solver.
//!
//! Everything here is slow and obvious on purpose: it is the yardstick, not the product.

use std::collections::HashMap;

use azpy_core::Error;
use azpy_core::game::{Action, Game, Payoff, Player, Turn};
use azpy_core::text::{Notation, play_named};
use azpy_core::written::{Bounds, Moves, Named, Notes, Order, Part, ReadMove, Variations};

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine and in every release.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Even enough for tests: the modulo's bias is below 2^-32 for anything a game offers.
    pub(crate) fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[(self.next() % items.len() as u64) as usize]
    }
}

/// More than any text of the tests has.
pub(crate) const BOUNDS: Bounds = Bounds { moves: 10_000, depth: 1_000 };

/// A tree of moves by their short names: 1 (2 3) 4.
pub(crate) fn tree_text(moves: &Moves<ReadMove>) -> String {
    let told = |part| match part {
        Part::Open => "(".to_owned(),
        Part::Move(number) => moves.all()[number - 1].1.short.clone(),
        Part::Close => ")".to_owned(),
    };
    moves.parts(Order::Behind).into_iter().map(told).collect::<Vec<_>>().join(" ")
}

/// A game with random variations, played by the rules.
pub(crate) fn random_tree<G: Notation>(start: &G, size: usize, random: &mut Random) -> Variations<G> {
    let tree = Moves::new(BOUNDS);
    let mut tree =
        Variations { start: start.clone(), moves: tree, tags: Vec::new(), notes: Notes::new(), left_out: Vec::new() };
    let mut positions = vec![start.clone()];
    let mut known = Vec::new();
    for _ in 0..size {
        let before = if random.next().is_multiple_of(4) {
            random.next() as usize % positions.len()
        } else {
            positions.len() - 1
        };
        let mut state = positions[before].clone();
        let actions = moves(&state);
        let action = *random.choose(if actions.is_empty() { &[0] } else { &actions });
        if actions.is_empty() || known.contains(&(before, action)) {
            continue;
        }
        known.push((before, action));
        let mut told = play_named(&mut state, action);
        told.notes = random_notes(random);
        tree.moves.push(before, told).unwrap();
        positions.push(state);
    }
    tree
}

/// Sometimes a comment, which has what a notation must keep apart.
fn random_notes(random: &mut Random) -> Notes {
    let comment = ["a ) b", "[%csl Gd4] x; {y", "\\ ] (1. e4)"].get(random.next() as usize % 9);
    comment.map(|comment| ("C".to_owned(), vec![(*comment).to_owned()])).into_iter().collect()
}

/// What was read can be written, and read again by the rules of `rules` as the same game. Returns the text.
pub(crate) fn check_written<G: Notation>(rules: &G, read: &Variations<G>) -> String {
    let named = |(before, told): &(usize, ReadMove)| -> Named { (before.checked_sub(1), told.name.clone()) };
    let notes_of = |game: &Variations<G>| -> Vec<Notes> {
        std::iter::once(&game.notes).chain(game.moves.all().iter().map(|(_, told)| &told.notes)).cloned().collect()
    };
    let named: Vec<_> = read.moves.all().iter().map(named).collect();
    let text = read.start.write_variations(&named, &read.tags, &notes_of(read), BOUNDS).unwrap();
    let again = rules.read_variations(&text, BOUNDS).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(tree_text(&again.moves), tree_text(&read.moves), "{text}");
    let by_move = |game: &Variations<G>| -> Vec<(String, Notes)> {
        let line = |part| {
            let Part::Move(number) = part else { return None };
            let told = game.moves.all()[number - 1].1.clone();
            Some((told.name, told.notes))
        };
        game.moves.parts(Order::Behind).into_iter().filter_map(line).collect()
    };
    assert_eq!((again.notes.clone(), by_move(&again)), (read.notes.clone(), by_move(read)), "{text}");
    assert_eq!((again.start.key(), &again.left_out), (read.start.key(), &Vec::new()), "{text}");
    text
}

/// A game of these moves and tags as text.
pub(crate) fn write<G: Notation>(
    start: &G,
    moves: &[(Option<usize>, &str)],
    tags: &[(&str, &str)],
    bounds: Bounds,
) -> Result<String, Error> {
    let moves: Vec<Named> = moves.iter().map(|&(before, name)| (before, name.to_owned())).collect();
    let tags: Vec<_> = tags.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    start.write_variations(&moves, &tags, &[], bounds)
}

/// The notes of a move, or of the start for 0.
pub(crate) fn notes_of<G>(game: &Variations<G>, number: usize) -> Vec<String> {
    let notes = if number == 0 { &game.notes } else { &game.moves.all()[number - 1].1.notes };
    notes.iter().map(|(name, values)| format!("{name} {}", values.join(","))).collect()
}

/// The legal actions of a player's turn, the outcomes of a chance turn, nothing at the end.
pub(crate) fn moves<G: Game>(state: &G) -> Vec<Action> {
    match state.turn() {
        Turn::Player(_) => legal(state),
        Turn::Chance => outcomes(state).into_iter().map(|(outcome, _)| outcome).collect(),
        Turn::Terminal => Vec::new(),
    }
}

pub(crate) fn legal<G: Game>(state: &G) -> Vec<Action> {
    // What was in the buffer must not matter.
    let mut actions = vec![Action::MAX; 3];
    state.legal_actions(&mut actions);
    actions
}

pub(crate) fn outcomes<G: Game>(state: &G) -> Vec<(Action, f32)> {
    let mut outcomes = vec![(Action::MAX, 1.0); 3];
    state.chance_outcomes(&mut outcomes);
    outcomes
}

pub(crate) fn encode<G: Game>(state: &G) -> Vec<f32> {
    // A value that the game does not write stays NaN and fails every comparison.
    let mut row = vec![f32::NAN; state.obs_shape().iter().product()];
    state.encode(&mut row);
    row
}

pub(crate) fn after<G: Game>(state: &G, action: Action) -> G {
    let mut next = state.clone();
    next.play(action);
    next
}

/// A text with a few letters or words left out, put in, exchanged or repeated. What is new is of `pieces`.
pub(crate) fn mutated(text: &str, pieces: &[&str], random: &mut Random) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..=random.next() % 2 {
        let [one, other] = [(); 2].map(|()| random.next() as usize % (letters.len() + 1));
        let (from, to) = (one.min(other), one.max(other));
        let piece: Vec<char> = match random.next() % 3 {
            // A letter that the text has.
            0 if from < letters.len() => vec![letters[random.next() as usize % letters.len()]],
            _ => random.choose(pieces).chars().collect(),
        };
        match random.next() % 6 {
            0 => drop(letters.drain(from..to.min(from + 6))),
            1 => drop(letters.splice(from..from, piece)),
            2 => drop(letters.splice(from..to.min(from + 1), piece)),
            3 if to < letters.len() => letters.swap(from, to),
            4 => letters.truncate(to),
            _ => {
                let part = letters[from..to].to_vec();
                drop(letters.splice(from..from, part));
            }
        }
    }
    letters.into_iter().collect()
}

/// No two of these positions have one key.
pub(crate) fn keys_differ<G: Game>(positions: impl IntoIterator<Item = (String, G)>) {
    let mut seen = HashMap::new();
    for (what, position) in positions {
        if let Some(other) = seen.insert(position.key(), what.clone()) {
            panic!("one key for {other} and {what}");
        }
    }
}

/// Exact values by recursion over every line of play, for games small enough.
///
/// Positions are remembered by key, so a wrong key shows as a wrong value.
#[derive(Default)]
pub(crate) struct Solver {
    known: HashMap<u128, f64>,
}

impl Solver {
    /// The value of `state` for player 0 if both play best and dice are averaged.
    pub(crate) fn value<G: Game>(&mut self, state: &G) -> f64 {
        if state.turn() == Turn::Terminal {
            return f64::from(state.outcome().of(Player::Zero));
        }
        if let Some(&value) = self.known.get(&state.key()) {
            return value;
        }
        let value = match state.turn() {
            Turn::Player(player) => self.best(state, player),
            // The game states its probabilities in f32; they are divided by their sum so that no rounding adds up.
            _ => {
                let outcomes = outcomes(state);
                let total: f64 = outcomes.iter().map(|&(_, p)| f64::from(p)).sum();
                let average = |(outcome, p): (Action, f32)| f64::from(p) / total * self.value(&after(state, outcome));
                outcomes.into_iter().map(average).sum()
            }
        };
        self.known.insert(state.key(), value);
        value
    }

    /// The value for player 0 of the best action of `player`, whose turn it is.
    fn best<G: Game>(&mut self, state: &G, player: Player) -> f64 {
        let sign = if player == Player::Zero { 1.0 } else { -1.0 };
        let mut best = f64::NEG_INFINITY;
        for action in legal(state) {
            best = best.max(sign * self.value(&after(state, action)));
            // Nothing beats a win.
            if best >= 1.0 {
                break;
            }
        }
        sign * best
    }
}

/// Lines of play of exactly `depth` plies, also past a draw.
pub(crate) fn perft<G: Game>(state: &G, depth: usize) -> u64 {
    match depth {
        0 => 1,
        1 => legal(state).len() as u64,
        _ => legal(state).into_iter().map(|action| perft(&after(state, action), depth - 1)).sum(),
    }
}

/// A plain reading of a game's rules.
pub(crate) trait Oracle {
    /// The player to move; or who has won, if anyone has, where the game is over.
    fn turn(&self) -> Result<Player, Option<Player>>;
    fn legal(&self) -> Vec<Action>;
    fn encode(&self) -> Vec<f32>;
    fn play(&mut self, action: Action);
}

/// Plays a game at random to its end, and compares all positions with those of the oracle. Returns the winner.
pub(crate) fn agree<G: Notation>(mut fast: G, oracle: &mut impl Oracle, random: &mut Random) -> Option<Player> {
    loop {
        let mover = match oracle.turn() {
            Ok(mover) => mover,
            Err(winner) => {
                let expected = G::Payoff::won_by(winner, fast.num_players());
                assert_eq!((fast.turn(), fast.outcome()), (Turn::Terminal, expected), "{}", fast.render());
                return winner;
            }
        };
        let expected = oracle.legal();
        assert_eq!((fast.turn(), legal(&fast)), (Turn::Player(mover), expected.clone()), "{}", fast.render());
        assert_eq!(encode(&fast), oracle.encode(), "{}", fast.render());
        let action = *random.choose(&expected);
        fast.play(action);
        oracle.play(action);
    }
}

/// The planes of a board that has a man of one player on each cell or none: the mover's men, and those of who moves next.
pub(crate) fn planes(board: &[Option<Player>], mover: Player, players: usize) -> Vec<f32> {
    let plane = |ahead: usize| {
        let player = Player::ALL[(mover.index() + ahead) % players];
        board.iter().map(move |&man| f32::from(u8::from(man == Some(player))))
    };
    (0..players).flat_map(plane).collect()
}

/// Whether `player` has `k` in a row, by a look from every cell in every direction.
pub(crate) fn has_row(board: &[Option<Player>], width: usize, k: usize, player: Player) -> bool {
    let (width, height) = (width as isize, (board.len() / width) as isize);
    let cells = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    cells.into_iter().any(|(row, column)| {
        [(0, 1), (1, 0), (1, 1), (1, -1)].into_iter().any(|(down, right)| {
            (0..k as isize).all(|step| {
                let (row, column) = (row + step * down, column + step * right);
                let on_board = (0..height).contains(&row) && (0..width).contains(&column);
                on_board && board[(row * width + column) as usize] == Some(player)
            })
        })
    })
}
