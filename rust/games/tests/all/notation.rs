//! Positions as text: what is written, what is refused and why, and that no text does harm.
//!
//! That a position written down and read again is the same one is checked for every game in `conformance.rs`.
//! Millions of texts: `cargo test --release -p azpy-games --test all millions_of_texts -- --ignored --nocapture`.

use std::collections::HashSet;
use std::sync::LazyLock;

use azpy_core::game::{Game, Payoff, Player, Turn, Value, Values};
use azpy_core::text::Notation;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go9,
    Gomoku, Hex, Maedn, Othello, PegSolitaire, Pig, TicTacToe, Trictrac, Variant, WallGame, WallRules,
};

use crate::chess::{az119, chess960};
use crate::chess_pgn::GAME;
use crate::common::{BOUNDS, Random, check_written, encode, moves, mutated};

fn after<G: Notation>(start: &G, line: &str) -> G {
    let mut state = start.clone();
    for action in start.parse_actions(line).unwrap() {
        state.try_play(action).unwrap();
    }
    state
}

fn text<G: Notation>(state: &G) -> String {
    state.to_text().unwrap()
}

#[test]
fn positions_are_written_as_documented() {
    assert_eq!(text(&TicTacToe::new()), ".../.../... x");
    assert_eq!(text(&after(&TicTacToe::new(), "c3 b2")), "..x/.o./... x");
    let three = after(&ConnectFour::default(), "4 4 4");
    assert_eq!(text(&three), "......./......./......./...x.../...o.../...x... o");
    assert_eq!(text(&after(&ConnectFour::new(4, 1, 2).unwrap(), "2 4")), ".x.o x");
    assert_eq!(text(&after(&Hex::new(3, true).unwrap(), "b1 swap")), ".../o../... x");
    assert_eq!(text(&Othello::new(4).unwrap()), "..../.ox./.xo./.... x");
    assert_eq!(text(&after(&Othello::new(4).unwrap(), "b1")), ".x../.xx./.xo./.... o");
    let pig = Pig::default();
    assert_eq!(text(&pig), "0/0 table 0 player 0 ply 0");
    assert_eq!(text(&after(&pig, "roll 6 hold roll 4")), "6/0 table 4 player 1 ply 5");
    assert_eq!(text(&after(&pig, "roll 6 hold roll 4 roll")), "6/0 table 4 player 1 ply 6 rolling");
    let nim = DiceNim::default();
    assert_eq!(text(&nim), "heap 12 player 0");
    assert_eq!(text(&after(&nim, "roll 3 take 2")), "heap 10 player 1");
    assert_eq!(text(&after(&nim, "roll 3 take 2 roll 1")), "heap 10 roll 1 player 1");
    let three = after(&ConnectFourForThree::new(4, 2, 2).unwrap(), "1 2 4 3");
    assert_eq!((text(&three), three.turn()), ("..../xoxy o".to_owned(), Turn::Player(Player::One)));
    let won = after(&three, "2");
    assert_eq!(won.result_text(), "Blue wins by 2 in a row: red gets -0.5, blue gets 1, green gets -0.5");
    let small = Game2048::new(2, 64).unwrap();
    assert_eq!(text(&after(&small, "a1=2")), ".,./2,. score 0 to come 1");
    assert_eq!(text(&after(&small, "a1=2 b1=2 left b2=4")), ".,4/4,. score 4");
    assert_eq!(text(&after(&PegSolitaire::default(), "d2d4")), "xxx/xxx/xxxxxxx/xxxxxxx/xxx.xxx/x.x/xxx");
}

#[test]
fn what_is_read_can_be_played_on() {
    let drawn = TicTacToe::new().parse(" ..x/.o./...\n x ").unwrap();
    assert_eq!(drawn.key(), after(&TicTacToe::new(), "c3 b2").key());
    // A stone of the chain to come; the set that is joined to a side must be known.
    let nearly = Hex::new(3, false).unwrap().parse("x.o/x.o/... x").unwrap();
    assert_eq!(after(&nearly, "a3").turn(), Turn::Terminal);
    // Not a board but the start, and a line of no plies.
    assert_eq!(TicTacToe::new().parse(" \n").unwrap(), TicTacToe::new());
}

fn refused<G: Notation>(start: &G, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        match start.parse(text) {
            Ok(state) => panic!("{text:?} was read as\n{}", state.render()),
            Err(error) => assert!(error.to_string().contains(expected), "{text:?}: {error}"),
        }
    }
}

