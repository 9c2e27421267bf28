//! What is kept of a game: everything a network can learn from it, and enough to play it again.
//!
//! Planes are not stored: replaying the actions gives them, with their true history, in whatever encoding the game
//! has by then. Invariant of a record that passed [`GameRecord::check`]: its actions are legal from the start given,
//! the outcome is what the rules say (a draw if it was cut short, lost for the player to move if that one resigned; of an
//! imported game that the rules do not end, what its file says), the searched samples name exactly the legal actions,
//! and their policy targets are distributions.

mod bytes;

use crate::error::Error;
use crate::game::{Action, Game, MAX_PLAYERS, Payoff, Player, Pov, PovValue, Turn, Value, ranked};
use crate::search::stream_for;

/// Tells the stream of a tied game's coin from those of its plies.
const COIN: u64 = u64::MAX - 2;
/// What the entries of a policy target may miss 1 by, together: they come as rounded numbers.
const TARGET_ERROR: f64 = 1e-3;

/// A sample, searched in full by the network that learns: its policy target and value may be learned from.
pub const SEARCHED: u8 = 1;
/// The network was exchanged while the ply was searched, or the search is the first one of a game that goes on in another
/// process, without the tree of the ply before. (A tree kept from the ply before may rest on an older network still,
/// whatever this says.)
pub const MIXED_NETWORKS: u8 = 2;
/// A fast search chose the action, or a player who does not learn in this game, which hides something. The ply is not a
/// sample: its value is kept, the rest is not.
pub const FAST_SEARCH: u8 = 4;
/// Of an imported game: someone chose the action, by means that are not known. A sample without entries: its legal actions
/// are those of the rules, and its policy target is [`played_target`].
pub const PLAYED: u8 = 16;

/// What the legal actions share of the policy target of a [`PLAYED`] ply, the action played included. Smoothing keeps the
/// network from being sure (Szegedy et al. 2016 give 0.1 to the classes); a search can then still look at other actions.
pub const PLAYED_SMOOTHING: f32 = 0.05;

/// The policy target of a ply of which only the action is known, one entry a legal action.
///
/// ```
/// let target = azpy_core::record::played_target(7, &[2, 7]);
/// assert!((target[0] - 0.025).abs() < 1e-6 && (target[1] - 0.975).abs() < 1e-6);
/// ```
#[must_use]
pub fn played_target(action: Action, legal: &[Action]) -> Vec<f32> {
    let share = PLAYED_SMOOTHING / legal.len() as f32;
    legal.iter().map(|&other| if other == action { 1.0 - PLAYED_SMOOTHING + share } else { share }).collect()
}

/// One ply of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ply {
    /// The action or chance outcome.
    pub action: Action,
    /// The player's number; -1 at a chance turn.
    pub player: i8,
    /// [`SEARCHED`], [`MIXED_NETWORKS`], [`FAST_SEARCH`], [`PLAYED`].
    pub flags: u8,
    /// Hash of the weights that searched it; 0 for none.
    pub network: u64,
}

impl Ply {
    /// Whether a search chose the action, to learn from or not.
    #[must_use]
    pub fn is_searched(&self) -> bool {
        self.flags & (SEARCHED | FAST_SEARCH) != 0
    }

    /// The player to move; none at a chance turn.
    #[must_use]
    pub fn mover(&self) -> Option<Player> {
        Player::from_index(usize::try_from(self.player).ok()?)
    }

    /// Whether it can be learned from.
    #[must_use]
    pub fn is_sample(&self) -> bool {
        self.flags & (SEARCHED | PLAYED) != 0
    }
}

/// A finished game.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GameRecord {
    /// The game and its parameters, as its maker calls it.
    pub game: String,
    /// Number in its run.
    pub game_id: u64,
    /// Seed of its run.
    pub seed: u64,
    /// P, how many players the game has.
    pub num_players: usize,
    /// `[W]` the outcome, [`Payoff::width`] numbers: for player 0 alone where two players share a zero sum, else for each
    /// player, player 0 first. 0 if capped.
    pub outcomes: Vec<f32>,
    /// Cut short by a cap on plies and scored as a draw.
    pub capped: bool,
    /// The player to move after the last ply gave up: the outcome is a loss for that player, whatever the rules would
    /// have made of it.
    pub resigned: bool,
    /// It comes from a file: this run's self-play has no part in it. Its outcome is the file's, unless the rules end it.
    pub imported: bool,
    /// Of one player: its searches counted scores against this one, and [`GameRecord::reward_of`] does. The outcome is
    /// the score as it is.
    pub score_to_beat: Option<f32>,
    /// `[T]`
    pub plies: Vec<Ply>,
    /// `[T, W]` the values that the searches found, for the players of `outcomes`; 0 where not searched.
    pub root_values: Vec<f32>,
    /// `[T + 1]` where the entries of a ply begin and end in the four below; empty for a ply that is not [`SEARCHED`].
    pub offsets: Vec<u32>,
    /// `[K]` legal actions, ply by ply, ascending.
    pub legal: Vec<Action>,
    /// `[K]` visits of each.
    pub visits: Vec<u32>,
    /// `[K]` priors of each, without noise.
    pub priors: Vec<f32>,
    /// `[K]` policy targets of each, summing to 1 a ply; empty where all of them are the shares of the visits.
    pub targets: Vec<f32>,
}

