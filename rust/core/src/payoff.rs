//! Players, and what a game pays them: the numbers that go up the path of a search, and how players and networks see them.
//!
//! Two players who share a zero sum need one number, [`Value`]. All other games have one number a player, [`Values`]:
//! with one player a score, with more of them whatever each gets. The compiler keeps the two apart, so that a search of two
//! players carries one `f32`.

use std::fmt;

/// The most players that a game may have.
pub const MAX_PLAYERS: usize = 6;

/// One of the players of a game. In a game of two, `Player::One` is the opponent of `Player::Zero`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Player {
    /// The player from whose view the one number of a zero sum is given.
    Zero = 0,
    /// The second player.
    One = 1,
    /// The third player.
    Two = 2,
    /// The fourth player.
    Three = 3,
    /// The fifth player.
    Four = 4,
    /// The sixth player.
    Five = 5,
}

impl Player {
    /// All players that a game can have, in their order.
    pub const ALL: [Self; MAX_PLAYERS] = [Self::Zero, Self::One, Self::Two, Self::Three, Self::Four, Self::Five];

    /// The other player, in a game of two.
    #[must_use]
    #[inline]
    pub fn opponent(self) -> Self {
        debug_assert!(self.index() < 2, "only one of two players has an opponent");
        match self {
            Self::Zero => Self::One,
            _ => Self::Zero,
        }
    }

    /// The player's number, 0 to 5.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The player with this number, if there can be one.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }
}

/// What a game pays at its end, player 0 first.
pub trait Payoff: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The same numbers in turn order, beginning with the player to move: what a network says.
    type Pov: Pov<Payoff = Self>;

    /// Whether it is the one number of two players and zero sum.
    const ZERO_SUM: bool;

    /// W, how many numbers say what a game of so many players pays, in records, value targets and answers of networks: 1
    /// where two players share a zero sum, else one a player.
    #[must_use]
    fn width(players: usize) -> usize {
        if Self::ZERO_SUM { 1 } else { players }
    }

    /// 0 for each of so many players.
    fn draw(players: usize) -> Self;

    /// What a win of one of so many players pays: 1 to the winner, and an equal share of -1 to each of the others.
    /// Without a winner 0 to each.
    fn won_by(winner: Option<Player>, players: usize) -> Self;

    /// What a player gets, in `[-1, 1]`.
    fn of(self, player: Player) -> f32;

    /// The same as `player` sees it.
    fn pov(self, player: Player) -> Self::Pov;

    /// One number a player, player 0 first.
    fn each(self) -> Values;

    /// What pays each player so: the inverse of [`Payoff::each`].
    fn of_each(each: Values) -> Self;

    /// The one number that a proof is about: player 0's, with one player or two and zero sum.
    fn proven(self) -> Value;

    /// What pays this number, with one player or two and zero sum.
    fn of_proven(value: Value) -> Self;
}

/// A [`Payoff`] in turn order, beginning with the player to move.
pub trait Pov: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The same, player 0 first.
    type Payoff: Payoff<Pov = Self>;

    /// The same number for each of so many players.
    fn filled(players: usize, number: f32) -> Self;

    /// `[W]` the numbers: one with two players and zero sum, else one a player.
    fn numbers(&self) -> &[f32];

    /// As [`Pov::numbers`], to be written.
    fn numbers_mut(&mut self) -> &mut [f32];

    /// The same with player 0 first, where these were seen by `player`.
    fn absolute(self, player: Player) -> Self::Payoff;
}

/// What a score counts as against a score to beat: 1 above it, -1 below it, and 0 where the two are equal. Nothing beats
/// the score 1, which always counts as 1. R2 (Laterre et al. 2018) tosses a coin where the two are equal: 0 is its mean.
#[must_use]
pub fn ranked(score: f32, to_beat: f32) -> f32 {
    if score >= 1.0 || score > to_beat {
        1.0
    } else if score < to_beat {
        -1.0
    } else {
        0.0
    }
}

/// A value from the view of player 0, in `[-1, 1]`: the other one of two players has its negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Value(pub f32);

/// A value from the view of the player to move, in `[-1, 1]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PovValue(pub f32);

impl Payoff for Value {
    type Pov = PovValue;
    const ZERO_SUM: bool = true;

    fn draw(_players: usize) -> Self {
        Self(0.0)
    }

    #[inline]
    fn won_by(winner: Option<Player>, _players: usize) -> Self {
        winner.map_or(Self(0.0), |winner| PovValue(1.0).absolute(winner))
    }

    #[inline]
    fn of(self, player: Player) -> f32 {
        self.pov(player).0
    }

    #[inline]
    fn pov(self, player: Player) -> PovValue {
        match player {
            Player::Zero => PovValue(self.0),
            _ => PovValue(-self.0),
        }
    }

    fn each(self) -> Values {
        Values::new(&[self.0, -self.0])
    }

    #[inline]
    fn of_each(each: Values) -> Self {
        Self(each.numbers[0])
    }

    #[inline]
    fn proven(self) -> Value {
        self
    }

    #[inline]
    fn of_proven(value: Value) -> Self {
        value
    }
}

impl Pov for PovValue {
    type Payoff = Value;

    fn filled(_players: usize, number: f32) -> Self {
        Self(number)
    }

    #[inline]
    fn numbers(&self) -> &[f32] {
        std::slice::from_ref(&self.0)
    }

    #[inline]
    fn numbers_mut(&mut self) -> &mut [f32] {
        std::slice::from_mut(&mut self.0)
    }

