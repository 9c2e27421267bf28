"""KataGo's names of fields, for queries about Go (its document Analysis_Engine.md). What azpy lacks is said."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from azpy import _core
from azpy.errors import RequestError
from azpy.serving.objects import list_of, number, object_of, one_of, text, whole
from azpy.serving.positions import COLUMNS, empty_board, go_board, point_of

__all__ = ["KNOWN", "board", "ignored", "move", "names", "player", "renamed", "seconds", "view"]

KNOWN = {
    *("maxVisits", "boardXSize", "boardYSize", "rules", "komi", "initialStones", "initialPlayer", "overrideSettings"),
    *("includeOwnership", "includeMovesOwnership", "includePVVisits", "_kt_continuous"),
}
_PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}
_VIEWS = ("BLACK", "WHITE", "SIDETOMOVE")
_AREA = ("chinese", "chinese-kgs", "chinese-ogs", "tromp-taylor", "aga", "new-zealand", "new zealand", "aga-button")
_POINTS = 4.0  # scoreLead where the odds are e : 1


def view(fields: Mapping[str, Any]) -> str:
    """From whose view winrates and leads are: Black's, unless overrideSettings say another."""
    settings = object_of(fields.get("overrideSettings", {}), "overrideSettings")
    given = settings.get("reportAnalysisWinratesAs", "BLACK")
    return one_of(given, "overrideSettings.reportAnalysisWinratesAs", _VIEWS)


def seconds(fields: Mapping[str, Any], most: float) -> float | None:
    """The time that overrideSettings give, `most` at most."""
    settings = object_of(fields.get("overrideSettings", {}), "overrideSettings")
    given = settings.get("maxTime")
    return None if given is None else min(most, number(given, "overrideSettings.maxTime", 0.001, 1e30))


def board(fields: Mapping[str, Any], start: _core.State) -> _core.State:
    """The board that size, komi, stones and player describe.

    Raises:
        RequestError: a field that is wrong, or a board that azpy does not have.
    """
    size = start.obs_shape[1]
    given = [whole(fields[name], name, range(2, 26)) for name in ("boardXSize", "boardYSize") if name in fields]
    if given:
        if given[0] != given[-1]:
            raise RequestError(f"boardXSize, boardYSize: expected a square board, got {given[0]} x {given[-1]}")
        size = given[0]
    komi = None if fields.get("komi") is None else number(fields["komi"], "komi", -1000, 1000)
    stones: list[list[str]] = [[], []]
    for index, stone in enumerate(list_of(fields.get("initialStones", []), "initialStones")):
        path = f"initialStones[{index}]"
        name, who = move(stone, path)
        if who is None or point_of(name, size) is None:
            raise RequestError(f'{path}: expected a stone such as ["B","D4"], got {stone!r:.60}')
        stones[who].append(name)
    first = player(fields)
    if first is None:
        first = 1 if len(stones[0]) > 1 and not stones[1] else 0  # stones of a handicap
    try:
        return go_board(empty_board(start, size=size, komi=komi), stones, first)
    except ValueError as error:
        raise RequestError(f"boardXSize, komi, initialStones: {error}") from None


def player(fields: Mapping[str, Any]) -> int | None:
    """Who is to move at first, if it is said."""
    if fields.get("initialPlayer") is None:
        return None
    return _PLAYERS[one_of(str(fields["initialPlayer"]).lower(), "initialPlayer", tuple(_PLAYERS))]


def move(value: object, path: str) -> tuple[str, int | None]:
    """A move and who plays it: `["B","D4"]`, or `"D4"` by who is to move."""
    if isinstance(value, str):
        return value, None
    pair = list_of(value, path)
    if len(pair) != 2:
        raise RequestError(f'{path}: expected a move such as ["B","D4"] or "D4", got {value!r:.60}')
    who = text(pair[0], f"{path}[0]").lower()
    return text(pair[1], f"{path}[1]"), _PLAYERS[one_of(who, f"{path}[0]", tuple(_PLAYERS))]


def names(value: Mapping[str, Any], path: str) -> list[tuple[str, int]]:
    """The moves of `{"player": "B", "moves": [...], "untilDepth": N}`, each with the player."""
    who = text(value.get("player"), f"{path}.player").lower()
    moves = list_of(value.get("moves"), f"{path}.moves")
    side = _PLAYERS[one_of(who, f"{path}.player", tuple(_PLAYERS))]
    return [(text(one, f"{path}.moves[{index}]"), side) for index, one in enumerate(moves)]


def ignored(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields that change nothing here, and why."""
    for name in ("includeOwnership", "includeMovesOwnership"):
        if fields.get(name):
            yield name, "azpy's networks tell no ownership"
    rules = fields.get("rules")
    if rules is not None and not _is_area(rules):
        yield "rules", "azpy counts areas, with positional superko: other rules are not played"


def _is_area(rules: object) -> bool:
    if isinstance(rules, dict):
        return str(rules.get("scoring", rules.get("scoringRule", ""))).upper() == "AREA"
    return isinstance(rules, str) and rules.lower() in _AREA


def renamed(answer: dict[str, Any], state: _core.State, view: str) -> dict[str, Any]:
    """The answer with KataGo's fields besides azpy's.

    azpy's networks know no score. `scoreLead` is the lead that has the winrate's odds, at e : 1 for 4 points.
    """
    side = {"BLACK": 1 - 2 * state.turn, "WHITE": 2 * state.turn - 1, "SIDETOMOVE": 1}[view]

    def shares(value: float, lcb: float | None) -> dict[str, float]:
        winrate = (1 + side * value) / 2
        odds = min(max(winrate, 0.001), 0.999)
        lead = round(_POINTS * math.log(odds / (1 - odds)), 3)
        # Lower is worse for the player to move, whoever looks.
        bounds = {} if lcb is None else {"lcb": round((1 + side * lcb) / 2, 6), "utilityLcb": round(side * lcb, 6)}
        return {
            "winrate": round(winrate, 6),
            "utility": round(side * value, 6),
            "scoreLead": lead,
            "scoreMean": lead,
            "scoreSelfplay": lead,
            "scoreStdev": 0.0,
        } | bounds

    for one in answer["moveInfos"]:
        one |= shares(one["value"], one.get("lcb"))
    root = answer["rootInfo"]
    root |= shares(root["value"], root["value"]) | {"currentPlayer": "BW"[state.turn]}
    if "policy" in answer:
        size = state.obs_shape[1]
        named = {name.upper(): prior for name, prior in answer["policy"].items()}
        points = [f"{COLUMNS[column]}{row}" for row in range(size, 0, -1) for column in range(size)]
        answer["policy"] = [named.get(point, -1.0) for point in [*points, "PASS"]]
    return answer
