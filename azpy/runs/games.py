"""The games of a run on the disk: the journal of the iteration in play, and the sealed games of each other one.

Invariant: whenever the process is killed or the disk fills, a journal is good up to its last whole frame, and a file of
sealed games is whole or not there.
"""

import io
import json
import operator
import os
import struct
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.runs import storage

_MAGIC = b"azpyjrn2"
_FRAME = struct.Struct("<III")  # length of the payload, crc32 of those four bytes, crc32 of the payload
_LENGTH = struct.Struct("<I")
_BLOCK = 512  # bytes that devices write at once, or more


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
            storage.write_atomically(path, _MAGIC)
        found, self._end, self.dropped = read_journal(path)
        first = dict[int, GameRecord]()
        for record in found:  # a failed append that could not be undone was repeated
            first.setdefault(record.game_id, record)
        self.records = list(first.values())
        self._path = path
        if self.dropped:
            with storage.disk_errors(path), path.open("r+b") as file:
                file.truncate(self._end)
                os.fsync(file.fileno())

    def append(self, *records: GameRecord) -> None:
        """Add games and wait once until the device has them; after a `RunError` they are not in the journal."""
        # Open by name: an interrupted `drop` may have replaced the file by a shorter one.
        with storage.disk_errors(self._path), self._path.open("r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            begin = min(self._end, size)
            if size > begin:  # a failed append left part of its frame, or all of it
                file.truncate(begin)
                file.seek(begin)
            try:
                storage.append(file, frame(*records))
            finally:
                if file.tell() > begin:
                    self._end = file.tell()  # first: the next append cuts off what comes after
                    self.records.extend(records)

    def drop(self, ids: Container[int]) -> None:
        """Remove the games with these ids in one step."""
        kept = [record for record in self.records if record.game_id not in ids]
        if len(kept) < len(self.records):
            self._end = write_journal(self._path, kept)
            self.records[:] = kept


def write_journal(path: Path, records: Sequence[GameRecord]) -> int:
    """Write a journal of these games in place of the file; return its bytes."""
    data = _MAGIC + b"".join(map(frame, records))
    storage.write_atomically(path, data)
    return len(data)


def read_journal(path: Path) -> tuple[list[GameRecord], int, int]:
    """Read all whole frames of a journal, and change nothing.

    A kill or a power cut can tear the last frame: its bytes end too early, or file systems leave zeros instead of
    whole blocks of it, or behind it. Any other bad frame is damage, a last frame with a flipped bit too.

    Returns:
        The games, the byte at which they end, and the bytes of a torn frame after it.

    Raises:
        RunError: the file is damaged, not merely torn at its end.
    """

    def damage(offset: int, why: str) -> RunError:
        return RunError(
            f"{path} is damaged at byte {offset}: {why}; restore a good copy, or delete it to go on "
            "without the games of the iteration in play"
        )

    with storage.disk_errors(path):
        data, records = storage.read_regular(path), list[GameRecord]()
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
            raise damage(offset, f"{'zeros instead of' if zeros else 'a wrong checksum of'} a game's length")
        if end > len(data):
            break
        payload = data[begin:end]
        if zlib.crc32(payload) != payload_crc:
            if _lost_block(data, offset, end) and not any(data[end:]):
                break
            raise damage(offset, "a game has a wrong checksum")
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
    """Whether a frame (a length with its checksum) begins anywhere after a byte."""
    ends = range(begin + _LENGTH.size, len(data) - _LENGTH.size)
    return any(zlib.crc32(data[end - _LENGTH.size : end]) == _LENGTH.unpack_from(data, end)[0] for end in ends)


def unframe(data: bytes) -> list[bytes]:
    """The bytes of the games of one whole frame, as `frame` made it.

    Raises:
        ValueError: `data` is anything else.
    """
    payload = data[_FRAME.size :]
    if data[: _FRAME.size] != _head(payload):
        raise ValueError(f"a frame of {len(data)} bytes has a wrong length or checksum")
    try:
        return list(_split(payload))
    except struct.error as error:
        raise ValueError(f"a frame of {len(data)} bytes is cut short: {error}") from error


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
        return storage.numbered(self._folder, ".npz")

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
        # Level 1 takes half the time of numpy's level 6, and 5 to 11 % more space.
        with zipfile.ZipFile(buffer, "w") as file:
            for name, array in arrays.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                # A plain ZipInfo has no time stamp, so equal games give equal files.
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED, 1)
        storage.write_atomically(self.path(iteration), buffer.getvalue())

    def ids(self, iteration: int) -> list[int]:
        """Ids of an iteration's games, ascending; its games are not read. Errors are those of `read`."""
        with self._opened(iteration) as arrays:
            return _ids_in(arrays)

    def tags(self, iteration: int) -> dict[int, dict[str, str]]:
        """What the files of an iteration's imported games say of them, by game id. Errors are those of `read`."""
        with self._opened(iteration) as arrays:
            ids = _ids_in(arrays)
            return dict(zip(ids, _tags_in(arrays, len(ids)), strict=True)) if "tags" in arrays.files else {}

    def read(self, iteration: int) -> list[GameRecord]:
        """Games of an iteration, in order of game id.

        Raises:
            RunError: the file is missing or damaged (every array in it carries a checksum), or holds other games.
        """
        with self._opened(iteration) as arrays:
            records = _records_of(arrays)
            if [record.game_id for record in records] != _ids_in(arrays):
                raise ValueError("its arrays have different lengths")
        return records

    @contextmanager
    def _opened(self, iteration: int) -> Iterator[Any]:
        """The arrays of an iteration's file; refuses a file of another iteration or another run.

        Compares the facts that both the file and the run have: other versions of azpy may have more or fewer.
        """
        path, expected = self.path(iteration), {"iteration": iteration, **self._run}
        with _reading(path) as arrays:
            label = dict(json.loads(str(arrays["label"])))
            both = [name for name in expected if name in label]
            if any(label[name] != expected[name] for name in both):
                found, wanted = (_in_words({name: facts[name] for name in both}) for facts in (label, expected))
                raise RunError(
                    f"{path} holds the games of {found}, expected those of {wanted}: restore the right file, or "
                    "delete it to go on without its games"
                )
            yield arrays


