//! The Wall Game: worked examples, walls against a plain search of the board, notation, random starts.

use std::collections::{BTreeSet, HashSet};

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::Notation;
use azpy_games::{Variant, WallGame, WallRules};

use crate::common::{Random, after, encode, keys_differ, legal, outcomes};

pub(crate) const STANDARD: WallRules =
    WallRules { variant: Variant::Standard, immediate: false, one_move_rule: false, classic_policy: false };
pub(crate) const CLASSIC: WallRules = WallRules { variant: Variant::Classic, ..STANDARD };
pub(crate) const FREESTYLE: WallRules = WallRules { variant: Variant::Freestyle, ..STANDARD };

pub(crate) fn board(columns: usize, rows: usize, rules: WallRules) -> WallGame {
    WallGame::new(columns, rows, rules).unwrap()
}

pub(crate) fn standard(columns: usize, rows: usize) -> WallGame {
    board(columns, rows, STANDARD)
}

fn cells(game: &WallGame) -> usize {
    game.columns() * game.rows()
}

/// The legal walls as (upright ones, lying ones), by the cell that they are right of or below.
fn walls(game: &WallGame) -> [Vec<usize>; 2] {
    let (cells, legal) = (cells(game), legal(game));
    let of_kind = |kind: usize| {
        let slots = legal.iter().map(|&action| action as usize);
        slots.filter(|slot| slot / cells == kind).map(|slot| slot % cells).collect()
    };
    [of_kind(0), of_kind(1)]
}

fn count_walls(game: &WallGame) -> usize {
    walls(game).iter().map(Vec::len).sum()
}

// Worked examples

#[test]
fn examples_1_to_3_count_walls_and_first_actions() {
    for (columns, rows, count, then) in [(2, 2, 4, 0), (3, 3, 12, 10), (8, 8, 112, 110), (12, 10, 218, 216)] {
        let start = standard(columns, rows);
        assert_eq!((count_walls(&start), legal(&start).len()), (count, count + 4));
        assert_eq!(legal(&board(columns, rows, CLASSIC)).len(), count + 2);
        let next = after(&start, 0);
        assert_eq!(start.action_name(0), format!(">a{rows}"));
        assert_eq!(count_walls(&next), then);
        // The one below would shut the cat in.
        assert!(!walls(&next)[1].contains(&0));
    }
}

#[test]
fn example_4_distances_are_path_lengths() {
    let start = standard(3, 3);
    let lengths = [0, 1, 2, 1, 2, 3, 2, 3, 4];
    let expected = lengths.map(|length| length as f32 / 9.0);
    assert_eq!(encode(&start)[..9], expected);
}

#[test]
fn example_5_what_no_path_leads_to_is_far() {
    // Blue's cat and Red's mouse share the corner that the walls shut off; it is not judged before the end of the turn.
    let game = standard(3, 3).parse("cats b2 a3 mice a3 c1 walls >a3 ^a2 turn 1 red second").unwrap();
    let mut expected = vec![1.0; 9];
    expected[0] = 0.0;
    let planes = encode(&game);
    assert_eq!(planes[2 * 9..3 * 9], expected);
    assert_eq!(planes[3 * 9..4 * 9], expected);
    assert_eq!((planes[4 * 9], planes[5 * 9]), (1.0, 1.0));
}

