//! PGN as its standard describes it (Edwards 1994), read and written: the tags and the moves of a game, with its
//! variations. Comments, glyphs and move numbers are passed over; words are taken as they stand.

use azpy_core::text::shown;
use azpy_core::written::{Bounds, Moves, Order, Part, Wrong};

/// A game as it is written.
pub(super) struct Pgn<'a> {
    pub(super) tags: Vec<(&'a str, String)>,
    pub(super) moves: Moves<&'a str>,
    /// What stands at its end, of [`RESULTS`].
    pub(super) result: Option<&'a str>,
}

impl Pgn<'_> {
    /// The value of a tag.
    pub(super) fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(tag, _)| *tag == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.moves.is_empty() && self.result.is_none()
    }
}

const RESULTS: [&str; 4] = ["1-0", "0-1", "1/2-1/2", "*"];
/// Whether a text says who won, or that nobody did.
pub(super) fn is_result(text: &str) -> bool {
    text != "*" && RESULTS.contains(&text)
}

/// Tags of a game, and moves of its main line: no text may fill the memory with more.
const MOST: usize = 100_000;

/// Reads one game; tags may be missing, and all but the moves. See [`read_first`].
pub(super) fn read(text: &str, variations: Option<Bounds>) -> Result<Pgn<'_>, Wrong> {
    let (game, mut rest) = read_first(text, variations)?;
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let next;
        (next, rest) = read_first(rest, None).map_err(|Wrong { at: more, why }| Wrong { at: at + more, why })?;
        let played = next.moves.main_line().next();
        if !next.tags.is_empty() {
            return Err(Wrong { at, why: "more than one game; give one at a time".to_owned() });
        }
        if let Some(played) = played {
            return Err(Wrong { at, why: format!("{} after the result; give one game at a time", shown(played)) });
        }
    }
    Ok(game)
}

/// Reads the first game of a text, which ends with its result or where the tags of another begin; and the text after it.
/// Without bounds for variations these are passed over.
pub(super) fn read_first(text: &str, variations: Option<Bounds>) -> Result<(Pgn<'_>, &str), Wrong> {
    let mut rest = text;
    match scan(&mut rest, variations) {
        Ok(game) => Ok((game, rest)),
        Err(why) => Err(Wrong { at: text.len() - rest.len(), why }),
    }
}

/// Takes a game from the beginning of a text; what is wrong stands there then.
fn scan<'a>(rest: &mut &'a str, variations: Option<Bounds>) -> Result<Pgn<'a>, String> {
    let bounds = variations.unwrap_or(Bounds { moves: MOST, depth: 0 });
    let mut game = Pgn { tags: Vec::new(), moves: Moves::new(bounds), result: None };
    *rest = rest.trim_start_matches('\u{feff}');
    // A count and a list, not a recursion: variations may be nested as deep as someone likes. The list has where each
    // begins, and the number of the last move before it.
    let (mut depth, mut open, mut last, mut line_ended) = (0_usize, Vec::new(), 0_usize, true);
    while let Some(first) = rest.chars().next() {
        let here: &'a str = rest;
        let after = &here[first.len_utf8()..];
        let begins_line = std::mem::replace(&mut line_ended, first == '\n');
        *rest = match first {
            _ if first.is_whitespace() => after,
            '%' if begins_line => end_of_line(after),
            ';' => end_of_line(after),
            '{' => after.split_once('}').ok_or("a comment that begins with { has no end")?.1,
            '(' => {
                depth += 1;
                if variations.is_some() {
                    open.push((here, last));
                    let replaced = last.checked_sub(1).ok_or("a variation that begins with ( stands for no move")?;
                    last = game.moves.all()[replaced].0;
                }
                after
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or("a ) without its (")?;
                last = open.pop().map_or(last, |(_, last)| last);
                after
            }
            '[' if depth == 0 => {
                if !game.moves.is_empty() {
                    return Ok(game);
                }
                let (tag, after) = read_tag(after)?;
                game.tags.push(tag);
                if game.tags.len() > MOST {
                    return Err(format!("a game of more than {MOST} tags"));
                }
                after
            }
            '}' | '[' | ']' => return Err(format!("{first:?} where a move was expected: {}", shown(here))),
            _ => {
                let ends = |letter: char| letter.is_whitespace() || "{}()[];".contains(letter);
                let (word, after) = here.split_at(here.find(ends).unwrap_or(here.len()));
                if RESULTS.contains(&word) {
                    if depth == 0 {
                        game.result = Some(word);
                        *rest = after;
                        return Ok(game);
                    }
                } else if let Some(played) = move_in(word)
                    && (depth == 0 || variations.is_some())
                {
                    last = game.moves.push(last, played)?;
                }
                after
            }
        };
    }
    if depth > 0 {
        *rest = open.pop().map_or(*rest, |(begin, _)| begin);
        return Err("a variation that begins with ( has no end".to_owned());
    }
    Ok(game)
}

