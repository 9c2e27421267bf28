"""What the head does with workers, whichever way their messages come: what they play, what it accepts, who did what."""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azpy import _core
from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import Lineup, PlayingNetwork, WorkerState, answers_of, digest_of
from azpy.fleet.table import IdTable
from azpy.settings import Settings

__all__ = ["AtDesk", "Desk", "Tally"]

_MOST_DEATHS, _DEATHS_SECONDS = 3.0, 600.0  # so many in so long without a finished game end the run
_MOST_TOTALS, _MOST_TOTAL = 64, 2**53  # names in a worker's totals, and how much each can be
_MOST_GONE = 256  # workers that are known one by one after their end


@dataclass
class Tally:
    """What the head knows of a worker's work.

    Attributes:
        name: of the worker.
        heard: when it last gave a sign of life, on the head's clock.
        lineup: number of the newest lineup that it plays; 0: none yet.
        stats: the worker's totals, see `SelfPlay.stats`.
        pipelines: and those of all its pipelines together.
        games: of it that counted.
        shape: sums over the games that were leased to this worker first, whoever finished them. The length of a game
            does not decide whose game it is, so equal workers have games of equal shape.
    """

    name: str
    heard: float
    lineup: int = 0
    stats: Counter[str] = field(default_factory=Counter)
    pipelines: Counter[str] = field(default_factory=Counter)
    games: int = 0
    shape: Counter[str] = field(default_factory=Counter)

    def note(self, message: Mapping[str, Any]) -> None:
        """Takes in the totals of a message. Totals never fall.

        Raises:
            RefusedError: they are no totals.
        """
        self.stats = _totals(message["stats"], self.stats)
        self.pipelines = _totals(message["pipelines"], self.pipelines)


