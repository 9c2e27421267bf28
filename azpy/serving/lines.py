"""A conversation in lines: what comes in on stdin, what goes out on stdout, and a log of both."""

import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, BinaryIO

__all__ = ["LONGEST_LINE", "Conversation"]

LONGEST_LINE = 64 * 1024  # bytes; the rest of a longer line is skipped


class Conversation:
    """Reads lines and writes lines. Several threads may write.

    Args:
        source: bytes to read; stdin by default.
        sink: where lines go; stdout by default. Each line is flushed.
        log: where every line is noted, with the seconds since the start and its direction; None for no log.

    Attributes:
        gone: set when nobody reads the output any more; later lines are dropped.
    """

    def __init__(self, source: BinaryIO | None = None, sink: IO[str] | None = None, log: IO[str] | None = None) -> None:
        self._source = sys.stdin.buffer if source is None else source
        self._sink = sys.stdout if sink is None else sink
        self._log, self._began = log, time.monotonic()
        self._lock = threading.Lock()
        self.gone = threading.Event()

    def lines(self) -> Iterator[str]:
        """The lines that come in, without blanks around them, until the input ends.

        Bytes that are not UTF-8 are replaced; control characters but tabs are dropped. Of a line longer than
        `LONGEST_LINE` the first part comes, and the rest is skipped.
        """
        while raw := self._source.readline(LONGEST_LINE):
            rest = raw
            while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
                rest = self._source.readline(LONGEST_LINE)
            text = raw.decode("utf-8", errors="replace")
            text = "".join(character for character in text if character.isprintable() or character == "\t").strip()
            self._note("<", text)
            yield text

    def say(self, *lines: str) -> None:
        """Writes lines, one after the other, with none of another thread between."""
        with self._lock:
            if self.gone.is_set():
                return
            try:
                self._sink.write("".join(f"{line}\n" for line in lines))
                self._sink.flush()
            except (BrokenPipeError, ValueError):  # closed by the other side, or by us
                self.gone.set()
        for line in lines:
            self._note(">", line)

    def _note(self, direction: str, line: str) -> None:
        if self._log is not None:
            with self._lock:
                self._log.write(f"{time.monotonic() - self._began:10.3f} {direction} {line}\n")
                self._log.flush()
