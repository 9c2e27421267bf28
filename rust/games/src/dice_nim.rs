//! Dice-Nim: a heap of counters; roll d in {1, 2, 3}, then take 1 to d of them. The player who takes the last one
//! wins.
//!
//! A roll's outcome is d - 1, and the action that takes n counters is n - 1. The observation is the same for both
//! players, as the game is.
//!
//! Invariant: a roll lies on the table at a player's turn and at no other time.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::text::{Notation, outcome_text, play_line, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, spread};
use crate::notation::{PLAYERS, in_range, read_number};
use crate::svg::{self, Svg};

const SIDES: Action = 3;
const MAX_HEAP: usize = 1000;

/// A position of dice-Nim.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Value};
/// use azpy_games::DiceNim;
///
/// let mut game = DiceNim::new(2)?;
/// assert_eq!(game.turn(), Turn::Chance);
/// game.try_play(2).unwrap(); // a three
/// assert_eq!(game.turn(), Turn::Player(Player::Zero));
/// game.try_play(1).unwrap(); // both counters
/// assert_eq!(game.outcome(), Value(1.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DiceNim {
    start: u16,
    heap: u16,
    /// What was rolled for this turn; `None` before the roll.
    roll: Option<u8>,
    mover: Player,
}

impl Default for DiceNim {
    /// The game with a heap of 12.
    fn default() -> Self {
        Self::start(12)
    }
}

impl DiceNim {
    /// The start of a game with `heap` counters.
    ///
    /// # Errors
    /// If the heap is not from 1 to 1,000.
    pub fn new(heap: usize) -> Result<Self, Error> {
        in_range("the heap", heap, 1..=MAX_HEAP).map(Self::start)
    }

    fn start(heap: u16) -> Self {
        Self { start: heap, heap, roll: None, mover: Player::Zero }
    }

    /// Counters left.
    #[must_use]
    pub fn heap(&self) -> usize {
        usize::from(self.heap)
    }

    /// The number rolled for this turn; `None` at a chance turn and after the end.
    #[must_use]
    pub fn roll(&self) -> Option<usize> {
        self.roll.map(usize::from)
    }

    /// The position that a text like `heap 9 roll 2 player 1` means.
    fn read(&self, text: &str) -> Result<Self, Error> {
        let words: Vec<_> = text.split_whitespace().take(7).collect();
        let (heap, roll, mover) = match words[..] {
            [_, heap, "player", mover] => (heap, None, mover),
            [_, heap, "roll", roll, "player", mover] => (heap, Some(roll), mover),
            _ => {
                let form = "a position is written as in \"heap 9 roll 2 player 1\", before the roll without it";
                return Err(Error::form(form, shown(text)));
            }
        };
        let heap = read_number("the heap", heap, 0, self.start)?;
        let roll = roll.map(|roll| read_number("the roll", roll, 1, SIDES as u16)).transpose()?;
        let mover = PLAYERS[usize::from(read_number("the player", mover, 0, 1)?)];
        let taken = self.start - heap;
        // Each player's turn takes one counter at least, so player 0 has none or two.
        if (mover == Player::One && taken == 0) || (mover == Player::Zero && taken == 1) {
            let (start, player) = (self.start, mover.index());
            return Err(invalid!("with {heap} of {start} counters left player {player} cannot be to move"));
        }
        if heap == 0 && roll.is_some() {
            return Err(invalid!("the heap is empty and the game is over, so there is no roll"));
        }
        Ok(Self { heap, roll: roll.map(|roll| roll as u8), mover, ..*self })
    }
}

