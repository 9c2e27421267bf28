"""Workers that are actors of Ray, on the nodes of a cluster or on this machine.

Each call of an actor carries the messages of `wire` to it, and brings back what it has said. Ray repeats no call and
starts no actor again: the head begins anew with another one. Networks lie in Ray's object store, each once; a node with
several actors fetches them once.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from azpy import _core
from azpy.devices import Device
from azpy.errors import MissingPackageError, RunError, SettingsError, one_line, pip_install
from azpy.fleet.channels import Backend, Channel, Message, part_of
from azpy.fleet.wire import MOST_OF_A_PART, Inbox
from azpy.fleet.worker import Worker
from azpy.games.names import must_be_typed
from azpy.games.openspiel import PREFIX
from azpy.settings import Settings
from azpy.system import usable_cores

Said = Sequence[tuple[dict[str, Any], bytes]]  # messages, each with its bytes

CPUS_OF_ACTOR = 8  # CPUs of an actor, at most: its death costs few games, and games in one process share a cache
_ANSWER_SECONDS = 300.0  # for any actor to answer
_POLL = 0.25  # seconds that an actor waits for something to say
_LOOK_SECONDS = 2.0  # between two looks at the cluster's nodes
_GET_SECONDS = 60.0  # seconds to fetch a finished answer
_CONNECT_SECONDS = 5.0  # for a cluster to take a connection
_STORED = 4  # networks in the object store
_STORE_BYTES = 512 << 20  # of a Ray that this process starts: some networks
_MOST_WORDS = 200  # letters of an error of Ray's
_NODE_DIED = "its node died"
_WHY_GONE = {  # part of Ray's error text or class name -> why an actor did not answer
    "low on memory": "Ray ended it because its node was low on memory: use a node with more, or fewer --slots",
    "node has died": _NODE_DIED,
    "NodeDiedError": _NODE_DIED,
    "ActorDiedError": "its process died",
    "ActorUnavailableError": "it cannot be reached",
    "ObjectLostError": "its answer was lost",
}
_WHY_NOT = {  # part of Ray's error text or class name -> why Ray does not start, and what to do
    "AuthenticationError": "the cluster needs its token: set RAY_AUTH_MODE=token, and copy the token to "
    "~/.ray/auth_token or into RAY_AUTH_TOKEN",
    "Could not find any running Ray": "no cluster runs on this machine: start one with `ray start --head`, or give "
    "HOST:PORT",
    "Found multiple active Ray": "several clusters run on this machine: give the HOST:PORT of one",
}


class RayPlayer:
    """The actor: a worker at the other end of Ray's calls. Ray imports it from the azpy that its node has."""

    def __init__(self) -> None:
        self._inbox: Inbox = queue.SimpleQueue()
        self._said: Inbox = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True, name="azpy-worker")
        self._thread.start()

    def _work(self) -> None:
        Worker(self._inbox, lambda message, body: self._said.put((dict(message), body))).run()

    def exchange(self, messages: Sequence[dict[str, Any]], seconds: float, network: bytes = b"") -> tuple[Said, bool]:
        """Take messages to the worker, and return what it has said, and whether it may say more.

        Args:
            messages: with one lineup at most; the first one of all is `begin`.
            seconds: to wait for something to say.
            network: the bytes of the lineup.
        """
        for message in messages:
            self._inbox.put((message, network if message["do"] == "play" else b""))
        more, said, size = self._thread.is_alive(), list[tuple[dict[str, Any], bytes]](), 0
        with contextlib.suppress(queue.Empty):
            while size < MOST_OF_A_PART:
                said.append(self._said.get(timeout=seconds) if seconds and not said else self._said.get_nowait())
                size += len(said[-1][1])
        return said, more


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
    slots = max(pipelines, min(settings.slots, settings.games_per_iteration // (2 * max(actors, 1))))
    # Without a GPU each pipeline grows its own trees, see `threads_of_trees`.
    threads = settings.threads or (max(1, place.cpus) if place.gpus else 1)
    first = settings.all_devices[0]
    device = "cuda" if place.gpus else str(first) if first.on_cpu else "cpu"
    return part_of(settings, slots=slots, pipelines=pipelines, threads=threads, device=device)


class Actor(Channel):
    """The line to an actor that plays; see `Channel`. The oldest of its `calls` has an answer if it `is_ready`."""

    def __init__(self, place: Place, settings: Settings, actor: Any, cluster: "Cluster") -> None:
        super().__init__(settings)
        self.place, self.actor, self._cluster = place, actor, cluster
        self.where = f" on node {place.address}"
        self.calls: deque[Any] = deque()  # on their way, in order
        self.is_ready, self.waits = False, True
        self._how = "it is gone"
        self._said = deque[tuple[dict[str, Any], bytes]]()  # by it, and not polled yet
        self._out, self._network = list[dict[str, Any]](), list[Any]()  # not sent yet; one network at most

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """See `Channel`."""
        if body:
            self._network = [self._cluster.stored[message["network"]]]
        self._out.append(dict(message))
        if message["do"] != "begin":  # a lineup follows
            self.ask(0.0)

    def ask(self, seconds: float) -> None:
        """Send what is queued, and ask what the actor has to say; it may wait so long for something."""
        self.calls.append(self.actor.exchange.remote(self._out, seconds, *self._network))
        self._out, self._network = [], []

    def poll(self) -> Iterator[Message]:
        """See `Channel`."""
        if self.is_ready and self.alive:
            self.is_ready = False
            self._hear()
        while self._said:
            facts, body = self._said.popleft()
            yield Message(facts, body)

    def _hear(self) -> None:
        """Take the answer to the oldest call. Raise a `ValueError` if it is invalid."""
        errors = self._cluster.ray.exceptions
        try:
            said, more = self._cluster.ray.get(self.calls.popleft(), timeout=_GET_SECONDS)
            self._said += said
            self.waits, self.alive = False, bool(more or said)
        except errors.ActorUnschedulableError:
            # Its node is dead, though `ray.nodes` still lists it for a moment. The next look starts a new actor.
            self.lose("")
        except errors.ActorUnavailableError as error:
            self.lose("" if self.waits else _in_words(error))  # Ray is still starting it
        except (errors.ActorDiedError, errors.ObjectLostError, errors.NodeDiedError) as error:
            self.lose(_in_words(error))
        except (errors.RayError, TypeError, AttributeError) as error:
            raise ValueError(_in_words(error)) from error

    def lose(self, how: str) -> None:
        """Take note that the actor is gone; `how` is empty where the user need not know."""
        self.alive, self._how = False, how
        if how == _NODE_DIED:
            self.weight = 0.0
        elif not self.waits:  # several actors may disappear at once, which does not count against any worker
            self.weight = 1 / max(1, len(self._cluster.places))

    def close(self, why: str = "") -> str:
        """See `Channel`."""
        self._cluster.end(self)
        return self._how


class Cluster(Backend):
    """Actors of Ray, on the cluster at RAY_ADDRESS, or on this machine, where this process starts Ray.

    Actors follow the cluster's nodes: a new node gets actors, and an actor that died gets a successor.

    Attributes:
        ray: the package.
        places: where actors play.
        stored: networks in the object store, by SHA-256; each node fetches one once.

    Raises:
        MissingPackageError: Ray is not installed.
        SettingsError: RAY_ADDRESS asks for Ray's client mode.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._settings, self._clock = settings, clock
        self._address = os.environ.get("RAY_ADDRESS", "").strip()
        if self._address == "local":
            self._address = ""
        if "://" in self._address:
            raise SettingsError(
                f"RAY_ADDRESS is {self._address}: Ray's client mode cannot carry games; start az-train on a node of "
                "the cluster, and give HOST:PORT or auto"
            )
        self.ray: Any = _import_ray()
        self.places: list[Place] = []
        self.stored: dict[str, Any] = {}
        self._actors: list[Actor] = []
        self._connected = self._gpus = self._finishing = False
        self._looked = -math.inf  # when the nodes were looked at last
        self._answered = 0.0  # when an actor was last known to play, or actors were asked to
        python = must_be_typed(settings.game) or settings.game.startswith(PREFIX)
        self._most_cpus = 1 if python else CPUS_OF_ACTOR  # the GIL lets one thread at a time play such a game

    @property
    def _where(self) -> str:
        return f"Ray at RAY_ADDRESS={self._address}" if self._address else "Ray on this machine"

    def play(self, lineup: Mapping[str, Any], model: bytes, devices: Sequence[Device]) -> None:
        """See `Backend`."""
        self._answered = self._clock()  # nobody was asked while the network was fitted
        if not self._connected:
            self._connect(devices)
        if model:
            sha256 = lineup["network"]
            self.stored[sha256] = self.stored.pop(sha256, None) or self.ray.put(model)
        while len(self.stored) > _STORED:
            del self.stored[next(iter(self.stored))]

    def _connect(self, devices: Sequence[Device]) -> None:
        """Connect to the cluster, or start Ray here; a `RunError` says why it cannot."""
        where = self._where
        options: dict[str, Any] = {"address": self._address or "local"}
        if self._address:
            if self._address != "auto":
                _refuse_nobody(self._address, where)
            paths = [str(Path(_core.__file__).parents[1])]
        else:
            options |= {"num_cpus": usable_cores(), "include_dashboard": False, "object_store_memory": _STORE_BYTES}
            # Use the head's sys.path, so that a game's module is found in the same place.
            paths = [folder or str(Path.cwd()) for folder in sys.path]
        try:
            # With a path, actors are imported from the packages of their node. Without one, Ray would send their code.
            config = self.ray.job_config.JobConfig(code_search_path=paths)
            at_sigterm = signal.getsignal(signal.SIGTERM)
            self.ray.init(job_config=config, log_to_driver=False, logging_level="CRITICAL", **options)
            if signal.getsignal(signal.SIGTERM) is not at_sigterm:  # Ray's handler exits with code 15
                signal.signal(signal.SIGTERM, at_sigterm)
        except Exception as error:  # Ray's exceptions have no common base class
            raise RunError(f"{where}: {_why_not(error, self._address)}") from error
        self._connected = True
        self._gpus = devices[0].kind == "cuda" and self.ray.cluster_resources().get("GPU", 0) >= 1
        self.places = places_of(self.ray.nodes(), self._gpus, self._most_cpus)
        each = "GPU" if self._gpus else f"{self._most_cpus} CPUs of a node" if self._most_cpus > 1 else "CPU"
        nodes = len({place.node for place in self.places})
        self.notices.append(f"{where}: one worker for each {each} (workers: {len(self.places)}, nodes: {nodes})")

    def _look_at_nodes(self) -> list[Actor]:
        """Look at the nodes: return the lines to new actors, and drop those whose node is gone."""
        self._looked = self._clock()
        self.places = places_of(self.ray.nodes(), self._gpus, self._most_cpus)
        for actor in self._actors:
            if actor.place not in self.places:
                actor.lose(_NODE_DIED)
        busy = {actor.place for actor in self._actors}
        new = [self._start(place) for place in self.places if place not in busy]
        self._actors += new
        return new

    def _start(self, place: Place) -> Actor:
        here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place.node, soft=False)
        options = {"num_cpus": place.cpus, "num_gpus": place.gpus, "max_restarts": 0, "max_task_retries": 0}
        actor = self.ray.remote(RayPlayer).options(scheduling_strategy=here, **options).remote()
        return Actor(place, settings_of_actor(self._settings, place, len(self.places)), actor, self)

    def look(self, seconds: float) -> list[Actor]:
        """See `Backend`."""
        if not self._finishing and self._clock() - self._looked > _LOOK_SECONDS and (new := self._look_at_nodes()):
            return new
        if any(not actor.waits for actor in self._actors):
            self._answered = self._clock()
        elif self._clock() - self._answered > _ANSWER_SECONDS:
            raise RunError(
                f"no worker of Ray answered in {_ANSWER_SECONDS:.0f} seconds: install azpy {_core.__version__} and the "
                "game on each node; `ray status` shows the nodes"
            )
        for actor in self._actors:
            if actor.alive and not actor.calls:
                actor.ask(_POLL)
        calls = {actor.calls[0]: actor for actor in self._actors if actor.alive}
        if not calls:
            time.sleep(seconds)
            return []
        ready, _ = self.ray.wait([*calls], num_returns=1, timeout=seconds, fetch_local=False)
        if ready:
            ready, _ = self.ray.wait([*calls], num_returns=len(calls), timeout=0, fetch_local=False)
        for call in ready:
            calls[call].is_ready = True
        return []

    def end(self, actor: Actor) -> None:
        """End an actor."""
        self._actors.remove(actor)
        with contextlib.suppress(Exception):  # Ray's exceptions have no common base class
            self.ray.kill(actor.actor)

    def finish(self) -> None:
        """See `Backend`. It does not wait for actors that never started."""
        self._finishing = True
        for actor in self._actors:
            if actor.waits:
                actor.lose("")

    def close(self, *, ended: bool) -> None:
        """See `Backend`. A Ray that this process started ends too."""
        if self._connected:
            self._connected = False
            self.ray.shutdown()  # ends this process's actors


def environment() -> dict[str, str]:
    """The environment variables that az-train sets before it imports Ray, unless the user set them.

    They turn off usage reports. A Ray started here listens on the loopback and needs its token.
    """
    found = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "error", "RAY_NUM_REDIS_GET_RETRIES": "1"}
    found["RAY_DEDUP_LOGS_SKIP_REGEX"] = "."  # otherwise Ray prints a page for each dead actor
    if os.environ.get("RAY_ADDRESS", "").strip() in ("", "local"):
        found |= {"RAY_AUTH_MODE": "token", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            found["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    return found


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
    """Why Ray does not start, and what to do: a short text in place of Ray's long one."""
    said = one_line(error)
    if versions := re.search(r"Ray: (\S+) Python: (\S+) .* Ray: (\S+) Python: (\S+)", said):
        has, here = (f"Ray {versions[at]} and Python {versions[at + 1]}" for at in (1, 3))
        return f"the cluster has {has}, but this machine has {here}: install the same versions"
    for part, words in _WHY_NOT.items():
        if part in f"{type(error).__name__} {error.__cause__} {said}":
            return words
    look = "see `ray status`" if address else "its logs are in /tmp/ray/session_latest/logs"
    return f"{said[:_MOST_WORDS].strip()}: {look}"


def _in_words(error: Exception) -> str:
    """Why an actor did not answer: a short text in place of Ray's long one."""
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    for part, words in _WHY_GONE.items():
        if part in f"{names} {error}":
            return words
    own = getattr(error, "cause", None)  # an exception of the actor's own code
    return (one_line(error) if own is None else f"{type(own).__name__}: {one_line(own)}")[:_MOST_WORDS]


def _refuse_nobody(address: str, where: str) -> None:
    """Raise a `RunError` if nothing accepts connections there: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except ValueError:
        raise RunError(f"{where}: expected HOST:PORT, or auto for this machine's cluster") from None
    except OSError as error:
        raise RunError(f"{where}: nothing answers there ({error}); start Ray with `ray start --head`") from error
