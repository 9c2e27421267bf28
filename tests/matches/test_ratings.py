"""Intervals cover what they say, the sequential test errs as often as it says, ratings are the known ones."""

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from azpy.errors import SettingsError
from azpy.matches.ratings import (
    PAIR_SCORES,
    Sprt,
    bradley_terry,
    elo,
    expected_score,
    mean_interval,
    round_interval,
    round_score,
)

EVEN = (0.1, 0.2, 0.4, 0.2, 0.1)
DRAWISH = (0.01, 0.06, 0.84, 0.07, 0.02)
STRONG = (0.0, 0.02, 0.08, 0.2, 0.7)


@cache
def tilted(probabilities: tuple[float, ...], mean: float) -> NDArray[np.float64]:
    """The nearest distribution of pair scores with another mean."""
    low, high = -50.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        weights = np.array(probabilities) * np.exp(middle * np.array(PAIR_SCORES))
        weights /= weights.sum()
        low, high = (middle, high) if weights @ PAIR_SCORES < mean else (low, middle)
    return weights


def test_elo_is_the_logistic_model_s() -> None:
    assert elo(0.5) == 0
    assert elo(10 / 11) == pytest.approx(400)
    assert expected_score(400) == pytest.approx(10 / 11)
    assert expected_score(elo(0.3)) == pytest.approx(0.3)
    assert (elo(0.0), elo(1.0)) == (-math.inf, math.inf)


# Points of Student's t from a table, by degrees of freedom.
STUDENT = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060}
STUDENT |= {15: 2.1314, 60: 2.0003}


@pytest.mark.parametrize(("freedom", "point"), STUDENT.items())
def test_intervals_of_few_scores_have_the_width_of_student_s_t(freedom: int, point: float) -> None:
    scores = [0.5 + 0.001 * (-1) ** n for n in range(freedom + 1)]
    low, high = mean_interval(scores) or (0, 0)
    assert (high - low) / 2 == pytest.approx(point * np.std(scores, ddof=1) / math.sqrt(freedom + 1), rel=5e-4)
    # n pairs, all won: under a mean of s their log likelihood ratio is -n log(s), see below.
    low, _ = round_interval([0, 0, 0, 0, freedom + 1])
    assert low == pytest.approx(math.exp(-(point**2) / 2 / (freedom + 1)), rel=2e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("counts", "ends"),
    [
        ([0, 0, 1, 0, 0], (0.0, 1.0)),  # 1:1 in two games
        ([0, 0, 0, 0, 1], (0.0, 1.0)),
        ([0, 1, 0, 1, 0], (0.0, 1.0)),
        ([0, 0, 0, 0, 20], (None, 1.0)),
        ([20, 0, 0, 0, 0], (0.0, None)),
        ([0, 0, 3, 0, 0], (None, None)),
    ],
)
def test_an_end_that_no_pair_bounds_has_infinite_elo(
    counts: list[int], ends: tuple[float | None, float | None]
) -> None:
    """None stands for an end that is bounded. Two players are rated with the same infinite ends."""
    found = round_interval(counts)
    rating = bradley_terry(2, [(1, 0, counts)])[1]
    for expected, end, of_rating in zip(ends, found, (rating.low, rating.high), strict=True):
        assert end == expected if expected is not None else 0.0 < end < 1.0
        assert math.isinf(elo(end)) == math.isinf(of_rating) == (expected is not None)


def test_an_end_beside_0_by_rounding_is_cut_off() -> None:
    """Two scores whose interval would begin at 1e-9, which is -3600 Elo."""
    low, high = mean_interval([(STUDENT[1] - 1) * 0.01 + 1e-9, (STUDENT[1] + 1) * 0.01 + 1e-9]) or (1.0, 1.0)
    assert low == 0.0
    assert high == pytest.approx(2 * STUDENT[1] * 0.01, abs=1e-4)
    assert mean_interval([0.5, 0.5, 0.6]) != (0.0, 1.0)


