"""With dice the search finds what a plain expectation finds."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import DiceCountdown, Position, Solver, random_positions

SIMULATIONS = 8_000
TARGET = 20


@functools.cache
def pig_values() -> NDArray[np.float64]:
    """[own bank, other's bank, table] for the player to move, without the cap on plies: by repeated substitution."""
    values = np.zeros((TARGET, TARGET, TARGET + 1))
    for _ in range(10_000):
        before = values.copy()
        for own, other in itertools.product(range(TARGET), repeat=2):
            for table in range(TARGET - own + 1):
                values[own, other, table] = max(pig_actions(values, own, other, table).values())
        if np.abs(values - before).max() < 1e-9:
            return values
    raise AssertionError("no convergence")


def pig_actions(values: NDArray[np.float64], own: int, other: int, table: int) -> dict[int, float]:
    """Values of rolling (0) and holding (1); points beyond the target are not counted."""
    grown = sum(values[own, other, min(table + face, TARGET - own)] for face in range(2, 7))
    actions = {0: float(grown - values[other, own, 0]) / 6}
    if table:
        actions[1] = 1.0 if own + table == TARGET else -float(values[other, own + table, 0])
    return actions


def check(position: Position, exact: dict[int, float], eval_batch: int, seed: int, *, value_too: bool = True) -> None:
    search = azpy.Search(azpy.UniformEvaluator(), simulations=SIMULATIONS, eval_batch=eval_batch, seed=seed)
    result = search.run(position)
    assert result.action is not None
    *worse, best = sorted(exact.values())
    if not worse or best - worse[-1] > 0.05:
        assert exact[result.action] == best, f"{position}: {result.action} instead of {exact}"
    q = result.q[result.actions.tolist().index(result.action)]
    if value_too:
        assert abs(q - exact[result.action]) < 0.05, f"{position}: {q} instead of {exact}"


@pytest.mark.parametrize("eval_batch", [1, 16])
@pytest.mark.parametrize(
    "make", [lambda: azpy.make_game("dice_nim"), lambda: DiceCountdown(10)], ids=["rust", "python"]
)
def test_dice_nim_is_played_as_a_plain_recursion_says(make: Any, eval_batch: int) -> None:
    solver = Solver()
    for seed, (_, position) in enumerate(random_positions(make(), 5, seed=1, longest=10)):
        check(position, solver.actions(position), eval_batch, seed)


@pytest.mark.parametrize("eval_batch", [1, 16])
def test_pig_is_played_as_exact_values_say(eval_batch: int) -> None:
    positions = random_positions(azpy.make_game("pig", target=TARGET), 20, seed=3, longest=60)
    for seed, (_, position) in enumerate(positions):
        own, other, table, *_ = (position.observation().ravel() * TARGET).round().astype(int).tolist()
        exact = pig_actions(pig_values(), own, other, table)
        # Far from the end of the game most leaves count 0, and a mean over simulations holds what they try out as well:
        # the choice is right all the same.
        check(position, exact, eval_batch, seed, value_too=own >= 13)
