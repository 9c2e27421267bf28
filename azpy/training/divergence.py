"""Training that diverged: losses or a network that are not finite. It is found before a checkpoint is written."""

from azpy.errors import RunError
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.reader import Checkpoint
from azpy.settings.run import Settings
from azpy.training.events import Fitted

__all__ = ["DivergedError", "diverged", "load_newest", "what_to_do"]


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


def load_newest(run: RunFolder, learner: Learner) -> Checkpoint | None:
    """The learner takes over the newest checkpoint; None where there is none.

    Raises:
        RunError: its network is not finite, or gives answers that are not. It stays: the fault may be the device's.
    """
    checkpoints = run.checkpoints()
    if not checkpoints:
        return None
    checkpoint = run.load_checkpoint(checkpoints[-1])
    learner.load(checkpoint.model, checkpoint.optimizer)
    if not learner.is_finite():
        before = " to go on from the one before" * (len(checkpoints) > 1)
        raise RunError(
            f"the network of {checkpoint.path}, or its answers on {learner.device}, are not finite: choose another "
            f"--training-device; if that does not help, delete the checkpoint{before}"
        )
    return checkpoint
