//! Peg solitaire for one player: a peg jumps over a neighbour into an empty hole, and the peg that was jumped over is
//! taken.
//!
//! Holes are numbered row by row from the top. An action is `hole * directions + direction`: which peg jumps, and
//! where to. Directions go clockwise from up: up, right, down, left; in the triangle up right, right, down right, down
//! left, left, up left. Rows of the triangle begin at the left of a square of 5 x 5 cells, and its column a is the
//! left edge.

use std::str::FromStr;
use std::sync::LazyLock;

use azpy_core::game::{Action, Game, Player, Sizes, Turn, Values};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, spread};
use crate::notation::{board_or_line, cell_name, counted, mark, stones};
use crate::planes::{D4, d4_cell};
use crate::svg::{self, CELL, Svg, centre};

/// On which board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PegBoard {
    /// The cross of 33 holes.
    #[default]
    English,
    /// 15 holes in five rows.
    Triangle,
}

impl FromStr for PegBoard {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "english" => Ok(Self::English),
            "triangle" => Ok(Self::Triangle),
            _ => Err(Error::value("board", "english or triangle", shown(name))),
        }
    }
}

/// Row and column.
type RowColumn = [usize; 2];

struct Jump {
    /// The peg that jumps and the one that is taken, a bit each.
    pegs: u64,
    /// Where it comes down, as a bit.
    to: u64,
}

/// What never changes on a board.
struct Layout {
    /// Rows, and columns.
    side: usize,
    /// The top of each row is half a hole further to the right.
    slanted: bool,
    holes: Vec<RowColumn>,
    directions: usize,
    /// By action; `None` where a peg would leave the board.
    jumps: Vec<Option<Jump>>,
    /// By symmetry: the image of each hole and of each direction.
    images: Vec<(Vec<usize>, Vec<usize>)>,
    start: u64,
}

static ENGLISH: LazyLock<Layout> = LazyLock::new(|| {
    let holes = |[row, column]: RowColumn| (2..5).contains(&row) || (2..5).contains(&column);
    let image = |symmetry, [row, column]: RowColumn| {
        let cell = d4_cell(symmetry, 7, 7 * row + column);
        [cell / 7, cell % 7]
    };
    Layout::new(7, false, holes, &[[-1, 0], [0, 1], [1, 0], [0, -1]], [3, 3], D4, image)
});

static TRIANGLE: LazyLock<Layout> = LazyLock::new(|| {
    // Three numbers say how far a hole is from each edge. Symmetries exchange the edges.
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
    let image = |symmetry: usize, [row, column]: RowColumn| {
        let [_, left, bottom] = ORDERS[symmetry].map(|edge| [row - column, column, 4 - row][edge]);
        [4 - bottom, left]
    };
    let steps = [[-1, 0], [0, 1], [1, 1], [1, 0], [0, -1], [-1, -1]];
    Layout::new(5, true, |[row, column]| column <= row, &steps, [0, 0], ORDERS.len(), image)
});

impl Layout {
    fn new(
        side: usize,
        slanted: bool,
        is_hole: impl Fn(RowColumn) -> bool,
        steps: &[[isize; 2]],
        empty: RowColumn,
        symmetries: usize,
        image: impl Fn(usize, RowColumn) -> RowColumn,
    ) -> Self {
        let cells = (0..side).flat_map(|row| (0..side).map(move |column| [row, column]));
        let holes: Vec<RowColumn> = cells.filter(|&place| is_hole(place)).collect();
        let number = |place: RowColumn| holes.iter().position(|&hole| hole == place);
        let beside = |hole: usize, direction: usize| {
            let ([row, column], [down, right]) = (holes[hole], steps[direction]);
            number([row.checked_add_signed(down)?, column.checked_add_signed(right)?])
        };
        let jump = |action: usize| {
            let (from, direction) = (action / steps.len(), action % steps.len());
            let over = beside(from, direction)?;
            Some(Jump { pegs: 1 << from | 1 << over, to: 1 << beside(over, direction)? })
        };
        let images = (0..symmetries).map(|symmetry| {
            // Every image of a hole is a hole.
            let moved: Vec<usize> = holes.iter().filter_map(|&hole| number(image(symmetry, hole))).collect();
            let turned = |direction: usize| {
                let seen = (0..holes.len()).find_map(|hole| Some((moved[hole], moved[beside(hole, direction)?])));
                (0..steps.len()).find(|&other| seen.is_some_and(|(from, to)| beside(from, other) == Some(to)))
            };
            let directions: Vec<usize> = (0..steps.len()).filter_map(turned).collect();
            (moved, directions)
        });
        let images = images.collect();
        let start = (1 << holes.len()) - 1 - number(empty).map_or(0, |hole| 1 << hole);
        let jumps = (0..holes.len() * steps.len()).map(jump).collect();
        Self { side, slanted, directions: steps.len(), jumps, images, start, holes }
    }
}

