"""Serve trained players to many clients, by HTTP and WebSocket.

az-serve runs/connect_four
az-serve mcts:1000 --game "hex(size=7)" --port 8001
az-serve --config server.toml
"""

import argparse
import contextlib
import os
import re
import signal
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from azpy.cli.common import Parser, add_number, add_player, command, not_empty, player_options, when_told_to_end
from azpy.errors import MissingPackageError, SettingsError, pip_install
from azpy.matches.players import parse_player, warn_of_unused
from azpy.serving.limits import CLIENT_LIMITS, MOST_SEARCHES
from azpy.serving.models import PlayerEngine, open_model
from azpy.system import HANGUP, plain_text

if TYPE_CHECKING:
    from azpy.web.app import Site

_SHORTEST_TOKEN = 16
_LOOPBACK = re.compile(r"127\.[0-9.]+|::1|localhost")


def _parser() -> Parser:
    parser = Parser("az-serve", __doc__, "docs/guides/serving.md")
    own = CLIENT_LIMITS
    add_player(parser, 800, nargs="?", default=argparse.SUPPRESS)
    add, rare = parser.section("Server")
    add("--config", type=Path, metavar="FILE", help="TOML file of these options")
    text = "address to listen on; others than loopback need a token (default: 127.0.0.1)"
    add("--address", type=not_empty, default="127.0.0.1", metavar="ADDRESS", help=text)
    add_number(add, "--port", "port to listen on; 0 takes a free one", 8000, low=0, high=65_535)
    add("--token-file", type=Path, metavar="FILE", help="file with the token (default: the variable AZPY_TOKEN)")
    add("--host", action="append", default=[], metavar="NAME", help="name that clients use for this server")
    text = "allow requests from pages of this origin, such as https://example.org"
    rare("--origin", action="append", default=[], metavar="ORIGIN", help=text)
    text = "allow pages of this origin to frame the board"
    rare("--frame-origin", action="append", default=[], metavar="ORIGIN", help=text)
    text = "seconds for open searches when the server ends"
    add_number(rare, "--drain-seconds", text, 30.0, kind=float, low=0, high=86_400)
    add, _ = parser.section("Limits")
    add_number(add, "--max-simulations", "simulations per search", own.simulations, low=1, high=2**32 - 1)
    add_number(add, "--max-seconds", "seconds per search", own.seconds, kind=float, low=0.001, high=1e6)
    add_number(add, "--max-searches", "open searches per WebSocket or POST", own.searches, low=1, high=1 << 20)
    add_number(add, "--max-requests", "open searches per player", MOST_SEARCHES, low=1, high=1 << 20)
    add_number(add, "--memory-mb", "MiB of search trees per player", 2_048, low=1, high=1 << 24)
    return parser


def _settings(arguments: Sequence[str]) -> argparse.Namespace:
    """The settings: the command line, else the file, else the defaults. `models` are players by name."""
    parser = _parser()
    config = parser.parse_args(arguments).config
    given = parser.parse_args(arguments, None if config is None else _of_file(parser, config))
    named = dict(given.model)
    if "player" in given:
        named = {"main": given.player} | named
    if not named:
        raise SettingsError("PLAYER is missing: give one, such as runs/connect_four (see az-serve --help)")
    given.models = named
    return given


def _of_file(parser: Parser, path: Path) -> argparse.Namespace:
    """What a file says, as if it were typed."""
    try:
        file = tomllib.loads(plain_text(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise SettingsError(f"--config {path}: {_why(error)}") from error
    for name in {"config", "token"} & file.keys():
        hint = "a token comes from token_file or AZPY_TOKEN"
        raise SettingsError(f"{path}: {name} does not belong in this file; {hint}")
    models = file.pop("models", {})
    if not isinstance(models, dict) or not all(isinstance(player, str) for player in models.values()):
        raise SettingsError(f'{path}: [models] must hold NAME = "PLAYER"')
    typed = [f"--model={name}={player}" for name, player in models.items()]
    for name, value in file.items():
        flag = "" if name == "player" else f"--{name.replace('_', '-')}="
        typed += [f"{flag}{one}" for one in (value if isinstance(value, list) else [value])]
    try:
        return parser.parse_args(typed)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _token(given: argparse.Namespace) -> str | None:
    """The token, if there is one.

    Raises:
        SettingsError: an address that others can reach, without a token; a token that is too short.
    """
    token = os.environ.get("AZPY_TOKEN")
    if given.token_file is not None:
        try:
            token = plain_text(given.token_file.read_bytes()).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--token-file {given.token_file}: {_why(error)}") from error
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        source = "AZPY_TOKEN" if given.token_file is None else f"--token-file {given.token_file}"
        needs = f"must have at least {_SHORTEST_TOKEN} characters, all of them printable ASCII"
        raise SettingsError(f"the token in {source} {needs}; it has {len(token)}")
    if token is None and not _LOOPBACK.fullmatch(given.address):
        where = given.address
        raise SettingsError(
            f"--address {where} can be reached from other machines: give --token-file FILE, or set AZPY_TOKEN"
        )
    return token


def _site(given: argparse.Namespace, stack: contextlib.ExitStack) -> "Site":
    """The site of these settings; `stack` closes its players."""
    from azpy.web.app import Bounds, Site

    models = dict[str, PlayerEngine]()
    limits = replace(
        CLIENT_LIMITS, simulations=given.max_simulations, seconds=given.max_seconds, searches=given.max_searches
    )
    # Make the site first: it refuses wrong names and origins, and players take long to load.
    site = Site(
        models,
        hosts=[given.address, *given.host],
        origins=given.origin,
        frames=given.frame_origin,
        token=_token(given),
        bounds=Bounds(client=limits),
    )
    for name, player in given.models.items():
        models[name] = open_model(
            player,
            others=given.models.values(),
            max_requests=given.max_requests,
            total_memory_mb=given.memory_mb,
            shows_views=True,
            **player_options(given),
        )
        stack.callback(models[name].close)
    hiding = {name: model.player.start.hides for name, model in models.items()}
    if len({*hiding.values()}) > 1:
        names = ", ".join(name for name, hides in hiding.items() if hides)
        raise SettingsError(f"players of games that hide something need a server of their own: {names}")
    specs = [parse_player(player) for player in given.models.values()]
    warn_of_unused(specs, vars(given), searches=not any(hiding.values()))
    return site


def _serve(arguments: Sequence[str]) -> int:
    given = _settings(arguments)
    try:
        from azpy.web.server import Server, listening, log_to_stderr
    except ImportError as error:
        raise MissingPackageError(f"{error.name} is not installed: {pip_install('serve')}") from error
    with contextlib.ExitStack() as stack:
        site = _site(given, stack)
        place = stack.enter_context(listening(given.address, given.port))
        log_to_stderr()
        server = Server(site, given.drain_seconds)
        when_told_to_end(server.handle_exit)
        if HANGUP is not None:
            signal.signal(HANGUP, lambda *_: site.reload())
        address, port = place.getsockname()[:2]
        print(f"http://{f'[{address}]' if ':' in address else address}:{port}/", flush=True)
        server.run([place])
    return 0


main = command("az-serve", _serve)
