//! The table of options: how a structure of options is declared, so that each option is one row.
//!
//! A row is a field of [`crate::config::SearchConfig`] or [`crate::selfplay::SelfPlayConfig`]. Its comment is the help that
//! users read. Users give options by name; [`OptionRow::check`] says which values an option may have.

use std::fmt;

/// The largest factor or weight: far above any useful one, and far below where products are no longer finite.
pub const MOST: f64 = 1e6;
const U32: f64 = u32::MAX as f64;

/// A value of an option, of whatever type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// The option is not set.
    None,
    /// Yes or no.
    Switch(bool),
    /// A whole number of any size; `i128::MIN` and `i128::MAX` stand for anything beyond them.
    Whole(i128),
    /// A number.
    Number(f64),
    /// One of the option's words.
    Word(&'static str),
    /// The alpha and the fraction of Dirichlet noise.
    Noise(Option<f64>, f64),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(out, "None"),
            Self::Switch(value) => write!(out, "{}", if *value { "True" } else { "False" }),
            Self::Whole(i128::MIN) => write!(out, "-2**127 or less"),
            Self::Whole(i128::MAX) => write!(out, "2**127 or more"),
            Self::Whole(value) => write!(out, "{value}"),
            Self::Number(value) if value.abs() < 1e16 => write!(out, "{value}"),
            Self::Number(value) => write!(out, "{value:?}"),
            Self::Word(value) => write!(out, "{value:?}"),
            Self::Noise(None, fraction) => write!(out, "(None, {fraction})"),
            Self::Noise(Some(alpha), fraction) => write!(out, "({alpha}, {fraction})"),
        }
    }
}

/// Which values an option takes, besides None.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or False.
    Switch,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A fraction, or a pair (alpha, fraction).
    Noise,
}

/// Which of the two ways to choose an action looks at an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Both.
    Any,
    /// PUCT.
    Puct,
    /// Planning with Gumbel.
    Gumbel,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// What users call the option.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be None.
    pub optional: bool,
    /// Words that stand for a number.
    pub words: &'static [&'static str],
    /// The least number.
    pub low: f64,
    /// The largest number.
    pub high: f64,
    /// Whether `low` itself is refused.
    pub above: bool,
    /// What it counts.
    pub unit: &'static str,
    /// The paper or program that it comes from.
    pub source: &'static str,
    /// Which search looks at it.
    pub rule: Rule,
    /// Options of the search that it does not go with.
    pub without: &'static [&'static str],
    /// The switch of the search that it needs, if it needs one.
    pub needs: Option<&'static str>,
    /// Where self-play has another default.
    pub in_self_play: Option<OptionValue>,
}

impl OptionRow {
    /// What rows leave out.
    pub const PLAIN: Self = Self {
        name: "",
        help: "",
        kind: Kind::Number,
        optional: false,
        words: &[],
        low: 0.0,
        high: U32,
        above: false,
        unit: "",
        source: "our choice",
        rule: Rule::Any,
        without: &[],
        needs: None,
        in_self_play: None,
    };

    /// Refuses a value out of range.
    ///
    /// # Errors
    /// A sentence that names the option, its range and the value.
    pub fn check(&self, value: OptionValue) -> Result<(), String> {
        let name = self.name;
        let number = match value {
            OptionValue::Whole(whole) => whole as f64,
            OptionValue::Number(number) => number,
            OptionValue::Noise(alpha, fraction) => {
                if let Some(alpha) = alpha.filter(|&alpha| !(alpha > 0.0 && alpha.is_finite())) {
                    return Err(format!("the alpha of {name} must be a number > 0, got {alpha}"));
                }
                fraction
            }
            _ => return Ok(()),
        };
        let (low, high) = (OptionValue::Number(self.low), OptionValue::Number(self.high));
        if self.above && (number.is_nan() || number <= self.low) {
            return Err(format!("{name} must be more than {low}, got {value}"));
        }
        if number.is_nan() || number < self.low {
            return Err(format!("{name} must be at least {low}, got {value}"));
        }
        if number > self.high {
            return Err(format!("{name} must be at most {high}, got {value}"));
        }
        Ok(())
    }
}

