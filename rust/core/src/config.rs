//! How to search: the options of one search, and which of them can be searched with.

use crate::error::Error;
use crate::game::{Game, GameFault, Payoff, Player, Value, can_prove, ranked};
use crate::options::{Kind, MOST, OptionRow, OptionType, OptionValue, Rule, check_all, options, why_unused};
use Fpu::Zero;
use OptionValue::Whole;

/// The value of an untried action, for the player who chooses.
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

impl OptionType for Fpu {
    const KIND: Kind = Kind::Number;
    fn from_value(value: OptionValue<'_>) -> Option<Self> {
        match value {
            OptionValue::Word("zero") => Some(Self::Zero),
            OptionValue::Word("parent") => Some(Self::Parent),
            OptionValue::Number(reduction) => Some(Self::Reduction(reduction)),
            _ => None,
        }
    }
    fn value(&self) -> OptionValue<'static> {
        match self {
            Self::Zero => OptionValue::Word("zero"),
            Self::Parent => OptionValue::Word("parent"),
            Self::Reduction(reduction) => OptionValue::Number(*reduction),
        }
    }
}

/// Dirichlet noise on the root's priors: `(1 - fraction) P + fraction Dirichlet(alpha)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootNoise {
    /// `None`: 10 / number of legal actions, which gives AlphaZero's values in chess, shogi and Go.
    pub alpha: Option<f64>,
    /// Weight of the noise, in `[0, 1]`.
    pub fraction: f64,
}

impl OptionType for RootNoise {
    const KIND: Kind = Kind::Noise;
    fn from_value(value: OptionValue<'_>) -> Option<Self> {
        match value {
            OptionValue::Number(fraction) => Some(Self { alpha: None, fraction }),
            OptionValue::Noise(alpha, fraction) => Some(Self { alpha, fraction }),
            _ => None,
        }
    }
    fn value(&self) -> OptionValue<'static> {
        match self.alpha {
            None => OptionValue::Number(self.fraction),
            alpha => OptionValue::Noise(alpha, self.fraction),
        }
    }
}

options! {
    help = search_options;
    /// How to search.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SearchConfig {
        /// most leaves of one tree per network call; 1 is textbook PUCT
        eval_batch: usize = 8, unit = "leaves", low = Whole(1), high = Whole(65_536);
        /// exploration constant: weight of the prior against the value
        c_puct: f64 = 1.5, source = "AlphaZero, Silver et al. 2018", high = MOST, rule = Rule::Puct;
        /// visit count at which c_puct starts to grow (AlphaZero: 19,652)
        c_puct_base: Option<f64> = None, source = "AlphaZero, 19,652 there", above = true, high = MOST,
            rule = Rule::Puct;
        /// value of unvisited actions: zero, parent, or a reduction below the parent
        fpu: Fpu = Zero, source = "Leela Chess Zero", words = &["zero", "parent"], high = Whole(100),
            rule = Rule::Puct;
        /// losses that each leaf in flight counts as
        virtual_loss: f64 = 1.0, high = MOST, rule = Rule::Puct;
        /// most leaves per round, as a share of the root's visits
        in_flight_share: Option<f64> = None, unit = "share", above = true, high = Whole(1);
        /// weight of Dirichlet noise in the root's priors
        root_noise: Option<RootNoise> = None, unit = "share", source = "AlphaGo Zero, Silver et al. 2017", high = Whole(1),
            rule = Rule::Puct, in_self_play = Some(OptionValue::Number(0.25));
        /// temperature of the root's priors, applied before the noise
        root_temperature: f64 = 1.0, source = "KataGo, 1.1 to 1.25 there", above = true, high = MOST,
            rule = Rule::Puct;
        /// root actions that Gumbel's sequential halving starts with; 0 uses PUCT
        gumbel_actions: usize = 0, unit = "actions", source = "Danihelka et al. 2022, 16 there";
        /// scale of Gumbel's random draws; 0 draws none, as in matches
        gumbel_scale: f64 = 1.0, source = "mctx", high = MOST, rule = Rule::Gumbel;
        /// c_scale of Gumbel's rule: weight of values against logits
        value_scale: f64 = 0.1, source = "mctx", high = MOST, rule = Rule::Gumbel;
        /// c_visit of Gumbel's rule: added to the largest visit count
        maxvisit_init: f64 = 50.0, source = "mctx", high = MOST, rule = Rule::Gumbel;
        /// rescale a position's values to [0, 1] before Gumbel's rule
        gumbel_rescale: bool = true, source = "mctx; off in MiniZero, with value_scale 1", rule = Rule::Gumbel;
        /// play the best lower confidence bound, this many standard errors down
        lcb: Option<f64> = None, unit = "standard errors", source = "Leela Zero", above = true, high = MOST,
            rule = Rule::Puct;
        /// propagate proven wins, draws and losses up the tree
        solver: bool = false, source = "Winands, Björnsson and Saito 2008";
        /// plies to search exhaustively from new positions for forced results
        lookahead: usize = 0, unit = "plies", source = "Baier and Winands 2015", high = Whole(6), needs = Some("solver");
        /// single-player games: count scores above this value as wins
        score_to_beat: Option<f64> = None, unit = "score", source = "R2, Laterre et al. 2018", low = Whole(-1), high = Whole(1);
        /// stop once no other action can overtake the most visited
        early_stop: bool = false, rule = Rule::Puct, without = &["lcb", "solver"];
        /// most evaluations per search, including the root and cache hits
        evaluations: Option<u32> = None, unit = "evaluations", low = Whole(2), rule = Rule::Puct;
        /// memory limit per tree; a full tree is searched without growing
        max_memory_mb: Option<f64> = None, unit = "MiB", above = true, high = MOST;
    }
}

