"""Players by name: a *spec* is what a user types for each side of a match, see `az-match --help`.

Run folders are only read: they may be in use.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from azpy import _core
from azpy.devices import CPU, OWN, Device
from azpy.errors import ModelError, SettingsError, did_you_mean, warn_once
from azpy.evaluators.choice import WEIGHTS, open_network
from azpy.evaluators.onnx import ANY_SIZE, OnnxEvaluator
from azpy.evaluators.protocol import CheckedEvaluator
from azpy.games.names import differ_in_size, refuse_untyped
from azpy.matches.arena import MATCH_SLOTS, Follower, Player, RandomPlayer, SearchPlayer, mcts, refuse_programs
from azpy.matches.levels import FULL_STRENGTH, ladder_of
from azpy.matches.programs import MOST_SLOTS, ProgramSpec, Transcripts
from azpy.matches.protocols import load_program, needs_nodes, parse_program
from azpy.matches.query import parse_search, query_text
from azpy.runs.reader import BOX, StoredRun, boxed, checkpoint_at, how_to_make, names_in_box, read_model
from azpy.settings.presets import usual_settings
from azpy.settings.run import ABOUT, Settings, match_search, unfit, unused
from azpy.system import usable_cores

_FORMS = (
    f"a run or checkpoint folder, a model file, mcts:N, uniform:N or a bundled player ({', '.join(names_in_box())})"
)
_IN_MATCHES = "in a match also random, or gtp:, uci: or ugi: and a program"


@dataclass(frozen=True)
class Spec:
    """A player as the user named it; nothing is loaded yet."""

    kind: str  # "random", "mcts", "uniform", "model" or "program"
    simulations: int | None = None  # a move, if given
    model: Path | None = None  # the model file, for a model
    run: Path | None = None  # the run folder that holds the model, if any
    search: dict[str, Any] = field(default_factory=dict)  # the given options of `Search`
    temperature: float | None = None  # of its actions, if given
    program: ProgramSpec | None = None  # another program


@dataclass(frozen=True)
class Entrant:
    """One side of a match."""

    name: str  # the kind or the path of the checkpoint or model, and the given search options
    simulations: int | None  # a move; None for a player that does not search
    player: Player | Follower  # picks the actions
    network: CheckedEvaluator | None = None  # evaluates the model; None without a model
    about: str = ""  # what another program says that it is
    search: Mapping[str, Any] = field(default_factory=dict)  # options that differ from the defaults of `Search`

    def __str__(self) -> str:
        about = self.about if self.simulations is None else f"{self.simulations} simulations"
        return f"{self.name} ({about})" if about else self.name


def parse_player(text: str) -> Spec:
    """The player that `text` names.

    Raises:
        SettingsError: an unknown kind of player, no such path or program, or a wrong option.
        RunError: a folder without a model.
    """
    if _exists(text):
        return _named(text)
    if (program := parse_program(text)) is not None:
        return Spec("program", program=program)
    name, mark, query = text.rpartition("?")
    if not mark:
        return _named(text)
    spec = _named(name)
    try:
        search = parse_search(query)
    except SettingsError as error:
        raise SettingsError(f"player {text!r}: {error}") from None
    if spec.kind == "random":
        raise SettingsError(f"player {text!r}: random does not search, so it takes no settings")
    simulations, temperature = search.pop("simulations", None), search.pop("temperature", None)
    if word := search.pop("level", None):
        ladder = ladder_of(spec.run, spec.simulations or FULL_STRENGTH, spec.model is not None)
        if ladder.network is None:
            warn_once(f"player {text!r}: {ladder.about(None)}")
        level = ladder.levels[word]
        return replace(spec, simulations=level.simulations, search=search, temperature=level.temperature or None)
    if simulations and spec.simulations:
        raise SettingsError(
            f"player {text!r}: simulations are given twice: {spec.simulations} before the ? and again after it"
        )
    return replace(spec, simulations=simulations or spec.simulations, search=search, temperature=temperature)


def _named(text: str) -> Spec:
    if text == "random":
        return Spec("random")
    if match := re.fullmatch(r"(mcts|uniform)(?::(.*))?", text):
        return Spec(match[1], _simulations(text, match[2]) if match[2] is not None else None)
    if not Path(text).exists() and (match := re.fullmatch(r"(.+)@([^@/]*)", text)):
        simulations = _simulations(text, match[2])
        if match[1] in {"random", "mcts", "uniform"}:
            instead = "it does not search" if match[1] == "random" else f"write {match[1]}:{simulations}"
            raise SettingsError(f"player {text!r}: @N works only with models, and {match[1]} is not a model: {instead}")
        return replace(_model(match[1]), simulations=simulations)
    return _model(text)


def checkpoints_of(run: Path, most: int | None = None) -> list[Spec]:
    """The checkpoints of a run folder, oldest first: all, or `most` of them, spread evenly from the first to the last.

    Raises:
        RunError: it is no run folder, or has no checkpoint yet.
    """
    checkpoint_at(run)  # raises if there is none
    there = StoredRun(run).checkpoints()
    if most is not None and most < len(there):
        there = [there[int(i)] for i in np.linspace(0, len(there) - 1, most).round()]
    return [Spec("model", model=_file_of(run / f"checkpoints/{number:06d}"), run=run) for number in there]


def settings_of(specs: Sequence[Spec]) -> Settings | None:
    """The settings of the first run that a player comes from; None where none is from a run.

    Raises:
        SettingsError: runs of different games; those of other sizes of one game are not.
        RunError: a config.toml that cannot be read.
    """
    runs = {spec.run: StoredRun(spec.run).settings for spec in specs if spec.run is not None}
    if not runs:
        return None
    first, settings = next(iter(runs.items()))
    for run, others in runs.items():
        if others.game != settings.game and not differ_in_size(others.game, settings.game):
            games = f"{first} plays {settings.game} and {run} plays {others.game}"
            raise SettingsError(f"{games}: all players of a match must play the same game")
    return settings


def game_of(specs: Sequence[Spec], typed: str | None, how: str) -> str:
    """The game of a match: the one that the user typed, if any, else that of the players' run.

    `how` is what the user gives to name a game, for errors.

    Raises:
        SettingsError: no game, or one that must be typed and was not, see `refuse_untyped`.
    """
    run = settings_of(specs)
    game = typed or (run.game if run is not None else "")
    if not game:
        raise SettingsError(f"the players do not say which game to play: give {how.format('GAME')}")
    games = {spec.run: StoredRun(spec.run).settings.game for spec in specs if spec.run is not None}
    if not typed and len({*games.values()}) > 1:
        named = " and ".join(f"{path} plays {each}" for path, each in games.items())
        raise SettingsError(f"{named}: give {how.format('GAME')} with the size to play on")
    folder = next(iter(games), None)
    refuse_untyped(game, typed, folder, "the match", how)
    return game


def warn_of_unused(specs: Sequence[Spec], typed: Mapping[str, Any], *, searches: bool = True) -> None:
    """Warn of typed flags that no player uses. `searches` says whether players search this game."""
    if "simulations" in typed and not (searches and any(map(_needs_simulations, specs))):
        warn_once("--simulations has no effect: each player has its own, or does not search")
    if typed.get("temperature") and all(one.temperature is not None for one in specs):
        warn_once("--temperature has no effect: each player has its own")
    if typed.get("transcripts") is not None and all(one.program is None for one in specs):
        warn_once("--transcripts has no effect: no player is another program")


def _needs_simulations(spec: Spec) -> bool:
    """Whether a player searches as much as the match says."""
    if spec.program is not None:
        return needs_nodes(spec.program)
    return spec.kind != "random" and not spec.simulations


def slots_for(*players: Player | Follower) -> int:
    """Games in play at a time. Programs take turns with their opponents, so half of the games think."""
    programs = any(isinstance(player, Follower) for player in players)
    return min(2 * usable_cores(), MOST_SLOTS) if programs else MATCH_SLOTS


def load_players(
    specs: Sequence[Spec],
    start: _core.State,
    simulations: int,
    device: Device = CPU,
    transcripts: Transcripts | None = None,
) -> list[Entrant]:
    """Make the players that specs name; those of one model share one evaluator.

    Args:
        specs: from `parse_player` or `checkpoints_of`.
        start: a position of the game, which a model must fit.
        simulations: a move, for specs without them; nodes for programs without nodes and time.
        device: where models run, as for `open_network`.
        transcripts: where programs that misbehave leave what they said.

    Raises:
        AzpyError: a model that `open_network` refuses, a run that `StoredRun` refuses, or a program that cannot play.
    """

    @cache
    def open_model(path: Path) -> CheckedEvaluator:
        try:
            return open_network(path, device, game=start, threads=usable_cores())
        except ModelError:
            if device.kind == OWN or path.name == WEIGHTS or ANY_SIZE not in (data := path.read_bytes()):
                raise
            from azpy.learning.export import for_board  # torch takes seconds to load

            # The first load raises the error for another kind of network or another game.
            with contextlib.suppress(ModelError, SettingsError):
                options: dict[str, Any] = {"threads": usable_cores(), "precision": device.usual_precision}
                return OnnxEvaluator(for_board(data, start), device, game=start, **options)
            raise

    players = []
    for spec in specs:
        if spec.kind == "random":
            players.append(Entrant("random", None, RandomPlayer()))
            continue
        if spec.program is not None:
            refuse_programs(start)
            called, about, other = load_program(spec.program, start, simulations, transcripts)
            players.append(Entrant(called, None, other, about=about))
            continue
        name, network, search = spec.kind, None, dict[str, Any]()
        if spec.model is not None:
            name, folder = str(spec.model), spec.model.parent
            if spec.model.name in ("model.onnx", WEIGHTS) and (folder / "manifest.json").exists():
                read_model(folder, spec.model.name)  # a checkpoint's model must be the one that was saved
                name = str(folder) if spec.run is None or spec.run.parent != BOX else spec.run.name
            network = open_model(spec.model.resolve())
            run = None if spec.run is None else StoredRun(spec.run)
            search = match_search(usual_settings(start) if run is None else run.settings, start)
            if run is not None and start.num_players == 1 and folder.name.isdigit():
                search["score_to_beat"] = run.score_to_beat(int(folder.name))
        warmth = {} if spec.temperature is None else {"temperature": spec.temperature}
        called = f"{name}{query_text(spec.search | warmth)}"
        count, search = spec.simulations or simulations, _combined(search, spec.search, called)
        if why := unfit(start, search):
            raise SettingsError(f"player {called!r}: {why}")
        if start.hides and spec.model is None:
            raise SettingsError(
                f"player {called!r}: {start.game} hides something, so a search plays at random: give random"
            )
        if start.hides and (spec.simulations or spec.search or spec.temperature is not None):
            at_all = spec.simulations or spec.temperature is not None
            given = ["simulations, temperatures and levels"] * bool(at_all) + [*spec.search]
            raise SettingsError(
                f"player {called!r}: {start.game} hides something, so its players draw from their policies and do not "
                f"search: leave out {', '.join(given)}"
            )
        if spec.kind == "mcts":
            player = mcts(count, **search, **warmth)
        else:
            player = SearchPlayer(network or _core.UniformEvaluator(), count, **search, **warmth)
        usual = {name: row["default"] for name, row in _core.OPTIONS.items()}
        told = {} if start.hides else search  # where something is hidden, a player does not search
        differing = {name: value for name, value in told.items() if value != usual.get(name, value)}
        players.append(Entrant(called, None if start.hides else count, player, network, search=differing))
    return players


def _combined(search: Mapping[str, Any], own: Mapping[str, Any], called: str) -> dict[str, Any]:
    """The options of a player's search. Its own options win, and remove those that have no effect beside them."""
    options = {**search, **own}
    # The default of a player's search is not always that of self-play.
    for name, why in unused(options, lambda name: _core.OPTIONS[name]["default"]).items():
        if name in own:
            raise SettingsError(f"player {called!r}: {name} {why}")
        del options[name]
    if options.get("gumbel_actions"):
        # The player plays to win, and the random draws of training would weaken it.
        options = {"gumbel_scale": 0.0} | options
    return options


