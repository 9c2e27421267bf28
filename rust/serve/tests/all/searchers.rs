//! A session over a searcher that does what a test says: what is asked of it, and what becomes of its events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use azpy_core::config::SearchConfig;
use azpy_core::engine::Priority;
use azpy_core::game::{Action, Value as TwoPlayers};
use azpy_core::search::SearchResult;
use azpy_games::any::AnyGame;
use azpy_serve::{Error, Event, Limits, Player, SearchReport, SearchRequest, Searcher, Session};
use serde_json::{Value, json};

use crate::{LIMITS, start};

type Game = AnyGame<TwoPlayers>;

/// A game of this player as it was before so many renewals, and the actions played.
type Kept = (usize, usize, Arc<Mutex<Vec<Action>>>);

/// Does nothing by itself.
#[derive(Default)]
struct Scripted {
    /// The games that were made.
    games: Vec<Weak<Mutex<Vec<Action>>>>,
    players: Vec<Arc<Player<Game>>>,
    renewals: usize,
    /// The player of each search that began, the actions since its game began if it has one, and what is wanted.
    begun: Vec<(usize, Option<Vec<Action>>, SearchRequest)>,
    stopped: Vec<u64>,
    cancelled: Vec<u64>,
    events: VecDeque<Event>,
    /// What `begin` refuses once.
    refuses: Option<Error>,
    /// Renews the player when a search of a kept game begins.
    renews_meanwhile: bool,
    /// What a game of the user's fails with, once.
    fault: Option<Error>,
    /// The action that cannot be played.
    unplayable: Option<Action>,
}

impl Searcher<Game> for Scripted {
    type Game = Kept;

