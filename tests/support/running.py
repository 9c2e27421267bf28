"""Threads and programs that a test starts, and waits for no longer than it takes to know that they hang."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

PATIENCE = 60  # seconds; what takes longer hangs
T = TypeVar("T")


def at_once(*works: Callable[[], T]) -> list[T]:
    """What the functions return, each called in a thread of its own; they begin together."""
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        begin.wait(PATIENCE)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(run, work) for work in works]]


def program(text: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run a program in Python, which imports what the tests import: its exit code, stdout and stderr."""
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=env)
    return done.returncode, done.stdout, done.stderr
