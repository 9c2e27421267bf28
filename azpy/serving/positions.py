"""A line of play as another program tells it. It goes on where azpy's rules end the game."""

import re
from collections.abc import Sequence

from azpy import _core
from azpy.errors import RequestError

__all__ = [
    "COLUMNS",
    "Line",
    "empty_board",
    "forgotten",
    "go_board",
    "is_go",
    "point_of",
]

COLUMNS = "ABCDEFGHJKLMNOPQRST"
"""The columns of Go as GTP names them: without I."""


class Line:
    """A position and the actions that led to it.

    Args:
        start: where the line begins; it stays as it is.

    Attributes:
        start: where the line begins now. It is another position once the line went on from an end of azpy's game.
        played: the actions since `start`.
        state: the position that they lead to.
    """

    def __init__(self, start: _core.State) -> None:
        self.start, self.played, self.state = start, list[int](), start.clone()

    def play(self, name: str, player: int | None = None) -> None:
        """Plays the action of a name.

        Args:
            name: as `State.action_name` writes it; in Go in any case.
            player: who plays it, in Go: two moves in a row of one player are played.

        Raises:
            RequestError: no such action is legal.
        """
        self.go_on(player)
        if is_go(self.state):
            name = "pass" if name.lower() == "pass" else name.upper()
        try:
            (action,) = self.state.parse_actions(name)
        except ValueError:
            raise RequestError(f"{name[:40]!r} is not legal there") from None
        self.state.play(action)
        self.played.append(action)

    def go_on(self, player: int | None = None) -> None:
        """Begins anew at the present board, where only the game's past ends it or says whose turn it is.

        A position of chess that is over by a repetition, by fifty moves or by the number of plies loses its past. Go is
        never over, and `player` is to move. After too many plies the later half of them still counts for ko.
        """
        state = self.state
        if not state.is_terminal and player in (None, state.turn):
            return
        if not is_go(state):
            if state.is_terminal and not (fresh := state.without_past()).is_terminal:
                self._begin(fresh)
            return
        fresh = state.without_past(player)
        if state.is_terminal:
            count, earlier = forgotten(len(self.played)), self.start.clone()
            for action in self.played[:count]:
                earlier.play(action)
            if not earlier.is_terminal:
                self._begin(earlier.without_past(), self.played[count:])
        if self.state.turn != fresh.turn:  # by two passes, by who is to move
            self._begin(fresh)

    def _begin(self, start: _core.State, played: Sequence[int] = ()) -> None:
        self.start, self.played, self.state = start, list(played), start.clone()
        for action in played:
            self.state.play(action)


def forgotten(plies: int) -> int:
    """How many of the first plies of a game of Go become stones without a past, where too many plies ended the game.

    The plies since are played again, so that ko holds on. Two passes at the end are among these.
    """
    return max(0, min(plies // 2, plies - 2))


def go_board(empty: _core.State, stones: Sequence[Sequence[str]], player: int) -> _core.State:
    """A board of Go without a past.

    Args:
        empty: the start of the game.
        stones: the vertices of each player's stones.
        player: who is to move; 0 is Black.

    Raises:
        ValueError: a chain without a liberty.
    """
    if not any(stones) and player == 0:
        return empty
    size, setup = empty.obs_shape[1], ""
    for tag, vertices in zip(("AB", "AW"), stones, strict=True):
        points = [point for vertex in vertices if (point := point_of(vertex, size)) is not None]
        named = [chr(97 + column) + chr(97 + size - 1 - row) for column, row in points]
        setup += f"{tag}[{']['.join(named)}]" if named else ""
    return _core.parse_state(empty, f"(;GM[1]FF[4]SZ[{size}]{setup}PL[{'BW'[player]}])")


def point_of(vertex: str, size: int) -> tuple[int, int] | None:
    """Column and row from the bottom left of a vertex of Go such as D4; None if it is none of the board."""
    found = re.fullmatch(r"([A-HJ-T])([0-9]{1,2})", vertex.upper())
    if found is None or COLUMNS.index(found[1]) >= size or not 1 <= int(found[2]) <= size:
        return None
    return COLUMNS.index(found[1]), int(found[2]) - 1


def empty_board(start: _core.State, *, size: int | None = None, komi: float | None = None) -> _core.State:
    """The start of a game of Go with the rules of `start`, and with another size or komi.

    Raises:
        ValueError: a size or komi that azpy does not have.
    """
    given = {name: value for name, value in (("size", size), ("komi", komi)) if value is not None}
    return _core.make_game("go", **(start.params | given))


def is_go(state: _core.State) -> bool:
    """Whether it is a game of Go."""
    return state.name == "go"
