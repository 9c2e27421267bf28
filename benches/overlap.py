"""Does the device wait for the host? Self-play on a device that only sleeps, with one pipeline and with two.

    python benches/overlap.py [--repeats 5]

The device takes as long for a row as the host does, one batch at a time. With one pipeline the times add up; with two a
step takes about the longer of them. The games are the same, bit for bit.
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
        self.seconds_a_row, self.busy, self.lock = seconds_a_row, 0.0, threading.Lock()

    def fork(self) -> "Device":
        return self

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        with self.lock:
            begin = time.perf_counter()
            if self.seconds_a_row:
                time.sleep(self.seconds_a_row * rows)
            self.busy += time.perf_counter() - begin
            return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)


def play(pipelines: int, device: Device) -> tuple[float, dict[str, float], dict[int, bytes]]:
    settings: dict[str, Any] = {"slots": 256, "simulations": 300, "eval_batch": 16, "threads": 1, "seed": 1}
    begin = time.perf_counter()
    with azpy.SelfPlay("connect_four", device, games=256, pipelines=pipelines, cache_positions=0, **settings) as games:
        records = {record.game_id: record.to_bytes() for record in games}
        stats = games.stats
    return time.perf_counter() - begin, stats, records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    _, stats, _ = play(1, Device(0.0))
    seconds_a_row = stats["seconds_growing"] / stats["rows"]
    ratios: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(given.repeats):
        games, host = [], 0.0
        for pipelines, found in ratios.items():
            device = Device(seconds_a_row)
            seconds, stats, records = play(pipelines, device)
            games.append(records)
            host = host or stats["seconds_growing"]  # as one pipeline has it, undisturbed
            found.append(seconds / max(device.busy, host))
        assert games[0] == games[1], "the games must not depend on the pipelines"
    for pipelines, found in ratios.items():
        print(
            f"{pipelines} pipeline(s): a step takes {statistics.median(found):.2f} times the longer of host and device "
            f"({min(found):.2f}..{max(found):.2f})"
        )


if __name__ == "__main__":
    main()
