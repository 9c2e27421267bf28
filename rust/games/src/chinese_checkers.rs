//! Chinese Checkers on the star of 121 cells, for 2, 3, 4 or 6 players: bring ten pieces into the opposite point
//! first.
//!
//! Cells are numbered row by row from the top. Actions are seen by the player to move, with the own point at the top:
//! `6 * cell + direction`, where directions go clockwise from the upper right one, and then `pass`.
//!
//! The rows of the planes are those of the star. Each row begins half a cell further to the left than the row above,
//! so that neighbours of a cell are those of a square but for two corners.
//!
//! Invariant: each player has ten pieces, no cell has two, and `visited` is empty unless a piece hops.

use std::marker::PhantomData;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::{at_turn, board_or_line, check_players, everybody, in_range, leader, mark, marked, read_number};
use crate::svg::{self, Svg};

mod star;

use self::star::{CELLS, Cells, PIECES, POINTS, ROWS, SIDE, STAR, cell_name, read_cell};

const AREA: usize = SIDE * SIDE;
const PLANES: usize = POINTS + 4;
/// Ends a turn of hops.
pub const PASS: Action = (POINTS * CELLS) as Action;
/// Actions of a turn: hops go to cells whose rows and columns are even or odd as before, and of those there are 37.
const LONGEST: usize = 36;
const MAX_TURNS: usize = 1000;

/// A position of Chinese Checkers. `P` is [`Value`] with two players, and `Values` with more.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Values};
/// use azpy_core::text::Notation;
/// use azpy_games::ChineseCheckers;
///
/// let start = ChineseCheckers::<Values>::new(3, 100)?;
/// let game = start.parse("a3-e5 j10-i9 a10-a9")?; // a hop over a4, and two steps
/// assert_eq!(game.turn(), Turn::Player(Player::Zero));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChineseCheckers<P = Value> {
    /// By player.
    pieces: [Cells; POINTS],
    /// Where the piece that hops has been in this turn, its cell included.
    visited: Cells,
    hopper: Option<u8>,
    players: u8,
    /// Turns of all players, and how many there may be.
    turns: u16,
    most_turns: u16,
    payoff: PhantomData<P>,
}

impl Default for ChineseCheckers {
    /// Two players, 100 turns each.
    fn default() -> Self {
        Self::start(2, 100)
    }
}

impl<P: Payoff> ChineseCheckers<P> {
    /// The start of a game of at most `max_turns` turns of each player.
    ///
    /// # Errors
    /// If the players are not 2 with `Value`, or 3, 4 or 6 with `Values`; if `max_turns` is not from 1 to 1,000.
    pub fn new(players: usize, max_turns: usize) -> Result<Self, Error> {
        check_players::<P>(players, &[2, 3, 4, 6])?;
        Ok(Self::start(players, in_range("max_turns", max_turns, 1..=MAX_TURNS)?))
    }

    fn start(players: usize, max_turns: usize) -> Self {
        let mut start = Self {
            pieces: [Cells::NONE; POINTS],
            visited: Cells::NONE,
            hopper: None,
            players: players as u8,
            turns: 0,
            most_turns: (players * max_turns) as u16,
            payoff: PhantomData,
        };
        for player in everybody(start.players) {
            start.pieces[player.index()] = STAR.points[start.point(player)];
        }
        start
    }

    /// The sum over a player's pieces of the rows from the own side: 20 at the start, and 140 in the opposite point.
    #[must_use]
    pub fn progress(&self, player: Player) -> usize {
        let (seen, mut sum) = (&STAR.turned[(POINTS - self.point(player)) % POINTS], 0);
        self.pieces[player.index()].for_each(|cell| sum += STAR.places[seen[cell]].0);
        sum
    }

    #[inline]
    fn mover(&self) -> Player {
        Player::ALL[usize::from(self.turns % u16::from(self.players))]
    }