fn end_of_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

/// The move in a word, without a number before it; nothing for numbers and glyphs alone.
fn move_in(word: &str) -> Option<&str> {
    let behind = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    // 0-0 is no number, and 0000 is UCI for no move at all.
    let is_number =
        behind.len() < word.len() && !word.starts_with('0') && (behind.is_empty() || behind.starts_with('.'));
    let rest = if is_number { behind } else { word }.trim_start_matches('.');
    let glyph = rest.starts_with('$') || rest == "e.p." || rest.chars().all(|letter| matches!(letter, '!' | '?'));
    (!glyph).then_some(rest)
}

fn is_tag_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The tag whose [ has been read, and the text after it.
fn read_tag(text: &str) -> Result<((&str, String), &str), String> {
    let wrong =
        || format!("a tag is [Name \"value\"], got {}", shown(&format!("[{}", text.lines().next().unwrap_or(""))));
    let (name, rest) = text.split_once('"').ok_or_else(wrong)?;
    let name = name.trim();
    if !is_tag_name(name) {
        return Err(wrong());
    }
    let (mut value, mut escaped) = (String::new(), false);
    for (at, letter) in rest.char_indices() {
        match letter {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => {
                let after = rest[at + 1..].trim_start().strip_prefix(']').ok_or_else(wrong)?;
                return Ok(((name, value), after));
            }
            _ => {
                value.push(letter);
                escaped = false;
            }
        }
    }
    Err(wrong())
}

/// A move as it is written.
pub(super) struct Ply {
    pub(super) number: u16,
    pub(super) is_white: bool,
    pub(super) san: String,
    /// The result of the game, if the move ends it.
    pub(super) result: Option<&'static str>,
}

/// The tags that every game has, with what they say where nothing is known (Edwards 1994, 8.1.1).
const ROSTER: [(&str, &str); 7] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
    ("Result", "*"),
];
/// The tags that say where a game begins.
const OWN: [&str; 3] = ["Variant", "SetUp", "FEN"];
const WIDTH: usize = 80;

/// Writes a game. `own` are those tags of [`OWN`] that it has.
///
/// # Errors
/// A sentence on a tag that cannot be written.
pub(super) fn write(tags: &[(String, String)], own: &[(&str, String)], moves: &Moves<Ply>) -> Result<String, String> {
    let given = |wanted: &str| tags.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let ending = moves.main_line().last().and_then(|ply| ply.result);
    let result = given("Result").or(ending).unwrap_or("*");
    if !RESULTS.contains(&result) {
        return Err(format!("tag Result: expected one of {}, got {}", RESULTS.join(", "), shown(result)));
    }
    let mut text = String::new();
    let mut put = |name: &str, value: &str| {
        // A tag is one line.
        let value = value.replace(char::is_control, " ").replace('\\', "\\\\").replace('"', "\\\"");
        text += &format!("[{name} \"{value}\"]\n");
    };
    for (name, unknown) in ROSTER {
        put(name, if name == "Result" { result } else { given(name).unwrap_or(unknown) });
    }
    for (name, value) in own {
        put(name, value);
    }
    for (name, value) in tags.iter().filter(|(name, _)| ROSTER.iter().all(|(known, _)| known != name)) {
        if !is_tag_name(name) || OWN.contains(&&name[..]) {
            return Err(format!("{} is no tag to choose", shown(name)));
        }
        put(name, value);
    }
    text.push('\n');
    let mut width = 0;
    for word in words(moves).iter().map(String::as_str).chain([result]) {
        if width > 0 {
            let fits = width + 1 + word.len() <= WIDTH;
            text.push(if fits { ' ' } else { '\n' });
            width = if fits { width + 1 } else { 0 };
        }
        text += word;
        width += word.len();
    }
    Ok(text + "\n")
}

/// The moves with their numbers and variations.
fn words(moves: &Moves<Ply>) -> Vec<String> {
    let mut words = Vec::<String>::new();
    // Black's move has its number where no move of White stands before it.
    let (mut begun, mut numbered) = (String::new(), true);
    for part in moves.parts(Order::Behind) {
        match part {
            Part::Open => {
                begun.push('(');
                numbered = true;
            }
            Part::Close => {
                words.last_mut().expect("a variation has a move").push(')');
                numbered = true;
            }
            Part::Move(at) => {
                let Ply { number, is_white, san, .. } = &moves.all()[at - 1].1;
                if *is_white || numbered {
                    words.push(format!(
                        "{}{number}{}",
                        std::mem::take(&mut begun),
                        if *is_white { "." } else { "..." }
                    ));
                }
                words.push(san.clone());
                numbered = false;
            }
        }
    }
    words
}
