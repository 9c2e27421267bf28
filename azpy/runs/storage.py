"""Files that are whole or not there: atomic writes, the journal of games, sealed games.

What the system refuses to write is a `RunError` that names the file.

Invariant: whenever the process is killed or the disk fills, a file under its final name is whole, and a journal is good
up to its last whole frame.
"""

import contextlib
import errno
import io
import json
import operator
import os
import re
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.system import FAILED_DEVICE, move, sync_folder
from azpy.system import lock_folder as lock_existing

INT8_MODEL = "model.int8.onnx"  # in a checkpoint whose int8 model played
_STDOUT = 1  # the descriptor
TEMPORARY = ".tmp-"  # how the name of an unfinished file or folder begins
_MAGIC = b"azpyjrn2"
_FRAME = struct.Struct("<III")  # length of the payload, crc32 of those four bytes, crc32 of the payload
_LENGTH = struct.Struct("<I")
_BLOCK = 512  # bytes that devices write at once, or more


@contextmanager
def disk_errors(path: Path, cleanup: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Turns an `OSError` into a `RunError` about `path`; `cleanup` comes first, whichever of the two it is."""
    try:
        yield
    except (OSError, RunError) as error:
        cleanup()
        if isinstance(error, RunError | BrokenPipeError):  # the reader of a pipe that a user named has gone
            raise
        raise refused(path, error) from error


def refused(path: Path, error: OSError) -> RunError:
    """The error for a file that the system refused; `path` is the file or its folder, if `error` names none."""
    # The name of a temporary file becomes the final name.
    file, named = (str(name).replace(TEMPORARY, "") for name in (path, error.filename or path))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"no space left on the device of {file}: what was saved before is intact; free some and run again"
        )
    text = f"{named} cannot be used: {error.strerror or error}"
    if error.errno in FAILED_DEVICE:
        text += "; the disk or its network failed: put that right, and run again"
    return RunError(text)


def refusal(path: Path, error: BaseException) -> RunError | None:
    """The error of a file that the system refused to read; None where the file's bytes are wrong.

    A flipped byte can send a reader to a place before the file's begin, which is an `OSError` (EINVAL) too.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL, errno.ENOENT):
        return refused(path, error)
    return None


def lock_folder(path: Path) -> int:
    """Makes the folder if needed and locks it for this process; closing the returned descriptor unlocks it."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        return lock_existing(path)
    except BlockingIOError:
        raise RunError(f"{path} is in use by another process") from None


def check_regular(path: Path) -> None:
    """Raises an `OSError` if something other than a file is there, such as a pipe: a reader would wait for ever."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def is_folder(path: Path) -> bool:
    """Whether a folder has this name, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def numbered(folder: Path, suffix: str = "") -> list[int]:
    """The numbers of a folder's entries that are named by six digits and `suffix`, ascending; none if it is missing.

    Raises:
        RunError: the folder cannot be read.
    """
    with disk_errors(folder):
        entries = folder.iterdir() if folder.exists() else ()
        matches = (re.fullmatch("([0-9]{6})" + re.escape(suffix), entry.name) for entry in entries)
        return sorted(int(match[1]) for match in matches if match)


def write_synced(path: Path, data: bytes) -> None:
    """Writes a file and waits until the device has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_regular(path: Path) -> bytes:
    """The bytes of a file."""
    check_regular(path)
    return path.read_bytes()


@contextmanager
def replacing(path: Path, name: str = "", *, sync: bool = True) -> Iterator[Path]:
    """A temporary path to write and, with `sync`, to sync, which then replaces `path`.

    `name` is its name after `TEMPORARY`. Errors are those of the system.
    """
    temporary = path.with_name(TEMPORARY + (name or path.name))
    temporary.unlink(missing_ok=True)  # a link of this name would be written through
    try:
        yield temporary
        move(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by `data`: afterwards it is either all new or all old."""
    temporary = path.with_name(TEMPORARY + path.name)
    if is_folder(temporary):
        raise RunError(f"{temporary} is a folder, and its name is needed to write {path.name}: move it away")
    with disk_errors(path), replacing(path):
        write_synced(temporary, data)


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Whether a path is of the file, pipe or device that standard output goes to."""
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(_STDOUT))
    except (OSError, ValueError):  # no such file yet, or no standard output
        return False


class _Stream(io.FileIO):
    """A file without positions: standard output may append to a file, where seeking is not possible."""

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to fill at a path that a user chose.

    A regular or new file is replaced as a whole or not at all, at a link the file that the link points to. A replaced
    file keeps its mode. A device or a pipe is written into. The file of standard output is written at its place in it.

    Raises:
        RunError: a folder, or a file that cannot be written.
        BrokenPipeError: nobody reads the pipe any more.
    """
    chosen = Path(path)
    with disk_errors(chosen):
        final = Path(os.path.realpath(chosen))
        if is_stdout(chosen):
            with io.BufferedWriter(_Stream(os.dup(_STDOUT), "wb")) as file:
                yield file
            return
        if chosen.is_dir():
            raise RunError(f"{chosen} is a folder, expected the name of a file to write")
        if final.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if chosen.exists() and not (final.is_file() and final.samefile(chosen)):  # no regular file that has a name
            with chosen.open("wb") as file:
                yield file
            return
        try:
            # A random name: two exports may run at once in a user's folder.
            with replacing(final, secrets.token_hex(8)) as temporary, temporary.open("xb") as file:
                if final.exists():
                    temporary.chmod(stat.S_IMODE(final.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if TEMPORARY in str(error.filename):
                error.filename = None  # the random name
            raise


@contextmanager
def output_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder to fill, which then takes the place that a user chose, whole or not at all.

    Raises:
        RunError: something is in this place, or the folder cannot be written.
    """
    chosen, final = Path(path), Path(os.path.realpath(path))
    with disk_errors(chosen):
        if os.path.lexists(chosen):  # one that is there has an owner, rights, and perhaps a shell that stands in it
            raise RunError(f"{chosen} exists: give a new folder")
        # A random name: two exports may run at once in a user's folder.
        temporary = final.with_name(TEMPORARY + secrets.token_hex(8))
        try:
            temporary.mkdir(parents=True)
            yield temporary
            move(temporary, final)
            sync_folder(final.parent)
        except OSError as error:
            error.filename = None  # the random name
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def append(file: IO[bytes], data: bytes) -> None:
    """Appends all of `data` to an unbuffered file and waits until the device has it, or appends nothing.

    A Ctrl-C during the wait for the device leaves all of `data` in the file.
    """
    start, rest = file.tell(), memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except BaseException as error:
        if rest or isinstance(error, OSError):
            file.seek(start)
            with contextlib.suppress(OSError):  # else whoever appends or opens next cuts it off
                file.truncate(start)
        raise


def ends_a_line(file: IO[bytes]) -> bool:
    """Whether a file is empty or its last byte ends a line; goes to the end."""
    end = file.seek(0, os.SEEK_END)
    if not end:
        return True
    file.seek(end - 1)
    return file.read(1) == b"\n"


def cut_torn_line(file: IO[bytes]) -> None:
    """Cuts off what a failed `append` of lines left, and goes to the end."""
    if not ends_a_line(file):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)


