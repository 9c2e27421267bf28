//! Settings of a search as Python gives them.

use std::sync::Arc;
use std::time::Duration;

use azpy_core::cache::Cache;
use azpy_core::config::{Fpu, Gumbel, RootNoise, SearchConfig};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// "zero", "parent", or a reduction.
#[derive(FromPyObject)]
enum FpuSetting {
    Name(String),
    Reduction(f64),
}

/// A fraction, or (alpha, fraction).
#[derive(FromPyObject)]
enum NoiseSetting {
    Fraction(f64),
    Both(Option<f64>, f64),
}

/// Keyword arguments that are taken out one by one; none may be left over.
struct Options<'py> {
    given: Bound<'py, PyDict>,
    known: Vec<&'static str>,
}

impl<'py> Options<'py> {
    /// The value given for `name`, or the default.
    fn take<T: FromPyObjectOwned<'py>>(&mut self, name: &'static str, what: &str, default: T) -> PyResult<T> {
        self.known.push(name);
        let Some(value) = self.given.get_item(name)? else {
            return Ok(default);
        };
        self.given.del_item(name)?;
        value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be {what}, got {}", shown(&value))))
    }

    /// Refuses what nobody took.
    fn finish(self) -> PyResult<()> {
        let Some((name, _)) = self.given.iter().next() else {
            return Ok(());
        };
        let name: String = name.extract()?;
        let difflib = self.given.py().import("difflib")?;
        let near = difflib.call_method1("get_close_matches", (&name, self.known.clone(), 1))?;
        Err(PyTypeError::new_err(match near.extract::<Vec<String>>()?.first() {
            Some(near) => format!("unexpected keyword argument {name:?}; did you mean {near:?}?"),
            None => format!("unexpected keyword argument {name:?}; there are: {}", self.known.join(", ")),
        }))
    }
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "something else".into(), |text| text.to_string())
}

/// Reads the settings of a search from keyword arguments, and checks them. `noise` is the fraction of root noise where
/// nothing is said of it.
pub(crate) fn search_config(py: Python<'_>, given: Option<&Bound<'_, PyDict>>, noise: f64) -> PyResult<SearchConfig> {
    let given = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
    let mut options = Options { given, known: Vec::new() };
    let default = SearchConfig::default();
    let rule = Gumbel::default();
    let number = "a number";
    let or_none = "a number or None";

    let eval_batch = options.take("eval_batch", "a whole number", default.eval_batch as i64)?;
    let Some(eval_batch) = usize::try_from(eval_batch).ok().filter(|&leaves| leaves > 0) else {
        return Err(PyValueError::new_err(format!("eval_batch must be at least 1, got {eval_batch}")));
    };
    let fpu = match options.take("fpu", "\"zero\", \"parent\" or a number", FpuSetting::Name("zero".into()))? {
        FpuSetting::Reduction(reduction) => Fpu::Reduction(reduction),
        FpuSetting::Name(name) if name == "zero" => Fpu::Zero,
        FpuSetting::Name(name) if name == "parent" => Fpu::Parent,
        FpuSetting::Name(name) => {
            return Err(PyValueError::new_err(format!("fpu must be \"zero\", \"parent\" or a number, got {name:?}")));
        }
    };
    let shaped = options.take("noise_shaped", "True or False", false)?;
    let noise = (noise > 0.0).then_some(NoiseSetting::Fraction(noise));
    let noise = options.take("root_noise", "None, a fraction, or (alpha, fraction)", noise)?;
    let root_noise = noise.map(|noise| match noise {
        NoiseSetting::Fraction(fraction) => RootNoise { alpha: None, fraction, shaped },
        NoiseSetting::Both(alpha, fraction) => RootNoise { alpha, fraction, shaped },
    });
    let max_considered = options.take("gumbel_actions", "a whole number", 0_usize)?;
    let gumbel = Gumbel {
        max_considered,
        scale: options.take("gumbel_scale", number, rule.scale)?,
        value_scale: options.take("value_scale", number, rule.value_scale)?,
        maxvisit_init: options.take("maxvisit_init", number, rule.maxvisit_init)?,
    };
    let memory = options.take("max_memory_mb", or_none, None::<f64>)?;
    let c_puct_stdev = options.take("c_puct_stdev", number, default.c_puct_stdev)?;
    let config = SearchConfig {
        eval_batch,
        c_puct: options.take("c_puct", number, default.c_puct)?,
        c_puct_base: options.take("c_puct_base", or_none, None)?,
        c_puct_stdev,
        fpu,
        virtual_loss: options.take("virtual_loss", number, default.virtual_loss)?,
        max_collisions: options.take("max_collisions", "a whole number or None", None)?.unwrap_or(eval_batch),
        in_flight_share: options.take("in_flight_share", or_none, None)?,
        root_noise,
        root_temperature: options.take("root_temperature", number, default.root_temperature)?,
        forced_visits: options.take("forced_visits", number, default.forced_visits)?,
        gumbel: (max_considered > 0).then_some(gumbel),
        lcb: options.take("lcb", or_none, None)?,
        solver: options.take("solver", "True or False", false)?,
        early_stop: options.take("early_stop", "True or False", false)?,
        max_nodes: memory.map(|mb| nodes_in(mb, c_puct_stdev > 0.0)).transpose()?,
        evaluations: options.take("evaluations", "a whole number or None", None)?,
    };
    options.finish()?;
    config.check().map_err(PyValueError::new_err)?;
    Ok(config)
}

/// Nodes that a tree may have in so many MiB. A tree whose root moves along is copied, so there may be two of them.
fn nodes_in(mb: f64, squares: bool) -> PyResult<usize> {
    if mb.is_finite() && mb > 0.0 {
        let bytes = size_of::<azpy_core::tree::Node>() + if squares { size_of::<f64>() } else { 0 };
        return Ok(((mb * f64::from(1 << 20)) as usize / (2 * bytes)).max(1));
    }
    Err(PyValueError::new_err(format!("max_memory_mb must be a number > 0 or None, got {mb}")))
}

/// A number of simulations.
pub(crate) fn simulations(given: i64) -> PyResult<u32> {
    let fits = u32::try_from(given);
    fits.map_err(|_| PyValueError::new_err(format!("simulations must be between 0 and {}, got {given}", u32::MAX)))
}

/// How many simulations a search gets where `given` or `limit` may say so: with a time limit alone there is no other.
pub(crate) fn simulations_within(
    given: Option<i64>,
    limit: Option<Duration>,
    config: &SearchConfig,
    default: u32,
) -> PyResult<u32> {
    match given {
        Some(given) => simulations(given),
        None if limit.is_some() && config.gumbel.is_some() => Err(PyValueError::new_err(
            "sequential halving needs to know how many simulations there will be: give simulations with seconds",
        )),
        None if limit.is_some() => Ok(u32::MAX),
        None => Ok(default),
    }
}

/// A time limit.
pub(crate) fn limit(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let limit = |given: f64| Duration::try_from_secs_f64(given).ok();
    seconds
        .map(|given| {
            limit(given).ok_or_else(|| PyValueError::new_err(format!("seconds must be at least 0, got {given}")))
        })
        .transpose()
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
