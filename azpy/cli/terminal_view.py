"""What a terminal shows of a position: the board with what has changed, who took what, and whose turn it is."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from azpy._core import State
from azpy.games.lines import replayed
from azpy.games.notations import side_name

_REVERSE, _PLAIN = "\x1b[7m", "\x1b[0m"
_SIDES = ("\x1b[1;31m", "\x1b[1;34m")  # of player 0 and player 1, as `State.render` has them
_GLYPH = re.compile(r"(\x1b\[[0-9;]*m)?(.)(?(1)\x1b\[0m)")  # its color, if it has one, and the character
_WORD = re.compile(r"[^\W\d_]{2,}")


def shows_colors() -> bool:
    """Whether standard output is a terminal and the environment does not refuse colors, as `State.render` decides."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def marked(board: str, before: str) -> str:
    r"""A colored board, with what differs from an earlier one in reverse video: new men, and where men have gone.

    Lines with words, such as "bar: x 0", stay as they are, as does a board of another size.

    Example:
        >>> marked("x .", ". x")
        '\x1b[7mx\x1b[0m \x1b[7m.\x1b[0m'
    """
    now, then = board.split("\n"), before.split("\n")
    if len(now) != len(then):
        return board
    return "\n".join(map(_marked_line, now, then))


def _marked_line(line: str, before: str) -> str:
    now, then = _GLYPH.findall(line), _GLYPH.findall(before)
    if line == before or _WORD.search("".join(glyph for _, glyph in now)):
        return line
    shown = ""
    for (color, glyph), (old_color, old) in zip_longest(now, then, fillvalue=("", " ")):
        changed = glyph != old and (glyph != " " or old_color)
        start = (_REVERSE if changed else "") + color
        shown += f"{start}{glyph}{_PLAIN if start else ''}"
    return shown.rstrip(" ")


def named(state: State, player: int, *, color: bool) -> str:
    """What people call a player, in the color of the player's men."""
    name = side_name(state, player)
    return f"{_SIDES[player]}{name}{_PLAIN}" if color else name


def captured(start: State, actions: Sequence[int]) -> str:
    """What each player took: "White qp, Black P" in chess, else "Black 3, White 0". Empty if nobody took anything.

    Empty too for games in which men are not taken, and for games written in Python, whose men are not known.
    """
    taken = start.captured(actions)
    if not any(taken):
        return ""
    told = [men or "nothing" if start.name == "chess" else str(len(men)) for men in taken]
    return ", ".join(f"{side_name(start, player)} {men}" for player, men in enumerate(told))


def last_move(start: State, actions: Iterable[int]) -> tuple[int, str] | None:
    """Who played last, dice left out, and the action's short name; None at the start."""
    played = list(actions)
    found = None
    for action, position in zip(played, replayed(start, played), strict=False):
        if position.turn >= 0:
            found = position.turn, position.short_name(action)
    return found
