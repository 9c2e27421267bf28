"""az-engine speaks the Wall Game's JSON lines: every request has one answer, and games do not mix."""

import dataclasses
import json
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from azpy.serving.lines import LONGEST_LINE, Conversation
from azpy.serving.models import open_player
from azpy.serving.wall_game import apply_move, move_text, state_of
from azpy.serving.wall_game_lines import MOST_SESSIONS, WallGameLines
from talks import COMMAND, PATIENCE, Talk

CONFIG: dict[str, Any] = {
    "variant": "standard",
    "boardWidth": 5,
    "boardHeight": 5,
    "initialState": {
        "pawns": {"p1": {"cat": [0, 0], "mouse": [4, 0]}, "p2": {"cat": [0, 4], "mouse": [4, 4]}},
        "walls": [],
    },
}


class Server(Talk):
    """The other side: sends objects, and finds answers by what they answer."""

    def send(self, kind: str, identity: str, **fields: Any) -> None:
        self.say(json.dumps({"type": kind, "bgsId": identity, **fields}))

    def receive(self, identity: str | None = None) -> dict[str, Any]:
        """The next answer, of one game if it is named."""

        def place() -> int | None:
            about = [index for index, line in enumerate(self.heard) if identity in (None, json.loads(line)["bgsId"])]
            return about[0] if about else None

        with self.arrived:
            assert self.arrived.wait_for(lambda: place() is not None, PATIENCE), "nothing came"
            found: dict[str, Any] = json.loads(self.heard.pop(place() or 0))
            return found

    def ask(self, kind: str, identity: str, **fields: Any) -> dict[str, Any]:
        self.send(kind, identity, **fields)
        return self.receive(identity)


@pytest.fixture
def server() -> Iterator[Server]:
    served = open_player("uniform:12", "wall_game", 100)
    gui = Server(lambda talk: WallGameLines({"bot": served}, talk).run())
    yield gui
    gui.close()


def test_whole_games_are_played_and_every_move_is_legal(server: Server) -> None:
    rng = random.Random(2)
    for game in range(3):
        name = f"game {game}"
        assert server.ask("start_game_session", name, botId="bot", config=CONFIG) == {
            "type": "game_session_started",
            "bgsId": name,
            "success": True,
            "error": "",
        }
        state, ply = state_of(CONFIG), 0
        while not state.is_terminal and ply < 80:
            if ply % 2 == game % 2:
                answer = server.ask("evaluate_position", name, expectedPly=ply)
                assert (answer["success"], answer["ply"], answer["error"]) == (True, ply, "")
                assert -1 <= answer["evaluation"] <= 1
                move = answer["bestMove"]
            else:
                actions = [rng.choice(state.legal_actions())]
                after = state.clone()
                after.play(actions[0])
                if not after.is_terminal and after.turn == state.turn:
                    actions.append(rng.choice(after.legal_actions()))
                move = move_text(state, actions)
            state, ply = apply_move(state, move), ply + 1
            answer = server.ask("apply_move", name, expectedPly=ply - 1, move=move)
            assert answer == {"type": "move_applied", "bgsId": name, "success": True, "error": "", "ply": ply}
        assert server.ask("evaluate_position", name, expectedPly=ply)["success"]
        assert server.ask("end_game_session", name)["success"]


def test_what_fails_changes_nothing(server: Server) -> None:
    assert server.ask("evaluate_position", "a", expectedPly=0) == {
        "bestMove": "",
        "evaluation": 0,
        "type": "evaluate_response",
        "bgsId": "a",
        "success": False,
        "error": "Session not found",
        "ply": 0,
    }
    assert server.ask("start_game_session", "a", botId="bot", config=CONFIG)["success"]
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("start_game_session", {"botId": "bot", "config": CONFIG}, "Session a already exists"),
        ("apply_move", {"expectedPly": 3, "move": "Cb5"}, "Ply mismatch: expected 0, got 3"),
        ("apply_move", {"expectedPly": True, "move": "Cb5"}, "expectedPly must be a whole number"),
        ("apply_move", {"expectedPly": 0, "move": "Ce1"}, "move: "),
        ("apply_move", {"expectedPly": 0}, "move: "),
        ("evaluate_position", {}, "expectedPly must be a whole number"),
        ("start_game_session", {"config": CONFIG}, "botId must be a text"),
        ("start_game_session", {"botId": "bot", "config": {**CONFIG, "variant": "survival"}}, "variant"),
    ]
    for kind, fields, error in wrong:
        answer = server.ask(kind, "a", **fields)
        assert not answer["success"]
        assert error in answer["error"], answer
    first = server.ask("evaluate_position", "a", expectedPly=0)
    assert first["success"]
    assert server.ask("apply_move", "a", expectedPly=0, move=first["bestMove"])["ply"] == 1
    assert server.ask("end_game_session", "a")["success"]
    assert server.ask("end_game_session", "a")["error"] == "Session not found"
    assert server.ask("start_game_session", "a", botId="another", config=CONFIG)["success"], "the id is free again"


