"""The Wall Game as the public program, nmamano/wallgame, writes and asks for it: its engine protocol, version 3.

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
"""

import asyncio
import json
import re
import reprlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import azpy
from azpy import State, _core
from azpy.errors import RequestError, one_line
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, PlayerEngine, chosen, with_engines

VARIANTS = ("standard", "classic", "freestyle")
NO_ACTION = "---"
"""A turn of no action in standard notation."""
LAST_TURN = 50
"""A game that is beyond this turn (one of each player) goes on at turn 1."""
MOST_SESSIONS = 256

_SIDES = range(2, 21)
_FREESTYLE = (12, 10)  # the board of azpy's freestyle: columns, rows
_PART = "[CM>^][a-t][0-9]{1,2}"
_MOVE = re.compile(rf"{NO_ACTION}|{_PART}(\.{_PART})?")
_TURN = re.compile("turn ([0-9]+) ")
_WALLS = {"vertical": ">", "horizontal": "^"}
_SECONDS = 8.0  # from the arrival of a request to its answer; the server gives 10
_MOST_WAITING = 256  # requests that wait for their answers
_ANSWERS = {
    "start_game_session": "game_session_started",
    "evaluate_position": "evaluate_response",
    "apply_move": "move_applied",
    "end_game_session": "game_session_ended",
}


@dataclass
class _ServerGame:
    """A game of the server."""

    model: PlayerEngine
    state: State
    game: azpy.EngineGame
    ply: int = 0  # turns played


class WallGame:
    """A conversation with the Wall Game's server: one JSON object a line, requests in, answers out.

    Requests of one game are answered in the order in which they came, games in any order. A request that fails leaves
    its game as it is. At the end of the input all requests are answered.

    Args:
        models: players by the server's `botId`; one alone answers for every id.
        talk: lines in and out.
    """

    def __init__(self, models: Mapping[str, Player], talk: Conversation) -> None:
        self._models, self._talk = with_engines(models, 2 * MOST_SESSIONS), talk
        self._sessions: dict[str, _ServerGame] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by id: its requests, in order
        self._room = threading.Semaphore(_MOST_WAITING)
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Answer requests until the end of the input, then those that wait."""
        thread = threading.Thread(target=self._loop.run_forever, name="azpy-wall-game", daemon=True)
        thread.start()
        try:
            for line in self._talk.lines(self._refuse):
                if line:
                    self._take(line)
        finally:
            for _ in range(_MOST_WAITING):  # wait until no request is open
                self._room.acquire()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()
            for model in self._models.values():
                model.engine.close()

    def _take(self, line: str) -> None:
        arrived = time.monotonic()
        try:
            request = _core.Message(line).fields()
        except ValueError as error:
            self._refuse(one_line(error, 300))
            return
        kind, identity = request.get("type"), request.get("bgsId")
        if not isinstance(kind, str) or kind not in _ANSWERS or not isinstance(identity, str):
            wrong = f"expected an object with a type of {', '.join(_ANSWERS)}, and a text as bgsId"
            self._refuse(wrong, identity if isinstance(identity, str) else "")
            return
        # Stop reading from a server that does not wait for answers.
        self._room.acquire()
        asyncio.run_coroutine_threadsafe(self._answer(kind, identity, request, arrived), self._loop)

    async def _answer(self, kind: str, identity: str, request: Mapping[str, Any], arrived: float) -> None:
        answer: dict[str, Any] = {"type": _ANSWERS[kind], "bgsId": identity, "success": True, "error": ""}
        try:
            async with self._turns.setdefault(identity, asyncio.Lock()):
                session = self._sessions.get(identity)
                try:
                    if kind == "start_game_session":
                        self._start(identity, request)
                    elif session is None:
                        raise RequestError("Session not found")
                    elif kind == "end_game_session":
                        del self._sessions[identity]
                    else:
                        _check_ply(request, session)
                        if kind == "apply_move":
                            self._apply(session, request.get("move"))
                        else:
                            answer["bestMove"], answer["evaluation"] = await self._evaluate(session, arrived)
                except Exception as error:  # errors of the network too: the request fails and the game continues
                    answer |= {"success": False, "error": one_line(error)}
                if kind in {"evaluate_position", "apply_move"}:
                    answer["ply"] = 0 if session is None else session.ply
                if kind == "evaluate_position":
                    answer = {"bestMove": "", "evaluation": 0, **answer}
                self._say(answer)
        finally:
            self._room.release()

    def _start(self, identity: str, request: Mapping[str, Any]) -> None:
        bot = request.get("botId")
        if not isinstance(bot, str):
            raise RequestError("botId must be a text")
        name = bot if bot in self._models else next(iter(self._models))
        if bot not in self._models and len(self._models) > 1:
            raise RequestError(f"unknown botId {bot[:100]}; available players: {', '.join(self._models)}")
        state, model = state_of(request.get("config")), self._models[name]
        player = model.player
        shape = (player.start.num_actions, player.start.obs_shape)
        if player.has_model and (state.num_actions, state.obs_shape) != shape:
            raise RequestError(f"config: {name} plays {player.start.game}, not {state.game}")
        if identity in self._sessions:
            raise RequestError(f"Session {identity[:100]} already exists")
        if len(self._sessions) >= MOST_SESSIONS:
            raise RequestError(f"Maximum session limit reached ({MOST_SESSIONS})")
        self._sessions[identity] = _ServerGame(model, state, model.engine.game(state))

    def _apply(self, session: _ServerGame, text: object) -> None:
        """Play a turn, and move the game's tree along; begin a tree where it cannot follow."""
        state = apply_move(session.state, text)
        try:
            for action in session.state.parse_actions(str(text)):
                session.game.play(action)
        except ValueError:  # a turn of fewer actions
            pass
        if session.game.state.key() != state.key():
            session.game = session.model.engine.game(state)
        session.state, session.ply = state, session.ply + 1

    async def _evaluate(self, session: _ServerGame, arrived: float) -> tuple[str, float]:
        """A turn in standard notation, and the value for player 1."""
        state, side = session.state, 1 - 2 * max(0, session.state.turn)
        if state.is_terminal or not state.legal_actions():
            return NO_ACTION, float(state.outcome()) if state.is_terminal else 0.0
        if (winning := winning_action(state)) is not None:
            return move_text(state, [winning]), float(side)
        result = await self._search(session, arrived)
        player = session.model.player
        actions, after = [chosen(player, state, result)], state.clone()
        after.play(actions[0])
        session.game.play(actions[0])
        try:
            if not after.is_terminal and after.turn == state.turn:
                actions.append(chosen(player, after, await self._search(session, arrived)))
        finally:
            session.game.undo()
        return move_text(state, actions), max(-1.0, min(1.0, side * result.value))

    async def _search(self, session: _ServerGame, arrived: float) -> azpy.SearchResult:
        # Use half of the time left, so that the second action gets the other half.
        left = max(0.0, _SECONDS - (time.monotonic() - arrived)) / 2
        return await session.game.search(session.model.player.simulations, seconds=left, lines=0)

    def _refuse(self, problem: str, identity: str = "") -> None:
        self._say({"type": "error", "bgsId": identity, "error": problem})

    def _say(self, answer: Mapping[str, Any]) -> None:
        self._talk.say(json.dumps(answer, separators=(",", ":")))


