"""What rows of kind `worker` say of the workers of a run. Pure arithmetic on rows of metrics.jsonl."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["differing_workers", "newest_rows"]

Rows = Sequence[Mapping[str, Any]]
_Worker = tuple[int, str]  # `since` and name: names begin anew with each head
_Stratum = Mapping[_Worker, Mapping[str, Any]]  # the rows of an iteration

_MOST_Z = 5.0
_LEAST_GAMES = 500  # of a worker
_MOST_NAMED = 8  # workers
# What is compared, and the sums of its values and of their squares; a draw is 1, and so is its square.
_FIGURES = {
    "plies a game": ("plies", "plies_squared"),
    "the first player's score": ("score", "score_squared"),
    "the share of draws": ("draws", "draws"),
}


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
    again, because its games would make the others look different too. A worker with few games is left out unnamed.

    A worker's first games are the short ones, while its long ones are still in play. So its first iteration does not
    count.

    Args:
        rows: of metrics.jsonl.
    """
    strata: Sequence[_Stratum] = _strata(rows)
    found = list[str]()
    while len(found) < _MOST_NAMED:
        workers, totals = {worker for stratum in strata for worker in stratum}, _totals(strata)
        compared = [
            (_compare(strata, totals, worker, figure), worker, figure) for worker in workers for figure in _FIGURES
        ]
        # Of two workers both have the same |z|.
        worst = max(compared, key=lambda each: (round(abs(each[0].z), 6), each[0].games, *each[1:]), default=None)
        if worst is None or abs(worst[0].z) <= _MOST_Z:
            break
        test, worker, figure = worst
        if test.games >= _LEAST_GAMES:
            doubt = " Only two workers can be compared: the other one may be wrong." if len(workers) == 2 else ""
            behind = max(row.get("behind") or 0 for row in rows if row["kind"] == "worker" and _name(row) == worker)
            stale = f" It is up to {behind} networks behind, which may be why." if behind else ""
            found.append(
                f"The games of {worker[1]} differ: {figure} {test.own:.3f}, against {test.others:.3f} of the other "
                f"workers (z {test.z:+.1f}, {test.games:,} games).{doubt}{stale} Look at its machine, and at its "
                "versions of azpy, ONNX Runtime and the game."
            )
        strata = [{name: row for name, row in stratum.items() if name != worker} for stratum in strata]
    return found


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


def _totals(strata: Sequence[_Stratum]) -> list[dict[str, float]]:
    """By stratum: each sum over all its workers."""
    names = {"shape_games", *(name for pair in _FIGURES.values() for name in pair)}
    return [{name: sum(row[name] for row in stratum.values()) for name in names} for stratum in strata]


class _Comparison(NamedTuple):
    z: float  # of the worker's sum
    own: float  # mean
    others: float  # their mean, with the iterations weighted as they are in the worker's games
    games: int  # of the worker


def _compare(
    strata: Sequence[_Stratum], totals: Sequence[Mapping[str, float]], worker: _Worker, figure: str
) -> _Comparison:
    """Compares a worker's games with those of the others in the same iterations."""
    sums, squares = _FIGURES[figure]
    total = expected = variance = of_others = games = 0.0
    for stratum, of_all in zip(strata, totals, strict=True):
        if worker not in stratum or len(stratum) < 2:
            continue
        mine, all_games = stratum[worker]["shape_games"], of_all["shape_games"]
        all_sum, all_squares = of_all[sums], of_all[squares]
        mean, others = all_sum / all_games, all_games - mine
        spread = max(0.0, all_squares - all_sum * mean) / max(all_games - 1, 1)
        games += mine
        total += stratum[worker][sums]
        expected += mine * mean
        of_others += mine * (all_sum - stratum[worker][sums]) / others
        variance += mine * others / all_games * spread
    if variance <= 1e-9 * max(1.0, games):  # all games are alike
        return _Comparison(0.0, 0.0, 0.0, round(games))
    return _Comparison((total - expected) / math.sqrt(variance), total / games, of_others / games, round(games))
