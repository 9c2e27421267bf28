//! Backgammon against a plain reading of its rules, known numbers of rolls that bear off, and positions by hand. Its
//! notation is tested in `backgammon_text.rs`.

use std::collections::BTreeSet;

use azpy_core::game::{Action, Game, Player, Turn, Value};
use azpy_core::text::Notation;
use azpy_games::Backgammon;

use crate::common::{Random, Solver, after, encode, legal, moves};

/// A board as the player to move sees it: own checkers above 0 and the opponent's below, on points 1 to 24 (0 is not
/// used).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Naive {
    points: [i32; 25],
    bar: i32,
    other_bar: i32,
    off: i32,
}

impl Naive {
    fn of(game: &Backgammon, player: Player) -> Self {
        let (own, other) = (game.checkers(player), game.checkers(player.opponent()));
        let mut points = [0; 25];
        for point in 1..=24 {
            points[point] = own[point - 1] as i32 - other[24 - point] as i32;
        }
        Self { points, bar: own[24] as i32, other_bar: other[24] as i32, off: own[25] as i32 }
    }

    /// Where a checker can go from by a die; 25 is the bar.
    fn sources(&self, die: usize) -> Vec<usize> {
        if self.bar > 0 {
            return if self.points[25 - die] >= -1 { vec![25] } else { Vec::new() };
        }
        let home = self.points[7..].iter().all(|&count| count <= 0);
        let fits = |&from: &usize| {
            let none_behind = || self.points[from + 1..].iter().all(|&count| count <= 0);
            self.points[from] > 0
                && match from.checked_sub(die) {
                    None => home && none_behind(),
                    Some(0) => home,
                    Some(to) => self.points[to] >= -1,
                }
        };
        (1..=24).filter(fits).collect()
    }

    fn moved(&self, from: usize, die: usize) -> Self {
        let mut next = self.clone();
        if from == 25 {
            next.bar -= 1;
        } else {
            next.points[from] -= 1;
        }
        match from.checked_sub(die) {
            None | Some(0) => next.off += 1,
            Some(to) if next.points[to] == -1 => {
                next.points[to] = 1;
                next.other_bar += 1;
            }
            Some(to) => next.points[to] += 1,
        }
        next
    }

    /// Boards after as many of the dice as can be played, in this order, and how many that are.
    fn played(&self, dice: &[usize]) -> (usize, BTreeSet<Self>) {
        let mut boards = BTreeSet::from([self.clone()]);
        for (number, &die) in dice.iter().enumerate() {
            let step = |board: &Self| -> Vec<_> { board.sources(die).iter().map(|&f| board.moved(f, die)).collect() };
            let next: BTreeSet<_> = boards.iter().flat_map(step).collect();
            if next.is_empty() {
                return (number, boards);
            }
            boards = next;
        }
        (dice.len(), boards)
    }

    /// The boards at the end of a turn.
    fn ends(&self, high: usize, low: usize) -> BTreeSet<Self> {
        if high == low {
            return self.played(&[high; 4]).1;
        }
        let (by_high, mut boards) = self.played(&[high, low]);
        let (by_low, others) = self.played(&[low, high]);
        match (by_high, by_low) {
            (2, 2) => {
                boards.extend(others);
                boards
            }
            (0 | 1, 2) => others,
            (0, 1) => others,
            _ => boards,
        }
    }
}

/// The boards at the ends of all lines of a turn, one for each line, and how many actions the longest has.
fn ends_of_lines(game: &Backgammon, mover: Player) -> (Vec<Naive>, usize) {
    let (mut ends, mut most) = (Vec::new(), 0);
    let mut open = vec![(*game, 0)];
    while let Some((state, length)) = open.pop() {
        if state.turn() == Turn::Player(mover) && state.dice().is_some() {
            open.extend(legal(&state).into_iter().map(|action| (after(&state, action), length + 1)));
        } else {
            ends.push(Naive::of(&state, mover));
            most = most.max(length);
        }
    }
    (ends, most)
}

/// What the comparisons have met.
#[derive(Debug, Default)]
struct Met {
    turns: usize,
    passes: usize,
    half: usize,
    doubles: usize,
}

