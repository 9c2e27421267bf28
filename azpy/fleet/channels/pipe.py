"""Processes of azpy's own on this machine, each at the other end of a pair of sockets: the workers.

Such a process ends when the connection closes, as it does when its parent dies, whatever it is doing. The head reads
and writes without waiting for any worker: a stopped one holds up nothing.
"""

import contextlib
import os
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

from azpy.devices import CPU, Device
from azpy.errors import RunError
from azpy.fleet.channels import Backend, Channel, Message, part_of
from azpy.fleet.wire import MOST_OF_A_HEAD, MOST_OF_A_WORKER, Inbox, Send, Unpacker, pack
from azpy.settings import Settings
from azpy.system import start_with_socket, usable_cores

_CLOSED_SECONDS = 5.0  # for a process to end that has closed its socket
_PIECE = 1 << 20  # bytes read at once
_COMMAND = (sys.executable, "-P", "-m", "azpy.cli.child")  # behind it the number of its socket


def talk(connection: socket.socket) -> tuple[Inbox, Send]:
    """The child's side: the messages that come, and a function that sends.

    The process ends where the parent's end is closed: with exit code 0, as the parent is gone. It ends with exit code 1
    and a traceback where messages cannot be read or sent for another reason.
    """
    inbox: Inbox = queue.SimpleQueue()

    def read() -> None:
        unpacker = Unpacker(MOST_OF_A_HEAD)
        with _ending():
            while data := connection.recv(_PIECE):
                for message in unpacker.feed(data):
                    inbox.put(message)
            os._exit(0)  # the work may take long, and nobody waits for it

    def send(message: Mapping[str, Any], body: bytes) -> None:
        with _ending():
            connection.sendall(pack(message, body))

    threading.Thread(target=read, daemon=True, name="azpy-inbox").start()
    return inbox, send


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """End the process at once where the line to its parent breaks, in whichever thread."""
    try:
        yield
    except ConnectionError:  # the parent is gone
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


class Pipe(Channel):
    """The line to a worker process, which has this number among those of this machine; see `Channel`.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, number: int, settings: Settings) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            # The parent's own path of modules: a game's module is found in the same place.
            modules = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
            environment = os.environ | {"PYTHONPATH": modules}
            # What a game prints is no output of the parent.
            self.process = start_with_socket(_COMMAND, theirs, env=environment, stdout=2)
        super().__init__(settings)
        self.number = number
        self.socket.setblocking(False)
        self._unpacker = Unpacker(MOST_OF_A_WORKER)
        self._out = bytearray()

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """See `Channel`."""
        self._out += pack(message, body)
        self.flush()

    @property
    def events(self) -> int:
        """What to wait for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)

    def flush(self) -> None:
        """Send what can be sent without waiting; a read notices that a worker is gone."""
        with contextlib.suppress(OSError):
            while self._out:
                del self._out[: self.socket.send(self._out[:_PIECE])]

    def poll(self) -> Iterator[Message]:
        """See `Channel`."""
        yield from starmap(Message, self._unpacker.feed(b""))
        while self.alive:
            try:
                data = self.socket.recv(_PIECE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self.alive = bool(data)
            yield from starmap(Message, self._unpacker.feed(data))

    def close(self, why: str = "") -> str:
        """See `Channel`."""
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.0 if self.alive else _CLOSED_SECONDS)
        self.process.kill()  # nothing, if it has ended
        code = self.process.wait()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class Pipes(Backend):
    """Worker processes on this machine; the setting `workers` says how many."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings, self._devices = settings, [CPU]
        self._pipes: list[Pipe] = []
        self._most = int(settings.workers)

    def play(self, lineup: Mapping[str, Any], model: bytes, devices: Sequence[Device]) -> None:
        """See `Backend`."""
        self._devices = list(devices)

    def look(self, seconds: float) -> list[Pipe]:
        """See `Backend`."""
        self._pipes = [pipe for pipe in self._pipes if pipe.socket.fileno() >= 0]
        if missing := set(range(self._most)) - {pipe.number for pipe in self._pipes}:
            for number in sorted(missing):
                settings = settings_of_worker(self._settings, self._devices, number)
                try:
                    self._pipes.append(Pipe(number, settings))
                except OSError as error:
                    raise RunError(f"a worker cannot be started: {error}; try fewer workers") from error
            return self._pipes[-len(missing) :]
        if self._pipes:
            with selectors.DefaultSelector() as selector:
                for pipe in self._pipes:
                    selector.register(pipe.socket, pipe.events, pipe)
                for key, _ in selector.select(seconds):
                    key.data.flush()
        return []

    def finish(self) -> None:
        """See `Backend`."""
        self._most = 0

    def close(self, *, ended: bool) -> None:
        """See `Backend`."""
        for pipe in self._pipes:
            pipe.close()


def settings_of_worker(settings: Settings, devices: Sequence[Device], number: int) -> Settings:
    """A worker's part of the run's settings: slots, pipelines, threads and the cache are shared out.

    Args:
        settings: of the run.
        devices: on which its network plays; the workers take them in turn.
        number: of the worker, from 0 on.
    """
    workers, device = int(settings.workers), devices[number % len(devices)]
    pipelines = max(1, settings.all_pipelines // workers)
    threads = max(1, (settings.threads or usable_cores()) // workers)
    if settings.threads is None and device.on_cpu and pipelines * workers >= usable_cores():
        threads = 1  # see `threads_of_trees`
    slots, cached = max(pipelines, -(-settings.slots // workers)), settings.cache_positions // workers
    layout = {"slots": slots, "pipelines": pipelines, "threads": threads, "cache_positions": cached}
    return part_of(settings, device=str(device), **layout)
