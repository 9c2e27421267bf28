"""`azpy.train`: a training run from Python."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from azpy._core import listed
from azpy.errors import SettingsError
from azpy.evaluators.choice import LoadedRun
from azpy.game import Game
from azpy.games.names import spec_of
from azpy.runs.storage import numbered
from azpy.settings.choosing import choose, warn_of_idle
from azpy.settings.run import checked
from azpy.training.events import Saved
from azpy.training.sizing import placed, sized
from azpy.training.trainer import Trainer


def train(
    game: str | type[Game],
    *,
    out: str | None = None,
    config: str | None = None,
    supervised: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    on_iteration: Callable[[dict[str, Any]], object] | None = None,
    **settings: Any,
) -> LoadedRun:
    """Trains a player from zero knowledge, as `az-train` does; the same call goes on where a run stopped.

    Args:
        game: a game's name, "module:Class", or a class of a game in Python.
        out: the run folder, by default runs/GAME.
        config: a TOML file with settings. Settings given here win.
        supervised: files of games to begin with, see `az-train --supervised`.
        on_iteration: gets the figures of each iteration that is done: its row of metrics.jsonl. True ends the run. It
            can go on later; only the games in play and the last match are lost. An exception ends the run in the same
            way, and is raised.
        settings: as the flags of `az-train`, with _ for -. The rest comes from the run so far, else from the game's
            preset; a game without one is measured first. With workers="ray", first put what
            `azpy.fleet.channels.ray.environment()` gives into `os.environ`, as `az-train` does: a Ray that starts here
            then has its token.

    Returns:
        The run, with its newest network. If no iteration was done in time, its `evaluator` raises ModelError.

    Raises:
        SettingsError: a setting that is unknown or out of range, or a game that cannot be made.
        RunError: a folder that is in use, damaged, or of another run.
        MissingPackageError: a package that training needs is not installed.

    Example:
        >>> import azpy
        >>> run = azpy.train("connect_four", minutes=5, on_iteration=print)  # doctest: +SKIP
        >>> azpy.Search(run.evaluator, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """
    spec = spec_of(game)
    typed = {name: checked(name, value) for name, value in {"game": spec, **settings}.items()}
    chosen, folder, _ = choose(typed, config, out, sized, placed)
    try:
        given = [supervised] if isinstance(supervised, str | os.PathLike) else listed(supervised)
        files = [os.fspath(path) for path in given]
        if wrong := [name for name in files if not isinstance(name, str)]:
            raise TypeError(f"{wrong[0]!r} is {type(wrong[0]).__name__}, not str")
    except TypeError as error:
        raise SettingsError(f"supervised must be a file or a list of files: {error}") from error
    warn_of_idle(chosen, typed, supervised=bool(files) or 0 in numbered(Path(folder, "games"), ".npz"))
    with Trainer(chosen, folder, files) as trainer:
        for event in trainer.run():
            if on_iteration is None or not isinstance(event, Saved):
                continue
            if on_iteration({"iteration": event.iteration, **event.metrics}) is True:
                break
    return LoadedRun(folder, chosen.game)
