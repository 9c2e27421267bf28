"""Lines of play: a game played again, and dice rolled."""

from collections.abc import Iterator, Sequence

import numpy as np

from azpy._core import CHANCE, State

__all__ = ["replayed", "roll"]


def replayed(start: State, actions: Sequence[int]) -> Iterator[State]:
    """The positions of a game: before each of its actions, and at last after all of them.

    Yields:
        One object, which is played on between two of them: clone what you keep.

    Raises:
        ValueError: an action that the rules do not allow.
    """
    position = start.clone()
    yield position
    for action in actions:
        position.play(int(action))
        yield position


def roll(position: State, rng: np.random.Generator) -> list[int]:
    """Takes the chance outcomes that are due, in place; returns them."""
    rolled = []
    while position.turn == CHANCE:
        outcomes, weights = zip(*position.chance_outcomes(), strict=True)
        probabilities = np.asarray(weights, np.float64)
        rolled.append(int(rng.choice(outcomes, p=probabilities / probabilities.sum())))
        position.play(rolled[-1])
    return rolled
