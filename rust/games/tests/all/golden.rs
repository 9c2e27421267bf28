//! A recorded random game of each kind, state by state: rules, notation and drawing stay as they are.
//!
//! The records are in `tests/playthroughs/`. After a wanted change write them anew and read the difference:
//! `AZPY_WRITE_PLAYTHROUGHS=1 cargo test -p azpy-games --test all golden::`.

use std::fmt::Write as _;
use std::path::Path;

use azpy_core::game::{Payoff, Player, Turn, Value, Values};
use azpy_core::text::Notation;
use azpy_games::chess::Encoding;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, Chess, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go9,
    Go19, Gomoku, Hex, KuhnPoker, LeducPoker, LiarsDice, Maedn, Othello, PegBoard, PegSolitaire, Pig, TicTacToe,
    Trictrac, Variant, WallGame, WallRules,
};

use crate::common::{Random, encode, legal, moves, outcomes};

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
                let each = state.outcome().each();
                match each.numbers() {
                    [own, ..] if G::Payoff::ZERO_SUM => writeln!(text, "outcome: {own}").unwrap(),
                    each => writeln!(text, "outcomes: {each:?}").unwrap(),
                }
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

/// Keys, legal actions, planes and outcomes of random games in one number.
fn fingerprint<G: Notation>(start: &G, games: u64) -> u64 {
    let mut print = Random(0);
    let mut add = |word: u64| print = Random(print.0.rotate_left(7) ^ Random(word).next());
    for seed in 0..games {
        let (mut state, mut random) = (start.clone(), Random(seed));
        for ply in 0.. {
            let key = state.key();
            add(key as u64);
            add((key >> 64) as u64);
            let moves = moves(&state);
            moves.iter().for_each(|&action| add(u64::from(action)));
            match state.turn() {
                Turn::Player(_) if ply % 16 == seed % 16 => {
                    encode(&state).iter().for_each(|value| add(u64::from(value.to_bits())));
                }
                Turn::Player(_) | Turn::Chance => {}
                Turn::Terminal => {
                    add(u64::from(state.outcome().of(Player::Zero).to_bits()));
                    break;
                }
            }
            state.play(*random.choose(&moves));
        }
    }
    print.0
}

/// Another number here makes runs that began with an earlier version go on otherwise.
#[test]
fn keys_and_all_that_follows_from_a_position_stay_as_they_are() {
    let wall = |columns, rows, variant| WallGame::new(columns, rows, WallRules { variant, ..WallRules::default() });
    let found = [
        fingerprint(&Go9::new(9, 7.5, true).unwrap(), 8),
        fingerprint(&Go9::new(5, 0.5, true).unwrap(), 40),
        fingerprint(&Go9::new(7, 7.5, false).unwrap(), 8),
        fingerprint(&Go19::new(13, 7.5, true).unwrap(), 2),
        fingerprint(&Hex::default(), 8),
        fingerprint(&Hex::new(13, true).unwrap(), 4),
        fingerprint(&Gomoku::default(), 8),
        fingerprint(&Gomoku::new(19, 6).unwrap(), 2),
        fingerprint(&WallGame::default(), 4),
        fingerprint(&wall(20, 3, Variant::Standard).unwrap(), 4),
        fingerprint(&wall(12, 10, Variant::Freestyle).unwrap(), 2),
    ];
    let expected: [u64; 11] = [
        0x5cd0_8025_2329_09f4,
        0x5811_1618_97a1_df1a,
        0xac81_62c1_de74_a68a,
        0x385a_45e5_2aaf_fa62,
        0xc749_17fc_895c_cc48,
        0xe3c5_bd75_6e18_c8a4,
        0xf220_50ba_25ab_e98a,
        0xc322_706f_4741_eed1,
        0x0e7c_841b_d535_fd6e,
        0x8152_219b_2105_1505,
        0xec9b_911e_ae40_8e91,
    ];
    assert_eq!(found, expected, "{found:#x?}");
}

#[test]
fn games_play_as_recorded() {
    check("tictactoe", &TicTacToe::new(), 1);
    check("connect_four_7x6x4", &ConnectFour::default(), 2);
    check("connect_four_10x4x3", &ConnectFour::new(10, 4, 3).unwrap(), 6);
    check("connect_four_for_three_5x4x3", &ConnectFourForThree::new(5, 4, 3).unwrap(), 1);
    check("game2048_3_64", &Game2048::new(3, 64).unwrap(), 1);
    check("peg_solitaire_triangle", &PegSolitaire::new(PegBoard::Triangle), 1);
    check("hex_4_swap", &Hex::new(4, true).unwrap(), 21);
    check("othello_6", &Othello::new(6).unwrap(), 1);
    check("chess_az119", &Chess::new(Encoding::Az119, None, 16).unwrap(), 1);
    check("chess960_0_az18", &Chess::new(Encoding::Az18, Some(0), 16).unwrap(), 2);
    check("go_5", &Go9::new(5, 7.5, true).unwrap(), 1);
    check("gomoku_6_4", &Gomoku::new(6, 4).unwrap(), 1);
    check("breakthrough_5x6", &Breakthrough::new(5, 6).unwrap(), 1);
    check("pig_20", &Pig::default(), 4);
    check("backgammon_40_plies", &Backgammon::with_max_plies(true, 40).unwrap(), 7);
    let late = Backgammon::default().parse("x=6:3,5:2,2:2,off:8 o=22:1,6:3,3:2,off:9 turn=x").unwrap();
    check("backgammon_late", &late, 8);
    check("trictrac_60_plies", &Trictrac::new(12, 60).unwrap(), 7);
    let late = "x=19:2,22:1,24:1,off:11 o=18:1,20:2,off:12 turn=x points=6,8 holes=10,11 rolls=3,3";
    check("trictrac_late", &Trictrac::default().parse(late).unwrap(), 8);
    let late = "x=38,a,c,d o=40,a,b,d y=37,b,c,d turn=y plies=150";
    check("maedn_3_late", &Maedn::<Values>::new(3, true, 400).unwrap().parse(late).unwrap(), 1);
    check("blokus_5", &Blokus::<Value>::new(2, 5).unwrap(), 1);
    check("chinese_checkers_6_players", &ChineseCheckers::<Values>::new(6, 2).unwrap(), 1);
    check("kuhn_poker", &KuhnPoker::new(), 2);
    check("leduc_poker", &LeducPoker::new(), 4);
    check("liars_dice_6", &LiarsDice::default(), 3);
    check("dice_nim_12", &DiceNim::default(), 5);
    check("wall_game_4x3", &WallGame::new(4, 3, WallRules::default()).unwrap(), 3);
    let rules = WallRules { variant: Variant::Classic, immediate: true, classic_policy: true, ..WallRules::default() };
    check("wall_game_classic_3x3", &WallGame::new(3, 3, rules).unwrap(), 1);
}
