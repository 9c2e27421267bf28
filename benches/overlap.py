"""Does the device wait for the host? Self-play on a device that only sleeps, with one pipeline and with two.

    python benches/overlap.py [--repeats 5]

The device takes as long for a row as the host does, and takes batches as a queue: one after another, in the order in
which they came. With one pipeline the times add up, with two a step takes about the longer of them. What is above that
is latency: a batch's way back wakes a thread, and at the end of the run batches get small. The games are the same, bit
for bit.
"""

import argparse
import statistics
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import azpy


class Device:
    """One device that all pipelines share: a batch takes time by its rows, one batch after another."""

    def __init__(self, seconds_a_row: float) -> None:
        self.seconds_a_row, self.busy, self.free, self.lock = seconds_a_row, 0.0, 0.0, threading.Lock()

    def fork(self) -> "Device":
        return self

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        seconds = self.seconds_a_row * rows
        # Not held while the device works: a lock is no queue, whoever is running when it is let go of takes it again.
        with self.lock:
            self.free = max(self.free, time.perf_counter()) + seconds
            self.busy += seconds
            done = self.free
        if seconds:
            time.sleep(max(0.0, done - time.perf_counter()))
        return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)


def play(pipelines: int, device: Device) -> tuple[float, dict[str, float], dict[int, bytes]]:
    """Seconds at work, the totals of all pipelines, and the games."""
    settings: dict[str, Any] = {"slots": 1024, "simulations": 96, "eval_batch": 16, "threads": 1, "seed": 1}
    begin = time.perf_counter()
    with azpy.SelfPlay("connect_four", device, games=1024, pipelines=pipelines, cache_positions=0, **settings) as games:
        records = {record.game_id: record.to_bytes() for record in games}
        seconds = time.perf_counter() - begin
        each_did = games.pipeline_stats
        totals = {name: sum(each[name] for each in each_did) for name in ("rounds", "seconds_growing")}
        totals["rows"] = games.stats["rows"]
    return seconds, totals, records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    ratios: dict[int, list[float]] = {1: [], 2: []}
    rounds = 0.0
    for _ in range(given.repeats):
        _, totals, _ = play(1, Device(0.0))
        host = totals["seconds_growing"]  # as one pipeline has it, undisturbed
        games = []
        for pipelines, found in ratios.items():
            device = Device(host / totals["rows"])
            seconds, done, records = play(pipelines, device)
            games.append(records)
            found.append(seconds / max(device.busy, host))
            rounds = done["rounds"]
        assert games[0] == games[1], "the games must not depend on the pipelines"
    for pipelines, found in ratios.items():
        print(
            f"{pipelines} pipeline(s): a step takes {statistics.median(found):.2f} times the longer of host and device "
            f"({min(found):.2f}..{max(found):.2f})"
        )
    print(f"with 2 pipelines a batch is with the device for {1e3 * device.busy / rounds:.1f} ms")


if __name__ == "__main__":
    main()
