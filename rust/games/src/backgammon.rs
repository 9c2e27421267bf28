//! Backgammon, single games without a doubling cube; x (player 0) begins.
//!
//! Each player numbers the points from the own side: checkers run from 24 down to 1 and off, and enter from the bar. A
//! *place* is a point less 1, so 0 is the ace point and 24 the bar: a die d takes a checker from place p to p - d.
//!
//! The opening roll decides who begins, so it is no double, and the players are numbered such that it is player 0 who
//! begins. A turn with no legal play passes by itself: the next ply is the opponent's roll.
//!
//! An action moves one checker: `place` by the higher die or by a double, `25 + place` by the lower die.
//!
//! **One line a play.** The same play in another order is no other play: every position at the end of a turn is
//! reached by exactly one line of actions, or searches would share out the visits of a play among its orders.
//!
//! - Checkers move in the order of their places, highest first. Any play can be sorted so: what a move needs (an empty
//!   bar, all checkers home, none behind one that leaves by a higher die) is only ever helped by moves from behind.
//! - Two checkers from one place: the higher die first.
//! - One checker with both dice, where both ways are open and none of the two points between has a blot: the higher die
//!   first. So the lower die goes first only where the other order is not possible or hits something else.
//! - Two checkers leave the board: the higher die first.
//!
//! Places that may not go again are *closed* for the rest of the turn. They are part of the position and are shown.
//!
//! Invariant: a player's checkers, those off included, are 15; no point has both colours; where dice are left, one of
//! them can be played; closed places are taken ones.

mod ids;
mod notation;
mod picture;
mod side;

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text, play_line};

use crate::error::Error;
use crate::key::{Tag, digest};
use crate::notation::{counted, limit_of_plies};
use crate::tables::{
    CHECKERS, POINTS, ROLLS, Side, each, from_other_side, key_words, roll_name, up_to, write_outcomes,
};
use side::{BAR, PLACES, sources, taken_after};

/// Of 47,000 random games the longest took 865 plies (November 2026).
const MAX_PLIES: u16 = 3000;
/// The draw by length is seen coming for so many plies.
const CLOCK: u16 = 200;
/// What checkers beyond three on a place are divided by (TD-Gammon, Tesauro 1992).
const MANY: u16 = 2;

const SIDE_FEATURES: usize = 4 * PLACES + 1;
const FEATURES: usize = 2 * SIDE_FEATURES + 2 * 6 + 3 + PLACES + 1;

/// A position of backgammon. Small and `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn};
/// use azpy_core::text::Notation;
/// use azpy_games::Backgammon;
///
/// let mut game = Backgammon::default();
/// assert_eq!(game.turn(), Turn::Chance);
/// game.try_play(1).unwrap(); // 3-1
/// let line = game.parse_actions("8/5 6/5")?;
/// for action in line {
///     game.try_play(action).unwrap();
/// }
/// assert_eq!(game.turn(), Turn::Chance);
/// assert_eq!(game.checkers(Player::Zero)[4], 2);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backgammon {
    /// By player, each from the own side.
    sides: [Side; 2],
    /// Places of the player to move that no checker goes from any more this turn.
    closed: u32,
    /// The higher die first; zeros before the roll.
    dice: [u8; 2],
    /// How often each die is still to be played; doubles count as the higher one.
    left: [u8; 2],
    mover: Player,
    /// The next roll is the first of the game.
    opening: bool,
    gammons: bool,
    plies_left: u16,
    max_plies: u16,
}

impl Default for Backgammon {
    /// Gammons and backgammons count.
    fn default() -> Self {
        Self::new(true)
    }
}

impl Backgammon {
    /// The start of a game; with `gammons` a win is worth 1/3, 2/3 or 1, else 1. It is a draw after 3,000 plies.
    #[must_use]
    pub fn new(gammons: bool) -> Self {
        Self::start(gammons, MAX_PLIES)
    }

    /// The start of a game that is a draw after `max_plies` plies, rolls counted.
    ///
    /// # Errors
    /// If `max_plies` is not from 1 to 65,535.
    pub fn with_max_plies(gammons: bool, max_plies: usize) -> Result<Self, Error> {
        Ok(Self::start(gammons, limit_of_plies(max_plies)?))
    }

