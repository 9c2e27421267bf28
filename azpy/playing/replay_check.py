"""Repeats the searches of a stored game, and compares the results with the record.

A game depends on its seed, its id and its network's answers alone, so it can be played again by itself. The run's
checkpoints hold the networks, by their ids. The first iteration of most runs has no network.
"""

import contextlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from azpy._core import FAST_SEARCH, MIXED_NETWORKS, SEARCHED, GameRecord, UniformEvaluator
from azpy.errors import ModelError, RunError
from azpy.evaluators.choice import open_generation
from azpy.evaluators.onnx import model_bytes, network_id
from azpy.evaluators.protocol import CheckedEvaluator
from azpy.games.lines import replayed
from azpy.playing.selfplay import repeat
from azpy.runs.reader import StoredRun
from azpy.runs.storage import INT8_MODEL

_PLY_FIELDS = ("players", "flags", "networks", "root_values", "player_values", "actions")
_PRECISIONS = ("fp32", "fp16", "bf16")  # of stored games: the setting may have changed since
_SEARCH_FIELDS = ("legal", "priors", "visits", "targets")


@dataclass(frozen=True)
class ReplayCheck:
    """A stored game beside its repeat."""

    plies: int  # that were compared, from the game's start
    whole: bool  # whether these are all: a game is repeated up to an exchange of the network
    model: str  # the evaluator, in words
    difference: str | None  # the first ply and field that differ, in words; None if every bit is the same


def repeat_game(run: StoredRun, record: GameRecord, model: str | os.PathLike[str] | None = None) -> ReplayCheck:
    """Play a stored game again with the run's settings and the network that played it, and compare.

    `model` is the network's file, where the run no longer has it.

    Raises:
        ModelError: the network is gone, the given file is another network, or the network was exchanged during the
            game's first search.
        RunError: the game was imported.
        MissingPackageError: onnxruntime is not installed.
    """
    if record.imported:
        raise RunError(f"game {record.game_id} was imported, so it has no searches to repeat")
    flags, networks = record.flags.tolist(), record.networks.tolist()
    asked = [ply for ply in range(len(record)) if flags[ply] & (SEARCHED | FAST_SEARCH) or networks[ply]]
    network = networks[asked[0]] if asked else 0
    exchanged = [ply for ply in asked if networks[ply] != network or flags[ply] & MIXED_NETWORKS]
    plies = exchanged[0] if exchanged else len(record)
    if exchanged and plies == asked[0]:
        raise ModelError(
            f"game {record.game_id} cannot be repeated: the network changed during its first search, at ply {plies}"
        )
    evaluator, name = _find_model(run, network) if model is None else _open_given(run, network, model)
    if not getattr(evaluator, "row_exact", True):  # as can happen on a GPU
        name += ", whose outputs here depend on the rest of a batch"
    again = repeat(run.settings, run.start, evaluator, record)
    difference = _first_difference(record, again, plies)
    if difference is None and not exchanged:
        *_, last = replayed(run.start, record.actions.tolist())
        # A game that was resigned or cut short may go on in its repeat: the search before a resignation is not stored.
        for field in ("outcome", "capped") if last.is_terminal else ():
            old, new = getattr(record, field), getattr(again, field)
            if difference is None and np.float32(old).tobytes() != np.float32(new).tobytes():
                difference = f"the end: {field} was {old}, repeated {new}"
    return ReplayCheck(plies, not exchanged, name, difference)


def _find_model(run: StoredRun, network: int) -> tuple[Any, str]:
    """The evaluator with that network id, and its name."""
    if network == 0:
        return UniformEvaluator(), "no network: even priors and value 0"
    for iteration in reversed(run.checkpoints()):
        for name, words in (("model.onnx", "model"), (INT8_MODEL, "int8 model")):
            file = run.path / f"checkpoints/{iteration:06d}" / name
            with contextlib.suppress(FileNotFoundError):  # the run may delete it at any time
                if found := _opened(run, file.read_bytes(), network):
                    evaluator, precision = found
                    in_it = "" if precision == "fp32" else f" in {precision}"
                    return evaluator, f"the {words} of checkpoint {iteration}{in_it}"
    remain = ", ".join(map(str, run.checkpoints()))
    raise ModelError(
        f"the model that played the game, network {network:#018x}, no longer exists: {run.path} has "
        f"{f'checkpoints {remain}' if remain else 'no checkpoints'}; give its file with --model if you have it"
    )


def _open_given(run: StoredRun, network: int, model: str | os.PathLike[str]) -> tuple[CheckedEvaluator, str]:
    """A file's model, in the precision in which it played, and its name."""
    _, data = model_bytes(model)
    if found := _opened(run, data, network):
        return found[0], os.fspath(model)
    found_id = network_id(data)
    raise ModelError(f"{os.fspath(model)} is network {found_id:#018x}, but the game was played by {network:#018x}")


def _opened(run: StoredRun, model: bytes, network: int) -> tuple[CheckedEvaluator, str] | None:
    """The model in the precision in which it is this network, and that precision; None if in none."""
    for precision in _PRECISIONS:
        if network_id(model, precision) == network:
            device, batch = run.settings.all_devices[0], run.settings.device_batch
            options: dict[str, Any] = {"game": run.start, "precision": precision, "batch": batch}
            return open_generation(model, device, run.settings, **options), precision
    return None


def _first_difference(record: GameRecord, again: GameRecord, plies: int) -> str | None:
    """The first of the plies that differs in any bit."""
    fields = (*_SEARCH_FIELDS, *_PLY_FIELDS)
    arrays = [{field: getattr(game, field) for field in (*fields, "offsets")} for game in (record, again)]
    for ply in range(plies):
        if ply >= len(again):
            return f"ply {ply}: the repeated game was over before it"
        for field in fields:
            ends = [game["offsets"][ply : ply + 2] if field in _SEARCH_FIELDS else (ply, ply + 1) for game in arrays]
            old, new = (game[field][begin:end] for game, (begin, end) in zip(arrays, ends, strict=True))
            if old.tobytes() != new.tobytes():
                return f"ply {ply}: {field} were {old.tolist()}, repeated {new.tolist()}"
    return None
