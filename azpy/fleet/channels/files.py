"""A folder that several machines share: names, whole writes, careful reads, and counters that show life.

    head                         what the head says to everybody, with its counter
    stop                         made by a user: the workers end
    workers/WORKER               a worker's sign of life, with its counter
    networks/SHA256              a network's file
    to/WORKER-NUMBER             a message to a worker, until it has read the message
    from/WORKER-NUMBER           a message of a worker, until the head has written its games down

WORKER is 16 random hexadecimal digits, NUMBER 8 decimal ones. Other names are not looked at. A file is written under a
temporary name and renamed, and so is whole. Files with games and networks are synced. Nothing in the folder is
believed: a link, a pipe, a folder or a file that is too long is not read, and a folder in the place of a file that is
to be written is deleted. No time of a file counts.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from azpy.fleet.wire import PROTOCOL, as_object, pack, unpack
from azpy.runs.storage import TEMPORARY, disk_errors, is_folder, replacing
from azpy.system import open_plain, sync_folder

BEAT = 1.0  # seconds between two counts
MOST_SAID = 1 << 20  # bytes of what a head or a worker says
_MOST_NAMES = 1 << 16  # of a part that are looked at
_HEX, _NUMBER, _SEAL = "[0-9a-f]{16}", "[0-9]{8}", 16
_PARTS = {"workers": _HEX, "networks": "[0-9a-f]{64}", "to": f"{_HEX}-{_NUMBER}", "from": f"{_HEX}-{_NUMBER}"}


class Files:
    """The folder.

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
            self.make_parts()

    def make_parts(self, *, again: bool = False) -> None:
        """Make the parts that are missing.

        With `again`, make them also in place of what is not a folder, and of an empty folder that may not be used. Then
        nothing is made where all parts are gone: an empty mount point is not the folder.

        Raises:
            OSError: something is in the way.
        """
        if again and not any(self.is_there("", part) for part in _PARTS):
            return
        for part in _PARTS:
            path = self.path / part
            if again and not is_folder(path):
                self.delete("", part)
            elif again and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                with contextlib.suppress(OSError):  # it is not empty
                    path.rmdir()
            with contextlib.suppress(FileExistsError):
                path.mkdir()
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
        """What a head or a worker says of itself; errors are those of `read`."""
        return as_object(self.read(part, name, MOST_SAID))

    def write(self, part: str, name: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a file as a whole, or a folder in its place; with `sync` it survives a power cut.

        Errors are those of the system.
        """
        self._check(part)
        try:
            self._write(self.path / part / name, data, sync=sync)
        except (IsADirectoryError, PermissionError):
            self.delete(part, name)
            self._write(self.path / part / name, data, sync=sync)

    def _write(self, path: Path, data: bytes, *, sync: bool) -> None:
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
        """Writes a message; errors are those of `write`."""
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
        """Deletes a file, or what was left of one under its temporary name; a folder with all that is in it."""
        for each in (name, TEMPORARY + name):
            # A folder in a folder in a folder: Python before 3.13 calls itself for each.
            with contextlib.suppress(OSError, RecursionError):
                try:
                    (self.path / part / each).unlink()
                except (IsADirectoryError, PermissionError):
                    shutil.rmtree(self.path / part / each)


def new_name() -> str:
    """A name for a worker or a head."""
    return secrets.token_hex(8)


def with_checksum(data: bytes) -> bytes:
    """Bytes with a checksum before them."""
    return hashlib.blake2b(data, digest_size=_SEAL).digest() + data


def without_checksum(data: bytes) -> bytes:
    """What `with_checksum` was given; a `ValueError` if not all of it is there, or it was changed."""
    if hashlib.blake2b(data[_SEAL:], digest_size=_SEAL).digest() != data[:_SEAL]:
        raise ValueError("its checksum is wrong")
    return data[_SEAL:]


class Pulse:
    """How long ago a counter of another machine changed, on a clock of this one.

    Attributes:
        moved: whether the counter has changed since it was first looked at.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._changed, self.moved = clock, clock(), False
        self._count: object = None

    def note(self, count: object) -> None:
        """Takes note of what the counter shows."""
        if count != self._count:
            self.moved = self._count is not None
            self._count, self._changed = count, self._clock()

    @property
    def silent(self) -> float:
        """Seconds since the counter changed, or was first looked at."""
        return self._clock() - self._changed


class Sign:
    """A file of facts, with a counter that a thread of this process moves on.

    Args:
        files: of the folder.
        part: of the folder.
        name: of the file.
        before: called before each write but the first; False: another process owns the file now, and writing ends.
    """

    def __init__(self, files: Files, part: str, name: str, before: Callable[[], bool] = lambda: True) -> None:
        self._files, self._part, self._name, self._before = files, part, name, before
        self._facts: dict[str, Any] = {"protocol": PROTOCOL, "beat": 0}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, **facts: Any) -> None:
        """Changes facts; they are written with the next count."""
        with self._lock:
            self._facts |= facts

    def say(self, **facts: Any) -> None:
        """Changes facts, and writes them now; after an `OSError` the next count tries again."""
        self.note(**facts)
        try:
            self._write(first=self._thread is None)
        finally:
            if self._thread is None:
                self._thread = threading.Thread(target=self._count, daemon=True, name="azpy-sign")
                self._thread.start()

    def _write(self, *, first: bool = False) -> None:
        with self._lock:
            if not first and not self._before():
                self._ended.set()
            if self._ended.is_set():
                return
            self._facts["beat"] += 1
            self._files.write(self._part, self._name, json.dumps(self._facts).encode(), sync=False)

    def _count(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):  # the folder may come back
                self._write()

    def close(self, **facts: Any) -> None:
        """Ends the counting, with last facts."""
        if self._thread is not None:
            with contextlib.suppress(OSError):
                self.say(**facts)
            self._ended.set()
            self._thread.join()
