//! Positions as people read and write them: what games get without writing it, and what they build theirs from.
//!
//! Lines of play are read by the names of actions, and no game reads more of a text than it can have plies. Whatever an
//! error repeats of a text is cut ([`shown`]). Knows nothing of any notation.

mod line;

use std::collections::HashSet;

use crate::error::Error;
use crate::game::{Action, Game, Payoff, Player, Turn, on_offer};
use crate::picture::{Mark, Touch, text_svg};
use crate::written::{Bounds, Moves, Named, Notes, ReadMove, Unfit, Variations, WrittenGame};

pub use line::read_line;
use line::{listed, write_line};

/// The most characters of a text that an error quotes.
const MOST_SHOWN: usize = 60;
/// The most further characters that are counted, so that a file with many faults is not counted to its end each time.
const MOST_COUNTED: usize = 1_000;

/// How people write a game: names of actions, notations of positions, pictures. Every method has a default, so a game
/// with none of these has an empty `impl`.
pub trait Notation: Game {
    /// A name a person uses for the action at this position.
    fn action_name(&self, action: Action) -> String {
        action.to_string()
    }

    /// The action as people of this game write it in short (SAN in chess): its name unless a game has better.
    fn short_name(&self, action: Action) -> String {
        self.action_name(action)
    }

