"""The process that serves: sockets, their time limits, signals, and the log."""

import asyncio
import json
import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from azpy.errors import SettingsError
from azpy.system import allow_open_files
from azpy.web.app import LONGEST_MESSAGE, Site
from azpy.web.page import POLICY

_HEAD_SECONDS = 10.0  # from a connection, or from the first byte of a further request, to the end of its headers
_KEEP_ALIVE = 15  # seconds without a request
_PING = 20.0  # seconds between a WebSocket's pings, and for their answers
_MOST_CONNECTIONS = 4_000
_MOST_UNTAKEN = 256 * 1024  # bytes that may come in a request or a WebSocket before the application takes any
_MOST_UNREAD = 32 << 20  # unsent bytes for a client that keeps sending
_MOST_READ = 256 * 1024  # bytes at a time
_MOST_READ_OF_WEBSOCKET = 16 * 1024  # each message in them waits as a dict
_STALLED_SECONDS = 30.0  # seconds that a client may read nothing while answers wait
# Of every answer: they protect a browser.
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class _Connection(asyncio.BufferedProtocol):
    """A connection with bounded memory and time, even if its client sends a flood or does not read.

    It stands between asyncio and uvicorn: a protocol for asyncio, and the transport of uvicorn's own protocol, which it
    knows as an `asyncio.Protocol` alone. `Server.answer` tells it when the application takes a request or a message.
    """

    def __init__(self, opened: set["_Connection"], buffer: memoryview, given: dict[str, Any]) -> None:
        self._opened, self._buffer = opened, buffer
        self._protocol: asyncio.Protocol = H11Protocol(**given | {"app_state": {"connection": self}})
        self._head_since: float | None = time.monotonic()  # when the headers began to arrive
        self._untaken = 0  # bytes received since the application last took any
        self._unread, self._unread_since = 0, 0.0  # unsent bytes for the client, and since when they are too many
        self._requests = 0  # that the application answers
        self.lost = asyncio.Event()

    def __getattr__(self, name: str) -> Any:  # the transport, as uvicorn sees it
        return getattr(self._transport, name)

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        """Hand the connection to another protocol: uvicorn's WebSocket."""
        self._protocol, self._buffer = protocol, self._buffer[:_MOST_READ_OF_WEBSOCKET]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        self._opened.add(self)
        self._protocol.connection_made(self)  # type: ignore[arg-type]
        if len(self._opened) > _MOST_CONNECTIONS:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio."""
        self._opened.discard(self)
        self._protocol.connection_lost(error)
        self.lost.set()

    def get_buffer(self, _: int) -> memoryview:
        """See asyncio. One buffer serves all connections: what was read is copied at once."""
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        """See asyncio."""
        self._untaken += count if self._requests else 0
        if self._untaken > _MOST_UNTAKEN or self._transport.get_write_buffer_size() > _MOST_UNREAD:
            self._transport.abort()
            return
        if not self._requests and self._head_since is None:
            self._head_since = time.monotonic()
        try:
            self._protocol.data_received(bytes(self._buffer[:count]))
        except (h11.LocalProtocolError, AssertionError):  # uvicorn refuses what came where it cannot say so any more
            self._transport.close()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio."""
        self._protocol.resume_writing()

    @contextmanager
    def request(self) -> Iterator[None]:
        """While the application answers a request, or has a WebSocket open."""
        self._requests += 1
        self._head_since = None
        self.take()
        try:
            yield
        finally:
            self._requests -= 1

    def take(self) -> None:
        """The application took what came."""
        self._untaken = 0

    def end_if_late(self, now: float) -> None:
        """End the connection of a client that does not finish its headers, or does not read its answers."""
        unread = self._transport.get_write_buffer_size()
        if unread != self._unread or not unread:
            self._unread, self._unread_since = unread, now
        is_slow = self._head_since is not None and now - self._head_since > _HEAD_SECONDS
        if is_slow or now - self._unread_since > _STALLED_SECONDS:
            self._transport.abort()


