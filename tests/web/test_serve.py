"""az-serve answers queries by HTTP and WebSocket, refuses what it should, and ends in good order."""

import inspect
import json
import re
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_serve_attacks import TOKEN, connected, request
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from azpy import make_game
from azpy.cli import engine, play, serve
from azpy.devices import Device
from azpy.errors import AzpyError
from azpy.runs.folder import RunFolder
from azpy.serving.limits import CLIENT_LIMITS, MOST_SEARCHES, Limits
from azpy.serving.models import PlayerEngine, open_model, open_player
from azpy.web.app import Bounds
from models import make_model
from running import assert_soon, program
from served import process, serving, site_of
from talks import PATIENCE

SERVING = Path(__file__).parents[2] / "docs/guides/serving.md"
JSON = {"content-type": "application/json"}


def post(address: str, query: Any, **headers: str) -> httpx.Response:
    content = query if isinstance(query, bytes | str) else json.dumps(query)
    return httpx.post(f"http://{address}/query", content=content, headers={**JSON, **headers}, timeout=PATIENCE)


def ask(socket: ClientConnection, **query: Any) -> dict[str, Any]:
    socket.send(json.dumps({"id": "ask", **query}))
    found: dict[str, Any] = json.loads(socket.recv(PATIENCE))
    return found


def test_each_limit_has_its_refusal() -> None:
    head = ("Content-Type: application/json", "Content-Length: 9")
    bounds = Bounds(body_seconds=0.2, idle_seconds=2.0, websockets=1, posts=1)
    model = open_model("uniform:30", "connect_four", 30, max_requests=2)
    with site_of({"main": model}, bounds) as address:
        with connected(address) as slow:
            slow.sendall(request(address, "POST /query HTTP/1.1", *head, body="{"))
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        with connect(f"ws://{address}/ws") as web:
            with pytest.raises(InvalidStatus) as caught, connect(f"ws://{address}/ws"):
                pass
            assert caught.value.response.status_code == 503
            with pytest.raises(ConnectionClosed) as idle:
                web.recv(PATIENCE)
            assert idle.value.rcvd is not None
            assert idle.value.rcvd.code == 1001
    never = Limits(simulations=10_000_000, seconds=60.0, searches=2)
    with site_of({"main": open_model("uniform:30", "connect_four", 30)}, Bounds(posts=1, client=never)) as address:
        short = {"id": "2", "simulations": 2}
        endless = {"id": "1", "simulations": 10_000_000, "reportDuringSearchEvery": 0.05}
        with httpx.stream("POST", f"http://{address}/query", json=endless, timeout=PATIENCE) as first:
            lines = first.iter_lines()
            assert next(lines)
            refused = post(address, short)
            said = "1 requests from this address are open, the most allowed: wait for an answer"
            assert (refused.status_code, refused.json()["error"]) == (429, said)
            other = post(address, short, **{"x-forwarded-for": "10.0.0.9"})
            assert other.status_code == 200  # of another address
        assert_soon(lambda: post(address, short).status_code == 200)  # the first one is gone
        # Whose body is still on its way counts, also before the token is known.
        with connected(address) as slow:
            slow.sendall(request(address, "POST /login HTTP/1.1", *head, "Expect: 100-continue"))
            assert slow.recv(4096).startswith(b"HTTP/1.1 100 ")  # its body is waited for
            assert post(address, short).status_code == 429


def test_a_client_that_leaves_frees_its_searches() -> None:
    model = open_model("uniform:30", "connect_four", 30)
    with site_of({"main": model}) as address:
        for _ in range(3):
            with connect(f"ws://{address}/ws") as web:
                for number in range(20):
                    web.send(json.dumps({"id": str(number), "game": str(number), "simulations": 10_000_000}))
                ask(web, action="query_version")
                web.socket.shutdown(socket.SHUT_RDWR)
        endless = {"id": "1", "simulations": 10_000_000}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"http://{address}/query", json=endless, timeout=httpx.Timeout(5, read=0.2))
        assert_soon(lambda: model.engine.stats["open"] == 0)
        assert model.engine.stats["finished"] == 0  # by the time limit of a client
        assert "rootInfo" in post(address, {"id": "1", "simulations": 2}).json()