    /// Where a player began: 0 is the upper point, and then clockwise.
    #[inline]
    fn point(&self, player: Player) -> usize {
        let points: &[usize] = match self.players {
            2 => &[0, 3],
            3 => &[0, 2, 4],
            4 => &[0, 1, 3, 4],
            _ => &[0, 1, 2, 3, 4, 5],
        };
        points[player.index()]
    }

    /// Where cells come to if the board is turned so that the point of the player to move is the upper one.
    #[inline]
    fn seen(&self) -> &'static [usize] {
        &STAR.turned[(POINTS - self.point(self.mover())) % POINTS]
    }

    #[inline]
    fn taken(&self) -> Cells {
        self.pieces.iter().fold(Cells::NONE, |taken, &pieces| taken.or(pieces))
    }

    fn piece(&self, cell: usize) -> Option<Player> {
        everybody(self.players).find(|player| self.pieces[player.index()].has(cell))
    }

    #[inline]
    fn has_won(&self, player: Player) -> bool {
        self.pieces[player.index()] == STAR.points[(self.point(player) + POINTS / 2) % POINTS]
    }

    /// The player who has all pieces in the opposite point at the end of a turn.
    #[inline]
    fn winner(&self) -> Option<Player> {
        if self.hopper.is_some() { None } else { everybody(self.players).find(|&player| self.has_won(player)) }
    }

    /// The player who alone is farthest, if there is one.
    fn farthest(&self) -> Option<Player> {
        leader(everybody(self.players).map(|player| (player, self.progress(player))))
    }

    /// Where a piece on a cell goes in a direction of the board, and whether it hops.
    #[inline]
    fn target(taken: Cells, from: usize, direction: usize) -> Option<(usize, bool)> {
        let near = STAR.next[from][direction]?;
        if !taken.has(near) {
            return Some((near, false));
        }
        let far = STAR.next[near][direction]?;
        (!taken.has(far)).then_some((far, true))
    }

    /// Whether a piece on a cell can hop on in a direction of the board.
    #[inline]
    fn can_hop_on(&self, taken: Cells, from: usize, direction: usize) -> bool {
        matches!(Self::target(taken, from, direction), Some((to, true)) if !self.visited.has(to))
    }

    /// Cell and direction of an action, as the board lies.
    #[inline]
    fn parts(&self, action: Action) -> (usize, usize) {
        let point = self.point(self.mover());
        let (cell, direction) = (action as usize / POINTS, action as usize % POINTS);
        (STAR.turned[point][cell], (direction + point) % POINTS)
    }

    #[inline]
    fn end_turn(&mut self) {
        self.turns += 1;
        self.hopper = None;
        self.visited = Cells::NONE;
    }

    /// Where the piece of an action stands and where it goes; nothing for `pass` and where there is no way.
    fn way(&self, action: Action) -> Option<(usize, usize)> {
        if action >= PASS {
            return None;
        }
        let (from, direction) = self.parts(action);
        Self::target(self.taken(), from, direction).map(|(to, _)| (from, to))
    }
}

impl<P: Payoff> Game for ChineseCheckers<P> {
    type Payoff = P;

    fn num_players(&self) -> usize {
        usize::from(self.players)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: PASS as usize + 1,
            obs_shape: [PLANES, SIDE, SIDE],
            max_plies: LONGEST * usize::from(self.most_turns),
            num_symmetries: if self.players == 2 { 2 } else { 1 },
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.hopper.is_none() && (self.turns >= self.most_turns || self.winner().is_some()) {
            Turn::Terminal
        } else {
            Turn::Player(self.mover())
        }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let (taken, point, seen) = (self.taken(), self.point(self.mover()), self.seen());
        let action = |from: usize, direction: usize| (POINTS * seen[from] + direction) as Action;
        let turned = |direction: usize| (direction + point) % POINTS;
        if let Some(hopper) = self.hopper {
            let from = usize::from(hopper);
            let open = (0..POINTS).filter(|&direction| self.can_hop_on(taken, from, turned(direction)));
            out.extend(open.map(|direction| action(from, direction)));
        } else {
            self.pieces[self.mover().index()].for_each(|from| {
                let open = (0..POINTS).filter(|&direction| Self::target(taken, from, turned(direction)).is_some());
                out.extend(open.map(|direction| action(from, direction)));
            });
            out.sort_unstable();
        }
        if self.hopper.is_some() || out.is_empty() {
            out.push(PASS);
        }
    }

