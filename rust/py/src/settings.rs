//! Settings of a search as Python gives them.

use std::sync::Arc;

use azpy_core::cache::Cache;
use azpy_core::config::{Fpu, RootNoise, SearchConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// "zero", "parent", or a reduction.
#[derive(FromPyObject)]
pub(crate) enum FpuSetting {
    Name(String),
    Reduction(f64),
}

/// A fraction, or (alpha, fraction).
#[derive(FromPyObject)]
pub(crate) enum NoiseSetting {
    Fraction(f64),
    Both(Option<f64>, f64),
}

/// Puts a search's settings together and checks them.
pub(crate) fn search_config(
    eval_batch: i64,
    c_puct: f64,
    c_puct_base: Option<f64>,
    fpu: &FpuSetting,
    virtual_loss: f64,
    max_collisions: Option<usize>,
    root_noise: Option<&NoiseSetting>,
) -> PyResult<SearchConfig> {
    let fpu = match fpu {
        FpuSetting::Reduction(reduction) => Fpu::Reduction(*reduction),
        FpuSetting::Name(name) if name == "zero" => Fpu::Zero,
        FpuSetting::Name(name) if name == "parent" => Fpu::Parent,
        FpuSetting::Name(name) => {
            return Err(PyValueError::new_err(format!("fpu must be \"zero\", \"parent\" or a number, got {name:?}")));
        }
    };
    let root_noise = root_noise.map(|noise| match *noise {
        NoiseSetting::Fraction(fraction) => RootNoise { alpha: None, fraction },
        NoiseSetting::Both(alpha, fraction) => RootNoise { alpha, fraction },
    });
    let Some(eval_batch) = usize::try_from(eval_batch).ok().filter(|&leaves| leaves > 0) else {
        return Err(PyValueError::new_err(format!("eval_batch must be at least 1, got {eval_batch}")));
    };
    let max_collisions = max_collisions.unwrap_or(eval_batch);
    let config = SearchConfig {
        eval_batch,
        c_puct,
        c_puct_base,
        fpu,
        virtual_loss,
        max_collisions,
        root_noise,
        evaluations: None,
    };
    config.check().map_err(PyValueError::new_err)?;
    Ok(config)
}

/// A number of simulations.
pub(crate) fn simulations(given: i64) -> PyResult<u32> {
    let fits = u32::try_from(given);
    fits.map_err(|_| PyValueError::new_err(format!("simulations must be between 0 and {}, got {given}", u32::MAX)))
}

/// A cache of about so many positions; none for 0.
pub(crate) fn cache(positions: usize) -> PyResult<Option<Arc<Cache>>> {
    if positions > 1 << 28 {
        return Err(PyValueError::new_err(format!("cache_positions must be at most {}, got {positions}", 1 << 28)));
    }
    Ok((positions > 0).then(|| Arc::new(Cache::new(positions))))
}

/// As given, or one for each core.
pub(crate) fn threads(given: Option<usize>) -> PyResult<usize> {
    match given {
        Some(0) => Err(PyValueError::new_err("threads must be at least 1, got 0")),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// A whole number that has a smallest value.
pub(crate) fn at_least(name: &str, given: i64, smallest: i64) -> PyResult<usize> {
    let fits = usize::try_from(given).ok().filter(|_| given >= smallest);
    fits.ok_or_else(|| PyValueError::new_err(format!("{name} must be at least {smallest}, got {given}")))
}
