"""TensorBoard: the rows of metrics.jsonl as curves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from azpy.errors import MissingPackageError, pip_install


class Board:
    """Curves in the folder `path`, for `tensorboard --logdir`; points after `iteration` that are there are hidden.

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
        self.close = self._writer.close

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a point for each number of a row of metrics.jsonl, at the row's iteration."""
        whose = row.get("opponent") or row.get("worker")
        named = f"{row['kind']}/{whose.replace(' ', '_')}" if whose else row["kind"]
        for name, value in row.items():
            if isinstance(value, int | float) and name != "iteration":
                self._writer.add_scalar(f"{named}/{name}", value, row["iteration"])
        self._writer.flush()
