"""Boards of Go as other programs tell them, and positions of chess without a past."""

import re
from collections.abc import Mapping, Sequence

from azpy import _core
from azpy.games.names import make_position

__all__ = [
    "COLUMNS",
    "empty_board",
    "forgotten",
    "is_go",
    "point_of",
    "setup_of",
    "sgf_point",
    "stones_of",
    "with_less_past",
]

COLUMNS = "ABCDEFGHJKLMNOPQRST"
"""The columns of Go as GTP names them: without I."""


def forgotten(plies: int) -> int:
    """How many of the first plies of a game of Go become stones without a past, where too many plies ended the game.

    The plies since are played again, so that ko holds on. Two passes at the end are among these.
    """
    return max(0, min(plies // 2, plies - 2))


def with_less_past(state: _core.State) -> _core.State:
    """A position of chess that our rules ended by its past, such as a third repetition, as if it had none.

    Other positions are returned as they are.
    """
    if state.game.partition("(")[0] != "chess":
        return state
    fields = next(line for line in str(state).splitlines() if line.count("/") == 7).split()  # the FEN
    # No moves without progress, and nothing to repeat.
    return _core.parse_state(state, " ".join([*fields[:4], "0", "1"]))


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
