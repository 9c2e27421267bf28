//! Games as texts have them: a line of play, or a tree of moves with variations.
//!
//! Knows no notation. A reader says how each move is played, a writer how each one is written.

use std::collections::{BTreeMap, HashMap};

use crate::error::Error;
pub use crate::error::{Unfit, Wrong};
use crate::game::{Action, Player};

/// A game as a text has it, read by [`Notation::read_game`](crate::text::Notation::read_game).
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenGame {
    /// What the text says of the game as a whole: names and values, blanks around these taken off.
    pub tags: Vec<(String, String)>,
    /// The result that stands behind the moves, if the notation has one there.
    pub result: Option<String>,
    /// The actions; or why it is no game of these rules from this start.
    pub actions: Result<Vec<Action>, Unfit>,
    /// The actions from this start up to one that is [`Unfit::Action`] or [`Unfit::AfterEnd`]; else none.
    pub before: Vec<Action>,
}

impl WrittenGame {
    /// A game that cannot be read, with a sentence on the reason.
    #[must_use]
    pub fn unreadable(why: String) -> Self {
        Self { tags: Vec::new(), result: None, actions: Err(Unfit::Text(why)), before: Vec::new() }
    }
}

/// Limits for reading a game with variations.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Moves, those of the variations too.
    pub moves: usize,
    /// How deep variations are nested. A variation of the main line is 1 deep.
    pub depth: usize,
}

/// A move as [`Notation::write_variations`](crate::text::Notation::write_variations) takes it: the index of the move
/// before it, which stands earlier (none at the start), and the action's name.
pub type Named = (Option<usize>, String);

/// What a text says of a position beside the moves: names of SGF's properties, each with its values. Of PGN a comment
/// is `C`, and `NAG` has the numbers of its glyphs.
pub type Notes = BTreeMap<String, Vec<String>>;

/// The name of a comment among [`Notes`].
pub const COMMENT: &str = "C";

/// Adds a value to notes, after those of the same name. A comment is appended to the last one, after `between`.
pub fn note(notes: &mut Notes, name: &str, value: String, between: &str) {
    let values = notes.entry(name.to_owned()).or_default();
    match values.last_mut().filter(|_| name == COMMENT) {
        // Append in place, because a text may have any number of comments.
        Some(comment) => {
            *comment += between;
            *comment += &value;
        }
        None => values.push(value),
    }
}

/// Adds the notes on an equal move of the same position.
pub fn join(notes: &mut Notes, others: Notes) {
    for (name, values) in others {
        values.into_iter().for_each(|value| note(notes, &name, value, "\n\n"));
    }
}

/// A move as a text has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadMove {
    /// The action's name.
    pub name: String,
    /// Its short name.
    pub short: String,
    /// The player; `None` for a roll.
    pub player: Option<Player>,
    /// The notes on the position after it.
    pub notes: Notes,
}

/// A game with its variations.
#[derive(Debug)]
pub struct Variations<G> {
    /// Where the moves begin.
    pub start: G,
    /// The moves.
    pub moves: Moves<ReadMove>,
    /// What the text says of the game as a whole, as
    /// [`Notation::write_variations`](crate::text::Notation::write_variations) takes it.
    pub tags: Vec<(String, String)>,
    /// The notes on the start.
    pub notes: Notes,
    /// Why lines end early or are missing.
    pub left_out: Vec<String>,
}

/// The most variations of one text that may be unplayable. A text with more is refused.
const MOST_LEFT_OUT: usize = 100;

/// A part of a written tree of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A variation begins.
    Open,
    /// The move of a number.
    Move(usize),
    /// A variation ends.
    Close,
}

/// Where the variations of a move stand in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Behind the move of the main line that they replace, before the next one, as in PGN: 1 (2 3) 4.
    Behind,
    /// Side by side with the rest of the main line, as in SGF: (1 4)(2 3).
    Beside,
}

/// Where a move stands in a tree.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The moves behind it.
    behind: usize,
    /// The variations in each other in which it stands.
    depth: usize,
}

/// A tree of moves. The moves have numbers from 1 on, and 0 is the start. A move stands behind the one before it. Of
/// the moves behind one move, the first is that of the main line.
#[derive(Clone, Debug)]
pub struct Moves<M> {
    bounds: Bounds,
    /// How many moves were removed.
    forgotten: usize,
    /// Each with the number of the move before it.
    moves: Vec<(usize, M)>,
    /// Of the start and of each move.
    places: Vec<Place>,
}

