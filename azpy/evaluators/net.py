"""An evaluator that computes azpy's own networks itself, on the CPU: it needs no package besides numpy."""

import json
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import OWN
from azpy.errors import ModelError, RunError
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape
from azpy.game import value_width
from azpy.games.names import make_game
from azpy.runs.reader import read_model, stored_network


class NetEvaluator(CheckedEvaluator):
    """An evaluator that computes one of azpy's own networks on the CPU, by azpy's own code. It needs numpy alone.

    Searches call it without the GIL, and one core computes a batch. For batches on several cores, GPUs and your own
    networks use `OnnxEvaluator`.

    Args:
        network: the path of a run folder, for its newest checkpoint, or of a checkpoint in its run folder.
        game: a `State`, an object with `num_actions` and `obs_shape`, or a game's name; the network must fit it.
            Required for a run of a game in Python. A run with "+conv" also plays other board sizes.

    Attributes:
        network_id: a nonzero 64-bit hash of the network's shape and weights.
        obs_shape: the shape (C, H, W) of an observation.
        num_actions: the number of actions A.
        device: "azpy".
        description: device and precision, in one line.
        notes: always empty.

    Raises:
        ModelError: the network is not one of azpy's own, or does not fit the game; the path is not a folder, has no
            checkpoint, or a damaged one, or one outside a run folder.
        SettingsError: the game does not exist, or `game` does not name the Python class of the run.

    Example:
        >>> azpy.Search(azpy.NetEvaluator("runs/connect_four"), simulations=400)  # doctest: +SKIP
    """

    notes: tuple[str, ...] = ()

    def __init__(self, network: str | os.PathLike[str], *, game: GameShape | str | None = None) -> None:
        self.name = os.fspath(network)
        shape: Any = make_game(game) if isinstance(game, str) else game
        try:
            folder, settings, start = stored_network(Path(network), shape)
            weights = read_model(folder, "model.safetensors")
        except RunError as error:  # as `OnnxEvaluator` says it
            raise ModelError(f"model {self.name} cannot be read: {error}") from error
        said = shape_of(start, settings.network, settings.value_smoothing)
        try:
            self._net = _core.Net(json.dumps(said), weights)
        except ValueError as error:
            raise ModelError(f"{self.name}: {error}") from None
        self.network_id, self.num_values = self._net.id, self._net.num_values
        self.obs_shape, self.num_actions = self._net.obs_shape, self._net.num_actions
        self.device, self.description = OWN, "CPU, fp32, azpy's own code"
        if shape is not None:
            self._check_fits(shape)
        self._warm_up()

    @property
    def _azpy_net(self) -> _core.Net | None:
        """What searches ask in place of `evaluate_batch`; None in a subclass, which may answer otherwise."""
        return self._net if type(self) is NetEvaluator else None

    def _evaluate(self, observations: NDArray[np.float32]) -> Answer:
        return self._net.evaluate(observations)

    def fork(self) -> Self:
        """Return this evaluator: threads share it."""
        return self


def shape_of(game: Any, spec: str, value_smoothing: float = 0.0) -> dict[str, Any]:
    """What `_core.Net` and the crate azpy-net must know of a network besides its weights, as JSON has it.

    Args:
        game: any position of the game.
        spec: of a network of azpy's own, see `azpy.learning.network.Network`.
        value_smoothing: of the targets that a value of three classes learned from.
    """
    lists = {name: getattr(game, name, None) for name in ("action_cells", "policy_planes", "plane_divisors")}
    return {
        "network": spec,
        "obs_shape": [int(size) for size in game.obs_shape],
        "num_actions": int(game.num_actions),
        "num_values": value_width(game),
        "value_smoothing": value_smoothing,
        **{name: list(numbers) for name, numbers in lists.items() if numbers is not None},
    }
