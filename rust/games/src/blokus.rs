//! Blokus: Duo for two players on 14 x 14 cells, and the game for four on 20 x 20.
//!
//! The action is `91 * cell + shape`. A shape is a piece in one of its positions, and the upper left corner of its
//! smallest rectangle lies on the cell, `row * size + column` with row 0 = top.
//!
//! Invariant: unless the game is over the player to move can place a piece.

use std::marker::PhantomData;
use std::sync::LazyLock;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::cells;
use crate::error::Error;
use crate::key::{Tag, digest};
use crate::notation::{cell_name, check_players, counted, everybody, in_range, leader, letter, mark, marked, rows};
use crate::planes::{d4_cell, d4_planes};
use crate::svg::{self, Svg};

const MOST_SIDE: usize = 20;
const SEATS: usize = 4;
const PIECES: usize = 21;
/// Cells of all pieces of a player.
const CELLS: u32 = 89;
/// Pieces in all their positions.
const SHAPES: usize = 91;
/// The symmetries of Duo, as `d4_cell` numbers them: those that keep the diagonal of the start cells.
const DUO: [usize; 4] = [0, 3, 4, 7];

/// The pieces by their usual names, row by row.
#[rustfmt::skip]
const DRAWN: [(&str, &str); PIECES] = [
    ("1", "x"), ("2", "xx"), ("I3", "xxx"), ("V3", "xx/x."),
    ("I4", "xxxx"), ("L4", "xxx/x.."), ("T4", "xxx/.x."), ("O4", "xx/xx"), ("Z4", "xx./.xx"),
    ("F5", ".xx/xx./.x."), ("I5", "xxxxx"), ("L5", "xxxx/x..."), ("N5", "xx../.xxx"), ("P5", "xx/xx/x."),
    ("T5", "xxx/.x./.x."), ("U5", "x.x/xxx"), ("V5", "x../x../xxx"), ("W5", "x../xx./.xx"), ("X5", ".x./xxx/.x."),
    ("Y5", "xxxx/.x.."), ("Z5", "xx./.x./.xx"),
];

/// A column more than the board has lies at the right of each row, so that no step leads to another row.
type Cells = cells::Cells<WORDS>;
const WORDS: usize = 7;

/// A piece in one of its positions.
struct Shape {
    piece: usize,
    /// Row and column from the upper left corner, ascending.
    cells: Vec<(usize, usize)>,
}

static ALL: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut shapes = Vec::new();
    for (piece, (_, drawn)) in DRAWN.iter().enumerate() {
        let mut cells = cells_of(drawn);
        let mut positions = Vec::new();
        for turn in 0..8 {
            // A quarter of a turn, and after four of them the mirror image.
            let most = cells.iter().map(|&(row, _)| row).max().unwrap_or(0);
            cells = cells.into_iter().map(|(row, column)| (column, most - row)).collect();
            if turn == 4 {
                cells = cells.into_iter().map(|(row, column)| (column, row)).collect();
            }
            cells.sort_unstable();
            positions.push(cells.clone());
        }
        positions.sort();
        positions.dedup();
        shapes.extend(positions.into_iter().map(|cells| Shape { piece, cells }));
    }
    shapes
});

fn cells_of(drawn: &str) -> Vec<(usize, usize)> {
    let rows = drawn.split('/').enumerate();
    rows.flat_map(|(row, line)| line.match_indices('x').map(move |(column, _)| (row, column))).collect()
}

/// A position of Blokus. `P` is [`Value`] with two players, and `Values` with four.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Value};
/// use azpy_core::text::Notation;
/// use azpy_games::Blokus;
///
/// let game = Blokus::<Value>::default().parse("e10,f10 j5 g9")?;
/// assert_eq!((game.turn(), game.score(Player::Zero)), (Turn::Player(Player::One), 3 - 89));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blokus<P = Value> {
    placed: [Cells; SEATS],
    /// By player: one bit a piece that is left.
    left: [u32; SEATS],
    /// One bit a player whose last piece of all was that of one cell.
    small_last: u8,
    mover: Player,
    over: bool,
    players: u8,
    size: u8,
    payoff: PhantomData<P>,
}

impl Default for Blokus {
    /// Blokus Duo.
    fn default() -> Self {
        Self::start(2, 14)
    }
}

impl<P: Payoff> Blokus<P> {
    /// The start on a square board.
    ///
    /// # Errors
    /// If the players are not 2 with `Value`, or 4 with `Values`; if the size is not from 5 to 20.
    pub fn new(players: usize, size: usize) -> Result<Self, Error> {
        check_players::<P>(players, &[2, 4])?;
        Ok(Self::start(players, in_range("the size", size, 5..=MOST_SIDE)?))
    }

