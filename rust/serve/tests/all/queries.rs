//! Queries and answers over real games: what is read, what is refused, where lines go on, and any text at all.

use azpy_core::config::SearchConfig;
use azpy_core::engine::Priority;
use azpy_core::game::{Action, Game, Player as Side, Turn, Values};
use azpy_core::look::Variation;
use azpy_core::search::SearchResult;
use azpy_core::text::Notation;
use azpy_core::toy::Toy;
use azpy_games::any::AnyGame;
use azpy_serve::{Level, Limits, Line, Object, Player, Position, Query, SearchReport, read, show, write};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{LIMITS, start};

type Two = AnyGame<azpy_core::game::Value>;

fn tic_tac_toe() -> Two {
    start("tic_tac_toe").unwrap()
}

fn chess() -> Two {
    start("chess").unwrap()
}

fn go() -> Two {
    start("go(size=5)").unwrap()
}

fn object(fields: Value) -> Object {
    Object::read(&fields.to_string()).unwrap()
}

fn player<P: Clone>(start: &P) -> Player<P> {
    Player { simulations: 800, ..Player::new(start.clone(), SearchConfig::default()) }
}

fn query<P: Position>(start: &P, mut fields: Value) -> Result<Query<P>, String> {
    fields["id"] = "1".into();
    Query::read(&object(fields), &player(start), &LIMITS).map_err(|error| error.to_string())
}

fn refusal<P: Position>(start: &P, fields: Value) -> String {
    query(start, fields).err().unwrap_or_default()
}

