"""The board's connection in a browser: tokens, and servers that go and come again."""

import socket

from selenium.webdriver.common.keys import Keys

from azpy.serving.models import open_model
from browser import TOKEN, Board, needs_browser
from served import process, site_of

pytest_plugins = ["browser"]
pytestmark = needs_browser


def test_a_token_is_asked_for_once(board: Board) -> None:
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys("not the token", Keys.ENTER)
        board.until(lambda: board.one("login_said").text == "This is not the token.")
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        board.until(lambda: not board.one("login").is_displayed())
        # The browser tells of each answer 401.
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"] * 2
        board.one("logout").click()
        board.until(lambda: board.one("login").is_displayed())
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"]
        board.driver.get("about:blank")


def test_a_lost_connection_is_said_and_the_game_goes_on(board: Board) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    arguments = ("uniform:5", "--game", "tic_tac_toe")
    with process(*arguments, "--port", port) as (address, server):
        board.open(address)
        board.click("b2")
        server.kill()
        board.until(lambda: "lost" in board.one("connected").text)
        assert board.ply == 2
    with process(*arguments, "--port", port):
        board.until(lambda: board.one("connected").text == "connected")
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


def test_a_server_that_was_started_again_asks_for_the_token_again(board: Board) -> None:
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        # As the end of the process does.
        board.driver.delete_all_cookies()
        port = int(address.rpartition(":")[2])
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN, port=port):
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        board.errors()
        board.driver.get("about:blank")