    fn play(&mut self, action: Action) {
        debug_assert!(self.turn() != Turn::Terminal);
        if action == PASS {
            return self.end_turn();
        }
        let (from, direction) = self.parts(action);
        let Some((to, hops)) = Self::target(self.taken(), from, direction) else {
            unreachable!("action {action} is not legal here");
        };
        let mover = self.mover().index();
        let own = &mut self.pieces[mover];
        own.remove(from);
        own.insert(to);
        if hops {
            self.visited = self.visited.with(from).with(to);
            let taken = self.taken();
            if (0..POINTS).any(|direction| self.can_hop_on(taken, to, direction)) {
                self.hopper = Some(to as u8);
                return;
            }
        }
        self.end_turn();
    }

    fn outcome(&self) -> P {
        P::won_by(self.winner().or_else(|| self.farthest()), self.num_players())
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let (seen, point) = (self.seen(), self.point(self.mover()));
        let mut put = |plane: usize, cell: usize| {
            let (down, right) = STAR.places[seen[cell]];
            row[plane * AREA + down * SIDE + right] = 1.0;
        };
        for player in everybody(self.players) {
            let plane = (self.point(player) + POINTS - point) % POINTS;
            self.pieces[player.index()].for_each(|cell| put(plane, cell));
        }
        self.hopper.into_iter().for_each(|cell| put(POINTS, usize::from(cell)));
        self.visited.for_each(|cell| put(POINTS + 1, cell));
        (0..CELLS).for_each(|cell| put(POINTS + 2, cell));
        row[(PLANES - 1) * AREA..].fill(f32::from(self.turns) / f32::from(self.most_turns));
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        let mut divisors = vec![1; PLANES];
        divisors[PLANES - 1] = self.most_turns;
        Some(divisors)
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        let place = |action: usize| {
            let (row, x) = *STAR.places.get(action / POINTS)?;
            Some((action % POINTS * AREA + row * SIDE + x) as u32)
        };
        Some((0..self.num_actions()).map(place).collect())
    }

    fn key(&self) -> u128 {
        let rest = u64::from(self.hopper.unwrap_or(u8::MAX))
            | u64::from(self.players) << 8
            | u64::from(self.turns) << 16
            | u64::from(self.most_turns) << 32;
        let mut words = [rest; 2 * POINTS + 3];
        for (pair, cells) in words.chunks_exact_mut(2).zip(self.pieces.iter().chain([&self.visited])) {
            pair.copy_from_slice(&cells.0);
        }
        digest(Tag::ChineseCheckers, &words)
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        if symmetry == 0 || action >= PASS {
            return action;
        }
        let (cell, direction) = (action as usize / POINTS, action as usize % POINTS);
        (POINTS * STAR.mirrored[cell] + POINTS - 1 - direction) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        out.copy_from_slice(row);
        if symmetry == 0 {
            return;
        }
        let at = |plane: usize, cell: usize| plane * AREA + STAR.places[cell].0 * SIDE + STAR.places[cell].1;
        for plane in 0..PLANES {
            for (cell, &image) in STAR.mirrored.iter().enumerate() {
                out[at(plane, image)] = row[at(plane, cell)];
            }
        }
    }

    fn render(&self) -> String {
        let mut lines = Vec::new();
        let mut cell = 0;
        for (row, (count, first)) in ROWS.into_iter().enumerate() {
            let glyphs: Vec<_> =
                (cell..cell + count).map(|cell| self.piece(cell).map_or('.', mark).to_string()).collect();
            let before = " ".repeat(2 * first + 4 - row);
            lines.push(format!("{:>2} {before}{}", row + 1, glyphs.join(" ")));
            cell += count;
        }
        let hops = self.hopper.map_or(String::new(), |cell| format!(" hops on from {}", cell_name(usize::from(cell))));
        lines.push(format!("{}{hops}, turn {} of {}", mark(self.mover()), self.turns, self.most_turns));
        lines.join("\n")
    }
}

