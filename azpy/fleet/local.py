"""Worker processes on this machine, each at the other end of a pair of sockets.

The head reads and writes without waiting for any worker: a stopped one holds up nothing. A worker that dies, says
nonsense or lets its lease lapse is killed and replaced, and its ids are open again.
"""

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from azpy import _core
from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.fleet.desk import Desk
from azpy.fleet.fleet import Lineup, WorkerState
from azpy.fleet.table import IdTable
from azpy.fleet.wire import MOST_OF_A_WORKER, Unpacker, pack
from azpy.machine import usable_cores
from azpy.settings import Settings

__all__ = ["LocalFleet", "settings_of_worker"]

_ANSWER_SECONDS = 300.0  # for a worker to open a network
_WAIT = 0.2  # seconds for a first game
_END_SECONDS = 10.0  # for workers to send what is finished
_CLOSED_SECONDS = 5.0  # for a process to end that has closed its socket
_PIECE = 1 << 20  # bytes read at once
_COMMAND = (sys.executable, "-P", "-m", "azpy.cli.local_worker")  # and the number of its socket


def settings_of_worker(settings: Settings, devices: Sequence[str], number: int) -> Settings:
    """A worker's part of the run's settings: slots, pipelines, threads and the cache are shared out.

    Args:
        settings: of the run.
        devices: on which its network plays; the workers take them in turn.
        number: of the worker, from 0 on.
    """
    workers, device = int(settings.workers), devices[number % len(devices)]
    pipelines = max(1, settings.all_pipelines // workers)
    threads = max(1, (settings.threads or usable_cores()) // workers)
    if settings.threads is None and device == "cpu" and pipelines * workers >= usable_cores():
        threads = 1  # see `threads_of_trees`
    return replace(
        settings,
        workers=0,
        slots=max(pipelines, -(-settings.slots // workers)),
        pipelines=pipelines,
        threads=threads,
        cache_positions=settings.cache_positions // workers,
        device=device,
        devices=None,
        precision="fp32",  # each network comes with its own
    )


class _Worker:
    """What the head knows of one worker process."""

    def __init__(self, place: int, number: int, settings: Settings) -> None:
        self.place, self.name, self.slots = place, f"worker {number}", settings.slots
        self.unpacker = Unpacker(MOST_OF_A_WORKER)
        self.out = bytearray()  # not sent yet
        self.models: set[str] = set()  # that it has
        self.lineup = 0  # that it plays; it gets no ids before it says so
        self.asked_since = 0.0  # when it was told of the first lineup that it has not answered
        self.error = ""  # its own last words
        ours, theirs = socket.socketpair()
        with theirs:
            # The head's own path of modules: a game's module is found in the same place.
            modules = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
            self.process = subprocess.Popen(  # noqa: S603 - this Python, and a module from here
                [*_COMMAND, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": modules},
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a game prints is no output of the head
                process_group=0,  # Ctrl-C in a terminal is for the head
            )
        ours.setblocking(False)
        self.socket = ours
        self.say({"do": "begin", "settings": asdict(settings), "version": _core.__version__})

    def say(self, message: dict[str, Any], body: bytes = b"") -> None:
        """Queues a message."""
        self.out += pack(message, body)

    def flush(self) -> None:
        """Sends what the socket takes now; a read notices that a worker is gone."""
        with contextlib.suppress(OSError):
            while self.out:
                del self.out[: self.socket.send(self.out[:_PIECE])]

    def end(self, seconds: float = 0.0) -> str:
        """Kills the process if it does not end by itself in so long, and says how it ended."""
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()  # nothing, if it has ended
        code = self.process.wait()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class LocalFleet:
    """Worker processes on this machine; see `Fleet`.

    Args:
        settings: of the run; `workers` says how many.
        start: where its games begin.
        table: of the run's ids.
        clock: seconds from any moment on.

    Attributes:
        notices: one line for each worker that was replaced.
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
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._started = 0  # workers, the dead ones included
        self._resting = False

    def play(self, lineup: Lineup) -> None:
        """See `Fleet`.

        Raises:
            RunError: workers die again and again.
        """
        self._exchange(0.0)  # what came while the head did other things
        waited = {worker.name for worker in self._workers if worker.lineup != self._desk.number}
        self._desk.play(lineup)
        while len(self._workers) < int(self._settings.workers):
            self._start(len(self._workers), lineup)
        for worker in self._workers:
            if worker.name not in waited:
                worker.asked_since = self._clock()
            self._tell(worker)

    def _start(self, place: int, lineup: Lineup) -> _Worker:
        devices = [getattr(evaluator, "device", "cpu") for evaluator in lineup.network.evaluators]
        self._started += 1
        try:
            worker = _Worker(place, self._started, settings_of_worker(self._settings, devices, place))
        except OSError as error:
            raise RunError(f"a worker cannot be started: {error}; try fewer workers") from error
        worker.asked_since = self._clock()
        self._workers.append(worker)
        self._selector.register(worker.socket, selectors.EVENT_READ, worker)
        return worker

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
            if worker.lineup != self._desk.number and self._clock() - worker.asked_since > _ANSWER_SECONDS:
                self._bury(worker, f"it did not open its network in {_ANSWER_SECONDS:.0f} seconds")
        lapsed, number = self._table.lapsed(), self._desk.number
        for worker in [worker for worker in self._workers if worker.name in lapsed and worker.lineup == number]:
            self._bury(worker, f"it finished no game in {self._table.lease_seconds():.0f} seconds")
        return self._desk.take(most)

    def _exchange(self, seconds: float) -> None:
        """Sends and reads what the sockets take and have; waits so long at most for the first of them."""
        for worker in self._workers:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.out else 0)
            self._selector.modify(worker.socket, events, worker)
        for key, events in self._selector.select(seconds):
            try:
                if events & selectors.EVENT_WRITE:
                    key.data.flush()
                if events & selectors.EVENT_READ:
                    self._read(key.data)
            except (OSError, ValueError, KeyError, TypeError) as error:  # it is gone, or says nonsense
                self._bury(key.data, "" if isinstance(error, OSError) else str(error))

    def _give_out(self) -> None:
        if self._desk.has_enough:
            return
        for worker in self._workers:
            if worker.lineup != self._desk.number:
                continue
            ahead = max(1, worker.slots // 2)  # to begin while the head writes games down
            ranges = self._table.lease(worker.name, worker.slots + ahead - self._table.held(worker.name))
            ranges += self._table.lease_twice(worker.name, worker.slots - self._table.held(worker.name))
            if ranges:
                self._desk.handed(worker.name, ranges)
                worker.say({"do": "games", "ids": [[ids.start, len(ids)] for ids in ranges]})
                worker.flush()

    def _read(self, worker: _Worker) -> None:
        try:
            data = worker.socket.recv(_PIECE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        tally = self._desk.tally(worker.name)
        tally.heard = self._clock()
        for message, body in worker.unpacker.feed(data):
            match message["said"]:
                case "ready" if message["version"] != _core.__version__:
                    raise ValueError(f"it is of version {message['version']}, expected {_core.__version__}")
                case "playing":
                    if message["lineup"] == self._desk.number:
                        self._desk.check_answers(message)
                    worker.lineup = tally.lineup = int(message["lineup"])
                    self._table.renew(worker.name)
                case "games":
                    tally.note(message)
                    if body:
                        # All games of a lineup before are done: what it still sends are copies.
                        copies = self._settings.deterministic and worker.lineup != self._desk.number
                        self._desk.accept(worker.name, body, copies=copies)
                case "failed":
                    worker.error = str(message["error"])

    def _bury(self, worker: _Worker, why: str) -> None:
        """Ends a worker, opens its ids, and puts another in its place.

        Raises:
            RunError: too many died since a game was finished.
        """
        if worker not in self._workers:
            return
        self._selector.unregister(worker.socket)
        self._workers.remove(worker)
        how = worker.end(0.0 if why else _CLOSED_SECONDS)
        why = worker.error or why or how
        self._table.release(worker.name)
        if self._resting or self._desk.lineup is None:
            return
        self._desk.note_death(why)
        successor = self._start(worker.place, self._desk.lineup)
        self.notices.append(f"{worker.name} ended: {why}; {successor.name} takes its place")
        self._tell(successor)

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
        self._selector.close()

    @property
    def stats(self) -> Counter[str]:
        """See `Fleet`. They are as old as the last message of each worker."""
        return self._desk.stats

    @property
    def pipeline_stats(self) -> list[Counter[str]]:
        """See `Fleet`: one entry for all pipelines together."""
        return self._desk.pipeline_stats

    @property
    def workers(self) -> list[WorkerState]:
        """See `Fleet`."""
        return self._desk.states(worker.name for worker in self._workers)
