"""The future that `azpy.Engine` returns for a request, with a method to stop it."""

import asyncio
import copyreg
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet

from azpy._core import SearchResult, stays_here


class Pending(Future[SearchResult]):
    """A `concurrent.futures.Future` of a `SearchResult`, with `stop()`. `await` gives its result.

    To cancel what awaits it cancels the request.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self._stop = stop
        self._waiting: list[asyncio.Future[SearchResult]] = []

    def stop(self) -> None:
        """Answer the request with what is known by now. The root is evaluated in any case."""
        self._stop()

    def add_done_callback(self, fn: Callable[[Future[SearchResult]], object]) -> None:
        """Call `fn` with this future once it is done, as `concurrent.futures.Future` does."""
        super().add_done_callback(fn)
        if getattr(fn, "__module__", None) == "asyncio.futures":  # of asyncio.wrap_future, and so of `await`
            function: Any = fn
            held = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            if (waiting := held.get("destination")) is not None:
                with _lock:
                    self._waiting.append(waiting.cell_contents)
                    _awaited.add(self)

    def __await__(self) -> Generator[Any, None, SearchResult]:
        return asyncio.wrap_future(self).__await__()


_awaited: WeakSet[Pending] = WeakSet()  # requests that asyncio waits for
_lock = threading.Lock()


def cancel_unwanted() -> None:
    """Cancel the requests whose futures of asyncio were cancelled.

    asyncio hands a cancellation on in the next turn of its loop. `Engine.close` calls this first: it may hold up the
    loop until all requests are done.
    """
    with _lock:
        unwanted = [pending for pending in _awaited if any(waiting.cancelled() for waiting in pending._waiting)]
    for pending in unwanted:
        pending.cancel()


copyreg.pickle(Pending, stays_here)
