"""The Wall Game as the public program, nmamano/wallgame, writes it, and positions of azpy.

The public program's JSON describes a game by a *config*. Its *standard notation* is a text for a whole turn. Its player
1 is Red (0 here), its player 2 is Blue (1 here). A cell in JSON is [row, column], row 0 at the top. A vertical wall is
right of its cell, a horizontal wall is above its cell.

The rules of the public program differ from those of search:

- A game has no cap. Positions here begin at turn 1, and begin again at turn 1 after `LAST_TURN` turns. So a search does
  not see the draw after 100 turns. The pieces, the walls and the side to move stay as they are.
- A player may end a turn after one action, or without any. No action stands for this, so a kept tree cannot follow such
  a turn: a search begins anew at the State.
- `freestyle` is `standard` from a start that the config holds, on a board of any size. azpy's freestyle draws its
  starts, on one size of board alone: on others the game here is `standard`.
- In `classic`, homes stand where azpy has mice that do not step. The home of player 1 is the goal of player 1's cat:
  Blue's mouse. The home of player 2 is Red's mouse.

Knows nothing of searches and of messages.
"""

import re
import reprlib
from collections.abc import Mapping, Sequence

from azpy._core import State, parse_state
from azpy.errors import RequestError
from azpy.games.names import make_game
from azpy.serving.objects import field, list_of, object_of, one_of, whole

__all__ = ["LAST_TURN", "NO_ACTION", "VARIANTS", "apply_move", "move_text", "state_of", "winning_action"]

VARIANTS = ("standard", "classic", "freestyle")
NO_ACTION = "---"
"""A turn of no action in standard notation."""
LAST_TURN = 50
"""A game that is beyond this turn (one of each player) goes on at turn 1."""

_SIDES = range(2, 21)
_FREESTYLE = (12, 10)  # the board of azpy's freestyle: columns, rows
_PART = "[CM>^][a-t][0-9]{1,2}"
_MOVE = re.compile(rf"{NO_ACTION}|{_PART}(\.{_PART})?")
_TURN = re.compile("turn ([0-9]+) ")
_COLORS = ("red", "blue")
_WALLS = {"vertical": ">", "horizontal": "^"}


def state_of(config: object, *, one_move_rule: bool = False, classic_policy: bool = False) -> State:
    """The position that a config describes: whoever begins, and whether half a turn is played.

    Fields that are not named here are ignored.

    Args:
        config: decoded JSON: `variant`, `boardWidth`, `boardHeight`, `initialState`. The last one holds `pawns` (`p1`
            and `p2`, each with `cat`, and with `mouse` or in classic `home`), `walls` (each with `cell` and
            `orientation`) and perhaps `turn` (`playerId`, and `actionsTaken` with at most one action, which the pawns
            and walls show already).
        one_move_rule: whether player 1's capture is a draw while player 2's cat is at most two steps from its goal; not
            in classic. The public program dropped this rule in September 2026.
        classic_policy: the game's parameter, for models of classic alone.

    Returns:
        A State. It is terminal only after half a turn that has no second action: `apply_move(state, "---")` goes on.

    Raises:
        RequestError: a config that cannot be played; names the field, what came, and what was expected.
    """
    config = object_of(config, "config")
    variant = one_of(field(config, "variant"), "variant", VARIANTS)
    width, height = (whole(field(config, side), side, _SIDES) for side in ("boardWidth", "boardHeight"))
    board = _Board(width, height)
    setup = object_of(field(config, "initialState"), "initialState")
    pawns = object_of(field(setup, "initialState.pawns"), "initialState.pawns")
    goal = "home" if variant == "classic" else "mouse"
    pieces: dict[str, list[str]] = {"cat": [], goal: []}
    for player in ("p1", "p2"):
        path = f"initialState.pawns.{player}"
        own = object_of(field(pawns, path), path)
        for piece, cells in pieces.items():
            cells.append(board.cell(field(own, f"{path}.{piece}"), f"{path}.{piece}"))
    # A home is named after the cat that runs to it, a mouse after its owner.
    mice = pieces[goal][::-1] if variant == "classic" else pieces[goal]
    walls = list_of(field(setup, "initialState.walls"), "initialState.walls")
    names = [board.wall(wall, f"initialState.walls[{index}]") for index, wall in enumerate(walls)]
    turn = _turn_of(setup.get("turn"), board, {"cat": pieces["cat"], "mouse": mice}, names)
    text = " ".join(["cats", *pieces["cat"], "mice", *mice, *(["walls", *names] if names else []), turn])
    try:
        start = make_game(
            "wall_game",
            variant="standard" if variant == "freestyle" and (width, height) != _FREESTYLE else variant,
            width=width,
            height=height,
            one_move_rule=one_move_rule and variant != "classic",
            classic_policy=classic_policy,
        )
    except ValueError as error:
        raise RequestError(f"config: {error}") from error
    try:
        state = parse_state(start, text)
    except ValueError as error:
        raise RequestError(f"initialState: {error}") from error
    if state.is_terminal and " second" not in text:
        raise RequestError("initialState.pawns: a cat stands on its goal; expected a game that is not over")
    return state


