"""How other programs write whole games: PGN for chess, SGF for Go. The core reads and writes them."""

from collections.abc import Iterable
from typing import NamedTuple

from azpy._core import State
from azpy.games.lines import replayed

__all__ = ["Notation", "line_of", "notation_of"]


class Notation(NamedTuple):
    """A notation of whole games.

    Attributes:
        name: as users know it, and as files end.
        players: the tags that name player 0 and player 1.
        result: the tag of the result.
    """

    name: str
    players: tuple[str, str]
    result: str


_NOTATIONS = {
    "chess": Notation("pgn", ("White", "Black"), "Result"),
    "go": Notation("sgf", ("PB", "PW"), "RE"),
}


def notation_of(game: str) -> Notation | None:
    """The notation of a game by its name, with parameters or without; None if there is none."""
    return _NOTATIONS.get(game.partition("(")[0].strip())


def line_of(start: State, actions: Iterable[int]) -> list[tuple[int, str]]:
    """A line of play as `State.write_variations` takes it.

    Raises:
        ValueError: an action that the rules do not allow.
    """
    played = [int(action) for action in actions]
    positions = zip(played, replayed(start, played), strict=False)
    return [(ply - 1, position.action_name(action)) for ply, (action, position) in enumerate(positions)]
