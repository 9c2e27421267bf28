"""az-engine answers analysis queries: every turn asked for has one answer, and it is the search's own."""

import io
import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.games.names import make_game
from azpy.serving.json_lines import JsonLines
from azpy.serving.limits import NO_LIMITS
from azpy.serving.lines import LONGEST_LINE, Conversation
from azpy.serving.models import TREES_MB, open_player, with_engines
from talks import COMMAND, PATIENCE, Talk

WITHOUT_END = 2**32 - 1


class Client(Talk):
    """A program that sends objects, and takes answers by their id."""

    def send(self, **fields: Any) -> None:
        self.say(json.dumps(fields))

    def receive(self, identity: str | None = None) -> dict[str, Any]:
        """The next answer with this id, or of any."""

        def place() -> int | None:
            return next(
                (i for i, line in enumerate(self.heard) if identity in (None, json.loads(line).get("id"))),
                None,
            )

        with self.arrived:
            assert self.arrived.wait_for(lambda: place() is not None, PATIENCE), "nothing came"
            found: dict[str, Any] = json.loads(self.heard.pop(place() or 0))
            return found

    def ask(self, **fields: Any) -> dict[str, Any]:
        self.send(id="ask", **fields)
        return self.receive("ask")


def client_of(game: str, **players: str) -> Client:
    models = {name: open_player(text, game, 30) for name, text in (players or {"player": "uniform:30"}).items()}
    return Client(lambda talk: JsonLines(models, talk).run())


@pytest.fixture
def go() -> Iterator[Client]:
    client = client_of("go(size=7)")
    yield client
    client.close()


def expected(state: azpy.State, simulations: int, **options: Any) -> azpy.SearchResult:
    """The slow way: a search by itself, with the options of a player that is served."""
    served = open_player("uniform", state.game, 1)
    return azpy.Search(served.evaluator, **served.options).run(state, simulations, **options)


def visits_of(answer: dict[str, Any]) -> dict[str, int]:
    return {one["move"]: one["visits"] for one in answer["moveInfos"]}


@pytest.mark.parametrize("game", ["connect_four", "chess", "go(size=7)", "othello(size=6)", "hex(size=5)", "wall_game"])
def test_answers_are_those_of_a_search(game: str) -> None:
    client, rng = client_of(game), np.random.default_rng(1)
    state, names, states = make_game(game), list[str](), []
    for _ in range(6):
        states.append(state.clone())
        action = int(rng.choice(state.legal_actions()))
        names.append(state.action_name(action))
        state.play(action)
    client.send(id="all", moves=names, analyzeTurns=[0, 2, 4, 5], simulations=40, includePolicy=True)
    answers = {answer["turnNumber"]: answer for answer in (client.receive("all") for _ in range(4))}
    assert set(answers) == {0, 2, 4, 5}
    for turn, answer in answers.items():
        result, position = expected(states[turn], 40), states[turn]
        visited = zip(result.actions, result.visits, strict=True)
        assert visits_of(answer) == {position.action_name(int(a)): int(n) for a, n in visited if n > 0}
        root = answer["rootInfo"]
        assert (root["visits"], root["player"], root["reused"]) == (40, position.turn, 0)
        assert root["value"] == pytest.approx(result.value, abs=1e-5)
        assert result.action is not None
        assert answer["move"] == answer["moveInfos"][0]["move"] == position.action_name(result.action)
        for order, one in enumerate(answer["moveInfos"]):
            assert one["order"] == order
            assert one["pv"][0] == one["move"]
            after = position.clone()
            for name in one["pv"]:
                after.play({after.action_name(a): a for a in after.legal_actions()}[name])
    client.close()


def test_moves_may_be_allowed_and_avoided(go: Client) -> None:
    assert set(visits_of(go.ask(moves=["D4"], allowMoves=["C3", "e5"]))) == {"C3", "E5"}
    kata = [{"player": "W", "moves": ["C3", "E5"], "untilDepth": 1}, {"player": "B", "moves": ["A1"], "untilDepth": 1}]
    assert set(visits_of(go.ask(moves=["D4"], allowMoves=kata))) == {"C3", "E5"}
    found = visits_of(go.ask(moves=["D4"], avoidMoves=kata, simulations=200))
    assert not {"C3", "E5"} & set(found)
    assert "A1" in found
    assert "no legal move is left" in go.ask(moves=["D4"], allowMoves=["D4"])["error"]
    state = make_game("go(size=7)")
    state.play(24)
    names = {state.action_name(a): a for a in state.legal_actions()}
    result = expected(state, 40, actions=[names["C3"], names["E5"]])
    answer = go.ask(moves=["D4"], allowMoves=["C3", "E5"], simulations=40)
    assert answer["rootInfo"]["value"] == pytest.approx(result.value, abs=1e-5)


