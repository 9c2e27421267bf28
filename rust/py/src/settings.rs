//! Settings of a search as Python gives them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azpy_core::cache::Cache;
use azpy_core::config::{Fpu, Gumbel, RootNoise, SearchConfig};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{Borrowed, PyTypeInfo};

/// More threads would choke a machine.
pub(crate) const MOST_THREADS: usize = 1024;
/// Pipelines are threads too.
pub(crate) const MOST_PIPELINES: usize = 256;

pub(crate) const U32: i128 = u32::MAX as i128;
pub(crate) const U64: i128 = u64::MAX as i128;
/// As far as sizes of things in memory go.
pub(crate) const SIZE: i128 = isize::MAX as i128;

/// A whole number as Python gives it, of any size: `within` says which of them a parameter may have. One beyond 128 bits is
/// the nearest that is not.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) i128);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Ok(number) => Ok(Self(number.into())),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let nearest = if value.lt(0)? { i128::MIN } else { i128::MAX };
                Ok(Self(value.extract().unwrap_or(nearest)))
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            i128::MIN => write!(out, "-2**127 or less"),
            i128::MAX => write!(out, "2**127 or more"),
            number => write!(out, "{number}"),
        }
    }
}

/// [`Whole`] for a parameter whose default is a number.
pub(crate) fn whole(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    value.extract().map(|Whole(number)| number)
}

/// A whole number from `least` to `most`, all of which are of type `T`.
pub(crate) fn within<T: TryFrom<i128>>(name: &str, given: i128, least: i128, most: i128) -> PyResult<T> {
    let fits = T::try_from(given).ok().filter(|_| (least..=most).contains(&given));
    fits.ok_or_else(|| {
        let bound = if given < least { format!("at least {least}") } else { format!("at most {most}") };
        PyValueError::new_err(format!("{name} must be {bound}, got {}", Whole(given)))
    })
}

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

    /// A whole number from `least` to `most`, or `default`.
    fn whole<T: TryFrom<i128>>(&mut self, name: &'static str, default: T, least: i128, most: i128) -> PyResult<T> {
        let given = self.take(name, "a whole number", None)?;
        given.map_or(Ok(default), |Whole(number)| within(name, number, least, most))
    }

    /// The same, or None.
    fn whole_or_none<T: TryFrom<i128>>(&mut self, name: &'static str, least: i128, most: i128) -> PyResult<Option<T>> {
        let given = self.take(name, "a whole number or None", None)?;
        given.map(|Whole(number)| within(name, number, least, most)).transpose()
    }

    /// Refuses what nobody took: neither the options of a search nor the other parameters of `class`.
    fn finish(mut self, class: &Bound<'_, PyType>) -> PyResult<()> {
        let Some((name, _)) = self.given.iter().next() else {
            return Ok(());
        };
        let name: String = name.extract()?;
        let py = self.given.py();
        let own = py.import("inspect")?.call_method1("signature", (class,))?.getattr("parameters")?;
        let mut known = Vec::new();
        for parameter in own.call_method0("values")?.try_iter()? {
            let parameter = parameter?;
            if parameter.getattr("kind")?.eq(parameter.getattr("KEYWORD_ONLY")?)? {
                known.push(parameter.getattr("name")?.extract::<String>()?);
            }
        }
        known.extend(self.known.drain(..).map(str::to_owned));
        let near = py.import("difflib")?.call_method1("get_close_matches", (&name, &known, 1))?;
        Err(PyTypeError::new_err(match near.extract::<Vec<String>>()?.first() {
            Some(near) => format!("unexpected keyword argument {name:?}; did you mean {near:?}?"),
            None => format!("unexpected keyword argument {name:?}; there are: {}", known.join(", ")),
        }))
    }
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "something else".into(), |text| text.to_string())
}

/// Reads the settings of a search from the keyword arguments that class `C` has no parameters for, and checks them. `noise`
/// is the fraction of root noise where nothing is said of it.
pub(crate) fn search_config<C: PyTypeInfo>(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
    noise: f64,
) -> PyResult<SearchConfig> {
    let given = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
    let mut options = Options { given, known: Vec::new() };
    let default = SearchConfig::default();
    let rule = Gumbel::default();
    let number = "a number";
    let or_none = "a number or None";

    let eval_batch = options.whole("eval_batch", default.eval_batch, 1, 1 << 16)?;
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
    let max_considered = options.whole("gumbel_actions", 0, 0, SIZE)?;
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
        max_collisions: options.whole_or_none("max_collisions", 0, 1 << 16)?.unwrap_or(eval_batch),
        in_flight_share: options.take("in_flight_share", or_none, None)?,
        root_noise,
        root_temperature: options.take("root_temperature", number, default.root_temperature)?,
        forced_visits: options.take("forced_visits", number, default.forced_visits)?,
        gumbel: (max_considered > 0).then_some(gumbel),
        lcb: options.take("lcb", or_none, None)?,
        solver: options.take("solver", "True or False", false)?,
        early_stop: options.take("early_stop", "True or False", false)?,
        max_nodes: memory.map(|mb| nodes_in(mb, c_puct_stdev > 0.0)).transpose()?,
        evaluations: options.whole_or_none("evaluations", 2, U32)?,
    };
    options.finish(&py.get_type::<C>())?;
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
pub(crate) fn simulations(given: i128) -> PyResult<u32> {
    within("simulations", given, 0, U32)
}

/// What a search is given where nobody says how many simulations, nor how long.
const SIMULATIONS: u32 = 800;

/// How many simulations a search gets: `given` for this one, else its object's `own`; with a time limit and neither of
/// them, there is no other limit.
pub(crate) fn simulations_within(
    given: Option<Whole>,
    limit: Option<Duration>,
    config: &SearchConfig,
    own: Option<u32>,
) -> PyResult<u32> {
    match given.map(|Whole(given)| simulations(given)).transpose()?.or(own) {
        Some(simulations) => Ok(simulations),
        None if limit.is_some() && config.gumbel.is_some() => Err(PyValueError::new_err(
            "sequential halving needs to know how many simulations there will be: give simulations with seconds",
        )),
        None if limit.is_some() => Ok(u32::MAX),
        None => Ok(SIMULATIONS),
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

/// How many answers a cache may hold.
pub(crate) fn cache_positions(given: i128) -> PyResult<usize> {
    within("cache_positions", given, 0, 1 << 28)
}

/// A cache of about so many positions; none for 0.
pub(crate) fn cache(positions: usize) -> Option<Arc<Cache>> {
    (positions > 0).then(|| Arc::new(Cache::new(positions)))
}

/// As given, or one for each core.
pub(crate) fn threads(given: Option<Whole>) -> PyResult<usize> {
    match given {
        Some(Whole(given)) => within("threads", given, 1, MOST_THREADS as i128),
        None => Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS))),
    }
}
