//! What a search did, and why it ended.

/// What was done since the search began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Simulations finished.
    pub simulations: u64,
    /// Leaves answered by the evaluator, the root's own evaluation included.
    pub evaluations: u64,
    /// Leaves answered by the cache.
    pub cache_hits: u64,
    /// Simulations that ended in a finished game, or in a position whose value is proven.
    pub terminals: u64,
    /// Descents that met a leaf in flight and were taken back.
    pub collisions: u64,
    /// Rounds in which a leaf was gathered.
    pub rounds: u64,
    /// Evaluated leaves whose children found no room in the tree.
    pub unexpanded: u64,
}

impl SearchStats {
    /// Adds another search's counts.
    pub fn add(&mut self, other: &Self) {
        self.simulations += other.simulations;
        self.evaluations += other.evaluations;
        self.cache_hits += other.cache_hits;
        self.terminals += other.terminals;
        self.collisions += other.collisions;
        self.rounds += other.rounds;
        self.unexpanded += other.unexpanded;
    }

    /// What came after `earlier`, of the same searches.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            simulations: self.simulations - earlier.simulations,
            evaluations: self.evaluations - earlier.evaluations,
            cache_hits: self.cache_hits - earlier.cache_hits,
            terminals: self.terminals - earlier.terminals,
            collisions: self.collisions - earlier.collisions,
            rounds: self.rounds - earlier.rounds,
            unexpanded: self.unexpanded - earlier.unexpanded,
        }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It did all the simulations that it was asked for.
    #[default]
    Simulations,
    /// The leaves that it might have evaluated are used up.
    Evaluations,
    /// No action can overtake the most visited one in the simulations left.
    Decided,
    /// The value of the root is proven.
    Proven,
    /// Its time was over.
    Interrupted,
    /// It was told to stop.
    Stopped,
    /// All trees together had no more memory.
    Memory,
    /// There is nothing to search: the game is over.
    GameOver,
    /// The root has as many visits as a node can count (see [`crate::search::tree::MOST_VISITS`]).
    Visits,
}

impl Stop {
    /// The name that users see.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulations => "simulations",
            Self::Evaluations => "evaluations",
            Self::Decided => "decided",
            Self::Proven => "proven",
            Self::Interrupted => "seconds",
            Self::Stopped => "stopped",
            Self::Memory => "memory",
            Self::GameOver => "game over",
            Self::Visits => "visits",
        }
    }
}
