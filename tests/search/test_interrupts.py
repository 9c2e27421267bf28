"""Ctrl-C and other ends in the middle of a run: every finished game is kept, and the time spent is not forgotten."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
import training_runs
from azpy.runs import games, storage
from azpy.runs.folder import RunFolder
from azpy.settings import Settings
from azpy.settings.toml import read_config
from azpy.training.collector import Collector
from azpy.training.events import Fitted, Played, Saved
from azpy.training.trainer import Trainer
from running import program
from training_runs import Instead, events_of, opened_rows

SMALL: dict[str, Any] = {"network": "1x8", "simulations": 8, "games_per_iteration": 150, "iterations": 2}
SMALL |= {"final_match_games": 2}
BOTH = pytest.mark.parametrize("kind", [Trainer, Collector])


def settings(**changes: Any) -> Settings:
    return training_runs.settings(**(SMALL | changes))


def game_ids(path: Path) -> list[int]:
    with RunFolder(path, read_config(path / "config.toml")) as folder:
        assert folder.notices == []
        sealed = [game for i in folder.sealed.iterations() for game in folder.sealed.read(i)]
        return [game.game_id for game in (*sealed, *folder.journal)]


def wait_for_games(play: azpy.SelfPlay | None, count: int) -> int:
    """Games that are finished, once there are so many."""
    assert play is not None
    while play.stats["games"] < count:
        time.sleep(0.001)
    return int(play.stats["games"])


def self_play_of(running: Any) -> azpy.SelfPlay:
    play: azpy.SelfPlay = running.fleet.self_play
    return play


@BOTH
@pytest.mark.parametrize("deterministic", [False, True])
def test_an_interrupt_in_the_middle_loses_no_finished_game(kind: Any, deterministic: bool, tmp_path: Path) -> None:
    chosen, finished = settings(deterministic=deterministic), 0

    def interrupt() -> None:
        nonlocal finished
        with kind(chosen, tmp_path) as running:
            for event in running.run():
                if isinstance(event, Played):
                    finished = wait_for_games(self_play_of(running), 40)
                    os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    kept = game_ids(tmp_path)
    assert len(set(kept)) == len(kept) >= finished >= 40
    events_of(chosen, tmp_path, kind=kind)
    ids = game_ids(tmp_path)
    assert set(kept) <= set(ids)
    assert len(set(ids)) == len(ids) == 300
    assert not deterministic or ids == list(range(300))


@pytest.mark.parametrize(("module", "name"), [(games, "frame"), (storage, "append")], ids=["frame", "append"])
@BOTH
def test_an_interrupt_on_the_way_to_the_journal_loses_no_game(
    kind: Any, module: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = getattr(module, name), 0

    def interrupted(*given: Any) -> None:
        """Before the games are written (`frame`), or after it."""
        monkeypatch.setattr(module, name, real)
        if name == "append":
            real(*given)
        raise KeyboardInterrupt

    def play() -> None:
        nonlocal taken
        with kind(settings(), tmp_path) as running:
            for event in running.run():
                if isinstance(event, Played):
                    taken = wait_for_games(self_play_of(running), 40)
                    monkeypatch.setattr(module, name, interrupted)

    with pytest.raises(KeyboardInterrupt):
        play()
    kept = game_ids(tmp_path)
    assert len(set(kept)) == len(kept) >= taken >= 40


def test_games_that_wait_while_the_network_is_trained_are_kept(tmp_path: Path) -> None:
    with Trainer(settings(iterations=3), tmp_path) as trainer:
        for event in trainer.run():
            if isinstance(event, Played) and event.games == 150:  # self-play is about to be paused
                wait_for_games(self_play_of(trainer), 151)
            if isinstance(event, Fitted):
                finished = self_play_of(trainer).stats["games"]
                break
    assert finished > 150
    assert len(game_ids(tmp_path)) == finished


def test_finished_games_are_taken_without_waiting_for_others() -> None:
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=8, games=300) as play:
        found = [next(play)]
        wait_for_games(play, 20)
        play.pause()
        found += play.take_finished()
        assert 20 <= len(found) == play.stats["games"] < 300
        assert play.take_finished() == []
        play.resume()
        found += play
        assert play.take_finished() == []
    assert sorted(record.game_id for record in found) == list(range(300))


def test_finished_games_are_handed_over_together_up_to_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, plain = list[int](), RunFolder.append

    class Ahead(Instead):
        """Self-play whose owner comes late."""

        def take_finished(self, most: int, seconds: float) -> list[azpy.GameRecord]:
            wait_for_games(self._play, 40)
            return self._play.take_finished(most, seconds=seconds)

    def append(self: RunFolder, *records: azpy.GameRecord) -> None:
        kept.append(len(records))
        plain(self, *records)

    Ahead.take_the_place_of_self_play(monkeypatch)
    monkeypatch.setattr(RunFolder, "append", append)
    events_of(settings(games_per_iteration=30, iterations=1), tmp_path, kind=Collector)
    assert kept == [30]


def test_an_interrupt_of_an_iterations_end_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []

    class Pausing(Instead):
        """Self-play whose first `pause` is interrupted."""

        def pause(self) -> None:
            self._play.pause()
            rows.append(self._play.stats["rows"])
            if len(rows) == 1:
                raise KeyboardInterrupt

    Pausing.take_the_place_of_self_play(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        events_of(settings(deterministic=True), tmp_path, kind=Collector)
    with RunFolder(tmp_path, read_config(tmp_path / "config.toml")) as run:
        assert run.spent("evaluations", "stopped_collecting") == rows[0] > 0


def test_a_fleet_hears_of_the_journals_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's result may come once more, to the head that goes on after a kill."""
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    with Collector(settings(deterministic=True, games_per_iteration=5000), tmp_path) as collector:
        next(event for event in collector.run() if isinstance(event, Played))
    with Collector(settings(deterministic=True, games_per_iteration=5000), tmp_path) as collector:
        told, journal = list[azpy.GameRecord](), list(collector.folder.journal)
        ask = collector.fleet.ask

        def heard(ids: Sequence[range], done: Sequence[azpy.GameRecord]) -> None:
            told.extend(done)
            ask(ids, done)

        monkeypatch.setattr(collector.fleet, "ask", heard)
        next(event for event in collector.run() if isinstance(event, Played))
    assert [game.to_bytes() for game in told] == [game.to_bytes() for game in journal] != []


