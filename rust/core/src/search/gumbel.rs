//! Planning with Gumbel (Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR
//! 2022): which action to try next at the root and below it, which one to play, and the improved policy to learn.
//!
//! The arithmetic is that of DeepMind's mctx (`gumbel_muzero_policy` with `qtransform_completed_by_mix_value`), visit
//! for visit: tests compare the two. Priors stand for logits, as `ln P` differs from them by a constant that every use
//! here cancels. Descents in flight count as visits where visits say whose turn it is, and nowhere else.

use crate::config::SearchConfig;
use crate::game::Player;
use crate::search::tree::{Node, NodeId, Tree};

/// One node's children as the player who chooses there sees them.
pub(crate) struct Choice<'a> {
    pub(crate) children: &'a [Node],
    /// Value sum and visits of the node itself, its own evaluation included, for that player.
    pub(crate) value_sum: f64,
    pub(crate) visits: u32,
    /// Actions of the game: mctx has a Q for illegal ones too, and they take part in the scaling of all Q.
    pub(crate) num_actions: usize,
}

/// What `sigma(completed Q)` of a node's children is made of.
struct Completed {
    /// Q of a child without visits.
    mixed: f64,
    /// `sigma(Q) = scale * (Q - zero)`
    zero: f64,
    scale: f64,
    /// What `sigma(Q)` of two children differs by at most.
    spread: f64,
}

impl Completed {
    #[inline]
    fn sigma(&self, child: &Node) -> f64 {
        let q = if child.visits > 0 { child.mean() } else { self.mixed };
        self.scale * (q - self.zero)
    }
}

impl<'a> Choice<'a> {
    /// The children of a decision node, where `player` chooses among them and `chooser` chose the node.
    pub(crate) fn at(tree: &'a Tree, id: NodeId, player: Player, chooser: Player, num_actions: usize) -> Self {
        let value_sum = tree.sum_for(id, player, chooser);
        Self { children: tree.children(id), value_sum, visits: tree.node(id).visits, num_actions }
    }

