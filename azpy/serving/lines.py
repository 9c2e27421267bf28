"""A conversation in lines: what comes in on stdin, what goes out on stdout, and a log of both."""

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO

from azpy.system import await_end, dont_wait, ready

LONGEST_LINE = 64 * 1024  # bytes; the rest of a longer line is skipped
_AT_ONCE = 4096  # bytes that a pipe takes without a wait where it takes any (PIPE_BUF)
_LOOK_SECONDS = 0.2  # between two looks at whether a write still has time


class _Stdin(io.RawIOBase):
    """The standard input, for the main thread, which sees a signal before it waits on, whenever the signal came.

    A plain read goes on waiting where a signal comes just before it, as it often does beside threads busy with Python.
    """

    ended = False  # set by a handler of signals: the input ends here

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._signals, write = os.pipe()
        dont_wait(write)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ended:
            files = ready((self._file, self._signals))
            if self._signals in files:
                os.read(self._signals, _AT_ONCE)
            elif self._file in files:
                data = os.read(self._file, len(buffer))
                buffer[: len(data)] = data
                return len(data)
        return 0


class Conversation:
    """Reads lines and writes lines. Several threads may write, and one reads.

    Args:
        source: bytes to read; stdin by default.
        sink: where lines go; stdout by default. Each line is flushed.
        log: where every line is noted, with the seconds since the start and its direction; None for no log.

    Attributes:
        gone: set when nobody reads the output any more; later lines are dropped.
    """

    def __init__(self, source: BinaryIO | None = None, sink: IO[str] | None = None, log: IO[str] | None = None) -> None:
        self._stdin: _Stdin | None = None
        if source is None:
            self._stdin = _Stdin()
            source = io.BufferedReader(self._stdin)
        self._source = source
        self._sink = sys.stdout if sink is None else sink
        self._log, self._began = log, time.monotonic()
        self._lock, self._log_lock = threading.Lock(), threading.Lock()
        self._ended = False  # whether no line is read any more
        self._patience: float | None = None
        self.gone = threading.Event()
        self._file: int | None = None  # where the lines go, if it is a file of the system
        try:
            self._file = self._sink.fileno()
        except io.UnsupportedOperation:
            return
        self._sink.flush()

    def lines(self, refuse: Callable[[str], None] | None = None) -> Iterator[str]:
        """The lines that come in, without blanks around them, until the input ends or nobody reads what is said.

        Args:
            refuse: given, a line comes exactly as it was sent, or not at all: `refuse` hears why a line cannot be read.
                It is not UTF-8, or longer than `LONGEST_LINE`. None: bytes that are not UTF-8 are replaced, control
                characters but tabs are dropped, and the rest of a longer line is skipped.
        """
        while raw := self._next():
            rest, longer = raw, False
            while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
                rest = self._next()
                longer = longer or rest not in (b"", b"\n", b"\r\n")
            if refuse is None:
                text = raw.decode("utf-8", errors="replace")
                text = "".join(one for one in text if one.isprintable() or one == "\t").strip()
                self._note("<", text)
                yield text
                continue
            try:
                text, problem = raw.decode("utf-8").strip(" \t\r\n"), ""
            except UnicodeDecodeError as error:
                text = raw.decode("utf-8", errors="backslashreplace").strip()
                problem = f"byte {error.start + 1} of the line is not UTF-8"
            self._note("<", text)
            if longer:
                refuse(f"a line has at most {LONGEST_LINE} bytes")
            elif problem:
                refuse(problem)
            else:
                yield text

    def _next(self) -> bytes:
        """The next line, or its first part; empty at the end, and once nobody reads what is said."""
        line = b"" if self._is_over else self._source.readline(LONGEST_LINE)
        return b"" if self._is_over else line

    @property
    def _is_over(self) -> bool:
        return self._ended or self.gone.is_set()

    def end(self) -> None:
        """End the input here, for a handler of signals. What has been read is still answered."""
        self._ended = True
        if self._stdin is not None:
            self._stdin.ended = True

    def leave(self, patience: float = 1.0) -> None:
        """Limit the wait of `say` to `patience` seconds; a program that does not read by then counts as gone."""
        self._patience = patience

    def watch(self, left: Callable[[], object]) -> None:
        """Call `left`, in a thread of its own, once the output has no reader, even if nothing is written."""
        if self._file is None:
            return
        file = self._file

        def wait() -> None:
            await_end(file)
            left()

        threading.Thread(target=wait, name="azpy-watch", daemon=True).start()

    def say(self, *lines: str) -> None:
        """Write lines, one after the other, with none of another thread between."""
        text = "".join(f"{line}\n" for line in lines)
        with self._lock:
            if self.gone.is_set():
                return
            try:
                if self._file is None:
                    self._sink.write(text)
                    self._sink.flush()
                else:
                    self._write(self._file, text.encode("utf-8", errors="backslashreplace"))
            except (OSError, ValueError):  # closed by the other side, or by us
                self.gone.set()
        for line in lines:
            self._note(">", line)

    def _write(self, file: int, data: bytes) -> None:
        waited, at = 0.0, 0
        while at < len(data):
            if ready((), (file,), _LOOK_SECONDS):
                try:
                    at += os.write(file, data[at : at + _AT_ONCE])
                    waited = 0.0
                except BlockingIOError:
                    pass
            elif self._patience is not None:
                waited += _LOOK_SECONDS
                if waited > self._patience:
                    self.gone.set()
                    return

    def _note(self, direction: str, line: str) -> None:
        if self._log is not None:
            with self._log_lock:
                self._log.write(f"{time.monotonic() - self._began:10.3f} {direction} {line}\n")
                self._log.flush()
