"""Players by name: what a user types for each side of a match.

A *spec* is `random`, `mcts:1000` (plain Monte Carlo tree search with that many simulations a move), `uniform:800`
(search that knows no values and finds every action alike), or the path of a model file, a checkpoint folder or a run
folder, which stands for its newest checkpoint. `PATH@200` searches with 200 simulations. Run folders are only read:
they may be in use.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from azpy import _core
from azpy.arena import Player, RandomPlayer, SearchPlayer, mcts
from azpy.errors import SettingsError
from azpy.machine import usable_cores
from azpy.onnx import OnnxEvaluator
from azpy.positions import Position
from azpy.settings import Settings, match_search
from azpy.stored import StoredRun, checkpoint_at, read_model

__all__ = ["Entrant", "Spec", "checkpoints_of", "load_player", "parse_player", "settings_of"]

_FORMS = "random, mcts:N, uniform:N, a model file, a checkpoint folder or a run folder"


@dataclass(frozen=True)
class Spec:
    """Which player was asked for; nothing of it is loaded yet.

    Attributes:
        kind: "random", "mcts", "uniform" or "model".
        simulations: a move, if the spec says.
        model: path of the model file, for a model.
        run: the run folder that it is in, if it is in one.
    """

    kind: str
    simulations: int | None = None
    model: Path | None = None
    run: Path | None = None


@dataclass(frozen=True)
class Entrant:
    """One side of a match.

    Attributes:
        name: for people: the kind, or the checkpoint's or model's path.
        simulations: a move; None for a player that does not search.
        player: picks the actions.
        network: answers for a model's positions; None without a model.
    """

    name: str
    simulations: int | None
    player: Player
    network: OnnxEvaluator | None = None

    def __str__(self) -> str:
        return self.name if self.simulations is None else f"{self.name} ({self.simulations} simulations)"


def parse_player(text: str) -> Spec:
    """The player that `text` names.

    Raises:
        SettingsError: no form of a player, or no such path.
        RunError: a folder without a model.
    """
    if text == "random":
        return Spec("random")
    if match := re.fullmatch(r"(mcts|uniform)(?::(.*))?", text):
        return Spec(match[1], _simulations(text, match[2]) if match[2] is not None else None)
    if not Path(text).exists() and (match := re.fullmatch(r"(.+)@([^@/]*)", text)):
        return replace(_model(match[1]), simulations=_simulations(text, match[2]))
    return _model(text)


def checkpoints_of(run: Path, most: int | None = None) -> list[Spec]:
    """The checkpoints of a run folder, oldest first.

    Args:
        run: its path.
        most: take this many, spread evenly from the first to the last; all if not given.

    Raises:
        RunError: it is no run folder, or has no checkpoint yet.
    """
    checkpoint_at(run)  # one at least
    there = StoredRun(run).checkpoints()
    if most is not None and most < len(there):
        there = [there[int(i)] for i in np.linspace(0, len(there) - 1, most).round()]
    return [Spec("model", model=run / f"checkpoints/{number:06d}/model.onnx", run=run) for number in there]


def settings_of(specs: Sequence[Spec]) -> Settings | None:
    """The settings of the first run that a player comes from; None where none is from a run.

    Raises:
        SettingsError: runs of different games.
        RunError: a config.toml that cannot be read.
    """
    runs = {spec.run: StoredRun(spec.run).settings for spec in specs if spec.run is not None}
    if not runs:
        return None
    first, settings = next(iter(runs.items()))
    for run, others in runs.items():
        if others.game != settings.game:
            raise SettingsError(
                f"{first} plays {settings.game} and {run} plays {others.game}: "
                "the players of a match must be of one game"
            )
    return settings


def load_player(spec: Spec, start: Position, simulations: int, c_puct: float | None = None) -> Entrant:
    """Makes the player that a spec names.

    Args:
        spec: from `parse_player` or `checkpoints_of`.
        start: a position of the game, which a model must fit.
        simulations: a move, where the spec does not say.
        c_puct: weight of a model's prior, in place of the match_c_puct of its run. A model searches as the settings of
            its run say for matches, or their defaults. Players without a model are the same in every match.

    Raises:
        ModelError: a model that cannot be read or does not fit the game.
        RunError: a checkpoint whose model is damaged, or a config.toml that cannot be read.
        MissingPackageError: onnxruntime is not installed.
    """
    if spec.kind == "random":
        return Entrant("random", None, RandomPlayer())
    count = simulations if spec.simulations is None else spec.simulations
    if spec.kind == "mcts":
        return Entrant("mcts", count, mcts(count))
    if spec.model is None:
        return Entrant("uniform", count, SearchPlayer(_core.UniformEvaluator(), count))
    name = spec.model
    if spec.model.name == "model.onnx" and (spec.model.parent / "manifest.json").exists():
        read_model(spec.model.parent)  # a checkpoint's model must be the one that was saved
        name = spec.model.parent
    settings: Settings | type[Settings] = StoredRun(spec.run).settings if spec.run is not None else Settings
    network = OnnxEvaluator(spec.model, game=start, threads=usable_cores())
    search = match_search(settings) | ({} if c_puct is None else {"c_puct": c_puct})
    return Entrant(str(name), count, SearchPlayer(network, count, **search), network)


def _simulations(text: str, number: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", number):
        raise SettingsError(f"player {text!r}: expected a whole number of simulations, got {number!r}")
    return int(number)


def _model(text: str) -> Spec:
    path = Path(text)
    if not path.exists():
        raise SettingsError(f"player {text!r}: expected {_FORMS}, and there is no such file or folder")
    if (path / "config.toml").is_file():
        return checkpoints_of(path)[-1]
    model = checkpoint_at(path) / "model.onnx" if path.is_dir() else path
    around = model.resolve().parent.parent
    run = around.parent if around.name == "checkpoints" and (around.parent / "config.toml").is_file() else None
    return Spec("model", model=model, run=run)
