"""az-serve ends and reloads: open answers are sent, searches stop with what they know, and signals are heeded."""

import asyncio
import json
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_serve_attacks import frame, upgraded
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from azpy.serving.models import open_model
from azpy.serving.queries import Response, Session
from azpy.web.app import Site
from models import make_model
from running import assert_soon
from served import process
from talks import PATIENCE


def test_answers_that_wait_are_sent_before_the_end() -> None:
    count = 300
    with process("uniform:2", "--game", "go(size=19)") as (address, running), upgraded(address, small=True) as client:
        query = b'{"id":"1","simulations":2,"includePolicy":true}'
        client.sendall(frame(1, query) * count)
        taken = f'azpy_queries_total{{transport="websocket"}} {count}'
        assert_soon(lambda: taken in httpx.get(f"http://{address}/metrics").text)
        found = b""
        running.send_signal(signal.SIGTERM)
        while more := client.recv(1 << 20):
            found += more
        assert found.count(b'"rootInfo"') == count
        assert running.wait(PATIENCE) == 0


def test_the_drain_waits_for_the_answers_of_clients_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drains() -> None:
        site, sleep, mine = Site({"main": open_model("uniform:2", "pig", 2)}), asyncio.sleep, threading.get_ident()

        async def reads(seconds: float) -> None:
            is_mine = threading.get_ident() == mine  # else the server of another test
            if is_mine:
                box.get()
            await sleep(0 if is_mine else seconds)

        monkeypatch.setattr(asyncio, "sleep", reads)
        with site._client() as (_, gone):
            gone.put(Response("{}"))
        assert site._clients == {}  # or each client that ever came would stay
        await site.drain(PATIENCE)  # without a sleep, in which `box` would be missing
        with site._client() as (_, box):
            box.put(Response("{}"))
            await site.drain(PATIENCE)
            assert box.is_empty

    asyncio.run(drains())


def test_the_drain_ends_open_posts_and_refuses_what_is_new() -> None:
    query = {"id": "1", "simulations": 10_000_000, "reportDuringSearchEvery": 0.05}
    with process("uniform:2", "--game", "hex(size=9)", "--drain-seconds", "4") as (address, running):
        with (
            httpx.Client(base_url=f"http://{address}", timeout=PATIENCE) as kept,
            httpx.stream("POST", f"http://{address}/query", json=query, timeout=PATIENCE) as stream,
            connect(f"ws://{address}/ws") as web,
        ):
            lines = stream.iter_lines()
            assert json.loads(next(lines))["isDuringSearch"]
            assert kept.get("/ready").status_code == 200
            running.send_signal(signal.SIGTERM)
            assert_soon(lambda: kept.get("/ready").status_code == 503)
            refused = kept.post("/query", json={"id": "2"})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            web.send('{"id":"3"}')
            answer = json.loads(web.recv(PATIENCE))
            assert (answer["id"], answer["retryAfter"]) == ("3", 1)
            assert "the server is stopping" in answer["error"]
            assert httpx.get(f"http://{address}/ready").status_code == 503
            with pytest.raises(InvalidStatus), connect(f"ws://{address}/ws"):
                pass
            assert not json.loads([*lines][-1])["isDuringSearch"]
            with pytest.raises(ConnectionClosed) as closed:
                web.recv(PATIENCE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        assert running.wait(PATIENCE) == 0


def test_a_drained_server_still_lets_searches_be_ended() -> None:
    with process("uniform:2", "--game", "hex(size=9)", "--drain-seconds", "600") as (address, running):
        with httpx.Client(base_url=f"http://{address}", timeout=PATIENCE) as kept, connect(f"ws://{address}/ws") as web:
            web.send('{"id":"long","simulations":10000000}')
            web.send('{"id":"taken","action":"query_version"}')
            assert json.loads(web.recv(PATIENCE))["id"] == "taken"
            assert kept.get("/ready").status_code == 200
            running.send_signal(signal.SIGTERM)
            assert_soon(lambda: kept.get("/ready").status_code == 503)
            web.send('{"id":"end","action":"terminate_all"}')
            answers = [json.loads(web.recv(PATIENCE)) for _ in range(2)]
        assert {one["id"]: "error" in one for one in answers} == {"long": False, "end": False}
        assert running.wait(PATIENCE) == 0


def test_a_query_during_a_stop_is_told_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({"main": open_model("uniform:2", "pig", 2)})

    def overtaken(self: Session, _: Any) -> None:
        site.ready = False
        site._clients[self].put(Response('{"error":"this engine is closed"}', 400))

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=site.app), base_url="http://localhost") as web:
            return await web.post("/query", json={"id": "1"})

    monkeypatch.setattr(Session, "take", overtaken)
    response = asyncio.run(asked())
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_a_second_signal_ends_the_process_at_once() -> None:
    with process("uniform:2", "--game", "hex(size=9)", "--drain-seconds", "600") as (address, running):  # noqa: SIM117
        with httpx.Client(base_url=f"http://{address}") as kept, connect(f"ws://{address}/ws") as web:
            web.send('{"id":"1","simulations":10000000,"reportDuringSearchEvery":0.05}')
            web.recv(PATIENCE)
            kept.get("/ready")
            running.send_signal(signal.SIGTERM)
            assert_soon(lambda: kept.get("/ready").status_code == 503)
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 128 + signal.SIGTERM


def test_a_missing_model_keeps_its_last_version(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.onnx" for name in "ab"]
    for path in paths:
        path.write_bytes(make_model(weight=0.5))
    arguments = [str(paths[0]), "--game", "tic_tac_toe", "--model", f"other={paths[1]}", "--simulations", "2"]
    with process(*arguments) as (address, running):

        def networks() -> list[str]:
            asked = [{"id": "1"}, {"id": "1", "model": "other"}]
            return [httpx.post(f"http://{address}/query", json=one).json()["rootInfo"]["network"] for one in asked]

        before = networks()
        paths[0].unlink()
        (tmp_path / "new").write_bytes(make_model(weight=0.9))
        (tmp_path / "new").rename(paths[1])
        for _ in range(20):
            running.send_signal(signal.SIGHUP)
        assert_soon(lambda: networks()[1] != before[1])
        assert networks()[0] == before[0]
        running.send_signal(signal.SIGTERM)
        log = running.communicate(timeout=PATIENCE)[1]
        events = [json.loads(line)["event"] for line in log.splitlines()]
        assert events.count("loaded") == 1
        assert "not loaded" in events
