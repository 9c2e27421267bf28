//! 2048 for one player: tiles slide to a side of the board, equal ones merge, and after each slide a tile comes by
//! chance.
//!
//! Cells are `row * size + column`, row 0 = top. A chance outcome is `4 + 2 * cell` for a 2 and one more for a 4:
//! outcomes begin behind the actions, so that a symmetry moves both without a look at whose turn it is. A cell has two
//! outcomes, so a turn has 32 at most.
//!
//! Invariant: at a player's turn nothing is `to_come`; a board with the target has nothing to come.

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Values};
use azpy_core::text::{Notation, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, spread};
use crate::notation::{board_or_line, cell_name, in_range, read_number};
use crate::planes::{D4, d4_cell, d4_planes};
use crate::svg::{self, Svg, centre};

const DIRECTIONS: [&str; 4] = ["up", "right", "down", "left"];
const UP: Action = 0;
const RIGHT: Action = 1;
const DOWN: Action = 2;
/// Of a new tile: a 2 comes nine times as often as a 4 (Cirulli's program of 2014).
const CHANCES: [f32; 2] = [0.9, 0.1];
const MIN_SIZE: usize = 2;
const MAX_SIZE: usize = 4;
/// Logarithms of the target. A cell has four bits.
const LEAST: u32 = 3;
const MOST: u32 = 15;

/// A position of 2048.
///
/// ```
/// use azpy_core::game::{Game, Turn};
/// use azpy_core::text::Notation;
/// use azpy_games::Game2048;
///
/// let mut game = Game2048::new(3, 64)?;
/// for name in ["a1=2", "a3=2", "up"] {
///     game = game.parse(name)?;
/// }
/// assert_eq!((game.turn(), game.score()), (Turn::Chance, 4));
/// assert_eq!(game.to_text().unwrap(), "4,.,./.,.,./.,.,. score 4 to come 1");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Game2048 {
    /// The logarithm of each cell's tile, four bits a cell; 0 is an empty cell.
    board: u64,
    score: u32,
    size: u8,
    /// The logarithm of the target.
    target: u8,
    /// Tiles that chance puts on the board before the player's turn.
    to_come: u8,
}

impl Default for Game2048 {
    /// The usual game: 4 x 4 cells, up to 2048.
    fn default() -> Self {
        Self::empty(4, 11)
    }
}

impl Game2048 {
    /// The empty board of `size` rows and columns; the game ends with a tile of `target`.
    ///
    /// # Errors
    /// If the size is not from 2 to 4, or the target no power of two from 8 to 32,768.
    pub fn new(size: usize, target: usize) -> Result<Self, Error> {
        let size = in_range("the size", size, MIN_SIZE..=MAX_SIZE)?;
        if !target.is_power_of_two() || !(LEAST..=MOST).contains(&target.ilog2()) {
            let (least, most) = (1 << LEAST, 1 << MOST);
            return Err(Error::value("the target", format!("a power of two from {least} to {most}"), target));
        }
        Ok(Self::empty(size, target.ilog2() as u8))
    }

    fn empty(size: u8, target: u8) -> Self {
        Self { board: 0, score: 0, size, target, to_come: 2 }
    }

    /// Rows of the board, and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// The tile that ends the game.
    #[must_use]
    pub fn target(&self) -> usize {
        1 << self.target
    }

    /// The sum of all tiles that merges have made.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    /// The tile on `cell`, if there is one.
    #[must_use]
    pub fn tile(&self, cell: usize) -> Option<u32> {
        Some(self.log(cell)).filter(|&log| log > 0).map(|log| 1 << log)
    }

    fn num_cells(&self) -> usize {
        self.size() * self.size()
    }

    /// The logarithm of a cell's tile; 0 of an empty one.
    #[inline]
    fn log(&self, cell: usize) -> u64 {
        self.board >> (4 * cell) & 15
    }

