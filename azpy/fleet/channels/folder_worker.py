"""The worker's end of a line to a head at a shared folder: see `files.py` for what lies there, and `folder.py`."""

import contextlib
import hashlib
import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from azpy import _core
from azpy.devices import Device
from azpy.errors import RunError, SettingsError
from azpy.fleet.channels import part_of
from azpy.fleet.channels.files import Heartbeat, HeartbeatWatch, SharedFolder, new_name
from azpy.fleet.wire import MOST_OF_A_HEAD, PROTOCOL, Inbox, in_words
from azpy.fleet.worker import Worker
from azpy.games.names import refuse_untyped
from azpy.settings import Settings
from azpy.settings.run import auto_pipelines

PATIENCE = 600.0  # seconds without a sign of the head
_LOOK = 0.2  # seconds between two looks
_GATHER = 2.0, math.inf  # seconds between two messages with games, unless a slot may run out of games
_MOST_UNREAD = 4  # messages in the folder; then the worker waits
_SAY_SECONDS = 60.0  # between two lines


class FolderWorker:
    """A worker at a shared folder; `az-worker` runs it.

    Args:
        path: of the folder.
        game: that the user typed; a run's game in Python is imported only if it is this one.
        layout: settings of this worker in place of the run's: `slots`, `pipelines`, `threads`, `device`.
        patience: seconds without a sign of the head, after which the worker ends.
        say: takes each line for the user.
        asked_to_end: whether the user or the system wants the worker to end.
        clock: seconds from any moment on.
        sleep: waits for so many seconds.

    Raises:
        RunError: no such folder.
    """

    def __init__(
        self,
        path: str,
        game: str | None = None,
        layout: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
        say: Callable[[str], object] = print,
        asked_to_end: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._path, self._game, self._layout, self._patience = path, game, dict(layout or {}), patience
        self.say, self._asked_to_end, self.clock, self.sleep = say, asked_to_end, clock, sleep
        self.files = SharedFolder(path, make=False)
        self._head, self._watch = dict[str, Any](), HeartbeatWatch(clock)  # what the head says, and its counter
        self._epoch = self._why = ""  # the epoch of the last head for which this worker played; why it ends

    def run(self) -> str:
        """Play until the run ends, the user ends it, or the head is silent for too long; return why.

        An `AzpyError` says why this worker cannot play in the run, or that nobody is there to play for.
        """
        self.say(f"a worker waits at {self._path} for az-train")
        while not (why := self._look()):
            ended = self._head.get("ended")
            # The counter of a head that is there has moved while this worker looked.
            if self._watch.moved and self._head.get("epoch") is not None and not ended:
                self._serve()
            elif self._epoch and ended and self._head.get("epoch") == self._epoch:
                return "the run has ended"
            else:
                self.sleep(_LOOK)
        return why

    def _look(self) -> str:
        """Look at what the head says to everybody; return why the worker ends, or an empty text."""
        if self._asked_to_end():
            return "it was told to end"
        if self.files.is_there("", "stop"):
            return f"{self._path}/stop is there"
        if head := self.files.said("", "head"):  # else the folder may come back
            if head.get("epoch") != self._head.get("epoch"):
                self._watch = HeartbeatWatch(self.clock)
            self._head = head
            self._watch.note(head.get("beat"))
        if self._watch.silent > self._patience:
            raise RunError(
                f"no sign of az-train at {self._path} for {self._patience:.0f} seconds: start it again with --workers "
                f"folder:{self._path}, and then this worker"
            )
        return ""

    def _serve(self) -> None:
        """Play for one head, until one of the two ends it; errors are those of `run`."""
        if (found := (self._head.get("protocol"), self._head.get("version"))) != (PROTOCOL, _core.__version__):
            raise RunError(
                f"az-train at {self._path} is of azpy {found[1]} with protocol {found[0]}, this worker of "
                f"{_core.__version__} with protocol {PROTOCOL}: install the same azpy"
            )
        self._epoch, self._watch = self._head["epoch"], HeartbeatWatch(self.clock)
        line = _Connection(self, self._epoch)
        worker = Worker(line.inbox, line.send, self._mine, _GATHER, self.clock)
        self._why = "it was interrupted"
        try:
            worker.run()
        finally:
            error = worker.error or line.error
            why, own = in_words(error) if error is not None else (self._why, True)
            line.close(why, failed=not (error is None or isinstance(error, RunError | SettingsError)))
        if error is not None:
            if own:
                raise error
            raise RunError(why) from error

    def goes_on(self) -> bool:
        """Whether this worker goes on with the head that it plays for."""
        self._why = self._look()
        return not self._why and self._head.get("epoch") == self._epoch and not self._head.get("ended")

    def _mine(self, settings: Settings) -> Settings:
        refuse_untyped(settings.game, self._game, self._path, "playing", "GAME {} on the command line")
        layout = self._layout
        slots, given = layout.get("slots", settings.slots), layout.get("device")
        device = settings.all_devices[0] if given is None else Device.read(given)
        here = {"slots": slots, "device": str(device), "pipelines": auto_pipelines(slots, device), "threads": None}
        mine = part_of(settings, **here | dict(layout))
        self.say(f"plays {settings.game}, {mine.slots} games at once on {mine.device}")
        return mine


class _Connection:
    """The worker's end of a line to the head of an epoch.

    Attributes:
        inbox: what the head says.
        over: nothing more comes.
        error: why, if something is wrong.
    """

    def __init__(self, home: FolderWorker, epoch: str) -> None:
        self._home, self._files = home, home.files
        self.key, self.over = new_name(), threading.Event()
        self.error: Exception | None = None
        self.inbox: Inbox = queue.SimpleQueue()
        self._said_at = home.clock()
        self._read = self._sent = 0
        self._unread: list[str] = []  # messages in the folder that the head has not let go
        facts = {"epoch": epoch, "version": _core.__version__, "host": socket.gethostname(), "pid": os.getpid()}
        self._heartbeat = Heartbeat(self._files, "workers", self.key, facts)
        with contextlib.suppress(OSError):  # the next count tries again
            self._heartbeat.begin()
        self._thread = threading.Thread(target=self._listen, daemon=True, name="azpy-inbox")
        self._thread.start()

    def _listen(self) -> None:
        """Read the messages of the head, until the line is closed."""
        trouble = ""
        try:
            while not self.over.is_set() and self._home.goes_on():
                try:
                    self._fetch()
                except (OSError, ValueError) as error:  # it may be there whole in a while
                    if (text := f"a message of az-train cannot be read, trying again: {error}") != trouble:
                        self._home.say(trouble := text)
                self.over.wait(_LOOK)
        except Exception as error:
            self.error = error
        self.over.set()
        self.inbox.put(({"do": "stop"}, b""))

    def _fetch(self) -> None:
        """Read the messages that are there; errors are those of `SharedFolder.message`."""
        while not self.over.is_set():
            name = f"{self.key}-{self._read:08d}"
            # One before it could not be deleted.
            mine = [other for other in self._files.names("to") if other.startswith(self.key) and other >= name]
            if not mine:
                return
            missing = name not in mine
            name = mine[-1] if missing else name
            try:
                message, body = self._files.message("to", name, 0)
                # The head may have let this worker go meanwhile. Else a listing lacks what is there or comes.
                if missing and message["do"] != "stop":
                    return
                if message["do"] == "play" and (network := message["network"]) is not None:
                    body = self._files.read("networks", network, MOST_OF_A_HEAD)
                    if hashlib.sha256(body).hexdigest() != network:
                        raise ValueError(f"networks/{network} is damaged")
            except FileNotFoundError:  # of a lineup that is over
                self.over.set()
                return
            self._files.delete("to", name)
            self._read = int(name[-8:]) + 1
            if message["do"] == "stop":
                if "error" in message:
                    self.error = RunError(f"az-train refused this worker: {message['error']}")
                self.over.set()
            self.inbox.put((message, body))

    def send(self, message: Mapping[str, Any], body: bytes) -> None:
        """Leave a message for the head; wait while the head reads none, or while the disk is full."""
        while len(self._unread) >= _MOST_UNREAD and not self.over.is_set():
            self._unread = [name for name in self._unread if self._files.is_there("from", name)]
            if len(self._unread) >= _MOST_UNREAD:
                self._home.sleep(_LOOK)
        name = f"{self.key}-{self._sent:08d}"
        while True:
            try:
                self._files.put("from", name, message, body)
                break
            except OSError as error:
                self._home.say(f"a result cannot be written, trying again: {error.strerror or error}")
                if self.over.is_set():
                    return
                self._home.sleep(1.0)
        self._unread.append(name)
        self._sent += 1
        if (now := self._home.clock()) - self._said_at >= _SAY_SECONDS and message["said"] == "games":
            self._said_at, stats = now, message["stats"]
            self._home.say(f"{stats.get('games', 0):,.0f} games, {stats.get('rows', 0):,.0f} evaluations")

    def close(self, why: str, *, failed: bool = False) -> None:
        """Close the line, and tell the head why the worker ends and whether it counts as a death."""
        self.over.set()
        self._thread.join()
        self._heartbeat.close(ended=why, failed=failed)