    /// Q of every child (sections 4 and 5; equations 8, 10 and 11 and appendix D). Q of a child without visits is the
    /// mixed value: the node's own evaluation, and the visited children's Q weighted by their priors. Q is scaled to
    /// [0, 1] within the node, unless `gumbel_rescale` is off.
    ///
    /// `children` are all that have visits, ascending, and maybe others.
    #[inline]
    fn completed<'b>(&self, rule: &SearchConfig, children: impl Iterator<Item = &'b Node>) -> Completed {
        let (mut tried_prior, mut weighted_q, mut tried_sum, mut simulations, mut most) = (0.0, 0.0, 0.0, 0, 0);
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut tried = 0;
        for child in children.filter(|child| child.visits > 0) {
            let (prior, q) = (positive(child.prior), child.mean());
            tried_prior += prior;
            weighted_q += prior * q;
            tried_sum += child.value_sum;
            simulations += child.visits;
            most = most.max(child.visits);
            lowest = lowest.min(q);
            highest = highest.max(q);
            tried += 1;
        }
        // A node in a full tree may have been evaluated several times.
        let own_value = (self.value_sum - tried_sum) / f64::from((self.visits - simulations).max(1));
        let simulations = f64::from(simulations);
        let weighted_q = if tried > 0 { weighted_q / tried_prior } else { 0.0 };
        let mixed = (own_value + simulations * weighted_q) / (simulations + 1.0);
        if tried < self.num_actions {
            lowest = lowest.min(mixed);
            highest = highest.max(mixed);
        }
        // If all Q are equal, do not divide by zero.
        let (zero, one) = if rule.gumbel_rescale { (lowest, (highest - lowest).max(1e-8)) } else { (0.0, 1.0) };
        let most = (rule.maxvisit_init + f64::from(most)) * rule.value_scale;
        Completed { mixed, zero, scale: most / one, spread: most * 2.0 }
    }

    /// `ln P + sigma(completed Q)` for every child into `out`.
    fn improved_logits(&self, rule: &SearchConfig, out: &mut Vec<f64>) {
        let completed = self.completed(rule, self.children.iter());
        out.clear();
        out.extend(self.children.iter().map(|child| log_prior(child.prior) + completed.sigma(child)));
    }

    /// Below the root: the child whose visits fall behind the improved policy the most (equation 14). Proven children
    /// are passed over.
    pub(crate) fn interior(&self, rule: &SearchConfig, scratch: &mut Vec<f64>) -> usize {
        self.interior_at_once(rule).unwrap_or_else(|| self.interior_in_full(rule, scratch))
    }

    fn interior_in_full(&self, rule: &SearchConfig, scratch: &mut Vec<f64>) -> usize {
        self.improved_logits(rule, scratch);
        softmax(scratch);
        let total: u32 = self.children.iter().map(begun).sum();
        let share = 1.0 / (1.0 + f64::from(total));
        let score = |index: usize| scratch[index] - f64::from(begun(&self.children[index])) * share;
        best(self.children, |index| self.children[index].proof == 0, score).unwrap_or(0)
    }

    /// What [`Choice::interior_in_full`] chooses, without a logarithm and an exponential for each child; `None` where
    /// rounding could make a difference.
    ///
    /// `exp(ln P + sigma(Q))` is `P exp(sigma(Q))`, and children without visits have one Q. So the highest prior among
    /// those not begun is the one to compare with those begun, of which there are few. Two priors of 32 bits are never so
    /// close that rounding in 64 bits exchanges their scores.
    fn interior_at_once(&self, rule: &SearchConfig) -> Option<usize> {
        let (mut new, mut new_prior, mut new_sum, mut total) = (None, 0.0, 0.0, 0);
        let completed = self.completed(
            rule,
            self.children.iter().enumerate().filter_map(|(index, child)| {
                if begun(child) > 0 {
                    total += begun(child);
                    return Some(child);
                }
                let prior = positive(child.prior);
                new_sum += prior;
                if prior > new_prior && child.proof == 0 {
                    (new, new_prior) = (Some(index), prior);
                }
                None
            }),
        );
        if completed.spread > MOST_SPREAD {
            return None;
        }
        if total == 0 {
            return new;
        }
        // Weights are relative to that of a child with the mixed value and a prior of 1.
        let weight = |child: &Node| {
            let above = if child.visits > 0 { completed.scale * (child.mean() - completed.mixed) } else { 0.0 };
            positive(child.prior) * above.exp()
        };
        let begun_children = || self.children.iter().enumerate().filter(|(_, child)| begun(child) > 0);
        let sum = new_sum + begun_children().map(|(_, child)| weight(child)).sum::<f64>();
        let share = 1.0 / (1.0 + f64::from(total));
        let (mut chosen, mut second) = (new, f64::NEG_INFINITY);
        let mut highest = if new.is_some() { new_prior / sum } else { f64::NEG_INFINITY };
        for (index, child) in begun_children().filter(|(_, child)| child.proof == 0) {
            let score = weight(child) / sum - f64::from(begun(child)) * share;
            second = second.max(score.min(highest));
            if score > highest {
                (chosen, highest) = (Some(index), score);
            }
        }
        chosen.filter(|_| highest - second > CLOSE)
    }
}

/// Above this difference of logits, weights come near to what 64 bits can tell from 0.
const MOST_SPREAD: f64 = 500.0;

/// Above this, sigma is known less closely than [`CLOSE`] by far.
const MOST_SCALE: f64 = 1e5;

/// Scores, numbers of about 1, that differ by more have more between them than rounding.
const CLOSE: f64 = 1e-9;

/// The root's own rule: its Gumbel draws, and what it had when the search began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halving {
    /// `[L]` logarithms of the priors; empty until [`Halving::look`].
    log_priors: Vec<f64>,
    /// `[L]` draws from the Gumbel distribution, times its scale.
    pub(crate) draws: Vec<f64>,
    /// `[L]` visits inherited from an earlier search: sequential halving counts its own.
    pub(crate) inherited: Vec<u32>,
    /// Simulations that this search was asked for.
    pub(crate) simulations: u32,
    /// The children that this search can come to, ascending, if [`Halving::look`] can tell.
    candidates: Vec<Candidate>,
}

/// A child that a search of the root can come to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    index: u32,
    inherited: u32,
    log_prior: f64,
    draw: f64,
}

impl Halving {
    /// Resets it for another root.
    pub(crate) fn forget(&mut self) {
        self.log_priors.clear();
        self.draws.clear();
        self.inherited.clear();
        self.candidates.clear();
        self.simulations = 0;
    }

