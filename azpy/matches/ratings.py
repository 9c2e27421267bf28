"""What a match says about strength: scores, Elo, intervals, a sequential test, and ratings of many players.

The games of a round share an opening and its dice, so they are not independent. All functions count rounds by their
scores. A round of two players is a pair, and can have five scores (the pentanomial model). With more players one player
meets copies of another one, and the functions take the number of `copies`.

Sources: the multinomial likelihood under a given mean is that of M. Van den Bergh, "Comments on the MLE of a
multinomial distribution with given expectation value" (Fishtest's mathematics, and Owen's empirical likelihood); the
sequential test is the generalised SPRT of Li, Liu and Ying, "Generalized sequential probability ratio test for
separate families of hypotheses" (2014), over pairs as Fishtest has it; ratings are Bradley and Terry's (1952), with
Luce's rule for several opponents ("Individual Choice Behavior", 1959): a player wins in proportion to its strength.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from azpy.errors import SettingsError

PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)  # a pair's share of its two points, and the order of all counts of pairs
_Z95 = 1.959964  # the 97.5 % point of the normal distribution
_ELO_PER_NAT = 400.0 / math.log(10.0)
_MAX_ELO = 2000.0  # of a hypothesis, and of an end of an interval: beyond it nothing was shown, and the end is infinite
_HALVINGS = 32  # a bound is exact to nine digits
_WRONG = 0.05  # of the sequential tests that find a hypothesis true which is not
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447)  # of Student's t for 1 to 6 degrees of freedom, see `_t95`


def elo(score: float, copies: int = 1) -> float:
    """Elo difference at which the logistic model expects `score` against so many copies; infinite at 0 and 1.

    Example:
        >>> round(elo(0.75)), round(elo(1 / 3, copies=2))
        (191, 0)
    """
    if score <= 0.0 or score >= 1.0:
        return math.copysign(math.inf, score - 0.5)
    return _ELO_PER_NAT * math.log(score / (1.0 - score) * copies)


def expected_score(difference: float, copies: int = 1) -> float:
    """The score that the logistic model expects of a player this many Elo stronger than each of so many copies.

    Example:
        >>> round(expected_score(191), 2), round(expected_score(191, copies=2), 2)
        (0.75, 0.6)
    """
    return 1.0 / (1.0 + copies * math.exp(-difference / _ELO_PER_NAT))


def mean_interval(scores: Sequence[float], least: float = 0.0, most: float = 1.0) -> tuple[float, float] | None:
    """95 % interval of the mean of independent scores in [least, most]: Student's t, cut off there, see `_cut_off`.

    Returns:
        None if all scores are equal. Equal scores do not show how far scores spread, so the interval is unknown.

    Example:
        >>> low, high = mean_interval([0.5, 0.6, 0.55])
        >>> round(low, 3), round(high, 3)
        (0.426, 0.674)
    """
    width = most - least
    shares = [(score - least) / width for score in scores]
    if max(shares) - min(shares) < 1e-6:  # equal up to rounding
        return None
    half = _t95(len(shares) - 1) * float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
    mean = float(np.mean(shares))
    low, high = _cut_off(mean - half, mean + half)
    return width * low + least, width * high + least


def _cut_off(low: float, high: float) -> tuple[float, float]:
    """An interval of a score; an end more than `_MAX_ELO` away from an even score is 0 or 1, so its Elo is infinite."""
    least = expected_score(-_MAX_ELO)
    return low if low > least else 0.0, high if high < 1.0 - least else 1.0


def _scores(counts: Sequence[int]) -> list[float]:
    """The scores that rounds can have: from 0 to 1 in equal steps, one for each count."""
    return [step / (len(counts) - 1) for step in range(len(counts))]


def round_score(counts: Sequence[int]) -> float:
    """Mean score of rounds, in [0, 1]; `counts` are those with each score, see `MatchResult.counts`."""
    return sum(n * a for n, a in zip(counts, _scores(counts), strict=True)) / sum(counts)


def round_interval(counts: Sequence[int]) -> tuple[float, float]:
    """95 % interval of the mean score of rounds, one at least: all means that a likelihood ratio test does not refuse.

    With many rounds it is mean ± 1.96 standard errors of the rounds' scores. With few rounds or a clean sweep it stays
    inside [0, 1] and keeps its width. Student's t with one degree of freedom less than rounds widens the threshold: one
    or two rounds show nothing, so the interval is [0, 1]. See `_cut_off`.
    `counts` are rounds with each score, here and below.
    """
    mean = round_score(counts)

    def bound(end: float) -> float:
        return _boundary(lambda middle: not _refuses(counts, middle), mean, end)

    return _cut_off(bound(0.0) if mean > 0 else 0.0, bound(1.0) if mean < 1 else 1.0)


def _refuses(counts: Sequence[int], mean: float) -> bool:
    """Whether a likelihood ratio test refuses this mean score."""
    return _likelihood_ratio(counts, mean) > _t95(sum(counts) - 1) ** 2 / 2


def _begins_above_0(counts: Sequence[int]) -> bool:
    """Whether `round_interval` does."""
    least = expected_score(-_MAX_ELO)
    return round_score(counts) > least and _refuses(counts, least)


def _boundary(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point from `inside` towards `outside` at which `holds` is true."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside


def _likelihood_ratio(counts: Sequence[int], mean: float) -> float:
    """Log likelihood of the observed frequencies, less its maximum under the condition that the mean score is `mean`.

    With n_i rounds of score a_i that maximum has p_i = n_i / n / (1 + t (a_i - mean)). The difference is the maximum
    over t of the sum of n_i log(1 + t (a_i - mean)), t between -1 / (1 - mean) and 1 / mean. At an end of that range
    an unseen score (0 or 1) gets the rest of the probability. `mean` is in (0, 1).
    """
    seen = [(n, a - mean) for n, a in zip(counts, _scores(counts), strict=True) if n]

    def rises(t: float) -> bool:
        return sum(n * d / (1.0 + t * d) for n, d in seen) > 0

    t = _boundary(rises, -1.0 / (1.0 - mean), 1.0 / mean)
    return sum(n * math.log1p(t * d) for n, d in seen)


def _t95(freedom: int) -> float:
    """The 97.5 % point of Student's t within 0.001; for 0 degrees of freedom the point for 1."""
    if freedom <= len(_T95):
        return _T95[max(freedom, 1) - 1]
    # Cornish and Fisher's expansion: Abramowitz and Stegun 26.7.5.
    z, v = _Z95, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / v + second / v**2 + third / v**3


