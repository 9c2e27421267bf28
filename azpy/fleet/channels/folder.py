"""Workers at a shared folder (`files.py`), wherever they run: the head's end of their lines, and the worker's.

Each side leaves messages in the other one's mailbox, and lets go of a message by deleting its file. The head deletes a
message once the games in it are written down, so a head that dies loses none: the next one reads them first. A worker
is new to each head. The line to it ends by the head's clock: after too long without a change of the worker's counter.
"""

import contextlib
import hashlib
import math
import os
import queue
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from azpy import _core
from azpy.errors import RunError, SettingsError
from azpy.fleet.channels import Backend, Channel, Message
from azpy.fleet.channels.files import MOST_SAID, Files, Pulse, Sign, as_object, new_name, seal, unseal
from azpy.fleet.fleet import digest_of_run
from azpy.fleet.wire import MOST_OF_A_HEAD, MOST_OF_A_WORKER, PROTOCOL, Inbox, in_words, pack, unpack
from azpy.fleet.worker import Worker
from azpy.games.names import refuse_untyped
from azpy.runs.storage import disk_errors
from azpy.settings import Settings
from azpy.settings.run import auto_pipelines

__all__ = ["FOLDER", "PATIENCE", "Folder", "FolderWorker", "settings_of_guest"]

FOLDER = "folder:"  # begins the setting `workers`
PATIENCE = 600.0  # seconds without a sign of the head
MOST_OF_A_RESULT = MOST_OF_A_WORKER + MOST_SAID + 64  # bytes
_WAIT = 0.1  # seconds between two looks of the head at the mail
_LOOK_AT_WORKERS = 1.0  # seconds between two looks of the head at signs of life
_SILENT_SECONDS = 120.0  # without a change of its counter end the line to a worker
_MOST_WORKERS = 1024  # that are known at once
_TROUBLE_SECONDS = 600.0  # for which the folder may be out of reach
_NOTICE_SECONDS = 60.0  # between two notices of one trouble
_MOST_TROUBLES = 8  # of a worker that a user hears of
_LOOK = 0.2  # seconds between two looks of a worker
_GATHER = 2.0, math.inf  # seconds between two messages with games, unless a slot may run out of games
_MOST_UNREAD = 4  # messages of a worker in the folder; then it waits
_SAY_SECONDS = 60.0  # between two lines of a worker


class FolderLine(Channel):
    """The line to a worker at the folder; see `Channel`."""

    ahead = 2.0

    def __init__(self, key: str, folder: "Folder") -> None:
        self.key, self.settings, self._folder = key, folder.settings, folder
        self.pulse = Pulse(folder.clock)
        self._host, self._ended, self._told = "?", "", set[str]()
        self._out = deque[bytes]()
        self._sent = self._polled = self._acknowledged = 0

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """See `Channel`."""
        self._out.append(seal(pack(message)))
        with contextlib.suppress(OSError):  # the next look at the folder tries again
            self.flush()

    def flush(self) -> None:
        """Writes what is queued.

        Raises:
            OSError: it cannot be written.
        """
        while self._out:
            self._folder.files.write("to", f"{self.key}-{self._sent:08d}", self._out[0], sync=False)
            self._sent += 1
            self._out.popleft()

    def hear(self, said: Mapping[str, Any]) -> None:
        """Takes note of the worker's sign of life; what is not as it should be is not believed."""
        if isinstance(said.get("beat"), int):
            self.pulse.note(said["beat"])
        self.silent = self.pulse.silent
        self._host = str(said.get("host", self._host))[:64]
        trouble = said.get("trouble")
        if isinstance(trouble, str) and trouble and trouble not in self._told and len(self._told) < _MOST_TROUBLES:
            self._told.add(trouble)
            self._folder.notices.append(f"{self.name} on {self._host}: {trouble[:300]}")
        if (ended := said.get("ended")) is not None:
            self.alive, self._ended = False, str(ended)
            self.weight = float(said.get("failed") is True)
        elif self.silent > _SILENT_SECONDS:
            self.alive, self.weight = False, 0.0

    def poll(self) -> Iterator[Message]:
        """See `Channel`."""
        while (name := f"{self.key}-{self._polled:08d}") in self._folder.mail[self.key]:
            message = self._folder.read(name)
            self._polled += 1
            yield message

    def acknowledge(self, count: int) -> None:
        """See `Channel`."""
        while self._acknowledged < count:
            self._folder.files.delete("from", f"{self.key}-{self._acknowledged:08d}")
            self._acknowledged += 1

    def close(self, why: str = "") -> str:
        """See `Channel`. The worker begins anew, unless it did something wrong."""
        if not self._ended:
            self.send({"do": "stop", "error": why} if why else {"do": "stop"})
        self._folder.forget(self)
        how = self._ended or f"it gave no sign of life for {_SILENT_SECONDS:.0f} seconds"
        return f"{how} (on {self._host})"


