//! Every built-in game keeps the rules of `azpy_core::conformance`.
//!
//! The tests play seeded random games and check each position. A failure names the line of play.

use std::collections::HashMap;

use azpy_core::conformance::{Facts, Hooks, Walk, check_symmetries};
use azpy_core::game::{Action, Game, Payoff, Player, RandomGames, Turn, Value, Values};
use azpy_core::rng::Stream;
use azpy_core::text::{Notation, Position};
use azpy_games::any::AnyGame;
use azpy_games::chess::Encoding;
use azpy_games::each;
use azpy_games::registry::BUILT_IN;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, Chess, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go,
    Go9, Go19, Gomoku, Hex, KuhnPoker, LeducPoker, LiarsDice, Maedn, Othello, PegBoard, PegSolitaire, Pig, TicTacToe,
    Trictrac, Variant, WallGame, WallRules,
};

use crate::common::{Random, encode, legal};

/// The facts and the followers of a position, by its key.
type Seen = HashMap<u128, (Facts, Vec<(Action, u128)>)>;

/// Plays random games. `starts` are starting positions of one game: its sizes and options, which share one cache.
fn conforms<G: Notation>(starts: &[G], games: u64) {
    conforms_from(starts, games, |start, _| start.clone());
}

/// As `conforms`, for a game whose start is not its own image: `image` gives that of a symmetry.
fn conforms_from<G: Notation>(starts: &[G], games: u64, image: impl Fn(&G, usize) -> G) {
    let mut by_key = Seen::new();
    for start in starts {
        check_symmetries::<G, ()>(start).unwrap();
        for seed in 0..games {
            let images = (0..start.num_symmetries()).map(|symmetry| (symmetry, image(start, symmetry))).collect();
            play_one(start, images, &mut Random(seed), &mut by_key);
        }
    }
}

fn play_one<G: Notation>(start: &G, images: Vec<(usize, G)>, random: &mut Random, by_key: &mut Seen) {
    let mut walk = Walk::new(start, images, Hooks::infallible(), true).unwrap();
    let mut line = Vec::new();
    loop {
        let look = walk.look(line.len().is_power_of_two()).unwrap_or_else(|broken| panic!("{broken}, after {line:?}"));
        assert_eq!(look.shared_name, None, "two actions of one name, after {line:?}");
        let facts = look.facts;
        if facts.turn == Turn::Chance {
            assert!(facts.chances.iter().all(|&chance| chance > 0.0), "{facts:?} after {line:?}");
            let sum: f32 = facts.chances.iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "probabilities sum to {sum} after {line:?}");
        }
        let (state, counts) = (walk.state(), walk.state().counts());
        assert!(counts.is_empty() || counts.len() == state.num_players(), "{counts:?} after {line:?}");
        assert!(!state.render().is_empty());
        if matches!(facts.turn, Turn::Player(_)) {
            for (number, &action) in facts.actions.iter().enumerate() {
                let picked = walk.state().pick_action(&mut Vec::new(), |legal| {
                    assert_eq!(legal, facts.actions.len(), "after {line:?}");
                    number
                });
                assert_eq!(picked, Some(action), "after {line:?}");
            }
        }
        let over = facts.turn == Turn::Terminal;
        if line.is_empty() || over {
            let picture = walk.state().to_svg();
            assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>"), "{picture}");
        }
        let actions = facts.playable();
        // Equal keys, equal positions, and equal futures.
        let seen = by_key.entry(facts.key).or_insert_with(|| (facts.clone(), look.followers.clone()));
        assert_eq!(*seen, (facts, look.followers), "one key for two positions, after {line:?}");
        if over {
            check_line(start, &line);
            return;
        }
        let action = *random.choose(&actions);
        assert_eq!(walk.play(action), Ok(true), "after {line:?}");
        line.push(action);
    }
}

fn opened(spec: &str) -> AnyGame {
    AnyGame::open(BUILT_IN, spec, Vec::new()).unwrap()
}

