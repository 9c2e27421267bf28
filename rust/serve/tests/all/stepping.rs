//! A session that searches in its own thread: its answers are those of the table that a server has too
//! (tests/data/answers.json), and they keep to its clock, its memory and the order of its searches.

use azpy_core::evaluator::Uniform;
use azpy_core::game::{Game as _, Payoff, Value as TwoPlayers, Values};
use azpy_games::Go9;
use azpy_games::any::AnyGame;
use azpy_net::{Answers, Net};
use azpy_serve::{Page, Position, Response, Session, Stepping, answers};
use serde_json::{Map as Object, Value, json};

use crate::start;

type Stepped<G> = Session<G, Stepping<G, Answers<Uniform>>>;
type Game = AnyGame<TwoPlayers>;

fn opened<P: Payoff>(page: &Value, weights: &[u8]) -> Option<Stepped<AnyGame<P>>> {
    let page = Page::read(&page.to_string()).unwrap();
    let (player, net) = page.player(start::<P>(page.game().unwrap())?, weights).unwrap();
    Some(Session::new(Stepping::new(player, answers(net, Uniform), 64 << 20, 8 << 20), page.limits, page.seed))
}

/// Whether an answer is as expected: "*" stands for anything.
fn fits(expected: &Value, said: &Value) -> bool {
    match (expected, said) {
        (Value::Object(expected), Value::Object(said)) => {
            let has = |(name, value): (&String, &Value)| said.get(name).is_some_and(|said| fits(value, said));
            expected.len() == said.len() && expected.iter().all(has)
        }
        _ => expected == "*" || expected == said,
    }
}

/// Asks what a talk asks, and compares what is said by id and turn.
fn compare<G: Position>(session: &mut Stepped<G>, talk: &Value) {
    for turn in talk["turns"].as_array().unwrap() {
        let mut said: Vec<Response> = Vec::new();
        for message in turn["ask"].as_array().unwrap() {
            said.extend(session.ask(&message.as_str().map_or_else(|| message.to_string(), str::to_owned)));
        }
        while session.searcher.step(0.0) {}
        said.extend(session.take());
        assert!(!session.is_busy());
        let mut said: Vec<Value> = said.iter().map(|response| serde_json::from_str(&response.line).unwrap()).collect();
        said.sort_by_key(|line| (line["id"].as_str().map(str::to_owned), line["turnNumber"].as_i64()));
        let expected = turn["say"].as_array().unwrap();
        let is_same = expected.len() == said.len() && expected.iter().zip(&said).all(|(one, other)| fits(one, other));
        assert!(is_same, "{}: {said:#?}, expected {expected:#?}", talk["what"]);
    }
}

#[test]
fn the_answers_are_those_of_the_table() {
    let table: Value = serde_json::from_str(include_str!("../../../../tests/data/answers.json")).unwrap();
    let level = |level: &Value| json!({"name": level[0], "simulations": level[1], "temperature": 0.0});
    let levels: Vec<Value> = table["levels"].as_array().unwrap().iter().map(level).collect();
    for talk in table["talks"].as_array().unwrap() {
        let mut limits = table["limits"].clone();
        limits.as_object_mut().unwrap().extend(talk["limits"].as_object().cloned().unwrap_or_default());
        let about = json!({
            "name": "main", "game": talk["game"], "network": null, "simulations": table["simulations"],
            "levels": levels,
        });
        let page = json!({
            "about": about, "temperature": talk["temperature"].as_f64().unwrap_or_default(), "limits": limits,
            "options": table["options"], "network": null,
        });
        match opened::<TwoPlayers>(&page, &[]) {
            Some(mut session) => compare(&mut session, talk),
            None => compare(&mut opened::<Values>(&page, &[]).unwrap(), talk),
        }
    }
}

fn session(more: Value) -> Stepped<Game> {
    session_of(more, &[])
}

