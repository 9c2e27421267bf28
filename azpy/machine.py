"""What this process runs on: cores, and the versions a run was made with."""

import importlib
import os
import platform
import re
from pathlib import Path

from azpy import _core

__all__ = ["MOST_PIPELINES", "MOST_THREADS", "cpu_flags", "made_with", "usable_cores"]

MOST_THREADS, MOST_PIPELINES = _core.MOST_THREADS, _core.MOST_PIPELINES  # that the core starts


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def made_with(*packages: str) -> dict[str, str | int]:
    """What a run depends on besides its settings: the versions of azpy, Python and these packages."""
    versions = {name: str(importlib.import_module(name).__version__) for name in packages}
    return {"azpy": _core.__version__, "python": platform.python_version(), **versions}


def cpu_flags() -> set[str]:
    """Instruction sets of the CPU by Linux's names (`avx2`, `asimd`); none where they cannot be read."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    return set(flags[1].split()) if flags else set()
