//! What a game is: the contract between the rules and everything above them.
//!
//! One to six players, turns in any order, dice allowed. Two players may share a zero sum. A game may hide something
//! from its players ([`Game::view_key`]).
//! The value is the state: a search clones it, plays on it and drops it. A game knows
//! nothing of trees, networks or threads.

use std::collections::HashSet;
use std::fmt;

pub use crate::payoff::{MAX_PLAYERS, Payoff, Player, Pov, PovValue, PovValues, Value, Values, ranked};
use crate::rng::Stream;

/// What a network says of a position of `G`.
pub type PovOf<G> = <<G as Game>::Payoff as Payoff>::Pov;

/// An index into the policy: `0..num_actions` at a player's turn, an outcome's number at a chance turn.
pub type Action = u32;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// A player chooses among the legal actions.
    Player(Player),
    /// A dice roll or another random event: one of `chance_outcomes`.
    Chance,
    /// The game is over; `outcome` says how.
    Terminal,
}

/// The numbers that are the same in all positions of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Size of the policy, fixed for a board size; at most 65,535 actions may be legal at once.
    pub num_actions: usize,
    /// `[C, H, W]` of an observation; flat features are `[F, 1, 1]`.
    pub obs_shape: [usize; 3],
    /// An upper bound on the plies (actions and chance outcomes) of a game from its start.
    pub max_plies: usize,
    /// How many symmetries the rules have, the identity (number 0) included.
    pub num_symmetries: usize,
}

/// Why `try_play` refused an action; the state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The game is over.
    #[error("action {0} played after the end of the game")]
    Terminal(Action),
    /// Not among the legal actions.
    #[error("illegal action {action}; legal actions are {}", first(.legal))]
    Illegal {
        /// What was asked for.
        action: Action,
        /// What would have been accepted.
        legal: Vec<Action>,
    },
    /// Not an outcome of this roll.
    #[error("{action} is not an outcome of this chance turn; the outcomes are {}", first(.outcomes))]
    NoSuchOutcome {
        /// What was asked for.
        action: Action,
        /// What would have been accepted.
        outcomes: Vec<Action>,
    },
}

/// So many of the actions as an error repeats.
fn first(actions: &[Action]) -> String {
    const MOST: usize = 100;
    match actions.len().checked_sub(MOST) {
        None | Some(0) => format!("{actions:?}"),
        Some(more) => format!("{:?} and {more} more", &actions[..MOST]),
    }
}

/// A position that breaks the contract of `Game`, or that cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GameFault {
    /// Play the roll first.
    #[error("the position is at a chance turn; play one of its chance outcomes before searching")]
    ChanceRoot,
    /// A player to move without a legal action.
    #[error("legal_actions returned no action at a player's turn; expected at least one, or a terminal position:\n{0}")]
    NoLegalActions(String),
    /// More than a node can hold.
    #[error("{0} legal actions in one position; at most 65,535 are possible")]
    TooManyLegalActions(usize),
    /// A legal action outside the policy.
    #[error("legal action {action} is outside the policy of {num_actions} actions")]
    OutsidePolicy {
        /// The offending action.
        action: Action,
        /// The size of the policy.
        num_actions: usize,
    },
    /// A chance turn without a usable distribution.
    #[error("chance_outcomes must return outcomes with positive probabilities that sum to 1 (they sum to {0})")]
    BadChance(String),
    /// A search that is to prove values, in a game of too many players.
    #[error(
        "solver and lookahead work for one player, or for two players with a zero sum, but this game has {0} \
         players: leave out solver and lookahead"
    )]
    Unprovable(usize),
    /// A search that is to prove values, in a game that hides something.
    #[error("solver and lookahead read the true position, and this game hides it: leave solver and lookahead out")]
    Hidden,
    /// A search for a score, in a game of several players.
    #[error("score_to_beat is for games of one player, but this game has {0} players: leave score_to_beat out")]
    ManyScores(usize),
    /// Resignation in a game that is not for two players with a zero sum, or that hides something.
    #[error(
        "resign_at is for games of two players with a zero sum who see everything, but this game {0}: leave it at 1"
    )]
    Resignation(String),
    /// The game goes on for longer than it said.
    #[error("a line of play from the root is longer than max_plies ({0}): raise max_plies, or end the game by then")]
    TooLong(usize),
}

