//! FEN, PGN and action names: a text is read or refused, and an accepted text is written and read as the same position.
#![no_main]

use azpy_core::game::Game;
use azpy_games::Chess;
use azpy_games::chess::Encoding;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let start = Chess::new(Encoding::Az119, None, 512).unwrap();
    let _ = start.parse_actions(text);
    if let Ok(state) = start.parse(text) {
        assert_eq!(start.parse(&state.to_text().unwrap()).map(|read| read.key()), Ok(state.key()));
    }
});
