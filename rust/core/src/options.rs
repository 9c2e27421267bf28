//! The table of options: how a structure of options is declared, so that each option is one row.
//!
//! A row is a field of [`crate::config::SearchConfig`] or [`crate::selfplay::SelfPlayConfig`]. Its comment is the help that
//! users read. Users give options by name; [`OptionRow::read`] says which values an option may have.

use std::cmp::Ordering;
use std::fmt;
use std::num::IntErrorKind;

use crate::error::Error;

/// The largest factor or weight: far above any useful one, and far below where products are no longer finite.
pub const MOST: OptionValue<'_> = OptionValue::Whole(1_000_000);

/// A value of an option, of whatever type: what keywords, flags and files turn theirs into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue<'a> {
    /// The option is not set.
    None,
    /// Yes or no.
    Switch(bool),
    /// A whole number of any size; `i128::MIN` and `i128::MAX` stand for anything beyond them.
    Whole(i128),
    /// A number.
    Number(f64),
    /// A text, such as one of the option's words.
    Word(&'a str),
    /// The alpha and the fraction of Dirichlet noise.
    Noise(Option<f64>, f64),
    /// A value of an unsupported type, as text.
    Other(&'a str),
}

impl OptionValue<'_> {
    /// The kind of number that a range limits.
    fn number(self) -> Option<f64> {
        match self {
            Self::Whole(i128::MIN) => Some(f64::NEG_INFINITY),
            Self::Whole(i128::MAX) => Some(f64::INFINITY),
            Self::Whole(number) => Some(number as f64),
            Self::Number(number) | Self::Noise(_, number) => Some(number),
            _ => None,
        }
    }

    fn compared(self, bound: Self) -> Option<Ordering> {
        match (self, bound) {
            (Self::Whole(number), Self::Whole(bound)) => Some(number.cmp(&bound)),
            _ => self.number()?.partial_cmp(&bound.number()?),
        }
    }
}

impl fmt::Display for OptionValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(out, "None"),
            Self::Switch(value) => write!(out, "{}", if *value { "True" } else { "False" }),
            Self::Whole(i128::MIN) => write!(out, "-2**127 or less"),
            Self::Whole(i128::MAX) => write!(out, "2**127 or more"),
            Self::Whole(value) => write!(out, "{value}"),
            Self::Number(value) => write!(out, "{value:?}"),
            Self::Word(value) => write!(out, "'{}'", value.escape_debug()),
            Self::Noise(None, fraction) => write!(out, "(None, {fraction})"),
            Self::Noise(Some(alpha), fraction) => write!(out, "({alpha}, {fraction})"),
            Self::Other(shown) => write!(out, "{shown}"),
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
    /// A text: any, or one of the words.
    Text,
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
pub struct OptionRow<'a> {
    /// What users call the option.
    pub name: &'a str,
    /// What it is: an imperative or a noun phrase of at most twelve words.
    pub help: &'a str,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be None.
    pub optional: bool,
    /// The word that stands for None, as flags and files have it.
    pub none: Option<&'a str>,
    /// Words that stand for a number; one that ends with `TEXT` is any longer text that begins so.
    pub words: &'a [&'a str],
    /// Whether the word `auto` is taken: a caller puts a value in its place.
    pub auto: bool,
    /// The least number.
    pub low: OptionValue<'a>,
    /// The largest number.
    pub high: OptionValue<'a>,
    /// Whether `low` itself is refused.
    pub above: bool,
    /// Whether odd numbers are refused.
    pub even: bool,
    /// What it counts.
    pub unit: &'a str,
    /// The paper or program that it comes from.
    pub source: &'a str,
    /// Which search looks at it.
    pub rule: Rule,
    /// Options of the search that it does not go with.
    pub without: &'a [&'a str],
    /// The switch of the search that it needs, if it needs one.
    pub needs: Option<&'a str>,
    /// Where self-play has another default.
    pub in_self_play: Option<OptionValue<'a>>,
}

impl<'a> OptionRow<'a> {
    /// The defaults of a row.
    pub const PLAIN: Self = Self {
        name: "",
        help: "",
        kind: Kind::Number,
        optional: false,
        none: Some("none"),
        words: &[],
        auto: false,
        low: OptionValue::Whole(0),
        high: OptionValue::Whole(u32::MAX as i128),
        above: false,
        even: false,
        unit: "",
        source: "our choice",
        rule: Rule::Any,
        without: &[],
        needs: None,
        in_self_play: None,
    };