#[test]
fn a_board_of_another_form_is_refused() {
    refused(
        &TicTacToe::new(),
        &[
            ("x/o", "the board must have 3 rows, from the top with \"/\" between them, got 2"),
            ("x", "3 rows, from the top with \"/\" between them, got 1"),
            (".../.../.../... x", "got 4"),
            ("..../.../... x", "row 1 of the board must have 3 cells, got 4: \"....\""),
            ("3/3/3 x", "row 1 of the board must have 3 cells, got 1: \"3\""),
            (".../.X./... x", "row 2 of the board must be made of x, o and dots, got 'X'"),
            (".../.../..\u{1b} x", "got '\\u{1b}'"),
            (".../.../...", "expected the player to move (x or o) after the board; got nothing"),
            (".../.../... 0", "expected the player to move (x or o) after the board, got \"0\""),
            (".../.../... x x", "expected nothing after the player to move, got \"x\""),
            ("b2 .../.../... x", "action 2 is \".../.../...\", which is not among the legal ones: a3, b3"),
            ("b2 b2", "action 2 is \"b2\", which is not among the legal ones"),
        ],
    );
    refused(&Hex::new(4, false).unwrap(), &[(".../.../... x", "the board must have 4 rows"), ("a1 e1", "action 2")]);
    refused(&Othello::new(6).unwrap(), &[("..../.ox./.xo./.... x", "the board must have 6 rows")]);
}

#[test]
fn numbers_of_stones_that_nobody_can_have_are_refused() {
    let turns = "with x to move, both have equally many stones, got 3 of x and 2 of o";
    refused(
        &TicTacToe::new(),
        &[("xxx/oo./... x", turns), (".../.../... o", "with o to move, x has one stone more, got 0 of x and 0 of o")],
    );
    refused(&ConnectFour::new(4, 4, 4).unwrap(), &[("..../..../..../xo.. o", "got 1 of x and 1 of o")]);
    refused(&Hex::new(3, false).unwrap(), &[(".../.o./... x", "got 0 of x and 1 of o"), ("x../o../... o", "got 1")]);
    let swap = Hex::new(3, true).unwrap();
    refused(&swap, &[(".../.../... o", "after a swap x has one less"), ("x../.x./... o", "got 2 of x and 0 of o")]);
    for text in [".../.o./... x", "x../o../... o", "x../o../... x", ".../.x./... o"] {
        assert!(swap.parse(text).is_ok(), "{text}");
    }
}

#[test]
fn games_that_would_have_been_over_before_are_refused() {
    refused(
        &TicTacToe::new(),
        &[("xxx/ooo/... x", "both x and o have won"), ("xxx/oo./o.. x", "x has won, so o is to move, got x")],
    );
    let (one_row, two_rows) = (ConnectFour::new(7, 1, 3).unwrap(), ConnectFour::new(7, 2, 3).unwrap());
    refused(&one_row, &[("xxxooo. x", "both x and o have won"), ("xxxoo.o x", "x has won, so o is to move")]);
    refused(&two_rows, &[("oo...oo/xxxoxxx o", "x has won more than once, which no single stone can do")]);
    refused(&Hex::new(4, false).unwrap(), &[("xoxo/xoxo/xoxo/xox. o", "x has won more than once")]);
    refused(&Hex::new(3, true).unwrap(), &[("x.o/x.o/xo. x", "x has won, so o is to move, got x")]);
}

#[test]
fn stones_that_float_and_discs_apart_are_refused() {
    refused(
        &ConnectFour::new(4, 4, 4).unwrap(),
        &[("..../.x../..../.o.. x", "there is nothing below the stone in column 2, row 2 from the top")],
    );
    refused(
        &Othello::new(4).unwrap(),
        &[
            ("..../.o../.xo./.... x", "a cell in the centre is empty"),
            ("..../.ox./.xo./.... o", "a board with four discs must be the start"),
            ("..../.xx./.xx./.... x", "a board with four discs must be the start"),
        ],
    );
    let apart = "x...../....../..ox../..xo../....../...... x";
    refused(&Othello::new(6).unwrap(), &[(apart, "the disc on a1 is not connected to the centre")]);
    // Not around the edge: f3 and a4 are no neighbours.
    let after_f3 = "....../....../..oxxx/..xo../x...../...... o";
    let before_a4 = "....../.....x/..ox../xxxo../....../...... o";
    refused(&Othello::new(6).unwrap(), &[(after_f3, "the disc on a5 is not"), (before_a4, "the disc on f2 is not")]);
    // The start of the other diagonal: images of games begin there.
    assert!(Othello::new(4).unwrap().parse("..../.xo./.ox./.... x").is_ok());
}

