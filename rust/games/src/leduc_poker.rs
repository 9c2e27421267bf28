//! Leduc poker (Southey et al. 2005): two rounds of bets on one of six cards each, with a shared card in the second.
//!
//! Rules, numbers of actions and features are those of OpenSpiel's `leduc_poker` for two: an ante of one chip, raises of
//! two chips and then of four, at most two raises a round. Actions: fold, call (or check), raise. A deal's outcome is the
//! card, rank * 2 + suit. An outcome of 1 is 13 chips.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::text::{Notation, outcome_text};

use crate::key::{Tag, digest};
use crate::notation::PLAYERS;

/// Gives the stake up.
pub const FOLD: Action = 0;
/// Puts in what the opponent has.
pub const CALL: Action = 1;
/// Puts in more than the opponent has.
pub const RAISE: Action = 2;

const CARDS: [&str; 6] = ["Js", "Jh", "Qs", "Qh", "Ks", "Kh"];
/// Not dealt, or not seen.
const NO_CARD: u8 = 6;
const RAISES: [u8; 2] = [2, 4];
/// The chips of an outcome of 1.
const MOST: u8 = 13;

/// The decisions of a round but for a fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Round {
    decisions: u8,
    /// A bit for each: whether it was a raise.
    raises: u8,
}

impl Round {
    /// A call ends a round, but not the check that opens it.
    fn is_over(self) -> bool {
        self.decisions >= 2 && self.raises >> (self.decisions - 1) == 0
    }
}

/// A position of Leduc poker.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_games::{LeducPoker, leduc_poker};
///
/// let mut game = LeducPoker::new();
/// for action in [0, 5, leduc_poker::RAISE, leduc_poker::FOLD] {
///     game.try_play(action).unwrap(); // a jack, a king, a raise, a fold
/// }
/// assert_eq!(game.outcome(), Value(1.0 / 13.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeducPoker {
    /// Player 0's, player 1's and the shared one.
    cards: [u8; 3],
    dealt: u8,
    rounds: [Round; 2],
    stakes: [u8; 2],
    folded: Option<Player>,
}

impl Default for LeducPoker {
    fn default() -> Self {
        Self { cards: [NO_CARD; 3], dealt: 0, rounds: [Round::default(); 2], stakes: [1; 2], folded: None }
    }
}

impl LeducPoker {
    /// The start of a game.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the round, 0 or 1.
    fn round(&self) -> usize {
        usize::from(self.dealt == 3)
    }

    fn mover(&self) -> Player {
        PLAYERS[usize::from(self.rounds[self.round()].decisions) % 2]
    }

    /// Whether the opponent of the player to move has put in more.
    fn is_raised(&self) -> bool {
        self.stakes[0] != self.stakes[1]
    }

