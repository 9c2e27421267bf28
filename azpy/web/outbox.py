"""Answers on their way from the engine's threads to one client."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from typing import Any

__all__ = ["Outbox"]

_MOST_ANSWERS = 10_000  # that wait for a slow reader; then the connection ends


class Outbox:
    """Answers on their way to one client. Of the reports of one search only the newest waits.

    Args:
        loop: of the reader. Any thread may put; `wait` and `get` are the reader's.

    Attributes:
        overflown: whether more answers waited than a client may leave unread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._there = loop, asyncio.Event()
        self._answers: deque[dict[str, Any]] = deque()
        self._reports: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
        self.overflown = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._answers and not self._reports

    def put(self, answer: dict[str, Any]) -> None:
        """Adds an answer. A report takes the place of the one before it, and goes when its search is answered."""
        search = (str(answer.get("id")), answer.get("turnNumber", -1))
        if answer.get("isDuringSearch"):
            self._reports[search] = answer
        else:
            self._reports.pop(search, None)
            if len(self._answers) < _MOST_ANSWERS:
                self._answers.append(answer)
            else:
                self.overflown = True
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody reads
            self._loop.call_soon_threadsafe(self._there.set)

    def get(self) -> dict[str, Any]:
        """The answer that waits longest; reports come after answers."""
        try:
            return self._answers.popleft()
        except IndexError:
            return self._reports.popitem(last=False)[1]

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits until something was put, or for so long; returns whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            return False
        self._there.clear()
        return True
