"""An engine's game that follows a position which the other program names anew each time."""

from collections.abc import Mapping, Sequence
from typing import Any

from azpy import _core
from azpy.serving.models import Served

__all__ = ["Track"]


class Track:
    """The engine of one conversation and its game. The tree is kept along the actions that two positions share.

    Args:
        served: the player.
        options: of `azpy.Engine`, besides those of the player's search.
    """

    def __init__(self, served: Served, options: Mapping[str, Any]) -> None:
        self._engine = _core.Engine(served.evaluator, **{**served.options, **options})
        self._game: _core.EngineGame | None = None
        self._start, self._played = served.start, list[int]()

    def follow(self, start: _core.State, played: Sequence[int]) -> _core.EngineGame:
        """The game at the position to which `played` leads from `start`."""
        if self._game is None or (start.game, start.key()) != (self._start.game, self._start.key()):
            self._game, self._start, self._played = self._engine.game(start), start, []
        common = 0
        while common < min(len(played), len(self._played)) and played[common] == self._played[common]:
            common += 1
        for _ in self._played[common:]:
            self._game.undo()
        for action in played[common:]:
            self._game.play(action)
        self._played = list(played)
        return self._game

    def forget(self) -> None:
        """Drops the tree."""
        self._game = None

    def close(self) -> None:
        """Ends the searches that go on."""
        self._engine.close(cancel=True)
