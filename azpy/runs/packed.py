"""Files of games as they are kept: plain, packed by gzip, bzip2 or Zstandard, and in zip and tar archives.

Nothing is unpacked to the disk, and no more bytes than a bound: what a header says of a size is not believed.
"""

import bz2
import gzip
import importlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from azpy.errors import MissingPackageError, RunError, one_line

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TAR = 257  # where tar has its mark, "ustar"
_CHUNK = 1 << 20
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks all of a block of other methods at once


def suffix_of(name: str) -> str:
    """How a name ends, in small letters, before what says that the file is packed.

    Example:
        >>> suffix_of("Games.PGN.gz")
        '.pgn'
    """
    found = PurePosixPath(name.lower())
    return (found.with_suffix("") if found.suffix in (".gz", ".bz2", ".zst") else found).suffix


def files_in(path: Path, suffixes: Sequence[str], most: int) -> Iterator[tuple[str, bytes | RunError]]:
    """The files that a file holds: of an archive those whose names end as `suffixes` say, else the one file, unpacked.

    Args:
        path: of the file.
        suffixes: as ".sgf", in small letters. Hidden files of an archive, and archives in it, are passed over.
        most: bytes that the file has, and that it unpacks to.

    Yields:
        The name, and the bytes or why this one file of an archive cannot be read.

    Raises:
        RunError: the file cannot be read, is damaged, or has more bytes.
        MissingPackageError: it is packed by Zstandard, which this Python cannot unpack.
    """
    try:
        if path.exists() and not path.is_file():
            raise RunError(f"{path} is not a regular file: give a file of games")
        if (size := path.stat().st_size) > most:
            raise RunError(f"{path} has {size:,} bytes, expected {most:,} at most: split it")
        with path.open("rb") as file:
            yield from _files(path, file, suffixes, most)
    except (RunError, MissingPackageError):
        raise
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or one_line(error)}") from error
    except Exception as error:  # a flipped byte causes errors of many kinds
        raise RunError(f"{path} is damaged ({one_line(error)})") from error


def _files(path: Path, file: Any, suffixes: Sequence[str], most: int) -> Iterator[tuple[str, bytes | RunError]]:
    head, bound = file.read(_TAR), _Bound(path, most)
    file.seek(0)
    if head.startswith(_ZIP):
        yield from _of_zip(path, file, suffixes, bound)
        return
    unpack = next((unpack for begin, unpack in _PACKERS.items() if head.startswith(begin)), None)
    data = bound.read(file if unpack is None else unpack(file))
    if data[_TAR:].startswith(b"ustar"):
        yield from _of_tar(path, data, suffixes)
    else:
        yield str(path), data


def _of_zip(path: Path, file: Any, suffixes: Sequence[str], bound: "_Bound") -> Iterator[tuple[str, bytes | RunError]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.is_dir() or not _is_wanted(member.filename, suffixes):
                continue
            name = _name(path, member.filename)
            try:
                check_packing(name, member)
                with archive.open(member) as packed:
                    found: bytes | RunError = bound.read(packed)
            except Exception as error:  # of this one: a checksum, a password, a method of packing
                if bound.left < 0:
                    raise
                found = error if isinstance(error, RunError) else RunError(f"{name} cannot be read ({one_line(error)})")
            yield name, found


def check_packing(name: str, *members: zipfile.ZipInfo) -> None:
    """Refuses members of a zip archive of which a few bytes could fill the memory, before one is unpacked.

    Raises:
        RunError: such a member; `name` is that of the file in errors.
    """
    if any(member.compress_type not in _BOUNDED for member in members):
        problem = "is damaged, or packed by a method whose size cannot be bounded"
        raise RunError(f"{name} {problem}: put a copy packed by deflate in its place")


def _of_tar(path: Path, data: bytes, suffixes: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            # A sparse file says a size, and has no bytes.
            if member.isfile() and not member.issparse() and _is_wanted(member.name, suffixes):
                file: Any = archive.extractfile(member)
                yield _name(path, member.name), file.read()
            archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all


class _Bound:
    """How many bytes a file may still unpack to."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most, self.left = path, most, most

    def read(self, stream: Any) -> bytes:
        """All that a stream has."""
        whole = io.BytesIO()
        while data := stream.read(min(_CHUNK, self.left + 1)):
            self.left -= whole.write(data)
            if self.left < 0:
                raise RunError(f"{self._path} unpacks to more than {self._most:,} bytes: split it")
        return whole.getvalue()


def _is_wanted(name: str, suffixes: Sequence[str]) -> bool:
    inner = PurePosixPath(name)
    return inner.suffix.lower() in suffixes and not inner.name.startswith(".")


def _name(path: Path, name: str) -> str:
    """How errors call a file of an archive, whatever its name holds."""
    return f"{path}: {one_line(ValueError(name.encode(errors='replace').decode()))}"


def _zstandard(file: Any) -> Any:
    try:
        return importlib.import_module("compression.zstd").ZstdFile(file)  # Python 3.14
    except ImportError:
        pass
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise MissingPackageError(
            f"zstandard is not installed, and {file.name} is packed by Zstandard: pip install zstandard, or unpack it"
        ) from None
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


_PACKERS: dict[bytes | tuple[bytes, ...], Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    # A frame, or one that is skipped, with which files of many frames begin.
    (b"\x28\xb5\x2f\xfd", *(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))): _zstandard,
}
