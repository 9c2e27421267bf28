"""What a setting of learning brings on the frozen records of a run: losses on games that were held out.

    python benches/frozen.py RECORDS SETTINGS [SETTINGS ...] [--steps 800] [--seeds 5] [--iterations 20-57]
        [--held-out 58-61] [--rows 16384] [--out FILE] [--threads 1]

RECORDS is a run folder. SETTINGS are those of learning and of the network, such as "network=4x48+pool&batch_size=256";
"" are the run's own. Each seed fits an untrained network with each of them to the same records for so many steps, and
the learning rate falls along a cosine. Networks that learn from the same games are compared by what they say of later
games. What they would play themselves is not asked: settings of self-play, of the window, `passes` and `schedule` have
no effect.

The columns are those of benches/heldout.py, as means over the seeds with the standard error of the difference to the
first SETTINGS, seed by seed. `cpu` is the time of all threads in seconds. --out keeps what is done, and the same
command goes on from there.
"""

import argparse
import functools
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import azpy
from azpy.matches.query import parse_query
from azpy.runs.reader import StoredRun
from azpy.settings.run import Settings, combine, parse
from azpy.training.fitting import learner_of, sampling_of
from heldout import measured, rows_of

_BATCH = 1024
_COLUMNS = ("policy", "excess", "top", "value", "explained", "cpu")


def span(text: str) -> list[int]:
    """The iterations of "20-57"."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def settings_of(run: StoredRun, text: str, seed: int) -> Settings:
    """The run's settings with those of a text."""
    changes = parse_query(text, parse) if text else {}
    return combine(vars(run.settings) | changes | {"seed": seed, "deterministic": False})


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

    @functools.cache
    def games(merge: bool) -> azpy.ReplayBuffer:
        buffer = azpy.ReplayBuffer(run.start, max_positions=2**40, merge=merge)
        buffer.extend(record for _, record in run.games(learned))
        return buffer

    *rows, _ = rows_of(run, held_out, given.rows)
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
                done[key] = fitted(settings, run.start, games(settings.merge_positions), given.steps, rows)
                if given.out is not None:
                    with given.out.open("a") as file:
                        file.write(json.dumps([key, done[key]]) + "\n")
            found[text].append(done[key])
        print(f"after {seed + 1} seeds, {given.steps} steps:", *table(found), sep="\n", flush=True)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
