"""Workers at a shared folder (`place.py`), wherever they run: the head leaves tasks there and takes results away.

A worker claims a task by renaming it. A lease ends by the head's clock: after too long without a finished game, or
without a change of the worker's counter. A result stays in the folder until the head has written its games down, so a
head that dies loses none: the next one reads it.
"""

import contextlib
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from azpy import _core
from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.fleet.desk import AtDesk, Desk
from azpy.fleet.examine import RefusedError
from azpy.fleet.fleet import Lineup, WorkerState
from azpy.fleet.place import MOST_SAID, PROTOCOL, Place, Pulse, Sign, as_object, new_name, unseal
from azpy.fleet.table import IdTable
from azpy.fleet.wire import MOST_OF_A_WORKER, unpack
from azpy.runs.storage import disk_errors
from azpy.settings import Settings
from azpy.settings.run import ABOUT

__all__ = ["FOLDER", "FolderFleet", "digest_of_lineup", "digest_of_run"]

FOLDER = "folder:"  # begins the setting `workers`
MOST_OF_A_RESULT = MOST_OF_A_WORKER + MOST_SAID + 64  # bytes
_WAIT = 0.1  # seconds between two looks at the folder
_LOOK_AT_WORKERS = 1.0  # seconds between two looks at what workers say
_SILENT_SECONDS = 120.0  # without a change of its counter end a worker's lease
_TASK_SECONDS = 30.0  # that a task takes
_TASKS_A_WORKER = 2  # that wait
_MOST_WORKERS = 1024  # that are known at once
_MOST_DAMAGED = 3  # results of one worker
_TROUBLE_SECONDS = 600.0  # for which the folder may be out of reach
_NOTICE_SECONDS = 60.0  # between two notices of one trouble
_POOL = "the folder"  # leases the ids of tasks that nobody has claimed


def digest_of_run(settings: Settings) -> str:
    """Tells runs apart whose games differ by more than their networks."""
    names = [name for name, about in ABOUT.items() if about.group in ("search", "self-play") and not about.same_games]
    facts = {name: getattr(settings, name) for name in ("game", "seed", "deterministic", *names)}
    return _digest(facts | {"version": _core.__version__, "protocol": PROTOCOL})


def digest_of_lineup(message: Mapping[str, Any]) -> str:
    """Tells lineups apart by who plays, when players resign, and how long they search."""
    return _digest({name: message[name] for name in ("network", "opponents", "resign_below", "simulations")})


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass
class _Task:
    number: int
    ids: list[range]
    worker: str = ""  # to whom alone it is offered
    written: bool = False

    def name(self, epoch: str) -> str:
        """Of its file."""
        return f"{epoch}-{self.number:08d}" + (f"-{self.worker}" if self.worker else "")


@dataclass
class _Worker:
    key: str  # its name in the folder
    name: str
    pulse: Pulse
    is_here: bool = False  # it has read what this head says
    idle: bool = False
    host: str = "?"
    slots: int = 1
    lineup: int = 0
    damaged: int = 0  # results
    refused: str = ""
    told: set[str] = field(default_factory=set)