#[test]
fn examples_6_to_11_say_who_wins_and_when() {
    let immediate = WallRules { immediate: true, ..STANDARD };
    let ruled = WallRules { one_move_rule: true, ..STANDARD };
    // A mouse that runs into the cat is caught at the end of the turn, or at once; it may run on.
    let near = "cats a3 c3 mice b3 c1 turn 1 red";
    // Both mice stand beside the cat that hunts them, and the mover's mouse is caught already.
    let (red, blue) = ("cats d4 g7 mice g7 d5 turn 3 red second", "cats g7 d4 mice d5 g7 turn 3 blue second");
    for (size, rules, text, words, winner) in [
        (3, STANDARD, near, "Mc3 >b2", Some(-1.0)),
        (3, STANDARD, near, "Mc3 Cb3", Some(-1.0)),
        (3, STANDARD, near, "Mc3 Mc2", None),
        (3, immediate, near, "Mc3", Some(-1.0)),
        (3, CLASSIC, "cats a3 c3 mice a1 c1 turn 1 red", "Cb3 Cb2 Cb3 Ca3 Cb1 Cc1", Some(1.0)),
        // The one-move rule, for Red alone: Red's cat takes the last step. Paths count, not squares.
        (8, STANDARD, "cats g8 c1 mice a1 h8 turn 9 red second", "Ch8", Some(1.0)),
        (8, ruled, "cats g8 c1 mice a1 h8 turn 9 red second", "Ch8", Some(0.0)),
        (8, ruled, "cats g8 b2 mice a1 h8 turn 9 red second", "Ch8", Some(0.0)),
        (8, ruled, "cats g8 a1 mice a1 h8 turn 9 red second", "Ch8", Some(0.0)),
        (8, ruled, "cats g8 d1 mice a1 h8 turn 9 red second", "Ch8", Some(1.0)),
        (8, ruled, "cats g8 b1 mice a1 h8 walls >a1 turn 9 red second", "Ch8", Some(1.0)),
        (8, ruled, "cats c1 g8 mice h8 a1 turn 9 blue second", "Ch8", Some(-1.0)),
        // Blue's mouse steps onto Red's cat in Blue's own turn, and Red's turn may end early.
        (8, STANDARD, "cats d4 a3 mice a1 d5 turn 3 blue second", "Md4", Some(1.0)),
        (8, ruled, "cats d4 a3 mice a1 d5 turn 3 blue second", "Md4", Some(1.0)),
        (8, ruled, "cats d4 a3 mice a1 d5 turn 3 red", "Cd5 end_turn", Some(0.0)),
        (8, ruled, "cats d4 a3 mice a1 d5 turn 3 red", "Cd5.^h2", Some(0.0)),
        (8, ruled, "cats d4 a2 mice a1 d5 turn 3 red", "Ma2 end_turn", Some(-1.0)),
        // The mover's capture is looked at first.
        (8, STANDARD, red, "Cd5", Some(1.0)),
        (8, STANDARD, blue, "Cd5", Some(-1.0)),
        (8, ruled, red, "Cd5", Some(0.0)),
        (8, ruled, blue, "Cd5", Some(-1.0)),
    ] {
        let game = board(size, size, rules).parse(text).unwrap().parse(words).unwrap();
        let found = (game.turn() == Turn::Terminal).then(|| game.outcome().0);
        assert_eq!(found, winner, "{rules:?} {text}: {words}");
    }
}

/// A board of any size from 2 to `most` a side with its four pieces anywhere, and so many random legal walls.
fn random_board(random: &mut Random, most: u64, walls: usize) -> WallGame {
    let mut below = |bound: usize| (random.next() % bound as u64) as usize;
    let (columns, rows) = (2 + below(most as usize - 1), 2 + below(most as usize - 1));
    let start = standard(columns, rows);
    let [red_cat, blue_cat, red_mouse, blue_mouse] = [(); 4].map(|()| start.cell_name(below(columns * rows)));
    // At the second action nothing is judged yet: pieces may share cells.
    let mut text = format!("cats {red_cat} {blue_cat} mice {red_mouse} {blue_mouse}");
    let mut game = start.parse(&format!("{text} turn 1 red second")).unwrap();
    text += " walls";
    for _ in 0..walls {
        let Some(wall) = any_wall(&game, random) else { break };
        text += &format!(" {}", game.action_name(wall));
        game = start.parse(&format!("{text} turn 1 red second")).unwrap();
    }
    game
}

fn any_wall(game: &WallGame, random: &mut Random) -> Option<Action> {
    let walls: Vec<_> = legal(game).into_iter().filter(|&action| (action as usize) < 2 * cells(game)).collect();
    (!walls.is_empty()).then(|| *random.choose(&walls))
}

/// The board as pairs of neighbours with nothing between, and a search that goes over all of them until nothing changes.
#[derive(Clone)]
struct Naive {
    cells: usize,
    /// By slot: the cells on either side, if nothing is between them.
    open: Vec<Option<[usize; 2]>>,
    /// Each cat with the mouse it hunts.
    hunts: [[usize; 2]; 2],
}