#[test]
fn dice_games_refuse_what_no_line_of_play_leads_to() {
    refused(
        &Pig::default(),
        &[
            ("6/0", "a position is written as in \"6/0 table 4 player 1 ply 9\""),
            ("6/0 table 4 player 1 ply 9 rolling rolling", "got \"6/0 table"),
            ("6/0/0 table 4 player 1 ply 9", "the bank of player 1 must be a whole number from 0 to 20, got \"0/0\""),
            ("6/+1 table 4 player 1 ply 9", "got \"+1\""),
            ("21/0 table 0 player 1 ply 9", "the bank of player 0 must be a whole number from 0 to 20, got \"21\""),
            ("6/0 table 4 player 2 ply 9", "the player must be a whole number from 0 to 1, got \"2\""),
            ("6/0 table 4 player 1 ply 401", "the ply must be a whole number from 0 to 400"),
            ("6/0 table 4 player 1 ply 4", "such a position comes at ply 5 at the earliest, got ply 4"),
            ("0/0 table 0 player 1 ply 1", "at ply 2 at the earliest"),
            ("0/0 table 0 player 0 ply 0 rolling", "at ply 1 at the earliest"),
            ("6/6 table 0 player 1 ply 7", "at ply 8 at the earliest"),
            ("20/20 table 0 player 1 ply 90", "both players have banked 20"),
            ("20/0 table 0 player 0 ply 90", "player 0 has won: then the table is empty"),
            ("20/0 table 2 player 1 ply 90", "player 0 has won"),
            ("18/0 table 3 player 0 ply 90", "the table stops at the 2 points that player 0 needs, got 3"),
            ("1/0 table 0 player 1 ply 90", "no roll is worth a single point"),
            ("roll 7", "action 2 is \"7\", which is not among the legal ones: 1, 2, 3, 4, 5, 6"),
        ],
    );
    // A single point that is all that is left to win.
    assert!(Pig::default().parse("19/0 table 1 player 0 ply 90").is_ok());
    refused(
        &DiceNim::default(),
        &[
            ("heap", "a position is written as in \"heap 9 roll 2 player 1\""),
            ("heap 13 player 0", "the heap must be a whole number from 0 to 12, got \"13\""),
            ("heap 9 roll 4 player 1", "the roll must be a whole number from 1 to 3, got \"4\""),
            ("heap 12 player 1", "with 12 of 12 counters left player 1 cannot be to move"),
            ("heap 11 player 0", "with 11 of 12 counters left player 0 cannot be to move"),
            ("heap 0 roll 1 player 1", "the heap is empty"),
            ("roll 2 take 3 roll 1", "action 2 is \"take 3\", which is not among the legal ones: take 1, take 2"),
        ],
    );
}

