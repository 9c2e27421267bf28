"""What az-match says of a result, as text and as values for JSON."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from azpy.cli.common import columns
from azpy.matches.ratings import Rating, Sprt
from azpy.matches.results import Fault, MatchResult, figure, told

_MOST_FAULTS = 3  # kinds of fault a player that a result names; the JSON has more
_MOST_JSON_FAULTS = 20
_MOST_COLUMNS = 10  # players of a table of scores


def report(
    result: MatchResult | None, facts: Mapping[str, Any], unit: str, sprt: Sprt | None, stopped: bool
) -> list[str]:
    """The lines of a result.

    Args:
        result: of the match; None if it has none.
        facts: what the openings were.
        unit: what a round of games is called: a pair of two players.
        sprt: the sequential test, if there is one.
        stopped: whether Ctrl-C ended the match.
    """
    if result is None:
        return [f"stopped before the first {unit} of games was over"]
    openings, plies = facts["distinct_openings"], facts["opening_plies"]
    of = facts["book"] or f"{plies} random {'ply' if plies == 1 else 'plies'}"
    lines = ["stopped; the result so far:"] if stopped else []
    worth, of_what = facts.get("payoff_unit", (1.0, ""))
    lines += _alone(result) if result.is_alone else _score(result, worth, of_what)
    begun, of = ("deal", "") if facts.get("hides") and not plies else ("opening", f" of {of}")
    lines += [f"{result.distinct} distinct games from {openings} distinct {begun}{'s' * (openings != 1)}{of}"]
    lines += repeated_rounds(result.repeated, len(result.rounds), facts, unit)
    lines += [fault_line(side, faults) for side, faults in zip("AB", result.faults, strict=True) if faults]
    if sprt is None:
        return lines
    zero, one = _stronger(sprt.elo0), _stronger(sprt.elo1)
    said = {
        "H1": f"accepts H1: A is {one} rather than {zero}",
        "H0": f"accepts H0: A is {zero} rather than {one}",
        None: f"is undecided whether A is {zero} or {one}: play more games",
    }[sprt.accepts(result.counts)]
    figures = "log likelihood ratio {:.2f}, bounds {:.2f} and {:.2f}".format(sprt.llr(result.counts), *sprt.bounds)
    return [*lines, f"SPRT {said} ({figures})"]


def options_text(search: Mapping[str, Any]) -> str:
    """The options of a player's search in a line."""
    words = {True: "on", False: "off"}
    shown = {name: words[value] if isinstance(value, bool) else value for name, value in search.items()}
    return ", ".join(f"{name} {f'{one:.12g}' if isinstance(one, float) else one}" for name, one in shown.items())


def _score(result: MatchResult, worth: float, unit: str) -> list[str]:
    """Return what A scored against B or its copies. `worth` is what an outcome of 1 is worth, in `unit`."""
    copies, score = result.copies, f"score of A: {told(result.score, result.interval, '.3f')}, Elo {_elo(result)}"
    seats = ", ".join(
        f"as seat {seat} {share:.3f} (+{wins} ={draws} -{losses})"
        for seat, ((wins, draws, losses), share) in enumerate(zip(result.seats, result.seat_scores, strict=True))
    )
    drew = "drew" if copies == 1 else "shared the win of"
    games = f"{result.games} games: won {result.wins}, {drew} {result.draws}, lost {result.losses}; {seats}"
    if copies > 1:
        line = f"{score} (A's {result.share('B')}; 95 % intervals, from the rounds)"
        return [line, games, *_outcome(result, worth, unit)]
    points = zip(("0", "1/2", "1", "3/2", "2"), result.counts, strict=True)
    return [
        f"{score} (95 % intervals, from the pairs)",
        games,
        *_outcome(result, worth, unit),
        f"points of A in {len(result.rounds)} pairs: {', '.join(f'{each} in {count}' for each, count in points)}",
    ]


def _outcome(result: MatchResult, worth: float, unit: str) -> list[str]:
    if not result.has_grades:
        return []
    each = [result.outcome_of(player) for player in (0, 1)]
    a, b = (told(worth * mean, interval and (worth * interval[0], worth * interval[1])) for mean, interval in each)
    more = "" if unit else f"; a win of this game is worth up to {worth:g}"
    return [f"outcome of A: {a}{f' {unit}' if unit else ''} a game{more if result.zero_sum else f', of B: {b}'}"]