@dataclass(frozen=True)
class Sprt:
    """A sequential test of "A is `elo0` stronger than B" (H0) against "A is `elo1` stronger" (H1).

    It may be asked after every pair. The log likelihood ratio compares the best fits of the pairs' scores to each
    hypothesis, and Wald's bounds end the test. The score of a match that it ends is a little too far to that side.

    Raises:
        SettingsError: a value out of range.
    """

    elo0: float  # of H0, logistic Elo
    elo1: float  # of H1, more than `elo0`

    def __post_init__(self) -> None:
        if not -_MAX_ELO <= self.elo0 < self.elo1 <= _MAX_ELO:
            raise SettingsError(
                f"elo0 must be less than elo1, both within {_MAX_ELO:g} Elo of 0, got {self.elo0:g} and {self.elo1:g}"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """H0 is accepted at or below the first log likelihood ratio, H1 at or above the second."""
        bound = math.log((1 - _WRONG) / _WRONG)
        return -bound, bound

    def llr(self, counts: Sequence[int]) -> float:
        """Log likelihood ratio of H1 over H0."""
        null, alternative = expected_score(self.elo0), expected_score(self.elo1)
        return _likelihood_ratio(counts, null) - _likelihood_ratio(counts, alternative)

    def accepts(self, counts: Sequence[int]) -> str | None:
        """Which hypothesis, "H0" or "H1", once the test is over; None before."""
        low, high = self.bounds
        llr = self.llr(counts)
        return "H0" if llr <= low else "H1" if llr >= high else None


@dataclass(frozen=True)
class Rating:
    """Elo of one player among many, with its 95 % interval, perhaps infinite; the first player's is 0 by definition."""

    elo: float
    low: float
    high: float


def bradley_terry(players: int, matches: Sequence[tuple[int, int, Sequence[int]]], copies: int = 1) -> list[Rating]:
    """Maximum-likelihood Elo of each player, from matches (i, j, counts of i's rounds) that connect all of them.

    In each game i met so many copies of j. A clean sweep counts half a point less, so that ratings stay finite.
    Intervals are for the difference from player 0. They come from the spread of the rounds' scores in each match (a
    sandwich estimate). One more round, a quarter of its points off, keeps a few equal rounds from claiming certainty.
    An end is infinite where no round bounds it, as for `round_interval`: see `_bounded`. Without matches there is
    player 0 alone.
    """
    if not matches:
        return [Rating(0.0, 0.0, 0.0)]
    design = np.zeros((len(matches), players))
    rounds, scores, spreads = np.zeros((3, len(matches)))
    for row, (i, j, given) in enumerate(matches):
        counts, possible = np.array(given, np.float64), np.array(_scores(given))
        last = len(given) - 1
        half = last // (2 * (copies + 1))  # a point in steps of the score, halved
        for all_points, less in ((0, half), (last, last - half)):
            if counts[all_points] == counts.sum():
                counts[all_points] -= 1
                counts[less] += 1
        design[row, i], design[row, j] = 1, -1
        rounds[row] = counts.sum()
        scores[row] = counts @ possible / rounds[row]
        spreads[row] = counts @ (possible - scores[row]) ** 2 + 0.25**2
    design = design[:, 1:]
    theta = np.zeros(players - 1)  # ratings in nats, without the first
    for _ in range(200):
        expected = 1 / (1 + copies * np.exp(-design @ theta))
        information = design.T @ (design * (rounds * expected * (1 - expected))[:, None])
        step = np.linalg.solve(information, design.T @ (rounds * (scores - expected)))
        # A full step may overshoot where ratings are far apart.
        theta += step / max(1.0, float(np.abs(step).max(initial=0.0)))
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    inverse = np.linalg.inv(information)
    errors = np.sqrt(np.diag(inverse @ (design.T @ (design * spreads[:, None])) @ inverse))
    centre, half = theta * _ELO_PER_NAT, errors * _ELO_PER_NAT * _Z95
    below, above = _bounded(players, matches), _bounded(players, [(j, i, counts) for i, j, counts in matches])
    low, high = np.where(below, centre - half, -np.inf), np.where(above, centre + half, np.inf)
    rated = [Rating(*map(float, row)) for row in zip(centre, low, high, strict=True)]
    return [Rating(0.0, 0.0, 0.0), *rated]


def _bounded(players: int, matches: Sequence[tuple[int, int, Sequence[int]]]) -> list[bool]:
    """Whether rounds bound the rating from below, of each player but the first; in matches turned round from above.

    A rating is bounded from below if the player scored against another one, who scored against the next one, and so on
    down to player 0 (the condition of Ford, "Solution of a ranking problem from binary comparisons", 1957); and if
    neither the rounds of the player nor those of player 0 are too few to show anything.
    """
    pooled = np.zeros((players, len(matches[0][2])), np.int64)
    beaten = np.zeros((players, players), np.bool_)
    for i, j, counts in matches:
        pooled[i] += np.array(counts, np.int64)
        pooled[j] += np.array(counts, np.int64)[::-1]
        beaten[i, j] |= round_score(counts) > 0
        beaten[j, i] |= round_score(counts) < 1
    reaches = np.eye(players, dtype=np.bool_)
    for _ in range(players):
        reaches |= beaten @ reaches
    shown = [_begins_above_0(counts) for counts in pooled.tolist()]
    first_shown = _begins_above_0(pooled[0].tolist()[::-1])
    return [bool(reaches[player, 0]) and shown[player] and first_shown for player in range(1, players)]