#[test]
fn games_of_other_numbers_of_players_refuse_what_no_line_of_play_leads_to() {
    refused(
        &ConnectFourForThree::new(4, 2, 3).unwrap(),
        &[
            ("..../xoz. x", "row 2 of the board must be made of x, o, y and dots, got 'z'"),
            ("..../xoy. z", "expected the player to move (x, o or y) after the board, got \"z\""),
            ("..../xoy. y", "with y to move, x and o have one stone more, got 1 of x and 1 of o and 1 of y"),
            ("..../xoyx x", "with x to move, all have equally many stones, got 2 of x and 1 of o and 1 of y"),
            ("yyoo/xxxo y", "x has won, so o is to move, got y"),
        ],
    );
    refused(
        &Game2048::new(2, 64).unwrap(),
        &[
            ("2,./.,.", "a position is written as in \"2,./4,2 score 4\""),
            ("2,./.,. score 0 to come 3", "to come must be a whole number from 1 to 2, got \"3\""),
            ("2,./. score 0", "the board must have 2 rows of 2 cells, as in a,b/c,d, got \"2,./.\""),
            ("2,./.,6 score 0", "a tile must be a power of two up to 64, got 6"),
            ("2,./.,128 score 0", "a tile must be a power of two up to 64, got 128"),
            ("2,./.,1 score 0", "a tile must be a whole number from 2 to"),
            ("2,./.,2 score +4", "the score must be a whole number, got \"+4\""),
            ("2,./.,8 score 20", "these tiles score 16, or 4 less for each four that appeared, got 20"),
            ("2,./.,8 score 14", "these tiles score 16"),
            ("2,./.,8 score 4", "these tiles score 16"),
            ("2,./.,. score 0", "these tiles and this score cannot have 0 to come"),
            ("2,./.,. score 0 to come 2", "these tiles and this score cannot have 2 to come"),
            ("2,2/2,2 score 0 to come 1", "these tiles and this score cannot have 1 to come"),
            ("64,./.,. score 256 to come 1", "these tiles and this score cannot have 1 to come"),
        ],
    );
    refused(
        &PegSolitaire::default(),
        &[
            ("x/.x", "the board must be .../.../......./......./......./.../... with x where pegs are, got \"x/.x\""),
            ("xxx/xxx/xxxxxxx/xxx.xxx/xxxxxxx/xxx/xxx x", "with x where pegs are"),
            ("xxx/xxx/xxxxxxx/xxxxxxx/xxxxxxx/xxx/xxx", "no game reaches this board, and it is not a start"),
            (".../.../......./......./......./.../...", "no game reaches this board"),
            ("d2d4 d2d4", "action 2 is \"d2d4\", which is not among the legal ones"),
        ],
    );
    assert!(PegSolitaire::default().parse(".xx/xxx/xxxxxxx/xxxxxxx/xxxxxxx/xxx/xxx").is_ok());
}

/// All positions of a small game as text.
fn reached<G: Notation>(start: &G) -> HashSet<String> {
    let (mut open, mut reached) = (vec![start.clone()], HashSet::new());
    while let Some(state) = open.pop() {
        if reached.insert(text(&state)) {
            open.extend(moves(&state).into_iter().map(|action| crate::common::after(&state, action)));
        }
    }
    reached
}

/// All texts of boards of that size.
fn boards(width: u32, height: u32) -> impl Iterator<Item = String> {
    (0..3_usize.pow(width * height)).flat_map(move |number| {
        let cell = |cell: u32| ['.', 'x', 'o'][number / 3_usize.pow(cell) % 3];
        let row = |row: u32| (width * row..width * (row + 1)).map(cell).collect::<String>();
        let board = (0..height).map(row).collect::<Vec<_>>().join("/");
        ["x", "o"].map(|mover| format!("{board} {mover}"))
    })
}

#[test]
fn the_texts_that_are_read_are_those_of_positions_that_play_reaches() {
    fn check<G: Notation>(start: &G, texts: impl Iterator<Item = String>, positions: Option<usize>) {
        let reached = reached(start);
        assert!(positions.is_none_or(|positions| positions == reached.len()), "{} positions", reached.len());
        let mut read = 0;
        for text in texts {
            assert_eq!(start.parse(&text).is_ok(), reached.contains(&text), "{text}");
            read += usize::from(reached.contains(&text));
        }
        assert_eq!(read, reached.len());
    }
    check(&TicTacToe::new(), boards(3, 3), Some(5478));
    check(&Hex::new(3, false).unwrap(), boards(3, 3), None);
    check(&Hex::new(3, true).unwrap(), boards(3, 3), None);
    let ends = ["", " roll 1", " roll 2", " roll 3"];
    let texts = (0..=7).flat_map(|heap| [0, 1].map(|player| (heap, player)));
    let texts = texts.flat_map(|(heap, player)| ends.map(|roll| format!("heap {heap}{roll} player {player}")));
    check(&DiceNim::new(7).unwrap(), texts, None);
}

/// Where the refusals are not exact they leave little through, and nothing out.
#[test]
fn every_position_is_read_where_others_are_too() {
    let start = ConnectFour::new(3, 3, 3).unwrap();
    let known = reached(&start);
    let read: HashSet<_> = boards(3, 3).filter(|text| start.parse(text).is_ok()).collect();
    assert!(read.is_superset(&known));
    assert!(read.len() < known.len() + known.len() / 6, "{} read, {} exist", read.len(), known.len());

    let start = Pig::with_max_plies(9, 12).unwrap();
    let known = reached(&start);
    assert!(known.len() > 200, "{}", known.len());
    for text in known {
        assert_eq!(start.parse(&text).map(|state| state.to_text()), Ok(Some(text)));
    }
}

/// A game's notation, whichever game it is.
trait Texts {
    /// Whether a text is read. What comes of it must be a position that can be played on and written down.
    fn reads(&self, text: &str) -> bool;

