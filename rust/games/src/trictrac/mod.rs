//! Trictrac, the ordinary game of the French grand trictrac; x (player 0) begins.
//!
//! Each player numbers the fields from the own side. An action is a step from field `action + 1` by the higher die or
//! a double, `24 + ...` by the lower die; 48 the corner by power; 49 hold and 50 leave. `points.rs` has the points of
//! a roll, `plays.rs` the filters that leave the legal plays, and `encoding.rs` the observation.
//!
//! **One line a play**: each position at the end of a turn is reached by one line of actions, the least one.
//!
//! Invariant: a side's checkers, those off included, are 15; no field has both colors. Where a player has the turn,
//! the actions that are legal are known: `legal`, `power`.

mod board;
mod encoding;
mod exits;
mod notation;
mod picture;
mod plays;
mod points;
mod rolled;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text, play_line};

use crate::error::Error;
use crate::key::{Tag, digest};
use crate::notation::{in_range, limit_of_plies};
use crate::tables::{CHECKERS, ROLLS, Side, each, from_other_side, key_words, roll_name, write_outcomes};
use board::{HIS_CORNER, HIS_JANS, Levels};
use points::{SIX_TABLES_ROLL, Score};
use rolled::{Plays, Rolled};

const FIELDS: usize = 24;
const POWER: Action = 48;
const HOLD: Action = 49;
const LEAVE: Action = 50;
const ACTIONS: usize = 51;

const HOLES: u8 = 12;
/// The longest of many random games took some 800 plies (November 2026).
const MAX_PLIES: u16 = 3000;

/// What comes next, if the game is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The player whose turn it is rolls.
    Roll,
    /// A hole was won by the roll: hold or leave.
    Choice,
    /// Steps.
    Play,
}

/// A position of trictrac. Small and `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Turn};
/// use azpy_core::text::Notation;
/// use azpy_games::Trictrac;
///
/// let mut game = Trictrac::default();
/// for action in game.parse_actions("6-5 1/7 1/6")? {
///     game.try_play(action).unwrap();
/// }
/// assert_eq!(game.turn(), Turn::Chance);
/// assert!(game.to_text().unwrap().starts_with("x=1:13,6:1,7:1 o=1:15 turn=o "));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trictrac {
    /// By player, each from the own side; in mid-turn after the first step.
    sides: [Side; 2],
    score: Score,
    /// Rolls of the setting by player, 3 at most.
    rolls: [u8; 2],
    mover: Player,
    stage: Stage,
    /// The higher die first; zeros before the roll.
    dice: [u8; 2],
    /// The action of the first step, in mid-turn.
    first: Option<u8>,
    /// Holes that win.
    goal: u8,
    plies_left: u16,
    max_plies: u16,
    /// What follows from the others, so that it is found once a roll: the other player's points of the roll; whether two
    /// steps are played; whether the turn must end with a full jan; from where legal steps go, by the die; and whether
    /// the corner can be taken by power.
    owed: u8,
    two_steps: bool,
    keep_full: bool,
    power: bool,
    legal: [u32; 2],
}

impl Default for Trictrac {
    /// Twelve holes win.
    fn default() -> Self {
        Self::start(HOLES, MAX_PLIES)
    }
}

impl Trictrac {
    /// The start of a game that `holes` holes win, and that is a draw after `max_plies` plies, rolls counted.
    ///
    /// # Errors
    /// If `holes` is not from 1 to 12, or `max_plies` not from 1 to 65,535.
    pub fn new(holes: usize, max_plies: usize) -> Result<Self, Error> {
        Ok(Self::start(in_range("holes", holes, 1..=usize::from(HOLES))?, limit_of_plies(max_plies)?))
    }

    fn start(goal: u8, max_plies: u16) -> Self {
        Self {
            sides: [Side::ALL_AT_TALON; 2],
            score: Score::START,
            rolls: [0; 2],
            mover: Player::Zero,
            stage: Stage::Roll,
            dice: [0; 2],
            first: None,
            goal,
            plies_left: max_plies,
            max_plies,
            owed: 0,
            two_steps: false,
            keep_full: false,
            power: false,
            legal: [0; 2],
        }
    }

    /// A player's checkers, from the own side: on fields 1 to 24, off.
    #[must_use]
    pub fn checkers(&self, player: Player) -> [u32; 25] {
        self.sides[player.index()].counts()
    }

    /// Points and holes of a player, and whether the run of marks is unbroken.
    #[must_use]
    pub fn score(&self, player: Player) -> (u8, u8, bool) {
        let (score, player) = (self.score, player.index());
        (score.points[player], score.holes[player], score.runs[player])
    }

