//! How to search: the settings of one search, and which of them can be searched with.

/// What an action that was never tried is worth to the player who chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fpu {
    /// 0, a draw.
    Zero,
    /// The parent's Q.
    Parent,
    /// The parent's Q less this times the square root of the prior mass already tried (Leela Chess Zero's
    /// first-play-urgency reduction).
    Reduction(f64),
}

/// Dirichlet noise on the root's priors: `(1 - fraction) P + fraction Dirichlet(alpha)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootNoise {
    /// `None`: 10 / number of legal actions, which gives AlphaZero's values in chess, shogi and Go.
    pub alpha: Option<f64>,
    /// Weight of the noise, in `[0, 1]`.
    pub fraction: f64,
    /// Whether half of alpha's total goes to the actions whose prior is above the rest on a log scale, instead of
    /// evenly to all (shaped Dirichlet noise, KataGo's methods, Wu 2019 and after).
    pub shaped: bool,
}

/// Planning with Gumbel (Danihelka et al. 2022) in place of PUCT, noise and first-play urgency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gumbel {
    /// Actions that sequential halving begins with, those with the highest `g + ln P`.
    pub max_considered: usize,
    /// Factor on the draws g; 0 makes the choice deterministic, as in matches.
    pub scale: f64,
    /// `c_scale`: weight of Q against the logits.
    pub value_scale: f64,
    /// `c_visit`: visits that Q is trusted as if it had from the start.
    pub maxvisit_init: f64,
}

impl Default for Gumbel {
    /// The settings of mctx.
    fn default() -> Self {
        Self { max_considered: 16, scale: 1.0, value_scale: 0.1, maxvisit_init: 50.0 }
    }
}

/// Of factors and weights: what is far above all that anybody searches with, and far below where products of them are no
/// longer finite.
const MOST: f64 = 1e6;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchConfig {
    /// Leaves from this tree in one round, at most.
    pub eval_batch: usize,
    /// Exploration constant.
    pub c_puct: f64,
    /// With a base b, c grows as `c_puct + ln((1 + N + b) / b)` (AlphaZero, Silver et al. 2018; there 19,652).
    pub c_puct_base: Option<f64>,
    /// How much c grows with the spread of the values below a node: c is multiplied by
    /// `1 + c_puct_stdev (stdev / 0.4 - 1)`, where two visits' worth of a standard deviation of 0.4 is mixed in
    /// (KataGo's dynamic variance-scaled cPUCT; there 0.85); 0 leaves c alone.
    pub c_puct_stdev: f64,
    /// Value of an untried action.
    pub fpu: Fpu,
    /// Lost simulations that each descent in flight pretends to be; 0 counts it in the exploration term alone.
    pub virtual_loss: f64,
    /// Descents in one round that may meet a leaf already in flight before gathering stops.
    pub max_collisions: usize,
    /// Leaves from this tree in one round are also at most this share of the visits its root has had, one at least:
    /// while a tree is small, leaves in flight distort it most. `None`: no such cap.
    pub in_flight_share: Option<f64>,
    /// Noise at the root, drawn once a move.
    pub root_noise: Option<RootNoise>,
    /// Before the noise the root's priors are raised to 1 / this and scaled to sum to 1 (root policy softmax
    /// temperature, KataGo; there 1.1 to 1.25).
    pub root_temperature: f64,
    /// k: a child of the root that was visited gets at least `sqrt(k P n)` of its n visits, and policy targets are
    /// rid of what these visits alone brought (forced playouts and policy target pruning, KataGo, Wu 2019, section
    /// 3.2; there 2); 0 forces nothing.
    pub forced_visits: f64,
    /// Another rule than PUCT.
    pub gumbel: Option<Gumbel>,
    /// The action to play is the one with the highest `Q - lcb * standard error` among those with at least a tenth of
    /// the most visits (lower confidence bound, as in Leela Zero and KataGo); `None`: the most visited.
    pub lcb: Option<f64>,
    /// Whether wins, draws and losses that are proven are carried up the tree (MCTS-solver, Winands, Björnsson and
    /// Saito 2008): a proven child is not searched again, and a proven root ends the search.
    pub solver: bool,
    /// Whether a search ends as soon as the most visited action can no longer be overtaken. Not where visits alone do
    /// not decide: with `lcb`, `solver` or `gumbel`.
    pub early_stop: bool,
    /// Nodes that the tree may have; then the search goes on without growing it. The root is always expanded.
    pub max_nodes: Option<usize>,
    /// A search also ends when it has expanded so many leaves, its root included if that was new. An answer of the
    /// cache counts like one of the network, so that the cache changes no search; finished games and what a reused tree
    /// knows are free.
    pub evaluations: Option<u32>,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            eval_batch: 8,
            c_puct: 1.5,
            c_puct_base: None,
            c_puct_stdev: 0.0,
            fpu: Fpu::Zero,
            virtual_loss: 1.0,
            max_collisions: 8,
            in_flight_share: None,
            root_noise: None,
            root_temperature: 1.0,
            forced_visits: 0.0,
            gumbel: None,
            lcb: None,
            solver: false,
            early_stop: false,
            max_nodes: None,
            evaluations: None,
        }
    }
}

