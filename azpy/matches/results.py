"""The results of a match: rounds of games, what they add up to, and what programs did wrong.

A round is the games of one opening, with the same dice. Player A has each seat once, and copies of player B have the
others: of two players a round is a pair. In a game of one player A and B play alone, and compare what they get.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.matches.ratings import elo, mean_interval, round_interval


@dataclass(frozen=True)
class Fault:
    """What a program did wrong in a game."""

    text: str  # goes on from the program's name
    forfeit: bool  # whether the program lost the game by it
    transcript: str | None = None  # the file that holds what was said


@dataclass(frozen=True)
class Round:
    """The games of one opening."""

    # Of each game the outcome of A, and those of B's copies; each in [-1, 1]. A has seat n in game n. Of one player's
    # games there is one row: the outcome of A's game, of B's, and of other players' if more played.
    outcomes: tuple[tuple[float, ...], ...]
    actions: tuple[tuple[int, ...], ...]  # of each game, the opening and the dice included
    faults: tuple[tuple[Fault, ...], ...] = ((), ())  # of player A, of player B, and so on
    start: int = 0  # the key of the position where the actions begin

    @property
    def points(self) -> tuple[float, ...]:
        """Of player A in each row of outcomes: 1 if nobody else gets as much, 1/n if n share the most, else 0."""
        best = [max(row) for row in self.outcomes]
        return tuple(float(row[0] == most) / row.count(most) for row, most in zip(self.outcomes, best, strict=True))

    @property
    def score(self) -> float:
        """A's share of the round's points, in [0, 1]."""
        return sum(self.points) / len(self.points)


@dataclass(frozen=True, repr=False)
class MatchResult:
    """What player A scored against player B, in one round at least."""

    rounds: tuple[Round, ...]
    zero_sum: bool = True  # of two players, who share one

    @cached_property
    def _points(self) -> NDArray[np.float64]:
        """[rounds, games] what A scored."""
        return np.array([one.points for one in self.rounds])

    @property
    def is_alone(self) -> bool:
        """Whether each player plays alone: the game is for one."""
        return len(self.rounds[0].outcomes) == 1

    @property
    def copies(self) -> int:
        """How many copies of B are in each game."""
        return len(self.rounds[0].outcomes[0]) - 1

    def share(self, other: str) -> str:
        """What the score is in a game of three or more players, in words: `other` is B."""
        return f"share of the wins against {self.copies} copies of {other}, even at {1 / (self.copies + 1):.3f}"

    @property
    def games(self) -> int:
        """Games of A."""
        return int(self._points.size)

    @property
    def wins(self) -> int:
        """Games in which nobody got as much as A."""
        return sum(wins for wins, _, _ in self.seats)

    @property
    def draws(self) -> int:
        """Games in which A shared the most with others."""
        return sum(draws for _, draws, _ in self.seats)

    @property
    def losses(self) -> int:
        """Games in which somebody got more than A."""
        return sum(losses for _, _, losses in self.seats)

    @cached_property
    def seats(self) -> tuple[tuple[int, int, int], ...]:
        """(wins, draws, losses) of A in each seat."""
        wins, losses = (self._points == 1).sum(0), (self._points == 0).sum(0)
        draws = len(self.rounds) - wins - losses
        return tuple(zip(wins.tolist(), draws.tolist(), losses.tolist(), strict=True))

    @property
    def seat_scores(self) -> list[float]:
        """A's share of the points in each seat."""
        return [float(score) for score in self._points.mean(0)]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many rounds had each score that a round can have, from 0 to 1 in equal steps.

        A pair's steps are quarters. Of P players a step is 1 / (P * m), where all numbers up to P divide m.
        """
        steps = self._points.shape[1] * math.lcm(*range(1, self.copies + 2))
        found = np.rint(self._points.mean(1) * steps).astype(np.int64)
        return tuple(np.bincount(found, minlength=steps + 1).tolist())

    @property
    def distinct(self) -> int:
        """Different games, by their actions."""
        return len({(one.start, actions) for one in self.rounds for actions in one.actions})

    @property
    def repeated(self) -> int:
        """Rounds that repeat an earlier one, action for action: the interval is narrower than it should be."""
        return len(self.rounds) - len({(one.start, one.actions) for one in self.rounds})

    @property
    def faults(self) -> tuple[tuple[Fault, ...], ...]:
        """Of player A, of player B, and so on, in order."""
        each = zip(*(one.faults for one in self.rounds), strict=True)
        return tuple(tuple(fault for faults in own for fault in faults) for own in each)

    @property
    def forfeits(self) -> tuple[int, ...]:
        """How many games each player lost by breaking the rules; they count as lost."""
        return tuple(sum(fault.forfeit for fault in faults) for faults in self.faults)

    @property
    def score(self) -> float:
        """A's share of the points, in [0, 1]: of a game that n players win together each gets 1/n."""
        return float(self._points.mean())

    @cached_property  # it takes thousands of steps
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score, from the rounds."""
        return round_interval(self.counts)

    @property
    def has_grades(self) -> bool:
        """Whether the outcome says more than the score: A won or lost less than 1, or what B got does not follow."""
        grades = any(row[0] not in (-1.0, 0.0, 1.0) for one in self.rounds for row in one.outcomes)
        return grades or not self.zero_sum

    def _outcomes(self, player: int) -> NDArray[np.float64]:
        """[rounds, games] of a player, 0 for A; the mean of B's copies."""
        if self.is_alone or player == 0:
            return np.array([[row[player] for row in one.outcomes] for one in self.rounds])
        return np.array([[sum(row[1:]) / self.copies for row in one.outcomes] for one in self.rounds])

    def outcome_of(self, player: int) -> tuple[float, tuple[float, float] | None]:
        """A player's mean outcome, in [-1, 1], and its 95 % interval from the rounds.

        Args:
            player: 0 for A; 1 for B, the mean of its copies; of one player's games any that played.

        Returns:
            None for the interval if all rounds have the same outcome. A game that is lost by rule counts as -1.
        """
        outcomes = self._outcomes(player)
        means = [sum(own) / len(own) for own in outcomes.tolist()]
        return float(np.mean(outcomes)), mean_interval(means, -1.0, 1.0)

    @property
    def difference(self) -> tuple[float, tuple[float, float] | None]:
        """A's mean outcome minus B's, and its 95 % interval from the rounds, None if all rounds have the same one."""
        found = (self._outcomes(0) - self._outcomes(1)).mean(1)
        return float(found.mean()), mean_interval(found.tolist(), -2.0, 2.0)

    @property
    def elo(self) -> float:
        """A's Elo minus that of a copy of B; a clean sweep counts as half a point less, so that it stays finite."""
        return elo(min(max(self.score, 0.5 / self.games), 1 - 0.5 / self.games), self.copies)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of A's Elo minus B's; infinite on the side of a clean sweep."""
        low, high = self.interval
        return elo(low, self.copies), elo(high, self.copies)

    def figures(self) -> dict[str, Any]:
        """The figures by name, for files: `score` with its interval `low`, `high`, and the numbers of games.

        Without a zero sum also the number of `players`, and the mean outcomes of A and of B with their intervals. Of
        one player's games `score` is A's mean outcome, and the difference to B's takes the place of A's outcome. An
        unknown interval is all that there can be.
        """
        (own, own_interval), (other, other_interval) = self.outcome_of(0), self.outcome_of(1)
        score, (low, high) = (own, own_interval or (-1.0, 1.0)) if self.is_alone else (self.score, self.interval)
        found = {"score": score, "low": low, "high": high}
        found |= {"wins": self.wins, "draws": self.draws, "losses": self.losses}
        if self.zero_sum:
            return found
        found |= {"players": 1 if self.is_alone else self.copies + 1}
        if self.is_alone:
            mean, interval = self.difference
            found |= figure("difference", mean, interval or (-2.0, 2.0))
        else:
            found |= figure("outcome", own, own_interval or (-1.0, 1.0))
        return found | figure("other_outcome", other, other_interval or (-1.0, 1.0))

    def __repr__(self) -> str:
        if self.is_alone:
            return f"mean score {told(*self.outcome_of(0))}, difference {told(*self.difference)}"
        return f"{told(self.score, self.interval, '.3f')} (+{self.wins} ={self.draws} -{self.losses})"


def told(mean: float, interval: tuple[float, float] | None, form: str = "+.3f") -> str:
    """A mean with its interval, if that is known."""
    return format(mean, form) + ("" if interval is None else f" [{interval[0]:{form}}, {interval[1]:{form}}]")


def figure(name: str, mean: float, interval: tuple[float, float] | None) -> dict[str, Any]:
    """A mean and its interval by name, for files; None for the ends of an interval that is not known."""
    low, high = interval or (None, None)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}
