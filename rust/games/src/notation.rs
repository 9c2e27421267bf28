//! Positions as text, what games share of it: boards of the players' stones, and numbers.
//!
//! A board is its rows from the top with "/" between, `x` a stone of player 0, `o` one of player 1, `y` one of a third
//! player and `.` an empty cell, and after a blank who is to move: `..x/.o./... x`. No action is called like a row of a
//! board, so a text is one or the other ([`is_board`]).

use std::fmt::Display;
use std::ops::RangeInclusive;

use azpy_core::game::{Game, MAX_PLAYERS, Payoff, Player, Turn};
use azpy_core::text::{Notation, play_line, shown};

use crate::error::{Error, invalid};

pub(crate) const PLAYERS: [Player; 2] = [Player::Zero, Player::One];

/// How a drawn game ended.
pub(crate) const FULL_BOARD: &str = "by a full board";

const MARKS: [char; MAX_PLAYERS] = ['x', 'o', 'y', 'z', 'v', 'w'];

/// How a player's pieces are written: `x`, `o`, and with more players `y`, `z`, `v` and `w`.
pub(crate) fn mark(player: Player) -> char {
    MARKS[player.index()]
}

/// The player whose pieces have this letter.
pub(crate) fn marked(mark: char) -> Option<Player> {
    Player::ALL.into_iter().find(|player| MARKS[player.index()] == mark)
}

/// So many players, in the order of their turns.
pub(crate) fn everybody(players: u8) -> impl Iterator<Item = Player> {
    Player::ALL.into_iter().take(usize::from(players))
}

/// The name of a board's column: letters from a on.
pub(crate) fn letter(column: usize) -> char {
    char::from(b'a' + column as u8)
}

/// A cell's name: the letter of its column, and the number that is printed beside its row.
pub(crate) fn cell_name(column: usize, number: usize) -> String {
    format!("{}{number}", letter(column))
}

/// A parameter, or a number of a text, as a game keeps it. Refuses what is not in the range.
pub(crate) fn in_range<T: TryFrom<usize>>(what: &str, number: usize, range: RangeInclusive<usize>) -> Result<T, Error> {
    let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
    fits.ok_or_else(|| Error::value(what, format!("from {} to {}", range.start(), range.end()), number))
}

/// A limit of plies as a game has it.
pub(crate) fn limit_of_plies(max_plies: usize) -> Result<u16, Error> {
    in_range("max_plies", max_plies, 1..=usize::from(u16::MAX))
}

/// Refuses a number of players that a game does not have, or that its type is not for.
pub(crate) fn check_players<P: Payoff>(players: usize, allowed: &[usize]) -> Result<(), Error> {
    if !allowed.contains(&players) {
        let numbers: Vec<_> = allowed.iter().map(usize::to_string).collect();
        return Err(Error::value("players", format!("one of {}", numbers.join(", ")), players));
    }
    if P::ZERO_SUM != (players == 2) {
        return Err(invalid!("a Value is what two players share, and Values are for more; got {players} players"));
    }
    Ok(())
}

/// A number and what it counts: 1 disc, 2 discs.
pub(crate) fn counted<T: Display + From<u8> + PartialEq>(number: T, what: &str) -> String {
    format!("{number} {what}{}", if number == T::from(1) { "" } else { "s" })
}

/// A text beside the name of the player whose turn it is.
pub(crate) fn at_turn<G: Game>(game: &G, text: String) -> Vec<String> {
    let mut texts = vec![String::new(); game.num_players()];
    if let Turn::Player(player) = game.turn() {
        texts[player.index()] = text;
    }
    texts
}

/// The player who alone has the highest score.
pub(crate) fn leader<T: PartialOrd>(scores: impl Iterator<Item = (Player, T)>) -> Option<Player> {
    let scores: Vec<_> = scores.collect();
    let mut leaders = scores.iter().filter(|(_, own)| scores.iter().all(|(_, other)| other <= own));
    leaders.next().filter(|_| leaders.next().is_none()).map(|&(player, _)| player)
}

