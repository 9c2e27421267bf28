//! Facts about a search's root that are not in the tree, and the changes to its priors: temperature and noise.

use crate::config::SearchConfig;
use crate::game::Action;
use crate::rng::Stream;
use crate::search::gumbel::Halving;
use crate::search::tree::{Node, ROOT, Tree};

/// Facts about the root that are not in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// `[L]` priors before noise; empty until the root is expanded.
    pub(crate) clean_priors: Vec<f32>,
    /// Whether the root is explored for training: noise, temperature and Gumbel draws.
    pub(crate) exploring: bool,
    pub(crate) halving: Halving,
    /// Whether the root's own draws have been made.
    noised: bool,
    /// Gumbel draws to use in place of random ones.
    given_draws: Vec<f64>,
    /// An action with which a look ahead saw a win: the first simulation proves it.
    pub(crate) winning: Option<Action>,
    /// The actions to choose among, ascending; empty where all that are legal may be chosen.
    pub(crate) allowed: Vec<Action>,
}

impl Default for Root {
    fn default() -> Self {
        Self {
            clean_priors: Vec::new(),
            exploring: true,
            halving: Halving::default(),
            noised: false,
            given_draws: Vec::new(),
            winning: None,
            allowed: Vec::new(),
        }
    }
}

impl Root {
    /// Resets it for another root position.
    pub(crate) fn forget(&mut self) {
        self.clean_priors.clear();
        self.noised = false;
        self.halving.forget();
        self.given_draws.clear();
        self.winning = None;
        self.allowed.clear();
    }

    /// Moves the root to a position of the tree with these children.
    pub(crate) fn inherit(&mut self, children: &[Node]) {
        // Noise changed only the old root's children, so these priors are clean.
        self.clean_priors.extend(children.iter().map(|child| child.prior));
        // Reading the tree before the next search must see a root without draws.
        self.halving.inherited.extend(children.iter().map(|child| child.visits));
        self.halving.draws.resize(self.clean_priors.len(), 0.0);
    }

    /// Gumbel draws to use in place of random ones.
    pub(crate) fn set_draws(&mut self, draws: &[f64]) {
        self.given_draws.clear();
        self.given_draws.extend_from_slice(draws);
        self.noised = false;
    }

    /// As soon as the root has children: once a move remembers its clean priors and makes the draws of a search that
    /// explores; once a search notes what the children have already.
    pub(crate) fn start(&mut self, tree: &mut Tree, config: &SearchConfig, stream: &mut Stream) {
        let children = tree.children(ROOT);
        if children.is_empty() {
            return;
        }
        self.halving.inherited.clear();
        self.halving.inherited.extend(children.iter().map(|child| child.visits));
        if !self.noised {
            self.noised = true;
            self.clean_priors.clear();
            self.clean_priors.extend(children.iter().map(|child| child.prior));
            self.explore(tree, config, stream);
        }
        if let Some(rule) = config.gumbel() {
            self.halving.look(tree.children(ROOT), rule);
        }
    }

    /// Makes the draws of a root.
    fn explore(&mut self, tree: &mut Tree, config: &SearchConfig, stream: &mut Stream) {
        let actions = self.clean_priors.len();
        if let Some(rule) = config.gumbel() {
            // The draws vary the games, as temperature does with PUCT: searches that do not explore have them too.
            let scale = rule.gumbel_scale;
            self.halving.draws.clear();
            if self.given_draws.len() == actions {
                self.halving.draws.extend_from_slice(&self.given_draws);
            } else if scale == 0.0 {
                self.halving.draws.resize(actions, 0.0);
            } else {
                self.halving.draws.extend((0..actions).map(|_| scale * stream.gumbel()));
            }
        } else if self.exploring {
            let priors = explored_priors(&self.clean_priors, config, stream);
            for (index, &prior) in priors.iter().enumerate() {
                tree.set_root_prior(index, prior);
            }
        }
    }
}

/// The root's priors as an exploring search uses them, `[L]`, from those of the network.
pub(crate) fn explored_priors(clean: &[f32], config: &SearchConfig, stream: &mut Stream) -> Vec<f32> {
    let mut priors: Vec<f64> = clean.iter().map(|&prior| f64::from(prior)).collect();
    if config.root_temperature != 1.0 {
        // Relative to the largest: no power of all of them can vanish.
        let (power, largest) = (1.0 / config.root_temperature, priors.iter().copied().fold(0.0, f64::max));
        priors.iter_mut().for_each(|prior| *prior = (*prior / largest).powf(power));
        let sum: f64 = priors.iter().sum();
        priors.iter_mut().for_each(|prior| *prior /= sum);
    }
    if let Some(noise) = config.root_noise {
        let alpha = noise.alpha.unwrap_or(10.0 / clean.len() as f64);
        let drawn = stream.dirichlet(&vec![alpha; clean.len()]);
        for (prior, extra) in priors.iter_mut().zip(drawn) {
            *prior = (1.0 - noise.fraction) * *prior + noise.fraction * extra;
        }
    }
    priors.into_iter().map(|prior| prior as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_temperature_flattens_or_sharpens_and_keeps_the_sum() {
        let clean = [0.7, 0.2, 0.1];
        let at = |root_temperature| {
            let config = SearchConfig { root_temperature, ..SearchConfig::default() };
            explored_priors(&clean, &config, &mut Stream::keyed(&[1]))
        };
        assert_eq!(at(1.0), clean);
        assert_eq!(at(0.001), [1.0, 0.0, 0.0]);
        for temperature in [0.5, 1.25, 4.0] {
            let priors = at(temperature);
            assert!((priors.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            let expected = (0.7_f64 / 0.2).powf(1.0 / temperature);
            assert!((f64::from(priors[0] / priors[1]) - expected).abs() < 1e-4);
        }
    }
}
