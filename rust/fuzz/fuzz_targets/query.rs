//! Messages to a server or to a page without one: queries and actions are answered or refused, in every game. The first
//! byte chooses the game, and each line after it is a message. The session is that of `rust/web`.
#![no_main]

#[path = "../../web/src/games.rs"]
mod games;

use games::AnySession;
use serde_json::{Value, json};

/// Small, so that whole games are short messages.
const GAMES: [&str; 19] = [
    "tic_tac_toe",
    "connect_four",
    "go(size=5)",
    "chess",
    "backgammon",
    "blokus",
    "breakthrough(width=5,height=5)",
    "chinese_checkers(players=3)",
    "connect_four_for_three",
    "dice_nim",
    "game2048(size=3)",
    "gomoku(size=6)",
    "hex(size=4)",
    "maedn",
    "othello(size=6)",
    "peg_solitaire",
    "pig(target=20)",
    "trictrac",
    "wall_game(width=5,height=5)",
];
/// Rounds in which searches of so few simulations have ended.
const ROUNDS: usize = 10_000;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&game, text)) = bytes.split_first() else { return };
    let mut session = open(GAMES[usize::from(game) % GAMES.len()]);
    for line in text.split(|&byte| byte == b'\n').take(8) {
        let mut said = session.ask(&String::from_utf8_lossy(line));
        let has_ended = (0..ROUNDS).any(|round| {
            let (is_busy, more) = session.step(round as f64);
            said.extend(more);
            !is_busy
        });
        assert!(has_ended, "a search does not end");
        for said in said {
            assert!(matches!(serde_json::from_str(&said), Ok(Value::Object(_))), "{said}");
        }
    }
});

fn open(game: &str) -> Box<dyn AnySession> {
    let limits = json!({
        "simulations": 20, "seconds": 1, "moves": 60, "turns": 4, "nodes": 60, "depth": 60, "text_bytes": 4000,
        "searches": 3, "games": 2,
    });
    let levels = json!([{"name": "low", "simulations": 2, "temperature": 1}]);
    let about = json!({"name": "main", "game": game, "network": null, "simulations": 10, "levels": levels});
    let player = json!({"about": about, "temperature": 0, "limits": limits, "options": {}, "network": null});
    games::open(games::BUILT_IN, &player.to_string(), Vec::new()).unwrap()
}