class Left(Channel):
    """What workers have left that the head does not know: those of a head before, and those that it has given up."""

    def __init__(self, folder: "Folder") -> None:
        self._folder = folder
        self._names = deque[str]()  # that were polled
        self._known = set[str]()
        self._gone = 0  # of the messages that were polled

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """Nobody is there."""

    def poll(self) -> Iterator[Message]:
        """See `Channel`. What cannot be read is deleted."""
        for key in self._folder.mail.keys() - self._folder.lines.keys():
            for name in self._folder.mail[key]:
                if name not in self._known:
                    try:
                        message = self._folder.read(name)
                    except ValueError:
                        self._folder.files.delete("from", name)
                        continue
                    self._names.append(name)
                    self._known.add(name)
                    yield message

    def acknowledge(self, count: int) -> None:
        """See `Channel`."""
        while self._gone < count:
            name = self._names.popleft()
            self._known.discard(name)
            self._folder.files.delete("from", name)
            self._gone += 1

    def close(self, why: str = "") -> str:
        """See `Channel`."""
        return ""


class Folder(Backend):
    """The workers of a shared folder.

    Args:
        settings: of the run.
        path: of the folder; made by `play` if it is not there.
        clock: seconds from any moment on.
        sleep: waits for so many seconds.

    Attributes:
        files: of the folder, from `play` on.
        lines: to the workers, by their names in the folder.
        mail: names of messages of workers, as last seen, by worker.
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
        self.lines: dict[str, FolderLine] = {}
        self.mail: defaultdict[str, list[str]] = defaultdict(list)
        self._met = set[str]()  # workers, those that are gone too
        self._sign: Sign | None = None
        self._taken_over = self._rests = False
        self._networks, self._before = set[str](), set[str]()  # in the folder; of the lineup before
        self._looked = self._looked_at_workers = -math.inf
        self._trouble: tuple[float, float] | None = None  # since when the folder is out of reach; the last notice
        self._alone = clock()  # since when there is no worker

    def play(
        self,
        lineup: Mapping[str, Any],
        models: Mapping[str, bytes],
        devices: Sequence[str],
        answers: Sequence[str | None],
    ) -> None:
        """See `Backend`."""
        sign = self._sign or self._open()
        with disk_errors(self.files.path):
            for sha256 in models.keys() - self._networks:
                self.files.write("networks", sha256, models[sha256])
            sign.say(lineup=dict(lineup), answers=list(answers))
        for sha256 in self._networks - models.keys() - self._before:  # some workers may still open those before
            self.files.delete("networks", sha256)
        self._networks, self._before = (self._networks & self._before) | models.keys(), set(models)

    def _open(self) -> Sign:
        """Takes the folder over: nothing that heads before have said counts.

        Raises:
            RunError: the folder cannot be used; nothing of it stays open.
        """
        self.files = Files(self._path, make=True)
        try:
            with disk_errors(self.files.path):
                for part in ("to", "workers", "networks"):  # networks may be damaged
                    for name in self.files.names(part):
                        self.files.delete(part, name)
        except BaseException:
            self.files.close()
            raise
        self._sign, self.left = Sign(self.files, "", "head", self._is_mine), Left(self)
        self._sign.note(epoch=self._epoch, version=_core.__version__, run=digest_of_run(self.settings), ended=False)
        self._sign.note(settings=asdict(self.settings))
        return self._sign

    def _is_mine(self) -> bool:
        """Whether no other head has taken the folder over."""
        with contextlib.suppress(OSError, ValueError):
            epoch = as_object(self.files.read("", "head", MOST_SAID)).get("epoch")
            self._taken_over = epoch is not None and epoch != self._epoch
        return not self._taken_over

    def look(self, seconds: float) -> list[Channel]:
        """See `Backend`. Trouble with the folder may pass."""
        if self._taken_over:
            raise RunError(f"another az-train has taken over {self._path}: give each run a folder of its own")
        if (wait := self._looked + _WAIT - self.clock()) > 0:
            if not seconds:
                return []
            self._sleep(wait)
        now = self._looked = self.clock()
        new = list[Channel]()
        try:
            if now - self._looked_at_workers >= _LOOK_AT_WORKERS:
                self._looked_at_workers = now
                new += self._look_at_workers()
            self.mail.clear()  # after the signs: what a worker did before it ended is there
            for name in self.files.names("from"):
                self.mail[name.partition("-")[0]].append(name)
            for line in self.lines.values():
                line.flush()
        except OSError as error:
            self._note_trouble(error)
        else:
            self._trouble = None
        return new

    def _note_trouble(self, error: OSError) -> None:
        now = self.clock()
        since, told = self._trouble or (now, -math.inf)
        if now - since > _TROUBLE_SECONDS:
            raise RunError(f"{self._path} cannot be used: {error.strerror or error}") from error
        if now - told > _NOTICE_SECONDS:
            self.notices.append(f"{self._path} cannot be used, trying again: {error.strerror or error}")
            told = now
        self._trouble = since, told

    def read(self, name: str) -> Message:
        """A message of a worker.

        Raises:
            ValueError: it is damaged, too long, or no message.
        """
        try:
            return unpack(unseal(self.files.read("from", name, MOST_OF_A_RESULT)), MOST_OF_A_WORKER)
        except (OSError, ValueError) as error:
            raise ValueError(f"a message of it is damaged: {error}") from error

    def _look_at_workers(self) -> Iterator[FolderLine]:
        """Looks at the signs of life; gives the lines to workers that have come."""
        for key in self.files.names("workers"):
            try:
                said = as_object(self.files.read("workers", key, MOST_SAID))
            except (OSError, ValueError):
                said = {}
            if key in self.lines:
                self.lines[key].hear(said)
            elif self._rests:
                continue
            elif said.get("epoch") == self._epoch and key not in self._met and len(self.lines) < _MOST_WORKERS:
                self._met.add(key)
                line = self.lines[key] = FolderLine(key, self)
                line.hear(said)
                yield line
        for line in self.lines.values():
            if line.pulse.silent > _SILENT_SECONDS:  # its file is gone
                line.hear({})
        now = self.clock()
        if self.lines:
            self._alone = now
        elif now - self._alone > _NOTICE_SECONDS:
            self._alone = now
            self.notices.append(f"no worker is at {self._path}: start some with az-worker {self._path}")

    def forget(self, line: FolderLine) -> None:
        """Takes note of a worker's end."""
        self.lines.pop(line.key, None)
        self.files.delete("workers", line.key)

    def rest(self) -> None:
        """See `Backend`. A worker that comes now waits for the next head."""
        self._rests = True

    def close(self, *, ended: bool) -> None:
        """See `Backend`. The workers of a run that has ended end too; else they wait for the next head."""
        if self._sign is not None:
            self._sign.close(ended=ended)
            self.files.close()


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
        self._say, self._asked_to_end, self._clock, self._sleep = say, asked_to_end, clock, sleep
        self._files = Files(path, make=False)
        self._head, self._pulse = dict[str, Any](), Pulse(clock)
        self._first_beat: tuple[Any, Any] | None = None  # epoch and count of a head when it was first seen
        self._visited = self._why = ""  # the epoch of the last head for which this worker played; why it ends

    def run(self) -> str:
        """Plays until the run ends, the user ends it, or the head is silent for too long; returns why.

        Raises:
            AzpyError: this worker cannot play in the run, or nobody is there to play for.
        """
        try:
            self._say(f"a worker waits at {self._path} for az-train")
            while not (why := self._look()):
                if self._head_lives():
                    self._visit()
                elif self._visited and self._head.get("ended") and self._head.get("epoch") == self._visited:
                    return "the run has ended"
                else:
                    self._sleep(_LOOK)
            return why
        finally:
            self._files.close()

    def _look(self) -> str:
        """Looks at what the head says to everybody; returns why the worker ends, or an empty text."""
        if self._asked_to_end():
            return "it was told to end"
        if self._files.is_there("", "stop"):
            return f"{self._path}/stop is there"
        with contextlib.suppress(OSError, ValueError):
            self._head = as_object(self._files.read("", "head", MOST_SAID))
        self._pulse.note((self._head.get("epoch"), self._head.get("beat")))
        if self._pulse.silent > self._patience:
            raise RunError(
                f"no sign of az-train at {self._path} for {self._patience:.0f} seconds: start it again with --workers "
                f"folder:{self._path}, and then this worker"
            )
        return ""

    def _head_lives(self) -> bool:
        """Whether a head is there whose counter has moved while this worker looked."""
        epoch, beat = self._head.get("epoch"), self._head.get("beat")
        if epoch is None or self._head.get("ended"):
            return False
        if self._first_beat is None or self._first_beat[0] != epoch:
            self._first_beat = epoch, beat
        return bool(self._first_beat[1] != beat)

    def _visit(self) -> None:
        """Plays for one head, until one of the two ends it.

        Raises:
            AzpyError: this worker cannot play in the run, or nobody is there to play for.
        """
        if (found := (self._head.get("protocol"), self._head.get("version"))) != (PROTOCOL, _core.__version__):
            raise RunError(
                f"az-train at {self._path} is of azpy {found[1]} with protocol {found[0]}, this worker of "
                f"{_core.__version__} with protocol {PROTOCOL}: install the same azpy"
            )
        self._visited, self._first_beat = self._head["epoch"], None
        visit = _Visit(self._files, self._visited, self._goes_on, self._say, self._clock, self._sleep)
        worker = Worker(visit.inbox, visit.send, self._mine, _GATHER, self._clock)
        self._why = "it was interrupted"
        try:
            worker.run()
        finally:
            error = worker.error or visit.error
            why, own = in_words(error) if error is not None else (self._why, True)
            visit.close(why, failed=not (error is None or isinstance(error, RunError | SettingsError)))
        if error is not None:
            if own:
                raise error
            raise RunError(why) from error

    def _goes_on(self) -> bool:
        """Whether this worker goes on with the head that it plays for."""
        self._why = self._look()
        return not self._why and self._head.get("epoch") == self._visited and not self._head.get("ended")

    def _mine(self, settings: Settings) -> Settings:
        refuse_untyped(settings.game, self._game, self._path, "playing", "GAME {} on the command line")
        mine = settings_of_guest(settings, self._layout)
        self._say(f"plays {settings.game}, {mine.slots} games at once on {mine.device}")
        return mine


