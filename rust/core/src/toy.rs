//! Games given as their literal tree: small worlds in which a search can be checked by hand.
//!
//! ```text
//! 0(+ 1(- =) ?(1:+ 3:-))    player 0 chooses: win, or a choice of player 1, or a roll lost with probability 3/4
//! ```
//!
//! `+`, `-`, `=` or a number is a finished game, for player 0. Action n is the n-th child.

use std::sync::Arc;

use crate::error::Error;
use crate::game::{Action, Game, Payoff, Player, Sizes, Turn, Value, Values};
use crate::rng::{Stream, mix};
use crate::text::Notation;

#[derive(Debug)]
struct Position<P> {
    turn: Turn,
    /// Next position and, at a roll, its probability.
    children: Vec<(u32, f32)>,
    outcome: P,
}

/// A position in a tree given in full.
#[derive(Clone, Debug)]
pub struct Toy<P = Value> {
    positions: Arc<Vec<Position<P>>>,
    at: u32,
    num_actions: usize,
    num_players: usize,
    /// Tells trees apart in keys.
    tree: u64,
}

impl Toy {
    /// Reads a tree; the format is at the top of this module.
    ///
    /// # Errors
    /// What was expected where.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut positions = Vec::new();
        let mut rest = text.trim();
        parse_position(&mut rest, &mut positions)?;
        if rest.trim().is_empty() { Ok(Self::over(positions)) } else { Err(format!("left over: {rest:?}").into()) }
    }

    /// Countdown from `n`: take 1 or 2 in turn, who takes the last one wins. Action a takes a + 1.
    #[must_use]
    pub fn countdown(n: u32) -> Self {
        let mut positions = Vec::new();
        fn add(left: u32, player: Player, positions: &mut Vec<Position<Value>>) -> u32 {
            let at = positions.len() as u32;
            let outcome = Value(if player == Player::One { 1.0 } else { -1.0 });
            let turn = if left == 0 { Turn::Terminal } else { Turn::Player(player) };
            positions.push(Position { turn, children: Vec::new(), outcome });
            for take in 1..=left.min(2) {
                let child = add(left - take, player.opponent(), positions);
                positions[at as usize].children.push((child, 0.0));
            }
            at
        }
        add(n, Player::Zero, &mut positions);
        Self::over(positions)
    }

    /// One action a position, `plies` of them.
    #[must_use]
    pub fn chain(plies: u32) -> Self {
        let position = |at| Position {
            turn: if at == plies { Turn::Terminal } else { Turn::Player(Player::Zero) },
            children: if at == plies { Vec::new() } else { vec![(at + 1, 0.0)] },
            outcome: Value(1.0),
        };
        Self::over((0..=plies).map(position).collect())
    }

    /// A random tree, at most `depth` deep, with turns in any order and, if asked, rolls.
    #[must_use]
    pub fn random(seed: u64, depth: u32, rolls: bool) -> Self {
        let end = |stream: &mut Stream| Value((stream.unit() * 2.0 - 1.0) as f32);
        let mover = |_: &mut Stream, drawn| if (3..=5).contains(&drawn) { Player::Zero } else { Player::One };
        Self::grown(seed, depth, rolls, end, mover)
    }

    /// The same tree with one number a player.
    #[must_use]
    pub fn in_values(&self) -> Toy<Values> {
        let each = |position: &Position<Value>| Position {
            turn: position.turn,
            children: position.children.clone(),
            outcome: position.outcome.each(),
        };
        Toy::over(self.positions.iter().map(each).collect())
    }

    /// The same tree with the players exchanged.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let swap = |position: &Position<Value>| Position {
            turn: match position.turn {
                Turn::Player(player) => Turn::Player(player.opponent()),
                other => other,
            },
            children: position.children.clone(),
            outcome: Value(-position.outcome.0),
        };
        Self::over(self.positions.iter().map(swap).collect())
    }

    /// Exact value for player 0 under best play.
    #[must_use]
    pub fn exact(&self) -> f64 {
        let values = self.here().children.iter().map(|&(at, p)| (Self { at, ..self.clone() }.exact(), f64::from(p)));
        match self.here().turn {
            Turn::Terminal => f64::from(self.here().outcome.0),
            Turn::Chance => values.map(|(value, probability)| value * probability).sum(),
            Turn::Player(Player::Zero) => values.map(|(value, _)| value).fold(f64::NEG_INFINITY, f64::max),
            Turn::Player(_) => values.map(|(value, _)| value).fold(f64::INFINITY, f64::min),
        }
    }
}

