"""az-serve bears clients that mean ill: they cost it little memory, no thread, and nobody else an answer."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from websockets.sync.client import connect

from azpy.serving.models import open_model
from azpy.serving.queries import Response, Session
from azpy.web import response_queue, server
from azpy.web.app import Bounds, Site
from azpy.web.response_queue import ResponseQueue
from served import assert_soon, process, serving, site_of
from talks import PATIENCE

TOKEN = "a token of the tests"
JSON = "Content-Type: application/json"
MB = 1 << 20


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    with serving("connect_four") as address:
        yield address


def connected(address: str, small: bool = False) -> socket.socket:
    """A TCP connection; a small one takes few bytes before it is read."""
    host, _, port = address.partition(":")
    found = socket.socket()
    if small:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(PATIENCE)
    found.connect((host, int(port)))
    return found


def upgraded(address: str, small: bool = False) -> socket.socket:
    """A WebSocket whose frames are bytes of the test."""
    found = connected(address, small)
    found.sendall(upgrade(address))
    head = b""
    while b"\r\n\r\n" not in head:
        head += found.recv(1)
    assert head.startswith(b"HTTP/1.1 101 "), head
    return found


def upgrade(address: str, *more: str) -> bytes:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    lines = ["GET /ws HTTP/1.1", f"Host: {address}", "Upgrade: websocket", "Connection: Upgrade", key]
    return "\r\n".join([*lines, "Sec-WebSocket-Version: 13", *more, "", ""]).encode()


def frame(opcode: int, data: bytes, last: bool = True) -> bytes:
    """A frame of a client, masked with zeros."""
    length = len(data)
    size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack("!H", length)
    return bytes([opcode | (0x80 if last else 0)]) + size + bytes(4) + data


def talked(address: str, raw: bytes) -> bytes:
    """All that comes back for bytes, until the server ends the connection."""
    with connected(address) as client:
        client.sendall(raw)
        found = b""
        while more := client.recv(65536):
            found += more
    return found


def request(address: str, line: str = "GET /health HTTP/1.1", *more: str, body: str = "") -> bytes:
    return "\r\n".join([line, f"Host: {address}", "Connection: close", *more, "", body]).encode()


def memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Requests that are none ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        "GET /health HTTP/1.1\r\nHost: {0}\r\nHost: evil.example\r\n\r\n",
        "GET /health HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.0\r\n\r\n",
        "GET http://evil.example/health HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n",
        "POST /query HTTP/1.1\r\nHost: {0}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
        "POST /query HTTP/1.1\r\nHost: {0}\r\nContent-Length: -1\r\n\r\n",
        "POST /query HTTP/1.1\r\nHost: {0}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST /query HTTP/1.1\r\nHost: {0}\r\nTransfer-Encoding : chunked\r\n\r\n",
        "POST /query HTTP/1.1\r\nHost: {0}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client of TLS\r\n\r\n",
        "GET /health HTTP/1.1\nHost: {0}\n\tfolded: yes\r\nConnection: close\r\n\r\n",
    ],
)
def test_requests_that_are_none_are_refused(raw: str, plain: str) -> None:
    answer = talked(plain, raw.format(plain).encode("latin-1"))
    assert answer.split(b" ", 2)[1][:1] in {b"4", b"5"}, answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert httpx.get(f"http://{plain}/health").status_code == 200


def test_a_body_has_one_length(plain: str) -> None:
    # Chunks count where both are given, and the connection ends: what follows may be no request (RFC 9112, 6.1).
    line, inner = "POST /query HTTP/1.1", "GET /metrics HTTP/1.1"
    raw = f"{line}\r\nHost: {plain}\r\n{JSON}\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw += f"0\r\n\r\n{inner}\r\nHost: {plain}\r\nConnection: close\r\n\r\n"
    for before in ("", f"GET /health HTTP/1.1\r\nHost: {plain}\r\n\r\n"):
        answer = talked(plain, (before + raw).encode())
        assert b"expected one JSON object" in answer
        assert answer.count(b"HTTP/1.1 ") == 1 + bool(before), answer
        assert answer.lower().count(b"connection: close") == 1


def test_upgrades_with_headers_that_websockets_do_not_have_are_refused() -> None:
    with process("uniform:2", "--game", "pig") as (address, running):
        for more in (["X: " + "x" * 9_000], [f"X{one}: y" for one in range(200)], ["Transfer-Encoding: x"]):
            assert b" 101 " not in talked(address, upgrade(address, *more))
            assert httpx.get(f"http://{address}/health").status_code == 200
        running.send_signal(signal.SIGTERM)
        assert "Traceback" not in running.communicate(timeout=PATIENCE)[1]


def test_what_a_client_says_is_short_in_the_log() -> None:
    with process("uniform:2", "--game", "pig") as (address, running):
        far = "y" * 9_000
        httpx.request("X" * 9_000, f"http://{address}/{'z' * 3_000}", headers={"x-forwarded-for": far})
        running.send_signal(signal.SIGTERM)
        assert max(map(len, running.communicate(timeout=PATIENCE)[1].splitlines())) < 500


# Memory ---------------------------------------------------------------------------------------------------------------


def test_messages_are_not_compressed(plain: str) -> None:
    # A read of 256 KiB can hold thousands of messages that are 64 KiB each, and 100 bytes on their way.
    with connect(f"ws://{plain}/ws") as web:
        assert web.response is not None
        assert "Sec-WebSocket-Extensions" not in web.response.headers


@pytest.mark.parametrize("data", [b"", b" "])
def test_a_message_has_a_bounded_number_of_fragments(data: bytes, plain: str) -> None:
    with upgraded(plain) as client:
        client.sendall(frame(1, b"", last=False))
        client.sendall(frame(0, data, last=False) * 60_000)
        head = client.recv(2)
        assert head[0] == 0x88
        assert struct.unpack("!H", client.recv(2))[0] == 1009
    assert httpx.get(f"http://{plain}/health").status_code == 200


def test_pings_without_a_reader_cost_no_memory() -> None:
    with process("uniform:2", "--game", "pig") as (address, running), upgraded(address, small=True) as client:
        before, pings = memory(running.pid), frame(9, bytes(125)) * 1_000
        for _ in range(240):  # 32 MB
            client.sendall(pings)
        with connect(f"ws://{address}/ws") as other:
            other.send('{"id":"1","simulations":1}')
            assert "rootInfo" in other.recv(PATIENCE)
        assert memory(running.pid) - before < 12 * MB


def test_requests_in_advance_cost_no_memory(plain: str) -> None:
    query = json.dumps({"id": "1", "simulations": 10_000_000})
    with connected(plain) as client:
        line = request(plain, "POST /query HTTP/1.1", JSON, f"Content-Length: {len(query)}", body=query)
        with pytest.raises(ConnectionError):  # noqa: PT012
            client.sendall(line.replace(b"Connection: close\r\n", b""))
            for _ in range(200):
                client.sendall(request(plain) * 1_000)


def test_small_messages_are_read_a_few_at_a_time(plain: str) -> None:
    # Whatever was read waits as a dict a message until its turn.
    with upgraded(plain) as client:
        client.sendall(frame(1, b"") * 100_000)
        client.sendall(frame(1, b'{"id":"end","action":"query_version"}'))
        most = max(waiting(plain))
        assert most < 5_000, most


def waiting(address: str) -> list[int]:
    """How many messages of each WebSocket wait in this process."""
    import gc

    return [one.queue.qsize() for one in gc.get_objects() if type(one).__name__ == "_WebSocket"] or [10**9]


def test_reports_and_answers_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> None:
        loop = asyncio.get_running_loop()
        box = ResponseQueue(loop)
        for number in range(100_000):
            box.put(Response("{}", search=(str(number), 0), is_report=True))
            if box.overflown:
                break
        assert number <= 10_000
        box = ResponseQueue(loop)
        for number in range(20_000):
            box.put(Response(str(number), search=("same", 0), is_report=True))
        assert box.get().line == "19999"
        assert box.is_empty
        assert not box.overflown
        monkeypatch.setattr(response_queue, "_MOST_BYTES", 1_000)
        box = ResponseQueue(loop)
        for _ in range(100):
            box.put(Response("x" * 900))
            box.get()
            box.put(Response("x" * 900, search=("2", 0), is_report=True))
            box.put(Response("x" * 900, search=("2", 0)))
            box.get()
        assert not box.overflown
        box.put(Response("x" * 900))
        box.put(Response("x" * 900))
        assert box.overflown

    asyncio.run(fill())


def test_answers_and_reports_are_told_apart_by_their_turns_too() -> None:
    async def fill() -> list[str]:
        box = ResponseQueue(asyncio.get_running_loop())
        for text in ("old", "new"):
            for turn in (0, 1, 2):
                box.put(Response(f"{turn} {text}", search=("same", turn), is_report=True))
        box.put(Response("1 answer", search=("same", 1)))
        found = list[str]()
        while not box.is_empty:
            found.append(box.get().line)
        return found

    assert asyncio.run(fill()) == ["1 answer", "0 new", "2 new"]


# Clients that do not read, or leave -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "most"), [("_MOST_ANSWERS", 1), ("_MOST_BYTES", 400), ("_MOST_BYTES", 10)])
def test_a_post_says_that_answers_were_dropped(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_queue, name, most)
    query = {"id": "1", "moves": "1 2 3 4 5 6 7 1", "analyzeTurns": [*range(9)], "simulations": 1}
    with serving("connect_four") as address:
        response = httpx.post(f"http://{address}/query", json=query, timeout=PATIENCE)
    *answers, last = [json.loads(line) for line in response.text.splitlines()]
    if "error" in last:
        assert (last["id"], last["retryAfter"]) == ("1", 1)
        assert "answers were not read fast enough" in last["error"]
        assert response.status_code == (200 if answers else 503)
    assert "error" in last or len(answers) == 8
    assert all("rootInfo" in answer for answer in answers)
    assert "error" in last or most > 10  # no answer has 10 bytes


def test_answers_are_read_while_their_query_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    put, read = threading.Semaphore(0), ResponseQueue.get

    def slowly(self: Session, _: Any) -> None:
        for number in range(5):
            self._say(Response(f'{{"turn":{number}}}', search=("1", number)))
            assert put.acquire(timeout=PATIENCE)

    def get(self: ResponseQueue) -> Response:
        put.release()
        return read(self)

    monkeypatch.setattr(Session, "take", slowly)
    monkeypatch.setattr(ResponseQueue, "get", get)
    with serving("pig") as address:
        response = httpx.post(f"http://{address}/query", json={"analyzeTurns": [0, 1]}, timeout=2 * PATIENCE)
    assert [json.loads(line)["turn"] for line in response.text.splitlines()] == [*range(5)]


def test_a_post_whose_client_left_counts_until_its_message_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    site, most = Site({"main": open_model("uniform:2", "pig", 2)}, bounds=Bounds(posts=5)), 5
    take, close, goes_on, closed, said = (
        Session.take,
        Session.close,
        threading.Event(),
        set[Session](),
        list[Response](),
    )
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/query", "query_string": b"", "headers": headers}

    def waits(self: Session, message: Any) -> None:
        assert goes_on.wait(PATIENCE)
        self._say = said.append
        take(self, message)

    def left(self: Session) -> None:
        closed.add(self)
        close(self)

    async def nothing_comes(_: ResponseQueue, __: float) -> bool:
        await asyncio.sleep(0)
        return False

    async def post_and_leave() -> int:
        status = list[int]()
        events = iter([{"type": "http.request", "body": b'{"id":"1","action":"query_version"}'}])

        async def receive() -> dict[str, Any]:
            return next(events, {"type": "http.disconnect"})

        async def send(event: Any) -> None:
            status.append(event.get("status", 0))

        await site.app({**scope, "client": ("192.0.2.1", 1)}, receive, send)
        return status[0]

    async def attack() -> None:
        posts = [asyncio.create_task(post_and_leave()) for _ in range(most)]
        while len(closed) < most:
            await asyncio.sleep(0)
        for _ in range(100):  # turns of the loop in which a POST that ends would end
            await asyncio.sleep(0)
        assert await post_and_leave() == 429
        goes_on.set()
        await asyncio.gather(*posts)

    monkeypatch.setattr(Session, "take", waits)
    monkeypatch.setattr(Session, "close", left)
    monkeypatch.setattr(ResponseQueue, "wait", nothing_comes)
    try:
        asyncio.run(attack())
    finally:
        goes_on.set()
    assert said == []  # an answer for nobody is not made


def test_messages_are_answered_while_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    model, goes_on = open_model("uniform:2", "pig", 2), threading.Event()
    monkeypatch.setattr(model, "renew", lambda: goes_on.wait(PATIENCE))
    renew = '{"id":"renewal","action":"renew"}'  # of about the size of the stop
    with site_of({"main": model}, renews=True) as address, ExitStack() as stack:
        stack.callback(goes_on.set)
        post = request(address, "POST /query HTTP/1.1", JSON, f"Content-Length: {len(renew)}") + renew.encode()
        for _ in range(3):
            stack.enter_context(connected(address)).sendall(post)
            stack.enter_context(upgraded(address)).sendall(frame(1, renew.encode()))
        taken = ['azpy_queries_total{transport="post"} 3', 'azpy_queries_total{transport="websocket"} 3']
        assert_soon(lambda: all(one in httpx.get(f"http://{address}/metrics").text for one in taken))
        stop = {"id": "2", "action": "terminate_all"}
        assert httpx.post(f"http://{address}/query", json=stop, timeout=PATIENCE / 2).json()["id"] == "2"
        with connect(f"ws://{address}/ws") as web:
            web.send(json.dumps(stop))
            assert json.loads(web.recv(PATIENCE / 2))["id"] == "2"


def test_a_message_waits_for_those_of_its_size_alone(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take, goes_on = Session.take, threading.Event()

    def waits(self: Session, message: Any) -> None:
        assert len(message.get("moves") or "") < 1_000 or goes_on.wait(PATIENCE)
        take(self, message)

    monkeypatch.setattr(Session, "take", waits)
    small, post = b'{"id":"1","simulations":1}', request(plain, "POST /query HTTP/1.1", JSON)
    with ExitStack() as stack:
        for size in (2_000, 10_000, 50_000):
            query = json.dumps({"id": "1", "action": "show", "moves": "1" * size}).encode()
            for _ in range(15):
                one, other = stack.enter_context(connected(plain)), stack.enter_context(upgraded(plain))
                one.sendall(post[:-2] + b"Content-Length: %d\r\n\r\n" % len(query) + query)
                other.sendall(frame(1, query))
        stack.callback(goes_on.set)
        head = {"content-type": "application/json"}
        response = httpx.post(f"http://{plain}/query", content=small, headers=head, timeout=PATIENCE)
        assert "rootInfo" in response.text
        with connect(f"ws://{plain}/ws") as web:
            web.send(small)
            assert "rootInfo" in str(web.recv(PATIENCE))


def test_a_websocket_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_STALLED_SECONDS", 0.3)
    model = open_model("uniform:30", "go(size=19)", 30)
    with site_of({"main": model}) as address, upgraded(address, small=True) as client:
        search = json.dumps({"id": "long", "simulations": 10_000_000}).encode()
        client.sendall(frame(1, search))
        with pytest.raises(ConnectionError):  # noqa: PT012
            while True:
                client.sendall(frame(1, b'{"id":"1","action":"show"}') * 100)
        assert_soon(lambda: "azpy_connections 0" in httpx.get(f"http://{address}/metrics").text)
        assert_soon(lambda: model.engine.stats["open"] == 0)


@pytest.mark.parametrize("before", ["", "GET /health HTTP/1.1\r\nHost: {0}\r\n\r\n"])
@pytest.mark.parametrize("head", ["", "GET /health HTTP/1.1\r\nHost: {0}\r\nX: "])
def test_a_head_that_does_not_end_ends_the_connection(before: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first request of a connection, and of a further one."""
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server, "_KEEP_ALIVE", 1)  # a connection on which nothing comes after an answer
    with serving("pig") as address, connected(address) as slow:
        if before:
            slow.sendall(before.format(address).encode())
            assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")
        slow.sendall(head.format(address).encode())
        with contextlib.suppress(ConnectionResetError):
            while slow.recv(65536):
                pass
        assert httpx.get(f"http://{address}/health").status_code == 200


