"""Worker processes: the same games and weights as without them, whatever dies, and nobody is left behind."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.devices import CPU, Device
from azpy.errors import RunError, SettingsError
from azpy.fleet import head as fleet_head
from azpy.fleet.channels import pipe
from azpy.fleet.channels.pipe import settings_of_worker
from azpy.fleet.head import Head
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Event, Finished, Noticed, Played
from azpy.training.trainer import Trainer
from models import make_model
from running import PATIENCE, assert_soon, az
from starts import Starts, command

PLAY = {"simulations": 8, "slots": 8, "eval_batch": 2, "games_per_iteration": 30, "opening_plies": 2}
LEARN = {"network": "1x8", "iterations": 4, "batch_size": 16, "passes": 1.0, "match_every": 1000}
SMALL: dict[str, Any] = PLAY | LEARN | {"deterministic": True}
SMALL["final_match_games"] = 2


@pytest.fixture(autouse=True)
def every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event for every few games, so that tests see the middle of each iteration, however late this process comes."""
    take = Head.take
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    monkeypatch.setattr(Head, "take", lambda self, most: take(self, min(most, 3)))


def settings(**changes: Any) -> Settings:
    return Settings(**({"game": "tic_tac_toe"} | SMALL | changes))


def train(path: Path, look: Callable[[Head, Event], None] = lambda *_: None, **changes: Any) -> list[Event]:
    """Trains; `look` sees each event when it comes."""
    found = list[Event]()
    with Trainer(settings(**changes), path) as trainer:
        for event in trainer.run():
            found.append(event)
            if isinstance(trainer.fleet, Head):
                look(trainer.fleet, event)
    return found


def hashes(events: list[Event]) -> tuple[str | None, str | None]:
    assert isinstance(events[-1], Finished)
    assert events[-1].games_hash
    assert events[-1].weights_hash
    return events[-1].games_hash, events[-1].weights_hash


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noticed)]


def process_of(fleet: Head, index: int) -> subprocess.Popen[bytes]:
    """The process of one of a head's workers on this machine."""
    line = fleet.members[index]
    assert isinstance(line, pipe.Pipe)
    return line.process


