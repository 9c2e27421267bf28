"""Workers at a shared folder (`files.py`), wherever they run: the head's end of their lines.

Each side leaves messages in the other's mailbox, and deletes the file of a message once it is handled. The head deletes
a message once the games in it are written down, so a head that dies loses none: the next one reads them first. A worker
is new to each head. The line to it ends by the head's clock: after too long without a change of the worker's counter.
"""

import contextlib
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from azpy import _core
from azpy.devices import Device
from azpy.errors import RunError, one_line
from azpy.fleet.channels import Backend, Channel, Message
from azpy.fleet.channels.files import Heartbeat, HeartbeatWatch, SharedFolder, new_name
from azpy.fleet.wire import MOST_OF_A_WORKER
from azpy.runs.storage import disk_errors
from azpy.settings import Settings

FOLDER = "folder:"  # begins the setting `workers`
_WAIT = 0.1  # seconds between two looks of the head at the mail
_LOOK_AT_WORKERS = 1.0  # seconds between two looks of the head at heartbeats
_MOST_STEP = 5.0  # seconds between them; more do not count as a worker's silence
_SILENT_SECONDS = 120.0  # without a change of its counter end the line to a worker
_MOST_WORKERS = 1024  # that are known at once
_TROUBLE_SECONDS = 600.0  # for which the folder may be out of reach
_NOTICE_SECONDS = 60.0  # between two notices of one trouble
_NETWORKS = 2  # that lie in the folder: some workers may still open the one before the newest


class FolderLine(Channel):
    """The line to a worker at the folder, by its name there; see `Channel`."""

    ahead, bounded = 2.0, True

    def __init__(self, key: str, folder: "Folder") -> None:
        super().__init__(folder.settings)
        self.key, self._folder = key, folder
        self._watch = HeartbeatWatch(folder.clock)
        self._ended: str | None = None  # the worker's own reason
        self._is_at_fault = True
        self._out = deque[Mapping[str, Any]]()
        self._sent = 0

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """See `Channel`. The bytes, a network, lie in the folder."""
        self._out.append(message)
        with contextlib.suppress(OSError):  # retried at the next look at the folder
            self.flush()

    def flush(self) -> None:
        """Write what is queued, with the errors of the system."""
        while self._out:
            self._folder.lay(self._out[0].get("network"))
            self._folder.files.put("to", f"{self.key}-{self._sent:08d}", self._out[0], sync=False)
            self._sent += 1
            self._out.popleft()

    def note(self, said: Mapping[str, Any], away: float = 0.0) -> None:
        """Record the worker's heartbeat; invalid values are ignored.

        Args:
            said: what the worker says of itself.
            away: seconds before this look in which the head could not read the folder; they do not count as silence.
        """
        self._watch.skip(away)
        if isinstance(beat := said.get("beat"), int):
            self._watch.note(beat)
        if "host" in said:
            self.where = f" on {one_line(said['host'], 64)}"
        silent = self._watch.silent
        self.heard = self._folder.clock() - silent
        if (ended := said.get("ended")) is not None:
            self.alive, self._ended, self._is_at_fault = False, str(ended), said.get("failed") is True
        elif silent > _SILENT_SECONDS:
            self.alive = self._is_at_fault = False

    def poll(self) -> Iterator[Message]:
        """See `Channel`."""
        return self._folder.messages(self.key)

    def close(self, why: str = "") -> str:
        """See `Channel`. The worker begins anew, unless it did something wrong; what it has left then still counts."""
        # Any process can join a folder, so only a worker with counted games can end the run.
        self.weight = float(self._is_at_fault and self.games > 0)
        self._folder.forget(self.key, is_refused=bool(why))
        if self._ended is not None:
            return self._ended
        self.send({"do": "stop", "error": why} if why else {"do": "stop"})
        return f"it gave no sign of life for {_SILENT_SECONDS:.0f} seconds"


