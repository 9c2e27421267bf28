//! A session by itself: what depends on its clock, its memory and the order of its searches. What it answers is compared
//! with a server's in tests/test_page.py.

use azpy_core::config::Fpu;
use azpy_core::game::{Game as _, Payoff, Value as TwoPlayers};
use azpy_games::Go9;
use azpy_games::any::{Any, Open, Start};
use azpy_games::registry::Entry;
use azpy_net::Net;
use serde_json::{Map as Object, Value, json};

use crate::player::{About, Player};
use crate::session::{Asked, Session};

type Game = Any<TwoPlayers>;

/// Go on a small board, behind the type that sessions have.
struct Games;

impl Open for Games {
    type Opened = Box<dyn std::any::Any>;

    fn games() -> &'static [Entry<Start<Self>>] {
        const GAMES: &[Entry<Start<Games>>] = &[Entry {
            name: "go",
            params: &[("size", "9"), ("komi", "7.5")],
            make: |p| Go9::new(p.number("size")?, p.read("komi", "a number")?, true).map(Start::new),
        }];
        GAMES
    }

    fn open<P: Payoff>(self, start: Any<P>) -> Self::Opened {
        Box::new(start)
    }
}

fn session(more: Value) -> Session<Game> {
    session_of(more, &[])
}

fn player(more: Value) -> (Player, About) {
    let about = json!({"name": "main", "game": "go", "network": null, "simulations": 40, "levels": []});
    let limits = json!({
        "simulations": u32::MAX, "seconds": 60.0, "moves": 100, "turns": 100, "nodes": 100, "depth": 9,
        "text_bytes": 9999, "searches": 3, "games": 2,
    });
    let mut player = json!({"about": about, "temperature": 0.0, "limits": limits, "options": {}, "network": null});
    player.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Player::read(&player.to_string()).unwrap()
}

fn session_of(more: Value, weights: &[u8]) -> Session<Game> {
    let (player, about) = player(more);
    let start = *Start::open("go", Games).unwrap().downcast::<Game>().unwrap();
    Session::new(start, player, about, weights).unwrap()
}

/// A session whose network has nothing but zeros: it keeps its answers, and values all positions alike.
fn session_of_zeros() -> Session<Game> {
    let shape = json!({"network": "0x1", "obs_shape": Go9::new(9, 7.5, true).unwrap().obs_shape(), "num_actions": 82});
    let (mut tensors, mut length) = (Object::new(), 0);
    loop {
        let header = Value::Object(tensors.clone()).to_string();
        let mut weights = (header.len() as u64).to_le_bytes().to_vec();
        weights.extend(header.bytes());
        weights.resize(weights.len() + length, 0);
        let Err(error) = Net::read(&shape.to_string(), &weights) else {
            return session_of(json!({"network": shape}), &weights);
        };
        // Such as "...: trunk.0.0.weight is missing, expected float32 [1, 17, 3, 3]".
        let (name, shape) = error.split_once(" is missing, expected float32 ").expect(&error);
        let shape: Vec<usize> = serde_json::from_str(shape).unwrap();
        let end = length + 4 * shape.iter().product::<usize>();
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [length, end]});
        tensors.insert(name.rsplit(' ').next().unwrap().to_owned(), tensor);
        length = end;
    }
}

fn ask(session: &mut Session<Game>, id: &str, more: Value) {
    let mut query = json!({"id": id, "moves": []});
    query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    session.ask(&query.to_string());
}

/// What was said since the last call: the id, and why the search ended or the error.
fn said(session: &mut Session<Game>) -> Vec<(String, String)> {
    let told = |line: String| {
        let line: Value = serde_json::from_str(&line).unwrap();
        let why = line.get("error").unwrap_or(&line["rootInfo"]["stop"]);
        (line["id"].as_str().unwrap().to_owned(), why.as_str().unwrap().to_owned())
    };
    session.said().into_iter().map(told).collect()
}

