"""The earlier networks that play one side of some games (`historical_share`): which of them play next."""

__all__ = ["choose_opponents", "is_kept"]

_KEEP_NEWEST, _KEEP_EVERY = 3, 10  # checkpoints that are not deleted: the newest, and every tenth
_AT_ONCE = 2  # earlier networks that play at once: each is one more call a round


def is_kept(checkpoint: int, newest: int) -> bool:
    """Whether a checkpoint is kept once the checkpoint of iteration `newest` is written."""
    return checkpoint > newest - _KEEP_NEWEST or checkpoint % _KEEP_EVERY == 0


def choose_opponents(iteration: int) -> list[int]:
    """The checkpoints whose networks play one side of some of an iteration's games, ascending; each has its turn."""
    newest = iteration - 1  # plays the other side
    kept = [checkpoint for checkpoint in range(1, newest) if is_kept(checkpoint, newest)]
    return sorted({kept[(iteration + turn * len(kept) // _AT_ONCE) % len(kept)] for turn in range(_AT_ONCE) if kept})
