//! Hex on a rhombus of size x size cells, 3 to 13, 11 by default; x (player 0) begins.
//!
//! Player 0 connects top and bottom, player 1 left and right. Cells and actions are `row * size + column`, row 0 =
//! top; with the option `swap` there is one more, `size * size`.
//!
//! The players' planes do not change places, because a chain of player 0 is one from top to bottom whoever moves.
//! (Both together count: on equal records a 3x32 network explains 12 % of the variance of the outcomes, and 5 % with
//! the mover's stones first and without connections.)
//!
//! Of each player the stones that a chain connects to the first side, top or left, are kept as a set. It has a mark
//! for that side too, which the cells there touch as they touch each other. A stone that touches the set brings in all
//! that it connects, so every stone comes in at most once a game. When the set has a stone on the opposite side, the
//! game is won.
//!
//! Invariant: the stone sets are disjoint and on the board, `empty` has the other cells, and `joined` is up to date.

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text};

use crate::cells::{self, Counted};
use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::{
    Board as Drawn, PLAYERS, board_or_line, cell_name, in_range, read_board, rows, stones, write_board,
};
use crate::planes::{cells_then, d4_cell, d4_planes, put_bits};
use crate::svg::{self, Svg};

const MIN_SIZE: usize = 3;
const MAX_SIZE: usize = 13;
const WORDS: usize = (MAX_SIZE * MAX_SIZE).div_ceil(64);

/// The numbers, among the symmetries of a square, of mirroring rows and columns and of exchanging them.
const HALF_TURN: usize = 3;
const LONG_DIAGONAL: usize = 4;

type Cells = cells::Cells<WORDS>;

/// By player: what stands for the first side among the cells, a number that no cell has.
const SIDES: [Cells; 2] = [Cells::NONE.with(64 * WORDS - 2), Cells::NONE.with(64 * WORDS - 1)];
const _: () = assert!(MAX_SIZE * MAX_SIZE <= 64 * WORDS - 2);

/// Of the picture: from a cell's middle to its corners, from there to its upright sides, and the width of the players'
/// sides around the board.
const RADIUS: f32 = 20.0;
const HALF: f32 = 0.866 * RADIUS;
const SIDE: f32 = 14.0;

/// The middle of a cell of the picture: a row is half a cell further right than the one above it.
fn middle(row: usize, column: usize) -> (f32, f32) {
    (SIDE + HALF * (2 * column + row + 1) as f32, SIDE + RADIUS * (1.0 + 1.5 * row as f32))
}

/// What follows from the size alone.
#[derive(Clone, Copy)]
struct Board {
    cells: Cells,
    /// By player: the cells of the side opposite to the first one.
    last: [Cells; 2],
    /// By cell: the cells that touch it, and the first sides where it lies.
    near: [Cells; MAX_SIZE * MAX_SIZE],
}

impl Board {
    const NONE: Self = Self { cells: Cells::NONE, last: [Cells::NONE; 2], near: [Cells::NONE; MAX_SIZE * MAX_SIZE] };

    const fn new(size: usize) -> Self {
        let mut board = Self::NONE;
        let mut cell = 0;
        while cell < size * size {
            board.cells = board.cells.with(cell);
            // To the right, below, and below to the left; and so the other way round.
            let touched = [(cell % size < size - 1, cell + 1), (true, cell + size), (cell % size > 0, cell + size - 1)];
            let mut way = 0;
            while way < 3 {
                let (is_there, other) = touched[way];
                if is_there && other < size * size {
                    board.near[cell] = board.near[cell].with(other);
                    board.near[other] = board.near[other].with(cell);
                }
                way += 1;
            }
            cell += 1;
        }
        let mut place = 0;
        while place < size {
            let (top, left) = (place, place * size);
            board.near[top] = board.near[top].with(64 * WORDS - 2);
            board.near[left] = board.near[left].with(64 * WORDS - 1);
            let [bottom, right] = board.last;
            board.last = [bottom.with((size - 1) * size + place), right.with(left + size - 1)];
            place += 1;
        }
        board
    }
}

/// Boards by size.
static BOARDS: [Board; MAX_SIZE + 1] = {
    let mut boards = [Board::NONE; MAX_SIZE + 1];
    let mut size = MIN_SIZE;
    while size <= MAX_SIZE {
        boards[size] = Board::new(size);
        size += 1;
    }
    boards
};

