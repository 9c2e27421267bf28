"""`az-bench WHAT...`: how fast search, games, an evaluator and self-play are on this machine.

  search     simulations a second of one tree, leaves a second of the batched path, bytes a simulation
  games      random games and plies a second of each built-in game, played in Rust
  evaluator  positions a second of a model by batch size
  selfplay   positions a second of the model alone, of azpy's evaluator over it, and of self-play over the evaluator,
             in batches of one size

Medians of --repeats turns of --seconds each, what is compared taking turns; in brackets the least and the most.

Exit codes: 0 done, 2 something the user can put right (one line on stderr), 130 interrupted, 141 nobody reads the
output any more.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.cli.common import Parser, not_empty, run_command
from azpy.errors import MissingPackageError, SettingsError
from azpy.playing import benchmarks
from azpy.playing.benchmarks import Figure
from azpy.positions import Position, make_position
from azpy.runs import storage
from azpy.settings.run import Settings, combine, default_of, parse

_WHAT = ("search", "games", "evaluator", "selfplay")
_GAME = "connect_four"
_OF_SELF_PLAY = ("slots", "pipelines", "eval_batch", "simulations")


def _parser() -> Parser:
    parser = Parser("az-bench", __doc__)
    parser.add_argument("what", nargs="+", choices=_WHAT, metavar="WHAT", help=f"any of {', '.join(_WHAT)}")
    game = f"NAME, 'NAME(key=1,key=2)', module:Class or open_spiel:NAME (default {_GAME}; for games every built-in one)"
    parser.add_argument("--game", type=not_empty, help=game)
    parser.add_argument(
        "--model", type=not_empty, metavar="FILE", help="an ONNX model of the game (default a random network)"
    )
    parser.add_argument("--network", default="5x64", metavar="BxC", help="of the random network (default 5x64)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn (default 2)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns that count (default 5)")
    text = "also write the figures there; - for stdout, without the table"
    parser.add_argument("--json", type=not_empty, metavar="FILE", help=text)
    for name in _OF_SELF_PLAY:
        flag, default = "--" + name.replace("_", "-"), default_of(name)
        parser.add_argument(flag, metavar="N", help=f"of selfplay, as of az-train (default {default})")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command("az-bench", _bench, arguments)


def _bench(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    if given.repeats < 1:
        raise SettingsError(f"repeats must be at least 1, got {given.repeats}")
    if not (math.isfinite(given.seconds) and given.seconds > 0):
        raise SettingsError(f"seconds must be a number above 0, got {given.seconds}")
    if given.json in (None, "-"):
        text = _measured(given)
        print(text if given.json else "", end="", flush=True)
        return 0
    with storage.output(given.json) as file:  # a path that cannot be written is refused before minutes of measuring
        file.write(_measured(given).encode())
    return 0


def _measured(given: argparse.Namespace) -> str:
    """Shows the figures, and returns all as JSON."""
    typed = {name: text for name in _OF_SELF_PLAY if (text := getattr(given, name)) is not None}
    settings = combine(
        {"game": given.game or _GAME, "network": given.network}, {name: parse(name, typed[name]) for name in typed}
    )
    chosen = {name: getattr(settings, name) for name in ("network", *_OF_SELF_PLAY)}
    start = make_position(settings.game)
    evaluator = bare = None
    if {"evaluator", "selfplay"} & set(given.what):
        evaluator, bare = _evaluators(start, given.model, settings.network)
        chosen["network"] = given.model or f"{settings.network}, random"
    else:
        del chosen["network"]
    turns = {"seconds": given.seconds, "repeats": given.repeats}
    report: dict[str, Any] = {"machine": benchmarks.machine(), "settings": {"game": settings.game} | chosen | turns}
    show = _nothing if given.json == "-" else _show
    show(_heading(report))
    report["figures"] = []
    for what in dict.fromkeys(given.what):
        figures = _measure(what, given.game, settings, start, evaluator, bare, turns)
        report["figures"] += [{"benchmark": what} | figure.row() for figure in figures]
        show(_table(what, figures))
    return json.dumps(report, indent=2) + "\n"


def _measure(
    what: str,
    game: str | None,
    settings: Settings,
    start: Position,
    evaluator: Any,
    bare: "_Bare | None",
    turns: dict[str, Any],
) -> list[Figure]:
    if what == "search":
        return benchmarks.measure_search(start, **turns)
    if what == "games":
        games = {game: start} if game else {name: make_position(name) for name in _core.list_games()}
        return benchmarks.measure_games(games, **turns)
    if what == "evaluator":
        return benchmarks.measure_evaluator(evaluator, start.obs_shape, **turns)
    return benchmarks.measure_self_play(start, evaluator, settings, bare=bare, **turns)


class _Bare:
    """A model as ONNX Runtime runs it, one core a call, with nothing of azpy's around it."""

    def __init__(self, model: str | bytes, input_name: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input = input_name

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
        return self._session.run(None, {self._input: observations})


def _evaluators(start: Position, model: str | None, network: str) -> tuple[Any, _Bare | None]:
    """The model, or a random network; and the same bare, where it takes batches of any size."""
    from azpy.evaluators.onnx import OnnxEvaluator  # loads ONNX Runtime

    data: str | bytes
    if model is not None:
        data = model
    else:
        try:
            from azpy.learning.network import Network, to_onnx  # loads torch
        except MissingPackageError as error:
            raise MissingPackageError(f"{error}; or give a model with --model FILE") from None
        data = to_onnx(Network.of(start, network))
    evaluator = OnnxEvaluator(data, game=start)
    bare = _Bare(data, evaluator.signature.input) if evaluator.signature.batch is None else None
    return evaluator, bare


def _heading(report: dict[str, Any]) -> str:
    machine, settings = report["machine"], report["settings"]
    versions = ", ".join(
        f"{name} {version}" for name, version in machine.items() if name not in ("cpu", "cores", "system") and version
    )
    chosen = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}\n{versions}\n{chosen}"


def _table(what: str, figures: Sequence[Figure]) -> str:
    rows = []
    for row in (figure.row() for figure in figures):
        span = f"({row['min']:,.0f}..{row['max']:,.0f})" if len(row["runs"]) > 1 else ""
        ratio = ""
        if row["of"]:
            ratio = f"{row['ratio']:.3f} of {row['of']} ({row['ratio_min']:.3f}..{row['ratio_max']:.3f})"
        rows.append((row["name"], f"{row['median']:,.0f}", row["unit"], span, ratio))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        f"  {name:<{widths[0]}}  {median:>{widths[1]}} {unit:<{widths[2]}}  {span:<{widths[3]}}  {ratio}".rstrip()
        for name, median, unit, span, ratio in rows
    ]
    return "\n".join(["", what, *lines])


def _show(text: str) -> None:
    print(text, flush=True)


def _nothing(text: str) -> None:
    """For --json -, whose stdout is for programs."""


if __name__ == "__main__":
    sys.exit(main())
