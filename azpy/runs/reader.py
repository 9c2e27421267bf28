"""Reading a run folder that another process may be using: nothing in it is locked, cleared or changed.

A `RunError` says what is missing, damaged or not of this run.
"""

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from azpy._core import GameRecord, ReplayBuffer, State, list_games
from azpy.errors import ModelError, RunError, SettingsError, SettingsWarning, missing_to_train
from azpy.games.names import is_python_class, make_game, refuse_untyped
from azpy.runs import storage
from azpy.runs.games import SealedGames, read_journal
from azpy.settings.run import Settings, combine, identity
from azpy.settings.toml import read_run_config, run_id_of

STOPPED = ("stopped", "stopped_collecting")
_FIGURES = {  # what rows of metrics.jsonl must have to be read back, by kind
    "iteration": ("games", "positions", "seconds"),
    "match": ("score", "low", "high", "seconds"),
    "supervised": ("policy_loss", "value_loss", "seconds"),
    **dict.fromkeys(("settings", "imported", "collected", *STOPPED), ("seconds",)),
    "exploitability": ("exploitability", "uniform", "seconds"),
    "worker": ("since", "seconds", "silent", "games", "evaluations_per_second"),
}
_PLOTTED = ("iteration", "match")  # rows of these kinds hold numbers, besides `_TEXTS`
_TEXTS = ("kind", "opponent", "match", "model", "advice")
_MOST = 2.0**63  # of a figure
CHECKPOINT_FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "model.onnx")


# Players that azpy brings along: run folders with a checkpoint's weights alone.
BOX = Path(__file__).parents[1] / "players"


def boxed(path: str | os.PathLike[str]) -> Path:
    """The folder of a player that azpy brings along, where `path` is its name and nothing else has that name."""
    if Path(path).exists() or path not in names_in_box():
        return Path(path)
    own = Path("runs") / path
    if own.exists():
        problem = f"{path} is a player that comes with azpy; your run is {own}"
        warnings.warn(problem, SettingsWarning, stacklevel=3)
    return BOX / path


def names_in_box() -> list[str]:
    """The names of the players that azpy brings along."""
    return sorted(file.parent.name for file in BOX.glob("*/config.toml"))


def how_to_make(path: Path) -> str:
    """The end of the error for a run folder that does not exist: the command that makes it, if there is one."""
    return f": train it first with az-train {path.name}" if path in map(Path("runs").joinpath, list_games()) else ""


