//! Pig, for two: roll as often as you dare, hold to bank; who banks the target first wins.
//!
//! Action 0 rolls, action 1 holds. A roll is a chance turn of six outcomes, face = outcome + 1. Points beyond the
//! target count for nothing: the table stops at what wins. Ones may come for ever, so `max_plies` ends the game.
//!
//! At 20 points the best player rolls until the table wins and then holds; no earlier hold is right (proven by value
//! iteration in `tests/all/dice.rs`). Targets well above that make holding early worthwhile.
//!
//! Invariant: a turn begins with nothing on the table, and the mover's bank and the table together are at most the
//! target.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Value};
use azpy_core::text::{Notation, outcome_text, play_line, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, spread};
use crate::notation::{PLAYERS, in_range, limit_of_plies, read_number};
use crate::svg::{self, Svg};

/// Throw the die.
pub const ROLL: Action = 0;
/// Bank the points on the table and pass the dice.
pub const HOLD: Action = 1;

const FACES: Action = 6;
const MAX_TARGET: usize = 1000;
/// Plies for each point of the target. At 20 points a sensible game takes about 50 plies and the cap is 400.
const PLIES_A_POINT: usize = 20;

const FORM: &str = "a position is written as in \"6/0 table 4 player 1 ply 9\", with \"rolling\" behind it where the die \
                    is in the air";

/// A position of Pig.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn};
/// use azpy_games::{Pig, pig};
///
/// let mut game = Pig::new(20)?;
/// game.try_play(pig::ROLL).unwrap();
/// assert_eq!(game.turn(), Turn::Chance);
/// game.try_play(5).unwrap(); // a six
/// game.try_play(pig::HOLD).unwrap();
/// assert_eq!(game.banks(), [6, 0]);
/// assert_eq!(game.turn(), Turn::Player(Player::One));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pig {
    target: u16,
    max_plies: u16,
    plies: u16,
    banks: [u16; 2],
    /// Points of this turn, lost on a 1.
    table: u16,
    mover: Player,
    /// The die is in the air.
    rolling: bool,
}

impl Default for Pig {
    /// The game to 20 points.
    fn default() -> Self {
        Self::start(20, 20 * PLIES_A_POINT as u16)
    }
}

impl Pig {
    /// The start of a game to `target` points, cut after 20 plies a point.
    ///
    /// # Errors
    /// If the target is not from 1 to 1,000.
    pub fn new(target: usize) -> Result<Self, Error> {
        Self::with_max_plies(target, target.saturating_mul(PLIES_A_POINT))
    }

    /// The start of a game to `target` points, cut after `max_plies` plies: then the higher bank wins.
    ///
    /// # Errors
    /// If the target is not from 1 to 1,000 or the plies not from 1 to 65,535.
    pub fn with_max_plies(target: usize, max_plies: usize) -> Result<Self, Error> {
        Ok(Self::start(in_range("the target", target, 1..=MAX_TARGET)?, limit_of_plies(max_plies)?))
    }

    fn start(target: u16, max_plies: u16) -> Self {
        Self { target, max_plies, plies: 0, banks: [0; 2], table: 0, mover: Player::Zero, rolling: false }
    }

    /// The banked points, by player.
    #[must_use]
    pub fn banks(&self) -> [usize; 2] {
        self.banks.map(usize::from)
    }

    /// The points a 1 would lose.
    #[must_use]
    pub fn table(&self) -> usize {
        usize::from(self.table)
    }

    fn has_won(&self, player: Player) -> bool {
        self.banks[player.index()] == self.target
    }

    fn is_over(&self) -> bool {
        self.has_won(Player::Zero) || self.has_won(Player::One) || self.plies >= self.max_plies
    }

    fn hold_wins(&self) -> bool {
        self.banks[self.mover.index()] + self.table == self.target
    }

    fn pass(&mut self) {
        self.table = 0;
        self.mover = self.mover.opponent();
    }