def test_a_client_that_reads_slowly_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waiting, ended = [0.0], [1_000], list[float]()
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    found = server.Server(Site({}))
    transport = SimpleNamespace(get_write_buffer_size=lambda: waiting[0], abort=lambda: ended.append(now[0]))
    found.server_state.connections = {Mock(transport=transport)}
    for seconds in range(200):
        now[0], waiting[0] = float(seconds), 1_000 - seconds // 20  # it takes a byte each 20 seconds
        found._end_stalled()
    assert ended == []
    for seconds in range(200, 231):
        now[0] = float(seconds)
        found._end_stalled()
    assert ended == [211.0, *range(212, 231)]  # 30 seconds after its last byte


def test_an_answer_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_STALLED_SECONDS", 0.3)
    with serving("connect_four") as address, connected(address, small=True) as client:
        with pytest.raises(ConnectionError):  # noqa: PT012
            while True:
                client.sendall(request(address, "GET /metrics HTTP/1.1").replace(b"Connection: close\r\n", b"") * 100)
        assert httpx.get(f"http://{address}/health").status_code == 200


def test_who_leaves_is_no_error_of_the_server() -> None:
    query = b'{"id":"1","simulations":10000000,"reportDuringSearchEvery":0.05}'
    with process("uniform:2", "--game", "pig") as (address, running):
        head = f"POST /query HTTP/1.1\r\nHost: {address}\r\n{JSON}\r\n".encode()
        for raw in (
            head + b"Content-Length: 99\r\n\r\n{",
            head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
            head + b"Content-Length: %d\r\n\r\n" % len(query) + query,
            head + b"Content-Length: 30\r\n\r\n" + b'{"id":"1","simulations":1000000',
            upgrade(address),
            upgrade(address) + frame(1, query),
            upgrade(address) + frame(1, b"{", last=False),
            upgrade(address) + b"\x81",
        ):
            with connected(address) as client:
                client.sendall(raw)
                if b"Upgrade" in raw or query in raw:
                    assert client.recv(1) == b"H"
        assert_soon(lambda: 'azpy_open_searches{model="main"} 0' in httpx.get(f"http://{address}/metrics").text)
        running.send_signal(signal.SIGTERM)
        log = running.communicate(timeout=PATIENCE)[1]
        assert '"level": "error"' not in log, log
        assert "Traceback" not in log


