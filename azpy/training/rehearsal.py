"""An export and a training step before a run begins: code of the user's that fails does so before there is a folder."""

import warnings

from azpy._core import ReplayBuffer, SelfPlay, State, UniformEvaluator
from azpy.errors import ModelError, SettingsError, SettingsWarning
from azpy.evaluators.torch import exported
from azpy.settings.run import Settings, is_own
from azpy.training.fitting import learner_of, sampling_of
from azpy.training.loop import CANNOT_BE_DETERMINISTIC

_ROWS = 2
_MOST_PLIES = 1000  # rules in Python may be slow
_MOST_NAMED = 3


def rehearse(settings: Settings, start: State) -> None:
    """Try the user's own network and optimizer on the training device, if the settings name any.

    Raises:
        DeviceError: torch cannot use the training device.
        SettingsError: the network cannot be written or does not play alike, or a step fails.
        ModelError: a checkpoint cannot hold the optimizer's state, or the network cannot play in a deterministic run.
    """
    if not (is_own(settings.network) or is_own(settings.optimizer)):
        return
    learner = learner_of(settings, start)
    if is_own(settings.network):
        try:
            _, evaluator = exported(learner.averaged, start)
        except ModelError as error:
            raise SettingsError(f"network {settings.network!r}: {error}") from error
        if settings.deterministic and not evaluator.row_exact:
            raise ModelError(CANNOT_BE_DETERMINISTIC)
    sampling = sampling_of(settings) | {"batch_size": _ROWS}
    list(learner.fit(game_without_network(start, settings.max_plies), 1, **sampling))
    learner.optimizer_arrays()
    trained = [(name, each) for name, each in learner.network.named_parameters() if each.requires_grad]
    if idle := [name for name, parameter in trained if parameter.grad is None]:
        text = (
            f"no loss depends on {', '.join(idle[:_MOST_NAMED])}, so network {settings.network!r} does not train these"
        )
        warnings.warn(text, SettingsWarning, stacklevel=2)


def game_without_network(start: State, max_plies: int | None = None) -> ReplayBuffer:
    """Return the positions of a game that is played with hardly any search: always the same ones.

    The game is cut off after `max_plies`; None: after very many.
    """
    options = {"slots": 1, "pipelines": 1, "threads": 1, "games": 1, "cache_positions": 0, "simulations": 2}
    most = min(max_plies or _MOST_PLIES, _MOST_PLIES, start.max_plies)
    buffer = ReplayBuffer(start)
    buffer.extend(SelfPlay(start, UniformEvaluator(), max_plies=most, **options))  # type: ignore[arg-type]
    return buffer
