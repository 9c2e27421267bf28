"""The value below which players resign, held where few resignations are wrong.

Control games are played to the end although a player would have resigned. The share of these players that did not
lose is the rate of wrong resignations. The threshold depends on finished games alone, never on the clock.
"""

from collections.abc import Iterable
from typing import Any

from azpy._core import GameRecord

_MOST_FALSE = 0.05  # AlphaGo Zero (Silver et al. 2017, Methods): wrong resignations are kept below 5 %
_FEW = 20  # control games in which one wrong resignation is 5 %
_MANY = 60  # none wrong among so many: fewer than 5 % with 95 % confidence ("rule of three")


class Resignation:
    """The threshold of one run.

    Args:
        below: the first threshold, and the highest one; -1: no player resigns.

    Attributes:
        below: see `SelfPlay`.
    """

    def __init__(self, below: float) -> None:
        self._most = self.below = below
        self._controls = self._false = 0

    def note(self, games: Iterable[GameRecord]) -> dict[str, float]:
        """Counts an iteration's games, and moves the threshold when enough is known.

        Too many wrong resignations halve its distance to -1. None among many control games double it again.

        Returns:
            The iteration's metrics: `resign_below` (before the move), `resigned` (share of the games) and, if there are
            control games, `resign_false_rate`. Empty if no player resigns.
        """
        if self._most <= -1:
            return {}
        played = list(games)
        controls = sum(game.control and game.resign_ply is not None for game in played)
        wrong = sum(game.false_resignation for game in played)
        row = {"resign_below": self.below, "resigned": sum(game.resigned for game in played) / max(len(played), 1)}
        if controls:
            row["resign_false_rate"] = wrong / controls
        self._controls += controls
        self._false += wrong
        if self._controls >= _FEW and self._false > _MOST_FALSE * self._controls:
            self._move(0.5)
        elif self._controls >= _MANY:
            self._move(1.0 if self._false else 2.0)
        return row

    def _move(self, factor: float) -> None:
        self.below = min(self._most, -1 + factor * (1 + self.below))
        self._controls = self._false = 0

    def state(self) -> dict[str, Any]:
        """The argument of `load`."""
        return {"below": self.below, "controls": self._controls, "false": self._false}

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from `state`, limited by the run's highest threshold."""
        if self._most > -1:
            self.below = min(self._most, float(state["below"])) if float(state["below"]) > -1 else self._most
            self._controls, self._false = int(state["controls"]), int(state["false"])
