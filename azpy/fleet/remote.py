"""Workers outside the head's process, as the head sees them. A backend carries the messages of `wire` to and from them.

A worker that dies, says nonsense or lets its lease lapse is ended, and its ids are open again.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from azpy import _core
from azpy._core import GameRecord
from azpy.fleet.desk import AtDesk, Desk
from azpy.fleet.fleet import Lineup, WorkerState
from azpy.fleet.table import IdTable
from azpy.fleet.wire import MOST_OF_A_WORKER, Unpacker
from azpy.settings import Settings

__all__ = ["ANSWER_SECONDS", "RemoteFleet", "RemoteWorker"]

ANSWER_SECONDS = 300.0  # for a worker to open a network
_WAIT = 0.2  # seconds for a first game
_END_SECONDS = 10.0  # for workers to send what is finished


class RemoteWorker(ABC):
    """What the head knows of one worker.

    Args:
        name: no other worker of this head has it.
        settings: its part of the run's.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings
        self.unpacker = Unpacker(MOST_OF_A_WORKER)
        self.models: set[str] = set()  # that it has
        self.lineup = 0  # that it plays; it gets no ids before it says so
        self.asked_since = 0.0  # when it was told of the first lineup that it has not answered
        self.error = ""  # its own last words

    def begin(self) -> None:
        """Queues the first message."""
        self.say({"do": "begin", "settings": asdict(self.settings), "version": _core.__version__})

    @abstractmethod
    def say(self, message: dict[str, Any], body: bytes = b"") -> None:
        """Queues a message."""

    @abstractmethod
    def flush(self) -> None:
        """Sends what can be sent without waiting."""

    @abstractmethod
    def end(self, seconds: float = 0.0) -> str:
        """Ends the worker if it does not end by itself in so long, and says how it ended."""


_Worker = TypeVar("_Worker", bound=RemoteWorker)


