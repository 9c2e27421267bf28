"""Positions of one key, and positions that look the same: what must be equal in them, and what may differ.

A search sees every card and every counter. The network sees what `encode` shows. If an action wins at once in one of
two positions that look the same and loses at once in the other, no network can play the game: encode hides something
from the player (`hidden`), or outcomes are in the wrong player's view (`perspective`). Other differences are warnings:
an observation may leave out counters of plies and of repetitions.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from azpy._core import CHANCE, TERMINAL, Facts, Look
from azpy.checks.faults import Broken, Line, Path

_ACTIONS = 8  # of a pair of positions, evenly chosen
_ALIKE = "two positions with equal observations and equal legal actions"


def observed(facts: Facts) -> bytes:
    """The observation and the legal actions: equal if a network cannot tell two positions apart."""
    return hashlib.blake2b(repr(facts.actions).encode() + _row(facts), digest_size=16).digest()


def _row(facts: Facts) -> bytes:
    array = facts.observation
    # -0.0 and 0.0 are equal.
    return b"" if array is None else (array + np.float32(0)).tobytes()


def digest(facts: Facts, *more: object) -> bytes:
    """Equal for equal facts, but for the key, and equal representations of `more`."""
    told = (facts.turn, facts.chances, facts.outcome, *more)
    return hashlib.blake2b(observed(facts) + repr(told).encode(), digest_size=16).digest()


def plain(facts: Facts) -> dict[str, Any]:
    """Facts as JSON gives them back."""
    outcome = list(facts.outcome) if isinstance(facts.outcome, tuple) else facts.outcome
    told = {name: getattr(facts, name) for name in ("turn", "actions", "chances", "key")}
    return told | {"outcome": outcome, "observation": observed(facts).hex()}


def key_clash(look: Look, other: Look) -> Broken | None:
    """What differs in two positions of one key; None if nothing does."""
    got = ""
    if look.facts != other.facts:
        got = f"they differ in {look.facts.differences(other.facts)}"
    else:
        for (action, key), (_, theirs) in zip(look.followers, other.followers, strict=True):
            if key != theirs:
                got = f"after action {action} in both, their keys are {key} and {theirs}"
    return Broken("key", f"two positions have one key: {got}", "two keys") if got else None


def clash(turn: int, ends: Mapping[int, float], other_turn: int, others: Mapping[int, float]) -> Broken | None:
    """An action that wins for the player to move in one of two positions that look the same, and loses in the other.

    `ends` and `others` are `Look.ends` of the two positions.
    """
    for action, result in ends.items():
        if result * others.get(action, 0.0) < 0:
            if turn == other_turn:
                got = f"{_ALIKE} for player {turn}: action {action} wins at once in one and loses at once in the other"
                return Broken("hidden", got, "another observation")
            got = f"{_ALIKE}, where action {action} wins at once for one player and loses at once for the other"
            return Broken("perspective", got, "the same result for the player to move")
    return None


class Alike:
    """Compares each position with the first ones that look the same, at this player's turn and at the other's.

    Args:
        after: the facts after a line of play.
        max_plies: a game that ends at this length may hide its length.
        seconds: that comparisons may take, without those of results at once, which take none.

    Attributes:
        warning: the first difference between two positions that look the same.
        shared: whether one observation was met at either player's turn.
    """

    def __init__(self, after: Callable[[Line], Facts], max_plies: int, seconds: float) -> None:
        self._after, self._max_plies, self._seconds = after, max_plies, seconds
        self._seen: dict[bytes, dict[int, tuple[Path, int, Mapping[int, float]]]] = {}
        # By player and observation: the first position and its legal actions.
        self._rows: dict[bytes, tuple[Path, Sequence[int]]] = {}
        self.warning: Broken | None = None
        self.shared = False

    def meet(self, path: Path, look: Look) -> Broken | None:
        """Compare a position; give the fault if an action wins at once in one of two and loses in the other."""
        facts = look.facts
        if facts.turn < 0:
            return None
        row = hashlib.blake2b(_row(facts), digest_size=16, salt=bytes([facts.turn])).digest()
        first, actions = self._rows.setdefault(row, (path, facts.actions))
        if actions != facts.actions and self.warning is None:
            what = f"two positions with equal observations and other legal actions for player {facts.turn}"
            self.warning = self._followed(what, path.line, first.line, sorted({*actions}.intersection(facts.actions)))
        seen = self._seen.setdefault(observed(facts), {})
        seen.setdefault(facts.turn, (path, facts.key, look.ends))
        self.shared = self.shared or len(seen) > 1
        for turn, (other, key, ends) in seen.items():
            if turn == facts.turn and key == facts.key:
                continue
            if (broken := clash(facts.turn, look.ends, turn, ends)) is not None:
                broken.line, broken.other = path.line, other.line
                return broken
            self.warning = self.warning or self._difference(look, path.line, other.line, turn, ends)
        return None

    def _difference(self, look: Look, line: Line, other: Line, turn: int, ends: Mapping[int, float]) -> Broken | None:
        """What differs in two positions that look the same, at the ends of two lines, but may be right."""
        if turn == look.facts.turn:
            return self._followed(f"{_ALIKE} for player {turn}", line, other, [action for action, _ in look.followers])
        won, lost = ({action for action, result in each.items() if result > 0} for each in (look.ends, ends))
        if won == lost:
            return None
        got = f"{_ALIKE}: action {min(won ^ lost)} wins at once in one of them only"
        return Broken("hidden", got, "another observation", line, other)

    def _followed(self, what: str, line: Line, other: Line, actions: Sequence[int]) -> Broken | None:
        """Return what differs in two positions after one of these actions in both."""
        begin, found = time.monotonic(), None
        for action in actions[:: -(-len(actions) // _ACTIONS) or 1] if self._seconds > 0 else ():
            lines = (*line, action), (*other, action)
            mine, theirs = map(self._after, lines)
            while mine.turn == CHANCE and digest(mine) == digest(theirs):  # compare what follows the roll
                lines = (*lines[0], mine.actions[0]), (*lines[1], mine.actions[0])
                mine, theirs = map(self._after, lines)
            if TERMINAL in (mine.turn, theirs.turn) and self._max_plies in map(len, lines):
                continue
            if digest(mine) != digest(theirs):
                got = f"{what}: after action {action} in both, they differ in {mine.differences(theirs)}"
                found = Broken("hidden", got, "another observation", line, other)
                break
        self._seconds -= time.monotonic() - begin
        return found