    /// Refuses what no line of play leads to, as far as points and turns tell.
    fn check(&self) -> Result<(), Error> {
        let [wins_zero, wins_one] = PLAYERS.map(|player| self.has_won(player));
        let own = self.mover.index();
        if wins_zero && wins_one {
            return Err(invalid!("both players have banked {}", self.target));
        }
        if (wins_zero || wins_one) && (self.has_won(self.mover) || self.table > 0 || self.rolling) {
            let (winner, loser) = if wins_zero { (0, 1) } else { (1, 0) };
            let then = format!("then the table is empty, nothing rolls and it is player {loser}'s turn");
            return Err(invalid!("player {winner} has won: {then}"));
        }
        let wins = self.target - self.banks[own];
        if self.table > wins {
            let expected = format!("the table stops at the {wins} points that player {own} needs");
            return Err(Error::form(expected, self.table));
        }
        // No face is worth a single point, but one is all that may be left to win.
        for (points, most) in [(self.banks[0], self.target), (self.banks[1], self.target), (self.table, wins)] {
            if points == 1 && most != 1 {
                return Err(invalid!("no roll is worth a single point, but a bank or the table has one"));
            }
        }
        let needed = self.fewest_plies();
        if u32::from(self.plies) < needed {
            let expected = format!("such a position comes at ply {needed} at the earliest");
            return Err(Error::form(expected, format!("ply {}", self.plies)));
        }
        Ok(())
    }

    /// The position that a text like `6/0 table 4 player 1 ply 9` means.
    fn read(&self, text: &str) -> Result<Self, Error> {
        let words: Vec<_> = text.split_whitespace().take(9).collect();
        let [banks, "table", table, "player", mover, "ply", ply, ref behind @ ..] = words[..] else {
            return Err(Error::form(FORM, shown(text)));
        };
        let rolling = match behind {
            [] => false,
            ["rolling"] => true,
            _ => return Err(Error::form(FORM, shown(text))),
        };
        let (zero, one) = banks.split_once('/').unwrap_or((banks, ""));
        let bank = |player, word| read_number(&format!("the bank of player {player}"), word, 0, self.target);
        let mover = PLAYERS[usize::from(read_number("the player", mover, 0, 1)?)];
        let plies = read_number("the ply", ply, 0, self.max_plies)?;
        let (banks, table) = ([bank(0, zero)?, bank(1, one)?], read_number("the table", table, 0, self.target)?);
        let state = Self { plies, banks, table, mover, rolling, ..*self };
        state.check()?;
        Ok(state)
    }

    /// A lower bound of the plies up to here. A player's turns so far were banked or lost on a one. Each is a roll at
    /// least, points come in sixes, and to bank is a ply of its own.
    fn fewest_plies(&self) -> u32 {
        let sixes = |points: u16| u32::from(points).div_ceil(6);
        // Player 0 has finished as many turns as player 1, or one more where that one is to move.
        let ahead = u32::from(self.mover == Player::One);
        let [zero, one] = self.banks.map(|bank| u32::from(bank > 0));
        let turns = one.max(zero.saturating_sub(ahead));
        let banked = |bank, turns| {
            // As many turns as there are sixes are best banked: more points in a turn cost as many rolls.
            let sixes = sixes(bank);
            2 * sixes.max(turns) + sixes.min(turns)
        };
        let so_far = banked(self.banks[0], turns + ahead) + banked(self.banks[1], turns);
        so_far + 2 * sixes(self.table) + u32::from(self.rolling)
    }
}

