"""The gradient steps of an iteration: the games that they learn from, and what there is to do where they diverge.

Losses or a network that are not finite are found before a checkpoint is written.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from azpy import _core
from azpy.errors import RunError
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.imports import learned_from
from azpy.runs.reader import Checkpoint
from azpy.settings.run import Settings
from azpy.training.events import Fitted
from azpy.training.loop import Loop

# Settings of a learner.
_LEARNING = ("learning_rate", "weight_decay", "seed", "optimizer", "freeze", "value_smoothing", "decisive_weight")


class Window:
    """The positions that batches are drawn from.

    Attributes:
        buffer: the games.
        seen: positions of self-play since the run began. Imported games do not count, so the window does not grow for
            them, and self-play soon takes their place.
        newest: positions of self-play in the games that came last.
    """

    def __init__(self, settings: Settings, start: _core.State) -> None:
        self._settings, self._hides = settings, start.hides
        self.buffer = _core.ReplayBuffer(start, max_positions=settings.window_max)
        self.seen = self.newest = 0

    def add(self, games: Sequence[_core.GameRecord]) -> None:
        """Add the games of an iteration, and drop the oldest games beyond the window's size.

        Imported games that are held out are left out. Of a game that hides something the newest games alone stay: their
        targets are steps from the policy that played them.

        Raises:
            RunError: a game does not obey the rules.
        """
        games = learned_from(games, self._settings.supervised_held_out)
        self.newest = _played(games)
        self.seen += self.newest
        self.buffer.resize(max(1, self.newest) if self._hides else window_size(self._settings, self.seen))
        try:
            self.buffer.extend(games)
        except ValueError as error:
            raise RunError(
                f"a stored game breaks the rules as they are now ({error}): choose another folder with --out"
            ) from error

    def refill(self, seen: int, iterations: Sequence[int], read: Callable[[int], Sequence[_core.GameRecord]]) -> None:
        """Take in the games that an empty window would hold: the newest files that have enough of them.

        `seen` counts since the run began; `iterations` are sealed ones, ascending, and `read` gives their games.
        """
        if self._hides:
            self.seen = seen
            return
        held: list[Sequence[_core.GameRecord]] = []
        positions, size, left = 0, window_size(self._settings, seen), list(iterations)
        while left and positions < size:
            held.append(learned_from(read(left.pop()), self._settings.supervised_held_out))
            positions += sum(record.positions for record in held[-1])
        self.seen = seen - sum(map(_played, held))
        for games in reversed(held):
            self.add(games)


def _played(games: Sequence[_core.GameRecord]) -> int:
    return sum(record.positions for record in games if not record.imported)


def window_size(settings: Settings, seen: int) -> int:
    """Positions that a run learns from once it has played `seen` positions; see the settings `window_...`."""
    return min(max(settings.window_min, int(settings.window_share * seen)), settings.window_max)


def learner_of(settings: Settings, start: _core.State, *, here: bool = True) -> Learner:
    """The untrained network of a run, on the training device; on the CPU if no steps are taken here."""
    return Learner(
        start,
        settings.network,
        device=settings.training_device if here else "cpu",
        precision=settings.training_precision if here and not settings.deterministic else "fp32",
        **{name: getattr(settings, name) for name in _LEARNING},
    )


def sampling_of(settings: Settings, *, imported: bool = False) -> dict[str, Any]:
    """The settings of a training batch, as `Learner.fit` takes them; `imported`: the run began with imported games."""
    sampling = {name: getattr(settings, name) for name in ("batch_size", "root_value_weight", "symmetries")}
    return sampling | ({"imported_value_weight": settings.supervised_value_weight} if imported else {})


def steps_of(settings: Settings, window: Window) -> int:
    """Gradient steps for the newest games of a window: what all games so far are due, less what those before were."""
    due, before = (
        round(positions * settings.passes / settings.batch_size)
        for positions in (window.seen, window.seen - window.newest)
    )
    return due - before


def fit(
    loop: Loop,
    learner: Learner,
    buffer: _core.ReplayBuffer,
    iteration: int,
    steps: int,
    *,
    imported: bool = False,
    part: int = 0,
) -> Iterator[Fitted]:
    """Take `steps` gradient steps. Stop early once time is up, after at least one.

    The run's budget gives the learning rate and the end of its time. The buffer holds at least one position. Iteration
    0 is before self-play, at the full learning rate. `imported` is that of `sampling_of`, and `part` is the number of
    the iteration's `networks_per_iteration` that are done.

    Yields:
        How far it is, after each step.

    Raises:
        RunError: the losses or the learner's network are not finite.
    """
    step, budget = Fitted(iteration, 0, steps, 0.0, 0.0), loop.budget

    def begun(done: float) -> float:
        return iteration - 1 + (part + done) / loop.settings.networks_per_iteration

    def rate(done: float) -> float:
        return budget.rate(begun(done)) if iteration else 1.0

    sampling = sampling_of(loop.settings, imported=imported)
    how: dict[str, Any] = {"schedule": rate}
    if loop.start.hides:
        sampling |= {"batch_size": buffer.num_positions, "in_order": True}
        how["magnet"] = lambda done: budget.magnet(begun(done))
    losses = learner.fit(buffer, steps, **how, **sampling)
    with contextlib.closing(losses):
        while step.taken < steps and (not step.taken or budget.may_fit()):
            loss, taken = next(losses), step.taken + 1
            found = {"policy": loss.policy, "value": loss.value, **loss.heads}
            if not math.isfinite(sum(found.values())):
                what = ", ".join(f"{name} loss {part:.4g}" for name, part in found.items())
                raise diverged(loop, replace(step, taken=taken), what)
            policy = step.policy_loss + (loss.policy - step.policy_loss) / taken
            value = step.value_loss + (loss.value - step.value_loss) / taken
            before = step.heads or dict.fromkeys(loss.heads, 0.0)
            heads = {name: mean + (loss.heads[name] - mean) / taken for name, mean in before.items()}
            step = Fitted(iteration, taken, steps, policy, value, heads)
            yield step
    if part < loop.settings.networks_per_iteration - 1:
        return  # the iteration's last network is looked at, and its losses at once
    learner.set_statistics(buffer, **sampling)
    if not learner.is_finite():
        raise diverged(loop, step, "the network's weights are not finite", after=True)


def diverged(loop: Loop, step: Fitted, what: str, *, after: bool = False) -> RunError:
    """The error of a step, which names the losses and gives advice; `what` says what is not finite.

    `step` has the mean losses of the steps before it; `after`: of the step itself too.
    """
    settings, folder = loop.settings, loop.folder
    where = f"iteration {step.iteration}" if step.iteration else "the fit to the imported games"
    facts = [f"learning rate {settings.learning_rate:g}"]
    if after or step.taken > 1:
        means = f"mean policy loss {step.policy_loss:.4g} and value loss {step.value_loss:.4g}"
        facts.insert(0, f"{means} {'so far' if after else 'before'}")
    at = f"training diverged in step {step.taken} of {step.steps} of {where}: {what} ({', '.join(facts)})"
    checkpoints, lower = folder.checkpoints(), f"add --learning-rate {settings.learning_rate / 4:.2g}, or less"
    if not checkpoints:
        helps = f"No checkpoint was saved yet. The same command begins with the games that are there: {lower}"
    else:
        good = f"{folder.path}/checkpoints/{checkpoints[-1]:06d}"
        again = f"; if it diverges again, delete {good} too" if len(checkpoints) > 1 else ""
        helps = f"The last good checkpoint is {good}, and the same command goes on from it: {lower}{again}"
    return RunError(f"{at}. {helps}")


def load_newest(folder: RunFolder, learner: Learner) -> Checkpoint | None:
    """The learner takes over the newest checkpoint; None where there is none.

    Raises:
        RunError: its weights or its outputs are not finite. It is kept, because the device may be at fault.
    """
    checkpoints = folder.checkpoints()
    if not checkpoints:
        return None
    checkpoint = folder.load_checkpoint(checkpoints[-1])
    learner.load(checkpoint.model, checkpoint.optimizer)
    if not learner.is_finite():
        before = " to go on from the one before" * (len(checkpoints) > 1)
        raise RunError(
            f"the weights of {checkpoint.path}, or its outputs on {learner.device}, are not finite: choose another "
            f"--training-device; if that does not help, delete the checkpoint{before}"
        )
    return checkpoint
