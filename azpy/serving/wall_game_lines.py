"""The Wall Game's engine protocol, version 3: one JSON object a line, requests in, answers out.

Requests of one game are answered in the order in which they came, games in any order. A request that fails leaves its
game as it is. At the end of the input all requests are answered.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from azpy import _core
from azpy.errors import RequestError, one_line
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Served, chosen, open_engine
from azpy.serving.objects import decoded
from azpy.serving.wall_game import NO_ACTION, apply_move, move_text, state_of, winning_action

__all__ = ["MOST_SESSIONS", "WallGameLines"]

MOST_SESSIONS = 256
_SECONDS = 8.0  # from the arrival of a request to its answer; the server gives 10
_MOST_WAITING = 16 << 20  # bytes of requests that wait for their answers
_BESIDES = 1024  # bytes that a request takes besides its line
_ANSWERS = {
    "start_game_session": "game_session_started",
    "evaluate_position": "evaluate_response",
    "apply_move": "move_applied",
    "end_game_session": "game_session_ended",
}


@dataclass
class _Session:
    """A game. Only the thread that answers its requests touches it."""

    model: str
    state: _core.State
    game: _core.EngineGame
    ply: int = 0  # turns played


@dataclass
class _Queue:
    """Requests about one id that wait, each with its size, and whether a thread is at them."""

    waiting: deque[tuple[int, Callable[[], None]]] = field(default_factory=deque)
    busy: bool = False


class WallGameLines:
    """A conversation with the Wall Game's server.

    Args:
        models: players by the server's `botId`; one alone answers for every id.
        talk: lines in and out.
        simulations: of each of the two actions of a turn; None for those of the player.
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation, simulations: int | None = None) -> None:
        self._models, self._talk, self._simulations = models, talk, simulations
        memory = max(1, TREES_MB // len(models))
        self._engines = {
            name: open_engine(served, max_requests=2 * MOST_SESSIONS, total_memory_mb=memory)
            for name, served in models.items()
        }
        self._sessions: dict[str, _Session] = {}
        self._queues: dict[str, _Queue] = {}
        self._waiting = 0  # bytes of requests
        self._lock = Condition()  # of the three above
        self._pool = ThreadPoolExecutor(MOST_SESSIONS, thread_name_prefix="azpy-wall-game")

    def run(self) -> None:
        """Answers requests until the end of the input, then those that wait."""
        try:
            for line in self._talk.lines(self._refuse):
                if line:
                    self._take(line)
                if self._talk.gone.is_set():
                    break
        finally:
            self._pool.shutdown(wait=True)
            for engine in self._engines.values():
                engine.close()

    def _take(self, line: str) -> None:
        arrived = time.monotonic()
        try:
            request = decoded(line)
        except RequestError as error:
            self._refuse(str(error))
            return
        kind, identity = request.get("type"), request.get("bgsId")
        if not isinstance(kind, str) or kind not in _ANSWERS or not isinstance(identity, str):
            wrong = f"expected a type of {', '.join(_ANSWERS)}, and a text as bgsId"
            self._say({"type": "error", "bgsId": identity if isinstance(identity, str) else "", "error": wrong})
            return
        size = len(line) + _BESIDES
        with self._lock:
            # A server that does not wait for answers is read no further.
            self._lock.wait_for(lambda: self._waiting < _MOST_WAITING)
            self._waiting += size
            queue = self._queues.setdefault(identity, _Queue())
            queue.waiting.append((size, lambda: self._answer(kind, identity, request, arrived)))
            if queue.busy:
                return
            queue.busy = True
        self._pool.submit(self._work, identity, queue)

    def _work(self, identity: str, queue: _Queue) -> None:
        """Answers the requests about one id, one after the other, until none waits."""
        while True:
            with self._lock:
                if not queue.waiting:
                    queue.busy = False
                    if identity not in self._sessions:
                        self._queues.pop(identity, None)
                    return
                size, request = queue.waiting.popleft()
            request()
            with self._lock:
                self._waiting -= size
                self._lock.notify_all()

    def _answer(self, kind: str, identity: str, request: Mapping[str, Any], arrived: float) -> None:
        answer: dict[str, Any] = {"type": _ANSWERS[kind], "bgsId": identity, "success": True, "error": ""}
        with self._lock:
            session = self._sessions.get(identity)
        try:
            if kind == "start_game_session":
                self._start(identity, request)
            elif session is None:
                raise RequestError("Session not found")
            elif kind == "end_game_session":
                with self._lock:
                    del self._sessions[identity]
            else:
                _check_ply(request, session)
                if kind == "apply_move":
                    self._apply(session, request)
                else:
                    answer["bestMove"], answer["evaluation"] = self._evaluate(session, arrived)
        except Exception as error:  # of the network too: the request fails, and the game goes on
            answer |= {"success": False, "error": one_line(error)}
        if kind in {"evaluate_position", "apply_move"}:
            answer["ply"] = 0 if session is None else session.ply
        if kind == "evaluate_position":
            answer = {"bestMove": "", "evaluation": 0, **answer}
        self._say(answer)

    def _start(self, identity: str, request: Mapping[str, Any]) -> None:
        bot = request.get("botId")
        if not isinstance(bot, str):
            raise RequestError("botId must be a text")
        name = bot if bot in self._models else next(iter(self._models))
        if bot not in self._models and len(self._models) > 1:
            raise RequestError(f"no player for botId {bot[:100]}: there are {', '.join(self._models)}")
        state, served = state_of(request.get("config")), self._models[name]
        shape = (served.start.num_actions, served.start.obs_shape)
        if served.has_model and (state.num_actions, state.obs_shape) != shape:
            raise RequestError(f"config: {name} plays {served.start.game}, not {state.game}")
        with self._lock:
            if identity in self._sessions:
                raise RequestError(f"Session {identity[:100]} already exists")
            if len(self._sessions) >= MOST_SESSIONS:
                raise RequestError(f"Maximum session limit reached ({MOST_SESSIONS})")
            self._sessions[identity] = _Session(name, state, self._engines[name].game(state))

    def _apply(self, session: _Session, request: Mapping[str, Any]) -> None:
        text = request.get("move")
        state = apply_move(session.state, text)
        self._follow(session, str(text), state)
        session.state, session.ply = state, session.ply + 1

    def _follow(self, session: _Session, text: str, state: _core.State) -> None:
        """Moves the game's tree along a turn; begins a tree where it cannot follow."""
        try:
            for action in session.state.parse_actions(text):
                session.game.play(action)
        except ValueError:  # a turn of fewer actions
            pass
        if session.game.state.key() != state.key():
            session.game = self._engines[session.model].game(state)

    def _evaluate(self, session: _Session, arrived: float) -> tuple[str, float]:
        """A turn in standard notation, and the value for player 1."""
        state, side = session.state, 1 - 2 * max(0, session.state.turn)
        if state.is_terminal or not state.legal_actions():
            return NO_ACTION, float(state.outcome()) if state.is_terminal else 0.0
        if (winning := winning_action(state)) is not None:
            return move_text(state, [winning]), float(side)
        result = self._search(session, arrived)
        warmth = self._models[session.model].temperature
        actions, after = [chosen(result, warmth)], state.clone()
        after.play(actions[0])
        session.game.play(actions[0])
        try:
            if not after.is_terminal and after.turn == state.turn:
                actions.append(chosen(self._search(session, arrived), warmth))
        finally:
            session.game.undo()
        return move_text(state, actions), max(-1.0, min(1.0, side * result.value))

    def _search(self, session: _Session, arrived: float) -> Any:
        simulations = self._simulations or self._models[session.model].simulations
        # Half of what is left, so that the second action has as much.
        left = max(0.0, _SECONDS - (time.monotonic() - arrived)) / 2
        return session.game.search(simulations, seconds=left).result()

    def _refuse(self, problem: str) -> None:
        self._say({"type": "error", "bgsId": "", "error": problem})

    def _say(self, answer: Mapping[str, Any]) -> None:
        self._talk.say(json.dumps(answer, separators=(",", ":")))


def _check_ply(request: Mapping[str, Any], session: _Session) -> None:
    ply = request.get("expectedPly")
    if not isinstance(ply, int) or isinstance(ply, bool):
        raise RequestError("expectedPly must be a whole number")
    if ply != session.ply:
        raise RequestError(f"Ply mismatch: expected {session.ply}, got {ply}")
