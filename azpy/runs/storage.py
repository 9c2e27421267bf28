"""Files that are whole or not there.

What the system refuses to write is a `RunError` that names the file.

Invariant: whenever the process is killed or the disk fills, a file under its final name is whole.
"""

import contextlib
import errno
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from azpy.errors import RunError
from azpy.system import FAILED_DEVICE, move, sync_folder
from azpy.system import lock_folder as lock_existing

INT8_MODEL = "model.int8.onnx"  # in a checkpoint whose int8 model played
_STDOUT = 1  # the descriptor
TEMPORARY = ".tmp-"  # how the name of an unfinished file or folder begins


@contextmanager
def disk_errors(path: Path, cleanup: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Turn an `OSError` into a `RunError` about `path`; `cleanup` comes first, whichever of the two it is."""
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
            f"no space left on the device of {file}: everything saved so far is intact; free some space and run again"
        )
    text = f"{named} cannot be used: {error.strerror or error}"
    if error.errno in FAILED_DEVICE:
        text += "; the disk or its network failed: repair it and run again"
    return RunError(text)


def refusal(path: Path, error: BaseException) -> RunError | None:
    """The error of a file that the system refused to read; None where the file's bytes are wrong.

    A flipped byte can send a reader to a place before the file's begin, which is an `OSError` (EINVAL) too.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL, errno.ENOENT):
        return refused(path, error)
    return None


def lock_folder(path: Path) -> int:
    """Make the folder if needed and lock it for this process; closing the returned descriptor unlocks it."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        return lock_existing(path)
    except BlockingIOError:
        raise RunError(f"{path} is in use by another process") from None


def check_regular(path: Path) -> None:
    """Raise an `OSError` if something other than a file is there, such as a pipe: a reader would wait for ever."""
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
    """Write a file and wait until the device has it."""
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
    """Replace `path` by `data`: afterwards it is either all new or all old."""
    temporary = path.with_name(TEMPORARY + path.name)
    if is_folder(temporary):
        raise RunError(f"{temporary} is a folder with a name that azpy needs to write {path.name}: move it away")
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
    chosen = Path(path)
    with disk_errors(chosen):
        final = Path(os.path.realpath(chosen))
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
    """Append all of `data` to an unbuffered file and wait until the device has it, or append nothing.

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
    """Cut off what a failed `append` of lines left, and go to the end."""
    if not ends_a_line(file):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
