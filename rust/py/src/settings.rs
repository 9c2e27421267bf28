//! Options of a search and of self-play as Python gives them, and the table of all options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azpy_core::Error;
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::options::{self, Kind, OptionRow, OptionValue, Rule};
use azpy_core::selfplay::SelfPlayConfig;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use pyo3::{Borrowed, PyTypeInfo};

use crate::errors::RustError;

/// The most threads, so that a typing error does not exhaust the machine.
pub(crate) const MOST_THREADS: usize = 1024;
/// Letters of a wrong value in an error.
const MOST_SHOWN: usize = 100;
/// Pipelines are threads too.
pub(crate) const MOST_PIPELINES: usize = 256;

pub(crate) const U32: i128 = u32::MAX as i128;
pub(crate) const U64: i128 = u64::MAX as i128;
/// The largest size of something in memory.
pub(crate) const SIZE: i128 = isize::MAX as i128;

/// A whole number as Python gives it, of any size: `within` says which of them a parameter may have. One beyond 128 bits is
/// the nearest that is not.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) i128);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Python counts True as 1.
        if value.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("expected a whole number, got a bool"));
        }
        match value.extract::<i64>() {
            Ok(number) => Ok(Self(number.into())),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let nearest = if value.lt(0)? { i128::MIN } else { i128::MAX };
                Ok(Self(value.extract().unwrap_or(nearest)))
            }
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
                let (kind, repr) = (value.get_type().name()?, value.repr()?.to_string());
                let shown: String = repr.chars().take(100).collect();
                Err(PyTypeError::new_err(format!("expected a whole number, got a {kind}: {shown}")))
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        OptionValue::Whole(self.0).fmt(out)
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

