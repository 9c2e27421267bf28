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
        optimizer=settings.optimizer,
        freeze=settings.freeze,
        value_smoothing=settings.value_smoothing,
        decisive_weight=settings.decisive_weight,
    )


def sampling_of(settings: Settings, *, imported: bool = False) -> dict[str, Any]:
    """The settings of a training batch, as `Learner.fit` takes them; `imported`: the run began with imported games."""
    sampling = {name: getattr(settings, name) for name in _SAMPLING}
    return sampling | ({"imported_value_weight": settings.supervised_value_weight} if imported else {})


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
            found = {"policy": loss.policy, "value": loss.value, **loss.heads}
            if not math.isfinite(sum(found.values())):
                what = ", ".join(f"{name} loss {part:.4g}" for name, part in found.items())
                raise diverged(settings, replace(step, taken=taken), what)
            policy = step.policy_loss + (loss.policy - step.policy_loss) / taken
            value = step.value_loss + (loss.value - step.value_loss) / taken
            before = step.heads or dict.fromkeys(loss.heads, 0.0)
            heads = {name: mean + (loss.heads[name] - mean) / taken for name, mean in before.items()}
            step = Fitted(iteration, taken, steps, policy, value, heads)
            yield step
    learner.set_statistics(buffer, **sampling)
    if not learner.is_finite():
        raise diverged(settings, step, "the network's numbers are not finite", after=True)
