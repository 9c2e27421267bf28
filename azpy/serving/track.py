"""An engine's game that follows a position which the other program names anew each time."""

from collections.abc import Sequence

from azpy import _core


class Track:
    """A game of an engine. Its tree is kept along the actions that two positions share.

    Args:
        engine: who searches.

    Attributes:
        engine: as given.
    """

    def __init__(self, engine: _core.Engine) -> None:
        self.engine = engine
        self._game: _core.EngineGame | None = None
        self._start: _core.State | None = None
        self._played = list[int]()

    def follow(self, start: _core.State, played: Sequence[int]) -> _core.EngineGame:
        """The game at the position to which `played` leads from `start`."""
        before = self._start
        if self._game is None or before is None or (start.game, start.key()) != (before.game, before.key()):
            self._game, self._start, self._played = self.engine.game(start), start, []
        common = 0
        while common < min(len(played), len(self._played)) and played[common] == self._played[common]:
            common += 1
        if common == 0 and self._played:
            # Back at the start another game begins: its tree would otherwise grow with each game.
            self._game, self._played = self.engine.game(start), []
        # One by one: where a game in Python raises, the tree and `_played` still agree.
        while len(self._played) > common:
            self._game.undo()
            self._played.pop()
        for action in played[common:]:
            self._game.play(action)
            self._played.append(action)
        return self._game

    def forget(self) -> None:
        """Drops the tree."""
        self._game = None
