"""What rows of kind `worker` say of the workers of a run. Pure arithmetic on rows of metrics.jsonl."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["differing_workers", "newest_rows"]

Rows = Sequence[Mapping[str, Any]]
_Worker = tuple[int, str]  # `since` and name: names begin anew with each head

_MOST_Z = 5.0
_LEAST_GAMES = 500  # of a worker
# What is compared: the sums of its values and of their squares, and words.
_FIGURES = (
    ("plies", "plies_squared", "plies a game"),
    ("score", "score_squared", "the first player's score"),
    ("draws", "draws", "the share of draws"),
)


def newest_rows(rows: Rows) -> list[Mapping[str, Any]]:
    """The newest row of each worker of the newest head, in the order in which they came."""
    of_workers = [row for row in rows if row["kind"] == "worker"]
    newest = max((row["since"] for row in of_workers), default=0)
    return list({row["worker"]: row for row in of_workers if row["since"] == newest}.values())


def differing_workers(rows: Rows) -> list[str]:
    """A sentence for each worker whose games differ from the games of all other workers.

    Iterations are compared one by one, because networks change. In each, a worker's games are taken for a draw without
    replacement from the games of all workers: its sum then has a known mean and variance. The sums of all iterations
    give one z for each figure. The worker with the largest |z| is named and left out, and the others are compared
    again, because its games would make the others look different too.

    A worker's first games are the short ones, while its long ones are still in play. So its first iteration does not
    count.

    Args:
        rows: of metrics.jsonl.
    """
    strata = _strata(rows)
    found = list[str]()
    while True:
        workers = {worker for stratum in strata for worker in stratum}
        tests = [(*_test(strata, worker, *figure[:2]), worker, figure[2]) for worker in workers for figure in _FIGURES]
        tests = [test for test in tests if test[3] >= _LEAST_GAMES]
        z, own, others, games, worker, words = max(
            tests, key=lambda test: (abs(test[0]), test[4], test[5]), default=(0.0, 0.0, 0.0, 0, (0, ""), "")
        )
        if abs(z) <= _MOST_Z:
            return found
        alone = len(workers) == 2
        doubt = " Only two workers can be compared: the other one may be wrong." if alone else ""
        behind = [row.get("behind") or 0 for row in rows if row["kind"] == "worker" and _name(row) == worker]
        stale = f" It is up to {max(behind)} networks behind, which may be why." if max(behind) else ""
        found.append(
            f"The games of {worker[1]} differ: {words} {own:.3f}, against {others:.3f} of the other workers (z "
            f"{z:+.1f}, {games:,} games).{doubt}{stale} Look at its machine, and at its versions of azpy, ONNX Runtime "
            "and the game."
        )
        strata = [{name: row for name, row in stratum.items() if name != worker} for stratum in strata]


def _name(row: Mapping[str, Any]) -> _Worker:
    return row["since"], row["worker"]


def _strata(rows: Rows) -> list[dict[_Worker, Mapping[str, Any]]]:
    """By iteration: the rows of its workers with games, without each worker's first one."""
    known = set[_Worker]()
    strata = defaultdict[int, dict[_Worker, Mapping[str, Any]]](dict)
    for row in rows:
        if row["kind"] == "worker" and row["shape_games"] > 0:
            if _name(row) in known:
                strata[row["iteration"]][_name(row)] = row
            known.add(_name(row))
    return list(strata.values())


def _test(
    strata: Sequence[Mapping[_Worker, Mapping[str, Any]]], worker: _Worker, sums: str, squares: str
) -> tuple[float, float, float, int]:
    """Z of a worker's sum, its mean, the mean of the others weighted as its games are, and how many games it has."""
    total = expected = variance = of_others = games = 0.0
    for stratum in strata:
        if worker not in stratum or len(stratum) < 2:
            continue
        mine, all_games = stratum[worker]["shape_games"], sum(row["shape_games"] for row in stratum.values())
        all_sum, all_squares = (sum(row[name] for row in stratum.values()) for name in (sums, squares))
        mean, others = all_sum / all_games, all_games - mine
        spread = max(0.0, all_squares - all_sum * mean) / (all_games - 1)
        games += mine
        total += stratum[worker][sums]
        expected += mine * mean
        of_others += mine * (all_sum - stratum[worker][sums]) / others
        variance += mine * others / all_games * spread
    if variance <= 1e-9 * max(1.0, games):
        return 0.0, 0.0, 0.0, round(games)
    return (total - expected) / math.sqrt(variance), total / games, of_others / games, round(games)
