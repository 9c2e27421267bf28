"""The process that serves: sockets, their time limits, signals, and the log."""

import asyncio
import json
import logging
import os
import socket
import time
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from azpy.errors import SettingsError
from azpy.system import allow_open_files
from azpy.web.app import LONGEST_MESSAGE, Site
from azpy.web.page import POLICY

_HEAD_SECONDS = 10.0  # from a connection, or from the first byte of a further request, to the end of its headers
_KEEP_ALIVE = 15  # seconds without a request
_PING = 20.0  # seconds between a WebSocket's pings, and for their answers
_MOST_CONNECTIONS = 4_000
_MOST_AHEAD = 64 * 1024  # bytes of further requests, before the answer to the one before
_MOST_FRAGMENTS = 1_000  # of a message
_MOST_READ = 16 * 1024  # bytes of a WebSocket at a time: each message of them waits as a dict
_STALLED_SECONDS = 30.0  # that a client may read nothing of what waits for it
# Of every answer: they protect a browser.
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class _Protocol(H11Protocol):
    """HTTP with a time limit for the headers, and a bound for requests in advance, which uvicorn has none of."""

    _timer: asyncio.TimerHandle | None = None
    _ahead = 0  # bytes of further requests since the last one that was begun

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
            return
        self._begin()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        before = self.cycle
        waits = before is None or before.response_complete
        if waits and self._timer is None:
            self._begin()
        if before is not None and not waits and not before.more_body:
            self._ahead += len(data)
            if self._ahead > _MOST_AHEAD:
                self.transport.abort()
                return
        super().data_received(data)
        if self.cycle is not before or self.transport.get_protocol() is not self:
            self._end()

    def handle_events(self) -> None:
        """See uvicorn."""
        before = self.cycle
        super().handle_events()
        lengths = {b"content-length", b"transfer-encoding"}
        # A proxy may have counted the other length, so what follows may be no request (RFC 9112, 6.1).
        if self.cycle is not before and lengths <= {name for name, _ in self.headers}:
            self.headers.append((b"connection", b"close"))

    def on_response_complete(self) -> None:
        """See uvicorn."""
        self._ahead = 0
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """See uvicorn."""
        if self.cycle is not None and not self.cycle.response_complete:
            # The application must say no more: nothing can follow what is said here.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # the request was answered before its body came, which is no body
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _end(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


class _WebSocket(WebSocketsSansIOProtocol):
    """WebSockets that cost bounded memory, whatever a client sends and does not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self.transport.max_size = _MOST_READ  # type: ignore[attr-defined]  # of a read, in asyncio's own loop

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        super().data_received(data)
        # The head comes as a whole. websockets says nothing of one that is too long for it, and waits for ever.
        if not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()

    def handle_cont(self, event: Frame) -> None:
        """See uvicorn."""
        if self.close_sent:
            return
        if len(self.frames) >= _MOST_FRAGMENTS:
            self.conn.fail(1009, f"more than {_MOST_FRAGMENTS} fragments")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """See uvicorn, which logs a trace for a text that is not UTF-8."""
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.frames = []
            self.conn.fail(1007, "expected UTF-8")
            self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """See uvicorn."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # for nobody: the client reads too slowly

    def handle_parser_exception(self) -> None:
        """See uvicorn."""
        if self.conn.close_sent is None:  # no handshake, so there is nothing to close
            self.transport.abort()
        else:
            super().handle_parser_exception()


class Server(uvicorn.Server):
    """Serves a site until SIGINT or SIGTERM, then drains it; a second signal ends the process at once.

    Args:
        site: what to serve.
        drain_seconds: for open searches; then they are answered with what is known.
    """

    def __init__(self, site: Site, drain_seconds: float = 30.0) -> None:
        self._site, self._drain_seconds = site, drain_seconds
        self._unread: dict[Any, tuple[int, float]] = {}  # of a connection: bytes that wait, and since when so many
        frames = " ".join(site.frames) or "'none'"  # who may show the page in a frame
        policy = f"{POLICY}; frame-ancestors {frames}"
        super().__init__(
            uvicorn.Config(
                site.app,
                http=_Protocol,
                ws=_WebSocket,
                ws_max_size=LONGEST_MESSAGE,
                ws_per_message_deflate=False,  # 256 KiB of a read can be a gigabyte of messages
                loop="asyncio",
                ws_ping_interval=_PING,
                ws_ping_timeout=_PING,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=2,
                log_config=None,
                server_header=False,
                headers=[("content-security-policy", policy), *_HEADERS.items()],
                lifespan="off",
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        allow_open_files(_MOST_CONNECTIONS + 256)  # and the files of models
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn."""
        if counter % 10 == 0:  # each second
            self._end_stalled()
        return await super().on_tick(counter)

    def _end_stalled(self) -> None:
        """Ends connections of clients that read nothing. What they were sent would wait for ever, closed or not."""
        before, now, self._unread = self._unread, time.monotonic(), {}
        for connection in list(self.server_state.connections):
            waiting = connection.transport.get_write_buffer_size()
            if not waiting:
                continue
            known, since = before.get(connection, (0, now))
            self._unread[connection] = known, since = waiting, since if waiting == known else now
            if now - since > _STALLED_SECONDS:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn. Until all searches were answered the server listens, so that `/ready` can say that it ends."""
        await self._site.drain(self._drain_seconds)
        await asyncio.sleep(0.1)  # the answers are on their way out
        await super().shutdown(sockets)


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        SettingsError: an address or a port that cannot be had.
    """
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
    """Has the log of the server written as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    # uvicorn says so of each WebSocket that is refused with a status.
    handler.addFilter(lambda record: "without completing handshake" not in record.getMessage())
    for name in ("azpy.web", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "azpy.web" else logging.WARNING)
    logging.getLogger("uvicorn.access").setLevel(logging.INFO)
