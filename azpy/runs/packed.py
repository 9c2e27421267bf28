"""Files of games as they are kept: plain, or packed by gzip or Zstandard.

Nothing is unpacked to the disk, and no more bytes than a bound: what a header says of a size is not believed.
"""

import gzip
import importlib
import io
from pathlib import Path, PurePosixPath
from typing import Any

from azpy.errors import MissingPackageError, RunError, one_line

_CHUNK = 1 << 20
# A frame, or one that is skipped, with which files of many frames begin.
_ZSTANDARD = (b"\x28\xb5\x2f\xfd", *(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60)))


def suffix_of(name: str) -> str:
    """How a name ends, in small letters, before what says that the file is packed.

    Example:
        >>> suffix_of("Games.PGN.gz")
        '.pgn'
    """
    found = PurePosixPath(name.lower())
    return (found.with_suffix("") if found.suffix in (".gz", ".zst") else found).suffix


def read_packed(path: Path, most: int) -> bytes:
    """The bytes of a file of games, unpacked.

    Args:
        path: of the file.
        most: bytes that the file has, and that it unpacks to.

    Raises:
        RunError: the file cannot be read, is damaged, or has more bytes.
        MissingPackageError: it is packed by Zstandard, which this Python cannot unpack.
    """
    try:
        if path.exists() and not path.is_file():
            raise RunError(f"{path} is not a regular file: give a file of games")
        with path.open("rb") as file:
            if (size := path.stat().st_size) > most:
                raise RunError(f"{path} has {size:,} bytes, expected {most:,} at most: split it")
            return _unpacked(path, file, most)
    except (RunError, MissingPackageError):
        raise
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or one_line(error)}") from error
    except Exception as error:  # a flipped byte causes errors of many kinds
        raise RunError(f"{path} is damaged ({one_line(error)})") from error


def _unpacked(path: Path, file: Any, most: int) -> bytes:
    head, whole = file.read(4), io.BytesIO()
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        file = gzip.GzipFile(fileobj=file)
    elif head in _ZSTANDARD:
        file = _zstandard(file)
    while data := file.read(min(_CHUNK, most + 1 - whole.tell())):
        whole.write(data)
        if whole.tell() > most:
            raise RunError(f"{path} unpacks to more than {most:,} bytes: split it")
    return whole.getvalue()


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
