"""Lines of play: a game played again, actions that are read, and dice rolled."""

import contextlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from azpy._core import CHANCE, State

__all__ = ["random_game", "read_action", "replayed", "roll"]

_UCI_MOVE = re.compile("[a-h][1-8][a-h][1-8][nbrq]?", re.IGNORECASE)


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


def read_action(state: State, name: str) -> int | None:
    """The legal action, or the outcome of a roll that is due, of a name that another program writes.

    None if there is none. In chess the name may have capitals, and castling may be the king's step onto its rook or two
    steps of the king.
    """
    rolls = state.turn == CHANCE
    offered = [outcome for outcome, _ in state.chance_outcomes()] if rolls else state.legal_actions()
    found = next((action for action in offered if state.action_name(action) == name), None)
    if found is None and state.game.partition("(")[0] == "chess" and _UCI_MOVE.fullmatch(name):
        with contextlib.suppress(ValueError):
            (found,) = state.parse_actions(name.lower())
    return found


def random_game(start: State, rng: np.random.Generator, most: int) -> Iterator[int]:
    """A game of random actions, to its end or for `most` plies.

    Yields:
        The number of legal actions at each ply; 0 for a roll.
    """
    position = start.clone()
    for _ in range(min(most, start.max_plies)):
        if position.is_terminal:
            return
        if position.turn == CHANCE:
            outcomes, weights = zip(*position.chance_outcomes(), strict=True)
            yield 0
        else:
            outcomes = tuple(position.legal_actions())
            weights = (1.0,) * len(outcomes)
            yield len(outcomes)
        probabilities = np.asarray(weights, np.float64)
        position.play(int(rng.choice(outcomes, p=probabilities / probabilities.sum())))


def roll(position: State, rng: np.random.Generator) -> list[int]:
    """Takes the chance outcomes that are due, in place; returns them."""
    rolled = []
    while position.turn == CHANCE:
        outcomes, weights = zip(*position.chance_outcomes(), strict=True)
        probabilities = np.asarray(weights, np.float64)
        rolled.append(int(rng.choice(outcomes, p=probabilities / probabilities.sum())))
        position.play(rolled[-1])
    return rolled
