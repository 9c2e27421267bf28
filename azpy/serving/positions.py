"""A line of play as another program tells it. It goes on where azpy's rules end the game."""

import re
from collections.abc import Mapping, Sequence

from azpy import _core
from azpy.errors import RequestError
from azpy.games.names import make_position

__all__ = [
    "COLUMNS",
    "Line",
    "empty_board",
    "forgotten",
    "go_board",
    "is_go",
    "point_of",
    "setup_of",
    "sgf_point",
    "stones_of",
    "with_less_past",
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
        if is_go(state):
            player = _to_move(state) if player is None else player
            if state.is_terminal:
                count, earlier = forgotten(len(self.played)), self.start.clone()
                for action in self.played[:count]:
                    earlier.play(action)
                if not earlier.is_terminal:
                    board = go_board(empty_board(earlier), stones_of(earlier), earlier.turn)
                    self._begin(board, self.played[count:])
            if self.state.turn != player:  # by two passes, by who is to move
                self._begin(go_board(empty_board(state), stones_of(state), player))
        elif state.is_terminal and not (fresh := with_less_past(state)).is_terminal:
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


def _to_move(state: _core.State) -> int:
    """Whose turn it is in Go, also after the end."""
    return state.turn if state.turn >= 0 else "WB".index(re.findall(r";([BW])\[", state.to_text())[-1])


def with_less_past(state: _core.State) -> _core.State:
    """A position of chess that our rules ended by its past, such as a third repetition, as if it had none.

    Other positions are returned as they are.
    """
    if state.game.partition("(")[0] != "chess":
        return state
    fields = next(line for line in str(state).splitlines() if line.count("/") == 7).split()  # the FEN
    # No moves without progress, and nothing to repeat.
    return _core.parse_state(state, " ".join([*fields[:4], "0", "1"]))


def go_board(empty: _core.State, stones: Mapping[int, Sequence[str]], player: int) -> _core.State:
    """A board of Go without a past.

    Args:
        empty: the start of the game.
        stones: of each player, as SGF names their points.
        player: who is to move; 0 is Black.

    Raises:
        ValueError: a chain without a liberty.
    """
    if not any(stones.values()) and player == 0:
        return empty
    return _core.parse_state(empty, f"(;GM[1]FF[4]SZ[{empty.obs_shape[1]}]{setup_of(stones, player)})")


def point_of(vertex: str, size: int) -> tuple[int, int] | None:
    """Column and row from the bottom left of a vertex of Go such as D4; None if it is none of the board."""
    found = re.fullmatch(r"([A-HJ-T])([0-9]{1,2})", vertex.upper())
    if found is None or COLUMNS.index(found[1]) >= size or not 1 <= int(found[2]) <= size:
        return None
    return COLUMNS.index(found[1]), int(found[2]) - 1


def sgf_point(column: int, row: int, size: int) -> str:
    """What SGF calls a point, from its column and row from the bottom left."""
    return chr(97 + column) + chr(97 + size - 1 - row)


def setup_of(stones: Mapping[int, Sequence[str]], player: int) -> str:
    """A board with these stones of each player, and who is to move, as SGF sets it up."""
    tags = [f"{tag}[{']['.join(stones[owner])}]" for owner, tag in ((0, "AB"), (1, "AW")) if stones.get(owner)]
    return f"{''.join(tags)}PL[{'BW'[player]}]"


def empty_board(start: _core.State, *, size: int | None = None, komi: float | None = None) -> _core.State:
    """The start of a game of Go with the rules of `start`, and with another size or komi.

    Raises:
        ValueError: a size or komi that azpy does not have.
    """
    given = dict(part.split("=") for part in start.game.partition("(")[2].rstrip(")").split(",") if part)
    given |= {} if size is None else {"size": str(size)}
    given |= {} if komi is None else {"komi": f"{komi:g}"}
    return make_position(f"go({','.join(f'{name}={value}' for name, value in given.items())})" if given else "go")


def stones_of(state: _core.State) -> dict[int, list[str]]:
    """The stones of each player on a board of Go, as SGF names their points."""
    rows = [line.split()[1:] for line in state.render(color=False).splitlines() if re.match(r" ?[0-9]+ ", line)]
    found: dict[int, list[str]] = {0: [], 1: []}
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            if cell in "xo":
                found["xo".index(cell)].append(chr(97 + column) + chr(97 + row))
    return found


def is_go(state: _core.State) -> bool:
    """Whether it is a game of Go."""
    return state.game.partition("(")[0] == "go"