def test_frames_before_the_handshake_ended_are_answered_or_refused() -> None:
    with process("uniform:2", "--game", "pig") as (address, running):
        for number in range(20):
            with connected(address) as client:
                raw = upgrade(address) + frame(1, b'{"id":"1","simulations":1}') * 2
                cut = len(raw) * number // 20
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(raw[:cut])
                client.sendall(raw[cut:])
                assert client.recv(9) == b"HTTP/1.1 "
        running.send_signal(signal.SIGTERM)
        assert "Traceback" not in running.communicate(timeout=PATIENCE)[1]


def test_bytes_that_are_not_utf8_are_refused(plain: str, caplog: pytest.LogCaptureFixture) -> None:
    with connect(f"ws://{plain}/ws") as web:
        web.send(b'{"id":"\xff"}')
        assert json.loads(web.recv(PATIENCE)) == {"error": "expected UTF-8"}
        web.send(b'{"id":"1","simulations":1}')
        assert "rootInfo" in web.recv(PATIENCE)
    with upgraded(plain) as client:
        client.sendall(frame(1, b"\xff"))
        assert client.recv(1) == b"\x88"
    with upgraded(plain) as client:  # a letter that two fragments share, and one that does not end
        client.sendall(frame(1, b'{"id":"\xc3', last=False) + frame(0, b'\xa9"}'))
        assert b"\\u00e9" in client.recv(65536)
        client.sendall(frame(1, b"\xc3"))
        assert client.recv(65536)[2:4] == struct.pack("!H", 1007)
    assert httpx.get(f"http://{plain}/health").status_code == 200
    assert not [record for record in caplog.records if record.exc_info]


