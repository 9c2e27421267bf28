//! azpy's search and networks as WebAssembly: what answers the board's queries on a page without a server.
//!
//! From the lowest layer to the highest: `player` (who plays, as `az-export --web` writes it), `track` (a game whose tree
//! is kept), `session` (queries are taken, searched a round at a time, and answered), `door` (what JavaScript calls).
//! Queries are read and answers are written by azpy-query, as for the server. There is no thread and no clock: the page
//! says what time it is.
#![deny(unsafe_code)]

mod door;
mod player;
mod session;
mod track;

use azpy_games::any::{self, Start};

use crate::player::Player;
use crate::session::{Asked, Session};

/// A session with a player.
///
/// # Errors
/// A sentence, if the player or its weights cannot be read, or its game is not one of azpy's.
fn open(player: &str, weights: &[u8]) -> Result<Box<dyn Asked>, String> {
    let (player, about) = Player::read(player)?;
    let (spec, start) = any::make(&about.game, Vec::new())?;
    Ok(match start {
        Start::ZeroSum(start) => Box::new(Session::new(start.named(&spec), player, about, weights)?),
        Start::Each(start) => Box::new(Session::new(start.named(&spec), player, about, weights)?),
    })
}
