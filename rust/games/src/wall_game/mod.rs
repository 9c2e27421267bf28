//! The Wall Game: a cat hunts the other player's mouse, and walls lengthen its way; Red (player 0) begins.
//!
//! The rules know turns of fewer than two actions ([`WallGame::end_turn`]). Search plays two, where the second is not
//! the first step taken back; a turn ends after its first action where no second one is legal. (A first action is
//! always legal: the cat has a path to the mouse.)
//!
//! Cells are `column * rows + row`, row 0 = top. The policy and the planes are those of the original program, Deep
//! Wallwars, so that its models play here. Policy: the walls right of each cell, those below each cell, the
//! steps of the cat right, down, left and up, those of the mouse.
//!
//! No symmetry leaves the start as it is: images of positions of a game are positions of a game from another start.
//! Freestyle, whose start is drawn, has the identity alone.
//!
//! Invariant: each cat has a path to the enemy's mouse; `undo` and `status` are up to date.

use std::str::FromStr;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::text::shown;

use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::PLAYERS;
use crate::planes::cells_then;
use board::{Board, MAX_SIDE, Slots, image_of_direction, opposite};

mod board;
mod notation;
mod picture;
mod start;

/// Sides from here to [`MAX_SIDE`]. The game is meant for 3 and more; 2 x 2 is its smallest example.
const MIN_SIDE: usize = 2;
/// Turns of one player each, after which the game is a draw: 100 of both.
const MAX_TURNS: u8 = 200;
/// Where freestyle is played: columns and rows.
const FREESTYLE: [usize; 2] = [12, 10];
/// Random starts of freestyle that the chance turn draws from: a power of two, so that probabilities sum to 1 exactly.
const STARTS: Action = 1 << 15;

const CAT: usize = 0;
const MOUSE: usize = 1;

/// How the game begins, and whether mice step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Pieces in the corners.
    #[default]
    Standard,
    /// Pieces in the corners; mice stay there.
    Classic,
    /// Pieces and some walls at random, on 12 x 10 cells.
    Freestyle,
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "standard" => Ok(Self::Standard),
            "classic" => Ok(Self::Classic),
            "freestyle" => Ok(Self::Freestyle),
            _ => Err(Error::value("the variant", "standard, classic or freestyle", shown(text))),
        }
    }
}

/// The variant and the options of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WallRules {
    /// How it begins, and whether mice step.
    pub variant: Variant,
    /// Whether a capture ends the game after the first action of a turn too.
    pub immediate: bool,
    /// Whether it is a draw if Red captures in Red's own turn while Blue's cat is at most two steps from Red's mouse: Red,
    /// who began, has had a turn more.
    pub one_move_rule: bool,
    /// Whether the policy lacks the steps of mice, as that of models for the classic variant alone.
    pub classic_policy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    /// The start is still to be drawn.
    Undrawn,
    Playing,
    /// The position was read after the first action of a turn, and no second one is legal. Search cannot begin here.
    /// [`WallGame::end_turn`] goes on.
    Stuck,
    /// The winner, if there is one.
    Over(Option<Player>),
}

/// A position of the Wall Game. `Copy`: a search clones one for each simulation.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Value};
/// use azpy_core::text::Notation;
/// use azpy_games::{WallGame, WallRules};
///
/// let start = WallGame::new(3, 3, WallRules::default())?;
/// let game = start.parse("Cb3.>b3 Mc2.^b1 Ca2")?; // turns, or the actions one by one
/// assert_eq!(game.turn(), Turn::Player(Player::One));
/// assert_eq!(game.to_text().unwrap(), "cats a2 c3 mice a1 c2 walls >b3 ^b1 turn 2 blue");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WallGame {
    board: Board,
    /// By player: the cells of the cat and the mouse.
    pawns: [[u16; 2]; 2],
    rules: WallRules,
    /// Turns that are over, of both players.
    turns: u8,
    /// Whether the first action of this turn is done.
    second: bool,
    /// The step that would take it back: bit `4 * pawn + direction`.
    undo: u8,
    status: Status,
}

impl Default for WallGame {
    /// The usual game: standard, 8 x 8, without options.
    fn default() -> Self {
        Self::corners(8, 8, WallRules::default())
    }
}

impl WallGame {
    /// The start on a board of so many columns and rows. Freestyle begins with the draw of its start.
    ///
    /// # Errors
    /// If a side is not from 2 to 20, freestyle is not on 12 x 10, or a policy without mice is asked for where they step.
    pub fn new(columns: usize, rows: usize, rules: WallRules) -> Result<Self, Error> {
        let size = format!("{columns} x {rows}");
        if ![columns, rows].iter().all(|side| (MIN_SIDE..=MAX_SIDE).contains(side)) {
            return Err(Error::value("columns and rows", format!("from {MIN_SIDE} to {MAX_SIDE}"), size));
        }
        if rules.variant == Variant::Freestyle && [columns, rows] != FREESTYLE {
            let [wide, high] = FREESTYLE;
            return Err(Error::form(format!("freestyle is played on {wide} x {high} cells"), size));
        }
        if rules.classic_policy && rules.variant != Variant::Classic {
            return Err(invalid!("a policy without steps of mice (classic_policy) needs the classic variant"));
        }
        Ok(Self::corners(columns, rows, rules))
    }

