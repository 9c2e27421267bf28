//! Games that hide something: until the end each byte that a client gets follows from what the person knows.

use std::collections::{HashMap, HashSet};

use azpy_core::config::SearchConfig;
use azpy_core::evaluator::Uniform;
use azpy_core::game::{Game as _, Player as Side, Turn, Value as TwoPlayers};
use azpy_core::text::Notation as _;
use azpy_games::any::AnyGame;
use azpy_net::Answers;
use azpy_serve::{Player, Session, Stepping};
use serde_json::{Value, json};

use crate::{LIMITS, start};

type Game = AnyGame<TwoPlayers>;
type Client = Session<Game, Stepping<Game, Answers<Uniform>>>;

fn client(game: &str) -> Client {
    let player = Player::new(start(game).unwrap(), SearchConfig::default());
    Session::new(Stepping::new(player, Answers::Plain(Uniform), 1 << 20, 0), LIMITS, 7)
}

/// The one answer to a message, which gets an id.
fn ask(client: &mut Client, mut message: Value) -> Value {
    message["id"] = "1".into();
    let mut said = client.ask(&message.to_string());
    while client.is_busy() {
        client.searcher.step(0.0);
        said.extend(client.take());
    }
    assert_eq!(said.len(), 1, "{message}");
    serde_json::from_str(&said[0].line).unwrap()
}

#[test]
fn an_answer_follows_from_what_the_person_knows_alone() {
    let cases = [("kuhn_poker", 0, 6), ("kuhn_poker", 1, 6), ("leduc_poker", 0, 150), ("leduc_poker", 1, 150)];
    for (game, side, views) in cases {
        let (mut client, mut known) = (client(game), HashMap::<u128, String>::new());
        for number in 0..6_000 {
            let mut heard = Vec::new();
            let mut said = ask(&mut client, json!({"action": "deal", "side": side}));
            while said["result"].is_null() {
                let actions = said["actions"].as_array().unwrap().clone();
                let chosen = &actions[(number * 7 + heard.len() * 3 + number / 5) % actions.len()];
                let wrong = ask(&mut client, json!({"action": "play", "move": "?"}));
                let next = ask(&mut client, json!({"action": "play", "move": chosen}));
                said["action"].take();
                heard.push(format!("{} {wrong}", std::mem::replace(&mut said, next)));
            }
            let (mut state, mut heard): (Game, _) = (start(game).unwrap(), heard.into_iter());
            for name in said["moves"].as_array().unwrap() {
                if state.turn() == Turn::Player(Side::ALL[side]) {
                    let (view, told) = (state.view_key(Side::ALL[side]).unwrap(), heard.next().unwrap());
                    assert_eq!(*known.entry(view).or_insert_with(|| told.clone()), told, "{game}, {side}");
                }
                state.play(state.parse_actions(name.as_str().unwrap()).unwrap()[0]);
            }
            assert_eq!((&said["view"], &said["result"]), (&json!(state.render()), &json!(state.result_text())));
        }
        assert!(known.len() >= views, "{game}: {} views", known.len());
        let told: HashSet<&String> = known.values().collect();
        assert_eq!(told.len(), known.len(), "{game} keeps from player {side} what it knows");
    }
}

#[test]
fn each_deal_and_each_move_of_the_others_is_drawn_anew() {
    let (mut client, mut counts) = (client("kuhn_poker"), HashMap::<String, usize>::new());
    for _ in 0..3_000 {
        let said = ask(&mut client, json!({"action": "deal", "side": 1}));
        let said = ask(&mut client, json!({"action": "play", "move": said["actions"][0]}));
        let moves = said["moves"].as_array().unwrap();
        *counts.entry(format!("{} {} {}", moves[0], moves[1], moves[2])).or_default() += 1;
    }
    assert_eq!(counts.len(), 12, "six deals, each with a check and a bet: {counts:?}");
    assert!(counts.values().all(|&count| (180..320).contains(&count)), "{counts:?}");
}

#[test]
fn what_would_show_or_search_the_position_is_refused() {
    let mut hidden = client("leduc_poker");
    let lost = ask(&mut hidden, json!({"action": "play", "move": "bet"}));
    ask(&mut hidden, json!({"action": "deal"}));
    let hides = "leduc_poker hides something, so it is not searched";
    let refused = [
        (json!({}), hides),
        (json!({"moves": ["Js", "Kh"]}), hides),
        (json!({"action": "show"}), hides),
        (json!({"action": "read", "text": ""}), hides),
        (json!({"action": "write", "nodes": []}), hides),
        (json!({"action": "deal", "simulations": 9}), "simulations: has no effect"),
        (json!({"action": "deal", "moves": ["Js"]}), "moves: has no effect"),
        (json!({"action": "deal", "move": "check"}), "move: has no effect"),
        (json!({"action": "play", "move": "check", "side": 1}), "side: has no effect"),
        (json!({"action": "deal", "side": 2}), "side: expected a whole number from 0 to 1"),
        (json!({"action": "play", "move": "bet"}), "move: expected one of check, raise, got \"bet\""),
    ];
    assert!(lost["error"].as_str().unwrap().contains("no game is in play: send deal first"));
    for (message, why) in refused {
        let said = ask(&mut hidden, message);
        assert!(said["error"].as_str().unwrap().contains(why), "{said}");
    }
    let said = ask(&mut client("tic_tac_toe"), json!({"action": "deal"}));
    assert!(said["error"].as_str().unwrap().contains("for games that hide something, and tic_tac_toe does not"));
}

#[test]
fn each_message_has_an_answer_until_the_client_leaves() {
    let mut client = client("kuhn_poker");
    let deal = |id: &str| json!({"id": id, "action": "deal", "side": 1}).to_string();
    assert!(client.ask(&deal("first")).is_empty());
    let dropped = client.ask(&deal("second"));
    assert_eq!(dropped.len(), 1);
    assert!(dropped[0].line.contains(r#""id":"first","error":"another game was dealt before the answer"#));
    client.searcher.step(0.0);
    let said = client.take();
    assert_eq!(said.len(), 1);
    assert!(said[0].line.contains(r#""id":"second","action":"deal""#));
    client.ask(&deal("third"));
    client.close();
    assert!(!client.is_busy());
    assert!(client.take().is_empty());
}