def middle(event: Event, iteration: int) -> bool:
    return isinstance(event, Played) and event.iteration == iteration and event.games < SMALL["games_per_iteration"]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | None, str | None]:
    """The hashes of the run that this process plays alone."""
    path = tmp_path_factory.mktemp("straight")
    found = hashes(train(path))
    with RunFolder(path, {}) as run:
        games = [game for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
    assert len({game.networks.max() for game in games}) == 4
    return found


def test_workers_give_the_same_bits(straight: tuple[str, str], tmp_path: Path) -> None:
    events = train(tmp_path, workers=3)
    assert hashes(events) == straight
    assert notices(events) == []


def test_a_worker_killed_in_every_iteration_changes_no_game(straight: tuple[str, str], tmp_path: Path) -> None:
    killed = list[int]()

    def kill(fleet: Head, event: Event) -> None:
        if middle(event, len(killed) + 1):
            process = process_of(fleet, len(killed) % 2)
            process.kill()
            killed.append(process.pid)

    events = train(tmp_path, kill, workers=2)
    assert hashes(events) == straight
    assert len(killed) == 4
    told = notices(events)
    assert all("ended: killed by SIGKILL; its games go to other workers" in text for text in told)
    assert 3 <= len(told) <= 4  # the other worker may have had the last iteration's games


def test_a_stopped_worker_does_not_hold_up_the_run(straight: tuple[str, str], tmp_path: Path) -> None:
    stopped = list[subprocess.Popen[bytes]]()

    def stop(fleet: Head, event: Event) -> None:
        if middle(event, 1) and not stopped:
            stopped.append(process_of(fleet, 1))
            stopped[0].send_signal(signal.SIGSTOP)
        if middle(event, 4) and stopped[0].poll() is None:
            stopped[0].send_signal(signal.SIGCONT)  # it sends what nobody needs any more

    assert hashes(train(tmp_path, stop, workers=2)) == straight
    assert stopped[0].poll() is not None


def test_a_run_goes_on_with_another_number_of_workers(straight: tuple[str, str], tmp_path: Path) -> None:
    for workers in (2, 0, 1):
        with Trainer(settings(workers=workers), tmp_path) as trainer:
            for event in trainer.run():
                if isinstance(event, Played) and event.games > 5 and workers < 2:
                    break
                if middle(event, 3):
                    break
    assert hashes(train(tmp_path)) == straight


def test_a_restarted_head_plays_the_same_games(starts: Starts, tmp_path: Path) -> None:
    arguments = command("tic_tac_toe", tmp_path / "run", 4)
    arguments += ["--games-per-iteration", "60", "--workers", "2"]
    for when in ("iteration 1", "iteration 2"):
        end = starts.run(*arguments, kill_when=when)
        assert end.code in (-9, 0)
    starts.finish(*arguments)
    alone = command("tic_tac_toe", tmp_path / "alone", 4)
    starts.finish(*alone, "--games-per-iteration", "60")
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as run:
            found.append((run.games_hash(), run.weights_hash(4)))
    assert found[0] == found[1]


def test_a_free_run_has_each_game_once_and_names_every_network(tmp_path: Path) -> None:
    killed = list[int]()

    def kill(fleet: Head, event: Event) -> None:
        if middle(event, 2) and not killed:
            killed.append(1)
            process_of(fleet, 0).kill()

    events = train(tmp_path, kill, workers=2, deterministic=False)
    run = StoredRun(tmp_path)
    games = list(run.games(run.sealed_iterations()))
    assert len({game.game_id for _, game in games}) == len(games) == 4 * 30
    assert len(notices(events)) == 1
    networks = [azpy.OnnxEvaluator(run.model(iteration)).network_id for iteration in (2, 3, 4)]
    seen = {int(network) for _, game in games for network in game.networks} - {0}
    assert 2 <= len(seen) <= 4
    assert networks[2] not in seen  # it came after the last game
    rows = [row for row in RunFolder(tmp_path, {}).metrics() if row["kind"] == "iteration"]
    assert all(row["evaluations"] > 0 for row in rows)


def test_a_collection_is_the_same_with_workers(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(make_model(weight=0.5))
    found = []
    for workers, chosen in itertools.product((0, 2), (None, model)):
        path = tmp_path / f"{workers} {chosen is None}"
        with Collector(settings(iterations=2, workers=workers), path, chosen) as collector:
            assert isinstance(list(collector.run())[-1], Finished)
        with RunFolder(path, {}) as run:
            found.append(run.games_hash())
    assert found[:2] == found[2:]
    assert found[0] != found[1]


def test_a_worker_that_cannot_start_ends_the_run_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, text in (
        ("import sys; sys.exit(3)", "the last one reported: exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "the last one reported: killed by SIGKILL"),
        (
            "import os, sys; os.write(int(sys.argv[1]), b'12345678'); input()",
            "the last one reported: a message of 875770417",
        ),
    ):
        monkeypatch.setattr(pipe, "_COMMAND", (sys.executable, "-c", code))
        with pytest.raises(RunError, match=f"3 workers ended and no game was finished; {text}"):
            train(tmp_path, workers=2)


def test_a_games_own_error_in_a_worker_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks.py").write_text(
        "import os\nfrom sound_games import Nim\n\n\nclass Breaks(Nim):\n    def play(self, action):\n"
        f"        if os.getpid() != {os.getpid()}:\n            raise ArithmeticError('on purpose')\n"
        "        super().play(action)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    chosen = settings(game="breaks:Breaks", workers=1)
    with (
        pytest.raises(RunError, match=r"the last one reported: .*on purpose"),
        Collector(chosen, tmp_path / "run") as collector,
    ):
        list(collector.run())


def test_a_worker_with_different_network_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_head, "answers_of", lambda evaluator: "other")
    with pytest.raises(
        RunError, match="the last one reported: its network computes different results from the network here"
    ):
        train(tmp_path, workers=1)


# Those who end with the head


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def head(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A collection with two workers that play, and their process ids."""
    command = az("train", "tic_tac_toe", "--collect-only", "--workers", "2", "--out", tmp_path / "run")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "self-play" in line or "iteration 1" in line:
                break
        lists = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/children")]
        workers = [int(worker) for worker in " ".join(lists).split()]
        assert len(workers) == 2
        yield process, workers
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not Path("/proc/thread-self/children").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_worker_outlives_its_head(head: tuple[subprocess.Popen[str], list[int]], name: str, tmp_path: Path) -> None:
    process, workers = head
    # SLURM and systemd send them to workers too, which stay until the head has their games.
    for worker, sent in itertools.product(workers, ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")):
        os.kill(worker, getattr(signal, sent))
        ignored = Path(f"/proc/{worker}/status").read_text().partition("SigIgn:")[2].split()[0]
        assert int(ignored, 16) >> getattr(signal, sent) - 1 & 1, sent
    process.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=PATIENCE)
    assert_soon(lambda: not any(map(is_alive, workers)))
    if name != "SIGKILL":
        assert process.returncode == 128 + getattr(signal, name)
        assert "ended: killed" not in output
        assert "stopped; every finished game is saved" in output
        assert "Traceback" not in output
    with RunFolder(tmp_path / "run", {}) as run:  # it is whole, and nobody holds it
        assert run.journal or run.sealed.iterations()


# Settings


def test_workers_share_what_a_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "usable_cores", lambda: 8)
    run = settings(slots=128, pipelines=8, workers=4, cache_positions=1000, deterministic=False)
    mine = settings_of_worker(run, [CPU], 3)
    assert (mine.slots, mine.pipelines, mine.threads, mine.cache_positions, mine.workers) == (32, 2, 1, 250, 0)
    run = settings(slots=7, pipelines=2, workers=4, threads=8, deterministic=False)
    mine = settings_of_worker(run, [Device("cuda", 0), Device("cuda", 1)], 3)
    assert (mine.slots, mine.pipelines, mine.threads, mine.device) == (2, 1, 2, "cuda:1")
    assert mine.search_options() == run.search_options()


def test_less_than_no_worker_is_refused() -> None:
    with pytest.raises(SettingsError, match="workers must be at least 0"):
        settings(workers=-1)
