"""How long to think: a share of the time that is left."""

from dataclasses import dataclass

__all__ = ["OF_THE_REST", "Clock", "seconds_to_think"]

# Moves that a player is taken to have left, if the clock does not say it. A share of the rest cannot run out: after n
# moves (1 - 1/25)^n of the time is left. With an increment i the rest settles where rest / 25 + 0.8 i = i, at 5 i.
_MOVES_LEFT = 25
_OF_INCREMENT = 0.8
_OF_THE_LAST_MOVE = 0.9  # before more time comes
_LEAST = 0.001  # seconds: the network's own answer comes in any case
OF_THE_REST = 0.5
"""The most of the time left that a move takes, so that one slow answer loses no game."""


@dataclass(frozen=True)
class Clock:
    """A player's clock; all in seconds."""

    left: float
    increment: float = 0.0  # added after each move
    moves: int | None = None  # until more time comes; None: no more comes


def seconds_to_think(clock: Clock, overhead: float) -> float:
    """Seconds for one move, at least a thousandth.

    Args:
        clock: the player's own.
        overhead: seconds a move that pass outside of the search: a network's lag, the program that asks.
    """
    moves = _MOVES_LEFT if clock.moves is None else max(1, clock.moves)
    # Each move to come loses the overhead too.
    left = max(0.0, clock.left - overhead * min(moves, _MOVES_LEFT))
    most = left * (_OF_THE_LAST_MOVE if moves == 1 else OF_THE_REST)
    return max(_LEAST, min(left / moves + _OF_INCREMENT * clock.increment, most))
