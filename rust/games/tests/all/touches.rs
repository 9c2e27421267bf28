//! What a person touches to play: one body over all games, and places that the picture itself confirms.

use std::collections::{BTreeMap, HashSet};

use azpy_core::game::{Action, Game, Player, Turn, Value, Values};
use azpy_core::picture::Touch;
use azpy_core::text::Notation;
use azpy_games::chess::Encoding;
use azpy_games::{
    Backgammon, Blokus, Breakthrough, Chess, ChineseCheckers, ConnectFour, ConnectFourForThree, DiceNim, Game2048, Go9,
    Go19, Gomoku, Hex, KuhnPoker, LeducPoker, LiarsDice, Maedn, Othello, PegBoard, PegSolitaire, Pig, TicTacToe,
    Trictrac, Variant, WallGame, WallRules,
};

use crate::common::{Random, legal, moves};

/// A number that follows `key` in a part of a document.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = &text[text.find(key)? + key.len()..];
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '-')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn lies_in(point: [f64; 2], [x, y, width, height]: [f64; 4]) -> bool {
    (x..=x + width).contains(&point[0]) && (y..=y + height).contains(&point[1])
}

fn middle([x, y, width, height]: [f64; 4]) -> [f64; 2] {
    [x + width / 2.0, y + height / 2.0]
}

/// Where a shape stands, if it is one that shows a piece or a wall.
fn place_of(shape: &str) -> Option<[f64; 2]> {
    let (kind, _) = shape.split_once(' ')?;
    let keys = match kind {
        "circle" => [" cx=\"", " cy=\""],
        "line" => [" x1=\"", " y1=\""],
        "rect" | "text" => [" x=\"", " y=\""],
        // A man of chess in its square, or a wall between two points.
        "path" if shape.contains("translate(") => {
            let (x, y) = shape.split_once("translate(")?.1.split_once(' ')?;
            return Some([x.parse::<f64>().ok()? + 20.0, number_after(y, "")? + 20.0]);
        }
        "path" => {
            let (from, to) = shape.split_once("d=\"M")?.1.split_once('L')?;
            let [(x1, y1), (x2, y2)] = [from.split_once(' ')?, to.split_once(' ')?];
            let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(|part| number_after(part, "").unwrap());
            return Some([(x1 + x2) / 2.0, (y1 + y2) / 2.0]);
        }
        _ => return None,
    };
    Some([number_after(shape, keys[0])?, number_after(shape, keys[1])?])
}

/// Where two pictures differ.
fn changes<G: Notation>(before: &G, after: &G) -> Vec<[f64; 2]> {
    let [before, after] = [before.to_svg(), after.to_svg()];
    let [before, after] = [&before, &after].map(|svg| svg.split('<').collect::<HashSet<_>>());
    before.symmetric_difference(&after).filter_map(|shape| place_of(shape)).collect()
}

/// What holds of the places of all legal actions of a position. `alike` actions may have the same ones.
fn check_position<G: Notation>(state: &G, buttons: &[&str], alike: usize) {
    let svg = state.to_svg();
    let sizes: Vec<f64> = svg.split_once("viewBox=\"0 0 ").unwrap().1[..20]
        .split(['"', ' '])
        .take(2)
        .map(|size| size.parse().unwrap())
        .collect();
    let mut places: BTreeMap<String, [f64; 4]> = BTreeMap::new();
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    let men: BTreeMap<String, char> = state.on_board().into_iter().collect();
    for action in legal(state) {
        let (touches, name) = (state.touches(action), state.action_name(action));
        assert_eq!(touches.is_empty(), buttons.contains(&name.as_str()), "{name}\n{}", state.render());
        for Touch { place, rect } in &touches {
            let [x, y, width, height] = *rect;
            assert!(width >= 12.0 && height >= 12.0 && x >= 0.0 && y >= 0.0, "{place} {rect:?}");
            assert!(x + width <= sizes[0] && y + height <= sizes[1], "{place} {rect:?} of {sizes:?}");
            assert!(!place.is_empty() && place.trim() == place && place.len() <= 20, "{place:?}");
            assert_eq!(*places.entry(place.clone()).or_insert(*rect), *rect, "{place} is two places");
        }
        if !touches.is_empty() {
            // A man goes from where it lies, and a stone comes to where nothing lies.
            let lies = men.contains_key(&touches[0].place);
            assert!(men.is_empty() || lies == (touches.len() == 2), "{name}\n{}", state.render());
            lines.push((touches.into_iter().map(|touch| touch.place).collect(), name));
        }
    }
    for (place, &rect) in &places {
        for (other, &over) in &places {
            assert!(place == other || !lies_in(middle(rect), over), "{other} lies over {place}\n{}", state.render());
        }
    }
    // Sorted, a line stands right before one that it is the beginning of.
    lines.sort();
    for pair in lines.windows(2) {
        let [(line, name), (longer, other)] = pair else { unreachable!() };
        assert!(line == longer || !longer.starts_with(line), "{name} is the beginning of {other}");
        assert_ne!(name, other);
    }
    for same in lines.chunk_by(|one, next| one.0 == next.0) {
        assert!(same.len() == 1 || same.len() == alike, "{same:?} are touched alike\n{}", state.render());
    }
}

