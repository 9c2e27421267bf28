"""How long do requests wait that share batches? Latency, throughput and deadlines of `azpy.Engine`.

    python benches/serving.py [PART ...] [--concurrent 512] [--eval-batch 8] [--seconds 15]

A small untrained network of Connect Four on the CPU answers, and a batch has room for 256 rows.

crowd   So many clients ask at once, and each again as soon as it is answered: a quarter of them for 50 simulations,
        the others for 100, 200 and 400, from random early positions. Equal requests should take equal times: p99 over
        p50 says so for each size. Then `--hurried` clients ask for answers within 0.1 s, while the others go on.
games   256 and then 1,000 games that keep their trees ask for 100 simulations a move at once.
beside  64 clients ask for 100 simulations of 9x9 Go, without a network, while one analysis reports every 0.05 s
        on a tree of `--tree-mb`. The ways take turns: no analysis, and reports that tell less and less.

Throughput is in evaluations a second, over the evaluator's own with full batches, measured before, between and after.
"""

import argparse
import itertools
import queue
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

import azpy
from azpy.learning.export import to_onnx
from azpy.learning.network import Network

SIZES = (50, 100, 200, 400)
ALLOWED = 0.1  # seconds, of hurried clients
Answered = tuple[int, float, float]  # client, when it asked, seconds until it was answered
Ask = Callable[[int], "Future[azpy.SearchResult]"]


def positions(count: int, game: str = "connect_four") -> list[azpy.State]:
    rng, found = random.Random(1), list[azpy.State]()
    while len(found) < count:
        state = azpy.make_game(game)
        for _ in range(rng.randrange(8)):  # early ones: late searches are cut short by games that end
            if not state.is_terminal:
                state.play(rng.choice(state.legal_actions()))
        if not state.is_terminal:
            found.append(state)
    return found


def evaluator() -> azpy.OnnxEvaluator:
    return azpy.OnnxEvaluator(to_onnx(Network.of(azpy.make_game("connect_four"), "2x32")))


def rate_alone(network: azpy.OnnxEvaluator, rows: int = 256, seconds: float = 2.0) -> float:
    """Evaluations a second of full batches and nothing else."""
    observations = np.random.default_rng(1).integers(0, 2, (rows, *positions(1)[0].obs_shape)).astype(np.float32)
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        network.evaluate_batch(observations)
        done += rows
    return done / (time.perf_counter() - begin)


def serve(engine: azpy.Engine, clients: int, ask: Ask, seconds: float) -> tuple[list[Answered], dict[str, float]]:
    """Has clients ask and ask again; the answers to what was asked in so many seconds, and what was done in them."""
    answered = queue.SimpleQueue[Answered]()

    def again(client: int) -> None:
        begin = time.perf_counter()

        def tell(future: "Future[azpy.SearchResult]") -> None:
            future.result()
            answered.put((client, begin, time.perf_counter() - begin))

        ask(client).add_done_callback(tell)

    for client in range(clients):
        again(client)
    seen = 0
    while seen < 2 * clients:  # the crowd of the start spreads
        again(answered.get()[0])
        seen += 1
    settled, before, found = time.perf_counter(), engine.stats, list[Answered]()
    over, after = settled + seconds, dict[str, float]()
    waiting = set(range(clients))  # for what was asked before the end; all go on asking until it is there
    while waiting:
        one = answered.get()
        if settled <= one[1] < over:
            found.append(one)
        if one[1] + one[2] > over:
            waiting.discard(one[0])
            after = after or engine.stats | {"seconds": time.perf_counter() - settled}
        again(one[0])
    for _ in range(clients):
        answered.get()
    return found, {name: after[name] - before.get(name, 0.0) for name in ("batches", "rows", "seconds")}


def percentiles(times: list[float]) -> tuple[float, float]:
    p50, p99 = np.percentile(times, (50, 99))
    return float(p50), float(p99)


def spread(name: str, times: list[float]) -> str:
    p50, p99 = percentiles(times)
    return f"  {name}: p50 {p50:.3f} s, p99 {p99:.3f} s, p99/p50 {p99 / p50:.2f}"


def throughput(did: dict[str, float], rates: list[float]) -> str:
    rate, reached = did["rows"] / did["seconds"], statistics.median(rates)
    return (
        f"  {rate:,.0f} evaluations/s in batches of {did['rows'] / did['batches']:.0f}, {rate / reached:.2f} of the "
        f"{reached:,.0f} of the evaluator alone"
    )


