"""Workers that are actors of Ray: the same games and weights as without them, whatever dies."""

import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_fleet import every_event, hashes, middle, notices, settings, train

import azpy
from azpy.errors import MissingPackageError, RunError, SettingsError
from azpy.fleet.channels.ray import Cluster, RayPlayer, environment, places_of, settings_of_actor
from azpy.fleet.fleet import Lineup
from azpy.fleet.head import Head
from azpy.games.names import make_game
from azpy.training.events import Event
from azpy.training.trainer import Trainer
from starts import Starts, command

__all__ = ["every_event"]  # a fixture of here too
here = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module", autouse=True)
def ray_environment() -> Iterator[None]:
    """As az-train sets it; one token for the whole module, because Ray keeps the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        for name, value in environment().items():
            patch.setenv(name, value)
        yield


def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "NodeManagerAddress": "127.0.0.1", "Resources": resources}


def test_each_node_gets_actors_for_its_cpus_or_gpus() -> None:
    nodes = [node("a", CPU=12), node("b", CPU=2, GPU=2), node("c", alive=False, CPU=8), node("d"), node("e", CPU=8)]
    by_cpus = [(one.node, one.cpus, one.gpus) for one in places_of(nodes, False, 8)]
    assert by_cpus == [("a", 6, 0), ("a", 6, 0), ("b", 2, 0), ("e", 8, 0)]
    by_gpus = [(one.node, one.number, one.cpus, one.gpus) for one in places_of(nodes, True, 8)]
    assert by_gpus == [("b", 0, 1, 1), ("b", 1, 1, 1)]
    assert len(places_of(nodes, False, 1)) == 22


def test_all_actors_together_play_half_of_an_iteration_at_most() -> None:
    place = places_of([node("a", CPU=4)], False, 8)[0]
    run = settings(workers="ray", slots=128, games_per_iteration=256)
    assert [settings_of_actor(run, place, actors).slots for actors in (1, 2, 8, 1000)] == [128, 64, 16, 4]
    mine = settings_of_actor(run, place, 2)
    assert (mine.pipelines, mine.threads, mine.device, mine.workers) == (4, 1, "cpu", 0)
    assert mine.search_options() == run.search_options()
    run = settings(workers="ray", slots=128, deterministic=False)
    on_gpu = settings_of_actor(run, places_of([node("a", CPU=4, GPU=1)], True, 8)[0], 2)
    assert (on_gpu.pipelines, on_gpu.threads, on_gpu.device) == (run.pipelines, 4, "cuda")


def test_without_ray_an_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)
        with pytest.raises(MissingPackageError, match="ray is not installed: pip install ray"):
            Trainer(settings(workers="ray"), tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    with pytest.raises(SettingsError, match="client mode cannot carry games"):
        Trainer(settings(workers="ray"), tmp_path)


class ActorDiedError(Exception):
    """An actor's process ended."""


def a_head(ray: "FakeRay", now: list[float], monkeypatch: pytest.MonkeyPatch) -> Head:
    """A head that has begun to play a run on Ray, on the test's clock."""
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    run = settings(workers="ray")
    head = Head(run, make_game("tic_tac_toe"), Cluster(run, lambda: now[0]), lambda: now[0])
    head.ask([range(10)], [])
    head.play(Lineup([azpy.UniformEvaluator()]))
    return head