impl GameRecord {
    /// The entries of a ply in `legal`, `visits`, `priors` and, where there are any, `targets`.
    #[must_use]
    pub fn range(&self, ply: usize) -> std::ops::Range<usize> {
        self.offsets[ply] as usize..self.offsets[ply + 1] as usize
    }

    /// The policy target of a ply that is [`SEARCHED`], one entry a legal action; empty for others.
    #[must_use]
    pub fn target(&self, ply: usize) -> Vec<f32> {
        let range = self.range(ply);
        if self.targets.is_empty() { visit_shares(&self.visits[range]) } else { self.targets[range].to_vec() }
    }

    /// Lets go of targets that the visits give as well, to the last bit.
    pub(crate) fn drop_plain_targets(&mut self) {
        let plain = (0..self.plies.len()).flat_map(|ply| visit_shares(&self.visits[self.range(ply)]));
        if plain.eq(self.targets.iter().copied()) {
            self.targets = Vec::new();
        }
    }

    /// A game of `G` that has not begun.
    pub(crate) fn begun<G: Game>(start: &G) -> Self {
        let num_players = start.num_players();
        Self { num_players, outcomes: vec![0.0; G::Payoff::width(num_players)], offsets: vec![0], ..Self::default() }
    }

    /// Notes how it ended.
    pub(crate) fn set_outcome<P: Payoff>(&mut self, outcome: P) {
        self.outcomes = outcome.each().numbers()[..self.outcomes.len()].to_vec();
    }

    /// Adds a ply, the entries of which are there; `values` `[P]` are those of its search, none without one.
    pub(crate) fn push(&mut self, ply: Ply, values: &[f32]) {
        let begin = self.root_values.len();
        self.root_values.resize(begin + self.outcomes.len(), 0.0);
        self.root_values[begin..].iter_mut().zip(values).for_each(|(to, &value)| *to = value);
        self.plies.push(ply);
        self.offsets.push(self.legal.len() as u32);
    }

    /// Whether two players share a zero sum, so that player 0's numbers say it all.
    #[must_use]
    pub fn is_zero_sum(&self) -> bool {
        self.outcomes.len() < self.num_players
    }

    /// The number of a player among those that `outcomes` has room for.
    fn number_of(&self, numbers: &[f32], player: Player) -> f32 {
        if self.is_zero_sum() { Value(numbers[0]).pov(player).0 } else { numbers[player.index()] }
    }

    /// What a player got in the end.
    #[must_use]
    pub fn outcome_of(&self, player: Player) -> f32 {
        self.number_of(&self.outcomes, player)
    }

    /// What a network learns that a player got in the end: the outcome, or with a score to beat a win or a loss. Where
    /// the score is just the one to beat, a coin decides that (seed, game id) tosses (R2, Laterre et al. 2018).
    #[must_use]
    pub fn reward_of(&self, player: Player) -> f32 {
        let outcome = self.outcome_of(player);
        match self.score_to_beat.map(|to_beat| ranked(outcome, to_beat)) {
            None => outcome,
            Some(0.0) if stream_for(self.seed, self.game_id, COIN).unit() < 0.5 => -1.0,
            Some(0.0) => 1.0,
            Some(ranked) => ranked,
        }
    }

    /// What the search of a ply found for a player; 0 where there was none.
    #[must_use]
    pub fn root_value_of(&self, ply: usize, player: Player) -> f32 {
        self.number_of(&self.root_values[ply * self.outcomes.len()..], player)
    }

