"""How well networks predict games that they did not learn from: losses on the frozen records of a run.

    python benches/heldout.py RECORDS MODEL [MODEL ...] [--iterations 40-46] [--rows 16384] [--json]

RECORDS is a run folder. A MODEL is a run folder, a checkpoint or a model file of the same game. Give records that none
of the models learned from: those of a run with another seed, or of iterations after a model's checkpoint. --iterations
names the sealed iterations to read, by default the last five. All models get the same rows, drawn once without
symmetries, so differences between models are exact for these rows.

policy: cross-entropy of the search's policy, in nats; `excess` is what it exceeds the policy's own entropy by.
top: share of rows in which the network's first action is the search's.
value: mean squared error of the outcome; `explained` is 1 - variance(outcome - value) / variance(outcome), 1 at best
and 0 for a network that knows nothing of the outcome.
search: the same two of the search's value at the root, for comparison with the network's value.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import azpy
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.machine import usable_cores
from azpy.runs.reader import StoredRun

_BATCH = 256


def measured(
    logits: NDArray[np.float32],
    values: NDArray[np.float32],
    legal: NDArray[np.bool_],
    policies: NDArray[np.float32],
    outcomes: NDArray[np.float32],
) -> dict[str, float]:
    """The figures of a network's answers, logits [N, A] and values [N]."""
    masked = np.where(legal, logits.astype(np.float64), -np.inf)
    masked -= masked.max(axis=1, keepdims=True)
    logs = np.where(legal, masked - np.log(np.exp(masked).sum(axis=1, keepdims=True)), 0.0)
    cross = -(policies * logs).sum(axis=1).mean()
    entropy = -(policies * np.log(np.where(policies > 0, policies, 1.0))).sum(axis=1).mean()
    top = (np.where(legal, logits, -np.inf).argmax(axis=1) == policies.argmax(axis=1)).mean()
    return {"policy": float(cross), "excess": float(cross - entropy), "top": float(top)} | of_values(values, outcomes)


def of_values(values: NDArray[np.float32], outcomes: NDArray[np.float32]) -> dict[str, float]:
    """The figures of predictions [N] of outcomes [N]."""
    error, spread = outcomes.astype(np.float64) - values, float(outcomes.var(dtype=np.float64))
    explained = 1.0 - float(error.var()) / spread if spread > 0 else float("nan")
    return {"value": float((error**2).mean()), "explained": explained}


def rows_of(run: StoredRun, iterations: Sequence[int], rows: int) -> tuple[Any, ...]:
    """Rows of these iterations: observations, legal, policies, outcomes, and the values of the search."""
    buffer = azpy.ReplayBuffer(run.start, max_positions=2**40)
    buffer.extend(record for _, record in run.games(iterations))
    drawn = buffer.sample(rows, seed=0, symmetries=False)
    searched = buffer.sample(rows, seed=0, symmetries=False, root_value_weight=1.0)[3]
    return *drawn, searched


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, metavar="RECORDS")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--iterations", metavar="FIRST-LAST")
    parser.add_argument("--rows", type=int, default=16_384)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, and nothing else")
    given = parser.parse_args()
    run = StoredRun(given.records)
    iterations = run.sealed_iterations()[-5:]
    if given.iterations is not None:
        first, _, last = given.iterations.partition("-")
        iterations = list(range(int(first), int(last or first) + 1))
    observations, legal, policies, outcomes, searched = rows_of(run, iterations, given.rows)
    found = {"search": of_values(searched, outcomes)}
    for path in given.models:
        evaluator = OnnxEvaluator(path, game=run.start, threads=usable_cores())
        answers = [evaluator.evaluate_batch(observations[i : i + _BATCH]) for i in range(0, given.rows, _BATCH)]
        logits, values = (np.concatenate(part) for part in zip(*answers, strict=True))
        found[str(path)] = measured(logits, values, legal, policies, outcomes)
    if given.json:
        print(json.dumps(found))
        return
    names = ("policy", "excess", "top", "value", "explained")
    print(f"{given.rows:,} rows of iterations {iterations[0]} to {iterations[-1]} of {given.records}")
    print("".join(f"{name:>11}" for name in names))
    for name, row in found.items():
        print("".join(f"{row[key]:11.4f}" if key in row else " " * 11 for key in names), f" {name}")


if __name__ == "__main__":
    main()