    /// Whose piece a character that stands alone in a line of `render` is, so that a terminal can show it in colour.
    /// Lines count from 0.
    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        let _ = line;
        match glyph {
            'x' | 'X' => Some(Player::Zero),
            'o' | 'O' => Some(Player::One),
            _ => None,
        }
    }

    /// What lies where: names of places of the picture, and the character that `render` shows there. Empty places are
    /// left out. Only boards with at most one man on a place have this, so other games have nothing.
    fn on_board(&self) -> Vec<(String, char)> {
        Vec::new()
    }

    /// The men that each player took on a line of legal actions that begins here, as `on_board` shows them. Nothing
    /// for games in which men are not taken.
    fn captured(&self, actions: &[Action]) -> Vec<String> {
        let _ = actions;
        vec![String::new(); self.num_players()]
    }

    /// What people call the players within a sentence, player 0 first, where the game has names for them.
    fn side_names(&self) -> Option<Vec<&str>> {
        None
    }

    /// What people want to read beside the name of each player, where the picture does not show it: points, pips, the
    /// number of the turn. A text for each player, or nothing at all.
    fn counts(&self) -> Vec<String> {
        Vec::new()
    }

    /// The result of a game that is over, and how it came about, as people of this game say it: "White wins by
    /// checkmate", "Black wins by 5.5", "Draw by stalemate". Games that end by the rules alone: whoever plays says
    /// that a player resigned or was out of time. [`outcome_text`] writes it.
    fn result_text(&self) -> String {
        outcome_text(self, "")
    }

    /// Whether the picture makes sense upside down, as the other player sees it.
    fn can_rotate(&self) -> bool {
        true
    }

    /// A picture of the position: a whole SVG document that needs nothing from outside.
    fn to_svg(&self) -> String {
        text_svg(&self.render())
    }

    /// The places of that picture which a person touches, one after the other, to play a legal action at a player's
    /// turn: the cell, or where a piece stands and where it goes. Nothing where the picture has no place for the
    /// action, such as a pass: a button plays it.
    ///
    /// No action's places are the first places of another action. Actions with the same places, such as promotions, are
    /// told apart by their names. In a position a place has one name and one rectangle, and the middle of the rectangle
    /// lies in no other place's rectangle.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let _ = action;
        Vec::new()
    }

    /// The places of that picture, also those that no legal action touches: for people who do not see what lies there.
    /// Nothing where a roll is due, if the places depend on whose turn it is.
    fn places(&self) -> Vec<Touch> {
        touched_places(self)
    }

    /// What notes on this position ask to be drawn on its picture. Notes that are not drawn are left out.
    fn marks(&self, notes: &Notes) -> Vec<Mark> {
        let _ = notes;
        Vec::new()
    }

    /// Reads a line of play that begins here: the actions and chance outcomes by their names, or by their short names
    /// where those are clear, with blanks between.
    ///
    /// # Errors
    /// [`Error::Name`] for a word that was not understood, and [`Error::AfterEnd`].
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, Error> {
        read_line(self, text)
    }

    /// Writes a line of play that begins here as text that [`Notation::parse_actions`] reads.
    ///
    /// # Errors
    /// [`Error::Play`] for an action that is not legal.
    fn format_actions(&self, actions: &[Action]) -> Result<String, Error> {
        write_line(self, actions)
    }

    /// Reads a position of this game, whose size and options are those of `self`. A text is either in the game's
    /// notation of positions, if it has one, or a line of play that begins here; which of the two shows in the text
    /// alone. An empty text is a line of no plies. Positions that no game has are refused, as far as that can be told.
    ///
    /// # Errors
    /// A sentence that says what came and what was expected.
    fn parse(&self, text: &str) -> Result<Self, Error> {
        play_line(self, text)
    }

    /// What [`Notation::parse`] reads, but only the first `plies` moves of its main line are played.
    ///
    /// # Errors
    /// See [`Notation::parse`].
    fn parse_plies(&self, text: &str, plies: usize) -> Result<Self, Error> {
        let bounds = Bounds { moves: usize::MAX, depth: usize::MAX };
        let Variations { start: mut state, moves, .. } = self.read_variations(text, bounds)?;
        for told in moves.main_line().take(plies) {
            for action in state.parse_actions(&told.name)? {
                state.try_play(action)?;
            }
        }
        Ok(state)
    }

    /// Reads the first of the games that a text holds in the game's notation of whole games (PGN, SGF), each from its
    /// start to its result. The start of these rules is `self`.
    ///
    /// Returns the game and the text after it; nothing where the text has no more games. A game that is not in this
    /// notation, or cut, is [`Unfit::Text`], and the text after it goes on where another game seems to begin.
    ///
    /// # Errors
    /// A sentence, for a game without such a notation.
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, Error> {
        let _ = text;
        Err(Error::NoNotation)
    }

    /// Reads a game with its variations from a text in the game's notation of whole games; or what
    /// [`Notation::parse`] reads, as one line of play. A game that does not say where it begins begins here.
    ///
    /// # Errors
    /// A sentence that says what came, where, and what was expected.
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, Error> {
        read_one_line(self, text, bounds)
    }

    /// Writes a game with its variations that begins here, in the game's notation of whole games.
    ///
    /// # Arguments
    /// - `moves`: of those behind one move, the first is that of the main line.
    /// - `tags`: what the text says of the game as a whole, by the names of the notation. A result that is not among
    ///   them is that of the rules at the end of the main line.
    /// - `notes`: on the start, and then on each move. There may be fewer.
    ///
    /// # Errors
    /// A sentence that names the move, the tag or the note; for a start with a past, which such a text does not hold;
    /// and for a game without such a notation.
    fn write_variations(
        &self,
        moves: &[Named],
        tags: &[(String, String)],
        notes: &[Notes],
        bounds: Bounds,
    ) -> Result<String, Error> {
        let _ = (moves, tags, notes, bounds);
        Err(Error::NoNotation)
    }

    /// The position in the notation that `parse` reads, if it has one that says everything: what comes of it then has
    /// an equal key.
    fn to_text(&self) -> Option<String> {
        None
    }

    /// The position in the Forsyth-Edwards Notation of chess.
    fn fen(&self) -> Option<String> {
        None
    }

    /// The points that White gets in Go: a text of a game may have others than the rules that read it.
    fn komi(&self) -> Option<f32> {
        None
    }

    /// What an outcome of 1 is worth in the units that people of this game count, and their name: (13.0, "chips").
    fn payoff_unit(&self) -> (f32, &str) {
        (1.0, "")
    }

    /// A game that is over as it ends where the players agree that the men on these places are dead, each with those
    /// that are joined to it. `None` for games without such an agreement.
    fn without_dead(&self, places: &[String]) -> Option<Self> {
        let _ = places;
        None
    }

    /// The board as a start, without the plies that led to it: where only these ended the game or barred a move, they
    /// do so no more. `None` if the rules have `mover` not to move there.
    fn without_past(&self, mover: Option<Player>) -> Option<Self> {
        mover.is_none_or(|mover| self.turn() == Turn::Player(mover)).then(|| self.clone())
    }
}

