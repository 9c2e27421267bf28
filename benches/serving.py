"""How long do requests wait that share batches? Latency, throughput and deadlines of `azpy.Engine`.

    python benches/serving.py [--concurrent 512] [--eval-batch 8] [--seconds 15]

A small untrained network of Connect Four on the CPU answers, and a batch has room for 256 rows.

So many clients ask at once, and each again as soon as it is answered: a quarter of them for 50 simulations, the others
for 100, 200 and 400, from random early positions. Equal requests should take equal times: p99 over p50 says so for each
size. Then `--hurried` clients ask for answers within 0.1 s, while the others go on.

Throughput is in evaluations a second, over the evaluator's own with full batches, measured before, between and after.
"""

import argparse
import queue
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import numpy as np

import azpy
from azpy.evaluators.protocol import rate
from azpy.learning.export import to_onnx
from azpy.learning.network import Network

SIZES = (50, 100, 200, 400)
ALLOWED = 0.1  # seconds, of hurried clients
Answered = tuple[int, float, float]  # client, when it asked, seconds until it was answered
Ask = Callable[[int], "Future[azpy.SearchResult]"]


def positions(count: int) -> list[azpy.State]:
    rng, found = random.Random(1), list[azpy.State]()
    while len(found) < count:
        state = azpy.make_game("connect_four")
        for _ in range(rng.randrange(8)):  # early ones: late searches are cut short by games that end
            if not state.is_terminal:
                state.play(rng.choice(state.legal_actions()))
        if not state.is_terminal:
            found.append(state)
    return found


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


def spread(name: str, times: list[float]) -> str:
    p50, p99 = np.percentile(times, (50, 99))
    return f"  {name}: p50 {p50:.3f} s, p99 {p99:.3f} s, p99/p50 {p99 / p50:.2f}"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrent", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--hurried", type=int, default=16)
    parser.add_argument("--eval-batch", type=int, default=8)
    given = parser.parse_args()
    network = azpy.OnnxEvaluator(to_onnx(Network.of(azpy.make_game("connect_four"), "2x32")))
    alone = partial(rate, [network.evaluate_batch], 256, network.obs_shape, 2.0)  # full batches and nothing else
    rates = [alone()]
    with azpy.Engine(network, max_requests=4096, eval_batch=given.eval_batch, cache_positions=0) as engine:
        found, did = serve(engine, given.concurrent, requests(engine, 0), given.seconds)
        rates.append(alone())
        hurried, _ = serve(engine, given.concurrent, requests(engine, given.hurried), given.seconds)
    rates.append(alone())
    print(f"{given.concurrent} searches at once, {len(found)} asked for in {did['seconds']:.1f} s")
    for index, size in enumerate(SIZES):
        print(spread(f"{size} simulations", [took for client, _, took in found if client % len(SIZES) == index]))
    done, reached = did["rows"] / did["seconds"], statistics.median(rates)
    print(
        f"  {done:,.0f} evaluations/s in batches of {did['rows'] / did['batches']:.0f}, {done / reached:.2f} of the "
        f"{reached:,.0f} of the evaluator alone"
    )
    times = [took for client, _, took in hurried if client < given.hurried]
    late = [1e3 * (took - ALLOWED) for took in times if took > ALLOWED]
    print(spread(f"{given.hurried} clients that want answers in {ALLOWED} s", times))
    print(f"  {len(late)} of {len(times)} late, by {max(late, default=0.0):.1f} ms at most")


if __name__ == "__main__":
    main()