def test_a_short_turn_is_followed(server: Server) -> None:
    server.ask("start_game_session", "a", botId="bot", config=CONFIG)
    for ply, move in enumerate(["Cb5", "---", ">c3"]):
        assert server.ask("apply_move", "a", expectedPly=ply, move=move)["success"]
        assert server.ask("evaluate_position", "a", expectedPly=ply + 1)["success"]


def test_player_2_and_half_a_turn_are_answered(server: Server) -> None:
    config = json.loads(json.dumps(CONFIG))
    config["initialState"]["turn"] = {"playerId": 2, "actionsTaken": []}
    assert server.ask("start_game_session", "a", botId="bot", config=config)["success"]
    move = server.ask("evaluate_position", "a", expectedPly=0)["bestMove"]
    assert apply_move(state_of(config), move).turn == 0


def test_requests_of_many_games_keep_their_order_and_the_end_answers_all() -> None:
    served = open_player("uniform:5", "wall_game", 100)
    server = Server(lambda talk: WallGameLines({"bot": served}, talk).run())
    names = [f"game {number}" for number in range(MOST_SESSIONS)]
    for name in names:
        server.send("start_game_session", name, botId="bot", config=CONFIG)
        server.send("evaluate_position", name, expectedPly=0)
        server.send("apply_move", name, expectedPly=0, move="Cb5.>c3")
        server.send("evaluate_position", name, expectedPly=1)
    for _ in range(4 * MOST_SESSIONS):
        server.receive()
    server.send("start_game_session", "one more", botId="bot", config=CONFIG)
    assert server.receive()["error"] == f"Maximum session limit reached ({MOST_SESSIONS})"
    for name in names:
        server.send("evaluate_position", name, expectedPly=1)
        server.send("end_game_session", name)
        server.send("evaluate_position", name, expectedPly=1)
    server.close()
    answers = [json.loads(line) for line in server.heard]
    assert len(answers) == 3 * MOST_SESSIONS
    for name in names:
        own = [(answer["type"], answer["success"]) for answer in answers if answer["bgsId"] == name]
        assert own == [("evaluate_response", True), ("game_session_ended", True), ("evaluate_response", False)]


def test_bad_lines_are_answered_and_the_next_good_one_too(server: Server) -> None:
    lines = ["nonsense", "[]", "{}", '{"type":"x","bgsId":"a"}', '{"type":"apply_move"}', '{"a":1,"a":2}', "[" * 5000]
    lines += [
        '{"type":"evaluate_position","bgsId":"a","expectedPly":NaN}',
        '{"x":1e999}',
        '"\\ud800"',
        "x" * LONGEST_LINE,
    ]
    lines += ['{"type":"evaluate_position","bgsId":3}', '{"type":["a"],"bgsId":"\\ud800"}']
    for line in lines:
        server.say(line)
        assert server.receive()["type"] == "error", line
    assert server.ask("start_game_session", "a", botId="bot", config=CONFIG)["success"]


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_have_one_answer_each(server: Server, seed: int) -> None:
    rng = random.Random(seed)
    kinds = ["start_game_session", "evaluate_position", "apply_move", "end_game_session", "ping"]
    values: list[Any] = [0, 1, -1, True, None, "bot", "---", "Cb5", CONFIG, {}, [], 1e300, "\ud7ff"]
    for _ in range(300):
        fields = {name: rng.choice(values) for name in ("expectedPly", "move", "botId", "config") if rng.random() < 0.7}
        server.send(rng.choice(kinds), rng.choice("abc"), **fields)
    for _ in range(300):
        server.receive()
    assert not server.heard