impl<P: Payoff> Notation for ChineseCheckers<P> {
    /// Where the piece stands and where it goes, as in `e5-g5`; `pass` ends a turn of hops.
    fn action_name(&self, action: Action) -> String {
        if action >= PASS {
            return if action == PASS { "pass".to_owned() } else { action.to_string() };
        }
        match self.way(action) {
            Some((from, to)) => format!("{}-{}", cell_name(from), cell_name(to)),
            // Name impossible actions too.
            None => format!("{}-{}", cell_name(self.parts(action).0), self.parts(action).1),
        }
    }

    fn owner(&self, _line: usize, glyph: char) -> Option<Player> {
        marked(glyph)
    }

    fn on_board(&self) -> Vec<(String, char)> {
        (0..CELLS).filter_map(|cell| Some((cell_name(cell), mark(self.piece(cell)?)))).collect()
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(svg::NAMES[..self.num_players()].to_vec())
    }

    fn result_text(&self) -> String {
        outcome_text(self, if self.winner().is_some() { "by filling the point" } else { "by the limit of turns" })
    }

    fn counts(&self) -> Vec<String> {
        at_turn(self, format!("turn {} of {}", self.turns + 1, self.most_turns))
    }

    fn to_svg(&self) -> String {
        let [width, height] = [12.0 * star::STEP, 16.0 * star::DOWN].map(|length| length + 2.0 * star::RIM);
        let mut picture = Svg::new(width, height, self);
        let ground = svg::GROUND;
        let look = format!("fill=\"{ground}\" stroke=\"{ground}\" stroke-width=\"52\" stroke-linejoin=\"round\"");
        for tips in [[(0, 4), (12, 4), (12, 16)], [(16, 12), (4, 0), (4, 12)]] {
            picture.polygon(&tips.map(|(row, x)| star::at(row, x)), &look);
        }
        for (row, &(_, first)) in ROWS.iter().enumerate() {
            let (x, y) = star::at(row, first);
            picture.name(x + 21.0, y, &(row + 1).to_string());
        }
        for cell in 0..CELLS {
            let (x, y) = star::middle(cell);
            let home = everybody(self.players).find(|&player| STAR.points[self.point(player)].has(cell));
            let (rim, width) = home.map_or((svg::LINE, 1), |player| (svg::color(player), 3));
            let look = format!("fill=\"{}\" stroke=\"{rim}\" stroke-width=\"{width}\"", svg::EMPTY);
            picture.circle(x, y, star::RADIUS, &look);
            if let Some(player) = self.piece(cell) {
                let rim = if self.hopper == Some(cell as u8) { svg::INK } else { svg::color(player) };
                let look = format!("fill=\"{}\" stroke=\"{rim}\" stroke-width=\"3\"", svg::color(player));
                picture.circle(x, y, star::RADIUS - 3.0, &look);
            }
        }
        picture.done()
    }

    /// Where the piece stands, and where it goes.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let Some((from, to)) = self.way(action) else { return Vec::new() };
        let square = |cell: usize| {
            let (x, y) = star::middle(cell);
            Touch::new(cell_name(cell), [x - star::RADIUS, y - star::RADIUS, 2.0 * star::RADIUS, 2.0 * star::RADIUS])
        };
        vec![square(from), square(to)]
    }

    /// The rows from the top and the number of turns, as `to_text` writes them, or a line of play.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| self.read(text))
    }

    /// The rows from the top with "/" between, the number of turns, and in a turn of hops the cell of the piece that
    /// hops and those where it has been.
    fn to_text(&self) -> Option<String> {
        let mut text = String::new();
        for cell in 0..CELLS {
            if cell > 0 && STAR.places[cell].0 != STAR.places[cell - 1].0 {
                text.push('/');
            }
            text.push(self.piece(cell).map_or('.', mark));
        }
        text += &format!(" turn {}", self.turns);
        if let Some(hopper) = self.hopper {
            let (hopper, mut names) = (usize::from(hopper), Vec::new());
            self.visited.for_each(|cell| names.extend((cell != hopper).then(|| cell_name(cell))));
            text += &format!(" hop {} not {}", cell_name(hopper), names.join(","));
        }
        Some(text)
    }
}