class Slow:
    """Answers after a while."""

    def evaluate_batch(self, observations: Any) -> Any:
        time.sleep(0.002)
        return np.zeros((len(observations), 9), np.float32), np.zeros(len(observations), np.float32)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
def test_a_signal_in_a_wait_for_a_game_costs_no_game() -> None:
    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    taken: list[azpy.GameRecord] = []
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with azpy.SelfPlay("tic_tac_toe", Slow(), slots=4, simulations=1) as play:
            for turn in range(10):
                signal.setitimer(signal.ITIMER_REAL, 0.1 + 0.003 * turn)
                # A signal between two instructions of `taken.append(next(play))` would lose a game. `extend` runs in C,
                # and looks for signals in `next` alone.
                with pytest.raises(StopError):
                    taken.extend(play)
            play.pause()
            assert len(taken) + len(play.take_finished()) == play.stats["games"]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_error_while_games_are_kept_is_the_one_that_is_raised(tmp_path: Path) -> None:
    def fail() -> None:
        with Trainer(settings(), tmp_path) as trainer:
            for event in trainer.run():
                if isinstance(event, Played):
                    wait_for_games(self_play_of(trainer), 20)
                    raise OSError("on purpose")

    with pytest.raises(OSError, match="on purpose"):
        fail()
    assert len(game_ids(tmp_path)) >= 20


@BOTH
def test_the_time_before_an_interrupt_is_counted(kind: Any, tmp_path: Path) -> None:
    begin = time.monotonic()
    for part in range(1, 3):
        with kind(settings(games_per_iteration=10**6, iterations=None, match_every=1), tmp_path) as running:
            since = time.monotonic()
            for event in running.run():
                if isinstance(event, Played) and time.monotonic() - since > 0.2:
                    break
        stops = [row for row in opened_rows(tmp_path) if row["kind"].startswith("stopped")]
        assert stops[-1]["iteration"] == 0
        assert 0.2 * part < stops[-1]["seconds"] < time.monotonic() - begin
        assert len(stops) <= 2  # the last one, and the one that this part began with
    with kind(settings(), tmp_path) as running:
        assert next(running.run()).seconds > 0.4


@BOTH
def test_every_evaluation_is_counted(kind: Any, tmp_path: Path) -> None:
    counted = 0.0
    with kind(settings(games_per_iteration=20, iterations=3), tmp_path) as running:
        for event in running.run():
            if isinstance(event, Saved):
                counted += event.metrics["evaluations"]
                assert counted == self_play_of(running).stats["rows"] > 0  # self-play is paused
    assert counted


@BOTH
def test_evaluations_before_an_interrupt_are_counted(kind: Any, tmp_path: Path) -> None:
    for _ in range(3):
        with kind(settings(games_per_iteration=500, iterations=3, total_evaluations=1), tmp_path) as running:
            for event in running.run():
                if isinstance(event, Played):
                    wait_for_games(self_play_of(running), 30)
                    break
    stops = [row["evaluations"] for row in opened_rows(tmp_path) if row["kind"].startswith("stopped")]
    spent = stops[-1]
    assert len(stops) == 2  # the last one, and the one that the last part began with
    assert 0 < stops[0] < spent
    events_of(settings(games_per_iteration=500, iterations=3, total_evaluations=int(spent) + 1), tmp_path, kind=kind)
    done = [row for row in opened_rows(tmp_path) if row["kind"] in {"iteration", "collected"}]
    assert len(done) == 1
    assert done[0]["evaluations"] > spent


@BOTH
def test_a_finished_run_is_not_reported_as_stopped(kind: Any, tmp_path: Path) -> None:
    for iterations in (1, 2):
        events_of(settings(games_per_iteration=20, iterations=iterations), tmp_path, kind=kind)
    with kind(settings(games_per_iteration=20), tmp_path):
        pass  # not begun
    assert not [row for row in opened_rows(tmp_path) if row["kind"].startswith("stopped")]


