//! A recorded random game of each kind, state by state: rules, notation and drawing stay as they are.
//!
//! The records are in `tests/playthroughs/`. After a wanted change write them anew and read the difference:
//! `AZPY_WRITE_PLAYTHROUGHS=1 cargo test -p azpy-games --test golden`.

use std::fmt::Write as _;
use std::path::Path;

use azpy_core::game::Turn;
use azpy_core::text::Notation;
use azpy_games::chess::Encoding;
use azpy_games::{
    Backgammon, Breakthrough, Chess, ConnectFour, DiceNim, Go9, Gomoku, Hex, Othello, Pig, TicTacToe, Trictrac,
    Variant, WallGame, WallRules,
};

mod common;
use common::{Random, legal, moves, outcomes};

/// The whole game as text. It is played by integers alone, so it is the same on every machine.
fn record<G: Notation>(name: &str, start: &G, seed: u64) -> String {
    let (mut state, mut random) = (start.clone(), Random(seed));
    let mut text = format!(
        "{name}, seed {seed}\nactions {}, observation {:?}, at most {} plies, {} symmetries\n",
        start.num_actions(),
        start.obs_shape(),
        start.max_plies(),
        start.num_symmetries(),
    );
    for ply in 0.. {
        let turn = state.turn();
        write!(text, "\nply {ply}: {turn}\n{}\n", state.render()).unwrap();
        let named = |action| format!("{action} {}", state.action_name(action));
        match turn {
            Turn::Player(_) => {
                let legal: Vec<_> = legal(&state).into_iter().map(named).collect();
                writeln!(text, "legal: {}", legal.join(", ")).unwrap();
            }
            Turn::Chance => {
                let outcomes: Vec<_> =
                    outcomes(&state).into_iter().map(|(outcome, p)| format!("{} ({p:.4})", named(outcome))).collect();
                writeln!(text, "outcomes: {}", outcomes.join(", ")).unwrap();
            }
            Turn::Terminal => {
                writeln!(text, "outcome: {}", state.outcome().0).unwrap();
                break;
            }
        }
        let action = *random.choose(&moves(&state));
        writeln!(text, "plays: {action}").unwrap();
        state.play(action);
    }
    text
}

fn check<G: Notation>(name: &str, start: &G, seed: u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playthroughs").join(format!("{name}.txt"));
    let text = record(name, start, seed);
    if std::env::var_os("AZPY_WRITE_PLAYTHROUGHS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (number, (now, then)) in text.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(now, then, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(text.lines().count(), recorded.lines().count(), "{} is longer or shorter", path.display());
}

#[test]
fn tic_tac_toe_plays_as_recorded() {
    check("tictactoe", &TicTacToe::new(), 1);
}

#[test]
fn connect_four_plays_as_recorded() {
    check("connect_four_7x6x4", &ConnectFour::default(), 2);
    check("connect_four_10x4x3", &ConnectFour::new(10, 4, 3).unwrap(), 6);
}

#[test]
fn hex_plays_as_recorded() {
    check("hex_4_swap", &Hex::new(4, true).unwrap(), 21);
}

#[test]
fn othello_plays_as_recorded() {
    check("othello_6", &Othello::new(6).unwrap(), 1);
}

#[test]
fn chess_plays_as_recorded() {
    check("chess_az119", &Chess::new(Encoding::Az119, None, 16).unwrap(), 1);
    check("chess960_0_az18", &Chess::new(Encoding::Az18, Some(0), 16).unwrap(), 2);
}

#[test]
fn go_plays_as_recorded() {
    check("go_5", &Go9::new(5, 7.5, true).unwrap(), 1);
}

#[test]
fn gomoku_plays_as_recorded() {
    check("gomoku_6_4", &Gomoku::new(6, 4).unwrap(), 1);
}

#[test]
fn breakthrough_plays_as_recorded() {
    check("breakthrough_5x6", &Breakthrough::new(5, 6).unwrap(), 1);
}

#[test]
fn pig_plays_as_recorded() {
    check("pig_20", &Pig::default(), 4);
}

#[test]
fn backgammon_plays_as_recorded() {
    check("backgammon_40_plies", &Backgammon::with_max_plies(true, 40).unwrap(), 7);
    let late = Backgammon::default().parse("x=6:3,5:2,2:2,off:8 o=22:1,6:3,3:2,off:9 turn=x").unwrap();
    check("backgammon_late", &late, 8);
}

#[test]
fn trictrac_plays_as_recorded() {
    check("trictrac_60_plies", &Trictrac::new(12, 60).unwrap(), 7);
    let late = "x=19:2,22:1,24:1,off:11 o=18:1,20:2,off:12 turn=x points=6,8 holes=10,11 rolls=3,3";
    check("trictrac_late", &Trictrac::default().parse(late).unwrap(), 8);
}

#[test]
fn dice_nim_plays_as_recorded() {
    check("dice_nim_12", &DiceNim::default(), 5);
}

#[test]
fn wall_game_plays_as_recorded() {
    check("wall_game_4x3", &WallGame::new(4, 3, WallRules::default()).unwrap(), 3);
    let rules = WallRules { variant: Variant::Classic, immediate: true, classic_policy: true, ..WallRules::default() };
    check("wall_game_classic_3x3", &WallGame::new(3, 3, rules).unwrap(), 1);
}
