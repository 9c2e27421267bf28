"""`az-engine PLAYER --protocol NAME`: a trained player for other programs, on stdin and stdout.

PLAYER is a run folder, a checkpoint folder, a model file, mcts:N or uniform:N, with options of the search after ?, as
for az-match. Protocols:

  gomocup   Gomoku, five in a row
  gtp       Go and Othello
  json      analysis queries for every game; KataGo's names of fields for Go
  uci       chess
  ugi       every game, with azpy's names of actions
  wallgame  the Wall Game's JSON lines, version 3
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from azpy.cli.common import Parser, add_player, command, not_empty
from azpy.errors import SettingsError
from azpy.serving.gomocup import Gomocup
from azpy.serving.gtp import Gtp
from azpy.serving.json_lines import JsonLines
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, game_for, open_player
from azpy.serving.uci import Uci
from azpy.serving.wall_game_lines import WallGameLines


class _Protocol(NamedTuple):
    door: Callable[[Mapping[str, Served], Conversation], Any]
    games: tuple[str, ...] = ()  # that it is for; without any, for all
    answers_all: bool = False  # SIGTERM waits for the answers to what was asked


_PROTOCOLS = {
    "gomocup": _Protocol(Gomocup, ("gomoku",)),
    "gtp": _Protocol(Gtp, ("go", "othello")),
    "json": _Protocol(JsonLines, answers_all=True),
    "uci": _Protocol(Uci, ("chess",)),
    "ugi": _Protocol(partial(Uci, word="ugi")),
    "wallgame": _Protocol(WallGameLines, ("wall_game",), answers_all=True),
}
_PATIENCE = 10.0  # seconds after SIGTERM for a program that reads no answers
_NOBODY_READS = 141  # the exit code


def _parser() -> Parser:
    parser = Parser("az-engine", __doc__)
    add = parser.add_argument
    add_player(add, 800)
    add("--protocol", required=True, choices=_PROTOCOLS, help="what the other program speaks")
    add("--log", type=not_empty, metavar="FILE", help="append the conversation, with times")
    return parser


def _models(given: argparse.Namespace) -> dict[str, Served]:
    """The players by name: PLAYER first, then those of `--model`, all of games that the protocol is for."""
    only, models = _PROTOCOLS[given.protocol].games, dict[str, Served]()
    named = [("", given.player), *given.model]
    for name, player in named:
        game = game_for(player, [other for _, other in named], given.game)
        served = open_player(player, game, given.simulations, given.device, given.temperature)
        if (name or served.name) in models:
            raise SettingsError(f"--model: two players are named {name}")
        if only and served.start.name not in only:
            problem = f"{given.protocol} is for {' and '.join(only)}, and {player} plays {served.start.game}"
            raise SettingsError(f"{problem}: take --protocol ugi or json")
        models[name or served.name] = served
    return models


def _listen(talk: Conversation, answers_all: bool) -> None:
    """Has SIGTERM end the conversation, the second one at once; ends the process if nobody reads what it says."""

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + number))
        if not answers_all:
            raise SystemExit(0)
        talk.leave(_PATIENCE)
        talk.end()

    signal.signal(signal.SIGTERM, end)
    # A search may go on for hours, and whoever asked for it was killed.
    talk.watch(lambda: os._exit(_NOBODY_READS))


def _engine(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    models, protocol = _models(given), _PROTOCOLS[given.protocol]
    with contextlib.ExitStack() as stack:
        log = None
        if given.log is not None:
            try:
                log = stack.enter_context(Path(given.log).open("a", encoding="utf-8"))
            except OSError as error:
                raise SettingsError(f"--log {given.log}: {error.strerror}") from error
        talk = Conversation(log=log)
        _listen(talk, protocol.answers_all)
        protocol.door(models, talk).run()
    sys.stdout.flush()
    return 0


main = command("az-engine", _engine, stopped="")  # stdout is the protocol's
