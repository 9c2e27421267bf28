//! Words for actions, turns and positions; docs/reference/games.md describes them.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::SplitWhitespace;

use azpy_core::game::{Action, Game, Player, Turn, legal_of};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text, shown, touched_places};

use super::board::{Board, FAR};
use super::{CAT, MAX_TURNS, MOUSE, PLAYERS, STARTS, Status, Variant, WallGame};
use crate::error::{Error, invalid};
use crate::notation::{self, at_turn};

/// The start of freestyle before it is drawn.
const UNDRAWN: &str = "undrawn";
/// What ends a turn early; the second is how the public program writes a turn of no action.
const END_TURN: [&str; 2] = ["end_turn", "---"];
const SIDES: [&str; 2] = ["red", "blue"];
/// Legal actions that an error names, at most.
const NAMED: usize = 20;

impl Notation for WallGame {
    fn action_name(&self, action: Action) -> String {
        self.name(action as usize)
    }

    /// Capitals are Red's pieces, small letters Blue's, but for the letters of the columns.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        match glyph {
            'C' | 'M' if line + 1 < 2 * self.rows() => Some(Player::Zero),
            'c' | 'm' if line + 1 < 2 * self.rows() => Some(Player::One),
            _ => None,
        }
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["red", "blue"])
    }

    fn result_text(&self) -> String {
        let is_classic = self.rules.variant == Variant::Classic;
        let how = match self.captured() {
            Some(Some(_)) if is_classic => "by reaching the goal",
            Some(Some(_)) => "by catching the mouse",
            Some(None) => "by the one-move rule",
            None if self.status == Status::Stuck => "as nothing is left to play",
            None => "by the limit of 100 turns",
        };
        outcome_text(self, how)
    }

    fn counts(&self) -> Vec<String> {
        let action = if self.second { "second" } else { "first" };
        at_turn(self, format!("turn {}, {action} action", self.turns / 2 + 1))
    }

    fn to_svg(&self) -> String {
        self.drawn_as_svg()
    }

    /// The edge of a wall; the piece that steps, and the cell where it goes.
    fn touches(&self, action: Action) -> Vec<Touch> {
        self.touched(action as usize)
    }

    /// Those that can be touched, and the cells of the other player's pieces.
    fn places(&self) -> Vec<Touch> {
        let mut places = touched_places(self);
        if places.is_empty() {
            return places; // the game is over
        }
        for cell in [0, 1].map(|piece| self.pawn(self.mover().opponent(), piece)) {
            let there = self.whole_cell(cell);
            if places.iter().all(|touch| touch.place != there.place) {
                places.push(there);
            }
        }
        places
    }

    /// Names of actions with blanks between; whole turns such as `Cc8`, `Cb7.>e4` or `>e4.^d5` may stand for their two
    /// actions.
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, azpy_core::Error> {
        Ok(self.read_line(text, false)?.1)
    }

    /// Whole turns such as `Cb7.>e4`; the first action of a turn by itself only at the end, the second only at the start.
    fn format_actions(&self, actions: &[Action]) -> Result<String, azpy_core::Error> {
        let (mut turn, mut state, mut words) = (*self, *self, Vec::new());
        let mut first = 0;
        for (index, &action) in actions.iter().enumerate() {
            state.try_play(action)?;
            if !state.second || index + 1 == actions.len() {
                words.push(turn.parts(&actions[first..=index]).join("."));
                (turn, first) = (state, index + 1);
            }
        }
        Ok(words.join(" "))
    }

    /// The notation of [`Notation::to_text`], or actions and turns as in [`Notation::parse_actions`]. Among these `end_turn`
    /// and `---` end a turn early.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        let mut words = text.split_whitespace().peekable();
        if words.next_if_eq(&"cats").is_some() {
            return Ok(self.read_position(words)?);
        }
        if text.trim() == UNDRAWN && self.rules.variant == Variant::Freestyle {
            return Ok(Self::new(self.columns(), self.rows(), self.rules)?);
        }
        Ok(self.read_line(text, true)?.0)
    }

    /// Such as `cats b7 h8 mice a1 h1 walls >e4 ^d5 turn 3 red second not Ca7`: Red's piece first; whose turn it is, and
    /// where one action of the turn is done, the step that would take it back.
    fn to_text(&self) -> Option<String> {
        if self.status == Status::Undrawn {
            return Some(UNDRAWN.to_owned());
        }
        let [cats, mice] =
            [CAT, MOUSE].map(|piece| PLAYERS.map(|player| self.cell_name(self.pawn(player, piece))).join(" "));
        let mut text = format!("cats {cats} mice {mice}");
        for (index, slot) in self.board.walls().enumerate() {
            let before = if index == 0 { " walls " } else { " " };
            write!(text, "{before}{}", self.wall_name(slot)).expect("a String takes all");
        }
        write!(text, " turn {} {}", self.turns / 2 + 1, SIDES[self.mover().index()]).expect("a String takes all");
        if self.second {
            text += " second";
        }
        if self.undo != 0 {
            let back = 2 * self.board.cells() + self.undo.trailing_zeros() as usize;
            write!(text, " not {}", self.name(back)).expect("a String takes all");
        }
        Some(text)
    }
}

