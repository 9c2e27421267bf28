//! Children of nodes that a descent has reached once. Most of them are never chosen among, so they are kept in 8 bytes
//! each until a descent comes back to their parent, and their priors are not computed before.

use crate::game::Action;
use crate::search::softmax::softmax_in_place;

/// Where a list begins.
type Place = u32;

/// Children that are not nodes yet, list after list.
#[derive(Clone, Debug, Default)]
pub(super) struct Folded {
    /// How many children a list has, then the action of each.
    actions: Vec<u32>,
    /// In the same places: nothing, then the logit of each.
    logits: Vec<f32>,
    /// Children in lists that were not taken.
    waiting: usize,
}

impl Folded {
    pub(super) fn clear(&mut self) {
        self.actions.clear();
        self.logits.clear();
        self.waiting = 0;
    }

    /// Whether a list of any length has a place that a node can name.
    pub(super) fn has_room(&self) -> bool {
        u32::try_from(self.actions.len()).is_ok()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.actions.capacity() * size_of::<u32>() + self.logits.capacity() * size_of::<f32>()
    }

    /// Adds a list, and returns its place.
    pub(super) fn push(&mut self, actions: &[Action], logits: &[f32]) -> Place {
        let place = self.actions.len() as Place;
        self.actions.push(actions.len() as u32);
        self.actions.extend_from_slice(actions);
        self.logits.push(0.0);
        self.logits.extend_from_slice(logits);
        self.waiting += actions.len();
        place
    }

    /// Where the children of the list at a place are.
    fn range(&self, place: Place) -> std::ops::Range<usize> {
        let first = place as usize + 1;
        first..first + self.actions[place as usize] as usize
    }

    /// Copies a list from another tree's, and returns its place.
    pub(super) fn copy(&mut self, from: &Self, place: Place) -> Place {
        let children = from.range(place);
        self.push(&from.actions[children.clone()], &from.logits[children])
    }

    /// Drops all lists but those at these places, and updates the places as these lists move up.
    pub(super) fn keep<'a>(&mut self, places: impl Iterator<Item = &'a mut Place>) {
        if self.actions.is_empty() {
            return;
        }
        let mut kept: Vec<&mut Place> = places.collect();
        kept.sort_unstable();
        let mut end = 0;
        self.waiting = 0;
        for place in kept {
            let list = *place as usize..self.range(*place).end;
            self.waiting += list.len() - 1;
            self.actions.copy_within(list.clone(), end);
            self.logits.copy_within(list.clone(), end);
            *place = end as Place;
            end += list.len();
        }
        self.actions.truncate(end);
        self.logits.truncate(end);
    }

    /// Takes the list at a place: the action and prior of each child.
    pub(super) fn take(&mut self, place: Place) -> impl ExactSizeIterator<Item = (Action, f32)> {
        let children = self.range(place);
        self.waiting -= children.len();
        // The list is not read again, so its logits may become its priors.
        let priors = &mut self.logits[children.clone()];
        softmax_in_place(priors);
        self.actions[children].iter().copied().zip(priors.iter().copied())
    }

    /// Frees the unused capacity.
    pub(super) fn shrink(&mut self) {
        self.actions.shrink_to_fit();
        self.logits.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use crate::batched::{Rounds, Workers};
    use crate::config::SearchConfig;
    use crate::evaluator::{Batch, Evaluator, Rollout};
    use crate::game::{Game, Turn};
    use crate::rng::{Stream, mix};
    use crate::search::Search;
    use crate::toy::Toy;

    /// The values of a [`Rollout`], with other logits for each position.
    struct Varied(Rollout);

    impl Evaluator<Toy> for Varied {
        type Error = std::convert::Infallible;

        fn evaluate_batch(&mut self, batch: Batch<'_, Toy>) -> Result<(), Self::Error> {
            let Batch { states, streams, offsets, actions, logits, values, proofs, encode } = batch;
            let whole = Batch { states, streams, offsets, actions, logits: &mut *logits, values, proofs, encode };
            self.0.evaluate_batch(whole)?;
            for (row, state) in states.iter().enumerate() {
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                for (logit, &action) in logits[range.clone()].iter_mut().zip(&actions[range]) {
                    *logit = (mix(state.key() as u64 ^ u64::from(action)) % 1000) as f32 / 250.0;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn a_folded_tree_finds_what_a_whole_one_does() {
        let (mut fewer, mut moves) = (0, 0);
        for seed in 0..60 {
            let config = SearchConfig {
                eval_batch: [1, 4][seed as usize % 2],
                gumbel_actions: [0, 4][seed as usize / 2 % 2],
                solver: seed % 5 == 0,
                ..SearchConfig::default()
            };
            let toy = Toy::random(seed, 6, seed % 3 == 0);
            let mut searches = [Search::new(toy.clone(), config), Search::new(toy, config)];
            searches[1].fold();
            let mut stream = Stream::keyed(&[seed]);
            while searches[0].root().turn() != Turn::Terminal {
                if searches[0].root().turn() == Turn::Chance {
                    let mut outcomes = Vec::new();
                    searches[0].root().chance_outcomes(&mut outcomes);
                    let drawn = stream.weighted(outcomes.iter().map(|&(_, probability)| f64::from(probability)));
                    searches.iter_mut().for_each(|search| search.advance(outcomes[drawn].0));
                    continue;
                }
                searches.iter_mut().for_each(|search| search.begin(40, Stream::keyed(&[seed, moves])).unwrap());
                while Rounds::new(Workers::Serial, None).run(&mut searches, &mut Varied(Rollout { seed })).unwrap() {}
                let [whole, folded] = &searches;
                assert_eq!(whole.result(), folded.result(), "seed {seed}");
                assert_eq!(whole.tree().num_nodes(), folded.tree().num_nodes(), "seed {seed}");
                fewer += whole.tree().nodes().len() - folded.tree().nodes().len();
                let actions = whole.result().actions;
                let action = actions[stream.below(actions.len())];
                assert_eq!(whole.child(action).tree().num_nodes(), folded.child(action).tree().num_nodes());
                searches.iter_mut().for_each(|search| search.advance(action));
                moves += 1;
            }
        }
        assert!(moves > 100 && fewer > 1_000, "{fewer} children were folded in {moves} moves");
    }
}