impl<M> Moves<M> {
    /// No moves.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, forgotten: 0, moves: Vec::new(), places: vec![Place::default()] }
    }

    /// Removes all moves, and begins at the start again. The limit still counts the removed moves.
    pub fn forget(&mut self) {
        self.forgotten += self.moves.len();
        self.moves.clear();
        self.places.truncate(1);
        self.places[0] = Place::default();
    }

    /// How many moves were removed.
    #[must_use]
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// Adds a move behind the move of number `before`, and gives its number.
    ///
    /// # Errors
    /// [`Error::TooManyMoves`] and [`Error::TooDeep`].
    pub fn push(&mut self, before: usize, said: M) -> Result<usize, Error> {
        let Bounds { moves, depth: deepest } = self.bounds;
        if self.forgotten + self.moves.len() == moves {
            return Err(Error::TooManyMoves(moves));
        }
        let place = &mut self.places[before];
        let depth = place.depth + usize::from(place.behind > 0);
        if depth > deepest {
            return Err(Error::TooDeep(deepest));
        }
        place.behind += 1;
        self.places.push(Place { behind: 0, depth });
        self.moves.push((before, said));
        Ok(self.moves.len())
    }

    /// Whether there are no moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// The moves by their numbers from 1 on, each with the number of the move before it.
    #[must_use]
    pub fn all(&self) -> &[(usize, M)] {
        &self.moves
    }

    /// The move of a number from 1 on.
    pub fn said_mut(&mut self, number: usize) -> &mut M {
        &mut self.moves[number - 1].1
    }

    /// The moves of the main line.
    pub fn main_line(&self) -> impl Iterator<Item = &M> {
        self.moves.iter().zip(&self.places[1..]).filter(|(_, place)| place.depth == 0).map(|((_, said), _)| said)
    }

    /// The tree in the order of a text, from the first move to the last.
    #[must_use]
    pub fn parts(&self, order: Order) -> Vec<Part> {
        /// What is still to be written: a part, or everything after a move.
        enum Left {
            Part(Part),
            Behind(usize),
        }
        let mut behind = vec![Vec::new(); self.places.len()];
        for (index, (before, _)) in self.moves.iter().enumerate() {
            behind[*before].push(index + 1);
        }
        // Use a list instead of recursion, because a line may be arbitrarily long.
        let (mut parts, mut left) = (Vec::new(), vec![Left::Behind(0)]);
        while let Some(next) = left.pop() {
            let number = match next {
                Left::Behind(number) => number,
                Left::Part(part) => {
                    parts.push(part);
                    continue;
                }
            };
            let mut variations = &behind[number][..];
            if let Some((&first, others)) = variations.split_first()
                && (order == Order::Behind || others.is_empty())
            {
                parts.push(Part::Move(first));
                left.push(Left::Behind(first));
                variations = others;
            }
            for &first in variations.iter().rev() {
                let [close, begin, open] = [Part::Close, Part::Move(first), Part::Open].map(Left::Part);
                left.extend([close, Left::Behind(first), begin, open]);
            }
        }
        parts
    }

    /// Plays the tree.
    ///
    /// A variation that cannot be played is left out from the wrong move on: files have moves in variations that no
    /// game has, such as the null move of chess. Moves after the end of the game are left out too. Equal moves of one
    /// position become one.
    ///
    /// # Arguments
    /// - `play`: plays a move, and gives its action and what is kept of it; gets the number of the ply, from 1.
    /// - `join`: adds what is kept of an equal move to that of the first one.
    ///
    /// # Returns
    /// The tree of what is kept, each line before the variations of its moves, and why moves were left out.
    ///
    /// # Errors
    /// [`Error::Written`] for a move of the main line that cannot be played, and [`Error::TooManyUnfit`].
    pub fn play<G: Clone, T>(
        &self,
        start: G,
        mut play: impl FnMut(&mut G, usize, &M) -> Result<(Action, T), Unfit>,
        join: impl Fn(&mut T, T),
    ) -> Result<(Moves<T>, Vec<String>), Error> {
        let (mut played, mut left_out, mut numbers) = (Moves::new(self.bounds), Vec::new(), HashMap::new());
        let mut behind: Vec<_> = self.places.iter().map(|place| place.behind).collect();
        // The positions that are still needed, each with its number of plies and its number in `played`.
        let mut positions = HashMap::from([(0, (start, 0, 0))]);
        // A line comes before the variations of its moves. Where one of these begins with a move of the line, the line
        // keeps its place.
        for part in self.parts(Order::Beside) {
            let Part::Move(at) = part else { continue };
            let (before, said) = &self.moves[at - 1];
            behind[*before] -= 1;
            let from = if behind[*before] == 0 { positions.remove(before) } else { positions.get(before).cloned() };
            let Some((mut state, plies, parent)) = from else { continue }; // after a move that was left out
            let (action, kept) = match play(&mut state, plies + 1, said) {
                Ok(found) => found,
                Err(unfit) => {
                    let is_needed = self.places[at].depth == 0 && !matches!(unfit, Unfit::AfterEnd(_));
                    if is_needed {
                        return Err(unfit.into());
                    }
                    left_out.push(unfit.to_string());
                    if left_out.len() > MOST_LEFT_OUT {
                        return Err(Error::TooManyUnfit { most: MOST_LEFT_OUT, first: left_out.swap_remove(0) });
                    }
                    continue;
                }
            };
            let number = match numbers.get(&(parent, action)) {
                Some(&number) => {
                    join(played.said_mut(number), kept);
                    number
                }
                None => played.push(parent, kept)?,
            };
            numbers.insert((parent, action), number);
            if behind[at] > 0 {
                positions.insert(at, (state, plies + 1, number));
            }
        }
        Ok((played, left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    const WIDE: Bounds = Bounds { moves: 100, depth: 10 };

    fn moves<M: Clone>(all: &[(usize, M)], bounds: Bounds) -> Result<Moves<M>, Error> {
        let mut moves = Moves::new(bounds);
        for (before, said) in all {
            moves.push(*before, said.clone())?;
        }
        Ok(moves)
    }

    /// What is kept, and why moves were left out.
    type Played = (Vec<(usize, u32)>, Vec<String>);

    /// Numbers are played by adding: 0 is no move, and the game is over at 100. What is kept is the sum.
    fn play(all: &[(usize, u32)]) -> Result<Played, Error> {
        let (played, left_out) = moves(all, Bounds { moves: 1000, depth: 10 })?.play(
            0,
            |state, ply, &said| {
                if *state >= 100 {
                    return Err(Unfit::AfterEnd(format!("ply {ply} is late")));
                }
                if said == 0 {
                    return Err(Unfit::Action(format!("ply {ply} is missing")));
                }
                *state += said;
                Ok((said, *state))
            },
            |_, _| (),
        )?;
        Ok((played.all().to_vec(), left_out))
    }

    #[test]
    fn few_positions_are_kept_whatever_the_order_of_the_moves() {
        // 50 first moves, and behind each of them one more.
        let all: Vec<_> = (0..50).map(|_| (0, ())).chain((1..=50).map(|before| (before, ()))).collect();
        let (start, mut action, mut most) = (Rc::new(()), 0, 0);
        let (played, _) = moves(&all, WIDE)
            .unwrap()
            .play(
                start.clone(),
                |state, _, ()| {
                    most = most.max(Rc::strong_count(state));
                    action += 1;
                    Ok((action, ()))
                },
                |(), ()| (),
            )
            .unwrap();
        assert_eq!(played.all().len(), 100);
        assert!(most <= 4, "{most} positions at once");
    }

    #[test]
    fn a_variation_is_left_out_from_its_wrong_move_on() {
        let (played, left_out) = play(&[(0, 1), (0, 5), (2, 0), (3, 7), (1, 2)]).unwrap();
        assert_eq!(played, [(0, 1), (1, 3), (0, 5)]);
        assert_eq!(left_out, ["ply 2 is missing"]);
        assert_eq!(play(&[(0, 1), (1, 0)]), Err(Unfit::Action("ply 2 is missing".into()).into()));
        let (played, left_out) = play(&[(0, 100), (1, 2), (2, 3), (0, 4)]).unwrap();
        assert_eq!((played, left_out), (vec![(0, 100), (0, 4)], vec!["ply 2 is late".to_owned()]));
        let wrong: Vec<_> = [(0, 1)].into_iter().chain((0..101).map(|_| (0, 0))).collect();
        assert!(play(&wrong[..101]).is_ok());
        let error = play(&wrong).unwrap_err().to_string();
        assert_eq!(error, "more than 100 variations cannot be played; the first: ply 1 is missing");
    }
}
