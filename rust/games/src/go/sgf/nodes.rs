//! SGF as a text: the nodes of a game with their properties, without interpreting them.

use azpy_core::text::shown;
use azpy_core::written::Wrong;

use crate::error::{Error, invalid, wrong};

/// A property of a node: where it stands in the text, its name, and its values, escapes resolved.
pub(super) struct Property {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

impl Property {
    /// The one value there may be.
    pub(super) fn value(&self) -> Result<&str, Error> {
        match &self.values[..] {
            // Errors quote it.
            [value] if value.len() > 40 || value.trim().contains(char::is_control) => {
                Err(invalid!("{} has an invalid value: {}", self.name, shown(value)))
            }
            [value] => Ok(value.trim()),
            values => Err(invalid!("{} takes one value, got {}", self.name, values.len())),
        }
    }

    /// Whether it has no value. (A move without a value is a pass, which callers check themselves.)
    pub(super) fn says_nothing(&self) -> bool {
        self.values.iter().all(|value| value.trim().is_empty())
    }
}

/// A node of a game.
pub(super) struct Node {
    /// The number of the node before it, from 1 on; 0 for the root.
    pub(super) before: usize,
    /// Whether it is of the main line. The nodes of the main line come first.
    pub(super) is_main: bool,
    pub(super) properties: Vec<Property>,
}

impl Node {
    /// The one move: Black's, where both colours have one.
    pub(super) fn played(&self) -> Option<&Property> {
        let of = |name: &str| self.properties.iter().find(|property| property.name == name);
        of("B").or_else(|| of("W"))
    }
}

/// Which nodes are read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Read {
    MainLine,
    Variations,
}

/// Properties with which other programs begin a game. No variation begins with them.
const FIRST: [&str; 5] = ["FF", "GM", "CA", "AP", "SZ"];

/// The byte from `from` on at which a game begins: a ( with a ; behind it. If `is_surely` it has one of [`FIRST`] too.
fn next_game(text: &str, from: usize, is_surely: bool) -> Option<usize> {
    let brackets = text.as_bytes()[from..].iter().enumerate().filter(|&(_, &byte)| byte == b'(');
    brackets.map(|(at, _)| from + at).find(|&at| begins_game(&text[at..], is_surely))
}

/// Whether a game begins here; see [`next_game`].
fn begins_game(text: &str, is_surely: bool) -> bool {
    let root = text.strip_prefix('(').and_then(|rest| rest.trim_ascii_start().strip_prefix(';'));
    root.is_some_and(|root| {
        let root = root.trim_ascii_start();
        let name = &root[..root.bytes().take_while(u8::is_ascii_alphabetic).count()];
        !is_surely || FIRST.contains(&&property_name(name)[..])
    })
}

/// Whether a text is meant as SGF, and not as names of actions.
pub(in crate::go) fn is_sgf(text: &str) -> bool {
    next_game(text, 0, false).is_some() || text.trim_ascii_start().starts_with('(')
}

/// The nodes of the one game in `text`.
pub(super) fn one_game(text: &str, read: Read) -> Result<Vec<Node>, Wrong> {
    let (nodes, rest) = first_game(text, read).map_err(|(wrong, _)| wrong)?;
    if nodes.is_empty() {
        return Err(wrong(0, invalid!("the text does not hold a game: expected it to start with (;")));
    }
    match next_game(rest, 0, false) {
        Some(at) => {
            Err(wrong(text.len() - rest.len() + at, invalid!("the text holds more than one game; give one at a time")))
        }
        None => Ok(nodes),
    }
}

/// The nodes of the first game in `text`, none where there is no game, and the text after it. If the main line alone is
/// read, the variations are looked at only as far as brackets go. What is wrong comes with the text in which the next game
/// can stand.
pub(super) fn first_game(text: &str, read: Read) -> Result<(Vec<Node>, &str), (Wrong, &str)> {
    let mut at = next_game(text, 0, false).unwrap_or(text.len());
    match scan(text, &mut at, read) {
        Ok(nodes) => Ok((nodes, &text[at..])),
        Err(Broken { error, is_cut }) => {
            let next = if is_cut { None } else { next_game(text, at, true) };
            Err((wrong(at, error), &text[next.unwrap_or(text.len())..]))
        }
    }
}