def test_ratings_are_infinite_where_no_chain_of_points_leads() -> None:
    """1 and 2 lost every game to 3 and 4, and 0 and 1 drew: nothing says how far 3 and 4 are above 0."""
    even, sweep = [1, 3, 12, 3, 1], [0, 0, 0, 0, 20]
    matches = [(1, 0, even), (2, 1, even), (3, 4, even), (3, 1, sweep), (3, 2, sweep), (4, 1, sweep), (4, 0, sweep)]
    ratings = bradley_terry(5, matches)
    assert [math.isinf(rating.low) for rating in ratings] == [False] * 5
    assert [math.isinf(rating.high) for rating in ratings] == [False, False, False, True, True]
    turned = bradley_terry(5, [(j, i, counts) for i, j, counts in matches])
    assert [math.isinf(rating.low) for rating in turned] == [False, False, False, True, True]
    # One pair of player 0 shows nothing, however many the others have.
    for rating in bradley_terry(3, [(0, 1, [0, 0, 1, 0, 0]), (1, 2, even)])[1:]:
        assert (rating.low, rating.high) == (-math.inf, math.inf)
    # Few pairs each, but many of each player.
    few = bradley_terry(6, [(i, j, [0, 0, 2, 0, 0]) for i in range(6) for j in range(i)])
    assert all(math.isfinite(rating.low) and math.isfinite(rating.high) for rating in few)


@pytest.mark.parametrize("scores", [[0.5], [0.25, 0.25], [1.0] * 5, [0.1, 0.1 + 1e-8]])
def test_equal_scores_have_an_unknown_interval(scores: list[float]) -> None:
    assert mean_interval(scores) is None


@pytest.mark.parametrize("probabilities", [EVEN, DRAWISH, STRONG])
def test_with_many_pairs_intervals_follow_the_deviation(probabilities: tuple[float, ...]) -> None:
    counts = [round(10_000 * p) for p in probabilities]
    mean, scores = round_score(counts), np.array(PAIR_SCORES)
    deviation = math.sqrt(np.array(counts) @ (scores - mean) ** 2) / 10_000
    low, high = round_interval(counts)
    assert low == pytest.approx(mean - 1.96 * deviation, abs=3e-4)
    assert high == pytest.approx(mean + 1.96 * deviation, abs=3e-4)


@pytest.mark.parametrize(
    ("probabilities", "pairs"), [(EVEN, 20), (DRAWISH, 40), (STRONG, 30), ((0.3, 0, 0.35, 0, 0.35), 40)]
)
def test_intervals_cover_the_truth_as_often_as_they_say(probabilities: tuple[float, ...], pairs: int) -> None:
    truth = float(np.dot(probabilities, PAIR_SCORES))
    matches = np.random.default_rng(7).multinomial(pairs, probabilities, size=300).tolist()
    covered = sum(low <= truth <= high for low, high in map(round_interval, matches))
    assert 0.92 <= covered / 300 <= 0.995  # 0.95 within 2.4 standard errors; wider for few pairs


def test_the_likelihood_ratio_is_that_of_the_best_fits() -> None:
    """Against a plain search: with scores 0, 1/2 and 1 a given mean leaves one probability free."""
    counts = [7, 0, 20, 0, 13]

    def best(mean: float) -> float:
        p0 = np.linspace(1e-6, 1 - mean - 1e-6, 200_001)
        p1 = p0 + 2 * mean - 1
        half = 1 - p0 - p1
        fits = (p1 > 0) & (half > 0)
        p0, p1, half = p0[fits], p1[fits], half[fits]
        return float((7 * np.log(p0) + 20 * np.log(half) + 13 * np.log(p1)).max())

    test = Sprt(10, 60)
    expected = best(expected_score(60)) - best(expected_score(10))
    assert test.llr(counts) == pytest.approx(expected, abs=1e-6)


