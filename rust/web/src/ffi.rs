//! What JavaScript calls: plain functions of numbers. Texts and weights pass through memory that JavaScript sees.
//!
//! A name that JavaScript finds is `#[unsafe(no_mangle)]`, since two functions of one name would be a fault of the whole
//! program. These names begin with `azpy_`. There is no other unsafe code, and no pointer is followed here.
#![expect(unsafe_code, reason = "names that JavaScript finds")]

use std::cell::RefCell;

use azpy_serve::Error;

use azpy_games::registry::Entry;

use crate::games::{self, AnySession};

thread_local! {
    /// What JavaScript has written.
    static GIVEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What it will read: lines of JSON.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
    static SESSION: RefCell<Option<Box<dyn AnySession>>> = const { RefCell::new(None) };
}

/// Makes room for so many bytes, and returns where they are. JavaScript writes them before its next call.
#[unsafe(no_mangle)]
extern "C" fn azpy_room(bytes: usize) -> *mut u8 {
    SAID.take();
    GIVEN.with_borrow_mut(|given| {
        *given = vec![0; bytes];
        given.as_mut_ptr()
    })
}

/// Opens a player of one of these games: the first `text` bytes of the room are its JSON, the others its weights.
/// Whether it could be opened; if not, the reason is said. JavaScript finds this as `azpy_open` of `export_game!`.
#[must_use]
pub fn open(text: usize, games: &'static [Entry]) -> bool {
    std::panic::set_hook(Box::new(|panic| say([failure(&format!("the search failed: {panic}"))])));
    let given = GIVEN.take();
    let opened = match given.split_at_checked(text) {
        Some((player, weights)) => games::open(games, &String::from_utf8_lossy(player), weights.to_vec()),
        None => Err(Error::Json("the player is longer than what was written".to_owned())),
    };
    say(opened.as_ref().err().map(|error| failure(&error.to_string())));
    let is_open = opened.is_ok();
    SESSION.set(opened.ok());
    is_open
}

/// Takes a query or an action, the JSON in the room. What is answered at once is said.
#[unsafe(no_mangle)]
extern "C" fn azpy_ask() {
    let given = GIVEN.take();
    with_session(|session| session.ask(&String::from_utf8_lossy(&given)));
}

/// Goes on with the searches, a round of one of them; `now` is in milliseconds. Whether there is more to do.
#[unsafe(no_mangle)]
extern "C" fn azpy_step(now: f64) -> bool {
    // A program without memory ends without a word: what was said before is not its reason.
    SAID.take();
    let mut is_busy = false;
    with_session(|session| {
        let said;
        (is_busy, said) = session.step(now);
        said
    });
    is_busy
}

/// Bytes of what the last call said: lines of JSON.
#[unsafe(no_mangle)]
extern "C" fn azpy_length() -> usize {
    SAID.with_borrow(String::len)
}

/// Where they are.
#[unsafe(no_mangle)]
extern "C" fn azpy_said() -> *const u8 {
    SAID.with_borrow(|said| said.as_ptr())
}

fn with_session(act: impl FnOnce(&mut dyn AnySession) -> Vec<String>) {
    SESSION.with_borrow_mut(|session| match session {
        Some(session) => say(act(&mut **session)),
        None => say([failure("no player is open")]),
    });
}

fn say(lines: impl IntoIterator<Item = String>) {
    SAID.set(lines.into_iter().collect::<Vec<_>>().join("\n"));
}

fn failure(problem: &str) -> String {
    serde_json::json!({"error": problem}).to_string()
}