#[test]
fn a_text_that_is_no_object_is_refused_with_the_reason() {
    let digits = "9".repeat(5_000);
    for (text, said) in [
        (r#"{"a":1,"a":2}"#, "expected one JSON object a line: the key \"a\" comes twice at line 1 column"),
        (r#"{"b":[{"a":1,"a":2}]}"#, "expected one JSON object a line: the key \"a\" comes twice at line 1 column"),
        (
            r#"{"a":-Infinity}"#,
            "expected one JSON object a line: invalid number at line 1 column 7, near \"{\\\"a\\\":-Infinity}\"",
        ),
        (r#"{"a":1e400}"#, "expected one JSON object a line: number out of range at line 1 column"),
        (&format!(r#"{{"a":[1,{digits}]}}"#), "expected one JSON object a line: number out of range"),
        (r#"{"a":"\ud800"}"#, "expected one JSON object a line: unexpected end of hex escape"),
        (r#"{"a":"\ud800\u0041"}"#, "expected one JSON object a line: lone leading surrogate in hex escape"),
        (r#"{"a":"\udc00"}"#, "expected one JSON object a line: lone leading surrogate in hex escape"),
        (&r#"{"a":"#.repeat(40), "more than 32 lists and objects in each other"),
        (&"[".repeat(1_000_000), "more than 32 lists and objects in each other"),
    ] {
        let found = Object::read(text).unwrap_err().to_string();
        assert!(found.starts_with(said), "{found}, expected {said}");
    }
    let brackets = format!(r#"{{"a":"{}"}}"#, "[{".repeat(100));
    assert!(Object::read(&brackets).is_ok(), "brackets in a text do not count");
    assert_eq!(Object::read(r#"{"a":"\ud83d\ude00"}"#).unwrap().get("a"), Some(&json!("\u{1f600}")));
}

#[test]
fn a_message_takes_little_memory_and_its_errors_are_short() {
    let objects = |count| format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; count].join(","));
    assert!(Object::read(&objects(9_000)).is_ok());
    assert_eq!(Object::read(&objects(10_000)).unwrap_err().to_string(), "more than 10000 objects");
    let texts = vec!["{".repeat(20_000)];
    assert!(Object::read(&json!({ "a": texts }).to_string()).is_ok(), "braces in a text do not count");
    let nested = json!(vec![vec![vec![vec!["long".repeat(99); 9]; 9]; 9]; 9]);
    let said = refusal(&chess(), json!({ "priority": nested }));
    assert!(said.len() < 500 && said.ends_with("..."), "{said}");
}

#[test]
fn an_answer_is_one_line_for_every_reader() {
    let fields = object(json!({"id": "a\u{85}b\u{2028}\u{7f}\u{1f600}", "action": "show"}));
    let said = show(&fields, &player(&chess()), &LIMITS).unwrap();
    assert!(said.bytes().all(|byte| (b' '..0x7f).contains(&byte)), "{said}");
    let read: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(Some(&read["id"]), fields.get("id"));
}

#[test]
fn an_error_quotes_a_little_of_a_long_text_and_no_control_characters() {
    let (long, wide) = ("x\u{1b}".repeat(500_000), "\u{e9}".repeat(50));
    for text in [
        format!("{{{}:1,{0}:2}}", json!(long)),
        format!("{{\"a\":{}", json!(long)),
        format!("{{\"a\":{long}"),
        format!("{{\"a\":\"{wide}"),
        format!("{{\"{wide}\":}}"),
        long.clone(),
        String::new(),
        "\n\r\u{1b}[2J".to_owned(),
    ] {
        let said = Object::read(&text).unwrap_err().to_string();
        assert!(said.chars().count() < 400 && !said.contains(|letter: char| letter.is_control()), "{said}");
        assert!(!said.contains('\u{fffd}'), "{said}");
    }
    for fields in [
        json!({"moves": long}),
        json!({"moves": [long]}),
        json!({"priority": "\u{202e}".repeat(1_000)}),
        json!({"includePolicy": {long.clone(): [long]}}),
    ] {
        let said = refusal(&tic_tac_toe(), fields);
        assert!(
            !said.is_empty() && said.chars().count() < 1_200 && !said.contains(|letter: char| letter.is_control()),
            "{said}"
        );
        assert!(!said.contains('\u{202e}'), "{said}");
    }
}

#[test]
fn fields_that_are_wrong_are_named() {
    let ttt = tic_tac_toe();
    for (fields, said) in [
        (json!({"moves": [null]}), "moves[0]: expected a text, got null"),
        (json!({"moves": ["a1", "a1"]}), "moves[1]: \"a1\" is not legal there"),
        (json!({"moves": [[1, "a1"]]}), "moves[0]: \"a1\": it is player 0"),
        (json!({"analyzeTurns": [1]}), "analyzeTurns: expected a whole number from 0 to 0, got 1"),
        (json!({"analyzeTurns": []}), "analyzeTurns: expected from 1 to 1000, got 0"),
        (json!({"simulations": true}), "simulations: expected a whole number from 1 to 4294967295, got true"),
        (json!({"simulations": 1.0}), "simulations: expected a whole number from 1 to 4294967295, got 1.0"),
        (json!({"seconds": -1}), "seconds: expected a number from 0.001 to 1e6, got -1"),
        (json!({"includePolicy": [1, 2, 3, 4, 5, 6, 7]}), "includePolicy: expected true or false, got [1,2,3,4,5,6,7]"),
        (
            json!({"game": "x".repeat(201), "analysisPVLen": 0}),
            "analysisPVLen: expected a whole number from 1 to 1000, got 0",
        ),
        (json!({"position": "nonsense"}), "action 1 is \"nonsense\", which is not among the legal ones"),
    ] {
        let found = refusal(&ttt, fields);
        assert!(found.starts_with(said), "{found}, expected {said}");
    }
    let go = go();
    for (fields, said) in [
        (json!({"moves": [3]}), "moves[0]: expected a list, got 3"),
        (json!({"moves": [["X", "D4"]]}), "moves[0][0]: expected b, black, w or white, got \"x\""),
        (json!({"moves": [["B"]]}), "moves[0]: expected a move such as [\"B\",\"D4\"] or \"D4\", got [\"B\"]"),
        (json!({"simulations": 5, "maxVisits": 5}), "simulations and maxVisits are the same"),
        (json!({"maxVisits": 0}), "maxVisits: expected a whole number from 1 to"),
        (json!({"boardXSize": 25}), "boardXSize, komi, initialStones: the size must be"),
        (json!({"initialStones": [["B", "T19"]]}), "initialStones[0]: expected a stone such as"),
        (json!({"initialStones": [["B", "\u{e9}4"]]}), "initialStones[0]: expected a stone such as"),
        (json!({"initialPlayer": "red"}), "initialPlayer: expected b, black, w or white, got \"red\""),
        (json!({"avoidMoves": [{"player": "B"}]}), "avoidMoves[0].moves: expected a list, got null"),
        (json!({"overrideSettings": 3}), "overrideSettings: expected an object, got 3"),
    ] {
        let found = refusal(&go, fields);
        assert!(found.starts_with(said), "{found}, expected {said}");
    }
}

#[test]
fn each_turn_is_there_once_in_the_order_asked_for() {
    let found = query(&tic_tac_toe(), json!({"moves": "a1 b2 c3", "analyzeTurns": [2, 0, 2]})).unwrap();
    let turns: Vec<_> = found.positions.iter().map(|(turn, line)| (*turn, line.played.len())).collect();
    assert_eq!(turns, [(2, 2), (0, 0)]);
    assert_eq!((found.simulations, found.seconds, found.priority), (Some(800), None, Priority::Play));
    let bounded = Limits { simulations: 50, seconds: 5.0, ..LIMITS };
    for (fields, expected) in [
        (json!({"id": "1"}), (Some(50), Some(5.0))),
        (json!({"id": "1", "seconds": 1}), (Some(50), Some(1.0))),
        (json!({"id": "1", "simulations": 7}), (Some(7), Some(5.0))),
    ] {
        let found = Query::read(&object(fields), &player(&tic_tac_toe()), &bounded).unwrap();
        assert_eq!((found.simulations, found.seconds), expected);
    }
    for (given, expected) in [(0.25, 0.25), (1e20, 5.0)] {
        let fields = object(json!({"id": "1", "overrideSettings": {"maxTime": given}}));
        let found = Query::read(&fields, &player(&go()), &bounded).unwrap();
        assert_eq!(found.seconds, Some(expected), "KataGo's time is a limit, and no error beyond the client's");
    }
}

#[test]
fn words_and_numbers_of_a_query_mean_what_they_say() {
    let ttt = tic_tac_toe();
    for (given, priority) in [
        (json!(0), Priority::Play),
        (json!(5), Priority::Play),
        (json!(-1), Priority::Analysis),
        (json!("ponder"), Priority::Ponder),
        (json!("analysis"), Priority::Analysis),
    ] {
        assert_eq!(query(&ttt, json!({"priority": given})).unwrap().priority, priority, "{given}");
    }
    for (given, every) in [(0.001, 0.05), (0.05, 0.05), (3.0, 3.0)] {
        assert_eq!(query(&ttt, json!({"reportDuringSearchEvery": given})).unwrap().report_every, Some(every));
    }
    let levels = vec![Level { name: "casual".to_owned(), simulations: 900, temperature: 0.0 }];
    let player = Player { levels, ..player(&ttt) };
    for (most, simulations) in [(50, 50), (1_000, 900)] {
        let limits = Limits { simulations: most, ..LIMITS };
        let found = Query::read(&object(json!({"id": "1", "level": "Casual"})), &player, &limits).unwrap();
        assert_eq!((found.level, found.simulations), (Some(0), Some(simulations)), "at most {most}");
    }
}

#[test]
fn chess_goes_on_after_a_third_repetition_and_not_after_mate() {
    let moves = ["g1f3", "g8f6", "f3g1", "f6g8"].repeat(3);
    let line = &query(&chess(), json!({"moves": moves})).unwrap().positions[0].1;
    assert_eq!((line.state.turn(), line.played.len()), (Turn::Player(Side::Zero), 4));
    let moves = [&["e2e4", "d7d5", "e4d5", "d8d5"][..], &["g1f3", "g8f6", "f3g1", "f6g8"].repeat(3)].concat();
    let line = &query(&chess(), json!({"moves": moves})).unwrap().positions[0].1;
    assert_eq!((line.played.len(), line.captured()), (4, vec!["p".to_owned(), "P".to_owned()]));
    let over = query(&chess(), json!({"moves": "f2f3 e7e5 g2g4 d8h4"})).unwrap();
    let Line { state, played, .. } = &over.positions[0].1;
    assert_eq!((state.turn(), played.len()), (Turn::Terminal, 4));
    let said: Value = serde_json::from_str(&over.end(4, state, &[]).unwrap().unwrap()).unwrap();
    let root = json!({"player": null, "visits": 0, "value": null, "outcome": -1.0, "stop": "game over"});
    assert_eq!((&said["rootInfo"], &said["moveInfos"]), (&root, &json!([])));
}

#[test]
fn go_goes_on_after_two_passes_and_ko_holds() {
    let fields = json!({"moves": ["C3", "pass", "PASS", ["W", "d4"], ["W", "B2"]], "analyzeTurns": [0, 3, 5]});
    let found = query(&go(), fields).unwrap();
    let turns: Vec<_> = found.positions.iter().map(|(_, line)| line.state.turn()).collect();
    assert_eq!(turns, [Side::Zero, Side::One, Side::Zero].map(Turn::Player));
    let board = found.positions[2].1.state.render();
    assert_eq!((board.matches('x').count(), board.matches('o').count()), (1, 2), "{board}");
}

/// 50 plies on 5x5, the most there are. Black may not take back the ko at once.
const KO_AT_THE_END: &str = "A1 A2 A5 B5 A3 A4 C5 A5 B1 B2 D5 B3 E5 B4 C4 A3 C1 D4 C2 C3 D1 E4 C4 C5 D5 C4 D3 E5 E3 pass \
    D5 A5 B5 C5 E5 A2 A4 B4 A3 A5 B2 B5 C4 D4 A2 E4 D5 E5 B3 C3";

#[test]
fn ko_holds_where_too_many_plies_ended_the_game() {
    let mut line = Line::new(go());
    for name in KO_AT_THE_END.split_whitespace() {
        line.play(name, None).unwrap();
    }
    let board = line.state.render();
    assert_eq!(line.state.turn(), Turn::Terminal);
    line.go_on(None);
    assert_eq!((line.state.turn(), line.state.render()), (Turn::Player(Side::Zero), board));
    let mut legal = Vec::new();
    line.state.legal_actions(&mut legal);
    let names: Vec<_> = legal.into_iter().map(|action| line.state.action_name(action)).collect();
    assert_eq!(names, ["D2", "E2", "E1", "pass"]);
    assert_eq!(line.play("C4", None).unwrap_err().to_string(), "\"C4\" is not legal there");
    line.play("d2", None).unwrap();
    assert_eq!((line.played.len(), line.upto(3).played.len()), (26, 3));
}

#[test]
fn katagos_object_says_the_board_and_who_begins() {
    let stones = json!([["B", "B2"], ["b", "D4"]]);
    for (fields, player) in [
        (json!({"initialStones": stones}), Side::One),
        (json!({"initialStones": stones, "initialPlayer": "black"}), Side::Zero),
        (json!({"moves": [["W", "C3"]], "analyzeTurns": [0]}), Side::One),
        (json!({"moves": [["W", "C3"]], "analyzeTurns": [0], "initialPlayer": "B"}), Side::Zero),
        (json!({"moves": [[1, "C3"]], "analyzeTurns": [0]}), Side::One),
        (json!({"position": "(;SZ[5]PL[W])"}), Side::One),
        (json!({"moves": [["B", "C3"]], "initialPlayer": "B"}), Side::One), // who began does not count later
    ] {
        let found = query(&go(), fields).unwrap();
        assert_eq!(found.positions[0].1.state.turn(), Turn::Player(player));
        assert!(found.lower_bounds, "KataGo's answers always have bounds");
    }
    let found =
        query(&go(), json!({"boardXSize": 7, "komi": 6.5, "maxVisits": 9, "rules": "japanese", "new": 1})).unwrap();
    assert_eq!(found.positions[0].1.state.game(), "go(size=7,komi=6.5,superko=1)");
    assert_eq!(found.simulations, Some(9));
    let said = [
        "new: unknown field, ignored",
        "rules: azpy plays ko POSITIONAL, scoring AREA, tax NONE, whiteHandicapBonus 0, suicide false, hasButton false, \
         friendlyPassOk false: other rules are not played",
    ];
    assert_eq!(found.ignored, said);
}

#[test]
fn null_leaves_a_field_out_in_every_message() {
    const FIELDS: &str = "model game level position moves analyzeTurns simulations seconds priority \
        reportDuringSearchEvery allowMoves avoidMoves analysisPVLen includePolicy includeLcb includeShortNames action \
        maxVisits boardXSize boardYSize komi initialStones initialPlayer rules overrideSettings includeOwnership \
        includeMovesOwnership includePVVisits dead notes nodes players ranks result tags terminateId turnNumbers new";
    let nulls: Vec<String> = FIELDS.split_whitespace().map(|name| format!("\"{name}\": null")).collect();
    for inner in ["", r#", "overrideSettings": {"maxTime": null, "reportAnalysisWinratesAs": null}"#] {
        let nulls = nulls.iter().filter(|null| inner.is_empty() || !null.contains("overrideSettings"));
        let nulls = nulls.cloned().collect::<Vec<_>>().join(", ");
        let fields = Object::read(&format!(r#"{{"id": "1", {nulls}{inner}}}"#)).unwrap();
        for start in [go(), tic_tac_toe()] {
            let found = Query::read(&fields, &player(&start), &LIMITS).unwrap();
            let plain = query(&start, json!({})).unwrap();
            assert_eq!((found.simulations, found.seconds, found.priority), (Some(800), None, plain.priority));
            assert_eq!((found.positions.len(), found.game, found.level), (1, None, None));
            assert_eq!(found.positions[0].1.state.key(), start.key());
            assert!(
                found.ignored.iter().all(|said| said.starts_with("overrideSettings: unknown field")),
                "{:?}",
                found.ignored
            );
            show(&fields, &player(&start), &LIMITS).unwrap();
            assert_eq!(read(&fields, &player(&start), &LIMITS).unwrap_err().to_string(), "text is missing");
        }
    }
    assert!(Object::read(r#"{"a": null, "a": 1}"#).unwrap_err().to_string().contains("comes twice"));
}

#[test]
fn fields_of_katago_that_change_nothing_are_named() {
    let until = |depth: i64| json!([{"player": "B", "moves": ["C3"], "untilDepth": depth}]);
    let area = json!({"ko": "POSITIONAL", "scoring": "AREA", "tax": "NONE", "suicide": false, "hasButton": false});
    let with = |name: &str, value: Value| {
        let mut rules = area.clone();
        rules[name] = value;
        json!({ "rules": rules })
    };
    for (fields, said) in [
        (json!({"avoidMoves": until(1), "rules": area}), ""),
        (json!({"avoidMoves": until(4)}), "avoidMoves.untilDepth: "),
        (json!({"allowMoves": until(2)}), "allowMoves.untilDepth: "),
        (json!({"overrideSettings": {"wideRootNoise": 0.0, "useGraphSearch": false, "maxTime": 5}}), ""),
        (json!({"overrideSettings": {"wideRootNoise": 0.04}}), "overrideSettings.wideRootNoise: "),
        (json!({"overrideSettings": {"maxTime": 5}, "seconds": 1}), "overrideSettings.maxTime: "),
        (json!({"includePVVisits": true}), "includePVVisits: "),
        (json!({"includePVVisits": false, "includeOwnership": false}), ""),
        (json!({"includeMovesOwnership": true}), "includeMovesOwnership: "),
        (json!({"position": "(;SZ[5])", "komi": 6.5}), "komi: ignored, because the position"),
        (json!({"rootPolicyTemperature": 1.5}), "rootPolicyTemperature: "),
        (json!({"rules": "japanese"}), "rules: "),
        (json!({"rules": "aga-button"}), "rules: "),
        (with("ko", json!("SIMPLE")), "rules: "),
        (with("hasButton", json!(true)), "rules: "),
        (with("whiteHandicapBonus", json!("N")), ""), // no stones of a handicap
        (with("foo", json!(1)), "rules.foo: "),
        (
            json!({"rules": {"koRule": "Positional", "friendlyPassOk": true}}),
            "rules: azpy plays friendlyPassOk false: ",
        ),
        (json!({"rules": "chinese"}), "rules: azpy plays ko POSITIONAL: "),
        (json!({"rules": "Chinese_KGS"}), ""),
        (json!({"rules": "tromp-taylor"}), "rules: azpy plays suicide false: "),
        (json!({"rules": "aga"}), "rules: azpy plays ko POSITIONAL: "),
        (json!({"rules": "new zealand"}), "rules: azpy plays ko POSITIONAL, suicide false: "),
    ] {
        let found = query(&go(), fields.clone()).unwrap().ignored;
        assert_eq!(found.len(), usize::from(!said.is_empty()), "{fields}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with(said)), "{fields}: {found:?}");
    }
    // A name says the same as the object that it stands for.
    let stones = json!([["B", "B2"], ["B", "D4"]]);
    let mut object = area.clone();
    object["whiteHandicapBonus"] = json!("N");
    for rules in [json!("chinese-ogs"), object] {
        let found = query(&go(), json!({"rules": rules, "initialStones": stones})).unwrap().ignored;
        assert_eq!(found, ["rules: azpy plays whiteHandicapBonus 0: other rules are not played"]);
    }
    let said = refusal(&go(), json!({"avoidMoves": until(0)}));
    assert!(said.starts_with("avoidMoves[0].untilDepth: expected a whole number from 1"), "{said}");
}

fn answered<P: Position>(start: &P, fields: Value, result: &SearchResult, during: bool) -> Value {
    let query = query(start, fields).unwrap();
    let visited = result.actions.iter().zip(&result.visits).filter(|pair| *pair.1 > 0);
    let lines: Vec<_> = visited
        .map(|(&action, &visits)| Variation {
            actions: vec![action],
            visits,
            q: result.q[action as usize],
            values: if result.values.len() > 1 { result.values.clone() } else { Vec::new() },
        })
        .collect();
    let standard_errors = query.lower_bounds.then(|| vec![0.1; result.actions.len()]);
    let found = SearchReport { result: result.clone(), lines, standard_errors, simulations: 5 };
    let (turn, line) = &query.positions[0];
    let warnings = ["careful".into()];
    serde_json::from_str(&query.answer(*turn, &line.state, during, &warnings, &found, 1, None)).unwrap()
}

fn result(actions: usize) -> SearchResult {
    let mut result = SearchResult {
        actions: (0..actions as Action).collect(),
        visits: vec![0; actions],
        priors: vec![1.0 / actions as f32; actions],
        q: vec![0.0; actions],
        proofs: vec![0; actions],
        value: 0.5,
        action: Some(1),
        ..SearchResult::default()
    };
    (result.visits[0], result.visits[1], result.q[1], result.proofs[1]) = (4, 3, 0.25, 3);
    result
}

#[test]
fn an_answer_has_the_best_action_first() {
    let said = answered(&tic_tac_toe(), json!({"includePolicy": true, "analysisPVLen": 1}), &result(9), true);
    assert_eq!(
        (&said["turnNumber"], &said["isDuringSearch"], &said["warnings"]),
        (&json!(0), &json!(true), &json!(["careful"]))
    );
    let best =
        json!({"move": "b3", "visits": 3, "prior": 0.111111, "value": 0.25, "order": 0, "pv": ["b3"], "proof": 2});
    assert_eq!(said["moveInfos"][0], best);
    assert_eq!(said["moveInfos"][1]["move"], "a3");
    let root = json!({"player": 0, "visits": 7, "value": 0.5, "network": null, "reused": 2, "stop": "simulations"});
    assert_eq!(said["rootInfo"], root);
    assert_eq!(said["policy"].as_object().unwrap().len(), 9);
}

/// A game of so many players with two actions or more at its start.
fn toy(players: usize) -> Toy<Values> {
    let has_choice = |toy: &Toy<Values>| {
        let mut legal = Vec::new();
        toy.legal_actions(&mut legal);
        toy.turn() == Turn::Player(Side::Zero) && legal.len() > 1
    };
    (0..).map(|seed| Toy::random_of(players, seed, 4, false)).find(has_choice).unwrap()
}

#[test]
fn games_of_one_player_and_of_three_tell_values_and_outcomes_of_each() {
    for players in [1, 3] {
        let start = AnyGame::<Values>::unlisted("toy", toy(players));
        let (mut over, mut moves) = (start.clone(), Vec::new());
        while let Turn::Player(player) = over.turn() {
            moves.push(json!([player.index(), "0"]));
            over.play(0);
        }
        let outcomes: Value = serde_json::from_str(&serde_json::to_string(over.outcome().numbers()).unwrap()).unwrap();
        let line = query(&start, json!({"moves": moves})).unwrap();
        let (turn, state) = (moves.len(), &line.positions[0].1.state);
        let said: Value = serde_json::from_str(&line.end(turn, state, &[]).unwrap().unwrap()).unwrap();
        let root = json!({"player": null, "visits": 0, "value": null, "outcomes": outcomes, "stop": "game over"});
        assert_eq!(said["rootInfo"], root);
        for (moves, outcomes, result) in
            [(json!([]), Value::Null, Value::Null), (json!(moves), outcomes, json!(over.result_text()))]
        {
            let fields = object(json!({"id": "1", "action": "show", "moves": moves}));
            let shown: Value = serde_json::from_str(&show(&fields, &player(&start), &LIMITS).unwrap()).unwrap();
            assert_eq!((&shown["outcomes"], &shown["result"], shown.get("outcome")), (&outcomes, &result, None));
        }
        let found = SearchResult { values: vec![0.5, -0.25, 0.125][..players].to_vec(), ..result(start.num_actions()) };
        let said = answered(&start, json!({}), &found, false);
        assert_eq!((&said["rootInfo"]["value"], &said["rootInfo"]["values"]), (&json!(0.5), &json!(found.values)));
        // The value of an action of a single player is all that there is to tell.
        let values = if players == 1 { json!([0.25]) } else { json!(found.values) };
        assert_eq!((&said["moveInfos"][0]["value"], &said["moveInfos"][0]["values"]), (&json!(0.25), &values));
        let refused = refusal(&start, json!({"moves": [[players, "0"]]}));
        assert_eq!(refused, format!("moves[0]: expected a whole number from 0 to {}, got {players}", players - 1));
    }
}

#[test]
fn katagos_fields_stand_beside_azpys_and_are_seen_from_where_it_says() {
    let said =
        answered(&go(), json!({"moves": ["C3"], "analyzeTurns": [0], "includePolicy": true}), &result(26), false);
    let best = &said["moveInfos"][0];
    assert_eq!((&best["winrate"], &best["utility"], &best["value"]), (&json!(0.625), &json!(0.25), &json!(0.25)));
    assert_eq!(best["lcb"], json!(0.527));
    assert_eq!(said["rootInfo"]["currentPlayer"], "B");
    assert_eq!(said["policy"].as_array().unwrap().len(), 26);
    let view = json!({"reportAnalysisWinratesAs": "WHITE"});
    let white = answered(&go(), json!({"overrideSettings": view, "includeLcb": false}), &result(26), false);
    assert_eq!(white["moveInfos"][0]["winrate"], json!(0.375));
    assert_eq!(white["moveInfos"][0].get("lcb"), None);
}

#[test]
fn equal_moves_of_a_record_are_one_and_keep_their_notes() {
    let node = |name: &str, comment: &str| json!([-1, name, "", 0, {"C": [comment]}]);
    let nodes = [node("e2e4", "a"), node("e2e4", "b"), node("d2d4", "c")];
    let fields = object(json!({"id": "1", "action": "read", "nodes": nodes, "notes": {"C": ["start"]}}));
    let found: Value = serde_json::from_str(&read(&fields, &player(&chess()), &LIMITS).unwrap()).unwrap();
    assert_eq!(found["notes"], json!({"C": ["start"]}));
    let noted: Vec<_> = found["nodes"].as_array().unwrap().iter().map(|node| &node[4]["C"][0]).collect();
    assert_eq!(noted, ["a\n\nb", "c"]);
}

#[test]
fn what_is_shown_can_be_played_and_what_is_read_can_be_written() {
    let fields = object(json!({"id": "1", "action": "show", "moves": ["e2e4"], "more": 1}));
    let shown: Value = serde_json::from_str(&show(&fields, &player(&chess()), &LIMITS).unwrap()).unwrap();
    assert_eq!((&shown["id"], &shown["player"], &shown["turnNumber"]), (&json!("1"), &json!(1), &json!(1)));
    assert_eq!(shown["actions"].as_array().unwrap().len(), 20);
    assert_eq!(shown.get("more"), None);
    let fields = object(json!({"id": "1", "action": "read", "text": "[White \"Ann\"]\n\n1. e4 (1. d4) e5 {x} *"}));
    let found: Value = serde_json::from_str(&read(&fields, &player(&chess()), &LIMITS).unwrap()).unwrap();
    let nodes = json!([[-1, "e2e4", "e4", 0, {}], [0, "e7e5", "e5", 1, {"C": ["x"]}], [-1, "d2d4", "d4", 0, {}]]);
    assert_eq!(found["nodes"], nodes);
    assert_eq!((&found["players"], &found["result"]), (&json!(["Ann", null]), &Value::Null));
    let written: Value = serde_json::from_str(&write(&object(found), &player(&chess()), &LIMITS).unwrap()).unwrap();
    assert!(written["text"].as_str().unwrap().contains("1. e4 (1. d4) 1... e5 {x}"));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..30_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop_oneof![Just("B"), Just("w"), Just("D4"), Just("pass"), Just("a1"), Just("e2e4"), Just("(;SZ[5];B[aa])")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![Just("player".to_owned()), Just("moves".to_owned())], inner, 0..3)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

const FIELDS: &str = "position moves analyzeTurns simulations seconds priority reportDuringSearchEvery allowMoves \
    avoidMoves analysisPVLen includePolicy includeLcb game maxVisits boardXSize boardYSize rules komi \
    initialStones initialPlayer overrideSettings nodes notes tags";

proptest! {
    #[test]
    fn any_object_is_answered_or_refused(fields in prop::collection::vec((0..24_usize, values()), 0..5), text in "\\PC{0,40}") {
        let names: Vec<&str> = FIELDS.split(' ').collect();
        let named = fields.into_iter().map(|(at, value)| (names[at].to_owned(), value));
        let mut all: serde_json::Map<_, _> = named.collect();
        all.insert("id".to_owned(), "1".into());
        all.insert("text".to_owned(), text.into());
        let fields = object(Value::Object(all));
        fn ask<P: Position>(fields: &Object, start: &P) {
            for refused in [
                Query::read(fields, &player(start), &LIMITS).map(drop).err(),
                show(fields, &player(start), &LIMITS).map(drop).err(),
                read(fields, &player(start), &LIMITS).map(drop).err(),
                write(fields, &player(start), &LIMITS).map(drop).err(),
            ].into_iter().flatten() {
                assert!(refused.to_string().len() < 2_000, "{refused}");
            }
        }
        ask(&fields, &tic_tac_toe());
        ask(&fields, &go());
        ask(&fields, &chess());
    }

    #[test]
    fn what_is_written_is_read(value in values()) {
        let fields = object(json!({"value": value}));
        prop_assert_eq!(Object::read(&serde_json::to_string(fields.fields()).unwrap()), Ok(fields));
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"[\[\]{}":,\\a0-9eun.+ -]{0,40}"#) {
        if let Err(refused) = Object::read(&text) {
            assert!(refused.to_string().len() < 400, "{refused}");
        }
    }
}
