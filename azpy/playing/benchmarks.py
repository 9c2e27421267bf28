"""How fast the parts of azpy are on this machine: search, rules, an evaluator, and self-play against its ceiling.

Each function returns figures. Things to compare are measured in turn, in one process. The first turn is a warm-up, the
others give a median and its range.

All functions take `seconds`, the length of each turn, and `repeats`, the number of turns that count.
"""

import platform
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import installed_version
from azpy.evaluators.protocol import Evaluator, rate, repeated
from azpy.game import value_width
from azpy.games.lines import roll
from azpy.playing.selfplay import threads_of_trees
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
            if now - called < 0.01:  # longer calls, so that the cost of a call does not count
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
    options["threads"] = threads_of_trees(settings, evaluator)
    turns: list[dict[str, dict[str, float]]] = []
    bares, ceilings = list[float](), list[float]()
    with (
        Play(start, evaluator, cache_positions=0, **options) as off,
        Play(start, evaluator, cache_positions=200_000, **options) as on,
    ):
        fork = getattr(evaluator, "fork", lambda: evaluator)
        forks = [evaluator, *(fork() for _ in range(settings.pipelines - 1))]  # as self-play has them
        calls = [each.evaluate_batch for each in forks]
        for _ in range(repeats + 1):
            turns.append({"off": off.run(seconds), "on": on.run(seconds)})
            rows = max(1, round(turns[-1]["off"]["rows"] / turns[-1]["off"]["batches"]))
            ceilings.append(rate(calls, rows, start.obs_shape, seconds))
            if bare is not None:
                bares.append(rate([bare.evaluate_batch] * settings.pipelines, rows, start.obs_shape, seconds))
    del turns[0], ceilings[0], bares[:1]  # to warm up
    layout = f"{settings.pipelines} threads, batch {rows}"
    figures = [Figure(f"the model alone, {layout}", "positions/s", tuple(bares))] if bares else []
    above = ("the model alone", _ratios(ceilings, bares)) if bares else ()
    figures.append(Figure(f"the evaluator alone, {layout}", "positions/s", tuple(ceilings), *above))
    for cache in ("off", "on"):
        name, found = f"self-play, cache {cache}", [turn[cache] for turn in turns]
        rates, simulations = (tuple(one[of] / one["seconds"] for one in found) for of in ("rows", "simulations"))
        spent = [(one["seconds_evaluating"], one["seconds_growing"]) for one in found]
        network = tuple(100 * evaluating / (evaluating + growing) for evaluating, growing in spent)
        full = tuple(100 * one["rows"] / one["rows_capacity"] for one in found)
        figures += [
            Figure(name, "positions/s", rates, "the evaluator alone", _ratios(rates, ceilings)),
            Figure(name, "simulations/s", simulations),
            Figure(f"{name}, batches full", "%", full),
            Figure(f"{name}, pipelines in the network", "%", network),
        ]
    return figures


class Play:
    """Self-play that runs for some time now and then, to be measured in a `with` block; finished games are dropped.

    Its arguments are those of `SelfPlay`.
    """

    def __init__(self, start: _core.State, evaluator: Evaluator | Sequence[Evaluator], **options: Any) -> None:
        self._play = _core.SelfPlay(start, evaluator, **options)
        self._pool = ThreadPoolExecutor(1)
        self._taking = self._pool.submit(deque, self._play, 0)
        self._play.pause()

    def run(self, seconds: float) -> dict[str, float]:
        """Plays for about `seconds`, one round at least.

        Returns:
            The changes of `SelfPlay.stats` and of the sums over `SelfPlay.pipeline_stats`, and `seconds` until the last
            pipeline stopped.
        """
        before, begin = self._totals(), time.perf_counter()
        self._play.resume()
        while time.perf_counter() - begin < seconds or self._play.stats["batches"] == before["batches"]:
            if self._taking.done():
                self._taking.result()  # raises
            time.sleep(min(0.01, seconds))
        self._play.pause()
        spent = time.perf_counter() - begin
        after = self._totals()
        return {name: after[name] - before[name] for name in after} | {"seconds": spent}

    def _totals(self) -> dict[str, float]:
        pipelines = self._play.pipeline_stats
        spent = {name: sum(pipeline[name] for pipeline in pipelines) for name in pipelines[0]}
        return dict(self._play.stats) | spent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._play.close()
        self._pool.shutdown()


def _ratios(found: Sequence[float], ceilings: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / ceiling for one, ceiling in zip(found, ceilings, strict=True))