/// Checks the outcomes of a roll.
///
/// # Errors
/// Probabilities that do not sum to 1, or too many outcomes.
pub fn check_chance(outcomes: &[(Action, f32)]) -> Result<(), GameFault> {
    let sum: f32 = outcomes.iter().map(|&(_, probability)| probability).sum();
    let fine = outcomes.iter().all(|&(_, p)| p >= 0.0) && (sum - 1.0).abs() < 1e-3;
    if outcomes.len() > usize::from(u16::MAX) {
        return Err(GameFault::TooManyLegalActions(outcomes.len()));
    }
    if fine { Ok(()) } else { Err(GameFault::BadChance(format!("{sum}"))) }
}

/// The rules of a game, as a value that is one position.
///
/// Methods do not fail. A game that can (one written in Python) keeps its first error where its owner finds it,
/// reports itself terminal from then on, and the owner of the search returns that error.
///
/// [`crate::conformance`] checks the rules that every implementation keeps: legal actions ascending, unique, below
/// `num_actions`, and never empty at a player's turn; the game ends within `max_plies` (chance turns counted); `encode`
/// overwrites its whole row; equal `key`s mean equal `encode`, `legal_actions` and future.
pub trait Game: Clone + Send + Sync + 'static {
    /// What the game pays at its end: [`Value`] for two players and zero sum, else [`Values`].
    type Payoff: Payoff;

    /// How many players there are, 1 to [`MAX_PLAYERS`], the same in all positions of a game. A game that pays a [`Value`]
    /// has two; any other game has to say it.
    fn num_players(&self) -> usize {
        const { assert!(Self::Payoff::ZERO_SUM, "a game that pays Values must implement num_players") }
        2
    }

    /// Whether it has two players, and one loses what the other wins: then one number is the outcome of both.
    fn is_zero_sum(&self) -> bool {
        Self::Payoff::ZERO_SUM
    }

    /// The numbers that are the same in all positions of a game.
    fn sizes(&self) -> Sizes;

    /// See [`Sizes::num_actions`].
    #[inline]
    fn num_actions(&self) -> usize {
        self.sizes().num_actions
    }

    /// See [`Sizes::obs_shape`].
    #[inline]
    fn obs_shape(&self) -> [usize; 3] {
        self.sizes().obs_shape
    }

    /// See [`Sizes::max_plies`].
    #[inline]
    fn max_plies(&self) -> usize {
        self.sizes().max_plies
    }

    /// See [`Sizes::num_symmetries`].
    #[inline]
    fn num_symmetries(&self) -> usize {
        self.sizes().num_symmetries
    }

    /// Whose turn it is.
    fn turn(&self) -> Turn;

    /// Replaces the contents of `out` by the legal actions, ascending. Called at a player's turn only.
    fn legal_actions(&self, out: &mut Vec<Action>);

    /// Legal action number `draw(n)` of the n that there are; `None` if there is none. Called at a player's turn only.
    /// Random games ask for one action a ply, so a game that need not write all of them down answers sooner. `scratch`
    /// is room for them.
    fn pick_action(&self, scratch: &mut Vec<Action>, draw: impl FnOnce(usize) -> usize) -> Option<Action> {
        self.legal_actions(scratch);
        (!scratch.is_empty()).then(|| scratch[draw(scratch.len())])
    }

    /// Plays a legal action, or takes a chance outcome. Unchecked; see [`Game::try_play`].
    fn play(&mut self, action: Action);

    /// Becomes the position that a line of legal actions and rolls leads to from `start`, of the same game, and says whose
    /// turn it is there; at a player's turn it replaces the contents of `legal` by the legal actions. On the way to a leaf
    /// a search asks nothing else, but for rolls.
    fn arrive(&mut self, start: &Self, line: &[Action], legal: Option<&mut Vec<Action>>) -> Turn {
        self.clone_from(start);
        line.iter().for_each(|&action| self.play(action));
        let turn = self.turn();
        if let (Turn::Player(_), Some(legal)) = (turn, legal) {
            self.legal_actions(legal);
        }
        turn
    }

    /// Plays on at random to the end, see [`RandomGames::play`].
    fn play_out(&mut self, games: &mut RandomGames, stream: &mut Stream) -> Option<usize> {
        games.play(self, stream)
    }

    /// Replaces the contents of `out` by the outcomes of the roll, ascending, with probabilities that sum to 1.
    /// Called at a chance turn only.
    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
    }

    /// What each player gets, in `[-1, 1]`. Called at a terminal state only.
    fn outcome(&self) -> Self::Payoff;

    /// Overwrites `row` (`C * H * W` values) with the observation. Called at a player's turn only; the planes are
    /// those of the player to move unless the game's encoding says otherwise.
    fn encode(&self, row: &mut [f32]);

    /// A divisor above 0 for each of the C planes, if all values of the planes are whole numbers over these divisors.
    /// Each value that `encode` writes to a plane is then n / divisor, one division in f32, with a whole n. The divisors
    /// are the same in all positions of a game. A network for boards of any size (`+conv`) reads the planes that are
    /// divided by the board's area H * W in units of 64 cells, so that a number means the same on each board.
    fn plane_divisors(&self) -> Option<Vec<u16>> {
        None
    }

    /// Whether playing an action takes far longer than copying a state, as where the rules are not compiled. Then copies
    /// of states are kept where games are played again.
    fn is_slow(&self) -> bool {
        false
    }

    /// The cell of the planes (`row * W + column`) of each group of actions, if actions come in equal groups. Action
    /// `group * n + i`, with `i < n`, means the same in each group: the piece on the group's cell goes where `i` says.
    /// Then a network can have one small policy head for all cells.
    fn action_cells(&self) -> Option<Vec<u16>> {
        None
    }

    /// Each action's place in planes of actions `[N, H, W]` (`plane * H * W + cell`), if an action of one plane means
    /// the same in each cell; None for an action without a cell, such as a pass. Then one network can play on boards of
    /// several sizes: a game that has these planes says that its observation and its actions mean the same on each.
    fn policy_planes(&self) -> Option<Vec<Option<u32>>> {
        action_planes(self)
    }

    /// Identifies the position for the cache. Covers all that `encode` and `legal_actions` read and all that the
    /// future depends on: the turn, history where planes or repetition rules use it, clocks, board size.
    fn key(&self) -> u128;

    /// Identifies what `player` knows here, with all that this player saw and did before (perfect recall), in a game that
    /// hides something. None in all positions of a game that hides nothing.
    ///
    /// A position is the true one: [`Game::key`] is its number. [`Game::encode`] and [`Game::legal_actions`] are what the
    /// player to move knows, so equal views of that player mean equal replies. A search of such a game grows no tree.
    fn view_key(&self, player: Player) -> Option<u128> {
        let _ = player;
        None
    }

    /// Whether the game hides something from its players.
    fn hides(&self) -> bool {
        self.view_key(Player::Zero).is_some()
    }

    /// The action that corresponds to `action` after `symmetry` (also for chance outcomes).
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        let _ = symmetry;
        action
    }

    /// Writes to `out` the observation `row` as it would be after `symmetry`.
    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        let _ = symmetry;
        out.copy_from_slice(row);
    }

    /// The board as a person draws it in a terminal, without colours. Errors show it too.
    fn render(&self) -> String;

    /// What a person who plays `player` sees: all that [`Game::view_key`] says, and nothing else. Games that hide nothing
    /// show all; without this method, a game that hides something shows nothing.
    fn render_view(&self, player: Player) -> String {
        self.view_key(player).map_or_else(|| self.render(), |_| "(this game has no render_view)".to_owned())
    }

    /// Plays `action` if it is legal here.
    ///
    /// # Errors
    /// [`PlayError`] names what was expected; the state is then unchanged.
    fn try_play(&mut self, action: Action) -> Result<(), PlayError> {
        match on_offer(self) {
            (Turn::Terminal, _) => return Err(PlayError::Terminal(action)),
            (_, offered) if offered.contains(&action) => self.play(action),
            (Turn::Player(_), legal) => return Err(PlayError::Illegal { action, legal }),
            (Turn::Chance, outcomes) => return Err(PlayError::NoSuchOutcome { action, outcomes }),
        }
        Ok(())
    }
}

