//! Moves as SAN and UCI, and positions as text: "FEN moves ...".

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::picture::{Mark, Touch};
use azpy_core::text::{Notation, captured_men, moves_of, outcome_text, play_named, shown};
use azpy_core::written::{Bounds, Named, Notes, ReadMove, Unfit, Variations, WrittenGame, Wrong, join};
use cozy_chess::util::display_san_move;
use cozy_chess::{Board, Color, File, Move, Square};

use super::fen::{self, fen_of};
use super::history::PAST_BOARDS;
use super::san::{Description, castling};
use super::{Chess, Encoding, pgn, picture};
use crate::error::{Error, invalid, unfit};

/// What PGN calls the variants that are played by these rules, and which of them begin at any of 960 positions.
const VARIANTS: [(&str, bool); 10] = [
    ("", false),
    ("chess", false),
    ("normal", false),
    ("standard", false),
    ("from position", false),
    ("chess960", true),
    ("chess 960", true),
    ("fischerandom", true),
    ("fischerrandom", true),
    ("fischer random", true),
];

/// Whether the first word of a text looks like the board of a FEN, and not like part of a PGN.
fn looks_like_fen(word: &str) -> bool {
    word.contains('/') && !word.contains(['{', '(', '[', ';', '$', '%', '-', '.'])
}

/// The tags of a game, blanks around the values taken off.
fn tags_of(game: &pgn::Pgn<'_>) -> Vec<(String, String)> {
    game.tags.iter().map(|(name, value)| ((*name).to_owned(), value.trim().to_owned())).collect()
}

impl Notation for Chess {
    /// As UCI writes it: e2e4, e7e8n; castling is e1g1, in Chess960 the king's square and the rook's.
    fn action_name(&self, action: Action) -> String {
        self.uci(action).unwrap_or_else(|| action.to_string())
    }

    /// SAN, of a legal action.
    fn short_name(&self, action: Action) -> String {
        self.san(action).unwrap_or_else(|| self.action_name(action))
    }

    fn owner(&self, line: usize, glyph: char) -> Option<Player> {
        match glyph {
            _ if line >= 8 => None,
            'A'..='Z' => Some(Player::Zero),
            'a'..='z' => Some(Player::One),
            _ => None,
        }
    }

    fn on_board(&self) -> Vec<(String, char)> {
        let man = |&square: &Square| Some((square.to_string(), fen::letter(&self.board, square)?));
        Square::ALL.iter().filter_map(man).collect()
    }

    /// The most valuable first.
    fn captured(&self, actions: &[Action]) -> Vec<String> {
        let sorted = |men: String| {
            let mut men: Vec<char> = men.chars().collect();
            men.sort_by_key(|man| "qrbnp".find(man.to_ascii_lowercase()));
            men.into_iter().collect::<String>()
        };
        captured_men(self, actions).into_iter().map(sorted).collect()
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(vec!["White", "Black"])
    }

    fn result_text(&self) -> String {
        outcome_text(self, &self.ending().map_or_else(String::new, |ending| format!("by {ending}")))
    }

    fn to_svg(&self) -> String {
        self.svg()
    }

    /// The two squares of the name: to castle, the king's and where it goes, in Chess960 the king's and the rook's.
    fn touches(&self, action: Action) -> Vec<Touch> {
        self.squares(action).map_or(Vec::new(), |(from, to, _)| vec![picture::touch(from), picture::touch(to)])
    }

    /// Circles and arrows.
    fn marks(&self, notes: &Notes) -> Vec<Mark> {
        picture::marks(notes)
    }

    /// Moves in UCI, SAN or PGN, from here on: a PGN's FEN must be that of this position.
    fn parse_actions(&self, text: &str) -> Result<Vec<Action>, azpy_core::Error> {
        let game = pgn::read(text, None).map_err(|wrong| wrong.why)?;
        let begins_here = self.check_start(&game, &self.board);
        let mut actions = Vec::new();
        let played = begins_here.and_then(|()| self.clone().play_main_line(&game, &mut actions));
        Ok(played.map(|()| actions)?)
    }

