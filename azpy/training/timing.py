"""How a training run spends its time: shares of an iteration that add up to 1.

An iteration lasts from the metrics row before it to its own row, on the thread that runs the loop.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

STAGES = ("growing", "evaluating", "fitting", "exporting", "writing", "matches")
# Stage -> its part of self-play in `SelfPlay.pipeline_stats`.
_PLAYING = {"growing": "seconds_growing", "evaluating": "seconds_evaluating", "writing": "seconds_waiting"}


class TimeShares:
    """Shares of the time since this was made or restarted.

    growing: self-play in which trees grow: descending, encoding, expanding, playing moves.
    evaluating: self-play inside the evaluator, its turn at a shared one included.
    fitting: gradient steps, and reading the window they draw from.
    exporting: exporting the new model, checking it and handing it to self-play.
    writing: sealed games, checkpoints and metrics, and the time self-play waits for finished games to be written. A
        write beside self-play is not counted.
    matches: playing them.
    other: the rest, such as starting up and the rounds under way when self-play pauses.

    Self-play's time is divided as its pipelines, which work at the same time, spent theirs.

    Attributes:
        seconds: spent in each stage, without those of self-play.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Start the clock again."""
        self._begin = self._clock()
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._playing: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside for a stage."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[name] += self._clock() - begin

    def played(
        self, seconds: float, before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]
    ) -> None:
        """Set this iteration's self-play so far."""
        parts = {
            stage: sum(now[name] - then[name] for then, now in zip(before, after, strict=True))
            for stage, name in _PLAYING.items()
        }
        total = sum(parts.values())
        self._playing = {name: seconds * part / total for name, part in parts.items()} if total > 0 else {}

    def shares(self) -> dict[str, float]:
        """Shares of the time by name: `share_` and a stage, and `share_other`. They are in [0, 1] and add up to 1."""
        total = max(self._clock() - self._begin, 1e-9)
        shares = {f"share_{name}": (self.seconds[name] + self._playing.get(name, 0.0)) / total for name in STAGES}
        return shares | {"share_other": max(0.0, 1.0 - sum(shares.values()))}