def _elo(result: MatchResult) -> str:
    return told(result.elo, result.elo_interval, "+.0f")


def _alone(result: MatchResult) -> list[str]:
    """What A and B got, each alone."""
    a, b = (told(*result.outcome_of(player)) for player in (0, 1))
    better, equal, worse = result.seats[0]
    return [
        f"mean score of A: {a}, of B: {b} (95 % intervals)",
        f"A minus B: {told(*result.difference)} (95 % interval, from games with the same openings and dice)",
        f"{result.games} games each: A did better in {better}, as well in {equal}, worse in {worse}",
    ]


def repeated_rounds(repeated: int, rounds: int, facts: Mapping[str, Any], unit: str) -> list[str]:
    """A line on rounds that repeat earlier ones, if any do."""
    if not repeated or facts.get("hides"):  # there players draw each move, so equal games are samples like others
        return []
    more = "a larger --opening-plies" if facts["book"] is None else "fewer --games or a larger book"
    return [f"{repeated} of {rounds} {unit}s repeat an earlier one, so the intervals are too narrow: give {more}"]


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
    """A result for JSON; an infinite end of the Elo interval is null, and so is an unknown interval of outcomes."""
    names = ("games", "wins", "draws", "losses")
    facts: dict[str, Any] = {name: getattr(result, name) for name in names}
    if not result.is_alone:
        facts |= {"score": result.score, "elo": result.elo}
        facts |= {"pairs": result.counts} if result.copies == 1 else {}
        facts["low"], facts["high"] = result.interval
        facts["elo_low"], facts["elo_high"] = map(_finite, result.elo_interval)
    facts |= figure("outcome", *result.outcome_of(0))
    if not result.zero_sum:
        facts |= figure("other_outcome", *result.outcome_of(1)) | {"rounds": len(result.rounds)}
        facts["players"] = 1 if result.is_alone else result.copies + 1
    if result.is_alone:
        facts |= figure("difference", *result.difference)
    else:
        facts |= {f"as_seat_{seat}": counts for seat, counts in enumerate(result.seats)}
    repeated = "repeated_pairs" if result.copies == 1 and not result.is_alone else "repeated_rounds"
    facts |= {"distinct_games": result.distinct, repeated: result.repeated, "forfeits": result.forfeits}
    facts["faults"] = [[asdict(fault) for fault in faults[:_MOST_JSON_FAULTS]] for faults in result.faults]
    if sprt is not None:
        found = {"llr": sprt.llr(result.counts), "bounds": sprt.bounds, "accepted": sprt.accepts(result.counts)}
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


def means_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of a table of mean scores; `rows` have each player's `score` and its interval."""
    cells = [["player", "mean score", "95 % interval"]]
    for row in rows:
        interval = "unknown" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"
        cells.append([row["player"], f"{row['score']:+.3f}", interval])
    return columns(cells, "<>>")


def scores_table(names: Sequence[str], results: Sequence[tuple[int, int, MatchResult]]) -> list[str]:
    """The lines of a table of what each player scored against each; none for more players than fit into a line.

    `results` are (i, j, the result of player i against player j).
    """
    if len(names) > _MOST_COLUMNS:
        return []
    cells = [[f"{number} {name}", *[""] * len(names)] for number, name in enumerate(names, start=1)]
    for i, j, result in results:
        cells[i][j + 1] = f"{result.score:.3f}"
        if result.copies == 1:
            cells[j][i + 1] = f"{1 - result.score:.3f}"
    heads = ["score against", *(str(number) for number in range(1, len(names) + 1))]
    return columns([heads, *cells], "<" + ">" * len(names))


def _end(value: float | None, infinite: str) -> str:
    return infinite if value is None else f"{value:+.0f}"


def figures(result: MatchResult, games: int, sprt: Sprt | None) -> list[str]:
    """What a match of so many games says while it goes on."""
    found = [f"{result.games}/{games} games"]
    if sprt is not None:  # first: a narrow terminal has no room for all figures
        found.append("LLR {:.2f} ({:.2f} to {:.2f})".format(sprt.llr(result.counts), *sprt.bounds))
    return [*found, str(result), *([] if result.is_alone else [f"Elo {_elo(result)}"])]
