"""Who is let in by az-serve: Host, Origin, CORS, the token, and the sessions that stand for it."""

import asyncio
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from azpy.errors import SettingsError
from azpy.runs.reader import StoredRun
from azpy.web import app
from azpy.web import guard as guards
from azpy.web.app import Site
from azpy.web.guard import Guard
from served import serving

TOKEN = "a token of the tests"
PAGE = "https://board.example"


OURS = ["127.0.0.1", "127.0.0.1:", "LOCALHOST:1", "[::1]", "[::1]:8000", "[2001:db8::7]:8000", "[2001:DB8::7]"]
OTHERS = ["2001:db8::7", "localhost.", "localhost:80:80", "localhost:x", "a@localhost", "localhost/"]
OTHERS += ["localhost, evil.example", "evil.example", "xn--localhost"]


@pytest.mark.parametrize("host", [*OURS, *OTHERS])
def test_the_name_in_host_is_one_of_the_servers(host: str) -> None:
    guard = Guard(answers_200, hosts=["2001:db8::7"])
    for kind in ("http", "websocket"):
        assert status_of(guard, [(b"host", host.encode())], kind=kind) == (200 if host in OURS else 403)


@pytest.mark.parametrize(
    "host",
    [
        *("https://play.example.org", "play.example.org:443", "play.example.org/", "", "a b"),
        *("192.0.2.7:8000", "cafe:8000", "[::1", "::1]", "[play.example.org]", "1:2:3"),
    ],
)
def test_a_url_or_a_port_as_host_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match="--host and --address take a name such as"):
        Guard(answers_200, hosts=[host])


@pytest.mark.parametrize("host", ["2001:DB8:0:0::7", "[2001:db8::7]", "2001:db8::7%eth0"])
def test_an_address_of_ipv6_as_host_is_known_in_its_shortest_form(host: str) -> None:
    assert status_of(Guard(answers_200, hosts=[host]), [(b"host", b"[2001:db8::7]:8000")]) == 200


async def answers_200(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def status_of(app: Any, headers: list[tuple[bytes, bytes]], method: str = "GET", kind: str = "http") -> int:
    found = list[Any]()

    async def send(message: Any) -> None:
        found.append(message)

    asyncio.run(app({"type": kind, "method": method, "path": "/metrics", "headers": headers}, None, send))
    return int(found[0]["status"])


def test_other_sites_cookies_do_not_hide_ours() -> None:
    guard = Guard(answers_200, token=TOKEN)
    mine = guard.session(TOKEN)
    assert mine is not None
    for cookies, status in (
        (f"azpy_session={mine}", 200),
        (f'settings={{"a":1}}; azpy_session={mine}', 200),
        (f"a[b]=c; =; ;;azpy_session={mine}; x", 200),
        (f"azpy_session={mine}; azpy_session=of a server at a folder above", 200),
        (f"other=azpy_session={mine}", 401),
        ("azpy_session=", 401),
        (f"azpy_session={mine}x", 401),
    ):
        headers = [(b"host", b"localhost"), (b"cookie", cookies.encode())]
        assert status_of(guard, headers) == status, cookies


def test_several_headers_do_not_add_up() -> None:
    guard, host = Guard(answers_200, token=TOKEN), (b"host", b"localhost")
    right, wrong = (b"authorization", f"Bearer {TOKEN}".encode()), (b"authorization", b"Bearer wrong")
    assert status_of(guard, [host, right]) == 200
    assert status_of(guard, [host, wrong, right]) == 401
    evil, same = (b"origin", b"http://evil.example"), (b"origin", b"http://localhost")
    for origins in ([evil, same], [same, evil]):
        assert status_of(guard, [host, right, *origins], "POST") == 403
    assert status_of(guard, [host, right, same], "POST") == 200


def test_a_session_ends_with_its_logout() -> None:
    with serving("pig", token=TOKEN) as address, httpx.Client(base_url=f"http://{address}") as page:
        page.cookies.set("azpy_session", "a name that somebody else chose")
        answer = page.post("/login", json={"token": TOKEN})
        assert "path" not in answer.headers["set-cookie"].lower()  # it is for the page's own folder, not for the host
        kept = [one.value for one in page.cookies.jar if one.value != "a name that somebody else chose"]
        page.cookies.clear()
        cookie = {"cookie": f"azpy_session={kept[0]}"}
        assert page.get("/metrics", headers=cookie).status_code == 200
        assert page.post("/logout", headers={**cookie, "origin": "http://evil.example"}).status_code == 403
        assert page.get("/metrics", headers=cookie).status_code == 200
        assert page.post("/logout", headers=cookie).status_code == 200
        assert page.get("/metrics", headers=cookie).status_code == 401


def test_sessions_have_a_bound_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "_MOST_SESSIONS", 3)
    guard = Guard(answers_200, token=TOKEN)
    names = [str(guard.session(TOKEN)) for _ in range(5)]
    cookies = [[(b"host", b"localhost"), (b"cookie", f"azpy_session={name}".encode())] for name in names]
    assert [status_of(guard, headers) for headers in cookies] == [401, 401, 200, 200, 200]
    assert len(guard._sessions) == 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    with zipfile.ZipFile(Path(__file__).parents[1] / "data" / "pig.zip") as stored:
        stored.extractall(path := tmp_path_factory.mktemp("run"))
    return StoredRun(next(path.rglob("config.toml")).parent)


