"""The games of a run, for the page: a list, and each game with what was thought at the time."""

from collections.abc import Mapping
from typing import Any

from azpy.runs.exports import game_as_dict
from azpy.runs.reader import StoredRun

__all__ = ["game", "games"]

_A_PAGE = 200  # games


def games(run: StoredRun, iteration: int | None = None) -> Mapping[str, Any]:
    """The games of an iteration, the newest one if none is named.

    Returns:
        `iterations` (those whose games are sealed), `iteration`, and `games`: each with `game_id`, `length` in plies,
        `outcome` for player 0, and `resigned`. Of a large iteration the first games are listed.

    Raises:
        RunError: there is no such iteration.
    """
    there = run.sealed_iterations()
    if not there:
        return {"iterations": [], "iteration": None, "games": []}
    chosen = there[-1] if iteration is None else iteration
    found = []
    for _, record in run.games([chosen]):
        known = {"game_id": record.game_id, "length": len(record)}
        found.append(known | {"outcome": record.outcome, "resigned": record.resigned})
        if len(found) == _A_PAGE:
            break
    return {"iterations": there, "iteration": chosen, "games": found}


def game(run: StoredRun, number: int) -> Mapping[str, Any]:
    """A game as `az-replay --json` tells it: its plies with names, values and searches.

    Raises:
        RunError: there is no such game.
    """
    iteration, record = run.find_game(number)
    return {"iteration": iteration, **game_as_dict(run.start, record)}
