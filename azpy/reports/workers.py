"""What rows of kind `worker` say of the workers of a run. Pure arithmetic on rows of metrics.jsonl."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = Sequence[Mapping[str, Any]]
_Worker = tuple[int, str]  # `since` and name: names begin anew with each head

_MOST_Z = 5.0
_LEAST_GAMES = 500  # of a worker
_MOST_NAMED = 8  # workers
_COLUMNS = ("shape_games", "plies", "plies_squared", "score", "score_squared", "draws")
_FIGURES = ("plies a game", "the first player's score", "the share of draws")
_SUMS, _SQUARES = [1, 3, 5], [2, 4, 5]  # their columns; a draw is 1, and so is its square


def newest_rows(rows: Rows) -> list[Mapping[str, Any]]:
    """The newest row of each worker of the newest head, in the order in which they came."""
    of_workers = [row for row in rows if row["kind"] == "worker"]
    newest = max((row["since"] for row in of_workers), default=0)
    return list({row["worker"]: row for row in of_workers if row["since"] == newest}.values())


def differing_workers(rows: Rows) -> list[str]:
    """A sentence for each worker whose games differ from the games of all other workers.

    The worker with the largest |z| (see `_compared`) is named and left out, and the others are compared again, because
    its games would make the others look different too. A worker with few games is left out unnamed.

    Args:
        rows: of metrics.jsonl.
    """
    names, table = _table(rows)
    found = list[str]()
    while names and len(found) < _MOST_NAMED:
        z, own, others, games = _compared(table)
        # Of two workers both have the same |z|.
        _, count, worker, at, index = max(
            (round(abs(float(z[index, at])), 6), games[index], names[index], at, index)
            for index, at in np.ndindex(z.shape)
        )
        if abs(z[index, at]) <= _MOST_Z:
            break
        if count >= _LEAST_GAMES:
            doubt = " Only two workers can be compared: the other one may be wrong." if len(names) == 2 else ""
            behind = max(row.get("behind") or 0 for row in rows if row["kind"] == "worker" and _name(row) == worker)
            stale = f" It is up to {behind} networks behind, which may be why." if behind else ""
            found.append(
                f"The games of {worker[1]} differ: {_FIGURES[at]} {own[index, at]:.3f}, against "
                f"{others[index, at]:.3f} of the other workers (z {z[index, at]:+.1f}, {count:,.0f} games).{doubt}"
                f"{stale} Look at its machine, and at its versions of azpy, ONNX Runtime and the game."
            )
        names.pop(index)
        table = np.delete(table, index, axis=1)
    return found


def _name(row: Mapping[str, Any]) -> _Worker:
    return row["since"], row["worker"]


def _table(rows: Rows) -> tuple[list[_Worker], NDArray[np.float64]]:
    """The workers W, and their `_COLUMNS` in each iteration S, [S, W, 6]; 0 where a worker had no game.

    A worker's first games are the short ones, while its long ones are still in play. So its first iteration does not
    count.
    """
    known, played = set[_Worker](), defaultdict[int, dict[_Worker, list[float]]](dict)
    for row in rows:
        if row["kind"] == "worker" and row["shape_games"] > 0:
            if _name(row) in known:
                played[row["iteration"]][_name(row)] = [row[column] for column in _COLUMNS]
            known.add(_name(row))
    names = sorted({name for workers in played.values() for name in workers})
    nothing = [0.0] * len(_COLUMNS)
    table = [[workers.get(name, nothing) for name in names] for workers in played.values()]
    return names, np.array(table, np.float64).reshape(len(played), len(names), len(_COLUMNS))


def _compared(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Compares the games of each worker with those of the others in the same iterations.

    Iterations are compared one by one, because networks change. In each, a worker's games are taken for a draw without
    replacement from the games of all workers: its sum then has a known mean and variance. The sums of all iterations
    give one z for each figure.

    Returns:
        For each worker and figure [W, 3]: z, the worker's mean, and the mean of the others, with the iterations
        weighted as they are in the worker's games. And the worker's games [W].
    """
    games, sums, squares = table[:, :, :1], table[:, :, _SUMS], table[:, :, _SQUARES]
    all_games, all_sums, all_squares = (part.sum(1, keepdims=True) for part in (games, sums, squares))
    others, all_games = all_games - games, np.maximum(all_games, 1)
    games, sums = games * (others > 0), sums * ((games > 0) & (others > 0))
    mean = all_sums / all_games
    spread = np.maximum(all_squares - all_sums * mean, 0) / np.maximum(all_games - 1, 1)
    variance = (games * others / all_games * spread).sum(0)
    of_others = (games * (all_sums - sums) / np.maximum(others, 1)).sum(0)
    count = np.maximum(games.sum(0), 1)
    alike = variance <= 1e-9 * count  # all games
    z = np.where(alike, 0, (sums - games * mean).sum(0) / np.sqrt(np.where(alike, 1, variance)))
    return z, sums.sum(0) / count, of_others / count, games.sum(0)[:, 0]
