"""What az-match says of a result, as text and as values for JSON."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from azpy.cli.common import columns
from azpy.matches.ratings import Rating, Sprt
from azpy.matches.results import Fault, MatchResult

_MOST_FAULTS = 3  # kinds of fault a player that a result names; the JSON has more
_MOST_JSON_FAULTS = 20
_MOST_COLUMNS = 10  # players of a table of scores


def report(result: MatchResult | None, facts: Mapping[str, Any], sprt: Sprt | None, stopped: bool) -> list[str]:
    """The lines of a result; `facts` say what the openings were, and `stopped` that Ctrl-C ended the match."""
    if result is None:
        return ["stopped before the first pair of games was over"]
    openings, plies = facts["distinct_openings"], facts["opening_plies"]
    of = facts["book"] or f"{plies} random {'ply' if plies == 1 else 'plies'}"
    lines = ["stopped; the result so far:"] if stopped else []
    lines += [
        f"score of A: {result.score_text}, Elo {result.elo_text} (95 % intervals, from the pairs)",
        f"{result.games} games: won {result.wins}, drew {result.draws}, lost {result.losses}; "
        f"as seat 0 {_seat(result.first)}, as seat 1 {_seat(result.second)}",
        *_outcome(result),
        f"pairs in which A scored 0, 1/2, 1, 3/2, 2 points: {', '.join(map(str, result.pairs))}",
        f"{result.distinct} distinct games from {openings} distinct opening{'s' * (openings != 1)} of {of}",
    ]
    lines += repeated_pairs(result.repeated, result.games // 2, facts)
    lines += [fault_line(side, faults) for side, faults in zip("AB", result.faults, strict=True) if faults]
    if sprt is None:
        return lines
    zero, one = _stronger(sprt.elo0), _stronger(sprt.elo1)
    said = {
        "H1": f"accepts H1: A is {one} rather than {zero}",
        "H0": f"accepts H0: A is {zero} rather than {one}",
        None: f"is undecided whether A is {zero} or {one}: play more games",
    }[sprt.accepts(result.pairs)]
    figures = "log likelihood ratio {:.2f}, bounds {:.2f} and {:.2f}".format(sprt.llr(result.pairs), *sprt.bounds)
    return [*lines, f"SPRT {said} ({figures})"]


def _outcome(result: MatchResult) -> list[str]:
    if not result.has_grades:
        return []
    interval = result.outcome_interval
    text = "" if interval is None else " [{:+.3f}, {:+.3f}]".format(*interval)
    return [f"outcome of A: {result.outcome:+.3f}{text} a game; a win of this game is worth up to 1"]


def repeated_pairs(repeated: int, pairs: int, facts: Mapping[str, Any]) -> list[str]:
    """A line on pairs that repeat earlier ones, if any do."""
    if not repeated:
        return []
    text = f"{repeated} of {pairs} pairs repeat an earlier one, action for action: intervals are narrower than they "
    more = "--opening-plies with a larger number gives more openings"
    return [f"{text}should be; {more if facts['book'] is None else 'give fewer --games, or a book of more openings'}"]


def fault_line(who: str, faults: Sequence[Fault]) -> str:
    """What a program did wrong, the most frequent things first."""
    games = sum(fault.forfeit for fault in faults)
    lost = f"lost {games} game{'s' * (games != 1)} by rule" if games else "lost no game by rule"
    kinds = Counter(fault.text for fault in faults).most_common()
    texts = [f"{count} times: {text}" if count > 1 else text for text, count in kinds[:_MOST_FAULTS]]
    texts += [f"{len(kinds) - _MOST_FAULTS} more kinds"] * (len(kinds) > _MOST_FAULTS)
    transcript = next((fault.transcript for fault in faults if fault.transcript), None)
    return f"{who} {lost}: it {'; it '.join(texts)}" + (f" (transcript {transcript})" if transcript else "")


def _stronger(difference: float) -> str:
    if difference == 0:
        return "as strong as B"
    return f"{abs(difference):g} Elo {'stronger' if difference > 0 else 'weaker'} than B"


def facts_of(result: MatchResult, sprt: Sprt | None = None) -> dict[str, Any]:
    """A result for JSON; an infinite end of the Elo interval is null."""
    names = ("games", "wins", "draws", "losses", "score", "elo", "pairs")
    facts: dict[str, Any] = {name: getattr(result, name) for name in names}
    facts["low"], facts["high"] = result.interval
    facts["elo_low"], facts["elo_high"] = map(_finite, result.elo_interval)
    facts["outcome"] = result.outcome
    facts["outcome_low"], facts["outcome_high"] = result.outcome_interval or (None, None)
    facts |= {"as_seat_0": result.first, "as_seat_1": result.second}
    facts |= {"distinct_games": result.distinct, "repeated_pairs": result.repeated, "forfeits": result.forfeits}
    facts["faults"] = [[asdict(fault) for fault in faults[:_MOST_JSON_FAULTS]] for faults in result.faults]
    if sprt is not None:
        found = {"llr": sprt.llr(result.pairs), "bounds": sprt.bounds, "accepted": sprt.accepts(result.pairs)}
        facts["sprt"] = asdict(sprt) | found
    return facts


def rating_facts(rating: Rating) -> dict[str, Any]:
    """A rating for JSON; an infinite end of its interval is null."""
    return {name: _finite(value) for name, value in asdict(rating).items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def ratings_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of a table of ratings."""
    cells = [["player", "Elo", "95 % interval", "score", "games"]]
    for row in rows:
        interval = "the zero" if row is rows[0] else f"{_end(row['low'], '-inf')} to {_end(row['high'], '+inf')}"
        score = "" if row["score"] is None else f"{row['score']:.3f}"
        cells.append([row["player"], f"{row['elo']:+.0f}", interval, score, str(row["games"])])
    return columns(cells, "<>>>>")


def scores_table(names: Sequence[str], results: Sequence[tuple[int, int, MatchResult]]) -> list[str]:
    """The lines of a table of what each player scored against each; none for more players than fit into a line.

    `results` are (i, j, the result of player i against player j).
    """
    if len(names) > _MOST_COLUMNS:
        return []
    cells = [[f"{number} {name}", *[""] * len(names)] for number, name in enumerate(names, start=1)]
    for i, j, result in results:
        cells[i][j + 1], cells[j][i + 1] = f"{result.score:.3f}", f"{1 - result.score:.3f}"
    heads = ["score against", *(str(number) for number in range(1, len(names) + 1))]
    return columns([heads, *cells], "<" + ">" * len(names))


def _end(value: float | None, infinite: str) -> str:
    return infinite if value is None else f"{value:+.0f}"


def figures(result: MatchResult, games: int, sprt: Sprt | None) -> list[str]:
    """What a match of so many games says while it goes on."""
    found = [f"{result.games}/{games} games"]
    if sprt is not None:  # first: a narrow terminal has no room for all figures
        found.append("LLR {:.2f} ({:.2f} to {:.2f})".format(sprt.llr(result.pairs), *sprt.bounds))
    return [*found, str(result), f"Elo {result.elo_text}"]


def _seat(counts: Sequence[int]) -> str:
    return f"{(counts[0] + counts[1] / 2) / max(sum(counts), 1):.3f} (+{counts[0]} ={counts[1]} -{counts[2]})"
