"""What an evaluator is: the one thing azpy asks of a network.

Any object with a fitting `evaluate_batch` is an evaluator; nothing is registered or subclassed. This module
knows no network library.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Evaluator"]


@runtime_checkable
class Evaluator(Protocol):
    """Answers whole batches of positions: logits over the actions, and values.

    The reply is checked: a wrong shape or dtype, NaN, infinity or a value outside [-1, 1] raises
    `azpy.EvaluatorError`; an exception raised here reaches the caller of the search as itself. The number of rows
    differs from call to call. Row i of the reply may depend on row i of the observations alone; where it has the same
    bits in any batch, searches and self-play repeat exactly.

    A search calls its evaluator from one thread at a time. `azpy.SelfPlay` has a thread for each pipeline: an
    evaluator with a `fork` is forked for every pipeline but the first, and one without is shared, one call at a time.

    Optional attributes, looked up when a search or self-play is made:

    * ``fork() -> Evaluator``: an evaluator of its own for another thread.
    * ``input_buffer(rows) -> array``: memory to fill instead of the search's own, C-contiguous float32
      [rows, C, H, W]; asked for before each batch and handed back as its `observations`.
    * ``network_id: int``: a nonzero 64-bit hash of the network's weights. Without it no answer is kept; with it, equal
      positions are asked once as long as the network is the same.

    Example:
        >>> import numpy as np
        >>> import azpy
        >>> class Centre:
        ...     '''Prefers the middle column of Connect Four and knows nothing else.'''
        ...
        ...     def evaluate_batch(self, observations):
        ...         rows = len(observations)
        ...         logits = np.tile(np.float32([0, 1, 2, 3, 2, 1, 0]), (rows, 1))
        ...         return logits, np.zeros(rows, np.float32)
        >>> result = azpy.Search(Centre(), simulations=50).run(azpy.make_game("connect_four"))
        >>> result.action
        3
    """

    def evaluate_batch(self, observations: NDArray[np.float32], /) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluates one batch.

        Args:
            observations: [B, C, H, W] float32, C order: one position a row, seen by the player to move. Read-only in
                effect and valid during this call only: copy what is to be kept.

        Returns:
            ``(logits, values)``: raw logits [B, A] float32, not yet softmaxed, those of illegal actions ignored; and
            values [B] or [B, 1] float32 in [-1, 1], 1 where the player to move wins.
        """
        ...
