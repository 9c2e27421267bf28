//! A line of play as another program tells it. It goes on where azpy's rules end the game.

use azpy_core::game::{Action, Player, Turn};
use azpy_core::text::Notation;

use crate::object::{Refused, quoted};

/// Of a name that is not legal, in characters.
const MOST_NAME: usize = 40;

/// A position that says which game it is of.
pub trait Position: Notation {
    /// The game and, where they are not the usual ones, its parameters: "connect_four(width=5,height=4,k=4)".
    fn game(&self) -> &str;

    /// The start of the game with other values of these parameters.
    ///
    /// # Errors
    /// A sentence, for values that the game refuses.
    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, String>;
}

/// The game without its parameters.
pub(crate) fn name_of<P: Position>(state: &P) -> &str {
    state.game().split('(').next().unwrap_or_default()
}

pub(crate) fn is_go<P: Position>(state: &P) -> bool {
    name_of(state) == "go"
}

/// A position and the actions that led to it.
#[derive(Clone, Debug)]
pub struct Line<P> {
    /// Where the line begins now. It is another position once the line went on from an end of azpy's game.
    pub start: P,
    /// The actions since `start`.
    pub played: Vec<Action>,
    /// The position that they lead to.
    pub state: P,
}

impl<P: Position> Line<P> {
    /// A line without moves.
    pub fn new(start: P) -> Self {
        Self { state: start.clone(), start, played: Vec::new() }
    }

    /// Plays the action of a name: as `action_name` writes it, in Go in any case. There `player` may play twice in a row;
    /// in other games it must be the player's turn.
    ///
    /// # Errors
    /// If no such action is legal.
    pub fn play(&mut self, name: &str, player: Option<Player>) -> Result<(), Refused> {
        self.go_on(player)?;
        let name = if is_go(&self.state) { go_name(name) } else { name.to_owned() };
        if player.is_some_and(|player| self.state.turn() != Turn::Player(player)) {
            return Err(Refused(format!("{}: it is {}", quoted(&name, MOST_NAME), self.state.turn())));
        }
        match self.state.parse_actions(&name).as_deref() {
            Ok(&[action]) => self.push(action),
            _ => return Err(Refused(format!("{} is not legal there", quoted(&name, MOST_NAME)))),
        }
        Ok(())
    }

    /// Plays a legal action.
    fn push(&mut self, action: Action) {
        self.state.play(action);
        self.played.push(action);
    }

    /// Begins anew at the present board, where only the game's past ends it or says whose turn it is.
    ///
    /// A position of chess that is over by a repetition, by fifty moves or by the number of plies loses its past. Go is
    /// never over, and `player` is to move. After too many plies the later half of them still counts for ko.
    ///
    /// # Errors
    /// If the board cannot be set up.
    pub fn go_on(&mut self, player: Option<Player>) -> Result<(), Refused> {
        let over = self.state.turn() == Turn::Terminal;
        if is_go(&self.state) {
            let player = player.unwrap_or_else(|| to_move(&self.state));
            if self.state.turn() == Turn::Player(player) {
                return Ok(());
            }
            let board = self.state.clone();
            if over {
                let (first, since) = self.played.split_at(forgotten(self.played.len()));
                let mut earlier = self.start.clone();
                first.iter().for_each(|&action| earlier.play(action));
                if let Turn::Player(mover) = earlier.turn() {
                    let since = since.to_vec();
                    *self = Self::new(go_board(&earlier.start_with(&[])?, &stones(&earlier), mover)?);
                    since.into_iter().for_each(|action| self.push(action));
                }
            }
            // By two passes, by who is to move.
            if self.state.turn() != Turn::Player(player) {
                *self = Self::new(go_board(&board.start_with(&[])?, &stones(&board), player)?);
            }
        } else if over && name_of(&self.state) == "chess" {
            let fresh = without_past(&self.state)?;
            if fresh.turn() != Turn::Terminal {
                *self = Self::new(fresh);
            }
        }
        Ok(())
    }

    /// The first plies of the line.
    #[must_use]
    pub fn upto(&self, plies: usize) -> Self {
        let mut line = Self::new(self.start.clone());
        self.played.iter().take(plies).for_each(|&action| line.push(action));
        line
    }
}

/// How many of the first plies of a game of Go become stones without a past, where too many plies ended the game. The
/// plies since are played again, so that ko holds on. Two passes at the end are among these.
fn forgotten(plies: usize) -> usize {
    (plies / 2).min(plies.saturating_sub(2))
}

/// A position of chess that azpy's rules ended by its past, such as a third repetition, as if it had none.
fn without_past<P: Position>(state: &P) -> Result<P, Refused> {
    let board = state.render();
    let fen = board.lines().find(|line| line.matches('/').count() == 7).unwrap_or_default();
    // No moves without progress, and nothing to repeat.
    let fields: Vec<&str> = fen.split_whitespace().take(4).chain(["0", "1"]).collect();
    Ok(state.parse(&fields.join(" "))?)
}

/// The name of a move of Go, whatever its case.
pub(crate) fn go_name(name: &str) -> String {
    if name.eq_ignore_ascii_case("pass") { "pass".to_owned() } else { name.to_uppercase() }
}

/// Whose turn it is in Go, also after the end.
fn to_move<P: Position>(state: &P) -> Player {
    if let Turn::Player(player) = state.turn() {
        return player;
    }
    let text = state.to_text().unwrap_or_default();
    if text.rfind(";B[") > text.rfind(";W[") { Player::One } else { Player::Zero }
}

/// The stones of each player on a board of Go, as SGF names their points.
pub(crate) fn stones<P: Position>(state: &P) -> [Vec<String>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for (row, line) in ('a'..).zip(state.render().lines().skip(1)) {
        for (column, cell) in ('a'..).zip(line.split_whitespace().skip(1)) {
            if let Some(owner) = ["x", "o"].iter().position(|&glyph| glyph == cell) {
                found[owner].push(format!("{column}{row}"));
            }
        }
    }
    found
}

/// A board of Go without a past.
///
/// # Arguments
/// - `empty`: the start of the game.
/// - `stones`: of each player, as SGF names their points.
///
/// # Errors
/// If a chain has no liberty.
pub(crate) fn go_board<P: Position>(empty: &P, stones: &[Vec<String>; 2], player: Player) -> Result<P, String> {
    if stones.iter().all(Vec::is_empty) && player == Player::Zero {
        return Ok(empty.clone());
    }
    let size = empty.obs_shape()[1];
    let points = |tag: &str, points: &[String]| match points {
        [] => String::new(),
        points => format!("{tag}[{}]", points.join("][")),
    };
    let (black, white) = (points("AB", &stones[0]), points("AW", &stones[1]));
    empty.parse(&format!("(;GM[1]FF[4]SZ[{size}]{black}{white}PL[{}])", ["B", "W"][player.index()]))
}