impl WallGame {
    /// The cell's name.
    ///
    /// # Panics
    /// If the cell is not on the board.
    #[must_use]
    pub fn cell_name(&self, cell: usize) -> String {
        assert!(cell < self.board.cells(), "cell {cell} must be on the board");
        notation::cell_name(cell / self.rows(), self.rows() - cell % self.rows())
    }

    fn read_cell(&self, text: &str) -> Option<usize> {
        let column = text.bytes().next()?.checked_sub(b'a')?;
        let number: usize = text.get(1..)?.parse().ok()?;
        let on_board = usize::from(column) < self.columns() && (1..=self.rows()).contains(&number);
        let cell = on_board.then(|| usize::from(column) * self.rows() + self.rows() - number)?;
        // One spelling: not e04, not e+4.
        (self.cell_name(cell) == text).then_some(cell)
    }

    fn wall_name(&self, slot: usize) -> String {
        self.wall_called(slot, [">", "^"])
    }

    /// As `wall_name`, for people who do not know the signs.
    pub(super) fn wall_words(&self, slot: usize) -> String {
        self.wall_called(slot, ["wall right of ", "wall above "])
    }

    fn wall_called(&self, slot: usize, kinds: [&str; 2]) -> String {
        let (kind, cell) = (slot / self.board.cells(), slot % self.board.cells());
        // The wall below a cell is the one above the next, also where that is none.
        let (column, row) = (cell / self.rows(), cell % self.rows() + kind);
        format!("{}{}", kinds[kind], notation::cell_name(column, self.rows() - row))
    }

    fn read_wall(&self, text: &str) -> Option<usize> {
        let cell = self.read_cell(text.get(1..)?)?;
        let slot = match text.as_bytes()[0] {
            b'>' => cell,
            b'^' => self.board.cells() + cell - 1,
            _ => return None,
        };
        self.board.is_slot(slot).then_some(slot)
    }

    /// What an action is called here; also one that is not legal.
    pub(super) fn name(&self, action: usize) -> String {
        let slots = 2 * self.board.cells();
        if self.status == Status::Undrawn {
            return format!("start{action}");
        }
        if action < slots {
            return self.wall_name(action);
        }
        let (piece, direction) = self.step_of(action);
        let cell = self.pawn(self.mover(), piece);
        let sign = ["C", "M"][piece];
        match self.step(cell, direction) {
            Some(next) => format!("{sign}{}", self.cell_name(next)),
            None => format!("{sign}-{}", ["right", "down", "left", "up"][direction]),
        }
    }

    /// The piece and the direction of an action that is a step.
    pub(super) fn step_of(&self, action: usize) -> (usize, usize) {
        let step = action - 2 * self.board.cells();
        (step / 4 % 2, step % 4)
    }

    /// The next cell, if there is one, whatever stands between.
    pub(super) fn step(&self, cell: usize, direction: usize) -> Option<usize> {
        let (column, row) = (cell / self.rows(), cell % self.rows());
        let (column, row) = match direction {
            0 => (column + 1, row),
            1 => (column, row + 1),
            2 => (column.checked_sub(1)?, row),
            _ => (column, row.checked_sub(1)?),
        };
        (column < self.columns() && row < self.rows()).then_some(column * self.rows() + row)
    }

