"""benches/solved.py: errors in solved positions of Connect Four."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

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


class Planted:
    """Values of a position that need no solver: the action that is the number of plies, modulo 7, is best."""

    def values(self, actions: list[int]) -> tuple[int | None, ...]:
        legal = after(azpy.make_game("connect_four"), *actions).legal_actions()
        return tuple((1 if action == len(actions) % 7 else 0) if action in legal else None for action in range(7))


def test_positions_are_those_of_the_seed(
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
    for chosen, errors, only in [((0, 1, 1, 0), 0, 0), ((1, 3, 0, 0), 1, 1), ((2, 2, 1, 3), 3, 1)]:
        counted = solved.count_errors(positions, chosen)
        assert (counted.positions, counted.errors, counted.only, counted.only_errors) == (4, errors, 2, only)
        assert counted.share == errors / 4
