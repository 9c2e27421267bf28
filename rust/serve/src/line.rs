//! A line of play as another program tells it. It goes on where azpy's rules end the game.

use azpy_core::game::{Action, Player, Turn};
use azpy_core::text::{Position, shown};

use crate::error::Error;

pub(crate) fn is_go<P: Position>(state: &P) -> bool {
    state.game().split('(').next() == Some("go")
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
    /// What each player captured before `start`, one text a player.
    earlier: Vec<String>,
}

impl<P: Position> Line<P> {
    /// A line without moves.
    pub fn new(start: P) -> Self {
        let earlier = vec![String::new(); start.num_players()];
        Self { state: start.clone(), start, played: Vec::new(), earlier }
    }

    /// What each player captured, as [`azpy_core::text::Notation::captured`] says it, also before the line went on from
    /// an end.
    pub fn captured(&self) -> Vec<String> {
        self.captured_until(self.played.len())
    }

    fn captured_until(&self, count: usize) -> Vec<String> {
        let since = self.start.captured(&self.played[..count]);
        self.earlier.iter().zip(since).map(|(earlier, since)| format!("{earlier}{since}")).collect()
    }

    /// Plays the action of a name: as `action_name` writes it, in Go in any case. There `player` may play twice in a row;
    /// in other games it must be the player's turn.
    ///
    /// # Errors
    /// If no such action is legal.
    pub fn play(&mut self, name: &str, player: Option<Player>) -> Result<(), Error> {
        self.go_on(player);
        let name = if is_go(&self.state) { go_name(name) } else { name.to_owned() };
        if player.is_some_and(|player| self.state.turn() != Turn::Player(player)) {
            return Err(Error::Game(format!("{}: it is {}", shown(&name), self.state.turn())));
        }
        match self.state.parse_actions(&name).as_deref() {
            Ok(&[action]) => self.push(action),
            _ => return Err(Error::Game(format!("{} is not legal there", shown(&name)))),
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
    pub fn go_on(&mut self, player: Option<Player>) {
        let (turn, is_over) = (self.state.turn(), self.state.turn() == Turn::Terminal);
        if !is_over && player.is_none_or(|player| turn == Turn::Player(player)) {
            return;
        }
        let Some(fresh) = self.state.without_past(player) else { return };
        if is_over && is_go(&self.state) {
            let (first, since) = self.played.split_at(forgotten(self.played.len()));
            let mut earlier = self.start.clone();
            first.iter().for_each(|&action| earlier.play(action));
            let is_open = earlier.turn() != Turn::Terminal;
            if let Some(earlier) = earlier.without_past(None).filter(|_| is_open) {
                let (since, captured) = (since.to_vec(), self.captured_until(first.len()));
                *self = Self { earlier: captured, ..Self::new(earlier) };
                since.into_iter().for_each(|action| self.push(action));
            }
        }
        // By a repetition, by two passes, by who is to move.
        if self.state.turn() != fresh.turn() {
            *self = Self { earlier: self.captured(), ..Self::new(fresh) };
        }
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

/// The name of a move of Go, whatever its case.
pub(crate) fn go_name(name: &str) -> String {
    if name.eq_ignore_ascii_case("pass") { "pass".to_owned() } else { name.to_uppercase() }
}

/// A board of Go without a past.
///
/// # Arguments
/// - `empty`: the start of the game.
/// - `stones`: of each player, as SGF names their points.
///
/// # Errors
/// If a chain has no liberty.
pub(crate) fn go_board<P: Position>(empty: &P, stones: &[Vec<String>; 2], player: Player) -> Result<P, Error> {
    if stones.iter().all(Vec::is_empty) && player == Player::Zero {
        return Ok(empty.clone());
    }
    let size = empty.obs_shape()[1];
    let points = |tag: &str, points: &[String]| match points {
        [] => String::new(),
        points => format!("{tag}[{}]", points.join("][")),
    };
    let (black, white) = (points("AB", &stones[0]), points("AW", &stones[1]));
    let text = format!("(;GM[1]FF[4]SZ[{size}]{black}{white}PL[{}])", ["B", "W"][player.index()]);
    empty.parse(&text).map_err(Error::game)
}
