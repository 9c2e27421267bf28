"""Workers that are actors of Ray: the same games and weights as without them, whatever dies."""

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_fleet import hashes, middle, settings, train, wait_until

import azpy
from azpy.errors import MissingPackageError, RunError, SettingsError
from azpy.fleet.channels.ray import Cluster, RayPlayer, environment, places_of, settings_of_actor
from azpy.fleet.fleet import Lineup
from azpy.fleet.head import Head
from azpy.games.names import make_game
from azpy.runs.folder import RunFolder
from azpy.training.events import Event, Noticed
from azpy.training.trainer import Trainer
from starts import Starts, command

here = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(autouse=True)
def every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Head.take
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    monkeypatch.setattr(Head, "take", lambda self, most: take(self, min(most, 3)))


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
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match="ray is not installed: pip install ray"):
        Trainer(settings(workers="ray"), tmp_path)


def test_rays_client_mode_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    with pytest.raises(SettingsError, match="client mode cannot carry games"):
        Trainer(settings(workers="ray"), tmp_path)


class DiedError(Exception):
    """An actor's process ended."""


def a_head(now: list[float]) -> Head:
    """A head of a run on Ray, on the test's clock."""
    run = settings(workers="ray")
    return Head(run, make_game("tic_tac_toe"), Cluster(run, lambda: now[0]), lambda: now[0])