def requests(engine: azpy.Engine, hurried: int) -> Ask:
    """Asks from random positions: the first `hurried` clients within 0.1 s, the others for simulations."""
    states, asked = positions(1000), 0

    def ask(client: int) -> "Future[azpy.SearchResult]":
        nonlocal asked
        asked += 1
        state = states[asked % len(states)]
        if client < hurried:
            return engine.submit(state, seconds=ALLOWED, seed=asked)
        return engine.submit(state, SIZES[client % len(SIZES)], seed=asked)

    return ask


def crowd(given: argparse.Namespace) -> None:
    network = evaluator()
    rates = [rate_alone(network)]
    with azpy.Engine(network, max_requests=4096, eval_batch=given.eval_batch, cache_positions=0) as engine:
        found, did = serve(engine, given.concurrent, requests(engine, 0), given.seconds)
        rates.append(rate_alone(network))
        hurried, _ = serve(engine, given.concurrent, requests(engine, given.hurried), given.seconds)
    rates.append(rate_alone(network))
    print(f"crowd: {given.concurrent} searches at once, {len(found)} asked for in {did['seconds']:.1f} s")
    for index, size in enumerate(SIZES):
        print(spread(f"{size} simulations", [took for client, _, took in found if client % len(SIZES) == index]))
    print(throughput(did, rates))
    times = [took for client, _, took in hurried if client < given.hurried]
    late = [1e3 * (took - ALLOWED) for took in times if took > ALLOWED]
    print(spread(f"{given.hurried} clients that want answers in {ALLOWED} s", times))
    print(f"  {len(late)} of {len(times)} late, by {max(late, default=0.0):.1f} ms at most")


def games(given: argparse.Namespace) -> None:
    for count in (256, 1000):
        network = evaluator()
        rates = [rate_alone(network)]
        with azpy.Engine(network, max_requests=4096, eval_batch=given.eval_batch, cache_positions=0) as engine:
            starts = positions(count)
            playing = [engine.game(state, seed=seed) for seed, state in enumerate(starts)]

            def ask(
                client: int, engine: azpy.Engine = engine, playing: list[azpy.EngineGame] = playing
            ) -> "Future[azpy.SearchResult]":
                game = playing[client]
                if game.num_played:
                    game.undo()  # for ever an early position, so that all requests are equal
                else:
                    game.play(game.state.legal_actions()[0])
                return game.search(100)

            found, did = serve(engine, count, ask, given.seconds)
        rates.append(rate_alone(network))
        print(f"games: {count} at once, {len(found)} moves asked for in {did['seconds']:.1f} s")
        print(spread("100 simulations", [took for _, _, took in found]))
        print(throughput(did, rates))


def beside(given: argparse.Namespace) -> None:
    ways: dict[str, dict[str, Any] | None] = {
        "no analysis": None,
        "errors and all lines": {"standard_errors": True},
        "all lines": {},
        "one line": {"lines": 1},
    }
    states, reports = itertools.cycle(positions(1000, "go(size=9)")), Counter[str]()
    times: dict[str, list[float]] = {name: [] for name in ways}
    with azpy.Engine(azpy.UniformEvaluator(), max_requests=4096, eval_batch=given.eval_batch) as engine:
        game = engine.game(azpy.make_game("go(size=9)"))
        while (tree := game.search(20_000).result().stats["memory_bytes"] / 1e6) < given.tree_mb:
            pass
        for turn in range(given.rounds):
            for name in random.Random(turn).sample(sorted(ways), len(ways)):
                pending = None
                if (told := ways[name]) is not None:
                    pending = game.search(
                        2**32 - 1,
                        priority="analysis",
                        on_report=lambda _, name=name: reports.update([name]),
                        report_every=0.05,
                        **told,
                    )
                found, _ = serve(engine, 64, lambda _: engine.submit(next(states), 100), given.seconds / 4)
                times[name] += [took for _, _, took in found]
                if pending is not None:
                    pending.stop()
                    pending.result()
    print(f"beside: 64 clients beside an analysis of a tree of {tree:,.0f} MB at first")
    for name, seconds in times.items():
        late = f"p99.9 {np.percentile(seconds, 99.9):.3f} s, most {max(seconds):.3f} s"
        print(f"{spread(name, seconds)}, {late}; {len(seconds)} requests, {reports[name]} reports")


def main() -> None:
    parts = {part.__name__: part for part in (crowd, games, beside)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all by default")
    parser.add_argument("--concurrent", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--hurried", type=int, default=16)
    parser.add_argument("--eval-batch", type=int, default=8)
    parser.add_argument("--tree-mb", type=float, default=1000.0, help="of the analysis")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each way of the analysis")
    given = parser.parse_args()
    for name in given.parts or parts:
        parts[name](given)


if __name__ == "__main__":
    main()
