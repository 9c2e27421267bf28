"""The board in a browser as a screen reader has it: places, men, what can be touched, and what is said."""

import re

import pytest
from selenium.webdriver.common.keys import Keys

from browser import Board, needs_browser

pytest_plugins = ["browser"]
pytestmark = needs_browser


def places(board: Board) -> dict[str, bool]:
    """The places in the browser's accessibility tree by what they are called, and whether they can be touched."""
    board.driver.execute_cdp_cmd("Accessibility.enable", {})
    nodes = board.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    by_id = {node["nodeId"]: node for node in nodes}
    (group,) = [node for node in nodes if node.get("name", {}).get("value", "").startswith("Board: ")]
    found, left = {}, list(group["childIds"])
    while left:
        node = by_id[left.pop()]
        left += node.get("childIds", [])
        if node.get("role", {}).get("value") == "button":
            disabled = [one["value"]["value"] for one in node["properties"] if one["name"] == "disabled"]
            found[node["name"]["value"]] = disabled != [True]
    return found


@pytest.mark.parametrize(
    ("name", "move", "count", "open_", "closed", "read"),
    [
        (
            "chess",
            "e2 e4",
            64,
            {"b8, black knight", "e7, black pawn"},
            {"b1, white knight", "e4, white pawn", "e2, empty", "a8, black rook"},
            "Black to move. black bishop: c8, f8; black king: e8; ",
        ),
        ("fours", "column 4", 7, {"column 4, red", "column 1, empty"}, set(), "Blue to move. red: column 4."),
        ("go", "C3", 25, {"A5, empty"}, {"C3, black"}, "White to move. black: C3."),
        ("noughts", "b2", 9, {"a1, empty"}, {"b2, x"}, "O to move. x: b2."),
        (
            "walls",
            "wall right of a8",
            120,
            {"cat on a8, red cat", "wall right of b8, empty"},
            {"wall right of a8, wall"},
            "Red to move. blue cat: h8; blue mouse: h1; ",
        ),
    ],
)
def test_each_place_says_its_man_and_whether_it_can_be_touched(
    name: str, move: str, count: int, open_: set[str], closed: set[str], read: str, board: Board, address: str
) -> None:
    board.open(address, name)
    board.choose("side", "all")
    first = places(board)
    board.click(*(move.split() if name == "chess" else [move]))
    assert move.rpartition(" ")[2].removeprefix("column ")[0] in board.one("said").get_attribute("textContent")
    found = places(board)
    assert len(found) == count
    assert len(first) <= count
    assert {one for one in open_ | closed if found.get(one)} == open_
    assert closed <= found.keys()
    board.script("document.querySelector('.place[tabindex=\"0\"]').focus()")
    board.keys("b")
    assert read in board.one("said").get_attribute("textContent")


def test_a_place_that_cannot_be_touched_takes_no_press(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.script("document.querySelector('[data-place=e7]').focus()")
    board.keys(Keys.ENTER)
    assert (board.ply, board.places(".chosen")) == (0, {})
    for _ in range(5):
        board.keys(Keys.ARROW_DOWN)
    assert board.script("return document.activeElement.ariaLabel") == "e2, white pawn"
    board.keys(Keys.ENTER)
    assert re.match("e2 is chosen. It can go to e[34], e[34]", board.one("said").get_attribute("textContent"))
    assert board.script("return document.activeElement.ariaLabel") == "e2, white pawn, chosen: cancel"
    assert board.script("return document.querySelector('[data-place=e4]').ariaLabel") == "e4, empty"
    for _ in range(2):
        board.keys(Keys.ARROW_UP)
    board.keys(Keys.ENTER)
    board.settle(2)
    assert board.moves[0] == "e4"
