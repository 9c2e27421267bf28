"""Workers at a shared folder (`files.py`), wherever they run: the head's end of their lines.

Each side leaves messages in the other one's mailbox, and lets go of a message by deleting its file. The head deletes a
message once the games in it are written down, so a head that dies loses none: the next one reads them first. A worker
is new to each head. The line to it ends by the head's clock: after too long without a change of the worker's counter.
"""

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from azpy import _core
from azpy.devices import Device
from azpy.errors import RunError, one_line
from azpy.fleet.channels import MOST_STEP, Attention, Backend, Channel, Message
from azpy.fleet.channels.files import Files, Pulse, Sign, new_name
from azpy.fleet.fleet import digest_of_run
from azpy.fleet.wire import MOST_OF_A_WORKER
from azpy.runs.storage import disk_errors
from azpy.settings import Settings

FOLDER = "folder:"  # begins the setting `workers`
_WAIT = 0.1  # seconds between two looks of the head at the mail
_LOOK_AT_WORKERS = 1.0  # seconds between two looks of the head at signs of life
_SILENT_SECONDS = 120.0  # without a change of its counter end the line to a worker
_MOST_WORKERS = 1024  # that are known at once
_TROUBLE_SECONDS = 600.0  # for which the folder may be out of reach
_NOTICE_SECONDS = 60.0  # between two notices of one trouble
_MOST_TROUBLES = 8  # of a worker that a user hears of


class FolderLine(Channel):
    """The line to a worker at the folder; see `Channel`.

    Attributes:
        is_here: the worker has come to this head, and the line is not closed. What others have left still counts.
        is_refused: it did something wrong, and nothing more of it counts.
        mail: names of its messages, as last seen.
    """

    ahead, bounded = 2.0, True
    is_open = True  # to everybody who can write in the folder

    def __init__(self, key: str, folder: "Folder", *, is_here: bool = False) -> None:
        self.key, self.settings, self._folder = key, folder.settings, folder
        self.is_here, self.is_refused, self.mail = is_here, False, list[str]()
        self.pulse = Pulse(folder.attention)
        self._ended: str | None = None  # the worker's own reason
        self._told = set[str]()
        self._out = deque[Mapping[str, Any]]()
        self._sent = self._next = 0

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """See `Channel`. The bytes, a network, lie in the folder."""
        self._out.append(message)
        with contextlib.suppress(OSError):  # the next look at the folder tries again
            if body:
                self._folder.lay(message["network"], body)
            self.flush()

    def flush(self) -> None:
        """Writes what is queued, with the errors of the system."""
        while self._out:
            self._folder.files.put("to", f"{self.key}-{self._sent:08d}", self._out[0], sync=False)
            self._sent += 1
            self._out.popleft()

    def count(self, said: Mapping[str, Any]) -> None:
        """Takes note of the worker's counter."""
        if isinstance(said.get("beat"), int):
            self.pulse.note(said["beat"])

    def hear(self, said: Mapping[str, Any]) -> None:
        """Takes note of the worker's sign of life; what is not as it should be is not believed."""
        self.count(said)
        self.silent = self.pulse.silent
        if (host := said.get("host")) is not None:
            self.where = f" on {one_line(host, 64)}"
        trouble = str(said.get("trouble", ""))
        if self.name and trouble not in ("", *self._told) and len(self._told) < _MOST_TROUBLES:
            self._told.add(trouble)
            self._folder.notices.append(f"{self.name}{self.where}: {one_line(trouble)}")
        if (ended := said.get("ended")) is not None:
            self.alive, self._ended = False, str(ended)
            self.weight = float(said.get("failed") is True)
        elif self.silent > _SILENT_SECONDS:
            self.alive, self.weight = False, 0.0

    def poll(self) -> Iterator[Message]:
        """See `Channel`. Where the worker is not here, some of its messages may have gone."""
        for name in self.mail:
            number = int(name[-8:])
            if number < self._next or (self.is_here and number > self._next):
                continue
            try:
                message = self._folder.read(name)
            except ValueError:
                if self.is_here:
                    raise
                self._folder.let_go(name)
                continue
            except OSError as error:  # it may pass
                self._folder.note_trouble(error)
                return
            self._next = number + 1
            yield message

    def close(self, why: str = "") -> str:
        """See `Channel`. The worker begins anew, unless it did something wrong; what it has left then still counts."""
        self.is_here, self.is_refused = False, bool(why)
        self.mail = [] if why else self.mail
        files = self._folder.files
        files.delete("workers", self.key)
        with contextlib.suppress(OSError):
            for name in files.names("to"):
                if name.startswith(self.key):
                    files.delete("to", name)
        if self._ended is None:
            self.send({"do": "stop", "error": why} if why else {"do": "stop"})
        return f"it gave no sign of life for {_SILENT_SECONDS:.0f} seconds" if self._ended is None else self._ended


