"""Evaluators that see positions and prove values, and arrays of other libraries."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from oracles import VARIANTS, Constant, Hashed, Solver, forced, turn_of

STATE = azpy.make_game("tic_tac_toe")


class Table(Hashed):
    """Proves what it is asked to."""

    def __init__(self, num_actions: int, proves: Callable[[Any], float | None], network_id: int | None = None) -> None:
        super().__init__(num_actions, network_id=network_id)
        self.proves = proves
        self.games = set[str]()
        self.asked = 0

    def evaluate_states(self, states: list[azpy.State], observations: NDArray[np.float32]) -> Any:
        logits, values = self.evaluate_batch(observations)
        proven = np.full(len(states), -1)
        self.asked += len(states)
        for row, state in enumerate(states):
            assert (state.observation() == observations[row]).all()
            self.games.add(state.game)
            value = self.proves(state)
            if value is not None:
                values[row], proven[row] = value, 7
            state.play(state.legal_actions()[0])  # its own copy
        return logits, values, proven


def solved(solver: Solver) -> Callable[[azpy.State], float]:
    def value(state: azpy.State) -> float:
        position: Any = state.game_object
        return max(solver.actions(position).values())

    return value


@pytest.mark.parametrize("eval_batch", [1, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_proven_value_counts_as_the_end_of_a_game(variant: str, eval_batch: int) -> None:
    solver = Solver()
    for position, winning in forced(list(VARIANTS[variant])):
        table = Table(position.num_actions, solved(solver))
        result = azpy.Search(table, simulations=50, eval_batch=eval_batch, solver=True).run(position)
        assert (result.action, result.value, result.stop) == (winning, 1.0, "proven")
        assert result.proof is not None
        assert 0 < result.proof <= 8
        assert turn_of(position) in (0, 1)
        assert table.games == {type(position).__name__}


def test_without_a_solver_a_proven_value_is_a_value() -> None:
    found = azpy.Search(Table(9, lambda state: 0.5), simulations=60).run(STATE)
    assert found.visits.sum() == 60
    assert found.proof is None


def test_the_cache_keeps_proofs() -> None:
    """Positions met by two orders of moves, and by a second search: proven all the same."""
    table = Table(9, lambda state: 0.0 if len(state.legal_actions()) <= 7 else None, network_id=3)
    search = azpy.Search(table, simulations=400, solver=True, cache_positions=1000)
    assert search.run(STATE).stop == "proven"
    asked = table.asked
    assert search.run(STATE).stop == "proven"
    assert table.asked > asked


def test_every_search_passes_the_name_of_the_game() -> None:
    game = "connect_four(width=5,height=4,k=4)"
    table = Table(5, lambda state: None)
    with azpy.SelfPlay(game, table, slots=4, simulations=6, games=2, pipelines=2) as games:
        games.swap(table)
        assert len(list(games)) == 2
    start = azpy.make_game(game)
    azpy.VectorSearch([start] * 3, table).run(5)
    with azpy.Engine(table) as engine:
        engine.submit(start, 10).result()
    assert table.games == {game}


class Says(Constant):
    """Says which of its values are proven, given their number."""

    def __init__(self, proven: Callable[[int], Any], value: float = 0.0) -> None:
        super().__init__(9, value)
        self.proven = proven

    def evaluate_states(self, states: list[azpy.State], observations: NDArray[np.float32]) -> Any:
        return *self.evaluate_batch(observations), self.proven(len(states))


@pytest.mark.parametrize(
    ("proven", "text"),
    [
        (np.zeros(0, np.int64), "got 0 of them"),
        (np.zeros(1), "got ndarray of float64"),
        ("no", "got str"),
        (bytearray(1), "got bytearray"),
    ],
)
def test_bad_proofs_are_named_in_the_error(proven: Any, text: str) -> None:
    with pytest.raises(azpy.EvaluatorError, match=f"proven of the evaluator's reply: {text}, expected a bool or whole"):
        azpy.Search(Says(lambda _: proven), simulations=1).run(STATE)


def test_a_number_below_0_proves_nothing() -> None:
    unsure = Says(lambda rows: np.arange(-rows, 0) - 5)
    result = azpy.Search(unsure, simulations=9, solver=True, eval_batch=4).run(STATE)
    assert (result.stop, result.proof) == ("simulations", None)


def test_a_bool_says_that_a_value_is_proven() -> None:
    lost = Says(lambda rows: np.ones(rows, bool), value=-1.0)
    result = azpy.Search(lost, simulations=20, eval_batch=1, solver=True).run(STATE)
    assert (result.value, result.stop, int(result.visits.sum())) == (1.0, "proven", 1)


# Arrays of other libraries.


def answering(convert: Callable[[NDArray[np.float32]], Any]) -> Any:
    class Other(Hashed):
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
            logits, values = super().evaluate_batch(observations)
            return convert(logits), convert(values)

    return Other(9)


def test_torch_and_jax_arrays_are_accepted() -> None:
    jax = pytest.importorskip("jax.numpy")
    expected = azpy.Search(Hashed(9), simulations=40).run(STATE).visits
    for convert in (torch.from_numpy, jax.asarray):
        assert (azpy.Search(answering(convert), simulations=40).run(STATE).visits == expected).all()


@pytest.mark.parametrize(
    ("convert", "text"),
    [
        (lambda array: torch.from_numpy(array).double(), r"got Tensor of torch.float64.*; convert it by .float\(\)"),
        (lambda array: torch.from_numpy(array).requires_grad_(), r"numpy cannot read it .*tensor.detach\(\).cpu\(\)"),
        (
            lambda array: torch.from_numpy(array).bfloat16(),
            r"numpy cannot read it .*tensor.detach\(\).cpu\(\).float\(\)",
        ),
        (lambda array: array.astype(np.float64), r"got ndarray of float64, expected a numpy array of float32, shape"),
    ],
)
def test_refused_arrays_name_the_conversion(convert: Any, text: str) -> None:
    with pytest.raises(azpy.EvaluatorError, match=text):
        azpy.Search(answering(convert), simulations=4).run(STATE)