class StoredRun:
    """A run on disk, with the settings of its config.toml.

    A run folder is data only. If its game is a Python class, `start` imports the class's module, and only if `game`
    names the class, as `module:Class`.

    Attributes:
        made_with: versions of packages, the format of the folder and the run's id, as config.toml has them.

    Raises:
        RunError: no run folder, or its config.toml is damaged.
        SettingsError: `game` is not the run's game.
    """

    def __init__(self, path: str | os.PathLike[str], game: str | None = None) -> None:
        self.path = Path(path)
        config = self.path / "config.toml"
        if not self.path.exists():
            raise RunError(f"{self.path} does not exist{how_to_make(self.path)}")
        if not config.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no config.toml")
        try:
            given, self.made_with = read_run_config(config)
        except SettingsError as error:
            if isinstance(cause := error.__cause__, OSError):
                raise storage.refused(config, cause) from error
            raise RunError(str(error)) from error
        try:
            self.settings = combine(given)
        except SettingsError as error:
            raise RunError(f"{config}: {error}") from error
        if game not in (None, self.settings.game):
            raise SettingsError(f"{self.path}'s game is {self.settings.game!r}, got {game!r}: give the run's game")
        self._typed = game
        self._sealed = SealedGames(self.path / "games", identity(vars(self.settings), run_id_of(self.made_with)))

    def __fspath__(self) -> str:
        return str(self.path)

    @functools.cached_property
    def start(self) -> State:
        """The position at which the run's games begin.

        Raises:
            SettingsError: the game is a Python class, and `game` did not name it.
        """
        how = '--game {0} (in Python game="{0}")'
        refuse_untyped(self.settings.game, self._typed, self.path, "reading the run", how)
        return make_game(self.settings.game)

    @property
    def iteration(self) -> int:
        """The iteration of the newest checkpoint."""
        return int(checkpoint_at(self.path).name)

    def iterations(self) -> list[dict[str, Any]]:
        """Return the rows of metrics.jsonl of finished iterations, in order (docs/reference/formats.md)."""
        return self._rows("iteration")

    def matches(self) -> list[dict[str, Any]]:
        """Return the rows of metrics.jsonl of the matches that the run has played, in order."""
        return self._rows("match")

    def score_to_beat(self, iteration: int | None = None) -> float | None:
        """Return the score that an iteration's games had to beat; searches with its network take it.

        If its games had different scores to beat, this is their mean. None without `ranked_reward` and `score_to_beat`.

        Args:
            iteration: None for the newest.
        """
        rows = [row for row in self.iterations() if iteration in (None, row["iteration"])]
        return rows[-1].get("score_to_beat") if rows else None

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in read_metrics(self.path / "metrics.jsonl")[0] if row["kind"] == kind]

    def sealed_iterations(self) -> list[int]:
        """Return the iterations whose games are sealed, ascending."""
        return self._sealed.iterations()

    def games(self, iterations: Iterable[int]) -> Iterator[tuple[int, GameRecord]]:
        """Yield (iteration, game) for the sealed games of these iterations, in order of iteration and game id.

        Raises:
            RunError: an iteration has no sealed games.
        """
        sealed = self.sealed_iterations()
        for iteration in iterations:
            if iteration not in sealed:
                there = f"those from {sealed[0]} to {sealed[-1]} are" if sealed else "none is yet"
                raise RunError(f"{self.path} has no sealed games of iteration {iteration}: {there}")
            for record in self._sealed.read(iteration):
                yield iteration, record

    def tags(self, iterations: Iterable[int]) -> dict[int, dict[str, str]]:
        """Return the players, date and event of imported games, as far as their files name them, by game id."""
        found = dict[int, dict[str, str]]()
        for iteration in iterations:
            found |= self._sealed.tags(iteration)
        return found

    def find_game(self, game_id: int) -> tuple[int | None, GameRecord]:
        """Return (iteration, game) of the game with this id; the iteration is None while it is in progress.

        Raises:
            RunError: the run does not have this game.
        """
        journal = self.path / "games/journal.bin"
        # The journal first: a game that is sealed meanwhile is found twice, not missed.
        records = read_journal(journal)[0] if journal.exists() else []
        found = {record.game_id: record for record in records}
        if game_id in found:
            return None, found[game_id]
        ids = set(found)
        for iteration in self.sealed_iterations():
            sealed = self._sealed.ids(iteration)
            if game_id in sealed:
                return next((i, record) for i, record in self.games([iteration]) if record.game_id == game_id)
            ids.update(sealed)
        there = f"it has {len(ids)} games, from {min(ids)} to {max(ids)}" if ids else "it has no games yet"
        raise RunError(f"{self.path} has no game {game_id}: {there}")

    def checkpoints(self) -> list[int]:
        """Return the iterations that have a checkpoint, ascending."""
        return storage.numbered(self.path / "checkpoints")

    def model(self, iteration: int, name: str = "model.onnx") -> bytes:
        """Return the bytes of a checkpoint's model, or of another of its files, checked against its manifest.

        Raises:
            RunError: the checkpoint does not exist, or the file is damaged.
        """
        there = self.checkpoints()
        if iteration not in there:
            listed = f"it has {', '.join(map(str, there)) or 'none'}"
            raise RunError(f"{self.path} has no checkpoint {iteration}: {listed}")
        return read_model(self.path / f"checkpoints/{iteration:06d}", name)


def checkpoint_at(path: Path) -> Path:
    """The checkpoint folder of a path: the newest checkpoint of a run folder, or the path itself."""
    if (path / "config.toml").is_file():
        there = storage.numbered(path / "checkpoints")
        if not there:
            raise RunError(f"{path} has no checkpoint yet: az-train saves one after each iteration")
        return path / f"checkpoints/{there[-1]:06d}"
    if not any((path / name).is_file() for name in ("model.onnx", CHECKPOINT_FILES[0])):
        raise RunError(f"{path} is neither a run folder nor a checkpoint: it has no config.toml and no model.onnx")
    return path


def has_weights_alone(path: Path) -> bool:
    """Whether the newest checkpoint was stored without a model in ONNX, as those of players that azpy brings along."""
    try:
        folder = checkpoint_at(path)
        return "model.onnx" not in {*read_manifest(folder), *(file.name for file in folder.iterdir())}
    except RunError:  # who opens it says what is wrong
        return False


def stored_network(path: Path, game: Any) -> tuple[Path, Settings, Any]:
    """A checkpoint's folder, the settings of its run, and a position of the game whose shapes the network has.

    Args:
        path: a run folder, or a checkpoint in its run folder.
        game: the game that plays, or None for that of the run. A network with "+conv" has the shapes of any size.

    Raises:
        ModelError: it is no folder.
        RunError: it is neither.
        SettingsError: `game` does not name the Python class of the run.
    """
    if not path.is_dir():
        raise ModelError(f"{path} is not a run folder or a checkpoint folder, such as runs/connect_four")
    folder = checkpoint_at(path)
    run = StoredRun(folder.resolve().parent.parent)
    start = game  # nobody else may have named the class
    if game is None or not is_python_class(run.settings.game):
        start = run.start
        if "+conv" in run.settings.network and game is not None and tuple(game.obs_shape) != tuple(start.obs_shape):
            start = game  # another size
    return folder, run.settings, start


