"""Small training runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.settings.run import Settings
from azpy.training.collector import Collector
from azpy.training.events import Saved
from azpy.training.trainer import Trainer

SMALL: dict[str, Any] = {"game": "tic_tac_toe", "network": "1x16", "eval_batch": 2, "simulations": 12, "slots": 8}
SMALL |= {"games_per_iteration": 20, "iterations": 3, "match_opening_plies": 1, "match_every": 100}
SMALL |= {"match_games": 4, "final_match_games": 4}


def settings(**changes: Any) -> Settings:
    return Settings(**(SMALL | changes))


def run(path: Path, **changes: Any) -> list[Any]:
    with Trainer(settings(**changes), path) as trainer:
        return list(trainer.run())


def run_until(path: Path, iteration: int, **changes: Any) -> None:
    """Runs until the checkpoint of `iteration` is written, then goes away."""
    with Trainer(settings(**changes), path) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved) and event.iteration == iteration:
                return


def same_weights(first: Path, second: Path, iteration: int) -> bool:
    one, other = (read_checkpoint(path / f"checkpoints/{iteration:06d}") for path in (first, second))
    same = [
        np.array_equal(left[name], right[name])
        for left, right in ((one.model, other.model), (one.optimizer, other.optimizer))
        for name in left.keys() | right.keys()
    ]
    return all(same)


def opened_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text("utf-8").splitlines()]


def played(path: Path, iteration: int) -> set[int]:
    """The networks that played the games of an iteration."""
    return {int(network) for _, record in StoredRun(path).games([iteration]) for network in record.networks} - {0}


_COLLECTED = {"simulations": 16, "slots": 6, "eval_batch": 2, "games_per_iteration": 12, "opening_plies": 2}


def collect(path: Path, game: str, iterations: int = 1, model: Path | None = None, **changes: Any) -> StoredRun:
    settings = Settings(game, **(_COLLECTED | {"iterations": iterations} | changes))
    with Collector(settings, path, model) as collector:
        list(collector.run())
    return StoredRun(path)
