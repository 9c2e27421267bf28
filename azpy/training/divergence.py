"""Training that diverged: losses or a network that are not finite. It is found before a checkpoint is written."""

import numpy as np

from azpy.errors import RunError
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.reader import Checkpoint
from azpy.settings.run import Settings
from azpy.training.events import Fitted

__all__ = ["DivergedError", "diverged", "load_last_good", "what_to_do"]


class DivergedError(RunError):
    """The losses or the network are not finite; the text says when, and names the losses and the learning rate."""


def diverged(settings: Settings, step: Fitted, what: str, *, after: bool = False) -> DivergedError:
    """The error of a step; `what` says what is not finite.

    `step` has the mean losses of the steps before it; `after`: of the step itself too.
    """
    where = f"iteration {step.iteration}" if step.iteration else "the fit to the imported games"
    facts = [f"learning rate {settings.learning_rate:g}"]
    if after or step.taken > 1:
        means = f"mean policy loss {step.policy_loss:.4g} and value loss {step.value_loss:.4g}"
        facts.insert(0, f"{means} {'so far' if after else 'before'}")
    at = f"step {step.taken} of {step.steps} of {where}"
    return DivergedError(f"training diverged in {at}: {what} ({', '.join(facts)})")


def what_to_do(run: RunFolder, settings: Settings) -> str:
    """Where a run stands after a `DivergedError`, and what helps."""
    checkpoints, lower = run.checkpoints(), f"add --learning-rate {settings.learning_rate / 4:.2g}, or less"
    if not checkpoints:
        return f"No checkpoint was saved yet. The same command begins with the games that are there: {lower}"
    good = f"{run.path}/checkpoints/{checkpoints[-1]:06d}"
    again = f"; if it diverges again, delete {good} too" if len(checkpoints) > 1 else ""
    return f"The last good checkpoint is {good}, and the same command goes on from it: {lower}{again}"


def load_last_good(run: RunFolder, learner: Learner, settings: Settings) -> Checkpoint | None:
    """The learner takes over the newest checkpoint whose numbers are finite; later checkpoints are deleted.

    Older versions could save a network that had diverged. A network whose answers alone are not finite stays: the fault
    may be the device's.

    Returns:
        The checkpoint; None where there is none.

    Raises:
        RunError: no network is finite, or the answers of the newest are not.
    """
    bad = list[str]()
    for iteration in reversed(run.checkpoints()):
        checkpoint = run.load_checkpoint(iteration)
        if all(np.isfinite(array).all() for array in (*checkpoint.model.values(), *checkpoint.optimizer.values())):
            learner.load(checkpoint.model, checkpoint.optimizer)
            if not learner.is_finite():
                before = " to go on from the one before" * (iteration > run.checkpoints()[0])
                raise RunError(
                    f"the numbers of {checkpoint.path} are finite, but not its network's answers on {learner.device}: "
                    f"choose another --training-device; if that does not help, delete the checkpoint{before}"
                )
            if bad:
                run.prune_checkpoints(lambda kept: kept <= iteration)  # noqa: B023  called at once
                run.notices.append(
                    f"deleted {', '.join(bad)}: training diverged, and the network is not finite; going on after "
                    f"iteration {iteration}, at learning rate {settings.learning_rate:g} (--learning-rate lowers it)"
                )
            return checkpoint
        bad.append(str(checkpoint.path))
    if bad:
        raise RunError(
            f"training diverged: the networks of {', '.join(bad)} are not finite, and there is no earlier one; begin "
            "in another folder with --out, at a lower --learning-rate"
        )
    return None
