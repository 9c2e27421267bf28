//! How Go's moves, positions and results are told: coordinates, pictures, and SGF ([`sgf`]).

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::picture::{Mark, Touch};
use azpy_core::text::{Notation, outcome_text, play_line, read_line, read_one_line};
use azpy_core::written::{Bounds, Named, Notes, Variations, WrittenGame};

use super::{Go, HISTORY, LETTERS, sgf};
use crate::cells::Cells;
use crate::grid;
use crate::notation::{mark, marked, stones};

impl<const WORDS: usize> Notation for Go<WORDS> {
    /// Column letter without I and row number from the bottom, as in the Go Text Protocol, or "pass".
    fn action_name(&self, action: Action) -> String {
        let cell = action as usize;
        if cell == self.num_cells() { "pass".to_owned() } else { self.cell_name(cell) }
    }

    /// The first line has the letters of the columns.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        marked(glyph).filter(|_| line > 0)
    }

    fn on_board(&self) -> Vec<(String, char)> {
        stones(self.num_cells(), |cell| self.cell_name(cell), |cell| self.stone(cell))
    }

    fn captured(&self, actions: &[Action]) -> Vec<String> {
        let (mut state, mut taken) = (self.clone(), [0; 2]);
        for &action in actions {
            let (mover, other) = (state.mover.index(), state.mover.opponent().index());
            let before = state.board().stones[other].len();
            state.play(action);
            taken[mover] += before - state.board().stones[other].len();
        }
        [Player::One, Player::Zero]
            .map(mark)
            .iter()
            .zip(taken)
            .map(|(man, count)| man.to_string().repeat(count as usize))
            .collect()
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["Black", "White"])
    }

    fn result_text(&self) -> String {
        let score = self.score();
        let how = if score == 0.0 { "(jigo)".to_owned() } else { format!("by {}", score.abs()) };
        // Without two passes the players have not agreed that the game is over.
        outcome_text(self, &if self.passes < 2 { how + ", at the limit of plies" } else { how })
    }

    /// The board; the last stone has a ring.
    fn to_svg(&self) -> String {
        let last = usize::from(self.actions[usize::from(self.plies) % HISTORY]);
        let is_last = |cell| self.plies > 0 && cell == last;
        grid::to_svg(self.size(), LETTERS, self, |cell| self.stone(cell), is_last)
    }

    /// A cell; a pass has none.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let (size, cell) = (self.size(), action as usize);
        (cell < size * size).then(|| grid::touch(size, cell, self.action_name(action))).into_iter().collect()
    }

    /// Triangles, squares, circles, crosses, labels and arrows.
    fn marks(&self, notes: &Notes) -> Vec<Mark> {
        sgf::marks(self, notes)
    }

    /// One name is the usual case. Its cell follows from the name, without the names of all legal actions.
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, azpy_core::Error> {
        let cell = self.cell_named(text.trim()).filter(|_| self.turn() != Turn::Terminal);
        match cell.filter(|&cell| cell == self.num_cells() || self.legal_cells().has(cell)) {
            Some(cell) => Ok(vec![cell as Action]),
            None => read_line(self, text),
        }
    }

    /// An SGF game (its main line; the size must be that of `self`, the komi is the game's), or the names of the
    /// actions that lead there.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        if sgf::is_sgf(text) { sgf::read(self, text, usize::MAX) } else { play_line(self, text) }
    }

    /// Of an SGF game, what stands behind these moves need not fit the rules. Moves that are set up as a position
    /// count.
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Self, azpy_core::Error> {
        if sgf::is_sgf(text) {
            return sgf::read(self, text, plies);
        }
        let mut state = self.clone();
        self.parse_actions(text)?.into_iter().take(plies).for_each(|action| state.play(action));
        Ok(state)
    }

    /// A game of SGF: its main line.
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
        sgf::read_written(self, text)
    }

    /// An SGF game with its variations; or the names of the actions of a line.
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, azpy_core::Error> {
        if sgf::is_sgf(text) { sgf::read_tree(self, text, bounds) } else { read_one_line(self, text, bounds) }
    }

    /// As SGF.
    fn write_variations(
        &self,
        moves: &[Named],
        tags: &[(String, String)],
        notes: &[Notes],
        bounds: Bounds,
    ) -> Result<String, azpy_core::Error> {
        Ok(sgf::write_tree(self, moves, tags, notes, bounds)?)
    }

    /// The whole game as SGF: its setup and every action, as boards that have been bar what may follow.
    fn to_text(&self) -> Option<String> {
        Some(sgf::write(self))
    }

    fn komi(&self) -> Option<f32> {
        Some(Go::komi(self))
    }

    /// Whole chains are dead. The rules take no stone off at the end; players may agree to.
    fn without_dead(&self, places: &[String]) -> Option<Self> {
        if self.passes < 2 {
            return None;
        }
        let mut stones = self.board().stones;
        for cell in (0..self.num_cells()).filter(|&cell| places.contains(&self.cell_name(cell))) {
            for own in stones.iter_mut().filter(|own| own.has(cell)) {
                let first = Cells::NONE.with(cell);
                *own = own.without(first.or(self.reached(first, *own)));
            }
        }
        let mut state = self.set_up(stones, self.mover)?;
        let pass = self.num_cells() as Action;
        [pass, pass].into_iter().for_each(|pass| state.play(pass));
        Some(state)
    }

    /// Either player may be to move.
    fn without_past(&self, mover: Option<Player>) -> Option<Self> {
        self.set_up(self.board().stones, mover.unwrap_or(self.mover))
    }
}

impl<const WORDS: usize> Go<WORDS> {
    /// The cell that [`Notation::action_name`] calls so; for a pass the number of cells.
    fn cell_named(&self, name: &str) -> Option<usize> {
        let column = LETTERS.iter().position(|&letter| name.as_bytes().first() == Some(&letter));
        let cell = match name {
            "pass" => self.num_cells(),
            _ => self.size().checked_sub(name.get(1..)?.parse().ok()?)? * self.size() + column?,
        };
        (cell <= self.num_cells() && self.action_name(cell as Action) == name).then_some(cell)
    }

    /// A start with these stones.
    fn set_up(&self, stones: [Cells<WORDS>; 2], mover: Player) -> Option<Self> {
        let [black, white] = stones.map(|stones| {
            let mut cells = Vec::new();
            stones.for_each(|cell| cells.push(cell));
            cells
        });
        self.with_stones([&black, &white], mover).ok()
    }
}
