//! The plays of a roll where checkers may leave the board: few checkers are left to move, and the lines are written down.

use super::board::{CORNER, HOME, Levels};
use super::rolled::{Plays, Rolled};
use crate::tables::{Side, each};

/// At most seven fields have checkers (six of home and one outside), so each order of the dice has 49 lines.
const MOST_LINES: usize = 98;

/// A play of one step or two.
struct Line {
    which: usize,
    first: u32,
    second: Option<u32>,
    end: Side,
    overflows: usize,
    levels: Levels,
}

impl Line {
    fn exits(&self) -> bool {
        self.levels.one == 0
    }
}

/// Which lines are legal.
#[derive(Clone, Copy)]
struct Filter {
    /// One die alone is played, and which.
    single: Option<usize>,
    overflows: usize,
    exit: bool,
    full: bool,
}

/// From where a die can be played, and from where that is an overflow.
fn steps(own: u32, open: u32, die: u32) -> (u32, u32) {
    let onward = own & open >> die;
    if own & !HOME != 0 || own == 0 {
        return (onward, 0);
    }
    let exact = 1 << (24 - die);
    let rearmost = own & own.wrapping_neg();
    let overflow = if rearmost > exact { rearmost } else { 0 };
    (onward | own & exact | overflow, overflow)
}

impl Rolled {
    fn may_end(&self, levels: Levels) -> bool {
        levels.one & self.forbidden == 0 && (levels.one & !levels.two) & CORNER == 0
    }

    /// All lines after the first filter in the order of their actions: of two steps, or of the one die given.
    fn lines(&self, single: Option<usize>, mut visit: impl FnMut(Line)) {
        let orders = if self.is_double() { 1 } else { 2 };
        for which in 0..orders {
            if single.is_some_and(|single| single != which) {
                continue;
            }
            let [die, other] = [self.dice[which], self.dice[1 - which]];
            let (places, overflow) = steps(self.levels.one, self.open, die);
            for first in each(places) {
                let mut half = self.own;
                half.step(first, die);
                let overflows = (overflow >> first & 1) as usize;
                let mut add = |second, end, overflows| {
                    let levels = Levels::of(end);
                    if self.may_end(levels) {
                        visit(Line { which, first, second, end, overflows, levels });
                    }
                };
                if single.is_some() {
                    add(None, half, overflows);
                    continue;
                }
                let (places, overflow) = steps(half.taken(), self.open, other);
                for second in each(places) {
                    let mut end = half;
                    end.step(second, other);
                    add(Some(second), end, overflows + (overflow >> second & 1) as usize);
                }
            }
        }
    }

    /// The lines that stay, and what the plays after the second filter are worth.
    fn filter(&self) -> (Filter, Plays) {
        let lacked = self.lacked();
        for (dice, single) in [(2, None), (1, Some(0)), (1, Some(1))] {
            let (mut fewest, mut plays) = (usize::MAX, Plays::default());
            self.lines(single, |line| {
                if line.overflows > fewest {
                    return;
                }
                if line.overflows < fewest {
                    (fewest, plays) = (line.overflows, Plays { dice, ..Plays::default() });
                }
                plays.exit |= line.exits();
                if self.jan != 0 && line.levels.fills(self.jan) {
                    plays.full = true;
                    plays.sources |= self.line_sources(&line, lacked);
                }
            });
            if plays.dice > 0 {
                let filter = Filter { single, overflows: fewest, exit: plays.exit, full: plays.keep_full() };
                return (filter, plays);
            }
        }
        (Filter { single: None, overflows: usize::MAX, exit: false, full: false }, Plays::default())
    }

    /// From where a line brings the checker that the jan lacks.
    fn line_sources(&self, line: &Line, lacked: u32) -> u32 {
        let [die, other] = [self.dice[line.which], self.dice[1 - line.which]];
        let mut sources = 1 << line.first & lacked >> die;
        if let Some(second) = line.second {
            sources |= 1 << second & lacked >> other;
            if line.first + die == second {
                sources |= 1 << line.first & lacked >> die >> other;
            }
        }
        sources
    }

    /// The legal lines.
    fn legal_lines(&self, filter: Filter, mut visit: impl FnMut(Line)) {
        let (mut ends, mut count) = ([Side::NONE; MOST_LINES], 0);
        self.lines(filter.single, |line| {
            let stays = line.overflows == filter.overflows
                && (!filter.exit || line.exits())
                && (!filter.full || line.levels.fills(self.jan));
            if stays && !ends[..count].contains(&line.end) {
                ends[count] = line.end;
                count += 1;
                visit(line);
            }
        });
    }
}

/// All legal plays of the roll.
pub(super) fn plays(rolled: &Rolled) -> Plays {
    let (filter, mut plays) = rolled.filter();
    if plays.dice > 0 {
        rolled.legal_lines(filter, |line| plays.first[line.which] |= 1 << line.first);
    }
    plays
}

/// From where a second step can go by the higher die and by the lower one.
pub(super) fn seconds(rolled: &Rolled, which: usize, place: u32) -> [u32; 2] {
    let (filter, _) = rolled.filter();
    let by = if rolled.is_double() { 0 } else { 1 - which };
    let mut legal = [0; 2];
    rolled.legal_lines(filter, |line| {
        if (line.which, line.first) == (which, place)
            && let Some(second) = line.second
        {
            legal[by] |= 1 << second;
        }
    });
    legal
}
