"""Thinking on the opponent's time: a search that goes on in the background until it is wanted."""

import copyreg
import threading
from types import TracebackType

from azpy import _core

__all__ = ["pondering"]

_SLICE_SECONDS = 0.02  # how long leaving may have to wait, besides one call of the evaluator


class pondering:  # noqa: N801  (read as a verb: `with azpy.pondering(search):`)
    """Lets a search go on with its tree, in a thread of its own, for as long as a `with` block lasts.

    Move the root along after the block: `advance` keeps what was found below the action. What pondering finds depends
    on time, so runs after it cannot be repeated. Give the search `max_memory_mb` if the block may last long.

    Args:
        search: a search that has been run at least once; not to be used inside the block.

    Raises:
        Whatever the evaluator or the game raised in the background, when the block ends.

    Example:
        >>> import azpy
        >>> search = azpy.Search(azpy.RolloutEvaluator(1), simulations=100)
        >>> before = search.run(azpy.make_game("connect_four")).visits.sum()
        >>> with azpy.pondering(search):
        ...     pass  # the opponent thinks
        >>> bool(search.run(simulations=0).visits.sum() >= before)
        True
    """

    def __init__(self, search: _core.Search) -> None:
        self._search = search
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._think, name="azpy-pondering", daemon=True)

    def _think(self) -> None:
        try:
            while not self._over.is_set():
                if self._search._think(_SLICE_SECONDS) in {"proven", "decided", "game over", "visits"}:
                    return  # nothing is left to find out, or the tree can count no more
        except BaseException as error:
            self._error = error

    def __enter__(self) -> None:
        self._search._think(0.0)  # says at once what would fail in the background
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if error is None and self._error is not None:
            raise self._error


copyreg.pickle(pondering, _core.stays_here)