/// Options that came as keyword arguments, for class `C`, as those of a search and of self-play.
///
/// # Errors
/// TypeError for an unknown option or a value of another type; ValueError for one out of range, or for two that do not go
/// together.
pub(crate) fn search_config<C: PyTypeInfo>(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<SearchConfig> {
    let given = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
    let mut config = SearchConfig::default();
    take(&given, SearchConfig::OPTIONS, |name, value| config.set(name, value))?;
    refuse_unknown::<C>(&given, &[SearchConfig::OPTIONS])?;
    config.check().map_err(RustError::raised)?;
    Ok(config)
}

/// The same for self-play, whose search has root noise by default.
pub(crate) fn selfplay_config<C: PyTypeInfo>(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<SelfPlayConfig> {
    let given = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
    let mut config = SelfPlayConfig::default();
    for row in SearchConfig::OPTIONS {
        row.in_self_play.map_or(Ok(()), |value| config.search.set(row.name, value)).map_err(RustError::raised)?;
    }
    take(&given, SearchConfig::OPTIONS, |name, value| config.search.set(name, value))?;
    take(&given, SelfPlayConfig::OPTIONS, |name, value| config.set(name, value))?;
    refuse_unknown::<C>(&given, &[SearchConfig::OPTIONS, SelfPlayConfig::OPTIONS])?;
    // A default of self-play may be unused by its search.
    let plain = SearchConfig::default();
    for row in SearchConfig::OPTIONS.iter().filter(|row| row.in_self_play.is_some()) {
        if !config.search.looks_at(row) && config.search.get(row.name) == row.in_self_play {
            let value = plain.get(row.name).unwrap_or(OptionValue::None);
            config.search.set(row.name, value).map_err(RustError::raised)?;
        }
    }
    config.check().map_err(RustError::raised)?;
    Ok(config)
}

/// Takes the options of a table out of keyword arguments.
fn take(
    given: &Bound<'_, PyDict>,
    rows: &[OptionRow<'_>],
    mut set: impl FnMut(&str, OptionValue<'_>) -> Result<(), Error>,
) -> PyResult<()> {
    for row in rows {
        if let Some(value) = given.get_item(row.name)? {
            given.del_item(row.name)?;
            let (text, keyword) = (text_of(&value), OptionRow { none: None, ..*row });
            let found = given_value(&value, &text);
            let (shown, is_wrong_word) =
                (shown(&value, found), matches!(found, OptionValue::Word(_)) && !row.words.is_empty());
            let found = keyword.typed(found, &shown).map_err(|why| match is_wrong_word {
                true => why.raised(),
                false => PyTypeError::new_err(why.to_string()),
            })?;
            row.check(found, shown).and_then(|()| set(row.name, found)).map_err(RustError::raised)?;
        }
    }
    Ok(())
}

/// A text itself, as far as it is Unicode; of other values how Python writes them.
fn text_of(value: &Bound<'_, PyAny>) -> String {
    let shown = || value.repr().map_or_else(|_| "something else".into(), |text| text.to_string());
    value.cast::<PyString>().map_or_else(|_| shown(), |text| text.to_string_lossy().into_owned())
}

/// A value as Python writes it, for errors; `found` is what it is to the core.
fn shown(value: &Bound<'_, PyAny>, found: OptionValue<'_>) -> String {
    let written = value.repr().map(|text| text.to_string_lossy().into_owned());
    shortened(&written.unwrap_or_else(|_| found.to_string()))
}

fn shortened(text: &str) -> String {
    let end = text.char_indices().nth(MOST_SHOWN);
    end.map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

/// A value of Python as an option's; `text` is [`text_of`] it.
fn given_value<'a>(value: &Bound<'_, PyAny>, text: &'a str) -> OptionValue<'a> {
    if value.is_none() {
        OptionValue::None
    } else if value.is_instance_of::<PyString>() {
        OptionValue::Word(text)
    } else if let Ok(on) = value.extract() {
        OptionValue::Switch(on)
    } else if let Ok(Whole(number)) = value.extract() {
        OptionValue::Whole(number)
    } else if let Ok(number) = value.extract() {
        OptionValue::Number(number)
    } else if let Ok((alpha, fraction)) = value.extract() {
        OptionValue::Noise(alpha, fraction)
    } else {
        OptionValue::Other(text)
    }
}

/// What a setting holds for a value, see `azpy_core::options::OptionRow::read`; `about` describes the setting, and `typed`
/// is of a text as users type it.
#[pyfunction]
pub(crate) fn read_setting<'py>(
    about: &Bound<'py, PyAny>,
    name: &str,
    given: &Bound<'py, PyAny>,
    typed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, text) = (given.py(), text_of(given));
    let flag = |name: &str| about.getattr(name)?.extract::<bool>();
    let bound = |name: &str| about.getattr(name).map(|bound| given_value(&bound, ""));
    let (kind, words) = (about.getattr("kind")?, about.getattr("words")?.extract::<Vec<String>>()?);
    let row = OptionRow {
        name,
        kind: KINDS.into_iter().find(|&known| kind_type(py, known).is(&kind)).unwrap_or(Kind::Text),
        optional: flag("optional")?,
        words: &words.iter().map(String::as_str).collect::<Vec<&str>>(),
        auto: flag("auto")?,
        low: bound("low")?,
        high: bound("high")?,
        above: flag("above")?,
        even: flag("even")?,
        ..OptionRow::PLAIN
    };
    let value = if typed { row.parse(&text) } else { given_value(given, &text) };
    let is_number = typed && !matches!(value, OptionValue::Word(_));
    let shown = if is_number { shortened(text.trim()) } else { shown(given, value) };
    match row.read(value, shown).map_err(RustError::raised)? {
        OptionValue::Word(_) => Ok(given.clone()), // names of files may hold any bytes
        value => python(py, value),
    }
}

const KINDS: [Kind; 3] = [Kind::Switch, Kind::Whole, Kind::Number];

/// The Python type of settings of this kind.
fn kind_type(py: Python<'_>, kind: Kind) -> Bound<'_, PyType> {
    match kind {
        Kind::Switch => py.get_type::<PyBool>(),
        Kind::Whole => py.get_type::<PyInt>(),
        Kind::Number | Kind::Noise => py.get_type::<PyFloat>(),
        Kind::Text => py.get_type::<PyString>(),
    }
}

/// Refuses keyword arguments that are neither options of the tables nor parameters of class `C`.
fn refuse_unknown<C: PyTypeInfo>(given: &Bound<'_, PyDict>, tables: &[&[OptionRow<'_>]]) -> PyResult<()> {
    let Some((name, _)) = given.iter().next() else {
        return Ok(());
    };
    let (py, name): (_, String) = (given.py(), name.extract()?);
    let own = py.import("inspect")?.call_method1("signature", (py.get_type::<C>(),))?.getattr("parameters")?;
    let mut known = Vec::new();
    for parameter in own.call_method0("values")?.try_iter()? {
        let parameter = parameter?;
        if parameter.getattr("kind")?.eq(parameter.getattr("KEYWORD_ONLY")?)? {
            known.push(parameter.getattr("name")?.extract::<String>()?);
        }
    }
    known.extend(tables.iter().copied().flatten().map(|row| row.name.to_owned()));
    let near = py.import("difflib")?.call_method1("get_close_matches", (&name, &known, 1))?;
    Err(PyTypeError::new_err(match near.extract::<Vec<String>>()?.first() {
        Some(near) => format!("unexpected keyword argument {name:?}; did you mean {near:?}?"),
        None => format!("unexpected keyword argument {name:?}; there are: {}", known.join(", ")),
    }))
}

/// The table of options for Python: a description of each option by name.
pub(crate) fn option_table(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (table, search, play) = (PyDict::new(py), SearchConfig::default(), SelfPlayConfig::default());
    let rows = SearchConfig::OPTIONS.iter().map(|row| ("search", row, search.get(row.name)));
    let more = SelfPlayConfig::OPTIONS.iter().map(|row| ("self-play", row, play.get(row.name)));
    for (group, row, default) in rows.chain(more) {
        let default = default.unwrap_or(OptionValue::None);
        let entry = PyDict::new(py);
        entry.set_item("group", group)?;
        entry.set_item("help", row.help.trim())?;
        entry.set_item("kind", kind_type(py, row.kind))?;
        entry.set_item("optional", row.optional)?;
        entry.set_item("words", PyTuple::new(py, row.words)?)?;
        entry.set_item("default", python(py, default)?)?;
        entry.set_item("in_self_play", python(py, row.in_self_play.unwrap_or(default))?)?;
        entry.set_item("low", python(py, row.low)?)?;
        entry.set_item("high", python(py, row.high)?)?;
        entry.set_item("above", row.above)?;
        entry.set_item("unit", row.unit)?;
        entry.set_item("source", row.source)?;
        entry.set_item("rule", rule_name(row.rule))?;
        entry.set_item("without", PyTuple::new(py, row.without)?)?;
        entry.set_item("needs", row.needs)?;
        table.set_item(row.name, entry)?;
    }
    Ok(table)
}

/// See `azpy_core::options::why_unused`; `rule` as in the table of options.
#[pyfunction]
pub(crate) fn why_unused(
    name: &str,
    rule: &str,
    actions: Option<&str>,
    other: Option<&str>,
    off: Option<&str>,
) -> Option<String> {
    let rule = [Rule::Puct, Rule::Gumbel].into_iter().find(|&known| rule_name(known) == rule).unwrap_or(Rule::Any);
    options::why_unused(name, rule, actions, other, off)
}

fn rule_name(rule: Rule) -> &'static str {
    match rule {
        Rule::Any => "",
        Rule::Puct => "PUCT",
        Rule::Gumbel => "Gumbel",
    }
}

fn python<'py>(py: Python<'py>, value: OptionValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        OptionValue::None => py.None().into_bound(py),
        OptionValue::Switch(value) => value.into_pyobject(py)?.to_owned().into_any(),
        OptionValue::Whole(value) => value.into_pyobject(py)?.into_any(),
        OptionValue::Number(value) => value.into_pyobject(py)?.into_any(),
        OptionValue::Word(value) | OptionValue::Other(value) => value.into_pyobject(py)?.into_any(),
        OptionValue::Noise(alpha, fraction) => (alpha, fraction).into_pyobject(py)?.into_any(),
    })
}

/// A number of simulations, if given.
pub(crate) fn simulations(given: Option<Whole>) -> PyResult<Option<u32>> {
    given.map(|Whole(given)| within("simulations", given, 0, U32)).transpose()
}

/// The default number of simulations of a search without a time limit.
const SIMULATIONS: u32 = 800;

/// How many simulations a search gets: `given` for this one, else its object's `own`; with a time limit and neither of
/// them, there is no other limit.
pub(crate) fn simulations_within(
    given: Option<u32>,
    limit: Option<Duration>,
    config: &SearchConfig,
    own: Option<u32>,
) -> PyResult<u32> {
    match given.or(own) {
        Some(simulations) => Ok(simulations),
        None if limit.is_some() && config.gumbel().is_some() => Err(PyValueError::new_err(
            "sequential halving needs a number of simulations: give simulations together with seconds",
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

/// The most answers in a cache.
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