    /// A FEN, "FEN moves ...", "startpos moves ..." as UCI has them, a PGN, or the moves that lead there from here.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        let (start, moves) = self.read_start(text)?;
        let game = pgn::read(moves, None).map_err(|wrong| wrong.why)?;
        let mut state = self.begin(start, &game)?;
        state.play_main_line(&game, &mut Vec::new())?;
        Ok(state)
    }

    /// A game of PGN.
    fn read_game<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
        let (game, rest) = match pgn::read_first(text, None) {
            Ok(found) => found,
            Err(wrong) => return Ok(Some((WrittenGame::unreadable(wrong.why), pgn::next_game(text, wrong.at)))),
        };
        if game.is_empty() {
            return Ok(None);
        }
        if game.result.is_none() && rest.is_empty() {
            let why = "the last game lacks a result (1-0, 0-1, 1/2-1/2 or *) after its moves: the text was cut";
            return Ok(Some((WrittenGame::unreadable(why.to_owned()), rest)));
        }
        let begins_here = self.check_start(&game, &Board::default());
        let mut before = Vec::new();
        let played = begins_here.and_then(|()| self.clone().play_main_line(&game, &mut before));
        let actions = played.map(|()| std::mem::take(&mut before));
        Ok(Some((WrittenGame { tags: tags_of(&game), result: game.result.map(str::to_owned), actions, before }, rest)))
    }

    /// A PGN with its variations, with or without a FEN of its own; or what [`Chess::parse`](Notation::parse) reads.
    fn read_variations(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, azpy_core::Error> {
        let (start, moves) = self.read_start(text)?;
        // Lines are counted from the beginning of the whole text.
        let game = pgn::read(moves, Some(bounds)).map_err(|Wrong { at, why }| {
            let at = text.len() - moves.len() + at;
            Wrong { at, why }.in_line_of(text)
        })?;
        let start = self.begin(start, &game)?;
        let (moves, left_out) = game.moves.play(
            start.clone(),
            |state, number, said| {
                // A word is a part of the text.
                let at = said.word.as_ptr() as usize - text.as_ptr() as usize;
                let action = state.read_action(number, said.word).map_err(|unfit| unfit.in_line_of(text, at))?;
                Ok((action, ReadMove { notes: said.notes.clone(), ..play_named(state, action) }))
            },
            |told, other| join(&mut told.notes, other.notes),
        )?;
        let mut tags = tags_of(&game);
        // If the tag has no result, the text after the moves may have one.
        tags.retain(|(name, value)| name != "Result" || pgn::is_result(value));
        tags.retain(|(name, _)| pgn::is_free(name));
        tags.extend(game.result.map(|result| ("Result".to_owned(), result.to_owned())));
        Ok(Variations { start, moves, tags, notes: game.notes, left_out })
    }

    /// As PGN.
    fn write_variations(
        &self,
        moves: &[Named],
        tags: &[(String, String)],
        notes: &[Notes],
        bounds: Bounds,
    ) -> Result<String, azpy_core::Error> {
        if self.history.plies() > 0 {
            return Err("a PGN needs the moves that led to this position: give them too".into());
        }
        let mut remarks = notes.iter().map(pgn::remarks).collect::<Result<Vec<_>, _>>()?;
        let before = remarks.first_mut().map(std::mem::take).unwrap_or_default();
        let moves = moves_of(
            self,
            moves,
            bounds,
            |state, action, index| {
                let (number, san) = (state.board.fullmove_number(), state.short_name(action));
                let is_white = state.turn() == Turn::Player(Player::Zero);
                state.play(action);
                let result = (state.turn() == Turn::Terminal).then(|| match state.outcome().0 {
                    0.0 => "1/2-1/2",
                    outcome if outcome > 0.0 => "1-0",
                    _ => "0-1",
                });
                let notes = remarks.get_mut(index + 1).map(std::mem::take).unwrap_or_default();
                pgn::Ply { number, is_white, san, result, notes }
            },
            |ply, other| ply.notes.extend(other.notes),
        )?;
        let mut own = Vec::new();
        if self.rules.chess960 {
            own.push(("Variant", "Chess960".to_owned()));
        }
        if self.rules.chess960 || self.board != Board::default() {
            own.extend([("SetUp", "1".to_owned()), ("FEN", self.fen())]);
        }
        Ok(pgn::write(tags, &own, before, &moves)?)
    }

    /// A FEN, and where the past matters the one from which it does, with the moves since: "FEN moves e2e4 ...". It
    /// begins where the oldest position that can come again was, or for az119, which shows repetitions of earlier boards,
    /// the oldest that any of those could have been.
    fn to_text(&self) -> Option<String> {
        let (start, actions) = self.history.record();
        let shown_boards = match self.rules.encoding {
            Encoding::Az18 => 0,
            Encoding::Az119 => PAST_BOARDS,
        };
        let oldest = actions.len() - shown_boards.min(actions.len());
        let after = |plies: usize| {
            let mut state = Self::at(start.clone(), self.rules);
            actions[..plies].iter().for_each(|&action| state.play(action));
            state
        };
        let first = oldest - after(oldest).history.run();
        let mut state = after(first);
        let mut text = fen_of(&state.board);
        for (index, &action) in actions[first..].iter().enumerate() {
            text += if index == 0 { " moves " } else { " " };
            text += &state.action_name(action);
            state.play(action);
        }
        Some(text)
    }

    /// See [`Chess::fen`].
    fn fen(&self) -> Option<String> {
        Some(self.fen())
    }

    /// No moves without progress, and nothing to repeat.
    fn without_past(&self, mover: Option<Player>) -> Option<Self> {
        let color = mover.map_or(self.board.side_to_move(), |mover| [Color::White, Color::Black][mover.index()]);
        let mut board = self.board.clone();
        board.set_halfmove_clock(0);
        board.set_fullmove_number(1);
        (color == board.side_to_move()).then(|| Self::at(board, self.rules))
    }
}

