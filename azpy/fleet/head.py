"""The head: lets remote workers play a run's games, and checks everything that they send.

It polls the channels to its workers, leases ids of one table to them, examines what they send, and acknowledges it once
the caller has written it down. It ends a worker that dies, sends invalid messages or finishes no game for too long, and
opens the worker's ids again. All of this is here once: a channel only moves messages.
"""

import contextlib
import hashlib
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Any

from azpy import _core
from azpy._core import GameRecord
from azpy.errors import RunError, one_line
from azpy.fleet.channels import Backend, Channel, Message
from azpy.fleet.channels.folder import FOLDER, Folder
from azpy.fleet.channels.pipe import Pipes
from azpy.fleet.channels.ray import Cluster
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import HOW, Fleet, Lineup, WorkerState, answers_of, digest_of, digest_of_lineup, digest_of_run
from azpy.fleet.here import Here
from azpy.fleet.table import IdTable
from azpy.settings import Settings

ANSWER_SECONDS = 300.0  # for a worker to open a network
_WAIT = 0.2  # seconds for a first game
_MOST_STEP = 5.0  # seconds between two looks at the workers; more do not count as theirs
_END_SECONDS = 10.0  # for workers to send what is finished
_MOST_DEATHS = 3.0  # so many without a finished game end the run
_MOST_TOTALS, _MOST_TOTAL = 64, 2**53  # names in a worker's totals, and how much each can be
_MOST_SLOTS = 1 << 20
_MOST_GONE = 256  # ended workers that are still listed one by one
_MOST_IDS = 4096  # in a message
_TWICE_SECONDS = 0.5  # between two looks for games that a second worker may play


def open_fleet(settings: Settings, start: _core.State) -> Fleet:
    """The players that the setting `workers` names. No game or process starts before `play`.

    Raises:
        MissingPackageError: a package that these players need is not installed.
    """
    match settings.workers:
        case 0:
            return Here(settings, start)
        case "ray":
            return Head(settings, start, Cluster(settings))
        case str(place):
            return Head(settings, start, Folder(settings, place.removeprefix(FOLDER)))
    return Head(settings, start, Pipes(settings))


