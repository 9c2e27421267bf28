"""A run that can play: what it has on the disk, and the network of its newest checkpoint."""

import functools
import os

from azpy.evaluators.choice import open_network
from azpy.evaluators.protocol import CheckedEvaluator
from azpy.game import Game
from azpy.games.names import spec_of
from azpy.runs.reader import StoredRun, boxed


class LoadedRun(StoredRun):
    """A run folder, to look at its settings and games and to play with its newest network; it may be in use.

    Args:
        path: the run folder; or the name of a player that azpy brings along, such as "connect_four".
        game: the run's game, its name or its class, needed where that is a Python class: reading the run then imports
            its module, which runs code.

    Raises:
        RunError: no run folder, or its config.toml is damaged.
        SettingsError: `game` is not the run's game.

    Example:
        >>> import azpy
        >>> run = azpy.load_run("runs/connect_four")  # doctest: +SKIP
        >>> azpy.Search(run.evaluator, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """

    def __init__(self, path: str | os.PathLike[str], game: str | type[Game] | None = None) -> None:
        super().__init__(boxed(path), None if game is None else spec_of(game))

    @functools.cached_property
    def evaluator(self) -> CheckedEvaluator:
        """The network of the newest checkpoint, on the CPU.

        `azpy.OnnxEvaluator(path, device)` takes another device, for runs: players that azpy brings along have no ONNX.
        Without onnxruntime azpy's own code computes it, and a `SettingsWarning` says so.

        Raises:
            ModelError: there is no checkpoint yet, or it is damaged, or only ONNX Runtime can compute the network.
        """
        return open_network(self.path, game=self.start)

    def __repr__(self) -> str:
        return f"azpy.load_run({str(self.path)!r})"


load_run = LoadedRun