/// Compares all plays of a roll.
fn compare(before: &Backgammon, mover: Player, outcome: Action, met: &mut Met) {
    let rolled = after(before, outcome);
    let name = before.action_name(outcome);
    let dice: Vec<usize> = name.split('-').map(|die| die.parse().unwrap()).collect();
    let expected = Naive::of(before, mover).ends(dice[0], dice[1]);
    let (lines, most) = ends_of_lines(&rolled, mover);
    let found: BTreeSet<_> = lines.iter().cloned().collect();
    let at = || format!("{} rolled {name}", before.to_text().unwrap());
    assert_eq!(found, expected, "{}", at());
    assert_eq!(lines.len(), found.len(), "two lines lead to one board: {}", at());
    met.turns += 1;
    met.passes += usize::from(most == 0);
    met.half += usize::from(most == 1);
    met.doubles += usize::from(dice[0] == dice[1]);
}

/// A position with 15 checkers a side, the own ones mostly on `own` points (numbered by their player).
fn scattered(random: &mut Random, ranges: [usize; 2]) -> Backgammon {
    let mut taken = [false; 25];
    let mut texts = Vec::new();
    for (player, range) in ranges.into_iter().enumerate() {
        let mut counts = [0; 26];
        let mut mine = [false; 25];
        for _ in 0..15 {
            let place = match random.next() % 40 {
                0 => 24,
                1..=4 => 25,
                _ => (random.next() % range as u64) as usize,
            };
            let point = if player == 0 { place + 1 } else { 24_usize.wrapping_sub(place) };
            // A point of the other player: one more off.
            let place = if place < 24 && taken[point] { 25 } else { place };
            if place < 24 {
                mine[point] = true;
            }
            counts[place] += 1;
        }
        for point in 0..25 {
            taken[point] |= mine[point];
        }
        let name = |place: usize| match place {
            24 => "bar".to_owned(),
            25 => "off".to_owned(),
            _ => (place + 1).to_string(),
        };
        let places = (0..26).filter(|&place| counts[place] > 0);
        texts.push(places.map(|place| format!("{}:{}", name(place), counts[place])).collect::<Vec<_>>().join(","));
    }
    if texts.iter().any(|text| text == "off:15") {
        return scattered(random, ranges); // the game is over
    }
    let turn = if random.next().is_multiple_of(2) { "x" } else { "o" };
    Backgammon::default().parse(&format!("x={} o={} turn={turn}", texts[0], texts[1])).unwrap()
}

fn compare_scattered(positions: usize, seed: u64) -> Met {
    let (mut random, mut met) = (Random(seed), Met::default());
    for number in 0..positions {
        let game = scattered(&mut random, [[24, 24], [6, 24], [24, 6], [8, 8], [6, 6], [12, 20]][number % 6]);
        let mover = if game.to_text().unwrap().contains("turn=x") { Player::Zero } else { Player::One };
        if game.turn() == Turn::Chance {
            for outcome in moves(&game) {
                compare(&game, mover, outcome, &mut met);
            }
        }
    }
    met
}

fn compare_games(games: u64) -> Met {
    let mut met = Met::default();
    for seed in 0..games {
        let (mut game, mut random, mut mover) = (Backgammon::default(), Random(seed), Player::Zero);
        while game.turn() != Turn::Terminal {
            let action = *random.choose(&moves(&game));
            if game.turn() == Turn::Chance {
                compare(&game, mover, action, &mut met);
                // Who rolls next: each roll is one turn.
                mover = mover.opponent();
            }
            game.play(action);
        }
    }
    met
}

#[test]
fn every_play_of_random_games_is_reached_by_exactly_one_line() {
    let met = compare_games(12);
    assert!(met.turns > 500 && met.passes > 20 && met.half > 20 && met.doubles > 80, "{met:?}");
}

#[test]
fn every_play_of_scattered_positions_is_reached_by_exactly_one_line() {
    let met = compare_scattered(120, 1);
    assert!(met.turns > 1000 && met.passes > 20 && met.half > 20, "{met:?}");
}

