"""Self-play on a device against the evaluator alone: one line for each evaluator and precision.

    python benches/gpu.py [--device cuda] [--game wall_game] [--network 20x128] [--slots 512] [--seconds 2]

The network has random weights. The figures are medians of turns: rows a second that the evaluator answers alone, in
batches as large as those of self-play; rows a second of self-play without the cache, and their share of that; and how
far the answers are from those of fp32, on positions of random games. What the device does not have is named.
"""

import argparse
import statistics
from typing import Any

from azpy import ReplayBuffer, SelfPlay, UniformEvaluator
from azpy.devices import PRECISIONS
from azpy.errors import AzpyError
from azpy.evaluators.drift import drift, rows_to_compare
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.names import make_position
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.benchmarks import machine, measure_self_play
from azpy.settings.run import combine

_TORCH = ("fp32", "bf16", "fp16")


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cpu, cuda, cuda:N or tensorrt")
    parser.add_argument("--game", default="wall_game")
    parser.add_argument("--network", default="20x128")
    parser.add_argument("--slots", type=int, default=512)
    parser.add_argument("--pipelines", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    chosen = ("game", "network", "device", "slots", "pipelines")
    settings = combine({name: getattr(given, name) for name in chosen})
    start, kind = make_position(given.game), given.device.partition(":")[0]
    network = Network.of(start, given.network).eval()
    model = to_onnx(network)
    buffer = ReplayBuffer(start)
    with SelfPlay(start, UniformEvaluator(), simulations=2, games=32) as games:
        buffer.extend(list(games))
    positions = rows_to_compare(buffer, seed=0)
    exact = OnnxEvaluator(model, game=start)
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores; {given.game}, {given.network}, {given.slots} slots", flush=True)

    def opened(name: str, precision: str) -> Any:
        if name == "onnx":
            return OnnxEvaluator(model, given.device, game=start, precision=precision)
        return TorchEvaluator(network, given.device.replace("tensorrt", "cuda"), precision=precision)

    for name, precision in [("onnx", one) for one in PRECISIONS[kind]] + [("torch", one) for one in _TORCH]:
        try:
            evaluator = opened(name, precision)
        except AzpyError as error:
            print(f"{name:5} {precision}: left out: {error}", flush=True)
            continue
        figures = measure_self_play(start, evaluator, settings, seconds=given.seconds, repeats=given.repeats)
        alone, play = figures[:2]
        rates, share = [statistics.median(figure.runs) for figure in (alone, play)], statistics.median(play.ratios)
        print(
            f"{name:5} {precision}: alone {rates[0]:,.0f} rows/s, self-play {rates[1]:,.0f} ({share:.3f} of it); "
            f"{drift(exact, evaluator, *positions)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