    /// The parts of a turn's name, in order; actions are legal one after the other.
    fn parts(&self, actions: &[Action]) -> Vec<String> {
        let (slots, mut state) = (2 * self.board.cells(), *self);
        let (mut pieces, mut walls) = ([None, None], Vec::new());
        for &action in actions {
            let number = action as usize;
            if number < slots {
                walls.push(number);
            } else {
                pieces[(number - slots) / 4] = Some(state.name(number));
            }
            state.play(action);
        }
        walls.sort_unstable();
        pieces.into_iter().flatten().chain(walls.into_iter().map(|slot| self.wall_name(slot))).collect()
    }

    /// The two actions that a turn's name stands for; the order of its parts does not matter. One action, where that
    /// ends the turn.
    fn read_turn(&self, word: &str) -> Option<Vec<Action>> {
        let mut wanted: Vec<_> = word.split('.').collect();
        if self.second || wanted.len() > 2 {
            return None;
        }
        wanted.sort_unstable();
        let is_it = |actions: &[Action]| {
            let mut parts = self.parts(actions);
            parts.sort_unstable();
            parts == wanted
        };
        for first in self.candidates(&wanted) {
            let mut next = *self;
            next.play(first);
            if next.second && next.status == Status::Playing {
                let second = next.candidates(&wanted).into_iter().find(|&second| is_it(&[first, second]));
                if let Some(second) = second {
                    return Some(vec![first, second]);
                }
            } else if is_it(&[first]) {
                return Some(vec![first]);
            }
        }
        None
    }

    /// Legal actions that may belong to a turn of these parts: few, as there are hundreds of walls.
    fn candidates(&self, parts: &[&str]) -> Vec<Action> {
        let mut legal = legal_of(self);
        let slots = 2 * self.board.cells();
        let walls: Vec<_> = parts.iter().filter_map(|part| self.read_wall(part)).collect();
        let moves = |piece: usize| parts.iter().any(|part| part.starts_with(['C', 'M'][piece]));
        legal.retain(|&action| {
            let number = action as usize;
            if number < slots { walls.contains(&number) } else { moves((number - slots) / 4) }
        });
        legal
    }

    /// The legal action, or chance outcome, of this name.
    fn read_action(&self, word: &str) -> Option<Action> {
        if self.status == Status::Undrawn {
            let number: Action = word.strip_prefix("start")?.parse().ok()?;
            return (number < STARTS && self.name(number as usize) == word).then_some(number);
        }
        let named = |&action: &Action| self.name(action as usize) == word;
        self.candidates(&[word]).into_iter().find(named)
    }

    /// Reads words one after the other, and gives the position behind them too; those of `END_TURN` count where `early`
    /// allows it.
    pub(super) fn read_line(&self, text: &str, early: bool) -> Result<(Self, Vec<Action>), Error> {
        let (mut state, mut actions) = (*self, Vec::new());
        for (number, word) in (1..).zip(text.split_whitespace()) {
            if END_TURN.contains(&word) {
                if !early {
                    let why = "which positions are read with";
                    return Err(invalid!("word {number}: no number of an action stands for {word}, {why}"));
                }
                state.end_turn().map_err(|error| invalid!("word {number}: {error}"))?;
                continue;
            }
            let read = state.read_action(word).map(|action| vec![action]).or_else(|| state.read_turn(word));
            let read = read.ok_or_else(|| invalid!("word {number} is {}, {}", shown(word), state.expected()))?;
            read.iter().for_each(|&action| state.play(action));
            actions.extend(read);
        }
        Ok((state, actions))
    }

    /// What could have stood there.
    fn expected(&self) -> String {
        match self.turn() {
            Turn::Terminal if self.status == Status::Stuck => {
                format!("but no second action is legal; expected {}", END_TURN.join(" or "))
            }
            Turn::Terminal => "but the game is over before it".to_owned(),
            Turn::Chance => format!("expected a random start: start0 to start{}", STARTS - 1),
            Turn::Player(_) => {
                let mut legal = Vec::new();
                self.legal_actions(&mut legal);
                // Steps are what a reader misses first.
                let names: Vec<_> = legal.iter().rev().take(NAMED).map(|&action| self.name(action as usize)).collect();
                let turn = if self.second { "" } else { ", or a whole turn such as Cb7.>e4" };
                let more =
                    if legal.len() > NAMED { format!(" and {} more", legal.len() - NAMED) } else { String::new() };
                format!("expected a legal action{turn}; legal here: {}{more}", names.join(", "))
            }
        }
    }

