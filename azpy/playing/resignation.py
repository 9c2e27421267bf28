"""The value below which players resign, held where few resignations are wrong.

Control games are played to the end although a player would have resigned; how many of those players did not lose is
the rate of wrong resignations. Decides by finished games alone, never by the clock. Knows nothing of files.
"""

from collections.abc import Iterable
from typing import Any

from azpy._core import GameRecord

__all__ = ["Resignation"]

_MOST_FALSE = 0.05  # AlphaGo Zero (Silver et al. 2017, Methods): wrong resignations are kept below 5 %
_FEW = 20  # control games in which one wrong resignation is 5 %
_MANY = 60  # none wrong among so many: fewer than 5 % with 95 % confidence ("rule of three")


class Resignation:
    """The threshold of one run.

    Args:
        below: what the run begins with, and the most it comes back to; -1: nobody resigns.

    Attributes:
        below: see `SelfPlay`.
    """

    def __init__(self, below: float) -> None:
        self._most = self.below = below
        self._controls = self._false = 0

    def note(self, games: Iterable[GameRecord]) -> dict[str, float]:
        """Takes an iteration's games in, and moves the threshold when enough is known.

        Too many wrong resignations halve its distance to -1; none among many control games double it again.

        Returns:
            The iteration's row of metrics: `resign_below` (as it was), `resigned` (share of the games) and, where
            control games tell, `resign_false_rate`. Nothing where nobody resigns.
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
        """What `load` needs to go on."""
        return {"below": self.below, "controls": self._controls, "false": self._false}

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from `state`; a run that was told another threshold does not go past that."""
        if self._most > -1:
            self.below = min(self._most, float(state["below"])) if float(state["below"]) > -1 else self._most
            self._controls, self._false = int(state["controls"]), int(state["false"])