/// Steps until something is said. A search that never ends fails the test before it fills this machine's memory.
fn heard(session: &mut Session<Game>, now: f64) -> Vec<(String, String)> {
    for _ in 0..5_000 {
        let goes_on = session.step(now);
        assert!(session.memory_bytes() <= session.trees);
        let said = said(session);
        if !said.is_empty() || !goes_on {
            return said;
        }
    }
    panic!("no search ends");
}

/// The root's visits after a search.
fn visits(session: &mut Session<Game>, query: Value) -> u64 {
    ask(session, "a", query);
    for _ in 0..1_000 {
        session.step(0.0);
        assert!(session.memory_bytes() <= session.trees);
    }
    let line: Value = serde_json::from_str(&session.said()[0]).unwrap();
    assert_eq!(line["rootInfo"]["stop"], "simulations");
    line["rootInfo"]["visits"].as_u64().unwrap()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(id, why)| (id.to_owned(), why.to_owned())).collect()
}

#[test]
fn seconds_count_from_the_first_round_of_a_search() {
    let mut session = session(json!({}));
    ask(&mut session, "a", json!({"seconds": 2}));
    ask(&mut session, "b", json!({"seconds": 2}));
    (0..5).for_each(|step| assert!(session.step(1000.0 + 400.0 * f64::from(step)) && said(&mut session).is_empty()));
    assert_eq!(heard(&mut session, 3000.0), pairs(&[("a", "seconds")]));
    (0..5).for_each(|step| assert!(session.step(3000.0 + 399.0 * f64::from(step)) && said(&mut session).is_empty()));
    assert!(!session.step(5000.0));
    assert_eq!(said(&mut session), pairs(&[("b", "seconds")]));
}

#[test]
fn reports_come_as_often_as_they_are_asked_for() {
    let mut session = session(json!({}));
    ask(&mut session, "a", json!({"seconds": 9, "reportDuringSearchEvery": 1}));
    let reports = (0..40).filter(|&step| session.step(100.0 * f64::from(step)) && !session.said().is_empty()).count();
    assert_eq!(reports, 3);
}

#[test]
fn play_goes_before_analysis_and_analysis_before_pondering() {
    let mut session = session(json!({}));
    for (id, priority) in [("c", "ponder"), ("b", "analysis"), ("a", "play")] {
        ask(&mut session, id, json!({"simulations": 40, "priority": priority}));
    }
    assert_eq!(heard(&mut session, 0.0), pairs(&[("a", "simulations")]));
    ask(&mut session, "d", json!({"simulations": 40}));
    for id in ["d", "b", "c"] {
        assert_eq!(heard(&mut session, 0.0), pairs(&[(id, "simulations")]));
    }
}

#[test]
fn a_client_has_so_many_searches_at_once() {
    let mut session = session(json!({}));
    ["a", "b", "c", "d"].into_iter().for_each(|id| ask(&mut session, id, json!({"simulations": 40})));
    let refused = session.said();
    let [line] = &refused[..] else { panic!("{refused:?}") };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["id"], &line["retryAfter"]), (&json!("d"), &json!(1)));
    assert!(line["error"].as_str().unwrap().starts_with("3 searches of this client are open"));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("a", "simulations")]));
    ask(&mut session, "d", json!({"simulations": 40}));
    for id in ["b", "c", "d"] {
        assert_eq!(heard(&mut session, 0.0), pairs(&[(id, "simulations")]));
    }
}

#[test]
fn trees_keep_to_their_memory_and_the_largest_ends() {
    let mut session = session(json!({}));
    session.trees = 4 << 20;
    ask(&mut session, "large", json!({"seconds": 50, "priority": "analysis"}));
    (0..40).for_each(|_| assert!(session.step(0.0)));
    let before = session.memory_bytes();
    // A search of higher priority runs, and the tree of the other one is the larger one for long.
    ask(&mut session, "small", json!({"seconds": 50}));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("small", "memory")]), "it has outgrown the other one");
    assert!(before > 200_000 && session.memory_bytes() < session.trees / 2);
    (0..70).for_each(|_| assert!(session.step(0.0)));
    ask(&mut session, "next", json!({"seconds": 50}));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("large", "memory")]), "not the one that runs");
    assert_eq!(heard(&mut session, 0.0), pairs(&[("next", "memory")]));
}

