"""Games of files that a run learns from before self-play begins, as those of iteration 0."""

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from azpy import _core
from azpy.errors import RunError, SettingsError
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.imports import Filters, import_games, is_held_out, learned_from
from azpy.runs.storage import numbered
from azpy.settings.run import Settings
from azpy.settings.toml import path_argument
from azpy.training.events import Event, Fitted, Imported, Noticed
from azpy.training.fitting import diverged, fit, sampling_of
from azpy.training.loop import EVENT_SECONDS, Loop

_MOST_MEASURED = 4096  # rows of held-out games
_MEASUREMENTS = 10  # of the fit


class Lessons:
    """The imported games of a run, if it has any.

    Args:
        settings, start: of the run.
        path: the run folder, which may not be there yet.
        files: see `Trainer`; they are read if the run has neither games nor a checkpoint.

    Attributes:
        are_there: whether iteration 0 holds imported games, or will.

    Raises:
        RunError: a file is missing or damaged, or no game is left to learn from.
        SettingsError: the run changes how scores count.
    """

    def __init__(
        self, settings: Settings, start: _core.State, path: str | os.PathLike[str], files: Sequence[str]
    ) -> None:
        if files and settings.ranked_reward:
            raise SettingsError(
                "--supervised needs one way to count scores, and --ranked-reward changes it from game to game: leave "
                "out --ranked-reward or the files"
            )
        self._files, self._imported, self.are_there = list(map(path_argument, files)), None, False
        if files and not numbered(Path(path) / "games", ".npz") and not numbered(Path(path) / "checkpoints"):
            rating, seconds = settings.supervised_min_rating, settings.supervised_min_seconds
            # Import before making the folder, so that a bad file leaves nothing behind.
            filters = Filters(rating, seconds, settings.score_to_beat)
            self._imported = import_games(files, start, settings.seed, filters)
            records, share = self._imported.records, settings.supervised_held_out
            if not learned_from(records, share):
                raise RunError(
                    f"all {len(records)} imported games are held out: give more files, or a number below {share:g} as "
                    "--supervised-held-out"
                )

    def resume(self, folder: RunFolder) -> None:
        """Go on with the imported games of a run folder.

        Raises:
            RunError: the run began with other files or other settings of them.
        """
        checkpoints, sealed = folder.checkpoints(), folder.sealed.iterations()
        if not checkpoints:
            folder.trim_metrics(-1)  # a fit that did not end starts again, and so does an import
        rows = [row for row in folder.metrics() if row["kind"] == "imported"]
        if 0 in sealed and self._files and not rows:  # metrics.jsonl was lost
            rows.append({"kind": "imported", "iteration": 0, "files": self._files, "seconds": 0.0})
            folder.append_metrics(rows[0])
        if checkpoints or sealed or folder.journal:
            began = list(map(path_argument, rows[-1].get("files", []))) if rows else []
            if self._files and began != self._files:
                how = f"with --supervised {' '.join(map(str, began))}" if began else "without --supervised"
                raise RunError(
                    f"{folder.path} holds a run that began {how}: give the same value, leave it out to go on, or "
                    "choose another folder with --out"
                )
            self._files = began
        changed = [name for name in folder.changed if name.startswith("supervised_")]
        if changed and 0 in sealed:
            old, new = folder.changed[changed[0]]
            raise RunError(
                f"{folder.path} holds a run with {changed[0]} {old!r}, now {new!r} (games are imported and "
                "learned from once, before self-play): choose another folder"
            )
        if self._files:
            folder.flags = ["--supervised", *self._files]
        self.are_there = 0 in sealed or self._imported is not None

    def keep(self, loop: Loop) -> Iterator[Event]:
        """Put games that were imported now, and what became of the others, on the disk."""
        if (imported := self._imported) is None:
            return
        self._imported = None
        known = learned_from(imported.records, loop.settings.supervised_held_out)
        positions = sum(record.positions for record in known)
        left_out = {words: (count, first) for words, count, first in imported.reasons()}
        held_out = len(imported.records) - len(known)
        row = {"kind": "imported", "iteration": 0, "files": self._files, "found": imported.found}
        row |= {"games": len(known), "positions": positions, "held_out": held_out}
        row |= {"left_out": left_out, "seconds": loop.budget.elapsed()}
        loop.folder.append_metrics(row)  # write it first: it counts only with the games
        loop.folder.sealed.write(0, imported.records, imported.tags)
        yield Imported(imported.files, imported.found, len(known), positions, held_out, left_out)


def learn(loop: Loop, games: Sequence[_core.GameRecord], learner: Learner) -> Iterator[Event]:
    """Fit a learner to imported games, and measure it on those that are held out."""
    settings, budget = loop.settings, loop.budget
    buffer, unknown = (_core.ReplayBuffer(loop.start, max_positions=2**40) for _ in range(2))
    buffer.extend(learned_from(games, settings.supervised_held_out))
    unknown.extend(record for record in games if is_held_out(record, settings.supervised_held_out))
    count = min(unknown.num_positions, _MOST_MEASURED)
    rows = unknown.sample(count, seed=0, symmetries=False) if count else None
    steps = max(1, round(buffer.num_positions * settings.supervised_passes / settings.batch_size))
    begin, reported, step = budget.elapsed(), 0.0, Fitted(0, 0, steps, 0.0, 0.0)
    measured = {-(-steps * part // _MEASUREMENTS) for part in range(1, _MEASUREMENTS)} - {steps}
    for step in fit(loop, learner, buffer, 0, steps, imported=True):
        if step.taken in measured:
            learner.set_statistics(buffer, **sampling_of(settings, imported=True))
            yield _measured(loop, learner, step, rows)
        elif time.monotonic() - reported > EVENT_SECONDS:
            reported = time.monotonic()
            yield step
    yield _measured(loop, learner, step, rows)
    if step.taken < steps:
        yield Noticed(
            f"the fit of the imported games ended after {step.taken:,} of {steps:,} steps, as --minutes is over; a "
            "new --out with more --minutes fits them whole"
        )
    budget.note_iteration(0.0, budget.elapsed() - begin, step.taken * settings.batch_size / settings.passes, 0)


def _measured(loop: Loop, learner: Learner, step: Fitted, rows: Sequence[Any] | None) -> Fitted:
    """Note the losses of the fit so far, and those on rows of held-out games."""
    metrics = {"steps": step.taken, "policy_loss": step.policy_loss, "value_loss": step.value_loss}
    if rows is not None:
        found = learner.measure(rows)
        metrics |= {f"held_out_{name}": found[name] for name in ("policy_loss", "value_loss")}
        metrics["move_match"] = found["move_match"]
        if not all(map(math.isfinite, metrics.values())):  # JSON has no such numbers
            what = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items() if name != "steps")
            raise diverged(loop, step, what, after=True)
    metrics["seconds"] = loop.budget.elapsed()
    loop.note({"kind": "supervised", "iteration": 0, **metrics})
    return replace(step, metrics=metrics)
