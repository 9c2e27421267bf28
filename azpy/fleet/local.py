"""Worker processes on this machine, each at the other end of a pair of sockets.

The head reads and writes without waiting for any worker: a stopped one holds up nothing.
"""

import contextlib
import selectors
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from azpy.errors import RunError
from azpy.fleet.child import CLOSED_SECONDS, PIECE, Child
from azpy.fleet.remote import RemoteFleet, RemoteWorker
from azpy.fleet.wire import pack
from azpy.machine import usable_cores
from azpy.settings import Settings

__all__ = ["LocalFleet", "settings_of_worker"]


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


class _Worker(RemoteWorker):
    """A process on this machine; see `RemoteWorker`."""

    def __init__(self, place: int, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        self.place = place
        self.out = bytearray()  # not sent yet
        self._child = Child("worker")
        self.socket, self.process = self._child.socket, self._child.process
        self.socket.setblocking(False)

    def say(self, message: dict[str, Any], body: bytes = b"") -> None:
        """See `RemoteWorker`."""
        self.out += pack(message, body)

    def flush(self) -> None:
        """See `RemoteWorker`; a read notices that a worker is gone."""
        with contextlib.suppress(OSError):
            while self.out:
                del self.out[: self.socket.send(self.out[:PIECE])]

    def end(self, seconds: float = 0.0) -> str:
        """See `RemoteWorker`."""
        return self._child.end(seconds)


class LocalFleet(RemoteFleet[_Worker]):
    """Worker processes on this machine; see `RemoteFleet`. The setting `workers` says how many."""

    def _fill(self) -> None:
        while len(self._workers) < int(self._settings.workers):
            self._start(len(self._workers))

    def _start(self, place: int) -> _Worker:
        settings = settings_of_worker(self._settings, self._devices, place)
        try:
            worker = _Worker(place, self._next_name(), settings)
        except OSError as error:
            raise RunError(f"a worker cannot be started: {error}; try fewer workers") from error
        self._begin(worker)
        return worker

    def _replace(self, worker: _Worker) -> str:
        return f"; {self._start(worker.place).name} takes its place"

    def _exchange(self, seconds: float) -> None:
        if not self._workers:
            return
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.out else 0)
                selector.register(worker.socket, events, worker)
            found = selector.select(seconds)
        for key, events in found:
            try:
                if events & selectors.EVENT_WRITE:
                    key.data.flush()
                if events & selectors.EVENT_READ:
                    self._receive(key.data)
            except (OSError, ValueError, KeyError, TypeError) as error:  # it is gone, or says nonsense
                gone = isinstance(error, OSError)
                self._bury(key.data, "" if gone else str(error), CLOSED_SECONDS if gone else 0.0)

    def _receive(self, worker: _Worker) -> None:
        try:
            data = worker.socket.recv(PIECE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        self._read(worker, data)