    /// Finds the children that the search can come to, so that a descent looks at no others: those that have visits, and
    /// as many of the others as are considered. Without visits all have one Q, so the highest `g + ln P` come first.
    pub(crate) fn look(&mut self, children: &[Node], rule: &SearchConfig) {
        self.candidates.clear();
        self.log_priors.clear();
        self.log_priors.extend(children.iter().map(|child| log_prior(child.prior)));
        let visits = children.iter().map(|child| f64::from(child.visits)).sum::<f64>() + f64::from(self.simulations);
        // A proof can end a child's turn, or be looked for elsewhere. Large numbers round what decides.
        if rule.solver || rule.lookahead > 0 || (rule.maxvisit_init + visits) * rule.value_scale > MOST_SCALE {
            return;
        }
        let logs = &self.log_priors;
        let sum = |index: usize| logs[index] + self.draws[index];
        let mut sums: Vec<f64> = (0..children.len()).filter(|&index| children[index].visits == 0).map(sum).collect();
        let least = match rule.gumbel_actions.checked_sub(1) {
            Some(last) if last < sums.len() => *sums.select_nth_unstable_by(last, |a, b| b.total_cmp(a)).1 - CLOSE,
            _ => f64::NEG_INFINITY,
        };
        let can = |index: &usize| children[*index].visits > 0 || sum(*index) >= least;
        self.candidates.extend((0..children.len()).filter(can).map(|index| Candidate {
            index: index as u32,
            inherited: self.inherited[index],
            log_prior: logs[index],
            draw: self.draws[index],
        }));
    }

    /// Sequential halving: among the children with as many visits as it is the turn of, the one with the highest
    /// `g + ln P + sigma(Q)`.
    pub(crate) fn select(&mut self, choice: &Choice<'_>, rule: &SearchConfig) -> usize {
        self.select_candidate(choice, rule).unwrap_or_else(|| {
            self.candidates.clear(); // it may come to others now
            self.select_in_full(choice, rule)
        })
    }

    fn select_candidate(&self, choice: &Choice<'_>, rule: &SearchConfig) -> Option<usize> {
        let child = |candidate: &Candidate| &choice.children[candidate.index as usize];
        let completed = choice.completed(rule, self.candidates.iter().map(child));
        let own = |candidate: &Candidate| begun(child(candidate)) - candidate.inherited;
        let turn = self.turn(choice, rule, self.candidates.iter().map(own).sum());
        let mut found: Option<(u32, f64)> = None;
        for candidate in self.candidates.iter().filter(|candidate| own(candidate) == turn) {
            let score = candidate.log_prior + completed.sigma(child(candidate)) + candidate.draw;
            if found.is_none_or(|(_, highest)| score > highest) {
                found = Some((candidate.index, score));
            }
        }
        found.map(|(index, _)| index as usize)
    }

    fn select_in_full(&self, choice: &Choice<'_>, rule: &SearchConfig) -> usize {
        let completed = choice.completed(rule, choice.children.iter());
        let own = |index: usize| begun(&choice.children[index]) - self.inherited[index];
        let turn = self.turn(choice, rule, (0..choice.children.len()).map(own).sum());
        let open = |index: usize| choice.children[index].proof == 0;
        let score = |index: usize| {
            let child = &choice.children[index];
            log_prior(child.prior) + completed.sigma(child) + self.draws[index]
        };
        best(choice.children, |index| open(index) && own(index) == turn, score)
            // Collisions that were taken back and proofs leave the order of turns: then it is the turn of those that are
            // nearest to it.
            .or_else(|| {
                let nearest = |index: &usize| (own(*index).abs_diff(turn), own(*index) > turn);
                let next =
                    (0..choice.children.len()).filter(|&index| open(index)).map(|index| nearest(&index)).min()?;
                best(choice.children, |index| open(index) && nearest(&index) == next, score)
            })
            .unwrap_or(0)
    }

    /// How many visits the children have whose turn the `index`-th simulation of the search is.
    fn turn(&self, choice: &Choice<'_>, rule: &SearchConfig, index: u32) -> u32 {
        visits_considered(rule.gumbel_actions.min(choice.children.len()), self.simulations, index)
    }