def _simulations(text: str, number: str) -> int:
    return int(ABOUT["simulations"].checked(f"player {text!r}: the number of simulations", number, typed=True))


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


def _file_of(checkpoint: Path) -> Path:
    """The model in ONNX; where a checkpoint has none, the weights."""
    model = checkpoint / "model.onnx"
    return model if model.exists() or not (checkpoint / WEIGHTS).exists() else checkpoint / WEIGHTS


def _unknown(path: Path) -> str:
    """Say why the player does not exist, and what to do."""
    if path.parent.name == "checkpoints":
        return "does not exist: a run keeps its newest three checkpoints and every tenth"
    is_name = path.name == str(path)
    runs = [path.parent, *([Path("runs")] if is_name else [])]
    beside = [str(one) for folder in reversed(runs) if folder.is_dir() for one in folder.iterdir()]
    here = [one for one in beside if Path(one).name == path.name]
    near = did_you_mean(here[0] if here else str(path), here or [*beside, *(names_in_box() if is_name else [])])
    if is_name and path.name in _core.list_games():
        train = f"train one with az-train {path}, and give runs/{path}"
        return f"is a game, and azpy does not bring a trained player for it{near or f': {train}'}"
    if is_name:
        return f"is unknown{near or f': expected {_FORMS}, {_IN_MATCHES}'}"
    return f"does not exist{near or how_to_make(path)}"


def _model(text: str) -> Spec:
    path = boxed(text)
    if not path.exists():
        raise SettingsError(f"player {text!r} {_unknown(path)}")
    if (path / "config.toml").is_file():
        return checkpoints_of(path)[-1]
    model = _file_of(checkpoint_at(path)) if path.is_dir() else path
    around = model.resolve().parent.parent
    run = around.parent if around.name == "checkpoints" and (around.parent / "config.toml").is_file() else None
    return Spec("model", model=model, run=run)
