"""The board's connection in a browser: tokens, and servers that go and come again."""

import json
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.keys import Keys
from websockets.sync.client import connect

from azpy.serving.models import open_model
from browser import TOKEN, Board, needs_browser
from pages import hosted
from served import free_port, process, site_of
from talks import PATIENCE

pytest_plugins = ["browser"]
pytestmark = needs_browser


def log_in(board: Board, token: str = TOKEN) -> None:
    board.until(lambda: board.one("login").is_displayed())
    board.one("token").send_keys(token, Keys.ENTER)
    board.until(lambda: board.one("connected").text == "connected")


def test_a_token_is_asked_for_once_by_a_server(board: Board) -> None:
    models, port = {"main": open_model("uniform:5", "tic_tac_toe", 5)}, free_port()
    with site_of(models, token=TOKEN, port=port) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("login").is_displayed())
        for _ in range(2):  # the second one closes a dialog that did not want to
            board.keys(Keys.ESCAPE)
        board.until(lambda: board.one("login").is_displayed())
        state = "return [document.getElementById('main').inert, getComputedStyle(arguments[0], '::before').content]"
        assert board.script(state, board.one("connected")) == [True, "none"]
        board.one("token").send_keys("not the token", Keys.ENTER)
        board.until(lambda: board.one("login_said").text == "The token is wrong.")
        log_in(board)
        board.until(lambda: not board.one("login").is_displayed())
        board.settle()
        assert board.script(state, board.one("connected")) == [False, '"\N{BLACK CIRCLE} "']
        # The browser tells of each answer 401.
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"] * 2
        # What is said can be read.
        colors = [board.one("logout").value_of_css_property(name) for name in ("color", "background-color")]
        assert colors[0] != colors[1]
        board.one("logout").click()
        board.until(lambda: board.one("login").is_displayed())
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"]
        log_in(board)
        board.driver.delete_all_cookies()  # as the end of the process does
    with site_of(models, token=TOKEN, port=port):
        log_in(board)
        board.errors()
        board.driver.get("about:blank")


def test_a_lost_connection_is_shown_and_play_continues(board: Board) -> None:
    port = str(free_port())
    arguments = ("uniform:5", "--game", "tic_tac_toe")
    with process(*arguments, "--port", port) as (address, server):
        board.open(address)
        board.click("b2")
        server.kill()
        board.until(lambda: "lost" in board.one("connected").text)
        assert "waiting for the connection" in board.one("status").text
        assert board.ply == 2
        # Once nothing answers, the page says what to do.
        board.until(lambda: board.one("problem_text").text.startswith("The program that serves this page has ended"))
        assert "Start it again" in board.one("problem_text").text
    with process(*arguments, "--port", port):
        board.until(lambda: board.one("connected").text == "connected")
        assert not board.one("problem").is_displayed()
        board.settle()
        moves = board.moves
        board.click(next(iter(board.places())))
        assert board.moves[:2] == moves
        assert board.ply >= 3
    with process("uniform:5", "--game", "connect_four", "--port", port):
        board.until(lambda: board.one("connected").text == "connected" and board.moves == [])
        board.settle()
        board.click(next(iter(board.places())))  # the player of this name plays another game now
        assert board.ply >= 2
        assert all("WebSocket" in error or "/about" in error for error in board.errors())
        board.driver.get("about:blank")


def test_a_stopping_server_is_shown_and_retried(board: Board) -> None:
    with process("uniform:5", "--game", "tic_tac_toe") as (address, server), connect(f"ws://{address}/ws") as other:
        board.open(address)
        other.send(json.dumps({"id": "long", "simulations": 10_000_000}))
        other.send(json.dumps({"id": "1", "action": "query_version"}))
        other.recv(PATIENCE)
        server.send_signal(signal.SIGTERM)
        board.until(lambda: httpx.get(f"http://{address}/ready").status_code == 503)
        board.places()["b2"].click()
        board.until(lambda: "Trying again" in board.one("status").text)
        assert board.moves == ["b2"]  # though its position is not known yet
        board.one("hints").click()
        board.one("analyse").click()
        board.until(lambda: "the server is stopping" in board.one("analysed").text)
        assert not board.one("problem").is_displayed()
        board.driver.get("about:blank")


def test_a_page_of_a_listed_origin_shows_the_board_in_a_frame(board: Board, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<link rel="icon" href="data:,"><iframe></iframe>')
    models = {"main": open_model("uniform:5", "tic_tac_toe", 5)}
    with hosted(tmp_path, Counter()) as host:
        origin = f"http://localhost:{host.server_port}"
        with site_of(models, origins=[origin], frames=[origin]) as address:
            board.driver.get(origin)
            script = """
                const [address] = arguments;
                const frame = document.querySelector("iframe");
                const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
                frame.src = address;
                const query = { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"id": "1"}' };
                const answer = fetch(`${address}query`, query).then((found) => found.json());
                return Promise.all([answer, loaded]);
            """
            assert board.script(script, f"http://{address}/")[0]["rootInfo"]["visits"] == 5
            board.driver.switch_to.frame(0)
            board.until(lambda: board.all("#connected") and board.one("connected").text == "connected")
            board.driver.switch_to.default_content()
        with site_of(models) as address:
            board.driver.get(origin)
            board.script("document.querySelector('iframe').src = arguments[0]", f"http://{address}/")
            board.until(lambda: any("frame-ancestors" in error for error in board.errors()))
            board.driver.get("about:blank")
            board.errors()


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_behind_nginx_the_page_works_below_a_path(board: Board, tmp_path: Path) -> None:
    """The example of docs/guides/serving.md."""
    text = (Path(__file__).parents[2] / "docs/guides/serving.md").read_text()
    (example,) = re.findall("```nginx\n(.*?)```", text, re.DOTALL)
    models, port = {"main": open_model("uniform:5", "tic_tac_toe", 5)}, free_port()
    with site_of(models, token=TOKEN) as address, site_of(models, token=f"{TOKEN} too") as other:
        example = example.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8000", address)
        # Another server below the first one.
        place = example[example.index("    location") : example.rindex("}")]
        example = example.replace(place, place + place.replace("/az/", "/az/too/").replace(address, other))
        own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        paths = "".join(f"{name}_temp_path {tmp_path}/{name};" for name in own)
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {paths}\n{example}}}\n"
        )
        assert NGINX is not None
        nginx = subprocess.Popen([NGINX, "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")])
        try:
            board.until(lambda: is_open(port))
            for path, token in (("az", TOKEN), ("az/too", f"{TOKEN} too")):
                board.driver.get(f"http://127.0.0.1:{port}/{path}/")
                log_in(board, token)
                board.begin()
                board.until(lambda: board.state == "open" and board.ply == 0)
                board.click("b2")
                assert board.ply == 2
            board.driver.get(f"http://127.0.0.1:{port}/az/")  # still let in
            board.until(lambda: board.one("connected").text == "connected")
            board.errors()  # of the answer 401
            board.driver.get("about:blank")
        finally:
            nginx.kill()
            nginx.wait()
