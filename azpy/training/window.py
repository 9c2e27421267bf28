"""The newest games of a run, from which its network learns."""

from collections.abc import Callable, Sequence

from azpy import _core
from azpy.errors import RunError
from azpy.runs.imports import learned_from
from azpy.settings.run import Settings

__all__ = ["Window", "window_size"]


class Window:
    """The positions that batches are drawn from.

    Args:
        settings: of the run.
        start: where its games begin.

    Attributes:
        buffer: the games.
        seen: positions of self-play since the run began. Imported games do not count, so the window does not grow for
            them, and self-play soon takes their place.
        newest: positions of self-play in the games that came last.
    """

    def __init__(self, settings: Settings, start: _core.State) -> None:
        self._settings = settings
        self.buffer = _core.ReplayBuffer(start, max_positions=settings.window_max, merge=settings.merge_positions)
        self.seen = self.newest = 0

    def add(self, games: Sequence[_core.GameRecord]) -> None:
        """Adds the games of an iteration, and drops the oldest games beyond the window's size.

        Imported games that are held out are left out.

        Raises:
            RunError: a game does not obey the rules.
        """
        self._extend(learned_from(games, self._settings.supervised_held_out))

    def _extend(self, games: Sequence[_core.GameRecord]) -> None:
        self.newest = _played(games)
        self.seen += self.newest
        self.buffer.resize(window_size(self._settings, self.seen))
        try:
            self.buffer.extend(games)
        except ValueError as error:
            raise RunError(
                f"a stored game does not fit the rules any more ({error}): choose another folder with --out"
            ) from error

    def refill(self, seen: int, iterations: Sequence[int], read: Callable[[int], Sequence[_core.GameRecord]]) -> None:
        """Takes in the games that an empty window would hold: the newest files that have enough of them.

        Args:
            seen: positions since the run began.
            iterations: those that are sealed, ascending.
            read: gives the games of an iteration.
        """
        held: list[Sequence[_core.GameRecord]] = []
        positions, size, left = 0, window_size(self._settings, seen), list(iterations)
        while left and positions < size:
            held.append(learned_from(read(left.pop()), self._settings.supervised_held_out))
            positions += sum(record.positions for record in held[-1])
        self.seen = seen - sum(map(_played, held))
        for games in reversed(held):
            self._extend(games)


def _played(games: Sequence[_core.GameRecord]) -> int:
    return sum(record.positions for record in games if not record.imported)


def window_size(settings: Settings, seen: int) -> int:
    """Positions that a run learns from once it has played `seen` positions; see the settings `window_...`."""
    return min(max(settings.window_min, int(settings.window_share * seen)), settings.window_max)