impl Naive {
    /// What the planes show.
    fn of(game: &WallGame) -> Self {
        let (cells, rows, planes) = (cells(game), game.rows(), encode(game));
        let sides = |slot: usize| if slot < cells { [slot, slot + rows] } else { [slot - cells, slot - cells + 1] };
        let open = |slot: usize| (planes[4 * cells + slot] == 0.0).then(|| sides(slot));
        let at = |plane: usize| planes[plane * cells..].iter().position(|&length| length == 0.0).unwrap();
        Self { cells, open: (0..2 * cells).map(open).collect(), hunts: [[at(0), at(1)], [at(2), at(3)]] }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.cells];
        seen[from] = true;
        loop {
            let mut grown = false;
            for &[a, b] in self.open.iter().flatten() {
                if seen[a] != seen[b] {
                    (seen[a], seen[b], grown) = (true, true, true);
                }
            }
            if !grown {
                return seen[to];
            }
        }
    }

    fn all_hunt(&self) -> bool {
        self.hunts.iter().all(|&[cat, mouse]| self.reaches(cat, mouse))
    }

    /// Walls after which each cat still reaches its mouse: each edge is removed, and the board is searched.
    fn walls(&self) -> [Vec<usize>; 2] {
        let mut walls = [Vec::new(), Vec::new()];
        for slot in (0..2 * self.cells).filter(|&slot| self.open[slot].is_some()) {
            let mut walled = self.clone();
            walled.open[slot] = None;
            if walled.all_hunt() {
                walls[slot / self.cells].push(slot % self.cells);
            }
        }
        walls
    }
}

/// Compares the walls of a board; returns how many of them are forbidden.
fn compare_walls(game: &WallGame) -> usize {
    let naive = Naive::of(game);
    assert_eq!(walls(game), naive.walls(), "{}", game.render());
    naive.open.iter().flatten().count() - count_walls(game)
}

/// Compares so many boards; returns how many walls were forbidden by the search.
fn compare_legality(boards: u64, most: u64, seed: u64) -> usize {
    let (mut random, mut forbidden) = (Random(seed), 0);
    for _ in 0..boards {
        let count = (random.next() % (2 * most * most)) as usize;
        let game = random_board(&mut random, most, count);
        forbidden += compare_walls(&game);
    }
    forbidden
}

#[test]
fn example_13_bridges_are_what_removing_edges_finds() {
    assert!(compare_legality(9_900, 4, 1) > 10_000);
    assert!(compare_legality(100, 9, 2) > 100);
    assert!(compare_legality(10, 20, 5) > 100);
}

#[test]
fn walls_are_what_a_search_finds_in_whole_games() {
    // Pieces step, so lines between them bend either way; long boards have more than one word of edges.
    let (mut random, mut forbidden) = (Random(6), 0);
    for (columns, rows, games, every) in [(4, 4, 20, 1), (3, 7, 10, 1), (8, 8, 2, 5), (20, 4, 1, 9), (5, 19, 1, 9)] {
        for _ in 0..games {
            let mut game = standard(columns, rows);
            for ply in 0.. {
                if game.turn() == Turn::Terminal {
                    break;
                }
                if ply % every == 0 {
                    forbidden += compare_walls(&game);
                }
                // Mostly steps, so that walls and pieces meet in many ways.
                let legal = legal(&game);
                let steps = legal.iter().filter(|&&action| (action as usize) >= 2 * cells(&game)).count();
                let some = if steps > 0 && random.next() % 4 > 0 { &legal[legal.len() - steps..] } else { &legal };
                game.play(*random.choose(some));
            }
        }
    }
    assert!(forbidden > 1_000, "too little came up: {forbidden}");
}

// Keys