    /// The better hand: a pair with the shared card, else the higher rank.
    fn best(&self) -> Option<Player> {
        let [zero, one, shared] = self.cards.map(|card| card / 2);
        let strength = |rank: u8| if rank == shared { 3 } else { rank };
        match strength(zero).cmp(&strength(one)) {
            std::cmp::Ordering::Greater => Some(Player::Zero),
            std::cmp::Ordering::Less => Some(Player::One),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// The same without the card of the player's opponent.
    fn seen_by(&self, player: Player) -> Self {
        let mut seen = *self;
        seen.cards[player.opponent().index()] = NO_CARD;
        seen
    }

    fn shown(&self) -> String {
        let card = |index: usize| match self.cards[index] {
            NO_CARD if index < usize::from(self.dealt) => "?",
            NO_CARD => "-",
            card => CARDS[usize::from(card)],
        };
        let round = |round: Round| {
            let word = |decision| if round.raises >> decision & 1 == 1 { 'r' } else { 'c' };
            (0..round.decisions).map(word).collect::<String>()
        };
        let folded = self.folded.map_or(String::new(), |player| format!(", player {} folds", player.index()));
        format!(
            "player 0: {}, {} in; player 1: {}, {} in; shared: {}; bets {}/{}{folded}",
            card(0),
            self.stakes[0],
            card(1),
            self.stakes[1],
            card(2),
            round(self.rounds[0]),
            round(self.rounds[1]),
        )
    }

    /// All that there is, in words of which no two positions share all.
    fn words(&self) -> [u64; 2] {
        let rounds = self.rounds.map(|round| [round.decisions, round.raises]);
        let folded = self.folded.map_or(0, |player| 1 + player.index() as u8);
        let words = [self.cards[0], self.cards[1], self.cards[2], self.dealt, folded];
        let low = words.into_iter().chain(rounds.concat()).fold(0, |low, word| low << 4 | u64::from(word));
        [low, u64::from(self.stakes[0]) << 8 | u64::from(self.stakes[1])]
    }
}

impl Game for LeducPoker {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        // Three deals, and in each round a check, two raises and a call.
        Sizes { num_actions: 3, obs_shape: [30, 1, 1], max_plies: 11, num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        let [first, second] = self.rounds.map(Round::is_over);
        if self.folded.is_some() || second {
            Turn::Terminal
        } else if self.dealt < 2 || (first && self.dealt == 2) {
            Turn::Chance
        } else {
            Turn::Player(self.mover())
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend(self.is_raised().then_some(FOLD));
        out.push(CALL);
        out.extend((self.rounds[self.round()].raises.count_ones() < 2).then_some(RAISE));
    }

    fn play(&mut self, action: Action) {
        if self.turn() == Turn::Chance {
            self.cards[usize::from(self.dealt)] = action as u8;
            self.dealt += 1;
            return;
        }
        let (mover, round) = (self.mover(), self.round());
        if action == FOLD {
            self.folded = Some(mover);
            return;
        }
        let raised = u8::from(action == RAISE);
        self.stakes[mover.index()] = self.stakes[mover.opponent().index()] + raised * RAISES[round];
        let now = &mut self.rounds[round];
        now.raises |= raised << now.decisions;
        now.decisions += 1;
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        let left = (0..6).filter(|&card| !self.cards.contains(&card));
        out.extend(left.map(|card| (Action::from(card), 1.0 / f32::from(6 - self.dealt))));
    }

    fn outcome(&self) -> Value {
        let winner = self.folded.map_or_else(|| self.best(), |player| Some(player.opponent()));
        // After a fold the stake of who folded is the smaller one.
        let chips = f32::from(self.stakes[0].min(self.stakes[1])) / f32::from(MOST);
        Value(winner.map_or(0.0, |winner| if winner == Player::Zero { chips } else { -chips }))
    }

    /// Whose turn it is, this player's card, the shared card, and each decision of each round: call or raise.
    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let mover = self.mover().index();
        row[mover] = 1.0;
        row[2 + usize::from(self.cards[mover])] = 1.0;
        if self.dealt == 3 {
            row[8 + usize::from(self.cards[2])] = 1.0;
        }
        for (index, round) in self.rounds.into_iter().enumerate() {
            for decision in 0..usize::from(round.decisions) {
                row[14 + 8 * index + 2 * decision + usize::from(round.raises >> decision & 1)] = 1.0;
            }
        }
    }

    fn key(&self) -> u128 {
        digest(Tag::LeducPoker, &self.words())
    }

    fn view_key(&self, player: Player) -> Option<u128> {
        let [low, stakes] = self.seen_by(player).words();
        Some(digest(Tag::LeducPoker, &[low, stakes | (1 + player.index() as u64) << 32]))
    }

    fn render(&self) -> String {
        self.shown()
    }

    fn render_view(&self, player: Player) -> String {
        self.seen_by(player).shown()
    }
}

impl Notation for LeducPoker {
    fn action_name(&self, action: Action) -> String {
        let name = match (self.turn(), action) {
            (Turn::Chance, card) => CARDS[card as usize],
            (_, FOLD) => "fold",
            (_, CALL) if self.is_raised() => "call",
            (_, CALL) => "check",
            _ => "raise",
        };
        name.to_owned()
    }

    fn result_text(&self) -> String {
        let chips = self.stakes[0].min(self.stakes[1]);
        let how = match (self.folded, self.best()) {
            (Some(_), _) => "by a fold",
            (None, None) => return outcome_text(self, "with equal cards"),
            _ => "by the better hand",
        };
        outcome_text(self, &format!("{chips} {} {how}", if chips == 1 { "chip" } else { "chips" }))
    }

    fn counts(&self) -> Vec<String> {
        self.stakes.map(|stake| format!("{stake} in")).into()
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn payoff_unit(&self) -> (f32, &str) {
        (f32::from(MOST), "chips")
    }
}