def test_a_signal_to_end_answers_what_was_asked() -> None:
    with process("uniform:50", "--game", "hex(size=5)") as (address, server), connect(f"ws://{address}/ws") as web:
        for index in range(256):
            web.send(json.dumps({"id": str(index), "game": str(index), "simulations": 300}))
        web.send('{"id":"taken","action":"query_version"}')
        found = [json.loads(web.recv(PATIENCE))]
        while found[-1]["id"] != "taken":
            found.append(json.loads(web.recv(PATIENCE)))
        server.send_signal(signal.SIGTERM)
        found += [json.loads(web.recv(PATIENCE)) for _ in range(257 - len(found))]
        visits = {one["id"]: one["rootInfo"]["visits"] for one in found if one["id"] != "taken"}
        assert visits == {str(index): 300 for index in range(256)}
        assert server.wait(PATIENCE) == 0


def test_a_new_model_is_loaded_while_clients_ask(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model(weight=0.5))
    model = open_model(str(path), "tic_tac_toe", 40)
    networks, done = set[str](), threading.Event()

    def client(address: str) -> None:
        with connect(f"ws://{address}/ws") as web:
            while not done.is_set():
                networks.add(ask(web)["rootInfo"]["network"])

    with site_of({"main": model}) as address, ThreadPoolExecutor() as pool, ExitStack() as stack:
        stack.callback(done.set)
        clients = [pool.submit(client, address) for _ in range(4)]
        before = post(address, {"id": "1"}).json()["rootInfo"]["network"]
        assert not model.renew(), "the file is the same"
        beside = tmp_path / "new.onnx"  # renamed into place, as a run writes its models
        beside.write_bytes(make_model(weight=0.9))
        beside.replace(path)
        assert model.renew()
        after = post(address, {"id": "1"}).json()["rootInfo"]["network"]
        done.set()
        assert [one.result(PATIENCE) for one in clients] == [None] * 4
        assert before != after
        assert networks <= {before, after}
        path.write_bytes(b"nonsense")
        for _ in range(2):  # tried again each time
            with pytest.raises(AzpyError):
                model.renew()
        assert post(address, {"id": "1"}).json()["rootInfo"]["network"] == after


def test_the_log_is_json_and_keeps_the_token(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n", "utf-8-sig")  # as Notepad saves it
    with process("uniform:9", "--game", "pig", "--token-file", str(secret)) as (address, server):
        post(address, {"id": "1"}, authorization=f"Bearer {TOKEN}")
        httpx.post(f"http://{address}/login", json={"token": TOKEN})
        httpx.get(f"http://{address}/health")
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in log.splitlines()]
    assert [(line["path"], line["status"]) for line in lines if line["event"] == "request"] == [
        ("/query", 200),
        ("/login", 200),
        ("/health", 200),
    ]
    assert TOKEN not in log


