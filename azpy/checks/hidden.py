"""Positions that look the same to the player to move, and go on in different ways: encode hides what search knows.

A search sees every card and every counter. The network sees what `encode` shows. If an action wins at once in one of
two such positions and loses at once in the other, no network can play the game. Other differences are warnings: an
observation may leave out counters of plies and of repetitions.
"""

import time
from collections.abc import Callable, Mapping

from azpy._core import TERMINAL, Facts, Look
from azpy.checks.elsewhere import plain
from azpy.checks.faults import Broken, Line, Path
from azpy.checks.game_checks import observed

__all__ = ["Hidden"]

_ACTIONS = 8  # of a pair of positions, evenly chosen
_ALIKE = "two positions of one observation and one list of legal actions for player"
_NAMES = {
    "turn": "the turn",
    "outcome": "the outcome",
    "chances": "the roll",
    "actions": "the list of legal actions",
    "observation": "the observation",
}


class Hidden:
    """Compares the positions that one player cannot tell apart.

    Args:
        after: the facts after a line of play.
        max_plies: a game that ends at this length may hide its length.
        seconds: that comparisons may take, without those of results at once, which take none.

    Attributes:
        warning: the first difference.
    """

    def __init__(self, after: Callable[[Line], Facts], max_plies: int, seconds: float) -> None:
        self._after, self._max_plies, self._seconds = after, max_plies, seconds
        self._seen: dict[tuple[int, bytes], tuple[Path, int, Mapping[int, float]]] = {}
        self.warning: Broken | None = None

    def meet(self, path: Path, look: Look) -> Broken | None:
        """Compares a position with the first one that looks the same to the same player.

        Gives the fault if an action wins at once in one of them and loses at once in the other.
        """
        facts = look.facts
        if facts.turn < 0:
            return None
        other, key, ends = self._seen.setdefault((facts.turn, observed(facts)), (path, facts.key, look.ends))
        if key == facts.key:
            return None
        broken = opposite(facts.turn, look.ends, ends)
        if broken is None and self.warning is None and self._seconds > 0:
            begin = time.monotonic()
            self.warning = self.difference(look, path.line, other.line)
            self._seconds -= time.monotonic() - begin
        if broken is not None:
            broken.line, broken.other = path.line, other.line
        return broken

    def difference(self, look: Look, line: Line, other: Line) -> Broken | None:
        """What differs after the same action in two positions that look the same; `look` is at the end of `line`."""
        actions = [action for action, _ in look.followers]
        for action in actions[:: -(-len(actions) // _ACTIONS)]:
            lines = (*line, action), (*other, action)
            mine, theirs = map(self._after, lines)
            if TERMINAL in (mine.turn, theirs.turn) and self._max_plies in map(len, lines):
                continue
            one, two = plain(mine), plain(theirs)
            for name in (name for name in _NAMES if one[name] != two[name]):
                values = "" if name == "observation" else f" ({one[name]} and {two[name]})"[:100]
                got = f"{_ALIKE} {look.facts.turn}: after action {action} in both, {_NAMES[name]} differs{values}"
                return Broken("hidden", got, "another observation", line, other)
        return None


def opposite(turn: int, ends: Mapping[int, float], others: Mapping[int, float]) -> Broken | None:
    """An action that wins at once in one of two positions that look the same to a player, and loses in the other."""
    for action, result in ends.items():
        if result * others.get(action, 0.0) < 0:
            got = f"{_ALIKE} {turn}: action {action} wins at once in one and loses at once in the other"
            return Broken("hidden", got, "another observation")
    return None
