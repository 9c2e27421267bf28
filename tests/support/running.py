"""Threads and programs that a test starts, and waits for no longer than it takes to know that they hang."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

PATIENCE = 60  # seconds; what takes longer hangs
T = TypeVar("T")


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    errors: str


def at_once(*works: Callable[[], T]) -> list[T]:
    """What the functions return, each called in a thread of its own; they begin together."""
    begin, results = threading.Barrier(len(works)), [Future[T]() for _ in works]

    def run(work: Callable[[], T], result: Future[T]) -> None:
        try:
            begin.wait(PATIENCE)
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    for pair in zip(works, results, strict=True):
        threading.Thread(target=run, args=pair, daemon=True).start()  # one that hangs must not keep the process
    hangs = wait(results, PATIENCE).not_done
    assert not hangs, f"{len(hangs)} of {len(works)} calls have not returned after {PATIENCE} s"
    return [result.result() for result in results]


def assert_soon(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def az(name: str, *arguments: str | Path) -> list[str]:
    """The command `az-NAME`."""
    return [sys.executable, "-m", "azpy", name, *map(str, arguments)]


def ended(
    command: Sequence[str | Path],
    typed: str = "",
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdout: int | IO[Any] = subprocess.PIPE,
    patience: float = PATIENCE,
) -> Ended:
    """Run a program to its end, with this text as its input."""
    options: dict[str, Any] = {"input": typed, "stdout": stdout, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(command, cwd=cwd, env=env, timeout=patience, check=False, **options)
    return Ended(done.returncode, done.stdout or "", done.stderr)


def program(text: str, *arguments: str | Path, typed: str = "", cwd: Path | None = None, **environment: str) -> Ended:
    """Run a program in Python, which imports what the tests import."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    return ended([sys.executable, "-c", textwrap.dedent(text), *arguments], typed, cwd=cwd, env=env)
