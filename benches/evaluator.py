"""The batched path with an evaluator that costs nothing: what the host can feed, in leaves a second.

    python benches/evaluator.py [--trees 64] [--eval-batch 8] [--simulations 800] [--threads 2] [--repeats 7]

A Python evaluator returns zeros, so the time is descending, encoding, one call a batch, expanding and ascending. Also
the memory of one large tree, and whether a thousand searches leave memory where it was.
"""

import argparse
import resource
import statistics
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import azpy


class Zeros:
    """Replies without looking."""

    def __init__(self, num_actions: int, rows: int) -> None:
        self.logits, self.values = np.zeros((rows, num_actions), np.float32), np.zeros(rows, np.float32)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        return self.logits[:rows], self.values[:rows]


def resident() -> int:
    """Bytes of resident memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--trees", type=int, default=64)
    parser.add_argument("--eval-batch", type=int, default=8)
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    start = azpy.make_game(given.game)
    zeros = Zeros(start.num_actions, given.trees * given.eval_batch)

    search = azpy.VectorSearch([start] * given.trees, zeros, eval_batch=given.eval_batch, threads=given.threads)
    rates = []
    for repeat in range(given.repeats + 1):
        for index in range(given.trees):
            search.replace(index, start)
        rows, begin = search.stats["rows"], time.perf_counter()
        search.run(given.simulations)
        if repeat:
            rates.append((search.stats["rows"] - rows) / (time.perf_counter() - begin))
    print(
        f"{given.trees} trees x {given.eval_batch} leaves, {given.threads} threads, {given.simulations} simulations: "
        f"{statistics.median(rates):,.0f} leaves/s ({min(rates):,.0f}..{max(rates):,.0f})"
    )

    uniform = azpy.Search(azpy.UniformEvaluator(), eval_batch=1)
    for simulations in (800, 100_000):
        rates = []
        for _ in range(given.repeats + 1):
            begin = time.perf_counter()
            repeats = max(1, 80_000 // simulations)
            for _ in range(repeats):
                result = uniform.run(start, simulations)
            rates.append(repeats * simulations / (time.perf_counter() - begin))
        bytes_each = result.stats["memory_bytes"] / simulations
        print(
            f"one tree, evaluator in Rust, 1 thread, eval batch 1, {simulations} simulations: "
            f"{statistics.median(rates[1:]):,.0f} simulations/s, {bytes_each:.0f} bytes a simulation"
        )

    seen = []
    for _ in range(1000):
        azpy.Search(zeros, simulations=2000).run(start)
        seen.append(resident())
    print(
        "resident memory after 100, 500 and 1,000 searches: "
        + ", ".join(f"{seen[n - 1] / 2**20:.1f} MiB" for n in (100, 500, 1000))
    )


if __name__ == "__main__":
    main()
