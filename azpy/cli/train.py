"""Train a player from zero knowledge, or resume a run.

az-train connect_four --minutes 20
az-train mygame:MyGame --out runs/mine
az-train --config runs/mine/config.toml --out runs/again
"""

import argparse
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from azpy import list_games
from azpy.cli.common import GAME, Parser, add_setting, command, not_empty, was_interrupted
from azpy.cli.progress import Display
from azpy.errors import SettingsError, one_line
from azpy.fleet.channels.ray import environment
from azpy.games.names import imported, make_game, must_be_typed
from azpy.runs import storage
from azpy.settings.choosing import choose, listed, warn_of_idle
from azpy.settings.presets import preset_of
from azpy.settings.run import ABOUT, GROUPS, Settings, function_flags, is_own, network_form
from azpy.settings.toml import path_argument, repeat_command
from azpy.training.events import Event, Finished

_BRIEF = (  # settings of --help
    *("iterations", "minutes", "network", "device"),
    *("workers", "simulations", "games_per_iteration", "learning_rate", "passes"),
)


def _parser() -> Parser:
    parser = Parser("az-train", __doc__, "docs/guides/training.md, docs/reference/settings.md")
    parser.add_argument("game", nargs="?", type=not_empty, default=argparse.SUPPRESS, metavar="GAME", help=GAME)
    sections = {group: parser.section(group.capitalize()) for group in GROUPS}
    add, rare = sections["run"]
    add("--out", metavar="FOLDER", help="run folder (default: runs/GAME)")
    add("--config", type=not_empty, metavar="FILE", help="TOML file of settings, such as config.toml of a run")
    add("--list-games", action="store_true", help="list the games, their parameters and presets")
    text = "learn from PGN, SGF or npz files before self-play"
    rare("--supervised", nargs="+", type=not_empty, metavar="FILE", default=[], help=text)
    rare("--collect-only", action="store_true", help="only play and store games, to train elsewhere")
    text = "with --collect-only: ONNX model that plays, reread each iteration (default: even priors)"
    rare("--model", type=not_empty, metavar="FILE", help=text)
    for name, about in ABOUT.items():
        if name != "game":
            add, rare = sections[about.group]
            add_setting(add if name in _BRIEF else rare, name)
    return parser


def _choose(options: argparse.Namespace, *measures: Any) -> tuple[dict[str, Any], tuple[Settings, str, str]]:
    """The settings that a command line gives, and `choose` of them."""
    given = {name: value for name, value in vars(options).items() if name in ABOUT}
    return given, choose(given, options.config, options.out, *measures)


