"""Searches by the core, whose visits show a key that is wrong."""

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy._core import State

__all__ = ["visits"]


class _Any:
    """An evaluator whose answers depend on every value of a row, and on nothing else."""

    network_id = 0x617A7079  # any number: there is one network

    def __init__(self, num_actions: int) -> None:
        self._actions = np.arange(1, num_actions + 1)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [B, A] and values [B]."""
        rows = observations.reshape(len(observations), -1).astype(np.float64)
        weights = np.sin(np.arange(1, rows.shape[1] + 1))
        # Row by row: the bits of a row must not depend on its place in a batch.
        sums = [float(np.dot(row, weights)) for row in rows]
        logits = np.stack([np.sin(total * self._actions) for total in sums])
        return logits.astype(np.float32), np.sin(7 * np.array(sums)).astype(np.float32) / 2


def visits(state: State, simulations: int, cache_positions: int, *, seed: int) -> list[int]:
    """The visits of each action in a search."""
    search = _core.Search(
        _Any(state.num_actions), simulations=simulations, eval_batch=2, cache_positions=cache_positions, seed=seed
    )
    found: list[int] = search.run(state).visits.tolist()
    return found
