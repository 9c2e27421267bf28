//! What the tests of the games share: seeded random play and a plain exact solver.
//!
//! Everything here is slow and obvious on purpose: it is the yardstick, not the product.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use azpy_core::game::{Action, Game, Payoff, Player, Turn};
use azpy_core::text::Notation;
use azpy_core::text::play_named;
use azpy_core::written::{Bounds, Moves, Named, Notes, Order, Part, ReadMove, Variations};
use proptest::prelude::*;

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

/// Whatever comes of a text can be played on from, and is written and read again.
pub(crate) fn read_and_play<G: Notation + Default + PartialEq + std::fmt::Debug>(text: &str, seed: u64) {
    let Ok(mut game) = G::default().parse(text) else {
        return;
    };
    let mut random = Random(seed);
    for _ in 0..40 {
        assert_eq!(game.parse(&game.to_text().unwrap()).as_ref(), Ok(&game), "{text}");
        assert!(!game.render().is_empty() && game.to_svg().ends_with("</svg>"));
        let moves = moves(&game);
        if moves.is_empty() {
            assert_eq!(game.turn(), Turn::Terminal, "{text}");
            return;
        }
        game.try_play(*random.choose(&moves)).unwrap();
    }
}

/// `read_and_play` of three million texts in which some letters are others, missing or new.
pub(crate) fn read_broken<G: Notation + Default + PartialEq + std::fmt::Debug>(texts: &[&str], letters: &[u8]) {
    let (mut random, mut read) = (Random(1), 0);
    for number in 0..3_000_000_u64 {
        let mut text = texts[number as usize % texts.len()].as_bytes().to_vec();
        for _ in 0..=random.next() % 3 {
            let at = random.next() as usize % text.len();
            match random.next() % 3 {
                0 => text[at] = *random.choose(letters),
                1 => text.insert(at, *random.choose(letters)),
                _ => drop(text.remove(at)),
            }
        }
        let text = String::from_utf8(text).unwrap();
        read += u64::from(G::default().parse(&text).is_ok());
        read_and_play::<G>(&text, number);
    }
    assert!(read > 10_000, "{read} were positions");
}

/// Half a key is hash enough: keys are well mixed. Twice as fast as SipHash in a debug build.
#[derive(Default)]
struct HalfKey(u64);

impl Hasher for HalfKey {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u128");
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// Exact values by recursion over every line of play, for games small enough.
///
/// Positions are remembered by key, so a wrong key shows as a wrong value.
#[derive(Default)]
pub(crate) struct Solver {
    known: HashMap<u128, f64, BuildHasherDefault<HalfKey>>,
}

impl Solver {
    /// The value of `state` for player 0 if both play best and dice are averaged.
    pub(crate) fn value<G: Game>(&mut self, state: &G) -> f64 {
        match state.turn() {
            Turn::Terminal => return f64::from(state.outcome().of(Player::Zero)),
            Turn::Chance | Turn::Player(_) => {}
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

/// Lines of play of exactly `depth` plies (games that end earlier do not count).
pub(crate) fn perft<G: Game>(state: &G, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let moves = moves(state);
    if depth == 1 {
        return moves.len() as u64;
    }
    moves.into_iter().map(|action| perft(&after(state, action), depth - 1)).sum()
}

/// A place in a text, what is written there, and how many letters it replaces.
type Edit = (prop::sample::Index, String, usize);

/// A few edits with the letters of positions in words.
pub(crate) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    proptest::collection::vec((any::<prop::sample::Index>(), "[-0-9a-z=:,/ *]{0,3}", 0..3_usize), 1..5)
}

pub(crate) fn edited(text: &str, edits: Vec<Edit>) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (at, new, removed) in edits {
        let from = at.index(text.len() + 1);
        let to = (from + removed).min(text.len());
        text.splice(from..to, new.chars());
    }
    text.into_iter().collect()
}
