"""What a terminal says of a position: who took what, and whose turn it is."""

import os
import sys
from collections.abc import Iterable, Sequence

from azpy._core import SearchResult, State
from azpy.errors import RequestError
from azpy.games.lines import replayed
from azpy.games.notations import side_name

_PLAIN = "\x1b[0m"
_SIDES = tuple(f"\x1b[1;{color}m" for color in (31, 34, 32, 33, 35, 36))  # of each player, as `State.render` has them
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")


def shows_colors() -> bool:
    """Whether standard output is a terminal and the environment does not refuse colors, as `State.render` decides."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def named(state: State, player: int, *, color: bool) -> str:
    """What people call a player, in the color of the player's men."""
    name = side_name(state, player)
    return f"{_SIDES[player]}{name}{_PLAIN}" if color else name


def expected(state: State, result: SearchResult) -> str:
    """What a search expects for the player to move, or for each player where two do not share a zero sum."""
    if state.zero_sum:
        return f"value {result.value:+.2f} for {side_name(state, state.turn)}"
    each = ", ".join(f"{side_name(state, player)} {value:+.2f}" for player, value in enumerate(result.values))
    return f"value: {each}"


def sides_of(text: str, state: State) -> set[int]:
    """The players that a text names: "first", "second,third", "red", "both" of two, "all" or "none".

    Where a game hides something, a text names one player.

    Raises:
        RequestError: a word that names none of them.
    """
    players = range(state.num_players)
    words = {place: {player} for player, place in zip(players, _PLACES, strict=False)}
    words |= {side_name(state, player).lower(): {player} for player in players}
    if state.hides:
        if (word := text.strip()).lower() not in words:
            raise RequestError(
                f"give one side, because {state.game} hides something: {', '.join(words)}; got {word!r:.40}"
            )
        return words[word.lower()]
    words |= {"all": set(players), "none": set()} | ({"both": {0, 1}} if len(players) == 2 else {})
    found = set[int]()
    for word in text.lower().split(","):
        if word.strip() not in words:
            raise RequestError(f"sides are {', '.join(words)}, with commas between, got {word.strip()!r:.40}")
        found |= words[word.strip()]
    return found


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