    fn start(players: usize, size: usize) -> Self {
        Self {
            placed: [Cells::NONE; SEATS],
            left: [(1 << PIECES) - 1; SEATS],
            small_last: 0,
            mover: Player::Zero,
            over: false,
            players: players as u8,
            size: size as u8,
            payoff: PhantomData,
        }
    }

    /// A player's points: the cells that are placed, less all 89, and what all pieces and a last one of one cell add.
    #[must_use]
    pub fn score(&self, player: Player) -> i32 {
        let index = player.index();
        let all = if self.left[index] == 0 { 15 } else { 0 };
        let last = if self.small_last >> index & 1 == 1 { 5 } else { 0 };
        self.placed[index].len() as i32 - CELLS as i32 + all + last
    }

    #[inline]
    fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// The place of a cell in sets: a row has a place more than the board has columns.
    #[inline]
    fn bit(&self, row: usize, column: usize) -> usize {
        row * (self.size() + 1) + column
    }

    fn owner_of(&self, row: usize, column: usize) -> Option<Player> {
        everybody(self.players).find(|player| self.placed[player.index()].has(self.bit(row, column)))
    }

    /// The cells that a first piece may cover.
    fn starts(&self, player: Player) -> Cells {
        let last = self.size() - 1;
        if self.players == 2 {
            let near = 4 * last / 13;
            return Cells::NONE.with(self.bit(near, near)).with(self.bit(last - near, last - near));
        }
        let (row, column) = [(last, 0), (0, 0), (0, last), (last, last)][player.index()];
        Cells::NONE.with(self.bit(row, column))
    }

    /// The cells that a player's next piece may cover, and those of which it has to cover one.
    fn open(&self, player: Player) -> (Cells, Cells) {
        let (own, wide) = (self.placed[player.index()], self.size() + 1);
        let mut free = Cells::NONE;
        (0..self.size()).for_each(|row| free = free.or(self.row(row)));
        let edges = own.plus(1).or(own.minus(1)).or(own.plus(wide)).or(own.minus(wide));
        for placed in &self.placed {
            free = free.without(*placed);
        }
        let free = free.without(edges);
        let corners = if own.is_empty() {
            self.starts(player)
        } else {
            own.plus(wide + 1).or(own.plus(wide - 1)).or(own.minus(wide + 1)).or(own.minus(wide - 1))
        };
        (free, corners.and(free))
    }

    /// The cells of a row.
    fn row(&self, row: usize) -> Cells {
        let (first, end) = (self.bit(row, 0), self.bit(row, self.size()));
        Cells::below(end).without(Cells::below(first))
    }

    /// Where a shape can lie, by the upper left corner.
    fn fits(&self, shape: &Shape, (free, corners): (Cells, Cells)) -> Cells {
        let (mut inside, mut touching) = (cells::Cells([u64::MAX; WORDS]), Cells::NONE);
        for &(row, column) in &shape.cells {
            let by = self.bit(row, column);
            inside = inside.and(moved_up(free, by));
            touching = touching.or(moved_up(corners, by));
        }
        inside.and(touching)
    }

    fn has(&self, player: Player, shape: &Shape) -> bool {
        self.left[player.index()] >> shape.piece & 1 == 1
    }

    fn can_place(&self, player: Player) -> bool {
        let open = self.open(player);
        !open.1.is_empty() && ALL.iter().any(|shape| self.has(player, shape) && !self.fits(shape, open).is_empty())
    }

    /// Row, column and shape of an action.
    fn parts(&self, action: Action) -> (usize, usize, &'static Shape) {
        let (cell, shape) = (action as usize / SHAPES, &ALL[action as usize % SHAPES]);
        (cell / self.size(), cell % self.size(), shape)
    }

    /// The cells of an action, by row and column.
    fn covered(&self, action: Action) -> Vec<(usize, usize)> {
        let (row, column, shape) = self.parts(action);
        shape.cells.iter().map(|&(down, right)| (row + down, column + right)).collect()
    }

    fn are_on_board(&self, cells: &[(usize, usize)]) -> bool {
        cells.iter().all(|&(row, column)| row < self.size() && column < self.size())
    }

    fn cell_name(&self, row: usize, column: usize) -> String {
        if row < self.size() { cell_name(column, self.size() - row) } else { format!("{}-", letter(column)) }
    }

    /// Where the tray has a piece.
    fn tray(&self, piece: usize) -> Touch {
        let [x, y] = slot(self.size(), piece);
        Touch::new(format!("piece {}", DRAWN[piece].0), [x, y, 5.0 * SMALL, 5.0 * SMALL])
    }

    fn square(&self, row: usize, column: usize) -> Touch {
        Touch::new(self.cell_name(row, column), [STEP * column as f32, STEP * row as f32, STEP, STEP])
    }

