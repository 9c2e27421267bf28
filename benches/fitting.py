"""How long gradient steps take: alone, and beside another program that keeps one core busy.

    python benches/fitting.py [--game connect_four] [--network 4x32] [--batch-size 128] [--steps 40] [--repeats 5]

Three ways take turns: `parts` is how azpy fits (each thread has its own part of the batch), `bf16` is the same with
--training-precision bf16, where the CPU has instructions for it, and `operations` is how torch divides a step by itself
(all threads share every operation). Medians of --repeats turns, with the least and the most. `drawing` is the part of a
step that draws its batch by playing games again. Where other programs run, compare the CPU's time of all threads.
"""

import argparse
import contextlib
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import torch

import azpy
from azpy.learning import learner
from azpy.learning.learner import Learner, has_bf16
from azpy.machine import usable_cores

_LEAST_PART = learner._LEAST_PART


@contextlib.contextmanager
def neighbour(nice: int | None) -> Iterator[None]:
    """Another process that never rests, at this priority; None for no process."""
    if nice is None:
        yield
        return
    busy = subprocess.Popen(["nice", "-n", str(nice), sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", default="4x32")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    start = azpy.make_game(given.game)
    buffer = azpy.ReplayBuffer(start, max_positions=100_000)
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), simulations=16, games=200) as games:
        for record in games:
            buffer.add(record)
    torch.set_num_threads(usable_cores())
    ways = ["parts", *(["bf16"] if has_bf16(torch.device("cpu")) else []), "operations"]
    precisions = {way: "bf16" if way == "bf16" else "fp32" for way in ways}
    learners = {way: Learner(start, given.network, precision=precisions[way]) for way in ways}
    sampling = {"root_value_weight": 0.25}

    def seconds(way: str) -> tuple[float, float]:
        learner._LEAST_PART = sys.maxsize if way == "operations" else _LEAST_PART
        fitting = learners[way].fit(buffer, given.steps + 1, batch_size=given.batch_size, **sampling)
        next(fitting)  # threads begin, memory is taken
        begin = time.perf_counter(), time.process_time()
        for _ in fitting:
            pass
        return (time.perf_counter() - begin[0]) / given.steps, (time.process_time() - begin[1]) / given.steps

    print(f"torch {torch.__version__}, {usable_cores()} cores, {given.network}, {given.batch_size} rows a step")
    begin = time.process_time()
    for seed in range(given.steps):
        buffer.sample(given.batch_size, seed=seed, **sampling)
    print(f"drawing: {(time.process_time() - begin) / given.steps * 1e3:.2f} ms of the CPU a step")
    medians: dict[tuple[str, str], float] = {}
    for label, nice in (("alone", None), ("beside a busy core", 0), ("beside a busy core of low priority", 19)):
        turns = list(itertools.product(range(given.repeats), learners))
        with neighbour(nice):
            time.sleep(0.5)
            measured = [(way, seconds(way)) for _, way in turns]
        for way in learners:
            found = [wall * 1e3 for name, (wall, _) in measured if name == way]
            cpu = statistics.median(cpu * 1e3 for name, (_, cpu) in measured if name == way)
            medians[way, label] = median = statistics.median(found)
            ratio = median / medians[way, "alone"]
            print(
                f"{label}: {way} {median:.1f} ms a step ({min(found):.1f}..{max(found):.1f}), {ratio:.2f} times alone, "
                f"{given.batch_size / median * 1e3:,.0f} rows/s, {cpu:.1f} ms of the CPU"
            )


if __name__ == "__main__":
    main()
