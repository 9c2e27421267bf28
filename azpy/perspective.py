"""Signs that a game mixes up its two players: outcomes or observations in the wrong one's view.

No test of one position can tell whose view an outcome is in: a game may be lopsided, and a wrong sign everywhere is
another game. What can be said for certain is in `Perspective.meet`: two positions that the network cannot tell apart,
in which the same action wins for one player and loses for the other. The rest are warnings: each can also be right.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from azpy.game_checks import Broken, Look

__all__ = ["Clash", "Line", "Path", "Perspective", "Warned", "opposed"]

Line = tuple[int, ...]

_ENDS = 10  # games that either player has ended by a win before they are judged
_CHANGES, _CELLS = 50, 4  # changes of turn that are looked at, and values in which the board must differ from the first
_IN_PLACE = 0.9  # of the values of a board that is shown from one side, so many stay as they are when the turn changes


@dataclass(frozen=True, slots=True)
class Path:
    """The first plies of a game: positions of one game share its actions, to which more may be added."""

    actions: Sequence[int]
    plies: int

    @property
    def line(self) -> Line:
        """The actions that lead to the position."""
        return tuple(self.actions[: self.plies])


class Clash(Exception):  # noqa: N818  what is wrong is the game
    """Two lines of play that do not go together.

    Attributes:
        broken: what is wrong with them.
        other: the line that was there before.
    """

    def __init__(self, broken: Broken, other: Line) -> None:
        super().__init__(str(broken))
        self.broken, self.other = broken, other


@dataclass(frozen=True)
class Warned:
    """A sign of a mistake: the rule, what was seen, what would be expected, and the lines where there are any."""

    rule: str
    got: str
    expected: str
    line: Line | None = None
    other: Line | None = None


def opposed(ends: Mapping[int, float], others: Mapping[int, float]) -> int | None:
    """The action that wins for the player to move in one position and loses in the other (see `Look.ends`)."""
    for action, mine in ends.items():
        if mine * others.get(action, 0.0) < 0:
            return action
    return None


@dataclass
class Perspective:
    """What was seen of both players, position by position."""

    _seen: dict[bytes, dict[int, tuple[Path, Mapping[int, float]]]] = field(default_factory=dict)
    _shared: bool = False  # one observation was met at either player's turn
    _ends: Counter[tuple[int, int]] = field(default_factory=Counter)
    _hidden: Warned | None = None
    _first: NDArray[np.float32] | None = None
    _low: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    _high: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    _last: tuple[int, NDArray[np.float32]] | None = None
    _in_place: list[float] = field(default_factory=list)

    def meet(self, path: Path, look: Look) -> None:
        """Compares a position with those that look the same at the other player's turn.

        Raises:
            Clash: the same action wins in one and loses in the other.
        """
        facts = look.facts
        if facts.turn < 0:
            return
        mark = hashlib.blake2b(facts.observation + repr(facts.actions).encode(), digest_size=16).digest()
        seen = self._seen.setdefault(mark, {})
        seen.setdefault(facts.turn, (path, look.ends))
        if len(seen) < 2:
            return
        self._shared = True
        other, theirs = seen[1 - facts.turn]
        action = opposed(look.ends, theirs)
        if action is not None:
            got = f"two positions of one observation and one list of legal actions, where action {action} "
            got += "wins at once for one player and loses at once for the other"
            raise Clash(Broken("perspective", got, "the same result for whoever is to move"), other.line)
        won, lost = ({action for action, result in ends.items() if result > 0} for ends in (look.ends, theirs))
        if won != lost and self._hidden is None:
            got = "two positions of one observation and one list of legal actions: "
            got += f"action {min(won ^ lost)} wins at once in one of them only"
            self._hidden = Warned("hidden", got, "another observation", path.line, other.line)

    def watch(self, turn: int, array: NDArray[np.float32]) -> None:
        """Takes the observation of the next player's turn in a game."""
        flat = array.ravel().copy()
        if self._first is None:
            self._first = flat
        self._low[turn] = np.minimum(self._low.get(turn, flat), flat)
        self._high[turn] = np.maximum(self._high.get(turn, flat), flat)
        if self._last is not None and self._last[0] != turn and len(self._in_place) < 1000:
            before = self._last[1]
            placed = before != self._first
            if placed.sum() >= _CELLS:
                self._in_place.append(float((before == flat)[placed].mean()))
        self._last = turn, flat

    def end(self, last: int | None, outcome: float) -> None:
        """Takes the end of a game: who played last, and the outcome for player 0."""
        self._last = None
        if last is not None and outcome:
            self._ends[last, 1 if outcome > 0 else -1] += 1

    def warnings(self) -> list[Warned]:
        """What may be wrong."""
        found = [self._hidden] if self._hidden is not None else []
        if self._sees_one_side():
            got = "the board stays where it is when the turn changes, and nothing else shows whose turn it is"
            found.append(Warned("one-view", got, "planes of the player to move first, or a plane that shows the turn"))
        for sign, never in ((1, 1), (-1, 0)):
            by = [self._ends[player, sign] for player in (0, 1)]
            if min(by) >= _ENDS and not any(self._ends[player, -sign] for player in (0, 1)):
                got = f"player {never} never won: {sum(by)} games were won by player {1 - never}, "
                got += f"and {by[never]} of them ended with an action of player {never}"
                found.append(Warned("one-sided", got, "wins of both players"))
        return found

    def _sees_one_side(self) -> bool:
        if self._shared or len(self._in_place) < _CHANGES or len(self._low) < 2:
            return False
        shows_turn = (self._high[0] < self._low[1]) | (self._high[1] < self._low[0])
        return not shows_turn.any() and float(np.median(self._in_place)) > _IN_PLACE