impl Game for Pig {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: 2, obs_shape: [5, 1, 1], max_plies: usize::from(self.max_plies), num_symmetries: 1 }
    }

    fn turn(&self) -> Turn {
        if self.is_over() {
            Turn::Terminal
        } else if self.rolling {
            Turn::Chance
        } else {
            Turn::Player(self.mover)
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.push(ROLL);
        if self.table > 0 {
            out.push(HOLD);
        }
    }

    fn play(&mut self, action: Action) {
        debug_assert!(!self.is_over());
        self.plies += 1;
        if self.rolling {
            debug_assert!(action < FACES, "{action} is not a face of the die");
            self.rolling = false;
            match action {
                0 => self.pass(),
                _ => {
                    let wins = self.target - self.banks[self.mover.index()];
                    self.table = wins.min(self.table + action as u16 + 1);
                }
            }
        } else if action == ROLL {
            self.rolling = true;
        } else {
            debug_assert!(action == HOLD);
            self.banks[self.mover.index()] += self.table;
            self.pass();
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend((0..FACES).map(|outcome| (outcome, 1.0 / FACES as f32)));
    }

    fn outcome(&self) -> Value {
        // A bank that has reached the target is the higher one.
        Value(f32::from(self.banks[0].cmp(&self.banks[1]) as i8))
    }

    fn encode(&self, row: &mut [f32]) {
        let part = |points: u16| f32::from(points) / f32::from(self.target);
        row.copy_from_slice(&[
            part(self.banks[self.mover.index()]),
            part(self.banks[self.mover.opponent().index()]),
            part(self.table),
            f32::from(u8::from(self.hold_wins())),
            f32::from(self.plies) / f32::from(self.max_plies),
        ]);
    }

    fn key(&self) -> u128 {
        // The clock is part of the position: it decides how many rolls are left.
        let high = u64::from(self.target)
            | u64::from(self.max_plies) << 16
            | u64::from(self.plies) << 32
            | u64::from(self.rolling) << 48
            | (self.mover.index() as u64) << 49;
        let low = u64::from(self.banks[0]) | u64::from(self.banks[1]) << 16 | u64::from(self.table) << 32;
        spread(Tag::Pig, high, low)
    }

    fn render(&self) -> String {
        let marks = PLAYERS.map(|player| if player == self.mover { '>' } else { ' ' });
        format!(
            "{} player 0: {} of {target}\n{} player 1: {} of {target}\ntable: {}{}, ply {} of {}",
            marks[0],
            self.banks[0],
            marks[1],
            self.banks[1],
            self.table,
            if self.rolling { ", rolling" } else { "" },
            self.plies,
            self.max_plies,
            target = self.target,
        )
    }
}

impl Notation for Pig {
    fn action_name(&self, action: Action) -> String {
        if self.rolling {
            return (action + 1).to_string();
        }
        match action {
            ROLL => "roll".to_owned(),
            HOLD => "hold".to_owned(),
            _ => action.to_string(),
        }
    }

    fn result_text(&self) -> String {
        let [zero, one] = self.banks;
        outcome_text(self, &format!("{}-{}", zero.max(one), zero.min(one)))
    }

    fn counts(&self) -> Vec<String> {
        let mut counts = self.banks.map(|bank| format!("{bank} of {}", self.target));
        if !self.is_over() {
            counts[self.mover.index()] += &format!(", {} on the table", self.table);
        }
        counts.into()
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn to_svg(&self) -> String {
        const BAR: f32 = 240.0;
        let mut picture = Svg::on_ground(410.0, 96.0, self);
        let width = |points: u16| BAR * f32::from(points) / f32::from(self.target);
        for (player, y) in PLAYERS.into_iter().zip([18.0, 58.0]) {
            let (bank, color) = (self.banks[player.index()], svg::color(player));
            picture.text(45.0, y + 10.0, 14.0, &format!("player {}", player.index()));
            picture.rect(90.0, y, BAR, 20.0, &format!("fill=\"{}\"", svg::EMPTY));
            picture.rect(90.0, y, width(bank), 20.0, &format!("fill=\"{color}\""));
            if player == self.mover {
                let table = format!("fill=\"{color}\" fill-opacity=\"0.4\"");
                picture.rect(90.0 + width(bank), y, width(self.table), 20.0, &table);
            }
            picture.rect(90.0, y, BAR, 20.0, &format!("fill=\"none\" stroke=\"{}\"", svg::LINE));
            picture.text(375.0, y + 10.0, 14.0, &format!("{bank} of {}", self.target));
        }
        picture.done()
    }

    /// A position as in `6/0 table 4 player 1 ply 9`, with `rolling` behind it where the die is in the air, or a line of
    /// play. A position must be one that so many plies can bring about, as far as points and turns tell.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        let is_position = text.split_whitespace().next().is_some_and(|first| first.contains('/'));
        if is_position { Ok(self.read(text)?) } else { play_line(self, text) }
    }

    fn to_text(&self) -> Option<String> {
        let Self { plies, banks: [zero, one], table, mover, .. } = *self;
        let rolling = if self.rolling { " rolling" } else { "" };
        Some(format!("{zero}/{one} table {table} player {} ply {plies}{rolling}", mover.index()))
    }
}
