"""A game is what the user types: a name, a name with parameters, or a Python class."""

import sys
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.errors import SettingsError
from azpy.positions import is_terminal, make_position, observation_of, turn_of

HEAP = """
import sys
import numpy as np
import azpy

class Heap(azpy.Game):
    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 20

    def __init__(self, heap=7, player=0):
        self.heap, self.player = heap, player
    def turn(self):
        return self.player if self.heap else azpy.TERMINAL
    def legal_actions(self):
        return [0, 1] if self.heap > 1 else [0]
    def play(self, action):
        self.heap -= action + 1
        self.player = 1 - self.player
    def clone(self):
        return Heap(self.heap, self.player)
    def outcome(self):
        return 1.0 if self.player == 1 else -1.0
    def encode(self):
        return np.full((1, 1, 1), self.heap / 20, np.float32)
    def key(self):
        return 2 * self.heap + self.player

class Broken(Heap):
    def __init__(self):
        raise RuntimeError("no board today")

class Flat(Heap):
    obs_shape = (9,)

class Method(Heap):
    def num_actions(self):
        return 2

called = []

class Quacks:  # all of a game, but no azpy.Game
    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 20
    turn = legal_actions = play = clone = outcome = encode = key = Heap.turn
    def __init__(self):
        called.append("Quacks")

def make():
    called.append("make")

class Uncopied(Heap):
    def clone(self):
        raise RuntimeError("no second board")
"""


@pytest.fixture
def heap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "heap_game.py").write_text(HEAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "heap_game", raising=False)
    return "heap_game:Heap"


def test_a_name_with_parameters_makes_that_board() -> None:
    assert make_position("connect_four").obs_shape[1:] == (6, 7)
    assert make_position("connect_four(width=5, height=4)").obs_shape[1:] == (4, 5)
    assert make_position("connect_four()").num_actions == 7


def test_a_python_class_is_found_in_the_current_folder(heap: str) -> None:
    position = make_position(heap)
    assert turn_of(position) == 0
    assert not is_terminal(position)
    assert observation_of(position).shape == (1, 1, 1)
    state = make_position("tic_tac_toe")
    assert turn_of(state) == 0
    assert observation_of(state).shape == state.obs_shape


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nope", 'unknown game "nope"; there are:'),
        ("conect_four", "; did you mean connect_four?"),
        ("connect_four(depth=3)", 'has no parameter "depth"; it has: width, height, k'),
        ("connect_four(width)", 'expected parameter=value in game "connect_four(width)", got "width"'),
        ("connect_four(width=wide)", 'width must be a whole number >= 0, got "wide"'),
        ("connect_four(width=0)", "connect_four(width=0)"),
        ("hex(size=14)", "the size must be from 3 to 13, got 14"),
        ("hex(swap=2)", "swap must be 0 or 1, got 2"),
        ("othello(size=7)", "the size must be 4, 6 or 8, got 7"),
        ("connect_four(", "lacks its closing parenthesis"),
        ("", "unknown game"),
        ("heap_game:Nobody", "has no attribute 'Nobody'"),
        ("heap_game:Broken", "no board today"),
        ("heap_game:Flat", "Flat.obs_shape must be (C, H, W), all above 0, got (9,)"),
        ("heap_game:Method", "Method.num_actions must be a whole number above 0, got <bound method"),
        ("heap_game:Uncopied", "RuntimeError: no second board"),
        ("no_such_module:Game", "No module named 'no_such_module'"),
        ("collections:OrderedDict", "is no azpy.Game: OrderedDict is a class, expected a class that derives from azpy"),
        ("heap_game:make", "is no azpy.Game: make is a function, expected a class that derives from azpy.Game"),
        ("heap_game:sys", "is no azpy.Game: sys is a module, expected a class"),
        ("heap_game:Quacks", "is no azpy.Game: Quacks is a class, expected a class that derives from azpy.Game"),
        ("azpy:Game", "cannot be made: TypeError: Can't instantiate abstract class Game"),
    ],
)
@pytest.mark.usefixtures("heap")
def test_what_is_no_game_is_refused_in_one_line(spec: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make_position(spec)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_kind_of_game_is_made_by_one_function(heap: str) -> None:
    assert azpy.make_game("connect_four", width=5, height=4).obs_shape[1:] == (4, 5)
    assert azpy.make_game("connect_four(width=5)").num_actions == 5
    made: Any = azpy.make_game(heap)
    assert isinstance(made, azpy.Game)
    assert made.turn() == 0
    with pytest.raises(SettingsError, match="takes no parameters beside its name, got heap"):
        azpy.make_game(heap, heap=3)
    with pytest.raises(ValueError, match="derives from azpy"):
        azpy.make_game("heap_game:Quacks")
    pytest.importorskip("pyspiel")
    assert azpy.make_game("open_spiel:tic_tac_toe").num_actions == 9


@pytest.mark.usefixtures("heap")
def test_nothing_but_a_game_is_ever_called() -> None:
    for name in ("make", "Quacks"):
        with pytest.raises(SettingsError, match="derives from azpy"):
            make_position(f"heap_game:{name}")
    assert sys.modules["heap_game"].called == []


@pytest.mark.usefixtures("heap")
def test_every_shipped_game_can_be_named() -> None:
    for name in azpy.list_games():
        assert make_position(name).num_actions > 0