    fn start(gammons: bool, max_plies: u16) -> Self {
        Self {
            sides: [Side::START; 2],
            closed: 0,
            dice: [0; 2],
            left: [0; 2],
            mover: Player::Zero,
            opening: true,
            gammons,
            plies_left: max_plies,
            max_plies,
        }
    }

    /// A player's checkers, from the own side: on points 1 to 24, on the bar, off.
    #[must_use]
    pub fn checkers(&self, player: Player) -> [u32; 26] {
        self.sides[player.index()].counts()
    }

    /// The roll that is being played, the higher die first.
    #[must_use]
    pub fn dice(&self) -> Option<[u8; 2]> {
        (self.dice[0] > 0).then_some(self.dice)
    }

    #[inline]
    fn own(&self) -> Side {
        self.sides[self.mover.index()]
    }

    #[inline]
    fn other(&self) -> Side {
        self.sides[self.mover.opponent().index()]
    }

    /// Points that the player to move can go to, if anything is there.
    #[inline]
    fn open(&self) -> u32 {
        POINTS & !from_other_side(self.other().many())
    }

    #[inline]
    fn die(&self, which: usize) -> u32 {
        u32::from(self.dice[which])
    }

    #[inline]
    fn is_double(&self) -> bool {
        self.dice[0] == self.dice[1]
    }

    #[inline]
    fn winner(&self) -> Option<Player> {
        [Player::Zero, Player::One].into_iter().find(|player| self.sides[player.index()].taken() == 0)
    }

    /// The kind of win: a single game, a gammon or a backgammon; 3 if these do not count.
    fn points(&self) -> Option<u8> {
        let loser = self.sides[self.winner()?.opponent().index()];
        Some(match loser.taken() {
            _ if !self.gammons => 3,
            _ if loser.off() > 0 => 1,
            // The winner's home is the loser's points 19 to 24.
            taken if taken >> 18 == 0 => 2,
            _ => 3,
        })
    }

    /// The places from which the die can be played now, ignoring the other die.
    #[inline]
    fn playable(&self, which: usize) -> u32 {
        sources(self.own().taken(), self.open(), self.die(which)) & !self.closed
    }

    /// Whether any of the dice left can be played.
    #[inline]
    fn can_go(&self) -> bool {
        (self.left[0] > 0 && self.playable(0) != 0) || (self.left[1] > 0 && self.playable(1) != 0)
    }

    /// Places that are closed once a checker has gone from `place`, with more to come.
    #[inline]
    fn closed_after(&self, which: usize, place: u32) -> u32 {
        if which == 0 {
            return !up_to(place);
        }
        let closed = !up_to(place) | 1 << place;
        if self.runs_either_way(place) { closed | 1 << place >> self.die(1) } else { closed }
    }

    /// Whether one checker that runs from `place` by both dice, the lower one first, ends up where it does by the higher
    /// one first, and hits as little on its way.
    #[inline]
    fn runs_either_way(&self, place: u32) -> bool {
        let (own, [high, low]) = (self.own(), [self.die(0), self.die(1)]);
        let (by_high, by_low) = (1_u32 << place >> high, 1 << place >> low);
        let empty = POINTS & !from_other_side(self.other().taken());
        by_high & empty != 0
            && by_low & empty != 0
            && sources(taken_after(own.taken(), own.many(), place, high), self.open(), low) & by_high != 0
    }

    /// Where a turn with unequal dice can begin, by the die that is played first.
    fn beginnings(&self) -> [u32; 2] {
        let (own, open, [high, low]) = (self.own(), self.open(), [self.die(0), self.die(1)]);
        let (taken, many) = (own.taken(), own.many());
        let mut both = [0; 2];
        for place in each(sources(taken, open, high)) {
            if sources(taken_after(taken, many, place, high), open, low) & up_to(place) != 0 {
                both[0] |= 1 << place;
            }
        }
        // Who leaves by the lower die could have left by the higher one, and the other one by the lower die after it.
        for place in each(sources(taken, open, low) & !(up_to(low) >> 1)) {
            let next = sources(taken_after(taken, many, place, low), open, high) & up_to(place);
            // Usually nothing is left to check.
            if next != 0 && next & !self.closed_after(1, place) != 0 {
                both[1] |= 1 << place;
            }
        }
        if both != [0; 2] {
            return both;
        }
        match sources(taken, open, high) {
            0 => [0, sources(taken, open, low)],
            higher => [higher, 0],
        }
    }