#[test]
fn a_growing_tree_and_its_copy_keep_to_their_memory() {
    // The second session keeps its network's answers, so the second time only its own bound limits a step.
    for mut session in [session(json!({})), session_of_zeros()] {
        session.trees = 4 << 20;
        for _ in 0..2 {
            ask(&mut session, "a", json!({"seconds": 50}));
            let mut most = 0;
            for _ in 0..2_000 {
                let before = session.memory_bytes();
                let goes_on = session.step(0.0);
                let after = session.memory_bytes();
                assert!(!goes_on || after == before || before + after <= session.trees, "{before} becomes {after}");
                most = most.max(after);
            }
            assert_eq!(said(&mut session), pairs(&[("a", "memory")]));
            assert!(most > session.trees / 4 * 3, "{most} of {}", session.trees);
        }
    }
}

#[test]
fn the_oldest_kept_tree_goes_before_a_search_ends() {
    let mut session = session(json!({}));
    session.trees = 2 << 20;
    let mut visits = |query| visits(&mut session, query);
    assert_eq!(visits(json!({"game": "older", "simulations": 400})), 400);
    assert_eq!(visits(json!({"game": "newer", "simulations": 40})), 40);
    assert_eq!(visits(json!({"simulations": 300})), 300);
    assert_eq!(visits(json!({"game": "newer", "simulations": 1})), 41);
    assert_eq!(visits(json!({"game": "older", "simulations": 1})), 1);
}

#[test]
fn the_game_that_was_asked_for_longest_ago_loses_its_tree() {
    let mut session = session(json!({}));
    for (game, before) in [("a", 0), ("b", 0), ("a", 10), ("c", 0), ("a", 20), ("b", 0)] {
        let query = json!({"game": game, "simulations": 10});
        assert_eq!(visits(&mut session, query), before + 10, "{game}");
    }
}

#[test]
fn a_small_temperature_draws_the_best_action_and_a_large_one_many() {
    for (temperature, simulations, is_one) in [(1e-300, 40, true), (0.01, 1, false), (1.0, 40, false)] {
        let mut session = session(json!({"temperature": temperature, "seed": 5}));
        let mut drawn = std::collections::BTreeSet::new();
        for _ in 0..30 {
            ask(&mut session, "a", json!({"simulations": simulations, "allowMoves": ["A1", "B1", "C1"]}));
            for _ in 0..50 {
                session.step(0.0);
            }
            let line: Value = serde_json::from_str(&session.said()[0]).unwrap();
            drawn.insert(line["move"].as_str().unwrap().to_owned());
        }
        assert_eq!(drawn.len() == 1, is_one, "temperature {temperature}: {drawn:?}");
    }
}

#[test]
fn a_page_s_options_are_those_of_a_search_and_others_are_refused() {
    let read = |options: Value| player(json!({"options": options})).0.config();
    let config =
        read(json!({"eval_batch": 4, "lcb": 2, "fpu": "parent", "solver": true, "c_puct_base": null})).unwrap();
    assert_eq!((config.eval_batch, config.lcb, config.fpu, config.solver), (4, Some(2.0), Fpu::Parent, true));
    let noise = read(json!({"root_noise": [null, 0.5]})).unwrap().root_noise.unwrap();
    assert_eq!((noise.alpha, noise.fraction), (None, 0.5));
    let refused = |options: Value| read(options).unwrap_err();
    assert_eq!(refused(json!({"eval_batch": 4.5})), "eval_batch must be a whole number, got 4.5");
    assert_eq!(refused(json!({"solver": []})), "solver must be true or false, got a list or an object");
    assert_eq!(refused(json!({"lookahead": 7})), "lookahead must be at most 6, got 7");
    assert_eq!(refused(json!({"cpuct": 1})), "cpuct: no such option");
}
