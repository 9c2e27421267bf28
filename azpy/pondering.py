"""Thinking on the opponent's time: a search that goes on in the background until it is wanted."""

import contextlib
import threading
from collections.abc import Iterator

from azpy import _core

_SLICE_SECONDS = 0.02  # how long leaving may have to wait, besides one call of the evaluator


@contextlib.contextmanager
def pondering(search: _core.Search) -> Iterator[None]:
    """Lets a search go on with its tree, in a thread of its own, for as long as a `with` block lasts.

    Move the root along after the block: `advance` keeps what was found below the action. What pondering finds depends
    on time, so runs after it cannot be repeated. Give the search `max_memory_mb` if the block may last long.

    Args:
        search: a search that has been run at least once; not to be used inside the block.

    Raises:
        Exception: whatever the evaluator or the game raised in the background, when the block ends.

    Example:
        >>> import azpy
        >>> search = azpy.Search(azpy.RolloutEvaluator(1), simulations=100)
        >>> before = search.run(azpy.make_game("connect_four")).visits.sum()
        >>> with azpy.pondering(search):
        ...     pass  # the opponent thinks
        >>> bool(search.run(simulations=0).visits.sum() >= before)
        True
    """
    over, failed = threading.Event(), list[BaseException]()

    def think() -> None:
        try:
            while not over.is_set():
                if search._think(_SLICE_SECONDS) in {"proven", "decided", "game over", "visits"}:
                    return  # nothing is left to find out, or the tree can count no more
        except BaseException as error:
            failed.append(error)

    search._think(0.0)  # says at once what would fail in the background
    thread = threading.Thread(target=think, name="azpy-pondering", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]
