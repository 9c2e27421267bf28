"""How far the player of a run is from an equilibrium, in a game that hides something and is small enough to tell."""

import time
from collections.abc import Iterator

from azpy import _core
from azpy.checks.check_game import MOST_IN_PYTHON
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.training.events import Event, Measured, Noticed
from azpy.training.generations import Generations
from azpy.training.loop import Loop

_TIMES = 20  # that a run measures, at most, but for the last time
_SHARE = 0.03  # of a run's time, at most, but for the last time


class Certificate:
    """Measures the exploitability of the learner's averaged weights; stands in for the matches of other runs."""

    def __init__(self, loop: Loop, learner: Learner) -> None:
        self._loop, self._learner = loop, learner
        self._game: _core.Exploitability | None = None  # its positions, once they are counted
        self._uniform = 0.0  # exploitability of equal shares
        self._cannot = False
        self._done, self._seconds, self._longest = -1, 0.0, 0.0  # the step of the run; of all measurements; of one

    def measure(self, generations: Generations, cores: int, *, last: bool) -> Iterator[Event]:
        """Measure if it is time to; then write the report."""
        loop, step = self._loop, int(_TIMES * self._loop.budget.progress(self._loop.iteration))
        late = self._seconds + self._longest > _SHARE * loop.budget.elapsed()
        if not loop.iteration or not (last or (step > self._done and not late)):
            return
        begin, self._done = time.monotonic(), step
        with loop.time.stage("matches"):
            done = {row["iteration"] for row in loop.folder.metrics() if row["kind"] == "exploitability"}
            if not self._cannot and not (last and loop.iteration in done):
                yield from self._measured(generations, cores)
            self._longest = max(self._longest, time.monotonic() - begin)
            self._seconds += time.monotonic() - begin
            loop.write_report()

    def _measured(self, generations: Generations, cores: int) -> Iterator[Event]:
        loop, (_, unit) = self._loop, self._loop.start.payoff_unit
        if self._game is None:
            try:
                most = None if loop.start.game_object is None else MOST_IN_PYTHON
                self._game = _core.Exploitability(loop.start, most=most)
            except ValueError as error:
                self._cannot = True
                yield Noticed(f"exploitability cannot be computed: {error}")
                return
            self._uniform = self._game.of(_core.UniformEvaluator())
        found = self._game.of(generations.evaluator_for_matches(to_onnx(self._learner.averaged), cores))
        row = {"exploitability": found, "uniform": self._uniform, "unit": unit, "seconds": loop.budget.elapsed()}
        loop.note({"kind": "exploitability", "iteration": loop.iteration} | row)
        yield Measured(loop.iteration, found, self._uniform, unit)
