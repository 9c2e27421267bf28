"""Workers that are actors of Ray, on the nodes of a cluster or on this machine.

Each call of an actor carries the messages of `wire` to it, and brings back what it has said. Ray starts an actor that
died once more, with nothing in it, and repeats no call: the head begins anew with the actor, and gives the missing ids
out again. Weights lie in Ray's object store, each network once; a node with several actors fetches them once.
"""

import contextlib
import math
import os
import queue
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from azpy import _core
from azpy.errors import MissingPackageError, RunError, SettingsError, one_line, pip_install
from azpy.fleet.child import Inbox
from azpy.fleet.remote import ANSWER_SECONDS, RemoteFleet, RemoteWorker
from azpy.fleet.table import IdTable
from azpy.fleet.wire import MOST_OF_A_HEAD, MOST_OF_A_PART, MOST_OF_A_WORKER, Unpacker, pack
from azpy.fleet.worker import Worker
from azpy.games.names import must_be_typed
from azpy.games.openspiel import PREFIX
from azpy.machine import usable_cores
from azpy.settings import Settings

__all__ = ["Place", "RayFleet", "RayPlayer", "environment", "places_of", "settings_of_actor"]

CPUS_OF_ACTOR = 8  # of a node with more: its death costs few games, and the games of one process share a cache
_POLL = 0.25  # seconds that an actor waits for something to say
_LOOK_SECONDS = 2.0  # between two looks at the cluster's nodes
_GET_SECONDS = 60.0  # to fetch an answer that is there
_CONNECT_SECONDS = 5.0  # for a cluster to take a connection
_MISSED_SECONDS = 20.0  # of play without a connection to the head node; Ray ends this process after a minute
_STORED = 4  # networks in the object store, besides those that play
_STORE_BYTES = 512 << 20  # of a Ray that this process starts: some networks
_MOST_OF_A_REPLY = MOST_OF_A_WORKER + (1 << 23)  # bytes: two parts of games, and what is said with each
_MOST_WORDS = 200  # letters of an error of Ray's
_ENDED = {"said": "ended"}  # the last message of an actor's worker
_LOST = {"said": "lost"}  # an actor's answer to a head whose worker it does not have


class RayPlayer:
    """The actor: a worker at the other end of Ray's calls. Ray imports it from the azpy that its node has."""

    def __init__(self) -> None:
        self._name = ""  # of the worker
        self._inbox: Inbox = queue.SimpleQueue()
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def exchange(self, name: str, stream: bytes, seconds: float, *models: bytes) -> bytes:
        """Takes messages to the worker, and returns what it has said.

        Args:
            name: of the worker.
            stream: packed messages; the first one of a worker is `begin`.
            seconds: to wait for something to say.
            models: the bytes of the messages `model`, in their order.
        """
        messages, bodies = list(Unpacker(MOST_OF_A_HEAD).feed(stream)), iter(models)
        if messages and messages[0][0]["do"] == "begin":
            self._begin(name)
        elif name != self._name:
            return pack(_LOST)
        for message, body in messages:
            self._inbox.put((message, next(bodies) if message["do"] == "model" else body))
        parts, size = list[bytes](), 0
        with contextlib.suppress(queue.Empty):
            while size < MOST_OF_A_PART:
                parts.append(self._said.get(timeout=seconds) if seconds and not parts else self._said.get_nowait())
                size += len(parts[-1])
        return b"".join(parts)

    def _begin(self, name: str) -> None:
        """Lets go of the worker before, whose head has given it up."""
        self._inbox.put(({"do": "stop"}, b""))
        self._name, self._inbox, self._said = name, queue.SimpleQueue(), queue.SimpleQueue()
        inbox, said = self._inbox, self._said

        def work() -> None:
            Worker(inbox, said.put).run()
            said.put(pack(_ENDED))

        threading.Thread(target=work, daemon=True, name=name).start()


