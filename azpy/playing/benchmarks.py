"""Speed of azpy's parts on this machine: search, rules, an evaluator, and self-play against its ceiling.

Each function returns figures. Things to compare are measured in turn, in one process. The first turn is a warm-up, the
others give a median and its range.

All functions take `seconds`, the length of each turn, and `repeats`, the number of turns that count.
"""

import platform
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import installed_version
from azpy.evaluators.protocol import Evaluator, rate, repeated
from azpy.game import value_width
from azpy.games.lines import roll
from azpy.playing.selfplay import rates, threads_of_trees
from azpy.settings import Settings
from azpy.system import cpu_name, usable_cores

EVALUATOR_ROWS = (1, 8, 64, 256, 512)
_TREES, _LEAVES, _SIMULATIONS = 64, 8, 800
_PACKAGES = ("azpy", "numpy", "onnxruntime", "onnxruntime-gpu", "torch")
_Name = TypeVar("_Name")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Figure:
    """One thing measured a few times."""

    name: str  # what was measured
    unit: str  # of `runs`
    runs: tuple[float, ...]  # one number a turn
    of: str | None = None  # the name of the reference of `ratios`, if any
    ratios: tuple[float, ...] = ()  # one a turn, to the reference in the same turn

    def row(self) -> dict[str, Any]:
        """The figure for a file: name, unit, median, min, max, runs; of, ratio, ratio_min and ratio_max or null."""
        row: dict[str, Any] = {"name": self.name, "unit": self.unit, "runs": list(self.runs), "of": self.of}
        for name, reduce in (("", statistics.median), ("_min", min), ("_max", max)):
            row[name.removeprefix("_") or "median"] = reduce(self.runs)
            row[f"ratio{name}"] = reduce(self.ratios) if self.ratios else None
        return row


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, system, and the versions of what is installed."""
    found = {package: installed_version(package) for package in _PACKAGES}
    about = {"cpu": cpu_name(), "cores": usable_cores(), "system": platform.platform()}
    return about | {"python": platform.python_version()} | found | {"azpy": _core.__version__}


def _in_turn(jobs: Mapping[_Name, Callable[[], _Found]], repeats: int) -> dict[_Name, tuple[_Found, ...]]:
    """Each job once to warm up, then `repeats` times, one after the other."""
    turns = [[job() for job in jobs.values()] for _ in range(repeats + 1)]
    return dict(zip(jobs, zip(*turns[1:], strict=True), strict=True))


class Zeros:
    """An evaluator that answers zeros at once, so that only the host is measured; see `Evaluator`."""

    def __init__(self, game: _core.State, rows: int) -> None:
        width = value_width(game)
        self._logits = np.zeros((rows, game.num_actions), np.float32)
        self._values = np.zeros(rows if width == 1 else (rows, width), np.float32)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [B, A] and values [B], or [B, P] of several players."""
        return self._logits[: len(observations)], self._values[: len(observations)]


def measure_search(start: _core.State, *, seconds: float = 2.0, repeats: int = 5) -> list[Figure]:
    """Searches of 800 simulations: one tree alone, and the batched path.

    They begin at `start`; dice that are due are rolled first, always alike.

    Returns:
        Simulations a second of one tree on one thread, one leaf at a time, with the uniform evaluator in Rust. Leaves a
        second of 64 trees x 8 leaves on all cores, with an evaluator in Python that answers zeros. Bytes a simulation.
    """
    start = start.clone()
    roll(start, np.random.default_rng(0))
    search = _core.Search(_core.UniformEvaluator(), simulations=_SIMULATIONS, eval_batch=1)
    zeros = Zeros(start, _TREES * _LEAVES)
    trees = _core.VectorSearch([start] * _TREES, zeros, eval_batch=_LEAVES)
    memory = search.run(start).stats["memory_bytes"] / _SIMULATIONS

    def one_tree() -> float:
        search.run(start)
        return _SIMULATIONS

    def many_trees() -> float:
        rows = trees.stats["rows"]
        for index in range(_TREES):
            trees.replace(index, start)
        trees.run(_SIMULATIONS)
        return trees.stats["rows"] - rows

    runs = _in_turn({step: partial(repeated, step, seconds) for step in (one_tree, many_trees)}, repeats)
    many = f"{_TREES} trees x {_LEAVES} leaves, zeros from Python, {usable_cores()} cores"
    return [
        Figure(f"one tree of {_SIMULATIONS}, uniform evaluator in Rust, 1 thread", "simulations/s", runs[one_tree]),
        Figure(many, "leaves/s", runs[many_trees]),
        Figure("memory of one tree", "bytes/simulation", (memory,)),
    ]


def measure_games(games: Mapping[str, _core.State], *, seconds: float = 2.0, repeats: int = 5) -> list[Figure]:
    """Random games from each start (by name) to their ends, one thread, the loop in Rust.

    Calls into a game written in Python count too.

    Returns:
        For each game: games a second and plies (rolls counted) a second, taken in the same turns.
    """

    def turn(start: _core.State) -> tuple[float, float]:
        chunk, played, plies, begin = 1, 0, 0, time.perf_counter()
        while True:
            called = time.perf_counter()
            plies += _core.random_playouts(start, chunk, seed=played)
            played += chunk
            now = time.perf_counter()
            if now - begin >= seconds:
                return played / (now - begin), plies / (now - begin)
            if now - called < 0.01:  # longer calls, so that the overhead of a call is negligible
                chunk *= 2

    runs = _in_turn({name: partial(turn, start) for name, start in games.items()}, repeats)
    return [
        Figure(f"{name}, random games", unit, rates)
        for name, found in runs.items()
        for unit, rates in zip(("games/s", "plies/s"), zip(*found, strict=True), strict=True)
    ]


