//! The games of a program, and what it does with one: a session.

use std::sync::OnceLock;

use azpy_core::game::Payoff;
use azpy_core::text::Notation;
use azpy_games::any::{self, Any, Open};
use azpy_games::registry;

use crate::player::{About, Player};
use crate::session::{Asked, Session};

/// The start of some game.
pub type Start = any::Start<Opening>;

/// A game by its name.
pub type Entry = registry::Entry<Start>;

/// The start of a game, whatever its type.
pub fn start<G: Notation>(game: G) -> Start {
    Start::new(game)
}

/// The games that ship with azpy: all, or the one that the build names, whose program is less than half as large.
pub const BUILT_IN: &[Entry] = match option_env!("AZPY_WASM_GAME") {
    None => &azpy_games::built_in!(start),
    Some(name) => &[only(&azpy_games::built_in!(start), name.as_bytes())],
};

/// The game of this name; the build fails where there is none.
const fn only(games: &[Entry], wanted: &[u8]) -> Entry {
    let Some((&Entry { name, params, make }, others)) = games.split_first() else {
        panic!("AZPY_WASM_GAME names no game")
    };
    let mut same = 0;
    while same < name.len() && same < wanted.len() && name.as_bytes()[same] == wanted[same] {
        same += 1;
    }
    if same == name.len() && same == wanted.len() { Entry { name, params, make } } else { only(others, wanted) }
}

/// Those of this program.
static GAMES: OnceLock<&[Entry]> = OnceLock::new();

/// Who plays in a session.
pub struct Opening {
    player: Player,
    about: About,
    weights: Vec<u8>,
}

impl Open for Opening {
    type Opened = Result<Box<dyn Asked>, String>;

    fn games() -> &'static [Entry] {
        GAMES.get().copied().unwrap_or_default()
    }

    fn open<P: Payoff>(self, start: Any<P>) -> Self::Opened {
        Ok(Box::new(Session::new(start, self.player, self.about, &self.weights)?))
    }
}

/// A session with a player of one of these games.
///
/// # Errors
/// A sentence, if the player or its weights cannot be read, or its game is none of these.
pub(crate) fn open(games: &'static [Entry], player: &str, weights: Vec<u8>) -> Result<Box<dyn Asked>, String> {
    GAMES.get_or_init(|| games);
    let (player, about) = Player::read(player)?;
    let game = about.game.clone();
    Start::open(&game, Opening { player, about, weights })?
}
