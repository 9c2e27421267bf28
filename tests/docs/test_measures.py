"""benches/solved.py: errors in solved positions of Connect Four."""

import importlib.util
import math
import random
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import after

BENCHES = Path(__file__).parents[2] / "benches"


@cache
def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def minimax(state: Any) -> float:
    """The value for the player to move."""
    if state.is_terminal:
        return float(state.outcome() * (1 - 2 * state.turn)) if state.turn >= 0 else math.nan
    return max(worth(state, action) for action in state.legal_actions())


def worth(state: Any, action: int) -> float:
    """What an action is worth for the player who takes it."""
    then = after(state, action)
    return float(then.outcome() * (1 - 2 * state.turn)) if then.is_terminal else -minimax(then)


def test_the_solver_s_values_are_those_of_minimax() -> None:
    pytest.importorskip("bitbully", reason="the solver of benches/solved.py is not installed")
    solver, draw, checked = bench("solved").Solver(), random.Random(3), 0
    while checked < 60:
        state, line = azpy.make_game("connect_four"), list[int]()
        while not state.is_terminal and len(line) < 33:
            line.append(draw.choice(state.legal_actions()))
            state.play(line[-1])
        if state.is_terminal:
            continue
        legal = state.legal_actions()
        expected = tuple(worth(state, action) if action in legal else None for action in range(7))
        assert solver.values(line) == expected, line
        checked += 1


class Planted:
    """Values of a position that need no solver: the action that is the number of plies, modulo 7, is best."""

    def values(self, actions: list[int]) -> tuple[int | None, ...]:
        legal = after(azpy.make_game("connect_four"), *actions).legal_actions()
        return tuple((1 if action == len(actions) % 7 else 0) if action in legal else None for action in range(7))


def test_positions_are_those_of_the_seed_and_each_can_be_got_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    solved = bench("solved")
    monkeypatch.setattr(solved, "Solver", Planted)
    positions = solved.positions_in(tmp_path / "one.json", 80, 5)
    assert solved.positions_in(tmp_path / "one.json", 80, 5) == positions == solved.positions_in(tmp_path / "b", 80, 5)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "b").read_bytes()
    assert positions != solved.positions_in(tmp_path / "c", 80, 6)
    with pytest.raises(SystemExit, match="holds 80 positions of seed 5"):
        solved.positions_in(tmp_path / "one.json", 80, 6)
    groups = solved.groups(positions)
    assert {group: len(indices) for group, indices in groups.items()} == {
        group: 80 if group == "all" else 10 if "plies" in group else 40 for group in groups
    }
    assert len(groups) == 11
    keys = {solved.replayed_to(position.actions).key() for position in positions}
    assert len(keys) == 80
    assert all(position.can_err and position.values == Planted().values(position.actions) for position in positions)


def test_errors_are_the_actions_that_give_the_value_away() -> None:
    solved = bench("solved")
    values = [(1, 1, 0, -1), (None, 0, -1, 0), (-1, 0, -1, None), (1, -1, -1, -1)]
    positions = [solved.Position("games", (), value) for value in values]
    assert [position.keeping for position in positions] == [{0, 1}, {1, 3}, {1}, {0}]
    for chosen, wrong in [((0, 1, 1, 0), 0), ((1, 3, 0, 0), 1), ((2, 2, 1, 3), 3)]:
        assert solved.errors(positions, chosen) == wrong / 4


class Favourite:
    """Answers that prefer one column."""

    def __init__(self, column: int) -> None:
        self._logits = np.eye(7, dtype=np.float32)[column]

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.tile(self._logits, (len(observations), 1)), np.zeros(len(observations), np.float32)


def test_the_table_is_of_the_prior_and_of_searches_in_the_same_positions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from azpy.matches.arena import SearchPlayer
    from azpy.matches.players import Entrant

    solved, network = bench("solved"), cast(Any, Favourite(2))
    monkeypatch.setattr(solved, "Solver", Planted)
    monkeypatch.setattr(
        solved,
        "load_players",
        lambda specs, *_: [
            Entrant("planted", spec.simulations, SearchPlayer(network, spec.simulations), network) for spec in specs
        ],
    )
    file = str(tmp_path / "file.json")
    command = ["solved", "mcts", "--positions", file, "--count", "80", "--simulations", "1", "3"]
    monkeypatch.setattr(sys, "argv", command)
    solved.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[-5:] == ["prior", "1", "simulations", "3", "simulations"]
    assert len(lines) == 2 + 11 + 1
    wrong, positions = 0, solved.positions_in(tmp_path / "file.json", 80, 0)
    for position in positions:
        legal = [action for action, value in enumerate(position.values) if value is not None]
        wrong += (2 if 2 in legal else legal[0]) not in position.keeping
    assert lines[-2].split()[:4] == ["all", "80", *[f"{wrong / 80:.2%}"] * 2]  # with one simulation the prior chooses