def test_all_but_the_page_and_the_state_needs_the_token(run: StoredRun) -> None:
    with serving(run.settings.game, run=run, token=TOKEN) as address, httpx.Client(base_url=f"http://{address}") as web:
        open_to_all = {"/", "/health", "/ready", "/login"}
        ways = [getattr(route, "path", "") for route in Site({}).routes]
        assert {"/games", "/games/{number}", "/about", "/metrics", "/query", "/logout"} <= set(ways)
        for way in set(ways) - open_to_all - {"/ws", "/board/{name}"}:
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                path = way.replace("{number}", "0")
                assert web.request(method, path, json={}).status_code == 401, (method, path)
        for path in ("/games", "/about", "/metrics"):
            assert web.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert web.get("/board/app.py").status_code == 401


def test_a_browser_keeps_the_page_until_it_changes() -> None:
    with serving("tic_tac_toe") as address, httpx.Client(base_url=f"http://{address}") as web:
        for path in ("/", "/board/main.js", "/board/board.css"):
            first = web.get(path)
            assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
            again = web.get(path, headers={"if-none-match": first.headers["etag"]})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
            assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
            assert web.get(path, headers={"if-none-match": 'W/"another"'}).content == first.content
        for path in ("/about", "/health", "/board/none.js"):  # what may change, or says who asks
            assert web.get(path).headers.get_list("cache-control") == ["no-store"]


def test_games_of_an_iteration_are_listed_up_to_a_bound(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(run.settings.game, run=run) as address, httpx.Client(base_url=f"http://{address}") as web:
        for most, query, iteration in ((200, "", 2), (200, "?iteration=1", 1), (3, "", 2)):
            monkeypatch.setattr(app, "_MOST_LISTED", most)
            found = web.get(f"/games{query}").json()
            ids = [record.game_id for _, record in run.games([iteration])]
            assert (found["iterations"], found["iteration"]) == ([0, 1, 2], iteration)
            assert [game["game_id"] for game in found["games"]] == ids[:most]
            assert found["more"] is (len(ids) > most)
            assert len(ids) > 3


@pytest.mark.parametrize("digits", ["9" * 5_000, "9" * 20, "-1", "1.0", "x", "\u0661"])
def test_a_number_in_an_address_is_a_whole_one(digits: str, run: StoredRun) -> None:
    with serving(run.settings.game, run=run) as address, httpx.Client(base_url=f"http://{address}") as web:
        for path in (f"/games/{digits}", f"/games?iteration={digits}"):
            answer = web.get(path)
            assert answer.status_code == 400
            assert "expected a whole number" in answer.json()["error"]
            assert len(answer.text) < 300
        for path in ("/games/9999999999999999999", "/games?iteration=9999999999999999999"):
            assert web.get(path).status_code == 404
        assert web.get("/games").status_code == 200


# Pages of other origins -----------------------------------------------------------------------------------------------


def test_a_cookie_counts_for_the_servers_own_page_alone() -> None:
    guard = Guard(answers_200, origins=[PAGE, "http://localhost:3000"], token=TOKEN)
    session = guard.session(TOKEN)
    mine = [(b"host", b"localhost:8000"), (b"cookie", f"azpy_session={session}".encode())]
    for origin in (PAGE, "http://localhost:3000"):  # browsers send the cookie to every port of a host
        named = [*mine, (b"origin", origin.encode())]
        for method, kind in (("POST", "http"), ("GET", "http"), ("GET", "websocket")):
            assert status_of(guard, named, method, kind) == 401
        guard.end_session({"type": "http", "headers": named})
    for more in ([], [(b"origin", b"http://localhost:8000")], [(b"origin", b"https://localhost:8000")]):
        assert status_of(guard, [*mine, *more], kind="websocket") == 200


NEVER_SENT = ["*", "null", "", "example.org", f"{PAGE}/", f"{PAGE}/page", "https://Board.example", f"{PAGE}?"]
NEVER_SENT += [f"{PAGE}:443", "http://board.example:80", "http://[::1]:80", f"{PAGE}:", f"{PAGE}:0443", f"{PAGE}:x"]
NEVER_SENT += [f"{PAGE}:123456", f"{PAGE},{PAGE}", f"{PAGE}, {PAGE}", "https://b\u00fccher.example", f"{PAGE},x"]
NEVER_SENT += [f"{PAGE}:\u0664\u0664", "https://[2001:DB8::7]", "https://2001:db8::7", "https://[::1", f"{PAGE}\n"]
NEVER_SENT += ["https://a@board.example", "https://"]


@pytest.mark.parametrize("origin", NEVER_SENT)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match="--origin takes an origin"):
        Site({}, origins=[PAGE, origin])


def test_an_origin_that_a_browser_sends_is_taken() -> None:
    hosts = ["board.example", "127.0.0.1", "[::1]", "[2001:db8::443]", "my_host", "xn--bcher-kva.example", "localhost"]
    ports = {"http": ["", ":443", ":8000"], "https": ["", ":80", ":8443"], "chrome-extension": [""]}
    origins = [f"{scheme}://{host}{port}" for scheme in ports for port in ports[scheme] for host in hosts]
    Site({}, origins=origins)
    for origin in origins:
        headers = [(b"host", b"localhost"), (b"origin", origin.encode())]
        assert status_of(Guard(answers_200, origins=origins), headers, "POST") == 200