impl Toy<Values> {
    /// As [`Toy::random`] for so many players: a third of the outcomes are wins of one player (of a single player: the best
    /// and the worst scores), a third pay all the same, and the others pay each something else.
    #[must_use]
    pub fn random_of(players: usize, seed: u64, depth: u32, rolls: bool) -> Self {
        let end = |stream: &mut Stream| {
            let kind = stream.below(3);
            let winner = if players == 1 { stream.below(2) } else { stream.below(players) };
            let shared = (stream.below(5) as f32 - 2.0) / 2.0;
            let own = |stream: &mut Stream, player| match kind {
                0 => f32::from(u8::from(player == winner)) * 2.0 - 1.0,
                1 => shared,
                _ => (stream.unit() * 2.0 - 1.0) as f32,
            };
            let each: Vec<f32> = (0..players).map(|player| own(stream, player)).collect();
            Values::new(&each)
        };
        let mover = |stream: &mut Stream, _| Player::ALL[stream.below(players)];
        Self { num_players: players, ..Self::grown(seed, depth, rolls, end, mover) }
    }
}

impl<P: Payoff> Toy<P> {
    /// A random tree: `end` draws what a finished game pays, and `mover` whose turn it is, given a draw of 1 to 7.
    fn grown(
        seed: u64,
        depth: u32,
        rolls: bool,
        end: impl Fn(&mut Stream) -> P,
        mover: impl Fn(&mut Stream, usize) -> Player,
    ) -> Self {
        let (mut stream, mut positions) = (Stream::keyed(&[seed]), Vec::new());
        Self::grow(&mut positions, depth, &mut |depth, is_root| {
            let outcome = end(&mut stream);
            let turn = match stream.below(8) {
                0 if !is_root => Turn::Terminal,
                1 | 2 if !is_root && rolls && depth > 0 => Turn::Chance,
                drawn => Turn::Player(mover(&mut stream, drawn)),
            };
            if depth == 0 || turn == Turn::Terminal {
                return (Turn::Terminal, outcome, Vec::new());
            }
            let width = 1 + stream.below(4);
            (turn, outcome, (0..width).map(|_| 0.1 + stream.unit()).collect())
        });
        Self::over(positions)
    }

    /// Adds a tree of a depth. `draw` says whose turn it is at its root, what the game pays there, and the weights of the
    /// children, given the depth below and whether it is the root of all.
    fn grow(
        positions: &mut Vec<Position<P>>,
        depth: u32,
        draw: &mut impl FnMut(u32, bool) -> (Turn, P, Vec<f64>),
    ) -> u32 {
        let at = positions.len() as u32;
        let (turn, outcome, weights) = draw(depth, at == 0);
        positions.push(Position { turn, children: Vec::new(), outcome });
        let total: f64 = weights.iter().sum();
        for weight in weights {
            let child = Self::grow(positions, depth - 1, draw);
            positions[at as usize].children.push((child, (weight / total) as f32));
        }
        at
    }

    fn over(positions: Vec<Position<P>>) -> Self {
        let num_players = positions[0].outcome.each().numbers().len();
        let num_actions = positions.iter().map(|position| position.children.len()).max().unwrap_or(1).max(1);
        let numbers = |position: &Position<P>| {
            let each = position.outcome.each();
            each.numbers().iter().rev().fold(0, |hash, x| mix(hash) ^ u64::from(x.to_bits()))
        };
        let tree = positions.iter().fold(0, |hash, position| {
            position.children.iter().fold(mix(hash ^ numbers(position)), |hash, child| {
                mix(hash ^ u64::from(child.0) ^ u64::from(child.1.to_bits()) << 32)
            }) ^ position.children.len() as u64
        });
        Self { positions: Arc::new(positions), at: 0, num_actions, num_players, tree }
    }

    fn here(&self) -> &Position<P> {
        &self.positions[self.at as usize]
    }
}