    /// The roll that is being played, the higher die first.
    #[must_use]
    pub fn dice(&self) -> Option<[u8; 2]> {
        (self.stage != Stage::Roll).then_some(self.dice)
    }

    #[inline]
    fn own(&self) -> Side {
        self.sides[self.mover.index()]
    }

    #[inline]
    fn other(&self) -> Side {
        self.sides[self.mover.opponent().index()]
    }

    /// The next roll is the first of the game. (A later setting begins with points or holes.)
    #[inline]
    fn is_opening(&self) -> bool {
        self.rolls == [0; 2] && self.score == Score::START && self.sides == [Side::ALL_AT_TALON; 2]
    }

    #[inline]
    fn winner(&self) -> Option<Player> {
        self.score.winner(self.goal)
    }

    #[inline]
    fn is_double(&self) -> bool {
        self.dice[0] == self.dice[1]
    }

    /// The die's number, 0 the higher one, and the place of a step.
    #[inline]
    fn parts(action: Action) -> (usize, u32) {
        (action as usize / FIELDS, action % FIELDS as u32)
    }

    #[inline]
    fn die(&self, which: usize) -> u32 {
        u32::from(self.dice[which])
    }

    /// The mover's checkers before the first step of the turn.
    #[inline]
    fn before(&self) -> Side {
        let mut own = self.own();
        if let Some(action) = self.first {
            let (which, place) = Self::parts(Action::from(action));
            let to = place + self.die(which);
            if to < FIELDS as u32 {
                own.remove(to);
            }
            own.add(place);
        }
        own
    }

    /// The position before the first step of the turn, for its plays.
    #[inline]
    fn rolled(&self, before: Side) -> Rolled {
        let other = self.other();
        let his = other.can_fill();
        let forbidden = HIS_CORNER | if his[0] { HIS_JANS[0] } else { 0 } | if his[1] { HIS_JANS[1] } else { 0 };
        Rolled::new(before, from_other_side(other.taken()), self.dice, forbidden)
    }

    /// The points of the roll, before the first step; `third` says that it is the mover's third of the setting.
    fn points(&self, rolled: &Rolled, plays: &Plays, third: bool) -> [u8; 2] {
        let mut other = Levels::of(self.other());
        other = Levels {
            one: from_other_side(other.one),
            two: from_other_side(other.two),
            three: from_other_side(other.three),
        };
        points::points(rolled, other, plays, third)
    }

    /// Keeps what the roll allows.
    #[inline]
    fn allow(&mut self, plays: &Plays) {
        (self.legal, self.power) = (plays.first, plays.power);
        (self.two_steps, self.keep_full) = (plays.dice == 2, plays.keep_full());
    }

    fn roll(&mut self, outcome: usize) {
        let me = self.mover.index();
        self.dice = ROLLS[outcome];
        self.rolls[me] = (self.rolls[me] + 1).min(SIX_TABLES_ROLL + 1);
        let rolled = self.rolled(self.own());
        let plays = rolled.plays();
        let [mine, his] = self.points(&rolled, &plays, self.rolls[me] == SIX_TABLES_ROLL);
        self.rolls[me] = self.rolls[me].min(SIX_TABLES_ROLL);
        let hole = self.score.mark(self.mover, mine, self.goal);
        if self.winner().is_some() {
            self.dice = [0; 2];
            return;
        }
        self.owed = his;
        self.allow(&plays);
        if hole {
            self.stage = Stage::Choice;
        } else {
            self.begin();
        }
    }

    /// The mover plays the roll, if it can be played.
    #[inline]
    fn begin(&mut self) {
        self.stage = Stage::Play;
        if self.legal == [0; 2] && !self.power {
            self.end_turn();
        }
    }

    fn step(&mut self, action: Action) {
        let me = self.mover.index();
        if action == POWER {
            for die in self.dice {
                self.sides[me].remove(12 - u32::from(die));
                self.sides[me].add(11);
            }
            self.end_turn();
            return;
        }
        let (which, place) = Self::parts(action);
        debug_assert!(self.legal[which] >> place & 1 == 1);
        let before = self.own();
        self.sides[me].step(place, self.die(which));
        if self.first.is_some() || !self.two_steps {
            self.end_turn();
        } else {
            self.first = Some(action as u8);
            self.power = false;
            self.legal = self.rolled(before).seconds(which, place, self.keep_full);
        }
    }

    fn end_turn(&mut self) {
        let other = self.mover.opponent();
        self.score.mark(other, self.owed, self.goal);
        self.clear_turn();
        if self.winner().is_some() {
            return;
        }
        if self.own() == Side::NONE {
            self.begin_setting();
        } else {
            self.mover = other;
        }
    }

