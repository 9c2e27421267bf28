"""Answers on their way from the engine's threads to one client."""

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque

from azpy.serving.queries import Answer

__all__ = ["Outbox"]

# Of what waits for a slow reader; then the connection ends.
_MOST_ANSWERS = 10_000
_MOST_BYTES = 32 << 20


class Outbox:
    """Answers on their way to one client. Of the reports of one search only the newest waits.

    Args:
        loop: of the reader. Any thread may put; `wait` and `get` are the reader's.

    Attributes:
        overflown: whether more waited than a client may leave unread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._there = loop, asyncio.Event()
        self._answers: deque[Answer] = deque()
        self._reports: OrderedDict[tuple[str, int], Answer] = OrderedDict()
        self._lock, self._bytes = threading.Lock(), 0  # of all that waits
        self.overflown = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._answers and not self._reports

    def put(self, answer: Answer) -> None:
        """Adds an answer. A report takes the place of the one before it, and goes when its search is answered."""
        with self._lock:
            before = None if answer.search is None else self._reports.pop(answer.search, None)
            self._bytes += len(answer.line) - (0 if before is None else len(before.line))
            waiting = len(self._answers) + len(self._reports)
            if waiting >= _MOST_ANSWERS or self._bytes > _MOST_BYTES:
                self._bytes -= len(answer.line)
                self.overflown = True
            elif answer.is_report and answer.search is not None:
                self._reports[answer.search] = answer
            else:
                self._answers.append(answer)
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody reads
            self._loop.call_soon_threadsafe(self._there.set)

    def get(self) -> Answer:
        """The answer that waits longest; reports come after answers."""
        with self._lock:
            answer = self._answers.popleft() if self._answers else self._reports.popitem(last=False)[1]
            self._bytes -= len(answer.line)
        return answer

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits until something was put, or for so long; returns whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            return False
        self._there.clear()
        return True