    /// Number of plies that can be learned from.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.plies.iter().filter(|ply| ply.is_sample()).count()
    }

    /// A game of which only the actions and the outcome are known, from `start`: each ply of a player is a sample. The
    /// outcome is one number a player, or player 0's with two players and zero sum.
    ///
    /// # Errors
    /// What is wrong, see [`GameRecord::check`].
    pub fn of_actions<G: Game>(start: &G, actions: &[Action], outcomes: &[f32]) -> Result<Self, Error> {
        let (mut state, mut record) = (start.clone(), Self { imported: true, ..Self::begun(start) });
        let (got, players, numbers) = (outcomes.len(), record.num_players, record.outcomes.len());
        if got != numbers {
            return Err(wrong(format!(
                "{got} numbers as the outcome of a game of {players} players, expected {numbers}"
            )));
        }
        record.outcomes = outcomes.to_vec();
        for (index, &action) in actions.iter().enumerate() {
            let refused = |why| Err(wrong(why));
            let (player, flags) = match state.turn() {
                Turn::Player(player) => (player.index() as i8, PLAYED),
                Turn::Chance => (-1, 0),
                Turn::Terminal => return refused(format!("ply {index} comes after the end of the game")),
            };
            state.try_play(action).map_err(|error| wrong(format!("ply {index}: {error}")))?;
            record.push(Ply { action, player, flags, network: 0 }, &[]);
        }
        record.check(start).map(|()| record)
    }

    /// The same game as an imported one of a run that counts scores against `score_to_beat`. Its searches and its outcome
    /// are kept, and how it came to its end is not.
    #[must_use]
    pub fn as_imported(&self, score_to_beat: Option<f32>) -> Self {
        let mut record = Self { imported: true, capped: false, resigned: false, score_to_beat, ..self.clone() };
        if score_to_beat != self.score_to_beat {
            // The searches counted other wins than the run that learns. What the outcome is worth there stands in for
            // their values, so that a value target mixes numbers of one scale.
            let reward = record.reward_of(Player::Zero);
            let searched = record.plies.iter().zip(&mut record.root_values).filter(|(ply, _)| ply.is_searched());
            searched.for_each(|(_, value)| *value = reward);
        }
        record
    }

    /// Whether every array is as long as the others say, and each ply is of a player that there is.
    fn shape_fits(&self) -> bool {
        let k = self.legal.len();
        self.offsets.len() == self.plies.len() + 1
            && self.offsets.windows(2).all(|pair| pair[0] <= pair[1])
            && self.offsets.first() == Some(&0)
            && self.offsets.last().map(|&end| end as usize) == Some(k)
            && self.visits.len() == k
            && self.priors.len() == k
            && (self.targets.is_empty() || self.targets.len() == k)
            && self.root_values.len() == self.plies.len() * self.outcomes.len()
            && (1..=MAX_PLAYERS).contains(&self.num_players)
            && self.plies.iter().all(|ply| (-1..self.num_players as i8).contains(&ply.player))
            && (self.outcomes.len() == self.num_players || (self.outcomes.len(), self.num_players) == (1, 2))
    }

    /// Plays the record again from `start` and refuses one that the rules do not bear out.
    ///
    /// # Errors
    /// [`Error::Record`]: what is wrong, and at which ply if it is one.
    pub fn check<G: Game>(&self, start: &G) -> Result<(), Error> {
        if !self.shape_fits() {
            return Err(wrong("its arrays do not fit together"));
        }
        let players = start.num_players();
        if (self.num_players, self.outcomes.len()) != (players, G::Payoff::width(players)) {
            let sum = if self.is_zero_sum() { " and zero sum" } else { "" };
            return Err(wrong(format!(
                "it is a record of {} players{sum}, but the game has {players}",
                self.num_players
            )));
        }
        let mut state = start.clone();
        let mut legal = Vec::new();
        for (index, ply) in self.plies.iter().enumerate() {
            let refused = |why| Err(wrong(why));
            let player = match state.turn() {
                Turn::Player(player) => player.index() as i8,
                Turn::Chance => -1,
                Turn::Terminal => return refused(format!("ply {index} comes after the end of the game")),
            };
            if player != ply.player {
                return refused(format!(
                    "ply {index} is marked as player {}'s, but by the rules it is player {player}'s",
                    ply.player
                ));
            }
            self.check_search(index)?;
            if ply.flags & PLAYED != 0 && !self.imported {
                return refused(format!("ply {index} is marked as played elsewhere, but the game is not imported"));
            }
            if ply.flags & SEARCHED != 0 {
                state.legal_actions(&mut legal);
                if self.legal[self.range(index)] != legal {
                    return refused(format!("the legal actions stored for ply {index} are not those of the rules"));
                }
            }
            state.try_play(ply.action).or_else(|error| refused(format!("ply {index}: {error}")))?;
        }
        let rules = match state.turn() {
            _ if self.imported && (self.capped || self.resigned) => {
                return Err(wrong("it is marked both as imported and as ended in self-play"));
            }
            Turn::Player(_) | Turn::Chance if self.imported => {
                let beyond = self.outcomes.iter().find(|number| !(-1.0..=1.0).contains(*number));
                if let Some(number) = beyond {
                    return Err(wrong(format!("an outcome is from -1 to 1, got {number}")));
                }
                None
            }
            Turn::Terminal if self.resigned => {
                return Err(wrong("it is marked as resigned, but it ended by the rules"));
            }
            Turn::Terminal if !self.capped => Some(state.outcome()),
            Turn::Terminal => return Err(wrong("it is marked as cut short, but it ended by the rules")),
            Turn::Player(_) if self.resigned && !G::Payoff::ZERO_SUM => {
                return Err(wrong("it is marked as resigned, but only zero-sum games of two players can be"));
            }
            Turn::Player(player) if self.resigned && !self.capped => {
                Some(G::Payoff::of_proven(PovValue(-1.0).absolute(player)))
            }
            _ if self.resigned => return Err(wrong("it is marked as resigned, but not at a player's turn")),
            _ if self.capped => Some(G::Payoff::draw(players)),
            _ => return Err(wrong("it stops before the end of the game")),
        };
        let fits = |score: &f32| self.num_players == 1 && (-1.0..=1.0).contains(score);
        if let Some(score) = self.score_to_beat.filter(|score| !fits(score)) {
            return Err(wrong(format!("its score to beat is {score}, expected one player and a score from -1 to 1")));
        }
        let Some(rules) = rules.map(Payoff::each) else { return Ok(()) };
        let (told, rules) = (self.outcomes.as_slice(), &rules.numbers()[..self.outcomes.len()]);
        let shown = |numbers: &[f32]| match numbers {
            [one] => one.to_string(),
            _ => format!("{numbers:?}"),
        };
        if told == rules {
            return Ok(());
        }
        Err(wrong(format!("its outcome is marked as {}, but by the rules it is {}", shown(told), shown(rules))))
    }

    /// Whether a ply's numbers are some that a search can give.
    fn check_search(&self, index: usize) -> Result<(), Error> {
        let (ply, range) = (&self.plies[index], self.range(index));
        let refused = |why| Err(wrong(why));
        // A search is of one kind, and dice are not searched; nor is what was played elsewhere.
        let fits = match ply.flags & !MIXED_NETWORKS {
            SEARCHED | FAST_SEARCH => ply.player >= 0,
            PLAYED => ply.player >= 0 && ply.flags == PLAYED,
            _ => ply.flags == 0,
        };
        if !fits {
            return refused(format!("ply {index} has flags {:#04x}, which contradict each other", ply.flags));
        }
        let number = |x: f32| x.is_finite() && x.abs() <= 1.0;
        let width = self.outcomes.len();
        let found = &self.root_values[index * width..(index + 1) * width];
        if !found.iter().chain(&self.priors[range.clone()]).all(|&value| number(value)) {
            return refused(format!("ply {index} has a value or prior out of range"));
        }
        if ply.flags & SEARCHED == 0 {
            if range.is_empty() {
                return Ok(());
            }
            return refused(format!("ply {index} is not searched, but has visits"));
        }
        let target = self.target(index);
        let sum: f64 = target.iter().map(|&share| f64::from(share)).sum();
        // A search without visits may still say what to learn. Said this way round, NaN is refused.
        let is_whole = (sum - 1.0).abs() <= TARGET_ERROR;
        if !is_whole || target.iter().any(|&share| share < 0.0) {
            return refused(format!("the policy target of ply {index} must be shares that sum to 1, got {target:?}"));
        }
        Ok(())
    }
}