fn parse_position(rest: &mut &str, positions: &mut Vec<Position<Value>>) -> Result<u32, Error> {
    let at = positions.len() as u32;
    *rest = rest.trim_start();
    let opens = |turn| Position { turn, children: Vec::new(), outcome: Value(0.0) };
    let inner = match (rest.get(..2), rest.chars().next()) {
        (Some("0("), _) => Some(Turn::Player(Player::Zero)),
        (Some("1("), _) => Some(Turn::Player(Player::One)),
        (Some("?("), _) => Some(Turn::Chance),
        (_, Some('+' | '-' | '=' | '0'..='9' | '.')) => None,
        _ => return Err(format!("expected a position at {rest:?}").into()),
    };
    let Some(turn) = inner else {
        let end = rest.find([' ', ')', '(', ':']).unwrap_or(rest.len());
        let outcome = match &rest[..end] {
            "+" => 1.0,
            "-" => -1.0,
            "=" => 0.0,
            number => number.parse().map_err(|_| format!("expected +, -, = or a number, got {number:?}"))?,
        };
        *rest = &rest[end..];
        positions.push(Position { turn: Turn::Terminal, children: Vec::new(), outcome: Value(outcome) });
        return Ok(at);
    };
    positions.push(opens(turn));
    *rest = &rest[2..];
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(')') {
            *rest = after;
            break;
        }
        let mut weight = 0.0;
        if turn == Turn::Chance {
            let (number, after) = rest.split_once(':').ok_or_else(|| format!("expected weight: at {rest:?}"))?;
            weight = number.trim().parse().map_err(|_| format!("expected a weight, got {number:?}"))?;
            *rest = after;
        }
        let child = parse_position(rest, positions)?;
        positions[at as usize].children.push((child, weight));
    }
    let children = &mut positions[at as usize].children;
    if children.is_empty() {
        return Err("a turn needs at least one child".into());
    }
    let total: f32 = children.iter().map(|&(_, weight)| weight).sum();
    children.iter_mut().for_each(|(_, weight)| *weight /= total.max(f32::MIN_POSITIVE));
    Ok(at)
}

impl<P: Payoff> Game for Toy<P> {
    type Payoff = P;

    fn num_players(&self) -> usize {
        self.num_players
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.num_actions,
            obs_shape: [3, 1, 1],
            max_plies: self.positions.len(),
            num_symmetries: 1,
        }
    }

    fn turn(&self) -> Turn {
        self.here().turn
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend(0..self.here().children.len() as Action);
    }

    fn play(&mut self, action: Action) {
        self.at = self.here().children[action as usize].0;
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend(self.here().children.iter().enumerate().map(|(index, &(_, p))| (index as Action, p)));
    }

    fn outcome(&self) -> P {
        self.here().outcome
    }

    /// Three numbers that identify the position, not the player: exchanging the players changes none of them.
    fn encode(&self, row: &mut [f32]) {
        let bits = mix(u64::from(self.at));
        for (index, x) in row.iter_mut().enumerate() {
            *x = (bits >> (20 * index) & 0xF_FFFF) as f32;
        }
    }

    fn key(&self) -> u128 {
        u128::from(self.tree) << 64 | u128::from(self.at)
    }

    fn render(&self) -> String {
        format!("position {} of {}, {}", self.at, self.positions.len(), self.turn())
    }
}

impl<P: Payoff> Notation for Toy<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_reads_as_written() {
        let mut toy = Toy::parse("0(+ 1(- =) ?(1:+ 3:-) 0.25)").unwrap();
        assert_eq!((toy.turn(), toy.num_actions()), (Turn::Player(Player::Zero), 4));
        toy.play(2);
        let mut outcomes = Vec::new();
        toy.chance_outcomes(&mut outcomes);
        assert_eq!(outcomes, [(0, 0.25), (1, 0.75)]);
        toy.play(1);
        assert_eq!((toy.turn(), toy.outcome()), (Turn::Terminal, Value(-1.0)));
        for broken in ["", "0(", "0()", "2(+)", "?(+ -)", "0(+) x", "0(+ y)"] {
            assert!(Toy::parse(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn countdown_is_lost_from_multiples_of_three() {
        for n in 1..12 {
            assert_eq!(Toy::countdown(n).exact(), if n % 3 == 0 { -1.0 } else { 1.0 });
        }
    }
}