def test_a_query_of_katago_for_go(go: Client) -> None:
    go.send(
        id="k",
        rules="chinese-ogs",
        komi=6.5,
        boardXSize=7,
        boardYSize=7,
        initialStones=[["B", "B2"], ["W", "F6"]],
        initialPlayer="W",
        moves=[["W", "C3"], ["B", "D4"], ["B", "E5"]],
        analyzeTurns=[0, 3],
        maxVisits=25,
        includePolicy=True,
        includeOwnership=True,
        overrideSettings={"reportAnalysisWinratesAs": "BLACK", "wideRootNoise": 0.0, "maxTime": 60.0},
    )
    answers = {answer["turnNumber"]: answer for answer in (go.receive("k") for _ in range(2))}
    assert answers[0]["rootInfo"]["currentPlayer"] == "W"
    assert answers[0]["warnings"] == ["includeOwnership: azpy's networks tell no ownership"]
    last = answers[3]
    assert last["rootInfo"]["currentPlayer"] == "W", "two moves of Black in a row"
    state = azpy.parse_state("go(size=7,komi=6.5)", "(;SZ[7]AB[bf][dd][ec]AW[fb][ce]PL[W])")
    result = expected(state, 25)
    assert visits_of(last) == {
        state.action_name(int(a)): int(n) for a, n in zip(result.actions, result.visits, strict=True) if n > 0
    }
    assert last["rootInfo"]["winrate"] == pytest.approx((1 - result.value) / 2, abs=1e-5), "Black's view, White to move"
    policy = last["policy"]
    assert len(policy) == 7 * 7 + 1
    illegal = [1 * 7 + 5, 2 * 7 + 4, 3 * 7 + 3, 4 * 7 + 2, 36]
    assert [index for index, prior in enumerate(policy) if prior < 0] == illegal
    assert sum(prior for prior in policy if prior > 0) == pytest.approx(1, abs=1e-4)
    for view, side in (("WHITE", -1), ("SIDETOMOVE", -1), ("BLACK", 1)):
        answer = go.ask(
            initialStones=[["B", "B2"]], initialPlayer="W", overrideSettings={"reportAnalysisWinratesAs": view}
        )
        assert np.sign(answer["rootInfo"]["scoreLead"]) == side * np.sign(
            go.ask(initialStones=[["B", "B2"]], initialPlayer="W")["rootInfo"]["scoreLead"]
        )


def test_boards_of_any_number_of_komis_are_answered(go: Client) -> None:
    for komi in (*range(40), 3):
        assert "rootInfo" in go.ask(komi=komi, simulations=2)


def test_a_position_of_go_that_two_passes_ended_goes_on(go: Client) -> None:
    for moves, player in ((";B[aa];W[];B[]", 1), (";B[aa];W[bb];B[];W[]", 0), ("AB[aa]PL[W];W[];B[]", 1)):
        assert go.ask(position=f"(;GM[1]FF[4]SZ[7]KM[7.5]{moves})")["rootInfo"]["player"] == player


def test_who_begins_in_go_as_katago_has_it(go: Client) -> None:
    stones = [["B", "B2"], ["B", "F6"]]
    for fields, players in (
        ({"moves": [["W", "D4"], ["B", "C3"]]}, [1, 0, 1]),
        ({"moves": [["W", "D4"]], "initialPlayer": "B"}, [0, 0]),
        ({"moves": [["W", "D4"], ["W", "C3"]]}, [1, 0, 0]),
        ({"initialStones": stones}, [1]),
        ({"initialStones": stones, "initialPlayer": "B"}, [0]),
        ({"initialStones": [*stones, ["W", "D4"]]}, [0]),
        ({"initialStones": stones[:1]}, [0]),
    ):
        go.send(id="who", analyzeTurns=[*range(len(players))], simulations=2, **fields)
        found = {answer["turnNumber"]: answer["rootInfo"]["player"] for answer in (go.receive("who") for _ in players)}
        assert [found[turn] for turn in range(len(players))] == players, fields