def test_a_warning_comes_first_and_a_hangup_is_logged(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(make_model())
    player, log = f"{tmp_path / 'model.onnx'}?level=novice", tmp_path / "log"
    with (
        log.open("w") as stderr,
        process(player, "--game", "tic_tac_toe", "--model", "o=uniform:9", stderr=stderr) as (_, server),
    ):
        (plain,) = log.read_text().splitlines()
        assert "These levels are not calibrated" in plain
        server.send_signal(signal.SIGHUP)
        assert_soon(lambda: log.read_text().count("\n") >= 3)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    assert [(line["event"], line["model"]) for line in lines] == [("kept", "main"), ("kept", "o")]
    assert lines[0]["player"].startswith(str(tmp_path / "model.onnx"))
    assert lines[1]["player"] == "uniform"


@pytest.mark.parametrize("command", [play, serve])
def test_options_of_a_player_reach_it(command: Any, one_line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()

    def opened(*player: Any, **options: Any) -> None:
        given = inspect.signature(open_model).bind(*player, **options).arguments
        names = "text", "game", "simulations", "device", "temperature", "seed"
        asked.append([*(given[name] for name in names), given["options"]["total_memory_mb"]])
        raise AzpyError("enough")

    monkeypatch.setattr(command, "open_model", opened)
    flags = ["--game", "pig", "--simulations", "7", "--device", "azpy", "--temperature", "0.5", "--seed", "3"]
    one_line(command.main, ["uniform", *flags], f"az-{command.__name__.rpartition('.')[2]}: enough")
    assert asked == [["uniform", "pig", 7, Device("azpy"), 0.5, 3, 2048]]


@pytest.mark.parametrize("flag", ["--host", "--address", "--origin", "--frame-origin"])
def test_a_wrong_name_is_refused_before_a_player_is_loaded(
    flag: str, one_line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # loading the run, which does not exist, would fail with another error
    monkeypatch.setenv("AZPY_TOKEN", TOKEN)
    assert "got 'https://me/here'" in one_line(serve.main, ["no/such/run", flag, "https://me/here"], "az-serve: --")


def test_a_player_without_a_game_plays_that_of_the_run_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start, seen = make_game("connect_four"), list[dict[str, PlayerEngine]]()
    for name, game in (("connect_four", "connect_four"), ("evil", "evil:Evil")):
        with RunFolder(tmp_path / "runs" / name, {"game": game}) as run:
            model = make_model(shape=("batch", *start.obs_shape), actions=start.num_actions)
            run.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=model)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")

    def loaded(*_: Any) -> None:
        raise AzpyError("loaded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("azpy.web.app.Site", lambda models, **_: seen.append(models))
    monkeypatch.setattr("azpy.web.server.listening", loaded)
    (example,) = re.findall(r"```toml\n(player.*?)```", SERVING.read_text("utf-8"), re.DOTALL)
    Path("az-serve.toml").write_text(example.replace("/srv/", ""))
    assert serve.main(["--config", "az-serve.toml"]) == 2
    assert capsys.readouterr().err == "az-serve: loaded\n"
    assert {name: model.player.start.game for name, model in seen[0].items()} == dict.fromkeys(
        ("main", "weak"), "connect_four"
    )
    given = engine._parser().parse_args(["mcts:9", "--protocol", "ugi", "--model", "run=runs/connect_four"])
    assert [served.start.game for served in engine._models(given).values()] == ["connect_four"] * 2
    assert serve.main(["mcts:9", "--model", "run=runs/evil"]) == 2  # does not import what nobody typed
    assert "give --game evil:Evil if you trust it" in capsys.readouterr().err


def test_a_player_has_a_temperature_of_its_own() -> None:
    player = open_player("uniform?level=9&temperature=0.5", "pig", 100, temperature=2.0)
    assert (player.simulations, player.temperature) == (9, 0.5)
    assert open_player("uniform", "pig", 100, temperature=2.0).temperature == 2.0


def test_limits_and_help_come_from_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main(["--help"]) == 0
    shown = dict(re.findall(r"--([a-z-]+) [A-Z_]+\s[^(-]*\(default: ([^)]*)\)", capsys.readouterr().out))
    taken = dict[str, Any]()

    def seen(_: Any, **options: Any) -> None:
        taken.update(options)
        raise AzpyError("seen")

    monkeypatch.setattr("azpy.web.app.Site", seen)
    assert serve.main(["uniform:2", "--game", "tic_tac_toe"]) == 2
    client = taken["bounds"].client
    assert client == Bounds().client == CLIENT_LIMITS
    assert {name: shown[f"max-{name}"] for name in ("simulations", "seconds", "searches", "requests")} == {
        "simulations": f"{client.simulations}",
        "seconds": f"{client.seconds:g}",
        "searches": f"{client.searches}",
        "requests": f"{MOST_SEARCHES}",
    }


@pytest.mark.skipif(not SERVING.exists(), reason="needs the source tree")
def test_the_client_of_the_documentation_plays_a_game() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", SERVING.read_text(), re.DOTALL)
    with serving("connect_four", token=TOKEN) as address:
        done = program(text, f"ws://{address}/ws", AZPY_TOKEN=TOKEN)
        assert re.search(r"^player 0: .*\n(.*\n)+outcome for the first player: ", done.out)
        assert done.code == 0
        assert "401" in program(text, f"ws://{address}/ws").errors
