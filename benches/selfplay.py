"""Pipeline efficiency: positions evaluated in self-play over what the same model reaches with nothing else to do.

    python benches/selfplay.py [--seconds 5] [--repeats 5] [--slots 128] [--simulations 100] [--network 5x64]

The ceiling is ONNX Runtime alone: as many threads as pipelines, each with its own calls of the same model at the
batch size that self-play had, on the same cores, in the same run, in turn with self-play. The cache is off, then on
(where simulations and evaluations differ). Medians of all repeats.
"""

import argparse
import statistics
import threading
import time

import numpy as np

import azpy
from azpy.network import Network, to_onnx
from azpy.onnx import OnnxEvaluator


def ceiling(evaluator: OnnxEvaluator, threads: int, rows: int, shape: tuple[int, ...], seconds: float) -> float:
    """Positions a second of `threads` loops that do nothing but evaluate."""
    done = [0] * threads
    until = time.perf_counter() + seconds

    def loop(index: int, mine: OnnxEvaluator) -> None:
        observations = np.random.default_rng(index).integers(0, 2, (rows, *shape)).astype(np.float32)
        while time.perf_counter() < until:
            mine.evaluate_batch(observations)
            done[index] += rows

    begin = time.perf_counter()
    loops = [threading.Thread(target=loop, args=(index, evaluator.fork())) for index in range(threads)]
    for thread in loops:
        thread.start()
    for thread in loops:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


def measure(play: azpy.SelfPlay, seconds: float) -> dict[str, float]:
    """What self-play did in some seconds; finished games are taken out as they come."""
    play.resume()
    before, begin = dict(play.stats), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        next(play)
    after, elapsed = dict(play.stats), time.perf_counter() - begin
    play.pause()
    delta = {name: after[name] - before[name] for name in after}
    return delta | {"seconds": elapsed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", default="5x64")
    parser.add_argument("--slots", type=int, default=128)
    parser.add_argument("--pipelines", type=int, default=2)
    parser.add_argument("--eval-batch", type=int, default=8)
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()

    state = azpy.make_game(given.game)
    model = to_onnx(Network(state.obs_shape, state.num_actions, given.network))
    evaluator = OnnxEvaluator(model, game=state)
    settings = {name: getattr(given, name) for name in ("slots", "pipelines", "eval_batch", "simulations")}
    plays = {
        "cache off": azpy.SelfPlay(given.game, evaluator, cache_positions=0, **settings),
        "cache on": azpy.SelfPlay(given.game, evaluator, cache_positions=200_000, **settings),
    }
    for play in plays.values():
        play.pause()
    results: dict[str, list[dict[str, float]]] = {name: [] for name in plays}
    ceilings: list[float] = []
    for repeat in range(given.repeats + 1):
        taken = {name: measure(play, given.seconds) for name, play in plays.items()}
        rows = max(1, round(taken["cache off"]["rows"] / taken["cache off"]["batches"]))
        reached = ceiling(evaluator, given.pipelines, rows, state.obs_shape, given.seconds)
        if repeat:  # the first round warms up
            ceilings.append(reached)
            for name, one in taken.items():
                results[name].append(one)
    print(f"{given.game}, {given.network}, {settings}")
    print(
        f"ONNX Runtime alone, {given.pipelines} threads, batch {rows}: {statistics.median(ceilings):,.0f} positions/s"
    )
    for name, runs in results.items():
        rate = {key: statistics.median(run[key] / run["seconds"] for run in runs) for key in runs[0]}
        ratios = [run["rows"] / run["seconds"] / top for run, top in zip(runs, ceilings, strict=True)]
        hits = rate["cache_hits"] / max(1, rate["cache_hits"] + rate["evaluations"])
        print(
            f"self-play, {name}: {rate['rows']:,.0f} positions evaluated/s, {rate['simulations']:,.0f} simulations/s, "
            f"{rate['games'] * 3600:,.0f} games/h, batches {rate['rows'] / rate['rows_capacity']:.0%} full, "
            f"cache hits {hits:.0%}; of the ceiling {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f}..{max(ratios):.3f})"
        )
    for play in plays.values():
        play.close()


if __name__ == "__main__":
    main()