/// The legal actions; none where it is no player's turn.
pub fn legal_of<G: Game>(state: &G) -> Vec<Action> {
    let mut legal = Vec::new();
    if matches!(state.turn(), Turn::Player(_)) {
        state.legal_actions(&mut legal);
    }
    legal
}

/// The outcomes of the roll, with their probabilities; none where none is due.
pub fn rolls_of<G: Game>(state: &G) -> Vec<(Action, f32)> {
    let mut rolls = Vec::new();
    if state.turn() == Turn::Chance {
        state.chance_outcomes(&mut rolls);
    }
    rolls
}

/// Whose turn it is, and what can be played here, or rolled; none where the game is over.
pub fn on_offer<G: Game>(state: &G) -> (Turn, Vec<Action>) {
    let (turn, mut offered) = (state.turn(), Vec::new());
    match turn {
        Turn::Player(_) => state.legal_actions(&mut offered),
        Turn::Chance => offered.extend(rolls_of(state).into_iter().map(|(outcome, _)| outcome)),
        Turn::Terminal => {}
    }
    (turn, offered)
}

/// Plays games to their ends at random; keeps its memory from one to the next.
#[derive(Default)]
pub struct RandomGames {
    legal: Vec<Action>,
    outcomes: Vec<(Action, f32)>,
}

