//! The points of a roll, and how points become holes.

use azpy_core::game::Player;

use super::board::{CORNER, HIS_CORNER, JANS, Levels, TALON, is_single};
use super::rolled::{Plays, Rolled};
use crate::tables::Side;

/// Points that make a hole.
const HOLE: u8 = 12;
/// Fields 7 to 18, where a hit is worth less.
const MIDDLE: u32 = 0xfff << 6;
/// The fields of the jan of six tables.
const SIX: u32 = 0x3f << 1;
/// The roll of the setting in which the jan of six tables counts.
pub(super) const SIX_TABLES_ROLL: u8 = 3;

/// The points of the player to move, and of the other one.
///
/// `other` is the other side in the numbers of the player to move; `third` says that this is the own third roll of the
/// setting.
pub(super) fn points(rolled: &Rolled, other: Levels, plays: &Plays, third: bool) -> [u8; 2] {
    let dear = if rolled.is_double() { 6 } else { 4 };
    let [hit, missed] = hits(rolled, other);
    let (mut own, mut his) = (hit, missed);
    if takes_corner(rolled) {
        own += dear;
    }
    own += dear * ways_of_jan(rolled, plays);
    if plays.exit {
        own += dear;
    }
    if at_talon(rolled.own) == 13 && at_start(rolled) {
        *if rolled.open & HIS_CORNER == 0 { &mut his } else { &mut own } += dear;
    }
    if third && six_tables(rolled) {
        own += 4;
    }
    if !plays.exit {
        his += 2 * (2 - plays.dice);
    }
    [own, his]
}

/// True hits, and false ones.
fn hits(rolled: &Rolled, other: Levels) -> [u8; 2] {
    let (own, [high, low]) = (rolled.levels.one, rolled.dice);
    let blots = other.one & !other.two;
    let worth = |fields: u32| {
        let (dear, cheap) = ((fields & !MIDDLE).count_ones(), (fields & MIDDLE).count_ones());
        if rolled.is_double() { 6 * dear + 4 * cheap } else { 4 * dear + 2 * cheap }
    };
    if blots == 0 {
        return [0; 2];
    }
    let by_one = [own << high & blots, if rolled.is_double() { 0 } else { own << low & blots }];
    // A rest may be on a field with one checker of the other side: it would be hit as well.
    let rest = !other.two;
    let by_both = own << high << low & blots;
    let resting = by_both & (rest << high | rest << low);
    let missed = by_both & !resting & !by_one[0] & !by_one[1];
    [worth(by_one[0]) + worth(by_one[1]) + worth(resting), worth(missed)].map(|points| points as u8)
}

/// Whether the dice would bring two checkers to the other corner, the own one being held by two more.
fn takes_corner(rolled: &Rolled) -> bool {
    let levels = rolled.levels;
    if levels.two & CORNER == 0 || rolled.open & HIS_CORNER == 0 {
        return false;
    }
    // Two checkers stay in the corner.
    let four = if rolled.four & CORNER != 0 { CORNER } else { 0 };
    let one = levels.one & !CORNER | levels.three & CORNER;
    let two = levels.two & !CORNER | four;
    let [by_high, by_low] = rolled.dice.map(|die| HIS_CORNER >> die);
    if rolled.is_double() { two & by_high != 0 } else { one & by_high != 0 && one & by_low != 0 }
}

/// Ways of filling a jan, or one for keeping it.
fn ways_of_jan(rolled: &Rolled, plays: &Plays) -> u8 {
    match rolled.lacking {
        _ if rolled.jan == 0 => 0,
        0 => u8::from(plays.full || plays.dice == 0),
        1 => plays.sources.count_ones() as u8,
        _ => u8::from(plays.full),
    }
}

fn at_talon(own: Side) -> u32 {
    own.count(TALON.trailing_zeros())
}

/// The jan of two tables and that of mézéas, where all but two checkers are at the talon.
fn at_start(rolled: &Rolled) -> bool {
    let out = rolled.levels.one & !TALON;
    let [high, low] = rolled.dice;
    if out == CORNER && rolled.levels.two & CORNER != 0 {
        return low == 1;
    }
    let reach = |to_own: u32, to_his: u32| {
        let (one, other) = (CORNER >> to_own, HIS_CORNER >> to_his);
        // Both may stand on one field.
        out == one | other && (one != other || rolled.levels.two & one != 0)
    };
    reach(high, low) || reach(low, high)
}

/// Whether four checkers stand alone on fields 2 to 7, and the dice lead to the two fields that are empty.
fn six_tables(rolled: &Rolled) -> bool {
    let out = rolled.levels.one & !TALON;
    let led = rolled.dice.map(|die| TALON << die);
    at_talon(rolled.own) == 11 && out.count_ones() == 4 && out | led[0] | led[1] == SIX
}

/// The score, by player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Score {
    /// 0 to 10: all that is marked is even.
    pub(super) points: [u8; 2],
    pub(super) holes: [u8; 2],
    /// No mark of the other player has broken the run of marks since the last hole: the next hole counts double.
    pub(super) runs: [bool; 2],
}

impl Score {
    pub(super) const START: Self = Self { points: [0; 2], holes: [0; 2], runs: [true; 2] };

    /// Marks points. Holes beyond the `goal` do not count. Says whether the player has won a hole.
    pub(super) fn mark(&mut self, player: Player, points: u8, goal: u8) -> bool {
        if points == 0 {
            return false;
        }
        let (me, other) = (player.index(), player.opponent().index());
        let sum = self.points[me] + points;
        self.points[me] = sum % HOLE;
        let won = sum / HOLE;
        if won == 0 {
            if self.points[other] > 0 {
                self.runs[other] = false;
            }
            return false;
        }
        self.holes[me] = goal.min(self.holes[me] + 2 * won - u8::from(!self.runs[me]));
        self.points[other] = 0;
        self.runs = [true; 2];
        true
    }

    /// Who has the holes of a game.
    #[inline]
    pub(super) fn winner(&self, goal: u8) -> Option<Player> {
        [Player::Zero, Player::One].into_iter().find(|player| self.holes[player.index()] >= goal)
    }
}

/// Which jans are full.
pub(super) fn full_jans(side: Side) -> [bool; 3] {
    JANS.map(|jan| Levels::of(side).fills(jan))
}

/// Whether a side holds its corner, seen by itself.
pub(super) fn holds_corner(side: Side) -> bool {
    is_single(side.many() & CORNER)
}
