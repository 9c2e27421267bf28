"""Which games of a run are open, leased to a worker, or done: each game counts exactly once, whatever dies.

Only done is durable: the journal and the sealed files hold it. A head that starts again fills a new table from them
(`note_done`), and all else is open. A worker's death and a lapsed lease open its ids again. A result that comes late
for an id that is still open is as good as any. A result for an id that was never leased does not count: a worker that
made up an id beyond all others left no id to play. A game depends on its seed and id alone, so in a deterministic run
a second result of an id must have the same bytes. In another run it may differ, because networks change while games
are played: the first result counts.

The table knows neither processes nor files. Time comes from the clock that it is given.
"""

import heapq
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from azpy.errors import RunError

__all__ = ["AHEAD", "ENDLESS", "LEAST_LEASE", "IdTable", "id_after"]

ENDLESS = 2**63 - 1  # beyond every id
# No head leases so many ids beyond those of finished games: 1,024 workers with 2**20 slots each, and their tasks.
AHEAD = 2**32
LEAST_LEASE = 60.0  # seconds
_PATIENCE = 4.0  # times the slowest game: fishtest's workers showed how far games of one run differ (issue 851)
_RECENT = 256  # games whose time says how long a game takes


def id_after(first: int, ids: Iterable[int]) -> int:
    """The first id that no head leased: `first` at least, and above the ids of a run's games.

    Ids that are `AHEAD` above the others do not count: no head leased these either.
    """
    for game in sorted(ids):
        if game - first >= AHEAD:
            break
        first = max(first, game + 1)
    return first


