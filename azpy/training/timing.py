"""Where the time of a training run goes: shares of an iteration that add up to 1.

An iteration's time is counted from the end of the one before (its metrics row) to its own end, on the thread that runs
the loop. Its stages follow each other: self-play, fitting, writing, matches; what is left is `other`. Self-play's own
time is split as the pipelines, which work at the same time, spent theirs. Knows nothing of files or games.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

__all__ = ["STAGES", "TimeShares"]

STAGES = ("growing", "evaluating", "fitting", "exporting", "writing", "matches")


class TimeShares:
    """Shares of the time since the last `restart`.

    growing: self-play in which trees grow: descending, encoding, expanding, playing moves.
    evaluating: self-play inside the evaluator, its turn at a shared one included.
    fitting: gradient steps, and reading the window they draw from.
    exporting: exporting the new model, checking it and handing it to self-play.
    writing: sealed games, checkpoints and metrics, and self-play standing still because finished games were not
        written to the journal in time. A write beside which self-play goes on costs nothing and is not counted.
    matches: playing them.
    other: the rest, such as starting up (the first export included) and the rounds under way when self-play pauses.

    Args:
        clock: seconds from any moment on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Begins anew."""
        self._begin = self._clock()
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self._playing: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the time inside for a stage."""
        begin = self._clock()
        try:
            yield
        finally:
            self._seconds[name] += self._clock() - begin

    def played(
        self, seconds: float, before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]
    ) -> None:
        """Counts this iteration's self-play so far, in place of what it was before.

        Args:
            seconds: since it began.
            before: `SelfPlay.pipeline_stats` when it began.
            after: and now.
        """
        names = {"growing": "seconds_growing", "evaluating": "seconds_evaluating", "writing": "seconds_waiting"}
        parts = {
            stage: sum(pipeline[name] for pipeline in after) - sum(pipeline[name] for pipeline in before)
            for stage, name in names.items()
        }
        total = sum(parts.values())
        self._playing = {name: seconds * part / total for name, part in parts.items()} if total > 0 else {}

    def shares(self) -> dict[str, float]:
        """`share_` and the stage's name -> share of the time, in [0, 1]; with `share_other` they add up to 1."""
        total = max(self._clock() - self._begin, 1e-9)
        shares = {f"share_{name}": (self._seconds[name] + self._playing.get(name, 0.0)) / total for name in STAGES}
        return shares | {"share_other": max(0.0, 1.0 - sum(shares.values()))}
