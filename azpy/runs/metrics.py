"""Reading metrics.jsonl, which users may edit: each row is only checked for form. docs/training.md has its figures."""

import json
import math
from pathlib import Path
from typing import Any

from azpy.errors import RunError
from azpy.runs import storage

__all__ = ["STOPPED", "read_metrics"]

STOPPED = ("stopped", "stopped_collecting")
_FIGURES = {  # what rows of metrics.jsonl must have to be read back, by kind
    "iteration": ("games", "positions", "seconds"),
    "match": ("score", "low", "high", "seconds"),
    "supervised": ("policy_loss", "value_loss", "seconds"),
    **dict.fromkeys(("settings", "imported", "collected", *STOPPED), ("seconds",)),
    "worker": (
        *("since", "seconds", "silent", "games", "evaluations_per_second"),
        *("shape_games", "plies", "plies_squared", "score", "score_squared", "draws"),
    ),
}


def read_metrics(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The rows of all whole lines, and whether the last line is torn.

    Raises:
        RunError: a line that is no object with a `kind`, a whole `iteration` and the figures of its kind.
    """
    if not path.exists():
        return [], False
    with storage.disk_errors(path.parent):
        *lines, torn = storage.read_regular(path).split(b"\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
            why: object = _wrong_in(rows[-1])
        except (ValueError, RecursionError) as error:
            why = error
        if why:
            raise RunError(f"{path} is damaged in line {number}: {why}; put that line right, or delete it")
    return rows, bool(torn)


def _wrong_in(row: Any) -> str:
    """Why a row of metrics.jsonl cannot be used; empty if it can."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        return "it is no row with a kind"
    if not isinstance(row.get("iteration"), int):
        return "it has no iteration"
    for kind, name in (("match", "opponent"), ("worker", "worker")):
        if row["kind"] == kind and not isinstance(row.get(name), str):
            return f"it has no {name}"
    for name in (*_FIGURES.get(row["kind"], ()), "evaluations"):
        value = row.get(name, 0.0 if name == "evaluations" else None)  # older versions did not count them
        if not isinstance(value, int | float) or not math.isfinite(value):
            return f"{name} is {value!r}"
    return ""
