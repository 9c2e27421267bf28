"""Openings of a match: positions drawn by chance or from a policy, no two alike as long as the game has others."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from azpy import _core
from azpy.errors import SettingsError
from azpy.game import Game
from azpy.games.lines import roll

__all__ = ["Book", "Draw", "Opening", "draw_at_random", "draw_from", "mix"]

_TRIES = 200  # draws in a row that bring nothing new before the game is taken to have no more openings

Draw = Callable[[_core.State, np.random.Generator], int]


def draw_at_random(position: _core.State, rng: np.random.Generator) -> int:
    """Picks evenly among the legal actions."""
    return int(rng.choice(position.legal_actions()))


def draw_from(evaluator: Any) -> Draw:
    """Picks by an evaluator's policy, as the search would see it."""
    search = _core.Search(evaluator, simulations=1, eval_batch=1)

    def draw(position: _core.State, rng: np.random.Generator) -> int:
        result = search.run(position)
        priors = result.priors.astype(np.float64)
        return int(rng.choice(result.actions, p=priors / priors.sum()))

    return draw


def mix(*keys: int) -> int:
    """A 63-bit seed for a stream of its own."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Opening(NamedTuple):
    """A position at a player's turn, and the actions that led to it, dice included."""

    position: _core.State
    actions: tuple[int, ...]


class Book:
    """Openings by number: `book[n]` is always the same one, made when it is first asked for.

    Openings lead to different positions. Once `_TRIES` draws in a row bring no new opening, the openings repeat in the
    same order. If all games end within `plies`, the book halves its `plies`.

    `start` makes a start position. `plies` are actions of players before the match begins, each picked by `draw`; dice
    are not counted. `seed` fixes the openings.

    Example:
        >>> from azpy.games.names import make_position
        >>> book = Book(lambda: make_position("tic_tac_toe"), plies=1, seed=0)
        >>> len({book[n].actions for n in range(100)}), len(book)
        (9, 9)
    """

    def __init__(
        self, start: Callable[[], _core.State | Game], plies: int, seed: int, draw: Draw = draw_at_random
    ) -> None:
        if plies < 0:
            raise SettingsError(f"opening_plies must be at least 0, got {plies}")
        self.plies = plies
        self._start, self._seed, self._draw = start, seed, draw
        self._keys: set[int] = set()
        self._openings: list[Opening] = []
        self._drawn = 0
        self._complete = False

    def __len__(self) -> int:
        """Distinct openings so far."""
        return len(self._openings)

    def __getitem__(self, number: int) -> Opening:
        """The opening of pair `number`.

        Raises:
            SettingsError: the game is over before it begins.
        """
        while number >= len(self._openings) and not self._complete:
            self._grow()
        return self._openings[number % len(self._openings)]

    def _grow(self) -> None:
        for _ in range(_TRIES):
            opening = self._one()
            if not opening.position.is_terminal and (key := opening.position.key()) not in self._keys:
                self._keys.add(key)
                self._openings.append(opening)
                return
        if self._openings:
            self._complete = True
        elif self.plies:
            self.plies //= 2
        else:
            raise SettingsError("the game is over before it begins: there is nothing to play a match of")

    def _one(self) -> Opening:
        rng = np.random.default_rng(mix(self._seed, 0, self._drawn))
        self._drawn += 1
        position = _core.State(self._start())
        actions = roll(position, rng)
        for _ in range(self.plies):
            if position.is_terminal:
                break
            action = self._draw(position, rng)
            position.play(action)
            actions += [action, *roll(position, rng)]
        return Opening(position, tuple(actions))
