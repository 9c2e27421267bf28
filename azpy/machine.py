"""What this process runs on: cores, and the versions a run was made with."""

import importlib
import os
import platform

from azpy import _core

__all__ = ["made_with", "usable_cores"]


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def made_with(*packages: str) -> dict[str, str | int]:
    """What a run depends on besides its settings: the versions of azpy, Python and these packages."""
    versions = {name: str(importlib.import_module(name).__version__) for name in packages}
    return {"azpy": _core.__version__, "python": platform.python_version(), **versions}
