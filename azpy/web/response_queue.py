"""Answers on their way from the engine's threads to one client."""

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque

from azpy.serving.queries import Response

# The most answers that may wait for a slow reader. Beyond it, answers are dropped and the reader is told.
_MOST_ANSWERS = 10_000
_MOST_BYTES = 32 << 20


class ResponseQueue:
    """Answers on their way to one client. Of the reports of one search only the newest waits.

    Args:
        loop: of the reader. Any thread may put; `wait` and `get` are the reader's.

    Attributes:
        overflown: whether too many answers waited. Then nothing more is added, so the waiting ones have no
            gaps.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._there = loop, asyncio.Event()
        self._answers: deque[Response] = deque()
        self._reports: OrderedDict[tuple[str, int], Response] = OrderedDict()
        self._lock, self._bytes = threading.Lock(), 0  # of all that waits
        self.overflown = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._answers and not self._reports

    def put(self, response: Response) -> None:
        """Add a response. A report takes the place of the one before it, and goes when its search is answered."""
        with self._lock:
            before = None if response.search is None else self._reports.pop(response.search, None)
            self._bytes += len(response.line) - (0 if before is None else len(before.line))
            waiting = len(self._answers) + len(self._reports)
            if self.overflown or waiting >= _MOST_ANSWERS or self._bytes > _MOST_BYTES:
                self._bytes -= len(response.line)
                self.overflown = True
            elif response.is_report and response.search is not None:
                self._reports[response.search] = response
            else:
                self._answers.append(response)
        self.wake()

    def wake(self) -> None:
        """End the reader's `wait`, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the reader has ended
            self._loop.call_soon_threadsafe(self._there.set)

    def get(self) -> Response:
        """The answer that waits longest; reports come after answers."""
        with self._lock:
            response = self._answers.popleft() if self._answers else self._reports.popitem(last=False)[1]
            self._bytes -= len(response.line)
        return response

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until something is put or `wake` is called, for at most `seconds`; return whether that happened."""
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            return False
        self._there.clear()
        return True