#[test]
fn counts_stand_beside_the_names_of_their_players() {
    for (spec, text, counts) in [
        ("hex", "", &[][..]),
        ("othello", "d3", &["4 discs", "1 disc"]),
        ("blokus", "e10,f10", &["-87 points", "-89 points"]),
        ("chinese_checkers(players=3)", "a4-e5", &["", "turn 2 of 300", ""]),
        ("wall_game", ">e4", &["turn 1, second action", ""]),
        ("maedn", "x=40,b turn=x die=3", &["1 of 4 in the goal", "0 of 4 in the goal"]),
        ("peg_solitaire", "", &["32 pegs"]),
        ("game2048(size=2)", "2,./4,2 score 4", &["4 points"]),
        ("pig", "6/0 table 4 player 1 ply 9", &["6 of 20", "0 of 20, 4 on the table"]),
        ("dice_nim", "heap 9 player 1", &["", "9 of 12 left"]),
        ("backgammon", "x=24:2,13:5,8:3,6:5 o=24:2,13:5,8:3,6:5 turn=x", &["167 pips, 0 off"; 2]),
        ("backgammon", "x=bar:2,6:3,off:10 o=1:1,off:14 turn=x", &["68 pips, 10 off", "1 pip, 14 off"]),
    ] {
        assert_eq!(opened(spec).parse(text).unwrap().counts(), counts, "{spec} {text}");
    }
}

#[test]
fn games_behind_one_type_keep_the_rules() {
    fn check<P: Payoff>(start: AnyGame<P>) {
        let (mut one, mut other) = (start.clone(), start.clone());
        let played = one.play_out(&mut RandomGames::default(), &mut Stream::keyed(&[7]));
        assert_eq!(played, RandomGames::default().play(&mut other, &mut Stream::keyed(&[7])));
        assert_eq!(one.key(), other.key());
        conforms(&[start], 1);
    }
    for game in ["tic_tac_toe", "dice_nim", "connect_four_for_three", "game2048(size=3)", "gomoku(size=6)"] {
        check(opened(game));
        each!(opened(game).by_payoff(), start => check(start));
    }
}

#[test]
fn a_used_position_arrives_where_a_fresh_one_does_whatever_its_game_was() {
    let mut used = opened("tic_tac_toe");
    for game in ["hex(size=5)", "hex(size=5)", "gomoku(size=5)", "go(size=5)", "go(size=5,komi=3.5)", "chess"] {
        let start = opened(game);
        let (mut legal, mut played) = (Vec::new(), start.clone());
        start.legal_actions(&mut legal);
        let line = [legal[0], legal[1]];
        line.iter().for_each(|&action| played.play(action));
        let turn = used.arrive(&start, &line, Some(&mut legal));
        assert_eq!((turn, used.game(), used.key()), (played.turn(), start.game(), played.key()));
        let mut expected = Vec::new();
        played.legal_actions(&mut expected);
        assert_eq!(legal, expected);
    }
}

/// A line of play is read by the names of its actions.
fn check_line<G: Notation>(start: &G, line: &[Action]) {
    let (mut state, mut names) = (start.clone(), Vec::new());
    for &action in line {
        names.push(state.action_name(action));
        state.play(action);
    }
    let text = names.join(" ");
    assert_eq!(start.parse_actions(&text).as_deref(), Ok(line), "{text}");
    assert_eq!(start.parse(&text).map(|read| read.key()), Ok(state.key()), "{text}");
}

#[test]
fn tic_tac_toe_conforms() {
    conforms(&[TicTacToe::new()], 500);
}

#[test]
fn connect_four_conforms() {
    let start = |(width, height, k)| ConnectFour::new(width, height, k).unwrap();
    let small = [(4, 4, 4), (4, 4, 3), (5, 4, 4), (4, 5, 4), (3, 5, 3), (1, 3, 3), (1, 5, 3), (6, 1, 2)];
    conforms(&small.map(start), 40);
    // The usual board, long ones, and boards that use all 64 bits.
    conforms(&[(7, 6, 4), (1, 63, 63), (32, 1, 32), (8, 7, 5), (16, 3, 4), (4, 15, 4)].map(start), 10);
}

fn three(width: usize, height: usize, k: usize) -> ConnectFourForThree {
    ConnectFourForThree::new(width, height, k).unwrap()
}