def test_more_slots_or_pipelines_than_there_may_be_are_refused() -> None:
    for slots, pipelines, text in (
        (1000, 257, "pipelines must be at most 256, got 257"),
        (2**20 + 1, 2, "slots must be at most 1048576, got 1048577"),
        (1, 2, "expected a slot for each pipeline, got 2 pipelines and 1 slots"),
    ):
        with pytest.raises(ValueError, match=text):
            azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=slots, pipelines=pipelines)


def test_more_threads_than_there_may_be_are_refused() -> None:
    evaluator, start = azpy.UniformEvaluator(), azpy.make_game("tic_tac_toe")
    makers: tuple[Any, ...] = (
        lambda threads: azpy.SelfPlay(start, evaluator, games=0, threads=threads),
        lambda threads: azpy.VectorSearch([start], evaluator, threads=threads),
        lambda threads: azpy.Engine(evaluator, threads=threads),
        lambda threads: settings(threads=threads),
        lambda threads: azpy.OnnxEvaluator("is not read", threads=threads),
    )
    for make in makers:
        with pytest.raises(ValueError, match=r"threads must be .*at most 1024[,;] got 1025"):
            make(1025)


NEVER = """
import atexit, sys, threading, time
import azpy

asked = threading.Event()

class Never:
    def evaluate_batch(self, observations):
        asked.set()
        while sys.argv[2] == "sleeps":
            time.sleep(0.01)
        threading.Event().wait()

start = azpy.make_game("tic_tac_toe")
if sys.argv[1] == "self-play":
    object = azpy.SelfPlay(start, Never(), slots=4, simulations=5)
else:
    object = azpy.Engine(Never())
    object.submit(start)
asked.wait()
if sys.argv[3] == "close":
    try:
        print("waits", flush=True)
        object.close()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
atexit.register(print, "exits", flush=True)  # the last to be registered is the first to be called
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("what", "how", "leave"),
    [
        ("self-play", "sleeps", "exit"),
        ("self-play", "waits", "close"),
        ("serving", "waits", "exit"),
        ("serving", "sleeps", "close"),
    ],
)
def test_ctrl_c_ends_a_wait_for_an_evaluator_that_never_returns(what: str, how: str, leave: str) -> None:
    program = [sys.executable, "-c", NEVER, what, how, leave]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        hangs = threading.Timer(20, running.kill)
        hangs.start()
        assert running.stdout is not None
        assert running.stderr is not None
        if leave == "close":
            assert running.stdout.readline() == "waits\n"
            running.send_signal(signal.SIGINT)
            assert running.stdout.readline() == "interrupted\n"
        assert running.stdout.readline() == "exits\n"
        while running.poll() is None:  # it may not wait yet
            running.send_signal(signal.SIGINT)
            time.sleep(0.02)
        hangs.cancel()
        errors = running.stderr.read()
    assert running.returncode == -signal.SIGINT
    assert "azpy: Ctrl-C ended the wait for self-play or a batched search to stop; threads still in " in errors


RAISES_AT_EXIT = """
import atexit, signal, sys, threading, time
import azpy
import numpy as np

asked, may_end = threading.Event(), threading.Event()

class Waits:
    def evaluate_batch(self, observations):
        asked.set()
        may_end.wait()
        time.sleep(0.5)  # after a wait that the exception ended
        print("returned", flush=True)
        return np.zeros((len(observations), 9), np.float32), np.zeros(len(observations), np.float32)

def raises(*_):
    may_end.set()
    sys.exit(1)

signal.signal(signal.SIGALRM, raises)
games = azpy.SelfPlay("tic_tac_toe", Waits(), slots=4, pipelines=1, simulations=5)
asked.wait()
atexit.register(signal.setitimer, signal.ITIMER_REAL, 0.1)  # called before azpy waits for its threads
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGALRM")
def test_an_exit_waits_for_evaluators_though_a_handler_raises() -> None:
    code, said, errors = program(RAISES_AT_EXIT)
    assert "returned" in said
    assert code >= 0, errors  # no crash
    assert "SystemExit" in errors


STARVED = """
import os, resource, sys
import azpy
from azpy.errors import RunError, SettingsError
from azpy.fleet.fleet import digest_of
from azpy.playing.selfplay import open_self_play
from azpy.settings import Settings

start = azpy.make_game("pig")
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))  # this thread, and no other
if os.geteuid() == 0:  # who may do all
    os.setuid(65534)
for threads in (1, 4):
    try:
        open_self_play(Settings("pig", threads=threads), start, [azpy.UniformEvaluator()])
    except SettingsError as error:
        print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits threads as Linux does")
def test_threads_that_cannot_be_started_are_one_line() -> None:
    code, said, errors = program(STARVED)
    assert (code, errors) == (0, "")
    lines = said.splitlines()
    assert len(lines) == 2
    for line, thread in zip(lines, ("a pipeline thread", "4 threads"), strict=True):
        assert line.startswith(f"self-play cannot start: cannot start {thread}: ")
        assert line.endswith("; try fewer pipelines or threads")