fn session_of(more: Value, weights: &[u8]) -> Stepped<Game> {
    let about = json!({"name": "main", "game": "go(size=9)", "network": null, "simulations": 40, "levels": []});
    let limits = json!({
        "simulations": u32::MAX, "seconds": 60.0, "moves": 100, "turns": 100, "nodes": 100, "depth": 9,
        "text_bytes": 9999, "searches": 3, "games": 2,
    });
    let mut page = json!({"about": about, "temperature": 0.0, "limits": limits, "options": {}, "network": null});
    page.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    opened(&page, weights).unwrap()
}

/// A session whose network has nothing but zeros: it keeps its answers, and values all positions alike.
fn session_of_zeros() -> Stepped<Game> {
    let shape = json!({"network": "0x1", "obs_shape": Go9::new(9, 7.5, true).unwrap().obs_shape(), "num_actions": 82});
    let (mut tensors, mut length) = (Object::new(), 0);
    loop {
        let header = Value::Object(tensors.clone()).to_string();
        let mut weights = (header.len() as u64).to_le_bytes().to_vec();
        weights.extend(header.bytes());
        weights.resize(weights.len() + length, 0);
        // Each weight that is missing is added.
        let (name, shape) = match Net::read(&shape.to_string(), &weights) {
            Ok(_) => return session_of(json!({"network": shape}), &weights),
            Err(azpy_net::Error::OtherNetwork { name, expected, .. }) => (name, expected),
            Err(error) => panic!("{error}"),
        };
        let end = length + 4 * shape.iter().product::<usize>();
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [length, end]});
        tensors.insert(name, tensor);
        length = end;
    }
}

/// Asks for a search of the start. What is refused at once is returned.
fn ask(session: &mut Stepped<Game>, id: &str, more: Value) -> Vec<Response> {
    let mut query = json!({"id": id, "moves": []});
    query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    session.ask(&query.to_string())
}

/// What was said since the last call: the id, and why the search ended or the error.
fn said(session: &mut Stepped<Game>) -> Vec<(String, String)> {
    let told = |response: Response| {
        let line: Value = serde_json::from_str(&response.line).unwrap();
        let why = line.get("error").unwrap_or(&line["rootInfo"]["stop"]);
        (line["id"].as_str().unwrap().to_owned(), why.as_str().unwrap().to_owned())
    };
    session.take().into_iter().map(told).collect()
}

/// Steps until something is said. A search that never ends fails the test before it fills this machine's memory.
fn heard(session: &mut Stepped<Game>, now: f64) -> Vec<(String, String)> {
    for _ in 0..5_000 {
        let goes_on = session.searcher.step(now);
        assert!(session.searcher.memory_bytes() <= session.searcher.trees);
        let said = said(session);
        if !said.is_empty() || !goes_on {
            return said;
        }
    }
    panic!("no search ends");
}

/// The root's visits after a search.
fn visits(session: &mut Stepped<Game>, query: Value) -> u64 {
    ask(session, "a", query);
    for _ in 0..1_000 {
        session.searcher.step(0.0);
        assert!(session.searcher.memory_bytes() <= session.searcher.trees);
    }
    let line: Value = serde_json::from_str(&session.take()[0].line).unwrap();
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
    (0..5).for_each(|step| {
        assert!(session.searcher.step(1000.0 + 400.0 * f64::from(step)) && said(&mut session).is_empty())
    });
    assert_eq!(heard(&mut session, 3000.0), pairs(&[("a", "seconds")]));
    (0..5).for_each(|step| {
        assert!(session.searcher.step(3000.0 + 399.0 * f64::from(step)) && said(&mut session).is_empty())
    });
    assert!(!session.searcher.step(5000.0));
    assert_eq!(said(&mut session), pairs(&[("b", "seconds")]));
}

#[test]
fn reports_come_as_often_as_they_are_asked_for() {
    let mut session = session(json!({}));
    ask(&mut session, "a", json!({"seconds": 9, "reportDuringSearchEvery": 1}));
    let reports =
        (0..40).filter(|&step| session.searcher.step(100.0 * f64::from(step)) && !session.take().is_empty()).count();
    assert_eq!(reports, 3);
}