impl Game for DiceNim {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: SIDES as usize,
            obs_shape: [1 + SIDES as usize, 1, 1],
            // A roll and a counter each time.
            max_plies: 2 * usize::from(self.start),
            num_symmetries: 1,
        }
    }

    fn turn(&self) -> Turn {
        match self.roll {
            _ if self.heap == 0 => Turn::Terminal,
            None => Turn::Chance,
            Some(_) => Turn::Player(self.mover),
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let most = u16::from(self.roll.unwrap_or(0)).min(self.heap);
        out.extend(0..Action::from(most));
    }

    fn play(&mut self, action: Action) {
        let number = action as u16 + 1;
        match self.roll {
            None => {
                debug_assert!(self.heap > 0 && action < SIDES);
                self.roll = Some(number as u8);
            }
            Some(roll) => {
                debug_assert!(number <= u16::from(roll) && number <= self.heap);
                self.heap -= number;
                self.roll = None;
                self.mover = self.mover.opponent();
            }
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend((0..SIDES).map(|outcome| (outcome, 1.0 / SIDES as f32)));
    }

    fn outcome(&self) -> Value {
        // The last to take is the one who is not to move now.
        Value::won_by(Some(self.mover.opponent()), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        row[0] = f32::from(self.heap) / f32::from(self.start);
        if let Some(roll) = self.roll {
            row[usize::from(roll)] = 1.0;
        }
    }

    fn key(&self) -> u128 {
        let low = u64::from(self.start)
            | u64::from(self.heap) << 16
            | u64::from(self.roll.unwrap_or(0)) << 32
            | (self.mover.index() as u64) << 40;
        spread(Tag::DiceNim, 0, low)
    }

    fn render(&self) -> String {
        let roll = self.roll.map_or("none".to_owned(), |roll| roll.to_string());
        format!("player {}, heap {} of {}, roll {roll}", self.mover.index(), self.heap, self.start)
    }
}

impl Notation for DiceNim {
    fn action_name(&self, action: Action) -> String {
        match self.roll {
            None => format!("roll {}", action + 1),
            Some(_) => format!("take {}", action + 1),
        }
    }

    fn result_text(&self) -> String {
        outcome_text(self, "by taking the last counter")
    }

    fn counts(&self) -> Vec<String> {
        let count = format!("{} of {} left", self.heap, self.start);
        PLAYERS.map(|player| if player == self.mover { count.clone() } else { String::new() }).into()
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn to_svg(&self) -> String {
        const STEP: f32 = 18.0;
        let across = self.start.min(20);
        let [columns, rows] = [across, self.start.div_ceil(across)].map(f32::from);
        let (width, height) = (STEP * columns + 85.0, f32::max(STEP * rows, 44.0) + 24.0);
        let mut picture = Svg::on_ground(width, height, self);
        for counter in 0..self.start {
            let (x, y) = (f32::from(counter % across), f32::from(counter / across));
            let left = if counter < self.heap { svg::INK } else { svg::EMPTY };
            let look = format!("fill=\"{left}\" stroke=\"{}\"", svg::LINE);
            picture.circle(12.0 + STEP * (x + 0.5), 12.0 + STEP * (y + 0.5), 0.4 * STEP, &look);
        }
        // The die: its spots lie in a line from corner to corner.
        let (x, y) = (width - 56.0, 12.0);
        let look = format!("rx=\"6\" fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"2\"", svg::color(self.mover));
        if self.turn() != Turn::Terminal {
            picture.rect(x, y, 44.0, 44.0, &look);
        }
        for spot in 0..self.roll.unwrap_or(0) {
            let at = 22.0 + 12.0 * (f32::from(spot) - f32::from(self.roll.unwrap_or(0) - 1) / 2.0);
            picture.circle(x + at, y + at, 4.5, &format!("fill=\"{}\"", svg::INK));
        }
        picture.done()
    }

    /// A position as in `heap 9 roll 2 player 1`, before the roll `heap 9 player 1`, or a line of play.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        let is_position = text.split_whitespace().next() == Some("heap");
        if is_position { Ok(self.read(text)?) } else { play_line(self, text) }
    }

    fn to_text(&self) -> Option<String> {
        let roll = self.roll.map_or(String::new(), |roll| format!(" roll {roll}"));
        Some(format!("heap {}{roll} player {}", self.heap, self.mover.index()))
    }
}
