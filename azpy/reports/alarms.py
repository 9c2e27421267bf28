"""Signs in a run's metrics that something is wrong, in words. Pure arithmetic on rows of metrics.jsonl."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

_RECENT = 3  # iterations that a sign must last
_YOUNG = 10  # iterations after which a player should beat a random one
_SEAT = (
    "Seat 0 always {} (it scores {{first_seat_score:.2f}}): right for a solved game; otherwise the outcome or "
    "the observation may be seen by the wrong player. Add opening plies."
)
# The range of each metric in which there is a sign, and the sentence.
_SIGNS: tuple[tuple[dict[str, tuple[float, float]], str], ...] = (
    (
        {"value_spread": (0.0, 0.05), "draws": (0.0, 0.9)},  # where all is drawn, 0 is right
        "Value collapse: the values of searched positions differ by {value_spread:.3f} only (standard deviation) "
        "although games are won and lost. Look at the learning rate, and whose view the outcome and the observation "
        "are of.",
    ),
    (
        {"predicted_draws": (0.95, 1.0), "draws": (0.0, 0.97)},
        "The value says draw: {predicted_draws:.0%} on average, although {draws:.0%} of the games are drawn. Wins and "
        "losses count for too little: try --decisive-weight 3 --value-smoothing 0.15.",
    ),
    (
        {"explained_variance": (-math.inf, -0.05), "draws": (0.0, 0.9)},  # few wins vary too little to be explained
        "The value misleads: a constant would predict new outcomes better (explained variance "
        "{explained_variance:.2f}). The network may have learned a few games by heart. Take fewer passes, more games "
        "an iteration or a longer window.",
    ),
    (
        {"draws": (0.98, 1.0)},
        "All draws: {draws:.0%} of the games. Right for a game that is a draw and a player that is strong; otherwise "
        "look at the outcome, or add opening plies.",
    ),
    (
        {"search_gain": (0.0, 0.003)},
        "The policy no longer moves: search changes it by {search_gain:.4f} nats only. More simulations, more root "
        "noise or more varied openings would give it something to learn.",
    ),
    (
        {"duplicates": (0.2, 1.0)},
        "Duplicate games: {duplicates:.0%} of the games repeat an earlier one of their iteration. Add opening plies, "
        "temperature plies or root noise.",
    ),
    ({"first_seat_score": (0.97, 1.0)}, _SEAT.format("wins")),
    ({"first_seat_score": (0.0, 0.03)}, _SEAT.format("loses")),
)


def alarms(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the last iterations and matches of a run warn of, by its rows of metrics.jsonl: a sentence an alarm."""
    recent = [row for row in rows if row["kind"] == "iteration"][-_RECENT:]
    found = []
    for ranges, text in _SIGNS if len(recent) == _RECENT else ():
        # One player draws no game, and its rows do not say so.
        told = [{"draws": 0.0} | dict(row) for row in recent]
        tests = [(row.get(name, math.nan), *ends) for row in told for name, ends in ranges.items()]
        if all(low <= value <= high for value, low, high in tests):
            found.append(text.format(**recent[-1]))
    matches = [row for row in rows if row["kind"] == "match"]
    for opponent in dict.fromkeys(row["opponent"] for row in matches):
        met = [row for row in matches if row["opponent"] == opponent]
        last, best = met[-1], max(met, key=lambda row: float(row["low"]))
        if opponent == "random" and last["iteration"] >= _YOUNG and _hardly_beats(last):
            found.append(
                f"It hardly beats a random player: {last['score']:.2f} after iteration {last['iteration']}. Check the "
                "game: whose view its observation and outcome are of, and that its key tells positions apart."
            )
        if last.get("players") == 1 and opponent != matches[0]["opponent"]:
            continue  # its score is the same, whoever else plays these games
        if last["high"] < best["low"]:
            found.append(
                f"Weaker than it was: {last['score']:.2f} against {opponent} after iteration {last['iteration']}, "
                f"{best['score']:.2f} after iteration {best['iteration']}. A smaller learning rate or a longer window "
                "may help; the older checkpoint may still be there."
            )
    return found


def _hardly_beats(row: Mapping[str, Any]) -> bool:
    """Whether a match shows that the run's player is not 191 Elo stronger; with one player, that it is no better."""
    players = row.get("players", 2)
    if players == 1:
        return float(row["difference_high"]) <= 0
    if "players" in row and not row["wins"] + row["losses"]:
        return False  # all always get the same: nobody beats anybody
    return bool(row["high"] < 3 / (2 + players))
