"""The clocks of GTP: `time_settings`, KGS's and KataGo's time systems, and the seconds that they leave for a move."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from azpy.errors import RequestError
from azpy.serving.clock import OF_THE_REST, Clock, seconds_to_think

__all__ = ["KGS", "SYSTEMS", "Times"]

KGS = ("none", "absolute", "byoyomi", "canadian")
SYSTEMS = (*KGS, "fischer", "fischer-capped")
"""The time systems of `kata-time_settings`, as KataGo names them. KGS has the first four."""

_NUMBER = r"[0-9]{1,10}(\.[0-9]{0,9})?"
_NEEDED = {  # how many numbers a system has, and which
    "none": (0, "nothing more"),
    "absolute": (1, "the main time"),
    "byoyomi": (3, "the main time, the time of a period and the number of periods"),
    "canadian": (3, "the main time, the time of a period and its stones"),
    "fischer": (2, "the main time and the increment"),
    "fischer-capped": (
        4,
        "the main time, the increment, the most main time and the most time of a move (-1: no limit)",
    ),
}


@dataclass(frozen=True)
class _System:
    """A time system; in seconds."""

    main: float
    period: float = 0.0  # the time of a period that follows the main time
    moves: int = 0  # of a period; 0 for a system without periods
    counts_periods: bool = False  # whether the stones of `time_left` are periods that are left, as in byo-yomi
    increment: float = 0.0  # added after each move
    most_left: float | None = None  # time beyond it is lost after a move
    most_of_a_move: float | None = None


class Times:
    """What the other program has said about time.

    Args:
        overhead: seconds a move that pass outside of the search.
    """

    def __init__(self, overhead: float) -> None:
        self._overhead = overhead
        self._system: _System | None = None  # None: no limit
        self._told: dict[int, tuple[float, int]] = {}  # by color: seconds, and stones or periods

    def forget(self) -> None:
        """Both clocks are full again."""
        self._told = {}

    def settings(self, words: Sequence[str]) -> str:
        """`time_settings`: the main time, the time of a period and its stones."""
        main, period, stones = _numbers(words, "canadian")
        if period > 0 and stones < 1:
            self._begin(None)
        else:
            self._begin(_System(main, period, int(stones) if period > 0 else 0))
        return ""

    def named_settings(self, words: Sequence[str], systems: Sequence[str]) -> str:
        """`kgs-time_settings` and `kata-time_settings`: a time system and its numbers."""
        kind = words[0].lower() if words else ""
        if kind not in systems:
            raise RequestError(f"syntax error: expected {', '.join(systems)}, and its numbers")
        numbers = _numbers(words[1:], kind, f"{kind} and ")
        if kind == "none":
            self._begin(None)
        elif kind in {"byoyomi", "canadian"}:
            main, period, count = numbers
            if count < 1 or count != int(count):
                raise RequestError(f"syntax error: expected {kind} and {_NEEDED[kind][1]}, at least 1 of them")
            is_byoyomi = kind == "byoyomi"
            self._begin(_System(main, period, 1 if is_byoyomi else int(count), is_byoyomi))
        else:
            main, increment, most_left, most_of_a_move = (*numbers, *(0.0, -1.0, -1.0)[len(numbers) - 1 :])
            if 0 <= most_left < main:
                raise RequestError(f"the main time is {main:g} s, more than the most main time of {most_left:g} s")
            self._begin(
                _System(
                    main,
                    increment=increment,
                    most_left=most_left if most_left >= 0 else None,
                    most_of_a_move=most_of_a_move if most_of_a_move >= 0 else None,
                )
            )
        return ""

    def _begin(self, system: _System | None) -> None:
        self._system = system
        self.forget()

    def left(self, color: int, words: Sequence[str]) -> str:
        """`time_left`: seconds, and the stones or periods that are left; 0 of them in the main time."""
        if len(words) != 2 or not all(re.fullmatch(f"-?{_NUMBER}", word) for word in words):
            raise RequestError("syntax error: expected a color, seconds and stones")
        self._told[color] = max(0.0, float(words[0])), int(float(words[1]))
        return ""

    def seconds(self, color: int) -> float | None:
        """Seconds for a move of this color, at least a thousandth; None without a limit."""
        system = self._system
        if system is None:
            return None
        full = (system.period, system.moves) if system.main == 0 and system.moves else (system.main, 0)
        left, stones = self._told.get(color, full)
        in_period = stones > 0
        # A period of byo-yomi is there anew after each move that keeps to it.
        clock = Clock(left, system.increment, (1 if system.counts_periods else stones) if in_period else None)
        seconds = seconds_to_think(clock, self._overhead)
        if system.moves and not in_period:
            # A period follows the main time: what it gives a move can be had in any case.
            seconds = max(seconds, seconds_to_think(Clock(system.period, moves=system.moves), self._overhead))
        if system.most_left is not None:
            # The time that would be lost after the move.
            seconds = max(seconds, min(left + system.increment - system.most_left, OF_THE_REST * left))
        if system.most_of_a_move is not None:
            seconds = min(seconds, system.most_of_a_move - self._overhead)
        return max(0.001, seconds)


def _numbers(words: Sequence[str], kind: str, before: str = "") -> list[float]:
    """The numbers of a time system. The limits of `fischer-capped`, its last two, may be below 0."""
    count, needed = _NEEDED[kind]
    limits = words[2:] if kind == "fischer-capped" else ()
    digits = [*words[: len(words) - len(limits)], *(word.removeprefix("-") for word in limits)]
    if len(words) != count or not all(re.fullmatch(_NUMBER, each) for each in digits):
        raise RequestError(f"syntax error: expected {before}{needed}")
    return [float(word) for word in words]