/// Why a search does not look at an option, as the end of a sentence that the option's name begins; `None` if it does.
/// Everything that is said about options that do not go together is said here.
///
/// # Arguments
/// - `actions`: the search's `gumbel_actions` if it plans with Gumbel.
/// - `other`: an option that is set and that this one does not go with.
/// - `off`: the switch that this one needs and that is off.
#[must_use]
pub fn why_unused(
    name: &str,
    rule: Rule,
    actions: Option<&str>,
    other: Option<&str>,
    off: Option<&str>,
) -> Option<String> {
    Some(match (rule, actions, other, off) {
        (Rule::Puct, Some(actions), ..) => format!("does not go with gumbel_actions {actions}: leave one of them out"),
        (Rule::Gumbel, None, ..) => format!("needs gumbel_actions above 0: give both, or leave {name} out"),
        (.., Some(other), _) => format!("does not go with {other}: leave one of them out"),
        (.., Some(off)) => format!("needs {off}: give both, or leave {name} out"),
        _ => return None,
    })
}

/// A type that a field of an option has.
pub trait OptionType: Sized {
    /// What users give for it.
    const KIND: Kind;
    /// Whether it may be None.
    const OPTIONAL: bool = false;
    /// The field's value; `None` for a value of another kind.
    fn from_value(value: OptionValue) -> Option<Self>;
    /// The same the other way round.
    fn value(&self) -> OptionValue;
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl OptionType for $type {
            const KIND: Kind = Kind::Whole;
            fn from_value(value: OptionValue) -> Option<Self> {
                match value {
                    OptionValue::Whole(number) => number.try_into().ok(),
                    _ => None,
                }
            }
            fn value(&self) -> OptionValue {
                OptionValue::Whole(*self as i128)
            }
        }
    )*};
}
whole!(u32, usize);

impl OptionType for f64 {
    const KIND: Kind = Kind::Number;
    fn from_value(value: OptionValue) -> Option<Self> {
        match value {
            OptionValue::Number(number) => Some(number),
            _ => None,
        }
    }
    fn value(&self) -> OptionValue {
        OptionValue::Number(*self)
    }
}

impl OptionType for bool {
    const KIND: Kind = Kind::Switch;
    fn from_value(value: OptionValue) -> Option<Self> {
        match value {
            OptionValue::Switch(on) => Some(on),
            _ => None,
        }
    }
    fn value(&self) -> OptionValue {
        OptionValue::Switch(*self)
    }
}

impl<T: OptionType> OptionType for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn from_value(value: OptionValue) -> Option<Self> {
        match value {
            OptionValue::None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
    fn value(&self) -> OptionValue {
        self.as_ref().map_or(OptionValue::None, T::value)
    }
}

/// Declares a structure of options. Each row: the help as a comment, `name: type = default`, and what differs from
/// [`OptionRow::PLAIN`]. Fields after `with` are no options. The macro named after `help` gives the list of all options.
macro_rules! options {
    (
        help = $listed:ident;
        $(#[$about:meta])* pub struct $config:ident {
            $($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:expr $(, $fact:ident = $value:expr)*;)*
            $(with $($(#[doc = $plain_help:literal])+ $plain:ident: $plain_type:ty;)*)?
        }
    ) => {
        /// The options as a list in Markdown, for documentation.
        #[macro_export]
        macro_rules! $listed {
            () => { concat!($("- ", stringify!($name), " (", stringify!($default), "):", $($help),+, "\n"),*) };
        }

        $(#[$about])*
        pub struct $config {
            $($(#[doc = $help])+ pub $name: $type,)*
            $($($(#[doc = $plain_help])+ pub $plain: $plain_type,)*)?
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $($name: $default,)* $($($plain: Default::default(),)*)? }
            }
        }

        impl $config {
            /// Its options.
            pub const OPTIONS: &'static [$crate::options::OptionRow] = &[$($crate::options::OptionRow {
                name: stringify!($name),
                help: concat!($($help),+),
                kind: <$type as $crate::options::OptionType>::KIND,
                optional: <$type as $crate::options::OptionType>::OPTIONAL,
                $($fact: $value,)*
                ..$crate::options::OptionRow::PLAIN
            }),*];

            /// The value of an option; `None` if there is no such option.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<$crate::options::OptionValue> {
                match name {
                    $(stringify!($name) => Some($crate::options::OptionType::value(&self.$name)),)*
                    _ => None,
                }
            }

            /// Sets an option.
            ///
            /// # Errors
            /// A sentence about a name or a value that does not fit.
            pub fn set(&mut self, name: &str, value: $crate::options::OptionValue) -> Result<(), String> {
                let wrong = || format!("{name} cannot be {value}");
                match name {
                    $(stringify!($name) => {
                        self.$name = $crate::options::OptionType::from_value(value).ok_or_else(wrong)?;
                    })*
                    _ => return Err(wrong()),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use options;