impl<P: Payoff> ChineseCheckers<P> {
    fn read(&self, text: &str) -> Result<Self, Error> {
        let words: Vec<_> = text.split_whitespace().take(8).collect();
        let (rows, turns, hop) = match words[..] {
            [rows, "turn", turns] => (rows, turns, None),
            [rows, "turn", turns, "hop", cell, "not", cells] => (rows, turns, Some((cell, cells))),
            _ => {
                let form = "expected the number of turns after the rows, as in \"turn 7\", and in a turn of hops as in \
                            \"turn 7 hop e5 not c5\"";
                return Err(Error::form(form, shown(&words[1..].join(" "))));
            }
        };
        let mut game = Self { pieces: [Cells::NONE; POINTS], ..Self::start(self.num_players(), 1) };
        game.most_turns = self.most_turns;
        game.turns = read_number("the number of turns", turns, 0, self.most_turns)?;
        let widths: Vec<_> = rows.split('/').map(|row| row.chars().count()).collect();
        if widths != ROWS.map(|(count, _)| count) {
            let expected = "the star has 17 rows, of 1, 2, 3, 4, 13, 12, 11, 10, 9, 10, 11, 12, 13, 4, 3, 2, 1 cells, \
                            with \"/\" between them";
            return Err(Error::form(expected, shown(rows)));
        }
        for (cell, glyph) in rows.chars().filter(|&glyph| glyph != '/').enumerate() {
            match marked(glyph).filter(|player| player.index() < self.num_players()) {
                Some(player) => game.pieces[player.index()].insert(cell),
                None if glyph == '.' => {}
                None => return Err(Error::form("a row is made of dots and letters of players", format!("{glyph:?}"))),
            }
        }
        for player in everybody(self.players) {
            let count = game.pieces[player.index()].len();
            if count as usize != PIECES {
                return Err(Error::form(format!("{} has {PIECES} pieces", mark(player)), count));
            }
        }
        if let Some((cell, cells)) = hop {
            game.read_hop(read_cell(cell)?, cells)?;
        }
        let last = usize::from(game.turns) + if hop.is_some() { 0 } else { game.num_players() - 1 };
        let last = Player::ALL[last % game.num_players()];
        match everybody(self.players).find(|&player| player != last && game.has_won(player)) {
            Some(player) => Err(invalid!("the game was over when {} had filled the point", mark(player))),
            None => Ok(game),
        }
    }

    /// Takes the piece on a cell as the one that hops, and cells where it has been.
    fn read_hop(&mut self, cell: usize, cells: &str) -> Result<(), Error> {
        let (taken, name) = (self.taken(), cell_name(cell));
        if !self.pieces[self.mover().index()].has(cell) {
            return Err(invalid!("{} is to move but does not have a piece on {name}", mark(self.mover())));
        }
        self.visited = Cells::NONE.with(cell);
        for word in cells.split(',') {
            let been = read_cell(word)?;
            if taken.has(been) {
                return Err(invalid!("the piece that hops has left {word}, which is not empty"));
            }
            self.visited.insert(been);
        }
        if self.turns >= self.most_turns || !(0..POINTS).any(|direction| self.can_hop_on(taken, cell, direction)) {
            return Err(invalid!("the piece on {name} cannot hop on, so the turn is over"));
        }
        self.hopper = Some(cell as u8);
        Ok(())
    }
}