# Failures of the server -----------------------------------------------------------------------------------------------


def test_a_failure_of_the_server_is_said_without_its_trace(
    plain: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a secret of the server")

    with connect(f"ws://{plain}/ws") as web:
        with monkeypatch.context() as patch:
            patch.setattr(Session, "take", broken)
            web.send('{"id":"1"}')
            said = json.loads(web.recv(PATIENCE))
            response = httpx.post(f"http://{plain}/query", json={"id": "1"})
        assert said == {"error": "the server failed; its log says why"}
        assert (response.status_code, response.json()) == (500, said)
        assert "default-src 'none'" in response.headers["content-security-policy"]
        web.send('{"id":"1","simulations":1}')
        assert "rootInfo" in web.recv(PATIENCE)
    assert "a secret of the server" in caplog.text


def test_a_network_that_fails_is_an_error_of_its_queries_alone(plain: str) -> None:
    class Fails:
        def evaluate_batch(self, observations: Any) -> Any:
            raise ValueError("no answer today")

    model = open_model("uniform:30", "connect_four", 30)
    with site_of({"main": model}) as address, connect(f"ws://{address}/ws") as web:
        before = model.player.evaluator
        model.engine.load("main", Fails())
        response = httpx.post(f"http://{address}/query", json={"id": "1"})
        assert response.status_code == 400
        assert "no answer today" in response.json()["error"]
        assert "Traceback" not in response.text
        web.send('{"id":"1"}')
        assert "no answer today" in json.loads(web.recv(PATIENCE))["error"]
        model.engine.load("main", before)
        web.send('{"id":"1"}')
        assert "rootInfo" in web.recv(PATIENCE)


def test_more_clients_than_the_shells_limit_of_files_are_served() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))}
    with process("uniform:2", "--game", "pig", **limits) as (address, _), ExitStack() as stack:
        clients = [stack.enter_context(connected(address)) for _ in range(100)]
        for client in clients:
            client.sendall(request(address))
        for client in clients:
            assert client.recv(12) == b"HTTP/1.1 200"


def test_a_connection_beyond_the_most_is_refused_and_those_there_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 3)
    with serving("pig") as address, ExitStack() as stack:
        clients = [stack.enter_context(connect(f"ws://{address}/ws")) for _ in range(3)]
        with pytest.raises((OSError, EOFError, httpx.HTTPError)):
            httpx.get(f"http://{address}/health")
        for client in clients:
            client.send('{"id":"1","simulations":1}')
            assert "rootInfo" in client.recv(PATIENCE)


# What watches the process ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' promtool is not installed")
def test_prometheus_takes_the_metrics(plain: str) -> None:
    httpx.post(f"http://{plain}/query", json={"id": "1"})
    httpx.post(f"http://{plain}/query", json={"id": 7})
    with serving("pig") as address:
        texts = [httpx.get(f"http://{one}/metrics").text for one in (plain, address)]
    for text in texts:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
