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
from azpy.training.sizing import piped, placed, sized
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
    """Train a player from nothing, as the command `az-train` does. The same call resumes a stopped run.

    Args:
        game: a game's name, "module:Class", or a class of a game in Python.
        out: the run folder (default: runs/GAME).
        config: a TOML file with settings. Keyword arguments override it.
        supervised: files of games to learn from first, as for `az-train --supervised`.
        on_iteration: is called after each iteration with its figures, a row of metrics.jsonl. If it returns True, the
            run ends; the same call resumes it later, without the games in play and the last match. An exception ends
            the run in the same way, and is raised.
        settings: the flags of `az-train`, with _ for -. Other settings come from the run so far, else from the game's
            preset; azpy measures a game without a preset first. For workers="ray", first put what
            `azpy.fleet.channels.ray.environment()` returns into `os.environ`, so that a new Ray gets its token.

    Returns:
        The run, as from `load_run`. If it has no finished iteration, its `evaluator` raises ModelError.

    Raises:
        SettingsError: a setting is unknown or out of range, or the game cannot be made.
        RunError: the folder is in use, damaged, or of another run.
        MissingPackageError: a package that training needs is not installed.

    Example:
        >>> import azpy
        >>> run = azpy.train("connect_four", minutes=5, on_iteration=print)  # doctest: +SKIP
        >>> azpy.Search(run.evaluator, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """
    spec = spec_of(game)
    typed = {name: checked(name, value) for name, value in {"game": spec, **settings}.items()}
    chosen, folder, _ = choose(typed, config, out, sized, placed, piped)
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