#[test]
fn keys_tell_apart_all_that_the_future_depends_on() {
    let pieces = "cats b3 c3 mice a1 c1";
    let texts = "turn 2 red, turn 2 blue, turn 3 red, turn 2 red second, turn 2 red second not Ca3, \
        turn 2 red second not Cb2, turn 2 red second not Ma2, walls >a1 turn 2 red, walls >b3 turn 2 red, \
        walls ^a1 turn 2 red";
    let mut games: Vec<_> =
        texts.split(", ").map(|text| standard(3, 3).parse(&format!("{pieces} {text}")).unwrap()).collect();
    for text in ["cats c3 b3 mice a1 c1", "cats b3 c3 mice c1 a1", "cats b3 a1 mice c3 c1"] {
        games.push(standard(3, 3).parse(&format!("{text} turn 2 red second")).unwrap());
    }
    let rules = [
        STANDARD,
        CLASSIC,
        WallRules { immediate: true, ..STANDARD },
        WallRules { one_move_rule: true, ..STANDARD },
        WallRules { classic_policy: true, ..CLASSIC },
    ];
    games.extend(rules.map(|rules| board(3, 3, rules)));
    games.extend([standard(3, 4), standard(4, 3), standard(12, 10), board(12, 10, FREESTYLE)]);
    games.push(board(12, 10, FREESTYLE).parse(&standard(12, 10).to_text().unwrap()).unwrap());
    keys_differ(games.into_iter().map(|game| (format!("{:?}\n{}", game.to_text(), game.render()), game)));
}

// Notation

#[test]
fn actions_are_named_by_the_cells_they_lead_to() {
    let start = standard(8, 8);
    let name = |action: usize| start.action_name(action as Action);
    // Column e, row 4 from the bottom: cell 4 * 8 + 4.
    assert_eq!((name(4 * 8 + 4), name(64 + 4 * 8 + 3)), (">e4".to_owned(), "^e4".to_owned()));
    assert_eq!([128, 129, 130, 131].map(name), ["Cb8", "Ca7", "C-left", "C-up"]);
    assert_eq!([132, 133, 134, 135].map(name), ["Mb1", "M-down", "M-left", "Ma2"]);
    assert_eq!(start.parse_actions(">e4 ^e4 Ch7 Cg7").unwrap(), [36, 64 + 35, 129, 130]);
    // What a turn's first action makes of the second's name.
    assert_eq!(start.parse_actions("Cb8 Cb7").unwrap(), [128, 129]);
}

#[test]
fn turns_are_written_in_order_and_read_in_any() {
    let start = standard(8, 8);
    for (turn, actions) in [
        ("Cb7", "Ca7 Cb7"),
        ("Cc8", "Cb8 Cc8"),
        ("Cb8.Ma2", "Ma2 Cb8"),
        ("Cb8.>e4", ">e4 Cb8"),
        ("Ma2.^e4", "^e4 Ma2"),
        (">b2.>e4", ">e4 >b2"),
        (">e4.^a1", "^a1 >e4"),
        ("Ma3", "Ma2 Ma3"),
    ] {
        let actions = start.parse_actions(actions).unwrap();
        assert_eq!(start.format_actions(&actions).unwrap(), turn);
        let read = start.parse_actions(turn).unwrap();
        assert_eq!(
            start.parse(turn).unwrap().key(),
            read.iter().fold(start, |game, &action| after(&game, action)).key()
        );
        assert_eq!(start.format_actions(&read).unwrap(), turn);
    }
    assert_eq!(start.parse(">e4.Cb8").unwrap().key(), start.parse("Cb8.>e4").unwrap().key());
    for line in ["", "Ca7", "Cb7 >e4", "Cb7 >e4.^d5 Cc7.Ma2", "Cb7 Mg1.>e4 >b2"] {
        assert_eq!(start.format_actions(&start.parse_actions(line).unwrap()).unwrap(), line);
    }
    let second = start.parse("Ca7").unwrap();
    assert_eq!(second.format_actions(&second.parse_actions("Cb7 Mg1.>e4").unwrap()).unwrap(), "Cb7 Mg1.>e4");
    assert!(start.format_actions(&[63]).unwrap_err().to_string().contains("illegal action 63"));
}

