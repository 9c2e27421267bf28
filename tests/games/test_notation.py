"""Positions as people read and write them, through Python: text, colors in a terminal, pictures.

What each game refuses, and that no text does harm, is checked in Rust (rust/games/tests/all/notation.rs).
"""

import json
import random
import re
import sys
import xml.etree.ElementTree as ET
from typing import Any
from unittest.mock import Mock

import pytest

import azpy
from azpy import make_game, parse_state
from oracles import Countdown, DiceCountdown, after
from talks import answer_to

GAMES = [
    *azpy.list_games(),
    "connect_four(width=4,height=1,k=2)",
    "hex(size=3,swap=1)",
    "hex(size=13)",
    "othello(size=4)",
]
SVG = "{http://www.w3.org/2000/svg}"


def random_game(start: Any, seed: int) -> list[Any]:
    """Positions of a random game: all of them, or of a long game as many as there is time for, the last included."""
    rng, position, positions = random.Random(seed), start.clone(), [start.clone()]
    while not position.is_terminal:
        outcomes = [outcome for outcome, _ in position.chance_outcomes()]
        position.play(rng.choice(position.legal_actions() or outcomes))
        positions.append(position.clone())
    return positions[:: -(len(positions) // 60 + 1)]


@pytest.mark.parametrize(
    ("game", "text", "expected"),
    [
        ("tic_tac_toe", "b2 b2", 'action 2 is "b2", which is not among the legal ones: a3, b3, c3, a2'),
        ("tic_tac_toe", ".../... x", "the board must have 3 rows"),
        ("connect_four", "4 4 4 4 4 4 4", 'action 7 is "4", which is not among the legal ones: 1, 2, 3, 5, 6, 7'),
        ("connect_four(width=4,height=4)", "..../.x../..../.o.. x", "nothing below the stone in column 2, row 2"),
        ("hex(size=14)", "a1", "the size must be from 3 to 13, got 14"),
        ("nothing", "a1", 'unknown game "nothing"'),
        ("my:Game", "a1", 'is not written in Rust: give the state that azpy.make_game("my:Game") makes'),
        ("pig", "roll 6 hold", None),
        ("dice_nim", "roll 2 take 3", 'action 2 is "take 3", which is not among the legal ones: take 1, take 2'),
    ],
)
def test_bad_text_is_refused_in_one_line(game: str, text: str, expected: str | None) -> None:
    if expected is None:
        azpy.parse_state(game, text)
        return
    with pytest.raises(ValueError) as caught:
        azpy.parse_state(game, text)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


# Games written in Python.


class Named(Countdown):
    """Names of several words, one the beginning of another; the last has none."""

    def action_name(self, action: int) -> str:
        return ("take", "take  two")[action]


def test_a_python_game_is_read_by_names_else_by_numbers() -> None:
    start = Named(10, passes=1)
    read = azpy.parse_state(start, "take two take 2 take")
    game = read.game_object
    assert type(game) is Named
    assert (game.heap, game.player, game.passes) == (10 - 2 - 1 - 1, 0, [0, 1])
    assert start.heap == 10
    assert azpy.State(start).format_actions([1, 1, 0]) == "take  two take  two take"
    assert azpy.parse_state(start, "").key() == start.key()
    dice = azpy.parse_state(DiceCountdown(10), "2 0 1 1")
    assert dice.key() == after(DiceCountdown(10), 2, 0, 1, 1).key()


def test_a_python_game_s_errors_are_raised_unchanged() -> None:
    class Fails(Countdown):
        def play(self, action: int) -> None:
            if self.heap < 5:
                raise OSError("on purpose")
            super().play(action)

    class Interrupted(Countdown):
        def action_name(self, action: int) -> str:
            raise KeyboardInterrupt

    class Endless(Countdown):
        max_plies = 5

        def play(self, action: int) -> None:
            pass

    with pytest.raises(OSError, match="on purpose"):
        azpy.parse_state(Fails(7), "1 1 0")
    with pytest.raises(KeyboardInterrupt):
        azpy.parse_state(Interrupted(7), "1")
    with pytest.raises(ValueError, match="longer than max_plies"):
        azpy.parse_state(Endless(7), "1 " * 1_000_000)
    with pytest.raises(ValueError, match='action 2 is "5", which is not among the legal ones: 0, 1'):
        azpy.parse_state(Countdown(7), "1 5 1")
    with pytest.raises(ValueError, match='action 3 is "0", but the game is over'):
        azpy.parse_state(Countdown(4), "1 1 0")


@pytest.mark.parametrize(
    ("game", "text"),
    [
        ("chess", "8/8/8/8/8/5k2/8/5K1R w - - 0 1"),
        ("chess", "1. e4 e5"),
        ("go(size=9)", "(;GM[1]SZ[9];B[cc])"),
        ("othello", "d3 c3"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_text(game: str, text: str) -> None:
    start, expected = make_game(game), parse_state(game, text).key()
    assert parse_state(game, "\ufeff" + text).key() == expected
    assert parse_state(game, "\ufeff" + text, plies=99).key() == expected
    start.read_variations("\ufeff" + text)
    asked = json.dumps({"id": "1", "action": "show", "position": "\ufeff" + text}, ensure_ascii=False)
    assert parse_state(game, answer_to(start, "\ufeff" + asked)["text"]).turn == parse_state(game, text).turn


@pytest.mark.parametrize(
    "game", [7, None, b"hex", Countdown, object(), ["hex"] * 10_000], ids=lambda game: str(game)[:9]
)
def test_a_value_that_is_not_a_game_is_a_type_error(game: Any) -> None:
    with pytest.raises(
        TypeError, match=r"expected a game's name, an azpy\.State or an instance of an azpy\.Game, got"
    ) as caught:
        azpy.parse_state(game, "a1")
    assert len(str(caught.value)) < 400


# Parameters.


@pytest.mark.parametrize("game", azpy.list_games())
def test_listed_defaults_give_the_plain_name(game: str) -> None:
    params = azpy.list_games()[game]
    assert azpy.make_game(game, **params).game == game
    assert azpy.make_game(f"{game}({','.join(f'{name}={value}' for name, value in params.items())})").game == game
    assert all(type(value) in (int, float, str) for value in params.values())
    for name, value in params.items():
        if isinstance(value, str):  # a word is none that would be a number
            with pytest.raises(ValueError):
                float(value)
        with pytest.raises(ValueError) as caught:
            azpy.make_game(game, **{name: "no such word"})
        assert name in str(caught.value)
        assert "no such word" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("hex", {"size": "seven"}, 'size must be a whole number >= 0, got "seven"'),
        ("hex", {"size": 7.5}, "size must be a whole number >= 0, got 7.5"),
        ("hex", {"size": 10**400}, "and 341 more characters"),
        ("hex", {"swap": "yes"}, 'swap must be 0 or 1, got "yes"'),
        ("hex", {"swap": "\x1b[2J"}, 'got "\\u{1b}[2J"'),
        ("hex(size=5)", {"size": 7}, 'parameter "size" is given twice'),
        ("hex", {"depth": 7}, 'hex has no parameter "depth"; it has: size, swap'),
        ("tic_tac_toe", {"size": 3}, 'tic_tac_toe has no parameter "size"; it has none'),
        ("hex(size)", {}, 'expected parameter=value in game "hex(size)", got "size"'),
        ("hex(size=5", {}, 'game "hex(size=5" lacks its closing parenthesis'),
        ("chess", {"chess960": "on"}, 'chess960 must be off or the number of a start, 0 to 959, got "on"'),
        ("go", {"komi": 7.25}, "komi must be a half or whole number from -1000 to 1000, got 7.25"),
        ("wall_game", {"seed": 3}, "only freestyle has random starts"),
    ],
)
def test_a_bad_parameter_is_named(name: str, params: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        azpy.make_game(name, **params)
    assert expected in str(caught.value)


# Colors.

ESCAPES = re.compile("\x1b\\[[0-9;]*m")


class Drawn(Countdown):
    """A game whose author uses a name of ours."""

    def render(self) -> None:
        raise AssertionError("nobody asked for it")


@pytest.fixture
def state() -> azpy.State:
    return azpy.parse_state("tic_tac_toe", "..x/.o./... x")


@pytest.mark.parametrize(
    ("terminal", "environment", "colored"),
    [
        (True, {}, True),
        (False, {}, False),
        (ValueError("closed"), {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm"}, True),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    state: azpy.State,
    monkeypatch: pytest.MonkeyPatch,
    terminal: Any,
    environment: dict[str, str],
    colored: bool,
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Mock(isatty=Mock(side_effect=[terminal])))
    assert ("\x1b" in state.render()) == colored
    assert "\x1b[1;31mx\x1b[0m" in state.render(color=True)
    assert "\x1b[1;34mo\x1b[0m" in state.render(color=True)
    assert "\x1b" not in state.render(color=False) + str(state) + repr(state)
    assert azpy.State(Drawn(3)).render(color=True) == str(Drawn(3))
    monkeypatch.setattr(sys, "stdout", None)  # a program without a console
    assert "\x1b" not in state.render()


@pytest.mark.parametrize("game", GAMES)
def test_without_its_escapes_a_colored_board_is_the_plain_one(game: str) -> None:
    for position in random_game(azpy.make_game(game), seed=3):
        assert ESCAPES.sub("", position.render(color=True)) == str(position) == position.render(color=False)


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_made_again_from_its_name_and_its_parameters(game: str) -> None:
    state = azpy.make_game(game)
    assert azpy.make_game(state.name, **state.params).game == state.game
    assert state.params.keys() == azpy.list_games()[state.name].keys()


def test_without_past_drops_repetitions_and_ko() -> None:
    repeated = azpy.parse_state("chess", "e4 e5 " + "Nf3 Nf6 Ng1 Ng8 " * 2)
    fresh = repeated.without_past()
    assert (repeated.is_terminal, fresh.is_terminal, fresh.board()) == (True, False, repeated.board())
    assert fresh.fen() == "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 1"
    mate = azpy.parse_state("chess", "f3 e5 g4 Qh4")
    assert mate.without_past().is_terminal
    ko = azpy.parse_state("go(size=5)", "B3 C3 C4 D4 C2 D2 A1 E3 D3")  # Black takes C3
    free = ko.without_past()
    assert [free.action_name(action) for action in {*free.legal_actions()} - {*ko.legal_actions()}] == ["C3"]
    with pytest.raises(ValueError, match="the other player is to move"):
        mate.clone().without_past(1)
    with pytest.raises(ValueError, match="only chess"):
        ko.fen()


# Pictures.


@pytest.mark.parametrize("game", GAMES)
def test_a_picture_is_xml_of_its_own_and_says_how_it_stands(game: str) -> None:
    for position in random_game(azpy.make_game(game), seed=4):
        svg = position.to_svg()
        picture = ET.fromstring(svg)
        assert picture.tag == f"{SVG}svg"
        assert svg.count("http") == 1  # the name of the format
        assert not re.search(r"<(script|style|image|use|foreignObject)|href|url\(|@import|font-face", svg)
        _, _, width, height = map(float, picture.attrib["viewBox"].split())
        assert (width, height) == (float(picture.attrib["width"]), float(picture.attrib["height"]))
        first = next(iter(picture)).attrib
        assert (first.get("fill"), first.get("width")) != ("#ffffff", picture.attrib["width"]), "a sheet of paper"
        for shape in picture.iter(f"{SVG}circle"):
            x, y, radius = (float(shape.attrib[name]) for name in ("cx", "cy", "r"))
            assert radius <= x <= width - radius
            assert radius <= y <= height - radius
        assert position._repr_svg_() == svg


RESULTS = [
    ("chess", "f3 e5 g4 Qh4#", "Black wins by checkmate"),
    ("chess", "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "Draw by stalemate"),
    ("chess", "7k/8/6K1/8/8/8/8/8 w - - 0 1", "Draw by insufficient material"),
    ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 100 90", "Draw by the fifty-move rule"),
    ("chess", "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8", "Draw by threefold repetition"),
    ("chess(max_plies=2)", "e4 e5", "Draw by the limit of plies"),
    ("go", "C3 pass pass", "Black wins by 73.5"),
    ("go(komi=0)", "pass pass", "Draw (jigo)"),
    ("othello(size=4)", "oooo/oooo/oooo/oooo x", "White wins 16-0"),
    ("hex(size=3)", "a1 b1 a2 b2 a3", "Red wins by connecting top and bottom"),
    ("hex(size=3)", "a1 a2 b1 b2 a3 c2", "Blue wins by connecting left and right"),
    ("connect_four", "1 2 1 2 1 2 1", "Red wins by 4 in a row"),
    ("tic_tac_toe", "xxx/oo./... o", "X wins by 3 in a row"),
    ("tic_tac_toe", "xox/oox/xxo o", "Draw by a full board"),
    ("gomoku(size=4,k=3)", "b2 a1 c3 d1 a4 b1 d4", "Black wins by 3 in a row"),
    (
        "breakthrough(width=3,height=4)",
        "a1b2 c4c3 b2c3 b4c3 b1c2 c3b2 c2b3 b2a1",
        "Blue wins by reaching the last row",
    ),
    ("backgammon", "x=off:15 o=5:2,off:13 turn=o", "Red wins a single game"),
    ("backgammon", "x=off:15 o=5:15 turn=o", "Red wins a gammon"),
    ("backgammon", "x=off:15 o=5:14,bar:1 turn=o", "Red wins a backgammon"),
    ("backgammon(gammons=0)", "x=off:15 o=5:15 turn=o", "Red wins"),
    ("blokus(size=5)", "d3,d2,e2,d1,e1 a5,b5,a4,b4,c4 c5,d5,e5,e4", "Red wins by 4"),
    ("chinese_checkers(max_turns=1)", "a3-e5 a14-e13", "Red wins by the limit of turns"),
    ("maedn", "x=a,c,d,40 turn=x die=2 then 40/b", "Red wins"),
    ("maedn(max_plies=1)", "3", "Draw by the limit of plies"),
    ("maedn(players=3)", "y=a,b,c,d turn=x", "Green wins: red gets -0.5, blue gets -0.5, green gets 1"),
    ("dice_nim(heap=1)", "roll 1 take 1", "Player 0 wins by taking the last counter"),
    ("wall_game", "cats b8 h8 mice a1 c8 turn 2 red then Cc8 >a1", "Red wins by catching the mouse"),
]


@pytest.mark.parametrize(("game", "text", "said"), RESULTS, ids=range(len(RESULTS)))
def test_a_result_says_how_it_came_about(game: str, text: str, said: str) -> None:
    state = azpy.make_game(game)
    for part in text.split(" then "):
        state = azpy.parse_state(state, part)
    assert state.result_text() == said


def test_result_text_needs_a_finished_game(state: azpy.State) -> None:
    with pytest.raises(ValueError, match="not over yet"):
        state.result_text()
    over = after(Countdown(1), 0)
    assert azpy.State(over).result_text() == "Player 0 wins"

    class Told(Countdown):
        def result_text(self) -> str:
            return f"Player {self.player} took the last one"

    assert azpy.State(after(Told(1), 0)).result_text() == f"Player {over.player} took the last one"