    /// Gives the turn to the first player from `first` on who can place a piece.
    fn pass_on(&mut self, first: usize) {
        let players = usize::from(self.players);
        let mut order = (first..first + players).map(|number| Player::ALL[number % players]);
        match order.find(|&player| self.can_place(player)) {
            Some(player) => self.mover = player,
            None => (self.mover, self.over) = (Player::Zero, true),
        }
    }
}

/// Every cell's number lower by `by`.
#[inline]
fn moved_up(cells: Cells, by: usize) -> Cells {
    match by {
        0 => cells,
        1..=63 => cells.minus(by),
        _ => cells.minus(63).minus(by - 63),
    }
}

impl<P: Payoff> Game for Blokus<P> {
    type Payoff = P;

    fn num_players(&self) -> usize {
        usize::from(self.players)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: SHAPES * self.size() * self.size(),
            obs_shape: [(PIECES + 1) * self.num_players() + 1, self.size(), self.size()],
            max_plies: PIECES * self.num_players(),
            num_symmetries: if self.players == 2 { DUO.len() } else { 1 },
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.over { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        let (open, wide) = (self.open(self.mover), self.size() + 1);
        for (number, shape) in ALL.iter().enumerate().filter(|(_, shape)| self.has(self.mover, shape)) {
            self.fits(shape, open).for_each(|bit| {
                let cell = bit / wide * self.size() + bit % wide;
                out.push((SHAPES * cell + number) as Action);
            });
        }
        out.sort_unstable();
    }

    fn play(&mut self, action: Action) {
        debug_assert!(!self.over && (action as usize) < self.num_actions());
        let (own, piece) = (self.mover.index(), self.parts(action).2.piece);
        for (row, column) in self.covered(action) {
            let bit = self.bit(row, column);
            self.placed[own].insert(bit);
        }
        self.left[own] &= !(1 << piece);
        if self.left[own] == 0 && piece == 0 {
            self.small_last |= 1 << own;
        }
        self.pass_on(own + 1);
    }

    fn outcome(&self) -> P {
        P::won_by(leader(everybody(self.players).map(|player| (player, self.score(player)))), self.num_players())
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let (size, players) = (self.size(), self.num_players());
        let area = size * size;
        for (number, plane) in row.chunks_exact_mut(area).enumerate().take((PIECES + 1) * players) {
            // Cells of all players, and then the pieces of one after the other.
            let (place, piece) = match number.checked_sub(players) {
                None => (number, None),
                Some(number) => (number / PIECES, Some(number % PIECES)),
            };
            let player = (self.mover.index() + place) % players;
            match piece {
                Some(piece) => plane.fill((self.left[player] >> piece & 1) as f32),
                None => self.placed[player].for_each(|bit| plane[bit / (size + 1) * size + bit % (size + 1)] = 1.0),
            }
        }
        let last = row.len() - area;
        self.open(self.mover).1.for_each(|bit| row[last + bit / (size + 1) * size + bit % (size + 1)] = 1.0);
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; self.obs_shape()[0]])
    }

    fn action_cells(&self) -> Option<Vec<u16>> {
        Some((0..(self.size() * self.size()) as u16).collect())
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let (size, covered) = (self.size(), self.covered(action));
        // What lies beyond the board is its own image.
        if !self.are_on_board(&covered) {
            return action;
        }
        let image = |(row, column): (usize, usize)| d4_cell(DUO[symmetry], size, row * size + column);
        let mut cells: Vec<_> = covered.into_iter().map(image).map(|cell| (cell / size, cell % size)).collect();
        cells.sort_unstable();
        let (top, left) =
            cells.iter().fold((size, size), |(top, left), &(row, column)| (top.min(row), left.min(column)));
        cells.iter_mut().for_each(|(row, column)| (*row, *column) = (*row - top, *column - left));
        let shape = ALL.iter().position(|shape| shape.cells == cells).expect("an image of a piece is a piece");
        (SHAPES * (top * size + left) + shape) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(DUO[symmetry], self.size(), row, out);
    }

    fn key(&self) -> u128 {
        // Which pieces are left follows from those on the board.
        let rest = u64::from(self.size)
            | u64::from(self.players) << 8
            | (self.mover.index() as u64) << 16
            | u64::from(self.small_last) << 24;
        let mut words = [rest; WORDS * SEATS + 1];
        for (words, cells) in words.chunks_exact_mut(WORDS).zip(&self.placed) {
            words.copy_from_slice(&cells.0);
        }
        digest(Tag::Blokus, &words)
    }

    fn render(&self) -> String {
        let letters: String = svg::letters(self.size()).join(" ");
        let mut lines = vec![format!("   {letters}")];
        let owner = |cell: usize| self.owner_of(cell / self.size(), cell % self.size());
        for (row, glyphs) in rows(self.size(), self.size(), owner).enumerate() {
            lines.push(format!("{:>2} {glyphs}", self.size() - row));
        }
        for player in everybody(self.players) {
            let left = self.left[player.index()];
            let pieces = (0..PIECES).filter(|piece| left >> piece & 1 == 1);
            let names: Vec<_> = pieces.map(|piece| DRAWN[piece].0).collect();
            let turn = if player == self.mover && !self.over { " to move" } else { "" };
            lines.push(format!("{}{turn}: {}", mark(player), names.join(" ")));
        }
        lines.join("\n")
    }
}