def _sized(settings: Settings, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    if not make_game(settings.game).hides:  # its errors come first
        print(f"{settings.game} has no preset: measuring the game and this machine for a few seconds", flush=True)
    from azpy.training.sizing import sized  # torch takes seconds to load

    return sized(settings, given)


def _placed(settings: Settings) -> tuple[str, str]:
    from azpy.training.sizing import placed  # torch takes seconds to load

    return placed(settings)


def _piped(with_pipelines: Callable[[int], Settings]) -> tuple[int, str]:
    from azpy.training.sizing import piped  # torch takes seconds to load

    return piped(with_pipelines)


def _games() -> str:
    lines = []
    for name, parameters in sorted(list_games().items()):
        values = ",".join(f"{key}={value}" for key, value in parameters.items())
        lines += [f"{name}({values})" if values else name, f"    preset: {listed(preset_of(name)) or 'none'}"]
    lines += ["module:Class", "    a game written in Python, see azpy.Game; no preset"]
    return "\n".join([*lines, "open_spiel:NAME", "    a game of OpenSpiel, see azpy.games.open_spiel; no preset"])


def _train(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.list_games:
        print(_games())
        return 0
    measures = () if options.collect_only else (_sized, _placed, _piped)
    given, (settings, out, said) = _choose(options, *measures)
    if settings.workers == "ray":
        for name, value in environment().items():
            os.environ.setdefault(name, value)
    if options.supervised and options.collect_only:
        raise SettingsError("--supervised does not go with --collect-only, which fits no network")
    if options.model is not None and not options.collect_only:
        raise SettingsError("--model goes with --collect-only: training begins from zero knowledge")
    make_game(settings.game)  # errors come before the line on the settings
    for name in () if options.collect_only else ("network", "optimizer"):
        if is_own(spec := getattr(settings, name)):
            imported(name, spec)
        elif name == "network":
            network_form(spec)
    if said:
        print(one_line(said), flush=True)
    began = bool(options.supervised) or 0 in storage.numbered(Path(out, "games"), ".npz")
    warn_of_idle(settings, given, supervised=began, collects=options.collect_only, has_model=options.model is not None)
    with _opened(settings, out, options) as run, Display() as display:
        try:
            for event in run.run():
                display.show(event)
        except BaseException as error:
            if was_interrupted(error) and storage.numbered(Path(out) / "checkpoints"):
                display.line(_to_play(settings, out))
            raise
    _say_next(settings, event, run.folder.flags)
    return 0


def _opened(settings: Settings, out: str, options: argparse.Namespace) -> Any:
    """What plays, and learns unless games are only collected."""
    if options.collect_only:
        from azpy.training.collector import Collector

        return Collector(settings, out, options.model)
    # What torch says of tracing a network of the user's, whose model is compared with it, and of TorchScript.
    warnings.filterwarnings("ignore", message="(Converting a tensor|Using len) to |.torch.load. received a zip file")
    from azpy.training.trainer import Trainer  # after the arguments: torch takes seconds to load

    return Trainer(settings, out, options.supervised)


def _to_play(settings: Settings, run: str) -> str:
    return f"to play: {shlex.join(['az-play', path_argument(run), *_typed(settings)])}"


def _hides(settings: Settings) -> bool:
    try:
        return make_game(settings.game).hides
    except SettingsError:  # its module has gone since the run began
        return False


def _typed(settings: Settings) -> list[str]:
    """The game as an argument of commands that take it from the run alone unless it names code or files."""
    return ["--game", settings.game] if must_be_typed(settings.game) else []


def _say_next(settings: Settings, done: Event, flags: Sequence[str]) -> None:
    """Prints commands for the next steps, to play first; `flags` of the run are no settings."""
    if not isinstance(done, Finished):
        return
    run = path_argument(done.path)
    file = path_argument(Path(done.path).resolve().name or "model")
    functions = function_flags(vars(settings))
    on = ["az-train", settings.game, *functions, "--out", run]
    typed = _typed(settings)
    # Twice the length, or twice what is done where the run was longer before.
    lengths = {"minutes": done.seconds // 60, "iterations": done.iteration, "total_evaluations": 0}
    longer = [
        f"--{name.replace('_', '-')}={2 * max(length, so_far):.15g}"
        for name, so_far in lengths.items()
        if (length := getattr(settings, name)) is not None
    ]
    collected = done.collected is not None
    has_model = not collected and (done.iteration > 0 or done.has_model)
    if has_model:
        print(_to_play(settings, done.path))
    if not collected and (Path(done.path) / "report.html").is_file():
        print(f"report: {shlex.quote(run)}/report.html")
    steps = {"collect more" if collected else "train longer": [*on, *flags, *longer]}
    if done.game is not None:
        steps["look at a game"] = ["az-replay", run, str(done.game), *typed]
    if done.collected:
        steps["get training arrays"] = ["az-export", run, "--npz", f"{file}.npz", *typed]
        steps["train on these games"] = on
    elif has_model:
        steps["play a match"] = ["az-match", run, "random" if _hides(settings) else "mcts:1000", *typed]
        steps["export the model"] = ["az-export", run, "--onnx", f"{file}.onnx"]
    for what, line in steps.items():
        print(f"to {what}: {shlex.join(line)}")
    if done.repeatable:
        print(f"to repeat this run: {repeat_command(done.path, settings.game, [*functions, *flags])}")
    sys.stdout.flush()


main = command("az-train", _train, stopped="stopped; every finished game is saved. Resume with: {command}")
