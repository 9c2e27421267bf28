"""What this process runs on: cores, and the versions a run was made with."""

import contextlib
import ctypes
import functools
import importlib
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from azpy import _core

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h


_CGROUPS, _MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


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
        quota, period = [*read(folder / "cpu.max").split(), "max", "max"][:2]
        if quota == "max":  # version 1
            quota, period = (read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_limit() -> int | None:
    """Bytes of memory that control groups allow; None if there is no limit."""
    found = [read(folder / name).strip() for folder in _cgroups() for name in ("memory.max", "memory.limit_in_bytes")]
    # Version 1 writes "no limit" as a huge number.
    return min((int(text) for text in found if text.isdigit() and int(text) < 2**60), default=None)


def _cgroups() -> Iterator[Path]:
    """Folders of this process's control groups and those around them, in version 2 and version 1."""
    for line in read(_MEMBERSHIP).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for base in [_CGROUPS, *(_CGROUPS / name for name in controllers.split(",") if name)]:
            folder = base / path.lstrip("/")
            yield folder
            yield from (parent for parent in folder.parents if parent == base or base in parent.parents)
    yield _CGROUPS


def read(path: Path) -> str:
    """A text file of the system, or "" if it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


@functools.cache
def keep_freed_memory() -> None:
    """Has glibc keep freed memory for this process's next allocations; without glibc nothing happens.

    A gradient step frees all that it took. If the C library gave this memory back to the system, each step would take
    it anew, page by page: a tenth of the steps' time with batches of 256 (Connect Four, 4x32, November 2026).
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt  # not in other C libraries
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that every glibc takes; larger blocks go back
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def made_with(*packages: str) -> dict[str, str | int]:
    """What a run depends on besides its settings: the versions of azpy, Python and these packages."""
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
    found = re.search(rf"^{key}\s*:\s*(.+)$", read(Path("/proc/cpuinfo")), re.MULTILINE)
    return found[1] if found else ""
