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
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from azpy.cli.common import GAME_OF_RUN, Parser, command, named_player, not_empty
from azpy.errors import SettingsError
from azpy.serving.gomocup import Gomocup
from azpy.serving.gtp import Gtp
from azpy.serving.json_lines import JsonLines
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, game_for, open_player
from azpy.serving.uci import Uci
from azpy.serving.wall_game_lines import WallGameLines
from azpy.settings.run import checked

_GAMES = {"uci": ("chess",), "gtp": ("go", "othello"), "gomocup": ("gomoku",), "wallgame": ("wall_game",)}
_PATIENCE = 10.0  # seconds after SIGTERM for a program that reads no answers
_NOBODY_READS = 141  # the exit code


def _parser() -> Parser:
    parser = Parser("az-engine", __doc__)
    add = parser.add_argument
    add("player", type=not_empty, metavar="PLAYER", help="who plays")
    add(
        "--protocol",
        required=True,
        choices=("gomocup", "gtp", "json", "uci", "ugi", "wallgame"),
        help="what the other program speaks",
    )
    add(
        "--game",
        type=not_empty,
        help=f"for mcts, uniform and model files (default: that of the first run); {GAME_OF_RUN}",
    )
    add("--simulations", type=int, default=800, help="of a move, if the other program gives no limit (default 800)")
    add("--device", default="cpu", help="where the model runs (default cpu)")
    add(
        "--model",
        action="append",
        default=[],
        metavar="NAME=PLAYER",
        help="one more player, named NAME to be asked for",
    )
    add("--temperature", type=float, default=0.0, help="above 0 weaker moves are played too, by visits (default 0)")
    add("--log", type=not_empty, metavar="FILE", help="append the conversation, with times")
    return parser


def _models(given: argparse.Namespace) -> dict[str, Served]:
    """The players by name: PLAYER first, then those of `--model`, all of games that the protocol is for."""
    simulations, only = checked("simulations", given.simulations), _GAMES.get(given.protocol)
    models: dict[str, Served] = {}
    named = [("", given.player), *(named_player(text) for text in given.model)]
    for name, player in named:
        game = game_for(player, [other for _, other in named], given.game)
        served = open_player(player, game, simulations, given.device, given.temperature)
        if (name or served.name) in models:
            raise SettingsError(f"--model: two players are named {name}")
        if only is not None and served.start.name not in only:
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
    models = _models(given)
    with contextlib.ExitStack() as stack:
        log = None
        if given.log is not None:
            try:
                log = stack.enter_context(Path(given.log).open("a", encoding="utf-8"))
            except OSError as error:
                raise SettingsError(f"--log {given.log}: {error.strerror}") from error
        answers_all = given.protocol in {"json", "wallgame"}
        talk = Conversation(log=log)
        _listen(talk, answers_all)
        if given.protocol == "wallgame":
            WallGameLines(models, talk).run()
        elif given.protocol == "json":
            JsonLines(models, talk).run()
        elif given.protocol == "gtp":
            Gtp(models, talk).run()
        elif given.protocol == "gomocup":
            Gomocup(models, talk).run()
        else:
            Uci(models, talk, given.protocol).run()
    sys.stdout.flush()
    return 0


main = command("az-engine", _engine, stopped="")  # stdout is the protocol's