    fn logs(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.num_cells()).map(|cell| self.log(cell))
    }

    /// The tiles row by row, each in so many places, with a dot for an empty cell.
    fn rows(&self, places: usize, between_cells: &str, between_rows: &str) -> String {
        let tile = |cell| self.tile(cell).map_or(".".to_owned(), |tile| tile.to_string());
        let tiles: Vec<_> = (0..self.num_cells()).map(|cell| format!("{:>places$}", tile(cell))).collect();
        tiles.chunks(self.size()).map(|row| row.join(between_cells)).collect::<Vec<_>>().join(between_rows)
    }

    fn has_target(&self) -> bool {
        self.logs().any(|log| log == u64::from(self.target))
    }

    /// Cell number `step` of a line, counted from where its tiles slide to.
    #[inline]
    fn cell(&self, direction: Action, line: usize, step: usize) -> usize {
        let (size, back) = (self.size(), self.size() - 1 - step);
        match direction {
            UP => step * size + line,
            RIGHT => line * size + back,
            DOWN => back * size + line,
            _ => line * size + step,
        }
    }

    /// The board after a slide, and the sum of the tiles that it makes.
    fn slid(&self, direction: Action) -> (u64, u32) {
        let (mut board, mut made) = (0, 0);
        for line in 0..self.size() {
            // How many tiles have come to rest, and the logarithm of the last one if it can still merge.
            let (mut at_rest, mut open) = (0, 0);
            for step in 0..self.size() {
                let log = self.log(self.cell(direction, line, step));
                if log == 0 {
                    continue;
                }
                if log == open {
                    board += 1 << (4 * self.cell(direction, line, at_rest - 1));
                    made += 2 << log;
                    open = 0;
                } else {
                    board |= log << (4 * self.cell(direction, line, at_rest));
                    (at_rest, open) = (at_rest + 1, log);
                }
            }
        }
        (board, made)
    }

    fn can_slide(&self, direction: Action) -> bool {
        self.slid(direction).0 != self.board
    }

    /// The score of a target that is made of twos alone: making a tile of 2^n scores 2^n, and before it twice what
    /// making one of 2^(n - 1) does.
    fn full_score(&self) -> u32 {
        (u32::from(self.target) - 1) << self.target
    }

    /// What the score is worth, in [-1, 1].
    fn worth(&self) -> f32 {
        let part = f64::from(self.score).ln_1p() / f64::from(self.full_score()).ln_1p();
        (2.0 * part.min(1.0) - 1.0) as f32
    }

    /// Refuses what no line of play leads to, as far as tiles and points tell.
    fn check(&self) -> Result<(), Error> {
        let tiles: Vec<_> = self.logs().filter(|&log| log > 0).collect();
        let sum: u64 = tiles.iter().map(|log| 1_u64 << log).sum();
        // A tile of 2^n scores (n - 1) * 2^n in all if it grew from twos, and 4 less for each four that came.
        let most: u64 = tiles.iter().map(|log| (log - 1) << log).sum();
        let less = most.checked_sub(u64::from(self.score)).filter(|&less| less % 4 == 0 && less <= sum);
        let Some(less) = less else {
            let expected = format!("these tiles score {most}, or 4 less for each four that appeared");
            return Err(Error::form(expected, self.score));
        };
        let came = (sum - less) / 2 + less / 4;
        // Two tiles come at first; later one comes after each slide, unless the slide has made the target.
        let fits = match self.to_come {
            0 => came > 2 || self.has_target() || (came == 2 && tiles.len() == 2),
            1 => came == 1 || (came > 1 && tiles.len() < self.num_cells() && !self.has_target()),
            _ => came == 0,
        };
        if fits { Ok(()) } else { Err(invalid!("these tiles and this score cannot have {} to come", self.to_come)) }
    }
}

impl Game for Game2048 {
    type Payoff = Values;

    fn num_players(&self) -> usize {
        1
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: DIRECTIONS.len(),
            obs_shape: [usize::from(self.target), self.size(), self.size()],
            max_plies: self.num_cells() * self.target() / 2,
            num_symmetries: D4,
        }
    }

    fn turn(&self) -> Turn {
        if self.to_come > 0 {
            return Turn::Chance;
        }
        // No slide is tried with a target on the board: two tiles of 32,768 make one that no cell can hold.
        let is_over = self.has_target() || {
            // Beside an empty cell something can slide.
            self.logs().all(|log| log > 0) && !self.can_slide(RIGHT) && !self.can_slide(DOWN)
        };
        if is_over { Turn::Terminal } else { Turn::Player(Player::Zero) }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend((0..DIRECTIONS.len() as Action).filter(|&direction| self.can_slide(direction)));
    }

    fn play(&mut self, action: Action) {
        if self.to_come > 0 {
            let outcome = action - DIRECTIONS.len() as Action;
            debug_assert!(self.log(outcome as usize / 2) == 0, "{action} is not an outcome here");
            self.board |= u64::from(1 + outcome % 2) << (4 * (outcome / 2));
            self.to_come -= 1;
        } else {
            let (board, made) = self.slid(action);
            debug_assert!(board != self.board, "{action} changes nothing");
            self.board = board;
            self.score += made;
            self.to_come = u8::from(!self.has_target());
        }
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        let empty = self.logs().filter(|&log| log == 0).count() as f32;
        for cell in (0..self.num_cells()).filter(|&cell| self.log(cell) == 0) {
            let first = (DIRECTIONS.len() + 2 * cell) as Action;
            out.extend((first..).zip(CHANCES.map(|chance| chance / empty)));
        }
    }

    fn outcome(&self) -> Values {
        Values::new(&[if self.has_target() { 1.0 } else { self.worth() }])
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let cells = self.num_cells();
        for (cell, log) in self.logs().enumerate().filter(|&(_, log)| log > 0) {
            row[(log as usize - 1) * cells + cell] = 1.0;
        }
        row[(usize::from(self.target) - 1) * cells..].fill(self.worth());
    }

    fn key(&self) -> u128 {
        let high = u64::from(self.size)
            | u64::from(self.target) << 8
            | u64::from(self.to_come) << 16
            | u64::from(self.score) << 24;
        spread(Tag::Game2048, high, self.board)
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let directions = DIRECTIONS.len() as Action;
        if action >= directions {
            let (cell, tile) = ((action - directions) / 2, action % 2);
            return directions + 2 * d4_cell(symmetry, self.size(), cell as usize) as Action + tile;
        }
        // As `d4_cell` does: mirrored columns exchange right and left, mirrored rows up and down; then up becomes left.
        let is_across = action % 2 == 1;
        let mirrored = if is_across { symmetry & 1 != 0 } else { symmetry & 2 != 0 };
        let direction = if mirrored { action ^ 2 } else { action };
        if symmetry & 4 != 0 { 3 - direction } else { direction }
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(symmetry, self.size(), row, out);
    }

    fn render(&self) -> String {
        let places = self.target().to_string().len();
        format!("{}\nscore {}", self.rows(places, " ", "\n"), self.score)
    }
}

