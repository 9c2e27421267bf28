"""Workers that are actors of Ray: the same games and weights as without them, whatever dies."""

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azpy.errors import MissingPackageError, RunError, SettingsError
from azpy.fleet.ray import RayFleet, environment, places_of, settings_of_actor
from azpy.training.events import Event, Noticed
from azpy.training.trainer import Trainer
from test_fleet import hashes, middle, settings, train

here = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(autouse=True)
def every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    take = RayFleet.take
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    monkeypatch.setattr(RayFleet, "take", lambda self, most: take(self, min(most, 3)))


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
    assert [(one.node, one.cpus, one.gpus) for one in places_of(nodes, False, 8)] == [
        ("a", 6, 0),
        ("a", 6, 0),
        ("b", 2, 0),
        ("e", 8, 0),
    ]
    assert [(one.node, one.number, one.cpus, one.gpus) for one in places_of(nodes, True, 8)] == [
        ("b", 0, 1, 1),
        ("b", 1, 1, 1),
    ]
    assert len(places_of(nodes, False, 1)) == 22


def test_all_actors_together_play_half_of_an_iteration_at_most() -> None:
    place = places_of([node("a", CPU=4)], False, 8)[0]
    run = settings(workers="ray", slots=128, games_per_iteration=256)
    assert [settings_of_actor(run, place, actors).slots for actors in (1, 2, 8, 1000)] == [128, 64, 16, 4]
    mine = settings_of_actor(run, place, 2)
    assert (mine.pipelines, mine.threads, mine.device, mine.workers) == (4, 1, "cpu", 0)
    assert mine.search_options() == run.search_options()


def test_without_ray_an_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match="ray is not installed: pip install ray"):
        Trainer(settings(workers="ray"), tmp_path)


def test_rays_client_mode_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    with pytest.raises(SettingsError, match="client mode cannot carry games"):
        Trainer(settings(workers="ray"), tmp_path)


@here
@pytest.mark.parametrize(("address", "text"), [("127.0.0.1:1", "nobody answers there"), ("nowhere", "expected HOST")])
def test_a_cluster_that_is_not_there_is_an_error(
    address: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(RunError, match=f"RAY_ADDRESS={address}: {text}"):
        train(tmp_path, workers="ray")


def actors_here() -> list[int]:
    """The processes on this machine that are actors of az-train."""
    found = Path("/proc").glob("[0-9]*/cmdline")
    return [int(path.parent.name) for path in found if path.read_bytes().startswith(b"ray::RayPlayer")]


@here
@pytest.mark.slow
def test_actors_play_the_same_games_also_if_one_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = hashes(train(tmp_path / "straight"))
    monkeypatch.setattr("azpy.fleet.ray.usable_cores", lambda: 2)
    monkeypatch.setattr("azpy.fleet.ray.CPUS_OF_ACTOR", 1)
    killed, found = list[int](), list[Event]()
    with Trainer(settings(workers="ray"), tmp_path / "ray") as trainer:
        fleet = trainer._fleet
        assert isinstance(fleet, RayFleet)
        for event in trainer.run():
            found.append(event)
            if middle(event, 2) and not killed:
                killed.append(actors_here()[0])
                os.kill(killed[0], signal.SIGKILL)
    assert hashes(found) == straight
    assert killed
    told = [event.text for event in found if isinstance(event, Noticed)]
    assert "2 workers on 1 node, one for each CPU" in told[0]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of Ray on the loopback, whose head node has no CPUs for actors; RAY_ADDRESS names it."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0, "include_dashboard": False})
    monkeypatch.setenv("RAY_ADDRESS", found.address)
    try:
        yield found
    finally:
        found.shutdown()


NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}


@here
@pytest.mark.slow
def test_nodes_are_lost_and_gained(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = hashes(train(tmp_path / "straight"))
    monkeypatch.setattr("azpy.fleet.ray._LOOK_SECONDS", 0.1)
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
    assert "begins on node 127.0.0.1" in "".join(told)