/// A record that the rules do not bear out.
fn wrong(why: impl Into<String>) -> Error {
    Error::Record(why.into())
}

/// Visits as shares of their sum; all 0 without visits.
fn visit_shares(visits: &[u32]) -> Vec<f32> {
    let total: f64 = visits.iter().map(|&visits| f64::from(visits)).sum();
    visits.iter().map(|&visits| (f64::from(visits) / total.max(1.0)) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_kept_only_where_the_visits_do_not_say_them() {
        let ply = Ply { action: 0, player: 0, flags: SEARCHED, network: 0 };
        let targets = vec![1.0 / 3.0, 2.0 / 3.0, 1.0];
        let plain = GameRecord {
            num_players: 2,
            outcomes: vec![0.0],
            plies: vec![ply, Ply { flags: 0, ..ply }, ply],
            offsets: vec![0, 2, 2, 3],
            legal: vec![0, 1, 0],
            visits: vec![1, 2, 7],
            priors: vec![0.5, 0.5, 1.0],
            targets: targets.clone(),
            ..GameRecord::default()
        };
        let mut kept = GameRecord { visits: vec![1, 1, 7], ..plain.clone() };
        let mut dropped = plain;
        kept.drop_plain_targets();
        dropped.drop_plain_targets();
        assert_eq!((kept.targets.clone(), dropped.targets.len()), (targets.clone(), 0));
        for ply in 0..3 {
            assert_eq!(kept.target(ply), targets[kept.range(ply)]);
            assert_eq!(dropped.target(ply), targets[kept.range(ply)]);
        }
    }
}