/// A position of Hex.
///
/// ```
/// use azpy_core::game::{Game, Value};
/// use azpy_games::Hex;
///
/// let mut game = Hex::new(3, false)?;
/// for cell in [4, 3, 2, 5, 6] {
///     game.try_play(cell).unwrap();
/// }
/// assert_eq!(game.render(), "  a b c\n1 . . x\n 2 o x o\n  3 x . .");
/// assert_eq!(game.outcome(), Value(1.0)); // c1 touches b2, b2 touches a3
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hex {
    /// By player.
    stones: [Cells; 2],
    empty: Counted<WORDS>,
    /// By player: the first side, and those of the stones that a chain of them connects to it.
    joined: [Cells; 2],
    size: u8,
    swap: bool,
    mover: Player,
    /// The last to move, the opponent of `mover`, has connected both sides.
    won: bool,
}

impl Default for Hex {
    /// The usual game: 11 x 11, without swap.
    fn default() -> Self {
        Self::empty(11, false)
    }
}

impl Hex {
    /// The empty board of `size` rows and columns; with `swap`, player 1 may take over the first stone.
    ///
    /// # Errors
    /// If the size is not from 3 to 13.
    pub fn new(size: usize, swap: bool) -> Result<Self, Error> {
        Ok(Self::empty(in_range("the size", size, MIN_SIZE..=MAX_SIZE)?, swap))
    }

    fn empty(size: u8, swap: bool) -> Self {
        Self {
            stones: [Cells::NONE; 2],
            empty: Counted::of(BOARDS[usize::from(size)].cells),
            joined: SIDES,
            size,
            swap,
            mover: Player::Zero,
            won: false,
        }
    }

    /// Rows of the board, and columns.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// The owner of the stone on `cell` (row * size + column), if there is one.
    #[must_use]
    pub fn stone(&self, cell: usize) -> Option<Player> {
        debug_assert!(cell < self.num_cells());
        PLAYERS.into_iter().find(|player| self.stones[player.index()].has(cell))
    }

    #[inline]
    fn num_cells(&self) -> usize {
        self.size() * self.size()
    }

    #[inline]
    fn board(&self) -> &'static Board {
        &BOARDS[self.size()]
    }

    #[inline]
    fn place(&mut self, player: Player, cell: usize) {
        let (own, board) = (player.index(), self.board());
        self.stones[own].insert(cell);
        self.empty.remove(cell);
        if board.near[cell].meets(self.joined[own]) {
            self.joined[own] = self.connected(own, Cells::NONE.with(cell), self.joined[own]);
            self.won = self.joined[own].meets(board.last[own]);
        }
    }

    /// `joined` with `new` stones, and all that they connect.
    #[inline]
    fn connected(&self, own: usize, mut new: Cells, mut joined: Cells) -> Cells {
        let board = self.board();
        while !new.is_empty() {
            joined = joined.or(new);
            let mut near = Cells::NONE;
            new.for_each(|cell| near = near.or(board.near[cell]));
            new = near.and(self.stones[own]).without(joined);
        }
        joined
    }

    /// Finds all that is joined to the player's first side, and whether that has reached the other.
    fn join(&mut self, player: Player) -> bool {
        let (own, board) = (player.index(), self.board());
        let mut first = Cells::NONE;
        self.stones[own].for_each(|cell| {
            if board.near[cell].meets(SIDES[own]) {
                first.insert(cell);
            }
        });
        self.joined[own] = self.connected(own, first, SIDES[own]);
        self.joined[own].meets(board.last[own])
    }

    /// Refuses numbers of stones that nobody can have here. A swap takes a stone from x and gives one to o.
    fn check_turns(&self, drawn: &Drawn) -> Result<(), Error> {
        let [x, o, ..] = drawn.counts();
        let swapped = match drawn.mover {
            Player::Zero => o == x + 1,
            _ => o == x && o > 0,
        };
        match drawn.check_turns() {
            Err(error) if self.swap && !swapped => Err(invalid!("{error}; after a swap x has one less")),
            Err(_) if self.swap => Ok(()),
            other => other,
        }
    }

    #[inline]
    fn may_swap(&self) -> bool {
        // Before its first action, and then only, player 1 is to move without a stone.
        self.swap && self.mover == Player::One && self.stones[1].is_empty()
    }

    fn swap_first_stone(&mut self) {
        let mut first = 0;
        self.stones[0].for_each(|cell| first = cell);
        self.stones[0] = Cells::NONE;
        self.joined[0] = SIDES[0];
        self.empty = Counted::of(self.board().cells);
        self.place(Player::One, d4_cell(LONG_DIAGONAL, self.size(), first));
    }
}

