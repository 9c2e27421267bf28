"""What Linux, macOS and Windows do not share, and what this process runs on: locks, pipes, processes, cores, memory.

The other modules do not use these (tests/docs/test_imports.py): no `fcntl`, no signals but SIGINT and SIGTERM, no
files of `/proc`. On Windows the quick suite runs; az-match with programs and az-engine have not been tried there.
"""

import codecs
import contextlib
import ctypes
import errno
import functools
import importlib
import math
import os
import platform
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from azpy import _core

if sys.platform == "win32":
    import _winapi
    import msvcrt
else:
    import fcntl
    import resource
    import select

# What `subprocess.Popen` takes: Ctrl-C in a terminal is for the parent alone, and `kill_group` ends the whole group.
if sys.platform == "win32":
    OWN_GROUP: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    OWN_GROUP: dict[str, Any] = {"start_new_session": True}
HANGUP: int | None = getattr(signal, "SIGHUP", None)  # the signal; None where there is none
# Signals by which terminals, batch systems and service managers tell a process to end; Ctrl-C is none of them.
_ENDING = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
ENDING = tuple(signal.Signals[name] for name in _ENDING if hasattr(signal, name))
_FAILED = ("EIO", "ESTALE", "EREMOTEIO", "ENXIO", "ETIMEDOUT")
FAILED_DEVICE = {getattr(errno, name) for name in _FAILED if hasattr(errno, name)}  # of a disk or its network
_HELD_SECONDS = 2.0  # that another process may have a file open on Windows
_LOOK_SECONDS = 0.005  # between two looks at a pipe of Windows
_LOCKED_BYTE = 2**31 - 2  # on Windows, where a lock of bytes keeps others from reading them: behind every file's end
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_CGROUPS, _MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

# Files


def lock(descriptor: int) -> None:
    """Lock an open file until its descriptor is closed, or this process ends, however it does.

    The lock holds among the processes of one machine. A network file system may take it to others, and need not.

    Raises:
        BlockingIOError: another process has the lock.
    """
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):  # the file system has no locks
                raise
            raise BlockingIOError(error.errno, error.strerror) from error
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def current_folder() -> Path | None:
    """Return the current folder; None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def lock_folder(path: Path) -> int:
    """Lock a folder as `lock` does; closing the returned descriptor unlocks it."""
    if sys.platform == "win32":  # Windows cannot open a folder, so lock a file beside it
        descriptor = os.open(f"{path.resolve()}.lock", os.O_RDWR | os.O_CREAT)
    else:
        descriptor = os.open(path, os.O_RDONLY)
    try:
        lock(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut, where the file system can. Windows has no such call."""
    if sys.platform != "win32":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some shared file systems sync only files
                raise
        finally:
            os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Give a file or a folder another name, at once, in place of a file that has it.

    Windows refuses as long as another process has one of them open: it is tried again for two seconds.
    """
    until = time.monotonic() + (_HELD_SECONDS if sys.platform == "win32" else 0.0)
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_SECONDS)


def open_plain(path: Path) -> int:
    """Open a regular file to read it, and return its descriptor. Windows follows links.

    Raises:
        OSError: the file cannot be read, or it is something else: a link (ELOOP, EMLINK), a socket (ENXIO), or a pipe,
            a folder or a device (EINVAL). A pipe does not make the caller wait.
    """
    if sys.platform == "win32":
        flags = os.O_BINARY
    else:
        flags = os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, os.O_RDONLY | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return descriptor


def allow_open_files(count: int) -> None:
    """Raise the limit of open files of this process to a number, or as far as the system allows."""
    if sys.platform != "win32":
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if least != resource.RLIM_INFINITY and least < count:
            allowed = count if most == resource.RLIM_INFINITY else min(count, most)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


# Pipes and processes


def ready(reads: Iterable[int], writes: Iterable[int] = (), seconds: float | None = None) -> list[int]:
    """Wait for pipes that can be read or written without a wait, or whose other side is gone; at most so long."""
    if sys.platform == "win32":
        until = math.inf if seconds is None else time.monotonic() + seconds
        while not (found := [*filter(_has_data, reads), *writes]) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
    else:
        poll = select.poll()
        for descriptor in reads:
            poll.register(descriptor, select.POLLIN)
        for descriptor in writes:
            poll.register(descriptor, select.POLLOUT)
        found = [descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)]
    return found


if sys.platform == "win32":

    def _has_data(descriptor: int) -> bool:
        try:
            return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(descriptor), 0)[0])
        except OSError:  # the other side is closed, or it is not a pipe
            return True


def await_end(descriptor: int) -> None:
    """Wait until a pipe has no reader; on Windows forever."""
    if sys.platform == "win32":
        threading.Event().wait()
    else:
        poll = select.poll()
        poll.register(descriptor, 0)
        poll.poll()


def dont_wait(descriptor: int) -> None:
    """Make writes to a full pipe fail instead of waiting; not on Windows before Python 3.12."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, False)