class IdTable:
    """The ids of one run.

    Args:
        deterministic: two results of one id must have equal bytes.
        clock: seconds from any moment on.

    Attributes:
        dropped: results that changed nothing, by reason: `same` (equal bytes), `other` (other bytes), `late` (the
            iteration of the game is sealed), `not leased`.
    """

    def __init__(self, *, deterministic: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._deterministic, self._clock = deterministic, clock
        self._fresh: deque[range] = deque()  # open, and never leased by this head
        self._begin, self._end = ENDLESS, 0  # the first id that was asked for, and the one after the last
        self._again: set[int] = set()  # open again
        self._lowest: list[int] = []  # a heap: the ids of `_again`, and some that are done meanwhile
        self._held: dict[str, dict[int, float]] = {}  # worker -> id -> leased since; none of these ids is done
        self._holders: dict[int, list[str]] = {}  # id -> its workers; the same leases as in `_held`
        self._alone: dict[int, tuple[float, int, str]] = {}  # id that one worker has -> since, id, worker
        self._oldest: list[tuple[float, int, str]] = []  # a heap: the entries of `_alone`, and some that are void
        self._moot: dict[str, set[int]] = {}  # worker -> ids that it plays although another worker's game is done
        self._heard: dict[str, float] = {}  # worker with a lease -> its last finished game, or the begin of its lease
        self._done: dict[int, bytes] = {}  # id -> digest, until it is sealed
        self._sealed: dict[int, bytes] = {}  # those of the last iteration
        self._seconds: deque[float] = deque(maxlen=_RECENT)  # from the lease of a game to its end
        self._usual: float | None = None  # their mean; None: not known yet
        self.dropped: Counter[str] = Counter()

    def ask(self, ids: range) -> None:
        """Opens ids that were never asked for, after those that are open."""
        if ids:
            self._fresh.append(ids)
            self._begin, self._end = min(self._begin, ids.start), max(self._end, ids.stop)

    def note_done(self, digests: Mapping[int, bytes]) -> None:
        """Takes in the journal's games, by id; none of these ids may be open."""
        self._done.update(digests)

    def lease(self, worker: str, most: int) -> list[range]:
        """Leases open ids to a worker, the lowest ones of those that are open again first; `most` at most."""
        taken = list[int]()
        while self._again and len(taken) < most:
            if (game := heapq.heappop(self._lowest)) in self._again:
                self._again.remove(game)
                taken.append(game)
        ranges = [range(game, game + 1) for game in taken]
        left = most - len(taken)
        while self._fresh and left > 0:
            ids = self._fresh.popleft()
            ranges.append(ids[:left])
            if ids[left:]:
                self._fresh.appendleft(ids[left:])
            left -= len(ranges[-1])
        return self._hand_out(worker, ranges)

    def lease_twice(self, worker: str, most: int) -> list[range]:
        """Leases ids that another worker has, once none is open: those leased longest, and longer than games take."""
        if most <= 0 or self.has_open or not self._seconds:
            return []
        if self._usual is None:
            self._usual = sum(self._seconds) / len(self._seconds)
        now, taken, own = self._clock(), list[int](), list[tuple[float, int, str]]()
        while self._oldest and now - self._oldest[0][0] > self._usual and len(taken) < most:
            entry = heapq.heappop(self._oldest)
            _, game, holder = entry
            if self._alone.get(game) is not entry:
                continue
            if holder == worker:
                own.append(entry)
            else:
                taken.append(game)
        for entry in own:
            heapq.heappush(self._oldest, entry)
        return self._hand_out(worker, [range(game, game + 1) for game in taken])

    def _hand_out(self, worker: str, ranges: list[range]) -> list[range]:
        if ranges:
            now = self._clock()
            if not self._held.get(worker):
                self._heard[worker] = now
            held = self._held.setdefault(worker, {})
            for ids in ranges:
                for game in ids:
                    if game not in held:
                        self._holders.setdefault(game, []).append(worker)
                    held[game] = now
                    self._queue(game)
        return ranges

    def _take_back(self, worker: str, game: int) -> float | None:
        """Ends one lease; returns since when it was, None if there is none."""
        since = self._held.get(worker, {}).pop(game, None)
        if since is not None:
            self._holders[game].remove(worker)
            self._queue(game)
        return since

    def _queue(self, game: int) -> None:
        """Keeps the queue of `lease_twice` after a change of an id's workers."""
        holders = self._holders[game]
        if len(holders) != 1:
            self._alone.pop(game, None)
            if not holders:
                del self._holders[game]
            return
        entry = self._alone[game] = (self._held[holders[0]][game], game, holders[0])
        heapq.heappush(self._oldest, entry)
        if len(self._oldest) > 2 * len(self._alone) + _RECENT:  # most of it is void
            self._oldest = sorted(self._alone.values())

    def hand_over(self, giver: str, taker: str, ids: Iterable[int]) -> None:
        """Leases to one worker what another one has of these ids; the lease begins now.

        An id that is done meanwhile is nobody's: the taker itself may have done it.
        """
        games = list[range]()
        for game in ids:
            self._moot.get(giver, set()).discard(game)
            if self._take_back(giver, game) is not None:
                games.append(range(game, game + 1))
        self._hand_out(taker, games)

    @property
    def num_open(self) -> int:
        """How many ids are open."""
        return len(self._again) + sum(map(len, self._fresh))

    @property
    def has_open(self) -> bool:
        """Whether an id is open."""
        return bool(self._again or self._fresh)

    def held(self, worker: str) -> int:
        """How many games a worker plays or is about to."""
        return len(self._held.get(worker, ())) + len(self._moot.get(worker, ()))

    def was_leased(self, game: int, *, before: bool = False) -> bool:
        """Whether this head has leased an id at any time; with `before`, whether a head before may have leased it."""
        if before:
            return game < min(self._end, self._begin + AHEAD)
        return game < self._end and not any(game in ids for ids in self._fresh)

    def accept(self, worker: str, game: int, digest: bytes, *, before: bool = False) -> bool:
        """Takes note of a finished game; True if it is new. The caller writes a new game down, then tells the worker.

        Args:
            worker: that played it. It may have lost its lease meanwhile.
            game: the id.
            digest: of the game's bytes.
            before: the worker has the lease from a head before this one.

        Raises:
            RunError: in a deterministic run, the same game with other bytes came before.
        """
        now = self._clock()
        since = self._take_back(worker, game)
        if since is not None:
            self._seconds.append(now - since)
            self._usual = None
        self._moot.get(worker, set()).discard(game)
        if worker in self._heard:
            self._heard[worker] = now
        first = self._done.get(game) or self._sealed.get(game)
        if first is not None:
            if first != digest and self._deterministic:
                raise RunError(
                    f"game {game} came twice with different bytes, the second time from {worker}: this is no "
                    "deterministic run; the game that is stored was kept"
                )
            self.dropped["same" if first == digest else "other"] += 1
            return False
        if not self.was_leased(game, before=before):
            self.dropped["not leased"] += 1
            return False
        if game in self._again:
            self._again.remove(game)
        elif not self._take_from_others(game) and not self._take_fresh(game) and since is None:
            self.dropped["late"] += 1
            return False
        self._done[game] = digest
        return True

    def _take_from_others(self, game: int) -> bool:
        """Ends the leases of a game that is done; those who have it still play it."""
        holders = list(self._holders.get(game, ()))
        for worker in holders:
            self._take_back(worker, game)
            self._moot.setdefault(worker, set()).add(game)
        return bool(holders)

    def _take_fresh(self, game: int) -> bool:
        """Takes one id out of those that this head has not leased: a head before had."""
        for index, ids in enumerate(self._fresh):
            if game in ids:
                at = ids.index(game)
                self._fresh.remove(ids)
                for part in filter(None, (ids[at + 1 :], ids[:at])):
                    self._fresh.insert(index, part)
                return True
        return False

    def is_done(self, game: int) -> bool:
        """Whether a game of this iteration or the last one is done."""
        return game in self._done or game in self._sealed

    def release(self, worker: str) -> None:
        """Opens the ids of a worker again: it has died, its lease lapsed, or it was told to let its games go."""
        self._heard.pop(worker, None)
        self._moot.pop(worker, None)
        for game in list(self._held.get(worker, ())):
            self._take_back(worker, game)
            if game not in self._holders:
                self._again.add(game)
                heapq.heappush(self._lowest, game)
        self._held.pop(worker, None)

    def renew(self, worker: str) -> None:
        """Counts a worker's lease from now on: it was paused."""
        if worker in self._heard:
            self._heard[worker] = self._clock()

    def lease_seconds(self) -> float:
        """How long a worker keeps its ids without a finished game. Endless until a game shows how long one takes."""
        return max(LEAST_LEASE, _PATIENCE * max(self._seconds)) if self._seconds else math.inf

    def lapsed(self) -> list[str]:
        """The workers that play games and finished none for too long. Their ids stay theirs until `release`."""
        latest = self._clock() - self.lease_seconds()
        return [worker for worker, heard in self._heard.items() if heard < latest and self.held(worker)]

    def seal(self, ids: Iterable[int]) -> None:
        """Forgets the games of a sealed iteration. A result of theirs that comes later is dropped.

        The digests of the last iteration stay, to compare late results with.
        """
        self._sealed = {game: self._done.pop(game) for game in ids if game in self._done}