class Place(NamedTuple):
    """Where an actor plays, and what it has there."""

    node: str  # Ray's id
    number: int  # of the node's actors, from 0 on
    address: str  # of the node
    cpus: int
    gpus: int


def places_of(nodes: Iterable[Mapping[str, Any]], gpus: bool, most_cpus: int) -> list[Place]:
    """One place for each GPU, or one for every `most_cpus` CPUs of a node, and one for the rest of them.

    Args:
        nodes: as `ray.nodes()` describes them.
        gpus: the network plays on GPUs.
        most_cpus: of an actor without a GPU.
    """
    found = []
    for node in nodes:
        if not node["Alive"]:
            continue
        cpus, devices = int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0))
        count = devices if gpus else -(-cpus // most_cpus)
        each = (cpus // max(count, 1), int(gpus))
        found += [Place(node["NodeID"], number, node["NodeManagerAddress"], *each) for number in range(count)]
    return found


def settings_of_actor(settings: Settings, place: Place, actors: int) -> Settings:
    """An actor's part of the run's settings: all slots, but no more than half of an iteration's games in all actors."""
    pipelines = settings.pipelines if place.gpus else max(1, min(place.cpus, settings.slots))
    share = settings.games_per_iteration // (2 * max(actors, 1))
    return replace(
        settings,
        workers=0,
        slots=max(pipelines, min(settings.slots, share)),
        pipelines=pipelines,
        # Without a GPU each pipeline grows its own trees, see `threads_of_trees`.
        threads=settings.threads or (max(1, place.cpus) if place.gpus else 1),
        device="cuda" if place.gpus else "cpu",
        devices=None,
        precision="fp32",  # each network comes with its own
    )


class _Worker(RemoteWorker):
    """An actor that plays; see `RemoteWorker`. An actor that Ray started anew is another worker."""

    def __init__(self, name: str, settings: Settings, place: Place, fleet: "RayFleet", is_new: bool) -> None:
        super().__init__(name, settings)
        self.place, self._fleet = place, fleet
        self.is_new = is_new  # the user hears of it, once it answers: a dead node looks alive for some seconds
        self.calls: deque[Any] = deque()  # on their way, in order
        self.answered = False
        self._out, self._models = bytearray(), list[Any]()  # not sent yet

    def say(self, message: dict[str, Any], body: bytes = b"") -> None:
        """See `RemoteWorker`."""
        if message["do"] == "model":
            self._models.append(self._fleet.stored(message["sha256"], body))
            body = b""
        self._out += pack(message, body)

    def flush(self) -> None:
        """See `RemoteWorker`."""
        if self._out:
            self.ask(0.0)

    def ask(self, seconds: float) -> None:
        """Sends what is queued, and asks what the actor has to say; it may wait so long for something."""
        exchange = self._fleet.actors[self.place].exchange
        self.calls.append(exchange.remote(self.name, bytes(self._out), seconds, *self._models))
        self._out, self._models = bytearray(), []

    def end(self, seconds: float = 0.0) -> str:
        """See `RemoteWorker`. Ray starts the actor anew."""
        if seconds == 0.0 and self.place in self._fleet.actors:
            self._fleet.ray.kill(self._fleet.actors[self.place], no_restart=False)
        return "it is gone"


class RayFleet(RemoteFleet[_Worker]):
    """Actors of Ray; see `RemoteFleet`.

    They are on the cluster at RAY_ADDRESS, or on this machine, where this process starts Ray. Actors follow the
    cluster's nodes: a new node gets actors, and the ids of a node that is gone are open again.

    Raises:
        MissingPackageError: Ray is not installed.
        SettingsError: RAY_ADDRESS asks for Ray's client mode.
    """

    def __init__(
        self,
        settings: Settings,
        start: _core.State,
        table: IdTable,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(settings, start, table, clock)
        self._address = os.environ.get("RAY_ADDRESS", "").strip()
        if self._address == "local":
            self._address = ""
        if "://" in self._address:
            raise SettingsError(
                f"RAY_ADDRESS is {self._address}: Ray's client mode cannot carry games; start az-train on a node of "
                "the cluster, and give HOST:PORT or auto"
            )
        self.ray: Any = _import_ray()
        self.actors: dict[Place, Any] = {}
        self._stored: dict[str, Any] = {}  # by sha256
        self._connected = self._gpus = False
        self._places: list[Place] = []
        self._looked = -math.inf  # when the nodes were looked at last
        self._head_node, self._missed = "auto", 0.0  # its address; seconds of play since it took a connection
        self._answered = 0.0  # when an actor last had something to say
        python = must_be_typed(settings.game) or settings.game.startswith(PREFIX)
        self._most_cpus = 1 if python else CPUS_OF_ACTOR  # Python's lock lets one thread at a time play such a game

    @property
    def _where(self) -> str:
        return f"Ray at RAY_ADDRESS={self._address}" if self._address else "Ray on this machine"

    def stored(self, sha256: str, model: bytes) -> Any:
        """The network's place in the object store; it is put there once."""
        self._stored[sha256] = self._stored.pop(sha256, None) or self.ray.put(model)
        return self._stored[sha256]

    def _fill(self) -> None:
        self._answered = self._clock()  # nobody was asked while the network was fitted
        if not self._connected:
            self._connect()
        while len(self._stored) > len(self._desk.models) + _STORED:
            del self._stored[next(iter(self._stored))]
        self._look()

    def _connect(self) -> None:
        """Connects to the cluster, or starts Ray here.

        Raises:
            RunError: there is no cluster at RAY_ADDRESS, it does not let this process in, or Ray does not start.
        """
        where = self._where
        options: dict[str, Any] = {"address": self._address or "local"}
        if self._address:
            _refuse_nobody(self._address, where)
            paths = [str(Path(__file__).parents[2])]
        else:
            options |= {"num_cpus": usable_cores(), "include_dashboard": False, "object_store_memory": _STORE_BYTES}
            # The head's own path of modules: a game's module is found in the same place.
            paths = [folder or str(Path.cwd()) for folder in sys.path]
        try:
            # With a path, actors are imported from the node's own packages; without one, Ray would send their code.
            config = self.ray.job_config.JobConfig(code_search_path=paths)
            # No public setting keeps Ray from printing a page for each actor that dies.
            self.ray._private.worker._worker_logs_enabled = False
            at_sigterm = signal.getsignal(signal.SIGTERM)
            self.ray.init(job_config=config, log_to_driver=False, logging_level="CRITICAL", **options)
            if signal.getsignal(signal.SIGTERM) is not at_sigterm:  # Ray's handler exits with code 15
                signal.signal(signal.SIGTERM, at_sigterm)
        except Exception as error:  # Ray's errors share no base
            raise RunError(f"{where}: {_why_not(error, self._address)}") from error
        self._connected, self._head_node = True, self.ray.get_runtime_context().gcs_address
        self._gpus = self._devices[0].startswith("cuda") and self.ray.cluster_resources().get("GPU", 0) >= 1
        self._look()
        each = "GPU" if self._gpus else f"{self._most_cpus} CPUs of a node" if self._most_cpus > 1 else "CPU"
        nodes = len({place.node for place in self._places})
        counted = f"{_count(len(self._places), 'worker')} on {_count(nodes, 'node')}"
        self.notices.append(f"{where}: {counted}, one for each {each}")

    def _look(self) -> None:
        """Looks at the nodes: begins with actors that do not play, and lets go of those whose node is gone.

        Raises:
            RunError: the cluster's head node is gone.
        """
        first, before, self._looked = not self._places, self._looked, self._clock()
        try:
            _refuse_nobody(self._head_node, self._where)
            self._missed = 0.0
        except RunError as error:
            # Nobody looks while a network is fitted: one look counts for so many seconds at most.
            self._missed += min(self._looked - before, _LOOK_SECONDS + _CONNECT_SECONDS)
            if self._missed < _MISSED_SECONDS:
                return
            again = "start Ray again, and give the same command" if self._address else "give the same command again"
            raise RunError(f"{self._where}: its head node is gone; {again}") from error
        self._places = places_of(self.ray.nodes(), self._gpus, self._most_cpus)
        for worker in [worker for worker in self._workers if worker.place not in self._places]:
            self._bury(worker, f"its node {worker.place.address} is gone", math.inf, weight=0.0)
        for place in self.actors.keys() - set(self._places):
            self.ray.kill(self.actors.pop(place))
        busy = {worker.place for worker in self._workers}
        for place in self._places:
            if place not in busy:
                self._start(place, is_new=not first)

    def _start(self, place: Place, *, is_new: bool) -> None:
        if place not in self.actors:
            here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place.node, soft=False)
            options = {"num_cpus": place.cpus, "num_gpus": place.gpus, "max_restarts": -1, "max_task_retries": 0}
            self.actors[place] = self.ray.remote(RayPlayer).options(scheduling_strategy=here, **options).remote()
        settings = settings_of_actor(self._settings, place, len(self._places))
        worker = _Worker(self._next_name(), settings, place, self, is_new)
        self._begin(worker)
        worker.asked_since = math.inf  # an actor may wait for its node's CPUs

    def _replace(self, worker: _Worker) -> str:
        return ""  # `_look` begins anew with its place, if the node is there

    def _exchange(self, seconds: float) -> None:
        if not self._connected:
            return
        if not self._resting and self._clock() - self._looked > _LOOK_SECONDS:
            self._look()
        if any(worker.answered for worker in self._workers):
            self._answered = max(self._answered, self._looked)
        elif self._clock() - self._answered > ANSWER_SECONDS:
            raise RunError(
                f"no worker of Ray answered in {ANSWER_SECONDS:.0f} seconds: install azpy {_core.__version__} and the "
                "game on each node; `ray status` shows the nodes"
            )
        for worker in self._workers:
            worker.flush()
            if not worker.calls:
                worker.ask(_POLL)
        calls = {worker.calls[0]: worker for worker in self._workers}
        if not calls:
            time.sleep(seconds)
            return
        ready, _ = self.ray.wait([*calls], num_returns=1, timeout=seconds, fetch_local=False)
        if ready:
            ready, _ = self.ray.wait([*calls], num_returns=len(calls), timeout=0, fetch_local=False)
        for call in ready:
            self._receive(calls[call])

    def _receive(self, worker: _Worker) -> None:
        errors = self.ray.exceptions
        try:
            reply = self.ray.get(worker.calls.popleft(), timeout=_GET_SECONDS)
            if len(reply) > _MOST_OF_A_REPLY:
                raise ValueError(f"it sent {len(reply):,} bytes at once, expected {_MOST_OF_A_REPLY:,} at most")
            if not worker.answered:
                worker.answered, worker.asked_since = True, self._clock()
                if worker.is_new:
                    self.notices.append(f"{worker.name} begins on node {worker.place.address}")
            if reply.endswith(pack(_LOST)):
                self._lose(worker, "Ray started its actor anew")
                return
            self._read(worker, reply)
            if reply.endswith(pack(_ENDED)):
                self._bury(worker, "", math.inf)
        except errors.ActorDiedError as error:
            self.actors.pop(worker.place, None)
            self._lose(worker, self._why(error))
        except errors.ActorUnschedulableError:
            # Its node is dead, and for a moment `ray.nodes` says otherwise: a look later begins anew.
            self._lose(worker, "its node is gone")
            self.actors.pop(worker.place, None)
        except (errors.ActorUnavailableError, errors.ObjectLostError, errors.NodeDiedError) as error:
            self._lose(worker, self._why(error))
        except (errors.RayError, ValueError, KeyError, TypeError, AttributeError) as error:  # it says nonsense
            self._bury(worker, self._why(error))

    def _why(self, error: Exception) -> str:
        """Why an actor gave no answer, in a few words where Ray has hundreds."""
        errors, said = self.ray.exceptions, str(error)
        if "low on memory" in said:
            return "Ray ended it because its node was low on memory: use a node with more, or fewer --slots"
        if isinstance(error, errors.NodeDiedError) or "node has died" in said:
            return "its node died"
        if isinstance(error, errors.ActorDiedError):
            return "its process died"
        if isinstance(error, errors.ActorUnavailableError):
            return "it cannot be reached"
        if isinstance(error, errors.ObjectLostError):
            return "its answer was lost"
        own = getattr(error, "cause", None)  # an exception of the actor's own code
        return (one_line(error) if own is None else f"{type(own).__name__}: {one_line(own)}")[:_MOST_WORDS]

    def _lose(self, worker: _Worker, why: str) -> None:
        """Gives up a worker whose actor is gone. All actors of a node may go at once, which is no worker's fault."""
        if worker.answered:
            self._bury(worker, why, math.inf, weight=1 / max(1, len(self._places)))
        elif worker.place in self.actors:  # Ray is still starting it
            self._forget(worker)
        else:
            self._look()
            gone = worker.place not in self._places
            self._bury(worker, why, math.inf, weight=0.0 if gone else 1.0)

    def rest(self) -> list[_core.GameRecord]:
        """See `Fleet`. It waits for the workers, ten seconds at most."""
        for worker in [worker for worker in self._workers if not worker.answered]:
            self._forget(worker)
        return super().rest()

    def close(self) -> None:
        """See `Fleet`. A Ray that this process started ends too."""
        self._workers.clear()
        if self._connected:
            self._connected = False
            self.actors.clear()
            self.ray.shutdown()  # ends this process's actors


def environment() -> dict[str, str]:
    """What az-train puts into the environment, where the user says nothing else, before Ray is imported.

    Ray reports no usage. A Ray that starts here is on the loopback, and lets in only who has its token.
    """
    found = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "error", "RAY_NUM_REDIS_GET_RETRIES": "1"}
    if os.environ.get("RAY_ADDRESS", "").strip() in ("", "local"):
        found |= {"RAY_AUTH_MODE": "token", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            found["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    return found


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" + "s" * (number != 1)


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
        import ray.job_config
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingPackageError(f"ray is not installed: {pip_install('ray')}") from error
    return ray


def _why_not(error: Exception, address: str) -> str:
    """Why Ray does not begin, and what to do, in a few words where Ray has hundreds."""
    said = one_line(error)
    if versions := re.search(r"Ray: (\S+) Python: (\S+) .* Ray: (\S+) Python: (\S+)", said):
        has, here = (f"Ray {versions[at]} and Python {versions[at + 1]}" for at in (1, 3))
        return f"the cluster has {has}, here are {here}: install the same ones"
    if "AuthenticationError" in f"{type(error).__name__} {error.__cause__}":
        return (
            "the cluster lets in only who has its token: set RAY_AUTH_MODE=token, and copy the token to "
            "~/.ray/auth_token or into RAY_AUTH_TOKEN"
        )
    if "Could not find any running Ray" in said:
        return "no cluster runs on this machine: start one with `ray start --head`, or give HOST:PORT"
    if "Found multiple active Ray" in said:
        return "several clusters run on this machine: give HOST:PORT of one"
    look = "see `ray status`" if address else "its logs are in /tmp/ray/session_latest/logs"
    return f"{said[:_MOST_WORDS].strip()}: {look}"


def _refuse_nobody(address: str, where: str) -> None:
    """Raises a `RunError` where nothing takes connections: Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except ValueError:
        raise RunError(f"{where}: expected HOST:PORT, or auto for the cluster of this machine") from None
    except OSError as error:
        raise RunError(f"{where}: nobody answers there ({error}); start it with `ray start --head`") from error