class FolderFleet(AtDesk):
    """The workers of a shared folder; see `Fleet`.

    Args:
        settings: of the run.
        start: where its games begin.
        table: of the run's ids.
        path: of the folder; made by `play` if it is not there.
        clock: seconds from any moment on.
        sleep: waits for so many seconds.
    """

    def __init__(
        self,
        settings: Settings,
        start: _core.State,
        table: IdTable,
        path: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.notices: list[str] = []
        self._settings, self._table, self._path, self._clock, self._sleep = settings, table, path, clock, sleep
        self._desk = Desk(settings, start, table, clock)
        self._epoch, self._run = new_name(), digest_of_run(settings)
        self._place: Place | None = None
        self._taken_over = False
        self._workers: dict[str, _Worker] = {}
        self._come = 0  # workers
        self._tasks: dict[int, _Task] = {}  # that nobody has claimed
        self._made = 0  # tasks
        self._networks = set[str]()  # in the folder
        self._before = set[str]()  # those of the lineup before
        self._read: deque[tuple[str, int]] = deque()  # results in the folder, and how many games had arrived by then
        self._given = 0  # games that the caller has taken
        self._looked = -1e9  # at what workers say
        self._playing, self._since = 0.0, clock()  # seconds of play before the last pause; since when it plays
        self._trouble: tuple[float, float] | None = None  # since when the folder is out of reach; the last notice
        self._alone = clock()  # since when there is no worker
        self._lineup = ""  # its digest
        self._rests = False

    # What the loop asks

    def play(self, lineup: Lineup) -> None:
        """See `Fleet`.

        Raises:
            RunError: the folder cannot be used.
        """
        if self._place is None:
            self._open()
        self._acknowledge()
        self._desk.play(lineup)
        self._lineup = digest_of_lineup(self._desk.message)
        self._since = self._clock()
        for one in self._workers.values():  # nobody listened to them while the network was fitted
            self._table.renew(one.name)
        if self._settings.deterministic:  # what is leased are copies of games that are done
            for worker in (_POOL, *(one.name for one in self._workers.values())):
                self._table.release(worker)
            for task in self._tasks.values():
                self._there.delete("open", task.name(self._epoch))
            self._tasks.clear()
        try:
            for sha256 in self._desk.models.keys() - self._networks:
                self._there.write("networks", sha256, self._desk.models[sha256])
                self._networks.add(sha256)
            lineup_facts = {"number": self._desk.number, **self._desk.message}
            self._sign.say(lineup=lineup_facts, answers=self._desk.answers, paused=False)
        except OSError as error:
            raise RunError(f"{self._path} cannot be written: {error.strerror or error}") from error
        kept = self._before | self._desk.models.keys()  # some workers may still open those before
        for sha256 in self._networks - kept:
            self._there.delete("networks", sha256)
        self._networks &= kept
        self._before = set(self._desk.models)

    def take(self, most: int) -> list[GameRecord]:
        """See `Fleet`.

        Raises:
            RunError: another head has taken the folder over, the folder is out of reach, workers end by errors
                again and again, or two results of one game differ in a deterministic run.
        """
        self._acknowledge()
        for wait in (0.0, _WAIT):
            if self._desk.arrived:
                break
            if wait:
                self._sleep(wait)
            self._look()
        found = self._desk.take(most)
        self._given += len(found)
        return found

    def pause(self) -> None:
        """See `Fleet`."""
        self._playing += self._clock() - self._since
        with contextlib.suppress(OSError):
            self._sign.say(paused=True)

    def rest(self) -> list[GameRecord]:
        """See `Fleet`. Workers pause and wait for the next head; what they finish stays in the folder for it."""
        if self._place is None:
            return []
        self._rests = True
        self.pause()
        taken = list(self._desk.taken)
        with contextlib.suppress(OSError, RunError):
            self._read_results()
        return [*taken, *self._desk.arrived]

    def close(self) -> None:
        """See `Fleet`. The workers of a run that has ended end too."""
        if self._place is not None:
            if not self._rests:
                self._acknowledge()
            self._sign.close(paused=True, ended=not self._rests)
            self._place.close()
            self._place = None

    @property
    def workers(self) -> list[WorkerState]:
        """See `Fleet`."""
        return self._desk.states(worker.name for worker in self._workers.values() if worker.is_here)

    # The folder

    @property
    def _there(self) -> Place:
        if self._place is None:
            raise RuntimeError("the folder is closed")
        return self._place

    def _open(self) -> None:
        """Takes the folder over: the tasks of heads before are void.

        Raises:
            RunError: the folder cannot be used; nothing of it stays open.
        """
        place = Place(self._path, make=True)
        try:
            with disk_errors(place.path):
                for part in ("open", "taken", "networks"):  # networks may be damaged
                    for name in place.names(part):
                        place.delete(part, name)
        except BaseException:
            place.close()
            raise
        self._sign = Sign(place, "", "head", self._is_mine)
        self._sign.note(epoch=self._epoch, version=_core.__version__, run=self._run, refused={}, ended=False)
        self._sign.note(settings=asdict(self._settings))
        self._place = place

    def _is_mine(self) -> bool:
        """Whether no other head has taken the folder over."""
        with contextlib.suppress(OSError, ValueError):
            epoch = as_object(self._there.read("", "head", MOST_SAID)).get("epoch")
            self._taken_over = epoch is not None and epoch != self._epoch
        return not self._taken_over

    def _acknowledge(self) -> None:
        """Deletes the results whose games the caller has written down."""
        while self._read and self._read[0][1] <= self._given:
            self._there.delete("results", self._read.popleft()[0])

    def _look(self) -> None:
        """Sees what has changed in the folder, and answers; trouble with the folder may pass."""
        if self._taken_over:
            raise RunError(f"another az-train has taken over {self._path}: give each run a folder of its own")
        now = self._clock()
        try:
            if now - self._looked >= _LOOK_AT_WORKERS:
                self._looked = now
                self._look_at_workers()
            self._see_claims()
            self._read_results()
            self._give_out()
        except OSError as error:
            since, told = self._trouble or (now, -1e9)
            if now - since > _TROUBLE_SECONDS:
                raise RunError(f"{self._path} cannot be used: {error.strerror or error}") from error
            if now - told > _NOTICE_SECONDS:
                self.notices.append(f"{self._path} cannot be used, trying again: {error.strerror or error}")
                told = now
            self._trouble = since, told
        else:
            self._trouble = None

    # Workers

    def _worker(self, key: str) -> _Worker | None:
        if key not in self._workers and len(self._workers) < _MOST_WORKERS:
            self._come += 1
            self._workers[key] = _Worker(key, f"worker {self._come}", Pulse(self._clock))
        return self._workers.get(key)

    def _look_at_workers(self) -> None:
        for key in self._there.names("workers"):
            try:
                said = as_object(self._there.read("workers", key, MOST_SAID))
            except (OSError, ValueError):
                said = {}
            if (worker := self._worker(key)) is not None:
                self._hear(worker, said)
        for worker in list(self._workers.values()):
            if worker.pulse.silent > _SILENT_SECONDS:
                told = worker.is_here or self._table.held(worker.name)
                why = f"gave no sign of life for {_SILENT_SECONDS:.0f} seconds" if told else ""
                self._forget(worker, why)
        self._table.renew(_POOL)
        workers = {worker.name: worker for worker in self._workers.values()}
        for name in self._table.lapsed():
            self._let_go(workers[name])
            seconds = self._table.lease_seconds()
            self.notices.append(f"{name} finished no game in {seconds:.0f} seconds: its games are open again")
        now = self._clock()
        if any(worker.is_here for worker in self._workers.values()):
            self._alone = now
        elif now - self._alone > _NOTICE_SECONDS:
            self._alone = now
            self.notices.append(f"no worker is at {self._path}: start some with az-worker {self._path}")

    def _hear(self, worker: _Worker, said: Mapping[str, Any]) -> None:
        """Takes note of what a worker says; what is not as it should be is not believed."""
        if isinstance(said.get("beat"), int):
            worker.pulse.note(said["beat"])
        if said.get("epoch") != self._epoch:
            return
        tally = self._desk.tally(worker.name)
        tally.heard = worker.pulse.changed
        worker.host = _words(said.get("host"), 64)
        if (ended := said.get("ended")) is not None:
            self._see_claims()  # what it did before it said so
            self._read_results()
            self._forget(worker, f"ended: {_words(ended)}")
            if said.get("failed") is True:
                self._desk.note_death(_words(ended))
            return
        worker.is_here = not worker.refused
        if (
            isinstance(doing := said.get("trouble"), str)
            and doing
            and doing not in worker.told
            and len(worker.told) < 8
        ):
            worker.told.add(doing)
            self.notices.append(f"{worker.name} on {worker.host}: {_words(doing)}")
        slots, lineup = said.get("slots"), said.get("lineup")
        worker.slots = min(max(slots, 1), 1 << 20) if isinstance(slots, int) else 1
        worker.idle = said.get("in_hand") == 0
        if isinstance(lineup, int) and 0 <= lineup <= self._desk.number:
            if lineup > tally.lineup:
                tally.lineup = lineup
                self._table.renew(worker.name)
            worker.lineup = lineup
        with contextlib.suppress(RefusedError, KeyError):
            tally.note(said)

    def _forget(self, worker: _Worker, why: str) -> None:
        """Opens the ids of a worker that is gone, and deletes its file."""
        self._let_go(worker)
        self._desk.forget(worker.name)
        del self._workers[worker.key]
        self._there.delete("workers", worker.key)
        if why:
            self.notices.append(f"{worker.name} on {worker.host} {why}; its games are open again")

    def _let_go(self, worker: _Worker) -> None:
        """Opens the ids of a worker again, and withdraws the tasks that are offered to it alone."""
        self._table.release(worker.name)
        for task in [task for task in self._tasks.values() if task.worker == worker.key]:
            del self._tasks[task.number]
            self._there.delete("open", task.name(self._epoch))

    def _refuse(self, worker: _Worker, why: str) -> None:
        """Ends a worker that sent what is none of this run.

        Raises:
            RunError: too many were refused since a game was finished.
        """
        if worker.refused:
            return
        worker.refused, worker.is_here = why, False
        self._let_go(worker)
        refused = {one.key: one.refused[:300] for one in self._workers.values() if one.refused}
        self._sign.say(refused=refused)
        self.notices.append(f"{worker.name} on {worker.host} is refused: {_words(why)}; its games are open again")
        self._desk.note_death(why)

    # Tasks

    def _see_claims(self) -> None:
        for name in self._there.names("taken"):
            epoch, number, key = name.split("-")
            if epoch == self._epoch and (task := self._tasks.get(int(number))) is not None:
                worker = self._worker(key)
                del self._tasks[task.number]
                ids = [game for part in task.ids for game in part]
                if worker is None or worker.refused:
                    self._give_back(task, ids)
                else:
                    self._table.hand_over(_POOL, worker.name, ids)
                    self._desk.handed(worker.name, task.ids)
                    worker.idle = False
            self._there.delete("taken", name)

    def _give_back(self, task: _Task, ids: list[int]) -> None:
        """Opens the ids of a task again."""
        holder = f"task {task.number}"
        self._table.hand_over(_POOL, holder, ids)
        self._table.release(holder)

    def _give_out(self) -> None:
        here = [worker for worker in self._workers.values() if worker.is_here]
        if here and not self._desk.has_enough:
            size = self._games_of_a_task(len(here))
            most = sum(worker.slots + _TASKS_A_WORKER * size for worker in here)
            held = sum(self._table.held(name) for name in (_POOL, *(worker.name for worker in here)))
            shared = sum(not task.worker for task in self._tasks.values())
            while shared < _TASKS_A_WORKER * len(here) and held < most:
                ranges = self._table.lease(_POOL, size)
                if not ranges:
                    break
                self._make_task(ranges)
                shared, held = shared + 1, held + sum(map(len, ranges))
            offered = {task.worker for task in self._tasks.values()}
            for worker in here if not shared else ():
                if worker.idle and worker.key not in offered and not self._table.held(worker.name):
                    ranges = self._table.lease_twice(worker.name, size)
                    if ranges:
                        self._make_task(ranges, worker.key)
        for task in self._tasks.values():
            if not task.written:
                facts = {"lineup": self._desk.number, "ids": [[ids.start, len(ids)] for ids in task.ids]}
                self._there.write("open", task.name(self._epoch), json.dumps(facts).encode())
                task.written = True

    def _make_task(self, ranges: list[range], worker: str = "") -> None:
        self._made += 1
        self._tasks[self._made] = _Task(self._made, ranges, worker)

    def _games_of_a_task(self, workers: int) -> int:
        """As many as a worker plays in half a minute; few where few are left, so that all workers have some."""
        seconds = self._playing + self._clock() - self._since
        usual = self._settings.slots // 4
        if self._given:
            usual = round(_TASK_SECONDS * self._given / workers / max(seconds, 1e-3))
        left = -(-self._table.num_open // (_TASKS_A_WORKER * workers))
        return max(1, min(usual, self._settings.slots, left))

    # Results

    def _read_results(self) -> None:
        known = {name for name, _ in self._read}
        for name in self._there.names("results"):
            if self._desk.has_enough:
                return
            if name not in known and (worker := self._worker(name.partition("-")[0])) is not None:
                self._read_result(worker, name)
                self._read.append((name, self._given + len(self._desk.arrived)))

    def _read_result(self, worker: _Worker, name: str) -> None:
        if worker.refused:
            return
        try:
            data = unseal(self._there.read("results", name, MOST_OF_A_RESULT))
        except FileNotFoundError:
            return
        except (ValueError, PermissionError) as error:  # a disk may have done it: the worker itself may be sound
            worker.damaged += 1
            self._let_go(worker)
            self.notices.append(f"a result of {worker.name} is damaged and was dropped: {error}")
            if worker.damaged >= _MOST_DAMAGED:
                self._refuse(worker, f"{worker.damaged} of its results were damaged; the last one: {error}")
            return
        current = False
        try:
            said, frame = unpack(data, MOST_OF_A_WORKER)
            current = said["epoch"] == self._epoch
            if said["run"] != self._run:
                raise RefusedError("it sends games of another run")
            if self._settings.deterministic:
                if said["lineup"] != self._lineup:
                    return  # copies of games of an iteration before
                self._desk.check_answers(said)
            if current:
                self._desk.tally(worker.name).note(said)
            self._desk.accept(worker.name, frame, before=not current)
        except (ValueError, KeyError, TypeError) as error:
            if current:
                self._refuse(worker, str(error))
            # Else it is left over from another run, or names a network that plays no more.


def _words(text: object, most: int = 300) -> str:
    """Text from elsewhere, for a user's screen."""
    shown = "".join(letter if letter.isprintable() else " " for letter in str(text)[:most])
    return " ".join(shown.split())
