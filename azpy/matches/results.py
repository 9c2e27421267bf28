"""The results of a match: pairs of games, what they add up to, and what programs did wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from azpy.matches.ratings import PAIR_SCORES, elo, mean_interval, pair_interval

__all__ = ["Fault", "MatchResult", "Pair"]


@dataclass(frozen=True)
class Fault:
    """What a program did wrong in a game."""

    text: str  # goes on from the program's name
    forfeit: bool  # whether the program lost the game by it
    transcript: str | None = None  # the file that holds what was said


@dataclass(frozen=True)
class Pair:
    """Two games of one opening."""

    outcomes: tuple[float, float]  # of player A in seat 0, and in seat 1; each in [-1, 1]
    actions: tuple[tuple[int, ...], tuple[int, ...]]  # of each game, the opening and the dice included
    faults: tuple[tuple[Fault, ...], tuple[Fault, ...]] = ((), ())  # of player A, and of player B
    start: int = 0  # the key of the position where the actions begin

    @property
    def points(self) -> tuple[float, float]:
        """Of player A in seat 0, and in seat 1: 1 for a win whatever it is worth, 0.5 for a draw, 0."""
        first, second = ((1.0 + np.sign(outcome)) / 2 for outcome in self.outcomes)
        return float(first), float(second)

    @property
    def score(self) -> float:
        """A's share of the pair's two points, one of `ratings.PAIR_SCORES`."""
        return sum(self.points) / 2


@dataclass(frozen=True)
class MatchResult:
    """What player A scored against player B."""

    wins: int
    draws: int
    losses: int
    first: tuple[int, int, int]  # wins, draws and losses of the games in which A had seat 0
    pairs: tuple[int, ...]  # how many pairs had each of `ratings.PAIR_SCORES`
    distinct: int  # different games, by their actions
    repeated: int  # pairs that repeat an earlier one, action for action: the interval is narrower than it should be
    outcomes: tuple[tuple[float, float], ...]  # of player A in the games of each pair, in order; each in [-1, 1]
    faults: tuple[tuple[Fault, ...], tuple[Fault, ...]] = ((), ())  # of player A, and of player B, in order

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "MatchResult":
        """The result of one pair at least."""
        scores = [pair.score for pair in pairs]
        return cls(
            *_count([points for pair in pairs for points in pair.points]),
            first=_count([pair.points[0] for pair in pairs]),
            pairs=tuple(scores.count(score) for score in PAIR_SCORES),
            distinct=len({(pair.start, actions) for pair in pairs for actions in pair.actions}),
            repeated=len(pairs) - len({(pair.start, pair.actions) for pair in pairs}),
            outcomes=tuple(pair.outcomes for pair in pairs),
            faults=_faults(pairs),
        )

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def second(self) -> tuple[int, int, int]:
        """(wins, draws, losses) of the games in which A had seat 1."""
        wins, draws, losses = self.first
        return self.wins - wins, self.draws - draws, self.losses - losses

    @property
    def forfeits(self) -> tuple[int, int]:
        """How many games A and B lost by breaking the rules; they count as lost."""
        a, b = (sum(fault.forfeit for fault in faults) for faults in self.faults)
        return a, b

    @property
    def score(self) -> float:
        """A's share of the points in [0, 1]; a draw is half a point."""
        return (self.wins + 0.5 * self.draws) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score, from the pairs."""
        return pair_interval(self.pairs)

    @property
    def has_grades(self) -> bool:
        """Whether a win or a loss was worth less than 1, so that `outcome` says more than `score`."""
        return any(outcome not in (-1.0, 0.0, 1.0) for pair in self.outcomes for outcome in pair)

    @property
    def outcome(self) -> float:
        """A's mean outcome of a game, in [-1, 1]; a game that is lost by rule counts as -1."""
        return float(np.mean(self.outcomes))

    @property
    def outcome_interval(self) -> tuple[float, float] | None:
        """95 % interval of the outcome, from the pairs; None if all pairs have the same one."""
        found = mean_interval([(1.0 + sum(pair) / 2) / 2 for pair in self.outcomes])
        return None if found is None else (2.0 * found[0] - 1.0, 2.0 * found[1] - 1.0)

    @property
    def elo(self) -> float:
        """A's Elo minus B's; a clean sweep counts as half a point less, so that it stays finite."""
        return elo(min(max(self.score, 0.5 / self.games), 1 - 0.5 / self.games))

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of A's Elo minus B's; infinite on the side of a clean sweep."""
        low, high = self.interval
        return elo(low), elo(high)

    @property
    def score_text(self) -> str:
        """A's score with its interval."""
        return "{:.3f} [{:.3f}, {:.3f}]".format(self.score, *self.interval)

    @property
    def elo_text(self) -> str:
        """A's Elo with its interval."""
        return "{:+.0f} [{:+.0f}, {:+.0f}]".format(self.elo, *self.elo_interval)

    def _repr_html_(self) -> str:
        """For notebooks: A's score and Elo with their 95 % intervals, and its games from each seat."""
        figures = {"score of A": self.score_text, "Elo of A": self.elo_text}
        for seat, counts in (("first", self.first), ("second", self.second)):
            figures[f"as {seat}"] = "won {}, drew {}, lost {}".format(*counts)
        cells = (f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in figures.items())
        return f"<table>{''.join(cells)}</table>"

    def __str__(self) -> str:
        return f"{self.score_text} (+{self.wins} ={self.draws} -{self.losses})"


def _count(points: Sequence[float]) -> tuple[int, int, int]:
    return points.count(1.0), points.count(0.5), points.count(0.0)


def _faults(pairs: Sequence[Pair]) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    a, b = (tuple(fault for pair in pairs for fault in pair.faults[index]) for index in (0, 1))
    return a, b
