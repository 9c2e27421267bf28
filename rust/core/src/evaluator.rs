//! The contract between the search and a network that evaluates leaves.
//!
//! A batch is rows of positions in; logits over the legal actions and the values of each row out. The evaluator owns its
//! input memory and asks for it to be filled; its replies land in memory the caller owns. It knows nothing of trees.

use std::convert::Infallible;
use std::ops::Range;

use crate::game::{Action, Game, Payoff, Pov, PovOf, RandomGames, Turn};
use crate::rng::Stream;

/// Positions to evaluate, and where the answers go.
pub struct Batch<'a, G: Game> {
    /// `[B]` the positions; it is a player's turn in each.
    pub states: &'a [G],
    /// `[B]` a random stream for each row, the same however the rows are batched.
    pub streams: &'a [u64],
    /// `[B + 1]` where the legal actions of a row begin and end in `actions` and `logits`.
    pub offsets: &'a [u32],
    /// `[offsets[B]]` the legal actions, row by row, ascending.
    pub actions: &'a [Action],
    /// `[offsets[B]]` to be overwritten: raw logits of the legal actions.
    pub logits: &'a mut [f32],
    /// `[B]` to be overwritten: values in `[-1, 1]`, of each player, the player to move first; with two players and zero
    /// sum that of the player to move alone.
    pub values: &'a mut [PovOf<G>],
    /// Left empty where nothing is proven, else `[B]`: 0, or 1 + the plies in which the game is over at the most (up to
    /// [`LONGEST_PROOF`]) where the value of a row is exact. A search with a solver takes it up.
    ///
    /// [`LONGEST_PROOF`]: crate::tree::LONGEST_PROOF
    pub proofs: &'a mut Vec<u8>,
    pub(crate) encode: &'a (dyn Fn(&[G], &mut [f32]) + Sync),
}

impl<G: Game> Batch<'_, G> {
    /// Number of rows B; never 0.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.states.len()
    }

    /// Encodes the given rows into `observations`, `[rows.len(), C, H, W]` f32, overwriting all of it. May run on
    /// several threads.
    ///
    /// # Panics
    /// When `observations` has another length.
    pub fn fill(&self, rows: Range<usize>, observations: &mut [f32]) {
        let row_len: usize = self.states[0].obs_shape().iter().product();
        assert_eq!(observations.len(), rows.len() * row_len, "observations must hold exactly the rows asked for");
        (self.encode)(&self.states[rows], observations);
    }

    /// The range of a row in `actions` and `logits`.
    #[must_use]
    #[inline]
    pub fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }
}

/// Evaluates whole batches.
pub trait Evaluator<G: Game>: Send {
    /// What a failed evaluation hands to the owner of the search.
    type Error: Send;

    /// Evaluates every row of the batch.
    ///
    /// # Errors
    /// The search stops, takes back what is in flight, and returns this error as it is.
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Self::Error>;

    /// A hash of the network's weights when equal positions always get equal answers: then answers may be cached
    /// and shared under it. `None`: every leaf is asked anew.
    fn network(&self) -> Option<u64> {
        None
    }
}

/// Equal priors and value 0: the search alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform;

impl<G: Game> Evaluator<G> for Uniform {
    type Error = Infallible;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        batch.logits.fill(0.0);
        batch.values.fill(PovOf::<G>::filled(batch.states[0].num_players(), 0.0));
        Ok(())
    }
}

/// Equal priors and the outcome of one random game: with PUCT this is plain Monte Carlo tree search.
#[derive(Clone, Copy, Debug)]
pub struct Rollout {
    /// Games differ between seeds and repeat for the same one.
    pub seed: u64,
}

impl<G: Game> Evaluator<G> for Rollout {
    type Error = Infallible;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        batch.logits.fill(0.0);
        let mut games = RandomGames::default();
        if batch.states[0].hides() {
            // A random game from the true position would tell what the player to move does not know.
            batch.values.fill(PovOf::<G>::filled(batch.states[0].num_players(), 0.0));
            return Ok(());
        }
        for ((state, &stream), value) in batch.states.iter().zip(batch.streams).zip(batch.values) {
            let draw = PovOf::<G>::filled(state.num_players(), 0.0);
            // A leaf is a player's turn, unless a game written in Python has failed since; the owner reports that.
            let Turn::Player(player) = state.turn() else {
                *value = draw;
                continue;
            };
            let mut state = state.clone();
            let mut stream = Stream::keyed(&[self.seed, stream]);
            // A game that breaks its contract counts as a draw here.
            let ended = state.play_out(&mut games, &mut stream);
            *value = ended.map_or(draw, |_| state.outcome().pov(player));
        }
        Ok(())
    }
}