class FakeRay:
    """What the head asks of Ray, for actors that answer so many calls and then die.

    Attributes:
        paths: in which actors find their code.
        head_node: its address; nobody looks whether auto is there.
    """

    def __init__(self, nodes: int, answers: int) -> None:
        self._nodes, self._answers = [node(f"{number}", CPU=1) for number in range(nodes)], answers
        self.paths: list[str] = []
        self.head_node = "auto"
        names = ("ActorUnavailableError", "ObjectLostError", "NodeDiedError", "ActorUnschedulableError", "RayError")
        errors = {name: type(name, (Exception,), {}) for name in names}
        self.exceptions = SimpleNamespace(ActorDiedError=DiedError, **errors)
        self.job_config = SimpleNamespace(JobConfig=lambda code_search_path: code_search_path)
        self.util = SimpleNamespace(
            scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: 0)
        )

    def init(self, job_config: Any, **_: Any) -> None:
        self.paths = job_config

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address=self.head_node)

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, kind: type) -> Any:
        assert kind is RayPlayer
        left = [b""] * self._answers

        def answer() -> tuple[bytes, bool]:
            if not left:
                raise DiedError
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
def test_actors_that_answered_and_die_count_as_one_death_together(
    answers: int, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, now = FakeRay(4, answers), [0.0]
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    fleet = a_head(now)
    fleet.ask([range(10)], [])

    def play() -> None:
        fleet.play(Lineup([azpy.UniformEvaluator()]))
        for _ in range(100):
            fleet.take(1)
            now[0] += 3.0  # it looks at the nodes again

    with pytest.raises(RunError, match=f"^{deaths} workers ended and no game was finished; the last one: its process"):
        play()
    assert sum(" ended: its process died" in text for text in fleet.notices) == deaths - 1
    assert str(Path(azpy.__file__).parents[1]) in ray.paths
    fleet.close()


@here
@pytest.mark.parametrize(("address", "text"), [("127.0.0.1:1", "nobody answers there"), ("nowhere", "expected HOST")])
def test_a_cluster_that_is_not_there_is_an_error(
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


def test_a_head_node_that_is_gone_ends_the_run_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, now = FakeRay(1, 10**6), [0.0]
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    fleet = a_head(now)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ray.head_node = f"127.0.0.1:{server.getsockname()[1]}"
        fleet.play(Lineup([azpy.UniformEvaluator()]))
        fleet.take(1)

    def play() -> None:
        for _ in range(100):
            now[0] += 3.0  # it looks at the nodes again
            fleet.take(1)

    with pytest.raises(RunError, match=r"^Ray at RAY_ADDRESS=auto: its head node is gone; start Ray again, and give"):
        play()
    assert 20 < now[0] < 60
    fleet.close()


def test_a_head_node_that_does_not_even_refuse_ends_the_run_as_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, now = FakeRay(1, 10**6), [0.0]
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    fleet = a_head(now)
    fleet.play(Lineup([azpy.UniformEvaluator()]))
    fleet.take(1)
    assert isinstance(fleet._backend, Cluster)
    fleet._backend._head_node = "127.0.0.1:1"

    def wait(_: object, seconds: float) -> None:
        now[0] += seconds
        raise TimeoutError

    monkeypatch.setattr("azpy.fleet.channels.ray.socket.create_connection", wait)
    now[0] += 100.0  # a network was fitted: one look after it says little
    fleet.take(1)
    begin = now[0]

    def play() -> None:
        while now[0] - begin < 100:
            now[0] += 0.2
            fleet.take(1)

    with pytest.raises(RunError, match="its head node is gone"):
        play()
    assert 10 < now[0] - begin < 25
    fleet.close()


VERSIONS = (
    "The cluster was started with:\n    Ray: 2.54.0\n    Python: 3.12.1\nThis process on node 10.0.0.1 was started "
)
VERSIONS += "with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError(f"Version mismatch: {VERSIONS}"), "the cluster has Ray 2.54.0 and Python 3.12.1, here are Ray"),
        (ConnectionError("Could not find any running Ray instance. Please specify"), "no cluster runs on this machine"),
        (ConnectionError("Found multiple active Ray instances: {}"), "several clusters run on this machine"),
        (type("AuthenticationError", (Exception,), {})("x"), "the cluster lets in only who has its token"),
        (ValueError("word " * 1000), "word: see `ray status`"),
    ],
)
def test_where_ray_does_not_begin_an_error_is_short(
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


def test_a_node_that_is_dead_and_looks_alive_counts_as_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    fleet = a_head(now)
    fleet.play(Lineup([azpy.UniformEvaluator()]))
    while len(actors) < 20:
        fleet.take(1)
        now[0] += 3.0
    fleet.take(1)
    assert [worker.line.waits for worker in fleet.members] == [False]
    assert not any("ended" in text for text in fleet.notices)
    fleet.close()


def test_ray_does_not_keep_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, before = FakeRay(1, 1), signal.getsignal(signal.SIGTERM)

    def init(job_config: Any, **_: Any) -> None:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))  # as Ray does

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    fleet = a_head([0.0])
    fleet.play(Lineup([azpy.UniformEvaluator()]))
    fleet.close()
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_actor_that_sends_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.fleet.channels.ray._MOST_OF_A_REPLY", 10)
    ray = FakeRay(1, 1)
    monkeypatch.setattr(ray, "get", lambda call, **_: (bytes(11), True))
    monkeypatch.setattr("azpy.fleet.channels.ray._import_ray", lambda: ray)
    fleet = a_head([0.0])
    fleet.play(Lineup([azpy.UniformEvaluator()]))
    fleet.take(1)
    assert (
        "worker 1 on node 127.0.0.1 ended: it sent 11 bytes at once, expected 10 at most; its games are open again"
        in fleet.notices
    )
    fleet.close()


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
    killed, found = list[int](), list[Event]()
    with Trainer(settings(workers="ray"), tmp_path / "ray") as trainer:
        fleet = trainer.fleet
        assert isinstance(fleet, Head)
        for event in trainer.run():
            found.append(event)
            if middle(event, 2) and not killed:
                killed.append(actors_here()[0])
                os.kill(killed[0], signal.SIGKILL)
    assert hashes(found) == straight
    assert killed
    assert "Worker exit detail" not in capfd.readouterr().out  # of Ray, a page
    told = [event.text for event in found if isinstance(event, Noticed)]
    assert "2 workers on 1 node, one for each CPU" in told[0]


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
def test_nodes_are_lost_and_gained(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = hashes(train(tmp_path / "straight"))
    monkeypatch.setattr("azpy.fleet.channels.ray._LOOK_SECONDS", 0.1)
    first, second = (cluster.add_node(**NODE) for _ in range(2))
    steps = [
        lambda: cluster.remove_node(first, allow_graceful=False),  # the second one plays alone
        lambda: cluster.add_node(**NODE),
        lambda: cluster.remove_node(second, allow_graceful=False),  # the third one plays alone
    ]
    found = list[Event]()
    with Trainer(settings(workers="ray"), tmp_path / "ray") as trainer:
        for event in trainer.run():
            found.append(event)
            if steps and middle(event, 4 - len(steps)):
                steps.pop(0)()
    assert hashes(found) == straight
    assert not steps
    told = [event.text for event in found if isinstance(event, Noticed)]
    assert f"RAY_ADDRESS={cluster.address}: 2 workers on 2 nodes, one for each 8 CPUs of a node" in told[0]


def rays_here() -> set[int]:
    """The processes on this machine that are Ray's own, or actors."""
    found = {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if b"/ray/core/src/" in read(path)}
    return found | set(actors_here())


def with_environment(**changes: str) -> str:
    """Code for a start of az-train: Ray's settings of this module, with changes."""
    chosen = {name: value for name, value in os.environ.items() if name.startswith("RAY_")} | changes
    return f"import os, sys; os.environ.update({chosen!r}); sys.path[:0] = {sys.path!r}"


@here
@pytest.mark.slow
def test_a_head_that_is_killed_goes_on_with_the_same_games(starts: Starts, tmp_path: Path) -> None:
    before = rays_here()
    arguments = [*command("tic_tac_toe", tmp_path / "run", 4), "--games-per-iteration", "60"]
    killed = starts.run(*arguments, "--workers", "ray", before=with_environment(), kill_when="iteration 2")
    assert killed.code == -9, killed
    wait_until(lambda: rays_here() <= before)  # Ray ends the actors, and itself, as az-train started it
    end = starts.run(*arguments, "--workers", "ray", before=with_environment())
    assert "done: " in end.output, end
    assert "going on after iteration " in end.output
    starts.finish(*command("tic_tac_toe", tmp_path / "alone", 4), "--games-per-iteration", "60")
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as run:
            found.append((run.games_hash(), run.weights_hash(4)))
    assert found[0] == found[1]


def ip(*words: str) -> None:
    """A command of iproute2; where it cannot be, the test is skipped."""
    try:
        subprocess.run(["ip", *words], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs network namespaces: {error}")


@pytest.fixture
def hosts() -> Iterator[dict[str, str]]:
    """Two network namespaces with a cable between them, as two hosts with nothing beside: their names and addresses."""
    found = {f"azpy-{os.getpid()}-{number}": f"10.201.7.{number}" for number in (1, 2)}
    try:
        for name in found:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        first, second = found
        ip("-n", first, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in found.items():
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        yield found
    finally:
        for name in found:
            there = subprocess.run(["ip", "netns", "pids", name], capture_output=True, check=False).stdout.split()
            for pid in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@here
@pytest.mark.slow
def test_two_hosts_are_one_cluster_and_play_the_same_games(hosts: dict[str, str], tmp_path: Path) -> None:
    chosen = {name: value for name, value in os.environ.items() if name != "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"}
    first, second = hosts
    address = f"{hosts[first]}:6379"

    def at(host: str, *words: str, **variables: str) -> str:
        command = ["ip", "netns", "exec", host, sys.executable, "-m", *words]
        done = subprocess.run(command, env=chosen | variables, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ray = ("ray.scripts.scripts", "start", "--num-cpus", "1", "--object-store-memory", str(100 << 20))
    at(first, *ray, "--head", "--node-ip-address", hosts[first], "--port", "6379", "--include-dashboard", "false")
    at(second, *ray, "--node-ip-address", hosts[second], "--address", address)
    run = [*command("tic_tac_toe", tmp_path / "run", 2), "--games-per-iteration", "200", "--workers", "ray"]
    said = at(first, "azpy", "train", *run, RAY_ADDRESS=address)
    assert f"RAY_ADDRESS={address}: 2 workers on 2 nodes" in said
    at(first, "azpy", "train", *command("tic_tac_toe", tmp_path / "alone", 2), "--games-per-iteration", "200")
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as folder:
            found.append((folder.games_hash(), folder.weights_hash(2)))
            rows = [row for row in folder.metrics() if row["kind"] == "worker"]
            assert len({row["worker"] for row in rows if row["games"]}) == (2 if name == "run" else 0)
    assert found[0] == found[1]


@here
@pytest.mark.slow
def test_a_cluster_lets_in_only_who_has_its_token(cluster: Any, starts: Starts, tmp_path: Path) -> None:
    cluster.add_node(**NODE)
    arguments, token = [*command("tic_tac_toe", tmp_path / "run", 1), "--workers", "ray"], tmp_path / "token"
    for changes in ({"RAY_AUTH_TOKEN": "0" * 64}, {"RAY_AUTH_MODE": "disabled"}):
        end = starts.run(*arguments, before=with_environment(**changes))
        assert end.code == 2
        assert "the cluster lets in only who has its token: set RAY_AUTH_MODE=token" in end.errors.splitlines()[-1]
    token.write_text(os.environ["RAY_AUTH_TOKEN"])
    end = starts.run(*arguments, before=with_environment(RAY_AUTH_TOKEN="", RAY_AUTH_TOKEN_PATH=str(token)))
    assert "done: " in end.output, end


@here
def test_the_examples_for_clusters_are_of_rays_form() -> None:
    """Ray checks the one of its launcher; KubeRay has no check in Python."""
    yaml = pytest.importorskip("yaml")
    from ray.autoscaler._private.util import prepare_config, validate_config

    text = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    launcher, kubernetes = (yaml.safe_load(part.partition("```")[0]) for part in text.split("```yaml\n")[1:])
    validate_config(prepare_config(launcher))
    assert kubernetes["kind"] == "RayCluster"
    assert kubernetes["spec"]["authOptions"] == {"mode": "token"}
