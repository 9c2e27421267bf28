//! FEN, PGN and action names: a text is read or refused, and an accepted text is written and read as the same position.
#![no_main]

use azpy_core::game::Game;
use azpy_core::text::Notation;
use azpy_core::written::Bounds;
use azpy_games::Chess;
use azpy_games::chess::Encoding;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let start = Chess::new(Encoding::Az119, None, 512).unwrap();
    let _ = start.parse_actions(text);
    let _ = start.read_variations(text, Bounds { moves: 1_000, depth: 64 });
    if let Ok(state) = start.parse(text) {
        assert_eq!(start.parse(&state.to_text().unwrap()).map(|read| read.key()), Ok(state.key()));
    }
});