/// The places that any action touches, legal or not, each once.
pub fn touched_places<G: Notation>(state: &G) -> Vec<Touch> {
    let mut known = HashSet::new();
    let touched = (0..state.num_actions() as Action).flat_map(|action| state.touches(action));
    touched.filter(|touch| known.insert(touch.place.clone())).collect()
}

/// A position that says which game it is of.
pub trait Position: Notation {
    /// The game and, where they are not the usual ones, its parameters: "connect_four(width=5,height=4,k=4)".
    fn game(&self) -> &str;

    /// The start of the game with other values of these parameters.
    ///
    /// # Errors
    /// A sentence, for values that the game refuses.
    fn start_with(&self, params: &[(&str, String)]) -> Result<Self, Error>;
}

/// Who has won a game that is over, and `how` where there is something to say: "Red wins a gammon", "Draw by
/// stalemate". See [`result_words`].
pub fn outcome_text<G: Notation>(state: &G, how: &str) -> String {
    result_words(state.side_names(), state.outcome().each().numbers(), state.is_zero_sum(), how)
}

/// The result of a game in words, and `how` it came about.
///
/// With one player it is the score: "Score 0.5". Where several players do not share a zero sum, it has what each gets:
/// "Player 2 wins: player 0 gets -0.5, player 1 gets -0.5, player 2 gets 1".
///
/// # Arguments
/// - `names`: of the players; nothing where the game has none.
/// - `each`: what each player gets.
///
/// ```
/// use azpy_core::text::result_words;
/// assert_eq!(result_words(Some(vec!["red", "blue"]), &[-1.0, 1.0], true, "by 4 in a row"), "Blue wins by 4 in a row");
/// assert_eq!(result_words(None, &[0.5], false, ""), "Score 0.5");
/// let said = "Player 0 and player 2 win: player 0 gets 0.5, player 1 gets -1, player 2 gets 0.5";
/// assert_eq!(result_words(None, &[0.5, -1.0, 0.5], false, ""), said);
/// assert_eq!(result_words(None, &[0.5, 0.5], false, ""), "Each player gets 0.5");
/// ```
#[must_use]
pub fn result_words(names: Option<Vec<&str>>, each: &[f32], zero_sum: bool, how: &str) -> String {
    let names: Vec<String> = match names {
        Some(names) => names.into_iter().map(str::to_owned).collect(),
        None => (0..each.len()).map(|player| format!("player {player}")).collect(),
    };
    let best = each.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let winners: Vec<&str> =
        names.iter().zip(each).filter(|&(_, &own)| own == best).map(|(name, _)| name.as_str()).collect();
    let short = |number: f32| (1e4 * number).round() / 1e4 + 0.0; // no -0
    let is_equal = winners.len() == each.len();
    let said = match &winners[..] {
        _ if each.len() == 1 => format!("score {}", short(best)),
        _ if is_equal && best == 0.0 => "draw".to_owned(),
        _ if is_equal => format!("each player gets {}", short(best)),
        [others @ .., last] if !others.is_empty() => format!("{} and {last} win", others.join(", ")),
        _ => format!("{} wins", winners.concat()),
    };
    let first = said.chars().next().map_or(0, char::len_utf8);
    let mut said = format!("{}{}", said[..first].to_uppercase(), &said[first..]);
    if !how.is_empty() {
        said = format!("{said} {how}");
    }
    if zero_sum || is_equal {
        return said;
    }
    let gets: Vec<String> = names.iter().zip(each).map(|(name, &own)| format!("{name} gets {}", short(own))).collect();
    format!("{said}: {}", gets.join(", "))
}

/// What [`Notation::captured`] is for a game in which men are taken: those of the others that are gone after a move.
pub fn captured_men<G: Notation>(start: &G, actions: &[Action]) -> Vec<String> {
    let men = |state: &G| {
        let mut men: Vec<char> = state.on_board().into_iter().map(|(_, man)| man).collect();
        men.sort_unstable();
        men
    };
    let mut taken = vec![String::new(); start.num_players()];
    let (mut state, mut before) = (start.clone(), men(start));
    for &action in actions {
        let turn = state.turn();
        state.play(action);
        let now = men(&state);
        let mut left = now.iter().copied().peekable();
        for man in before {
            while left.next_if(|&other| other < man).is_some() {}
            let stays = left.next_if_eq(&man).is_some();
            if let Turn::Player(mover) = turn
                && !stays
                && state.owner(1, man).is_some_and(|owner| owner != mover)
            {
                taken[mover.index()].push(man);
            }
        }
        before = now;
    }
    taken
}