impl Jump {
    fn is_legal(&self, pegs: u64) -> bool {
        pegs & self.pegs == self.pegs && pegs & self.to == 0
    }
}

/// A position of peg solitaire.
///
/// ```
/// use azpy_core::game::Game;
/// use azpy_core::text::Notation;
/// use azpy_games::{PegBoard, PegSolitaire};
///
/// let game = PegSolitaire::new(PegBoard::Triangle).parse("a3a5 c3a3")?;
/// assert_eq!(game.render(), "5     x\n4    . x\n3   x . .\n2  x x x x\n1 x x x x x\n  a b c d e");
/// assert_eq!(game.to_text().unwrap(), "x/.x/x../xxxx/xxxxx");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PegSolitaire {
    board: PegBoard,
    /// A bit a hole.
    pegs: u64,
}

impl Default for PegSolitaire {
    /// The English board.
    fn default() -> Self {
        Self::new(PegBoard::English)
    }
}

impl PegSolitaire {
    /// The start on a board.
    #[must_use]
    pub fn new(board: PegBoard) -> Self {
        let empty = Self { board, pegs: 0 };
        Self { pegs: empty.layout().start, ..empty }
    }

    /// How many pegs are left.
    #[must_use]
    pub fn pegs(&self) -> u32 {
        self.pegs.count_ones()
    }

    fn layout(&self) -> &'static Layout {
        match self.board {
            PegBoard::English => &ENGLISH,
            PegBoard::Triangle => &TRIANGLE,
        }
    }

    fn has_peg(&self, hole: usize) -> bool {
        self.pegs >> hole & 1 == 1
    }

    fn jumps(&self) -> impl Iterator<Item = (usize, &'static Jump)> {
        let jumps = self.layout().jumps.iter().enumerate();
        jumps.filter_map(|(action, jump)| jump.as_ref().map(|jump| (action, jump)))
    }

    /// The holes where a peg would jump from, and to.
    fn way(&self, action: Action) -> (usize, Option<usize>) {
        let (layout, action) = (self.layout(), action as usize);
        let to = layout.jumps[action].as_ref().map(|jump| jump.to.trailing_zeros() as usize);
        (action / layout.directions, to)
    }

    /// Column letter and row number as on a chess board.
    fn hole_name(&self, hole: usize) -> String {
        let (side, [row, column]) = (self.layout().side, self.layout().holes[hole]);
        cell_name(column, side - row)
    }

    /// The holes of each row from the top.
    fn board_text(&self) -> String {
        let mut text = String::new();
        for (hole, &[row, _]) in self.layout().holes.iter().enumerate() {
            if hole > 0 && row != self.layout().holes[hole - 1][0] {
                text.push('/');
            }
            text.push(if self.has_peg(hole) { mark(Player::Zero) } else { '.' });
        }
        text
    }

    /// The middle of a hole in the picture.
    fn middle(&self, [row, column]: RowColumn) -> (f32, f32) {
        let layout = self.layout();
        let slant = if layout.slanted { CELL / 2.0 * (layout.side - 1 - row) as f32 } else { 0.0 };
        (centre(column) + slant, centre(row))
    }
}

impl Game for PegSolitaire {
    type Payoff = Values;

