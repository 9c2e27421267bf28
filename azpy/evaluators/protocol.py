"""What an evaluator is: the one thing azpy asks of a network.

Any object with a fitting `evaluate_batch` is an evaluator; nothing is registered or subclassed. `CheckedEvaluator` is
what azpy's own evaluators of networks share: what a network must show before it may answer. This module knows no
network library.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from azpy.errors import ModelError
from azpy.game import value_width

Answer = tuple[NDArray[np.float32], NDArray[np.float32]]  # logits [B, A], values [B] or [B, P]

_WARM_UP_ROWS = 2
_FEW_ROWS = 7


@runtime_checkable
class Evaluator(Protocol):
    """Any object that answers batches of positions with logits and values. There is nothing to register or subclass.

    azpy checks each reply: a wrong shape or dtype, NaN, infinity or a value outside [-1, 1] raises
    `azpy.EvaluatorError`. An exception in the evaluator reaches the caller of the search unchanged. Arrays of torch,
    JAX and similar libraries work too, if they are float32 and in main memory.

    The number of rows differs from call to call. Row i of the reply must depend on row i of the observations alone. If
    a row has the same bits in any batch, searches and self-play repeat exactly.

    A search calls its evaluator from one thread at a time. `azpy.SelfPlay` has a thread for each pipeline: it forks an
    evaluator with a `fork` for every pipeline but the first, and shares another evaluator, one call at a time.

    Optional attributes, which azpy looks up when it makes a search or self-play:

    * ``fork() -> Evaluator`` returns an evaluator for another thread.
    * ``evaluate_states(states, observations) -> (logits, values)`` or ``(logits, values, proven)`` replaces
      `evaluate_batch`. `states` is a list of B `azpy.State`, copies that it may change. `proven` [B] says which values
      are exact, such as those of an endgame table: bools; or ints, -1 where a value is not exact, else (about) the most
      plies to the end of the game. A search with `solver` treats a proven value as the end of a game. At the root it
      counts as a value alone, so that the search finds an action.
    * ``network_id: int`` is a nonzero 64-bit hash of the network's weights. With it, azpy can cache answers by
      position; without it, azpy caches nothing.

    Example:
        >>> import numpy as np
        >>> import azpy
        >>> class Centre:
        ...     '''Prefers the middle column of Connect Four and knows nothing else.'''
        ...
        ...     def evaluate_batch(self, observations):
        ...         rows = len(observations)
        ...         logits = np.tile(np.float32([0, 1, 2, 3, 2, 1, 0]), (rows, 1))
        ...         return logits, np.zeros(rows, np.float32)
        >>> result = azpy.Search(Centre(), simulations=50).run(azpy.make_game("connect_four"))
        >>> result.action
        3
    """

    def evaluate_batch(self, observations: NDArray[np.float32], /) -> Answer:
        """Evaluate one batch.

        Args:
            observations: float32 [B, C, H, W] in C order, one position a row, from the view of the player to move. Do
                not write to it, and copy what you keep: it is valid during this call only.

        Returns:
            ``(logits, values)``. Logits are float32 [B, A], before the softmax; azpy ignores those of illegal actions.
            Values are float32 [B] or [B, 1] in [-1, 1]: 1 where the player to move wins. In a game of P players
            without a zero sum, values are [B, P] in turn order from the player to move: player p has column
            (p - mover) mod P.
        """
        ...


class GameShape(Protocol):
    """The shapes that a network must fit; a `State` has them, and how many players there are (two, if it says none)."""

    @property
    def num_actions(self) -> int:
        """A."""

    @property
    def obs_shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""


class CheckedEvaluator(ABC):
    """A loaded network that was looked at before it answers: its shapes, a first batch, and whether rows are exact."""

    name: str  # of the model, for errors
    obs_shape: tuple[int, int, int]  # (C, H, W) the network takes
    num_actions: int  # A, the number of logits in a row
    num_values: int = 1  # numbers of a row's value: 1, or P in a game of P players without a zero sum
    network_id: int  # nonzero 64-bit hash of the weights
    device: str  # where it runs: "cpu", "cuda:0", ...
    description: str  # device, precision and batches in one line
    notes: Sequence[str] = ()  # why "auto" took or passed over a device; one line each
    _batches: Sequence[int] = (64,)  # rows of batches that play: libraries choose other kernels for other sizes

    @abstractmethod
    def _evaluate(self, observations: NDArray[np.float32]) -> Answer:
        """Logits [B, A] and values [B] or [B, P] of observations that have the right shape."""

    @abstractmethod
    def fork(self) -> Self:
        """Return an evaluator for another thread."""

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Answer:
        """Answers as `Evaluator.evaluate_batch` says; safe to call from several threads. Observations are not kept.

        Raises:
            ModelError: observations of another shape than the network's, or of another dtype than float32.
        """
        self._check_observations(observations)
        return self._evaluate(observations)

    def _check_observations(self, observations: Any) -> None:
        """Refuses what is not float32 [B, C, H, W]: a silent cast would hide a mistake, or cost a copy a batch."""
        is_array = isinstance(observations, np.ndarray)
        if is_array and observations.shape[1:] == self.obs_shape and observations.dtype == np.float32:
            return
        kind = type(observations).__name__
        came = f"{observations.dtype} {list(observations.shape)}" if is_array else f"{kind}, not a numpy array"
        shape = ", ".join(map(str, self.obs_shape))
        raise ModelError(f"{self.name} takes observations float32 [B, {shape}], got {came}")

    def _check_fits(self, game: GameShape, hint: str = "") -> None:
        """Refuses a network that was made for another game than `game`, by its `obs_shape` and `num_actions`."""
        expected = (*(int(size) for size in game.obs_shape), int(game.num_actions))
        found = (*self.obs_shape, self.num_actions)
        if found != expected:
            raise ModelError(
                f"{self.name} does not fit the game: it takes observations {list(found[:3])} and gives "
                f"{found[3]} logits, expected {list(expected[:3])} and {expected[3]}{hint}"
            )
        if self.num_values != value_width(game):
            raise ModelError(
                f"{self.name} does not fit the game: it gives {self.num_values} numbers as the value of a position, "
                f"expected {value_width(game)}, the game has {getattr(game, 'num_players', 2)} players"
            )

    def _warm_up(self) -> None:
        """Evaluates a first batch of empty boards, and refuses what cannot be used."""
        rows = np.zeros((_WARM_UP_ROWS, *self.obs_shape), np.float32)
        try:
            logits, values = self._evaluate(rows)
        except Exception as error:  # onnxruntime's and torch's exceptions have no common base class
            raise ModelError(f"{self.name} cannot be run: {first_line(error)}") from error
        expected = (_WARM_UP_ROWS,) if self.num_values == 1 else (_WARM_UP_ROWS, self.num_values)
        if logits.shape != (_WARM_UP_ROWS, self.num_actions) or values.shape != expected:
            raise ModelError(
                f"{self.name} answers {_WARM_UP_ROWS} rows with logits {list(logits.shape)} and values "
                f"{list(values.shape)}, expected {[_WARM_UP_ROWS, self.num_actions]} and {list(expected)}"
            )
        if not (np.isfinite(logits).all() and np.isfinite(values).all()):
            raise ModelError(f"{self.name} returns NaN or infinity for the start position")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.device!r}, network_id={self.network_id:#018x})"

    @cached_property
    def row_exact(self) -> bool:
        """Whether a row gets the same bits in batches of other sizes and in other places; found when first asked for.

        If not, the result of a search depends on which positions share a batch.
        """
        shape = max(_FEW_ROWS, *self._batches), *self.obs_shape
        rows = np.random.default_rng(0).integers(0, 2, shape).astype(np.float32)
        few = rows[:_FEW_ROWS]
        logits, values = self._evaluate(few)
        for size in (1, 2, *self._batches):
            if size < _FEW_ROWS:
                parts = [self._evaluate(few[begin : begin + size]) for begin in range(0, _FEW_ROWS, size)]
            else:
                # The few rows are the first ones of one batch, and anywhere in another.
                order = np.random.default_rng(size).permutation(size)
                whole, mixed = self._evaluate(rows[:size]), self._evaluate(rows[:size][order])
                if not _same(mixed, (whole[0][order], whole[1][order])):
                    return False
                parts = [(whole[0][:_FEW_ROWS], whole[1][:_FEW_ROWS])]
            if not _same((logits, values), tuple(np.concatenate(part) for part in zip(*parts, strict=True))):
                return False
        return True


def _same(one: Sequence[NDArray[np.float32]], other: Sequence[NDArray[np.float32]]) -> bool:
    """Whether all bits are the same."""
    return all(mine.tobytes() == its.tobytes() for mine, its in zip(one, other, strict=True))


def repeated(step: Callable[[], float], seconds: float) -> float:
    """Sum of the results of `step` a second: calls it until the time is over, once at least."""
    done, begin = 0.0, time.perf_counter()
    while True:
        done += step()
        if (spent := time.perf_counter() - begin) >= seconds:
            return done / spent


def rate(
    answers: Sequence[Callable[[NDArray[np.float32]], Answer]],
    rows: int,
    obs_shape: Sequence[int],
    seconds: float = 0.2,
) -> float:
    """Rows a second of as many threads as `answers`, each of which evaluates batches of this size for so long.

    The first batch of each thread does not count.
    """

    def alone(index: int) -> float:
        batch = np.random.default_rng(index).integers(0, 2, (rows, *obs_shape)).astype(np.float32)

        def step() -> int:
            answers[index](batch)
            return rows

        step()
        return repeated(step, seconds)  # each by itself: the first to end must not count as slow

    with ThreadPoolExecutor(len(answers)) as pool:
        return sum(pool.map(alone, range(len(answers))))


def first_line(error: Exception) -> str:
    """The first line of an exception's text, or its name if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