class Folder(Backend):
    """The workers of a shared folder.

    Attributes:
        files: of the folder, from `play` on.
        lines: to all workers that came or left messages, by their names in the folder.
        attention: the clock of signs of life.
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
        self.attention = Attention(clock)
        self._let_go = set[str]()  # messages that are being deleted
        self._sign: Sign | None = None
        self._taken_over = self._finishing = False
        self._networks = list[str]()  # in the folder, the newest last
        self._looked = self._looked_at_workers = -math.inf
        self._trouble, self._told = math.inf, -math.inf  # since when the folder is out of reach; when the user heard
        self._alone = 0.0  # since when there is no worker

    def play(self, lineup: Mapping[str, Any], model: bytes, devices: Sequence[Device]) -> None:
        """See `Backend`. Trouble with the folder may pass."""
        sign, sha256 = self._sign or self._open(), lineup["network"]
        while True:
            try:
                if model:
                    self.lay(sha256, model)
                    self._networks = [*(one for one in self._networks if one != sha256), sha256]
                sign.say(lineup=dict(lineup))
                break
            except OSError as error:
                self.note_trouble(error)
                self._sleep(1.0)
        before = [network for network in self._networks if network != sha256]
        for network in before[:-1]:  # some workers may still open the newest of them
            self.files.delete("networks", network)
            self._networks.remove(network)

    def lay(self, sha256: str, model: bytes) -> None:
        """Write a network's file, unless it is there and whole; errors are those of the system."""
        with contextlib.suppress(OSError, ValueError):
            if self.files.read("networks", sha256, len(model)) == model:
                return
        self.files.write("networks", sha256, model)

    def _open(self) -> Sign:
        """Takes the folder over: nothing that heads before have said counts."""
        self.files = Files(self._path, make=True)
        with disk_errors(self.files.path):
            for part in ("to", "workers", "networks"):  # networks may be damaged
                for name in self.files.names(part):
                    self.files.delete(part, name)
        self._sign, self._alone = Sign(self.files, "", "head", self._goes_on), self.clock()
        self._sign.note(epoch=self._epoch, version=_core.__version__, run=digest_of_run(self.settings), ended=False)
        self._sign.note(settings=asdict(self.settings))
        return self._sign

    def _goes_on(self) -> bool:
        """Whether no other head has taken the folder over; the thread of this head's sign asks each second.

        Where the head fits its network or plays matches, the thread looks at the counters in its place.
        """
        with contextlib.suppress(OSError, ValueError):
            epoch = self.files.said("", "head").get("epoch")
            self._taken_over = epoch is not None and epoch != self._epoch
            if self.clock() - self._looked_at_workers >= MOST_STEP:
                for line in self._here():
                    line.count(self._said_by(line.key))
                self.attention.look()
        return not self._taken_over

    def _said_by(self, key: str) -> dict[str, Any]:
        """What a worker says of itself; nothing if that cannot be read now."""
        try:
            return self.files.said("workers", key)
        except (OSError, ValueError):
            return {}

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
            self._look_at_mail()  # after the signs: what a worker did before it ended is there
            for line in self._here():
                line.flush()
        except OSError as error:
            self.note_trouble(error)
        else:
            self.attention.look()
            self._trouble = math.inf
        return new

    def _here(self) -> list[FolderLine]:
        return [line for line in list(self.lines.values()) if line.is_here]

    def _look_at_mail(self) -> None:
        there = self.files.names("from")
        self._let_go.intersection_update(there)
        for name in self._let_go:
            self.files.delete("from", name)
        for line in self.lines.values():
            line.mail = []
        for name in there:
            key = name.partition("-")[0]
            line = self.lines.get(key) or self.lines.setdefault(key, FolderLine(key, self))
            if line.is_refused:
                self.files.delete("from", name)
            elif name not in self._let_go:
                line.mail.append(name)

    @property
    def leftover(self) -> Sequence[Channel]:  # type: ignore[override]
        """See `Backend`."""
        return [line for line in self.lines.values() if line.mail and not line.is_here]

    def note_trouble(self, error: OSError) -> None:
        """Tell the user of trouble with the folder, and make parts that are gone; a `RunError` if it lasts too long."""
        now = self.clock()
        self._trouble = min(self._trouble, now)
        if now - self._trouble > _TROUBLE_SECONDS:
            raise RunError(f"{self._path} cannot be used: {error.strerror or error}") from error
        if now - self._told > _NOTICE_SECONDS:
            self._told = now
            self.notices.append(f"{self._path} cannot be used, trying again: {error.strerror or error}")
        with contextlib.suppress(OSError):
            self.files.make_parts(again=True)

    def read(self, name: str) -> Message:
        """A message of a worker; a `ValueError` if it is none or damaged, an `OSError` if it cannot be read now."""
        try:
            facts, body = self.files.message("from", name, MOST_OF_A_WORKER)
        except (FileNotFoundError, PermissionError, ValueError) as error:
            raise ValueError(f"a message of it is damaged: {error}") from error
        return Message(facts, body, lambda: self.let_go(name))

    def let_go(self, name: str) -> None:
        """Deletes a message of a worker; the next look tries again."""
        self._let_go.add(name)
        self.files.delete("from", name)

    def _look_at_workers(self) -> Iterator[FolderLine]:
        """Looks at the signs of life; gives the lines to workers that have come."""
        here = self._here()
        for line in here:
            line.hear({})  # its file may be gone
        for key in self.files.names("workers"):
            said = self._said_by(key)
            if (known := self.lines.get(key)) is None:
                if said.get("epoch") == self._epoch and not self._finishing and len(here) < _MOST_WORKERS:
                    here.append(line := FolderLine(key, self, is_here=True))
                    self.lines[key] = line
                    line.hear(said)
                    yield line
            elif known.is_here:
                known.hear(said)
            elif said.get("ended") is not None:
                self.files.delete("workers", key)  # it slept
        now = self.clock()
        if here:
            self._alone = now
        elif now - self._alone > _NOTICE_SECONDS:
            self._alone = now
            self.notices.append(f"no worker is at {self._path}: start some with az-worker {self._path}")

    def finish(self) -> None:
        """See `Backend`. A worker that comes now waits for the next head."""
        self._finishing = True

    def close(self, *, ended: bool) -> None:
        """See `Backend`. The workers of a run that has ended end too; else they wait for the next head."""
        if self._sign is not None:
            self._sign.close(ended=ended)