/// A board as it stands in a text.
pub(crate) struct Board {
    /// Row by row from the top.
    pub(crate) cells: Vec<Option<Player>>,
    pub(crate) mover: Player,
    players: usize,
}

/// Whether a text is meant as a board and not as a line of play: its first word has a "/" or a dot, or nothing but
/// stones.
pub(crate) fn is_board(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.contains(['/', '.']) || (!first.is_empty() && first.chars().all(|cell| marked(cell).is_some()))
}

/// What [`Notation::parse`] is for a game whose positions are written as boards: `read` reads a board, and any other text
/// is a line of play.
pub(crate) fn board_or_line<G: Notation>(
    start: &G,
    text: &str,
    read: impl FnOnce(&str) -> Result<G, Error>,
) -> Result<G, azpy_core::Error> {
    if is_board(text) { Ok(read(text)?) } else { play_line(start, text) }
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

/// The rows of a board from the top as people see them, with blanks between the cells.
pub(crate) fn rows(
    width: usize,
    height: usize,
    stone: impl Fn(usize) -> Option<Player>,
) -> impl Iterator<Item = String> {
    (0..height).map(move |row| {
        let cell = |column| stone(row * width + column).map_or('.', mark).to_string();
        (0..width).map(cell).collect::<Vec<_>>().join(" ")
    })
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

/// Reads a board of that size, of two players.
pub(crate) fn read_board(text: &str, width: usize, height: usize) -> Result<Board, Error> {
    read_board_of(2, text, width, height)
}

/// Reads a board of that size, of so many players.
pub(crate) fn read_board_of(players: usize, text: &str, width: usize, height: usize) -> Result<Board, Error> {
    let marks = &MARKS[..players];
    let owner = |cell: char| marked(cell).filter(|player| player.index() < players);
    let mut words = text.split_whitespace();
    let rows = words.next().unwrap_or_default();
    let count = rows.split('/').count();
    if count != height {
        let expected = format!("the board must have {height} rows, from the top with \"/\" between them");
        return Err(Error::form(expected, count));
    }
    let mut cells = Vec::with_capacity(width * height);
    for (row, number) in rows.split('/').zip(1..) {
        let length = row.chars().count();
        if length != width {
            let expected = format!("row {number} of the board must have {width} cells");
            return Err(Error::form(expected, format!("{length}: {}", shown(row))));
        }
        for cell in row.chars() {
            let stone = owner(cell);
            if stone.is_none() && cell != '.' {
                let stones = listed(marks, ", ");
                let expected = format!("row {number} of the board must be made of {stones} and dots");
                return Err(Error::form(expected, format!("{cell:?}")));
            }
            cells.push(stone);
        }
    }
    let expected = format!("expected the player to move ({}) after the board", listed(marks, " or "));
    let Some(word) = words.next() else { return Err(invalid!("{expected}; got nothing")) };
    let mover = word.parse().ok().and_then(owner).ok_or_else(|| Error::form(expected, shown(word)))?;
    match words.next() {
        Some(more) => Err(Error::form("expected nothing after the player to move", shown(more))),
        None => Ok(Board { cells, mover, players }),
    }
}

/// x, o and y, or x or o: `last` stands before the last one.
fn listed(marks: &[char], last: &str) -> String {
    let marks: Vec<_> = marks.iter().map(char::to_string).collect();
    match marks.split_last() {
        Some((end, before)) if !before.is_empty() => format!("{}{last}{end}", before.join(", ")),
        _ => marks.concat(),
    }
}

impl Board {
    /// Where a player has stones, ascending.
    pub(crate) fn stones(&self, player: Player) -> impl Iterator<Item = usize> + '_ {
        self.cells.iter().enumerate().filter(move |&(_, &stone)| stone == Some(player)).map(|(cell, _)| cell)
    }

    /// How many stones each player has; 0 for players that the game does not have.
    pub(crate) fn counts(&self) -> [usize; MAX_PLAYERS] {
        Player::ALL.map(|player| self.stones(player).count())
    }

    /// Refuses numbers of stones that are impossible if the players put one stone each in turn, x first.
    pub(crate) fn check_turns(&self) -> Result<(), Error> {
        let (counts, ahead) = (self.counts(), self.mover.index());
        let (counts, least) = (&counts[..self.players], counts[self.players - 1]);
        if counts.iter().enumerate().all(|(player, &count)| count == least + usize::from(player < ahead)) {
            return Ok(());
        }
        let mover = mark(self.mover);
        let expected = match (ahead, self.players) {
            (0, 2) => "both have equally many stones".to_owned(),
            (0, _) => "all have equally many stones".to_owned(),
            (1, _) => "x has one stone more".to_owned(),
            _ => format!("{} have one stone more", listed(&MARKS[..ahead], " and ")),
        };
        let got: Vec<_> = counts.iter().zip(MARKS).map(|(count, mark)| format!("{count} of {mark}")).collect();
        Err(Error::form(format!("with {mover} to move, {expected}"), got.join(" and ")))
    }

    /// Refuses wins that are impossible if a game ends with the first win. `won` is by player; `with_one_stone` says
    /// whether one stone of the winner can have brought that about.
    pub(crate) fn check_winner<const N: usize>(
        &self,
        won: [bool; N],
        with_one_stone: impl Fn(Player) -> bool,
    ) -> Result<(), Error> {
        let winners: Vec<_> =
            Player::ALL.into_iter().zip(won).filter(|&(_, won)| won).map(|(player, _)| player).collect();
        let winner = match winners[..] {
            [] => return Ok(()),
            [winner] => winner,
            [one, other, ..] => {
                return Err(invalid!("both {} and {} have won", mark(one), mark(other)));
            }
        };
        let (name, next) = (mark(winner), Player::ALL[(winner.index() + 1) % self.players]);
        if next != self.mover {
            return Err(Error::form(format!("{name} has won, so {} is to move", mark(next)), mark(self.mover)));
        }
        if !with_one_stone(winner) {
            return Err(invalid!("{name} has won more than once, which no single stone can do"));
        }
        Ok(())
    }
}

/// Reads a whole number from `low` to `high`, for `what`.
pub(crate) fn read_number(what: &str, word: &str, low: u16, high: u16) -> Result<u16, Error> {
    // Numbers have no signs here.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| digits && (low..=high).contains(number));
    number.ok_or_else(|| Error::value(what, format!("a whole number from {low} to {high}"), shown(word)))
}

/// The `key=value` words of a position, each at most once.
pub(crate) struct Words<'a> {
    words: Vec<(&'a str, &'a str)>,
    expected: &'static str,
}