class Journal:
    """An append-only file of framed game records, and its records in memory. It is made if it is not there.

    The file begins with `_MAGIC`, 8 bytes. Each `append` adds one frame. All numbers are uint32, little-endian::

        length of the payload | crc32 of these 4 bytes | crc32 of the payload | payload

    The payload of one game is the game's bytes (`GameRecord.to_bytes`). The payload of several games is `_MAGIC`, then
    for each game the length of its bytes and its bytes. A frame is whole or not there, for a power cut can lose a part
    in its middle.

    Attributes:
        records: the games, in the order in which they were appended; always the same list.
        dropped: bytes of a torn last frame, cut off when the file was opened.

    Raises:
        RunError: the file is damaged, not merely torn at its end.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            write_atomically(path, _MAGIC)
        found, self._end, self.dropped = read_journal(path)
        first = dict[int, GameRecord]()
        for record in found:  # an append that failed, and could not be undone, was made again
            first.setdefault(record.game_id, record)
        self.records = list(first.values())
        self._path = path
        if self.dropped:
            with disk_errors(path), path.open("r+b") as file:
                file.truncate(self._end)
                os.fsync(file.fileno())

    def append(self, *records: GameRecord) -> None:
        """Adds games and waits once until the device has them; after a `RunError` they are not in the journal."""
        # By its name: an interrupted `drop` may have put another file in its place, which is shorter.
        with disk_errors(self._path), self._path.open("r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            begin = min(self._end, size)
            if size > begin:  # a failed append left bytes, or all of its frame
                file.truncate(begin)
                file.seek(begin)
            try:
                append(file, frame(*records))
            finally:
                if file.tell() > begin:
                    self._end = file.tell()  # first: without it the next append would cut these games off
                    self.records.extend(records)

    def drop(self, ids: Container[int]) -> None:
        """Forgets the games with these ids, all at once."""
        kept = [record for record in self.records if record.game_id not in ids]
        if len(kept) < len(self.records):
            self._end = write_journal(self._path, kept)
            self.records[:] = kept


def write_journal(path: Path, records: Sequence[GameRecord]) -> int:
    """Writes a journal of these games in place of the file; returns its bytes."""
    data = _MAGIC + b"".join(map(frame, records))
    write_atomically(path, data)
    return len(data)


def read_journal(path: Path) -> tuple[list[GameRecord], int, int]:
    """Reads all whole frames of a journal, and changes nothing.

    A kill or a power cut can tear the last frame: its bytes end too early, or file systems leave zeros in place of
    whole blocks of it, or behind it. Any other bad frame is damage, a last frame with a flipped bit too.

    Returns:
        The games, the byte at which they end, and the bytes of a torn frame after it.

    Raises:
        RunError: the file is damaged, not merely torn at its end.
    """

    def damage(offset: int, why: str) -> RunError:
        return RunError(
            f"{path} is damaged at byte {offset}: {why}; put a good copy in its place, or delete it to go on "
            "without the games of the iteration in play"
        )

    with disk_errors(path):
        data, records = read_regular(path), list[GameRecord]()
    if data[: len(_MAGIC)] != _MAGIC:
        raise damage(0, f"it does not begin with {_MAGIC.decode()}")
    offset = len(_MAGIC)
    while len(data) - offset >= _FRAME.size and (any(data[offset : offset + _FRAME.size]) or any(data[offset:])):
        length, length_crc, payload_crc = _FRAME.unpack_from(data, offset)
        begin, end = offset + _FRAME.size, offset + _FRAME.size + length
        if zlib.crc32(_LENGTH.pack(length)) != length_crc:
            if _lost_block(data, offset, begin) and not _frame_after(data, begin):
                break
            zeros = not any(data[offset:begin])
            raise damage(offset, f"{'zeros in place of' if zeros else 'a wrong checksum of'} a game's length")
        if end > len(data):
            break
        payload = data[begin:end]
        if zlib.crc32(payload) != payload_crc:
            if _lost_block(data, offset, end) and not any(data[end:]):
                break
            raise damage(offset, "a game's checksum does not hold")
        try:
            records += map(GameRecord.from_bytes, _split(payload))
        except (ValueError, struct.error) as error:
            raise damage(offset, str(error)) from error
        offset = end
    return records, offset, len(data) - offset


def _lost_block(data: bytes, begin: int, end: int) -> bool:
    """Whether a block of the file that has bytes of `begin` to `end` is zeros from `begin` on: a power cut lost it."""
    blocks = range(begin - begin % _BLOCK, end, _BLOCK)
    return not all(any(data[max(block, begin) : block + _BLOCK]) for block in blocks)


def _frame_after(data: bytes, begin: int) -> bool:
    """Whether a frame begins anywhere behind a byte: a length with its checksum."""
    ends = range(begin + _LENGTH.size, len(data) - _LENGTH.size)
    return any(zlib.crc32(data[end - _LENGTH.size : end]) == _LENGTH.unpack_from(data, end)[0] for end in ends)


def unframe(data: bytes) -> list[bytes]:
    """The bytes of the games of one whole frame, as `frame` made it.

    Raises:
        ValueError: `data` is anything else.
    """
    payload = data[_FRAME.size :]
    if data[: _FRAME.size] != _head(payload):
        raise ValueError(f"a frame of {len(data)} bytes whose length or checksum does not hold")
    try:
        return list(_split(payload))
    except struct.error as error:
        raise ValueError(f"a frame of {len(data)} bytes that ends too early: {error}") from error


def _split(payload: bytes) -> Iterator[bytes]:
    if not payload.startswith(_MAGIC):
        yield payload
        return
    end = len(_MAGIC)
    while end < len(payload):
        begin = end + _LENGTH.size
        end = begin + _LENGTH.unpack_from(payload, end)[0]
        yield payload[begin:end]


def frame(*records: GameRecord) -> bytes:
    """One frame: its payload is one game's bytes, or several games' bytes after `_MAGIC`, each after its length."""
    games = [record.to_bytes() for record in records]
    payload = games[0] if len(games) == 1 else _MAGIC + b"".join(_LENGTH.pack(len(game)) + game for game in games)
    return _head(payload) + payload


def _head(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(_LENGTH.pack(len(payload))), zlib.crc32(payload))


class SealedGames:
    """The games of a run's finished iterations: `NNNNNN.npz` holds the games of iteration N.

    Its arrays are `payload` (uint8: the records' bytes, one after another) and `offsets` (int64 [N + 1] into it);
    for readers without azpy also `game_id` (int64 [N]), `outcome` (float32 [N], for player 0; of several players
    without a zero sum [N, P]) and `length` (int32 [N], plies). Imported games have `tags` too (uint8: a line of JSON a
    game, with its players, date and event). `label` (text: a JSON object) names the iteration and the run. `folder`
    may be missing; `run` are facts that identify the run, by name.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self._folder, self._run = folder, dict(run)

    def path(self, iteration: int) -> Path:
        """The file of an iteration."""
        return self._folder / f"{iteration:06d}.npz"

    def iterations(self) -> list[int]:
        """Iterations that have a file, ascending."""
        return numbered(self._folder, ".npz")

    def write(self, iteration: int, records: Sequence[GameRecord], tags: Sequence[str] = ()) -> None:
        """Seal the games of an iteration; of imported games with the `tags` of each, a JSON object."""
        payloads = [record.to_bytes() for record in records]
        arrays: dict[str, NDArray[Any]] = {
            "payload": np.frombuffer(b"".join(payloads), np.uint8),
            "offsets": np.cumsum([0, *map(len, payloads)], dtype=np.int64),
            "game_id": np.array([record.game_id for record in records], np.int64),
            "outcome": np.array([record.outcome for record in records], np.float32),
            "length": np.array([len(record) for record in records], np.int32),
            "label": np.array(json.dumps({"iteration": iteration, **self._run})),
        }
        if any(text != "{}" for text in tags):
            arrays["tags"] = np.frombuffer("\n".join(tags).encode(), np.uint8)
        buffer = io.BytesIO()
        # Level 1 takes half of the time of numpy's level 6, and 5 to 11 % more space.
        with zipfile.ZipFile(buffer, "w") as file:
            for name, array in arrays.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                # A ZipInfo of its own holds no time: equal games are equal files.
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED, 1)
        write_atomically(self.path(iteration), buffer.getvalue())

    def ids(self, iteration: int) -> list[int]:
        """Ids of an iteration's games, ascending; its games are not read. Errors are those of `read`."""
        with self._opened(iteration) as (_, ids):
            return ids

    def tags(self, iteration: int) -> dict[int, dict[str, str]]:
        """What the files of an iteration's imported games say of them, by game id. Errors are those of `read`."""
        with self._opened(iteration) as (arrays, ids):
            return dict(zip(ids, _tags_in(arrays, len(ids)), strict=True)) if "tags" in arrays.files else {}

    def read(self, iteration: int) -> list[GameRecord]:
        """Games of an iteration, in order of game id.

        Raises:
            RunError: the file is missing or damaged (every array in it carries a checksum), or holds other games.
        """
        with self._opened(iteration) as (arrays, ids):
            records = _records_of(arrays)
            if [record.game_id for record in records] != ids:
                raise ValueError("its arrays disagree")
        return records

    @contextmanager
    def _opened(self, iteration: int) -> Iterator[tuple[Any, list[int]]]:
        """The arrays of an iteration's file and its ids; then refuses a file of another iteration or another run.

        Compares the facts that both the file and the run have: other versions of azpy may have more or fewer.
        """
        with _reading(self.path(iteration)) as arrays:
            label = dict(json.loads(str(arrays["label"])))
            yield arrays, list(map(operator.index, arrays["game_id"].tolist()))
        expected = {"iteration": iteration, **self._run}
        both = [name for name in expected if name in label]
        if any(label[name] != expected[name] for name in both):
            found, wanted = (_in_words({name: facts[name] for name in both}) for facts in (label, expected))
            raise RunError(
                f"{self.path(iteration)} holds the games of {found}, expected those of {wanted}: put the right file "
                "back, or delete it to go on without its games"
            )