#[test]
fn connect_four_for_three_conforms() {
    conforms(&[three(4, 4, 3), three(5, 4, 3), three(1, 5, 2), three(6, 1, 2)], 40);
    conforms(&[three(7, 6, 4), three(8, 7, 4), three(16, 3, 3)], 10);
}

#[test]
fn game2048_conforms() {
    let start = |(size, target)| Game2048::new(size, target).unwrap();
    conforms(&[(2, 8), (2, 16), (3, 32), (3, 1024)].map(start), 10);
    conforms(&[(4, 64), (4, 2048), (4, 32768)].map(start), 1);
}

#[test]
fn peg_solitaire_conforms() {
    conforms(&[PegSolitaire::default()], 10);
    // The image of the triangle's start has its empty hole elsewhere.
    let image = |start: &PegSolitaire, symmetry| {
        let (mut row, side) = (vec![0.0; start.obs_shape().iter().product()], start.obs_shape()[1]);
        start.symmetric_observation(symmetry, &encode(start), &mut row);
        let (pegs, empty) = row.split_at(side * side);
        let hole = |cell: usize| match (pegs[cell], empty[cell]) {
            (1.0, _) => "x",
            (_, 1.0) => ".",
            _ => "",
        };
        let line = |row: usize| (side * row..side * (row + 1)).map(hole).collect::<String>();
        start.parse(&(0..side).map(line).collect::<Vec<_>>().join("/")).unwrap()
    };
    conforms_from(&[PegSolitaire::new(PegBoard::Triangle)], 40, image);
}

fn hexes(sizes: &[usize]) -> Vec<Hex> {
    sizes.iter().flat_map(|&size| [false, true].map(|swap| Hex::new(size, swap).unwrap())).collect()
}

#[test]
fn hex_conforms() {
    conforms(&hexes(&[3, 4]), 40);
    conforms(&hexes(&[5]), 15);
    // One word of cells, two and three.
    conforms(&hexes(&[8, 11, 13]), 1);
}

#[test]
fn othello_conforms() {
    // Some images of the start have the colours of its discs exchanged.
    let image = |start: &Othello, symmetry| {
        let mut board = vec!['.'; start.size() * start.size()];
        for (disc, cells) in ['x', 'o'].into_iter().zip(start.discs()) {
            let cells = (0..64).filter(|cell| cells >> cell & 1 == 1);
            cells.for_each(|cell| board[start.symmetric_action(symmetry, cell) as usize] = disc);
        }
        let rows: Vec<String> = board.chunks(start.size()).map(|row| row.iter().collect()).collect();
        start.parse(&format!("{} x", rows.join("/"))).unwrap()
    };
    for (size, games) in [(4, 100), (6, 20), (8, 10)] {
        conforms_from(&[Othello::new(size).unwrap()], games, image);
    }
}

fn walls(columns: usize, rows: usize, rules: WallRules) -> WallGame {
    WallGame::new(columns, rows, rules).unwrap()
}

/// The start with its pieces where the symmetry puts them: where paths from each are 0 long.
fn wall_start(start: &WallGame, symmetry: usize) -> WallGame {
    let mut row = vec![0.0; start.obs_shape().iter().product()];
    start.symmetric_observation(symmetry, &encode(start), &mut row);
    let at = |plane: usize| {
        let cells = start.columns() * start.rows();
        let zero = row[plane * cells..].iter().position(|&distance| distance == 0.0).unwrap();
        start.cell_name(zero)
    };
    // Red, who begins, is the player to move.
    let text = format!("cats {} {} mice {} {} turn 1 red", at(0), at(2), at(3), at(1));
    start.parse(&text).unwrap()
}

#[test]
fn wall_game_conforms() {
    let classic = WallRules { variant: Variant::Classic, ..WallRules::default() };
    let rules = [
        WallRules::default(),
        WallRules { immediate: true, ..WallRules::default() },
        WallRules { one_move_rule: true, ..WallRules::default() },
        classic,
        WallRules { classic_policy: true, one_move_rule: true, immediate: true, ..classic },
    ];
    for (sides, games) in [([2, 2], 4), ([3, 3], 10), ([3, 4], 2), ([5, 3], 2)] {
        let starts: Vec<_> = rules.iter().map(|&rules| walls(sides[0], sides[1], rules)).collect();
        conforms_from(&starts, games, wall_start);
    }
    conforms_from(&[walls(8, 8, rules[0]), walls(8, 5, classic)], 1, wall_start);
}

