"""Games with variations as texts of other programs: what the actions `read` and `write` answer."""

from collections.abc import Mapping
from typing import Any

from azpy._core import State
from azpy.errors import RequestError
from azpy.games.notations import Notation, notation_of
from azpy.serving.limits import Limits
from azpy.serving.objects import field, list_of, text, whole

__all__ = ["read", "write"]

_UNKNOWN = ("", "?", "*")  # what tags say where nothing is known


def read(fields: Mapping[str, Any], start: State, limits: Limits) -> dict[str, Any]:
    """A game in its notation (PGN, SGF), or a position, or moves, as a list of moves.

    Args:
        fields: `text`.
        start: where a game begins if the text does not say it.
        limits: of the client.

    Returns:
        `position` where the game begins (None: at `start`); `nodes`, each [the index of the node before it or -1, the
        action's name, its short name], where of the nodes behind one node the first is that of the main line; `players`
        and `result` as the text has them (None: it does not say); `leftOut`: why lines end early, or are not there.

    Raises:
        RequestError: a field that is wrong or beyond a limit, or a text that cannot be read; says where.
    """
    given, notation = text(field(fields, "text"), "text"), notation_of(start.game)
    if (size := len(given.encode())) > limits.text_bytes:
        raise RequestError(f"text: expected at most {limits.text_bytes} bytes, got {size}")
    if not given.strip():
        raise RequestError("text: it is empty")
    try:
        found = start.read_variations(given, max_moves=limits.nodes, max_depth=limits.depth)
    except ValueError as error:
        raise RequestError(f"text: {error}") from error
    tags = {name: value for name, value in found.tags.items() if value not in _UNKNOWN}
    players = None if notation is None else [tags.get(name) for name in notation.players]
    return {
        "position": None if found.start.key() == start.key() else found.start.to_text(),
        "nodes": [list(move) for move in found.moves],
        "players": players if players and any(players) else None,
        "result": None if notation is None else tags.get(notation.result),
        "leftOut": found.left_out,
    }


def write(fields: Mapping[str, Any], start: State, limits: Limits) -> dict[str, Any]:
    """The `text` of a game in its notation.

    Args:
        fields: `nodes` as `read` has them, the short names left out or not; perhaps `players` and `result`.
        start: where the game begins.
        limits: of the client.

    Raises:
        RequestError: a field that is wrong or beyond a limit, or a game without a notation.
    """
    notation = notation_of(start.game)
    if notation is None:
        raise RequestError(f"write: there is no notation of whole games of {start.game}, but of chess and go")
    given = list_of(field(fields, "nodes"), "nodes")
    if len(given) > limits.nodes:
        raise RequestError(f"nodes: expected at most {limits.nodes}, got {len(given)}")
    nodes = list[tuple[int, str]]()
    for index, one in enumerate(given):
        node = list_of(one, path := f"nodes[{index}]")
        if len(node) not in (2, 3):
            raise RequestError(f"{path}: expected the index of the node before it, a name and perhaps a short name")
        nodes.append((whole(node[0], path, range(-1, index)), text(node[1], path)))
    try:
        return {"text": start.write_variations(nodes, _tags(fields, notation), max_depth=limits.depth)}
    except ValueError as error:
        raise RequestError(str(error)) from error


def _tags(fields: Mapping[str, Any], notation: Notation) -> dict[str, str]:
    """The players and the result that an object names, as tags."""
    given = fields.get("players")
    players = [None, None] if given is None else list_of(given, "players")
    if len(players) != len(notation.players):
        raise RequestError(f"players: expected a list of two names, got {len(players)}")
    named = zip(notation.players, players, strict=True)
    tags = {tag: text(name, "players") for tag, name in named if name is not None}
    if fields.get("result") is not None:
        tags[notation.result] = text(fields["result"], "result")
    return tags