    /// Reads what follows the word "cats" in the notation of positions.
    fn read_position(&self, mut words: Peekable<SplitWhitespace<'_>>) -> Result<Self, Error> {
        let mut position = *self;
        position.board = Board::new(self.columns(), self.rows());
        (position.second, position.undo, position.status) = (false, 0, Status::Playing);
        for (piece, keyword) in [(CAT, ""), (MOUSE, "mice")] {
            if !keyword.is_empty() {
                expect(&mut words, keyword)?;
            }
            for pawns in &mut position.pawns {
                let word = words.next().unwrap_or_default();
                let last = notation::cell_name(self.columns() - 1, self.rows());
                let wrong = || Error::form(format!("expected a cell from a1 to {last}"), shown(word));
                pawns[piece] = self.read_cell(word).ok_or_else(wrong)? as u16;
            }
        }
        if words.next_if_eq(&"walls").is_some() {
            while let Some(word) = words.next_if(|&word| word != "turn") {
                let expected = "expected a wall such as >b1 or ^a1 between two cells of the board, or turn";
                let slot = self.read_wall(word).ok_or_else(|| Error::form(expected, shown(word)))?;
                if position.board.is_closed(slot) {
                    return Err(invalid!("the wall {word} is given twice"));
                }
                position.board.build(slot);
            }
        }
        expect(&mut words, "turn")?;
        position.turns = read_turns(&mut words)?;
        if words.next_if_eq(&"second").is_some() {
            position.second = true;
            if words.next_if_eq(&"not").is_some() {
                let word = words.next().unwrap_or_default();
                position.undo = position.read_undo(word)?;
            }
        }
        if let Some(word) = words.next() {
            return Err(Error::form("expected the end of the position", shown(word)));
        }
        if position.second && position.turns == MAX_TURNS {
            return Err(invalid!("turn {} is not played: the game is a draw before it", MAX_TURNS / 2 + 1));
        }
        for (side, [cat, mouse]) in SIDES.into_iter().zip(position.hunts()) {
            if position.board.distance(cat, mouse) == FAR {
                return Err(invalid!("walls leave {side}'s cat no path to the other player's mouse"));
            }
        }
        position.status = position.judged();
        Ok(position)
    }

    /// The step of the mover that the second action may not be, by its name.
    fn read_undo(&self, word: &str) -> Result<u8, Error> {
        let slots = 2 * self.board.cells();
        let open = |step: usize| self.board.open(self.pawn(self.mover(), step / 4)) >> (step % 4) & 1 == 1;
        let steps = if self.rules.variant == Variant::Classic { 4 } else { 8 };
        let step = (0..steps).find(|&step| open(step) && self.name(slots + step) == word);
        Ok(1 << step.ok_or_else(|| Error::form("expected the step back of the first action", shown(word)))?)
    }
}

fn expect(words: &mut Peekable<SplitWhitespace<'_>>, keyword: &str) -> Result<(), Error> {
    match words.next().unwrap_or_default() {
        word if word == keyword => Ok(()),
        word => Err(Error::form(format!("expected the word {keyword}"), shown(word))),
    }
}

/// Such as `3 red`: turns that are over.
fn read_turns(words: &mut Peekable<SplitWhitespace<'_>>) -> Result<u8, Error> {
    let (number, side) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let turn = number.parse().ok().filter(|turn: &u16| turn.to_string() == number).map(usize::from);
    let player = SIDES.into_iter().position(|name| name == side);
    let turns = turn.zip(player).and_then(|(turn, player)| Some(2 * turn.checked_sub(1)? + player));
    turns.filter(|&turns| turns <= usize::from(MAX_TURNS)).map(|turns| turns as u8).ok_or_else(|| {
        let expected = format!("expected a turn's number from 1 to {} and red or blue", MAX_TURNS / 2);
        Error::form(expected, format!("{} {}", shown(number), shown(side)))
    })
}
