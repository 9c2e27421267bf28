"""Lines of play: a game played again, actions that are read, and dice rolled."""

import contextlib
import re
import time
from collections.abc import Iterator, Sequence

import numpy as np

from azpy._core import CHANCE, State

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
    if found is None and state.name == "chess" and _UCI_MOVE.fullmatch(name):
        with contextlib.suppress(ValueError):
            (found,) = state.parse_actions(name.lower())
    return found


def random_games(start: State, games: int, most: int, seconds: float) -> list[list[int]]:
    """Some games of random actions, always the same ones: fewer than `games` where time is up, but a part of one.

    Args:
        start: of the games.
        games: how many at most.
        most: plies of a game; a longer one is cut off.
        seconds: after so many the game at hand is cut off. It counts only if it is the first.

    Returns:
        For each game the number of legal actions at each ply; 0 for a roll.
    """
    rng, end = np.random.default_rng(0), time.perf_counter() + seconds
    played = list[list[int]]()
    for _ in range(games):
        counts = list[int]()
        for count in at_random(start.clone(), rng, min(most, start.max_plies)):
            counts.append(count)
            if time.perf_counter() > end:
                return played or [counts]
        played.append(counts)
    return played


def at_random(position: State, rng: np.random.Generator, most: int) -> Iterator[int]:
    """Play a game on at random, for `most` plies at most; give the number of legal actions of each, 0 for a roll."""
    for _ in range(most):
        if position.is_terminal:
            return
        is_roll = position.turn == CHANCE
        actions = [] if is_roll else position.legal_actions()
        position.play(_rolled(position, rng) if is_roll else int(rng.choice(actions)))
        yield len(actions)


def _rolled(position: State, rng: np.random.Generator) -> int:
    outcomes, weights = zip(*position.chance_outcomes(), strict=True)
    probabilities = np.asarray(weights, np.float64)
    return int(rng.choice(outcomes, p=probabilities / probabilities.sum()))


def roll(position: State, rng: np.random.Generator) -> list[int]:
    """Take the chance outcomes that are due, in place; return them."""
    rolled = []
    while position.turn == CHANCE:
        rolled.append(_rolled(position, rng))
        position.play(rolled[-1])
    return rolled
