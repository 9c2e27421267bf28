"""The application: queries by POST and WebSocket, the page, and what watches the process.

An object is the same on stdin, in a POST and in a WebSocket (docs/reference/protocols.md). Each WebSocket and each POST
is one client. `Site` is all that one process serves.
"""

import asyncio
import hashlib
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

import azpy
from azpy import _core
from azpy.errors import AzpyError
from azpy.games.notations import result_of
from azpy.runs.exports import end_of, game_as_dict
from azpy.runs.reader import StoredRun
from azpy.serving import queries
from azpy.serving.limits import CLIENT_LIMITS, Limits
from azpy.serving.models import PlayerEngine
from azpy.web.guard import COOKIE, Guard, checked_origin
from azpy.web.metrics import Metrics
from azpy.web.page import TYPES, assets
from azpy.web.response_queue import ResponseQueue

LONGEST_MESSAGE = 64 * 1024  # bytes of a message of a WebSocket
_LOGIN_BYTES = 4 * 1024  # of the body of a login
_SOON = 16 * 1024  # bytes of JSON that the loop reads itself
_SIZES, _THREADS = 11, 2  # sizes of messages, up to 1 MiB, and threads for the messages of one size
_SENT_SECONDS = 5.0  # for answers on their way when the process ends
_MOST_LISTED = 200  # games of an iteration
_FAILED = "the server failed; its log says why"
_ENDS = "the server is stopping and takes no more queries"
_UNREAD = (
    "the client read answers too slowly, so the server dropped the rest: read faster, or ask for fewer turns at once"
)
_LATER = {"retry-after": "1"}
_LOG = logging.getLogger("azpy.web")


@dataclass(frozen=True)
class Bounds:
    """Limits of the server, besides those of each client."""

    body: int = 1 << 20  # bytes of a POST
    body_seconds: float = 10.0  # from the headers of a POST to its end
    idle_seconds: float = 1800.0  # of a WebSocket without a message; its games end with it
    websockets: int = 2_000
    posts: int = 64  # of one address at once
    client: Limits = CLIENT_LIMITS


