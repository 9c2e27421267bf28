"""The board in a browser: whole games by clicks, drags and keys, also on a turned board."""

import random
from typing import Any

import chess
import chess.pgn
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from azpy._core import Message
from azpy.matches.levels import LEVELS
from azpy.serving.queries import Session
from browser import Board, needs_browser

pytest_plugins = ["browser"]
pytestmark = needs_browser


@pytest.mark.parametrize("name", ["fours", "pawns"])  # one is written in Python
def test_a_game_against_the_network_by_clicks(name: str, board: Board, address: str) -> None:
    board.open(address, name)
    rng = random.Random(1)
    while board.settle() != "over":
        board.click_any(rng)
    assert "wins" in board.one("status").text or "draw" in board.one("status").text
    assert len(board.moves) == board.ply >= 2
    assert board.places() == {}


def test_chess_with_a_drag_and_a_cancelled_touch(board: Board, address: str) -> None:
    board.open(address, "chess")
    ActionChains(board.driver).drag_and_drop(board.places()["e2"], board.one("status")).perform()
    assert board.places(".next") == {}
    assert board.ply == 0
    other = board.places()["e2"].rect
    board.places()["g1"].click()
    assert set(board.places(".next")) == {"f3", "h3"}
    board.press(other)  # another piece
    assert set(board.places(".next")) == {"e3", "e4"}
    board.places()["e2"].click()
    up = -2 * board.places()["e2"].size["height"]
    ActionChains(board.driver).click_and_hold(board.places()["e2"]).move_by_offset(0, up).perform()
    board.until(lambda: board.one("dragged").is_displayed())
    ActionChains(board.driver).release().perform()
    board.settle(2)
    assert not board.one("dragged").is_displayed()
    assert board.moves[0] == "e4"
    assert board.ply == 2
    assert board.load(f"1. e4 {{{'x' * 70_000}}} e5 (1... c5)") == ""  # longer than a message
    board.until(lambda: board.tree == ["e4", "e5", ["c5"]])


def test_go_to_its_end_by_two_people_with_undo(board: Board, address: str) -> None:
    board.open(address, "go")
    # What has the focus keeps it while a position is asked for, and while the network is to move.
    board.script("document.querySelector('#choices button').focus(); document.querySelector('[data-place=C3]').click()")
    board.settle(2)
    focused = "return [document.activeElement.textContent, document.activeElement.ariaDisabled]"
    assert board.script(focused) == ["pass", None]
    assert board.ply == 2
    board.one("undo").click()
    board.until(lambda: board.ply == 0)
    board.one("on").click()
    board.until(lambda: board.ply == 1)
    board.one("on").click()
    board.until(lambda: board.ply == 2)
    board.choose("side", "all")
    for place in ("B2", "D4", "B4"):
        board.click(place)
    assert board.ply == 5
    board.unfold("open_save").click()
    board.choose("save_what", "position")
    sgf = board.until(lambda: board.one("save_text").get_attribute("value"))
    board.one("save_cancel").click()
    moves = board.moves
    board.begin()
    board.until(lambda: board.ply == 0)
    assert board.load(sgf) == ""
    board.until(lambda: board.moves == moves)
    assert board.places().keys().isdisjoint(moves)
    board.choose("side", "all")
    board.click(next(iter(board.places())))
    board.script("document.querySelector('#choices button').focus()")
    for expected in ("pass", ""):  # no button is left, and the focus is where the last one was
        ply = board.ply
        board.keys(Keys.ENTER)
        board.settle(ply + 1)
        assert board.script(focused) == [expected, None]
    assert board.script("return document.activeElement.id") == "choices"
    assert board.state == "over"
    assert "wins" in board.one("status").text


def test_backgammon_with_dice_that_the_page_throws(board: Board, address: str) -> None:
    board.open(address, "dice")
    rng = random.Random(2)
    for _ in range(4):
        board.click_any(rng)
    assert board.ply > 4
    while board.one("undo").is_enabled():
        board.one("undo").click()
    assert board.ply == 1  # not the first roll: the page has thrown it
    board.one("first").click()
    board.until(lambda: board.ply == 0)
    assert board.all("#choices button") == []
    board.choose("throws", "person")
    assert board.load("x=1:2,off:13 o=5:2,off:13 turn=x plies=7") == ""
    board.settle()
    while board.state != "over":
        board.click_any(rng)
    assert board.one("status").text == "Red wins a single game."


def test_moves_are_short_in_lists_and_lines(board: Board, address: str) -> None:
    board.open(address, "chess")
    assert board.load('{"nodes": [[-1, "e2e4"], [0, "h7h6"], [0, "g8f6"], [1, "f1c4"]]}') == ""
    board.until(lambda: board.tree == ["e4", "h6", ["Nf6"], "Bc4"])
    assert board.rows == ["1. e4 h6", "1… Nf6", "2. Bc4"]
    board.one("hints").click()
    board.until(lambda: board.one("root").text.startswith("Searched"))
    position = chess.Board()
    for move in ("e4", "h6", "Bc4"):
        position.push_san(move)
    for row in board.all("#candidates tr button"):
        position.parse_san(row.text)
    line = position.copy()
    texts = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
    for move in board.script(texts, "#variation button"):
        assert move == line.san(line.parse_san(move))
        line.push_san(move)
    assert len(line.move_stack) > 4


