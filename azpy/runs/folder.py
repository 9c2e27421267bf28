"""The run folder: everything a training run must not lose, and nothing a reader needs azpy to open.

    config.toml           settings of the run: written before all else, rewritten once a later start has read the rest
    games/journal.bin     games of the iteration in play in checksummed frames (see `games.Journal`)
    games/NNNNNN.npz      games of iteration N, sealed, in order of game id (see `games.SealedGames`)
    checkpoints/NNNNNN/   model.safetensors optimizer.safetensors state.json model.onnx manifest.json (sha256),
                          and model.int8.onnx where that played
    metrics.jsonl         one object a line
    report.html           how the run goes, made from the rest
    elo.json ladder.json  what az-match found of its checkpoints and its levels, where it was asked

Invariant: a file or folder under its final name is whole. A process killed at any moment leaves at worst a torn last
frame and temporary files, and the next process clears them. Games and checkpoints carry checksums; users may edit
config.toml and metrics.jsonl, so these are only checked for form. Nothing is pickled.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.runs import storage
from azpy.runs.games import Journal, SealedGames, read_journal, write_journal
from azpy.runs.reader import (
    CHECKPOINT_FILES,
    STOPPED,
    Checkpoint,
    read_checkpoint,
    read_manifest,
    read_metrics,
    refuse_exported,
    safetensors,
)
from azpy.settings.run import SAME_GAMES_SETTINGS, default_of, identity, unused
from azpy.settings.toml import facts_of, parse_file, run_id_of, to_toml
from azpy.system import move, sync_folder

_ALWAYS_SAID = ("game", "network", "seed", "deterministic")  # settings that the config.toml of every version has
Setting = str | int | float | bool


class RunFolder:
    """A run folder, held by this process until `close`.

    Opening it clears what a killed process left behind.

    Args:
        path: made if it is missing.
        settings: written to config.toml: at once in a new folder, by `write_settings` in an old one.
        fixed: settings that a run cannot change, each with the reason.
        made_with: other facts that the run depends on, such as versions; written beside the settings.

    Attributes:
        path: the folder.
        flags: of `az-train`, besides the settings: part of the command that `write_settings` writes.
        notices: repairs and changes, in plain sentences.
        sealed: the games of finished iterations.
        journal: games of the iteration in play, in the order in which they ended; always the same list.
        changed: settings that differ from config.toml: name -> (old, new), None where there is none.

    Raises:
        RunError: the folder is in use, holds something else or another run, is damaged, or cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, Setting | None],
        fixed: Mapping[str, str] | None = None,
        made_with: Mapping[str, str | int] | None = None,
    ) -> None:
        self.path = Path(path)
        self.flags: Sequence[str] = ()
        self.notices: list[str] = []
        self.changed: dict[str, tuple[Any, Any]] = {}
        self._settings = dict(settings)
        self._made_with = dict(made_with or {})
        self._games = self.path / "games"
        self._checkpoints = self.path / "checkpoints"
        self._metrics = self.path / "metrics.jsonl"
        self._closing = contextlib.ExitStack()
        with storage.disk_errors(self.path):
            self._closing.callback(os.close, storage.lock_folder(self.path))
        try:
            with storage.disk_errors(self.path):
                self._open(fixed or {})
        except BaseException:
            self.close()
            raise

    def _open(self, fixed: Mapping[str, str]) -> None:
        config, old = self.path / "config.toml", dict[str, Any]()
        self._run_id = None if self._settings.get("deterministic") else secrets.token_hex(8)
        if config.exists():
            old = _read_config(config)
            self._run_id = run_id_of(facts_of(old))
            self.changed = _changes(old, self._settings)
            _check_same_run(config, self.changed, fixed)
            if there := self.checkpoints():
                refuse_exported(self._checkpoints / f"{there[-1]:06d}")
        elif any(not entry.name.startswith(storage.TEMPORARY) for entry in self.path.iterdir()):
            raise RunError(f"{self.path} is not a run folder: it has other files and no config.toml")
        else:  # write config.toml first: a folder with other files but without it is refused
            _clear_temporary_files(self.path)
            self.write_settings()
        self.sealed = SealedGames(self._games, identity(old | self._settings, self._run_id))
        self._games.mkdir(exist_ok=True)
        self._checkpoints.mkdir(exist_ok=True)
        _clear_temporary_files(self.path, self._games, self._checkpoints, *self._checkpoints.iterdir())
        self._journal = Journal(self._games / "journal.bin")
        self.journal = self._journal.records
        if self.journal:  # games sealed just before the process ended, in any iteration
            sealed = self.sealed.iterations()
            self._journal.drop({game for iteration in sealed for game in self.sealed.ids(iteration)})
        self._in_play = self._games / "in_play.bin"
        if self._journal.dropped:
            self.notices.append(f"dropped {self._journal.dropped} bytes of a torn game at the end of the journal")

    def write_settings(self) -> None:
        """Write config.toml again. Call it once the folder is known to be usable."""
        facts = self._made_with | ({} if self._run_id is None else {"run_id": self._run_id})
        self.replace("config.toml", to_toml(self._settings, facts, self.path, self.flags))

    def close(self) -> None:
        """Let go of the folder, whatever fails."""
        with storage.disk_errors(self.path):
            self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Games

    def append(self, *records: GameRecord) -> None:
        """Add finished games to the journal; afterwards they survive a kill and a power cut."""
        self._journal.append(*records)

    def in_play(self) -> list[GameRecord]:
        """The unfinished games of the last process. If their file is damaged, add a notice."""
        try:
            return read_journal(self._in_play)[0] if self._in_play.exists() else []
        except (RunError, OSError) as error:
            self.notices.append(f"games in play start again, because {self._in_play} cannot be read: {error}")
            return []

    def keep_in_play(self, records: Sequence[GameRecord]) -> None:
        """Store the unfinished games for the next process, replacing those stored before."""
        with storage.disk_errors(self.path):
            if records:
                write_journal(self._in_play, records)
            else:
                self._in_play.unlink(missing_ok=True)

    def seal(self, iteration: int, ids: Container[int] | None = None) -> list[GameRecord]:
        """Seal the journal's games, or those with these ids, as `iteration`; return them in order of game id."""
        mine = [record for record in self.journal if ids is None or record.game_id in ids]
        records = sorted(mine, key=lambda record: record.game_id)
        self.sealed.write(iteration, records)
        self._journal.drop({record.game_id for record in records})
        return records

    def games_hash(self) -> str:
        """SHA-256 over all sealed games, in order of iteration and game id."""
        digest = hashlib.sha256()
        for iteration in self.sealed.iterations():
            digest.update(b"".join(record.to_bytes() for record in self.sealed.read(iteration)))
        return digest.hexdigest()

    def newest_game(self) -> int | None:
        """The id of the first game of the newest sealed iteration; None where no iteration is sealed."""
        iterations = self.sealed.iterations()
        return self.sealed.ids(iterations[-1])[0] if iterations else None

    # Checkpoints

    def checkpoints(self) -> list[int]:
        """Iterations that have a checkpoint, ascending."""
        return storage.numbered(self._checkpoints)

    def save_checkpoint(
        self,
        iteration: int,
        *,
        model: Mapping[str, NDArray[Any]],
        optimizer: Mapping[str, NDArray[Any]],
        state: Mapping[str, Any],
        onnx: bytes,
        int8: bytes | None = None,
    ) -> Path:
        """Write a checkpoint, whole or not at all; return its folder."""
        whole = ({name: np.array(array, order="C") for name, array in each.items()} for each in (model, optimizer))
        contents = (*map(safetensors().save, whole), _as_json(state), onnx)
        files = dict(zip(CHECKPOINT_FILES, contents, strict=True))
        if int8 is not None:
            files[storage.INT8_MODEL] = int8
        files["manifest.json"] = _as_json({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
        final = self._checkpoints / f"{iteration:06d}"
        temporary = self._checkpoints / f"{storage.TEMPORARY}{iteration:06d}"
        with storage.disk_errors(final, cleanup=lambda: shutil.rmtree(temporary, ignore_errors=True)):
            temporary.mkdir()
            for name, data in files.items():
                storage.write_synced(temporary / name, data)
            sync_folder(temporary)
            move(temporary, final)
            sync_folder(self._checkpoints)
        return final

    def add_int8(self, iteration: int, int8: bytes) -> None:
        """Add an int8 model to a checkpoint if the checkpoint is still there; written whole or not at all."""
        folder = self._checkpoints / f"{iteration:06d}"
        with storage.disk_errors(self.path):
            if not folder.exists():
                return
            manifest = read_manifest(folder)
            manifest[storage.INT8_MODEL] = hashlib.sha256(int8).hexdigest()
            storage.write_atomically(folder / storage.INT8_MODEL, int8)
            storage.write_atomically(folder / "manifest.json", _as_json(manifest))

    def load_checkpoint(self, iteration: int) -> Checkpoint:
        """Read a checkpoint, see `read_checkpoint`."""
        return read_checkpoint(self._checkpoints / f"{iteration:06d}")

    def weights_hash(self, iteration: int) -> str:
        """SHA-256 of a checkpoint's weights."""
        return self.load_checkpoint(iteration).weights_hash

    def prune_checkpoints(self, keep: Callable[[int], bool]) -> None:
        """Delete the checkpoints of all iterations for which `keep` is false."""
        for iteration in self.checkpoints():
            if not keep(iteration):
                doomed = self._checkpoints / f"{storage.TEMPORARY}old-{iteration:06d}"
                with storage.disk_errors(self._checkpoints):
                    move(self._checkpoints / f"{iteration:06d}", doomed)
                shutil.rmtree(doomed, ignore_errors=True)

    # Metrics

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Add one line to metrics.jsonl."""
        with storage.disk_errors(self._metrics), self._metrics.open("a+b", buffering=0) as file:
            storage.cut_torn_line(file)
            storage.append(file, (json.dumps(dict(row), allow_nan=False) + "\n").encode())

    def metrics(self) -> list[dict[str, Any]]:
        """All whole lines of metrics.jsonl.

        Raises:
            RunError: a line that is no object with a `kind`, a whole `iteration` and the figures of its kind.
        """
        return read_metrics(self._metrics)[0]

    def spent(self, name: str, *kinds: str) -> float:
        """The most `seconds` or `evaluations` in the rows of these kinds; 0 if there are none."""
        return max((float(row.get(name, 0.0)) for row in self.metrics() if row["kind"] in kinds), default=0.0)

    def trim_metrics(self, last_iteration: int) -> None:
        """Drop a torn last line, and the rows of iterations that will be done again.

        It keeps the rows of changed settings, of collected and imported games that are there, and of the last stop.
        """
        rows, torn = read_metrics(self._metrics)
        sealed, there = set(self.sealed.iterations()), bool(self.checkpoints())
        if torn:
            self.notices.append("dropped a torn line at the end of metrics.jsonl")
        last_stop = {row["kind"]: row for row in rows if row["kind"] in STOPPED}

        def stays(row: Mapping[str, Any]) -> bool:
            if row["kind"] in STOPPED:
                return row is last_stop[row["kind"]]
            if row["kind"] == "imported":  # written before its games
                return 0 in sealed or there
            collected = row["kind"] == "collected" and row["iteration"] in sealed
            return row["iteration"] <= last_iteration or row["kind"] == "settings" or collected

        self.replace("metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows if stays(row)))

    def note_changes(self, iteration: int, seconds: float) -> None:
        """Add a notice for each changed setting, and one row of metrics for all of them.

        `iteration` is the last one that is done, after so many seconds.
        """
        if not self.changed or not (iteration or self.journal or self.sealed.iterations()):
            return  # no iteration used the old settings
        changed = {name: list(pair) for name, pair in self.changed.items()}
        row = {"kind": "settings", "iteration": iteration, "changed": changed}
        noted = [earlier for earlier in self.metrics() if earlier["kind"] == "settings"][-1:]
        if not noted or noted[0] | row != noted[0]:  # otherwise the process was killed before it wrote config.toml
            self.append_metrics(row | {"seconds": seconds})
        for name, pair in self.changed.items():
            old, new = ("not set" if value is None else value for value in pair)
            differs = self._settings.get("deterministic") and name not in SAME_GAMES_SETTINGS
            self.notices.append(
                f"{name} was {old}, is now {new} from iteration {iteration + 1} on"
                + (": its games cannot be reproduced with a single value" if differs else "")
            )

    def is_repeatable(self) -> bool:
        """Whether config.toml alone repeats this run: it is deterministic, with one player and one set of settings."""
        rows = self.metrics()
        changed = {name for row in rows if row["kind"] == "settings" for name in row["changed"]}
        players = {row.get("model") for row in rows if row["kind"] in {"iteration", "collected"}}
        same = changed.issubset(SAME_GAMES_SETTINGS) and len(players) <= 1
        return same and bool(self._settings.get("deterministic"))

    def replace(self, name: str, text: str) -> None:
        """Replace a text file of the folder, whole or not at all."""
        storage.write_atomically(self.path / name, text.encode())


def _clear_temporary_files(*folders: Path) -> None:
    for folder in folders:
        for entry in folder.glob(f"{storage.TEMPORARY}*"):
            try:
                if storage.is_folder(entry):
                    shutil.rmtree(entry)
                else:
                    entry.unlink(missing_ok=True)
            except OSError as error:
                raise RunError(
                    f"{entry} is left over from a process that ended, and cannot be deleted "
                    f"({error.strerror or error}): delete it and start again"
                ) from error


def _as_json(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(values), indent=1, allow_nan=False) + "\n").encode()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        storage.check_regular(path)
        return parse_file(path)
    except (OSError, ValueError) as error:
        if said := storage.refusal(path, error):
            raise said from error
        raise _damaged(path, error) from error


def _damaged(config: Path, why: object) -> RunError:
    return RunError(f"{config} is damaged: {why}; correct it, or restore a good copy")


def _changes(old: Mapping[str, Any], new: Mapping[str, Setting | None]) -> dict[str, tuple[Any, Any]]:
    """Settings that differ, by name: (old, new). Tables in a config.toml are no settings."""
    old = {name: None if value == "none" else value for name, value in old.items() if not isinstance(value, dict)}
    # A file of an earlier version lacks newer settings, and can hold options without effect.
    as_before = [*(name for name in new if name not in old and name not in _ALWAYS_SAID), *unused(old)]
    same = {name for name in as_before if name in new and new[name] == default_of(name)}
    names = [name for name in dict.fromkeys([*new, *old]) if name not in same]
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def _check_same_run(config: Path, changed: Mapping[str, tuple[Any, Any]], fixed: Mapping[str, str]) -> None:
    """Refuse changes of fixed settings."""
    refused = {name: changed[name] for name in fixed if name in changed}
    if missing := [name for name, (old, _) in refused.items() if old is None and name in _ALWAYS_SAID]:
        raise _damaged(config, f"{missing[0]} is missing")
    if refused:
        parts = [f"{name} {old!r}, now {new!r} ({fixed[name]})" for name, (old, new) in refused.items()]
        raise RunError(f"{config.parent} holds a run with {' and '.join(parts)}: choose another folder")
