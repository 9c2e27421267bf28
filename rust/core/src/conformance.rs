//! The rules that every game must keep. The tests of the built-in games and az-check-game both call these checks.
//!
//! A [`Walk`] plays a line of actions and checks the position at its end. It reports a broken rule as a [`Violation`].

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::{fmt, iter};

mod facts;
mod views;

pub use facts::Facts;

use self::facts::short;
use self::views::Views;
use crate::game::{Action, Game, Payoff, PlayError, Turn};
use crate::text::Notation;

/// A broken rule. `E` is the error type of a game that can fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation<E> {
    /// The rule's name; "exception" if the game failed with `error`.
    pub rule: &'static str,
    /// What the game gave.
    pub got: String,
    /// What the rule asks for.
    pub expected: String,
    /// The rule is broken in the position after this action.
    pub action: Option<Action>,
    /// A line of play that contradicts this one.
    pub other: Option<Vec<Action>>,
    /// The error of a game that can fail.
    pub error: Option<E>,
}

impl<E> Violation<E> {
    fn new(rule: &'static str, got: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { rule, got: got.into(), expected: expected.into(), action: None, other: None, error: None }
    }
}

/// The violation of a game that failed.
fn failed<E>(error: E) -> Violation<E> {
    Violation { error: Some(error), ..Violation::new("exception", "an error", "an answer") }
}

impl<E> fmt::Display for Violation<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: got {}, expected {}", self.rule, self.got, self.expected)
    }
}

/// What was seen of a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// All that a search can ask.
    pub facts: Facts,
    /// The key after each action: of many actions evenly chosen ones, the same in equal positions.
    pub followers: Vec<(Action, u128)>,
    /// The outcome for the player to move after each of those actions that ends the game.
    pub ends: Vec<(Action, f32)>,
    /// A name that several legal actions have, and how many.
    pub shared_name: Option<(String, usize)>,
    /// A line of play to a position that looks the same to the player to move, with another view.
    pub same_look: Option<Vec<Action>>,
}

/// How a walk copies a position, and how it learns that a game has failed.
pub struct Hooks<G, E> {
    /// Copies a position.
    pub copy: fn(&G) -> Result<G, E>,
    /// Takes the error of the game, if there is one.
    pub take_error: fn(&G) -> Result<(), E>,
}

impl<G: Clone> Hooks<G, Infallible> {
    /// For games that cannot fail.
    pub fn infallible() -> Self {
        Self { copy: |state| Ok(state.clone()), take_error: |_| Ok(()) }
    }
}

/// A line of actions from a start, and the position at its end.
pub struct Walk<G, E> {
    start: G,
    /// Answers questions before every ply.
    state: G,
    /// A clone of the previous position, after `try_play`.
    by_clone: G,
    line: Vec<Action>,
    /// Key of each earlier position -> its ply.
    keys: HashMap<u128, usize>,
    /// What the players of all lines so far saw, in a game that hides something.
    views: Views,
    /// The image of the position under each symmetry.
    images: Vec<(usize, G)>,
    first_images: Vec<(usize, G)>,
    hooks: Hooks<G, E>,
    thorough: bool,
}

impl<G: Notation, E> Walk<G, E> {
    /// A walk at its start.
    ///
    /// # Arguments
    /// * `images`: the start's images under symmetries; see [`own_images`].
    /// * `thorough`: also tries illegal actions, and follows up to 1,000 legal actions of a position in place of 64.
    ///
    /// # Errors
    /// The game cannot be copied.
    pub fn new(start: &G, images: Vec<(usize, G)>, hooks: Hooks<G, E>, thorough: bool) -> Result<Self, Violation<E>> {
        let copy = || (hooks.copy)(start).map_err(failed);
        let (start, state, by_clone) = (copy()?, copy()?, copy()?);
        let first_images = images.clone();
        let (line, keys, views) = (Vec::new(), HashMap::new(), Views::default());
        Ok(Self { start, state, by_clone, line, keys, views, images, first_images, hooks, thorough })
    }

