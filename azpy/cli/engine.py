"""`az-engine PLAYER --protocol NAME`: a trained player for other programs, on stdin and stdout.

PLAYER is a run folder, a checkpoint folder, a model file, mcts:N or uniform:N, with options of the search after ?, as
for az-match. Protocols:

  gtp   Go
  uci   chess
  ugi   every game, with azpy's names of actions
  wallgame  the Wall Game's JSON lines, version 3; --model NAME=PLAYER adds players for other bots
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from azpy.cli.common import GAME_OF_RUN, Parser, command, not_empty
from azpy.errors import SettingsError
from azpy.serving.gtp import Gtp
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, open_player
from azpy.serving.uci import Uci
from azpy.serving.wall_game_lines import WallGameLines
from azpy.settings.run import checked


def _parser() -> Parser:
    parser = Parser("az-engine", __doc__)
    add = parser.add_argument
    add("player", type=not_empty, metavar="PLAYER", help="who plays")
    add("--protocol", required=True, choices=("gtp", "uci", "ugi", "wallgame"), help="what the other program speaks")
    add("--game", type=not_empty, help=f"for mcts, uniform and model files; {GAME_OF_RUN}")
    add("--simulations", type=int, default=800, help="of a move, if the other program gives no limit (default 800)")
    add("--device", default="cpu", help="where the model runs (default cpu)")
    add("--model", action="append", default=[], metavar="NAME=PLAYER", help="of wallgame: a player for botId NAME")
    add("--log", type=not_empty, metavar="FILE", help="append the conversation, with times")
    return parser


def _models(served: Served, given: argparse.Namespace) -> dict[str, Served]:
    """The players of the Wall Game by botId; the first one is PLAYER."""
    models = {served.name: served}
    for text in given.model:
        name, equals, player = text.partition("=")
        if not (name and equals and player) or name in models:
            raise SettingsError(f"--model: expected NAME=PLAYER with a name of its own, got {text!r}")
        models[name] = open_player(player, given.game, given.simulations, given.device)
        if not models[name].start.game.startswith("wall_game"):
            raise SettingsError(f"--model {name} plays {models[name].start.game}, not the Wall Game")
    return models


def _end(number: int, _: FrameType | None) -> NoReturn:
    """Reads no more, and answers what waits; the second time the process ends at once."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + number))
    raise SystemExit(0)


def _engine(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    served = open_player(given.player, given.game, checked("simulations", given.simulations), given.device)
    only = {"uci": "chess", "gtp": "go", "wallgame": "wall_game"}.get(given.protocol)
    if only is not None and served.start.game.partition("(")[0] != only:
        raise SettingsError(
            f"{given.protocol} is for {only}, and the player plays {served.start.game}: take --protocol ugi"
        )
    signal.signal(signal.SIGTERM, _end)
    with contextlib.ExitStack() as stack:
        log = None
        if given.log is not None:
            try:
                log = stack.enter_context(Path(given.log).open("a", encoding="utf-8"))
            except OSError as error:
                raise SettingsError(f"--log {given.log}: {error.strerror}") from error
        talk = Conversation(log=log)
        if given.protocol == "wallgame":
            WallGameLines(_models(served, given), talk).run()
        elif given.protocol == "gtp":
            Gtp(served, talk).run()
        else:
            Uci(served, talk, given.protocol).run()
    sys.stdout.flush()
    return 0


main = command("az-engine", _engine)
