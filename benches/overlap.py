"""Does the device wait for the host? Self-play on a device that only sleeps, with one pipeline and with two.

    python benches/overlap.py [--repeats 5]

The device takes batches as a queue, one after another in the order in which they came, and takes once or twice as long
for a row as the host does. With one pipeline the times add up. With two a step takes as long as the device when that is
twice the host's time. When both take the same, a pipeline has no slack: its own trees and batch take as long as two
batches, so that uneven rounds, threads that wake up late and cores that are shared show at once. The games are the
same, bit for bit.
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
    ratios: dict[tuple[int, int], list[float]] = {(times, pipelines): [] for times in (1, 2) for pipelines in (1, 2)}
    milliseconds = 0.0
    for _ in range(given.repeats):
        _, totals, games = play(1, Device(0.0))
        host = totals["seconds_growing"]  # as one pipeline has it, undisturbed
        for (times, pipelines), found in ratios.items():
            device = Device(times * host / totals["rows"])
            seconds, done, again = play(pipelines, device)
            assert again == games, "the games must not depend on the pipelines or the device"
            found.append(seconds / max(device.busy, host))
            milliseconds = 1e3 * device.busy / done["rounds"]
    for (times, pipelines), found in ratios.items():
        print(
            f"device {times} x host, {pipelines} pipeline(s): a step takes {statistics.median(found):.2f} times the "
            f"longer of both ({min(found):.2f}..{max(found):.2f})"
        )
    print(f"in the last of them a batch was with the device for {milliseconds:.1f} ms")


if __name__ == "__main__":
    main()
