"""Connect a player to another program, by a protocol on stdin and stdout.

az-engine runs/chess --protocol uci
az-engine runs/go --protocol gtp
az-engine runs/hex --protocol json
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from azpy.cli.common import Parser, add_player, command, not_empty, player_options, when_told_to_end
from azpy.errors import SettingsError
from azpy.matches.players import parse_player, warn_of_unused
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, open_player
from azpy.serving.protocols import PROTOCOLS

_PATIENCE = 10.0  # seconds after SIGTERM for a program that reads no answers
_NOBODY_READS = 141  # the exit code


def _parser() -> Parser:
    parser = Parser("az-engine", __doc__, "docs/guides/programs.md")
    add_player(parser, 800)
    add, _ = parser.section("Protocol")
    text = f"protocol to speak: {', '.join(PROTOCOLS)}"
    add("--protocol", required=True, choices=PROTOCOLS, metavar="NAME", help=text)
    add("--log", type=not_empty, metavar="FILE", help="append the conversation with times to a file")
    return parser


def _models(given: argparse.Namespace) -> dict[str, Player]:
    """The players by name: PLAYER first, then those of `--model`, all of games that the protocol is for."""
    only, models = PROTOCOLS[given.protocol].games, dict[str, Player]()
    named = [("", given.player), *given.model]
    warn_of_unused([parse_player(player) for _, player in named], vars(given))
    for name, player in named:
        others = [other for _, other in named]
        served = open_player(player, others=others, **player_options(given))
        if (name or served.name) in models:
            raise SettingsError(f"--model: two players are named {name}")
        if only and served.start.name not in only:
            problem = f"{given.protocol} is for {' and '.join(only)}, and {player} plays {served.start.game}"
            raise SettingsError(f"{problem}: take --protocol ugi or json")
        models[name or served.name] = served
    return models


def _listen(talk: Conversation, answers_all: bool) -> None:
    """Have a signal end the conversation, and a second one at once; end the process if its output is closed."""

    def end(number: int, _: FrameType | None) -> None:
        when_told_to_end(lambda *_: os._exit(128 + number))
        if not answers_all:
            raise SystemExit(0)
        talk.leave(_PATIENCE)
        talk.end()

    when_told_to_end(end)
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
        row, talk = PROTOCOLS[given.protocol], Conversation(log=log)
        _listen(talk, row.answers_all)
        row.open(models, talk).run()
    sys.stdout.flush()
    return 0


main = command("az-engine", _engine, stopped="")  # stdout is the protocol's
