//! Positions as people read and write them: what games get without writing it, and what they build theirs from.
//!
//! Lines of play are read by the names of actions, and no game reads more of a text than it can have plies. Whatever an
//! error repeats of a text is cut ([`shown`]). Knows nothing of any notation.

use crate::game::{Action, Game, GameFault, Turn};

/// How much of a text an error repeats, how many names it lists, and how much of each, in characters.
const MOST_SHOWN: usize = 60;
const MOST_NAMES: usize = 40;
const LONGEST_NAME: usize = 30;

/// A text as an error repeats it: in quotes, on one line, cut where it is long.
///
/// ```
/// assert_eq!(azpy_core::text::shown("a\n"), r#""a\n""#);
/// assert!(azpy_core::text::shown(&"a".repeat(1000)).ends_with("a\" and 940 more characters"));
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    let mut rest = text.chars();
    let start: String = rest.by_ref().take(MOST_SHOWN).collect();
    match rest.count() {
        0 => format!("{start:?}"),
        more => format!("{start:?} and {more} more characters"),
    }
}

/// A text as it may stand in an XML document, also as an attribute. Characters that no document can hold are replaced.
#[must_use]
pub fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\t' | '\n' => out.push(' '),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

/// The position that a line of play leads to from `start`: what [`Game::parse`] is for a game without a notation of
/// positions, and for one that has a notation where a text is not in it.
///
/// # Errors
/// See [`Game::parse_actions`].
pub fn play_line<G: Game>(start: &G, text: &str) -> Result<G, String> {
    let mut state = start.clone();
    for action in start.parse_actions(text)? {
        state.try_play(action).map_err(|error| error.to_string())?;
    }
    Ok(state)
}

/// Reads a line of play by the names of actions; see [`Game::parse_actions`].
///
/// A name of several words is as good as one of one; where one name is the beginning of another, the longer one counts.
/// A short name will do where it is that of one action alone.
pub(crate) fn read_line<G: Game>(start: &G, text: &str) -> Result<Vec<Action>, String> {
    let (mut state, mut actions, mut text) = (start.clone(), Vec::new(), text.trim_start());
    while !text.is_empty() {
        let number = actions.len() + 1;
        let Some(offered) = on_offer(&state) else {
            return Err(format!("action {number} is {}, but the game is over before it", first_words(text, 1)));
        };
        // A game that breaks its promise must not read for ever.
        if actions.len() >= start.max_plies() {
            return Err(GameFault::TooLong(start.max_plies()).to_string());
        }
        let full = read_name(text, &offered, |action| state.action_name(action));
        let found = full.or_else(|| read_name(text, &offered, |action| state.short_name(action)));
        let problem = match found {
            Some((Some(action), rest)) => {
                state.play(action);
                actions.push(action);
                text = rest.trim_start();
                continue;
            }
            Some((None, _)) => "names more than one of the legal ones",
            None => "is not among the legal ones",
        };
        let words = |&action: &Action| state.action_name(action).split_whitespace().count();
        let came = first_words(text, offered.iter().map(words).max().unwrap_or(1));
        return Err(format!("action {number} is {came}, which {problem}: {}", listed(&state, &offered)));
    }
    Ok(actions)
}

/// The first words of a text, as an error repeats them.
fn first_words(text: &str, count: usize) -> String {
    shown(&text.split_whitespace().take(count.max(1)).collect::<Vec<_>>().join(" "))
}

/// What can be played here, or rolled; `None` where the game is over.
fn on_offer<G: Game>(state: &G) -> Option<Vec<Action>> {
    let mut offered = Vec::new();
    match state.turn() {
        Turn::Player(_) => state.legal_actions(&mut offered),
        Turn::Chance => {
            let mut outcomes = Vec::new();
            state.chance_outcomes(&mut outcomes);
            offered.extend(outcomes.into_iter().map(|(outcome, _)| outcome));
        }
        Turn::Terminal => return None,
    }
    Some(offered)
}

/// The action of `offered` with the longest name that `text` begins with (none if two have that name), and what follows.
fn read_name<'a>(
    text: &'a str,
    offered: &[Action],
    name: impl Fn(Action) -> String,
) -> Option<(Option<Action>, &'a str)> {
    let mut found: Option<(Option<Action>, &str)> = None;
    for &action in offered {
        let Some(rest) = after_words(text, &name(action)) else { continue };
        found = match found {
            Some((_, shorter)) if shorter.len() < rest.len() => found,
            Some((_, same)) if same.len() == rest.len() => Some((None, rest)),
            _ => Some((Some(action), rest)),
        };
    }
    found
}

/// What follows the words of `name` in `text`, if it begins with them.
fn after_words<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = None;
    for word in name.split_whitespace() {
        let after = rest.unwrap_or(text).trim_start().strip_prefix(word)?;
        rest = Some(after).filter(|after| after.is_empty() || after.starts_with(char::is_whitespace));
        rest?;
    }
    rest
}