/// A text as errors quote it: on one line, cut if it is long.
///
/// ```
/// assert_eq!(azpy_core::text::shown("a\n"), r#""a\n""#);
/// assert!(azpy_core::text::shown(&"a".repeat(1060)).ends_with("a\" and 1000 more characters"));
/// assert!(azpy_core::text::shown(&"a".repeat(1061)).ends_with("a\" and more than 1000 more characters"));
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    let mut rest = text.chars();
    let start: String = rest.by_ref().take(MOST_SHOWN).collect();
    match rest.take(MOST_COUNTED + 1).count() {
        0 => format!("{start:?}"),
        more if more > MOST_COUNTED => format!("{start:?} and more than {MOST_COUNTED} more characters"),
        more => format!("{start:?} and {more} more characters"),
    }
}

/// A text without the byte order mark that some programs for Windows write before it. What reads files of other programs
/// takes it away: what games read has none.
#[must_use]
pub fn unmarked(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// The position that a line of play leads to from `start`: what [`Notation::parse`] is for a game without a notation of
/// positions, and for one that has a notation where a text is not in it.
///
/// # Errors
/// See [`Notation::parse_actions`].
pub fn play_line<G: Notation>(start: &G, text: &str) -> Result<G, Error> {
    let mut state = start.clone();
    for action in start.parse_actions(text)? {
        state.try_play(action)?;
    }
    Ok(state)
}

/// What [`Notation::read_variations`] is for a text without variations: a line of play that begins at `start`, or a
/// position.
///
/// # Errors
/// See [`Notation::parse`].
pub fn read_one_line<G: Notation>(start: &G, text: &str, bounds: Bounds) -> Result<Variations<G>, Error> {
    let (start, actions) = match start.parse_actions(text) {
        Ok(actions) => (start.clone(), actions),
        Err(_) => (start.parse(text)?, Vec::new()),
    };
    let (mut state, mut moves) = (start.clone(), Moves::new(bounds));
    for (before, action) in actions.into_iter().enumerate() {
        moves.push(before, play_named(&mut state, action))?;
    }
    Ok(Variations { start, moves, tags: Vec::new(), notes: Notes::new(), left_out: Vec::new() })
}

/// Plays a legal action, and returns the move without notes.
pub fn play_named<G: Notation>(state: &mut G, action: Action) -> ReadMove {
    let player = if let Turn::Player(player) = state.turn() { Some(player) } else { None };
    let (name, short) = (state.action_name(action), state.short_name(action));
    state.play(action);
    ReadMove { name, short, player, notes: Notes::new() }
}

/// The tree of moves that names of actions mean from `start` on; see [`Notation::write_variations`].
///
/// # Arguments
/// - `describe`: plays an action at a position, and gives what is kept of it; gets the move's index too.
/// - `join`: adds what is kept of an equal move of the same position to that of the first one.
///
/// # Errors
/// A sentence that names the move by its index.
pub fn moves_of<G: Notation, T>(
    start: &G,
    named: &[Named],
    bounds: Bounds,
    mut describe: impl FnMut(&mut G, Action, usize) -> T,
    join: impl Fn(&mut T, T),
) -> Result<Moves<T>, Error> {
    let mut moves = Moves::new(bounds);
    for (index, (before, name)) in named.iter().enumerate() {
        if let Some(before) = before.filter(|&before| before >= index) {
            return Err(Error::Order { index, before });
        }
        moves.push(before.map_or(0, |before| before + 1), (index, name))?;
    }
    let (moves, left_out) = moves.play(
        start.clone(),
        |state, _, &(index, name)| {
            let came = format!("move {index} is {}", shown(name));
            let (turn, offered) = on_offer(state);
            if turn == Turn::Terminal {
                return Err(Unfit::AfterEnd(format!("{came}, but the game is over before it")));
            }
            let Some(&action) = offered.iter().find(|&&action| state.action_name(action) == *name) else {
                let names = listed(state, &offered);
                return Err(Unfit::Action(format!("{came}, which is not among the legal ones: {names}")));
            };
            Ok((action, describe(state, action, index)))
        },
        join,
    )?;
    left_out.into_iter().next().map_or(Ok(moves), |why| Err(why.into()))
}
