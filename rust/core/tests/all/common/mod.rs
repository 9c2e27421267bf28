//! What the core's tests share: the slow obvious twin of the search, and evaluators that answer by a formula.
#![allow(unreachable_pub)]

use std::convert::Infallible;

use azpy_core::batched::{Rounds, Workers};
use azpy_core::config::{Fpu, SearchConfig};
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Action, Game, Payoff, Player, Pov, PovOf, Turn, Value};
use azpy_core::rng::{Stream, mix};
use azpy_core::search::Search;
use azpy_core::tree::Kind;

pub mod engine;
pub mod selfplay;

/// Answers that look random but depend on the observation and the action alone: no ties, the same in any batch.
#[derive(Clone, Copy)]
pub struct Hashed;

pub fn hashed_answer(observation: &[f32], legal: &[Action], logits: &mut [f32]) -> f32 {
    let position = observation.iter().fold(17, |hash, x| mix(hash ^ u64::from(x.to_bits())));
    let unit = |bits: u64| (mix(bits) >> 11) as f64 / (1_u64 << 53) as f64;
    for (logit, &action) in logits.iter_mut().zip(legal) {
        *logit = (unit(position ^ mix(u64::from(action) + 1)) * 3.0) as f32;
    }
    (unit(position) * 1.6 - 0.8) as f32
}

/// Of several players each has a number of its own: the player to move that of [`hashed_answer`].
pub fn hashed_values<G: Game>(state: &G, legal: &[Action], logits: &mut [f32]) -> PovOf<G> {
    let mut row = vec![0.0; state.obs_shape().iter().product()];
    state.encode(&mut row);
    let mut values = PovOf::<G>::filled(state.num_players(), hashed_answer(&row, legal, logits));
    for (seat, number) in values.numbers_mut().iter_mut().enumerate().skip(1) {
        row.push(seat as f32);
        *number = hashed_answer(&row, &[], &mut []);
    }
    values
}

impl<G: Game> Evaluator<G> for Hashed {
    type Error = Infallible;
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        for row in 0..batch.rows() {
            let range = batch.range(row);
            batch.values[row] =
                hashed_values(&batch.states[row], &batch.actions[range.clone()], &mut batch.logits[range]);
        }
        Ok(())
    }
}

/// A search of `root`, run to its end; checks on the way out that the counts add up.
pub fn run<G: Game>(
    root: &G,
    config: SearchConfig,
    simulations: u32,
    seed: u64,
    evaluator: &mut impl Evaluator<G, Error = Infallible>,
) -> Search<G> {
    let mut search = Search::new(root.clone(), config);
    finish(&mut search, simulations, &[seed], evaluator);
    if config.max_memory_mb.is_none() {
        check_tree(&search);
    }
    search
}

/// So many simulations more, of the tree that there is.
pub fn go_on<G: Game>(
    search: &mut Search<G>,
    simulations: u32,
    seed: u64,
    evaluator: &mut impl Evaluator<G, Error = Infallible>,
) {
    finish(search, simulations, &[seed], evaluator);
    check_tree(search);
}

/// As `go_on`, of a tree that may be full, and with a stream of these words.
pub fn finish<G: Game>(
    search: &mut Search<G>,
    simulations: u32,
    seed: &[u64],
    evaluator: &mut impl Evaluator<G, Error: std::fmt::Debug>,
) {
    search.begin(simulations, Stream::keyed(seed)).unwrap();
    let mut rounds = Rounds::new(Workers::Serial, None);
    while rounds.run(std::slice::from_mut(search), evaluator).unwrap() {}
}

/// The legal actions, or the outcomes of a roll; nothing at the end.
pub fn moves<G: Game>(state: &G) -> Vec<Action> {
    let (mut moves, mut outcomes) = (Vec::new(), Vec::new());
    match state.turn() {
        Turn::Player(_) => state.legal_actions(&mut moves),
        Turn::Chance => state.chance_outcomes(&mut outcomes),
        Turn::Terminal => {}
    }
    moves.extend(outcomes.into_iter().map(|(outcome, _)| outcome));
    moves
}

pub fn after<G: Game>(state: &G, action: Action) -> G {
    let mut next = state.clone();
    next.play(action);
    next
}

/// Promise 2: nothing in flight, sums of visits, |Q| <= 1, priors that sum to 1.
pub fn check_tree<G: Game>(search: &Search<G>) {
    let tree = search.tree();
    for (id, node) in tree.nodes().iter().enumerate() {
        assert_eq!(node.in_flight, 0);
        assert!(node.value_sum.abs() <= f64::from(node.visits) + 1e-6);
        let children = tree.children(id as u32);
        let below: u32 = children.iter().map(|child| child.visits).sum();
        match node.kind {
            // A roll can lead to a proven position again and again; what is below it is not looked at any more.
            Kind::Decision(_) | Kind::Chance if node.proof != 0 => assert!(node.visits >= below),
            Kind::Decision(_) => assert_eq!(node.visits, 1 + below),
            Kind::Chance => assert_eq!(node.visits, below),
            Kind::New => assert!(node.visits == 0 || node.proof != 0),
            Kind::Terminal => assert!(children.is_empty()),
            Kind::Pending => panic!("a leaf still waits"),
        }
        if !children.is_empty() {
            let priors: f32 = children.iter().map(|child| child.prior).sum();
            assert!((priors - 1.0).abs() < 1e-5, "priors sum to {priors}");
        }
    }
}

