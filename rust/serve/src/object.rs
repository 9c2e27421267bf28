//! A JSON object that comes from outside, and its fields: what is wrong is said with the field's name.
//!
//! Knows nothing of games.

use std::fmt::{self, Write};

use azpy_core::text::unmarked;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::Error;

/// Lists and objects in each other.
const DEEPEST: usize = 32;
/// Of a number that is too large, in characters.
const MOST_DIGITS: usize = 40;
/// Of a wrong value: characters of a text, entries of a list and of an object.
const MOST_TEXT: usize = 30;
const MOST_LISTED: usize = 6;
const MOST_FIELDS: usize = 4;
const MOST_SHOWN: usize = 300;
/// Objects of a message: each takes hundreds of bytes, however short it is.
const MOST_OBJECTS: usize = 10_000;

/// A JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(pub(crate) Map<String, Value>);

impl Object {
    /// Reads the object that a text holds.
    ///
    /// # Errors
    /// No JSON, or not one object; a key that comes twice, a number that is none, half a character, or more lists and
    /// objects in each other than anyone needs.
    ///
    /// ```
    /// use azpy_serve::Object;
    ///
    /// assert_eq!(Object::read(r#"{"id": "1", "id": "2"}"#).unwrap_err().to_string(), "a key comes twice");
    /// ```
    pub fn read(text: &str) -> Result<Self, Error> {
        let text = unmarked(text);
        check_depth(text)?;
        match serde_json::from_str(text) {
            Ok(Strict(Value::Object(fields))) => Ok(Self(fields)),
            Ok(_) => Err(Error::Json("expected one JSON object a line".to_owned())),
            Err(error) => Err(Error::Json(unreadable(text, &error))),
        }
    }

    /// A field; nothing if it is not there, or null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All fields that are not null.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A field that must be there.
    pub(crate) fn field(&self, name: &'static str) -> Result<&Value, Error> {
        self.0.get(name).ok_or(Error::Missing(name))
    }

    /// A field that may be left out, as `read` reads it.
    pub(crate) fn optional<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(&'a Value, &str) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.get(name).map(|value| read(value, name)).transpose()
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// If it is not there, or none.
    pub fn text(&self, name: &str) -> Result<&str, Error> {
        text(self.0.get(name).unwrap_or(&Value::Null), name)
    }
}

/// Refuses deep texts, as JSON's own parser would recurse as deep as the text says, and those with too many objects.
fn check_depth(text: &str) -> Result<(), Error> {
    let (mut depth, mut quoted, mut escaped, mut objects) = (0_usize, false, false, 0_usize);
    for byte in text.bytes() {
        objects += usize::from(byte == b'{' && !quoted);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Error::Json(format!("more than {DEEPEST} lists and objects in each other")));
        }
        if objects > MOST_OBJECTS {
            return Err(Error::Json(format!("more than {MOST_OBJECTS} objects")));
        }
    }
    Ok(())
}

const TWICE: &str = "a key comes twice";

/// What the parser's error means.
fn unreadable(text: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    if said.starts_with(TWICE) {
        return TWICE.to_owned();
    }
    if said.contains("hex escape") {
        return "half a surrogate pair is not a character".to_owned();
    }
    // The column counts bytes, from 1 on.
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let (before, rest) = line.as_bytes().split_at(error.column().min(line.len()));
    if said.starts_with("number out of range") {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let begins = before.iter().rposition(|byte| !is_digit(byte)).map_or(0, |at| at + 1);
        let digits: Vec<u8> =
            before[begins..].iter().chain(rest).copied().take_while(is_digit).take(MOST_DIGITS).collect();
        return format!("{} is too large a number", String::from_utf8_lossy(&digits));
    }
    let at = before.len().saturating_sub(1);
    for word in ["-Infinity", "Infinity", "NaN"] {
        let begins = if word.starts_with('-') { at.saturating_sub(1) } else { at };
        if line.as_bytes()[begins..].starts_with(word.as_bytes()) {
            return format!("{word} is not valid JSON");
        }
    }
    format!("expected one JSON object a line: {said}")
}

/// A value in which no key comes twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(entry)) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, Strict(value))) = entries.next_entry::<String, _>()? {
            if fields.insert(name, value).is_some() {
                return Err(de::Error::custom(TWICE));
            }
        }
        // In every object of a message, null says that a field is left out.
        fields.retain(|_, value| !value.is_null());
        Ok(Value::Object(fields))
    }
}

