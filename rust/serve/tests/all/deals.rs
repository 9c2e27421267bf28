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

fn ask(client: &mut Client, message: &Value) -> Value {
    let mut said = client.ask(&message.to_string());
    while client.is_busy() {
        client.searcher.step(0.0);
        said.extend(client.take());
    }
    assert_eq!(said.len(), 1, "{message}");
    serde_json::from_str(&said[0].line).unwrap()
}

/// Plays games by the person's draws, and gives all answers before the end by what the person knew.
fn answers(game: &str, side: usize, games: usize) -> HashMap<u128, HashSet<String>> {
    let (mut client, mut known) = (client(game), HashMap::<u128, HashSet<String>>::new());
    for number in 0..games {
        let mut heard: Vec<Vec<Value>> = Vec::new();
        let mut said = ask(&mut client, &json!({"id": "1", "action": "deal", "side": side}));
        while said["result"].is_null() {
            let actions = said["actions"].as_array().unwrap().clone();
            let wrong = ask(&mut client, &json!({"id": "1", "action": "play", "move": "?"}));
            let view = json!([said["view"], said["actions"], said["outcome"], said["moves"], said["game"]]);
            heard.push(vec![view, wrong]);
            let chosen = &actions[(number * 7 + heard.len() * 3 + number / 5) % actions.len()];
            said = ask(&mut client, &json!({"id": "1", "action": "play", "move": chosen}));
        }
        let mut state: Game = start(game).unwrap();
        let mut heard = heard.into_iter();
        for name in said["moves"].as_array().unwrap() {
            if state.turn() == Turn::Player(Side::ALL[side]) {
                let view = state.view_key(Side::ALL[side]).unwrap();
                known.entry(view).or_default().insert(format!("{:?}", heard.next().unwrap()));
            }
            let action = state.parse_actions(name.as_str().unwrap()).unwrap()[0];
            state.play(action);
        }
        assert_eq!((state.turn(), heard.next()), (Turn::Terminal, None));
        assert_eq!(said["view"], state.render(), "all is shown at the end");
        assert_eq!(said["result"], state.result_text());
    }
    known
}

#[test]
fn an_answer_follows_from_what_the_person_knows_alone() {
    for (game, side, views) in
        [("kuhn_poker", 0, 6), ("kuhn_poker", 1, 6), ("leduc_poker", 0, 150), ("leduc_poker", 1, 150)]
    {
        let known = answers(game, side, 6_000);
        assert!(known.len() >= views, "{game}: {} views", known.len());
        for said in known.values() {
            assert_eq!(said.len(), 1, "{game} tells what player {side} does not know: {said:#?}");
        }
        let told: HashSet<&String> = known.values().flatten().collect();
        assert_eq!(told.len(), known.len(), "{game} keeps from player {side} what it knows");
    }
}

#[test]
fn each_deal_and_each_move_of_the_others_is_drawn_anew() {
    let mut client = client("kuhn_poker");
    let mut counts = HashMap::<String, usize>::new();
    for _ in 0..3_000 {
        let said = ask(&mut client, &json!({"id": "1", "action": "deal", "side": 1}));
        let said = if said["result"].is_null() {
            ask(&mut client, &json!({"id": "1", "action": "play", "move": said["actions"][0]}))
        } else {
            said
        };
        let moves = said["moves"].as_array().unwrap();
        *counts.entry(format!("{} {} {}", moves[0], moves[1], moves[2])).or_default() += 1;
    }
    assert_eq!(counts.len(), 12, "six deals, each with a check and a bet: {counts:?}");
    assert!(counts.values().all(|&count| (190..310).contains(&count)), "{counts:?}");
}

#[test]
fn what_would_show_or_search_the_position_is_refused() {
    let mut hidden = client("leduc_poker");
    ask(&mut hidden, &json!({"id": "1", "action": "deal"}));
    let query = json!({"id": "1", "moves": ["Js", "Kh"]});
    let [show, read, write] = ["show", "read", "write"].map(|action| json!({"id": "1", "action": action, "nodes": []}));
    for message in [query, json!({"id": "1"}), show, read, write] {
        let said = ask(&mut hidden, &message)["error"].as_str().unwrap().to_owned();
        assert!(said.starts_with("leduc_poker hides something from its players, so it is not searched"), "{said}");
    }
    let refused = [
        (json!({"action": "deal", "simulations": 9}), "simulations: has no effect"),
        (json!({"action": "deal", "level": "casual"}), "level: has no effect"),
        (json!({"action": "deal", "moves": ["Js"]}), "moves: has no effect"),
        (json!({"action": "deal", "side": 2}), "side: expected a whole number from 0 to 1"),
        (json!({"action": "play", "move": "bet"}), "move: expected one of check, raise, got \"bet\""),
        (json!({"action": "play", "game": "b", "move": "check"}), "there is no game \"b\": deal it first"),
    ];
    for (message, why) in refused {
        let mut message = message;
        message["id"] = "1".into();
        let said = ask(&mut hidden, &message)["error"].as_str().unwrap().to_owned();
        assert!(said.contains(why), "{said}");
    }
    let said = ask(&mut client("tic_tac_toe"), &json!({"id": "1", "action": "deal"}));
    assert!(said["error"].as_str().unwrap().contains("for games that hide something, and tic_tac_toe does not"));
}

#[test]
fn a_client_keeps_a_few_games_and_ends_them() {
    let mut client = client("leduc_poker");
    for game in ["a", "b", "c", "d"] {
        ask(&mut client, &json!({"id": "1", "action": "deal", "game": game}));
    }
    let mut play = |game: &str| ask(&mut client, &json!({"id": "1", "action": "play", "game": game, "move": "raise"}));
    assert!(play("a")["error"].as_str().unwrap().contains("there is no game"));
    assert_eq!(play("b")["error"], Value::Null);
    client.ask(&json!({"id": "1", "action": "deal", "side": 1}).to_string());
    assert!(client.is_busy());
    client.close();
    assert!(!client.is_busy());
}