    /// `ln P + sigma(completed Q)` for every child of the root.
    pub(crate) fn improved_logits(&self, choice: &Choice<'_>, rule: &SearchConfig) -> Vec<f64> {
        let mut logits = Vec::new();
        if self.log_priors.len() != choice.children.len() {
            choice.improved_logits(rule, &mut logits); // the search has not begun
        } else {
            let completed = choice.completed(rule, choice.children.iter());
            let pairs = choice.children.iter().zip(&self.log_priors);
            logits.extend(pairs.map(|(child, log_prior)| log_prior + completed.sigma(child)));
        }
        logits
    }

    /// The action to play: the highest `g + ln P + sigma(Q)` among the most visited. `improved` is
    /// [`Halving::improved_logits`].
    pub(crate) fn choose(&self, children: &[Node], improved: &[f64]) -> Option<usize> {
        let own = |index: usize| children[index].visits - self.inherited[index];
        let most = (0..children.len()).map(own).max()?;
        best(children, |index| own(index) == most, |index| improved[index] + self.draws[index])
    }
}

/// Turns logits into probabilities: the improved policy is that of `ln P + sigma(completed Q)`.
pub(crate) fn softmax(logits: &mut [f64]) {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logits.iter_mut().for_each(|logit| *logit = (*logit - highest).exp());
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|weight| *weight /= sum);
}

/// Visits, those under way included.
#[inline]
fn begun(child: &Node) -> u32 {
    child.visits + child.in_flight
}

/// A prior whose logarithm is a number.
#[inline]
fn positive(prior: f32) -> f64 {
    f64::from(prior.max(f32::MIN_POSITIVE))
}

/// The logarithm of a prior, a finite number.
fn log_prior(prior: f32) -> f64 {
    positive(prior).ln()
}

/// The child with the highest score among those that may be taken; the first of equals.
fn best(children: &[Node], may: impl Fn(usize) -> bool, score: impl Fn(usize) -> f64) -> Option<usize> {
    let mut found: Option<(usize, f64)> = None;
    for index in (0..children.len()).filter(|&index| may(index)) {
        let score = score(index);
        if found.is_none_or(|(_, highest)| score > highest) {
            found = Some((index, score));
        }
    }
    found.map(|(index, _)| index)
}

