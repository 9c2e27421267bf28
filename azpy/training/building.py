"""Something that takes long to make, made in a thread while everything else goes on.

A TensorRT engine takes from seconds to minutes, for each network anew. ONNX Runtime lets go of the GIL meanwhile (seen
in 1.31, November 2026), so self-play goes on. A build cannot be broken off: whoever began it waits for its end.
"""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Building"]

Made = TypeVar("Made")


class Building(Generic[Made]):
    """Calls `make` in a thread of its own.

    Args:
        iteration: whose network it is, for people.
        make: what takes long.

    Attributes:
        iteration: as given.
    """

    def __init__(self, iteration: int, make: Callable[[], Made]) -> None:
        self.iteration = iteration
        self._make = make
        self._made: Made | None = None
        self._error: BaseException | None = None
        self._begin = time.monotonic()
        self._end: float | None = None
        self._thread = threading.Thread(target=self._work, name="azpy-building")
        self._thread.start()

    def _work(self) -> None:
        try:
            self._made = self._make()
        except BaseException as error:  # raised again in `take`, by the thread that asks
            self._error = error
        self._end = time.monotonic()

    @property
    def is_done(self) -> bool:
        """Whether `take` would return at once."""
        return self._end is not None

    @property
    def seconds(self) -> float:
        """What it took, or has taken so far."""
        return (self._end or time.monotonic()) - self._begin

    def wait(self) -> None:
        """Waits until it is done, whatever comes of it."""
        self._thread.join()

    def take(self) -> Made:
        """What was made; waits for it.

        Raises:
            BaseException: what `make` raised.
        """
        self.wait()
        if self._error is not None:
            raise self._error
        made: Made = self._made  # type: ignore[assignment]  # None is only there before
        return made
