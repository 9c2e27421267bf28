"""Where a person touches a picture to play: games in Python and OpenSpiel's, through `azpy.State`.

The places of the games in Rust are checked in rust/games/tests/all/touches.rs.
"""

import random
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import azpy
from azpy._core import Walk
from oracles import Countdown


class Touched(Countdown):
    """Of no picture of its own, so that azpy draws the board, which is one cell: its planes are [4, 1, 1]."""

    reply: Any = ()
    asked = 0

    def touches(self, action: int) -> Any:
        type(self).asked += 1
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


class Framed(Touched):
    def to_svg(self) -> str:
        return "<svg>a heap</svg>"


def touches(kind: type[Touched], given: Any) -> list[Any]:
    class Case(kind):  # type: ignore[valid-type, misc]
        reply = given

    return azpy.State(Case(6)).touches(1)


def test_a_python_game_gives_cells_or_places_to_touch() -> None:
    assert azpy.State(Countdown(6)).touches(1) == []
    assert touches(Touched, []) == touches(Framed, []) == []
    assert touches(Touched, (0, np.int64(0))) == [("a1", (0, 0, 40, 40))] * 2
    assert touches(Framed, [("heap", (1, 2.5, 3, 4))]) == [("heap", (1, 2.5, 3, 4))]


@pytest.mark.parametrize("reply", [None, 0, "a1", [1], [-1], [0.0], [("heap", (1, 2, 3, 4))]])
def test_touches_that_are_no_cells_name_the_method(reply: Any) -> None:
    got = re.escape(f"Case.touches(1) gave {reply!r}, expected a list of cells, row * W + column, from 0 to 0")
    with pytest.raises(azpy.GameError, match=f"^{got}"):
        touches(Touched, reply)


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [0],
        [("heap", 0)],
        [(1, (1, 2, 3, 4))],
        [("", (1, 2, 3, 4))],
        [("heap", (1, 2, 3))],
        [("heap", (1, 2, 0, 4))],
        [("heap", (1, float("nan"), 3, 4))],
    ],
)
def test_touches_that_are_no_places_name_the_method(reply: Any) -> None:
    got = re.escape(f"Case.touches(1) gave {reply!r}, expected a list of (place, (x, y, width, height))")
    with pytest.raises(azpy.GameError, match=f"^{got}"):
        touches(Framed, reply)


def test_touches_are_computed_only_on_request() -> None:
    class Counted(Touched):
        asked = 0

    Walk(Counted(6)).look()
    azpy.Search(azpy.UniformEvaluator(), simulations=20).run(Counted(6))
    # Nobody chooses a roll, or anything after the end.
    for state in (
        azpy.make_game("backgammon"),
        azpy.parse_state("tic_tac_toe", "xxx/oo./... o"),
        azpy.State(Counted(0)),
    ):
        assert state.touches(0) == []
    assert Counted.asked == 0
    with pytest.raises(ValueError, match="action 9 does not exist"):
        azpy.make_game("tic_tac_toe").touches(9)


def clicked(state: azpy.State, points: list[tuple[float, float]]) -> list[int]:
    """The legal actions that clicks on these points of the picture play."""
    found = []
    for action in state.legal_actions():
        rects = [rect for _, rect in state.touches(action)]
        hits = [
            x <= left <= x + width and y <= top <= y + height
            for (x, y, width, height), (left, top) in zip(rects, points, strict=False)
        ]
        if len(rects) == len(points) and all(hits):
            found.append(action)
    return found


@pytest.mark.parametrize("game", azpy.list_games())
def test_clicks_in_the_middle_of_its_places_play_an_action(game: str) -> None:
    rng, state = random.Random(7), azpy.make_game(game)
    for _ in range(12):
        while not (state.is_terminal or (legal := state.legal_actions())):
            state.play(rng.choice([outcome for outcome, _ in state.chance_outcomes()]))
        if state.is_terminal:
            break
        action = rng.choice(legal)
        places = state.touches(action)
        middles = [(x + width / 2, y + height / 2) for _, (x, y, width, height) in places]
        if places:
            assert clicked(state, middles) == [action], state.action_name(action)
        state.play(action)


def test_a_game_in_python_is_played_by_clicks_on_its_board() -> None:
    from hexapawn import Hexapawn

    hexapawn: Any = Hexapawn  # the example has no types
    state, seen = azpy.State(hexapawn()), list[str]()
    # a1-a2, b3xa2, b1xa2: the middles of the cells, for player 1 on the same board.
    for start, end in [((20, 100), (20, 60)), ((60, 20), (20, 60)), ((60, 100), (20, 60))]:
        texts = ET.fromstring(state.to_svg()).iter("{http://www.w3.org/2000/svg}text")
        # The foot of a glyph is a little below the middle of its cell.
        glyphs = {(int(text.attrib["x"]), int(text.attrib["y"]) - 7): text.text for text in texts}
        seen.append(f"{glyphs[start]} {glyphs.get(end, '.')}")
        (action,) = clicked(state, [start, end])
        assert [place for place, _ in state.touches(action)] == re.split("[-x]", state.action_name(action))
        state.play(action)
    assert seen == ["x .", "o x", "x o"]
    assert str(state) == "3 o . o\n2 x . .\n1 . . x\n  a b c"
    assert clicked(state, [(100, 100), (100, 60)]) == []  # a pawn of the other player


def test_a_game_of_openspiel_is_touched_by_a_subclass() -> None:
    pytest.importorskip("pyspiel")
    from azpy.games.openspiel import OpenSpielGame, open_spiel

    class Board(OpenSpielGame):
        def touches(self, action: int) -> list[int]:
            return [action]

    start = open_spiel("tic_tac_toe").game_object
    assert azpy.State(start).touches(2) == []
    state = azpy.State(Board(start._rules, start.state))
    assert state.touches(2) == [("c3", (80, 0, 40, 40))]
    state.play(2)
    assert '<text x="100" y="27" font-size="20">x</text>' in state.to_svg()