@pytest.mark.parametrize(
    "behind",
    ["", " 120 90", " 100 90", " 3 0", " 3 400", ' bm Ra8#; id "a; b";', " 0 1;", " ;D1 20", " hmvc 130; fmvn 0;"],
)
def test_positions_of_the_worlds_files_are_shown_and_searched(behind: str) -> None:
    """The board asks so: it loads a text by `read`, shows it by `show`, and has it searched."""
    client, text = client_of("chess"), f"6k1/5ppp/8/8/8/8/8/K2R4 w - -{behind}"
    read = client.ask(action="read", text=f"{text}\n")
    assert read["nodes"] == []
    assert read["position"].startswith("6k1/5ppp/8/8/8/8/8/K2R4 w - - ")
    for position in (text, read["position"]):
        assert client.ask(position=position, simulations=300)["move"] == "d1d8"
        shown = client.ask(action="show", position=position)
        # Of a clock of exactly 100 azpy's rules know that the game is over.
        assert bool(shown["actions"]) == (behind != " 100 90")
    read = client.ask(action="read", text=f"{text}\nmoves a1b1 g8f8")
    assert [node[1] for node in read["nodes"]] == (["a1b1", "g8f8"] if behind != " 100 90" else [])
    client.close()


def test_reports_come_before_the_answer_and_a_search_can_be_ended(go: Client) -> None:
    go.send(id="long", simulations=WITHOUT_END, reportDuringSearchEvery=0.05)
    go.send(id="also", simulations=WITHOUT_END)
    seen = [go.receive("long") for _ in range(2)]
    assert all(one["isDuringSearch"] for one in seen)
    assert seen[0]["rootInfo"]["visits"] <= seen[1]["rootInfo"]["visits"]
    assert go.ask(simulations=5)["rootInfo"]["visits"] == 5, "others are answered meanwhile"
    go.send(id="end", action="terminate", terminateId="long")
    assert go.receive("end") == {"id": "end", "action": "terminate", "terminateId": "long"}
    while (last := go.receive("long"))["isDuringSearch"]:
        pass
    assert last["rootInfo"]["visits"] >= seen[1]["rootInfo"]["visits"]
    go.send(id="end", action="terminate_all")
    assert not go.receive("also")["isDuringSearch"]