    fn players(&mut self) -> Result<Vec<Arc<Player<Game>>>, Error> {
        Ok(self.players.clone())
    }
    fn new_game(&mut self, player: usize, _: &Game) -> Result<Kept, Error> {
        let played = Arc::default();
        self.games.push(Arc::downgrade(&played));
        Ok((player, self.renewals, played))
    }
    fn play(&mut self, kept: &Kept, action: Action) -> Result<(), Error> {
        if self.unplayable == Some(action) {
            return Err(Error::Game("this game fails".to_owned()));
        }
        kept.2.lock().unwrap().push(action);
        Ok(())
    }
    fn undo(&mut self, kept: &Kept) {
        kept.2.lock().unwrap().pop().unwrap();
    }
    fn is_current(&mut self, _: usize, kept: &Kept) -> bool {
        kept.1 == self.renewals
    }
    fn begin(&mut self, player: usize, _: &Game, kept: Option<&Kept>, request: SearchRequest) -> Result<(), Error> {
        if let Some(kept) = kept {
            assert_eq!(kept.0, player);
            if std::mem::take(&mut self.renews_meanwhile) {
                self.renewals += 1;
                return Err(Error::Search("this engine is closed".to_owned()));
            }
        }
        if let Some(error) = self.refuses.take() {
            return Err(error);
        }
        self.begun.push((player, kept.map(|kept| kept.2.lock().unwrap().clone()), request));
        Ok(())
    }
    fn stop(&mut self, token: u64) {
        self.stopped.push(token);
    }
    fn cancel(&mut self, token: u64) {
        self.cancelled.push(token);
    }
    fn take(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn fault(&mut self, _: &Game) -> Option<Error> {
        self.fault.take()
    }
    fn renews(&self) -> bool {
        true
    }
    fn renew(&mut self, player: usize, token: u64) {
        self.renewals += 1;
        let renewed = Player { network: Some("0b".to_owned()), ..(*self.players[player]).clone() };
        self.players[player] = Arc::new(renewed);
        let unread = || Error::Search("no file".to_owned());
        self.events.push_back(Event::Renewed(token, (player == 0).then_some(true).ok_or_else(unread)));
    }
}

/// A client of two players, `one` and `two`.
fn session() -> Session<Game, Scripted> {
    let start: Game = start("tic_tac_toe").unwrap();
    let player = |name: &str| {
        let (name, about) = (name.to_owned(), json!({"name": name, "internalName": format!("the {name}")}));
        Arc::new(Player { name, about, simulations: 9, ..Player::new(start.clone(), SearchConfig::default()) })
    };
    let limits = Limits { simulations: 100, seconds: 9.0, ..LIMITS };
    let searcher = Scripted { players: vec![player("one"), player("two")], ..Scripted::default() };
    Session::new(searcher, limits, 0)
}

/// What is said to a message, and then of all events.
fn said(session: &mut Session<Game, Scripted>, message: Value) -> Vec<(Value, u16)> {
    let mut said = session.ask(&message.to_string());
    said.extend(session.take());
    said.into_iter().map(|response| (serde_json::from_str(&response.line).unwrap(), response.status)).collect()
}

/// What a search found that visited one action.
fn report() -> SearchReport {
    let result = SearchResult {
        actions: vec![0, 1],
        visits: vec![0, 1],
        priors: vec![0.5; 2],
        q: vec![0.0; 2],
        proofs: vec![0; 2],
        target: vec![0.0, 1.0],
        action: Some(1),
        ..SearchResult::default()
    };
    SearchReport { result, lines: Vec::new(), standard_errors: None, simulations: 1 }
}

#[test]
fn a_search_is_asked_for_as_the_query_says() {
    let mut session = session();
    let query = json!({
        "id": "a", "model": "two", "moves": ["a1"], "seconds": 2, "priority": "ponder", "allowMoves": ["a3"],
        "reportDuringSearchEvery": 3, "includeLcb": true, "analysisPVLen": 4,
    });
    assert_eq!(said(&mut session, query), []);
    let [(1, None, request)] = &session.searcher.begun[..] else { panic!("{:?}", session.searcher.begun) };
    assert_eq!((request.token, &request.allowed[..]), (1, &[0][..]));
    assert_eq!((request.simulations, request.seconds), (Some(100), Some(2.0)));
    assert_eq!((request.priority, request.report_every), (Priority::Ponder, Some(3.0)));
    assert_eq!((request.standard_errors, request.line_length), (true, 4));
}

#[test]
fn reports_and_answers_are_of_their_searches() {
    let mut session = session();
    for id in ["a", "b"] {
        assert_eq!(said(&mut session, json!({"id": id, "moves": ["a1"], "analyzeTurns": [0, 1]})), []);
    }
    session.searcher.events.extend([
        Event::Report(2, report()),
        Event::Done(3, report()),
        Event::Failed(2, Error::Search("no memory".to_owned())),
        Event::Done(2, report()),
        Event::Report(9, report()),
        Event::Done(1, SearchReport { result: SearchResult::default(), ..report() }),
    ]);
    let responses = session.take();
    let told: Vec<_> =
        responses.iter().map(|response| (response.status, response.search.clone(), response.is_report)).collect();
    let of = |id: &str, turn| Some((id.to_owned(), turn));
    assert_eq!(
        told,
        [(200, of("a", 1), true), (200, of("b", 0), false), (400, of("a", 1), false), (400, of("a", 0), false)]
    );
    assert!(responses[1].line.contains(r#""move":"b3""#), "{}", responses[1].line);
    assert!(responses[3].line.contains("the search found no action"), "{}", responses[3].line);
    assert!(session.is_busy());
    session.close();
    assert_eq!(session.searcher.cancelled, [4]);
    session.searcher.events.push_back(Event::Done(4, report()));
    assert!(session.take().is_empty() && !session.is_busy());
}

#[test]
fn a_client_that_leaves_takes_its_games_along() {
    let mut session = session();
    for game in ["g", "h"] {
        said(&mut session, json!({"id": "a", "game": game}));
    }
    session.close();
    assert_eq!(session.searcher.games.iter().map(Weak::strong_count).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn some_turns_of_a_query_can_be_ended() {
    let mut session = session();
    said(&mut session, json!({"id": "1", "moves": ["a1", "b1"], "analyzeTurns": [0, 1, 2]}));
    for (fields, stopped) in [
        (json!({"action": "terminate", "terminateId": "2"}), &[][..]),
        (json!({"action": "terminate", "terminateId": "1", "turnNumbers": [5]}), &[]),
        (json!({"action": "terminate", "terminateId": "1", "turnNumbers": [2, 0]}), &[1, 3]),
        (json!({"action": "terminate_all", "turnNumbers": [1]}), &[1, 3, 2]),
    ] {
        let mut message = fields;
        message["id"] = "end".into();
        assert_eq!(said(&mut session, message.clone()), [(message, 200)]);
        assert_eq!(session.searcher.stopped, stopped);
    }
}

#[test]
fn a_client_is_warned_a_hundred_times_at_most() {
    let mut session = session();
    for (name, count, warned) in [("a", 99, 99), ("b", 3, 1), ("c", 1, 0)] {
        let mut query = json!({"id": name});
        (0..count).for_each(|number| query[format!("{name}{number}")] = 1.into());
        session.ask(&query.to_string());
        let token = session.searcher.begun.len() as u64;
        session.searcher.events.push_back(Event::Done(token, report()));
        let line: Value = serde_json::from_str(&session.take()[0].line).unwrap();
        assert_eq!(line["warnings"].as_array().map_or(0, Vec::len), warned, "{line}");
    }
}

#[test]
fn players_of_one_game_keep_trees_of_their_own() {
    let mut session = session();
    for (model, moves) in [("one", json!(["a1"])), ("two", json!(["a1", "b1"])), ("one", json!(["a1", "c1"]))] {
        said(&mut session, json!({"id": "a", "model": model, "game": "g", "moves": moves}));
    }
    let begun: Vec<_> = session.searcher.begun.iter().map(|(player, played, _)| (*player, played.clone())).collect();
    assert_eq!(begun, [(0, Some(vec![6])), (1, Some(vec![6, 7])), (0, Some(vec![6, 8]))]);
}

#[test]
fn a_renewed_player_searches_with_new_trees() {
    let mut session = session();
    let renewed = said(&mut session, json!({"id": "a", "action": "renew"}));
    let line = json!({"id": "a", "action": "renew", "changed": true, "internalName": "the one", "network": "0b"});
    assert_eq!(renewed, [(line, 200)]);
    let failed = said(&mut session, json!({"id": "b", "action": "renew", "model": "two"}));
    assert_eq!(failed, [(json!({"id": "b", "error": "no file"}), 400)]);
    assert!(!session.is_busy());
    // Between the look at the player and the search.
    session.searcher.renews_meanwhile = true;
    assert_eq!(said(&mut session, json!({"id": "c", "game": "g", "moves": ["a1"]})), []);
    assert_eq!(session.searcher.begun.len(), 1);
}

#[test]
fn a_searcher_without_room_is_asked_again_later() {
    let mut session = session();
    session.searcher.refuses = Some(Error::Busy("4096 are open".to_owned()));
    let full = said(&mut session, json!({"id": "a"}));
    assert_eq!(full, [(json!({"id": "a", "turnNumber": 0, "retryAfter": 1, "error": "4096 are open"}), 503)]);
    assert!(!session.is_busy());
    session.searcher.refuses = Some(Error::Search("no such thing".to_owned()));
    assert_eq!(said(&mut session, json!({"id": "a"}))[0].1, 400);
}

#[test]
fn a_game_that_fails_is_named_and_followed_the_next_time() {
    let mut session = session();
    session.searcher.fault = Some(Error::Game("KeyError: 3".to_owned()));
    assert_eq!(said(&mut session, json!({"id": "a"})), [(json!({"id": "a", "error": "KeyError: 3"}), 400)]);
    session.searcher.unplayable = Some(7);
    let query = json!({"id": "a", "game": "g", "moves": ["a1", "b1", "c1"]});
    let failed = json!({"id": "a", "turnNumber": 3, "error": "this game fails"});
    assert_eq!(said(&mut session, query.clone()), [(failed, 400)]);
    session.searcher.unplayable = None;
    for moves in [json!(["a1", "b1", "c1"]), json!(["a1", "c1"]), json!([]), json!(["c1"])] {
        said(&mut session, json!({"id": "a", "game": "g", "moves": moves}));
    }
    let played: Vec<_> = session.searcher.begun.iter().map(|(_, played, _)| played.clone().unwrap()).collect();
    assert_eq!(played, [vec![6, 7, 8], vec![6, 8], vec![], vec![8]]);
    assert_eq!(session.searcher.games.len(), 2, "back at the start another game began");
}