/// What came in place of what was expected.
pub(crate) fn expected(field: &str, expected: impl fmt::Display, value: &Value) -> Error {
    let mut shown = Bounded { text: String::new(), left: MOST_SHOWN };
    let is_cut = write!(shown, "{}", Repr(value)).is_err();
    let value = shown.text + if is_cut { "..." } else { "" };
    Error::Value { field: field.to_owned(), expected: expected.to_string(), value }
}

pub(crate) fn object_of<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| expected(path, "an object", value))
}

pub(crate) fn list_of<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], Error> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| expected(path, "a list", value))
}

/// A list that may be left out.
pub(crate) fn list_in<'a>(fields: &'a Object, path: &str) -> Result<&'a [Value], Error> {
    Ok(fields.optional(path, list_of)?.unwrap_or_default())
}

/// A list of texts.
pub(crate) fn texts_of(value: &Value, path: &str) -> Result<Vec<String>, Error> {
    list_of(value, path)?.iter().map(|value| Ok(text(value, path)?.to_owned())).collect()
}

pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| expected(path, "a text", value))
}

/// A whole number from `low` to `high`. (True is none, and neither is 1.0.)
pub(crate) fn whole(value: &Value, path: &str, low: i64, high: i64) -> Result<i64, Error> {
    let number = value.as_i64().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| expected(path, format_args!("a whole number from {low} to {high}"), value))
}

pub(crate) fn number(value: &Value, path: &str, low: f64, high: f64) -> Result<f64, Error> {
    let number = value.as_f64().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| expected(path, format_args!("a number from {} to {}", Short(low), Short(high)), value))
}

pub(crate) fn flag(value: &Value, path: &str) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| expected(path, "true or false", value))
}

/// One of some words, at least two.
pub(crate) fn one_of<'a>(value: &Value, path: &str, words: &[&'a str]) -> Result<&'a str, Error> {
    let found = value.as_str().and_then(|text| words.iter().find(|&&word| word == text));
    found.copied().ok_or_else(|| {
        let (last, others) = words.split_last().map_or(("", words), |(last, others)| (*last, others));
        expected(path, format_args!("{} or {last}", others.join(", ")), value)
    })
}

/// A bound as a person writes it.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.abs() < 1e6 { write!(out, "{}", self.0) } else { write!(out, "{:e}", self.0) }
    }
}

/// A text that takes so many characters, and then no more.
struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let taken = more.chars().take(self.left).collect::<String>();
        self.left -= taken.chars().count();
        self.text.push_str(&taken);
        if taken.len() < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A value as an error repeats it: cut where it is long.
struct Repr<'a>(&'a Value);

impl fmt::Display for Repr<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("None"),
            Value::Bool(true) => out.write_str("True"),
            Value::Bool(false) => out.write_str("False"),
            Value::Number(number) => write!(out, "{number}"),
            Value::String(text) => out.write_str(&quoted(text, MOST_TEXT)),
            Value::Array(list) => {
                out.write_str("[")?;
                for (index, entry) in list.iter().take(MOST_LISTED).enumerate() {
                    write!(out, "{}{}", if index > 0 { ", " } else { "" }, Repr(entry))?;
                }
                out.write_str(if list.len() > MOST_LISTED { ", ...]" } else { "]" })
            }
            Value::Object(fields) => {
                out.write_str("{")?;
                for (index, (name, value)) in fields.iter().take(MOST_FIELDS).enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(out, "{comma}{}: {}", quoted(name, MOST_TEXT), Repr(value))?;
                }
                out.write_str(if fields.len() > MOST_FIELDS { ", ...}" } else { "}" })
            }
        }
    }
}

/// A text in single quotes, on one line, with at most so many characters of it.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let mut rest = text.chars();
    let start: String = rest.by_ref().take(most).collect();
    format!("'{}{}'", start.escape_debug(), if rest.next().is_some() { "..." } else { "" })
}

/// What one client may ask for. Beyond each bound there is an error that names it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Limits {
    /// Of a search.
    pub simulations: u32,
    /// Of a search. A search without an end ends there.
    pub seconds: f64,
    /// Of a query.
    pub moves: usize,
    /// Of a query, to be analyzed.
    pub turns: usize,
    /// Moves of a game with variations that is read or written.
    pub nodes: usize,
    /// Variations in each other of such a game; 1 is a variation of the main line.
    pub depth: usize,
    /// Of such a game's text.
    pub text_bytes: usize,
    /// Open searches at once.
    pub searches: usize,
    /// Games with kept trees. The game that was not asked for longest loses its tree.
    pub games: usize,
}
