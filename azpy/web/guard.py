"""Access control: the Host and Origin of a request, and a token.

- Host: a page of another site can give its own name the address 127.0.0.1 (DNS rebinding). Its requests then carry its
  own name as Host, and are refused.
- Origin: browsers send a page's origin with each WebSocket and each POST. Other sites' pages are refused. A program
  sends none. Pages of the listed origins may ask with `Authorization`, and may read the answers (CORS).
- Token: from the header `Authorization: Bearer TOKEN`, or from the cookie that `POST /login` gives for it. It is never
  part of an address or of a log. `POST /logout` ends what the cookie stands for, as the end of the process does. The
  cookie counts for the server's own page alone: browsers also send it with requests of pages from other ports.
"""

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from azpy.errors import SettingsError

# As a browser writes it: ASCII without capital letters, and a port where it is not the scheme's own. No other value is
# ever equal to what a browser sends.
_ORIGIN = re.compile(
    r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?", re.ASCII
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "azpy_session"
_MOST_SESSIONS = 10_000
# Needed before a token can be shown: the page itself, and what watches the process.
_OPEN = re.compile(r"/|/login|/health|/ready|/board/[a-z_]+\.(js|css|svg)|/favicon.ico")
_NAME = re.compile(r"[a-z0-9._-]+", re.ASCII | re.IGNORECASE)


def checked_host(host: str) -> str:
    """Return a name or an address of this server as the Host header has it.

    Raises:
        SettingsError: a text that is not a host name, such as a URL.
    """
    if _NAME.fullmatch(host):
        return host.lower()
    bare = host[1:-1] if host[:1] + host[-1:] == "[]" else host
    try:
        # Clients write an address of IPv6 in its shortest form, and leave out its zone.
        return f"[{ipaddress.IPv6Address(bare.partition('%')[0])}]"
    except ValueError:
        text = "--host and --address take a name such as play.example.org, without scheme, port or path"
        raise SettingsError(f"{text}; got {host!r}") from None


def checked_origin(flag: str, origin: str) -> str:
    """An origin that a flag names.

    Raises:
        SettingsError: an origin that no browser sends.
    """
    if not _ORIGIN.fullmatch(origin):
        raise SettingsError(
            f"{flag} takes an origin such as https://example.org or http://localhost:3000, as browsers send it: "
            f"without path, capital letters or the scheme's own port; got {origin!r}"
        )
    return origin


class Guard:
    """Accepts or refuses requests.

    Args:
        app: who answers.
        hosts: names of this server, without port, besides those of the loopback.
        origins: of pages on other servers that may ask, such as https://example.org.
        token: what clients must show; None for no token.
        counted: called for each request without it.

    Raises:
        SettingsError: an origin that no browser sends, or a host that is not a name.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        token: str | None = None,
        counted: Callable[[], object] = lambda: None,
    ) -> None:
        self._app, self._counted = app, counted
        self._origins = frozenset(checked_origin("--origin", origin) for origin in origins)
        # Without credentials: a page of another origin sends the token itself, never azpy's cookie.
        self._cors = CORSMiddleware(
            self._with_token,
            allow_origins=self._origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("Authorization",),
            allow_private_network=True,  # a public page may query a server on a private network
        )
        self._hosts = frozenset({*LOOPBACK, *map(checked_host, hosts)})
        self._token = None if token is None else token.encode()
        self._sessions: dict[str, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; see ASGI."""
        problem = self._problem(scope)
        answer = self._cors if problem is None else JSONResponse({"error": problem}, 403)
        await answer(scope, receive, send)

    async def _with_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that shows the token, where one is needed. A browser's preflight request shows none."""
        answer = self._app
        if self._token is not None and not _OPEN.fullmatch(scope["path"]) and not self._is_known(scope):
            self._counted()
            said = {"error": "this server needs a token: send Authorization: Bearer TOKEN"}
            answer = JSONResponse(said, 401, {"www-authenticate": "Bearer"})
        await answer(scope, receive, send)

    def session(self, token: str) -> str | None:
        """Open a session for a token, and return its cookie's name; None for a wrong token."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token):
            return None
        name = secrets.token_urlsafe(32)
        self._sessions[name] = None
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return name

    def end_session(self, scope: Scope) -> None:
        """End the session of a request's cookie."""
        for session in self._sessions_in(scope):
            self._sessions.pop(session, None)

    def _problem(self, scope: Scope) -> str | None:
        """Why Host or Origin is refused; None if both are fine."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if re.sub(r":[0-9]*$", "", host).lower() not in self._hosts:
            return "this server does not accept the name in Host: start it with --host NAME"
        asks = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD"}
        if asks and not (_own_origins(host) | self._origins).issuperset(headers.getlist("origin")):
            return "requests from this Origin are not allowed: start the server with --origin ORIGIN"
        return None

    def _is_known(self, scope: Scope) -> bool:
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._token is not None:
            return hmac.compare_digest(given.strip().encode(), self._token)
        return any(session in self._sessions for session in self._sessions_in(scope))

    def _sessions_in(self, scope: Scope) -> list[str]:
        """The sessions that a request's cookies name, none for a page of another origin.

        There may be several: another server can stand at a folder above on the same host.
        """
        headers = Headers(scope=scope)
        if not _own_origins(headers.get("host", "")).issuperset(headers.getlist("origin")):
            return []
        cookies = [one.strip().partition("=") for line in headers.getlist("cookie") for one in line.split(";")]
        return [value for name, _, value in cookies if name == COOKIE]


def _own_origins(host: str) -> frozenset[str]:
    """The origins of a page from this host. The scheme may have been https in front of this server."""
    return frozenset({f"http://{host}", f"https://{host}"})
