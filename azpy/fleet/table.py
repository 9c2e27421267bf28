"""Which games of a run are open, leased to a worker, or done. Each game counts exactly once, even if processes die.

A head that starts again takes the games on the disk for done, and opens all else. A worker's end opens its ids again. A
result that comes late for an id that is still open is as good as any. A result for an id that was never leased does not
count. A game depends on its seed and id alone, so in a deterministic run a second result of an
id must have the same bytes. In another run it may differ, because networks change while games are played: the first
result counts.

The table knows neither processes nor files. Time comes from the clock that it is given.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from azpy.errors import RunError

ENDLESS = 2**63 - 1  # beyond every id
# No head leases so many ids beyond those of finished games: 1,024 workers with 2**20 slots each, and more ahead.
AHEAD = 2**32
LEAST_LEASE = 60.0  # seconds
_PATIENCE = 4.0  # times the slowest game: fishtest's workers showed how far games of one run differ (issue 851)
_RECENT = 256  # games whose time says how long a game takes


class IdTable:
    """The ids of one run.

    Args:
        deterministic: two results of one id must have equal bytes.
        clock: seconds from any moment on.
    """

    def __init__(self, *, deterministic: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._deterministic, self._clock = deterministic, clock
        self._fresh: deque[range] = deque()  # open, and never leased by this head; ascending
        self._bound = AHEAD  # above every id that any head can have leased
        self._end = 0  # above every id that was asked for
        self._again: dict[int, None] = {}  # open again, in this order
        self._leases: dict[int, dict[str, float]] = {}  # id that is not done -> its workers -> leased since
        self._held: defaultdict[str, set[int]] = defaultdict(set)  # worker -> what it plays, done by others or not
        self._done: dict[int, bytes] = {}  # id -> digest, until it is sealed
        self._sealed: dict[int, bytes] = {}  # those of the last iteration
        self._seconds: deque[float] = deque(maxlen=_RECENT)  # from the lease of a game to its end

    def ask(self, ids: Iterable[range], done: Mapping[int, bytes]) -> None:
        """Open ids that are above all that were asked for before.

        Args:
            ids: ascending.
            done: digests of games that the journal holds, by id.
        """
        for part in filter(None, ids):
            self._fresh.append(part)
            self._bound, self._end = part.start + AHEAD, part.stop
        self._done.update(done)

    def lease(self, worker: str, most: int) -> list[range]:
        """Lease open ids to a worker, those that are open again first; `most` at most."""
        again = list(islice(self._again, max(most, 0)))
        found = [range(game, game + 1) for game in again]
        for game in again:
            del self._again[game]
        most -= len(again)
        while self._fresh and most > 0:
            ids = self._fresh.popleft()
            found.append(ids[:most])
            if ids[most:]:
                self._fresh.appendleft(ids[most:])
            most -= len(found[-1])
        return self._hand_out(worker, found)

    def lease_twice(self, most: Mapping[str, int]) -> dict[str, list[range]]:
        """Lease ids that another worker has, once none is open: those leased longest, and longer than games take."""
        room = {worker: count for worker, count in most.items() if count > 0}
        if not room or self.num_open or not self._seconds:
            return {}
        latest = self._clock() - sum(self._seconds) / len(self._seconds)
        alone = ((next(iter(of.items())), game) for game, of in self._leases.items() if len(of) == 1)
        late = sorted((since, game, holder) for (holder, since), game in alone if since < latest)
        found = defaultdict[str, list[range]](list)
        for _, game, holder in late:
            worker = next((name for name in islice(room, 2) if name != holder), None)
            if worker is not None:
                found[worker] += self._hand_out(worker, [range(game, game + 1)])
                room[worker] -= 1
                if not room[worker]:
                    del room[worker]
        return dict(found)

    def _hand_out(self, worker: str, ranges: list[range]) -> list[range]:
        now = self._clock()
        for ids in ranges:
            self._held[worker].update(ids)
            for game in ids:
                self._leases.setdefault(game, {})[worker] = now
        return ranges

    @property
    def num_open(self) -> int:
        """How many ids are open."""
        return len(self._again) + sum(ids.stop - ids.start for ids in self._fresh)

    def held(self, worker: str) -> int:
        """How many games a worker plays or is about to."""
        return len(self._held.get(worker, ()))

    def is_done(self, game: int) -> bool:
        """Whether a game of this iteration or the last one is done."""
        return game in self._done or game in self._sealed

    def was_leased(self, game: int, *, before: bool = False) -> bool:
        """Whether this head has leased an id at any time; with `before`, whether a head before may have leased it."""
        if before:
            return game < min(self._bound, self._end)
        return game < self._end and not any(game in ids for ids in self._fresh)

    def accept(self, worker: str, game: int, digest: bytes) -> bool:
        """Take note of a finished game; True if it is new. The caller writes a new game down.

        Args:
            worker: that played it. It may have lost its lease meanwhile.
            game: the id, for which `was_leased` or `is_done` holds.
            digest: of the game's bytes.

        Raises:
            RunError: in a deterministic run, the same game with other bytes came before.
        """
        self._held.get(worker, set()).discard(game)
        first = self._done.get(game) or self._sealed.get(game)
        if first is not None:
            if first != digest and self._deterministic:
                raise RunError(
                    f"game {game} came twice with different bytes, the second time from {worker}, so the run is not "
                    "deterministic; the stored game was kept"
                )
            return False
        if (leases := self._leases.pop(game, None)) is not None:  # others who have it still play it
            if worker in leases:
                self._seconds.append(self._clock() - leases[worker])
        elif game in self._again:
            del self._again[game]
        elif not self._take_fresh(game):
            return False  # its iteration is sealed
        self._done[game] = digest
        return True

    def _take_fresh(self, game: int) -> bool:
        """Take one id out of those that this head has not leased: a head before had."""
        for index, ids in enumerate(self._fresh):
            if game in ids:
                self._fresh.remove(ids)
                for part in filter(None, (range(game + 1, ids.stop), range(ids.start, game))):
                    self._fresh.insert(index, part)
                return True
        return False

    def release(self, worker: str) -> None:
        """Open the ids of a worker again: it has ended, or it was told to let its games go."""
        for game in sorted(self._held.pop(worker, ())):
            if (leases := self._leases.get(game)) is not None and leases.pop(worker, None) is not None and not leases:
                del self._leases[game]
                self._again[game] = None

    def lease_seconds(self) -> float:
        """How long a worker keeps its ids without a finished game. Endless until a game shows how long one takes."""
        return max(LEAST_LEASE, _PATIENCE * max(self._seconds)) if self._seconds else math.inf

    def seal(self, ids: Iterable[int]) -> None:
        """Forget the games of a sealed iteration. A result of theirs that comes later is dropped.

        The digests of the last iteration stay, to compare late results with.
        """
        self._sealed = {game: self._done.pop(game) for game in ids if game in self._done}