#[test]
fn a_turn_is_read_by_whatever_order_is_legal() {
    // The wall behind the cat can only be built after its step.
    let game = standard(3, 3).parse("cats a3 c3 mice b1 c1 walls >a3 turn 1 red").unwrap();
    assert!(game.parse_actions("^a2").is_err());
    assert_eq!(game.parse("Ca2.^a2").unwrap().to_text().unwrap(), "cats a2 c3 mice b1 c1 walls >a3 ^a2 turn 1 blue");
    // Around a wall two steps have one way only.
    let game = standard(3, 3).parse("cats a3 c3 mice a1 c1 walls >a3 turn 1 red").unwrap();
    assert_eq!(game.parse_actions("Cb2").unwrap(), game.parse_actions("Ca2 Cb2").unwrap());
    // Where captures count at once, the way that meets no mouse is taken.
    let rules = WallRules { immediate: true, ..STANDARD };
    let game = board(3, 3, rules).parse("cats a3 c3 mice a1 b3 turn 1 red").unwrap();
    assert_eq!(game.parse_actions("Cb2").unwrap(), game.parse_actions("Ca2 Cb2").unwrap());
}

#[test]
fn errors_say_what_came_and_what_was_expected() {
    let start = standard(3, 3);
    for (text, part) in [
        (
            "Cd9",
            "word 1 is \"Cd9\", expected a legal action, or a whole turn such as Cb7.>e4; legal here: Ma2, Mb1, Ca2, Cb3",
        ),
        ("Cb3 Ca3", "word 2 is \"Ca3\", expected a legal action; legal here:"),
        ("Cb3.Cb2", "word 1 is \"Cb3.Cb2\""),
        (">c3", "word 1 is \">c3\""),
        ("cats a3", "expected a cell from a1 to c3, got \"\""),
        ("cats a3 c4", "expected a cell from a1 to c3, got \"c4\""),
        ("cats a3 c3 a1 c1", "expected the word mice, got \"a1\""),
        ("cats a3 c3 mice a1 c1", "expected the word turn, got \"\""),
        ("cats a3 c3 mice a1 c1 walls >c3 turn 1 red", "expected a wall such as >b1"),
        ("cats a3 c3 mice a1 c1 walls >a3 >a3 turn 1 red", "the wall >a3 is given twice"),
        ("cats a3 c3 mice a1 c1 walls >a3 ^a2 turn 1 red", "walls leave red's cat no path"),
        ("cats a3 c3 mice a1 c1 turn 102 red", "from 1 to 100 and red or blue, got \"102\" \"red\""),
        ("cats a3 c3 mice a1 c1 turn 01 red", "got \"01\""),
        ("cats a3 c3 mice a1 c1 turn 99999999999999999999 red", "from 1 to 100"),
        ("cats a3 c3 mice a1 c1 turn 65535 red", "from 1 to 100"),
        ("cats a3 c3 mice a1 c1 turn 0 red", "from 1 to 100"),
        ("cats a3 c3 mice a1 c1 turn 1 green", "got \"1\" \"green\""),
        ("cats a3 c3 mice a1 c1 turn 101 red second", "turn 101 is not played"),
        ("cats a3 c3 mice a1 c1 turn 1 red second not Cc3", "expected the step back of the first action, got \"Cc3\""),
        ("cats a3 c3 mice a1 c1 turn 1 red third", "expected the end of the position, got \"third\""),
    ] {
        let error = start.parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let over = start.parse("cats c1 a3 mice b1 c1 turn 2 blue").unwrap();
    assert_eq!(over.parse("Ca2").unwrap_err().to_string(), "word 1 is \"Ca2\", but the game is over before it");
    let undrawn = board(12, 10, FREESTYLE);
    assert_eq!(
        undrawn.parse("start32768").unwrap_err().to_string(),
        "word 1 is \"start32768\", expected a random start: start0 to start32767"
    );
}

// Freestyle

#[test]
fn a_random_start_is_mirrored_and_within_its_bounds() {
    let (mut counts, mut texts) = (BTreeSet::new(), HashSet::new());
    for seed in 0..100 {
        let start = WallGame::with_seed(FREESTYLE, seed).unwrap();
        let naive = Naive::of(&start);
        let [[red_cat, blue_mouse], [blue_cat, red_mouse]] = naive.hunts;
        let mirrored = |cell: usize| (11 - cell / 10) * 10 + cell % 10;
        assert!(red_cat / 10 < 4 && red_mouse / 10 < 4 && red_cat % 10 < red_mouse % 10, "{}", start.render());
        assert_eq!((blue_cat, blue_mouse), (mirrored(red_cat), mirrored(red_mouse)));
        assert!(naive.all_hunt());
        assert_eq!(start.turn(), Turn::Player(Player::Zero));
        let text = start.to_text().unwrap();
        let walls: BTreeSet<_> = text.split_whitespace().filter(|word| word.starts_with(['>', '^'])).collect();
        let column = |wall: &str| usize::from(wall.as_bytes()[1] - b'a');
        let image = |wall: &str| {
            let across = if wall.starts_with('>') { 10 } else { 11 } - column(wall);
            format!("{}{}{}", &wall[..1], (b'a' + across as u8) as char, &wall[2..])
        };
        assert!(walls.iter().all(|wall| walls.contains(&image(wall).as_str())), "{text}");
        counts.insert(walls.iter().filter(|wall| column(wall) < 6).count());
        texts.insert(text);
    }
    assert_eq!(counts, (4..=10).collect());
    assert_eq!(texts.len(), 100);
}

#[test]
#[ignore = "a minute without optimisation"]
fn every_start_that_can_be_drawn_leaves_paths() {
    for seed in 0..32_768 {
        let start = WallGame::with_seed(FREESTYLE, seed).unwrap();
        assert!(Naive::of(&start).all_hunt(), "{}", start.render());
    }
}

#[test]
fn freestyle_begins_with_the_draw_of_its_seed() {
    let undrawn = board(12, 10, FREESTYLE);
    assert_eq!(undrawn.turn(), Turn::Chance);
    assert_eq!(outcomes(&undrawn).len(), 32_768);
    for seed in [0, 1, 77, 32_767] {
        let drawn = after(&undrawn, seed);
        assert_eq!(drawn, WallGame::with_seed(FREESTYLE, u64::from(seed)).unwrap());
        assert_eq!(undrawn.parse(&undrawn.action_name(seed)).unwrap(), drawn);
    }
    let text = undrawn.to_text().unwrap();
    assert_eq!(after(&undrawn, 7).parse(&text).unwrap(), undrawn, "wherever it is read");
    assert_eq!(undrawn.max_plies(), 401);
    assert!(undrawn.render().contains("to be drawn"));
    // The same start on every machine and in every release.
    let texts = [0, 1, u64::MAX].map(|seed| WallGame::with_seed(FREESTYLE, seed).unwrap().to_text().unwrap());
    let expected = [
        "cats d10 i10 mice c2 j2 walls ^d8 ^e8 ^e6 ^f7 ^g7 ^h8 ^h6 ^i8 turn 1 red",
        "cats d5 i5 mice d3 i3 walls >b10 >b3 >c3 >e9 >g9 >i3 >j10 >j3 ^a3 ^c4 ^d7 ^f1 ^g1 ^i7 ^j4 ^l3 turn 1 red",
        "cats a4 l4 mice c3 j3 walls >a6 >a5 >k6 >k5 ^a3 ^b6 ^c3 ^d2 ^i2 ^j3 ^k6 ^l3 turn 1 red",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn pictures_show_pieces_and_walls() {
    let game = standard(4, 3).parse("cats a3 b2 mice b2 d1 walls >a3 ^c2 turn 3 red second not Ca2").unwrap();
    let text = "3 C |.  .  .\n        --\n2 .  Mc .  .\n\n1 .  .  .  m\n  a  b  c  d\nturn 3, red: second action";
    assert_eq!(game.render(), text);
    assert_eq!(
        (game.owner(0, 'C'), game.owner(4, 'm'), game.owner(5, 'c')),
        (Some(Player::Zero), Some(Player::One), None)
    );
    let svg = game.to_svg();
    assert_eq!(svg.matches("<circle").count(), 4);
    assert_eq!(svg.matches("stroke-linecap").count(), 2);
}
