"""Deaths of workers and heads, by each channel, in deterministic and free runs: nothing is lost or counts twice.

In each trial something is killed once. A deterministic run has the hashes of an undisturbed one, a free run each game
once. AZPY_DEATHS sets the number of trials of a kind. Workers that send what they must not: test_head.py and
test_folder.py.
"""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_fleet import settings
from test_ray import NODE, a_cluster, actors_here, ray_environment  # noqa: F401 - one of them is a fixture

from azpy.fleet.channels import folder, pipe
from azpy.fleet.head import Head
from azpy.runs.folder import RunFolder
from azpy.training.trainer import Trainer
from running import az
from starts import Starts, command

pytestmark = pytest.mark.slow

TRIALS = int(os.environ.get("AZPY_DEATHS", "4"))
ITERATIONS, GAMES = 2, 24  # of a run

# Deaths

Facts = tuple[str, str, list[int]]  # the hashes of games and weights, and the ids


def facts_of(path: Path) -> Facts:
    with RunFolder(path, {}) as run:
        assert run.sealed.iterations() == list(range(1, ITERATIONS + 1))
        games = [game.game_id for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
        return str(run.games_hash()), str(run.weights_hash(ITERATIONS)), games


def trained(path: Path, workers: int | str, deterministic: bool) -> Facts:
    chosen: dict[str, Any] = {"iterations": ITERATIONS, "games_per_iteration": GAMES}
    chosen |= {"deterministic": deterministic, "workers": workers}
    with Trainer(settings(**chosen), path) as trainer:
        assert list(trainer.run())
    return facts_of(path)


@contextlib.contextmanager
def az_workers(place: Path, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many az-worker, each a process that plays few games at once."""
    layout = ["--slots", "4", "--pipelines", "1", "--threads", "1"]
    begin = az("worker", place, *layout)
    found = [subprocess.Popen(begin, stdout=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield found
    finally:
        for process in found:
            process.kill()
            process.wait()


@dataclass
class Trial:
    """What a trial has; `number` varies the moment of the death."""

    path: Path
    number: int
    deterministic: bool
    patch: pytest.MonkeyPatch
    starts: Starts
    cluster: Any
    killed: int = 0

    @contextlib.contextmanager
    def workers(self, channel: str) -> Iterator[int | str]:
        """Workers by a channel: the setting that has them play."""
        place = self.path / "place"
        with az_workers(place, 2) if channel == "folder" else contextlib.nullcontext():
            yield 2 if channel == "pipe" else "ray" if channel == "ray" else f"folder:{place}"

    def seen(self, kill: Callable[[Head], object]) -> None:
        """Has `kill` called after each `take` from some moment on, until it returns something true."""
        take, left = Head.take, self.number * 5 % 17

        def taken(fleet: Head, most: int) -> Any:
            nonlocal left
            found, left = take(fleet, min(most, 3)), left - 1
            if left < 0 and not self.killed and kill(fleet):
                self.killed += 1
            return found

        self.patch.setattr(Head, "take", taken)


def kill_one(head: Head) -> bool:
    """Kills a worker that has games in play; False if there is none just now."""
    busy = [worker for worker in head.members if head.table.held(worker.name)]
    for line in busy[:1]:
        if isinstance(line, pipe.Pipe):
            line.process.kill()
        elif isinstance(line, folder.FolderLine):
            said = (Path(line._folder._path) / "workers" / line.key).read_bytes()
            os.kill(json.loads(said)["pid"], signal.SIGKILL)
        else:
            os.kill(random.choice(actors_here()), signal.SIGKILL)
    return bool(busy)


def worker_plays(trial: Trial, channel: str) -> Facts:
    trial.seen(kill_one)
    with trial.workers(channel) as workers:
        return trained(trial.path / "run", workers, trial.deterministic)


CUT = """
import os, signal, sys
from azpy.cli import child
from azpy.fleet.wire import pack
talk, sent = child.talk, 0
def cut(connection):
    inbox, send = talk(connection)
    def half(message, body):
        global sent
        sent += bool(body)
        if body and sent == {nth} and not os.path.exists({flag!r}):
            open({flag!r}, "w").close()
            data = pack(message, body)
            connection.sendall(data[: len(data) * {part} // 10])
            os.kill(os.getpid(), signal.SIGKILL)
        send(message, body)
    return inbox, half
child.talk = cut
child.main(sys.argv[1])
"""


def worker_sends(trial: Trial, _: str) -> Facts:
    """A part of a message comes, and no more."""
    flag, nth, part = trial.path / "cut", 1 + trial.number % 4, trial.number % 10
    code = CUT.format(flag=str(flag), nth=nth, part=part)
    trial.patch.setattr(pipe, "_COMMAND", (sys.executable, "-P", "-c", code))
    found = trained(trial.path / "run", 2, trial.deterministic)
    trial.killed += flag.exists()
    return found


def head_in(method: str, trial: Trial, channel: str) -> Facts:
    """A start whose head kills itself in a call of its fleet, and a second start that completes the run."""
    count, after = (
        (1 + trial.number * 3 % 20, True) if method == "take" else (1 + trial.number // 2 % 2, trial.number % 2)
    )
    before = (
        f"import os\nfrom azpy.fleet.head import Head as Fleet\nreal, left = Fleet.{method}, {count}\n"
        "def dies(self, *given):\n    global left\n    left -= 1\n"
        f"    found = real(self, *given) if left or {after} else None\n"
        "    if left == 0 and found == []:\n        left = 1\n"  # nothing came: it dies in the next call
        f"    if left == 0:\n        os.kill(os.getpid(), {signal.SIGKILL})\n    return found\n"
        f"Fleet.{method} = dies\n"
        "take = Fleet.take\nFleet.take = lambda self, most: take(self, min(most, 3))\n"
    )
    arguments = command("tic_tac_toe", trial.path / "run", ITERATIONS, trial.deterministic)
    arguments += ["--games-per-iteration", str(GAMES)]
    with trial.workers(channel) as workers:
        end = trial.starts.run(*arguments, "--workers", str(workers), before=before)
        assert end.code == -signal.SIGKILL, end
        trial.killed += 1
        trial.starts.finish(*arguments, "--workers", str(workers))
    return facts_of(trial.path / "run")


def node(trial: Trial, _: str) -> Facts:
    def lose(head: Head) -> bool:
        busy = [one for one in head.members if not one.waits and head.table.held(one.name)]
        for line in busy[:1]:
            lost = next(one for one in trial.cluster.worker_nodes if one.node_id == line.place.node)  # type: ignore[attr-defined]
            trial.cluster.remove_node(lost, allow_graceful=False)
        return bool(busy)

    trial.seen(lose)
    try:
        return trained(trial.path / "run", "ray", trial.deterministic)
    finally:
        while len(trial.cluster.worker_nodes) < 2:
            trial.cluster.add_node(**NODE)


KINDS: dict[tuple[str, str], Callable[[Trial, str], Facts]] = {
    **{("worker, while it plays", channel): worker_plays for channel in ("pipe", "folder", "ray")},
    ("worker, while it sends", "pipe"): worker_sends,
    **{
        (f"head, in {method}", channel): partial(head_in, method)
        for method, channel in itertools.product(("take", "play"), ("pipe", "folder", "ray"))
    },
    ("node", "ray"): node,
}


@pytest.fixture(scope="module")
def undisturbed(starts: Starts, tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, Facts]:
    """The facts of a run in this process, and of one that a command starts: their settings differ."""
    path = tmp_path_factory.mktemp("undisturbed")
    starts.finish(*command("tic_tac_toe", path / "started", ITERATIONS), "--games-per-iteration", str(GAMES))
    return trained(path / "here", 0, True), facts_of(path / "started")


@pytest.fixture(scope="module")
def nodes(ray_environment: None) -> Iterator[Any]:  # noqa: F811
    """A cluster of Ray with two nodes that play."""
    pytest.importorskip("ray")
    with a_cluster() as found:
        for _ in range(2):
            found.add_node(**NODE)
        yield found


@pytest.mark.parametrize("number", range(TRIALS))
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("kind", "channel"), list(KINDS))
def test_a_death_loses_no_game(
    kind: str,
    channel: str,
    deterministic: bool,
    number: int,
    starts: Starts,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    right = request.getfixturevalue("undisturbed")["head" in kind]
    cluster = request.getfixturevalue("nodes") if channel == "ray" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
        patch.setattr("azpy.fleet.channels.ray._LOOK_SECONDS", 0.1)
        patch.setattr(folder, "_SILENT_SECONDS", 3.0)
        patch.setattr(folder, "_WAIT", 0.02)
        trial = Trial(tmp_path, number, deterministic, patch, starts, cluster)
        found = KINDS[kind, channel](trial, channel)
    assert trial.killed == 1
    assert len(found[2]) == len(set(found[2])) == ITERATIONS * GAMES
    assert found == right or not deterministic
    shutil.rmtree(tmp_path)