/// Why a game cannot be read, and whether no other game can follow: what has no end goes on to the end of the text.
struct Broken {
    error: Error,
    is_cut: bool,
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self { error, is_cut: false }
    }
}

/// Takes the game that begins at a byte of a text, and says where the text goes on, or what is wrong.
fn scan(text: &str, at: &mut usize, read: Read) -> Result<Vec<Node>, Broken> {
    let (bytes, begin) = (text.as_bytes(), *at);
    // Use a count and a list instead of recursion, because variations may be nested arbitrarily deep. The list has the
    // node before each (.
    let (mut nodes, mut depth, mut open, mut here) = (Vec::<Node>::new(), 0_usize, Vec::new(), 0);
    // Whether the main line has ended, and whether a variation of this node has.
    let (mut ended, mut closed) = (false, false);
    let wants = |ended: bool| !ended || read == Read::Variations;
    while *at < bytes.len() {
        match bytes[*at] {
            b'(' if depth > 0 && begins_game(&text[*at..], true) => {
                return Err(invalid!("another game begins before the last ) of this one").into());
            }
            b'(' => {
                depth += 1;
                if read == Read::Variations {
                    open.push(here);
                }
            }
            b')' if depth == 1 => {
                *at += 1;
                return Ok(nodes);
            }
            b')' => {
                // The first end is that of the main line: what follows are variations of its nodes.
                (depth, ended, closed) = (depth - 1, true, true);
                here = open.pop().unwrap_or(here);
            }
            b';' => {
                closed = false;
                if wants(ended) {
                    nodes.push(Node { before: here, is_main: !ended, properties: Vec::new() });
                    here = nodes.len();
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            byte if byte.is_ascii_alphabetic() => {
                let (property, next) = read_property(text, *at)?;
                // Behind a variation there is no node that it could be of.
                if wants(ended) && !closed && here > 0 {
                    nodes[here - 1].properties.push(property);
                }
                *at = next;
                continue;
            }
            _ => return Err(invalid!("{} is not valid SGF: expected ( ; ) or a property", shown(&text[*at..])).into()),
        }
        *at += 1;
    }
    if depth > 0 {
        *at = begin;
        return Err(Broken { error: invalid!("the game ends before its last )"), is_cut: true });
    }
    Ok(nodes)
}

/// The name of a property. Older files spell names out, where only capitals count. Some write all in small letters.
fn property_name(word: &str) -> String {
    let capitals: String = word.chars().filter(char::is_ascii_uppercase).collect();
    if capitals.is_empty() { word.to_ascii_uppercase() } else { capitals }
}

/// The property that begins at byte `at`, and where the text goes on.
fn read_property(text: &str, mut at: usize) -> Result<(Property, usize), Broken> {
    let (bytes, begin) = (text.as_bytes(), at);
    let end = |from: usize, is_in: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|&byte| is_in(byte)).count();
    let name_end = end(at, u8::is_ascii_alphabetic);
    let name = property_name(&text[at..name_end]);
    if name.len() > 30 {
        return Err(invalid!("{} is not a property name", shown(&name)).into());
    }
    let mut values = Vec::new();
    at = end(name_end, u8::is_ascii_whitespace);
    while bytes.get(at) == Some(&b'[') {
        let mut value = String::new();
        let mut rest = text[at + 1..].char_indices();
        let length = loop {
            match rest.next() {
                None => {
                    let error = invalid!("a value of {name} lacks its closing ]: {}", shown(&text[at..]));
                    return Err(Broken { error, is_cut: true });
                }
                Some((length, ']')) => break length,
                // A line that ends in a backslash goes on in the next.
                Some((_, '\\')) => {
                    value.extend(rest.next().map(|(_, escaped)| escaped).filter(|c| !matches!(c, '\r' | '\n')))
                }
                Some((_, character)) => value.push(character),
            }
        };
        values.push(value);
        at = end(at + 1 + length + 1, u8::is_ascii_whitespace);
    }
    if values.is_empty() {
        return Err(invalid!("property {name} lacks a value: {}", shown(&text[name_end..])).into());
    }
    Ok((Property { at: begin, name, values }, at))
}