class Server(uvicorn.Server):
    """Serves a site until SIGINT or SIGTERM, then drains it; a second signal ends the process at once.

    Args:
        site: what to serve.
        drain_seconds: for open searches; then they are answered with what is known.
    """

    def __init__(self, site: Site, drain_seconds: float = 30.0) -> None:
        self._site, self._drain_seconds = site, drain_seconds
        self._connections, self._buffer = set[_Connection](), memoryview(bytearray(_MOST_READ))
        frames = " ".join(site.frames) or "'none'"  # who may show the page in a frame
        policy = f"{POLICY}; frame-ancestors {frames}"
        super().__init__(
            uvicorn.Config(
                self.answer,
                interface="asgi3",
                http=cast("Any", lambda **given: _Connection(self._connections, self._buffer, given)),
                ws=WebSocketsSansIOProtocol,
                ws_max_size=LONGEST_MESSAGE,
                ws_per_message_deflate=False,  # x
                loop="asyncio",
                ws_ping_interval=_PING,
                ws_ping_timeout=_PING,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=2,
                callback_notify=self._end_late,
                timeout_notify=0,  # each second
                log_config=None,
                server_header=False,
                headers=[("content-security-policy", policy), *_HEADERS.items()],
                lifespan="off",
            )
        )

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the site answer, and its connection know what was taken; see ASGI."""
        connection: _Connection = scope["state"].pop("connection")
        # A proxy may use the other length, so the following bytes may not be a request (RFC 9112, 6.1).
        has_two_lengths = {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}

        async def take() -> Message:
            message = await receive()
            connection.take()
            return message

        async def say(message: Message) -> None:
            if scope["type"] == "http" and connection.is_closing():
                await connection.lost.wait()  # uvicorn refused the request, and nothing can follow
            if message["type"] == "http.response.start":
                headers = message["headers"]
                if all(name != b"cache-control" for name, _ in headers):
                    headers = [*headers, (b"cache-control", b"no-store")]
                message["headers"] = [*headers, *[(b"connection", b"close")] * has_two_lengths]
            await send(message)

        with connection.request():
            await self._site.app(scope, take, say)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    async def _end_late(self) -> None:
        now = time.monotonic()
        for connection in list(self._connections):
            connection.end_if_late(now)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn. Until all searches were answered the server listens, so that `/ready` can say that it ends."""
        await self._site.drain(self._drain_seconds)
        await asyncio.sleep(0.1)  # the answers are on their way out
        await super().shutdown(sockets)


def listening(address: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        SettingsError: the address or port is not available.
    """
    allow_open_files(_MOST_CONNECTIONS + 256)  # and the files of models
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=2048)
    except OSError as error:
        problem = f"cannot listen at {address}, port {port}: {error.strerror}"
        raise SettingsError(f"{problem}; give another --port") from error


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        known: dict[str, Any] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        if record.name == "uvicorn.access" and isinstance(record.args, tuple):  # of a plain request
            client, method, path, _, status = map(str, record.args)
            known |= {"event": "request", "method": method[:20], "path": path.partition("?")[0][:100]}
            return json.dumps(known | {"status": int(status), "client": client[:100]})
        known["event"] = record.getMessage()
        usual = logging.makeLogRecord({}).__dict__
        more = {name: value for name, value in record.__dict__.items() if name not in usual and name != "message"}
        if record.exc_info:
            more["trace"] = self.formatException(record.exc_info)
        return json.dumps({**known, **more}, default=str)


def log_to_stderr() -> None:
    """Have the log of the server written as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    # uvicorn logs these for each WebSocket refused with a status, and for each text that is not UTF-8.
    told = re.compile("without completing handshake|Invalid UTF-8")
    handler.addFilter(lambda record: not told.search(record.getMessage()))
    for name in ("azpy.web", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "azpy.web" else logging.WARNING)
    logging.getLogger("uvicorn.access").setLevel(logging.INFO)