impl<'a> Words<'a> {
    /// Reads a text of words with one of the `keys`; `expected` says what a text needs.
    pub(crate) fn read(text: &'a str, keys: &[&str], expected: &'static str) -> Result<Self, Error> {
        let mut words = Self { words: Vec::new(), expected };
        for word in text.split_whitespace() {
            let known = word.split_once('=').filter(|(key, _)| keys.contains(key));
            let (key, value) =
                known.ok_or_else(|| invalid!("{} is not understood: expected {expected}", shown(word)))?;
            if words.get(key).is_some() {
                return Err(invalid!("{key}= is given twice"));
            }
            words.words.push((key, value));
        }
        Ok(words)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(known, _)| *known == key).map(|&(_, value)| value)
    }

    /// The value of a required word.
    pub(crate) fn needed(&self, key: &str) -> Result<&'a str, Error> {
        self.get(key).ok_or_else(|| invalid!("{key}= is missing: expected {}", self.expected))
    }

    /// The number of a word; 0 where the word is missing.
    pub(crate) fn number(&self, key: &str, low: u16, high: u16) -> Result<u16, Error> {
        self.get(key).map_or(Ok(0), |word| read_number(key, word, low, high))
    }

    /// Refuses words that need another word.
    pub(crate) fn refuse(&self, keys: &[&str], why: &str) -> Result<(), Error> {
        match keys.iter().find(|key| self.get(key).is_some()) {
            Some(key) => Err(invalid!("{key}= {why}")),
            None => Ok(()),
        }
    }
}
