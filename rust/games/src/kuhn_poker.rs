//! Kuhn poker (Kuhn 1950): each of two players has one of three cards and an ante of one chip, and may bet one more.
//!
//! Rules, numbers of actions and features are those of OpenSpiel's `kuhn_poker`. Action 0 passes (check or fold), action
//! 1 bets (or calls). A deal's outcome is the card: jack, queen, king. An outcome of 1 is 2 chips.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::text::{Notation, outcome_text};

use crate::key::{Tag, spread};

const CARDS: [&str; 3] = ["J", "Q", "K"];
/// The chips of an outcome of 1.
const MOST: u8 = 2;

/// A position of Kuhn poker.
///
/// ```
/// use azpy_core::game::{Game, Player, Value};
/// use azpy_games::KuhnPoker;
///
/// let mut game = KuhnPoker::new();
/// for action in [0, 2, 1, 1] {
///     game.try_play(action).unwrap(); // a jack, a king, a bet, a call
/// }
/// assert_eq!(game.outcome(), Value(-1.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KuhnPoker {
    /// Player 0's card first; 0 until it is dealt.
    cards: [u8; 2],
    dealt: u8,
    decisions: u8,
    /// A bit for each decision: whether it was a bet or a call.
    bets: u8,
}

impl KuhnPoker {
    /// The start of a game.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the player to move answers a bet.
    fn is_raised(&self) -> bool {
        self.bets != 0
    }

    /// The position as this player sees it, or as it is.
    fn shown(&self, view: Option<Player>) -> String {
        let card = |player: usize| match view {
            _ if player >= usize::from(self.dealt) => "-",
            Some(own) if own.index() != player => "?",
            _ => CARDS[usize::from(self.cards[player])],
        };
        let mut text = format!("player 0: {}, player 1: {}", card(0), card(1));
        let mut before = Self { decisions: 0, bets: 0, ..*self };
        for decision in 0..self.decisions {
            let action = Action::from(self.bets >> decision & 1);
            text += &format!("{} {}", if decision == 0 { ";" } else { "," }, before.action_name(action));
            before.play(action);
        }
        text
    }
}

impl Game for KuhnPoker {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: 2, obs_shape: [11, 1, 1], max_plies: 5, num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        match self.decisions {
            _ if self.dealt < 2 => Turn::Chance,
            // A check and a bet.
            2 if self.bets == 0b10 => Turn::Player(Player::Zero),
            2 | 3 => Turn::Terminal,
            mover => Turn::Player(Player::ALL[usize::from(mover)]),
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend([0, 1]);
    }

    fn play(&mut self, action: Action) {
        if self.dealt < 2 {
            self.cards[usize::from(self.dealt)] = action as u8;
            self.dealt += 1;
        } else {
            self.bets |= (action as u8) << self.decisions;
            self.decisions += 1;
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        let left = (0..3).filter(|&card| self.dealt == 0 || card != Action::from(self.cards[0]));
        out.extend(left.map(|card| (card, 1.0 / f32::from(3 - self.dealt))));
    }

    fn outcome(&self) -> Value {
        // With one bet the other player folded.
        let zero_wins = match self.bets.count_ones() {
            1 => self.bets & 1 == 1,
            _ => self.cards[0] > self.cards[1],
        };
        let chips = if self.bets.count_ones() == 2 { MOST } else { 1 };
        let share = f32::from(chips) / f32::from(MOST);
        Value(if zero_wins { share } else { -share })
    }

    /// Whose turn it is, this player's card, and each decision so far: pass or bet.
    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let mover = usize::from(self.decisions) % 2;
        row[mover] = 1.0;
        row[2 + usize::from(self.cards[mover])] = 1.0;
        for decision in 0..usize::from(self.decisions) {
            row[5 + 2 * decision + usize::from(self.bets >> decision & 1)] = 1.0;
        }
    }

    fn key(&self) -> u128 {
        let words = [self.cards[0], self.cards[1], self.dealt, self.decisions, self.bets];
        spread(Tag::KuhnPoker, 0, words.into_iter().fold(0, |low, word| low << 8 | u64::from(word)))
    }

    fn view_key(&self, player: Player) -> Option<u128> {
        let mut seen = *self;
        seen.cards[1 - player.index()] = 0;
        Some(spread(Tag::KuhnPoker, 1 + player.index() as u64, seen.key() as u64))
    }

    fn render(&self) -> String {
        self.shown(None)
    }

    fn render_view(&self, player: Player) -> String {
        self.shown(Some(player))
    }
}

impl Notation for KuhnPoker {
    fn action_name(&self, action: Action) -> String {
        let name = match (self.dealt < 2, self.is_raised(), action) {
            (true, ..) => CARDS[action as usize],
            (_, false, 0) => "check",
            (_, false, _) => "bet",
            (_, true, 0) => "fold",
            (_, true, _) => "call",
        };
        name.to_owned()
    }

    fn result_text(&self) -> String {
        let (chips, how) = match self.bets.count_ones() {
            0 => ("1 chip", "the higher card"),
            1 => ("1 chip", "a fold"),
            _ => ("2 chips", "the higher card"),
        };
        outcome_text(self, &format!("{chips} by {how}"))
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn payoff_unit(&self) -> (f32, &str) {
        (f32::from(MOST), "chips")
    }
}
