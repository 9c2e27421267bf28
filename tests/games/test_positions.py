"""A game is what the user types: a name, a name with parameters, or a Python class."""

import copy
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import SettingsError
from azpy.games.names import make_game
from oracles import Countdown, DiceCountdown
from sound_games import HEAP


@pytest.fixture
def heap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "heap_game.py").write_text(HEAP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "heap_game", raising=False)
    return "heap_game:Heap"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nope", "unknown game 'nope' (az-train --list-games lists all games)"),
        ("conect_four", "unknown game 'conect_four'; did you mean connect_four? (az-train --list-games"),
        ("connect_four(width)", 'expected parameter=value in game "connect_four(width)", got "width"'),
        ("", "unknown game"),
        (":", "expected module:Class, such as mygame:MyGame"),
        ("heap_game:heap", "module heap_game does not have 'heap'; did you mean Heap?"),
        ("heap_game:Broken", "no board today"),
        ("heap_game:Flat", "Flat.obs_shape must be (C, H, W), all above 0, got (9,)"),
        ("heap_game:Method", "Method.num_actions must be a whole number above 0, got <bound method"),
        ("heap_game:Uncopied", "RuntimeError: no second board"),
        ("no_such_module:Game", "no module no_such_module: Python looks in the current folder "),
        ("heap_gam:Heap", "among its packages; did you mean heap_game?"),
        ("heap_game.boards:Heap", "no module heap_game.boards: "),
        ("heap_game:Needy", "cannot be made: ModuleNotFoundError: No module named 'not_there' (heap_game.py, line "),
        ("heap_game.py:Heap", "expected the name of a module, not its file: give heap_game:Heap"),
        ("./heap_game:Heap", "not its file: give heap_game:Heap"),
        ("../games/heap_game.py:Heap", "not its file: in the folder ../games, give heap_game:Heap"),
        (
            "collections:OrderedDict",
            "is not an azpy.Game: OrderedDict is a class, expected a class that derives from azpy",
        ),
        (
            "heap_game:Heap(heap=5)",
            "a class takes no parameters here: give heap_game:Heap, or in Python azpy.State(Heap(heap=5))",
        ),
        ("heap_game:make", "is not an azpy.Game: make is a function, expected a class that derives from azpy.Game"),
        ("heap_game:Quacks", "is not an azpy.Game: Quacks is a class, expected a class that derives from azpy.Game"),
        (
            "azpy:Game",
            "class Game does not have the methods clone, encode, key, legal_actions, outcome, play, turn",
        ),
    ],
)
@pytest.mark.usefixtures("heap")
def test_a_bad_game_name_is_refused_in_one_line(spec: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make_game(spec)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    if "heap_game" in sys.modules:  # nothing but games is ever called
        assert sys.modules["heap_game"].called == []


def test_every_kind_of_game_is_made_by_one_function(heap: str) -> None:
    assert azpy.make_game("connect_four", width=5, height=4).obs_shape[1:] == (4, 5)
    assert azpy.make_game("connect_four(width=5)").num_actions == 5
    assert azpy.make_game("connect_four()").num_actions == 7
    made = azpy.make_game(heap)
    assert isinstance(made.game_object, azpy.Game)
    assert (made.game, made.turn, made.is_terminal, made.obs_shape) == ("Heap", 0, False, (1, 1, 1))
    with pytest.raises(SettingsError, match="takes no parameters, got heap"):
        azpy.make_game(heap, heap=3)
    with pytest.raises(ValueError, match="derives from azpy"):
        azpy.make_game("heap_game:Quacks")
    pytest.importorskip("pyspiel")
    assert azpy.make_game("open_spiel:tic_tac_toe").num_actions == 9


class Sketched(Countdown):
    action_cells = (0,)

    def to_svg(self) -> str:
        return "<svg>a heap</svg>"


def test_a_python_game_has_every_method_of_a_state() -> None:
    game = Sketched(6)
    state = azpy.State(game)
    state.play(1)
    assert (game.heap, state.game_object.heap) == (6, 4)  # a clone is played on
    assert (state.game, state.turn, state.num_actions, state.obs_shape) == ("Sketched", 1, 3, game.obs_shape)
    assert (state.legal_actions(), state.chance_outcomes(), state.action_cells) == ([0, 1], [], [0])
    assert state.key() == state.game_object.key()
    np.testing.assert_array_equal(state.observation(), state.game_object.encode())
    for copied in (state.clone(), copy.copy(state), copy.deepcopy(state), azpy.State(state)):
        copied.play(0)
        assert (copied.game_object.heap, state.game_object.heap) == (3, 4)
    assert state.to_svg() == "<svg>a heap</svg>"
    assert "Countdown(key=" in azpy.State(Countdown(3)).to_svg()
    assert azpy.make_game("tic_tac_toe").game_object is None
    with pytest.raises(ValueError, match="illegal action 2; legal actions are"):
        state.play(2)
    with pytest.raises(ValueError, match="does not have a notation"):
        state.to_text()
    dice = azpy.State(DiceCountdown(4))
    assert dice.turn == azpy.CHANCE
    assert sum(chance for _, chance in dice.chance_outcomes()) == pytest.approx(1)


def test_an_error_of_a_python_game_is_raised_once() -> None:
    class Moody(Countdown):
        angry = True

        def legal_actions(self) -> Any:
            if self.angry:
                raise OSError("not today") from KeyError("the cause")
            return super().legal_actions()

        def key(self) -> int:
            return -1

    state = azpy.State(Moody(6))
    with pytest.raises(OSError, match="not today") as caught:
        state.legal_actions()
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(OSError, match="not today"):
        azpy.Search(azpy.UniformEvaluator(), simulations=4).run(state)
    assert state.turn == 0
    with pytest.raises(azpy.GameError, match=r"Moody.key\(\) gave -1, expected"):
        state.key()
    state.game_object.angry = False
    assert state.legal_actions() == [0, 1]


def test_a_state_is_pickled_as_its_game_or_its_notation() -> None:
    state = azpy.parse_state("hex(size=4)", "a1 b2")
    again = pickle.loads(pickle.dumps([state]))[0]
    assert (again.game, again.key()) == (state.game, state.key())
    python = azpy.State(Countdown(6))
    python.play(1)
    assert pickle.loads(pickle.dumps(python)).key() == python.key()


def test_a_file_of_games_is_read_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    for file in ("nim.py", "rules/nim.py"):
        Path(file).write_text("1 / 0\nclass Heap: ...\nclass Nim(azpy.Game): ...\nclass Other(Heap): ...\n")
    Path("torn.py").write_text("class Nim(azpy.Game")
    for spec, text in {
        "nim": "unknown game 'nim'; to play the class Nim of nim.py, give nim:Nim",
        "nim.py": "unknown game 'nim.py'; to play the class Nim of nim.py, give nim:Nim",
        "rules/nim.py": "unknown game 'rules/nim.py'; to play the class Nim of rules/nim.py, give rules.nim:Nim",
        "torn.py": "unknown game 'torn.py' (az-train --list-games lists all games)",
        "nim:Nim": "game 'nim:Nim' cannot be made: ZeroDivisionError: division by zero (nim.py, line 1)",
    }.items():
        monkeypatch.delitem(sys.modules, "nim", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(SettingsError, match=re.escape(text) + "$"):
            make_game(spec)