impl Chess {
    /// A legal action as SAN writes it.
    pub(super) fn san(&self, action: Action) -> Option<String> {
        let mut legal = Vec::new();
        self.list_actions(&mut legal);
        if !legal.contains(&action) {
            return None;
        }
        Some(display_san_move(&self.board, self.move_of(action)?).to_string())
    }

    /// The legal action that a word means: UCI, or SAN, also with more than it needs.
    fn read_move(&self, word: &str) -> Result<Action, Error> {
        let core = word.trim_end_matches(['+', '#', '!', '?']);
        let mut legal = Vec::new();
        self.list_actions(&mut legal);
        // e7e8Q is UCI too; but B1c3 is SAN, of the bishop on rank 1.
        let uci = if core.starts_with(|letter: char| letter.is_ascii_lowercase()) { core } else { "" };
        if let Some(&action) = legal.iter().find(|&&action| self.action_name(action).eq_ignore_ascii_case(uci)) {
            return Ok(action);
        }
        let (mut found, own) = (Vec::new(), self.board.colors(self.board.side_to_move()));
        let (castles, description) = (castling(core), Description::read(core));
        // UCI has two ways to write castling, and each is understood in both kinds of chess: the king takes its rook,
        // or goes two squares from the e file. No step of a king is written so.
        let squares = core.parse::<Move>().ok().filter(|_| core.len() == 4);
        let castles_by = |played: Move| {
            let file = if played.to > played.from { File::G } else { File::C };
            let two_squares = Move { to: Square::new(file, played.from.rank()), ..played };
            squares == Some(played) || (played.from.file() == File::E && squares == Some(two_squares))
        };
        self.board.generate_moves(|moves| {
            for played in moves {
                let fits = if own.has(played.to) {
                    castles == Some(played.to > played.from) || castles_by(played)
                } else {
                    description.as_ref().is_some_and(|description| description.fits(moves.piece, played))
                };
                if fits {
                    found.push(self.action_of(played));
                }
            }
            false
        });
        let names = |actions: &[Action]| {
            const MOST: usize = 40;
            let mut names: Vec<_> = actions.iter().take(MOST).map(|&action| self.short_name(action)).collect();
            if actions.len() > MOST {
                names.push(format!("and {} more", actions.len() - MOST));
            }
            names.join(", ")
        };
        match found[..] {
            [action] => Ok(action),
            [] => Err(invalid!("which is not among the legal ones: {}", names(&legal))),
            _ => Err(invalid!("which may be any of {}", names(&found))),
        }
    }