    /// What users type, as a value for [`OptionRow::read`]. Python's rules of digits hold: `_` stands between two.
    #[must_use]
    pub fn parse(&self, text: &'a str) -> OptionValue<'a> {
        let bytes = text.trim().as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let between = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
        if self.kind == Kind::Text || (0..bytes.len()).any(|at| bytes[at] == b'_' && !between(at)) {
            return OptionValue::Word(text);
        }
        let digits = text.trim().replace('_', "");
        let whole = match digits.parse::<i128>() {
            Ok(number) => Some(number),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(i128::MAX),
            Err(error) if *error.kind() == IntErrorKind::NegOverflow => Some(i128::MIN),
            Err(_) => None,
        };
        let number = || digits.parse().map(OptionValue::Number).ok();
        let switch = || text.parse().map(OptionValue::Switch).ok();
        whole.map(OptionValue::Whole).or_else(number).or_else(switch).unwrap_or(OptionValue::Word(text))
    }

    /// Converts a given value to the option's type; `shown` is how it was written.
    ///
    /// # Errors
    /// A sentence that names the option, what it may be, and what came.
    pub fn read(&self, given: OptionValue<'a>, shown: impl fmt::Display) -> Result<OptionValue<'a>, Error> {
        let value = self.typed(given, &shown)?;
        self.check(value, shown).map(|()| value)
    }

    /// The same, without checking the range.
    ///
    /// # Errors
    /// A value of another type.
    pub fn typed(&self, given: OptionValue<'a>, shown: impl fmt::Display) -> Result<OptionValue<'a>, Error> {
        use OptionValue::{Noise, None, Number, Switch, Whole, Word};
        let expected = match self.kind {
            Kind::Switch => Some("true or false"),
            Kind::Whole => Some("a whole number"),
            Kind::Number => Some("a number"),
            Kind::Noise => Some("a fraction or (alpha, fraction)"),
            Kind::Text => self.words.is_empty().then_some("text"),
        };
        let (auto, none) = (self.auto.then_some("auto"), self.optional.then_some(self.none.unwrap_or("None")));
        let is_word = |text: &str| {
            let begins = |start: &str| text.len() > start.len() && text.starts_with(start);
            let fits = |word: &&str| *word == text || word.strip_suffix("TEXT").is_some_and(begins);
            expected == Some("text") || auto == Some(text) || self.words.iter().any(fits)
        };
        match (given, self.kind) {
            (None, _) if self.optional => Ok(None),
            (Word(text), _) if self.optional && self.none == Some(text) => Ok(None),
            (Word(text), _) if is_word(text) => Ok(given),
            (Switch(_), Kind::Switch)
            | (Whole(_), Kind::Whole)
            | (Number(_), Kind::Number | Kind::Noise)
            | (Noise(..), Kind::Noise) => Ok(given),
            (Whole(_), Kind::Number | Kind::Noise) => Ok(given.number().map_or(given, Number)),
            _ => {
                let all = self.words.iter().copied().chain(expected).chain(auto).chain(none).collect::<Vec<&str>>();
                Err(refused(self.name, &all.join(" or "), shown))
            }
        }
    }

    /// Refuses a value out of range; `shown` is how it was written.
    ///
    /// # Errors
    /// A sentence that names the option, its range and the value.
    pub fn check(&self, value: OptionValue<'_>, shown: impl fmt::Display) -> Result<(), Error> {
        let Self { name, low, high, .. } = self;
        if let OptionValue::Noise(Some(alpha), _) = value
            && !(alpha > 0.0 && alpha.is_finite())
        {
            return Err(refused(&format!("the alpha of {name}"), "a number > 0", alpha));
        }
        let Some(number) = value.number() else { return Ok(()) };
        let bound = match (value.compared(*low), value.compared(*high)) {
            (Some(Ordering::Less | Ordering::Equal), _) if self.above => format!("more than {low}"),
            (Some(Ordering::Less), _) => format!("at least {low}"),
            (_, Some(Ordering::Greater)) => format!("at most {high}"),
            _ if !number.is_finite() => "a finite number".to_owned(),
            _ if self.even && matches!(value, OptionValue::Whole(odd) if odd % 2 != 0) => "an even number".to_owned(),
            _ => return Ok(()),
        };
        Err(refused(name, &bound, shown))
    }
}

fn refused(name: &str, expected: &str, got: impl fmt::Display) -> Error {
    Error::Option { name: name.to_owned(), expected: expected.to_owned(), got: got.to_string() }
}

/// Refuses the first value of a table that is out of range; `value` gives that of an option.
pub(crate) fn check_all(
    table: &[OptionRow<'_>],
    value: impl Fn(&str) -> Option<OptionValue<'static>>,
) -> Result<(), Error> {
    table.iter().try_for_each(|row| value(row.name).map_or(Ok(()), |value| row.check(value, value)))
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
    /// The type of its values for users.
    const KIND: Kind;
    /// Whether it may be None.
    const OPTIONAL: bool = false;
    /// The field's value; `None` for a value of another kind.
    fn from_value(value: OptionValue<'_>) -> Option<Self>;
    /// The same the other way round.
    fn value(&self) -> OptionValue<'static>;
}

macro_rules! plain {
    ($($type:ty: $kind:ident($widest:ty)),*) => {$(
        impl OptionType for $type {
            const KIND: Kind = Kind::$kind;
            fn from_value(value: OptionValue<'_>) -> Option<Self> {
                match value {
                    OptionValue::$kind(value) => value.try_into().ok(),
                    _ => None,
                }
            }
            fn value(&self) -> OptionValue<'static> {
                OptionValue::$kind(*self as $widest)
            }
        }
    )*};
}
plain!(u32: Whole(i128), usize: Whole(i128), f64: Number(f64), bool: Switch(bool));

impl<T: OptionType> OptionType for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn from_value(value: OptionValue<'_>) -> Option<Self> {
        match value {
            OptionValue::None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
    fn value(&self) -> OptionValue<'static> {
        self.as_ref().map_or(OptionValue::None, T::value)
    }
}

/// A default as Python writes it.
#[macro_export]
#[doc(hidden)]
macro_rules! in_python {
    (true) => {
        "True"
    };
    (false) => {
        "False"
    };
    (Zero) => {
        "'zero'"
    };
    ($default:tt) => {
        stringify!($default)
    };
}

/// Declares a structure of options. Each row: the help as a comment, `name: type = default`, and what differs from
/// [`OptionRow::PLAIN`]. Fields after `with` are no options. The macro named after `help` gives the list of all options.
macro_rules! options {
    (
        help = $listed:ident;
        $(#[$about:meta])* pub struct $config:ident {
            $($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:tt $(, $fact:ident = $value:expr)*;)*
            $(with $($(#[doc = $plain_help:literal])+ $plain:ident: $plain_type:ty;)*)?
        }
    ) => {
        /// The options as a list in Markdown, for documentation.
        #[macro_export]
        macro_rules! $listed {
            () => { concat!($("- ", stringify!($name), " (", $crate::in_python!($default), "):", $($help),+, "\n"),*) };
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
            pub const OPTIONS: &'static [$crate::options::OptionRow<'static>] = &[$($crate::options::OptionRow {
                name: stringify!($name),
                help: concat!($($help),+),
                kind: <$type as $crate::options::OptionType>::KIND,
                optional: <$type as $crate::options::OptionType>::OPTIONAL,
                $($fact: $value,)*
                ..$crate::options::OptionRow::PLAIN
            }),*];

            /// The value of an option; `None` if there is no such option.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<$crate::options::OptionValue<'static>> {
                match name {
                    $(stringify!($name) => Some($crate::options::OptionType::value(&self.$name)),)*
                    _ => None,
                }
            }

            /// Sets an option to what its row reads of a value.
            ///
            /// # Errors
            /// [`Error::UnknownOption`](crate::Error::UnknownOption), or a value that the option's row refuses.
            pub fn set(&mut self, name: &str, value: $crate::options::OptionValue<'_>) -> Result<(), $crate::Error> {
                let row = Self::OPTIONS.iter().find(|row| row.name == name);
                let unknown = || $crate::Error::UnknownOption(name.to_owned());
                let value = row.ok_or_else(unknown)?.read(value, value)?;
                match name {
                    $(stringify!($name) => {
                        let set = $crate::options::OptionType::from_value(value);
                        self.$name = set.expect("a row reads values that its field can have");
                    })*
                    _ => return Err(unknown()),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use options;