/// Pixels of a cell of the board, of a cell in the tray, and of a place in the tray.
const STEP: f32 = 28.0;
const SMALL: f32 = 9.0;
const SLOT: f32 = 48.0;

/// Where the tray has a piece of the player to move.
fn slot(size: usize, piece: usize) -> [f32; 2] {
    [STEP * (size as f32 + 0.4) + SLOT * (piece % 3) as f32, 1.0 + SLOT * (piece / 3) as f32]
}

impl<P: Payoff> Notation for Blokus<P> {
    /// The cells that the piece covers, from the top: `f9,e8,f8,g8,f7`.
    fn action_name(&self, action: Action) -> String {
        let names: Vec<_> = self.covered(action).into_iter().map(|(row, column)| self.cell_name(row, column)).collect();
        names.join(",")
    }

    /// The first line has the letters of the columns, and the last ones the names of the pieces that are left.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        marked(glyph).filter(|_| line > 0)
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(svg::NAMES[..self.num_players()].to_vec())
    }

    fn result_text(&self) -> String {
        let mut scores: Vec<_> = everybody(self.players).map(|player| self.score(player)).collect();
        scores.sort_unstable_by(|one, other| other.cmp(one));
        let lead = scores[0] - scores[1];
        outcome_text(self, &if lead == 0 { String::new() } else { format!("by {lead}") })
    }

    fn counts(&self) -> Vec<String> {
        everybody(self.players).map(|player| counted(self.score(player), "point")).collect()
    }

    fn to_svg(&self) -> String {
        let size = self.size();
        let side = STEP * size as f32;
        let [width, height] = [slot(size, 2)[0] + SLOT, f32::max(side, 7.0 * SLOT)];
        let mut picture = Svg::new(width, height, self);
        let starts = everybody(self.players).fold(Cells::NONE, |starts, player| starts.or(self.starts(player)));
        for line in 0..size {
            for column in 0..size {
                let (x, y) = (STEP * column as f32, STEP * line as f32);
                let fill = self.owner_of(line, column).map_or(svg::EMPTY, svg::color);
                picture.rect(x, y, STEP, STEP, &format!("fill=\"{fill}\" stroke=\"{}\"", svg::LINE));
                if starts.has(self.bit(line, column)) {
                    picture.circle(x + STEP / 2.0, y + STEP / 2.0, 4.0, &format!("fill=\"{}\"", svg::LINE));
                }
            }
        }
        for line in 0..size {
            let at = STEP * line as f32;
            picture.name(at + STEP - 4.0, side - 5.0, &letter(line).to_string());
            picture.name(6.0, at + 5.0, &(size - line).to_string());
        }
        let left = if self.over { 0 } else { self.left[self.mover.index()] };
        for piece in (0..PIECES).filter(|piece| left >> piece & 1 == 1) {
            let [x, y] = slot(size, piece);
            for (row, column) in cells_of(DRAWN[piece].1) {
                let look = format!("fill=\"{}\" stroke=\"#ffffff\"", svg::color(self.mover));
                picture.rect(x + SMALL * column as f32, y + SMALL * row as f32, SMALL, SMALL, &look);
            }
        }
        picture.done()
    }

    /// The piece in the tray, and each cell that it covers, from the top.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (covered, piece) = (self.covered(action), self.parts(action).2.piece);
        if !self.are_on_board(&covered) {
            return Vec::new();
        }
        let squares = covered.into_iter().map(|(row, column)| self.square(row, column));
        std::iter::once(self.tray(piece)).chain(squares).collect()
    }

    /// The pieces that the player to move has left, and the cells.
    fn places(&self) -> Vec<Touch> {
        let (size, left) = (self.size(), if self.over { 0 } else { self.left[self.mover.index()] });
        let pieces = (0..PIECES).filter(|piece| left >> piece & 1 == 1).map(|piece| self.tray(piece));
        pieces.chain((0..size * size).map(|cell| self.square(cell / size, cell % size))).collect()
    }
}