@dataclass(frozen=True)
class Checkpoint:
    """One saved generation, read and verified whole."""

    path: Path  # its folder
    model: dict[str, NDArray[Any]]  # weights and statistics by name
    optimizer: dict[str, NDArray[Any]]  # the optimizer's arrays by name
    state: dict[str, Any]  # the contents of state.json
    onnx: bytes  # the exported model
    int8: bytes | None  # the int8 model, if it played
    weights_hash: str  # SHA-256 of the weights


def refuse_exported(folder: Path) -> None:
    """Refuses a checkpoint's folder as `az-export --card` writes it: no run goes on without the optimizer."""
    optimizer = CHECKPOINT_FILES[1]
    if not (folder / optimizer).exists() and optimizer not in (read_manifest(folder) or (optimizer,)):
        raise RunError(f"{folder} was exported without its optimizer: give --init {folder} to begin a run with it")


def read_checkpoint(folder: Path) -> Checkpoint:
    """Reads a checkpoint's folder and compares every file with its manifest."""
    manifest = read_manifest(folder)
    model, optimizer, state, onnx = (_read_file(folder, manifest, name) for name in CHECKPOINT_FILES)
    int8 = _read_file(folder, manifest, storage.INT8_MODEL) if storage.INT8_MODEL in manifest else None
    load = safetensors().load
    weights_hash = str(manifest[CHECKPOINT_FILES[0]])
    return Checkpoint(folder, load(model), load(optimizer), json.loads(state), onnx, int8, weights_hash)


def read_model(folder: Path, name: str = "model.onnx") -> bytes:
    """The exported model of a checkpoint's folder, or another of its files, compared with its manifest."""
    return _read_file(folder, read_manifest(folder), name)


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """The weights and statistics of a checkpoint's folder by name, compared with its manifest."""
    found: dict[str, NDArray[Any]] = safetensors().load(read_model(folder, CHECKPOINT_FILES[0]))
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """The digests of a checkpoint's files, by name."""
    try:
        manifest = json.loads(_read(folder, "manifest.json"))
        if not isinstance(manifest, dict):
            raise ValueError("it is not a table")
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, f"manifest.json cannot be read ({error})") from error
    return manifest


def _read_file(folder: Path, manifest: dict[str, Any], name: str) -> bytes:
    if manifest and name not in manifest and not (folder / name).exists():
        if BOX in folder.parents:
            player = folder.parents[1].name
            raise RunError(f"the bundled player {player} comes without {name}: train a run of your own, and use that")
        raise RunError(f"{folder} was stored without {name}")
    data = _read(folder, name)
    if hashlib.sha256(data).hexdigest() != manifest.get(name):
        raise _damaged(folder, f"{name} differs from manifest.json")
    return data


def _read(folder: Path, name: str) -> bytes:
    try:
        return storage.read_regular(folder / name)
    except OSError as error:
        if said := storage.refusal(folder / name, error):
            raise said from error
        raise _damaged(folder, f"{name} is missing" if isinstance(error, FileNotFoundError) else str(error)) from error


def _damaged(folder: Path, why: str) -> RunError:
    return RunError(f"{folder} is damaged: {why}; delete that folder to go on from the checkpoint before it")


def safetensors() -> Any:
    """The module `safetensors.numpy`, or a `MissingPackageError`."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise missing_to_train("safetensors") from error
    return safetensors.numpy


def check_rules(start: State, records: Iterable[GameRecord]) -> None:
    """Replays games and compares their actions, legal actions, players and outcomes with the rules."""
    buffer = ReplayBuffer(start, max_positions=1)  # it checks each game, and keeps the last one
    for record in records:
        try:
            buffer.add(record)
        except ValueError as error:
            raise RunError(str(error)) from error


def read_metrics(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The rows of all whole lines, and whether the last line is torn.

    Raises:
        RunError: a line that is no object with a `kind`, a whole `iteration` and the figures of its kind.
    """
    if not path.exists():
        return [], False
    with storage.disk_errors(path):
        *lines, torn = storage.read_regular(path).split(b"\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
            why: object = _wrong_in(rows[-1])
        except (ValueError, RecursionError) as error:
            why = error
        if why:
            raise RunError(f"{path} is damaged in line {number}: {why}; correct that line, or delete it")
    return rows, bool(torn)


def _wrong_in(row: Any) -> str:
    """Why a row of metrics.jsonl cannot be used; empty if it can."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        return "it is not an object with a kind"
    if not isinstance(row.get("iteration"), int):
        return "iteration is missing"
    for kind, name in (("match", "opponent"), ("worker", "worker")):
        if row["kind"] == kind and not isinstance(row.get(name), str):
            return f"{name} is missing"
    others = [name for name in row if name == "evaluations" or (row["kind"] in _PLOTTED and name not in _TEXTS)]
    for name in (*_FIGURES.get(row["kind"], ()), *others):
        value = row.get(name)
        if not isinstance(value, int | float) or not abs(value) <= _MOST:
            return f"{name} is {value!r:.80}"
    if row["kind"] == "settings" and not isinstance(row.get("changed"), dict):
        return "the changes are missing"
    files = row.get("files", [])
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        return f"files is {files!r:.80}"
    return ""
