"""Play against a trained player, on a board in the browser or in the terminal.

az-play connect_four
az-play runs/connect_four
az-play mcts:1000 --game hex --terminal
"""

import contextlib
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence

from azpy.cli.common import Parser, add_number, add_player, command, player_options, when_told_to_end
from azpy.cli.hidden_terminal import HiddenTerminal
from azpy.cli.terminal import Terminal
from azpy.cli.terminal_view import sides_of
from azpy.errors import AzpyError, MissingPackageError, SettingsError, pip_install, warn_once
from azpy.matches.players import parse_player, warn_of_unused
from azpy.runs.reader import StoredRun
from azpy.serving.models import PlayerEngine, open_model

_DRAIN_SECONDS = 1.0
# Browsers keep games, settings and links by address, so the board has the same one at each start, if it can.
_PORT, _PORTS = 8100, 100


def _has_display() -> bool:
    """Whether a browser can be shown."""
    if sys.platform.startswith(("win", "darwin")):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _play(arguments: Sequence[str]) -> int:
    parser = Parser("az-play", __doc__, "docs/guides/board.md")
    add_player(parser, 200, several=False)
    add, _ = parser.section("Board")
    text = f"port of the board; 0 takes a free one (default: {_PORT}, or the next free)"
    add_number(add, "--port", text, low=0, high=65_535)
    add("--no-browser", action="store_true", help="print the board's address without opening it")
    add, _ = parser.section("Terminal")
    add("--terminal", action="store_true", help="play in the terminal")
    text = "your sides in the terminal: first, second, ..., both or all (default: first)"
    add("--side", metavar="SIDE", help=text)
    given = parser.parse_args(arguments)
    model = open_model(given.player, shows_views=True, total_memory_mb=2048, **player_options(given))
    with contextlib.ExitStack() as stack:
        stack.callback(model.close)
        start = model.player.start
        warn_of_unused([parse_player(given.player)], vars(given), searches=not start.hides)
        in_terminal = given.terminal or not (given.no_browser or _has_display())
        if in_terminal:
            if not given.terminal:
                print("no display found: playing in the terminal (--no-browser prints the board's address)")
            if given.port is not None:
                warn_once("--port has no effect in the terminal")
            side = "first" if given.side is None else given.side
            return (HiddenTerminal if start.hides else Terminal)(model, sides_of(side, start)).run()
        if given.side is not None:
            warn_once("--side has no effect on the board, which asks for the sides")
        return _board(model, given.player, given.game, given.port, not given.no_browser)


def _board(model: PlayerEngine, player: str, game: str | None, port: int | None, opens: bool) -> int:
    try:
        from azpy.web.app import Site
        from azpy.web.server import Server, listening
    except ImportError as error:
        problem = f"{error.name} is not installed: {pip_install('serve')}; or give --terminal"
        raise MissingPackageError(problem) from error
    with _free_place(listening) if port is None else listening("127.0.0.1", port) as place:
        run = None if model.player.start.hides else _run(player, game)
        site = Site({"main": model}, run=run, renews=True)
        address = f"http://127.0.0.1:{place.getsockname()[1]}/"
        print(f"{model.player.name} plays {model.player.start.game} at {address}   (Ctrl-C to stop)", flush=True)
        if opens:
            # It may take seconds, and must not keep the server from answering.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server = Server(site, _DRAIN_SECONDS)
        when_told_to_end(server.handle_exit)
        server.run([place])
    return 0


def _free_place(listening: Callable[[str, int], socket.socket]) -> socket.socket:
    """Return a socket at the usual port, at the next one that is free, or at any."""
    for port in range(_PORT, _PORT + _PORTS):
        with contextlib.suppress(SettingsError):
            return listening("127.0.0.1", port)
    return listening("127.0.0.1", 0)


def _run(player: str, game: str | None) -> StoredRun | None:
    """The run that a player comes from, if there is one and its games can be shown."""
    folder = parse_player(player).run
    if folder is None:
        return None
    try:
        run = StoredRun(folder, game)
        run.start  # noqa: B018  raises if the game's class was not typed
    except AzpyError:
        return None
    return run


main = command("az-play", _play)
