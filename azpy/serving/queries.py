"""Analysis queries of one client: positions to search, and what the searches found.

The transport is not known here: `Analyst.take` gets a message, and `say` is called with lines of JSON. The core reads
the fields, plays the moves and writes the answers: `rust/serve`, which takes and gives KataGo's names for Go too.
"""

import contextlib
import json
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import azpy
from azpy import _core
from azpy.errors import RequestError, one_line
from azpy.pending import Pending
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model, Served, chosen
from azpy.serving.track import Track

_MOST_WARNINGS = 100  # of a client


class Reply(NamedTuple):
    """What a client is told, and what its transport must know of it.

    Attributes:
        line: JSON.
        status: of a POST that it answers: 200; 400 for what is wrong; 503 if too many searches are open.
        search: the query's id and the turn that it is about; None for no search.
        is_report: whether this search goes on.
    """

    line: str
    status: int = 200
    search: tuple[str, int] | None = None
    is_report: bool = False

    @staticmethod
    def refusal(said: str) -> "Reply":
        """The answer to what is no message."""
        return Reply(_json({"error": said}), 400)

    @staticmethod
    def later(identity: str, said: str) -> "Reply":
        """The answer to a message that is not taken now."""
        return Reply(_json({"id": identity, "retryAfter": 1, "error": said}), 503)