impl RandomGames {
    /// Plays on from `state`, every legal action as likely as another, and returns the number of plies; `None` if the
    /// game has nothing to play at somebody's turn, or goes on for longer than it promised.
    pub fn play<G: Game>(&mut self, state: &mut G, stream: &mut Stream) -> Option<usize> {
        let bound = state.max_plies();
        let mut plies = 0;
        loop {
            let action = match state.turn() {
                Turn::Terminal => return Some(plies),
                Turn::Player(_) => state.pick_action(&mut self.legal, |legal| stream.below(legal))?,
                Turn::Chance => {
                    state.chance_outcomes(&mut self.outcomes);
                    if self.outcomes.is_empty() {
                        return None;
                    }
                    let drawn = stream.weighted(self.outcomes.iter().map(|&(_, p)| f64::from(p)));
                    self.outcomes[drawn].0
                }
            };
            if plies >= bound {
                return None;
            }
            state.play(action);
            plies += 1;
        }
    }
}

/// Whether one number says what each player gets: then values can be proven.
pub(crate) fn can_prove<G: Game>(game: &G) -> bool {
    G::Payoff::ZERO_SUM || game.num_players() == 1
}

/// [`Game::policy_planes`] that follow from [`Game::action_cells`]; None where two groups have one cell.
pub fn action_planes<G: Game>(game: &G) -> Option<Vec<Option<u32>>> {
    let (cells, [_, height, width]) = (game.action_cells()?, game.obs_shape());
    if cells.iter().collect::<HashSet<_>>().len() != cells.len() {
        return None;
    }
    let kinds = game.num_actions() / cells.len().max(1);
    let place = |kind: usize, cell: u16| Some((kind * height * width + usize::from(cell)) as u32);
    Some(cells.into_iter().flat_map(|cell| (0..kinds).map(move |kind| place(kind, cell))).collect())
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Player(player) => write!(f, "player {}", player.index()),
            Self::Chance => write!(f, "chance"),
            Self::Terminal => write!(f, "terminal"),
        }
    }
}