def test_what_is_wrong_is_said_and_the_next_query_is_answered(go: Client) -> None:
    """Errors in each field are checked in Rust (rust/serve/tests/queries.rs)."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"moves": ["Z9"]}, "moves[0]: 'Z9' is not legal there"),
        ({"moves": ["D4"] * (NO_LIMITS.moves + 1)}, f"moves: expected at most {NO_LIMITS.moves}"),
        ({"reportDuringSearchEvery": "often"}, "reportDuringSearchEvery: expected a number"),
        ({"model": "other"}, "model: there is no 'other', but player"),
        ({"komi": "seven"}, "komi: expected a number"),
        ({"komi": 6.3}, "komi"),
        ({"overrideSettings": {"reportAnalysisWinratesAs": "ME"}}, "expected BLACK, WHITE or SIDETOMOVE"),
        ({"action": "dance"}, "expected query_version, query_models, show, read, write, terminate or terminate_all"),
        ({"action": "terminate"}, "terminateId: expected a text"),
    ]
    for fields, said in wrong:
        answer = go.ask(**fields)
        assert set(answer) <= {"id", "error", "turnNumber"}
        assert said in answer["error"]
        assert go.ask(simulations=3)["rootInfo"]["visits"] == 3


def test_lines_that_cannot_be_read_are_refused(go: Client) -> None:
    for line, said in (
        ("nonsense", "expected one JSON object a line"),
        ("{}", "id: expected a text, got None"),
        ('{"id":7}', "id: expected a text, got 7"),
        ('{"id":"' + "x" * 300 + '"}', "id: expected at most 200 characters"),
        ('{"id":' * 40, "more than 32 lists and objects in each other"),
        ('{"id":"a","moves":[' + '"pass",' * 20_000, "a line has at most 65536 bytes"),
    ):
        go.say(line)
        answer = go.receive()
        assert set(answer) == {"error"}
        assert said in answer["error"]
        assert go.ask(simulations=3)["rootInfo"]["visits"] == 3


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("japanese", "rules: azpy plays ko POSITIONAL, scoring AREA, tax NONE, "),
        ("Tromp-Taylor", "rules: azpy plays suicide false: other rules are not played"),
        ({"scoring": "TERRITORY"}, "rules: azpy plays scoring AREA: other rules are not played"),
        ({"scores": "AREA"}, "rules.scores: azpy does not have this rule"),
        (3, "rules: azpy plays ko POSITIONAL, scoring AREA, tax NONE, "),
    ],
)
def test_rules_that_are_not_played_are_said(go: Client, rules: Any, said: str) -> None:
    for played in ("chinese-ogs", "Chinese_KGS", {"scoring": "AREA", "ko": "POSITIONAL"}):
        assert "warnings" not in go.ask(rules=played, simulations=2)
    (warning,) = go.ask(rules=rules, simulations=2)["warnings"]
    assert warning.startswith(said)


def test_several_players_and_levels() -> None:
    client = client_of("tic_tac_toe", weak="uniform:2", strong="uniform:90")
    assert client.ask()["rootInfo"]["visits"] == 2
    assert client.ask(model="strong")["rootInfo"]["visits"] == 90
    models = client.ask(action="query_models")["models"]
    told = [(one["name"], one["game"], one["simulations"]) for one in models]
    assert told == [("weak", "tic_tac_toe", 2), ("strong", "tic_tac_toe", 90)]
    assert (models[0]["sideNames"], models[0]["canRotate"]) == (["x", "o"], True)
    assert client.ask(action="query_version")["version"] == azpy.__version__
    client.close()


def test_a_game_in_python_is_analyzed() -> None:
    client = client_of("sound_games:Nim")
    state = make_game("sound_games:Nim")
    answer = client.ask(moves=[state.action_name(state.legal_actions()[0])], simulations=20)
    assert answer["rootInfo"]["visits"] == 20
    assert "error" in client.ask(position="12")
    client.close()


def run(lines: list[str], *more: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [*COMMAND, "uniform:50", "--protocol", "json", "--game", "hex(size=5)", *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    process.stdin.flush()
    return process


def test_at_the_end_of_the_input_every_query_is_answered() -> None:
    lines = [json.dumps({"id": str(i), "game": str(i), "moves": ["a1"], "simulations": 200}) for i in range(256)]
    out, errors = run(lines).communicate(timeout=PATIENCE)
    answers = [json.loads(line) for line in out.splitlines()]
    assert sorted(answer["id"] for answer in answers) == sorted(str(i) for i in range(256))
    assert all(answer["rootInfo"]["visits"] == 200 for answer in answers)
    assert errors == b""


def test_ctrl_c_ends_it_at_once() -> None:
    endless = json.dumps({"id": "1", "game": "mine", "simulations": WITHOUT_END})
    process = run([endless, json.dumps({"id": "v", "action": "query_version"})])
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"id":"v"')
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, errors) == (130, b"", b"")


def test_sigterm_drains() -> None:
    lines = [json.dumps({"id": str(i), "simulations": 200}) for i in range(256)]
    process = run([*lines, json.dumps({"id": "v", "action": "query_version"})])
    assert process.stdout is not None
    seen = list[bytes]()
    while not (line := process.stdout.readline()).startswith(b'{"id":"v"'):
        seen.append(line)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=PATIENCE)
    answers = [json.loads(line) for line in [*seen, *out.splitlines()]]
    assert sorted(answer["id"] for answer in answers) == sorted(str(i) for i in range(256))
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_of_the_most_bytes_is_read_whole(end: bytes) -> None:
    refused, line = list[str](), b"x" * LONGEST_LINE
    talk = Conversation(io.BytesIO(line + end), io.StringIO())
    assert [*talk.lines(refused.append)] == [line.decode()]
    assert refused == []
    talk = Conversation(io.BytesIO(line + b"x" + end), io.StringIO())
    assert [*talk.lines(refused.append)] == []
    assert refused == [f"a line has at most {LONGEST_LINE} bytes"]


def test_players_share_the_memory_of_their_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[dict[str, Any]]()
    monkeypatch.setattr("azpy.serving.models.open_engine", lambda _, **options: given.append(options))
    served = open_player("uniform:2", "pig", 2)
    with_engines({"a": served, "b": served, "c": served}, 7)
    assert given == [{"max_requests": 7, "total_memory_mb": TREES_MB // 3}] * 3