    /// The freestyle start that a seed leads to, the same on every machine. Seeds below 32,768 are the outcomes of the
    /// chance turn.
    ///
    /// # Errors
    /// If the variant is another one.
    pub fn with_seed(rules: WallRules, seed: u64) -> Result<Self, Error> {
        if rules.variant != Variant::Freestyle {
            return Err(Error::form("only freestyle has random starts, so only it takes a seed", seed));
        }
        let [columns, rows] = FREESTYLE;
        let mut start = Self::new(columns, rows, rules)?;
        start.draw_start(seed);
        Ok(start)
    }

    fn corners(columns: usize, rows: usize, rules: WallRules) -> Self {
        let corner = |column: usize, row: usize| (column * rows + row) as u16;
        let side = |column: usize| [corner(column, 0), corner(column, rows - 1)];
        let undrawn = rules.variant == Variant::Freestyle;
        Self {
            board: Board::new(columns, rows),
            pawns: [side(0), side(columns - 1)],
            rules,
            turns: 0,
            second: false,
            undo: 0,
            status: if undrawn { Status::Undrawn } else { Status::Playing },
        }
    }

    /// Columns of the board.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.board.columns()
    }

    /// Rows of the board.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.board.rows()
    }

    /// Ends the turn with fewer than two actions. The rules allow this and search never does it: the policy has no number
    /// for it. A capture is judged.
    ///
    /// # Errors
    /// If it is nobody's turn.
    pub fn end_turn(&mut self) -> Result<(), Error> {
        if !matches!(self.status, Status::Playing | Status::Stuck) {
            return Err(invalid!("no turn can end here: the game is over, or its start is not drawn yet"));
        }
        self.next_turn();
        self.settle();
        Ok(())
    }

    /// Whose turn it is, or was when the game ended after a first action.
    #[inline]
    fn mover(&self) -> Player {
        PLAYERS[usize::from(self.turns % 2)]
    }

    #[inline]
    fn pawn(&self, player: Player, pawn: usize) -> usize {
        usize::from(self.pawns[player.index()][pawn])
    }

    /// Each cat with the mouse that it hunts.
    #[inline]
    fn hunts(&self) -> [[usize; 2]; 2] {
        PLAYERS.map(|player| [self.pawn(player, CAT), self.pawn(player.opponent(), MOUSE)])
    }

    #[inline]
    fn next_turn(&mut self) {
        self.turns += 1;
        self.second = false;
        self.undo = 0;
    }

    /// Steps of the mover that are legal: bit `4 * pawn + direction`.
    #[inline]
    fn steps(&self) -> u8 {
        let cat = self.board.open(self.pawn(self.mover(), CAT));
        let mouse = match self.rules.variant {
            Variant::Classic => 0,
            _ => self.board.open(self.pawn(self.mover(), MOUSE)),
        };
        (cat | mouse << 4) & !self.undo
    }

    fn walls(&self) -> Slots {
        self.board.buildable(self.hunts())
    }

    /// Brings `status` up to date after an action or the end of a turn. Ends a turn that has no second action.
    #[inline]
    fn settle(&mut self) {
        self.status = self.judged();
        if self.status == Status::Stuck {
            self.next_turn();
            self.status = self.judged();
        }
    }

    /// What the position is by itself.
    #[inline]
    fn judged(&self) -> Status {
        if let Some(winner) = self.captured() {
            Status::Over(winner)
        } else if self.turns == MAX_TURNS {
            Status::Over(None)
        } else if self.steps() == 0 && self.walls().is_empty() {
            Status::Stuck
        } else {
            Status::Playing
        }
    }

    /// Who has captured, if that is judged now; nobody is the winner where the one-move rule makes it a draw.
    #[inline]
    fn captured(&self) -> Option<Option<Player>> {
        if self.second && !self.rules.immediate {
            return None;
        }
        // Whoever acted last is looked at first.
        let last = if self.second { self.mover() } else { self.mover().opponent() };
        let hunts = self.hunts();
        let winner = [last, last.opponent()].into_iter().find(|player| {
            let [cat, mouse] = hunts[player.index()];
            cat == mouse
        })?;
        let [cat, mouse] = hunts[Player::One.index()];
        let own_turn = winner == last && winner == Player::Zero;
        let drawn = own_turn && self.rules.one_move_rule && self.board.distance(cat, mouse) <= 2;
        Some(Some(winner).filter(|_| !drawn))
    }
}

