"""A folder that several machines share: names, whole writes, careful reads, and counters that show life.

    head                         the head's heartbeat, with its counter
    stop                         made by a user: the workers end
    workers/WORKER               a worker's heartbeat, with its counter
    networks/SHA256              a network's file
    to/WORKER-NUMBER             a message to a worker, until it has read the message
    from/WORKER-NUMBER           a message of a worker, until the head has written its games down

WORKER is 16 random hexadecimal digits, NUMBER 8 decimal ones. Other names are not looked at. A file is written under a
temporary name and renamed, and so is whole. Files with games and networks are synced. Nothing in the folder is
believed: a link, a pipe, a folder or a file that is too long is not read. No time of a file counts.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from azpy.fleet.wire import PROTOCOL, as_object, pack, unpack
from azpy.runs.storage import disk_errors, is_folder, replacing
from azpy.system import open_plain, sync_folder

BEAT = 1.0  # seconds between two counts
MOST_SAID = 1 << 20  # bytes of what a head or a worker says
_MOST_NAMES = 1 << 16  # of a part that are looked at
_HEX, _NUMBER, _SEAL = "[0-9a-f]{16}", "[0-9]{8}", 16
_PARTS = {"workers": _HEX, "networks": "[0-9a-f]{64}", "to": f"{_HEX}-{_NUMBER}", "from": f"{_HEX}-{_NUMBER}"}


class SharedFolder:
    """The folder, for both of its sides.

    Args:
        path: of the folder; it may be a link.
        make: make it if it is not there.

    Raises:
        RunError: it is no folder, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, make: bool) -> None:
        self.path = Path(path)
        with disk_errors(self.path):
            if make:
                self.path.mkdir(parents=True, exist_ok=True)
            for part in _PARTS:
                with contextlib.suppress(FileExistsError):
                    (self.path / part).mkdir()
                self._check(part)

    def _check(self, part: str) -> None:
        if part and not is_folder(self.path / part):
            (self.path / part).stat()  # says what is wrong with the folder itself
            raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", str(self.path / part))

    def names(self, part: str) -> list[str]:
        """The names in a part that are of its form, sorted."""
        self._check(part)
        with os.scandir(self.path / part) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
        return sorted(name for name in names if re.fullmatch(_PARTS[part], name))

    def read(self, part: str, name: str, most: int) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: it is not there.
            ValueError: it is no regular file, or longer than `most`.
            OSError: it cannot be read.
        """
        try:
            descriptor = open_plain(self.path / part / name)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EINVAL):
                raise ValueError(f"{part}/{name} is not a regular file") from error
            raise
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            data = bytearray()
            while len(data) <= most and (piece := file.read(min(1 << 20, most + 1 - len(data)))):
                data += piece
        if len(data) > most:
            raise ValueError(f"{part}/{name} has more than {most} bytes")
        return bytes(data)

    def said(self, part: str, name: str) -> dict[str, Any]:
        """What a head or a worker says of itself; nothing if that cannot be read now."""
        try:
            return as_object(self.read(part, name, MOST_SAID))
        except (OSError, ValueError):
            return {}

    def write(self, part: str, name: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a file as a whole; with `sync` it survives a power cut. Errors are those of the system."""
        self._check(part)
        path = self.path / part / name
        with replacing(path, sync=False) as temporary, temporary.open("xb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if sync:
            # The file is there, and may have been read: whoever wrote it again would say the same twice.
            with contextlib.suppress(OSError):
                sync_folder(path.parent)

    def put(self, part: str, name: str, message: Mapping[str, Any], body: bytes = b"", *, sync: bool = True) -> None:
        """Write a message; errors are those of `write`."""
        self.write(part, name, with_checksum(pack(message, body)), sync=sync)

    def message(self, part: str, name: str, most: int) -> tuple[dict[str, Any], bytes]:
        """A message with `most` bytes besides its JSON.

        Raises:
            ValueError: it is damaged, or none.
            OSError: it cannot be read.
        """
        return unpack(without_checksum(self.read(part, name, most + MOST_SAID + 64)), most)

    def is_there(self, part: str, name: str) -> bool:
        """Whether a name is there, of whatever kind."""
        return os.path.lexists(self.path / part / name)

    def delete(self, part: str, name: str) -> None:
        """Delete a file, if that is possible now."""
        with contextlib.suppress(OSError):
            (self.path / part / name).unlink()


def new_name() -> str:
    """A name for a worker or a head."""
    return secrets.token_hex(8)


def with_checksum(data: bytes) -> bytes:
    """Bytes with a checksum before them."""
    return hashlib.blake2b(data, digest_size=_SEAL).digest() + data


def without_checksum(data: bytes) -> bytes:
    """What `with_checksum` was given; a `ValueError` if not all of it is there, or it was changed."""
    if hashlib.blake2b(data[_SEAL:], digest_size=_SEAL).digest() != data[:_SEAL]:
        raise ValueError("it has a wrong checksum")
    return data[_SEAL:]


class HeartbeatWatch:
    """How long ago a counter of another machine changed, on a clock of this one.

    Attributes:
        moved: whether the counter has changed since it was first looked at.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._changed, self.moved = clock, clock(), False
        self._count: object = None

    def note(self, count: object) -> None:
        """Take note of what the counter shows."""
        if count != self._count:
            self.moved = self._count is not None
            self._count, self._changed = count, self._clock()

    def skip(self, seconds: float) -> None:
        """Ignore a time in which this process did not look at the heartbeat."""
        self._changed = min(self._clock(), self._changed + seconds)

    @property
    def silent(self) -> float:
        """Seconds since the counter changed, or was first looked at."""
        return self._clock() - self._changed


class Heartbeat:
    """A heartbeat: a file of facts, which a thread of this process writes again and again with a counter.

    Args:
        files: of the folder.
        part: of the folder.
        name: of the file.
        facts: to write.
        is_mine: asked before each write but the first; False: another process owns the file now, and writing ends.
    """

    def __init__(
        self,
        files: SharedFolder,
        part: str,
        name: str,
        facts: Mapping[str, Any],
        is_mine: Callable[[], bool] = lambda: True,
    ) -> None:
        self._files, self._part, self._name, self._is_mine = files, part, name, is_mine
        self._facts: dict[str, Any] = {"protocol": PROTOCOL, "beat": 0} | dict(facts)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True, name="azpy-heartbeat")

    def begin(self) -> None:
        """Write the file for the first time, and have the thread go on, also after an `OSError`."""
        try:
            self._write()
        finally:
            self._thread.start()

    def _write(self) -> None:
        self._facts["beat"] += 1
        self._files.write(self._part, self._name, json.dumps(self._facts).encode(), sync=False)

    def _count(self) -> None:
        while not self._ended.wait(BEAT) and self._is_mine():
            with contextlib.suppress(OSError):  # the folder may come back
                self._write()

    def close(self, **facts: Any) -> None:
        """End the counting, with last facts."""
        self._ended.set()
        self._thread.join()
        self._facts |= facts
        with contextlib.suppress(OSError):
            if self._is_mine():
                self._write()