    /// A position of a random game as text, or the line of play that leads there.
    fn random_text(&self, random: &mut Random) -> String;
}

impl<G: Notation> Texts for G {
    fn reads(&self, text: &str) -> bool {
        if let Ok(actions) = self.parse_actions(text) {
            let mut state = self.clone();
            actions.into_iter().for_each(|action| state.try_play(action).unwrap());
        }
        let has_games = self.read_game("").is_ok();
        if let Ok(read) = self.read_variations(text, BOUNDS)
            && has_games
        {
            check_written(self, &read);
        }
        let mut state = match self.parse(text) {
            Ok(state) => state,
            Err(error) => {
                let error = error.to_string();
                assert!(!error.is_empty() && error.len() < 2500 && !error.contains('\n'), "{text:?}: {error}");
                return false;
            }
        };
        assert!(!state.render().is_empty() && state.to_svg().ends_with("</svg>"), "{text:?}");
        if let Some(written) = state.to_text() {
            let again = self.parse(&written).map(|again| again.key());
            assert_eq!(again, Ok(state.key()), "{text:?}, written {written:?}");
            // No text is both.
            assert!(self.parse_actions(&written).is_err(), "{written:?} is a line of play too");
        }
        if matches!(state.turn(), Turn::Player(_)) {
            assert!(encode(&state).iter().all(|value| value.is_finite()), "{text:?}");
        }
        let mut random = Random(1);
        for plies in 0..200 {
            if state.turn() == Turn::Terminal {
                assert!(state.outcome().of(Player::Zero).abs() <= 1.0, "{text:?}");
                break;
            }
            assert!(plies < self.max_plies(), "{text:?} goes on for {plies} plies");
            let action = *random.choose(&moves(&state));
            state.play(action);
        }
        true
    }

    fn random_text(&self, random: &mut Random) -> String {
        let (mut state, mut names) = (self.clone(), Vec::new());
        for _ in 0..random.next() % 40 {
            let moves = moves(&state);
            if moves.is_empty() {
                break;
            }
            let action = *random.choose(&moves);
            names.push(state.action_name(action));
            state.play(action);
        }
        let written = state.to_text().filter(|_| !random.next().is_multiple_of(4));
        written.unwrap_or_else(|| names.join(" "))
    }
}

/// Positions of other programs.
const IDS: &[&str] = &[
    "GNU Backgammon  Position ID: 4HPwATDgc/ABMA\n Match ID : MIHlAAAAAAAE",
    "4HPwATDgc/ABMA:MIHlAAAAAAAE",
    "XGID=aA---BDB--a-eD---d-d----A-:0:0:1:63:0:0:0:0:10",
    "4HPwATDgc/ABMA",
];
const FENS: &[&str] = &[
    GAME,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1 moves e1g1 e8c8 a2a4",
    "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b HAha e3 0 3",
    "startpos moves e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 e1g1",
    "position fen 8/P6k/8/8/8/8/p6K/8 w - - 0 1 moves a7a8q a2a1n",
    "[FEN \"4k3/P7/8/8/8/8/8/4K3 w - - 3 20\"]\n\n20. a8=Q+ Kd7 21. Qd5+ Ke7 1-0",
    "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1",
    "4k3/8/8/8/8/8/8/1R1K2RR w GB - 99 200",
];
const SGFS: &[&str] = &[
    "(;FF[4]GM[1]SZ[5]KM[7.5];B[cc];W[bb];B[dd](;W[ab]C[a\\]b];B[ea])(;W[aa]))",
    "(;SZ[5]AB[aa:bb][dd]AW[ee]PL[W]HA[2];W[cc];B[];W[tt])",
    "(;SZ[5];B[bb];W[bc];B[];W[ab];B[ad];W[cb];B[dc];W[ba])",
];

