"""azpy's own code for networks against ONNX Runtime: `python benches/net.py`.

Both compute the same random network in fp32 on one thread, called from Python with the same rows. They take turns, and
a figure is the median of the turns, in microseconds of processor time a position. A ratio above 1 says that azpy's own
code is faster.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import safetensors.numpy
import torch

import azpy
from azpy import _core
from azpy.evaluators.net import shape_of
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.learning.export import to_onnx
from azpy.learning.network import Network, to_arrays

NETWORKS = {"connect_four": "4x32", "go": "4x48", "backgammon": "3x256"}
BATCHES = (1, 2, 4, 8, 64)


def seconds(evaluate: Callable[[Any], Any], rows: Any, turn: float) -> float:
    """Processor time of this thread for one call, over a turn of so many seconds."""
    calls, begin = 0, time.thread_time()
    while (spent := time.thread_time() - begin) < turn:
        for _ in range(4):
            evaluate(rows)
        calls += 4
    return spent / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turn", type=float, default=0.05, help="seconds of a turn")
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    torch.manual_seed(0)
    print(f"{'game':14}{'network':9}{'batch':>6}{'ONNX Runtime':>14}{'azpy':>9}{'ratio':>8}   us a position")
    for game, spec in NETWORKS.items():
        start = azpy.make_game(game)
        network = Network.of(start, spec).eval()
        own = _core.Net(json.dumps(shape_of(start, spec)), safetensors.numpy.save(to_arrays(network)))
        theirs = OnnxEvaluator(to_onnx(network), game=start)
        for batch in BATCHES:
            rows = np.random.default_rng(0).integers(0, 2, (batch, *start.obs_shape)).astype(np.float32)
            jobs = (theirs.evaluate_batch, own.evaluate)
            turns = [[seconds(job, rows, given.turn) for job in jobs] for _ in range(given.turns + 1)][1:]
            found = [1e6 * statistics.median(turn) / batch for turn in zip(*turns, strict=True)]
            ratio = statistics.median(their / mine for their, mine in turns)
            print(f"{game:14}{spec:9}{batch:6}{found[0]:14.1f}{found[1]:9.1f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
