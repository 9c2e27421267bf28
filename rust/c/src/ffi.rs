//! What C calls: pointers become references, results become what `azpy.h` says, and errors and panics become texts.
#![expect(unsafe_code, reason = "pointers of programs in C, and the names that these programs find")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

use azpy_core::game::{MAX_PLAYERS, Turn};

use crate::error::Error;
use crate::game::{OpenGame, open};

const ERROR: c_int = -1;
const CHANCE: c_int = -2;
const OVER: c_int = -3;

thread_local! {
    static SAID: RefCell<CString> = RefCell::default();
}

/// Characters of an error that are told: its start, which names what is wrong, and its end, which says what to do.
const TOLD: usize = 400;

/// An error that quotes a long name, without the middle.
fn cut(error: String) -> String {
    let count = error.chars().count();
    if count <= 2 * TOLD {
        return error;
    }
    let (start, end): (String, String) =
        (error.chars().take(TOLD).collect(), error.chars().skip(count - TOLD).collect());
    format!("{start} ... {end}")
}

/// What `body` finds; after an error or a panic `failed`, and a text for `azpy_error`.
pub fn guarded<T>(failed: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    let caught = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Error::Panicked));
    caught.unwrap_or_else(|error| {
        SAID.set(c_text(&cut(error.to_string())));
        failed
    })
}

/// A text as C has it.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// A game, and the values that C last received.
struct Game {
    inner: Box<dyn OpenGame>,
    seen: Seen,
    /// A call is under way, or ended in a panic.
    is_broken: bool,
}

/// `azpy_move` in `azpy.h`.
#[repr(C)]
struct Move {
    action: c_int,
    name: *const c_char,
    probability: f32,
    visits: u32,
    prior: f32,
    policy: f32,
    value: f32,
}

/// `azpy_position` in `azpy.h`.
#[repr(C)]
struct Position {
    turn: c_int,
    num_players: c_int,
    values: [f32; MAX_PLAYERS],
    num_moves: usize,
    moves: *const Move,
    drawing: *const c_char,
}

/// A position as C sees it, and what its pointers point to.
struct Seen {
    position: Position,
    moves: Vec<Move>,
    texts: Vec<CString>,
}

impl Seen {
    fn nothing() -> Self {
        let [turn, num_players] = [OVER, 0];
        let position =
            Position { turn, num_players, values: [0.0; MAX_PLAYERS], num_moves: 0, moves: null(), drawing: null() };
        Self { position, moves: Vec::new(), texts: Vec::new() }
    }

    fn of(game: &dyn OpenGame) -> Self {
        let mut seen = Self::nothing();
        for each in game.moves() {
            let name = c_text(&each.name);
            seen.moves.push(Move {
                action: each.action as c_int,
                name: name.as_ptr(),
                probability: each.probability,
                visits: each.visits,
                prior: each.prior,
                policy: each.policy,
                value: each.value,
            });
            seen.texts.push(name);
        }
        let (drawing, values) = (c_text(&game.drawing()), game.values());
        seen.position.turn = match game.turn() {
            Turn::Player(player) => player.index() as c_int,
            Turn::Chance => CHANCE,
            Turn::Terminal => OVER,
        };
        seen.position.num_players = values.len() as c_int;
        seen.position.values[..values.len()].copy_from_slice(&values);
        (seen.position.num_moves, seen.position.moves) = (seen.moves.len(), seen.moves.as_ptr());
        seen.position.drawing = drawing.as_ptr();
        seen.texts.push(drawing);
        seen
    }
}

/// What `act` finds out of a game; after an error or a panic `failed`, and a text for `azpy_error`.
///
/// # Safety
/// `game` is null, or was opened and not closed. No other thread uses it.
unsafe fn with<T>(game: *mut Game, failed: T, act: impl FnOnce(&mut Game) -> Result<T, Error>) -> T {
    guarded(failed, || {
        // SAFETY: see above.
        let game = unsafe { game.as_mut() }
            .ok_or_else(|| Error::Argument("game is NULL: azpy_open returns one".to_owned()))?;
        if game.is_broken {
            return Err(Error::Broken);
        }
        game.is_broken = true;
        let found = act(game);
        game.is_broken = false;
        found
    })
}

/// A text of C; none for null.
///
/// # Safety
/// `pointer` is null, or points to bytes that end with a NUL and stay as they are.
unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: see above.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|error| Error::Argument(format!("{name} is not UTF-8: {error}")))
}

/// An action as C has it.
fn returned(action: u32) -> Result<c_int, Error> {
    c_int::try_from(action).map_err(|_| Error::Game(format!("action {action} is too large for an int")))
}

/// See `azpy.h`.
///
/// # Safety
/// The arguments are as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_open(folder: *const c_char, game: *const c_char, position: *const c_char) -> *mut Game {
    guarded(null_mut(), || {
        // SAFETY: see above.
        let texts = unsafe { [text(folder, "folder")?, text(game, "game")?, text(position, "position")?] };
        let inner = open(texts[0], texts[1], texts[2])?;
        Ok(Box::into_raw(Box::new(Game { inner, seen: Seen::nothing(), is_broken: false })))
    })
}

/// See `azpy.h`.
///
/// # Safety
/// `game` is as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_close(game: *mut Game) {
    guarded((), || {
        if !game.is_null() {
            // SAFETY: `azpy_open` made it so, and nobody uses it after this call.
            drop(unsafe { Box::from_raw(game) });
        }
        Ok(())
    });
}

/// See `azpy.h`.
///
/// # Safety
/// `game` is as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_look(game: *mut Game) -> *const Position {
    let look = |game: &mut Game| {
        game.seen = Seen::of(&*game.inner);
        Ok(&raw const game.seen.position)
    };
    // SAFETY: see above.
    unsafe { with(game, null(), look) }
}

/// See `azpy.h`.
///
/// # Safety
/// The arguments are as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_action(game: *mut Game, name: *const c_char) -> c_int {
    // SAFETY: see above.
    let name = unsafe { text(name, "text") };
    let read = |game: &mut Game| {
        let name = name?.ok_or_else(|| Error::Argument("text is NULL: give the name of a move".to_owned()))?;
        returned(game.inner.action(name)?)
    };
    // SAFETY: see above.
    unsafe { with(game, ERROR, read) }
}

/// See `azpy.h`.
///
/// # Safety
/// `game` is as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_play(game: *mut Game, action: c_int) -> c_int {
    let play = |game: &mut Game| {
        let wrong = |_| Error::Argument(format!("invalid action {action}: check the error of the previous call"));
        let action = u32::try_from(action).map_err(wrong)?;
        game.inner.play(action).map(|()| 0)
    };
    // SAFETY: see above.
    unsafe { with(game, ERROR, play) }
}

/// See `azpy.h`.
///
/// # Safety
/// `game` is as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_undo(game: *mut Game, plies: usize) -> c_int {
    // SAFETY: see above.
    unsafe { with(game, ERROR, |game| Ok(game.inner.undo(plies) as c_int)) }
}

/// See `azpy.h`.
///
/// # Safety
/// `game` is as `azpy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn azpy_search(game: *mut Game, simulations: u32) -> c_int {
    // SAFETY: see above.
    unsafe { with(game, ERROR, |game| returned(game.inner.search(simulations)?)) }
}

/// See `azpy.h`.
#[unsafe(no_mangle)]
pub extern "C" fn azpy_error() -> *const c_char {
    SAID.with_borrow(|said| said.as_ptr())
}
