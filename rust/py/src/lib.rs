//! What the Python module `azpy._core` is made of: conversions, ways past the GIL, errors. No search arithmetic, no
//! rules.
//!
//! From the lowest layer to the highest; no layer uses a higher one:
//!
//! 1. [`errors`], [`settings`], [`listed`] (lists of numbers), [`threads`] (how background threads end).
//! 2. [`fault`] is where a game in Python leaves its errors, [`memory`] what it answered, [`pygame`] is a game in Python,
//!    and [`position`] a position of any game.
//! 3. [`evaluators`] are what may answer ([`own_net`]: azpy's own networks). [`batch`] runs searches of one game, and
//!    [`result`] is what a search found ([`picture`] hands trees to what draws them).
//! 4. [`registry`] has the games by name, [`state`] is `azpy.State` ([`variations`]: its games with variations).
//! 5. [`search`], [`selfplay`], [`replay`], [`record`] and [`engine`] are the other Python classes. Requests to an engine are
//!    in [`requests`], one network of it and its games in [`model`], its threads in [`engine_threads`].
//! 6. [`session`] has the messages of a server's clients answered (see the crate `azpy-serve`), and [`query`] reads them.
//! 7. [`evaluate`] asks evaluators, [`exploit`] measures their policies.
//!
//! Public is what `export_game!` of the crate `azpy-own` needs to make a module of all this and a game of one's own.
//! Rust has no stable ABI, so such a game cannot join a module that is compiled already.
#![forbid(unsafe_code)]

mod batch;
mod colors;
mod engine;
mod engine_stats;
mod engine_threads;
mod errors;
mod evaluate;
mod evaluators;
mod exploit;
mod fault;
mod games;
mod listed;
mod memory;
mod model;
mod own_net;
mod picture;
mod position;
mod pygame;
mod query;
mod record;
mod registry;
mod replay;
mod requests;
mod result;
mod search;
mod selfplay;
mod session;
mod settings;
mod state;
mod threads;
mod variations;
mod walk;
mod written;

use pyo3::prelude::*;
use pyo3::wrap_pyfunction;

#[doc(hidden)]
pub use azpy_games::registry::{Entry, Params};
pub use azpy_games::start::Start;
#[doc(hidden)]
pub use pyo3;

/// Fills the module: what every core has, and `own` games besides those that ship with azpy.
///
/// # Errors
/// An `ImportError` for a game whose name is taken, or that cannot be made.
pub fn init(module: &Bound<'_, PyModule>, own: &'static [Entry]) -> PyResult<()> {
    registry::add(own)?;
    let py = module.py();
    module.add("CoreError", py.get_type::<errors::CoreError>())?;
    module.add("EvaluatorError", py.get_type::<errors::EvaluatorError>())?;
    module.add("GameError", py.get_type::<errors::GameError>())?;
    module.add_class::<evaluators::RolloutEvaluator>()?;
    module.add_class::<evaluators::UniformEvaluator>()?;
    module.add_class::<own_net::Net>()?;
    module.add_class::<query::GameNotation>()?;
    module.add_class::<query::Line>()?;
    module.add_class::<query::Message>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<record::GameRecord>()?;
    module.add_class::<replay::ReplayBuffer>()?;
    module.add_class::<search::Search>()?;
    module.add_class::<result::SearchResult>()?;
    module.add_class::<search::VectorSearch>()?;
    module.add_class::<selfplay::SelfPlay>()?;
    module.add_class::<exploit::Exploitability>()?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::EngineGame>()?;
    module.add_class::<state::State>()?;
    module.add_class::<variations::Variations>()?;
    module.add_class::<walk::Facts>()?;
    module.add_class::<walk::Look>()?;
    module.add_class::<walk::Walk>()?;
    module.add_class::<written::GameReader>()?;
    module.add_class::<written::WrittenGame>()?;
    module.add_function(wrap_pyfunction!(errors::stays_here, module)?)?;
    errors::keep_here(module)?;
    module.add_function(wrap_pyfunction!(settings::why_unused, module)?)?;
    module.add_function(wrap_pyfunction!(settings::read_setting, module)?)?;
    module.add_function(wrap_pyfunction!(listed::listed, module)?)?;
    module.add_function(wrap_pyfunction!(memory::remember_at_most, module)?)?;
    module.add_function(wrap_pyfunction!(registry::list_games, module)?)?;
    module.add_function(wrap_pyfunction!(exploit::exploitability, module)?)?;
    module.add_function(wrap_pyfunction!(query::notation_of, module)?)?;
    module.add_function(wrap_pyfunction!(games::make_game, module)?)?;
    module.add_function(wrap_pyfunction!(games::parse_state, module)?)?;
    module.add_function(wrap_pyfunction!(games::random_playouts, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("OPTIONS", settings::option_table(py)?)?;
    module.add("BUILT_IN", registry::built_in())?;
    module.add("LONGEST_NAME", azpy_serve::LONGEST_NAME)?;
    module.add("MOST_THREADS", settings::MOST_THREADS)?;
    module.add("MOST_PIPELINES", settings::MOST_PIPELINES)?;
    module.add("CHANCE", fault::CHANCE)?;
    module.add("TERMINAL", fault::TERMINAL)?;
    module.add("SEARCHED", azpy_core::record::SEARCHED)?;
    module.add("MIXED_NETWORKS", azpy_core::record::MIXED_NETWORKS)?;
    module.add("FAST_SEARCH", azpy_core::record::FAST_SEARCH)?;
    module.add("PLAYED", azpy_core::record::PLAYED)?;
    module.add("PLAYED_SMOOTHING", azpy_core::record::PLAYED_SMOOTHING)?;
    // Threads that would call into an interpreter that is no longer there must be gone before it goes.
    let close_all = wrap_pyfunction!(threads::close_all, module)?;
    py.import("atexit")?.call_method1("register", (close_all,))?;
    Ok(())
}