class Head(Fleet):
    """A `Fleet` of workers elsewhere.

    Attributes:
        table: of the run's ids.
        members: the workers that have not ended.
    """

    def __init__(
        self, settings: Settings, start: _core.State, backend: Backend, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._backend, self._clock = settings, backend, clock
        self.notices = backend.notices
        self.table = IdTable(deterministic=settings.deterministic, clock=clock)
        self.members: list[Channel] = []
        self._gone: deque[Channel] = deque(maxlen=_MOST_GONE)  # the workers that ended last
        self._past = Counter[str](), Counter[str]()  # totals of all ended workers
        self._deaths = list[float]()  # their weights, since the last finished game
        self._started = 0  # workers, the dead ones included
        self._one_network = settings.deterministic or start.hides  # plays all games of a step
        self._examiner, self._run = Examiner(settings, start), digest_of_run(settings)
        self._number, self._lineup = 0, dict[str, Any]()  # of the lineup that plays, and its message
        self._model = b""  # the file of its network
        self._plays = ""  # its digest
        self._answers: str | None = None  # of its network here, in a deterministic run
        self._arrived: deque[GameRecord] = deque()  # games not taken yet, the oldest first
        self._taken: list[GameRecord] = []  # last; an interrupt may come before the caller has them
        self._given = 0  # games that the caller has taken
        # What lets go of a message, and how many games had arrived with it.
        self._unread: deque[tuple[Callable[[], object], int]] = deque()
        self._leftover_waits = self._finishing = False
        self._looked_twice, self._looked_idle = -math.inf, clock()

    # Methods that the loop calls

    def ask(self, ids: Sequence[range], done: Sequence[GameRecord]) -> None:
        """See `Fleet`."""
        self.table.ask(ids, {record.game_id: digest_of(record) for record in done})
        self._examiner.know(done)

    def seal(self, ids: Sequence[int]) -> None:
        """See `Fleet`."""
        self.table.seal(ids)

    def play(self, lineup: Lineup) -> None:
        """See `Fleet`.

        Raises:
            RunError: no worker can start, or workers keep dying.
        """
        self._acknowledge()
        if self._number:
            self._exchange(0.0)  # what came while the head did other things
        waited = [worker for worker in self.members if worker.lineup != self._number]
        self._examiner.play(lineup)
        self._model = lineup.model or b""
        self._number += 1
        network = hashlib.sha256(self._model).hexdigest() if self._model else None
        self._lineup = {"do": "play", "lineup": self._number, "network": network}
        self._lineup |= {name: getattr(lineup, name) for name in HOW}
        self._plays = digest_of_lineup(self._lineup)
        if self._settings.deterministic:
            self._lineup["answers"] = self._answers = answers_of(lineup.evaluators[0])
        self._backend.play(self._lineup, self._model, lineup.devices)
        for worker in self.members:
            if worker not in waited:
                worker.since = self._clock()
            if self._settings.deterministic:
                self.table.release(worker.name)  # copies of games that are done; it lets them go
            self._tell(worker)
        self._exchange(0.0)

    def take(self, most: int) -> list[GameRecord]:
        """See `Fleet`.

        Raises:
            RunError: workers keep dying, the backend fails, or two results of one game differ in a
                deterministic run.
        """
        self._acknowledge()
        self._give_out()
        self._exchange(0.0 if self._arrived else _WAIT)
        self._give_out()  # before the caller writes the games down
        if not self._has_enough:  # every message that came was read
            self._end_idle()
        self._taken = list(islice(self._arrived, min(most, len(self._arrived))))
        for _ in self._taken:  # an interrupt may come here, and `finish` finds some twice
            self._arrived.popleft()
        self._given += len(self._taken)
        return self._taken

    def _end_idle(self) -> None:
        """End the workers that take too long to open a network or to finish a game.

        The time in which the head was busy or the whole machine was paused does not count.
        """
        now, lease = self._clock(), self.table.lease_seconds()
        away, self._looked_idle = max(0.0, now - self._looked_idle - _MOST_STEP), now
        for worker in list(self.members):
            worker.since = min(now, worker.since + away)
            if worker.waits:
                worker.since = now
            elif worker.lineup != self._number:
                if now - worker.since > ANSWER_SECONDS:
                    self._end(worker, f"it did not open its network in {ANSWER_SECONDS:.0f} seconds")
            elif self.table.held(worker.name) and now - worker.since > lease:
                self._end(worker, f"it did not finish a game in {lease:.0f} seconds")

    def pause(self) -> None:
        """See `Fleet`."""
        for worker in self.members:
            worker.send({"do": "pause"})

    def finish(self) -> list[GameRecord]:
        """See `Fleet`. It waits for the workers, ten seconds at most."""
        self._finishing = True
        self._backend.finish()
        until = self._clock() + _END_SECONDS
        for worker in self.members:
            worker.send({"do": "stop"})
        with contextlib.suppress(RunError):  # what has arrived is kept
            while self.members and self._clock() < until:
                self._exchange(_WAIT)
        return [*self._taken, *self._arrived]

    def close(self, *, ended: bool = True) -> None:
        """See `Fleet`."""
        if not self._finishing:
            self._acknowledge()
        while self.members:
            self.members.pop().close()
        self._backend.close(ended=ended)

    # The lines

    def _exchange(self, seconds: float) -> None:
        """Read the messages that came; wait at most this long for the first one."""
        for worker in self._backend.look(seconds):
            self._begin(worker)
        if not self._has_enough:
            self._leftover_waits = not self._read(self._backend.leftover(), self._hear_leftover)
        for worker in list(self.members):
            try:
                whole = self._read(worker.poll(), partial(self._hear, worker))
            except (ValueError, KeyError, TypeError) as error:
                self._end(worker, one_line(error), is_wrong=True)
                continue
            if whole and not worker.alive:
                self._end(worker)

    def _read(self, messages: Iterator[Message], hear: Callable[[Message], None]) -> bool:
        """Read messages; return False if some are left for later."""
        while not self._has_enough:
            if (message := next(messages, None)) is None:
                return True
            hear(message)
            self._unread.append((message.let_go, self._given + len(self._arrived)))
        return False

    def _begin(self, worker: Channel) -> None:
        """Take in a new worker, and tell it what to play."""
        self._started += 1
        worker.name, worker.heard, worker.since = f"worker {self._started}", self._clock(), self._clock()
        self.members.append(worker)
        worker.send({"do": "begin", "settings": asdict(worker.settings), "version": _core.__version__})
        self._tell(worker)

    def _tell(self, worker: Channel) -> None:
        """Send a worker the lineup, with the network if it lacks that."""
        before, worker.network = worker.network, (self._lineup["network"], self._lineup["precision"])
        worker.send(self._lineup, b"" if before == worker.network else self._model)

    def _give_out(self) -> None:
        # Elsewhere a worker that opens networks slowly keeps playing with the previous lineup.
        oldest = self._number - (not self._one_network)
        ready = [worker for worker in self.members if 0 < worker.lineup >= oldest]
        if not ready or self._has_enough or self._leftover_waits or self._finishing:
            return
        given: dict[str, list[range]] = {}
        share = -(-self.table.num_open // len(ready))  # if few ids are left, every worker gets some
        # With more ids, remote workers would play many iterations with one network.
        fair = max(1, (self._settings.games_per_iteration - len(self._arrived)) // len(ready))
        for worker in ready:
            held = self.table.held(worker.name)
            ahead = max(1, int(worker.ahead * worker.slots))
            most = worker.slots + ahead
            if worker.bounded:
                most = min(most, fair)
            if most - held >= max(1, min((ahead + 1) // 2, most // 3)):  # one message for many ids
                given[worker.name] = self.table.lease(worker.name, min(most - held, share, _MOST_IDS))
        if (now := self._clock()) - self._looked_twice >= _TWICE_SECONDS:
            self._looked_twice = now
            room = {worker.name: min(worker.slots - self.table.held(worker.name), _MOST_IDS) for worker in ready}
            for name, again in self.table.lease_twice(room).items():
                given[name] = given.get(name, []) + again
        for worker in ready:
            if ids := given.get(worker.name):
                if worker.lineup == self._number and self.table.held(worker.name) == sum(map(len, ids)):
                    worker.since = self._clock()
                worker.send({"do": "games", "ids": [[part.start, len(part)] for part in ids]})

    def _hear(self, worker: Channel, message: Message) -> None:
        """Apply a worker's message.

        Raises:
            ValueError, KeyError, TypeError: the message is invalid.
            RunError: two results of one game differ in a deterministic run.
        """
        facts = message.facts
        worker.heard = self._clock()
        if facts["said"] == "failed":
            worker.error = str(facts["error"])
            return
        lineup, slots = facts["lineup"], facts["slots"]
        if type(lineup) is not int or not 1 <= lineup <= self._number:
            raise RefusedError(f"it reports lineup {lineup!r:.40}, but the newest is {self._number}")
        if type(slots) is not int or not 1 <= slots <= _MOST_SLOTS:
            raise RefusedError(f"it reports {slots!r:.40} games at once, expected 1 to {_MOST_SLOTS}")
        worker.slots = slots
        worker.stats = _totals(facts["stats"], worker.stats)
        worker.pipelines = _totals(facts["pipelines"], worker.pipelines)
        if lineup > worker.lineup:
            worker.lineup, worker.since = lineup, self._clock()
        if self._accept(message, worker) and worker.lineup == self._number:
            worker.since = self._clock()

    def _hear_leftover(self, message: Message) -> None:
        """Take the games of a worker of an earlier head."""
        try:
            # The message may come from another run, or from a network that no longer plays.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._accept(message)
        except RunError:
            message.let_go()  # the next head would fail on it too
            raise

    def _accept(self, message: Message, worker: Channel | None = None) -> int:
        """Examine the games of a message; those that are new arrive.

        Args:
            message: of a worker.
            worker: None if an earlier head may have given it its ids.

        Returns:
            How many games the message has.

        Raises:
            RefusedError: it holds something that is not a game of this run.
            RunError: two results of one game differ in a deterministic run.
        """
        facts = message.facts
        if facts["run"] != self._run:
            raise RefusedError("it plays a different run")
        if self._settings.deterministic:
            if facts["plays"] != self._plays:
                return 0  # all games of the previous lineup are done, so these are copies
            if facts["row_exact"] is not True:
                raise RefusedError("its network's output for a position depends on the rest of the batch")
            if facts["answers"] != self._answers:
                raise RefusedError("its network computes different results from the network here")
        records = self._examiner.games_in(message.body) if message.body else []
        name = "an earlier worker" if worker is None else worker.name
        for record in records:
            if not self.table.is_done(record.game_id):
                if not self.table.was_leased(record.game_id, before=worker is None):
                    raise RefusedError(f"game {record.game_id} was not given to any worker")
                self._examiner.look_at(record)
            if self.table.accept(name, record.game_id, digest_of(record)):
                self._arrived.append(record)
                self._deaths.clear()
                if worker is not None:
                    worker.games += 1
        return len(records)

    def _acknowledge(self) -> None:
        """Let go of the messages whose games the caller has written down."""
        while self._unread and self._unread[0][1] <= self._given:
            let_go, _ = self._unread.popleft()
            let_go()

    @property
    def _has_enough(self) -> bool:
        """Whether enough games have arrived for now. The next network plays the other ids."""
        return len(self._arrived) >= self._settings.slots and not self._finishing

    def _end(self, worker: Channel, why: str = "", *, is_wrong: bool = False) -> None:
        """End a worker, and open its ids.

        Args:
            worker: the worker.
            why: it is ended; empty if it ended by itself.
            is_wrong: it sent an invalid message, so another try does not help.

        Raises:
            RunError: too many died since a game was finished.
        """
        self.members.remove(worker)
        self.table.release(worker.name)
        self._gone.append(worker)
        self._past = self._past[0] + worker.stats, self._past[1] + worker.pipelines
        how = worker.close(why if is_wrong else "")
        if self._finishing or not (worker.error or why or how):
            return
        said = one_line(worker.error or why or how)
        self._deaths.append(worker.weight)
        if sum(self._deaths) >= _MOST_DEATHS:
            raise RunError(f"{len(self._deaths)} workers ended and no game was finished; the last one reported: {said}")
        self.notices.append(f"{worker.name}{worker.where} ended: {said}; its games go to other workers")

    # What a user sees

    @property
    def stats(self) -> Counter[str]:
        """See `Fleet`. They are as old as the last message of each worker."""
        return sum((worker.stats for worker in self.members), self._past[0])

    @property
    def pipeline_stats(self) -> list[Counter[str]]:
        """See `Fleet`: one entry for all pipelines together."""
        return [sum((worker.pipelines for worker in self.members), self._past[1])]

    @property
    def workers(self) -> list[WorkerState]:
        """See `Fleet`."""
        now = self._clock()
        return [
            WorkerState(
                name=worker.name,
                alive=alive,
                held=self.table.held(worker.name),
                behind=self._number - worker.lineup if worker.lineup else None,
                silent=now - worker.heard,
                games=worker.games,
                stats=Counter(worker.stats),
            )
            for alive, known in ((False, self._gone), (True, self.members))
            for worker in known
        ]


def _totals(given: Any, before: Counter[str]) -> Counter[str]:
    """The totals that a worker reports. Totals never fall."""
    if not isinstance(given, dict) or len(given.keys() | before.keys()) > _MOST_TOTALS:
        raise RefusedError("its totals are not a table of numbers")
    for value in given.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= _MOST_TOTAL):
            raise RefusedError(f"one of its totals is {str(value)[:80]}, expected a number from 0 to {_MOST_TOTAL:g}")
    return before | Counter[str](given)
