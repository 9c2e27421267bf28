"""What int8 brings and costs on this CPU: a run's last network in fp32 and in int8, and in torch's bf16.

    python benches/int8.py RUN [--games 4000] [--simulations 100] [--seconds 2] [--repeats 5]

- drift: how far the int8 model is from fp32 on positions of the run's last games that it was not calibrated on
- speed: positions a second by batch size on one core, each taking turns with the others, and self-play of both with
  the run's settings, cache off, over what each reaches alone
- strength: paired games of int8 against fp32 with equal simulations and the settings of matches, from random openings

Needs torch and onnx (extra `train`).
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from azpy import ReplayBuffer
from azpy.evaluators.drift import drift
from azpy.evaluators.int8 import has_int8, to_int8
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import Evaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.names import make_position
from azpy.machine import usable_cores
from azpy.matches.arena import SearchPlayer, play_pairs
from azpy.matches.openings import Book
from azpy.matches.results import MatchResult, Pair
from azpy.playing import benchmarks
from azpy.runs.reader import StoredRun
from azpy.settings.run import Settings, match_search

CALIBRATION, HELD_OUT = 512, 8192
BATCHES = (1, 8, 64, 256)


def rate(evaluator: Evaluator, batch: NDArray[np.float32], seconds: float) -> float:
    """Positions a second."""
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        evaluator.evaluate_batch(batch)
        done += len(batch)
    return done / spent


def speed(evaluators: dict[str, Evaluator], observations: NDArray[np.float32], seconds: float, repeats: int) -> None:
    """Positions a second, one core each, and the ratio to the first of them in the same turn."""
    for rows in BATCHES:
        found: dict[str, list[float]] = {name: [] for name in evaluators}
        for turn in range(repeats + 1):
            for name, evaluator in evaluators.items():
                reached = rate(evaluator, observations[:rows].copy(), seconds)
                if turn:
                    found[name].append(reached)
        for name, runs in found.items():
            ratio = statistics.median(one / first for one, first in zip(runs, found["fp32"], strict=True))
            middle, least, most = statistics.median(runs), min(runs), max(runs)
            said = f"{middle:8,.0f} positions/s ({least:,.0f} to {most:,.0f}), {ratio:.2f} of fp32"
            print(f"batch {rows:3}  {name:10} {said}", flush=True)


def play(run: StoredRun, int8: bytes, fp32: bytes, games: int, simulations: int) -> None:
    """The paired match, with a line now and then."""
    ours, theirs = (
        SearchPlayer(
            OnnxEvaluator(each, game=run.start, threads=usable_cores()), simulations, **match_search(run.settings)
        )
        for each in (int8, fp32)
    )
    book = Book(lambda: make_position(run.settings.game), run.settings.match_opening_plies, seed=0)
    pairs = list[Pair]()
    for pair in play_pairs(book, ours, theirs, games // 2, seed=0):
        pairs.append(pair)
        if len(pairs) % 200 == 0 or len(pairs) == games // 2:
            result = MatchResult.of(pairs)
            low, high = result.elo_interval
            elo = f"{result.elo:+.0f} [{low:+.0f}, {high:+.0f}] Elo"
            print(f"int8 against fp32: {result}, {elo}, {result.distinct} distinct games", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--games", type=int, default=4000)
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    run = StoredRun(given.run)
    settings, checkpoint = run.settings, run.checkpoints()[-1]
    buffer = ReplayBuffer(run.start, max_positions=1_000_000)
    for _, record in run.games(run.sealed_iterations()[-3:]):
        buffer.add(record)
    calibration, *_ = buffer.sample(CALIBRATION, seed=1)
    observations, legal, *_ = buffer.sample(HELD_OUT, seed=2)
    model = run.model(checkpoint)
    begin = time.perf_counter()
    quantized = to_int8(model, calibration)
    spent = time.perf_counter() - begin
    print(f"{settings.game}, {settings.network}, checkpoint {checkpoint}; quantized in {spent:.1f} s")
    print(f"the CPU has int8 instructions: {'yes' if has_int8() else 'no'}")
    fp32, int8 = (OnnxEvaluator(each, game=run.start) for each in (model, quantized))
    found = drift(fp32, int8, observations, legal)
    same = f"best action the same in {found.agreement:.2%}; {found.too_far or 'within its limits'}"
    print(
        f"drift over {HELD_OUT:,} positions: policy {found.policy:.5f} nats, value {found.value:.4f}, {same}",
        flush=True,
    )
    if given.repeats:
        torch.set_num_threads(1)
        bf16 = TorchEvaluator(run.path / f"checkpoints/{checkpoint:06d}", precision="bf16", game=run.start)
        evaluators: dict[str, Evaluator] = {"fp32": fp32, "int8": int8, "torch bf16": bf16}
        speed(evaluators, observations, given.seconds, given.repeats)
        layout = Settings(settings.game, slots=256, simulations=given.simulations, eval_batch=1)
        for name in ("fp32", "int8"):
            turns = {"seconds": given.seconds, "repeats": given.repeats}
            for figure in benchmarks.measure_self_play(run.start, evaluators[name], layout, **turns):
                row = figure.row()
                ratio = "" if row["ratio"] is None else f", {row['ratio']:.3f} of {row['of']}"
                said = f"{row['median']:,.0f} {row['unit']} ({row['min']:,.0f} to {row['max']:,.0f}){ratio}"
                print(f"{name}  {row['name']}: {said}", flush=True)
    if given.games:
        play(run, quantized, model, given.games, given.simulations)


if __name__ == "__main__":
    main()
