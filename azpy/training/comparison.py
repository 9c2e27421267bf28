"""Two settings of training compared: both trained over several seeds for equal evaluations, then matches, seed by seed.

Each training is a run folder of its own below one folder, and each match is a row of `results.json` there: what is
there is not done again. Prints nothing.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from azpy.errors import RunError, SettingsError
from azpy.games.names import make_position
from azpy.matches.arena import MatchResult, play_pairs
from azpy.matches.openings import Book
from azpy.matches.players import checkpoints_of, load_players
from azpy.matches.query import query_text
from azpy.runs import storage
from azpy.runs.reader import StoredRun
from azpy.settings.presets import preset_of
from azpy.settings.run import ABOUT, SAME_GAMES_SETTINGS, Settings, combine
from azpy.training.events import Event

__all__ = ["OWN_SETTINGS", "Comparison", "train"]

# What a comparison gives itself.
OWN_SETTINGS = ("game", "seed", "total_evaluations", "iterations", "minutes", "deterministic")
# What stands where nobody gives it. The runs' own matches say nothing here: as few as there can be. An eval batch that
# depends on the machine would make another comparison of it.
_USUAL: dict[str, Any] = {"match_every": 1_000_000, "final_match_games": 2, "eval_batch": 1}
_FREE = {*SAME_GAMES_SETTINGS, "device", "devices", "pipelines"}  # may change where a run goes on
_LONGEST_NAME = 100

Show = Callable[[Event], object]


@dataclass(frozen=True)
class Comparison:
    """What all trainings and matches of one folder share.

    Args:
        out: the folder.
        game: what is played.
        evaluations: of each training's self-play.
        common: settings of every training, besides those that suit the game.
        games: of each match, an even number.
        simulations: a move in matches.
    """

    out: Path
    game: str
    evaluations: int
    common: Mapping[str, Any]
    games: int = 200
    simulations: int = 100

    def __post_init__(self) -> None:
        """Refuses what cannot be played."""
        if self.games < 2 or self.games % 2:
            raise SettingsError(f"games must be an even number, got {self.games}: each opening is played twice")
        for name in self.common:
            _refuse_own(name)

    def settings(self, arm: Mapping[str, Any], seed: int) -> Settings:
        """Those of one training.

        Args:
            arm: the settings that are compared; they go before the common ones.
            seed: of the training.

        Raises:
            SettingsError: settings that cannot be, or that a comparison gives itself.
        """
        for name in arm:
            _refuse_own(name)
        given: dict[str, Any] = {**_USUAL, **self.common, **arm, "game": self.game}
        given |= {"seed": seed, "total_evaluations": self.evaluations}
        return combine(preset_of(self.game, given), given)

    def folder(self, arm: Mapping[str, Any], seed: int) -> Path:
        """The run folder of one training."""
        name = re.sub(r"[^\w.=+-]+", "_", query_text(arm)[1:].replace("&", "+")) or "preset"
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{blake2b(name.encode(), digest_size=4).hexdigest()}"
        return self.out / f"{name}-seed{seed}"

    def run(self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int, show: Show) -> dict[str, Any]:
        """The row of one seed: trains what is not trained yet, and plays the match if it was not played.

        Args:
            a: settings of one side.
            b: settings of the other.
            seed: of both trainings, of the openings and of the match.
            show: takes the events of the trainings.

        Returns:
            As `results.json` holds it: `score` of A with the match's 95 % interval `low`, `high`; of A and B the
            `evaluations` of self-play and the `rows_fitted`; and what tells the match from others.

        Raises:
            SettingsError: a run folder holds a training with other settings.
        """
        done = self.stored(a, b, seed)
        if done is not None:
            return done
        folders = []
        for arm in (a, b):
            settings, folder = self.settings(arm, seed), self.folder(arm, seed)
            _check_same(folder, settings)
            train(settings, folder, show)
            folders.append(folder)
        result = self._match(folders, seed)
        low, high = result.interval
        work = [_work(folder) for folder in folders]
        row = self._key(a, b, seed) | {"score": result.score, "low": low, "high": high}
        row |= {"evaluations": [each[0] for each in work], "rows_fitted": [each[1] for each in work]}
        with storage.disk_errors(self.out):
            storage.write_atomically(self._results, json.dumps([*self._rows(), row], indent=1).encode())
        return row

    def stored(self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
        """The row of one seed, if its match was played."""
        key = self._key(a, b, seed)
        return next((row for row in self._rows() if row | key == row), None)

    def _key(self, a: Mapping[str, Any], b: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """What tells a match from others."""
        key = {"game": self.game, "a": query_text(a), "b": query_text(b), "seed": seed}
        key |= {"common": query_text(self.common), "total_evaluations": self.evaluations}
        return key | {"games": self.games, "simulations": self.simulations}

    @property
    def _results(self) -> Path:
        return self.out / "results.json"

    def _rows(self) -> list[dict[str, Any]]:
        if not self._results.exists():
            return []
        try:
            return list(json.loads(self._results.read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{self._results} cannot be read: {error}") from error

    def _match(self, folders: Iterable[Path], seed: int) -> MatchResult:
        specs = [checkpoints_of(folder)[-1] for folder in folders]
        settings = self.settings({}, seed)
        start = make_position(self.game)
        a, b = load_players(specs, start, self.simulations, device=settings.training_device)
        book = Book(lambda: make_position(self.game), settings.match_opening_plies, seed)
        return MatchResult.of(list(play_pairs(book, a.player, b.player, self.games // 2, seed)))


def train(settings: Settings, folder: Path, show: Show) -> None:
    """Trains to the end, on from where the folder is."""
    from azpy.training.trainer import Trainer  # torch takes seconds to load

    with Trainer(settings, folder) as trainer:
        for event in trainer.run():
            show(event)


def _refuse_own(name: str) -> None:
    if name in OWN_SETTINGS:
        raise SettingsError(f"{name} is given for the whole comparison, not as one of its settings")


def _check_same(folder: Path, settings: Settings) -> None:
    """Refuses to go on with the training of another comparison."""
    if not (folder / "config.toml").exists():
        return
    before = StoredRun(folder).settings
    for name in ABOUT:
        had, wanted = getattr(before, name), getattr(settings, name)
        if had != wanted and name not in _FREE:
            raise SettingsError(f"{folder} was trained with {name} {had}, not {wanted}: give another folder as --out")


def _work(folder: Path) -> tuple[int, int]:
    """Evaluations of a run's self-play, and the rows it was fitted to."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    iterations = [row for row in rows if row["kind"] == "iteration"]
    steps = sum(row["steps"] for row in iterations)
    evaluations = sum(row.get("evaluations", 0) for row in iterations)
    return int(evaluations), int(steps * StoredRun(folder).settings.batch_size)