def _check_ply(request: Mapping[str, Any], session: _ServerGame) -> None:
    ply = request.get("expectedPly")
    if not isinstance(ply, int) or isinstance(ply, bool):
        raise RequestError("expectedPly must be a whole number")
    if ply != session.ply:
        raise RequestError(f"Ply mismatch: expected {session.ply}, got {ply}")


def state_of(config: object, *, one_move_rule: bool = False) -> State:
    """The position that a config describes: whoever begins, and whether half a turn is played.

    Fields that are not named here are ignored.

    Args:
        config: decoded JSON: `variant`, `boardWidth`, `boardHeight`, `initialState`. The last one holds `pawns` (`p1`
            and `p2`, each with `cat`, and with `mouse` or in classic `home`), `walls` (each with `cell` and
            `orientation`) and perhaps `turn` (`playerId`, and `actionsTaken` with at most one action, which the pawns
            and walls show already).
        one_move_rule: whether player 1's capture is a draw while player 2's cat is at most two steps from its goal; not
            in classic. The public program dropped this rule in September 2026.

    Returns:
        A State. It is terminal only after half a turn that has no second action: `apply_move(state, "---")` goes on.

    Raises:
        RequestError: a config that cannot be played; names the field, what came, and what was expected.
    """
    known = _checked(config, {"variant": VARIANTS, "boardWidth": _SIDES, "boardHeight": _SIDES})
    variant, width, height = known["variant"], known["boardWidth"], known["boardHeight"]
    cell, goal = (range(height), range(width)), "home" if variant == "classic" else "mouse"
    player, wall = {"cat": cell, goal: cell}, {"cell": cell, "orientation": tuple(_WALLS)}
    setup = _checked(config, {"initialState": {"pawns": {"p1": player, "p2": player}, "walls": [wall]}})["initialState"]
    pawns = [setup["pawns"][player] for player in ("p1", "p2")]
    cats, mice = ([_cell(pawn[piece], height) for pawn in pawns] for piece in ("cat", goal))
    if variant == "classic":  # a home is named after the cat that runs to it, a mouse after its owner
        mice.reverse()
    walls = [_WALLS[wall["orientation"]] + _cell(wall["cell"], height) for wall in setup["walls"]]
    turn = _turn_of(setup.get("turn"), cell, {"cat": cats, "mouse": mice}, walls)
    text = " ".join(["cats", *cats, "mice", *mice, *(["walls", *walls] if walls else []), turn])
    try:
        start = azpy.make_game(
            "wall_game",
            variant="standard" if variant == "freestyle" and (width, height) != _FREESTYLE else variant,
            width=width,
            height=height,
            one_move_rule=one_move_rule and variant != "classic",
        )
    except ValueError as error:
        raise RequestError(f"config: {error}") from error
    try:
        state = azpy.parse_state(start, text)
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
        after = azpy.parse_state(state, text)
        # The same player is still to move: the turn ends early.
        if text != NO_ACTION and after.turn == state.turn:
            after = azpy.parse_state(after, NO_ACTION)
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
        raise ValueError(f"expected the actions of one turn, got several turns: {text}")
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
    return azpy.parse_state(state, _TURN.sub("turn 1 ", text))


