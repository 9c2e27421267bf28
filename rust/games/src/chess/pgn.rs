//! PGN as its standard describes it (Edwards 1994): the tags and the moves of one game. Comments, variations, glyphs,
//! move numbers and the result are passed over; words are taken as they stand.

use azpy_core::text::shown;

/// A game as it is written.
#[derive(Default)]
pub(super) struct Pgn<'a> {
    pub(super) tags: Vec<(&'a str, String)>,
    pub(super) moves: Vec<&'a str>,
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
/// Tags and moves of a game: no text may fill the memory with more.
const MOST: usize = 100_000;

/// Reads one game; tags may be missing, and all but the moves.
pub(super) fn read(text: &str) -> Result<Pgn<'_>, String> {
    let (game, mut rest) = read_first(text)?;
    while !rest.is_empty() {
        let next;
        (next, rest) = read_first(rest)?;
        if !next.tags.is_empty() {
            return Err("more than one game; give one at a time".to_owned());
        }
        if let Some(played) = next.moves.first() {
            return Err(format!("{} after the result; give one game at a time", shown(played)));
        }
    }
    Ok(game)
}

/// Reads the first game of a text, which ends with its result or where the tags of another begin; and the text after it.
pub(super) fn read_first(text: &str) -> Result<(Pgn<'_>, &str), String> {
    let mut game = Pgn::default();
    let mut rest = text.trim_start_matches('\u{feff}');
    // A count, not a recursion: variations may be nested as deep as someone likes.
    let (mut open_variations, mut line_ended) = (0_usize, true);
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let begins_line = std::mem::replace(&mut line_ended, first == '\n');
        rest = match first {
            _ if first.is_whitespace() => after,
            '%' if begins_line => end_of_line(after),
            ';' => end_of_line(after),
            '{' => after.split_once('}').ok_or("a comment that begins with { has no end")?.1,
            '(' => {
                open_variations += 1;
                after
            }
            ')' => {
                open_variations = open_variations.checked_sub(1).ok_or("a ) without its (")?;
                after
            }
            '[' if open_variations == 0 => {
                if !game.moves.is_empty() {
                    return Ok((game, rest));
                }
                let (tag, after) = read_tag(after)?;
                game.tags.push(tag);
                after
            }
            '}' | '[' | ']' => return Err(format!("{first:?} where a move was expected: {}", shown(rest))),
            _ => {
                let ends = |letter: char| letter.is_whitespace() || "{}()[];".contains(letter);
                let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                if open_variations > 0 {
                    // Of no interest.
                } else if RESULTS.contains(&word) {
                    game.result = Some(word);
                    return Ok((game, after));
                } else if let Some(played) = move_in(word) {
                    game.moves.push(played);
                }
                if game.moves.len() + game.tags.len() > MOST {
                    return Err(format!("a game of more than {MOST} moves and tags"));
                }
                after
            }
        };
    }
    if open_variations > 0 {
        return Err("a variation that begins with ( has no end".to_owned());
    }
    Ok((game, ""))
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

/// The tag whose [ has been read, and the text after it.
fn read_tag(text: &str) -> Result<((&str, String), &str), String> {
    let wrong =
        || format!("a tag is [Name \"value\"], got {}", shown(&format!("[{}", text.lines().next().unwrap_or(""))));
    let (name, rest) = text.split_once('"').ok_or_else(wrong)?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
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