impl Notation for Game2048 {
    /// A direction; of a tile that comes, where and what: b3=2. Row 1 is at the bottom.
    fn action_name(&self, action: Action) -> String {
        match DIRECTIONS.get(action as usize) {
            Some(direction) => (*direction).to_owned(),
            None => {
                let outcome = action as usize - DIRECTIONS.len();
                let (row, column) = (outcome / 2 / self.size(), outcome / 2 % self.size());
                format!("{}={}", cell_name(column, self.size().saturating_sub(row)), 2 << (outcome % 2))
            }
        }
    }

    fn result_text(&self) -> String {
        let how = if self.has_target() { format!("{} reached", self.target()) } else { "no slide is left".to_owned() };
        format!("{} points, {how}", self.score)
    }

    fn counts(&self) -> Vec<String> {
        vec![format!("{} points", self.score)]
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn to_svg(&self) -> String {
        // By the logarithm, all of them light enough for dark numbers.
        const FILLS: [&str; 11] = [
            "#e4ecf5", "#cfdeee", "#fbe6c8", "#f8cf98", "#f5b778", "#f2a06a", "#f0926b", "#f3d46b", "#f1ca45",
            "#e9bd2b", "#dcae1c",
        ];
        let size = self.size();
        let mut picture = Svg::board(size, size, self);
        for cell in 0..self.num_cells() {
            let fill = match self.log(cell) as usize {
                0 => svg::EMPTY,
                log => FILLS[(log - 1).min(FILLS.len() - 1)],
            };
            let tile = self.tile(cell).map(|tile| tile.to_string());
            let class = if tile.is_some() { " class=\"tile\"" } else { "" };
            picture.cell(cell % size, cell / size, &format!("fill=\"{fill}\" stroke=\"{}\"{class}", svg::LINE));
            let Some(tile) = tile else { continue };
            let font = if tile.len() < 4 { 15.0 } else { 12.0 };
            picture.text(centre(cell % size), centre(cell / size), font, &tile);
        }
        picture.name_cells(size, size, true);
        picture.done()
    }

    /// A position as in `2,.,./4,2,./.,.,. score 4`, with `to come 1` behind it where a tile comes first, or a line of
    /// play.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let words: Vec<_> = text.split_whitespace().take(7).collect();
            let (rows, score, to_come) = match words[..] {
                [rows, "score", score] => (rows, score, 0),
                [rows, "score", score, "to", "come", number] => {
                    (rows, score, read_number("to come", number, 1, 2)? as u8)
                }
                _ => {
                    let form = "a position is written as in \"2,./4,2 score 4\", with \"to come 1\" behind it where a \
                                tile comes";
                    return Err(Error::form(form, shown(text)));
                }
            };
            let (size, count) = (self.size(), rows.split('/').count());
            if count != size || rows.split('/').any(|row| row.split(',').count() != size) {
                let form = format!("the board must have {size} rows of {size} cells, as in a,b/c,d");
                return Err(Error::form(form, shown(rows)));
            }
            let mut state = Self { to_come, ..Self::empty(self.size, self.target) };
            for (cell, word) in rows.split(['/', ',']).enumerate() {
                let tile = if word == "." { 1 } else { read_number("a tile", word, 2, u16::MAX)? };
                if !tile.is_power_of_two() || usize::from(tile) > self.target() {
                    return Err(Error::value("a tile", format!("a power of two up to {}", self.target()), tile));
                }
                state.board |= u64::from(tile.ilog2()) << (4 * cell);
            }
            let digits = score.bytes().all(|byte| byte.is_ascii_digit());
            let number = score.parse().ok().filter(|_| digits);
            state.score = number.ok_or_else(|| Error::value("the score", "a whole number", shown(score)))?;
            state.check()?;
            Ok(state)
        })
    }

    fn to_text(&self) -> Option<String> {
        let to_come = if self.to_come > 0 { format!(" to come {}", self.to_come) } else { String::new() };
        Some(format!("{} score {}{to_come}", self.rows(0, ",", "/"), self.score))
    }
}