/// Action, prior, position if reached.
pub type Edge<G> = (Action, f32, Option<Box<Naive<G>>>);

/// Textbook PUCT: recursive, one leaf at a time, a heap node a position. Dice are drawn from the same stream as the
/// search's, in the same order.
pub struct Naive<G: Game> {
    game: G,
    pub n: u32,
    /// `[P]` the sums of the values for each player.
    pub sums: Vec<f64>,
    /// What was taken up through here.
    pub values: Vec<G::Payoff>,
    pub children: Vec<Edge<G>>,
    expanded: bool,
}

impl<G: Game> Naive<G> {
    pub fn new(game: G) -> Self {
        let sums = vec![0.0; game.num_players()];
        Self { n: 0, sums, values: vec![], children: vec![], expanded: false, game }
    }

    /// So many simulations, with the stream of this seed, as [`finish`] has it.
    pub fn finish(&mut self, config: &SearchConfig, simulations: u32, seed: u64) {
        let mut dice = Stream::keyed(&[seed]);
        // The search's own first draw: a seed for streams that leaves may ask for.
        dice.bits();
        for _ in 0..simulations {
            self.simulate(config, &mut dice);
        }
    }

    /// One simulation; what it found.
    pub fn simulate(&mut self, config: &SearchConfig, dice: &mut Stream) -> G::Payoff {
        let value = match self.game.turn() {
            Turn::Terminal => match (self.game.outcome(), config.score_to_beat) {
                (outcome, None) => outcome,
                (outcome, Some(to_beat)) => {
                    let (score, to_beat) = (outcome.of(Player::Zero), to_beat as f32);
                    let wins = score > to_beat || score == 1.0;
                    let loses = score < to_beat && !wins;
                    G::Payoff::of_proven(Value(f32::from(i8::from(wins) - i8::from(loses))))
                }
            },
            Turn::Chance => {
                let mut outcomes = Vec::new();
                self.game.chance_outcomes(&mut outcomes);
                if self.children.is_empty() {
                    self.children = outcomes.into_iter().map(|(outcome, p)| (outcome, p, None)).collect();
                }
                let drawn = dice.weighted(self.children.iter().map(|child| f64::from(child.1)));
                self.child(drawn).simulate(config, dice)
            }
            Turn::Player(player) if !self.expanded => {
                self.expanded = true;
                let legal = moves(&self.game);
                let mut logits = vec![0.0; legal.len()];
                let value = hashed_values(&self.game, &legal, &mut logits);
                let highest = logits.iter().copied().fold(f32::MIN, f32::max);
                let weights: Vec<f32> = logits.iter().map(|logit| (logit - highest).exp()).collect();
                let sum: f32 = weights.iter().sum();
                self.children =
                    legal.iter().zip(weights).map(|(&action, weight)| (action, weight * (1.0 / sum), None)).collect();
                value.absolute(player)
            }
            Turn::Player(player) => {
                let own = player.index();
                let n = f64::from(self.n);
                let c = config.c_puct + config.c_puct_base.map_or(0.0, |base| ((1.0 + n + base) / base).ln());
                let parent_q = self.sums[own] / n;
                let tried: f64 = self.children.iter().filter(|c| c.2.is_some()).map(|c| f64::from(c.1)).sum();
                let fpu = match config.fpu {
                    Fpu::Zero => 0.0,
                    Fpu::Parent => parent_q,
                    Fpu::Reduction(r) => parent_q - r * tried.sqrt(),
                };
                let score = |(_, prior, child): &Edge<G>| {
                    let visits = child.as_ref().map_or(0.0, |child| f64::from(child.n));
                    let q = child.as_ref().map_or(fpu, |child| child.sums[own] / visits);
                    q + c * n.sqrt() * (f64::from(*prior) / (1.0 + visits))
                };
                let scores: Vec<f64> = self.children.iter().map(score).collect();
                let best = (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
                self.child(best).simulate(config, dice)
            }
        };
        self.n += 1;
        for (player, number) in value.each().numbers().iter().map(|&number| f64::from(number)).enumerate() {
            self.sums[player] += number;
        }
        self.values.push(value);
        value
    }

    fn child(&mut self, index: usize) -> &mut Self {
        let (action, _, child) = &mut self.children[index];
        child.get_or_insert_with(|| Box::new(Naive::new(after(&self.game, *action))))
    }

    pub fn visits(&self) -> Vec<u32> {
        self.children.iter().map(|(_, _, child)| child.as_ref().map_or(0, |child| child.n)).collect()
    }
}
