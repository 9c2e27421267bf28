//! Positions as text, what games share of it: boards of two players' stones, and numbers.
//!
//! A board is its rows from the top with "/" between, `x` a stone of player 0, `o` one of player 1 and `.` an empty cell,
//! and after a blank who is to move: `..x/.o./... x`. No action is called like a row of a board, so a text is one or the
//! other ([`is_board`]).

use azpy_core::game::Player;
use azpy_core::text::shown;

pub(crate) const PLAYERS: [Player; 2] = [Player::Zero, Player::One];

/// How a game ended that nobody has won.
pub(crate) const FULL_BOARD: &str = "by a full board";

/// `x` or `o`.
pub(crate) fn mark(player: Player) -> char {
    match player {
        Player::Zero => 'x',
        _ => 'o',
    }
}

/// A board as it stands in a text.
pub(crate) struct Board {
    /// Row by row from the top.
    pub(crate) cells: Vec<Option<Player>>,
    pub(crate) mover: Player,
}

/// Whether a text is meant as a board and not as a line of play: its first word has a "/" or a dot, or nothing but
/// stones.
pub(crate) fn is_board(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.contains(['/', '.']) || (!first.is_empty() && first.chars().all(|cell| matches!(cell, 'x' | 'o')))
}

/// The stones of a board and the names of their cells; see `Notation::on_board`.
pub(crate) fn stones(
    cells: usize,
    name: impl Fn(usize) -> String,
    stone: impl Fn(usize) -> Option<Player>,
) -> Vec<(String, char)> {
    (0..cells).filter_map(|cell| Some((name(cell), mark(stone(cell)?)))).collect()
}

/// Which cells, row * width + column, are part of `k` stones of one player in a row: across, upright or aslant.
pub(crate) fn in_rows(width: usize, height: usize, k: usize, stone: impl Fn(usize) -> Option<Player>) -> Vec<bool> {
    let mut found = vec![false; width * height];
    for cell in 0..width * height {
        for (right, down) in [(1, 0), (0, 1), (1, 1), (-1, 1)] {
            let at = |step: usize| {
                let column = (cell % width).checked_add_signed(right * step as isize)?;
                let row = cell / width + down * step;
                (column < width && row < height).then_some(row * width + column)
            };
            let player = stone(cell);
            let row: Vec<usize> = (0..k).map_while(at).take_while(|&other| stone(other) == player).collect();
            if player.is_some() && row.len() == k {
                row.into_iter().for_each(|cell| found[cell] = true);
            }
        }
    }
    found
}

/// The board as text; `stone` says who has one on a cell, row * width + column.
pub(crate) fn write_board(
    width: usize,
    height: usize,
    mover: Player,
    stone: impl Fn(usize) -> Option<Player>,
) -> String {
    let row = |row: usize| (0..width).map(|column| stone(row * width + column).map_or('.', mark)).collect::<String>();
    format!("{} {}", (0..height).map(row).collect::<Vec<_>>().join("/"), mark(mover))
}

/// Reads a board of that size.
///
/// # Errors
/// Says what is not as it should be.
pub(crate) fn read_board(text: &str, width: usize, height: usize) -> Result<Board, String> {
    let mut words = text.split_whitespace();
    let rows = words.next().unwrap_or_default();
    let count = rows.split('/').count();
    if count != height {
        return Err(format!("the board must have {height} rows, from the top with \"/\" between them, got {count}"));
    }
    let mut cells = Vec::with_capacity(width * height);
    for (row, number) in rows.split('/').zip(1..) {
        let length = row.chars().count();
        if length != width {
            return Err(format!("row {number} of the board must have {width} cells, got {length}: {}", shown(row)));
        }
        for cell in row.chars() {
            cells.push(match cell {
                '.' => None,
                'x' => Some(Player::Zero),
                'o' => Some(Player::One),
                _ => return Err(format!("row {number} of the board must be made of x, o and dots, got {cell:?}")),
            });
        }
    }
    let mover = match words.next() {
        Some("x") => Player::Zero,
        Some("o") => Player::One,
        Some(other) => return Err(format!("after the board stands who is to move, x or o, got {}", shown(other))),
        None => return Err("after the board stands who is to move, x or o; got nothing".to_owned()),
    };
    match words.next() {
        Some(more) => Err(format!("nothing stands after who is to move, got {}", shown(more))),
        None => Ok(Board { cells, mover }),
    }
}