def sealed_in(path: Path, most: int) -> list[tuple[GameRecord, dict[str, Any]]]:
    """Return the games of a file of sealed games, whatever run it is of, each with what its own file said of it.

    Raises:
        RunError: the file is damaged, unpacks to more, or holds no sealed games.
    """
    with _reading(path, "") as arrays:
        # A member gives no more bytes than this, whatever the header of its array says.
        if (size := sum(member.file_size for member in arrays.zip.infolist())) > most:
            raise RunError(f"{path} unpacks to {size:,} bytes, expected {most:,} at most: split it")
        if "payload" not in arrays.files or "offsets" not in arrays.files:
            rows = "observations" in arrays.files
            holds = "rows for training, as az-export --npz writes," if rows else "arrays"
            raise RunError(f"{path} holds {holds} and no sealed games: give a file of a run's folder games")
        records = _records_of(arrays)
        return list(zip(records, _tags_in(arrays, len(records)), strict=True))


def _tags_in(arrays: Any, games: int) -> list[dict[str, Any]]:
    lines = arrays["tags"].tobytes().decode().split("\n") if "tags" in arrays.files else ["{}"] * games
    return [dict(json.loads(line)) for line in lines]


def _records_of(arrays: Any) -> list[GameRecord]:
    if (member := arrays.zip.testzip()) is not None:
        raise ValueError(f"the checksum of {member} does not hold")
    payload, offsets = arrays["payload"].tobytes(), arrays["offsets"].tolist()
    if offsets != sorted(offsets) or (offsets[0], offsets[-1]) != (0, len(payload)):
        raise ValueError("its arrays disagree")
    return [GameRecord.from_bytes(payload[a:b]) for a, b in pairwise(offsets)]


def _in_words(label: Mapping[str, Any]) -> str:
    run = ", ".join(f"{name} {value}" for name, value in label.items() if name != "iteration")
    return f"iteration {label.get('iteration', '?')} of the run with {run}"


@contextmanager
def _reading(path: Path, to_do: str = ": delete it to go on without its games") -> Iterator[Any]:
    """The arrays of a file whose unpacking can be bounded.

    Every error is a `RunError`, because a flipped byte causes errors of many kinds. `to_do` ends that of a damaged
    file.
    """
    try:
        check_regular(path)
        with np.load(path, allow_pickle=False) as arrays:
            # zipfile unpacks all of a block of other methods at once, however little is asked for.
            plain = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if any(member.compress_type not in plain for member in arrays.zip.infolist()):
                problem = "is damaged, or packed by a method whose size cannot be bounded"
                raise RunError(f"{path} {problem}: put a copy packed by deflate in its place")
            yield arrays
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{path} is missing") from None
    except Exception as error:
        if said := refusal(path, error):
            raise said from error
        raise RunError(f"{path} is damaged ({error}){to_do}") from error