    /// Goes back to the start.
    ///
    /// # Errors
    /// The game cannot be copied.
    pub fn restart(&mut self) -> Result<(), Violation<E>> {
        (self.state, self.by_clone) = (self.copy(&self.start)?, self.copy(&self.start)?);
        self.images.clone_from(&self.first_images);
        self.line.clear();
        self.keys.clear();
        self.views.restart();
        Ok(())
    }

    /// The position.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// The symmetries under which the walk plays images of its line.
    pub fn symmetries(&self) -> impl Iterator<Item = usize> {
        self.images.iter().map(|&(symmetry, _)| symmetry)
    }

    /// The facts of the position.
    ///
    /// # Errors
    /// The error that the game met.
    pub fn facts(&self) -> Result<Facts, Violation<E>> {
        self.facts_of(&self.state)
    }

    /// Plays an action. Gives false, and plays nothing, if the position does not offer the action.
    ///
    /// # Errors
    /// A rule that is broken by playing.
    pub fn play(&mut self, action: Action) -> Result<bool, Violation<E>> {
        let facts = self.facts()?;
        if !facts.playable().contains(&action) {
            return Ok(false);
        }
        self.play_on(&facts, action).map_err(|broken| Violation { action: Some(action), ..broken })?;
        Ok(true)
    }

    fn play_on(&mut self, facts: &Facts, action: Action) -> Result<(), Violation<E>> {
        self.keys.insert(facts.key, self.line.len());
        self.views.play(facts, action);
        for (symmetry, image) in &mut self.images {
            let moved = self.state.symmetric_action(*symmetry, action);
            if image.try_play(moved).is_err() {
                let got = format!("the image {moved} of action {action} under symmetry {symmetry} is illegal");
                return Err(Violation::new("symmetry", got, "a legal action in the image of the position"));
            }
        }
        self.by_clone = self.copy(&self.state)?;
        let tried = self.by_clone.try_play(action);
        self.state.play(action);
        self.line.push(action);
        self.ok(&self.state)?;
        self.ok(&self.by_clone)?;
        let refused = |error| format!("the offered action {action} is refused: {error}");
        tried.map_err(|error| Violation::new("replay", refused(error), "no error"))
    }

