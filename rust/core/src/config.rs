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
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchConfig {
    /// Leaves from this tree in one round, at most.
    pub eval_batch: usize,
    /// Exploration constant.
    pub c_puct: f64,
    /// With a base b, c grows as `c_puct + ln((1 + N + b) / b)` (AlphaZero, Silver et al. 2018; there 19,652).
    pub c_puct_base: Option<f64>,
    /// Value of an untried action.
    pub fpu: Fpu,
    /// Lost simulations that each descent in flight pretends to be; 0 counts it in the exploration term alone.
    pub virtual_loss: f64,
    /// Descents in one round that may meet a leaf already in flight before gathering stops.
    pub max_collisions: usize,
    /// Noise at the root, drawn once a move.
    pub root_noise: Option<RootNoise>,
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
            fpu: Fpu::Zero,
            virtual_loss: 1.0,
            max_collisions: 8,
            root_noise: None,
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
        let fail = |what: String| Err(what);
        if self.eval_batch == 0 || self.eval_batch > 1 << 16 {
            return fail(format!("eval_batch must be between 1 and 65536, got {}", self.eval_batch));
        }
        if self.max_collisions > 1 << 16 {
            return fail(format!("max_collisions must be at most 65536, got {}", self.max_collisions));
        }
        if !(self.c_puct.is_finite() && self.c_puct >= 0.0) {
            return fail(format!("c_puct must be a number >= 0, got {}", self.c_puct));
        }
        if self.c_puct_base.is_some_and(|base| !positive(base)) {
            return fail(format!("c_puct_base must be a number > 0 or None, got {:?}", self.c_puct_base));
        }
        if matches!(self.fpu, Fpu::Reduction(x) if !x.is_finite()) {
            return fail("fpu must be \"zero\", \"parent\" or a finite reduction".into());
        }
        if !(self.virtual_loss.is_finite() && self.virtual_loss >= 0.0) {
            return fail(format!("virtual_loss must be a number >= 0, got {}", self.virtual_loss));
        }
        if self.evaluations.is_some_and(|evaluations| evaluations < 2) {
            return fail("evaluations must be at least 2 or None: the root is one of them".into());
        }
        if let Some(noise) = self.root_noise {
            if !(0.0..=1.0).contains(&noise.fraction) {
                return fail(format!("the fraction of root_noise must be in [0, 1], got {}", noise.fraction));
            }
            if noise.alpha.is_some_and(|alpha| !positive(alpha)) {
                return fail(format!("the alpha of root_noise must be a number > 0, got {:?}", noise.alpha));
            }
        }
        Ok(())
    }
}
