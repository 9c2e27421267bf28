"""The games that training draws from: recent ones, more of them as the run grows. No files, no torch."""

from collections import deque
from collections.abc import Iterable

from azpy import _core
from azpy.errors import RunError
from azpy.positions import Position

__all__ = ["Window"]


class Window:
    """A sliding window over a run's games.

    It holds the newest games with at least `max(minimum, share * positions seen)` positions (but see `growth`),
    `maximum` at most.

    Args:
        minimum: positions kept before old ones are let go.
        share: share of all positions kept once that is more.
        maximum: positions kept at most.
        growth: exponent a in (0, 1] of KataGo's window (Wu 2019, section 3): of N positions, with c the minimum,
            `c (1 + share ((N / c)^a - 1) / a)` are kept,
            so `share` is how fast it grows at first. None: `share` of all.

    Attributes:
        seen: positions added since the run began.
        positions: positions held.
    """

    def __init__(self, minimum: int, share: float, maximum: int, growth: float | None = None) -> None:
        self._minimum = minimum
        self._growth = growth
        self._share = share
        self._maximum = maximum
        self._records: deque[_core.GameRecord] = deque()
        self.seen = 0
        self.positions = 0

    @property
    def size(self) -> int:
        """Positions to hold."""
        if self._growth is None:
            wanted = self._share * self.seen
        else:
            c, alpha = self._minimum, self._growth
            wanted = c * (1 + self._share * ((max(self.seen, c) / c) ** alpha - 1) / alpha)
        return min(max(self._minimum, int(wanted)), self._maximum)

    def add(self, records: Iterable[_core.GameRecord]) -> int:
        """Takes in games, oldest first, and lets go of what no longer fits.

        Returns:
            How many positions they have.
        """
        added = 0
        for record in records:
            self._records.append(record)
            added += record.positions
        self.seen += added
        self.positions += added
        while self._records and self.positions - self._records[0].positions >= self.size:
            self.positions -= self._records.popleft().positions
        return added

    def buffer(self, start: Position) -> _core.ReplayBuffer:
        """A replay buffer of exactly these games, so that batches depend on nothing that came before.

        Raises:
            RunError: there is no position to draw, or a game does not fit the rules, which were changed since it was
                played.
        """
        if not self.positions:
            raise RunError(
                f"there is nothing to learn from, no game has a searched position (games: {len(self._records)}): fewer "
                "opening plies, longer games or more full searches, in another folder with --out; "
                "az-check-game says whether a game of one's own is right"
            )
        buffer = _core.ReplayBuffer(start, max_positions=self.positions)
        for record in self._records:
            try:
                buffer.add(record)
            except ValueError as error:
                raise RunError(
                    f"a stored game does not fit the rules any more ({error}): choose another folder with --out"
                ) from error
        return buffer