impl SearchConfig {
    /// These options, if they plan with Gumbel (Danihelka et al. 2022) in place of PUCT, noise and first-play urgency.
    #[must_use]
    pub fn gumbel(&self) -> Option<&Self> {
        (self.gumbel_actions > 0).then_some(self)
    }

    /// Refuses a value out of range, and options that the search would not look at.
    ///
    /// # Errors
    /// [`Error::Option`] and [`Error::UnusedOption`].
    pub fn check(&self) -> Result<(), Error> {
        check_all(Self::OPTIONS, |name| self.get(name))?;
        self.check_rule(Self::OPTIONS, |name| (self.get(name), Self::default().get(name)))
    }

    /// Refuses options that a search of `game` cannot have.
    ///
    /// # Errors
    /// What names the option.
    pub fn check_for<G: Game>(&self, game: &G) -> Result<(), GameFault> {
        if self.solver && !can_prove(game) {
            return Err(GameFault::Unprovable(game.num_players()));
        }
        if self.solver && game.hides() {
            return Err(GameFault::Hidden);
        }
        if self.score_to_beat.is_some() && game.num_players() != 1 {
            return Err(GameFault::ManyScores(game.num_players()));
        }
        Ok(())
    }

    /// What a finished game counts in a search: what it pays, or [`ranked`] where there is a score to beat.
    #[inline]
    pub(crate) fn outcome<G: Game>(&self, end: &G) -> G::Payoff {
        match self.score_to_beat {
            Some(to_beat) if !G::Payoff::ZERO_SUM => {
                G::Payoff::of_proven(Value(ranked(end.outcome().of(Player::Zero), to_beat as f32)))
            }
            _ => end.outcome(),
        }
    }

    /// Whether a search with these options looks at an option.
    #[must_use]
    pub fn looks_at(&self, row: &OptionRow<'_>) -> bool {
        row.rule != if self.gumbel_actions > 0 { Rule::Puct } else { Rule::Gumbel }
    }

    /// Refuses options that the search would not look at, of any table: `value` gives an option's value and its default.
    pub(crate) fn check_rule(
        &self,
        table: &[OptionRow<'_>],
        value: impl Fn(&str) -> (Option<OptionValue<'static>>, Option<OptionValue<'static>>),
    ) -> Result<(), Error> {
        let (plain, actions) = (Self::default(), self.gumbel().map(|gumbel| gumbel.gumbel_actions.to_string()));
        for row in table {
            let (given, default) = value(row.name);
            let other = row.without.iter().copied().find(|other| self.get(other) != plain.get(other));
            let off = row.needs.filter(|needs| self.get(needs) != Some(OptionValue::Switch(true)));
            let why = why_unused(row.name, row.rule, actions.as_deref(), other, off);
            if let Some(why) = why.filter(|_| given != default) {
                return Err(Error::UnusedOption { name: row.name.to_owned(), why });
            }
        }
        Ok(())
    }
}