class Site:
    """All that one process serves.

    Args:
        models: players with their engines, by name; the first one answers where none is named.
        hosts: names of this server besides those of the loopback.
        origins: of pages on other servers that may ask.
        frames: origins of pages that may show the page in a frame.
        token: what clients must show; None for no token.
        bounds: limits of the server.
        run: the run whose games the page lists.
        renews: whether a client may have the newest model loaded, with the action `renew`.

    Attributes:
        app: the ASGI application.
        frames: as given.
        routes: what it answers.
        ready: whether queries are taken.

    Raises:
        SettingsError: an origin that no browser sends.
    """

    def __init__(
        self,
        models: Mapping[str, PlayerEngine],
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        frames: Iterable[str] = (),
        token: str | None = None,
        bounds: Bounds | None = None,
        run: StoredRun | None = None,
        renews: bool = False,
    ) -> None:
        self.models, self.bounds, self.metrics = models, bounds or Bounds(), Metrics(models)
        self.ready, self._websockets = True, 0
        self.metrics.ready.set_function(lambda: self.ready)
        self.metrics.connections.set_function(lambda: self._websockets)
        self._run, self._renews, self._has_token = run, renews, token is not None
        self._clients: dict[queries.Session, ResponseQueue] = {}
        # A message with thousands of moves takes long, so each message waits for others of about its size alone.
        self._threads = [ThreadPoolExecutor(_THREADS, "azpy-messages") for _ in range(_SIZES)]
        self._loader = ThreadPoolExecutor(1, "azpy-renew")  # loading a model takes seconds, and no other message waits
        self.routes = [
            Route("/health", self._health),
            Route("/ready", self._is_ready),
            Route("/metrics", self._metrics),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/query", self._query, methods=["POST"]),
            WebSocketRoute("/ws", self._socket),
            Route("/", self._page, middleware=[Middleware(GZipMiddleware)]),
            Route("/board/{name}", self._page, middleware=[Middleware(GZipMiddleware)]),
            Route("/about", self._tell_about),
            Route("/games", self._games),
            Route("/games/{number}", self._games),
        ]
        self._answer = Starlette(routes=self.routes, exception_handlers={HTTPException: _wrong, Exception: _failed})
        self._posts: Counter[str] = Counter()  # open ones, by address
        self.frames = tuple(checked_origin("--frame-origin", origin) for origin in frames)
        without_token = self.metrics.refused.labels("token").inc
        self.app = self._guard = Guard(self._counted, hosts, origins, token, without_token)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Limit the open POSTs of an address, from their headers on, because their bodies wait in memory."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._answer(scope, receive, send)
            return
        address, most = (scope.get("client") or ("",))[0], self.bounds.posts
        if self._posts[address] >= most:
            said = f"{most} requests from this address are open, the most allowed: wait for an answer"
            await self.refused(429, "address", said, connection="close")(scope, receive, send)  # its body is not read
            return
        self._posts[address] += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._posts[address] -= 1
            if not self._posts[address]:
                del self._posts[address]

    async def drain(self, seconds: float) -> None:
        """Refuse new queries, and return once the open ones are answered: after `seconds` with partial results."""
        self.ready = False
        engines = [engine for model in self.models.values() for engine in model.engines]
        await asyncio.gather(*(asyncio.to_thread(engine.close, seconds=seconds) for engine in engines))
        await asyncio.gather(*(asyncio.to_thread(session.wait) for session in list(self._clients)))
        until = time.monotonic() + _SENT_SECONDS
        while any(not queue.is_empty for queue in self._clients.values()) and time.monotonic() < until:
            await asyncio.sleep(0.05)

    def reload(self) -> None:
        """Load the newest checkpoint of each player, in a thread of its own. A player that cannot be loaded stays."""

        def load() -> None:
            for name, model in self.models.items():
                try:
                    event = "loaded" if model.renew() else "kept"
                    _LOG.info(event, extra={"model": name, "player": model.player.name})
                except Exception as error:  # a missing folder, or any error of a model's runtime
                    _LOG.error("not loaded", extra={"model": name, "problem": str(error)})

        threading.Thread(target=load, name="azpy-reload", daemon=True).start()

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _is_ready(self, _: Request) -> Response:
        return PlainTextResponse("ready\n") if self.ready else PlainTextResponse("draining\n", 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def _tell_about(self, _: Request) -> Response:
        run = None if self._run is None else str(self._run.path)
        return JSONResponse({"version": azpy.__version__, "run": run, "renews": self._renews, "token": self._has_token})

    async def _games(self, request: Request) -> Response:
        if self._run is None:
            return self.refused(404, "query", "this server does not serve a run, so it has no games to show")
        number, iteration = request.path_params.get("number"), request.query_params.get("iteration")
        for name, given in (("number of a game", number), ("iteration", iteration)):
            if given is not None and not re.fullmatch("[0-9]{1,19}", given):  # int() takes no 5,000 digits
                return self.refused(400, "query", f"{name}: expected a whole number, got {given[:40]!r}")
        try:
            if number is not None:
                return JSONResponse(await asyncio.to_thread(_game, self._run, int(number)))
            chosen = None if iteration is None else int(iteration)
            return JSONResponse(await asyncio.to_thread(_listed, self._run, chosen))
        except AzpyError as error:
            return self.refused(404, "query", str(error))

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _ASSETS:
            raise HTTPException(404)
        headers = _KEPT | {"etag": _TAGS[name]}
        if _TAGS[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(_ASSETS[name], headers=headers, media_type=TYPES[name.rpartition(".")[2]])

    async def _login(self, request: Request) -> Response:
        found = await self._body(request, _LOGIN_BYTES)
        if isinstance(found, Response):
            return found
        token = found[0].get("token")
        session = self._guard.session(token) if isinstance(token, str) else None
        if session is None:
            return self.refused(401, "token", "the token is wrong")
        answer = JSONResponse({"success": True})
        _keep_session(answer, session, secure=request.url.scheme == "https")
        return answer

    async def _logout(self, request: Request) -> Response:
        self._guard.end_session(request.scope)
        answer = JSONResponse({"success": True})
        _keep_session(answer, "", max_age=0)
        return answer

    async def _body(self, request: Request, most: int) -> tuple[_core.Message, int] | Response:
        """The object of at most `most` bytes that a request holds, and its bytes; or the refusal."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return self.refused(415, "type", "expected Content-Type: application/json")
        data = bytearray()
        try:
            async with asyncio.timeout(self.bounds.body_seconds):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > most:
                        return self.refused(413, "size", f"expected at most {most} bytes", connection="close")
        except TimeoutError:
            said = f"the body did not arrive within {self.bounds.body_seconds:g} s"
            return self.refused(408, "slow", said, connection="close")
        except ClientDisconnect:
            return Response(status_code=400)  # the client has left
        try:
            # Reading a MiB can take 0.1 s, and a thread costs 0.1 ms.
            read, size = _core.Message, len(data)
            return read(bytes(data)) if size < _SOON else await self._in_thread(size, read, bytes(data)), size
        except ValueError as error:
            return self.refused(400, "json", str(error))

    def refused(self, status: int, reason: str, said: str, **headers: str) -> Response:
        """The answer to a request that is refused, and counted by its reason."""
        self.metrics.refused.labels(reason).inc()
        return JSONResponse({"error": said}, status, headers)

    async def _query(self, request: Request) -> Response:
        found = await self._body(request, self.bounds.body)
        if isinstance(found, Response):
            return found
        if not self.ready:
            return self.refused(503, "draining", _ENDS, **_LATER)
        self.metrics.queries.labels("post").inc()
        turns, is_long = (found[0].get(name) for name in ("analyzeTurns", "reportDuringSearchEvery"))
        answers = self._answers(request, *found)
        del found  # a search may take long, and a message much memory
        first = await anext(answers, None)
        several = isinstance(turns, list) and len(turns) > 1
        if first is None:  # no turn to analyze, or the client has left
            return self.refused(400, "query", "analyzeTurns is empty: name at least one turn")
        # A turn that cannot be searched is one line of several.
        fails = first.status != 200 and not (several and first.search is not None)
        if fails or not (several or is_long is not None):
            await answers.aclose()
            status = 503 if first.status != 200 and not self.ready else first.status
            if status != 200:
                self.metrics.refused.labels("full" if status == 503 else "query").inc()
            headers = _LATER if status == 503 else None
            return Response(first.line + "\n", status, headers, media_type="application/json")

        async def lines() -> AsyncIterator[str]:
            async with aclosing(answers):
                yield first.line + "\n"
                async for answer in answers:
                    yield answer.line + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _answers(self, request: Request, query: _core.Message, size: int) -> AsyncGenerator[queries.Response]:
        """Yield the answers to a POST of `size` bytes, until its client has left."""
        with self._client() as (session, queue):
            identity = str(query.get("id"))
            # Read answers meanwhile, because those of many turns would not fit into the queue.
            taken = self._renew(session, query) if _renews(query) else self._in_thread(size, session.take, query)
            del query
            taken.add_done_callback(lambda _: queue.wake())
            try:
                busy = True
                while busy and (await queue.wait(1.0) or not await request.is_disconnected()):
                    # Ask `is_busy` before reading: a search ends after its answer was put.
                    busy = not queue.overflown and (not taken.done() or session.is_busy)
                    while not queue.is_empty:
                        yield queue.get()
                if taken.done():
                    taken.result()  # raises its error
                if queue.overflown:
                    yield queries.Response.later(identity, _UNREAD)
            finally:
                # The client may have left. Its message is then done at once when a thread comes to it, and until then
                # this POST counts as open: else any number of messages could wait.
                session.close()
                await asyncio.wait([taken])

    @contextmanager
    def _client(self) -> Iterator[tuple[queries.Session, ResponseQueue]]:
        """A client, and what waits for it."""
        queue = ResponseQueue(asyncio.get_running_loop())
        seconds = self.metrics.seconds.observe
        session = queries.Session(self.models, queue.put, self.bounds.client, self._renews, seconds, queue.wake)
        self._clients[session] = queue
        try:
            yield session, queue
        finally:
            del self._clients[session]
            session.close()

    async def _socket(self, socket: WebSocket) -> None:
        most = self.bounds.websockets
        if not self.ready:
            await socket.send_denial_response(self.refused(503, "draining", _ENDS, **_LATER))
            return
        if self._websockets >= most:
            await socket.send_denial_response(self.refused(503, "connections", f"{most} connections are open"))
            return
        self._websockets += 1
        sender: asyncio.Task[None] | None = None
        try:
            with self._client() as (session, queue):
                await socket.accept()
                sender = asyncio.create_task(self._send(socket, queue))
                await self._receive(socket, session, queue)
        except (WebSocketDisconnect, RuntimeError):  # RuntimeError: it was closed by this side
            pass
        finally:
            self._websockets -= 1
            if sender is not None:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def _receive(self, socket: WebSocket, session: queries.Session, queue: ResponseQueue) -> None:
        while True:
            try:
                async with asyncio.timeout(self.bounds.idle_seconds):
                    message = await socket.receive()
            except TimeoutError:
                await socket.close(1001, f"no message arrived for {self.bounds.idle_seconds:g} s")
                return
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            self.metrics.queries.labels("websocket").inc()
            data = message.get("bytes", b"") if text is None else text
            if (read := await self._in_thread(len(data), self._take, session, queue, data)) is not None:
                await self._renew(session, read)

    def _in_thread(self, size: int, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Call a function about a message of `size` bytes, in a thread for messages of about this size."""
        at = min(size.bit_length() // 2, _SIZES - 1)  # four times as large is the next size
        return asyncio.get_running_loop().run_in_executor(self._threads[at], function, *arguments)

    def _renew(self, session: queries.Session, message: _core.Message) -> asyncio.Future[None]:
        """Have a message with the action `renew` answered, in the thread that loads models."""
        return asyncio.get_running_loop().run_in_executor(self._loader, session.take, message)

    def _take(self, session: queries.Session, queue: ResponseQueue, message: str | bytes) -> _core.Message | None:
        """Have a message of a WebSocket answered. Returns it instead if it is for `_renew`."""
        try:
            read = _core.Message(message)
            # Messages that end searches let the server stop earlier.
            if self.ready and _renews(read):
                return read
            if self.ready or (read.action(False) or "").startswith("terminate"):
                session.take(read)
            else:
                self.metrics.refused.labels("draining").inc()
                queue.put(queries.Response.later(read.id, _ENDS))
        except ValueError as error:
            self.metrics.refused.labels("json").inc()
            queue.put(queries.Response.refusal(str(error)))
        except Exception as error:
            _LOG.error("failed", exc_info=error)
            queue.put(queries.Response.refusal(_FAILED))
        return None

    async def _send(self, socket: WebSocket, queue: ResponseQueue) -> None:
        while True:
            await queue.wait()
            if queue.overflown:
                await socket.close(1008, _UNREAD)
                return
            while not queue.is_empty:
                await socket.send_text(queue.get().line)


def _renews(message: _core.Message) -> bool:
    """Whether a message asks for the newest model."""
    return bool(message.get("action") == "renew")


async def _wrong(request: Request, error: Any) -> Response:
    """The answer to a request for an unknown path."""
    path = request.url.path[:100]
    said = (
        f"{path} does not accept {request.method[:20]}"
        if error.status_code == 405
        else f"{path} does not exist on this server"
    )
    return JSONResponse({"error": said}, error.status_code)


async def _failed(_: Request, __: Exception) -> Response:
    """The answer after a failure of the server; uvicorn logs the exception."""
    return JSONResponse({"error": _FAILED}, 500)


def _keep_session(answer: Response, session: str, *, secure: bool = False, max_age: int | None = None) -> None:
    """Have the browser keep a session for this page: without a path it is for the folder of the address."""
    kept: dict[str, Any] = {"httponly": True, "samesite": "strict", "path": None}
    answer.set_cookie(COOKIE, session, max_age, secure=secure, **kept)


def _listed(run: StoredRun, iteration: int | None) -> dict[str, Any]:
    """The games of an iteration, the newest one if none is named; of a large iteration the first ones."""
    there = run.sealed_iterations()
    chosen = there[-1:] if iteration is None else [iteration]
    games = [
        {
            "game_id": record.game_id,
            "length": len(record),
            "outcome": record.outcome,
            # How the rules ended it (checkmate, ...) needs the positions, so only a single game tells.
            "result": result_of(run.start, record.outcome, end_of(record)),
        }
        for _, record in islice(run.games(chosen), _MOST_LISTED + 1)
    ]
    more = len(games) > _MOST_LISTED
    return {"iterations": there, "iteration": next(iter(chosen), None), "games": games[:_MOST_LISTED], "more": more}


def _game(run: StoredRun, number: int) -> dict[str, Any]:
    """A game as `az-replay --json` tells it: its plies with names, values and searches."""
    iteration, record = run.find_game(number)
    return {"iteration": iteration, **game_as_dict(run.start, record)}


_ASSETS = assets()
# Weak tags, which hold for a compressed answer too.
_TAGS = {name: f'W/"{hashlib.sha256(data).hexdigest()[:16]}"' for name, data in _ASSETS.items()}
_KEPT = {"cache-control": "no-cache"}  # a browser keeps these files, and asks each time whether they changed