def kill_group(process: Any) -> None:
    """End a running process of `OWN_GROUP` and what it started, at once; on Windows the process alone."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def start_with_socket(command: Sequence[str], given: socket.socket, **options: Any) -> subprocess.Popen[bytes]:
    """Start a program without input, which calls `inherited_socket` with its last argument.

    Args:
        command: the program and its other arguments.
        given: the socket.
        options: of `subprocess.Popen`.

    Raises:
        OSError: it cannot be started.
    """
    number = given.fileno()
    command, options = [*command, str(number)], options | OWN_GROUP
    if sys.platform == "win32":
        process = subprocess.Popen(command, stdin=subprocess.PIPE, **options)  # noqa: S603
        if process.stdin is not None:
            with process.stdin:
                process.stdin.write(given.share(process.pid))
    else:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[number], **options)  # noqa: S603
    return process


def inherited_socket(number: str) -> socket.socket:
    """The socket that `start_with_socket` gave to this process."""
    if sys.platform == "win32":
        given = socket.fromshare(sys.stdin.buffer.read())
    else:
        given = socket.socket(fileno=int(number))
    return given


# Cores and memory


def usable_cores() -> int:
    """Cores that this process can keep busy: it may run on them, and its control groups allow as much time."""
    quota = cpu_quota()
    return allowed_cores() if quota is None else max(1, min(allowed_cores(), int(quota)))


def allowed_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota() -> float | None:
    """Cores' worth of time that control groups allow, as in a container; None if there is no limit."""
    limits = []
    for folder in _cgroups():
        quota, period = [*_read(folder / "cpu.max").split(), "max", "max"][:2]
        if quota == "max":  # version 1
            quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory() -> dict[str, int | None]:
    """Bytes of memory: `total` of the machine, `available` to new programs, and the `limit` of this process."""
    found = dict(re.findall(r"^Mem(Total|Available):\s+(\d+) kB", _read(Path("/proc/meminfo")), re.MULTILINE))
    sizes = {name.lower(): int(found[name]) * 1024 if name in found else None for name in ("Total", "Available")}
    return {**sizes, "limit": memory_limit()}


def memory_limit() -> int | None:
    """Bytes of memory that control groups allow; None if there is no limit."""
    found = [_read(folder / name).strip() for folder in _cgroups() for name in ("memory.max", "memory.limit_in_bytes")]
    # Version 1 writes "no limit" as a huge number.
    return min((int(text) for text in found if text.isdigit() and int(text) < 2**60), default=None)


def _cgroups() -> Iterator[Path]:
    """Folders of this process's control groups and those around them, in version 2 and version 1."""
    for line in _read(_MEMBERSHIP).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for base in [_CGROUPS, *(_CGROUPS / name for name in controllers.split(",") if name)]:
            folder = base / path.lstrip("/")
            yield folder
            yield from (parent for parent in folder.parents if parent == base or base in parent.parents)
    yield _CGROUPS


def plain_text(data: bytes) -> str:
    """Decode a text that a person wrote: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it.

    Notepad and PowerShell write a mark before UTF-8 too. It is not part of the text.

    Raises:
        UnicodeDecodeError: the bytes are neither.

    Example:
        >>> plain_text("a = 1".encode("utf-8-sig")) == plain_text("a = 1".encode("utf-16"))
        True
    """
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig")


def _read(path: Path) -> str:
    """A text file of the system, or "" if it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep freed memory for this process's next allocations; without glibc nothing happens.

    A gradient step frees all that it took. If the C library gave this memory back to the system, each step would take
    it anew, page by page: a tenth of the steps' time with batches of 256 (Connect Four, 4x32, November 2026).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # Windows has no library without a name
        mallopt = ctypes.CDLL(None).mallopt  # not in other C libraries
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest that every glibc accepts
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def made_with(*packages: str) -> dict[str, str | int]:
    """The versions that a run depends on: azpy, Python and these packages."""
    versions = {name: str(importlib.import_module(name).__version__) for name in packages}
    return {"azpy": _core.__version__, "python": platform.python_version(), **versions}


def cpu_flags() -> set[str]:
    """Instruction sets of the CPU by Linux's names (`avx2`, `asimd`); none where they cannot be read."""
    return set(_cpuinfo("(?:flags|Features)").split())


def cpu_name() -> str:
    """The CPU's name; "unknown" if nothing tells it."""
    return _cpuinfo("model name") or platform.processor() or platform.machine() or "unknown"


def _cpuinfo(key: str) -> str:
    """Linux's first value for a key; empty if it cannot be read."""
    found = re.search(rf"^{key}\s*:\s*(.+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    return found[1] if found else ""