impl Game for Hex {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        let actions = self.num_cells() + usize::from(self.swap);
        // Swapping adds no stone.
        Sizes { num_actions: actions, obs_shape: [7, self.size(), self.size()], max_plies: actions, num_symmetries: 2 }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.won { Turn::Terminal } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.reserve(self.num_actions());
        self.empty.cells().for_each(|cell| out.push(cell as Action));
        if self.may_swap() {
            out.push(self.num_cells() as Action);
        }
    }

    #[inline]
    fn pick_action(&self, _: &mut Vec<Action>, draw: impl FnOnce(usize) -> usize) -> Option<Action> {
        let count = self.empty.len();
        let drawn = draw(count + usize::from(self.may_swap()));
        Some(if drawn == count { self.num_cells() } else { self.empty.nth(drawn) } as Action)
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let cell = action as usize;
        debug_assert!(!self.won && cell < self.num_actions());
        if cell == self.num_cells() {
            debug_assert!(self.may_swap());
            self.swap_first_stone();
        } else {
            debug_assert!(self.stone(cell).is_none());
            self.place(self.mover, cell);
        }
        self.mover = self.mover.opponent();
    }

    #[inline]
    fn outcome(&self) -> Value {
        Value::won_by(self.won.then(|| self.mover.opponent()), 2)
    }

    fn encode(&self, row: &mut [f32]) {
        let cells = self.num_cells();
        for (own, planes) in row.chunks_exact_mut(3 * cells).enumerate() {
            let last = self.connected(own, self.board().last[own].and(self.stones[own]), Cells::NONE);
            let sets = [self.stones[own], self.joined[own].without(SIDES[own]), last];
            for (plane, set) in planes.chunks_exact_mut(cells).zip(sets) {
                put_bits(plane, &set.0);
            }
        }
        row[6 * cells..].fill(f32::from(self.mover as u8));
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 7])
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        Some(cells_then(self.num_cells(), self.num_actions()))
    }

    #[inline]
    fn key(&self) -> u128 {
        // A swap shows in the turn: with as many stones of either player, or with one more of player 1.
        let rest = u64::from(self.size) | u64::from(self.swap) << 8 | (self.mover as u64) << 16;
        let [[a, b, c], [d, e, f]] = self.stones.map(|cells| cells.0);
        digest(Tag::Hex, &[rest, a, b, c, d, e, f])
    }

    #[inline]
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let cell = action as usize;
        // A swap stays a swap: turning and exchanging rows with columns give the same in either order.
        if cell == self.num_cells() { action } else { d4_cell(symmetry * HALF_TURN, self.size(), cell) as Action }
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        d4_planes(symmetry * HALF_TURN, self.size(), row, out);
        if symmetry == 1 {
            // What is connected to the top is now connected to the bottom, and so on.
            let cells = self.num_cells();
            for first in [1, 4] {
                out[first * cells..(first + 2) * cells].rotate_left(cells);
            }
        }
    }

    fn render(&self) -> String {
        let size = self.size();
        let places = size.to_string().len();
        let mut board = format!("{:places$} {}", "", svg::letters(size).join(" "));
        for (row, stones) in rows(size, size, |cell| self.stone(cell)).enumerate() {
            board += &format!("\n{:row$}{:>places$} {stones}", "", row + 1);
        }
        board
    }
}

