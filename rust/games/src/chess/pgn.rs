//! PGN as its standard describes it (Edwards 1994), read and written: the tags and the moves of a game, with its
//! variations, comments and glyphs (`C` and `NAG` among the notes). Words are taken as they stand. What files of the
//! world have besides is read too: judgements as signs (±, +/-, N), quotes within a tag's value, other spellings of a
//! result.

use azpy_core::text::shown;
use azpy_core::written::{Bounds, COMMENT, Moves, Notes, Order, Part, Wrong, note};

use crate::error::{Error, invalid, wrong};

/// A game as it is written.
pub(super) struct Pgn<'a> {
    pub(super) tags: Vec<(&'a str, String)>,
    pub(super) moves: Moves<Said<'a>>,
    /// On the start.
    pub(super) notes: Notes,
    /// What stands at its end, of [`RESULTS`].
    pub(super) result: Option<&'static str>,
}

/// A move as it stands in a text, and the notes on it.
pub(super) struct Said<'a> {
    pub(super) word: &'a str,
    pub(super) notes: Notes,
}

impl Pgn<'_> {
    /// The notes on a move by its number, and on the start.
    fn notes_of(&mut self, number: usize) -> &mut Notes {
        if number == 0 { &mut self.notes } else { &mut self.moves.said_mut(number).notes }
    }

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

/// The result that a word says, also with a colon, another dash, or a draw in short.
fn result_of(word: &str) -> Option<&'static str> {
    if !word.starts_with(['0', '1', '½', '*']) || word.len() > 10 {
        return None;
    }
    let plain = word.replace(['–', '—', '−', ':'], "-").replace('½', "1/2");
    let plain = if plain == "1/2" { "1/2-1/2" } else { &plain };
    RESULTS.into_iter().find(|result| *result == plain)
}

/// Words with letters that stand behind a move and are none: of ChessBase and the Informant (novelty, diagram, with the
/// idea), and of old books (check, mate). A move without a digit is castling.
const REMARKS: [&str; 8] = ["N", "TN", "D", "RR", "Δ", "ch", "dbl", "mate"];

/// The name of glyphs among the notes: their numbers (Edwards 1994, 10).
const GLYPH: &str = "NAG";
/// What people write in place of a number.
const GLYPHS: [(&str, u8); 21] = [
    ("!", 1),
    ("?", 2),
    ("!!", 3),
    ("??", 4),
    ("!?", 5),
    ("?!", 6),
    ("=", 10),
    ("∞", 13),
    ("+=", 14),
    ("⩲", 14),
    ("=+", 15),
    ("⩱", 15),
    ("+/-", 16),
    ("±", 16),
    ("-/+", 17),
    ("∓", 17),
    ("+-", 18),
    ("-+", 19),
    ("N", 146),
    ("TN", 146),
    ("D", 220),
];

/// The glyphs in a text that has nothing else, but signs of check.
fn glyphs_in(text: &str) -> Vec<String> {
    let (sign, numbers) = text.split_at(text.find('$').unwrap_or(text.len()));
    let known = |sign: &str| GLYPHS.iter().find(|(known, _)| *known == sign).map(|(_, number)| number.to_string());
    let sign = known(sign).or_else(|| known(sign.trim_start_matches(['+', '#'])));
    let is_number = |part: &&str| part.parse::<u8>().is_ok();
    sign.into_iter().chain(numbers.split('$').filter(is_number).map(str::to_owned)).collect()
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
        let played = next.moves.main_line().next().map(|said| said.word);
        if !next.tags.is_empty() {
            return Err(wrong(at, invalid!("more than one game; give one at a time")));
        }
        if let Some(played) = played {
            return Err(wrong(at, invalid!("{} after the result; give one game at a time", shown(played))));
        }
    }
    Ok(game)
}

/// Reads the first game of a text, which ends with its result or where the tags of another begin; and the text after
/// it. Without bounds for variations these are passed over.
pub(super) fn read_first(text: &str, variations: Option<Bounds>) -> Result<(Pgn<'_>, &str), Wrong> {
    let mut rest = text;
    match scan(&mut rest, variations) {
        Ok(game) => Ok((game, rest)),
        Err(error) => Err(wrong(text.len() - rest.len(), error)),
    }
}

/// The text from the next game on that begins behind byte `at`: where a text is wrong, the games behind can be read.
pub(super) fn next_game(text: &str, mut at: usize) -> &str {
    at = at.max(1);
    while at < text.len() {
        if text.as_bytes()[at - 1] == b'\n' && begins_game(text, at) {
            return &text[at..];
        }
        at = text.as_bytes()[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| at + end + 1);
    }
    ""
}

/// Whether the line that begins at byte `at` is the first of a game: the tag Event, or any tag behind an empty line.
fn begins_game(text: &str, at: usize) -> bool {
    let Some(tag) = text[at..].strip_prefix('[') else { return false };
    let name_end = tag.find(|letter: char| !is_of_tag_name(letter)).unwrap_or(tag.len());
    let (name, value) = tag.split_at(name_end);
    let before = text[..at].trim_end_matches([' ', '\t', '\r']);
    let before = before.strip_suffix('\n').unwrap_or(before).trim_end_matches([' ', '\t', '\r']);
    let is_tag = name_end > 0 && value.trim_start_matches([' ', '\t']).starts_with('"');
    is_tag && (name == "Event" || before.ends_with('\n'))
}