class Folder(Backend):
    """The workers of a shared folder.

    Attributes:
        files: of the folder, from `play` on.
    """

    def __init__(
        self,
        settings: Settings,
        path: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__()
        self.settings, self._path, self.clock, self._sleep = settings, path, clock, sleep
        self._epoch = new_name()
        self._lines: dict[str, FolderLine] = {}  # to the workers that have come to this head, by their names
        self._closed: dict[str, bool] = {}  # lines by the same names -> whether nothing more of the worker counts
        self._mail = defaultdict[str, list[str]](list)  # worker -> names of its messages in the folder, as last seen
        self._read: dict[str, bool] = {}  # those of them that the head has -> whether it has let go of them
        self._models: dict[str, bytes] = {}  # in the folder, by SHA-256, the newest last
        self._heartbeat: Heartbeat | None = None
        self._taken_over = self._finishing = False
        self._looked = self._looked_at_workers = -math.inf
        self._trouble, self._told = math.inf, -math.inf  # when the folder became unreachable, and when azpy said so
        self._alone = 0.0  # when the last worker left

    def play(self, lineup: Mapping[str, Any], model: bytes, devices: Sequence[Device]) -> None:
        """See `Backend`. A worker's line lays the network into the folder before it writes of it."""
        if self._heartbeat is None:
            self._open()
        if model:
            self._models.pop(lineup["network"], None)
            self._models[lineup["network"]] = model
        while len(self._models) > _NETWORKS:
            oldest = next(iter(self._models))
            self.files.delete("networks", oldest)
            del self._models[oldest]

    def lay(self, sha256: str | None) -> None:
        """Write a network's file, unless it is there and whole; errors are those of the system."""
        if sha256 is None or (model := self._models.get(sha256)) is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if self.files.read("networks", sha256, len(model)) == model:
                return
        self.files.write("networks", sha256, model)

    def _open(self) -> None:
        """Take over the folder: messages of earlier heads no longer count."""
        self.files = SharedFolder(self._path, make=True)
        facts = {"epoch": self._epoch, "version": _core.__version__, "ended": False}
        with disk_errors(self.files.path):
            for part in ("to", "workers", "networks"):  # networks too: they may be damaged
                for name in self.files.names(part):
                    self.files.delete(part, name)
            self._heartbeat, self._alone = Heartbeat(self.files, "", "head", facts, self._is_mine), self.clock()
            self._heartbeat.begin()

    def _is_mine(self) -> bool:
        """Whether no other head has taken the folder over; the thread of its heartbeat asks each second."""
        self._taken_over = self.files.said("", "head").get("epoch") not in (None, self._epoch)
        return not self._taken_over

    def look(self, seconds: float) -> list[FolderLine]:
        """See `Backend`. Errors of the folder are retried."""
        if self._taken_over:
            raise RunError(f"another az-train uses {self._path} now: give each run its own folder")
        if (wait := self._looked + _WAIT - self.clock()) > 0:
            if not seconds:
                return []
            self._sleep(wait)
        now = self._looked = self.clock()
        new = list[FolderLine]()
        try:
            if now - self._looked_at_workers >= _LOOK_AT_WORKERS:
                new += self._look_at_workers()
            self._look_at_mail()  # read messages after the heartbeats, so that a worker's last messages are included
            for line in self._lines.values():
                line.flush()
        except OSError as error:
            self._note_trouble(error)
        else:
            self._trouble = math.inf
        for line in self._lines.values():
            line.waits = self._trouble < math.inf
        return new

    def _look_at_workers(self) -> Iterator[FolderLine]:
        """Look at the heartbeats; give the lines to workers that have come."""
        # Read this first: it raises while the folder is unreachable, so no worker counts as silent then.
        keys = self.files.names("workers")
        now = self.clock()
        away, self._looked_at_workers = max(0.0, now - self._looked_at_workers - _MOST_STEP), now
        for line in self._lines.values():
            line.note(self.files.said("workers", line.key), away)
        for key in keys:
            if key in self._lines:
                continue
            said = self.files.said("workers", key)
            if said.get("epoch") == self._epoch and key not in self._closed and not self._finishing:
                if len(self._lines) < _MOST_WORKERS:
                    self._lines[key] = line = FolderLine(key, self)
                    line.note(said)
                    yield line
            elif said.get("ended") is not None:
                self.files.delete("workers", key)  # the worker was asleep
        if self._lines:
            self._alone = now
        elif now - self._alone > _NOTICE_SECONDS:
            self._alone = now
            self.notices.append(f"no worker has joined {self._path} yet: start some with az-worker {self._path}")

    def _look_at_mail(self) -> None:
        names = self.files.names("from")
        self._read = {name: self._read[name] for name in names if name in self._read}
        self._mail.clear()
        for name in names:
            key, _, _ = name.partition("-")
            self._mail[key].append(name)
            if self._read.get(name) or self._closed.get(key):
                self._let_go(name)

    def messages(self, key: str) -> Iterator[Message]:
        """The messages of a worker; a `ValueError` if one is damaged."""
        for name in self._mail.get(key, ()):
            if name not in self._read and (message := self._message(name)):
                yield message

    def leftover(self) -> Iterator[Message]:
        """See `Backend`."""
        for key, names in self._mail.items():
            for name in () if key in self._lines else names:
                with contextlib.suppress(ValueError):
                    if name not in self._read and (message := self._message(name)):
                        yield message

    def _message(self, name: str) -> Message | None:
        """A message; None if it cannot be read now, and a `ValueError` if it is damaged."""
        try:
            facts, body = self.files.message("from", name, MOST_OF_A_WORKER)
        except (FileNotFoundError, PermissionError, ValueError) as error:
            self._let_go(name)
            raise ValueError(f"one of its messages is damaged: {error}") from error
        except OSError as error:  # the error may be temporary
            self._note_trouble(error)
            return None
        self._read[name] = False
        return Message(facts, body, partial(self._let_go, name))

    def _let_go(self, name: str) -> None:
        """Delete a message of a worker; the next look tries again."""
        self._read[name] = True
        self.files.delete("from", name)

    def forget(self, key: str, *, is_refused: bool) -> None:
        """Close the line to a worker. Its remaining messages count later, unless it is refused."""
        del self._lines[key]
        self._closed[key] = is_refused
        self.files.delete("workers", key)
        with contextlib.suppress(OSError):
            for name in self.files.names("to"):
                if name.startswith(key):
                    self.files.delete("to", name)

    def _note_trouble(self, error: OSError) -> None:
        """Tell the user of trouble with the folder; a `RunError` if it lasts too long."""
        now = self.clock()
        self._trouble = min(self._trouble, now)
        if now - self._trouble > _TROUBLE_SECONDS:
            raise RunError(f"{self._path} cannot be used: {error.strerror or error}") from error
        if now - self._told > _NOTICE_SECONDS:
            self._told = now
            self.notices.append(f"{self._path} cannot be used, trying again: {error.strerror or error}")

    def finish(self) -> None:
        """See `Backend`. A worker that joins now waits for the next head."""
        self._finishing = True

    def close(self, *, ended: bool) -> None:
        """See `Backend`. The workers of a run that has ended end too; else they wait for the next head."""
        if self._heartbeat is not None:
            self._heartbeat.close(ended=ended)
