"""Signs in a run's metrics that something is wrong, in words. Pure arithmetic on rows of metrics.jsonl."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["alarms"]

_RECENT = 3  # iterations that a sign must last
_YOUNG = 10  # iterations after which a player should beat a random one


def alarms(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the last iterations and matches of a run warn of.

    Args:
        rows: of metrics.jsonl.

    Returns:
        One sentence an alarm, with the figure and what it may mean; empty when nothing looks wrong.
    """
    recent = [row for row in rows if row["kind"] == "iteration"][-_RECENT:]
    found = []
    if len(recent) == _RECENT:

        def every(name: str, low: float, high: float) -> bool:
            return all(low <= row.get(name, float("nan")) <= high for row in recent)

        last = recent[-1]
        if every("value_spread", 0.0, 0.05) and every("draws", 0.0, 0.9):  # where all is drawn, 0 is right
            found.append(
                f"Value collapse: the values of searched positions differ by {last['value_spread']:.3f} only (standard "
                "deviation) although games are won and lost. Look at the learning rate, and whose view the outcome "
                "and the observation are of."
            )
        if every("draws", 0.98, 1.0):
            found.append(
                f"All draws: {last['draws']:.0%} of the games. Right for a game that is a draw and a player that is "
                "strong; otherwise look at the outcome, or add opening plies."
            )
        if every("search_gain", 0.0, 0.003):
            found.append(
                f"The policy no longer moves: search changes it by {last['search_gain']:.4f} nats only. More "
                "simulations, more root noise or more varied openings would give it something to learn."
            )
        if every("duplicates", 0.2, 1.0):
            found.append(
                f"Duplicate games: {last['duplicates']:.0%} of the games repeat an earlier one of their iteration. Add "
                "opening plies, temperature plies or root noise."
            )
        for seat, low, high in ((0, 0.97, 1.0), (1, 0.0, 0.03)):
            if every("first_seat_score", low, high):
                found.append(
                    f"Seat {seat} always wins (seat 0 scores {last['first_seat_score']:.2f}): right for a solved game; "
                    "otherwise the outcome or the observation may be seen by the wrong player. Add opening plies."
                )
    return found + _strength(rows)


def _strength(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    matches = [row for row in rows if row["kind"] == "match"]
    for opponent in dict.fromkeys(row["opponent"] for row in matches):
        met = [row for row in matches if row["opponent"] == opponent]
        last, best = met[-1], max(met, key=lambda row: float(row["low"]))
        if opponent == "random" and last["iteration"] >= _YOUNG and last["high"] < 0.75:
            found.append(
                f"It hardly beats a random player: {last['score']:.2f} after iteration {last['iteration']}. Check the "
                "game: whose view its observation and outcome are of, and that its key tells positions apart."
            )
        if last["high"] < best["low"]:
            found.append(
                f"Weaker than it was: {last['score']:.2f} against {opponent} after iteration {last['iteration']}, "
                f"{best['score']:.2f} after iteration {best['iteration']}. A smaller learning rate or a longer window "
                "may help; the older checkpoint may still be there."
            )
    return found