def _turn_of(turn: Any, cell: tuple[range, range], pieces: Mapping[str, list[str]], walls: list[str]) -> str:
    """Whose turn it is, in the notation of positions."""
    if turn is None:
        return "turn 1 red"
    path, height = "initialState.turn", len(cell[0])
    _checked(turn, {"playerId": range(1, 3), "actionsTaken": [{"type": (*pieces, "wall")}]}, path)
    player, taken = turn["playerId"] - 1, turn["actionsTaken"]
    text, path = f"turn 1 {('red', 'blue')[player]}", f"{path}.actionsTaken"
    if not taken:
        return text
    if len(taken) > 1:
        raise RequestError(f"{path}: expected at most one action, got {len(taken)}")
    action, path = taken[0], f"{path}[0]"
    if action["type"] == "wall":
        _checked(action, {"wallOrientation": tuple(_WALLS), "target": cell}, path)
        wall = _WALLS[action["wallOrientation"]] + _cell(action["target"], height)
        if wall not in walls:
            raise RequestError(f"{path}.target: the wall {wall} is not among initialState.walls")
        return f"{text} second"
    _checked(action, {"source": cell, "target": cell}, path)
    kind, source, target = action["type"], _cell(action["source"], height), _cell(action["target"], height)
    if target != pieces[kind][player]:
        own = f"player {player + 1}'s {kind} is at {pieces[kind][player]}"
        raise RequestError(f"{path}.target: {own}, not {target}")
    # The reader of positions refuses a step back that no step leads to.
    return f"{text} second not {'CM'[kind == 'mouse']}{source}"


def _cell(cell: Sequence[int], height: int) -> str:
    """A cell [row, column] in standard notation."""
    return f"{chr(ord('a') + cell[1])}{height - cell[0]}"


def _checked(value: Any, form: Any, path: str = "config") -> Any:
    """The value, if it has this form.

    Args:
        value: decoded JSON.
        form: a range of whole numbers, a tuple of words, a dict of the forms of fields (others are ignored), a list of
            the one form of its items, or a tuple of ranges for a list of as many numbers.
        path: of the value, for errors.

    Raises:
        RequestError: another form; names the path.
    """
    inside = "" if path == "config" else f"{path}."
    is_cell = isinstance(form, tuple) and isinstance(form[0], range)
    if isinstance(form, dict):
        is_right, expected = isinstance(value, dict), "an object"
    elif isinstance(form, list) or is_cell:
        is_right, expected = isinstance(value, list), "a list"
    elif isinstance(form, range):  # a bool is not a number in JSON
        is_right, expected = type(value) is int and value in form, f"a whole number from {form[0]} to {form[-1]}"
    else:
        is_right = isinstance(value, str) and value in form
        expected = f"{', '.join(form[:-1])} or {form[-1]}"
    if is_right and is_cell and len(value) != len(form):
        raise RequestError(f"{path}: expected a cell [row, column], got {len(value)} numbers")
    if not is_right:
        raise RequestError(f"{path}: expected {expected}, got {reprlib.repr(value)}")
    if isinstance(form, dict):
        for name, part in form.items():
            if name not in value:
                raise RequestError(f"{inside}{name} is missing")
            _checked(value[name], part, f"{inside}{name}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            _checked(one, form[index if is_cell else 0], f"{path}[{index}]")
    return value
