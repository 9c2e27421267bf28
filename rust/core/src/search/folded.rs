//! Children of nodes that a descent has reached once. Most of them are never chosen among, so they are kept in 8 bytes
//! each until a descent comes back to their parent.

use crate::game::Action;

/// Where a list begins.
type Place = u32;

/// Children that are not nodes yet, list after list: how many there are, then the action and prior of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Folded {
    entries: Vec<(u32, f32)>,
    /// Children in lists that were not taken.
    waiting: usize,
}

impl Folded {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.waiting = 0;
    }

    /// Whether a list of any length has a place that a node can name.
    pub(super) fn has_room(&self) -> bool {
        u32::try_from(self.entries.len()).is_ok()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u32, f32)>()
    }

    /// Adds a list, and returns its place.
    pub(super) fn push(&mut self, actions: &[Action], priors: &[f32]) -> Place {
        let place = self.entries.len() as Place;
        self.entries.push((actions.len() as u32, 0.0));
        self.entries.extend(actions.iter().copied().zip(priors.iter().copied()));
        self.waiting += actions.len();
        place
    }

    /// Where the children of the list at a place are.
    fn range(&self, place: Place) -> std::ops::Range<usize> {
        let first = place as usize + 1;
        first..first + self.entries[place as usize].0 as usize
    }

    /// Copies a list from another tree's, and returns its place.
    pub(super) fn copy(&mut self, from: &Self, place: Place) -> Place {
        let new = self.entries.len() as Place;
        let children = from.range(place);
        self.waiting += children.len();
        self.entries.extend_from_slice(&from.entries[place as usize..children.end]);
        new
    }

    /// Drops all lists but those at these places, and updates the places as these lists move up.
    pub(super) fn keep<'a>(&mut self, places: impl Iterator<Item = &'a mut Place>) {
        if self.entries.is_empty() {
            return;
        }
        let mut kept: Vec<&mut Place> = places.collect();
        kept.sort_unstable();
        let mut end = 0;
        self.waiting = 0;
        for place in kept {
            let children = self.range(*place);
            self.waiting += children.len();
            self.entries.copy_within(*place as usize..children.end, end);
            *place = end as Place;
            end += 1 + children.len();
        }
        self.entries.truncate(end);
    }

    /// Takes the list at a place: the action and prior of each child.
    pub(super) fn take(&mut self, place: Place) -> &[(Action, f32)] {
        let children = self.range(place);
        self.waiting -= children.len();
        &self.entries[children]
    }

    /// Frees the unused capacity.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use crate::batched::{Rounds, Workers};
    use crate::config::SearchConfig;
    use crate::evaluator::Rollout;
    use crate::game::{Game, Turn};
    use crate::rng::Stream;
    use crate::search::Search;
    use crate::toy::Toy;

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
                while Rounds::new(Workers::Serial, None).run(&mut searches, &mut Rollout { seed }).unwrap() {}
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
