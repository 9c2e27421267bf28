"""Export the games or the model of a run for other programs.

az-export runs/connect_four --onnx model.onnx
az-export runs/connect_four --npz games.npz --iterations 3-10
az-export runs/connect_four --web site
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from azpy._core import SEARCHED, ReplayBuffer, notation_of
from azpy.cli.card import write_card
from azpy.cli.common import GAME_OF_RUN, Parser, command, not_empty, numbers
from azpy.errors import ModelError, RunError, SettingsError
from azpy.evaluators.net import shape_of
from azpy.games.notations import NAMES
from azpy.runs import exports, storage
from azpy.runs.reader import CHECKPOINT_FILES, StoredRun, boxed, check_rules, read_model
from azpy.serving.models import open_player
from azpy.settings.run import is_own
from azpy.web.page import check_page, write_page

# What is written: the kind of target, and its help.
_GAMES = {
    "npz": ("FILE", "training arrays, one row per searched position"),
    "jsonl": ("FILE", "games as JSON, one per line"),
    "pgn": ("FILE", "chess games as PGN"),
    "sgf": ("FOLDER", "Go games as SGF, one file each"),
}
_MODELS = {
    "onnx": ("FILE", "ONNX model"),
    "onnx_int8": ("FILE", "int8 ONNX model for CPUs with int8 instructions"),
    "card": ("FOLDER", "player to publish, such as on Hugging Face"),
    "web": ("FOLDER", "page to play in the browser, for any static host"),
}
_GOES_WITH = {"iterations": _GAMES, "checkpoint": _MODELS, "license": ("card",), "crate": ("web",)}
_CALIBRATION_POSITIONS = 10_000  # at least, if there are as many
_SIMULATIONS = 200  # a move, where the visitor chooses none; as in az-play


def _parser() -> Parser:
    parser = Parser("az-export", __doc__, "docs/reference/formats.md")
    parser.add_argument("run", type=not_empty, metavar="RUN", help="run folder; it may be in use")
    add, _ = parser.section("Games")
    for name, (kind, text) in _GAMES.items():
        add(_flag(name), type=not_empty, metavar=kind, help=text)
    add("--iterations", metavar="A-B", help="export these iterations, such as 3 or 3-10 (default: all)")
    add("--game", metavar="GAME", help=GAME_OF_RUN)
    add, _ = parser.section("Model")
    for name, (kind, text) in _MODELS.items():
        add(_flag(name), type=not_empty, metavar=kind, help=text)
    add("--checkpoint", metavar="N", type=int, help="export the model of iteration N (default: the newest)")
    text = "with --card: license of the weights, such as apache-2.0 (default: unknown)"
    add("--license", type=not_empty, metavar="NAME", help=text)
    add("--crate", type=not_empty, metavar="PATH", help="with --web: crate of your own game in Rust")
    return parser


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _listed(names: Iterable[str], word: str) -> str:
    *first, last = map(_flag, names)
    return f"{', '.join(first)} {word} {last}" if first else last


def _export(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    targets = {name: target for name in _GAMES | _MODELS if (target := getattr(options, name)) is not None}
    if not targets:
        raise SettingsError(f"nothing to write: give {_listed(_GAMES | _MODELS, 'or')}")
    for name, needed in _GOES_WITH.items():
        if getattr(options, name) is not None and not {*needed} & targets.keys():
            raise SettingsError(f"--{name} goes with {_listed(needed, 'and')}")
    _check_apart(options.run, targets)
    # What is written to standard output must stay as it is.
    said = partial(print, file=sys.stderr if any(map(storage.is_stdout, targets.values())) else sys.stdout, flush=True)
    run = StoredRun(boxed(options.run), options.game)
    game = str(run.settings.game)
    notation = notation_of(game)
    for name in targets:
        if name in NAMES and (notation is None or notation.name != name):
            raise SettingsError(f"--{name} is for games of {' or '.join(NAMES[name])}; these are of {game}")
    crate = None if options.crate is None else Path(options.crate)
    if "web" in targets:  # before what takes time
        _check_page(run, crate)
    if targets.keys() & _GAMES:
        games, event = _games(run, options.iterations), str(run.path)
        # Imported games alone have tags, and they are those of iteration 0.
        imported = {iteration for iteration, _ in games if iteration == 0}
        told = run.tags(imported if targets.keys() & NAMES else ())
        writers: dict[str, Callable[..., int]] = {
            "npz": exports.to_npz,
            "jsonl": exports.to_jsonl,
            "pgn": partial(exports.to_pgn, event=event, told=told),
            "sgf": partial(exports.to_sgf, event=event, told=told),
        }
        for name in [name for name in writers if name in targets]:
            count = f"{writers[name](targets[name], run.start, games):,}"
            said(f"wrote {count} {_positions_of(games) if name == 'npz' else 'games'} to {targets[name]}")
    if targets.keys() & _MODELS:
        iteration = run.iteration if options.checkpoint is None else options.checkpoint
        if "web" in targets:
            size = _page(run, iteration, Path(targets["web"]), options.game, crate)
            said(f"wrote the page of checkpoint {iteration} to {targets['web']} ({size / 1000:,.0f} kB)")
            said(f"to open it: python -m http.server --directory {shlex.quote(targets['web'])}")
        for name in [name for name in ("onnx", "onnx_int8") if name in targets]:
            model = run.model(iteration)
            data, drift = _int8_model(run, model, iteration) if name == "onnx_int8" else (model, "")
            with storage.output(targets[name]) as file:
                file.write(data)
            kind, against = ("int8 model", f"; against fp32 {drift}") if drift else ("model", "")
            said(f"wrote the {kind} of checkpoint {iteration} to {targets[name]}{against}")
        if options.card is not None:
            write_card(run, iteration, options.card, options.license or "unknown")
            said(f"wrote the player of checkpoint {iteration} to {options.card}")
    return 0


def _positions_of(games: exports.Games) -> str:
    """Whose positions --npz has; imported games may have no searches."""
    searched = sum(bool((record.flags & SEARCHED).any()) for _, record in games)
    others = len(games) - searched
    return f"positions of {searched:,} games" + (f" ({others:,} others had no full searches)" if others else "")


def _check_apart(run: str, targets: Mapping[str, str]) -> None:
    """Refuses targets that are files of the run, or that two flags name."""
    flags: dict[Path, str] = {}
    own = [Path(os.path.realpath(run), name) for name in ("games", "checkpoints", "config.toml", "metrics.jsonl")]
    for name, target in targets.items():
        flag, place = _flag(name), Path(os.path.realpath(target))
        if not {place, *place.parents}.isdisjoint(own):
            raise SettingsError(f"{flag} {target} belongs to the run {run}: give another path")
        if (other := flags.setdefault(place, flag)) != flag:
            raise SettingsError(f"{other} and {flag} both write {target}: give each its own file")


def _check_page(run: StoredRun, crate: Path | None) -> None:
    """Refuses a run that cannot be played without a server."""
    check_page(str(run.settings.game), crate)
    network = str(run.settings.network)
    if is_own(network):
        raise SettingsError(
            f"--web: {network} is a torch module of your own, and a page runs only azpy's networks: "
            "az-play and az-serve play this run; a page needs a run with a --network such as 4x32+pool"
        )


def _page(run: StoredRun, iteration: int, folder: Path, game: str | None, crate: Path | None) -> int:
    """Writes the page of a checkpoint's player; returns its bytes."""
    checkpoint = run.path / f"checkpoints/{iteration:06d}"
    served = open_player(str(checkpoint), game, _SIMULATIONS, shows_views=True)
    # The name of the run: nobody needs to know where it lies here.
    named = replace(served, name=f"{run.path.resolve().name}, iteration {iteration}")
    shape = shape_of(run.start, str(run.settings.network), run.settings.value_smoothing)
    weights = read_model(checkpoint, CHECKPOINT_FILES[0])
    return sum(write_page(folder, named, shape, weights, crate).values())