impl Notation for Hex {
    /// Column letter and row number as printed beside the board, or "swap".
    fn action_name(&self, action: Action) -> String {
        let (size, cell) = (self.size(), action as usize);
        if cell == self.num_cells() { "swap".to_owned() } else { cell_name(cell % size, cell / size + 1) }
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(self.num_cells(), |cell| self.action_name(cell as Action), |cell| self.stone(cell))
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["red", "blue"])
    }

    fn result_text(&self) -> String {
        let sides = if self.mover == Player::One { "top and bottom" } else { "left and right" };
        outcome_text(self, &format!("by connecting {sides}"))
    }

    fn to_svg(&self) -> String {
        // Corners of a cell from its middle, clockwise from the top.
        const CORNERS: [(f32, f32); 6] = [
            (0.0, -RADIUS),
            (HALF, -RADIUS / 2.0),
            (HALF, RADIUS / 2.0),
            (0.0, RADIUS),
            (-HALF, RADIUS / 2.0),
            (-HALF, -RADIUS / 2.0),
        ];
        let size = self.size();
        let corner = |(x, y): (f32, f32), number: usize| (x + CORNERS[number % 6].0, y + CORNERS[number % 6].1);
        let last = middle(size - 1, size - 1);
        let (width, height) = (last.0 + HALF + SIDE, last.1 + RADIUS + SIDE);
        let mut picture = Svg::new(width, height, self);
        // Each player's sides, below the cells: along two edges of every cell there, from a corner to the next but one.
        for place in 0..size {
            let sides = [
                (middle(0, place), 5, Player::Zero),
                (middle(size - 1, place), 2, Player::Zero),
                (middle(place, 0), 3, Player::One),
                (middle(place, size - 1), 0, Player::One),
            ];
            for (at, first, player) in sides {
                let look = format!(
                    "stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"",
                    svg::color(player),
                    2.0 * SIDE
                );
                picture.line(corner(at, first), corner(at, first + 1), &look);
                picture.line(corner(at, first + 1), corner(at, first + 2), &look);
            }
        }
        let look = format!("fill=\"{}\" stroke=\"{}\"", svg::EMPTY, svg::LINE);
        for cell in 0..size * size {
            let at = middle(cell / size, cell % size);
            picture.polygon(&[0, 1, 2, 3, 4, 5].map(|number| corner(at, number)), &look);
        }
        for (place, letter) in svg::letters(size).iter().enumerate() {
            let ((x, y), (left, beside)) = (middle(0, place), middle(place, 0));
            let white = "class=\"name\" fill=\"#ffffff\"";
            picture.text_that_looks(x, y - RADIUS - 7.0, 9.0, letter, white);
            picture.text_that_looks(left - HALF - 7.0, beside, 9.0, &(place + 1).to_string(), white);
        }
        for cell in 0..size * size {
            let (x, y) = middle(cell / size, cell % size);
            if let Some(player) = self.stone(cell) {
                let has_won = self.won && self.joined[player.index()].has(cell);
                picture.circle(x, y, 0.62 * RADIUS, &svg::stone(player, has_won));
            }
        }
        picture.done()
    }

    /// The largest box inside the cell's hexagon; a swap has none.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (size, cell) = (self.size(), action as usize);
        if cell >= self.num_cells() {
            return Vec::new();
        }
        let (x, y) = middle(cell / size, cell % size);
        vec![Touch::new(self.action_name(action), [x - HALF, y - RADIUS / 2.0, 2.0 * HALF, RADIUS])]
    }

    /// A board as in `.../.x./o.. x`, or a line of play. The numbers of stones say whether there was a swap, and whether
    /// it may come next.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let board = read_board(text, self.size(), self.size())?;
            self.check_turns(&board)?;
            let mut state = Self::empty(self.size, self.swap);
            state.mover = board.mover;
            for player in PLAYERS {
                state.stones[player.index()] = board.stones(player).fold(Cells::NONE, Cells::with);
            }
            let [x, o] = state.stones;
            state.empty = Counted::of(self.board().cells.without(x.or(o)));
            let won = PLAYERS.map(|player| state.join(player));
            board.check_winner(won, |winner| {
                board.stones(winner).any(|cell| {
                    let mut before = state;
                    before.stones[winner.index()].remove(cell);
                    !before.join(winner)
                })
            })?;
            state.won = won.contains(&true);
            Ok(state)
        })
    }

    fn to_text(&self) -> Option<String> {
        Some(write_board(self.size(), self.size(), self.mover, |cell| self.stone(cell)))
    }
}
