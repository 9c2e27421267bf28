"""A run that can play: what it has on the disk, and the network of its newest checkpoint."""

import functools
import os

from azpy.evaluators.onnx import OnnxEvaluator
from azpy.runs.reader import StoredRun

__all__ = ["LoadedRun", "load_run"]


def load_run(path: str | os.PathLike[str], game: str | None = None) -> "LoadedRun":
    """A run folder, to look at its settings and games and to play with its newest network; it may be in use.

    Args:
        path: the run folder.
        game: the run's game, needed where that is a Python class: reading the run then imports its module, which runs
            code.

    Raises:
        RunError: no run folder, or its config.toml is damaged.
        SettingsError: `game` is not the run's game.

    Example:
        >>> import azpy
        >>> run = azpy.load_run("runs/connect_four")  # doctest: +SKIP
        >>> azpy.Search(run.evaluator, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """
    return LoadedRun(path, game)


class LoadedRun(StoredRun):
    """A run's settings, games and checkpoints, and its newest network as an evaluator."""

    @functools.cached_property
    def evaluator(self) -> OnnxEvaluator:
        """The network of the newest checkpoint, on the CPU; made when it is first asked for, and then kept.

        `azpy.OnnxEvaluator(path, device)` makes one for another device.

        Raises:
            ModelError: there is no checkpoint yet, or it is damaged.
            MissingPackageError: onnxruntime is not installed.
        """
        return OnnxEvaluator(self.path, game=self.start)
