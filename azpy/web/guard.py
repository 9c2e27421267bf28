"""Who is let in: the Host and Origin of a request, and a token. Every answer gets the headers that protect a browser.

- Host: a page of another site can give its own name the address 127.0.0.1 (DNS rebinding). Its requests then carry its
  own name as Host, and are refused.
- Origin: browsers send a page's origin with each WebSocket and each POST. Other sites' pages are refused. A program
  sends none.
- Token: from the header `Authorization: Bearer TOKEN`, or from the cookie that `POST /login` gives for it. It is never
  part of an address or of a log. `POST /logout` ends what the cookie stands for, as the end of the process does.
"""

import hmac
import json
import re
import secrets
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "LOOPBACK", "Guard"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "azpy_session"
_MOST_SESSIONS = 10_000
# Needed before a token can be shown: the page itself, and what watches the process.
_OPEN = re.compile(r"/|/login|/health|/ready|/board/[a-z_]+\.(js|css|svg)|/favicon.ico")
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Lets requests in, or refuses them.

    Args:
        app: who answers.
        hosts: names of this server, without port, besides those of the loopback.
        origins: of pages on other servers that may ask, such as https://example.org.
        token: what clients must show; None for no token.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), origins: Iterable[str] = (), token: str | None = None):
        self._app, self._origins = app, frozenset(origins)
        # An address of IPv6 stands in brackets there.
        names = (f"[{host}]" if ":" in host and not host.startswith("[") else host for host in hosts)
        self._hosts = frozenset({*LOOPBACK, *(name.lower() for name in names)})
        self._token = None if token is None else token.encode()
        self._sessions: dict[str, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; see ASGI."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is None:
            await self._app(scope, receive, lambda message: send(_protected(message)))
            return
        status, said = problem
        kind = "http" if scope["type"] == "http" else "websocket.http"
        body = json.dumps({"error": said}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await send({**_protected(start), "type": f"{kind}.response.start"})
        await send({"type": f"{kind}.response.body", "body": body})

    def session(self, token: str) -> str | None:
        """A name for a cookie that stands for the token; None for a wrong token."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token):
            return None
        name = secrets.token_urlsafe(32)
        self._sessions[name] = None
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return name

    def end_session(self, scope: Scope) -> None:
        """Lets the cookie of a request stand for the token no longer."""
        self._sessions.pop(_cookie(_values(scope, b"cookie")), None)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason of a refusal; None to let a request in."""
        host = next(iter(_values(scope, b"host")), "")
        if re.sub(r":[0-9]*$", "", host).lower() not in self._hosts:
            return 403, "this server does not answer to the name in Host: start it with --host NAME"
        asks = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD", "OPTIONS"}
        # The scheme may have been https in front of this server.
        let_in = {f"http://{host}", f"https://{host}", *self._origins}
        if asks and not let_in.issuperset(_values(scope, b"origin")):
            return 403, "pages of this Origin may not ask: start the server with --origin ORIGIN"
        if self._token is not None and not _OPEN.fullmatch(scope["path"]) and not self._is_known(scope):
            return 401, "a token is needed: Authorization: Bearer TOKEN"
        return None

    def _is_known(self, scope: Scope) -> bool:
        kind, _, given = next(iter(_values(scope, b"authorization")), "").partition(" ")
        if kind.lower() == "bearer" and self._token is not None:
            return hmac.compare_digest(given.strip().encode(), self._token)
        return _cookie(_values(scope, b"cookie")) in self._sessions


def _values(scope: Scope, name: bytes) -> list[str]:
    """All values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _cookie(headers: Iterable[str]) -> str:
    """The value of our cookie, whatever the cookies of other servers on this machine look like."""
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def _protected(message: Message) -> Message:
    if message["type"] in {"http.response.start", "websocket.accept"}:
        given = list(message.get("headers", []))
        known = {name.lower() for name, _ in given}
        message = {**message, "headers": [*given, *(pair for pair in _HEADERS if pair[0] not in known)]}
    return message