    #[inline]
    fn absolute(self, player: Player) -> Value {
        match player {
            Player::Zero => Value(self.0),
            _ => Value(-self.0),
        }
    }
}

/// One number a player, player 0 first, each in `[-1, 1]`.
///
/// ```
/// use azpy_core::game::{Payoff, Player, Pov, Values};
/// let values = Values::new(&[1.0, -0.5, 0.25]);
/// assert_eq!(values.numbers(), [1.0, -0.5, 0.25]);
/// assert_eq!(values.pov(Player::One).absolute(Player::One), values);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// 0 behind the last player.
    numbers: [f32; MAX_PLAYERS],
    players: u8,
}

/// One number a player in turn order, beginning with the player to move: the value of player p stands at
/// `(p - mover) mod P`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PovValues(Values);

impl Values {
    /// A number for each player.
    ///
    /// # Panics
    /// Without players, or with more than [`MAX_PLAYERS`].
    #[must_use]
    pub fn new(each: &[f32]) -> Self {
        assert!((1..=MAX_PLAYERS).contains(&each.len()), "a game has 1 to {MAX_PLAYERS} players, got {}", each.len());
        let mut numbers = [0.0; MAX_PLAYERS];
        numbers[..each.len()].copy_from_slice(each);
        Self { numbers, players: each.len() as u8 }
    }

    /// `[P]` the numbers.
    #[must_use]
    #[inline]
    pub fn numbers(&self) -> &[f32] {
        &self.numbers[..usize::from(self.players)]
    }

    /// The numbers from this place on, and then those before it.
    fn rotated(self, first: usize) -> Self {
        let mut turned = self;
        turned.numbers[..usize::from(self.players)].rotate_left(first);
        turned
    }
}

impl PovValues {
    /// A number for each player, the player to move first.
    ///
    /// # Panics
    /// As [`Values::new`].
    #[must_use]
    pub fn new(each: &[f32]) -> Self {
        Self(Values::new(each))
    }
}

impl Payoff for Values {
    type Pov = PovValues;
    const ZERO_SUM: bool = false;

    fn draw(players: usize) -> Self {
        Self::new(&[0.0; MAX_PLAYERS][..players])
    }

    fn won_by(winner: Option<Player>, players: usize) -> Self {
        let Some(winner) = winner else { return Self::draw(players) };
        let mut each = [-1.0 / (players - 1) as f32; MAX_PLAYERS];
        each[winner.index()] = 1.0;
        Self::new(&each[..players])
    }

    #[inline]
    fn of(self, player: Player) -> f32 {
        self.numbers[player.index()]
    }

    fn pov(self, player: Player) -> PovValues {
        PovValues(self.rotated(player.index()))
    }

    fn each(self) -> Values {
        self
    }

    #[inline]
    fn of_each(each: Values) -> Self {
        each
    }

    fn proven(self) -> Value {
        debug_assert!(self.players == 1, "nothing is proven of more players");
        Value(self.numbers[0])
    }

    fn of_proven(value: Value) -> Self {
        Self::new(&[value.0])
    }
}

impl Pov for PovValues {
    type Payoff = Values;

    fn filled(players: usize, number: f32) -> Self {
        Self::new(&[number; MAX_PLAYERS][..players])
    }

    fn numbers(&self) -> &[f32] {
        self.0.numbers()
    }

    fn numbers_mut(&mut self) -> &mut [f32] {
        &mut self.0.numbers[..usize::from(self.0.players)]
    }

    fn absolute(self, player: Player) -> Values {
        self.0.rotated(usize::from(self.0.players) - player.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_order_begins_with_the_player_to_move() {
        let values = Values::new(&[0.1, 0.2, 0.3]);
        let seen: Vec<_> = Player::ALL[..3].iter().map(|&player| values.pov(player)).collect();
        assert_eq!(seen[0].numbers(), [0.1, 0.2, 0.3]);
        assert_eq!(seen[1].numbers(), [0.2, 0.3, 0.1]);
        assert_eq!(seen[2].numbers(), [0.3, 0.1, 0.2]);
        for (player, seen) in Player::ALL.into_iter().zip(seen) {
            assert_eq!((seen.absolute(player), seen.numbers()[0]), (values, values.of(player)));
        }
        assert_eq!(Value(0.5).each().numbers(), [0.5, -0.5]);
    }

    #[test]
    fn a_win_takes_as_much_as_it_pays() {
        let winners = [Some(Player::Zero), Some(Player::One), None];
        assert_eq!(winners.map(|winner| Value::won_by(winner, 2).0), [1.0, -1.0, 0.0]);
        assert_eq!(Values::won_by(Some(Player::One), 2), Value(-1.0).each());
        assert_eq!(Values::won_by(Some(Player::Two), 3).numbers(), [-0.5, -0.5, 1.0]);
        assert_eq!(Values::won_by(None, 4).numbers(), [0.0; 4]);
    }

    #[test]
    fn a_score_above_the_score_to_beat_wins() {
        let against = |to_beat| [-1.0, 0.25, 0.5, 1.0].map(|score| ranked(score, to_beat));
        assert_eq!(against(0.25), [-1.0, 0.0, 1.0, 1.0]);
        assert_eq!(against(-1.0), [0.0, 1.0, 1.0, 1.0]);
        assert_eq!(against(1.0), [-1.0, -1.0, -1.0, 1.0]);
    }
}
