//! Liar's dice for two with a die each: bid how often a face lies on both dice, ever higher, or doubt the last bid.
//!
//! Rules, numbers of actions and features are those of OpenSpiel's `liars_dice`: the highest face counts as any face.
//! Action (quantity - 1) * sides + face - 1 bids, and the last one says liar. A roll's outcome is face - 1.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::text::{Notation, outcome_text};

use crate::error::Error;
use crate::key::{Tag, spread};
use crate::notation::{PLAYERS, in_range};

/// A position of Liar's dice.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_games::LiarsDice;
///
/// let mut game = LiarsDice::new(6)?;
/// for action in [2, 4, 8, 12] {
///     game.try_play(action).unwrap(); // a three, a five, two threes, liar
/// }
/// assert_eq!(game.outcome(), Value(-1.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiarsDice {
    sides: u8,
    /// The faces, player 0's first; 0 until they are rolled.
    dice: [u8; 2],
    /// A bit for each bid that was made.
    bids: u16,
    is_doubted: bool,
}

impl Default for LiarsDice {
    /// The game with dice of six sides.
    fn default() -> Self {
        Self::start(6)
    }
}

impl LiarsDice {
    /// The start of a game with dice of so many sides.
    ///
    /// # Errors
    /// If the sides are not from 2 to 6.
    pub fn new(sides: usize) -> Result<Self, Error> {
        in_range("the sides", sides, 2..=6).map(Self::start)
    }

    fn start(sides: u8) -> Self {
        Self { sides, dice: [0; 2], bids: 0, is_doubted: false }
    }

    /// How many bids there are.
    fn num_bids(&self) -> Action {
        2 * Action::from(self.sides)
    }

    fn mover(&self) -> Player {
        PLAYERS[self.bids.count_ones() as usize % 2]
    }

    /// A bid's quantity and face.
    fn bid(&self, bid: Action) -> (Action, Action) {
        let sides = Action::from(self.sides);
        (bid / sides + 1, bid % sides + 1)
    }

    /// Whether the last bid holds.
    fn holds(&self) -> bool {
        let (quantity, face) = self.bid(self.bids.checked_ilog2().unwrap_or(0));
        let counts = |&&die: &&u8| Action::from(die) == face || die == self.sides;
        self.dice.iter().filter(counts).count() >= quantity as usize
    }

    fn seen_by(&self, player: Player) -> Self {
        let mut seen = *self;
        // A die that was rolled and is not seen has a face of its own.
        let hidden = &mut seen.dice[player.opponent().index()];
        *hidden = if *hidden == 0 { 0 } else { self.sides + 1 };
        seen
    }

    fn shown(&self) -> String {
        let die = |die: u8| match die {
            0 => "-".to_owned(),
            die if die > self.sides => "?".to_owned(),
            die => die.to_string(),
        };
        let bids = (0..self.num_bids()).filter(|bid| self.bids >> bid & 1 == 1).map(|bid| self.action_name(bid));
        let words: Vec<String> = bids.chain(self.is_doubted.then(|| "liar".to_owned())).collect();
        format!("player 0: {}, player 1: {}; bids: {}", die(self.dice[0]), die(self.dice[1]), words.join(" "))
    }

    fn is_rolling(&self) -> bool {
        self.dice.contains(&0)
    }

    fn word(&self) -> u64 {
        let words = [self.sides, self.dice[0], self.dice[1], u8::from(self.is_doubted)];
        words.into_iter().fold(u64::from(self.bids), |word, byte| word << 8 | u64::from(byte))
    }
}

impl Game for LiarsDice {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        let bids = self.num_bids() as usize;
        let obs_shape = [2 + usize::from(self.sides) + bids, 1, 1];
        Sizes { num_actions: bids + 1, obs_shape, max_plies: 2 + bids + 1, num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        if self.is_doubted {
            Turn::Terminal
        } else if self.is_rolling() {
            Turn::Chance
        } else {
            Turn::Player(self.mover())
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let least = 16 - self.bids.leading_zeros();
        // There is nothing to doubt before the first bid.
        out.extend(least..self.num_bids() + u32::from(self.bids != 0));
    }

    fn play(&mut self, action: Action) {
        if self.is_rolling() {
            let next = usize::from(self.dice[0] != 0);
            self.dice[next] = action as u8 + 1;
        } else if action == self.num_bids() {
            self.is_doubted = true;
        } else {
            self.bids |= 1 << action;
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend((0..self.sides).map(|face| (Action::from(face), 1.0 / f32::from(self.sides))));
    }

    fn outcome(&self) -> Value {
        // Who is to move has doubted the bid of the other.
        let winner = if self.holds() { self.mover().opponent() } else { self.mover() };
        Value::won_by(Some(winner), 2)
    }

    /// Whose turn it is, this player's die, and which bids were made.
    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let (mover, sides) = (self.mover().index(), usize::from(self.sides));
        row[mover] = 1.0;
        row[1 + usize::from(self.dice[mover])] = 1.0;
        for (bid, made) in row[2 + sides..].iter_mut().enumerate() {
            *made = f32::from(u8::from(self.bids >> bid & 1 == 1));
        }
    }

    fn key(&self) -> u128 {
        spread(Tag::LiarsDice, 0, self.word())
    }

    fn view_key(&self, player: Player) -> Option<u128> {
        Some(spread(Tag::LiarsDice, 1 + player.index() as u64, self.seen_by(player).word()))
    }

    fn render(&self) -> String {
        self.shown()
    }

    fn render_view(&self, player: Player) -> String {
        self.seen_by(player).shown()
    }
}

impl Notation for LiarsDice {
    fn action_name(&self, action: Action) -> String {
        let (quantity, face) = self.bid(action);
        match action {
            _ if self.is_rolling() => format!("roll {}", action + 1),
            liar if liar == self.num_bids() => "liar".to_owned(),
            _ => format!("{quantity}x{face}"),
        }
    }

    fn result_text(&self) -> String {
        outcome_text(self, if self.holds() { "by a bid that holds" } else { "by catching a liar" })
    }

    fn can_rotate(&self) -> bool {
        false
    }
}
