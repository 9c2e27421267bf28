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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.cli.common import Parser, command, not_empty
from azpy.errors import MissingPackageError, SettingsError
from azpy.games.names import make_position, refuse_untyped
from azpy.playing import benchmarks
from azpy.playing.benchmarks import Figure
from azpy.runs import storage
from azpy.settings.run import combine, default_of, parse
from azpy.settings.toml import read_config

_WHAT = ("search", "games", "evaluator", "selfplay")
_GAME, _NETWORK = "connect_four", "5x64"
_OF_SELF_PLAY = ("slots", "pipelines", "threads", *_core.OPTIONS)


def _parser() -> Parser:
    parser = Parser("az-bench", __doc__)
    add = parser.add_argument
    add("what", nargs="+", choices=_WHAT, metavar="WHAT", help=f"any of {', '.join(_WHAT)}")
    game = f"NAME, 'NAME(key=1,key=2)', module:Class or open_spiel:NAME (default {_GAME}; for games every built-in one)"
    add("--game", type=not_empty, help=game)
    add("--model", type=not_empty, metavar="FILE", help="an ONNX model of the game (default a random network)")
    add("--network", metavar="BxC", help=f"of the random network (default {_NETWORK})")
    add("--config", type=not_empty, metavar="FILE", help="settings, such as config.toml of a run")
    add("--seconds", type=float, default=2.0, help="of each turn (default 2)")
    add("--repeats", type=int, default=5, metavar="N", help="turns that count (default 5)")
    text = "also write the figures there; - for stdout, without the table"
    add("--json", type=not_empty, metavar="FILE", help=text)
    for name in _OF_SELF_PLAY:
        flag, default = "--" + name.replace("_", "-"), default_of(name)
        add(flag, metavar="VALUE", help=f"of selfplay, as of az-train (default {default})")
    return parser


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
    typed = {name: text for name in ("game", "network", *_OF_SELF_PLAY) if (text := getattr(given, name)) is not None}
    settings = combine(
        {"game": _GAME, "network": _NETWORK},
        read_config(given.config) if given.config else {},
        {name: parse(name, typed[name]) for name in typed},
    )
    refuse_untyped(settings.game, given.game, given.config, "measuring", "--game {}")
    chosen = {name: getattr(settings, name) for name in ("network", "slots", "pipelines", "eval_batch", "simulations")}
    chosen |= {name: getattr(settings, name) for name in _core.OPTIONS if getattr(settings, name) != default_of(name)}
    start = make_position(settings.game)
    evaluator: Any = None
    bare = None
    if {"evaluator", "selfplay"} & set(given.what):
        evaluator, bare = _evaluators(start, given.model, settings.network)
        chosen["network"] = given.model or f"{settings.network}, random"
    else:
        del chosen["network"]
    turns = {"seconds": given.seconds, "repeats": given.repeats}
    report: dict[str, Any] = {"machine": benchmarks.machine(), "settings": {"game": settings.game} | chosen | turns}
    quiet = given.json == "-"  # stdout is for programs
    if not quiet:
        print(_heading(report), flush=True)
    names = [given.game] if given.game else _core.list_games()
    measure: dict[str, Callable[[], list[Figure]]] = {
        "search": lambda: benchmarks.measure_search(start, **turns),
        "games": lambda: benchmarks.measure_games({name: make_position(name) for name in names}, **turns),
        "evaluator": lambda: benchmarks.measure_evaluator(evaluator, start.obs_shape, **turns),
        "selfplay": lambda: benchmarks.measure_self_play(start, evaluator, settings, bare=bare, **turns),
    }
    report["figures"] = []
    for what in dict.fromkeys(given.what):
        rows = [figure.row() for figure in measure[what]()]
        report["figures"] += [{"benchmark": what} | row for row in rows]
        if not quiet:
            print(_table(what, rows), flush=True)
    return json.dumps(report, indent=2) + "\n"


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


def _evaluators(start: _core.State, model: str | None, network: str) -> tuple[Any, _Bare | None]:
    """The model, or a random network; and the same bare, where it takes batches of any size."""
    from azpy.evaluators.onnx import OnnxEvaluator  # loads ONNX Runtime

    data: str | bytes | None = model
    if data is None:
        try:
            from azpy.learning.export import to_onnx  # loads torch
            from azpy.learning.network import Network
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


def _table(what: str, rows: Sequence[dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        span = f"({row['min']:,.0f}..{row['max']:,.0f})" if len(row["runs"]) > 1 else ""
        ratio = "{ratio:.3f} of {of} ({ratio_min:.3f}..{ratio_max:.3f})".format(**row) if row["of"] else ""
        cells.append((row["name"], f"{row['median']:,.0f}", row["unit"], span, ratio))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  {:<{}}  {:>{}} {:<{}}  {:<{}}  {:<{}}".format
    lines = [form(*(part for pair in zip(row, widths, strict=True) for part in pair)).rstrip() for row in cells]
    return "\n".join(["", what, *lines])


main = command("az-bench", _bench)

if __name__ == "__main__":
    sys.exit(main())
