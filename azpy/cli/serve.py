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
from dataclasses import replace
from pathlib import Path
from typing import Any

from azpy.cli.common import GAME_OF_RUN, Parser, command, named_player, not_empty
from azpy.errors import MissingPackageError, SettingsError, did_you_mean, pip_install
from azpy.serving.limits import CLIENT_LIMITS, MOST_SEARCHES
from azpy.serving.models import Model, game_for, open_model
from azpy.settings.run import checked

_SHORTEST_TOKEN = 16
_LOOPBACK = re.compile(r"127\.[0-9.]+|::1|localhost")


# What az-serve takes where neither the command line nor the file says it. The help is derived from this table.
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
    "max_simulations": CLIENT_LIMITS.simulations,
    "max_seconds": CLIENT_LIMITS.seconds,
    "max_searches": CLIENT_LIMITS.searches,
    "max_requests": MOST_SEARCHES,
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


def _parser() -> Parser:
    parser = Parser("az-serve", __doc__)

    def add(flag: str, about: str, **options: Any) -> None:
        """Adds a flag. Its help names its default."""
        default = _DEFAULTS.get(flag.removeprefix("--").replace("-", "_"))
        shown = f"{default:.15g}" if isinstance(default, float) else str(default)
        parser.add_argument(flag, help=f"{about} (default {shown})" if default not in (None, []) else about, **options)

    add("player", "who plays; or `player` in --config", type=not_empty, metavar="PLAYER", nargs="?")
    add("--config", "a TOML file with these settings", type=Path, metavar="FILE")
    add("--game", f"for mcts, uniform and model files (default: that of the first run); {GAME_OF_RUN}", type=not_empty)
    add("--model", "one more player, named NAME to be asked for", action="append", metavar="NAME=PLAYER")
    add("--simulations", "of a search, if the client gives no limit", type=int)
    add("--temperature", "above 0 weaker moves are played too, by visits", type=float)
    add("--device", "where the models run")
    add("--address", "where to listen; an address that others can reach needs a token", type=not_empty)
    add("--port", "where to listen; 0 takes a free port", type=int)
    add("--host", "a name of this server that clients use", action="append", metavar="NAME")
    add("--origin", "pages that may ask, such as https://example.org", action="append", metavar="ORIGIN")
    add("--token-file", "a file that holds the token", type=Path, metavar="FILE")
    add("--max-simulations", "of a search", type=int)
    add("--max-seconds", "of a search", type=float)
    add("--max-searches", "of one client at once", type=int)
    add("--max-requests", "of all clients at once, for each player", type=int)
    add("--memory-mb", "of all trees of a player", type=int)
    add("--drain-seconds", "for open searches when the process ends", type=float)
    return parser


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
    token = _token(settings)
    simulations = checked("simulations", settings["simulations"])
    models: dict[str, Model] = {}
    with contextlib.ExitStack() as stack:
        for name, player in settings["models"].items():
            models[name] = open_model(
                player,
                game_for(player, settings["models"].values(), settings["game"]),
                simulations,
                settings["device"],
                settings["temperature"],
                max_requests=settings["max_requests"],
                total_memory_mb=settings["memory_mb"],
            )
            stack.callback(models[name].engine.close, cancel=True)
        limits = replace(
            CLIENT_LIMITS,
            simulations=settings["max_simulations"],
            seconds=settings["max_seconds"],
            searches=settings["max_searches"],
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
