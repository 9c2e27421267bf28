"""What each worker did in an iteration: rows of metrics.jsonl of kind `worker`."""

from collections.abc import Mapping, Sequence
from typing import Any

from azpy.fleet.fleet import WorkerState
from azpy.playing.selfplay import rates

__all__ = ["worker_rows"]

_SUMS = ("plies", "plies_squared", "score", "score_squared", "draws")  # of `WorkerState.shape`


def worker_rows(
    before: Mapping[str, WorkerState], after: Sequence[WorkerState], seconds: float
) -> list[dict[str, Any]]:
    """One row for each worker that is alive, or did something between two looks at the fleet.

    Args:
        before: the states at the first look, by name.
        after: the states at the second look.
        seconds: of play in between.

    Returns:
        Rows with `worker` (its name), `alive`, `held`, `behind`, `silent` (see `WorkerState`), and what happened in
        between: `games` that counted, `evaluations`, `evaluations_per_second`, `batch_fill` (None without an
        evaluation), and sums over `shape_games`, the games that were leased to this worker first (`Member.shape`).
    """
    rows = []
    for now in after:
        then = before.get(now.name)
        games, stats, shape = (then.games, then.stats, then.shape) if then is not None else (0, {}, {})
        speed = rates(stats, now.stats, seconds)
        row = {"worker": now.name, "alive": now.alive, "held": now.held, "behind": now.behind, "silent": now.silent}
        row |= {name: speed[name] for name in ("evaluations", "evaluations_per_second")}
        row |= {"games": now.games - games, "batch_fill": speed["batch_fill"] if speed["evaluations"] else None}
        row |= {"shape_games": now.shape["games"] - shape.get("games", 0.0)}
        row |= {name: now.shape[name] - shape.get(name, 0.0) for name in _SUMS}
        if now.alive or row["games"] or row["evaluations"] or row["shape_games"]:
            rows.append(row)
    return rows