    fn num_players(&self) -> usize {
        1
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: self.layout().jumps.len(),
            obs_shape: [2, self.layout().side, self.layout().side],
            // Each jump takes a peg, and one stays.
            max_plies: self.layout().holes.len() - 2,
            num_symmetries: self.layout().images.len(),
        }
    }

    fn turn(&self) -> Turn {
        let goes_on = self.jumps().any(|(_, jump)| jump.is_legal(self.pegs));
        if goes_on { Turn::Player(Player::Zero) } else { Turn::Terminal }
    }

    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend(self.jumps().filter(|(_, jump)| jump.is_legal(self.pegs)).map(|(action, _)| action as Action));
    }

    fn play(&mut self, action: Action) {
        let jump = self.layout().jumps[action as usize].as_ref();
        debug_assert!(jump.is_some_and(|jump| jump.is_legal(self.pegs)), "{action} is not a legal jump");
        self.pegs ^= jump.map_or(0, |jump| jump.pegs | jump.to);
    }

    fn outcome(&self) -> Values {
        Values::new(&[2.0 / self.pegs() as f32 - 1.0])
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        let side = self.layout().side;
        for (hole, [down, right]) in self.layout().holes.iter().enumerate() {
            let plane = usize::from(!self.has_peg(hole));
            row[(plane * side + down) * side + right] = 1.0;
        }
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        Some(vec![1; 2])
    }

    fn action_cells(&self) -> Option<Vec<u16>> {
        let side = self.layout().side;
        Some(self.layout().holes.iter().map(|[row, column]| (row * side + column) as u16).collect())
    }

    fn key(&self) -> u128 {
        spread(Tag::PegSolitaire, self.board as u64, self.pegs)
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let (layout, action) = (self.layout(), action as usize);
        let (holes, directions) = &layout.images[symmetry];
        (holes[action / layout.directions] * layout.directions + directions[action % layout.directions]) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        // Cells without a hole stay as they are.
        out.copy_from_slice(row);
        let Layout { side, holes, images, .. } = self.layout();
        let cell = |hole: usize| holes[hole][0] * side + holes[hole][1];
        for (plane, moved) in row.chunks_exact(side * side).zip(out.chunks_exact_mut(side * side)) {
            for (hole, &image) in images[symmetry].0.iter().enumerate() {
                moved[cell(image)] = plane[cell(hole)];
            }
        }
    }

    fn render(&self) -> String {
        let layout = self.layout();
        let side = layout.side;
        let mut lines = vec![vec![' '; 2 * side]; side + 1];
        for (hole, &[row, column]) in layout.holes.iter().enumerate() {
            let slant = if layout.slanted { side - 1 - row } else { 0 };
            lines[row][2 * column + slant] = if self.has_peg(hole) { mark(Player::Zero) } else { '.' };
        }
        for (column, letter) in ('a'..).take(side).enumerate() {
            lines[side][2 * column] = letter;
        }
        let line = |(number, line): (usize, Vec<char>)| {
            let number = if number < side { (side - number).to_string() } else { " ".to_owned() };
            let text = format!("{number} {}", line.into_iter().collect::<String>());
            text.trim_end().to_owned()
        };
        lines.into_iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Notation for PegSolitaire {
    /// Where the peg stands and where it jumps: d2d4.
    fn action_name(&self, action: Action) -> String {
        let (from, to) = self.way(action);
        // Name impossible actions too.
        self.hole_name(from) + &to.map_or("-".to_owned(), |to| self.hole_name(to))
    }

    fn on_board(&self) -> Vec<(String, char)> {
        let peg = |hole| self.has_peg(hole).then_some(Player::Zero);
        stones(self.layout().holes.len(), |hole| self.hole_name(hole), peg)
    }

    fn result_text(&self) -> String {
        match self.pegs() {
            1 => "Solved: one peg is left".to_owned(),
            pegs => format!("{pegs} pegs are left"),
        }
    }

    fn counts(&self) -> Vec<String> {
        vec![counted(self.pegs(), "peg")]
    }

    fn can_rotate(&self) -> bool {
        false
    }

    fn to_svg(&self) -> String {
        let layout = self.layout();
        let side = layout.side;
        let mut picture = Svg::board(side, side, self);
        if layout.slanted {
            // The columns run along the left edge, and their letters stand at the right one.
            for (number, letter) in svg::letters(side).iter().enumerate() {
                let (x, y) = self.middle([number, number]);
                picture.name(x + 0.42 * CELL, y - 0.3 * CELL, letter);
                let (x, y) = self.middle([number, 0]);
                picture.name(x - 0.43 * CELL, y, &(side - number).to_string());
            }
        } else {
            picture.name_cells(side, side, true);
        }
        for (hole, &place) in layout.holes.iter().enumerate() {
            let (x, y) = self.middle(place);
            let fill = if self.has_peg(hole) { svg::color(Player::Zero) } else { svg::EMPTY };
            picture.circle(x, y, 0.36 * CELL, &format!("fill=\"{fill}\" stroke=\"{}\"", svg::LINE));
        }
        picture.done()
    }

    /// Where the peg stands, and where it jumps.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (from, Some(to)) = self.way(action) else { return Vec::new() };
        let touch = |hole: usize| {
            let (x, y) = self.middle(self.layout().holes[hole]);
            Touch::new(self.hole_name(hole), [x - CELL / 2.0, y - CELL / 2.0, CELL, CELL])
        };
        vec![touch(from), touch(to)]
    }

    /// A board as in `x/.x/x../xxxx/xxxxx`, the holes of each row from the top, or a line of play. One empty hole,
    /// wherever it is, is the start of another puzzle; on any other board a jump must have been the last one.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        board_or_line(self, text, |text| {
            let (layout, peg) = (self.layout(), mark(Player::Zero));
            let form = Self { pegs: 0, ..*self }.board_text();
            if text.trim().replace(peg, ".") != form {
                return Err(Error::value("the board", format!("{form} with {peg} where pegs are"), shown(text)));
            }
            let holes = text.trim().chars().filter(|&cell| cell != '/').enumerate();
            let pegs = holes.filter(|&(_, cell)| cell == peg).fold(0, |pegs, (hole, _)| pegs | 1 << hole);
            let state = Self { pegs, ..*self };
            let is_start = state.pegs() as usize + 1 == layout.holes.len();
            if !is_start && !state.jumps().any(|(_, jump)| pegs & jump.to != 0 && pegs & jump.pegs == 0) {
                return Err(invalid!("no game reaches this board, and it is not a start: {}", shown(text)));
            }
            Ok(state)
        })
    }

    fn to_text(&self) -> Option<String> {
        Some(self.board_text())
    }
}
