"""A server of the tests, in this process or in one of its own, on a free port of the loopback."""

import random
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import azpy
from azpy.serving.models import Player, PlayerEngine, open_engine, open_model
from azpy.web.app import Bounds, Site
from azpy.web.server import Server, listening
from running import az
from talks import PATIENCE


def site_of(
    models: dict[str, PlayerEngine], bounds: Bounds | None = None, port: int = 0, **options: Any
) -> AbstractContextManager[str]:
    """A site of these players in this process; gives its address, such as 127.0.0.1:8123."""
    return running(Site(models, bounds=bounds, **options), port)


def hiding(game: str) -> PlayerEngine:
    """A player of a game that hides something, which draws from all actions alike."""
    player = Player("even", azpy.make_game(game), azpy.UniformEvaluator(), 1, {}, has_model=False)
    return PlayerEngine(player, open_engine(player))


@contextmanager
def running(site: Site, port: int = 0) -> Iterator[str]:
    """A server of this site in this process; gives its address."""
    server, place = Server(site, drain_seconds=PATIENCE), listening("127.0.0.1", port)
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    try:
        yield f"127.0.0.1:{place.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def serving(game: str, bounds: Bounds | None = None, **options: Any) -> AbstractContextManager[str]:
    """A site with one player of a game, without a network."""
    return site_of({"main": open_model("uniform:30", game, 30)}, bounds, **options)


def free_port() -> int:
    """A port for a server that goes and comes again, below those that the system gives to any socket meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.socket() as tried:
            tried.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


@contextmanager
def process(*arguments: str, **more: Any) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """az-serve as users start it; gives its address and the process. A long log needs a file as `stderr`."""
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    server: subprocess.Popen[str] = subprocess.Popen(az("serve", "--port", "0", *arguments), **options)
    assert server.stdout is not None
    try:
        line = server.stdout.readline().strip()
        assert line.startswith("http://"), server.communicate(timeout=PATIENCE)
        yield line.removeprefix("http://").rstrip("/"), server
    finally:
        server.kill()
        server.wait()


def upgrade(address: str, *more: str) -> bytes:
    """A request for a WebSocket, with more headers."""
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    lines = ["GET /ws HTTP/1.1", f"Host: {address}", "Upgrade: websocket", "Connection: Upgrade", key]
    return "\r\n".join([*lines, "Sec-WebSocket-Version: 13", *more, "", ""]).encode()
