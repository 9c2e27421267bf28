"""az-serve bears clients that mean ill: they cost it little memory, no thread, and nobody else an answer."""

import asyncio
import contextlib
import json
import resource
import shutil
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
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
from fuzz_lines import memory_mb
from running import assert_soon, ended
from served import process, running, serving, site_of, upgrade
from talks import PATIENCE

TOKEN = "a token of the tests"
JSON = "Content-Type: application/json"


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


def frame(opcode: int, data: bytes, last: bool = True) -> bytes:
    """A frame of a client, masked with zeros."""
    length = len(data)
    size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack("!H", length)
    return bytes([opcode | (0x80 if last else 0)]) + size + bytes(4) + data


def request(address: str, line: str = "GET /health HTTP/1.1", *more: str, body: str = "") -> bytes:
    return "\r\n".join([line, f"Host: {address}", "Connection: close", *more, "", body]).encode()


# Memory ---------------------------------------------------------------------------------------------------------------

# Searches of half a minute in small trees.
LONG = b'{"id":"1","simulations":10000000,"moves":"a1 b1 c1 a2 c2 b2","analyzeTurns":[0,1,2,3,4,5,6]}'
FLOODS = {
    "empty fragments": (frame(1, b"", last=False), frame(0, b"", last=False)),
    "fragments": (frame(1, b"", last=False), frame(0, b" ", last=False)),
    "pings": (b"", frame(9, bytes(125))),
    "requests": (None, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_its_connection_and_costs_no_memory(name: str) -> None:
    begin, flood = FLOODS[name]
    with process("uniform:2", "--game", "tic_tac_toe") as (address, server_process):
        if begin is None:
            line = request(address, "POST /query HTTP/1.1", JSON, f"Content-Length: {len(LONG)}")
            client = connected(address)
            client.sendall(line.replace(b"Connection: close\r\n", b"") + LONG)
        else:
            client = upgraded(address, small=True)
            client.sendall(begin)
        before = memory_mb(server_process.pid)
        with client, pytest.raises(ConnectionError):  # noqa: PT012
            while True:
                client.sendall(flood * 1_000)
        assert memory_mb(server_process.pid) - before < 12
        assert httpx.get(f"http://{address}/health").status_code == 200


def test_a_websocket_is_read_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "H11Protocol", Mock())
    connection = server._Connection(set(), memoryview(bytearray(256 * 1024)), {})
    assert len(connection.get_buffer(-1)) == 256 * 1024
    connection.set_protocol(Mock())
    assert len(connection.get_buffer(-1)) <= 16 * 1024  # each message of a read waits as a dict until its turn


def test_reports_and_answers_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> None:
        box, number = ResponseQueue(asyncio.get_running_loop()), 0
        while not box.overflown:
            box.put(Response("{}", search=(str(number := number + 1), 0), is_report=True))
        assert number <= 10_001
        box = ResponseQueue(asyncio.get_running_loop())
        for text in ("old", "new"):  # of the reports of a search the newest waits, and none with its answer
            for turn in (0, 1, 2):
                box.put(Response(f"{turn} {text}", search=("same", turn), is_report=True))
        box.put(Response("1 answer", search=("same", 1)))
        assert [box.get().line for _ in range(3)] == ["1 answer", "0 new", "2 new"]
        assert box.is_empty
        monkeypatch.setattr(response_queue, "_MOST_BYTES", 1_000)
        box = ResponseQueue(asyncio.get_running_loop())
        for _ in range(100):  # what was read, and a report that its answer replaced, waits no more
            box.put(Response("x" * 900))
            box.get()
            box.put(Response("x" * 900, search=("2", 0), is_report=True))
            box.put(Response("x" * 900, search=("2", 0)))
            box.get()
        box.put(Response("x" * 900))
        assert not box.overflown
        box.put(Response("x" * 900))
        assert box.overflown

    asyncio.run(fill())


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
        assert "read answers too slowly" in last["error"]
        assert response.status_code == (200 if answers else 503)
    assert "error" in last or len(answers) == 8
    assert all("rootInfo" in answer for answer in answers)
    assert "error" in last or most > 10  # no answer has 10 bytes


def test_answers_are_read_while_their_query_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({"main": open_model("uniform:2", "pig", 2)})
    put, read = threading.Semaphore(0), ResponseQueue.get

    def slowly(self: Session, _: Any) -> None:
        for number in range(5):
            site._clients[self].put(Response(f'{{"turn":{number}}}', search=("1", number)))
            assert put.acquire(timeout=PATIENCE)

    def get(self: ResponseQueue) -> Response:
        put.release()
        return read(self)

    monkeypatch.setattr(Session, "take", slowly)
    monkeypatch.setattr(ResponseQueue, "get", get)
    with running(site) as address:
        response = httpx.post(f"http://{address}/query", json={"analyzeTurns": [0, 1]}, timeout=2 * PATIENCE)
    assert [json.loads(line)["turn"] for line in response.text.splitlines()] == [*range(5)]


def test_a_post_whose_client_left_counts_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    most, closed, said = 5, set[Session](), list[Response]()
    take, close, goes_on = Session.take, Session.close, threading.Event()

    def waits(self: Session, message: Any) -> None:
        assert goes_on.wait(PATIENCE)
        take(self, message)

    def left(self: Session) -> None:
        closed.add(self)
        close(self)

    monkeypatch.setattr(Session, "take", waits)
    monkeypatch.setattr(Session, "close", left)
    monkeypatch.setattr(ResponseQueue, "put", lambda _, response: said.append(response))
    query = '{"id":"1","action":"query_version"}'
    with serving("pig", Bounds(posts=most)) as address, ExitStack() as stack:
        stack.callback(goes_on.set)
        post = request(address, "POST /query HTTP/1.1", JSON, f"Content-Length: {len(query)}", body=query)
        clients = [connected(address) for _ in range(most)]
        for client in clients:
            client.sendall(post)
        taken = f'azpy_queries_total{{transport="post"}} {most}'
        assert_soon(lambda: taken in httpx.get(f"http://{address}/metrics").text)
        for client in clients:
            client.close()
        assert_soon(lambda: len(closed) == most)
        for _ in range(20):  # meanwhile a POST that ends would end
            assert httpx.post(f"http://{address}/query", json={"id": "1"}).status_code == 429
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


@pytest.mark.parametrize("before", ["", "GET /health HTTP/1.1\r\nHost: {0}\r\n\r\n"])
@pytest.mark.parametrize("head", ["", "GET /health HTTP/1.1\r\nHost: {0}\r\nX: "])
def test_a_head_that_does_not_end_ends_the_connection(before: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first request of a connection, and of a further one."""
    monkeypatch.setattr(server, "_KEEP_ALIVE", 1)  # a connection on which nothing comes after an answer
    with serving("pig") as address, connected(address) as slow:
        if before:
            slow.sendall(before.format(address).encode())
            assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")
        with monkeypatch.context() as hurried, contextlib.suppress(ConnectionError):
            hurried.setattr(server, "_HEAD_SECONDS", 0.2)
            slow.sendall(head.format(address).encode())
            while slow.recv(65536):
                pass
        assert httpx.get(f"http://{address}/health").status_code == 200


def test_a_client_that_reads_slowly_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "H11Protocol", Mock())
    connection, transport, began = server._Connection(set(), memoryview(b""), {}), Mock(), time.monotonic()
    connection.connection_made(transport)
    with connection.request():  # its head is there
        for seconds in range(211):  # it takes a byte each 20 seconds, the last one after 180
            transport.get_write_buffer_size.return_value = 1_000 - min(seconds, 199) // 20
            connection.end_if_late(began + seconds)
        transport.abort.assert_not_called()
        connection.end_if_late(began + 211)
        transport.abort.assert_called_once()


@pytest.mark.parametrize("is_websocket", [True, False])
def test_a_client_that_reads_nothing_ends(is_websocket: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_STALLED_SECONDS", 0.3)
    model = open_model("uniform:30", "go(size=19)", 30)
    with site_of({"main": model}) as address:
        plain = request(address, "GET /metrics HTTP/1.1").replace(b"Connection: close\r\n", b"")
        client = (upgraded if is_websocket else connected)(address, small=True)
        client.sendall(frame(1, b'{"id":"long","simulations":10000000}') if is_websocket else plain)
        with client, pytest.raises(ConnectionError):  # noqa: PT012
            while True:
                client.sendall((frame(1, b'{"id":"1","action":"show"}') if is_websocket else plain) * 100)
        assert_soon(lambda: "azpy_connections 0" in httpx.get(f"http://{address}/metrics").text)
        assert_soon(lambda: model.engine.stats["open"] == 0)


def test_bad_clients_are_no_errors_and_short_in_the_log() -> None:
    query = b'{"id":"1","simulations":10000000,"reportDuringSearchEvery":0.05}'
    with process("uniform:2", "--game", "pig") as (address, running):
        head = f"POST /query HTTP/1.1\r\nHost: {address}\r\n{JSON}\r\n".encode()
        for raw in (
            head + b"Content-Length: 99\r\n\r\n{",
            head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            head.replace(b"json", b"text") + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            head + b"Content-Length: %d\r\n\r\n" % len(query) + query,
            upgrade(address),
            upgrade(address) + frame(1, query),
            upgrade(address) + frame(1, b"{", last=False),
            upgrade(address) + b"\x81",
        ):
            with connected(address) as client:
                client.sendall(raw)
                if b"Upgrade" in raw or query in raw:
                    assert client.recv(1) == b"H"
        for cut in range(20):  # frames before the handshake ended are answered or refused
            with connected(address) as client:
                raw = upgrade(address) + frame(1, b'{"id":"1","simulations":1}') * 2
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(raw[: len(raw) * cut // 20])
                client.sendall(raw[len(raw) * cut // 20 :])
                assert client.recv(9) == b"HTTP/1.1 "
        for more in (["X: " + "x" * 9_000], [f"X{one}: y" for one in range(200)], ["Transfer-Encoding: x"]):
            with connected(address) as client:  # headers that websockets does not have
                client.sendall(upgrade(address, *more))
                client.shutdown(socket.SHUT_WR)
                assert b" 101 " not in client.recv(65536)
        with upgraded(address) as client:
            client.sendall(frame(1, b"\xff"))
            assert client.recv(1) == b"\x88"
        far = "y" * 9_000
        httpx.request("X" * 9_000, f"http://{address}/{'z' * 3_000}", headers={"x-forwarded-for": far})
        assert_soon(lambda: 'azpy_open_searches{model="main"} 0' in httpx.get(f"http://{address}/metrics").text)
        running.send_signal(signal.SIGTERM)
        log = running.communicate(timeout=PATIENCE)[1]
        assert '"level": "error"' not in log, log
        assert "Traceback" not in log
        assert max(map(len, log.splitlines())) < 500


def test_bytes_that_are_not_utf8_are_refused(plain: str) -> None:
    with connect(f"ws://{plain}/ws") as web:
        web.send(b'{"id":"\xff"}')
        assert json.loads(web.recv(PATIENCE)) == {"error": "expected UTF-8"}
        web.send(b'{"id":"1","simulations":1}')
        assert "rootInfo" in web.recv(PATIENCE)
    with upgraded(plain) as client:  # a letter that two fragments share, and one that does not end
        client.sendall(frame(1, b'{"id":"\xc3', last=False) + frame(0, b'\xa9"}'))
        assert b"\\u00e9" in client.recv(65536)
        client.sendall(frame(1, b"\xc3"))
        assert client.recv(65536)[2:4] == struct.pack("!H", 1007)


# Failures of the server -----------------------------------------------------------------------------------------------


def test_a_server_failure_is_reported_without_its_trace(
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


def test_more_clients_than_the_shells_limit_of_files_are_served() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))}
    with process("uniform:2", "--game", "pig", **limits) as (address, _), ExitStack() as stack:
        clients = [stack.enter_context(connected(address)) for _ in range(100)]
        for client in clients:
            client.sendall(request(address))
        for client in clients:
            assert client.recv(12) == b"HTTP/1.1 200"


def test_a_connection_beyond_the_most_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert ended(["promtool", "check", "metrics"], text) == (0, "", "")