impl Board {
    /// Where a player has stones, ascending.
    pub(crate) fn stones(&self, player: Player) -> impl Iterator<Item = usize> + '_ {
        self.cells.iter().enumerate().filter(move |&(_, &stone)| stone == Some(player)).map(|(cell, _)| cell)
    }

    /// How many stones each player has.
    pub(crate) fn counts(&self) -> [usize; 2] {
        PLAYERS.map(|player| self.stones(player).count())
    }

    /// Refuses what cannot be where the players put one stone each in turn, x first.
    ///
    /// # Errors
    /// Says how many stones there are.
    pub(crate) fn check_turns(&self) -> Result<(), String> {
        let [x, o] = self.counts();
        match self.mover {
            Player::Zero if x == o => Ok(()),
            Player::Zero => Err(format!("where x is to move both have as many stones, got {x} of x and {o} of o")),
            Player::One if x == o + 1 => Ok(()),
            _ => Err(format!("where o is to move x has one stone more, got {x} of x and {o} of o")),
        }
    }

    /// Refuses what cannot be where a game ends as soon as one has won. `won` is by player; `with_one_stone` says
    /// whether one stone of the winner can have brought that about.
    ///
    /// # Errors
    /// Says who has won.
    pub(crate) fn check_winner(&self, won: [bool; 2], with_one_stone: impl Fn(Player) -> bool) -> Result<(), String> {
        let winner = match won {
            [false, false] => return Ok(()),
            [true, true] => return Err("both x and o have won".to_owned()),
            [true, false] => Player::Zero,
            [false, true] => Player::One,
        };
        let name = mark(winner);
        if winner == self.mover {
            return Err(format!("{name} has won, so that {} is to move, got {name}", mark(winner.opponent())));
        }
        if !with_one_stone(winner) {
            return Err(format!("{name} has won more than once: no last stone can have done that"));
        }
        Ok(())
    }
}

/// Reads a whole number from `low` to `high`, for `what`.
///
/// # Errors
/// Says what it may be.
pub(crate) fn read_number(what: &str, word: &str, low: u16, high: u16) -> Result<u16, String> {
    // Numbers have no signs here.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| digits && (low..=high).contains(number));
    number.ok_or_else(|| format!("{what} must be a whole number from {low} to {high}, got {}", shown(word)))
}

/// The `key=value` words of a position, each at most once.
pub(crate) struct Words<'a> {
    words: Vec<(&'a str, &'a str)>,
    expected: &'static str,
}

impl<'a> Words<'a> {
    /// Reads a text of words with one of the `keys`; `expected` says what a text needs.
    ///
    /// # Errors
    /// Names the word.
    pub(crate) fn read(text: &'a str, keys: &[&str], expected: &'static str) -> Result<Self, String> {
        let mut words = Self { words: Vec::new(), expected };
        for word in text.split_whitespace() {
            let known = word.split_once('=').filter(|(key, _)| keys.contains(key));
            let (key, value) =
                known.ok_or_else(|| format!("{} is not understood: expected {expected}", shown(word)))?;
            if words.get(key).is_some() {
                return Err(format!("{key}= is there twice"));
            }
            words.words.push((key, value));
        }
        Ok(words)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(known, _)| *known == key).map(|&(_, value)| value)
    }

    /// # Errors
    /// If the word is missing.
    pub(crate) fn needed(&self, key: &str) -> Result<&'a str, String> {
        self.get(key).ok_or_else(|| format!("{key}= is missing: expected {}", self.expected))
    }
}