@pytest.mark.parametrize("is_signal", [False, True])
def test_the_end_and_a_signal_answer_what_waits(is_signal: bool) -> None:
    command = [*COMMAND, "uniform:400", "--protocol", "wallgame", "--game", "wall_game"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(MOST_SESSIONS):
            start = {"type": "start_game_session", "bgsId": str(number), "botId": "bot", "config": CONFIG}
            for request in (start, {"type": "evaluate_position", "bgsId": str(number), "expectedPly": 0}):
                process.stdin.write(json.dumps(request) + "\n")
        process.stdin.write("the last line\n")
        process.stdin.flush()
        answers = list[dict[str, Any]]()
        while not answers or answers[-1]["type"] != "error":  # all lines have been read
            answers.append(json.loads(process.stdout.readline()))
        if is_signal:
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        answers += [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE) == 0
    assert len(answers) == 2 * MOST_SESSIONS + 1
    assert sum(answer.get("bestMove", "") != "" for answer in answers) == MOST_SESSIONS


def test_ids_come_back_as_they_were_sent(server: Server) -> None:
    for name in (
        "",
        " a ",
        "\u00a0\u2028\u200b",
        "\U0001f468\u200d\U0001f469",
        "[" * 50 + '\\"' + "{" * 50,
        "x" * 60_000,
    ):
        for ascii_only in (False, True):
            line = json.dumps({"type": "evaluate_position", "bgsId": name, "expectedPly": 0}, ensure_ascii=ascii_only)
            server.say(line)
            answer = server.receive()
            assert (answer["bgsId"], answer["type"]) == (name, "evaluate_response")


def test_lines_that_are_not_exact_are_refused(server: Server) -> None:
    request = '{"type":"end_game_session","bgsId":"a"}'
    server._write.write(request.replace("a", "\xff").encode("latin-1") + b"\n")
    for line, error in (
        ("", "UTF-8"),
        (request + " " * LONGEST_LINE, f"at most {LONGEST_LINE} bytes"),
        (request.replace('"a"', '"\\ud800"'), "surrogate"),
        (request.replace('"a"', '"\x00"'), "one JSON object"),
        (request.replace('"a"', "[" * 31 + "]" * 31), "a text as bgsId"),
        (request.replace('"a"', "[" * 32 + "]" * 32), "more than 32"),
    ):
        server.say(line)
        assert error in server.receive()["error"], line[:100]
    assert server.ask("end_game_session", "a")["error"] == "Session not found"


def test_an_exception_of_the_network_fails_its_request_and_the_game_goes_on() -> None:
    class Odd(Exception):  # noqa: N818
        pass

    class Sometimes:
        fails = True

        def evaluate_batch(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if self.fails:
                raise Odd
            rows = len(observations)
            return np.zeros((rows, served.start.num_actions), np.float32), np.zeros(rows, np.float32)

    served = open_player("uniform:12", "wall_game(width=5,height=5)", 100)
    evaluator = Sometimes()
    models = {"bot": dataclasses.replace(served, evaluator=evaluator)}
    server = Server(lambda talk: WallGameLines(models, talk).run())
    assert server.ask("start_game_session", "a", botId="bot", config=CONFIG)["success"]
    answer = server.ask("evaluate_position", "a", expectedPly=0)
    assert (answer["success"], answer["error"], answer["bestMove"]) == (False, "Odd", "")
    evaluator.fails = False
    assert server.ask("evaluate_position", "a", expectedPly=0)["success"]
    server.close()


def test_trees_keep_to_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.wall_game_lines.TREES_MB", 4)
    ended = list[str]()

    class Watched(WallGameLines):
        def _search(self, *given: Any) -> Any:
            result = super()._search(*given)
            ended.append(result.stop)
            return result

    server = Server(lambda talk: Watched({"bot": open_player("uniform:4000000000", "wall_game", 1)}, talk).run())
    assert server.ask("start_game_session", "a", botId="bot", config=CONFIG)["success"]
    assert server.ask("evaluate_position", "a", expectedPly=0)["success"]
    server.close()
    assert ended[0] == "memory"


def test_ids_of_no_game_leave_nothing_behind() -> None:
    protocols = list[WallGameLines]()

    def run(talk: Conversation) -> None:
        protocols.append(WallGameLines({"bot": open_player("uniform:1", "wall_game", 1)}, talk))
        protocols[0].run()

    server = Server(run)
    for number in range(2_000):
        server.send("evaluate_position", f"game {number}", expectedPly=0)
    server.send("start_game_session", "a", botId="bot", config=CONFIG)
    server.send("end_game_session", "a")
    server.close()
    assert len(server.heard) == 2_002
    assert (protocols[0]._queues, protocols[0]._sessions, protocols[0]._waiting) == ({}, {}, 0)


def test_no_more_is_read_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.wall_game_lines._MOST_WAITING", 50_000)
    waiting, is_free = list[int](), threading.Event()

    class Slow(WallGameLines):
        def _take(self, line: str) -> None:
            super()._take(line)
            waiting.append(self._waiting)
            if len(waiting) == 40:
                is_free.set()

        def _answer(self, *given: Any) -> None:
            assert is_free.wait(PATIENCE)
            super()._answer(*given)

    server = Server(lambda talk: Slow({"bot": open_player("uniform:1", "wall_game", 1)}, talk).run())
    for _ in range(1_000):
        server.send("evaluate_position", "a", expectedPly=0)
    server.close()
    assert len(server.heard) == len(waiting) == 1_000
    assert max(waiting) < 60_000
