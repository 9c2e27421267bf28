//! SGF: a text is read or refused, and an accepted text is written and read as the same position.
#![no_main]

use azpy_core::game::Game;
use azpy_games::Go9;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let start = Go9::new(5, 7.5, true).unwrap();
    if let Ok(state) = start.parse(text) {
        assert_eq!(start.parse(&state.to_text().unwrap()).map(|read| read.key()), Ok(state.key()));
    }
});
