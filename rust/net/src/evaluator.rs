//! A network as the search asks it.

use std::borrow::Borrow;
use std::convert::Infallible;

use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Game, Payoff, Pov};

use crate::error::Error;
use crate::net::{Net, Scratch};

/// Answers for leaves by a network: an owned one, or one that several evaluators share, as `Arc<Net>`.
#[derive(Debug)]
pub struct NetEvaluator<N = Net> {
    net: N,
    scratch: Scratch,
    observations: Vec<f32>,
    logits: Vec<f32>,
    values: Vec<f32>,
}

impl<N: Borrow<Net>> NetEvaluator<N> {
    /// An evaluator with memory of its own.
    pub fn new(net: N) -> Self {
        Self { net, scratch: Scratch::default(), observations: Vec::new(), logits: Vec::new(), values: Vec::new() }
    }
}

impl<G: Game, N: Borrow<Net> + Send> Evaluator<G> for NetEvaluator<N> {
    type Error = Error;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Error> {
        let (net, rows) = (self.net.borrow(), batch.rows());
        let (actions, width) = (net.num_actions(), net.num_values());
        let state = &batch.states[0];
        let numbers = G::Payoff::width(state.num_players());
        let game = (state.obs_shape(), state.num_actions(), numbers);
        let network = (net.obs_shape(), actions, width);
        if game != network {
            return Err(Error::OtherGame { network, game });
        }
        self.observations.resize(rows * net.obs_shape().iter().product::<usize>(), 0.0);
        self.logits.resize(rows * actions, 0.0);
        self.values.resize(rows * width, 0.0);
        batch.fill(0..rows, &mut self.observations);
        net.evaluate(&mut self.scratch, &self.observations, rows, &mut self.logits, &mut self.values);
        for (row, logits) in self.logits.chunks_exact(actions).enumerate() {
            let range = batch.range(row);
            for (to, &action) in batch.logits[range.clone()].iter_mut().zip(&batch.actions[range]) {
                *to = logits[action as usize];
            }
        }
        for (to, from) in batch.values.iter_mut().flat_map(Pov::numbers_mut).zip(&self.values) {
            *to = *from;
        }
        Ok(())
    }

    fn network(&self) -> Option<u64> {
        Some(self.net.borrow().id())
    }
}

/// Answers for leaves by a network, or by what needs none, such as `Uniform`.
#[derive(Debug)]
pub enum Answers<E> {
    /// Without a network.
    Plain(E),
    /// By a network.
    Net(Box<NetEvaluator>),
}

impl<G: Game, E: Evaluator<G, Error = Infallible>> Evaluator<G> for Answers<E> {
    type Error = Error;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Error> {
        match self {
            Self::Plain(plain) => plain.evaluate_batch(batch).map_err(|never| match never {}),
            Self::Net(network) => network.evaluate_batch(batch),
        }
    }

    fn network(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Net(network) => Evaluator::<G>::network(&**network),
        }
    }
}