/// The comment whose { has been read, and the text behind it. A comment that goes on into the next game has no end.
fn read_comment(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && begins_game(text, at) {
            return None;
        }
        if let Some(end) = line.find('}') {
            return Some((&text[..at + end], &text[at + end + 1..]));
        }
        at += line.len();
    }
    None
}

/// A comment as it can be written: on one line, as readers keep line breaks, and without the } that would end it.
fn plain(comment: &str) -> String {
    comment.replace('}', ")").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Takes a game from the beginning of a text; what is wrong stands there then.
fn scan<'a>(rest: &mut &'a str, variations: Option<Bounds>) -> Result<Pgn<'a>, Error> {
    let bounds = variations.unwrap_or(Bounds { moves: MOST, depth: 0 });
    let mut game = Pgn { tags: Vec::new(), moves: Moves::new(bounds), notes: Notes::new(), result: None };
    // A count and a list, not a recursion: variations may be nested as deep as someone likes. The list has where each
    // begins, and the number of the last move before it.
    let (mut depth, mut open, mut last, mut line_ended) = (0_usize, Vec::new(), 0_usize, true);
    // A comment before the first move of a variation is one on that move.
    let mut ahead = None::<Notes>;
    while let Some(first) = rest.chars().next() {
        let here: &'a str = rest;
        let after = &here[first.len_utf8()..];
        let begins_line = std::mem::replace(&mut line_ended, matches!(first, '\n' | '\r'));
        *rest = match first {
            _ if first.is_whitespace() => after,
            '%' if begins_line => end_of_line(after),
            ';' | '{' => {
                let (comment, after) = if first == '{' {
                    read_comment(after).ok_or_else(|| invalid!("a comment that starts with {{ lacks its closing }}"))?
                } else {
                    after.split_at(after.len() - end_of_line(after).len())
                };
                if variations.is_some() && !comment.trim().is_empty() {
                    let notes = ahead.as_mut().unwrap_or_else(|| game.notes_of(last));
                    note(notes, COMMENT, plain(comment), " ");
                }
                after
            }
            '(' => {
                depth += 1;
                if variations.is_some() {
                    open.push((here, last));
                    let replaced = last
                        .checked_sub(1)
                        .ok_or_else(|| invalid!("a variation that begins with ( stands for no move"))?;
                    last = game.moves.all()[replaced].0;
                    ahead = Some(Notes::new());
                }
                after
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or_else(|| invalid!("a ) without its ("))?;
                last = open.pop().map_or(last, |(_, last)| last);
                ahead = None;
                after
            }
            '[' if depth == 0 => {
                if !game.moves.is_empty() {
                    return Ok(game);
                }
                let ((name, value), after) = read_tag(after)?;
                let result = if name == "Result" { result_of(value.trim()) } else { None };
                game.tags.push((name, result.map_or(value, str::to_owned)));
                if game.tags.len() > MOST {
                    return Err(invalid!("a game of more than {MOST} tags"));
                }
                after
            }
            '}' | '[' | ']' => return Err(invalid!("{first:?} where a move was expected: {}", shown(here))),
            _ => {
                let ends = |letter: char| letter.is_whitespace() || "{}()[];".contains(letter);
                let (word, after) = here.split_at(here.find(ends).unwrap_or(here.len()));
                // Signs may stand behind a remark, but no number before it: there a move was meant.
                let is_remark = |played| REMARKS.contains(&played) && word.starts_with(played);
                if let Some(result) = result_of(word) {
                    if depth == 0 {
                        game.result = Some(result);
                        *rest = after;
                        return Ok(game);
                    }
                } else if depth == 0 || variations.is_some() {
                    let played = move_in(word).filter(|played| game.moves.is_empty() || !is_remark(played));
                    let mut signs = word;
                    if let Some(played) = played {
                        last = game.moves.push(last, Said { word: played, notes: ahead.take().unwrap_or_default() })?;
                        signs = &word[played.as_ptr() as usize - word.as_ptr() as usize + played.len()..];
                    }
                    if variations.is_some() && last > 0 {
                        let found = glyphs_in(signs).into_iter();
                        found.for_each(|glyph| note(game.notes_of(last), GLYPH, glyph, ""));
                    }
                }
                after
            }
        };
    }
    if depth > 0 {
        *rest = open.pop().map_or(*rest, |(begin, _)| begin);
        return Err(invalid!("a variation that starts with ( lacks its closing )"));
    }
    Ok(game)
}

fn end_of_line(text: &str) -> &str {
    text.find(['\n', '\r']).map_or("", |end| &text[end..])
}

