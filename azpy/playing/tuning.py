"""How many slots, pipelines, leaves and threads suit a network and a machine: tried out, for about a minute.

A trial measures how many positions a second the network answers in self-play without a cache. Among about equally fast
layouts, fewer leaves of a tree at a time go first, because more of them lose strength; then fewer slots, because fewer
slots finish their games sooner and with a newer network.
"""

import copy
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from azpy._core import State
from azpy.playing.benchmarks import Play
from azpy.settings.run import MOST_LEAVES, Settings
from azpy.system import usable_cores

TUNED = ("slots", "pipelines", "eval_batch", "threads")
_CLEARLY = 1.03  # noise is mostly less
_TRIALS = 16  # about as many as there are
_WARM_UP = 0.1  # of a trial
_LEAST_ROUNDS = 4  # of each pipeline: fewer rounds are chance
_ENOUGH = 2  # larger batches in a row that win nothing


@dataclass(frozen=True)
class Trial:
    """One layout of self-play, by the settings' names, and its `rate`: positions a second that the network answered."""

    slots: int
    pipelines: int
    eval_batch: int
    threads: int
    rate: float = 0.0

    def settings(self) -> dict[str, int]:
        """The four by the names that they have in `Settings`."""
        return {name: getattr(self, name) for name in TUNED}


def tune(
    start: State,
    evaluators: Sequence[Any],
    settings: Settings,
    given: Collection[str] = (),
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Tries layouts of self-play.

    Args:
        start: of the games.
        evaluators: see `SelfPlay`, one for each of the run's devices; each has a `device`.
        settings: of the run. The games of an iteration limit the slots.
        given: names in `TUNED` whose values in the settings stay.
        seconds: in all, about.
        clock: gives the time in seconds.

    Yields:
        Each trial after its measurement; at the end the best trial again.
    """
    alone = [copy.copy(evaluator) for evaluator in evaluators]
    for evaluator in alone:
        evaluator.network_id = None  # every leaf is a row
    each, end = seconds / _TRIALS, clock() + seconds
    tried: dict[Trial, Trial] = {}

    def measured(layout: Trial) -> Trial:
        if layout not in tried:
            options: dict[str, Any] = settings.search_options() | layout.settings()
            options["pipelines"] *= len(alone)
            with Play(start, alone, cache_positions=0, **options) as play:
                first = play.run(each * _WARM_UP)
                round_seconds = first["seconds"] * options["pipelines"] / first["batches"]
                done = play.run(max(each * (1 - _WARM_UP), _LEAST_ROUNDS * round_seconds))
            tried[layout] = replace(layout, rate=done["rows"] / done["seconds"])
        return tried[layout]

    on_cpu = alone[0].device == "cpu"
    best = Trial(0, 0, 0, 0)  # none yet
    for layouts in (_pipelines, _slots, _leaves):
        worse = 0
        for layout in layouts(settings, best, set(given), on_cpu):
            if tried and clock() > end:
                break
            top = max((trial.rate for trial in tried.values()), default=0.0)
            trial = measured(layout)
            yield trial
            larger = 0 < best.slots * best.eval_batch < layout.slots * layout.eval_batch
            worse = worse + 1 if larger and trial.rate <= top * _CLEARLY else 0
            if worse == _ENOUGH:
                break
        enough = max(trial.rate for trial in tried.values()) / _CLEARLY
        fast = [trial for trial in tried.values() if trial.rate >= enough]
        best = min(fast, key=lambda trial: (trial.eval_batch, trial.slots))
    yield best


def _pipelines(settings: Settings, _best: Trial, given: set[str], on_cpu: bool) -> list[Trial]:
    """Pipelines and threads, with batches of a common size."""
    cores, groups, most = usable_cores(), len(settings.all_devices), _most_slots(settings, given)
    if on_cpu:  # a pipeline's network runs on one core
        rows, pairs = 64, [(cores, 1), (cores, cores), (cores + 1, 1), (max(2, cores // 2), cores)]
    else:
        rows, pairs = 256, [(2, cores), (1, cores), (3, cores), (4, cores), (2, max(1, cores // 2))]
    found = []
    for count, threads in pairs:
        count = max(1, min(settings.pipelines if "pipelines" in given else count, most // groups))
        slots = settings.slots if "slots" in given else min(count * groups * rows, most)
        leaves = settings.eval_batch if "eval_batch" in given else max(1, -(-rows * count * groups // slots))
        threads = settings.threads or cores if "threads" in given else threads
        found.append(Trial(slots, count, min(leaves, MOST_LEAVES), threads))
    return list(dict.fromkeys(found))


def _slots(settings: Settings, best: Trial, given: set[str], _on_cpu: bool) -> list[Trial]:
    """More and more slots, with one leaf of each tree at a time."""
    leaves = settings.eval_batch if "eval_batch" in given else 1
    most, pipelines = _most_slots(settings, given), best.pipelines * len(settings.all_devices)
    counts = [pipelines * rows for rows in (16, 32, 64, 128, 256, 512, 1024) if pipelines * rows < most]
    counts = [settings.slots] if "slots" in given else [*counts, most]
    return [Trial(slots, best.pipelines, leaves, best.threads) for slots in counts]


def _leaves(settings: Settings, best: Trial, given: set[str], _on_cpu: bool) -> list[Trial]:
    """More leaves of a tree, where there cannot be more slots."""
    if "eval_batch" in given or best.slots < _most_slots(settings, given):
        return []
    return [replace(best, eval_batch=leaves, rate=0.0) for leaves in (2, 4, MOST_LEAVES)]


def _most_slots(settings: Settings, given: set[str]) -> int:
    """With more slots than games an iteration, a later network would finish most games."""
    return settings.slots if "slots" in given else settings.games_per_iteration
