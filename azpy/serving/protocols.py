"""The protocols that az-engine speaks, by name."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from azpy.serving.gomocup import Gomocup
from azpy.serving.gtp import Gtp
from azpy.serving.json_lines import JsonLines
from azpy.serving.lines import Conversation
from azpy.serving.models import Player
from azpy.serving.request import Protocol
from azpy.serving.uci import Uci
from azpy.serving.wall_game import WallGame


class _Row(NamedTuple):
    open: Callable[[Mapping[str, Player], Conversation], Protocol | JsonLines | WallGame]
    games: tuple[str, ...] = ()  # that it is for; none for every game
    answers_all: bool = False  # whether the end of the input and SIGTERM leave open searches time to end


PROTOCOLS = {
    "gomocup": _Row(Gomocup, ("gomoku",)),
    "gtp": _Row(Gtp, ("go", "othello")),
    "json": _Row(JsonLines, answers_all=True),
    "uci": _Row(Uci, ("chess",)),
    "ugi": _Row(partial(Uci, word="ugi")),
    "wallgame": _Row(WallGame, ("wall_game",), answers_all=True),
}
