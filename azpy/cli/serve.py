"""`az-serve PLAYER`: a trained player for many clients, by HTTP and WebSocket.

PLAYER is a run folder, a checkpoint folder, a model file, mcts:N or uniform:N, with options of the search after ?, as
for az-match. Queries are those of `az-engine --protocol json`: POST /query, or messages of the WebSocket /ws. The page
at / is a board. /health, /ready and /metrics watch the process. SIGTERM answers what was asked and ends; SIGHUP loads
the newest model of each run.

--config FILE is a TOML file with the names of the flags below, - as _, and a table [models] of NAME = "PLAYER". The
command line wins. A token comes from --token-file or from the environment variable AZPY_TOKEN alone.
"""

import contextlib
import os
import re
import signal
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from azpy.cli.common import GAME_OF_RUN, Parser, command, named_player, not_empty
from azpy.errors import MissingPackageError, SettingsError, did_you_mean, pip_install
from azpy.serving.models import Model, open_model
from azpy.settings.run import checked

_SHORTEST_TOKEN = 16
_LOOPBACK = re.compile(r"127\.[0-9.]+|::1|localhost")


def _parser() -> Parser:
    parser = Parser("az-serve", __doc__)
    add = parser.add_argument
    add("player", type=not_empty, metavar="PLAYER", nargs="?", help="who plays; or `player` in --config")
    add("--config", type=Path, metavar="FILE", help="a TOML file with these settings")
    add("--game", type=not_empty, help=f"for mcts, uniform and model files; {GAME_OF_RUN}")
    add("--model", action="append", metavar="NAME=PLAYER", help="one more player, named NAME to be asked for")
    add("--simulations", type=int, help="of a search, if the client gives no limit (default 800)")
    add("--temperature", type=float, help="above 0 weaker moves are played too, by visits (default 0)")
    add("--device", help="where the models run (default cpu)")
    add("--address", type=not_empty, help="where to listen (default 127.0.0.1); any other address needs a token")
    add("--port", type=int, help="where to listen (default 8000; 0 takes a free one)")
    add("--host", action="append", metavar="NAME", help="a name of this server that clients use")
    add("--origin", action="append", metavar="ORIGIN", help="pages that may ask, such as https://example.org")
    add("--token-file", type=Path, metavar="FILE", help="a file that holds the token")
    add("--max-simulations", type=int, help="of a search (default 10000000)")
    add("--max-seconds", type=float, help="of a search (default 60)")
    add("--max-searches", type=int, help="of one client at once (default 1100)")
    add("--max-requests", type=int, help="of all clients at once, for each player (default 4096)")
    add("--memory-mb", type=int, help="of all trees of a player (default 2048)")
    add("--drain-seconds", type=float, help="for open searches when the process ends (default 30)")
    return parser


_DEFAULTS: dict[str, Any] = {
    "game": None,
    "simulations": 800,
    "temperature": 0.0,
    "device": "cpu",
    "address": "127.0.0.1",
    "port": 8000,
    "host": [],
    "origin": [],
    "token_file": None,
    "max_simulations": 10_000_000,
    "max_seconds": 60.0,
    "max_searches": 1_100,
    "max_requests": 4_096,
    "memory_mb": 2_048,
    "drain_seconds": 30.0,
}
_RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65_535),
    "max_simulations": (1, 2**32 - 1),
    "max_seconds": (0.001, 1e6),
    "max_searches": (1, 1 << 20),
    "max_requests": (1, 1 << 20),
    "memory_mb": (1, 1 << 24),
    "drain_seconds": (0, 86_400),
}


def _settings(arguments: Sequence[str]) -> dict[str, Any]:
    """The settings by name: the command line, else the file, else the defaults. `models` are players by name."""
    given = vars(_parser().parse_args(arguments))
    path = given.pop("config")
    file = {} if path is None else _read(path)
    models = file.pop("models", {})
    if not isinstance(models, Mapping) or not all(isinstance(player, str) for player in models.values()):
        raise SettingsError(f'{path}: [models] must hold NAME = "PLAYER"')
    if "token" in file:
        raise SettingsError(f"{path}: a token does not belong into this file: give token_file, or AZPY_TOKEN")
    for name, value in file.items():
        if name != "player" and name not in _DEFAULTS:
            raise SettingsError(f"{path}: there is no setting {name}{did_you_mean(name, _DEFAULTS)}")
        expected = type(_DEFAULTS[name]) if _DEFAULTS.get(name) is not None else str
        if isinstance(value, bool) or not isinstance(value, (int, float) if expected is float else expected):
            raise SettingsError(f"{path}: {name} must be of the type {expected.__name__}, got {value!r}")
        if isinstance(value, list) and not all(isinstance(one, str) for one in value):
            raise SettingsError(f"{path}: {name} must be a list of texts, got {value!r}")
    named = dict(models) | dict(named_player(text) for text in given.pop("model") or [])
    settings = {**_DEFAULTS, **file, **{name: value for name, value in given.items() if value is not None}}
    for name, (low, high) in _RANGES.items():
        if not low <= settings[name] <= high:
            raise SettingsError(f"--{name.replace('_', '-')} must be from {low:g} to {high:g}, got {settings[name]:g}")
    player = settings.pop("player", None)
    if player is None and not named:
        raise SettingsError("missing: PLAYER (see az-serve --help)")
    return settings | {"models": {**({"main": player} if player is not None else {}), **named}}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"--config {path}: {error}") from error


def _token(settings: Mapping[str, Any]) -> str | None:
    """The token, if there is one.

    Raises:
        SettingsError: an address that others can reach, without a token; a token that is too short.
    """
    token = os.environ.get("AZPY_TOKEN")
    if settings["token_file"] is not None:
        try:
            token = Path(settings["token_file"]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--token-file {settings['token_file']}: {error}") from error
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SettingsError(f"a token must be {_SHORTEST_TOKEN} printable ASCII characters at least")
    if token is None and not _LOOPBACK.fullmatch(settings["address"]):
        where = settings["address"]
        raise SettingsError(f"--address {where} can be reached by others: give --token-file FILE, or set AZPY_TOKEN")
    return token


def _serve(arguments: Sequence[str]) -> int:
    settings = _settings(arguments)
    try:
        from azpy.web.app import Bounds, Site
        from azpy.web.server import Server, listening, log_to
    except ImportError as error:
        raise MissingPackageError(f"{error.name} is not installed: {pip_install('serve')}") from error
    from azpy.serving.limits import Limits

    token = _token(settings)
    simulations = checked("simulations", settings["simulations"])
    models: dict[str, Model] = {}
    with contextlib.ExitStack() as stack:
        for name, player in settings["models"].items():
            models[name] = open_model(
                player,
                settings["game"],
                simulations,
                settings["device"],
                settings["temperature"],
                max_requests=settings["max_requests"],
                total_memory_mb=settings["memory_mb"],
            )
            stack.callback(models[name].engine.close, cancel=True)
        limits = Limits(
            settings["max_simulations"], settings["max_seconds"], searches=settings["max_searches"], games=16
        )
        site = Site(
            models,
            hosts=[settings["address"], *settings["host"]],
            origins=settings["origin"],
            token=token,
            bounds=Bounds(client=limits),
        )
        place = stack.enter_context(listening(settings["address"], settings["port"]))
        log_to()
        signal.signal(signal.SIGHUP, lambda *_: site.reload())
        address, port = place.getsockname()[:2]
        print(f"http://{f'[{address}]' if ':' in address else address}:{port}/", flush=True)
        Server(site, settings["drain_seconds"]).run([place])
    return 0


main = command("az-serve", _serve)