/// Plays random games. `buttons` are the names of the actions without a place. With `alike` above 1 so many actions may
/// have the same places. Where `shown`, something of the picture changes in each of the places that are touched.
fn check<G: Notation>(start: &G, games: u64, buttons: &[&str], alike: usize, shown: bool) {
    for seed in 0..games {
        let (mut state, mut random, mut plies) = (start.clone(), Random(seed), 0_usize);
        loop {
            let offered = moves(&state);
            if let Turn::Player(_) = state.turn()
                && (offered.len() <= 60 || plies % 16 == 0)
            {
                check_position(&state, buttons, alike);
            }
            if plies % 64 == 0 || offered.is_empty() {
                // Whoever asks for an action that nobody could play is not an error.
                (0..state.num_actions() as Action).for_each(|action| drop(state.touches(action)));
            }
            if offered.is_empty() {
                break;
            }
            let action = *random.choose(&offered);
            let touches = if state.turn() == Turn::Chance { Vec::new() } else { state.touches(action) };
            let before = state.clone();
            state.play(action);
            if shown && !touches.is_empty() {
                let changes = changes(&before, &state);
                for Touch { place, rect } in touches {
                    let name = before.action_name(action);
                    let seen = changes.iter().any(|&point| lies_in(point, rect));
                    assert!(seen, "{name} changes nothing in {place} {rect:?}\n{}", before.render());
                }
            }
            plies += 1;
        }
    }
}

#[test]
fn boards_of_stones_are_touched_where_the_stone_comes() {
    check(&TicTacToe::new(), 40, &[], 1, true);
    for (width, height, k) in [(7, 6, 4), (1, 5, 3), (6, 1, 2), (32, 1, 32)] {
        check(&ConnectFour::new(width, height, k).unwrap(), 10, &[], 1, true);
    }
    check(&ConnectFourForThree::default(), 10, &[], 1, true);
    for size in [3, 5, 13] {
        check(&Hex::new(size, true).unwrap(), if size < 9 { 20 } else { 1 }, &["swap"], 1, true);
    }
    for size in [4, 6, 8] {
        check(&Othello::new(size).unwrap(), 5, &["pass"], 1, true);
    }
    check(&Gomoku::new(3, 3).unwrap(), 10, &[], 1, true);
    check(&Gomoku::default(), 1, &[], 1, true);
    check(&Go9::new(5, 7.5, true).unwrap(), 4, &["pass"], 1, true);
    check(&Go19::new(19, 7.5, true).unwrap(), 1, &["pass"], 1, false);
}

