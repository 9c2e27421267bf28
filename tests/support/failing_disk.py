"""A disk on which one operation fails, as a broken device or a network file system has it."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

CALLS = ("open", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "scandir", "listdir")  # of `os`
UNREADABLE, UNWRITABLE = "/proc/self/mem", "/dev/full"  # can be opened, and then fail with EIO and ENOSPC


class FailingDisk:
    """Counts the operations below a folder, and has one of them fail: the one with this number.

    A file fails in one of two ways: it cannot be opened, or what is done with the open file fails and names no file.

    Attributes:
        count: operations so far.
    """

    def __init__(self, folder: Path, number: int | None = None) -> None:
        self._folder, self._number, self.count = os.path.realpath(folder), number, 0

    def _fails(self, where: Any) -> bool:
        path = Path(f"/proc/self/fd/{where}") if isinstance(where, int) else Path(os.fsdecode(where))
        if not os.path.realpath(path).startswith(self._folder):
            return False
        self.count += 1
        return self.count - 1 == self._number

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within it, files are on this disk."""

        def call(name: str) -> Callable[..., Any]:
            real = getattr(os, name)

            def called(where: Any, *given: Any, **options: Any) -> Any:
                if self._fails(where):
                    named = [] if isinstance(where, int) else [os.fsdecode(where)]
                    raise OSError(errno.EIO, os.strerror(errno.EIO), *named)
                return real(where, *given, **options)

            return called

        real_open = open

        def opened(where: Any, mode: str = "r", *given: Any, **options: Any) -> Any:
            if self._fails(where):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(where))
            if self._fails(where):
                where = UNREADABLE if "r" in mode and "+" not in mode else UNWRITABLE
            return real_open(where, mode, *given, **options)

        with ExitStack() as patches:
            for name in CALLS:
                patches.enter_context(patch.object(os, name, call(name)))
            for module in (builtins, io):
                patches.enter_context(patch.object(module, "open", opened))
            yield
