"""az-serve goes on after any bytes and any message, answers what is due, and needs no more memory for them.

Each message has one answer besides its reports. `fuzz_sockets` sends messages over WebSockets and asks a known question
after each chunk. `fuzz_requests` sends bytes as HTTP and as frames. Both check that the server goes on, that its memory
does not grow, and that its log has no failure.
"""

import contextlib
import json
import os
import random
import socket
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import pytest
from websockets.sync.client import ClientConnection, connect

from azpy._core import Message
from azpy.web.app import LONGEST_MESSAGE
from fuzz_lines import memory_mb, mixed
from served import process, upgrade
from talks import PATIENCE
from transcripts import sent

MANY_MESSAGES = int(os.environ.get("AZPY_FUZZ_MESSAGES", "1000000"))  # of the slow test
CHUNK = 100  # messages between two questions
CHUNKS = 10  # of a connection
MOST_GROWTH = 60  # MB, after the first tenth
ARGUMENTS = ["uniform:2", "--game", "connect_four", "--max-seconds", "2"]
METHODS = ["GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "TRACE", "X" * 99, "g\x00t", "\u00e9"]
PATHS = ["/", "/query", "/health", "/ready", "/metrics", "/about", "/games", "/games/1", "/login", "/logout", "/ws"]
PATHS += ["/board/..%2f..%2fapp.py", "/board/../app.py", "/board/%00", "//", "/%", "/%ff"]
PATHS += ["http://evil.example/", "/?a=%", "*"]
HEADERS = ["Content-Length: 0", "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999"]
HEADERS += ["Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Expect: 100-continue", "Connection: close"]
HEADERS += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x"]
HEADERS += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Content-Type: application/json", "Origin: null"]
HEADERS += ["Range: bytes=0-", "Cookie: a[=;;=azpy_session", "Authorization: Bearer \x01", "X: " + "y" * 9000]
HEADERS += ["X-Forwarded-For: " + "1," * 99, "Host: evil"]
BODIES = ["", "{}", "{", '{"id":"1","simulations":1}', "5\r\n{}{}{\r\n0\r\n\r\n", "0\r\n\r\n", "\xff"]
BODIES.append("ffffffffffffffffff\r\n")


# Messages of a conversation with one player.
MESSAGES = [line.encode() for line in sent("json", "connect_four") + sent("az-serve") if line.startswith("{")]
NOISE: list[bytes] = [b"[" * 60_000, b" " * 65_000, b'{"id":"' + b"x" * 60_000 + b'"}']


def message(rng: random.Random) -> str | bytes:
    """A message of the transcripts, often with mistakes, or noise; as a text or as bytes."""
    found = rng.choice(NOISE) if rng.random() < 0.005 else next(mixed(MESSAGES, rng))
    with contextlib.suppress(UnicodeDecodeError):
        return found.decode() if rng.random() < 0.8 else found
    return found


def request(rng: random.Random, address: str) -> bytes:
    """Bytes that look like one or a few requests."""
    found = b""
    for _ in range(rng.randrange(1, 4)):
        method, version = rng.choice(METHODS[:3] * 3 + METHODS), rng.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "x"])
        lines = [f"{method} {rng.choice(PATHS)} {version}"]
        lines += [f"Host: {address}"] * (rng.random() < 0.9)
        lines += [rng.choice(HEADERS) for _ in range(rng.randrange(6))]
        found += "\r\n".join([*lines, "", rng.choice(BODIES)]).encode("latin-1", "replace")
    if rng.random() < 0.3:
        raw = bytearray(found)
        for _ in range(rng.randrange(1, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        found = bytes(raw)
    return found if rng.random() < 0.9 else rng.randbytes(rng.randrange(1, 400))


def frames(rng: random.Random) -> bytes:
    """Bytes that look like frames: fragments, reserved bits, control frames, wrong lengths, no mask."""
    found = b""
    for _ in range(rng.randrange(1, 8)):
        data = rng.choice(
            [b"", b'{"id":"1","simulations":1}', b"\xff", bytes(125), bytes(126), b"\x03\xe8", b"x" * 3000]
        )
        first = rng.choice([0x81, 0x82, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8A, 0x83, 0xC1, 0x09, rng.randrange(256)])
        mask = 0x80 if rng.random() < 0.95 else 0
        size = bytes([mask | len(data)]) if len(data) < 126 else bytes([mask | 126]) + struct.pack("!H", len(data))
        if rng.random() < 0.05:
            size = bytes([mask | 127]) + struct.pack("!Q", rng.choice([0, 70_000, 1 << 62, (1 << 64) - 1]))
        found += bytes([first]) + size + (bytes(4) if mask else b"") + data
    return found


def asks_nothing(sent: str | bytes) -> bool:
    """Whether a message is a query without a turn, which has no answer."""
    try:
        return bool(Message(sent).get("analyzeTurns") == [])
    except ValueError:
        return False


def ask(web: ClientConnection, messages: list[str | bytes], known: str) -> None:
    """Sends messages over a WebSocket, each of which is answered, and then a question, whose id none has by chance."""
    due = 0
    for one in messages:
        if len(one if isinstance(one, bytes) else one.encode()) <= LONGEST_MESSAGE:
            web.send(one)
            due += not asks_nothing(one)
    web.send(json.dumps({"id": known, "moves": ["4"], "simulations": 4}))
    came, is_known = 0, False
    while not is_known:
        answer = json.loads(web.recv(PATIENCE))
        assert isinstance(answer, dict)
        assert "the server failed" not in answer.get("error", ""), answer
        came += not answer.get("isDuringSearch")
        is_known = answer.get("id") == known
    root = answer["rootInfo"]
    assert root["visits"] == 4 or root["stop"] == "seconds", answer
    # Each message has one answer but for searches that go on; they are answered in any order.
    web.send('{"id":"end","action":"terminate_all"}')
    while came < due + 2:
        came += not json.loads(web.recv(PATIENCE)).get("isDuringSearch")


def fuzz_sockets(count: int, seed: int) -> None:
    """Sends so many messages from two connections at once."""
    with tempfile.TemporaryFile("w+") as log, process(*ARGUMENTS, stderr=log) as (address, running):
        sizes: list[float] = []

        def client(number: int) -> None:
            rng = random.Random(seed * 100 + number)
            for _ in range(max(1, count // 2 // CHUNK // CHUNKS)):
                with connect(f"ws://{address}/ws", compression=None, max_queue=None, open_timeout=PATIENCE) as web:
                    for chunk in range(CHUNKS):
                        ask(web, [message(rng) for _ in range(CHUNK)], f"question {chunk}")
                if number == 0:
                    sizes.append(memory_mb(running.pid))

        with ThreadPoolExecutor() as pool:
            list(pool.map(client, range(2)))  # raises what a client raised
        assert sizes[-1] - sizes[len(sizes) // 10] < MOST_GROWTH, sizes[:: max(1, len(sizes) // 20)]
        end(running, log)


def fuzz_requests(count: int, seed: int) -> None:
    """Sends so many times bytes that are nearly HTTP, or nearly frames, and checks now and then that queries work."""
    rng = random.Random(seed)
    with tempfile.TemporaryFile("w+") as log, process(*ARGUMENTS, stderr=log) as (address, running):
        host, _, port = address.partition(":")
        sizes: list[float] = []
        for number in range(count):
            with socket.create_connection((host, int(port)), PATIENCE) as client:
                raw = request(rng, address)
                if rng.random() < 0.3:
                    raw = upgrade(address) + frames(rng)
                try:
                    client.sendall(raw)
                    client.shutdown(socket.SHUT_WR)
                    if rng.random() < 0.5:
                        client.settimeout(0.01)
                        client.recv(4096)
                except OSError:  # it was closed, or nothing is due yet
                    pass
            if number % 100 == 99:
                with connect(f"ws://{address}/ws", open_timeout=PATIENCE) as web:
                    web.send('{"id":"known","moves":["4"],"simulations":4}')
                    assert json.loads(web.recv(PATIENCE))["rootInfo"]["visits"] == 4
                sizes.append(memory_mb(running.pid))
        assert sizes[-1] - sizes[len(sizes) // 10] < MOST_GROWTH, sizes
        end(running, log)


def end(running: subprocess.Popen[str], log: IO[str]) -> None:
    """Ends the server, and checks what it logged."""
    running.terminate()
    assert running.wait(PATIENCE) == 0
    log.seek(0)
    for line in log:
        assert '"level": "error"' not in line, line[:3000]
        assert "Traceback" not in line, line[:3000]


@pytest.mark.parametrize(
    ("fuzz", "count", "seed"),
    [
        (fuzz_sockets, 2_000, 1),
        (fuzz_requests, 400, 1),
        pytest.param(fuzz_sockets, MANY_MESSAGES, 2, marks=pytest.mark.slow),
        pytest.param(fuzz_requests, MANY_MESSAGES // 20, 2, marks=pytest.mark.slow),
    ],
)
def test_random_messages_do_not_end_the_server(fuzz: Any, count: int, seed: int) -> None:
    fuzz(count, seed)
