"""TensorBoard: the rows of metrics.jsonl as curves, for people who keep theirs there. An extra, off by default."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from azpy.errors import MissingPackageError, pip_install

__all__ = ["Board"]


class Board:
    """Writes curves into a folder that `tensorboard --logdir` shows.

    Args:
        path: the folder.
        iteration: curves go on after this one; what an interrupted part of the run wrote beyond it is hidden.

    Raises:
        MissingPackageError: tensorboard is not installed.
    """

    def __init__(self, path: Path, iteration: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingPackageError(f"tensorboard is not installed: {pip_install('tensorboard')}") from error
        untyped: Any = SummaryWriter
        self._writer = untyped(str(path), purge_step=iteration + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """One row of metrics.jsonl: a point for each of its numbers, at its iteration."""
        named = f"{row['kind']}/{row['opponent']}" if "opponent" in row else row["kind"]
        for name, value in row.items():
            if isinstance(value, int | float) and name != "iteration":
                self._writer.add_scalar(f"{named}/{name}", value, row["iteration"])
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()