#[test]
fn freestyle_wall_game_conforms() {
    let rules = WallRules { variant: Variant::Freestyle, ..WallRules::default() };
    conforms(&[walls(12, 10, rules), WallGame::with_seed(rules, 1).unwrap()], 1);
}

#[test]
fn chess_conforms() {
    let start = |encoding, number, plies| Chess::new(encoding, number, plies).unwrap();
    for encoding in [Encoding::Az18, Encoding::Az119] {
        let mut starts =
            [(None, 30), (Some(518), 30), (Some(0), 12)].map(|(number, plies)| start(encoding, number, plies)).to_vec();
        // Where little is left positions come again, castling and promotion are near, and games end in every way.
        for text in
            ["4k3/8/8/8/8/8/8/R3K2R w KQ - 92 40", "8/P6k/8/8/8/8/p6K/8 b - - 0 1", "7k/8/8/8/8/8/8/KB6 w - - 90 50"]
        {
            starts.push(start(encoding, None, 120).parse(text).unwrap());
        }
        // Plies that take two bytes.
        starts.push(start(encoding, None, 512).parse("4k3/8/8/8/8/8/8/R3K2R w KQ - 95 140").unwrap());
        conforms(&starts, 2);
    }
}

#[test]
fn go_conforms() {
    let go9 = |size, komi, superko| Go9::new(size, komi, superko).unwrap();
    conforms(&[go9(5, 7.5, true), go9(5, 7.5, false), go9(5, 0.0, true), go9(6, -3.0, true)], 2);
    // Two words of cells in use, and six words.
    conforms(&[go9(9, 6.5, true)], 1);
    conforms(&[Go19::new(6, 7.5, true).unwrap()], 1);
    // From a start with stones and White to move.
    let cells = [[0, 7, 12], [1, 6, 23]];
    let image = |start: &Go<2>, symmetry| {
        let moved = |cells: [usize; 3]| cells.map(|cell| start.symmetric_action(symmetry, cell as Action) as usize);
        start.with_stones([&moved(cells[0]), &moved(cells[1])], Player::One).unwrap()
    };
    conforms_from(&[image(&go9(5, 0.5, true), 0)], 4, image);
}

#[test]
fn gomoku_conforms() {
    let starts = [(3, 3), (4, 3), (5, 4), (6, 6)].map(|(size, k)| Gomoku::new(size, k).unwrap());
    conforms(&starts, 20);
    conforms(&[(9, 5), (12, 5)].map(|(size, k)| Gomoku::new(size, k).unwrap()), 1);
}

#[test]
fn breakthrough_conforms() {
    let start = |(width, height)| Breakthrough::new(width, height).unwrap();
    // The long board is one where positions come again with the other player to move.
    conforms(&[(2, 3), (4, 3), (3, 4), (5, 6), (2, 32), (21, 3)].map(start), 20);
    conforms(&[start((8, 8))], 4);
}

#[test]
fn pig_conforms() {
    let cut = |target, plies| Pig::with_max_plies(target, plies).unwrap();
    conforms(&[Pig::default(), cut(1, 20), cut(6, 9), cut(6, 10), cut(20, 60), cut(100, 2000)], 40);
}

#[test]
fn dice_nim_conforms() {
    conforms(&[1, 2, 3, 4, 12, 30].map(|heap| DiceNim::new(heap).unwrap()), 100);
}

#[test]
fn games_that_hide_something_conform() {
    conforms(&[KuhnPoker::new()], 100);
    conforms(&[LeducPoker::new()], 100);
    conforms(&[2, 3, 6].map(|sides| LiarsDice::new(sides).unwrap()), 100);
}

#[test]
fn backgammon_conforms() {
    let cut = |gammons, plies| Backgammon::with_max_plies(gammons, plies).unwrap();
    let late = |text: &str| Backgammon::default().parse(text).unwrap();
    conforms(&[cut(true, 150), cut(false, 1), cut(false, 40)], 4);
    conforms(&[late("x=6:3,5:3,2:2,off:7 o=18:1,6:3,3:2,off:9 turn=x"), late("x=3:2,1:2,off:11 o=23:15 turn=o")], 8);
}