def test_the_likelihood_ratio_of_one_sided_pairs_is_finite() -> None:
    # All of n pairs won: a mean of s leaves them a probability of s at most, each.
    assert Sprt(0, 100).llr([0, 0, 0, 0, 10]) == pytest.approx(10 * math.log(expected_score(100) / 0.5))
    assert Sprt(0, 100).llr([10, 0, 0, 0, 0]) < 0


@pytest.mark.parametrize("base", [EVEN, DRAWISH])
@pytest.mark.parametrize(("truth", "wrong"), [(0.0, "H1"), (60.0, "H0")])
def test_the_sequential_test_errs_no_more_than_it_says(base: tuple[float, ...], truth: float, wrong: str) -> None:
    test, rng, matches = Sprt(0, 60), np.random.default_rng(11), 200
    probabilities = tilted(base, expected_score(truth))
    verdicts = []
    for _ in range(matches):
        counts = [0] * 5
        for score in rng.choice(5, size=2000, p=probabilities):
            counts[score] += 1
            if verdict := test.accepts(counts):
                verdicts.append(verdict)
                break
    assert len(verdicts) == matches  # every match is decided
    assert verdicts.count(wrong) / matches <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / matches)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((10, 10), "elo0 must be less than elo1"),
        ((10, 0), "elo0 must be less than elo1"),
        ((0, 5000), "within 2000 Elo"),
        ((math.nan, 10), "elo0 must be less"),
    ],
)
def test_bad_bounds_of_a_sequential_test_are_refused(values: tuple[float, ...], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Sprt(*values)


def test_two_players_are_rated_by_their_score() -> None:
    counts = [5, 10, 20, 10, 15]
    first, second = bradley_terry(2, [(1, 0, counts)])
    assert (first.elo, first.low, first.high) == (0, 0, 0)
    assert second.elo == pytest.approx(elo(round_score(counts)))
    low, high = round_interval(counts)
    assert (second.low, second.high) == pytest.approx((elo(low), elo(high)), abs=6)


def test_bradley_and_terry_s_model_against_a_known_case() -> None:
    """Baseball, American League 1987, seven teams (Agresti, Categorical Data Analysis, section 10.6.4).

    Fitted log strengths over Baltimore's: Milwaukee 1.581, Detroit 1.436, Toronto 1.294, New York 1.248, Boston 1.108,
    Cleveland 0.684.
    """
    wins = [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
    teams = [6, 5, 4, 3, 2, 1, 0]  # Baltimore is the one that all are compared with
    matches = [
        (a, b, [wins[teams[b]][teams[a]], 0, 0, 0, wins[teams[a]][teams[b]]]) for a in range(7) for b in range(a + 1, 7)
    ]
    nats = [rating.elo * math.log(10) / 400 for rating in bradley_terry(7, matches)]
    assert nats == pytest.approx([0, 0.684, 1.108, 1.248, 1.294, 1.436, 1.581], abs=1e-3)


def test_ratings_cover_the_truth_as_often_as_they_say() -> None:
    truth, rng = [0.0, 80.0, 150.0, 400.0], np.random.default_rng(5)
    covered = []
    for _ in range(100):
        matches = []
        for i in range(4):
            for j in range(i + 1, 4):
                probabilities = tilted(EVEN, expected_score(truth[i] - truth[j]))
                matches.append((i, j, rng.multinomial(40, probabilities).tolist()))
        ratings = bradley_terry(4, matches)
        covered += [rating.low <= value <= rating.high for rating, value in zip(ratings[1:], truth[1:], strict=True)]
    assert 0.92 <= np.mean(covered) <= 0.985


def test_players_who_never_met_are_compared_through_others() -> None:
    even, strong = [10, 0, 20, 0, 10], [2, 0, 10, 0, 28]
    first, second, third = bradley_terry(3, [(0, 1, even), (2, 1, strong)])
    assert first.elo == pytest.approx(second.elo, abs=1e-6)
    assert third.elo == pytest.approx(elo(round_score(strong)))
    assert third.high - third.low > second.high - second.low