#[test]
fn pieces_are_touched_where_they_stand_and_where_they_go() {
    for (width, height) in [(8, 8), (2, 32), (21, 3)] {
        check(&Breakthrough::new(width, height).unwrap(), 2, &[], 1, true);
    }
    let chess = |number| Chess::new(Encoding::Az119, number, 120).unwrap();
    check(&chess(None), 2, &[], 4, true);
    // King and rook may change places, or one of them stay, so that the picture does not show which was touched.
    for number in [0, 330, 518] {
        check(&chess(Some(number)), 1, &[], 4, false);
    }
    for text in ["4k3/8/8/8/8/8/8/R3K2R w KQ - 0 40", "1n6/P6k/8/8/8/8/p6K/1N6 b - - 0 1"] {
        check(&chess(None).parse(text).unwrap(), 4, &[], 4, true);
    }
    for start in [Backgammon::default(), Backgammon::with_max_plies(true, 60).unwrap()] {
        check(&start, 4, &[], 1, true);
    }
    check(&Trictrac::default(), 3, &["hold", "leave"], 1, true);
    check(&Blokus::<Value>::new(2, 7).unwrap(), 2, &[], 1, true);
    check(&ChineseCheckers::<Value>::default(), 1, &["pass"], 1, true);
    check(&ChineseCheckers::<Values>::new(6, 20).unwrap(), 1, &["pass"], 1, true);
    check(&Maedn::<Value>::default(), 2, &["pass"], 1, true);
    check(&Maedn::<Values>::new(4, true, 1000).unwrap(), 2, &["pass"], 1, true);
    for board in [PegBoard::English, PegBoard::Triangle] {
        check(&PegSolitaire::new(board), 10, &[], 1, true);
    }
}

#[test]
fn walls_are_touched_on_edges_and_pieces_in_cells() {
    let start = |columns, rows, variant| WallGame::new(columns, rows, WallRules { variant, ..WallRules::default() });
    for (columns, rows) in [(2, 2), (3, 3), (3, 5), (8, 8), (20, 3)] {
        check(&start(columns, rows, Variant::Standard).unwrap(), 2, &[], 1, true);
        check(&start(columns, rows, Variant::Classic).unwrap(), 1, &[], 1, true);
    }
    check(&start(12, 10, Variant::Freestyle).unwrap(), 1, &[], 1, true);
}

#[test]
fn all_places_are_told_without_used_pieces() {
    let names = |touches: Vec<Touch>| touches.into_iter().map(|touch| touch.place).collect::<HashSet<_>>();
    let (cells, pieces) = (49, 21);
    let start = Blokus::<Value>::new(2, 7).unwrap();
    assert_eq!(names(start.places()).len(), cells + pieces);
    let later = start.parse("b6 f2").unwrap();
    let left = names(later.places());
    assert_eq!(left.len(), cells + pieces - 1);
    assert!(!left.contains("piece 1") && left.contains("b6"));
    let theirs = ["h8", "h1"].map(str::to_owned).into_iter().collect();
    assert!(names(WallGame::default().places()).is_superset(&theirs));
    let backgammon = Backgammon::default().parse("3-1").unwrap();
    let points = (1..=24).map(|point| format!("point {point}"));
    assert!(names(backgammon.places()).is_superset(&points.collect()));
}

#[test]
fn games_of_dice_or_cards_alone_are_played_by_buttons() {
    check(&Pig::default(), 2, &["roll", "hold"], 1, false);
    check(&DiceNim::default(), 2, &["take 1", "take 2", "take 3"], 1, false);
    check(&Game2048::default(), 1, &["up", "right", "down", "left"], 1, false);
    check(&KuhnPoker::new(), 4, &["check", "bet", "fold", "call"], 1, false);
    check(&LeducPoker::new(), 4, &["check", "raise", "fold", "call"], 1, false);
    let bids = ["1x1", "1x2", "2x1", "2x2", "liar"];
    check(&LiarsDice::new(2).unwrap(), 4, &bids, 1, false);
}

/// The places of an action, by its name.
fn touched<G: Notation>(start: &G, line: &str, name: &str) -> Vec<(String, [f64; 4])> {
    let state = start.parse(line).unwrap();
    let touches = state.touches(state.parse_actions(name).unwrap()[0]);
    touches.into_iter().map(|touch| (touch.place, touch.rect)).collect()
}

fn names(touched: Vec<(String, [f64; 4])>) -> Vec<String> {
    touched.into_iter().map(|(name, _)| name).collect()
}

fn place(name: &str, rect: [f64; 4]) -> (String, [f64; 4]) {
    (name.to_owned(), rect)
}

