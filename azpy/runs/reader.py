"""Reading a run folder that another process may be using: nothing in it is locked, cleared or changed."""

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from azpy._core import GameRecord, ReplayBuffer
from azpy.errors import RunError, SettingsError
from azpy.positions import Position, make_position, refuse_untyped
from azpy.runs import storage
from azpy.settings.run import combine, identity
from azpy.settings.toml import parse_file, read_config, run_id_of

__all__ = ["StoredRun", "check_rules", "checkpoint_at", "read_model", "read_player"]


class StoredRun:
    """What a run has on disk.

    All of a run folder is data, but for a game that is a Python class: that one is imported when `start` is asked for,
    and only if `game` names it.

    Args:
        path: its folder.
        game: the run's game. Needed where that is a Python class, `module:Class`, whose module `start` imports.

    Attributes:
        path: its folder.
        settings: those of config.toml.

    Raises:
        RunError: no run folder, or its config.toml is damaged.
        SettingsError: `game` is not the run's game.
    """

    def __init__(self, path: str | os.PathLike[str], game: str | None = None) -> None:
        self.path = Path(path)
        config = self.path / "config.toml"
        if not config.is_file():
            raise RunError(f"{self.path} is no run folder: it has no config.toml")
        try:
            given, run_id = read_config(config), run_id_of(parse_file(config))
        except SettingsError as error:
            raise RunError(str(error)) from error
        try:
            self.settings = combine(given)
        except SettingsError as error:
            raise RunError(f"{config}: {error}") from error
        if game not in (None, self.settings.game):
            raise SettingsError(f"{self.path}'s game is {self.settings.game!r}, got {game!r}: give the run's game")
        self._typed = game
        self._sealed = storage.SealedGames(self.path / "games", identity(vars(self.settings), run_id))

    @functools.cached_property
    def start(self) -> Position:
        """Where its games begin.

        Raises:
            SettingsError: the game cannot be made here, or it is a Python class that the user did not name.
        """
        how = '--game {0} (in Python game="{0}")'
        refuse_untyped(self.settings.game, self._typed, self.path, "reading the run", how)
        return make_position(self.settings.game)

    @property
    def iteration(self) -> int:
        """That of the newest checkpoint.

        Raises:
            RunError: there is no checkpoint yet.
        """
        return int(checkpoint_at(self.path).name)

    def iterations(self) -> list[int]:
        """Iterations whose games are sealed, ascending."""
        return self._sealed.iterations()

    def games(self, iterations: Iterable[int]) -> Iterator[tuple[int, GameRecord]]:
        """Sealed games: (iteration, game), by iteration and game id.

        Raises:
            RunError: an iteration is not sealed, or its file is damaged or holds other games.
        """
        sealed = self.iterations()
        for iteration in iterations:
            if iteration not in sealed:
                there = f"those from {sealed[0]} to {sealed[-1]} are" if sealed else "none is yet"
                raise RunError(f"{self.path} has no sealed games of iteration {iteration}: {there}")
            for record in self._sealed.read(iteration):
                yield iteration, record

    def find_game(self, game_id: int) -> tuple[int | None, GameRecord]:
        """One game, and its iteration; None while that is still being played.

        Raises:
            RunError: there is no such game, or its file is damaged.
        """
        journal = self.path / "games/journal.bin"
        # The journal first: a game that is sealed in between is then found twice, not missed.
        with storage.disk_errors(self.path):
            records = storage.read_journal(journal)[0] if journal.exists() else []
        ids = {record.game_id: record for record in records}
        if game_id in ids:
            return None, ids[game_id]
        every = list(ids)
        for iteration in self.iterations():
            sealed = self._sealed.ids(iteration)
            if game_id in sealed:
                return next((i, record) for i, record in self.games([iteration]) if record.game_id == game_id)
            every += [*sealed[:1], *sealed[-1:]]
        there = f"its games are among {min(every)} to {max(every)}" if every else "it has no games yet"
        raise RunError(f"{self.path} has no game {game_id}: {there}")

    def checkpoints(self) -> list[int]:
        """Iterations that have a checkpoint, ascending."""
        return storage.numbered(self.path / "checkpoints")

    def model(self, iteration: int) -> bytes:
        """The exported model of a checkpoint, compared with the checkpoint's manifest.

        Raises:
            RunError: there is no such checkpoint, or it is damaged.
        """
        there = self.checkpoints()
        if iteration not in there:
            listed = f"it has {', '.join(map(str, there))}" if there else "it has none"
            raise RunError(f"{self.path} has no checkpoint {iteration}: {listed}")
        return read_model(self.path / f"checkpoints/{iteration:06d}")


def checkpoint_at(path: Path) -> Path:
    """The checkpoint's folder that a path stands for: the newest of a run folder, or the path itself.

    Raises:
        RunError: a run folder without a checkpoint, or a path that is neither.
    """
    if (path / "config.toml").is_file():
        there = storage.numbered(path / "checkpoints")
        if not there:
            raise RunError(f"{path} has no checkpoint yet: az-train saves one after each iteration")
        return path / f"checkpoints/{there[-1]:06d}"
    if not (path / "model.onnx").is_file():
        raise RunError(f"{path} is neither a run folder nor a checkpoint: it has no config.toml and no model.onnx")
    return path


def read_model(folder: Path) -> bytes:
    """The exported model of a checkpoint's folder, compared with its manifest.

    Raises:
        RunError: the checkpoint is damaged.
    """
    return _read_file(folder, "model.onnx")


def read_player(folder: Path) -> bytes:
    """The model of a checkpoint that played: the int8 twin where there is one, compared with the manifest.

    Raises:
        RunError: the checkpoint is damaged.
    """
    return _read_file(folder, storage.INT8_MODEL if storage.INT8_MODEL in _read_manifest(folder) else "model.onnx")


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        storage.check_regular(folder / "manifest.json")
        manifest = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} is damaged: {error}") from error
    return manifest if isinstance(manifest, dict) else {}


def _read_file(folder: Path, name: str) -> bytes:
    manifest = _read_manifest(folder)
    try:
        storage.check_regular(folder / name)
        data = (folder / name).read_bytes()
    except OSError as error:
        raise RunError(f"{folder} is damaged: {error}") from error
    if hashlib.sha256(data).hexdigest() != manifest.get(name):
        raise RunError(f"{folder} is damaged: {name} differs from manifest.json")
    return data


def check_rules(start: Position, records: Iterable[GameRecord]) -> None:
    """Plays games again: their actions, legal actions, players and outcomes are what the rules say.

    Raises:
        RunError: a game that the rules do not bear out.
    """
    buffer = ReplayBuffer(start, max_positions=1)  # what checks games; it keeps the last one only
    for record in records:
        try:
            buffer.add(record)
        except ValueError as error:
            raise RunError(f"game {record.game_id} does not fit the rules: {error}") from error
