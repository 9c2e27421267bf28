"""Several evaluators that answer as one."""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy._core import EvaluatorError, State, listed
from azpy.errors import SettingsError
from azpy.game import value_width

_LEAST = np.finfo(np.float32).tiny  # probability: its logarithm is finite


class Ensemble:
    """The mean of several evaluators: of their probabilities of the legal actions, and of their values.

    Where one of them has proven a value (`evaluate_states`), that value counts alone.

    Args:
        evaluators: each with `evaluate_batch` or `evaluate_states`, all for one game.
        weights: how much each counts, above 0; None: all alike.

    Attributes:
        network_id: nonzero 64-bit hash of those of the evaluators and their weights; None if one of them has none.

    Raises:
        SettingsError: no evaluator, an object that is none, or weights that do not fit.

    Example:
        >>> import azpy
        >>> run = azpy.load_run("runs/connect_four")  # doctest: +SKIP
        >>> both = azpy.Ensemble([run.evaluator, azpy.OnnxEvaluator("other.onnx")], weights=[2, 1])  # doctest: +SKIP
        >>> azpy.Search(both, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """

    def __init__(self, evaluators: Sequence[Any], weights: Sequence[float] | None = None) -> None:
        try:
            self._evaluators = listed(evaluators)
            numbers = [1.0] * len(self._evaluators) if weights is None else listed(weights)
            given = np.array(numbers, np.float64)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"an Ensemble takes a list of evaluators and a list of weights: {error}") from error
        for one in self._evaluators:
            if not (hasattr(one, "evaluate_batch") or hasattr(one, "evaluate_states")):
                raise SettingsError(f"an Ensemble takes evaluators with evaluate_batch or evaluate_states, got {one!r}")
        count = len(self._evaluators)
        if not count or given.shape != (count,) or not (np.isfinite(given) & (given > 0)).all():
            raise SettingsError(
                f"an Ensemble takes evaluators, and a weight above 0 for each: got {count} evaluators "
                f"and weights {weights}"
            )
        self._weights = (given / given.sum()).astype(np.float32)
        ids = [getattr(one, "network_id", None) for one in self._evaluators]
        self.network_id: int | None = None
        if all(ids):
            named = repr((ids, self._weights.tolist())).encode()
            self.network_id = int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little") or 1
        if all(hasattr(one, "fork") for one in self._evaluators):
            self.fork = self._forked  # else pipelines share it, one call at a time

    def evaluate_states(
        self, states: Sequence[State], observations: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """Answers as `Evaluator` says: logits [B, A], values [B] (or [B, P]), plies to a proven end [B].

        The logits are the logarithms of the mean probabilities.
        """
        rows = len(states)
        legal = np.zeros((rows, states[0].num_actions), np.bool_)
        for row, state in enumerate(states):
            legal[row, state.legal_actions()] = True
        width = value_width(states[0])
        shape = (rows,) if width == 1 else (rows, width)
        policy, values = np.zeros(legal.shape, np.float32), np.zeros(shape, np.float32)
        exact, proven = np.zeros(shape, np.float32), np.full(rows, -1, np.int64)
        for one, weight in zip(self._evaluators, self._weights, strict=True):
            given = observations.copy()  # it may write to it
            proofs: list[Any] = []
            if hasattr(one, "evaluate_states"):
                logits, mine, *proofs = one.evaluate_states(states, given)
            else:
                logits, mine = one.evaluate_batch(given)
            logits, mine = np.asarray(logits, np.float32), np.asarray(mine, np.float32)
            if logits.shape != legal.shape or mine.shape not in (shape, (rows, width)):
                got = f"got {list(logits.shape)} and {list(mine.shape)}"
                raise EvaluatorError(f"{one!r} must give logits {list(legal.shape)} and values {list(shape)}, {got}")
            if not (np.abs(mine) <= 1).all():
                raise EvaluatorError(f"{one!r} gives a value that is not in [-1, 1]: {mine.min():g} to {mine.max():g}")
            mine = mine.reshape(shape)
            masked = np.where(legal, logits, -np.inf)
            shares = np.exp(masked - masked.max(1, keepdims=True))
            policy += weight * shares / shares.sum(1, keepdims=True)
            values += weight * mine
            for plies in map(_plies, proofs):
                new = (plies >= 0) & (proven < 0)
                exact[new], proven[new] = mine[new], plies[new]
        known = proven >= 0
        values[known] = exact[known]
        return np.log(np.maximum(policy, _LEAST)), values, proven

    def _forked(self) -> Self:
        other = copy.copy(self)
        other._evaluators = [one.fork() for one in self._evaluators]
        other.fork = other._forked
        return other


def _plies(proven: Any) -> NDArray[np.int64]:
    """What an evaluator says of proofs, in plies: of a bool, many."""
    found = np.asarray(proven)
    if found.ndim != 1 or found.dtype.kind not in "bi":
        raise EvaluatorError(f"proofs must be bools or whole numbers [B], got {found.dtype} {list(found.shape)}")
    return np.where(found, 255, -1) if found.dtype == np.bool_ else found.astype(np.int64)