class Desk:
    """Where the games of all workers of a run arrive.

    Args:
        settings: of the run.
        start: where its games begin.
        table: of the run's ids.
        clock: seconds from any moment on.

    Attributes:
        lineup: that plays; None before `play`.
        number: of the lineup, from 1 on.
        models: the files of its networks, by SHA-256.
        answers: of the lineup's networks here, see `answers_of`; only in a deterministic run.
        arrived: accepted games that nobody has taken, the oldest first.
        taken: the games of the last `take`; an interrupt may come before the caller has them.
    """

    def __init__(
        self, settings: Settings, start: _core.State, table: IdTable, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._table, self._clock = settings, table, clock
        self._examiner = Examiner(settings, start)
        self.lineup: Lineup | None = None
        self.number = 0
        self.models: dict[str, bytes] = {}
        self.arrived: deque[GameRecord] = deque()
        self.taken: list[GameRecord] = []
        self.answers: list[str | None] = []
        self._deaths: deque[tuple[float, float]] = deque()  # times and weights, since the last finished game
        self._tallies: dict[str, Tally] = {}  # of the workers that live, and of those that ended last
        self._gone: deque[str] = deque()  # names of the latter
        self._past = Counter[str](), Counter[str]()  # totals of the workers that ended before them
        self._first: dict[int, str] = {}  # id -> the worker to which it was leased first

    def play(self, lineup: Lineup) -> None:
        """Takes note of a new lineup. In a deterministic run all games of the lineup before are done."""
        self.lineup, self.number = lineup, self.number + 1
        self._examiner.play(lineup)
        networks = (lineup.network, *lineup.opponents)
        named = {_named(network)["sha256"]: network.model for network in networks}
        self.models = {sha256: model for sha256, model in named.items() if sha256 is not None and model is not None}
        if self._settings.deterministic:
            self._first.clear()
            self.answers = [answers_of(one.evaluators[0]) for one in _distinct(networks)]

    @property
    def message(self) -> dict[str, Any]:
        """The lineup as a worker is told of it; see `Player.play`."""
        if self.lineup is None:
            raise RuntimeError("nothing was told to play yet")
        network, *opponents = map(_named, (self.lineup.network, *self.lineup.opponents))
        search = {"resign_below": self.lineup.resign_below, "simulations": self.lineup.simulations}
        return {"network": network, "opponents": opponents, **search}

    def tally(self, name: str) -> Tally:
        """What is known of a worker; a new tally for a new name."""
        return self._tallies.setdefault(name, Tally(name, self._clock()))

    def forget(self, name: str) -> None:
        """Takes note of a worker's end. Its totals count on; of many dead workers only the last ones stay known."""
        if name in self._tallies:
            self._gone.append(name)
        if len(self._gone) > _MOST_GONE:
            tally = self._tallies.pop(self._gone.popleft())
            self._past = self._past[0] + tally.stats, self._past[1] + tally.pipelines

    def check_answers(self, message: Mapping[str, Any]) -> None:
        """In a deterministic run a worker's networks must give the same bits as those here.

        Raises:
            RefusedError: they do not, or may not for other batches.
        """
        if not self._settings.deterministic:
            return
        if message["row_exact"] is not True:
            raise RefusedError("its network's answer to a position depends on what else is in its batch")
        if message["answers"] != self.answers:
            raise RefusedError("its network gives other bits than the network here")

    def handed(self, name: str, ranges: Iterable[range]) -> None:
        """Takes note of ids that were leased to a worker."""
        self.tally(name)
        for ids in ranges:
            for game in ids:
                if not self._table.is_done(game):  # it may have been done before the head saw the claim
                    self._first.setdefault(game, name)

    def accept(self, name: str, frame: bytes, *, copies: bool = False, before: bool = False) -> int:
        """Examines the games of a worker; those that are new arrive.

        Args:
            name: of the worker.
            frame: of the journal, with its games.
            copies: all games that the worker can have are done, so that a new game is none of this lineup.
            before: the worker has its ids from a head before this one.

        Returns:
            How many of them are new.

        Raises:
            RefusedError: something that is no game of this run.
            RunError: two results of one game differ in a deterministic run.
        """
        new = 0
        for record in self._examiner.games_in(frame):
            if not self._table.is_done(record.game_id):
                if copies:
                    continue
                if not self._table.was_leased(record.game_id, before=before):
                    raise RefusedError(f"game {record.game_id} was not given to any worker")
                self._examiner.look_at(record)
            if self._table.accept(name, record.game_id, digest_of(record), before=before):
                self.arrived.append(record)
                self._deaths.clear()
                new += 1
                self.tally(name).games += 1
                if (first := self._tallies.get(self._first.pop(record.game_id, name))) is not None:
                    first.shape.update(_shape(record))
        return new

    def take(self, most: int) -> list[GameRecord]:
        """The oldest arrived games, `most` at most."""
        self.taken = [self.arrived.popleft() for _ in range(min(most, len(self.arrived)))]
        return self.taken

    @property
    def has_enough(self) -> bool:
        """Whether as many games have arrived as the caller needs for a while; the next network is to play the rest."""
        return len(self.arrived) >= self._settings.slots

    def note_death(self, why: str, weight: float = 1.0) -> None:
        """Counts a worker that ended.

        Args:
            why: it did.
            weight: 1 for its own fault, 0 for none.

        Raises:
            RunError: too many did since a game was finished.
        """
        now = self._clock()
        self._deaths.append((now, weight))
        while now - self._deaths[0][0] > _DEATHS_SECONDS:
            self._deaths.popleft()
        if sum(weight for _, weight in self._deaths) >= _MOST_DEATHS:
            raise RunError(f"{len(self._deaths)} workers ended and no game was finished; the last one: {why}")

    @property
    def stats(self) -> Counter[str]:
        """Totals of all workers. They are as old as the last message of each."""
        return sum((tally.stats for tally in self._tallies.values()), self._past[0])

    @property
    def pipeline_stats(self) -> list[Counter[str]]:
        """One entry for all pipelines together."""
        return [sum((tally.pipelines for tally in self._tallies.values()), self._past[1])]

    def states(self, alive: Iterable[str]) -> list[WorkerState]:
        """The workers as `Fleet.workers` shows them; `alive` are the names of those that may still play."""
        now, living = self._clock(), set(alive)
        return [
            WorkerState(
                name=tally.name,
                alive=tally.name in living,
                held=self._table.held(tally.name),
                behind=self.number - tally.lineup if tally.lineup else None,
                silent=now - tally.heard,
                games=tally.games,
                stats=Counter(tally.stats),
                shape=Counter(tally.shape),
            )
            for tally in self._tallies.values()
        ]


class AtDesk:
    """A `Fleet` whose games arrive at a desk."""

    longest = plies = 0
    begun: Sequence[GameRecord] = ()
    unfinished: Sequence[GameRecord] = ()
    _desk: Desk

    @property
    def stats(self) -> Counter[str]:
        """See `Fleet`. They are as old as the last message of each worker."""
        return self._desk.stats

    @property
    def pipeline_stats(self) -> list[Counter[str]]:
        """See `Fleet`: one entry for all pipelines together."""
        return self._desk.pipeline_stats


def _shape(record: GameRecord) -> dict[str, float]:
    """What a game adds to `Tally.shape`: `plies`, and the first player's `score` from 0 to 1, with their squares."""
    plies, score = float(len(record)), (record.outcome + 1) / 2
    figures = {"plies": plies, "plies_squared": plies * plies, "score": score, "score_squared": score * score}
    return figures | {"games": 1.0, "draws": float(record.outcome == 0)}


def _totals(given: Any, before: Counter[str]) -> Counter[str]:
    if not isinstance(given, dict) or len(given.keys() | before.keys()) > _MOST_TOTALS:
        raise RefusedError("its totals are no table of numbers")
    for value in given.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= _MOST_TOTAL):
            raise RefusedError(f"one of its totals is {str(value)[:80]}")
    return before | Counter[str](given)


def _distinct(networks: Iterable[PlayingNetwork]) -> list[PlayingNetwork]:
    """Each network once, in the order in which a worker opens them."""
    return list({(network.model, network.precision): network for network in networks}.values())


def _named(network: PlayingNetwork) -> dict[str, str | None]:
    """What a message calls a network."""
    sha256 = None if network.model is None else hashlib.sha256(network.model).hexdigest()
    return {"sha256": sha256, "precision": network.precision}