def measure_evaluator(
    evaluator: Evaluator, obs_shape: Sequence[int], *, seconds: float = 2.0, repeats: int = 5
) -> list[Figure]:
    """One caller that evaluates batches of one size after another, of observations [B, *obs_shape].

    Returns:
        Positions a second for each of `EVALUATOR_ROWS` as batch size, with the ratio to the best of the same turn.
    """
    call = [evaluator.evaluate_batch]
    jobs = {f"batch {size}": partial(rate, call, size, obs_shape, seconds) for size in EVALUATOR_ROWS}
    runs = _in_turn(jobs, repeats)
    best = [max(turn) for turn in zip(*runs.values(), strict=True)]
    return [Figure(name, "positions/s", found, "the best batch", _ratios(found, best)) for name, found in runs.items()]


def measure_self_play(
    start: _core.State,
    evaluator: Evaluator,
    settings: Settings,
    *,
    bare: Evaluator | None = None,
    seconds: float = 2.0,
    repeats: int = 5,
) -> list[Figure]:
    """Positions that self-play evaluates a second, compared with the evaluator alone.

    The ceiling is as many threads as pipelines that only evaluate, each with a `fork` of the evaluator if it has one,
    in batches of the size that self-play had with the cache off.

    Args:
        start: of the games.
        evaluator: may be called from several threads, or has `fork`; with a `network_id` its answers are cached.
        settings: slots, pipelines, threads and all options of self-play.
        bare: the model without azpy's evaluator, a ceiling of the ceiling; may be called from several threads.
        seconds: of each turn.
        repeats: turns that count.

    Returns:
        Positions a second of the model alone, if given; of the ceiling; and of self-play with the cache off and on.
        Each has the ratio to the figure before it in the same turn. For self-play also simulations a second, how full
        batches are (rows over their capacity), and the share of the pipelines' time in the network, queueing included.
    """
    options: dict[str, Any] = settings.search_options()
    options |= {name: getattr(settings, name) for name in ("slots", "pipelines")}
    options["threads"] = threads_of_trees(settings, getattr(evaluator, "device", settings.all_devices[0]))
    fork = getattr(evaluator, "fork", lambda: evaluator)
    forks = [evaluator, *(fork() for _ in range(settings.pipelines - 1))]  # as self-play has them
    rows = 1

    def off() -> dict[str, float]:
        nonlocal rows
        found = play_for(without, seconds)
        rows = max(1, round(found["batch_rows"]))
        return found

    def ceiling(calls: Sequence[Callable[[Any], Any]]) -> float:
        return rate(calls, rows, start.obs_shape, seconds)

    with (
        _core.SelfPlay(start, evaluator, cache_positions=0, **options) as without,
        _core.SelfPlay(start, evaluator, cache_positions=200_000, **options) as cached,
    ):
        without.pause()
        cached.pause()
        alone = {"evaluator": [each.evaluate_batch for each in forks]}
        alone |= {"model": [bare.evaluate_batch] * settings.pipelines} if bare is not None else {}
        jobs: dict[str, Callable[[], Any]] = {"off": off, "on": lambda: play_for(cached, seconds)}
        jobs |= {name: partial(ceiling, calls) for name, calls in alone.items()}
        runs = _in_turn(jobs, repeats)
    layout, above, figures = f"{settings.pipelines} threads, batch {rows}", tuple[Any, ...](), list[Figure]()
    for name in reversed(alone):
        found = runs[name]
        ratios = (above[0], _ratios(found, above[1])) if above else ()
        figures.append(Figure(f"the {name} alone, {layout}", "positions/s", found, *ratios))
        above = f"the {name} alone", found
    for cache in ("off", "on"):
        name = f"self-play, cache {cache}"
        evaluations, simulations, full, network = (
            tuple(turn[of] for turn in runs[cache])
            for of in ("evaluations_per_second", "simulations_per_second", "batch_fill", "in_network")
        )
        figures += [
            Figure(name, "positions/s", evaluations, above[0], _ratios(evaluations, above[1])),
            Figure(name, "simulations/s", simulations),
            Figure(f"{name}, batches full", "%", tuple(100 * share for share in full)),
            Figure(f"{name}, pipelines in the network", "%", tuple(100 * share for share in network)),
        ]
    return figures


def play_for(play: _core.SelfPlay, seconds: float) -> dict[str, float]:
    """Let self-play go on for about `seconds`, one round or game at least, then pause it; drop the finished games.

    Return its `rates`, and `in_network`: the share of the pipelines' time that the evaluator takes.
    """
    before, lives, begin = play.stats, _lives(play), time.perf_counter()
    play.resume()
    taken = 0
    while time.perf_counter() - begin < seconds or (not taken and _lives(play)["rounds"] == lives["rounds"]):
        taken += len(play.take_finished(seconds=min(0.01, seconds)))
    play.pause()
    found = rates(before, play.stats, time.perf_counter() - begin)
    spent = _lives(play)
    evaluating, growing = (spent[name] - lives[name] for name in ("seconds_evaluating", "seconds_growing"))
    return found | {"in_network": evaluating / ((evaluating + growing) or 1.0)}


def _lives(play: _core.SelfPlay) -> Counter[str]:
    """Sums of the figures of all pipelines."""
    return sum(map(Counter, play.pipeline_stats), Counter[str]())


def _ratios(found: Sequence[float], ceilings: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / ceiling for one, ceiling in zip(found, ceilings, strict=True))