    /// Checks the position. `from_start` also plays the line from the start without any question on the way.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn look(&mut self, from_start: bool) -> Result<Look, Violation<E>> {
        let facts = self.facts()?;
        facts.check(self.start.num_actions(), self.start.num_players(), self.start.hides())?;
        self.same("asking", &facts, &self.state, "two reads of the same position differ in")?;
        let fixed = |state: &G| (state.num_actions(), state.obs_shape(), state.max_plies(), state.num_players());
        if fixed(&self.state) != fixed(&self.start) {
            let got = format!("{:?} as num_actions, obs_shape, max_plies and num_players", fixed(&self.state));
            return Err(Violation::new("attributes", got, format!("{:?}, as at the start", fixed(&self.start))));
        }
        let what = "after the same actions,";
        if from_start && !self.line.is_empty() {
            let mut unasked = self.copy(&self.start)?;
            self.line.iter().for_each(|&action| unasked.play(action));
            let what = format!("{what} a position that was read before every ply and one that was not differ in");
            self.same("replay", &facts, &unasked, &what)?;
        }
        if !self.line.is_empty() {
            let what = format!("{what} the position and one played on a clone differ in");
            self.same("replay", &facts, &self.by_clone, &what)?;
        }
        self.check_end(&facts)?;
        self.same("clone", &facts, &self.copy(&self.state)?, "a clone differs from its original in")?;
        let (followers, ends) = match self.follow(&facts) {
            Ok(found) => found,
            Err(broken) => {
                // A change of the original explains whatever else is wrong.
                self.unchanged(&facts, &self.state, "playing on a clone changed the original")?;
                return Err(broken);
            }
        };
        self.unchanged(&facts, &self.state, "playing on a clone changed the original")?;
        if let Some(&last) = facts.playable().last() {
            let mut original = self.copy(&self.state)?;
            let kept = self.copy(&original)?;
            original.play(last);
            self.unchanged(&facts, &kept, "playing on changed a clone made before")?;
        }
        let mut shared_name = None;
        if matches!(facts.turn, Turn::Player(_)) {
            self.check_planes(&facts)?;
            let mut names = BTreeMap::new();
            for &action in &facts.actions {
                *names.entry(self.state.action_name(action)).or_insert(0) += 1;
            }
            shared_name = names.into_iter().filter(|&(_, count)| count > 1).max_by_key(|&(_, count)| count);
        }
        if self.thorough {
            self.check_refusals(&facts)?;
        }
        self.check_text(&facts)?;
        self.check_images(&facts)?;
        self.ok(&self.state)?;
        let seen = if facts.views.is_empty() { String::new() } else { self.seen(&facts) };
        let same_look = self.views.meet(&facts, &self.line, seen)?;
        self.ok(&self.state)?;
        Ok(Look { facts, followers, ends, shared_name, same_look })
    }

    /// What a person in the place of the player to move sees.
    fn seen(&self, facts: &Facts) -> String {
        let Turn::Player(player) = facts.turn else { return String::new() };
        let names = facts.actions.iter().map(|&action| self.state.action_name(action));
        iter::once(self.state.render_view(player)).chain(names).collect::<Vec<_>>().join("\n")
    }

    fn ok(&self, state: &G) -> Result<(), Violation<E>> {
        (self.hooks.take_error)(state).map_err(failed)
    }

    fn copy(&self, state: &G) -> Result<G, Violation<E>> {
        (self.hooks.copy)(state).map_err(failed)
    }

    fn facts_of(&self, state: &G) -> Result<Facts, Violation<E>> {
        // An error from before, such as one in `clone`.
        self.ok(state)?;
        let facts = Facts::of(state);
        self.ok(state).map(|()| facts)
    }

    fn same(&self, rule: &'static str, facts: &Facts, other: &G, what: &str) -> Result<(), Violation<E>> {
        let others = self.facts_of(other)?;
        if *facts == others {
            return Ok(());
        }
        Err(Violation::new(rule, format!("{what} {}", facts.differences(&others)), "no difference"))
    }

    fn unchanged(&self, facts: &Facts, state: &G, what: &str) -> Result<(), Violation<E>> {
        self.same("clone", facts, state, &format!("{what}, in its")).map_err(|broken| match broken.error {
            Some(error) => Violation { error: Some(error), ..Violation::new("clone", what, "no difference") },
            None => broken,
        })
    }

    /// The game comes to its end: no position twice, no ply too many.
    fn check_end(&self, facts: &Facts) -> Result<(), Violation<E>> {
        let plies = self.line.len();
        if let Some(before) = self.keys.get(&facts.key) {
            let got = format!("the key {} after {before} plies and again after {plies}", facts.key);
            return Err(Violation::new("repeat", got, "every key once in a game"));
        }
        let most = self.start.max_plies();
        if facts.turn != Turn::Terminal && plies >= most {
            return Err(Violation::new("length", format!("a game that goes on after {most} plies"), "an end by then"));
        }
        Ok(())
    }

    /// The positions after each action.
    #[allow(clippy::type_complexity)]
    fn follow(&self, facts: &Facts) -> Result<(Vec<(Action, u128)>, Vec<(Action, f32)>), Violation<E>> {
        let (mut followers, mut ends) = (Vec::new(), Vec::new());
        let (playable, most) = (facts.playable(), if self.thorough { 1000 } else { 64 });
        let shown = playable.len().min(most);
        for action in (0..shown).map(|index| playable[index * playable.len() / shown]) {
            let one_on = |broken| Violation { action: Some(action), ..broken };
            let mut after = self.copy(&self.state)?;
            after.play(action);
            self.ok(&after).map_err(one_on)?;
            let (key, turn) = (after.key(), after.turn());
            if key == facts.key {
                let got = format!("the same key before and after {}", self.state.action_name(action));
                return Err(one_on(Violation::new("repeat", got, "another key")));
            }
            followers.push((action, key));
            if let (Turn::Terminal, Turn::Player(player)) = (turn, facts.turn) {
                ends.push((action, after.outcome().of(player)));
            }
            self.ok(&after).map_err(one_on)?;
        }
        Ok((followers, ends))
    }

    /// What a game says of its planes and actions as a whole holds here.
    fn check_planes(&self, facts: &Facts) -> Result<(), Violation<E>> {
        let broken = |got: String, expected: String| Err(Violation::new("planes", got, expected));
        let [planes, height, width] = self.state.obs_shape();
        if let Some(cells) = self.state.action_cells() {
            let actions = self.state.num_actions();
            let on_board = cells.iter().all(|&cell| usize::from(cell) < height * width);
            if cells.is_empty() || !on_board || !actions.is_multiple_of(cells.len()) {
                let expected = format!("equal groups of {actions} actions, each with one of {height} x {width} cells");
                return broken(format!("action_cells {}", short(&format!("{cells:?}"))), expected);
            }
        }
        if let Some(places) = self.state.policy_planes() {
            let mut taken: Vec<u32> = places.iter().flatten().copied().collect();
            taken.sort_unstable();
            let (actions, most) = (self.state.num_actions(), self.state.num_actions() * height * width);
            let beyond = taken.last().is_some_and(|&place| place as usize >= most);
            if places.len() != actions || beyond || taken.windows(2).any(|pair| pair[0] == pair[1]) {
                let expected = format!("a place below {most} or None for each of {actions} actions, no place twice");
                return broken(format!("policy_planes {}", short(&format!("{places:?}"))), expected);
            }
        }
        let Some(divisors) = self.state.plane_divisors() else { return Ok(()) };
        if divisors.len() != planes || divisors.contains(&0) {
            return broken(format!("plane_divisors {divisors:?}"), "a number above 0 for each plane".into());
        }
        let cells = height * width;
        for (cell, &value) in facts.observation.iter().enumerate() {
            let plane = cell / cells;
            let divisor = f32::from(divisors[plane]);
            if ((value * divisor).round() / divisor).to_bits() != value.to_bits() {
                let got = format!("{value} at row {}, column {} of plane {plane}", cell % cells / width, cell % width);
                return broken(got, format!("n / {divisor} with a whole n, as plane_divisors says"));
            }
        }
        Ok(())
    }

    /// What is not on offer is refused, and changes nothing.
    fn check_refusals(&self, facts: &Facts) -> Result<(), Violation<E>> {
        let offered = &facts.actions;
        let beyond = self.state.num_actions().max(offered.len()) as Action;
        // Of a large policy others at each ply.
        let step = if self.state.num_actions() > 500 { self.state.num_actions() / 50 } else { 1 };
        let some = (0..=beyond + 1).skip(self.line.len() % step).step_by(step);
        for action in some.chain([beyond, Action::MAX]).filter(|action| offered.binary_search(action).is_err()) {
            let expected = match facts.turn {
                Turn::Player(_) => PlayError::Illegal { action, legal: offered.clone() },
                Turn::Chance => PlayError::NoSuchOutcome { action, outcomes: offered.clone() },
                Turn::Terminal => PlayError::Terminal(action),
            };
            let mut tried = self.state.clone();
            match tried.try_play(action) {
                Ok(()) => {
                    let got = format!("the illegal action {action} was played");
                    return Err(Violation::new("refusal", got, "an error"));
                }
                Err(error) if error != expected => {
                    return Err(Violation::new("refusal", error.to_string(), expected.to_string()));
                }
                Err(_) => self.same("refusal", facts, &tried, &format!("the refused action {action} changed"))?,
            }
        }
        Ok(())
    }

    /// The position in its game's notation, if it has one, is read back as the same, wherever it is read.
    fn check_text(&self, facts: &Facts) -> Result<(), Violation<E>> {
        let Some(text) = self.state.to_text() else { return Ok(()) };
        for reader in [&self.start, &self.state] {
            match reader.parse(&text) {
                Err(error) => {
                    let got = format!("{text:?}, which is refused: {error}");
                    return Err(Violation::new("text", got, "text that can be read"));
                }
                Ok(read) => {
                    self.same("text", facts, &read, &format!("{text:?}, read as another position: it differs in"))?;
                    let again = read.to_text();
                    if again.as_deref() != Some(text.as_str()) {
                        return Err(Violation::new("text", format!("{text:?}, then written as {again:?}"), "one text"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The images of the position are those that the symmetries say.
    fn check_images(&self, facts: &Facts) -> Result<(), Violation<E>> {
        for (symmetry, twin) in &self.images {
            let (image, at) = (self.facts_of(twin)?, format!("symmetry {symmetry}: "));
            if (facts.turn, &facts.outcome) != (image.turn, &image.outcome) {
                let got = at + &facts.differences(&image);
                return Err(Violation::new("symmetry", got, "the same turn and outcome in the image"));
            }
            if *symmetry == 0 && *facts != image {
                return Err(Violation::new("symmetry", at + &facts.differences(&image), "the identity"));
            }
            let paired = |facts: &Facts, moved: &dyn Fn(Action) -> Action| {
                let chance = |index: usize| facts.chances.get(index).copied().unwrap_or(0.0);
                let mut pairs: Vec<_> =
                    facts.actions.iter().enumerate().map(|(index, &action)| (moved(action), chance(index))).collect();
                pairs.sort_by_key(|&(action, _)| action);
                pairs
            };
            let moved = paired(facts, &|action| self.state.symmetric_action(*symmetry, action));
            let theirs = paired(&image, &|action| action);
            if moved != theirs {
                let (moved, theirs) = (short(&format!("{moved:?}")), short(&format!("{theirs:?}")));
                let got = format!("{at}{moved} as images of the actions");
                return Err(Violation::new("symmetry", got, format!("those of the image: {theirs}")));
            }
            if matches!(facts.turn, Turn::Player(_)) {
                let mut row = vec![f32::NAN; facts.observation.len()];
                self.state.symmetric_observation(*symmetry, &facts.observation, &mut row);
                if row != image.observation {
                    let expected = "symmetric_observation to give that of the image";
                    return Err(Violation::new("symmetry", at + "another observation", expected));
                }
            }
        }
        Ok(())
    }
}

/// Each symmetry permutes the actions and the observation, another one undoes it, and no two are alike.
///
/// # Errors
/// The symmetry that does not.
pub fn check_symmetries<G: Game, E>(start: &G) -> Result<(), Violation<E>> {
    let broken = |got: String, expected: &str| Err(Violation::new("symmetry", got, expected));
    let identity = (
        (0..start.num_actions() as Action).collect::<Vec<_>>(),
        (0..start.obs_shape().iter().product::<usize>()).map(|index| index as f32).collect::<Vec<_>>(),
    );
    let apply = |symmetry: usize, (actions, row): &(Vec<Action>, Vec<f32>)| {
        let mut out = vec![f32::NAN; row.len()];
        start.symmetric_observation(symmetry, row, &mut out);
        let moved: Vec<_> = actions.iter().map(|&action| start.symmetric_action(symmetry, action)).collect();
        (moved, out)
    };
    let images: Vec<_> = (0..start.num_symmetries()).map(|symmetry| apply(symmetry, &identity)).collect();
    for (symmetry, image) in images.iter().enumerate() {
        let mut sorted = image.0.clone();
        sorted.sort_unstable();
        if sorted != identity.0 {
            return broken(format!("symmetry {symmetry} maps two actions to one"), "a permutation of the actions");
        }
        if symmetry == 0 && *image != identity {
            return broken("symmetry 0 changes something".into(), "the identity");
        }
        if !(0..images.len()).any(|inverse| apply(inverse, image) == identity) {
            return broken(format!("no symmetry undoes symmetry {symmetry}"), "an inverse for each");
        }
        if images[..symmetry].contains(image) {
            return broken(format!("symmetry {symmetry} appears twice"), "different symmetries");
        }
    }
    Ok(())
}

/// The images of a start under the symmetries, but for the identity, that leave it as it is, as far as can be seen: under
/// these a line of play has an image.
pub fn own_images<G: Game>(start: &G) -> Vec<(usize, G)> {
    let facts = Facts::of(start);
    let own = |&symmetry: &usize| {
        if facts.turn == Turn::Chance {
            return true;
        }
        let mut actions: Vec<_> =
            facts.actions.iter().map(|&action| start.symmetric_action(symmetry, action)).collect();
        actions.sort_unstable();
        let mut row = vec![f32::NAN; facts.observation.len()];
        start.symmetric_observation(symmetry, &facts.observation, &mut row);
        actions == facts.actions && row == facts.observation
    };
    (1..start.num_symmetries()).filter(own).map(|symmetry| (symmetry, start.clone())).collect()
}