@dataclass
class _Open:
    """A search that goes on."""

    query: _core.Query
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
        say: Callable[[Reply], object],
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

    def take(self, message: _core.Message) -> None:
        """Take a query or an action. Each answer, and each error, is said; nothing is raised."""
        if self._closed:
            return
        identity = None
        try:
            identity = message.id
            if (action := message.action(self._renews)) is None:
                self._search(message)
            else:
                self._act(action, message)
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

    def _act(self, action: str, message: _core.Message) -> None:
        said: dict[str, Any] = {}
        match action:
            case "query_version":
                said = {"version": azpy.__version__, "git_hash": ""}
            case "query_models":
                said = {"models": [about(name, model.served, self._limits) for name, model in self._models.items()]}
            case "renew":
                model = self._model(message)
                said = {"changed": model.renew()}
                said |= {"internalName": model.served.name, "network": model.served.network}
            case "terminate" | "terminate_all":
                self._terminate(message)
                echoed = ((name, message.get(name)) for name in ("terminateId", "turnNumbers"))
                said = {name: value for name, value in echoed if value is not None}
            case _:
                tell = {"show": message.show, "read": message.read, "write": message.write}[action]
                self._say(Reply(tell(self._model(message).served, self._limits)))
                return
        self._say(Reply(_json({"id": message.id, "action": action} | said)))

    def _terminate(self, message: _core.Message) -> None:
        """Has searches answer with what they know: those of one query, or all."""
        wanted, listed = message.terminated(self._limits)
        turns = None if listed is None else set(listed)
        with self._changed:
            found = [
                one.pending
                for one in self._open.values()
                if wanted in (None, one.query.id) and (turns is None or one.query.turn in turns)
            ]
        for pending in found:
            if pending is not None:
                pending.stop()

    def _search(self, message: _core.Message) -> None:
        model = self._model(message)
        served = model.served
        queries = message.queries(served, self._limits)
        is_level = (level := queries[0].level) is not None
        if level is not None:
            served = replace(served, temperature=list(served.ladder.levels.values())[level].temperature)
        fresh = [said for said in queries[0].ignored if said not in self._warned]
        fresh = fresh[: _MOST_WARNINGS - len(self._warned)]
        self._warned.update(fresh)
        for query in queries:
            if self._closed:
                return
            query.warnings = fresh
            try:
                self._begin(query, model, served, is_level)
            except Exception as error:
                self._fail(query.id, error, query.turn, is_roll=query.state.turn == azpy.CHANCE)

    def _begin(self, query: _core.Query, model: Model, served: Served, anew: bool) -> None:
        if (line := query.end()) is not None:
            self._say(Reply(line, search=(query.id, query.turn)))
            return
        one = _Open(query, served)
        options: dict[str, Any] = {"actions": query.actions(), "priority": query.priority}
        options |= {"standard_errors": query.bounds, "report_every": query.report_every}
        if query.report_every is not None:
            options["on_report"] = partial(self._report, one)
        with self._changed:
            if len(self._open) >= self._limits.searches:
                raise queue.Full(f"{self._limits.searches} searches of this client are open: wait for an answer")
            self._open[id(one)] = one
        try:
            one.pending = self._submit(query, model, anew, options)
        except BaseException:
            self._forget(one)
            raise
        if self._closed:  # by another thread, before the search was known
            one.pending.cancel()
        one.pending.add_done_callback(lambda pending: self._done(one, pending))

    def _submit(self, query: _core.Query, model: Model, anew: bool, options: dict[str, Any]) -> Pending:
        """Begins the search of a query."""
        options |= {"simulations": query.simulations, "seconds": query.seconds}
        while True:
            engine = model.engine
            try:
                if query.game is None or anew:
                    return engine.submit(query.state, **options)
                return self._track(model, query.game).follow(query.start, query.played).search(**options)
            except RuntimeError:  # a closed engine
                if model.engine is engine:
                    raise

    def _track(self, model: Model, game: str) -> Track:
        """The game of this name, whose tree is kept while the player keeps its engine."""
        key = (id(model), game)
        with self._changed:
            track = self._games.pop(key, None)
            if track is None or track.engine is not model.engine:
                track = Track(model.engine)
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
                self._fail(one.query.id, RequestError("the search was cancelled: the engine ends"), one.query.turn)
            elif (error := pending.exception()) is not None:
                self._fail(one.query.id, error, one.query.turn)
            else:
                self._answered(time.monotonic() - one.began)
                self._tell(one, pending.result(), False)
        except Exception as error:  # a game in Python may fail to name an action
            self._fail(one.query.id, error, one.query.turn)
        finally:
            self._forget(one)

    def _forget(self, one: _Open) -> None:
        with self._changed:
            self._open.pop(id(one), None)
            self._changed.notify_all()
        # The pending's callback knows `one`. In a circle the result and its tree would wait for garbage collection.
        one.pending = None

    def _tell(self, one: _Open, result: _core.SearchResult, during: bool) -> None:
        best = chosen(one.served, one.query.state, result)
        line = one.query.answer(result, best, one.served.network, during)
        self._say(Reply(line, search=(one.query.id, one.query.turn), is_report=during))

    def _fail(self, identity: str | None, error: BaseException, turn: int | None = None, is_roll: bool = False) -> None:
        is_full = isinstance(error, queue.Full)
        said = {"id": identity, "turnNumber": turn, "retryAfter": 1 if is_full else None, "error": one_line(error)}
        said["isRollDue"] = is_roll or None
        line = _json({name: value for name, value in said.items() if value is not None})
        search = None if identity is None or turn is None else (identity, turn)
        self._say(Reply(line, 503 if is_full else 400, search))

    def _model(self, message: _core.Message) -> Model:
        if (name := message.model) is None:
            return next(iter(self._models.values()))
        if name not in self._models:
            raise RequestError(f"model: there is no {name[: _core.LONGEST_NAME]!r}, but {', '.join(self._models)}")
        return self._models[name]


def about(name: str, served: Served, limits: Limits) -> dict[str, Any]:
    """What clients are told of a player: its name for them, what it plays, and what may be asked of it."""
    notation = _core.notation_of(served.start.game)
    return {
        "name": name,
        "internalName": served.name,
        "game": served.start.game,
        "format": None if notation is None else notation.name,
        **({} if served.start.zero_sum else {"numPlayers": served.start.num_players}),
        "sideNames": served.start.side_names,
        "canRotate": served.start.can_rotate and served.start.num_players > 1,
        "network": served.network,
        "simulations": min(served.simulations, limits.simulations),
        "levels": [
            {"name": name, "simulations": level.simulations, "temperature": level.temperature}
            | ({} if served.ladder.network is None else {"elo": round(level.elo)})
            for name, level in served.ladder.levels.items()
        ],
        "ladder": served.ladder.about(served.network),
        "limits": {"simulations": limits.simulations, "seconds": limits.seconds},
    }


def _json(said: Mapping[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":"), allow_nan=False)