/// The move in a word, without a number before it and signs behind it; nothing for numbers and signs alone.
fn move_in(word: &str) -> Option<&str> {
    const DOTS: [char; 2] = ['.', '…'];
    let behind = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    // 0-0 is no number, and 0000 is UCI for no move at all.
    let is_number =
        behind.len() < word.len() && !word.starts_with('0') && (behind.is_empty() || behind.starts_with(DOTS));
    let rest = if is_number { behind } else { word }.trim_start_matches(DOTS);
    // The null move, which other programs write: it is refused as a move.
    if rest == "--" {
        return Some(rest);
    }
    let played = rest.split_once('$').map_or(rest, |(played, _)| played);
    let played = played.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let played = played.strip_suffix("e.p").or_else(|| played.strip_suffix("ep")).unwrap_or(played);
    (!played.is_empty()).then_some(played)
}

fn is_of_tag_name(letter: char) -> bool {
    // The standard has letters, digits and _; python-chess reads the others too.
    letter.is_ascii_alphanumeric() || "_+#=:-".contains(letter)
}

/// The tag whose [ has been read, and the text after it. It ends in its line. A quote within the value that no ]
/// follows is a part of the value, with a backslash before it or without.
fn read_tag(text: &str) -> Result<((&str, String), &str), Error> {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let wrong = || Error::form("a tag is [Name \"value\"]", shown(&format!("[{line}")));
    let (name, value) = line.split_once('"').ok_or_else(wrong)?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(is_of_tag_name) {
        return Err(wrong());
    }
    // What stands behind a quote, where the quote can be the last one.
    let behind = |at: usize| value[at + 1..].trim_start().strip_prefix(']');
    let (mut escaped, mut end) = (false, None);
    for (at, letter) in value.char_indices() {
        if letter == '"'
            && let Some(after) = behind(at)
        {
            end = Some((at, after));
            if !escaped {
                break;
            }
        }
        escaped = letter == '\\' && !escaped;
    }
    // Where each such quote has a backslash, the value is taken to end in one, as C:\ does.
    let (end, after) = end.ok_or_else(wrong)?;
    let (mut read, mut letters) = (String::new(), value[..end].chars().peekable());
    while let Some(letter) = letters.next() {
        read.push(if letter == '\\' {
            letters.next_if(|next| matches!(next, '"' | '\\')).unwrap_or(letter)
        } else {
            letter
        });
    }
    Ok(((name, read), &text[line.len() - after.len()..]))
}

/// A move as it is written.
pub(super) struct Ply {
    pub(super) number: u16,
    pub(super) is_white: bool,
    pub(super) san: String,
    /// The result of the game, if the move ends it.
    pub(super) result: Option<&'static str>,
    /// What stands behind it.
    pub(super) notes: Vec<String>,
}

/// Notes as words behind a move.
///
/// # Errors
/// A sentence on a note that PGN does not have.
pub(super) fn remarks(notes: &Notes) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    // Glyphs stand before comments.
    for (name, values) in notes.iter().filter(|(name, _)| *name != COMMENT) {
        let is_number = |value: &&String| value.parse::<u8>().is_ok();
        if name != GLYPH || !values.iter().all(|value| is_number(&value)) {
            return Err(invalid!("{} {} is not valid in PGN", shown(name), shown(&values.join(" "))));
        }
        words.extend(values.iter().map(|value| format!("${value}")));
    }
    for comment in notes.get(COMMENT).into_iter().flatten() {
        words.push(format!("{{{}}}", plain(comment)));
    }
    Ok(words)
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

/// Whether a tag can be chosen by whoever writes a game.
pub(super) fn is_free(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_of_tag_name) && !OWN.contains(&name)
}

/// Writes a game. `own` are those tags of [`OWN`] that it has, and `before` the words before its first move.
///
/// # Errors
/// A sentence on a tag that cannot be written.
pub(super) fn write(
    tags: &[(String, String)],
    own: &[(&str, String)],
    before: Vec<String>,
    moves: &Moves<Ply>,
) -> Result<String, Error> {
    let given = |wanted: &str| tags.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let ending = moves.main_line().last().and_then(|ply| ply.result);
    let result = given("Result").or(ending).unwrap_or("*");
    if !RESULTS.contains(&result) {
        return Err(invalid!("tag Result: expected one of {}, got {}", RESULTS.join(", "), shown(result)));
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
        if !is_free(name) {
            return Err(invalid!("{} is not a tag that can be set", shown(name)));
        }
        put(name, value);
    }
    text.push('\n');
    let mut width = 0;
    for word in words(before, moves).iter().map(String::as_str).chain([result]) {
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

/// The moves with their numbers, variations and notes, behind other words.
fn words(mut words: Vec<String>, moves: &Moves<Ply>) -> Vec<String> {
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
                let Ply { number, is_white, san, notes, .. } = &moves.all()[at - 1].1;
                if *is_white || numbered {
                    words.push(format!(
                        "{}{number}{}",
                        std::mem::take(&mut begun),
                        if *is_white { "." } else { "..." }
                    ));
                }
                words.push(san.clone());
                words.extend(notes.iter().cloned());
                numbered = notes.last().is_some_and(|word| word.ends_with('}'));
            }
        }
    }
    words
}
