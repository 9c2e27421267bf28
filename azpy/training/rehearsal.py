"""An export and a training step before a run begins: code of the user's that fails does so before there is a folder."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import State
from azpy.errors import ModelError, SettingsError, SettingsWarning
from azpy.evaluators.torch import exported
from azpy.game import value_width
from azpy.settings.run import Settings, is_own
from azpy.training.fitting import learner_of
from azpy.training.loop import NOT_ROW_EXACT

_ROWS = 2
_MOST_NAMED = 3


def rehearse(settings: Settings, start: State) -> None:
    """Try the user's own network and optimizer, if the settings name any.

    Raises:
        SettingsError: the network cannot be written or does not play alike, or a step fails.
        ModelError: a checkpoint cannot hold the optimizer's state, or a deterministic run cannot be.
    """
    if not (is_own(settings.network) or is_own(settings.optimizer)):
        return
    learner = learner_of(settings, start, here=False)
    if is_own(settings.network):
        try:
            _, evaluator = exported(learner.averaged, start)
        except ModelError as error:
            raise SettingsError(f"network {settings.network!r}: {error}") from error
        if settings.deterministic and not evaluator.row_exact:
            raise ModelError(f"a deterministic run cannot be: {NOT_ROW_EXACT}")
    rows = made_up_rows(start, _ROWS)
    list(learner.fit(SimpleNamespace(sample=lambda *_, **__: rows), 1, batch_size=_ROWS))
    learner.optimizer_arrays()
    trained = [(name, each) for name, each in learner.network.named_parameters() if each.requires_grad]
    if idle := [name for name, parameter in trained if parameter.grad is None]:
        text = f"no loss depends on {', '.join(idle[:_MOST_NAMED])}: network {settings.network!r} does not train these"
        warnings.warn(text, SettingsWarning, stacklevel=2)


def made_up_rows(game: Any, count: int) -> tuple[NDArray[Any], ...]:
    """Return rows as `ReplayBuffer.sample` gives them, of no game that was played."""
    rng, legal = np.random.default_rng(0), np.ones((count, game.num_actions), np.bool_)
    planes = rng.integers(0, 2, (count, *game.obs_shape)).astype(np.float32)
    width = value_width(game)
    values = rng.uniform(-1, 1, count if width == 1 else (count, width)).astype(np.float32)
    return planes, legal, np.full(legal.shape, 1 / game.num_actions, np.float32), values