    /// The legal action that a word means, which is action `number` of a line.
    fn read_action(&self, number: usize, word: &str) -> Result<Action, Unfit> {
        let at = format!("action {number} is {}, ", shown(word));
        if self.turn() == Turn::Terminal {
            return Err(Unfit::AfterEnd(at + "but the game is over before it"));
        }
        if ["--", "Z0", "0000"].contains(&word) {
            return Err(Unfit::Action(at + "a null move, which the rules do not have"));
        }
        self.read_move(word).map_err(|error| Unfit::Action(format!("{at}{error}")))
    }

    /// Plays the main line of a PGN, up to a word that is no action; `actions` gets what was played.
    fn play_main_line(&mut self, game: &pgn::Pgn<'_>, actions: &mut Vec<Action>) -> Result<(), Unfit> {
        for said in game.moves.main_line() {
            let action = self.read_action(actions.len() + 1, said.word)?;
            self.play(action);
            actions.push(action);
        }
        Ok(())
    }

    /// Where a written game says that it begins, if it does; it is played by these rules.
    fn start_of(&self, game: &pgn::Pgn<'_>) -> Result<Option<Self>, Unfit> {
        let variant = game.tag("Variant").unwrap_or_default();
        let known = VARIANTS.iter().find(|(name, _)| variant.trim().eq_ignore_ascii_case(name));
        let &(_, needs_start) = known.ok_or_else(|| Unfit::Variant(format!("the variant is {}", shown(variant))))?;
        match game.tag("FEN") {
            Some(fen) => {
                let (start, rest) = Self::from_fen(fen, self.rules).map_err(unfit(Unfit::Start))?;
                if rest.is_empty() {
                    return Ok(Some(start));
                }
                Err(Unfit::Start(format!("the tag FEN has more than a position: {}", shown(rest))))
            }
            None if needs_start => {
                Err(Unfit::Start("a Chess960 game without its start position: add the tag FEN".to_owned()))
            }
            None => Ok(None),
        }
    }

    /// Whether a written game begins here, and is played by these rules. It begins at `usual` if it does not say where.
    fn check_start(&self, game: &pgn::Pgn<'_>, usual: &Board) -> Result<(), Unfit> {
        let start = self.start_of(game)?.map_or_else(|| usual.clone(), |start| start.board);
        if start == self.board {
            return Ok(());
        }
        Err(Unfit::Start(format!("the game starts at {}, not at this position, {}", fen_of(&start), self.fen())))
    }

    /// Where a game begins: at the position before its moves, at its own, or here.
    fn begin(&self, before: Option<Self>, game: &pgn::Pgn<'_>) -> Result<Self, Error> {
        match before {
            Some(start) => Ok(start),
            None => Ok(self.start_of(game).map_err(azpy_core::Error::from)?.unwrap_or_else(|| self.clone())),
        }
    }

    /// The position with which a text begins, if it begins with one; and the moves behind.
    fn read_start<'a>(&self, text: &'a str) -> Result<(Option<Self>, &'a str), Error> {
        let split = |text: &'a str| text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        let mut here = text.trim_start();
        if let ("position", behind) = split(here) {
            here = behind.trim_start();
        }
        let (start, rest) = match split(here) {
            ("startpos", behind) => (self.start(), behind.trim_start()),
            ("fen", behind) => Self::from_fen(behind, self.rules)?,
            (first, _) if looks_like_fen(first) => Self::from_fen(here, self.rules)?,
            _ => return Ok((None, text)),
        };
        match split(rest) {
            ("", _) => Ok((Some(start), "")),
            ("moves", moves) => Ok((Some(start), moves)),
            (word, _) => Err(Error::form("expected \"moves\" or nothing after the position", shown(word))),
        }
    }
}
