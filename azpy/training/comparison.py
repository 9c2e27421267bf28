"""Compares two settings of training: trains both over several seeds for equal work, and plays a match a seed.

Equal work is as many evaluations in self-play, or as many minutes.

Each training is a run folder below one folder, and each match a row of `results.json` there. Finished ones are not done
again.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from azpy.errors import RunError, SettingsError
from azpy.games.names import make_game
from azpy.matches.arena import games_of
from azpy.matches.match import match
from azpy.matches.query import query_text
from azpy.runs import storage
from azpy.runs.reader import StoredRun
from azpy.settings.choosing import NO_MATCHES
from azpy.settings.presets import preset_of
from azpy.settings.run import ABOUT, SAME_GAMES_SETTINGS, Settings, combine
from azpy.training.events import Event

# Settings of the whole comparison.
OWN_SETTINGS = ("game", "seed", "total_evaluations", "iterations", "minutes", "deterministic")
# Defaults. The runs' own matches are not needed here. The eval batch must not depend on the machine.
_USUAL: dict[str, Any] = {"match_every": NO_MATCHES, "final_match_games": 2, "eval_batch": 1}
_FREE = {*SAME_GAMES_SETTINGS, "device", "devices", "pipelines"}  # settings that may change when a run continues
_LONGEST_NAME = 100
_SHOWN = {"score", "low", "high", "evaluations", "rows_fitted", "seed"}  # of a stored row


@dataclass(frozen=True)
class Comparison:
    """The common part of all trainings and matches of one folder."""

    out: Path  # the folder
    game: str
    length: Mapping[str, float]  # of each training: `total_evaluations` or `minutes`
    common: Mapping[str, Any]  # settings of every training, besides the game's preset
    games: int | None = None  # of A in each match, as many in each seat; None: 200, or a few more
    simulations: int = 100  # a move in matches

    def __post_init__(self) -> None:
        """Check the game, `games` and `common`."""
        object.__setattr__(self, "games", games_of(make_game(self.game), self.games, 200))
        _refuse_own(self.common)

    def settings(self, arm: Mapping[str, Any], seed: int) -> Settings:
        """The settings of one training; those of `arm`, one side, replace the common ones.

        Raises:
            SettingsError: settings that are not possible, or that belong to the whole comparison.
        """
        _refuse_own(arm)
        given: dict[str, Any] = {**_USUAL, **self.common, **arm, "game": self.game}
        given |= {"seed": seed, **self.length}
        return combine(preset_of(self.game, given), given)

    def folder(self, arm: Mapping[str, Any], seed: int) -> Path:
        """The run folder of one training."""
        name = re.sub(r"[^\w.=+-]+", "_", query_text(arm)[1:].replace("&", "+")) or "preset"
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{blake2b(name.encode(), digest_size=4).hexdigest()}"
        timed = "".join(f"-{minutes:g}min" for length, minutes in self.length.items() if length == "minutes")
        return self.out / f"{name}{timed}-seed{seed}"

    def run(
        self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int, show: Callable[[Event], object]
    ) -> dict[str, Any]:
        """The row of one seed in `results.json`: trains and plays only what is missing.

        The seed is that of both trainings, of the openings and of the match; `show` takes the events of the trainings.

        Returns:
            The figures of A's match: `score` with its 95 % interval `low`, `high`, and without a zero sum the mean
            outcomes, see `MatchResult.figures`. The `evaluations` of self-play, the `rows_fitted` and
            the `seconds` of A and B; and the facts that identify the match.

        Raises:
            SettingsError: a run folder holds a training with other settings.
        """
        if (done := self.stored(a, b, seed)) is not None:
            return done
        folders, evaluations, fitted, seconds = list[Path](), list[int](), list[int](), list[int]()
        for arm in (a, b):
            settings, folder = self.settings(arm, seed), self.folder(arm, seed)
            _check_same(folder, settings)
            train(settings, folder, show)
            rows = StoredRun(folder).iterations()
            folders.append(folder)
            evaluations.append(int(sum(row.get("evaluations", 0) for row in rows)))
            fitted.append(sum(row["steps"] for row in rows) * settings.batch_size)
            seconds.append(round(max(row.get("seconds", 0) for row in rows)))
        common = self.settings({}, seed)
        options: dict[str, Any] = {"game": self.game, "games": self.games, "simulations": self.simulations}
        options |= {"device": common.training_device, "opening_plies": common.match_opening_plies, "seed": seed}
        result = match(*folders, **options)
        counts = ("wins", "draws", "losses")
        figures = {name: value for name, value in result.figures().items() if name not in counts}
        row = self._key(a, b, seed) | figures
        row |= {"evaluations": evaluations, "rows_fitted": fitted, "seconds": seconds}
        storage.write_atomically(self._results, json.dumps([*self._rows(), row], indent=1).encode())
        return row

    def stored(self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
        """The row of one seed, if its match was played."""
        key = self._key(a, b, seed)
        return next((row for row in self._rows() if row | key == row), None)

    def _key(self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The facts that identify a match."""
        key = {"game": self.game, "a": query_text(a), "b": query_text(b), "seed": seed}
        key |= {"common": query_text(self.common), **self.length}
        return key | {"games": self.games, "simulations": self.simulations}

    @property
    def _results(self) -> Path:
        return self.out / "results.json"

    def _rows(self) -> list[dict[str, Any]]:
        try:
            rows = json.loads(storage.read_regular(self._results))
            if not (isinstance(rows, list) and all(isinstance(row, dict) and row.keys() >= _SHOWN for row in rows)):
                raise ValueError("expected a list of rows with match results")
        except FileNotFoundError:
            return []
        except (OSError, ValueError, RecursionError) as error:
            hint = "delete it, and az-compare plays the matches again"
            raise RunError(f"{self._results} cannot be read: {error}; {hint}") from error
        return rows


def train(settings: Settings, folder: Path, show: Callable[[Event], object]) -> None:
    """Train to the end, from what the folder holds."""
    from azpy.training.trainer import Trainer  # torch takes seconds to load

    with Trainer(settings, folder) as trainer:
        for event in trainer.run():
            show(event)


def _refuse_own(names: Iterable[str]) -> None:
    for name in names:
        if name in OWN_SETTINGS:
            raise SettingsError(f"{name} applies to the whole comparison and cannot be one of its settings")


def _check_same(folder: Path, settings: Settings) -> None:
    """Refuse to go on with the training of another comparison."""
    if not (folder / "config.toml").exists():
        return
    before = StoredRun(folder).settings
    for name in ABOUT:
        had, wanted = getattr(before, name), getattr(settings, name)
        if had != wanted and name not in _FREE:
            raise SettingsError(f"{folder} was trained with {name} {had}, not {wanted}: give another folder as --out")