/// `cargo test --release -p azpy-games --test all backgammon:: -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn every_play_of_many_positions_is_reached_by_exactly_one_line() {
    for seed in 0..8 {
        println!("{:?}", compare_scattered(2_000, 100 + seed));
    }
    println!("{:?}", compare_games(400));
}

fn position(text: &str) -> Backgammon {
    Backgammon::default().parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn gammons_and_backgammons_count_double_and_threefold() {
    let values = |o: &str| {
        let text = format!("x=1:1,off:14 o={o} turn=x roll=2-1");
        let value = |gammons| {
            let game = Backgammon::new(gammons).parse(&text).unwrap();
            let end = after(&game, legal(&game)[0]);
            assert_eq!(end.turn(), Turn::Terminal);
            end.outcome().0
        };
        (value(true), value(false))
    };
    assert_eq!(values("6:14,off:1"), (1.0 / 3.0, 1.0));
    assert_eq!(values("23:14,off:1"), (1.0 / 3.0, 1.0));
    assert_eq!(values("6:15"), (2.0 / 3.0, 1.0));
    assert_eq!(values("18:1,6:14"), (2.0 / 3.0, 1.0));
    assert_eq!(values("19:1,6:14"), (1.0, 1.0));
    assert_eq!(values("bar:1,6:14"), (1.0, 1.0));
    let lost = position("x=23:15 o=1:1,off:14 turn=o roll=2-1");
    assert_eq!(after(&lost, legal(&lost)[0]).outcome(), Value(-1.0));
}

#[test]
fn as_many_rolls_bear_off_the_last_two_checkers_as_is_known() {
    // Of 36, by the points of the two (printed in Robertie's books). A player who does not bear off now loses.
    let known: [&[i32]; 6] =
        [&[36], &[36, 26], &[34, 25, 17], &[29, 23, 17, 11], &[23, 19, 14, 10, 6], &[15, 13, 10, 8, 6, 4]];
    let mut cases = vec![("1:1,off:14".to_owned(), 36), ("6:1,off:14".to_owned(), 27)];
    for (high, row) in (1..).zip(known) {
        for (low, &rolls) in (1..).zip(row) {
            let places = if low == high { format!("{high}:2") } else { format!("{high}:1,{low}:1") };
            cases.push((format!("{places},off:13"), rolls));
        }
    }
    for (places, rolls) in cases {
        let game = Backgammon::new(false).parse(&format!("x={places} o=1:1,off:14 turn=x")).unwrap();
        let value = Solver::default().value(&game);
        assert!((value - (2.0 * f64::from(rolls) / 36.0 - 1.0)).abs() < 1e-6, "{places}: {value}");
    }
}

#[test]
fn positions_are_seen_by_the_player_to_move() {
    let text = "x=bar:1,13:5,6:4,1:2,off:3 o=23:2,8:7,6:6 turn=x roll=4-3";
    let game = position(text);
    let row = encode(&game);
    assert_eq!(row.len(), 243);
    let mut expected = vec![0.0; 243];
    let mut set = |at: usize, values: &[f32]| expected[at..at + values.len()].copy_from_slice(values);
    set(96, &[1.0]); // the bar
    set(48, &[1.0, 1.0, 1.0, 1.0]);
    set(20, &[1.0, 1.0, 1.0, 0.5]);
    set(0, &[1.0, 1.0]);
    set(100, &[0.2]);
    set(101 + 88, &[1.0, 1.0]);
    set(101 + 28, &[1.0, 1.0, 1.0, 2.0]);
    set(101 + 20, &[1.0, 1.0, 1.0, 1.5]);
    set(202 + 3, &[1.0]);
    set(208 + 2, &[1.0]);
    assert_eq!(row, expected);
    // The same for the other player.
    let turned = text.replace("x=", "?=").replace("o=", "x=").replace("?=", "o=").replace("turn=x", "turn=o");
    assert_eq!(encode(&position(&turned)), expected);
    let double = position("x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5 turn=x roll=5-5 left=5-5-5 closed=24 plies=2950");
    let row = encode(&double);
    assert_eq!(row[202..217], [0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 1., 1., 0.]);
    assert_eq!(row[217..].iter().position(|&value| value > 0.0), Some(23));
    assert_eq!(row[242], 0.75);
}