/// How many visits the children have whose turn the `index`-th simulation is: sequential halving (Karnin, Koren and
/// Somekh 2013) as mctx lays it out. In each phase the children still considered are visited in rounds, each once a
/// round; then the better half goes on. Simulations left over are rounds of two.
pub(crate) fn visits_considered(considered: usize, simulations: u32, index: u32) -> u32 {
    if considered <= 1 {
        return index;
    }
    let phases = u64::from(considered.next_power_of_two().ilog2());
    let (mut width, mut first, mut visits) = (considered as u64, 0, 0);
    loop {
        let rounds = (u64::from(simulations) / (phases * width)).max(1);
        if u64::from(index) < first + rounds * width {
            return (visits + (u64::from(index) - first) / width) as u32;
        }
        first += rounds * width;
        visits += rounds;
        width = (width / 2).max(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::search::tree::Kind;

    /// The sequence written out, as the paper's algorithm 2 goes.
    fn sequence(considered: usize, simulations: u32) -> Vec<u32> {
        if considered <= 1 {
            return (0..simulations).collect();
        }
        let phases = (considered as f64).log2().ceil();
        let (mut visits, mut left, mut out) = (vec![0; considered], considered, Vec::new());
        while out.len() < simulations as usize {
            let rounds = ((f64::from(simulations) / (phases * left as f64)) as u32).max(1);
            for _ in 0..rounds {
                out.extend_from_slice(&visits[..left]);
                visits[..left].iter_mut().for_each(|n| *n += 1);
            }
            left = (left / 2).max(2);
        }
        out.truncate(simulations as usize);
        out
    }

    /// Children with visits, descents in flight and proofs for some of them.
    fn children(stream: &mut Stream) -> Vec<Node> {
        let (count, visited, kinds) = (1 + stream.below(40), stream.unit(), 1 + stream.below(9));
        let likely = [0.0, 0.2][stream.below(2)];
        let weights: Vec<f32> = (0..kinds).map(|_| (6.0 * stream.unit()).exp() as f32).collect();
        let mut drawn: Vec<f32> = (0..count).map(|_| weights[stream.below(kinds)]).collect();
        let sum: f32 = drawn.iter().sum();
        drawn.iter_mut().for_each(|weight| *weight /= sum);
        let node = |(action, prior): (usize, f32)| {
            let visits = if stream.unit() < visited { stream.below(20) as u32 } else { 0 };
            Node {
                value_sum: f64::from(visits) * [0.0, 2.0 * stream.unit() - 1.0][stream.below(2)],
                visits,
                in_flight: u32::from(stream.unit() < likely),
                first_child: 0,
                num_children: 0,
                kind: Kind::New,
                proof: u8::from(stream.unit() < likely),
                action: action as u32,
                prior,
            }
        };
        drawn.into_iter().enumerate().map(node).collect()
    }

    fn choice<'a>(children: &'a [Node], stream: &mut Stream) -> Choice<'a> {
        let below = |of: fn(&Node) -> f64| children.iter().map(of).sum::<f64>();
        Choice {
            value_sum: below(|child| child.value_sum) + 2.0 * stream.unit() - 1.0,
            visits: 1 + below(|child| child.visits.into()) as u32,
            num_actions: children.len() + stream.below(2),
            children,
        }
    }

    fn rule(stream: &mut Stream) -> SearchConfig {
        SearchConfig {
            gumbel_actions: 1 + stream.below(20),
            gumbel_rescale: stream.below(4) > 0,
            value_scale: [0.1, 1.0, 1e4][stream.below(3)],
            ..SearchConfig::default()
        }
    }

    #[test]
    fn the_child_found_at_once_is_the_one_found_in_full() {
        let (mut stream, mut at_once) = (Stream::keyed(&[7]), 0);
        for case in 0..20_000 {
            let (rule, children) = (rule(&mut stream), children(&mut stream));
            let choice = choice(&children, &mut stream);
            if let Some(found) = choice.interior_at_once(&rule) {
                assert_eq!(found, choice.interior_in_full(&rule, &mut Vec::new()), "case {case}: {children:?}");
                at_once += 1;
            }
        }
        assert!(at_once > 10_000, "{at_once} were found at once");
    }

    #[test]
    fn a_search_comes_to_candidates_alone() {
        let (mut stream, mut among, mut left_out) = (Stream::keyed(&[8]), 0, 0);
        for case in 0..1_000 {
            let (rule, mut children) = (rule(&mut stream), children(&mut stream));
            children.iter_mut().for_each(|child| (child.in_flight, child.proof) = (0, 0));
            let scale = [0.0, 1.0][stream.below(2)];
            let mut halving = Halving {
                log_priors: Vec::new(),
                draws: children.iter().map(|_| scale * stream.gumbel()).collect(),
                inherited: children.iter().map(|child| child.visits).collect(),
                simulations: 40,
                candidates: Vec::new(),
            };
            halving.look(&children, &rule);
            left_out += children.len() - halving.candidates.len();
            for _ in 0..halving.simulations {
                among += usize::from(!halving.candidates.is_empty());
                let choice = choice(&children, &mut stream);
                let chosen = halving.select(&choice, &rule);
                assert_eq!(chosen, halving.select_in_full(&choice, &rule), "case {case}: {children:?}");
                children[chosen].visits += 1;
                children[chosen].value_sum += 2.0 * stream.unit() - 1.0;
            }
            let (choice, mut anew) = (choice(&children, &mut stream), Vec::new());
            choice.improved_logits(&rule, &mut anew);
            assert_eq!(halving.improved_logits(&choice, &rule), anew, "case {case}");
            let without = Halving::default();
            assert_eq!(without.improved_logits(&choice, &rule), anew, "case {case}");
        }
        assert!(among > 20_000 && left_out > 1_000, "{among} among candidates, {left_out} children were none");
    }

    #[test]
    fn turns_are_those_of_sequential_halving_written_out() {
        for considered in 0..=40 {
            for simulations in [1, 2, 3, 7, 16, 50, 64, 199, 200, 1000] {
                let turns: Vec<u32> =
                    (0..simulations).map(|index| visits_considered(considered, simulations, index)).collect();
                assert_eq!(turns, sequence(considered, simulations), "{considered} of {simulations}");
            }
        }
    }
}
