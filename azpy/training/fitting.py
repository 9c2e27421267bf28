"""The gradient steps of an iteration."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from azpy import _core
from azpy.learning.learner import Learner
from azpy.settings.run import Settings
from azpy.training.budget import Budget
from azpy.training.divergence import diverged
from azpy.training.events import Fitted
from azpy.training.window import Window

__all__ = ["fit", "learner_of", "sampling_of", "steps_of"]

# In the loss of the value, for rows of imported games: the positions of a game share one outcome, and a network learns
# outcomes by heart before it knows the moves. 0.01 as AlphaGo Zero's supervised network (Silver et al. 2017, Methods).
_IMPORTED_VALUE_WEIGHT = 0.01
_SAMPLING = (
    "batch_size",
    "root_value_weight",
    "symmetries",
    "surprise_weight",
    "value_lambda",
)  # settings of a training batch


def learner_of(settings: Settings, start: _core.State, *, here: bool = True) -> Learner:
    """The untrained network of a run; on the CPU if its steps are not taken here, else on the training device."""
    return Learner(
        start,
        settings.network,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        seed=settings.seed,
        device=settings.training_device if here else "cpu",
        precision=settings.training_precision if here and not settings.deterministic else "fp32",
    )


def sampling_of(settings: Settings, *, imported: bool = False) -> dict[str, Any]:
    """The settings of a training batch, as `Learner.fit` takes them; `imported`: the run began with imported games."""
    sampling = {name: getattr(settings, name) for name in _SAMPLING}
    return sampling | ({"imported_value_weight": _IMPORTED_VALUE_WEIGHT} if imported else {})


def steps_of(settings: Settings, window: Window) -> int:
    """Gradient steps for the newest games of a window: what all games so far are due, less what those before were."""
    due, before = (
        round(positions * settings.passes / settings.batch_size)
        for positions in (window.seen, window.seen - window.newest)
    )
    return due - before


def fit(
    learner: Learner,
    buffer: _core.ReplayBuffer,
    settings: Settings,
    budget: Budget,
    iteration: int,
    steps: int,
    *,
    imported: bool = False,
) -> Iterator[Fitted]:
    """Takes gradient steps: one at least, and fewer than `steps` where time is up.

    Args:
        learner: takes them.
        buffer: holds a position at least.
        settings: of the run.
        budget: of the run; says the learning rate, and when time is up.
        iteration: in which they are taken; 0: before self-play, at the full learning rate.
        steps: how many, more than 0.
        imported: see `sampling_of`.

    Yields:
        How far it is, after each step.

    Raises:
        DivergedError: the learner's network is of no use any more.
    """
    step = Fitted(iteration, 0, steps, 0.0, 0.0)

    def rate(done: float) -> float:
        return budget.rate(iteration - 1 + done) if iteration else 1.0

    sampling = sampling_of(settings, imported=imported)
    losses = learner.fit(buffer, steps, schedule=rate, **sampling)
    with contextlib.closing(losses):
        while step.taken < steps and (not step.taken or budget.may_fit()):
            loss, taken = next(losses), step.taken + 1
            if not math.isfinite(loss.policy + loss.value):
                what = f"policy loss {loss.policy:.4g}, value loss {loss.value:.4g}"
                raise diverged(settings, replace(step, taken=taken), what)
            policy = step.policy_loss + (loss.policy - step.policy_loss) / taken
            value = step.value_loss + (loss.value - step.value_loss) / taken
            step = Fitted(iteration, taken, steps, policy, value)
            yield step
    learner.set_statistics(buffer, **sampling)
    if not learner.is_finite():
        raise diverged(settings, step, "the network's numbers are not finite", after=True)
