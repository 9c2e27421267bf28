//! Moves as SAN and UCI, and positions as text: "FEN moves ...".

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::{Notation, moves_of, play_named, shown};
use azpy_core::written::{Bounds, Named, Notes, ReadMove, Unfit, Variations, WrittenGame, Wrong, join};
use cozy_chess::util::display_san_move;
use cozy_chess::{Board, File, Move, Square};

use super::fen::fen_of;
use super::history::PAST_BOARDS;
use super::san::{Description, castling};
use super::{Chess, Encoding, pgn};

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

/// Whether a word at the beginning is meant as the men of a FEN, and not as part of a PGN.
fn looks_like_fen(word: &str) -> bool {
    word.contains('/') && !word.contains(['{', '(', '[', ';', '$', '%', '-', '.'])
}

/// The tags of a game, blanks around the values taken off.
fn tags_of(game: &pgn::Pgn<'_>) -> Vec<(String, String)> {
    game.tags.iter().map(|(name, value)| ((*name).to_owned(), value.trim().to_owned())).collect()
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
    fn read_move(&self, word: &str) -> Result<Action, String> {
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
            [] => Err(format!("which is not among the legal ones: {}", names(&legal))),
            _ => Err(format!("which may be any of {}", names(&found))),
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
        self.read_move(word).map_err(|why| Unfit::Action(at + &why))
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

    /// A line of play that begins here, as PGN or less. A PGN's FEN must be that of this position.
    pub(super) fn read_actions(&self, text: &str) -> Result<Vec<Action>, String> {
        let game = pgn::read(text, None).map_err(|wrong| wrong.why)?;
        let begins_here = self.check_start(&game, &self.board);
        let mut actions = Vec::new();
        let played = begins_here.and_then(|()| self.clone().play_main_line(&game, &mut actions));
        played.map(|()| actions).map_err(Unfit::into_text)
    }

    /// See [`Notation::read_game`].
    pub(super) fn read_written<'a>(&self, text: &'a str) -> Result<Option<(WrittenGame, &'a str)>, String> {
        let (game, rest) = match pgn::read_first(text, None) {
            Ok(found) => found,
            Err(wrong) => return Ok(Some((WrittenGame::unreadable(wrong.why), pgn::next_game(text, wrong.at)))),
        };
        if game.is_empty() {
            return Ok(None);
        }
        if game.result.is_none() && rest.is_empty() {
            let why = "the last game has no result (1-0, 0-1, 1/2-1/2 or *) behind its moves: the text was cut";
            return Ok(Some((WrittenGame::unreadable(why.to_owned()), rest)));
        }
        let begins_here = self.check_start(&game, &Board::default());
        let mut before = Vec::new();
        let played = begins_here.and_then(|()| self.clone().play_main_line(&game, &mut before));
        let actions = played.map(|()| std::mem::take(&mut before));
        Ok(Some((WrittenGame { tags: tags_of(&game), result: game.result.map(str::to_owned), actions, before }, rest)))
    }

    /// Where a written game says that it begins, if it does; it is played by these rules.
    fn start_of(&self, game: &pgn::Pgn<'_>) -> Result<Option<Self>, Unfit> {
        let variant = game.tag("Variant").unwrap_or_default();
        let known = VARIANTS.iter().find(|(name, _)| variant.trim().eq_ignore_ascii_case(name));
        let &(_, needs_start) = known.ok_or_else(|| Unfit::Variant(format!("the variant is {}", shown(variant))))?;
        match game.tag("FEN") {
            Some(fen) => {
                let (start, rest) = Self::from_fen(fen, self.rules).map_err(Unfit::Start)?;
                if rest.is_empty() {
                    return Ok(Some(start));
                }
                Err(Unfit::Start(format!("the tag FEN has more than a position: {}", shown(rest))))
            }
            None if needs_start => Err(Unfit::Start("a game of Chess960 without its start, FEN".to_owned())),
            None => Ok(None),
        }
    }

    /// Whether a written game begins here, and is played by these rules. It begins at `usual` if it does not say where.
    fn check_start(&self, game: &pgn::Pgn<'_>, usual: &Board) -> Result<(), Unfit> {
        let start = self.start_of(game)?.map_or_else(|| usual.clone(), |start| start.board);
        if start == self.board {
            return Ok(());
        }
        Err(Unfit::Start(format!("the game begins at {}, and not here, at {}", fen_of(&start), self.fen())))
    }

    /// A position as FEN, "FEN moves ...", "startpos moves ...", PGN, or the moves that lead there from here.
    pub(super) fn read_position(&self, text: &str) -> Result<Self, String> {
        let (start, moves) = self.read_start(text)?;
        let game = pgn::read(moves, None).map_err(|wrong| wrong.why)?;
        let mut state = self.begin(start, &game)?;
        state.play_main_line(&game, &mut Vec::new()).map_err(Unfit::into_text)?;
        Ok(state)
    }

    /// See [`Notation::read_variations`].
    pub(super) fn read_tree(&self, text: &str, bounds: Bounds) -> Result<Variations<Self>, String> {
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
        // Where the tag says no result, the text behind the moves may.
        tags.retain(|(name, value)| name != "Result" || pgn::is_result(value));
        tags.retain(|(name, _)| pgn::is_free(name));
        tags.extend(game.result.map(|result| ("Result".to_owned(), result.to_owned())));
        Ok(Variations { start, moves, tags, notes: game.notes, left_out })
    }

    /// See [`Notation::write_variations`].
    pub(super) fn write_tree(
        &self,
        moves: &[Named],
        tags: &[(String, String)],
        notes: &[Notes],
        bounds: Bounds,
    ) -> Result<String, String> {
        if self.history.plies() > 0 {
            return Err("a PGN begins at a position without a past: give the moves before it too".to_owned());
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
        pgn::write(tags, &own, before, &moves)
    }

    /// Where a game begins: at the position before its moves, at its own, or here.
    fn begin(&self, before: Option<Self>, game: &pgn::Pgn<'_>) -> Result<Self, String> {
        match before {
            Some(start) => Ok(start),
            None => Ok(self.start_of(game).map_err(Unfit::into_text)?.unwrap_or_else(|| self.clone())),
        }
    }

    /// The position with which a text begins, if it begins with one; and the moves behind.
    fn read_start<'a>(&self, text: &'a str) -> Result<(Option<Self>, &'a str), String> {
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
            (word, _) => Err(format!("expected \"moves\" or nothing after the position, got {}", shown(word))),
        }
    }

    /// See [`Notation::to_text`]. The past that matters begins where the oldest position that can come again was, or
    /// for az119, which shows repetitions of earlier boards, the oldest that any of those could have been.
    pub(super) fn text_with_past(&self) -> String {
        let (start, actions) = self.history.record();
        let shown_boards = match self.rules.encoding {
            Encoding::Az18 => 0,
            Encoding::Az119 => PAST_BOARDS,
        };
        let oldest = actions.len() - shown_boards.min(actions.len());
        let mut state = Self::at(start.clone(), self.rules);
        for &action in &actions[..oldest] {
            state.play(action);
        }
        let first = oldest - state.history.run();
        let mut state = Self::at(start.clone(), self.rules);
        for &action in &actions[..first] {
            state.play(action);
        }
        let mut text = fen_of(&state.board);
        for (index, &action) in actions[first..].iter().enumerate() {
            text += if index == 0 { " moves " } else { " " };
            text += &state.action_name(action);
            state.play(action);
        }
        text
    }
}
