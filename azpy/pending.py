"""What `azpy.Engine` answers a request with: a future that can be told to stop."""

import asyncio
import copyreg
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

from azpy._core import SearchResult, stays_here


class Pending(Future[SearchResult]):
    """A `concurrent.futures.Future` of a `SearchResult`, with `stop()`. `await` gives its result.

    To cancel what awaits it cancels the request.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self._stop = stop

    def stop(self) -> None:
        """Has the request answered with what is known by now. The root is evaluated in any case."""
        self._stop()

    def __await__(self) -> Generator[Any, None, SearchResult]:
        return asyncio.wrap_future(self).__await__()


copyreg.pickle(Pending, stays_here)