def _int8_model(run: StoredRun, model: bytes, iteration: int) -> tuple[bytes, str]:
    """The int8 model, calibrated on the games that led to a checkpoint, and how far it is from the model."""
    from azpy.evaluators.int8 import int8_of  # loads ONNX Runtime

    buffer = ReplayBuffer(run.start, max_positions=1_000_000)
    for played in sorted((number for number in run.sealed_iterations() if number <= iteration), reverse=True):
        for _, record in run.games([played]):
            buffer.add(record)
        if buffer.num_positions >= _CALIBRATION_POSITIONS:
            break
    if not buffer.num_positions:
        raise RunError(f"{run.path} has no sealed games to calibrate an int8 model on")
    int8, drift = int8_of(model, buffer, seed=iteration)
    if drift.too_far:
        raise ModelError(f"an int8 model of checkpoint {iteration} differs too much from it: {drift.too_far}")
    return int8, str(drift)


def _games(run: StoredRun, chosen: str | None) -> exports.Games:
    """The chosen iterations' games, checked against the rules."""
    iterations: Sequence[int] = run.sealed_iterations()
    if not iterations:
        raise RunError(f"{run.path} has no sealed games yet")
    if chosen is not None:
        iterations = numbers(chosen, "--iterations takes a number or a range such as 3-10")
    games = list(run.games(iterations))
    check_rules(run.start, (record for _, record in games))
    return games


main = command("az-export", _export)
