//! A line of play as text: the names of its actions, with blanks between.

use super::{Notation, shown};
use crate::error::Error;
use crate::game::{Action, GameFault, Turn, on_offer};

/// How many names an error lists, and how much of each, in characters.
const MOST_NAMES: usize = 40;
const LONGEST_NAME: usize = 30;

/// Reads a line of play by the names of actions; see [`Notation::parse_actions`].
///
/// A name of several words is as good as one of one; where one name is the beginning of another, the longer one counts.
/// A short name will do where it is that of one action alone.
///
/// # Errors
/// A sentence that names the first action that cannot be played.
pub fn read_line<G: Notation>(start: &G, text: &str) -> Result<Vec<Action>, Error> {
    let (mut state, mut actions, mut text) = (start.clone(), Vec::new(), text.trim_start());
    while !text.is_empty() {
        let number = actions.len() + 1;
        let (turn, offered) = on_offer(&state);
        if turn == Turn::Terminal {
            return Err(Error::AfterEnd { number, came: first_words(text, 1) });
        }
        // A game that breaks its promise must not read for ever.
        if actions.len() >= start.max_plies() {
            return Err(GameFault::TooLong(start.max_plies()).into());
        }
        let full = read_name(text, &offered, |action| state.action_name(action));
        let found = full.or_else(|| read_name(text, &offered, |action| state.short_name(action)));
        if let Some((Some(action), rest)) = found {
            state.play(action);
            actions.push(action);
            text = rest.trim_start();
            continue;
        }
        let words = |&action: &Action| state.action_name(action).split_whitespace().count();
        let came = first_words(text, offered.iter().map(words).max().unwrap_or(1));
        return Err(Error::Name { number, came, is_ambiguous: found.is_some(), offered: listed(&state, &offered) });
    }
    Ok(actions)
}

/// The names of actions, with blanks between; see [`Notation::format_actions`].
pub(super) fn write_line<G: Notation>(start: &G, actions: &[Action]) -> Result<String, Error> {
    let (mut state, mut names) = (start.clone(), Vec::new());
    for &action in actions {
        // A game need not have a name for an action that is not legal.
        let before = state.clone();
        state.try_play(action)?;
        names.push(before.action_name(action));
    }
    Ok(names.join(" "))
}

/// The first words of a text, as an error repeats them.
fn first_words(text: &str, count: usize) -> String {
    shown(&text.split_whitespace().take(count.max(1)).collect::<Vec<_>>().join(" "))
}

/// The action of `offered` with the longest name that `text` begins with (none if two have that name), and what
/// follows.
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
pub(super) fn listed<G: Notation>(state: &G, actions: &[Action]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Game, Player, Sizes, Value};

    /// Three plies; at each the same actions are on offer, by these names and short names.
    #[derive(Clone)]
    struct Names {
        plies: usize,
        names: &'static [(&'static str, &'static str)],
    }

    impl Game for Names {
        type Payoff = Value;

        fn sizes(&self) -> Sizes {
            Sizes { num_actions: self.names.len(), obs_shape: [1, 1, 1], max_plies: 3, num_symmetries: 1 }
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
        fn render(&self) -> String {
            "<&>\u{1b}[1m".to_owned()
        }
    }

    impl Notation for Names {
        fn action_name(&self, action: Action) -> String {
            self.names[action as usize].0.to_owned()
        }
        fn short_name(&self, action: Action) -> String {
            self.names[action as usize].1.to_owned()
        }
    }

    fn read(names: &'static [(&'static str, &'static str)], text: &str) -> Result<Vec<Action>, Error> {
        Names { plies: 0, names }.parse_actions(text)
    }

    fn refused(names: &'static [(&'static str, &'static str)], text: &str) -> String {
        read(names, text).unwrap_err().to_string()
    }

    #[test]
    fn names_may_have_several_words_and_the_longest_counts() {
        let names = &[("take", "t"), ("take two", "tt"), ("take  two more", "m"), ("two", "2")];
        assert_eq!(read(names, " take\ttwo take  two"), Ok(vec![1, 1]));
        assert_eq!(read(names, "take two more two take"), Ok(vec![2, 3, 0]));
        let error = refused(names, "taketwo");
        assert!(error.ends_with("not among the legal ones: take, take two, take  two more, two"), "{error}");
        assert_eq!(read(names, "t m"), Ok(vec![0, 2]));
        assert_eq!(read(names, ""), Ok(vec![]));
    }

    #[test]
    fn a_short_name_of_two_actions_is_no_name() {
        let names = &[("Nb1d2", "Nd2"), ("Nf3d2", "Nd2"), ("", " ")];
        assert_eq!(read(names, "Nf3d2"), Ok(vec![1]));
        assert_eq!(
            refused(names, "Nf3d2 Nd2"),
            "action 2 is \"Nd2\", which names more than one of the legal ones: Nb1d2, Nf3d2, "
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_and_cut() {
        let names = &[("a", "a"), ("b", "b")];
        assert_eq!(refused(names, "a b c"), "action 3 is \"c\", which is not among the legal ones: a, b");
        assert_eq!(refused(names, "a b a b"), "action 4 is \"b\", but the game is over before it");
        assert!(refused(names, &"z".repeat(1_000_000)).len() < 200);
        let endless = Names { plies: 100, names };
        let error = endless.parse_actions(&"a ".repeat(1_000_000)).unwrap_err();
        assert_eq!(error, GameFault::TooLong(3).into());
    }
}
