"""What a setting of learning brings on the frozen records of a run: losses on games that were held out.

    python benches/frozen.py RECORDS SETTINGS [SETTINGS ...] [--steps 800] [--seeds 5] [--iterations 20-57]
        [--held-out 58-61] [--rows 16384] [--out FILE] [--threads 1]

RECORDS is a run folder. SETTINGS are those of learning and of the network, such as "network=4x48+pool&batch_size=256";
"" are the run's own. Each seed fits an untrained network with each of them to the same records for so many steps, and
the learning rate falls along a cosine. Networks that learn from the same games are compared by what they say of later
games. What they would play themselves is not asked: settings of self-play, of the window, `passes` and `schedule` have
no effect.

The columns are means over the seeds, with the standard error of the difference to the first SETTINGS, seed by seed.
--out keeps what is done, and the same command goes on from there.

policy: cross-entropy of the search's policy, in nats; `excess` is what it exceeds the policy's own entropy by.
top: share of rows in which the network's first action is the search's.
value: mean squared error of the outcome; `explained` is 1 - variance(outcome - value) / variance(outcome), 1 at best
and 0 for a network that knows nothing of the outcome.
cpu: the time of all threads in seconds.
"""

import argparse
import functools
import json
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import azpy
from azpy.matches.query import parse_query
from azpy.runs.reader import StoredRun
from azpy.settings.run import Settings, checked, combine
from azpy.training.fitting import learner_of, sampling_of

_BATCH = 1024
_COLUMNS = ("policy", "excess", "top", "value", "explained", "cpu")


def span(text: str) -> list[int]:
    """The iterations of "20-57"."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def settings_of(run: StoredRun, text: str, seed: int) -> Settings:
    """The run's settings with those of a text."""
    changes = parse_query(text, functools.partial(checked, typed=True)) if text else {}
    return combine(vars(run.settings) | changes | {"seed": seed, "deterministic": False})


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
    error, spread = outcomes.astype(np.float64) - values, float(outcomes.var(dtype=np.float64))
    explained = 1.0 - float(error.var()) / spread if spread > 0 else float("nan")
    found = {"policy": float(cross), "excess": float(cross - entropy), "top": float(top)}
    return found | {"value": float((error**2).mean()), "explained": explained}


def games_of(run: StoredRun, iterations: Sequence[int]) -> azpy.ReplayBuffer:
    """All games of these iterations."""
    buffer = azpy.ReplayBuffer(run.start, max_positions=2**40)
    buffer.extend(record for _, record in run.games(iterations))
    return buffer


def rows_of(run: StoredRun, iterations: Sequence[int], rows: int) -> tuple[Any, ...]:
    """Rows of these iterations, drawn once without symmetries: observations, legal, policies and outcomes."""
    return games_of(run, iterations).sample(rows, seed=0, symmetries=False)


def fitted(settings: Settings, start: azpy.State, buffer: azpy.ReplayBuffer, steps: int, held_out: Any) -> Any:
    """The figures of a network that was fitted to the buffer's games."""
    learner, begin = learner_of(settings, start), time.process_time()
    sampling = sampling_of(settings)
    for _ in learner.fit(buffer, steps, schedule=lambda done: 0.525 + 0.475 * math.cos(math.pi * done), **sampling):
        pass
    learner.set_statistics(buffer, **sampling)
    cpu = time.process_time() - begin
    observations, legal, policies, outcomes = held_out
    with torch.no_grad():
        parts = [learner.averaged(torch.from_numpy(observations[i : i + _BATCH])) for i in range(0, len(legal), _BATCH)]
    logits, values = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
    return measured(logits, values, legal, policies, outcomes) | {"cpu": cpu}


def table(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """One line for each SETTINGS; the first is the base of the differences."""
    base = next(iter(found.values()))
    lines = ["seeds " + "".join(f"{name:>18}" for name in _COLUMNS)]
    for text, rows in found.items():
        line = f"{len(rows):5} "
        for name in _COLUMNS:
            differences = [row[name] - other[name] for row, other in zip(rows, base, strict=False)]
            error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
            line += f"{statistics.mean(row[name] for row in rows):10.4f} ±{error:.4f}"
        lines.append(f"{line}  {text or 'the settings of the run'}")
    return lines


def main() -> None:
    """Fits, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, metavar="RECORDS")
    parser.add_argument("settings", nargs="+", metavar="SETTINGS")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=span, metavar="FIRST-LAST")
    parser.add_argument("--held-out", type=span, metavar="FIRST-LAST")
    parser.add_argument("--rows", type=int, default=16_384)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    run = StoredRun(given.records)
    sealed = run.sealed_iterations()
    learned, held_out = given.iterations or sealed[:-4], given.held_out or sealed[-4:]
    buffer = functools.cache(lambda: games_of(run, learned))
    rows = rows_of(run, held_out, given.rows)
    what = [str(given.records.resolve()), learned[0], learned[-1], held_out[0], held_out[-1], given.steps, given.rows]
    done = dict[str, dict[str, float]]()
    if given.out is not None and given.out.exists():
        done = dict(json.loads(line) for line in given.out.read_text().splitlines())
    found: dict[str, list[dict[str, float]]] = {text: [] for text in given.settings}
    for seed in range(given.seeds):
        for text in given.settings:
            key = json.dumps([*what, text, seed])
            if key not in done:
                settings = settings_of(run, text, seed)
                done[key] = fitted(settings, run.start, buffer(), given.steps, rows)
                if given.out is not None:
                    with given.out.open("a") as file:
                        file.write(json.dumps([key, done[key]]) + "\n")
            found[text].append(done[key])
        print(f"after {seed + 1} seeds, {given.steps} steps:", *table(found), sep="\n", flush=True)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
