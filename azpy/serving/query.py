"""What an analysis query asks for: its fields, read one by one. What is wrong is said with the field's name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azpy import _core
from azpy.errors import RequestError
from azpy.serving import katago
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model
from azpy.serving.objects import flag, list_of, number, one_of, text, whole
from azpy.serving.positions import Line, is_go

__all__ = ["LONGEST_NAME", "Query", "actions_of", "ignored", "read_position", "read_query", "start_of"]

LONGEST_NAME = 200  # characters of an id or a game's name
_LEAST_REPORT = 0.05  # seconds between reports
_PRIORITIES = ("play", "analysis", "ponder")
_KNOWN = {
    *("id", "model", "game", "position", "moves", "analyzeTurns", "simulations", "seconds", "priority"),
    *("reportDuringSearchEvery", "allowMoves", "avoidMoves", "analysisPVLen", "includePolicy", "includeLcb"),
}


@dataclass
class Query:
    """A query that was read."""

    identity: str
    model: Model
    turns: dict[int, tuple[_core.State, list[int], _core.State]]  # a number of moves: start, actions, position
    simulations: int | None
    seconds: float | None
    priority: str
    report_every: float | None
    allowed: list[tuple[str, int | None]]  # names of actions, and the player for whom they count; None: both
    avoided: list[tuple[str, int | None]]
    pv_length: int | None
    policy: bool
    bounds: bool  # whether moves have lower confidence bounds
    game: str | None
    view: str | None = None  # of KataGo's numbers; None: another game than Go
    warnings: list[str] = field(default_factory=list)  # about fields that change nothing


def ignored(fields: Mapping[str, Any], model: Model) -> Iterator[tuple[str, str]]:
    """The fields of a query that change nothing, and why."""
    known = _KNOWN | katago.KNOWN if is_go(model.served.start) else _KNOWN
    for name in fields:
        if name not in known:
            yield name, "no field of a query: it changes nothing"
    if is_go(model.served.start):
        yield from katago.ignored(fields)


def read_query(fields: Mapping[str, Any], model: Model, limits: Limits) -> Query:
    """The query that an object describes.

    Args:
        fields: the object; its `id` is a text.
        model: who searches.
        limits: of the client.

    Raises:
        RequestError: a field that is wrong or beyond a limit; names it.
        ValueError: a position that cannot be read.
    """
    go = is_go(model.served.start)
    start, moves = start_of(fields, model), _moves(fields.get("moves", []), go, limits.moves)
    turns = [len(moves)]
    if "analyzeTurns" in fields:
        given = list_of(fields["analyzeTurns"], "analyzeTurns")
        turns = list(dict.fromkeys(whole(turn, "analyzeTurns", range(len(moves) + 1)) for turn in given))
        if not 1 <= len(turns) <= limits.turns:
            raise RequestError(f"analyzeTurns: expected from 1 to {limits.turns}, got {len(turns)}")
    simulations, seconds = _effort(fields, go, model.served.simulations, limits)
    priority = fields.get("priority", "play")
    if type(priority) is int:  # KataGo's: larger goes first, 0 is usual
        priority = "play" if priority >= 0 else "analysis"
    every, length, game = (fields.get(name) for name in ("reportDuringSearchEvery", "analysisPVLen", "game"))
    first = katago.player(fields) if go else None
    if first is None and moves:
        first = moves[0][1]
    return Query(
        identity=fields["id"],
        model=model,
        turns=_walk(Line(start), moves, turns, first),
        simulations=simulations,
        seconds=seconds,
        priority=one_of(priority, "priority", _PRIORITIES),
        report_every=None
        if every is None
        else max(_LEAST_REPORT, number(every, "reportDuringSearchEvery", 0.001, 1e6)),
        allowed=_names(fields, "allowMoves", go),
        avoided=_names(fields, "avoidMoves", go),
        pv_length=None if length is None else whole(length, "analysisPVLen", range(1, 1001)),
        policy=flag(fields.get("includePolicy", False), "includePolicy"),
        bounds=flag(fields.get("includeLcb", go), "includeLcb"),  # KataGo's answers always have it
        game=None if game is None else text(game, "game")[:LONGEST_NAME],
        view=katago.view(fields) if go else None,
    )


def read_position(fields: Mapping[str, Any], model: Model, limits: Limits) -> tuple[int, _core.State]:
    """The number of moves that an object names, and the position that they lead to: over where azpy's rules end it.

    Raises:
        RequestError: a field that is wrong or beyond a limit; names it.
        ValueError: a position that cannot be read.
    """
    go = is_go(model.served.start)
    line, moves = Line(start_of(fields, model)), _moves(fields.get("moves", []), go, limits.moves)
    for count, move in enumerate(moves):
        _play(line, count, move)
    return len(moves), line.state


def start_of(fields: Mapping[str, Any], model: Model) -> _core.State:
    """Where an object says that its moves begin, or where the model's games do."""
    start = usual = model.served.start
    if fields.get("position") is not None:
        start = _core.parse_state(usual, text(fields["position"], "position"))
    elif is_go(model.served.start):
        start = katago.board(fields, usual)
    if model.served.has_model and (start.num_actions, start.obs_shape) != (usual.num_actions, usual.obs_shape):
        raise RequestError(f"the network plays {usual.game}, not {start.game}")
    return start


