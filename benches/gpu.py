"""What a GPU or OpenVINO brings, in some minutes: a row for each evaluator and precision.

    python benches/gpu.py [--device cuda] [--game wall_game] [--network 20x128] [--slots 512] [--seconds 2]
                          [--eval-batch 1] [--json FILE]

The network has random weights. Of each evaluator:

- far: how far its logits and values are from those of ONNX Runtime on the CPU in fp32, in batches of each size
  (the largest difference, in parts of the largest logit), and over positions of random games.
- us: microseconds a batch of each size, of one evaluator and of two that take turns.
- self-play: rows/s without the cache, their share of the evaluator alone, and the share of the pipelines' time in the
  network. 280,000 rows/s is the figure to beat for a 20x128 network on the 8x8 Wall Game.

What cannot be had is named.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn import BatchNorm2d

from azpy import ReplayBuffer, SelfPlay, UniformEvaluator
from azpy.devices import BUCKETS
from azpy.evaluators.drift import drift, rows_to_compare
from azpy.evaluators.int8 import to_int8
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import first_line, rate
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.benchmarks import machine, measure_self_play
from azpy.settings.run import Settings, combine

_SETTINGS = ("game", "network", "device", "slots", "pipelines", "eval_batch")


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cpu, cuda, cuda:N, tensorrt, webgpu or openvino")
    parser.add_argument("--game", default="wall_game")
    parser.add_argument("--network", default="20x128")
    parser.add_argument("--slots", type=int, default=512)
    parser.add_argument("--pipelines", type=int, default=2)
    parser.add_argument("--eval-batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    settings = combine({name: getattr(given, name) for name in _SETTINGS})
    start = make_game(given.game)
    network = Network.of(start, given.network).eval()
    for part in network.modules():  # an untrained block ends in zeros, with which a GPU is faster
        if isinstance(part, BatchNorm2d):
            part.weight.data.fill_(0.4)
    model = to_onnx(network)
    buffer = ReplayBuffer(start)
    with SelfPlay(start, UniformEvaluator(), simulations=2, games=32) as games:
        buffer.extend(list(games))
    positions = rows_to_compare(buffer, seed=0)
    exact = OnnxEvaluator(model, game=start)
    found: dict[str, Any] = {"machine": machine(), "settings": vars(given) | {"json": None}, "rows": {}}
    cpu = found["machine"]
    print(f"{cpu['cpu']}, {cpu['cores']} cores; {given.game}, {given.network}, {given.slots} slots", flush=True)
    first = settings.all_devices[0].without_tensorrt
    device = str(first) if first.kind == "cuda" else "cpu"  # of torch

    def torch_as(precision: str, **options: Any) -> Callable[[], Any]:
        return lambda: TorchEvaluator(network, device, precision=precision, **options)

    makers: dict[str, Callable[[], Any]] = {
        "onnx fp32": lambda: OnnxEvaluator(model, given.device, game=start),
        "onnx bf16": lambda: OnnxEvaluator(model, given.device, game=start, precision="bf16"),
        "onnx int8, CPU": lambda: OnnxEvaluator(to_int8(model, positions[0]), game=start),
        "torch fp32": torch_as("fp32", buckets=()),
        "torch bf16": torch_as("bf16", buckets=()),
        "torch bf16, graphs": torch_as("bf16"),
        "torch fp16, graphs": torch_as("fp16"),
    }
    rows = found["rows"]
    for name, make in makers.items():
        try:
            row = _measured(make(), exact, positions, settings, given)
        except Exception as error:  # what is left is measured all the same
            print(f"{name}: left out: {first_line(error)}", flush=True)
            continue
        rows[name] = row
        if given.json is not None:
            given.json.write_text(json.dumps(found, indent=2, default=str))
        times = ", ".join(f"{count}: {one:,.0f} and {two:,.0f}" for count, (one, two) in row["us"].items())
        print(
            f"{name}: self-play {row['self_play']:,.0f} rows/s ({row['share']:.3f} of {row['alone']:,.0f} alone, "
            f"{row['busy']:.0f} % in the network)\n  us a batch: {times}\n  far: {row['far']:.1e}; {row['drift']}",
            flush=True,
        )


def _measured(evaluator: Any, exact: Any, positions: Any, settings: Settings, given: Any) -> dict[str, Any]:
    """The figures of a row."""
    observations, obs_shape = positions[0], exact.obs_shape
    far, times, calls = 0.0, {}, [each.evaluate_batch for each in (evaluator, evaluator.fork())]
    for rows in BUCKETS:
        batch = np.resize(observations, (rows, *obs_shape))
        (logits, values), (ours, our_values) = exact.evaluate_batch(batch), evaluator.evaluate_batch(batch)
        far = max(far, float(np.abs(logits - ours).max() / np.abs(logits).max()))
        far = max(far, float(np.abs(values - our_values).max()))
        rates = [rate(some, rows, obs_shape, given.seconds / 8) for some in (calls[:1], calls)]
        times[rows] = tuple(1e6 * rows / each for each in rates)
    figures = measure_self_play(
        make_game(given.game), evaluator, settings, seconds=given.seconds, repeats=given.repeats
    )
    alone, play, _, _, busy = figures[:5]
    return {
        "alone": statistics.median(alone.runs),
        "self_play": statistics.median(play.runs),
        "share": statistics.median(play.ratios),
        "busy": statistics.median(busy.runs),
        "us": times,
        "far": far,
        "drift": str(drift(exact, evaluator, *positions)),
    }


if __name__ == "__main__":
    main()