class FakeRay:
    """What the head asks of Ray, for actors that answer so many calls and then die.

    Attributes:
        paths: in which actors find their code.
    """

    def __init__(self, nodes: int, answers: int) -> None:
        self._nodes, self._answers = [node(f"{number}", CPU=1) for number in range(nodes)], answers
        self.paths: list[str] = []
        names = ("ActorUnavailableError", "ObjectLostError", "NodeDiedError", "ActorUnschedulableError", "RayError")
        errors = {name: type(name, (Exception,), {}) for name in names}
        self.exceptions = SimpleNamespace(ActorDiedError=ActorDiedError, **errors)
        self.job_config = SimpleNamespace(JobConfig=lambda code_search_path: code_search_path)
        self.util = SimpleNamespace(
            scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: 0)
        )

    def init(self, job_config: Any, **_: Any) -> None:
        self.paths = job_config

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, kind: type) -> Any:
        assert kind is RayPlayer
        left: list[list[Any]] = [[]] * self._answers

        def answer() -> tuple[list[Any], bool]:
            if not left:
                raise ActorDiedError
            return left.pop(), True

        # Each call is another object, which `get` calls.
        exchange = SimpleNamespace(remote=lambda *_: lambda: answer())
        actor = SimpleNamespace(exchange=exchange)
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: actor))

    def wait(self, calls: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return calls, []

    def get(self, call: Any, **_: Any) -> Any:
        return call()

    def kill(self, actor: Any) -> None:
        pass

    def put(self, data: bytes) -> bytes:
        return data

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(
    ("answers", "deaths"),
    [(0, 3), (1, 12)],  # one that never answered is a death; of four that did, each is a quarter of one
)
def test_all_actors_that_die_at_once_count_as_one_death(
    answers: int, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, now = FakeRay(4, answers), [0.0]
    fleet = a_head(ray, now, monkeypatch)

    def play() -> None:
        for _ in range(100):
            fleet.take(1)
            now[0] += 3.0  # it looks at the nodes again

    with pytest.raises(
        RunError, match=f"^{deaths} workers ended and no game was finished; the last one reported: its process"
    ):
        play()
    assert sum(" ended: its process died" in text for text in fleet.notices) == deaths - 1
    assert str(Path(azpy.__file__).parents[1]) in ray.paths
    fleet.close()


@here
@pytest.mark.parametrize(("address", "text"), [("127.0.0.1:1", "nothing answers there"), ("nowhere", "expected HOST")])
def test_a_missing_cluster_is_an_error(
    address: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(RunError, match=f"RAY_ADDRESS={address}: {text}"):
        train(tmp_path, workers="ray")


def actors_here() -> list[int]:
    """The processes on this machine that are actors of az-train, with the token of this module."""
    token, found = os.environ["RAY_AUTH_TOKEN"].encode(), list[int]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if read(path).startswith(b"ray::RayPlayer") and token in read(path.with_name("environ")):
            found.append(int(path.parent.name))
    return found


def read(path: Path) -> bytes:
    """A file of /proc, empty once its process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


VERSIONS = (
    "The cluster was started with:\n    Ray: 2.54.0\n    Python: 3.12.1\nThis process on node 10.0.0.1 was started "
)
VERSIONS += "with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            RuntimeError(f"Version mismatch: {VERSIONS}"),
            "the cluster has Ray 2.54.0 and Python 3.12.1, but this machine has Ray",
        ),
        (ConnectionError("Could not find any running Ray instance. Please specify"), "no cluster runs on this machine"),
        (ConnectionError("Found multiple active Ray instances: {}"), "several clusters run on this machine"),
        (type("AuthenticationError", (Exception,), {})("x"), "the cluster needs its token"),
        (ValueError("word " * 1000), "word: see `ray status`"),
    ],
)
def test_a_ray_that_does_not_start_is_a_short_error(
    error: Exception, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        raise error

    ray = FakeRay(1, 1)
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(RunError) as caught:
        train(tmp_path, workers="ray")
    assert text in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_dead_node_that_looks_alive_is_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, now, actors = FakeRay(1, 1), [0.0], list[Any]()

    def remote(kind: type) -> Any:
        actors.append(kind)
        return FakeRay.remote(ray, kind)

    def get(call: Any, **_: Any) -> Any:
        if len(actors) < 20:
            raise ray.exceptions.ActorUnschedulableError
        return call()

    monkeypatch.setattr(ray, "remote", remote)
    monkeypatch.setattr(ray, "get", get)
    fleet = a_head(ray, now, monkeypatch)
    while len(actors) < 20:
        fleet.take(1)
        now[0] += 3.0
    fleet.take(1)
    assert [worker.waits for worker in fleet.members] == [False]
    assert not any("ended" in text for text in fleet.notices)
    fleet.close()


def test_ray_does_not_keep_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, before = FakeRay(1, 1), signal.getsignal(signal.SIGTERM)

    def init(job_config: Any, **_: Any) -> None:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))  # as Ray does

    monkeypatch.setattr(ray, "init", init)
    a_head(ray, [0.0], monkeypatch).close()
    assert signal.getsignal(signal.SIGTERM) is before


@here
@pytest.mark.slow
def test_actors_play_the_same_games_also_if_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    straight = hashes(train(tmp_path / "straight"))
    monkeypatch.setattr("azpy.fleet.channels.ray.usable_cores", lambda: 2)
    monkeypatch.setattr("azpy.fleet.channels.ray.CPUS_OF_ACTOR", 1)
    # A node imports its own azpy: what the head's class does is not sent.
    monkeypatch.setattr(RayPlayer, "exchange", lambda self, stream, seconds, *models: 1 / 0)
    killed = list[int]()

    def kill(_: Head, event: Event) -> None:
        if middle(event, 2) and not killed:
            killed.append(actors_here()[0])
            os.kill(killed[0], signal.SIGKILL)

    found = train(tmp_path / "ray", kill, workers="ray")
    assert hashes(found) == straight
    assert killed
    assert "Worker exit detail" not in capfd.readouterr().out  # of Ray, a page
    assert "one worker for each CPU (workers: 2, nodes: 1)" in notices(found)[0]


@contextlib.contextmanager
def a_cluster() -> Iterator[Any]:
    """A cluster of Ray on the loopback, whose head node has no CPUs for actors; RAY_ADDRESS names it."""
    from ray.cluster_utils import Cluster as Nodes

    found = Nodes(initialize_head=True, head_node_args=NODE | {"num_cpus": 0, "include_dashboard": False})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", found.address)
        try:
            yield found
        finally:
            found.shutdown()


@pytest.fixture
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    with a_cluster() as found:
        yield found


NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}


@here
@pytest.mark.slow
def test_workers_follow_lost_and_new_nodes(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = hashes(train(tmp_path / "straight"))
    monkeypatch.setattr("azpy.fleet.channels.ray._LOOK_SECONDS", 0.1)
    first, second = (cluster.add_node(**NODE) for _ in range(2))
    steps = [
        lambda: cluster.remove_node(first, allow_graceful=False),  # the second one plays alone
        lambda: cluster.add_node(**NODE),
        lambda: cluster.remove_node(second, allow_graceful=False),  # the third one plays alone
    ]

    def change(_: Head, event: Event) -> None:
        if steps and middle(event, 4 - len(steps)):
            steps.pop(0)()

    found = train(tmp_path / "ray", change, workers="ray")
    assert hashes(found) == straight
    assert not steps
    assert "one worker for each 8 CPUs of a node (workers: 2, nodes: 2)" in notices(found)[0]


def with_environment(**changes: str) -> str:
    """Code for a start of az-train: Ray's settings of this module, with changes."""
    chosen = {name: value for name, value in os.environ.items() if name.startswith("RAY_")} | changes
    return f"import os, sys; os.environ.update({chosen!r}); sys.path[:0] = {sys.path!r}"


@here
@pytest.mark.slow
def test_a_cluster_needs_its_token(cluster: Any, starts: Starts, tmp_path: Path) -> None:
    cluster.add_node(**NODE)
    arguments, token = [*command("tic_tac_toe", tmp_path / "run", 1), "--workers", "ray"], tmp_path / "token"
    for changes in ({"RAY_AUTH_TOKEN": "0" * 64}, {"RAY_AUTH_MODE": "disabled"}):
        end = starts.run(*arguments, before=with_environment(**changes))
        assert end.code == 2
        assert "the cluster needs its token: set RAY_AUTH_MODE=token" in end.errors.splitlines()[-1]
    token.write_text(os.environ["RAY_AUTH_TOKEN"])
    end = starts.run(*arguments, before=with_environment(RAY_AUTH_TOKEN="", RAY_AUTH_TOKEN_PATH=str(token)))
    assert "done: " in end.output, end
