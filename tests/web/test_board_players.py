"""The board in a browser with more players than two; `journeys/players.txt` has their games."""

from typing import Any

from browser import WIDE, Board, needs_browser

pytest_plugins = ["browser"]
pytestmark = needs_browser


def test_six_players_have_their_seats_in_the_window(board: Board, address: str) -> None:
    board.open(address, "three")
    board.script("return import('/board/seats.js').then(({ seat }) => seat(6))")
    first: Any = board.one("side_0")
    board.until(lambda: first.rect["y"] + first.rect["height"] <= WIDE[1])  # the board leaves room for those above it
    assert board.one("side_5").is_displayed()


def test_each_player_has_a_color_and_a_line_of_values(board: Board, address: str) -> None:
    board.open(address, "three")
    board.choose("side", "all")
    board.one("hints").click()
    board.click("a4")
    board.until(lambda: "Searched" in board.one("root").text)
    assert board.one("bars").get_attribute("aria-label").startswith("Values: ")
    colors = board.each("#bars > :nth-child(2) :is(.fill, .track)", "getComputedStyle(one).backgroundColor")
    assert (colors[1], colors[0] == colors[1]) == ("rgb(36, 99, 196)", False)  # blue
    assert len(board.all("#graph polyline")) == 3