impl Game for WallGame {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 2 * self.board.cells() + if self.rules.classic_policy { 4 } else { 8 },
            obs_shape: [9, self.columns(), self.rows()],
            max_plies: 2 * usize::from(MAX_TURNS) + usize::from(self.rules.variant == Variant::Freestyle),
            num_symmetries: match self.rules.variant {
                Variant::Freestyle => 1,
                _ if self.columns() == self.rows() => 8,
                _ => 4,
            },
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        match self.status {
            Status::Undrawn => Turn::Chance,
            Status::Playing => Turn::Player(self.mover()),
            Status::Stuck | Status::Over(_) => Turn::Terminal,
        }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        self.walls().for_each(|slot| out.push(slot as Action));
        let (mut steps, first) = (self.steps(), 2 * self.board.cells() as Action);
        while steps != 0 {
            out.push(first + steps.trailing_zeros());
            steps &= steps - 1;
        }
    }

    #[inline]
    fn pick_action(&self, _: &mut Vec<Action>, draw: impl FnOnce(usize) -> usize) -> Option<Action> {
        let (walls, mut steps) = (self.walls(), self.steps());
        let count = walls.len();
        let all = count + steps.count_ones() as usize;
        if all == 0 {
            return None;
        }
        let drawn = draw(all);
        if let Some(slot) = walls.nth(drawn) {
            return Some(slot as Action);
        }
        for _ in count..drawn {
            steps &= steps - 1;
        }
        Some(2 * self.board.cells() as Action + steps.trailing_zeros())
    }

    #[inline]
    fn play(&mut self, action: Action) {
        debug_assert!(matches!(self.status, Status::Undrawn | Status::Playing));
        if self.status == Status::Undrawn {
            self.draw_start(u64::from(action));
            return;
        }
        let (slots, action) = (2 * self.board.cells(), action as usize);
        debug_assert!(action < self.num_actions());
        let mut undo = 0;
        if action < slots {
            debug_assert!(self.board.is_slot(action) && !self.board.is_closed(action));
            self.board.build(action);
        } else {
            let step = action - slots;
            debug_assert!(self.steps() >> step & 1 == 1);
            let pawn = &mut self.pawns[usize::from(self.turns % 2)][step / 4];
            *pawn = self.board.neighbour(usize::from(*pawn), step % 4) as u16;
            undo = 1 << opposite(step);
        }
        if self.second {
            self.next_turn();
        } else {
            (self.second, self.undo) = (true, undo);
        }
        self.settle();
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend((0..STARTS).map(|start| (start, 1.0 / STARTS as f32)));
    }

    #[inline]
    fn outcome(&self) -> Value {
        Value::won_by(if let Status::Over(winner) = self.status { winner } else { None }, 2)
    }

    fn encode(&self, row: &mut [f32]) {
        let (cells, own, other) = (self.board.cells(), self.mover(), self.mover().opponent());
        let (paths, rest) = row.split_at_mut(4 * cells);
        let pieces = [(own, CAT), (other, MOUSE), (other, CAT), (own, MOUSE)];
        for (plane, (player, pawn)) in paths.chunks_exact_mut(cells).zip(pieces) {
            self.board.put_distances(self.pawn(player, pawn), plane);
        }
        let (edges, rest) = rest.split_at_mut(2 * cells);
        self.board.put_closed(edges.split_at_mut(cells).into());
        let facts = [self.second, own == Player::Zero, self.rules.variant != Variant::Classic];
        for (plane, fact) in rest.chunks_exact_mut(cells).zip(facts) {
            plane.fill(f32::from(u8::from(fact)));
        }
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        let mut divisors = vec![1; self.obs_shape()[0]];
        divisors[..4].fill(self.board.cells() as u16);
        Some(divisors)
    }

    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        Some(cells_then(2 * self.board.cells(), self.num_actions()))
    }

    #[inline]
    fn key(&self) -> u128 {
        let WallRules { variant, immediate, one_move_rule, classic_policy } = self.rules;
        let bytes = [
            self.columns() as u8,
            self.rows() as u8,
            variant as u8,
            u8::from(immediate) | u8::from(one_move_rule) << 1 | u8::from(classic_policy) << 2,
            self.turns,
            u8::from(self.second) | u8::from(self.status == Status::Undrawn) << 1,
            self.undo,
            0,
        ];
        let pawns = self.pawns.as_flattened().iter().fold(0, |all, &pawn| all << 16 | u64::from(pawn));
        // The first word says the size, and so how many there are.
        let (mut words, mut count) = ([0; 16], 0);
        for word in [u64::from_le_bytes(bytes), pawns].into_iter().chain(self.board.words()) {
            words[count] = word;
            count += 1;
        }
        digest(Tag::WallGame, &words[..count])
    }

    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let (slots, number) = (2 * self.board.cells(), action as usize);
        if symmetry == 0 {
            return action;
        }
        if number < slots {
            return self.board.image_of_slot(symmetry, number) as Action;
        }
        let step = number - slots;
        (slots + step / 4 * 4 + image_of_direction(symmetry, step % 4)) as Action
    }

    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        let cells = self.board.cells();
        for (index, &value) in row.iter().enumerate() {
            let image = match index / cells {
                4 | 5 => 4 * cells + self.board.image_of_slot(symmetry, index - 4 * cells),
                plane => plane * cells + self.board.image_of_cell(symmetry, index % cells),
            };
            out[image] = value;
        }
    }

    fn render(&self) -> String {
        self.drawn_as_text()
    }
}