class _Visit:
    """The worker's end of a line to one head.

    Args:
        files: of the folder.
        epoch: of the head.
        goes_on: whether the worker goes on with this head, asked now and then.
        say: takes each line for the user.
        clock: seconds from any moment on.
        sleep: waits for so many seconds.

    Attributes:
        inbox: what the head says.
        over: nothing more comes.
        error: why, if something is wrong.
    """

    def __init__(
        self,
        files: Files,
        epoch: str,
        goes_on: Callable[[], bool],
        say: Callable[[str], object],
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ) -> None:
        self._files, self._goes_on, self._say, self._clock, self._sleep = files, goes_on, say, clock, sleep
        self.key, self.over = new_name(), threading.Event()
        self.error: Exception | None = None
        self.inbox: Inbox = queue.SimpleQueue()
        self._sign, self._said_at = Sign(files, "workers", self.key), clock()
        self._read = self._sent = 0
        self._unread: list[str] = []  # messages in the folder that the head has not let go
        with contextlib.suppress(OSError):  # the next count tries again
            self._sign.say(epoch=epoch, version=_core.__version__, host=socket.gethostname(), pid=os.getpid())
        self._thread = threading.Thread(target=self._listen, daemon=True, name="azpy-inbox")
        self._thread.start()

    def _listen(self) -> None:
        """Reads the messages of the head, until the visit is over."""
        try:
            while not self.over.is_set() and self._goes_on():
                self._fetch()
                self.over.wait(_LOOK)
        except Exception as error:
            self.error = error
        self.over.set()
        self.inbox.put(({"do": "stop"}, b""))

    def _fetch(self) -> None:
        """Reads the messages that are there. One that cannot be read may be there whole in a while."""
        there = set(self._files.names("to"))
        while (name := f"{self.key}-{self._read:08d}") in there and not self.over.is_set():
            try:
                message, body = unpack(unseal(self._files.read("to", name, MOST_SAID)), MOST_SAID)
                if message["do"] == "model":
                    body = self._files.read("networks", message["sha256"], MOST_OF_A_HEAD)
                    if hashlib.sha256(body).hexdigest() != message["sha256"]:
                        raise ValueError(f"networks/{message['sha256']} is damaged")
            except (OSError, ValueError) as error:
                self._sign.note(trouble=f"what az-train says cannot be read: {error}")
                return
            self._files.delete("to", name)
            self._read += 1
            if message["do"] == "stop":
                if "error" in message:
                    self.error = RunError(f"az-train refused this worker: {message['error']}")
                self.over.set()
            self.inbox.put((message, body))

    def send(self, message: Mapping[str, Any], body: bytes) -> None:
        """Leaves a message for the head; waits while the head reads none, or while the disk is full."""
        while len(self._unread) >= _MOST_UNREAD and not self.over.is_set():
            self._unread = [name for name in self._unread if self._files.is_there("from", name)]
            if len(self._unread) >= _MOST_UNREAD:
                self._sleep(_LOOK)
        name = f"{self.key}-{self._sent:08d}"
        while True:
            try:
                self._files.write("from", name, seal(pack(message, body)))
                break
            except OSError as error:
                text = f"a result cannot be written, trying again: {error.strerror or error}"
                self._sign.note(trouble=text)
                self._say(text)
                if self.over.is_set():
                    return
                self._sleep(1.0)
        self._unread.append(name)
        self._sent += 1
        if self._clock() - self._said_at >= _SAY_SECONDS and message["said"] == "games":
            self._said_at, stats = self._clock(), message["stats"]
            self._say(f"{stats.get('games', 0):,.0f} games, {stats.get('rows', 0):,.0f} evaluations")

    def close(self, why: str, *, failed: bool) -> None:
        """Ends the visit; `failed` says whether it counts as a death."""
        self.over.set()
        self._thread.join()
        self._sign.close(ended=why, failed=failed)


def settings_of_guest(settings: Settings, layout: Mapping[str, Any]) -> Settings:
    """A run's settings as one worker plays by them; `layout` has the worker's own."""
    slots, device = layout.get("slots", settings.slots), layout.get("device", settings.device_names[0])
    mine = {"slots": slots, "device": device, "pipelines": auto_pipelines(slots, device), "threads": None}
    mine |= {"workers": 0, "devices": None, "precision": "fp32"}  # each network comes with its own
    return replace(settings, **mine | dict(layout))
