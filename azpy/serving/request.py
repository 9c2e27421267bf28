"""A search as another program asks for it, how long it may think, what it has found; and what such protocols share."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from azpy import _core
from azpy.pending import Pending
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Player, open_engine

WITHOUT_END = 2**32 - 1
"""Simulations of a search that something else ends."""
_MOST = 10**18  # of a number

# Moves that a player is taken to have left, if the clock does not say it. A share of the rest cannot run out: after n
# moves (1 - 1/25)^n of the time is left. With an increment i the rest settles where rest / 25 + 0.8 i = i, at 5 i.
_MOVES_LEFT = 25
_OF_INCREMENT = 0.8
_OF_THE_LAST_MOVE = 0.9  # before more time comes
_LEAST = 0.001  # seconds: the network's own answer comes in any case
OF_THE_REST = 0.5
"""The most of the time left that a move takes, so that one slow answer loses no game."""


def seconds_to_think(left: float, overhead: float, increment: float = 0.0, moves: int | None = None) -> float:
    """Seconds for one move, at least a thousandth.

    Args:
        left: seconds on the player's clock.
        overhead: seconds a move that pass outside of the search: a network's lag, the program that asks.
        increment: seconds that the clock gets after each move.
        moves: until more time comes; None: no more comes.
    """
    moves = _MOVES_LEFT if moves is None else max(1, moves)
    # Each move to come loses the overhead too.
    left = max(0.0, left - overhead * min(moves, _MOVES_LEFT))
    most = left * (_OF_THE_LAST_MOVE if moves == 1 else OF_THE_REST)
    return max(_LEAST, min(left / moves + _OF_INCREMENT * increment, most))


@dataclass(frozen=True)
class SearchReport:
    """What a search has found by now."""

    state: _core.State  # the position searched
    result: _core.SearchResult
    seconds: float  # since it was asked for

    def lines(self, count: int) -> list[tuple[list[int], int, float]]:
        """At most `count` lines of play, as (actions, visits, q): that of the search's action first, then by visits."""
        result = self.result
        lines, best = result.principal_variations(count), result.principal_variation
        if lines and best:
            place = result.actions.tolist().index(best[0])
            first = best, int(result.visits[place]), float(result.q[place])
            lines = [first, *(line for line in lines if line[0][0] != best[0])][:count]
        return lines


Tell = Callable[[SearchReport], object]


class Search:
    """A search that goes on.

    Args:
        state: the position that is searched.
        search: begins the search: `azpy.EngineGame.search`, or `azpy.Engine.submit` of the position.
        tell: hears the reports; None for no reports.
        options: of `search`; without `lines`, no lines of play are told.

    Raises:
        ValueError: a position that cannot be searched.
    """

    def __init__(self, state: _core.State, search: Callable[..., Pending], tell: Tell | None, **options: Any) -> None:
        self._state, self._began = state, monotonic()
        if tell is not None:
            options["on_report"] = lambda result: tell(self._report(result))
        self._pending = search(**({"lines": 0} | options))

    def stop(self) -> None:
        """Have the search end with what is known by now."""
        self._pending.stop()

    def answer(self) -> SearchReport:
        """Wait for the end of the search.

        Raises:
            CancelledError: the engine was closed before.
            Exception: of the network or the game.
        """
        return self._report(self._pending.result())

    def _report(self, result: _core.SearchResult) -> SearchReport:
        return SearchReport(self._state, result, monotonic() - self._began)


class Protocol(ABC):
    """A conversation in lines about one game at a time, in which one player at a time is asked for moves.

    Args:
        models: players by name; the first one plays until another one is asked for.
        talk: lines in and out.
    """

    def __init__(self, models: Mapping[str, Player], talk: Conversation) -> None:
        self._models, self._talk = models, talk
        self._model = next(iter(models))  # its name
        self._engine: _core.Engine | None = None
        self._kept: _core.EngineGame | None = None  # the game, with its tree

    @property
    def _player(self) -> Player:
        return self._models[self._model]

    def run(self) -> None:
        """Answer lines until the last one, the end of the input, or nobody reads the answers."""
        try:
            for line in self._talk.lines():
                if not self._take(line):
                    return
        finally:
            self._talk.leave()
            self._finish()
            self._close()

    @abstractmethod
    def _take(self, line: str) -> bool:
        """Answer a line; return whether more lines are read."""

    def _finish(self) -> None:  # noqa: B027  some have none
        """End the search that goes on, and answer it."""

    def _engine_options(self) -> dict[str, int]:
        return {"threads": 1, "total_memory_mb": TREES_MB}

    def _opened(self) -> _core.Engine:
        """The engine. The first call opens it."""
        if self._engine is None:
            self._engine = open_engine(self._player, **self._engine_options())
        return self._engine

    def _follow(self, start: _core.State, played: Sequence[int]) -> _core.EngineGame:
        """The engine's game at the position to which `played` leads from `start`; see `EngineGame.follow`."""
        engine = self._opened()
        self._kept = (self._kept or engine.game(start)).follow(start, played)
        return self._kept

    def _search(
        self, start: _core.State, played: Sequence[int], tell: Tell | None = None, anew: bool = False, **options: Any
    ) -> Search:
        """Begin a search of the position to which `played` leads from `start`; see `Search`.

        With `anew` it grows a tree of its own, as a level's does. Then equal requests have equal answers.
        """
        game = self._follow(start, played)
        search = partial(self._opened().submit, game.state) if anew else game.search
        return Search(game.state, search, tell, **options)

    def _forget(self) -> None:
        """Drop the tree: another game begins."""
        self._kept = None

    def _close(self) -> None:
        """Close the engine. The next search opens another one."""
        engine, self._engine = self._engine, None
        self._kept = None
        if engine is not None:
            engine.close(cancel=True)


def whole(text: str) -> int | None:
    """The whole number that a text is, at most 10^18 either way; None if it is none."""
    if not re.fullmatch("-?[0-9]{1,4000}", text):
        return None
    return max(-_MOST, min(_MOST, int(text)))