#[test]
fn a_search_that_ponders_ends_once_its_game_is_asked_for_something_else() {
    let mut session = session(json!({}));
    ask(&mut session, "a", json!({"game": "g", "priority": "ponder", "seconds": 9}));
    assert!(session.searcher.step(0.0) && said(&mut session).is_empty());
    ask(&mut session, "b", json!({"game": "g", "simulations": 3}));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("a", "stopped")]));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("b", "simulations")]));
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
fn trees_keep_to_their_memory_and_the_largest_ends() {
    let mut session = session(json!({}));
    session.searcher.trees = 4 << 20;
    ask(&mut session, "large", json!({"seconds": 50, "priority": "analysis"}));
    (0..40).for_each(|_| assert!(session.searcher.step(0.0)));
    let before = session.searcher.memory_bytes();
    // A search of higher priority runs, and the tree of the other one is the larger one for long.
    ask(&mut session, "small", json!({"seconds": 50}));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("small", "memory")]), "it has outgrown the other one");
    assert!(before > 200_000 && session.searcher.memory_bytes() < session.searcher.trees / 2);
    (0..70).for_each(|_| assert!(session.searcher.step(0.0)));
    ask(&mut session, "next", json!({"seconds": 50}));
    assert_eq!(heard(&mut session, 0.0), pairs(&[("large", "memory")]), "not the one that runs");
    assert_eq!(heard(&mut session, 0.0), pairs(&[("next", "memory")]));
}

#[test]
fn a_growing_tree_and_its_copy_keep_to_their_memory() {
    // The second session keeps its network's answers, so the second time only its own bound limits a step.
    for mut session in [session(json!({})), session_of_zeros()] {
        session.searcher.trees = 4 << 20;
        for _ in 0..2 {
            ask(&mut session, "a", json!({"seconds": 50}));
            let mut most = 0;
            for _ in 0..2_000 {
                let before = session.searcher.memory_bytes();
                let goes_on = session.searcher.step(0.0);
                let after = session.searcher.memory_bytes();
                assert!(
                    !goes_on || after == before || before + after <= session.searcher.trees,
                    "{before} becomes {after}"
                );
                most = most.max(after);
            }
            assert_eq!(said(&mut session), pairs(&[("a", "memory")]));
            assert!(most > session.searcher.trees / 4 * 3, "{most} of {}", session.searcher.trees);
        }
    }
}

#[test]
fn the_oldest_kept_tree_goes_before_a_search_ends() {
    let mut session = session(json!({}));
    session.searcher.trees = 2 << 20;
    let mut visits = |query| visits(&mut session, query);
    assert_eq!(visits(json!({"game": "older", "simulations": 400})), 400);
    assert_eq!(visits(json!({"game": "newer", "simulations": 40})), 40);
    assert_eq!(visits(json!({"simulations": 300})), 300);
    assert_eq!(visits(json!({"game": "newer", "simulations": 1})), 41);
    assert_eq!(visits(json!({"game": "older", "simulations": 1})), 1);
}

#[test]
fn a_small_temperature_draws_the_best_action_and_a_large_one_many() {
    for (temperature, simulations, is_one) in [(1e-300, 40, true), (0.01, 1, false), (1.0, 40, false)] {
        let mut session = session(json!({"temperature": temperature, "seed": 5}));
        let mut drawn = std::collections::BTreeSet::new();
        for _ in 0..30 {
            ask(&mut session, "a", json!({"simulations": simulations, "allowMoves": ["A1", "B1", "C1"]}));
            for _ in 0..50 {
                session.searcher.step(0.0);
            }
            let line: Value = serde_json::from_str(&session.take()[0].line).unwrap();
            drawn.insert(line["move"].as_str().unwrap().to_owned());
        }
        assert_eq!(drawn.len() == 1, is_one, "temperature {temperature}: {drawn:?}");
    }
}