    /// Nothing of a roll stays.
    #[inline]
    fn clear_turn(&mut self) {
        (self.stage, self.dice, self.first, self.owed) = (Stage::Roll, [0; 2], None, 0);
        self.allow(&Plays::default());
    }

    fn begin_setting(&mut self) {
        self.sides = [Side::ALL_AT_TALON; 2];
        self.rolls = [0; 2];
    }

    fn leave(&mut self) {
        self.score.points = [0; 2];
        self.score.runs = [true; 2];
        self.clear_turn();
        self.begin_setting();
    }
}

impl Game for Trictrac {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: ACTIONS,
            obs_shape: [encoding::FEATURES, 1, 1],
            max_plies: usize::from(self.max_plies),
            num_symmetries: 1,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.winner().is_some() || self.plies_left == 0 {
            Turn::Terminal
        } else if self.stage == Stage::Roll {
            Turn::Chance
        } else {
            Turn::Player(self.mover)
        }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.stage == Stage::Choice {
            out.extend([HOLD, LEAVE]);
            return;
        }
        let [high, low] = self.legal;
        out.extend(each(high));
        out.extend(each(low).map(|place| FIELDS as Action + place));
        if self.power {
            out.push(POWER);
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        debug_assert!(self.turn() != Turn::Terminal);
        self.plies_left -= 1;
        match (self.stage, action) {
            (Stage::Roll, outcome) => self.roll(outcome as usize),
            (Stage::Choice, LEAVE) => self.leave(),
            (Stage::Choice, _) => self.begin(),
            (Stage::Play, action) => self.step(action),
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        write_outcomes(self.is_opening(), out);
    }

    fn outcome(&self) -> Value {
        Value::won_by(self.winner(), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        encoding::encode(self, row);
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(encoding::divisors())
    }

    #[inline]
    fn key(&self) -> u128 {
        let (score, rolls) = (self.score, self.rolls);
        // Only the number of plies left decides how the game can end.
        let facts = [
            (u64::from(score.points[0]), 4),
            (u64::from(score.points[1]), 4),
            (u64::from(score.holes[0]), 4),
            (u64::from(score.holes[1]), 4),
            (u64::from(score.runs[0]), 1),
            (u64::from(score.runs[1]), 1),
            (u64::from(rolls[0]), 2),
            (u64::from(rolls[1]), 2),
            (self.mover as u64, 1),
            (self.stage as u64, 2),
            (u64::from(self.dice[0]), 3),
            (u64::from(self.dice[1]), 3),
            (u64::from(self.first.unwrap_or(u8::MAX >> 2)), 6),
            (u64::from(self.goal), 4),
            (u64::from(self.plies_left), 16),
        ];
        digest(Tag::Trictrac, &key_words(self.sides, facts))
    }

    fn render(&self) -> String {
        notation::render(self)
    }
}

impl Notation for Trictrac {
    /// A roll as `3-1`; an action as `1/4`, `24/off`, `power`, `hold` or `leave`.
    fn action_name(&self, action: Action) -> String {
        let name = match self.turn() {
            Turn::Chance => roll_name(action),
            Turn::Player(_) => notation::name_of(self, action),
            Turn::Terminal => None,
        };
        name.unwrap_or_else(|| action.to_string())
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["red", "blue"])
    }

    fn result_text(&self) -> String {
        let [zero, one] = self.score.holes;
        let holes = format!("{} holes to {}", zero.max(one), zero.min(one));
        let how = if self.winner().is_some() { holes } else { format!("by the limit of plies, {holes}") };
        outcome_text(self, &how)
    }

    fn counts(&self) -> Vec<String> {
        [Player::Zero, Player::One].map(|player| notation::score_text(self, player)).into()
    }

    fn to_svg(&self) -> String {
        picture::to_svg(self)
    }

    /// Where the checker stands, and where it goes: a field, or the tray. The corner for `power`.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let Turn::Player(player) = self.turn() else {
            return Vec::new();
        };
        match action {
            0..POWER => {
                let (which, place) = Self::parts(action);
                let to = place + self.die(which);
                vec![picture::touch(player, Some(place)), picture::touch(player, (to < 24).then_some(to))]
            }
            POWER => vec![picture::touch(player, Some(11))],
            _ => Vec::new(),
        }
    }

    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        if text.contains('=') { Ok(notation::read(self, text)?) } else { play_line(self, text) }
    }

    fn to_text(&self) -> Option<String> {
        Some(notation::to_text(self))
    }
}
