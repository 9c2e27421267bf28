//! The Python module `azpy._core`: conversions, the door past the GIL, errors. No search arithmetic, no rules.
//!
//! [`hosted`] is what a game needs to be reached from Python, [`registry`] the games by name, [`pygame`] games written
//! in Python, [`evaluators`] what may answer; [`state`], [`search`], [`selfplay`], [`replay`] and [`record`] are the
//! Python classes; [`picture`] hands trees to what draws them;
//! [`wall_game`] is the notation of that game's turns. The core is compiled once a game; Python sees it through four small
//! object-safe traits.
#![forbid(unsafe_code)]

mod batch;
mod errors;
mod evaluators;
mod hosted;
mod picture;
mod pygame;
mod record;
mod registry;
mod replay;
mod search;
mod selfplay;
mod settings;
mod state;
mod wall_game;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::errors::{CoreError, EvaluatorError, GameError};
    #[pymodule_export]
    use crate::evaluators::{RolloutEvaluator, UniformEvaluator};
    #[pymodule_export]
    use crate::record::GameRecord;
    #[pymodule_export]
    use crate::registry::{list_games, make_game};
    #[pymodule_export]
    use crate::replay::ReplayBuffer;
    #[pymodule_export]
    use crate::search::{Search, SearchResult, VectorSearch};
    #[pymodule_export]
    use crate::selfplay::SelfPlay;
    #[pymodule_export]
    use crate::state::{State, parse_state, random_playouts};
    #[pymodule_export]
    use crate::wall_game::wall_turn_name;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("CHANCE", crate::state::CHANCE)?;
        module.add("TERMINAL", crate::state::TERMINAL)?;
        module.add("SEARCHED", azpy_core::record::SEARCHED)?;
        module.add("MIXED_NETWORKS", azpy_core::record::MIXED_NETWORKS)?;
        module.add("FAST_SEARCH", azpy_core::record::FAST_SEARCH)?;
        module.add("OPPONENT", azpy_core::record::OPPONENT)?;
        // Threads that would call into an interpreter that is no longer there must be gone before it goes.
        let close_all = pyo3::wrap_pyfunction!(crate::selfplay::close_all, module)?;
        module.py().import("atexit")?.call_method1("register", (close_all,))?;
        Ok(())
    }
}