class RemoteFleet(AtDesk, ABC, Generic[_Worker]):
    """A `Fleet` of workers elsewhere, without what carries the messages.

    Args:
        settings: of the run; `workers` says which workers.
        start: where its games begin.
        table: of the run's ids.
        clock: seconds from any moment on.

    Attributes:
        notices: one line for each worker that ended.
    """

    def __init__(
        self,
        settings: Settings,
        start: _core.State,
        table: IdTable,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.notices: list[str] = []
        self._settings, self._table, self._clock = settings, table, clock
        self._desk = Desk(settings, start, table, clock)
        self._workers: list[_Worker] = []
        self._started = 0  # workers, the dead ones included
        self._devices = ["cpu"]  # on which the network plays here
        self._resting = False

    @abstractmethod
    def _fill(self) -> None:
        """Begins with the workers that are missing (`_begin`)."""

    @abstractmethod
    def _exchange(self, seconds: float) -> None:
        """Sends what is queued, and hears what came (`_hear`); waits so long at most for the first message."""

    @abstractmethod
    def _replace(self, worker: _Worker) -> str:
        """Has another worker take the place of one that ended, now or later; says so, or says nothing."""

    def play(self, lineup: Lineup) -> None:
        """See `Fleet`.

        Raises:
            RunError: workers die again and again.
        """
        self._exchange(0.0)  # what came while the head did other things
        waited = {worker.name for worker in self._workers if worker.lineup != self._desk.number}
        self._desk.play(lineup)
        self._devices = [getattr(evaluator, "device", "cpu") for evaluator in lineup.network.evaluators]
        for worker in self._workers:
            if worker.name not in waited:
                worker.asked_since = self._clock()
            self._tell(worker)
        self._fill()

    def _next_name(self) -> str:
        self._started += 1
        return f"worker {self._started}"

    def _begin(self, worker: _Worker) -> None:
        """Takes in a new worker, and tells it what to play."""
        worker.asked_since = self._clock()
        self._workers.append(worker)
        worker.begin()
        if self._desk.lineup is not None:
            self._tell(worker)

    def _tell(self, worker: _Worker) -> None:
        """Sends a worker the networks that it lacks, and then the lineup."""
        for sha256, model in self._desk.models.items():
            if sha256 not in worker.models:
                worker.say({"do": "model", "sha256": sha256}, model)
        worker.models = set(self._desk.models)  # it keeps no others
        if self._settings.deterministic:
            self._table.release(worker.name)  # copies of games that are done; it lets them go
        worker.say({"do": "play", "lineup": self._desk.number, **self._desk.message})
        worker.flush()

    def take(self, most: int) -> list[GameRecord]:
        """See `Fleet`.

        Raises:
            RunError: workers die again and again, or two results of one game differ in a deterministic run.
        """
        self._give_out()
        self._exchange(0.0 if self._desk.arrived else _WAIT)
        self._give_out()  # before the caller writes the games down
        for worker in list(self._workers):
            if worker.lineup != self._desk.number and self._clock() - worker.asked_since > ANSWER_SECONDS:
                self._bury(worker, f"it did not open its network in {ANSWER_SECONDS:.0f} seconds")
        lapsed = self._table.lapsed()
        for worker in [
            worker for worker in self._workers if worker.name in lapsed and worker.lineup == self._desk.number
        ]:
            self._bury(worker, f"it finished no game in {self._table.lease_seconds():.0f} seconds")
        return self._desk.take(most)

    def _give_out(self) -> None:
        if self._desk.has_enough:
            return
        for worker in self._workers:
            if worker.lineup != self._desk.number:
                continue
            slots, held = worker.settings.slots, self._table.held(worker.name)
            ahead = max(1, slots // 2)  # to begin while the head writes games down
            if held > slots + ahead // 2:
                continue  # one message for many ids
            ranges = self._table.lease(worker.name, slots + ahead - held)
            ranges += self._table.lease_twice(worker.name, slots - self._table.held(worker.name))
            if ranges:
                self._desk.handed(worker.name, ranges)
                worker.say({"do": "games", "ids": [[ids.start, len(ids)] for ids in ranges]})
                worker.flush()

    def _read(self, worker: _Worker, data: bytes) -> None:
        """Hears what came from a worker.

        Raises:
            ValueError, KeyError, TypeError: it is nonsense.
            RunError: two results of one game differ in a deterministic run.
        """
        tally = self._desk.tally(worker.name)
        tally.heard = self._clock()
        for message, body in worker.unpacker.feed(data):
            match message["said"]:
                case "ready" if message["version"] != _core.__version__:
                    raise ValueError(f"it is of version {message['version']}, expected {_core.__version__}")
                case "playing":
                    lineup, newest = message["lineup"], self._desk.number
                    if type(lineup) is not int or not 1 <= lineup <= newest:
                        raise ValueError(f"it says that it plays lineup {lineup!r:.40}, the newest is {newest}")
                    if lineup == newest:
                        self._desk.check_answers(message)
                    worker.lineup = tally.lineup = lineup
                    self._table.renew(worker.name)
                case "games":
                    tally.note(message)
                    if body:
                        # All games of a lineup before are done: what it still sends are copies.
                        copies = self._settings.deterministic and worker.lineup != self._desk.number
                        self._desk.accept(worker.name, body, copies=copies)
                case "failed":
                    worker.error = str(message["error"])

    def _forget(self, worker: _Worker) -> None:
        """Opens the ids of a worker that has ended."""
        self._workers.remove(worker)
        self._table.release(worker.name)
        self._desk.forget(worker.name)

    def _bury(self, worker: _Worker, why: str, patience: float = 0.0, weight: float = 1.0) -> None:
        """Ends a worker, opens its ids, and has another take its place.

        Args:
            worker: the worker.
            why: the reason; empty if it ended by itself.
            patience: seconds for it to end by itself.
            weight: 1 counts as a death, 0 as none.

        Raises:
            RunError: too many died since a game was finished.
        """
        if worker not in self._workers:
            return
        self._forget(worker)
        how = worker.end(patience)
        why = worker.error or why or how
        if self._resting or self._desk.lineup is None:
            return
        self._desk.note_death(why, weight)
        self.notices.append(f"{worker.name} ended: {why}{self._replace(worker)}")

    def pause(self) -> None:
        """See `Fleet`."""
        for worker in self._workers:
            worker.say({"do": "pause"})
            worker.flush()

    def rest(self) -> list[GameRecord]:
        """See `Fleet`. It waits for the workers, ten seconds at most."""
        self._resting = True
        until = self._clock() + _END_SECONDS
        for worker in self._workers:
            worker.say({"do": "stop"})
        while self._workers and self._clock() < until:
            self._exchange(_WAIT)
        return [*self._desk.taken, *self._desk.arrived]

    def close(self) -> None:
        """See `Fleet`."""
        while self._workers:
            self._workers.pop().end()

    @property
    def workers(self) -> list[WorkerState]:
        """See `Fleet`."""
        return self._desk.states(worker.name for worker in self._workers)
