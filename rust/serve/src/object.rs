//! A JSON object that comes from outside, and its fields: what is wrong is said with the field's name.
//!
//! Knows nothing of games.

use std::fmt;

use azpy_core::text::{shown, unmarked};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::Error;

/// Lists and objects in each other.
const DEEPEST: usize = 32;
/// Of a wrong value, and of a text where it is no JSON, in characters.
const MOST_SHOWN: usize = 100;
const MOST_NEAR: usize = 20;
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
    /// let error = Object::read(r#"{"id": "1", "id": "2"}"#).unwrap_err().to_string();
    /// assert!(error.contains(r#"the key "id" comes twice at line 1 column 22"#), "{error}");
    /// ```
    pub fn read(text: &str) -> Result<Self, Error> {
        let text = unmarked(text);
        check_depth(text)?;
        match serde_json::from_str(text) {
            Ok(Strict(Value::Object(fields))) => Ok(Self(fields)),
            Ok(_) => Err(Error::Json("expected one JSON object a line".to_owned())),
            Err(error) => {
                let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
                let column = error.column().saturating_sub(MOST_NEAR / 2).min(line.len());
                // The column counts bytes, and may lie inside a character.
                let begin = (0..=column).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
                let near: String = line[begin..].chars().take(MOST_NEAR).collect();
                Err(Error::Json(format!("expected one JSON object a line: {error}, near {}", shown(&near))))
            }
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
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
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
            if fields.contains_key(&name) {
                return Err(de::Error::custom(format_args!("the key {} comes twice", shown(&name))));
            }
            fields.insert(name, value);
        }
        // In every object of a message, null says that a field is left out.
        fields.retain(|_, value| !value.is_null());
        Ok(Value::Object(fields))
    }
}

/// What came in place of what was expected: as JSON on one line, cut where it is long.
pub(crate) fn expected(field: &str, expected: impl fmt::Display, value: &Value) -> Error {
    let (json, mut shown) = (value.to_string(), String::new());
    for letter in json.chars().take(MOST_SHOWN) {
        match letter {
            ' '..='~' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    if json.chars().nth(MOST_SHOWN).is_some() {
        shown += "...";
    }
    Error::Value { field: field.to_owned(), expected: expected.to_string(), value: shown }
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