def sealed_in(path: Path, most: int) -> list[tuple[GameRecord, dict[str, Any]]]:
    """Return the games of a file of sealed games of any run, each with the tags of the file that it came from.

    Raises:
        RunError: the file is damaged, unpacks to more, or holds no sealed games.
    """
    with _reading(path, "") as arrays:
        # At most this many bytes of a member are read, even if the header of its array claims more.
        if (size := sum(member.file_size for member in arrays.zip.infolist())) > most:
            raise RunError(f"{path} unpacks to {size:,} bytes, expected {most:,} at most: split it")
        if "payload" not in arrays.files or "offsets" not in arrays.files:
            rows = "observations" in arrays.files
            holds = "rows for training, as az-export --npz writes," if rows else "arrays"
            raise RunError(f"{path} holds {holds} and no sealed games: give a file from a run's games folder")
        records = _records_of(arrays)
        return list(zip(records, _tags_in(arrays, len(records)), strict=True))


def _ids_in(arrays: Any) -> list[int]:
    return list(map(operator.index, arrays["game_id"].tolist()))


def _tags_in(arrays: Any, games: int) -> list[dict[str, Any]]:
    lines = arrays["tags"].tobytes().decode().split("\n") if "tags" in arrays.files else ["{}"] * games
    return [dict(json.loads(line)) for line in lines]


def _records_of(arrays: Any) -> list[GameRecord]:
    if (member := arrays.zip.testzip()) is not None:
        raise ValueError(f"{member} has a wrong checksum")
    payload, offsets = arrays["payload"].tobytes(), arrays["offsets"].tolist()
    if offsets != sorted(offsets) or (offsets[0], offsets[-1]) != (0, len(payload)):
        raise ValueError("its arrays have different lengths")
    return [GameRecord.from_bytes(payload[a:b]) for a, b in pairwise(offsets)]


def _in_words(label: Mapping[str, Any]) -> str:
    run = ", ".join(f"{name} {value}" for name, value in label.items() if name != "iteration")
    return f"iteration {label.get('iteration', '?')} of the run with {run}"


@contextmanager
def _reading(path: Path, to_do: str = ": delete it to go on without its games") -> Iterator[Any]:
    """The arrays of a file whose unpacking can be bounded.

    Every error is a `RunError`, because a flipped byte causes errors of many kinds. `to_do` is appended for a damaged
    file.
    """
    try:
        storage.check_regular(path)
        with np.load(path, allow_pickle=False) as arrays:
            # With other methods, zipfile unpacks a whole block at once, even for a short read.
            plain = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if any(member.compress_type not in plain for member in arrays.zip.infolist()):
                problem = "is damaged, or packed by a method whose size cannot be bounded"
                raise RunError(f"{path} {problem}: replace it with a copy packed by deflate")
            yield arrays
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{path} is missing") from None
    except Exception as error:
        if said := storage.refusal(path, error):
            raise said from error
        raise RunError(f"{path} is damaged ({error}){to_do}") from error