def _moves(value: object, go: bool, most: int) -> list[tuple[str, int | None]]:
    """Names of actions, and in Go who plays them, if it is said."""
    found = value.split() if isinstance(value, str) else list_of(value, "moves")
    if len(found) > most:
        raise RequestError(f"moves: expected at most {most}, got {len(found)}")
    paths = [f"moves[{index}]" for index in range(len(found))]
    return [katago.move(one, path) if go else (text(one, path), None) for one, path in zip(found, paths, strict=True)]


def _walk(
    line: Line, moves: Sequence[tuple[str, int | None]], turns: Sequence[int], first: int | None
) -> dict[int, tuple[_core.State, list[int], _core.State]]:
    """The positions after so many moves, in the order of `turns`. In Go `first` is to move at the first one."""
    found: dict[int, tuple[_core.State, list[int], _core.State]] = {}
    wanted = set(turns)
    for count in range(len(moves) + 1):
        if count in wanted:
            line.go_on(None if count else first)
            found[count] = line.start, list(line.played), line.state.clone()
        if count < len(moves):
            _play(line, count, moves[count])
    return {turn: found[turn] for turn in turns}


def _play(line: Line, count: int, move: tuple[str, int | None]) -> None:
    """Plays a move; `count` moves were played before it."""
    try:
        line.play(*move)
    except RequestError as error:
        raise RequestError(f"moves[{count}]: {error}") from None


def _effort(fields: Mapping[str, Any], go: bool, otherwise: int, limits: Limits) -> tuple[int | None, float | None]:
    """Simulations and seconds of a search; without any, the simulations of the player."""
    names = ["simulations", *(["maxVisits"] if go else [])]
    given = [name for name in names if fields.get(name) is not None]
    if len(given) > 1:
        raise RequestError("simulations and maxVisits are the same: give one of them")
    simulations = whole(fields[given[0]], given[0], range(1, limits.simulations + 1)) if given else None
    seconds = katago.seconds(fields, limits.seconds) if go else None
    if fields.get("seconds") is not None:
        seconds = number(fields["seconds"], "seconds", 0.001, limits.seconds)
    if simulations is None and seconds is None:
        simulations = min(otherwise, limits.simulations)
    if limits is not NO_LIMITS:
        simulations, seconds = simulations or limits.simulations, seconds or limits.seconds
    return simulations, seconds


def _names(fields: Mapping[str, Any], path: str, go: bool) -> list[tuple[str, int | None]]:
    """Names of actions at the root, in Go also as KataGo has them, for one player."""
    found = list[tuple[str, int | None]]()
    for index, one in enumerate(list_of(fields.get(path, []), path)):
        if go and isinstance(one, dict):
            found += katago.names(one, f"{path}[{index}]")
        else:
            found.append((text(one, f"{path}[{index}]"), None))
    return found


def actions_of(query: Query, state: _core.State) -> list[int] | None:
    """The actions that a search may choose among; None for all.

    Raises:
        RequestError: none is left.
    """
    fold = str.upper if query.view is not None else str
    allowed, avoided = (
        {fold(name) for name, player in names if player in (None, state.turn)}
        for names in (query.allowed, query.avoided)
    )
    if not allowed and not avoided:
        return None
    legal = {fold(state.action_name(action)): action for action in state.legal_actions()}
    found = [action for name, action in legal.items() if (not allowed or name in allowed) and name not in avoided]
    if not found:
        raise RequestError("allowMoves, avoidMoves: no legal move is left")
    return None if len(found) == len(legal) else found
