"""Answers on their way from the engine's threads to one client."""

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque

from azpy.serving.queries import Reply

# The most that may wait for a slow reader. Beyond it the reader hears that answers are missing.
_MOST_ANSWERS = 10_000
_MOST_BYTES = 32 << 20


class Outbox:
    """Answers on their way to one client. Of the reports of one search only the newest waits.

    Args:
        loop: of the reader. Any thread may put; `wait` and `get` are the reader's.

    Attributes:
        overflown: whether more waited than a client may leave unread. Then nothing more is added, so what waits has no
            gaps.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._there = loop, asyncio.Event()
        self._answers: deque[Reply] = deque()
        self._reports: OrderedDict[tuple[str, int], Reply] = OrderedDict()
        self._lock, self._bytes = threading.Lock(), 0  # of all that waits
        self.overflown = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._answers and not self._reports

    def put(self, reply: Reply) -> None:
        """Adds a reply. A report takes the place of the one before it, and goes when its search is answered."""
        with self._lock:
            before = None if reply.search is None else self._reports.pop(reply.search, None)
            self._bytes += len(reply.line) - (0 if before is None else len(before.line))
            waiting = len(self._answers) + len(self._reports)
            if self.overflown or waiting >= _MOST_ANSWERS or self._bytes > _MOST_BYTES:
                self._bytes -= len(reply.line)
                self.overflown = True
            elif reply.is_report and reply.search is not None:
                self._reports[reply.search] = reply
            else:
                self._answers.append(reply)
        self.wake()

    def wake(self) -> None:
        """End the reader's `wait`, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the reader has ended
            self._loop.call_soon_threadsafe(self._there.set)

    def get(self) -> Reply:
        """The answer that waits longest; reports come after answers."""
        with self._lock:
            reply = self._answers.popleft() if self._answers else self._reports.popitem(last=False)[1]
            self._bytes -= len(reply.line)
        return reply

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until something is put or `wake` is called, for at most `seconds`; return whether that happened."""
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            return False
        self._there.clear()
        return True