def test_a_turned_board_is_played_where_its_pieces_stand(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.choose("side", "all")
    frame = board.one("board").rect
    square, rim = frame["width"] / 9, frame["width"] / 18

    def box(file: str, rank: int) -> dict[str, float]:
        """A square as White sees it from the other side."""
        x, y = rim + square * (7 - "abcdefgh".index(file)), rim + square * (rank - 1)
        return {"x": frame["x"] + x, "y": frame["y"] + y, "width": square, "height": square}

    board.one("turn").click()
    assert board.one("turn").get_attribute("aria-pressed") == "true"
    assert board.one("said").get_attribute("textContent") == "The board is turned."
    board.press(box("e", 2))
    assert set(board.places(".next")) == {"e3", "e4"}
    board.press(box("e", 4))
    board.settle(1)
    up = 2 * board.places()["d7"].size["height"]
    ActionChains(board.driver).drag_and_drop_by_offset(board.places()["d7"], 0, -up).perform()
    board.settle(2)
    assert board.moves == ["e4", "d5"]
    focused = "return document.activeElement.dataset.place"
    board.script("document.querySelector('[data-place=c2]').focus()")
    board.keys(Keys.ARROW_RIGHT)
    assert board.script(focused) == "b2"
    board.keys("t")
    assert board.script(focused) == "b2"
    board.keys(Keys.ARROW_RIGHT)
    assert board.script(focused) == "c2"
    board.script("document.activeElement.blur()")
    board.keys("t")  # not on the board
    assert board.one("turn").get_attribute("aria-pressed") == "false"
    board.one("turn").click()
    board.driver.refresh()
    board.until(lambda: board.moves == ["e4", "d5"])
    board.settle(2)
    assert board.one("turn").get_attribute("aria-pressed") == "true"
    board.begin(game="fours")
    board.until(lambda: "column 1" in board.places())
    assert not board.one("turn").is_displayed()
    first, last = (board.places()[f"column {column}"].rect["x"] for column in (1, 7))
    assert first < last
    board.begin(game="go")
    board.until(lambda: "A1" in board.places())
    board.choose("side", "all")
    board.press(board.places()["A1"].rect)
    board.settle(1)
    assert board.moves == ["A1"]
    corner, other = (board.places()[place].rect for place in ("B1", "A2"))
    assert (corner["y"] < other["y"], corner["x"] < other["x"]) == (True, True)  # A1 is above B1 and right of it


def test_a_whole_game_by_keys_alone(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    focused = "return document.activeElement.dataset.place"
    board.script("document.activeElement.blur()")
    for _ in range(20):
        board.keys(Keys.TAB)
        if board.script(focused):
            break
    assert board.script(focused) is not None
    wanted = ["b2", "a1", "a2", "c2", "b1", "b3", "a3", "c1", "c3"]  # a draw
    for ply, goal in enumerate(wanted):
        for _ in range(6):
            here = board.script(focused)
            if here == goal:
                break
            column, row = ord(goal[0]) - ord(here[0]), int(goal[1]) - int(here[1])
            sideways = Keys.ARROW_RIGHT if column > 0 else Keys.ARROW_LEFT
            upwards = Keys.ARROW_UP if row > 0 else Keys.ARROW_DOWN
            board.keys(sideways if column else upwards)
            if board.script(focused) == here:  # the row holds no further place: go by rows
                board.keys(upwards if row else Keys.ARROW_UP)
        assert board.script(focused) == goal, (goal, board.script(focused))
        board.keys(Keys.ENTER)
        board.settle(ply + 1)
        said = board.one("said").get_attribute("textContent")
        assert goal in said or ply == 8, said
    assert board.one("status").text == "Draw by a full board."
    assert board.one("said").get_attribute("textContent") == "Draw by a full board."
    board.script("document.activeElement.blur()")
    board.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    board.until(lambda: board.ply == 7)
    board.keys(Keys.HOME)
    board.until(lambda: board.ply == 0)
    board.keys(Keys.END)
    board.until(lambda: board.ply == 9)


def test_networks_play_at_a_level_in_words(board: Board, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, take = list[tuple[Any, Any]](), Session.take

    def noted(session: Session, message: Message) -> None:
        if message.get("priority") == "play":
            asked.append((message.get("level"), message.get("simulations")))
        take(session, message)

    monkeypatch.setattr(Session, "take", noted)
    board.open(address, "noughts")
    board.one("new").click()
    strengths = Select(board.one("strength"))
    assert [option.text for option in strengths.options][: len(LEVELS)] == [level.capitalize() for level in LEVELS]
    assert not board.one("ladder").is_displayed()
    strengths.select_by_value("casual")
    assert "not calibrated" in board.one("ladder").text
    board.one("start").click()
    board.until(lambda: board.one("who_1").text == "azpy, casual")
    board.settle()
    board.click("b2")
    board.settle(2)
    board.choose("strength", "20")
    board.click(next(iter(board.places())))
    board.settle(4)
    assert asked == [("casual", None), (None, 20)]


def test_nothing_is_played_before_the_next_position_is_known(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script(
        """
        const places = ["b2", "a1", "c3"].map((place) => document.querySelector(`[data-place="${place}"]`));
        for (const place of places) place.click();
        document.getElementById("resign").click();
        """
    )
    board.settle(2)
    assert board.moves[0] == "b2"
    assert len(board.moves) == 2
    assert board.state == "open"