/// The first names of `actions`.
fn listed<G: Game>(state: &G, actions: &[Action]) -> String {
    let name = |&action: &Action| {
        let name = state.action_name(action);
        let start: String = name.chars().take(LONGEST_NAME).collect();
        if start.len() < name.len() { start + "..." } else { start }
    };
    let mut names: Vec<_> = actions.iter().take(MOST_NAMES).map(name).collect();
    if actions.len() > names.len() {
        names.push(format!("and {} more", actions.len() - names.len()));
    }
    names.join(", ")
}

/// Text as a picture, for games that draw none.
pub(crate) fn text_svg(text: &str) -> String {
    const LINE: usize = 20;
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let (width, height) = (width * 10 + 2 * LINE, (text.lines().count() + 2) * LINE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\
         <g font-family=\"monospace\" font-size=\"16\" fill=\"#202020\" xml:space=\"preserve\">"
    );
    for (number, line) in text.lines().enumerate() {
        svg += &format!("<text x=\"{LINE}\" y=\"{}\">{}</text>", (number + 2) * LINE - 5, xml_text(line));
    }
    svg + "</g></svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Player, Value};

    /// Three plies; at each the same actions are on offer, by these names and short names.
    #[derive(Clone)]
    struct Names {
        plies: usize,
        names: &'static [(&'static str, &'static str)],
    }

    impl Game for Names {
        fn num_actions(&self) -> usize {
            self.names.len()
        }
        fn obs_shape(&self) -> [usize; 3] {
            [1, 1, 1]
        }
        fn max_plies(&self) -> usize {
            3
        }
        fn turn(&self) -> Turn {
            // A game of no plies never ends: it breaks its promise.
            if self.plies == 3 { Turn::Terminal } else { Turn::Player(Player::Zero) }
        }
        fn legal_actions(&self, out: &mut Vec<Action>) {
            out.clear();
            out.extend(0..self.names.len() as Action);
        }
        fn play(&mut self, _: Action) {
            self.plies += 1;
        }
        fn outcome(&self) -> Value {
            Value(0.0)
        }
        fn encode(&self, row: &mut [f32]) {
            row.fill(0.0);
        }
        fn key(&self) -> u128 {
            self.plies as u128
        }
        fn action_name(&self, action: Action) -> String {
            self.names[action as usize].0.to_owned()
        }
        fn short_name(&self, action: Action) -> String {
            self.names[action as usize].1.to_owned()
        }
        fn render(&self) -> String {
            "<&>\u{1b}[1m".to_owned()
        }
    }

    fn read(names: &'static [(&'static str, &'static str)], text: &str) -> Result<Vec<Action>, String> {
        Names { plies: 0, names }.parse_actions(text)
    }

    #[test]
    fn names_may_have_several_words_and_the_longest_counts() {
        let names = &[("take", "t"), ("take two", "tt"), ("take  two more", "m"), ("two", "2")];
        assert_eq!(read(names, " take\ttwo take  two"), Ok(vec![1, 1]));
        assert_eq!(read(names, "take two more two take"), Ok(vec![2, 3, 0]));
        assert!(
            read(names, "taketwo")
                .unwrap_err()
                .ends_with("not among the legal ones: take, take two, take  two more, two")
        );
        assert_eq!(read(names, "t m"), Ok(vec![0, 2]));
        assert_eq!(read(names, ""), Ok(vec![]));
    }

    #[test]
    fn a_short_name_of_two_actions_is_no_name() {
        let names = &[("Nb1d2", "Nd2"), ("Nf3d2", "Nd2"), ("", " ")];
        assert_eq!(read(names, "Nf3d2"), Ok(vec![1]));
        let error = read(names, "Nf3d2 Nd2").unwrap_err();
        assert_eq!(error, "action 2 is \"Nd2\", which names more than one of the legal ones: Nb1d2, Nf3d2, ");
    }

    #[test]
    fn what_cannot_be_read_is_said_and_cut() {
        let names = &[("a", "a"), ("b", "b")];
        assert_eq!(read(names, "a b c").unwrap_err(), "action 3 is \"c\", which is not among the legal ones: a, b");
        assert_eq!(read(names, "a b a b").unwrap_err(), "action 4 is \"b\", but the game is over before it");
        assert!(read(names, &"z".repeat(1_000_000)).unwrap_err().len() < 200);
        let endless = Names { plies: 100, names };
        assert!(endless.parse_actions(&"a ".repeat(1_000_000)).unwrap_err().contains("longer than max_plies (3)"));
    }

    #[test]
    fn text_as_a_picture_is_xml() {
        let svg = Names { plies: 0, names: &[] }.to_svg();
        assert!(svg.contains(">&lt;&amp;&gt;\u{fffd}[1m</text>"), "{svg}");
    }
}