#[test]
fn places_are_where_people_look_for_them() {
    let chess = Chess::default();
    let e2e4 = vec![place("e2", [160.0, 240.0, 40.0, 40.0]), place("e4", [160.0, 160.0, 40.0, 40.0])];
    assert_eq!(touched(&chess, "", "e4"), e2e4);
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    assert_eq!(names(touched(&chess, castling, "O-O-O")), ["e1", "c1"]);
    let chess960 = Chess::new(Encoding::Az119, Some(518), 120).unwrap();
    assert_eq!(names(touched(&chess960, castling, "O-O-O")), ["e1", "a1"]);
    assert_eq!(names(touched(&chess960, "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "O-O")), ["e8", "h8"]);

    let wall_game = WallGame::default();
    assert_eq!(touched(&wall_game, "", ">e4"), [place("wall right of e4", [249.0, 201.0, 12.0, 36.0])]);
    assert_eq!(touched(&wall_game, "", "^e4"), [place("wall above e4", [213.0, 189.0, 36.0, 12.0])]);
    let cat = vec![place("cat on a8", [21.0, 9.0, 36.0, 18.0]), place("b8", [69.0, 9.0, 36.0, 36.0])];
    assert_eq!(touched(&wall_game, "", "Cb8"), cat);
    // The mouse is below the cat, and each keeps the half of its cell where the other one comes.
    let near = "cats d4 h8 mice e4 h1 turn 3 red";
    let cat = vec![place("cat on d4", [165.0, 201.0, 36.0, 18.0]), place("e4", [213.0, 201.0, 36.0, 18.0])];
    assert_eq!(touched(&wall_game, near, "Ce4"), cat);
    let mouse = vec![place("mouse on e4", [213.0, 219.0, 36.0, 18.0]), place("d4", [165.0, 219.0, 36.0, 18.0])];
    assert_eq!(touched(&wall_game, near, "Md4"), mouse);

    let backgammon = Backgammon::default();
    let names_of = |text: &str, name: &str| names(touched(&backgammon, text, name));
    let far = vec![place("point 13", [14.0, 14.0, 40.0, 200.0]), place("point 10", [94.0, 254.0, 40.0, 200.0])];
    assert_eq!(touched(&backgammon, "3-1", "13/10"), far);
    assert_eq!(names_of("x=bar:1,6:14 o=18:15 turn=x roll=3-1", "bar/22"), ["bar", "point 22"]);
    assert_eq!(names_of("x=6:3,1:2,off:10 o=18:15 turn=o roll=6-5", "18/12"), ["point 18", "point 12"]);
    assert_eq!(names_of("x=6:3,1:2,off:10 o=18:15 turn=x roll=6-5", "6/off"), ["point 6", "tray"]);

    let trictrac = Trictrac::default();
    let names_of = |text: &str, name: &str| names(touched(&trictrac, text, name));
    let far = vec![place("field 1", [62.0, 254.0, 40.0, 200.0]), place("field 7", [326.0, 254.0, 40.0, 200.0])];
    assert_eq!(touched(&trictrac, "6-5", "1/7"), far);
    assert_eq!(names_of("x=10:1,11:1,off:13 o=1:13,2:2 turn=x roll=3-2", "power"), ["field 12"]);
    assert_eq!(names_of("x=1:15 o=22:1,off:14 turn=o roll=3-1", "22/23"), ["field 22", "field 23"]);
    assert_eq!(names_of("x=24:2,off:13 o=5:15 turn=x roll=6-1", "24/off"), ["field 24", "tray"]);

    let entered = vec![place("home", [0.0, 360.0, 80.0, 80.0]), place("field 1", [160.0, 400.0, 40.0, 40.0])];
    assert_eq!(touched(&Maedn::<Value>::default(), "6", "enter"), entered);
    assert_eq!(names(touched(&Maedn::<Value>::default(), "x=40,b turn=x die=3", "40/c")), ["field 40", "field c"]);

    let hop = vec![place("a3", [250.0, 424.16, 28.0, 28.0]), place("e5", [284.0, 365.28, 28.0, 28.0])];
    assert_eq!(touched(&ChineseCheckers::<Value>::default(), "", "a3-e5"), hop);

    let column = vec![place("column 3", [80.0, 0.0, 40.0, 240.0])];
    assert_eq!(touched(&ConnectFour::default(), "", "3"), column);
    assert_eq!(touched(&Go9::new(9, 7.5, true).unwrap(), "", "J1"), [place("J1", [251.0, 241.0, 30.0, 30.0])]);
    assert_eq!(touched(&Hex::default(), "", "a1"), [place("a1", [14.0, 24.0, 34.64, 20.0])]);
    assert_eq!(touched(&TicTacToe::new(), "", "a1"), [place("a1", [0.0, 80.0, 40.0, 40.0])]);
    // The row's name is in its first cell.
    assert!(TicTacToe::new().to_svg().contains("<text x=\"6\" y=\"89.15\" font-size=\"9\" class=\"name\">1</text>"));
    let othello = Othello::new(4).unwrap();
    assert_eq!(touched(&othello, "", "b1"), [place("b1", [40.0, 0.0, 40.0, 40.0])]);
    assert_eq!(othello.to_svg().matches("<rect x=\"0\" ").count(), 5, "the ground, and the first cells of four rows");
    assert_eq!(names(touched(&Breakthrough::default(), "", "a2b3")), ["a2", "b3"]);
    assert_eq!(names(touched(&PegSolitaire::default(), "", "d2d4")), ["d2", "d4"]);
}

/// Where the first places of a player's actions are, on the average, from the middle of the picture: right and down.
fn camp<G: Notation>(state: &G) -> [f64; 2] {
    let svg = state.to_svg();
    let size = [" width=\"", " height=\""].map(|key| number_after(&svg, key).unwrap());
    let firsts = legal(state).into_iter().filter_map(|action| Some(middle(state.touches(action).first()?.rect)));
    let (count, sum) = firsts.fold((0.0, [0.0; 2]), |(count, sum), at| (count + 1.0, [sum[0] + at[0], sum[1] + at[1]]));
    [sum[0] / count - size[0] / 2.0, sum[1] / count - size[1] / 2.0]
}

/// Plates with the players' names stand around the board: player 0's below it, and the others from the left to the
/// right above it.
#[test]
fn camps_are_where_the_plates_of_their_players_are() {
    let check = |camps: &[[f64; 2]]| {
        assert!(camps[0][1] > 100.0, "the first player is not below: {camps:?}");
        assert!(camps[1..].is_sorted_by(|one, next| one[0] < next[0] + 20.0), "not from the left: {camps:?}");
        assert!(camps.len() > 4 || camps[1..].iter().any(|camp| camp[1] < -50.0), "nobody is above: {camps:?}");
    };
    fn camps<G: Notation>(mut state: G) -> Vec<[f64; 2]> {
        let players = state.num_players();
        let turn_of = |player| Turn::Player(Player::ALL[player]);
        let place = |player| {
            while state.turn() != turn_of(player) {
                state.play(legal(&state)[0]);
            }
            camp(&state)
        };
        (0..players).map(place).collect()
    }
    check(&camps(ChineseCheckers::<Value>::default()));
    for players in [3, 4, 6] {
        check(&camps(ChineseCheckers::<Values>::new(players, 20).unwrap()));
    }
    let mut blokus = Blokus::<Values>::new(4, 20).unwrap();
    let corners: Vec<_> = (0..4)
        .map(|_| {
            let single = legal(&blokus).into_iter().find(|&action| blokus.touches(action).len() == 2).unwrap();
            let [x, y] = middle(blokus.touches(single)[1].rect);
            blokus.play(single);
            [x - 280.0, y - 280.0]
        })
        .collect();
    check(&corners);
    let home = |text: &str, players: usize| match players {
        2 => camp(&Maedn::<Value>::default().parse(text).unwrap()),
        _ => camp(&Maedn::<Values>::new(players, true, 3000).unwrap().parse(text).unwrap()),
    };
    for players in [2, 3, 4] {
        let turns = ["turn=x die=6", "turn=o die=6", "turn=y die=6", "turn=z die=6"];
        check(&turns[..players].iter().map(|text| home(text, players)).collect::<Vec<_>>());
    }
}
