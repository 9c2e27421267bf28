"""Small training runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.train import _choose, _parser
from azpy.playing.selfplay import open_self_play
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


def settings_from(arguments: Sequence[str]) -> tuple[Settings, str]:
    """The settings and the run folder that a command line of az-train names; nothing is measured."""
    return _choose(_parser().parse_args(arguments))[1][:2]


def events_of(settings: Settings, path: Path, until: int | None = None, kind: Any = Trainer) -> list[Any]:
    """What a run says to its end, or until the checkpoint of an iteration is written: then it goes away."""
    events = list[Any]()
    with kind(settings, path) as running:
        for event in running.run():
            events.append(event)
            if isinstance(event, Saved) and event.iteration == until:
                break
    return events


def run(path: Path, **changes: Any) -> list[Any]:
    return events_of(settings(**changes), path)


def run_until(path: Path, iteration: int, **changes: Any) -> None:
    events_of(settings(**changes), path, iteration)


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


class Instead:
    """A run's self-play, of which a subclass does some things otherwise."""

    def __init__(self, play: azpy.SelfPlay) -> None:
        self._play = play

    def __getattr__(self, name: str) -> Any:
        return getattr(self._play, name)

    @classmethod
    def take_the_place_of_self_play(cls, monkeypatch: pytest.MonkeyPatch) -> None:
        def opened(*given: Any, **options: Any) -> Any:
            return cls(open_self_play(*given, **options))

        monkeypatch.setattr("azpy.fleet.here.open_self_play", opened)


_COLLECTED = {"simulations": 16, "slots": 6, "eval_batch": 2, "games_per_iteration": 12, "opening_plies": 2}


def collect(path: Path, game: str, iterations: int = 1, model: Path | None = None, **changes: Any) -> StoredRun:
    settings = Settings(game, **(_COLLECTED | {"iterations": iterations} | changes))
    with Collector(settings, path, model) as collector:
        list(collector.run())
    return StoredRun(path)