impl SearchConfig {
    /// Refuses what cannot be searched with.
    ///
    /// # Errors
    /// A sentence that names the setting, what came and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let not_negative = |x: f64| (0.0..=MOST).contains(&x);
        let fail = |what: String| Err(what);
        if self.eval_batch == 0 || self.eval_batch > 1 << 16 {
            return fail(format!("eval_batch must be between 1 and 65536, got {}", self.eval_batch));
        }
        if self.max_collisions > 1 << 16 {
            return fail(format!("max_collisions must be at most 65536, got {}", self.max_collisions));
        }
        for (name, value) in [
            ("c_puct", self.c_puct),
            ("c_puct_stdev", self.c_puct_stdev),
            ("virtual_loss", self.virtual_loss),
            ("forced_visits", self.forced_visits),
            ("lcb", self.lcb.unwrap_or(0.0)),
        ] {
            if !not_negative(value) {
                return fail(format!("{name} must be a number >= 0, at most {MOST}, got {value:?}"));
            }
        }
        if !positive(self.root_temperature) {
            return fail(format!("root_temperature must be a number > 0, got {}", self.root_temperature));
        }
        if let Some(share) = self.in_flight_share.filter(|&share| !(share > 0.0 && share <= 1.0)) {
            return fail(format!("in_flight_share must be more than 0 and at most 1, or None, got {share}"));
        }
        if self.c_puct_stdev > 1.0 {
            return fail(format!("c_puct_stdev must be at most 1, or c could be negative; got {}", self.c_puct_stdev));
        }
        if self.max_nodes == Some(0) {
            return fail("max_nodes must be at least 1 or None, got 0".into());
        }
        if let Some(Gumbel { max_considered, scale, value_scale, maxvisit_init }) = self.gumbel {
            if max_considered == 0 {
                return fail("gumbel must consider at least 1 action, got 0".into());
            }
            // What would have no effect, or would end sequential halving before it halves.
            for (name, given) in [
                ("evaluations", self.evaluations.is_some()),
                ("lcb", self.lcb.is_some()),
                ("forced_visits", self.forced_visits > 0.0),
                ("root_temperature", self.root_temperature != 1.0),
            ] {
                if given {
                    return fail(format!("{name} does not go with gumbel_actions: leave one of them out"));
                }
            }
            for (name, value) in
                [("gumbel_scale", scale), ("value_scale", value_scale), ("maxvisit_init", maxvisit_init)]
            {
                if !not_negative(value) {
                    return fail(format!("{name} must be a number >= 0, at most {MOST}, got {value:?}"));
                }
            }
        }
        if let Some(base) = self.c_puct_base.filter(|&base| !positive(base)) {
            return fail(format!("c_puct_base must be a number > 0 or None, got {base}"));
        }
        if matches!(self.fpu, Fpu::Reduction(x) if !x.is_finite()) {
            return fail("fpu must be \"zero\", \"parent\" or a finite reduction".into());
        }
        if self.evaluations.is_some_and(|evaluations| evaluations < 2) {
            return fail("evaluations must be at least 2 or None: the root is one of them".into());
        }
        if let Some(noise) = self.root_noise {
            if !(0.0..=1.0).contains(&noise.fraction) {
                return fail(format!("the fraction of root_noise must be in [0, 1], got {}", noise.fraction));
            }
            if let Some(alpha) = noise.alpha.filter(|&alpha| !positive(alpha)) {
                return fail(format!("the alpha of root_noise must be a number > 0, got {alpha}"));
            }
        }
        Ok(())
    }
}