    /// Where a double can go on such that as many as possible are played, each from no higher place than the one before.
    fn beginnings_of_double(&self) -> u32 {
        let (own, open, die) = (self.own(), self.open(), self.die(0));
        let places = self.playable(0);
        // Moves never block each other, so all lines that cannot go on are equally long.
        let longest = |mut side: Side, allowed: u32, most: u8| {
            for played in 0..most {
                match sources(side.taken(), open, die) & allowed {
                    0 => return played,
                    places => side.advance(places.trailing_zeros(), die),
                }
            }
            most
        };
        let most = longest(own, !self.closed, self.left[0]);
        for place in each(places) {
            let mut side = own;
            side.advance(place, die);
            if 1 + longest(side, up_to(place), self.left[0] - 1) == most {
                // Everything that can follow from here can follow from a higher place.
                return places & !(up_to(place) >> 1);
            }
        }
        places
    }

    /// By die: the places from which a checker may go.
    #[inline]
    fn moves(&self) -> [u32; 2] {
        match self.left {
            [1, 1] => self.beginnings(),
            [1, 0] => [self.playable(0), 0],
            [0, _] => [0, self.playable(1)],
            _ => [self.beginnings_of_double(), 0],
        }
    }

    #[inline]
    fn roll(&mut self, outcome: usize) {
        self.opening = false;
        self.dice = ROLLS[outcome];
        self.left = if self.is_double() { [4, 0] } else { [1, 1] };
        if !self.can_go() {
            self.pass();
        }
    }

    #[inline]
    fn pass(&mut self) {
        self.dice = [0; 2];
        self.left = [0; 2];
        self.closed = 0;
        self.mover = self.mover.opponent();
    }

    #[inline]
    fn go(&mut self, which: usize, place: u32) {
        let (own, other, die) = (self.mover.index(), self.mover.opponent().index(), self.die(which));
        self.left[which] -= 1;
        let more = self.left != [0; 2];
        let closed = if more { self.closed_after(which, place) } else { 0 };
        self.sides[own].advance(place, die);
        if place >= die {
            let there = 23 - (place - die);
            if self.sides[other].taken() >> there & 1 == 1 {
                self.sides[other].remove(there);
                self.sides[other].add(BAR);
            }
        }
        // What is closed stays taken until the turn ends, and what is not taken need not be closed.
        self.closed = self.sides[own].taken() & closed;
        if !more || !self.can_go() {
            self.pass();
        }
    }

    /// The die's number and the place of an action.
    #[inline]
    fn parts(action: Action) -> (usize, u32) {
        (action as usize / PLACES, action % PLACES as u32)
    }
}