def apply_move(state: State, text: object) -> State:
    """The position after a whole turn. `state` stays as it is.

    Args:
        state: a position of the Wall Game, also one that is a draw only by the number of turns.
        text: the turn in standard notation, of at most as many actions as the turn has left: `Cb7.>e4`, `Cc8`, `>e4`,
            `---`. A turn of fewer actions ends early.

    Raises:
        RequestError: text that is no legal turn here; says what was expected.
    """
    if not isinstance(text, str) or not _MOVE.fullmatch(text):
        raise RequestError(f"move: expected a turn such as Cb7.>e4, Cc8 or {NO_ACTION}, got {reprlib.repr(text)}")
    state = _at_an_early_turn(state)
    try:
        after = parse_state(state, text)
        # The same player is still to move: the turn ends early.
        if text != NO_ACTION and after.turn == state.turn:
            after = parse_state(after, NO_ACTION)
    except ValueError as error:
        raise RequestError(f"move: {error}") from error
    return _at_an_early_turn(after)


def move_text(state: State, actions: Sequence[int]) -> str:
    """A whole turn in standard notation, which `apply_move` reads.

    Args:
        state: where the turn begins; or, after half a turn, goes on.
        actions: of one turn, by their numbers: as many as the turn has left, or fewer, which ends the turn early. No
            action at all gives `---`.

    Raises:
        ValueError: an action that is not legal, or actions of more than one turn.
    """
    text = state.format_actions(actions) if actions else NO_ACTION
    if " " in text:
        raise ValueError(f"expected the actions of one turn, got those of several: {text}")
    return text


def winning_action(state: State) -> int | None:
    """The action that wins as a turn by itself, or None.

    A search plays a second action wherever one is legal, and may have to give the capture up by it: where only steps of
    the cat are legal. So ask here before a search.
    """
    for action in state.legal_actions():
        name = state.action_name(action)
        # A wall captures nothing.
        if name[0] == "C":
            after = apply_move(state, name)
            if after.is_terminal and after.outcome() == 1 - 2 * state.turn:
                return action
    return None


def _at_an_early_turn(state: State) -> State:
    """The position, beyond `LAST_TURN` as one of the first turn."""
    text = state.to_text()
    found = _TURN.search(text)
    if found is None or int(found[1]) <= LAST_TURN:
        return state
    return parse_state(state, _TURN.sub("turn 1 ", text))


class _Board:
    """Names of cells and walls in standard notation, from JSON."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height

    def cell(self, value: object, path: str) -> str:
        row, column = self._place(value, path)
        return f"{chr(ord('a') + column)}{self.height - row}"

    def wall(self, value: object, path: str, *, cell: str = "cell", orientation: str = "orientation") -> str:
        wall = object_of(value, path)
        kind = one_of(field(wall, f"{path}.{orientation}"), f"{path}.{orientation}", tuple(_WALLS))
        where = f"{path}.{cell}"
        row, column = self._place(field(wall, where), where)
        if (column == self.width - 1) if kind == "vertical" else (row == 0):
            rim = "the last column" if kind == "vertical" else "row 0"
            raise RequestError(f"{where}: a {kind} wall in {rim} lies on the rim; expected one between two cells")
        return _WALLS[kind] + self.cell([row, column], where)

    def _place(self, value: object, path: str) -> tuple[int, int]:
        cell = list_of(value, path)
        if len(cell) != 2:
            raise RequestError(f"{path}: expected a cell [row, column], got {len(cell)} numbers")
        return whole(cell[0], f"{path}[0]", range(self.height)), whole(cell[1], f"{path}[1]", range(self.width))


def _turn_of(value: object, board: _Board, pieces: Mapping[str, list[str]], walls: list[str]) -> str:
    """Whose turn it is, in the notation of positions."""
    if value is None:
        return "turn 1 red"
    path = "initialState.turn"
    turn = object_of(value, path)
    player = whole(field(turn, f"{path}.playerId"), f"{path}.playerId", range(1, 3)) - 1
    text = f"turn 1 {_COLORS[player]}"
    taken = list_of(field(turn, f"{path}.actionsTaken"), f"{path}.actionsTaken")
    if not taken:
        return text
    if len(taken) > 1:
        raise RequestError(f"{path}.actionsTaken: expected at most one action, got {len(taken)}")
    path = f"{path}.actionsTaken[0]"
    action = object_of(taken[0], path)
    kind = one_of(field(action, f"{path}.type"), f"{path}.type", (*pieces, "wall"))
    if kind == "wall":
        wall = board.wall(action, path, cell="target", orientation="wallOrientation")
        if wall not in walls:
            raise RequestError(f"{path}.target: the wall {wall} is not among initialState.walls")
        return f"{text} second"
    source, target = (board.cell(field(action, f"{path}.{end}"), f"{path}.{end}") for end in ("source", "target"))
    if target != pieces[kind][player]:
        raise RequestError(f"{path}.target: player {player + 1}'s {kind} is at {pieces[kind][player]}, not {target}")
    # The reader of positions refuses a step back that no step leads to.
    return f"{text} second not {'CM'[kind == 'mouse']}{source}"