#[test]
fn trictrac_conforms() {
    let cut = |holes, plies| Trictrac::new(holes, plies).unwrap();
    let late = |text: &str| Trictrac::default().parse(text).unwrap();
    conforms(&[cut(12, 150), cut(1, 300), cut(12, 1)], 4);
    // Checkers leave, somebody may hold or leave, games end; and jans are kept and filled.
    conforms(
        &[
            late("x=19:2,22:1,24:1,off:11 o=18:1,20:2,off:12 turn=x points=6,8 holes=10,11"),
            late("x=9:2,19:3,20:2,21:2,22:2,23:2,24:2 o=10:2,off:13 turn=x holes=11,9"),
        ],
        8,
    );
}

#[test]
fn maedn_conforms() {
    let four = Maedn::<Values>::new(4, true, 300).unwrap();
    // Positions in which each rule about the start field counts, and games that end.
    let late = |text: &str| four.parse(text).unwrap();
    let near = late("x=38,a,c,d o=40,a,b,d y=37,b,c,d z=39,b,c,d turn=z plies=150");
    conforms(&[four, late("x=1,2,31 o=1,5 z=40,39,b turn=x plies=9"), near], 4);
    conforms(&[Maedn::<Values>::new(3, true, 200).unwrap(), Maedn::<Values>::new(3, true, 1).unwrap()], 4);
    let two = |opposite| Maedn::<Value>::new(2, opposite, 200).unwrap();
    conforms(&[two(true), two(false), two(false).parse("x=1,a,b,d o=40,b,c,d turn=o die=6").unwrap()], 4);
}

#[test]
fn chinese_checkers_conforms() {
    let two = |turns| ChineseCheckers::<Value>::new(2, turns).unwrap();
    conforms(&[two(1), two(30)], 2);
    let many = |players, turns| ChineseCheckers::<Values>::new(players, turns).unwrap();
    conforms(&[many(3, 20), many(4, 10), many(6, 10)], 2);
    // Both go as far: nobody is farthest.
    let mut equal = two(1);
    for _ in 0..2 {
        let step = *legal(&equal).last().unwrap();
        equal.play(step);
    }
    assert_eq!((equal.turn(), equal.outcome()), (Turn::Terminal, Value(0.0)));
    // One step or hop wins; the other player may take the way.
    let near = "./oo/ooo/oooo/......o....../............/.........../........../........./........../.........../\
                ............/......x....../x.xx/xxx/xx/x turn 60";
    let near = two(40).parse(near).unwrap();
    assert_eq!(near.parse("g13-b14").unwrap().outcome(), Value(1.0));
    for seed in 0..4 {
        play_one(&near, vec![(0, near)], &mut Random(seed), &mut Seen::new());
    }
}

#[test]
fn blokus_conforms() {
    conforms(&[5, 6, 9].map(|size| Blokus::<Value>::new(2, size).unwrap()), 4);
    conforms(&[5, 8].map(|size| Blokus::<Values>::new(4, size).unwrap()), 2);
}

#[test]
fn pig_is_seen_by_the_player_to_move() {
    let mut game = Pig::new(10).unwrap();
    // Player 0 banks 6, then twice throws a one; player 1 banks 4 and 4 and throws a three, of
    // which two points are enough.
    for action in [0, 5, 1, 0, 3, 1, 0, 0, 0, 3, 1, 0, 0, 0, 2] {
        game.try_play(action).unwrap();
    }
    assert_eq!(game.turn(), Turn::Player(Player::One));
    assert_eq!((game.banks(), game.table()), ([6, 8], 2));
    assert_eq!(encode(&game), [0.8, 0.6, 0.2, 1.0, 15.0 / 200.0]);
}

#[test]
fn dice_nim_shows_the_roll() {
    let mut game = DiceNim::new(12).unwrap();
    for action in [2, 2, 1] {
        game.try_play(action).unwrap();
    }
    assert_eq!((game.heap(), game.roll()), (9, Some(2)));
    assert_eq!(encode(&game), [0.75, 0.0, 1.0, 0.0]);
}
