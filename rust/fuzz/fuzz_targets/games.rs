//! Positions and lines of every game but chess and Go: a text is read or refused, and an accepted text is written and
//! read as the same position. The first byte chooses the game.
#![no_main]

use azpy_core::game::{Value, Values};
use azpy_core::text::Notation;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, ChineseCheckers, ConnectFour, DiceNim, Game2048, Gomoku, Hex, Maedn, Othello,
    PegBoard, PegSolitaire, Pig, TicTacToe, Trictrac, WallGame, WallRules,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((game, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match game % 17 {
        0 => check(&Backgammon::default(), text),
        1 => check(&Blokus::<Value>::new(2, 14).unwrap(), text),
        2 => check(&Breakthrough::new(5, 5).unwrap(), text),
        3 => check(&ChineseCheckers::<Values>::new(3, 40).unwrap(), text),
        4 => check(&ConnectFour::default(), text),
        5 => check(&DiceNim::default(), text),
        6 => check(&Game2048::new(3, 64).unwrap(), text),
        7 => check(&Gomoku::new(6, 4).unwrap(), text),
        8 => check(&Hex::new(4, true).unwrap(), text),
        9 => check(&Maedn::<Values>::new(4, true, 200).unwrap(), text),
        10 => check(&Othello::new(6).unwrap(), text),
        11 => check(&PegSolitaire::default(), text),
        12 => check(&PegSolitaire::new(PegBoard::Triangle), text),
        13 => check(&Pig::new(20).unwrap(), text),
        14 => check(&TicTacToe::new(), text),
        15 => check(&Trictrac::default(), text),
        _ => check(&WallGame::new(5, 5, WallRules::default()).unwrap(), text),
    }
});

fn check(start: &impl Notation, text: &str) {
    let _ = start.parse_actions(text);
    let _ = start.parse_plies(text, 3);
    if let Ok(state) = start.parse(text) {
        let _ = (state.render(), state.to_svg());
        if let Some(written) = state.to_text() {
            assert_eq!(start.parse(&written).map(|read| read.key()), Ok(state.key()), "{written}");
        }
    }
}
