"""Analysis queries of one client, as JSON objects: positions to search, and what the searches found.

The transport is not known here: `Analyst.take` gets an object, and `say` is called with objects. For Go KataGo's names
of fields are taken and given besides azpy's (`azpy/serving/katago.py`).
"""

import contextlib
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import azpy
from azpy import _core
from azpy.errors import RequestError, one_line
from azpy.games.notations import notation_of
from azpy.pending import Pending
from azpy.serving import katago, variations
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model, Served, chosen, lower_bound
from azpy.serving.objects import list_of, one_of, text, whole
from azpy.serving.query import LONGEST_NAME, Query, actions_of, ignored, read_position, read_query, start_of
from azpy.serving.showing import shown
from azpy.serving.track import Track

__all__ = ["Analyst"]

_MOST_WARNINGS = 100  # of a client


@dataclass
class _Open:
    """A search that goes on."""

    query: Query
    turn: int
    state: _core.State
    served: Served
    began: float = field(default_factory=time.monotonic)
    pending: Pending | None = None


class Analyst:
    """Answers the queries of one client.

    Args:
        models: players with their engines; other clients may use them too. The first one answers for a query that names
            none.
        say: gets each answer. It may be called in any thread, and several at once; searches of all clients wait for it.
        limits: of this client.
        renews: whether the action `renew` is there: a player's newest checkpoint is loaded.
        answered: is told how many seconds each answered search took, from its query to its answer.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        say: Callable[[dict[str, Any]], object],
        limits: Limits = NO_LIMITS,
        renews: bool = False,
        answered: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._models, self._say, self._limits, self._renews = models, say, limits, renews
        self._answered = answered
        self._open: dict[int, _Open] = {}
        self._closed = False
        self._games: OrderedDict[tuple[int, str], Track] = OrderedDict()  # by model and name
        self._changed = threading.Condition()  # of the searches that are open
        self._warned: set[str] = set()

    def take(self, fields: Mapping[str, Any]) -> None:
        """Takes a query or an action. Each answer, and each error, is said; nothing is raised."""
        identity = fields.get("id")
        try:
            if len(text(identity, "id")) > LONGEST_NAME:
                identity = None
                raise RequestError(f"id: expected at most {LONGEST_NAME} characters")
            if "action" in fields:
                self._act(fields)
            else:
                self._search(fields)
        except Exception as error:  # of a user's game too
            self._fail(identity, error)

    @property
    def is_busy(self) -> bool:
        """Whether searches go on. A search ends after its answer was said."""
        return bool(self._open)

    def wait(self) -> None:
        """Returns when every query was answered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open)

    def close(self) -> None:
        """Cancels the searches that go on, and drops the trees. Nothing is said any more."""
        with self._changed:
            self._closed = True
            still = list(self._open.values())
            self._games.clear()
        for one in still:
            if (pending := one.pending) is not None:  # the answer may come in another thread
                pending.cancel()

    # Actions ----------------------------------------------------------------------------------------------------------

    def _act(self, fields: Mapping[str, Any]) -> None:
        actions = {
            "query_version": self._version,
            "query_models": self._tell_models,
            "show": self._show,
            "read": self._read,
            "write": self._write,
            "terminate": self._terminate,
            "terminate_all": self._terminate,
        }
        if self._renews:
            actions["renew"] = self._renew
        name = one_of(fields["action"], "action", tuple(actions))
        self._say({**{key: fields[key] for key in fields if key in _ECHOED}, **actions[name](fields)})

    def _renew(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        model = self._model(fields)
        changed = model.renew()
        return {"changed": changed, "internalName": model.served.name, "network": model.served.network}

    def _show(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        turn, state = read_position(fields, self._model(fields), self._limits)
        return {"turnNumber": turn, **shown(state)}

    def _read(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return variations.read(fields, start_of(fields, self._model(fields)), self._limits)

    def _write(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return variations.write(fields, start_of(fields, self._model(fields)), self._limits)

    @staticmethod
    def _version(_: Mapping[str, Any]) -> dict[str, Any]:
        return {"version": azpy.__version__, "git_hash": ""}

    def _tell_models(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "models": [
                {
                    "name": name,
                    "internalName": model.served.name,
                    "game": model.served.start.game,
                    "format": None if (notation := notation_of(model.served.start.game)) is None else notation.name,
                    "sideNames": model.served.start.side_names,
                    "canRotate": model.served.start.can_rotate,
                    "network": model.served.network,
                    "simulations": min(model.served.simulations, self._limits.simulations),
                }
                for name, model in self._models.items()
            ]
        }

    def _terminate(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Has searches answer with what they know: those of one query, or all."""
        wanted = text(fields.get("terminateId"), "terminateId") if fields["action"] == "terminate" else None
        turns = None
        if "turnNumbers" in fields:
            numbers = list_of(fields["turnNumbers"], "turnNumbers")
            turns = {whole(turn, "turnNumbers", range(self._limits.moves + 1)) for turn in numbers}
        with self._changed:
            found = [
                one.pending
                for one in self._open.values()
                if (wanted is None or one.query.identity == wanted) and (turns is None or one.turn in turns)
            ]
        for pending in found:
            if pending is not None:
                pending.stop()
        return {}

    # Searches ---------------------------------------------------------------------------------------------------------

    def _search(self, fields: Mapping[str, Any]) -> None:
        model = self._model(fields)
        query = read_query(fields, model, self._limits)
        for name, said in ignored(fields, model):
            name = name[:LONGEST_NAME]
            if name not in self._warned and len(self._warned) < _MOST_WARNINGS:
                self._warned.add(name)
                query.warnings.append(f"{name}: {said}")
        for turn, (start, played, state) in query.turns.items():
            if self._closed:
                return
            try:
                self._begin(query, turn, start, played, state)
            except Exception as error:
                self._fail(query.identity, error, turn)

    def _begin(self, query: Query, turn: int, start: _core.State, played: list[int], state: _core.State) -> None:
        if state.is_terminal:
            self._say({**_head(query, turn, False), "moveInfos": [], "rootInfo": _end(state)})
            return
        if state.turn == _core.CHANCE:
            raise RequestError(f"moves: after {turn} of them a roll is due; name its outcome as the next move")
        one = _Open(query, turn, state, query.model.served)
        wanted: dict[str, Any] = {
            "seconds": query.seconds,
            "priority": query.priority,
            "actions": actions_of(query, state),
            "standard_errors": query.bounds,
        }
        if query.report_every is not None:
            wanted |= {"on_report": lambda result: self._report(one, result), "report_every": query.report_every}
        with self._changed:
            if len(self._open) >= self._limits.searches:
                raise queue.Full(f"{self._limits.searches} searches of this client are open: wait for an answer")
            self._open[id(one)] = one
        try:
            if query.game is not None:
                one.pending = self._track(query).follow(start, played).search(query.simulations, **wanted)
            else:
                one.pending = query.model.engine.submit(state, query.simulations, **wanted)
        except BaseException:
            self._forget(one)
            raise
        if self._closed:  # by another thread, before the search was known
            one.pending.cancel()
        one.pending.add_done_callback(lambda pending: self._done(one, pending))

    def _track(self, query: Query) -> Track:
        """The game of this name, whose tree is kept."""
        key = (id(query.model), query.game or "")
        with self._changed:
            track = self._games.pop(key, None) or Track(query.model.engine)
            self._games[key] = track
            if len(self._games) > self._limits.games:
                self._games.popitem(last=False)
        return track

    def _report(self, one: _Open, result: _core.SearchResult) -> None:
        if not self._closed:
            with contextlib.suppress(Exception):  # a report is no answer, and the answer will fail as well
                self._tell(one, result, True)

    def _done(self, one: _Open, pending: Any) -> None:
        """Says what a search found. Runs in the engine's thread of answers."""
        try:
            if self._closed:
                return
            if pending.cancelled():
                self._fail(one.query.identity, RequestError("the search was cancelled: the engine ends"), one.turn)
            elif (error := pending.exception()) is not None:
                self._fail(one.query.identity, error, one.turn)
            else:
                self._answered(time.monotonic() - one.began)
                self._tell(one, pending.result(), False)
        except Exception as error:  # a game in Python may fail to name an action
            self._fail(one.query.identity, error, one.turn)
        finally:
            self._forget(one)

    def _forget(self, one: _Open) -> None:
        with self._changed:
            self._open.pop(id(one), None)
            self._changed.notify_all()
        # The pending's callback knows `one`. In a circle the result and its tree would wait for garbage collection.
        one.pending = None

    def _tell(self, one: _Open, result: _core.SearchResult, during: bool) -> None:
        self._say({**_head(one.query, one.turn, during), **_found(one.query, one.served, one.state, result)})

    def _fail(self, identity: object, error: BaseException, turn: int | None = None) -> None:
        said: dict[str, Any] = {} if not isinstance(identity, str) else {"id": identity}
        if turn is not None:
            said["turnNumber"] = turn
        if isinstance(error, queue.Full):
            said["retryAfter"] = 1
        self._say({**said, "error": one_line(error)})

    def _model(self, fields: Mapping[str, Any]) -> Model:
        if fields.get("model") is None:
            return next(iter(self._models.values()))
        name = text(fields["model"], "model")
        if name not in self._models:
            raise RequestError(f"model: there is no {name[:LONGEST_NAME]!r}, but {', '.join(self._models)}")
        return self._models[name]


_ECHOED = {"id", "action", "terminateId", "turnNumbers"}


def _head(query: Query, turn: int, during: bool) -> dict[str, Any]:
    head: dict[str, Any] = {"id": query.identity, "turnNumber": turn, "isDuringSearch": during}
    # Not as messages of their own: KaTrain 1.20 takes each message of a query for an answer.
    return head | ({"warnings": query.warnings} if query.warnings else {})


def _end(state: _core.State) -> dict[str, Any]:
    return {"player": None, "visits": 0, "value": None, "outcome": state.outcome(), "stop": "game over"}


def _found(query: Query, served: Served, state: _core.State, result: _core.SearchResult) -> dict[str, Any]:
    """What a search found: the visited actions, the one to play first, and the root."""
    places = {int(action): index for index, action in enumerate(result.actions)}
    lines = result.principal_variations(len(places), query.pv_length)
    best = chosen(result, served.temperature)
    errors = result.standard_errors.tolist() if query.bounds else []  # each look walks the whole tree
    moves = list[dict[str, Any]]()
    for actions, visits, q in sorted(lines, key=lambda line: line[0][0] != result.action):
        index, now, names = places[actions[0]], state.clone(), []
        for action in actions:
            names.append(now.action_name(action))
            now.play(action)
        move = {
            "move": names[0],
            "visits": visits,
            "prior": _rounded(result.priors[index]),
            "value": _rounded(q),
            **({"lcb": _rounded(lower_bound(q, errors[index]))} if errors else {}),
            "order": len(moves),
            "pv": names,
        }
        if result.proofs[index] >= 0:
            move["proof"] = int(result.proofs[index])
        moves.append(move)
    visits = int(result.visits.sum())
    root: dict[str, Any] = {
        "player": state.turn,
        "visits": visits,
        "value": _rounded(result.value),
        "network": served.network,
        "reused": max(0, visits - result.stats["simulations"]),
        "stop": result.stop,
    }
    answer: dict[str, Any] = {"move": state.action_name(best), "moveInfos": moves, "rootInfo": root}
    if query.policy:
        answer["policy"] = {
            state.action_name(int(action)): _rounded(prior)
            for action, prior in zip(result.actions, result.priors, strict=True)
        }
    return answer if query.view is None else katago.renamed(answer, state, query.view)


def _rounded(value: float | np.floating[Any]) -> float:
    return round(float(value), 6)