impl Game for Backgammon {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 2 * PLACES,
            obs_shape: [FEATURES, 1, 1],
            max_plies: usize::from(self.max_plies),
            num_symmetries: 1,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.winner().is_some() || self.plies_left == 0 {
            Turn::Terminal
        } else if self.dice[0] == 0 {
            Turn::Chance
        } else {
            Turn::Player(self.mover)
        }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let [high, low] = self.moves();
        out.extend(each(high));
        out.extend(each(low).map(|place| PLACES as Action + place));
    }

    #[inline]
    fn play(&mut self, action: Action) {
        debug_assert!(self.turn() != Turn::Terminal);
        self.plies_left -= 1;
        if self.dice[0] == 0 {
            self.roll(action as usize);
        } else {
            let (which, place) = Self::parts(action);
            debug_assert!(self.moves()[which] >> place & 1 == 1);
            self.go(which, place);
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        write_outcomes(self.opening, out);
    }

    fn outcome(&self) -> Value {
        let value = self.points().map_or(0.0, |points| f32::from(points) / 3.0);
        Value(if self.winner() == Some(Player::One) { -value } else { value })
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        for (features, side) in row.chunks_exact_mut(SIDE_FEATURES).zip([self.own(), self.other()]) {
            side.encode(MANY, |place| place, features);
            features[SIDE_FEATURES - 1] = side.off() as f32 / CHECKERS as f32;
        }
        let row = &mut row[2 * SIDE_FEATURES..];
        for which in 0..2 {
            if self.left[which] > 0 {
                row[6 * which + usize::from(self.dice[which]) - 1] = 1.0;
            }
        }
        for more in 0..usize::from(self.left[0].saturating_sub(1)) {
            row[12 + more] = 1.0;
        }
        for place in each(self.closed) {
            row[15 + place as usize] = 1.0;
        }
        row[15 + PLACES] = f32::from(CLOCK.saturating_sub(self.plies_left)) / f32::from(CLOCK);
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        let mut divisors = vec![1; FEATURES];
        for side in divisors[..2 * SIDE_FEATURES].chunks_exact_mut(SIDE_FEATURES) {
            side[..4 * PLACES].iter_mut().skip(3).step_by(4).for_each(|divisor| *divisor = MANY);
            side[SIDE_FEATURES - 1] = CHECKERS as u16;
        }
        divisors[FEATURES - 1] = CLOCK;
        Some(divisors)
    }

    #[inline]
    fn key(&self) -> u128 {
        // Only the number of plies left decides how the game can end.
        let facts = [
            (u64::from(self.closed), 25),
            (u64::from(self.dice[0]), 3),
            (u64::from(self.dice[1]), 3),
            (u64::from(self.left[0]), 3),
            (u64::from(self.left[1]), 1),
            (self.mover as u64, 1),
            (u64::from(self.opening), 1),
            (u64::from(self.gammons), 1),
            (u64::from(self.plies_left), 16),
        ];
        digest(Tag::Backgammon, &key_words(self.sides, facts))
    }

    fn render(&self) -> String {
        notation::render(self)
    }
}

impl Notation for Backgammon {
    /// A roll as `3-1`; an action as `13/11`, `bar/22` or `6/off`, with an asterisk where it hits: `8/5*`.
    fn action_name(&self, action: Action) -> String {
        let name = self.short_name(action);
        let (which, place) = Self::parts(action);
        let hits = matches!(self.turn(), Turn::Player(_)) && which < 2 && place >= self.die(which) && {
            let there = 23 - (place - self.die(which));
            self.other().taken() >> there & 1 == 1
        };
        if hits { name + "*" } else { name }
    }

    /// As `action_name`, without the asterisk.
    fn short_name(&self, action: Action) -> String {
        let (which, place) = Self::parts(action);
        match self.turn() {
            Turn::Chance => roll_name(action).unwrap_or_else(|| action.to_string()),
            Turn::Player(_) if which < 2 => {
                let to = place.checked_sub(self.die(which)).map_or("off".to_owned(), notation::name);
                format!("{}/{to}", notation::name(place))
            }
            _ => action.to_string(),
        }
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["red", "blue"])
    }

    fn result_text(&self) -> String {
        let how = match self.points() {
            None => "by the limit of plies",
            _ if !self.gammons => "",
            Some(1) => "a single game",
            Some(2) => "a gammon",
            Some(_) => "a backgammon",
        };
        outcome_text(self, how)
    }

    /// The pips, which are the points that all checkers still have to go, and the checkers off.
    fn counts(&self) -> Vec<String> {
        let count = |side: Side| {
            let pips: u32 = (0..=BAR).map(|place| side.count(place) * (place + 1)).sum();
            format!("{}, {} off", counted(pips, "pip"), side.off())
        };
        self.sides.map(count).into()
    }

    fn to_svg(&self) -> String {
        picture::to_svg(self)
    }

    /// Where the checker stands, and where it goes: a point, the bar, or the tray.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (which, place) = Self::parts(action);
        match self.turn() {
            Turn::Player(player) if which < 2 => {
                let to = place.checked_sub(self.die(which));
                vec![picture::touch(player, Some(place)), picture::touch(player, to)]
            }
            _ => Vec::new(),
        }
    }

    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        match ids::read(self, text) {
            Some(read) => Ok(read?),
            None if text.contains('=') => Ok(notation::read(self, text)?),
            None => play_line(self, text),
        }
    }

    fn to_text(&self) -> Option<String> {
        Some(notation::to_text(self))
    }
}
