//! The plays of a roll: which steps begin a legal play, and which end it.
//!
//! A play is one or two steps, or the corner by power. Three filters leave the legal plays (see the module above). Of the
//! lines of actions that end alike only the least one is legal. Where the dice differ and no checker can leave, these are:
//!
//! - a step by the higher die, then one by the lower die. One line in this order is not the least: a checker takes the
//!   place of another one that goes on, where the rear one can run by both dice with the higher die first;
//! - the lower die first, for one checker that plays both dice, where the other side stands on the field that the higher
//!   die leads to, and no own checker on the field that the lower die leads to.
//!
//! Of a double the second step begins no nearer to the talon than the first one.
//!
//! So a roll is looked through step by step of the first die; all second steps are one set of bits. Where checkers may
//! leave, orders matter in more ways, and `exits.rs` writes the lines down.

use super::board::{CORNER, HIS_CORNER, HOME, Levels, is_single};
use super::exits;
use super::rolled::{Plays, Rolled};
use crate::tables::each;

impl Rolled {
    /// Whether a checker may leave by the second die at the latest.
    #[inline]
    fn may_leave(&self) -> bool {
        let outside = self.levels.one & !HOME;
        outside == 0 || (is_single(outside) && outside & self.levels.two == 0)
    }

    /// All legal plays of the roll.
    #[inline]
    pub(super) fn plays(&self) -> Plays {
        let mut plays = if self.may_leave() { exits::plays(self) } else { self.open_plays() };
        let spare = self.jan & self.levels.three | !self.jan & self.levels.one;
        plays.sources &= spare;
        plays
    }

    /// From where a second step can go by the higher die and by the lower one, after a step of one of them.
    #[inline]
    pub(super) fn seconds(&self, which: usize, place: u32, keep_full: bool) -> [u32; 2] {
        if self.may_leave() {
            return exits::seconds(self, which, place);
        }
        let die = self.dice[1];
        if which == 1 {
            return [1 << place << die, 0];
        }
        let (after, pairs) = self.pairs(1 << place);
        let mut legal = pairs & self.least(1 << place);
        if keep_full {
            legal &= self.filling(after, die);
        }
        if self.is_double() { [legal, 0] } else { [0, legal] }
    }

    /// The levels after a step by the higher die, and from where the lower die can be played then.
    #[inline]
    fn pairs(&self, from: u32) -> (Levels, u32) {
        let after = self.levels.after(self.four, from, from << self.dice[0]);
        (after, self.last_steps(after, self.dice[1]))
    }

    /// Second steps, after the higher die was played from a field, that no lesser line stands for.
    #[inline]
    fn least(&self, from: u32) -> u32 {
        if self.is_double() {
            return !(from - 1);
        }
        let behind = from >> self.dice[1];
        !(behind & self.open >> self.dice[0])
    }

    /// From where a die can be played such that the turn may end.
    #[inline]
    fn last_steps(&self, levels: Levels, die: u32) -> u32 {
        let mut from = levels.one & self.open >> die & !(self.forbidden >> die);
        let stranded = levels.one & self.forbidden;
        if stranded != 0 {
            // One checker has rested where it must not stay.
            from &= if is_single(stranded) && stranded & levels.two == 0 { stranded } else { 0 };
        }
        if levels.one & CORNER == 0 {
            from & !(CORNER >> die)
        } else if levels.two & CORNER == 0 {
            from & (CORNER | CORNER >> die)
        } else if levels.three & CORNER == 0 {
            from & !CORNER
        } else {
            from
        }
    }

    /// From where a die can be played such that the jan is full afterwards.
    #[inline]
    fn filling(&self, levels: Levels, die: u32) -> u32 {
        let short = self.jan & !levels.two;
        let steady = !self.jan | levels.three;
        match short {
            0 if self.jan == 0 => 0,
            0 => steady,
            _ if is_single(short & levels.one) && is_single(short) => short >> die & steady,
            _ => 0,
        }
    }

    fn open_plays(&self) -> Plays {
        let (levels, [high, low]) = (self.levels, self.dice);
        let lacked = self.lacked();
        let [by_high, by_low, by_both] = [lacked >> high, lacked >> low, lacked >> high >> low];
        let (mut any, mut full, mut sources) = ([0; 2], [0; 2], 0);
        for place in each(levels.one & self.open >> high) {
            let from = 1 << place;
            let (after, pairs) = self.pairs(from);
            if pairs == 0 {
                continue;
            }
            let least = pairs & self.least(from);
            if least != 0 {
                any[0] |= from;
            }
            if self.jan != 0 {
                let filling = pairs & self.filling(after, low);
                if filling & least != 0 {
                    full[0] |= from;
                }
                if filling != 0 {
                    sources |= from & by_high | filling & by_low;
                    if filling & by_low != 0 {
                        sources |= from & by_both;
                    }
                }
            }
        }
        if !self.is_double() {
            let run = levels.one & self.open >> low & self.open >> low >> high & !(self.open >> high);
            for place in each(run & !(levels.one >> low)) {
                let (from, rest) = (1 << place, 1 << place << low);
                let after = levels.after(self.four, from, rest);
                if self.last_steps(after, high) & rest == 0 {
                    continue;
                }
                any[1] |= from;
                if self.jan != 0 && self.filling(after, high) & rest != 0 {
                    full[1] |= from;
                    sources |= from & by_both;
                }
            }
        }
        let power = self.power();
        if power.is_some() || any != [0; 2] {
            let power_fills = power == Some(true);
            let fills = power_fills || full != [0; 2];
            return Plays {
                dice: 2,
                first: if fills { full } else { any },
                power: if fills { power_fills } else { power.is_some() },
                exit: false,
                full: fills,
                sources,
            };
        }
        self.single_steps(lacked)
    }

    /// The plays of one die, the higher one if possible.
    fn single_steps(&self, lacked: u32) -> Plays {
        for (which, die) in self.dice.into_iter().enumerate() {
            let all = self.last_steps(self.levels, die);
            if all != 0 {
                let filling = if self.jan == 0 { 0 } else { all & self.filling(self.levels, die) };
                let mut plays =
                    Plays { dice: 1, full: filling != 0, sources: filling & lacked >> die, ..Plays::default() };
                plays.first[which] = if filling != 0 { filling } else { all };
                return plays;
            }
        }
        Plays::default()
    }

    /// Whether the corner can be taken by power, and if so, whether the jan is full then.
    fn power(&self) -> Option<bool> {
        let corners = CORNER | HIS_CORNER;
        if self.levels.one & corners != 0 || self.open & corners != corners {
            return None;
        }
        let stand = |corner: u32| {
            let [one, other] = self.dice.map(|die| corner >> die);
            if one == other { self.levels.two & one != 0 } else { self.levels.one & (one | other) == one | other }
        };
        if !stand(HIS_CORNER) || stand(CORNER) {
            return None;
        }
        let mut end = self.own;
        for die in self.dice {
            end.remove(12 - die);
            end.add(11);
        }
        let end = Levels::of(end);
        (end.one & self.forbidden == 0).then(|| self.jan != 0 && end.fills(self.jan))
    }
}
