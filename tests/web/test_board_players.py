"""The board in a browser: games of three players and of one."""

import json
from functools import partial
from pathlib import Path

from browser import WIDE, Board, needs_browser

pytest_plugins = ["browser"]
pytestmark = needs_browser

MOVES = ["a4", "a3", "a2", "b4", "b3", "c2", "c4"]  # red has three in a row


def told(board: Board) -> list[str]:
    """The values on the bars, one a player."""
    return [plain(one.text) for one in board.all("#bars .told")]


def is_to_move(board: Board, player: int) -> bool:
    """Whether the page says so, in words and beside the board."""
    name = ("Red", "Blue", "Green")[player]
    marked = [one.get_attribute("id") for one in board.all(".side.turn")]
    return board.one("status").text == f"{name} to move." and marked == [f"side_{player}"]


def plain(text: str) -> str:
    return text.replace("\N{MINUS SIGN}", "-")


def test_three_players_to_the_end_with_the_values_of_all(board: Board, address: str, saved: Path) -> None:
    board.open(address, "three")
    rows = [" ".join(board.one(f"side_{player}").text.split("\n")) for player in range(3)]
    assert rows == ["Red Person", "Blue Network three", "Green Network three"]
    # The board keeps its room in the window where more players sit above it.
    seated = "const [done] = arguments; import('/board/seats.js').then(({ seat }) => (seat(6), done()))"
    board.driver.execute_async_script(seated)
    board.until(lambda: sum(board.one("side_0").rect[part] for part in ("y", "height")) <= WIDE[1])
    assert board.one("side_5").is_displayed()
    board.driver.execute_async_script(seated.replace("6", "3"))
    board.click("a4")
    board.until(lambda: board.ply >= 3 and board.state == "open")  # two networks have moved
    assert board.one("status").text == "Red to move."
    assert not board.one("resign").is_displayed()
    for player in ("player_1", "player_2"):
        board.choose(player, "")
    board.one("new").click()
    board.until(lambda: board.ply == 0)
    board.one("hints").click()
    for ply, place in enumerate(MOVES[:-1]):
        board.click(place)
        board.until(partial(is_to_move, board, (ply + 1) % 3))
    board.until(lambda: "Searched" in board.one("root").text)
    assert not board.one("bar").is_displayed()
    values = told(board)
    assert len(values) == 3
    assert all(abs(float(value)) < 1 for value in values), values
    colors = [board.all(part)[1].value_of_css_property("background-color") for part in ("#bars .fill", "#bars .track")]
    assert (colors[0], colors[0] == colors[1]) == ("rgba(36, 99, 196, 1)", False)  # blue
    assert all(name in board.one("root").text for name in ("for red", "for blue", "for green"))
    assert board.all("#candidates button")[0].text == "2"
    board.click(MOVES[-1])
    assert board.state == "over"
    assert board.one("status").text == "Red wins: red gets 1, blue gets -0.5, green gets -0.5."
    assert told(board) == ["+1.00", "-0.50", "-0.50"]
    said = plain(board.one("bars").get_attribute("aria-label"))
    assert said == "Values: +1.00 for red, -0.50 for blue, -0.50 for green"
    lines = board.all("#graph polyline")
    assert len(lines) == 3
    # Where a side is called white, its line is white, on paper that is white in most windows.
    board.script("arguments[0].setAttribute('class', 'values white')", lines[0])
    assert "drop-shadow" in lines[0].value_of_css_property("filter")
    board.one("undo").click()
    board.until(lambda: board.ply == 6 and board.state == "open")
    board.one("swap").click()  # three people: nothing changes
    record = json.loads(board.save(saved, "save_record"))
    assert [node[3] for node in record["nodes"]] == [0, 1, 2, 0, 1, 2, 0]
    # The page keeps the game, its players and where it stands.
    board.driver.refresh()
    board.until(lambda: board.one("status").text != "\N{HORIZONTAL ELLIPSIS}")
    board.until(lambda: board.ply == 6 and board.state == "open")
    assert [board.one(f"player_{player}").get_attribute("value") for player in range(3)] == ["", "", ""]