/// Each game, with texts besides its own.
fn notations() -> Vec<(Box<dyn Texts>, &'static [&'static str])> {
    let connect_four = |width, height, k| ConnectFour::new(width, height, k).unwrap();
    let walls = |variant, immediate| WallRules { variant, immediate, ..WallRules::default() };
    let own: Vec<Box<dyn Texts>> = vec![
        Box::new(TicTacToe::new()),
        Box::new(connect_four(7, 6, 4)),
        Box::new(connect_four(6, 1, 2)),
        Box::new(connect_four(1, 63, 63)),
        Box::new(connect_four(4, 4, 3)),
        Box::new(Hex::new(3, true).unwrap()),
        Box::new(Hex::new(5, false).unwrap()),
        Box::new(Hex::new(13, true).unwrap()),
        Box::new(Othello::new(4).unwrap()),
        Box::new(Othello::new(8).unwrap()),
        Box::new(Pig::default()),
        Box::new(Pig::with_max_plies(1, 30).unwrap()),
        Box::new(DiceNim::default()),
        Box::new(DiceNim::new(1).unwrap()),
        Box::new(ConnectFourForThree::new(4, 3, 3).unwrap()),
        Box::new(Game2048::new(2, 32).unwrap()),
        Box::new(Game2048::default()),
        Box::new(PegSolitaire::default()),
        Box::new(Gomoku::new(3, 3).unwrap()),
        Box::new(Breakthrough::new(3, 3).unwrap()),
        Box::new(Breakthrough::new(3, 4).unwrap()),
        Box::new(Trictrac::default()),
        Box::new(Maedn::<Value>::default()),
        Box::new(Maedn::<Values>::new(4, true, 3000).unwrap()),
        Box::new(ChineseCheckers::<Value>::default()),
        Box::new(Blokus::<Value>::new(2, 5).unwrap()),
        Box::new(WallGame::new(3, 3, walls(Variant::Standard, false)).unwrap()),
        Box::new(WallGame::new(3, 3, walls(Variant::Classic, true)).unwrap()),
        Box::new(WallGame::new(12, 10, walls(Variant::Freestyle, false)).unwrap()),
    ];
    let mut notations: Vec<(_, &[&str])> = own.into_iter().map(|game| (game, &[][..])).collect();
    notations.push((Box::new(Backgammon::default()), IDS));
    notations.push((Box::new(az119()), FENS));
    notations.push((Box::new(chess960(518)), FENS));
    notations.push((Box::new(Go9::new(5, 7.5, true).unwrap()), SGFS));
    notations
}

/// What texts are made of, so that changes often mean something.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words = "x o . / 0 1 2 9 20 65535 65536 99999999999999999999 -1 +3 a1 b2 X swap pass roll hold take heap player \
                 table ply rolling é ♔ \u{202e} \u{feff} \0 = : , x= o= turn= roll= left= first= off bar cats mice walls \
                 turn red blue second not end_turn --- start7 C M > ^ ( ) [ ] { } ; ;B[ ;W[ SZ[ AB[ KM[ $ % * K N O-O w \
                 moves fen \" \\";
    words.split(' ').chain([" ", "\n"]).collect()
});

/// Texts of random letters, of pieces in any order, and of each game with changes.
fn read_texts(texts: u64, seed: u64) {
    let mut read = 0;
    for (number, (notation, others)) in (0..).zip(notations()) {
        let mut random = Random(seed ^ number);
        for _ in 0..texts {
            let letters: Vec<_> = (0..random.next() % 60).map(|_| random.next() as u32 % 0x11_0000).collect();
            notation.reads(&letters.into_iter().filter_map(char::from_u32).collect::<String>());
            let pieces: Vec<_> = (0..random.next() % 40).map(|_| *random.choose(&PIECES)).collect();
            notation.reads(&pieces.concat());
            let text = notation.random_text(&mut random);
            assert!(notation.reads(&text), "{text:?}");
            let other =
                [&text[..]].into_iter().chain(others.iter().copied()).nth(random.next() as usize % (others.len() + 1));
            read += u64::from(notation.reads(&mutated(other.unwrap_or(&text), &PIECES, &mut random)));
        }
    }
    assert!(read > texts, "{read} texts with changes are read, of {texts} of each game");
}

#[test]
fn any_text_is_read_or_refused() {
    read_texts(100, 1);
}

#[test]
#[ignore = "minutes"]
fn millions_of_texts_are_read_or_refused() {
    read_texts(100_000, 2);
}

#[test]
fn a_huge_text_is_refused_at_once_and_in_a_few_words() {
    const PARTS: [&str; 16] =
        ["x", ".", "/", "x/", "a1 ", "1 ", "roll ", "heap ", "é", "0/0 ", "\u{1b}", "(", "(;", "[", "{", "1."];
    for (part, (notation, _)) in PARTS.into_iter().flat_map(|part| notations().into_iter().map(move |one| (part, one)))
    {
        notation.reads(&part.repeat(1 << 17));
    }
}
