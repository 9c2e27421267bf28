"""Measure the speed of search, games, networks and self-play on this machine.

az-bench search games
az-bench evaluator selfplay --network 6x64
az-bench selfplay --game go --model model.onnx
"""

import argparse
import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from azpy import _core
from azpy.cli.common import GAME, Parser, add_number, add_setting, columns, command, not_empty
from azpy.errors import MissingPackageError, SettingsError, warn_once
from azpy.games.names import make_game
from azpy.playing import benchmarks
from azpy.runs import storage
from azpy.settings.run import ABOUT, combine, default_of, unfit

_WHAT = ("search", "games", "evaluator", "selfplay")
_GAME, _NETWORK = "connect_four", "5x64"
_BRIEF = ("slots", "pipelines", "threads", "eval_batch", "simulations")  # settings of --help
_OF_SELF_PLAY = ("slots", "pipelines", "threads", *_core.OPTIONS)


def _parser() -> Parser:
    parser = Parser("az-bench", __doc__, "docs/reference/commands.md")
    text = "what to measure: search, games, evaluator, or selfplay"
    parser.add_argument("what", nargs="+", choices=_WHAT, metavar="WHAT", help=text)
    add, _ = parser.section("Measurement")
    text = f"{GAME} (default: {_GAME}; az-bench games: all)"
    add("--game", type=not_empty, default=argparse.SUPPRESS, metavar="GAME", help=text)
    add("--model", type=not_empty, metavar="FILE", help="ONNX model of the game (default: a random network)")
    add_setting(add, "network", f"size of the random network (default: {_NETWORK})")
    add_number(add, "--seconds", "seconds per measurement", 2.0, kind=float, low=0, above=True)
    add_number(add, "--repeats", "measurements of each figure; the median counts", 5, low=1)
    add("--json", type=not_empty, metavar="FILE", help="also write JSON; - prints only JSON")
    add, rare = parser.section("Self-play")
    for name in _OF_SELF_PLAY:
        add_setting(add if name in _BRIEF else rare, name)
    return parser


def _bench(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    if given.json in (None, "-"):
        text = _measured(given)
        print(text if given.json else "", end="", flush=True)
    else:
        with storage.output(given.json) as file:  # fails before minutes of measuring if the path cannot be written
            file.write(_measured(given).encode())
    return 0


def _measured(given: argparse.Namespace) -> str:
    """Shows the figures, and returns all as JSON."""
    typed = {name: value for name, value in vars(given).items() if name in ABOUT}
    settings = combine({"game": _GAME, "network": _NETWORK}, typed)
    chosen = {name: getattr(settings, name) for name in ("network", "slots", "pipelines", "eval_batch", "simulations")}
    changed = (name for name in _core.OPTIONS if getattr(settings, name) != default_of(name))
    chosen |= {name: getattr(settings, name) for name in changed}
    idle = [] if "selfplay" in given.what else [name for name in _OF_SELF_PLAY if name in typed]
    has_network = not {"evaluator", "selfplay"}.isdisjoint(given.what)
    if not has_network:
        idle += [name for name in ("model", "network") if vars(given).get(name) is not None]
    for name in idle:
        warn_once(f"--{name.replace('_', '-')} has no effect on {' and '.join(given.what)}")
    start = make_game(settings.game)
    if "selfplay" in given.what and (why := unfit(start, vars(settings))):
        raise SettingsError(why)
    evaluator: Any = None
    bare: Any = None
    if has_network:
        evaluator, bare = _evaluators(start, given.model, settings.network)
        chosen["network"] = given.model or f"{settings.network}, random"
    else:
        del chosen["network"]
    turns = {"seconds": given.seconds, "repeats": given.repeats}
    machine, used = benchmarks.machine(), {"game": settings.game} | chosen | turns

    def say(text: str) -> None:
        if given.json != "-":  # then stdout is for programs
            print(text, flush=True)

    versions = [f"{name} {text}" for name, text in machine.items() if name not in ("cpu", "cores", "system") and text]
    say(f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}\n{', '.join(versions)}")
    say(", ".join(f"{name} {value}" for name, value in used.items()))
    games = [typed["game"]] if "game" in typed else _core.list_games()
    measures: dict[str, Callable[[], list[benchmarks.Figure]]] = {
        "search": lambda: benchmarks.measure_search(start, **turns),
        "games": lambda: benchmarks.measure_games({name: make_game(name) for name in games}, **turns),
        "evaluator": lambda: benchmarks.measure_evaluator(evaluator, start.obs_shape, **turns),
        "selfplay": lambda: benchmarks.measure_self_play(start, evaluator, settings, bare=bare, **turns),
    }
    figures = []
    for what in dict.fromkeys(given.what):
        rows = [figure.row() for figure in measures[what]()]
        figures += [{"benchmark": what} | row for row in rows]
        say(_table(what, rows))
    return json.dumps({"machine": machine, "settings": used, "figures": figures}, indent=2) + "\n"


def _evaluators(start: _core.State, model: str | None, network: str) -> tuple[Any, Any]:
    """The model or a random network, and its bare ONNX Runtime session on one core if it takes batches of any size."""
    from azpy.evaluators.onnx import OnnxEvaluator  # loads ONNX Runtime

    data: str | bytes | None = model
    if data is None:
        try:
            from azpy.learning.export import to_onnx  # loads torch
            from azpy.learning.own import network_of
        except MissingPackageError as error:
            raise MissingPackageError(f"{error}; or give a model with --model FILE") from None
        data = to_onnx(network_of(start, network))
    evaluator = OnnxEvaluator(data, game=start)
    if evaluator.signature.batch is not None:
        return evaluator, None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    name = evaluator.signature.input
    return evaluator, SimpleNamespace(evaluate_batch=lambda observations: session.run(None, {name: observations}))


def _table(what: str, rows: Sequence[dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        span = f"({row['min']:,.0f}..{row['max']:,.0f})" if len(row["runs"]) > 1 else ""
        ratio = "{ratio:.3f} of {of} ({ratio_min:.3f}..{ratio_max:.3f})".format(**row) if row["of"] else ""
        cells.append((row["name"], f"{row['median']:,.0f}", row["unit"], span, ratio))
    return "\n".join(["", what, *(f"  {line}".rstrip() for line in columns(cells, "<><<<"))])


main = command("az-bench", _bench)
